//! From the analysed program to PTX.

pub mod emit;

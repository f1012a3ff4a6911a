//! From the analysed program to PTX.

pub mod emit;
pub mod math;

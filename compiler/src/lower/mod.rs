//! From a checked kernel to PTX.

pub mod math;

//! From the tokens of `schedule!` to checked PTX. A pure function of its input: no files, no environment, no clocks, no GPU.
#![forbid(unsafe_code)]

pub mod diag;
pub mod domain;
pub mod extent;
pub mod holes;
pub mod kernel_ir;
pub mod lower;
pub mod program;
pub mod syntax;

//! The loop program of a kernel, and what reads it: the PTX that it becomes ([`emit`]), and a checker that runs it on
//! index values and on terms ([`proof`]), and that shares no rule with whoever made it.
#![forbid(unsafe_code)]

pub mod emit;
pub mod kernel_ir;
pub mod proof;

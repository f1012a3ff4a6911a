//! The loop program of a kernel, and what reads it: the PTX that it becomes ([`emit`]), and a checker that runs it on
//! index values and on terms ([`proof`]), and that shares no rule with whoever made it.
//!
//! **Not for use on its own.** This crate is published because `tilewright` is made of it. Any version may change
//! anything here, and all crates of one version belong together.
#![forbid(unsafe_code)]

pub mod emit;
pub mod kernel_ir;
pub mod proof;

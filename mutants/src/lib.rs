//! Mutation of the compiler: whether a changed rule of it is noticed, and by which net.
//!
//! The workspace is copied, its compiler changed at all sites at once, each change behind a switch, and built once.
//! Kernels that the unchanged compiler accepts are compiled again with one mutant on at a time. A mutant that gives
//! other code is noticed, if the compiler itself refuses the kernel (its rooms, its verifier, the separate checker
//! inside the macro), if the separate checker finds something at more sizes and with more work, or if what the emulator
//! computes is wrong.
//!
//! | room | holds |
//! | --- | --- |
//! | [`sites`] | where and how the source can be changed |
//! | [`rewrite`] | the source with its mutants |
//! | [`switch`] | which one is on; part of the changed crates |
//! | [`tree`] | the changed copy of the workspace, and its build |
//! | [`corpus`] | the kernels |
//! | [`judge`] | what is noticed of one mutant |
//! | [`worker`] | its process |
//! | [`report`] | counts, and what nothing noticed |
//! | [`chosen`] | kernels for mistakes in finished ones |
//! | [`protocol`] | mistakes in finished kernels instead: what orders something is left out, weakened or moved |
//! | `reason` | which of these change nothing, and why |
#![forbid(unsafe_code)]

pub mod chosen;
pub mod corpus;
pub mod judge;
pub mod protocol;
mod reason;
pub mod report;
pub mod rewrite;
pub mod sites;
pub mod switch;
pub mod tree;
pub mod worker;

/// What went wrong, for the reader of the tool.
pub type Failure = String;

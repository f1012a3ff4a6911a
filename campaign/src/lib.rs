//! Random kernels and schedules, and everything that must hold for them.
//!
//! | room | holds |
//! | --- | --- |
//! | [`rng`] | random numbers from a seed |
//! | [`ast`], [`print`](mod@print) | kernels, and their source text |
//! | [`generate`] | random kernels with random schedules |
//! | [`interpret`] | an interpreter by the definitions, that shares no code with the compiler |
//! | [`compile`] | source text to an outcome, panics caught |
//! | [`sizes`], [`execute`] | shapes and data; the emulator against the reference |
//! | [`proved`] | the separate checker of finished kernels |
//! | [`judge`] | refusals against the interpreter |
//! | [`case`](mod@case) | one case with all its checks |
//! | [`cases`] | many of them in parallel, and which one does not end |
//! | [`shrink`] | the smallest kernel that still fails |
//! | [`mutate`] | broken source text and broken PTX |
//! | [`fuzz`] | broken inputs of all kinds, as far as their readers go |
//! | [`campaign`] | many cases, counted |
//! | [`compose`] | a second campaign: several equations, all ops and stages in all places at once; products by tensor cores, attention |
//! | [`ratchet`] | how many refusals may be undecided |
//! | [`timing`] | how long the macro takes for drawn kernels |
#![forbid(unsafe_code)]

pub mod ast;
pub mod campaign;
pub mod case;
pub mod cases;
pub mod compile;
pub mod compose;
pub mod execute;
pub mod fuzz;
pub mod generate;
pub mod interpret;
pub mod judge;
pub mod mutate;
pub mod print;
pub mod proved;
pub mod ratchet;
pub mod rng;
pub mod shrink;
pub mod sizes;
pub mod timing;

//! What finds mistakes: the separate checker and the emulator, over real kernels and planted mistakes.

mod kernels;
mod mutants;
mod protocol;
#[path = "../support/mod.rs"]
mod support;

//! The development tasks: `cargo xtask TASK`.
//!
//! | room | holds |
//! | --- | --- |
//! | [`kernels`] | every kernel of the repository, compiled |
//! | [`ops`] | kernels that cover operations and types, generated |
//! | [`assemble`] | all their PTX through NVIDIA's assembler |
//! | [`api`] | the public items of the crates that are meant to be used |
//! | [`bless`] | refreshing expected outputs; the tidy test |
//! | [`prove`] | all of them before the separate checker |
//! | [`replay`] | what the compiler makes of many sources, before and after a change |
//! | [`book`] | what programs tell in the pages of `docs`, and where their links lead |
//! | [`model`] | a matrix product on Hopper, on paper |
//! | [`conformance`] | the conformance files, on the GPU of a machine or on the emulator |
//! | [`device`] | the bundle for a machine with a GPU |
//! | [`survey`] | what `device-check` does there |
//! | [`timing`] | how it takes times, also for another program |
#![forbid(unsafe_code)]

pub mod api;
pub mod assemble;
pub mod bless;
pub mod book;
pub mod conformance;
pub mod device;
pub mod kernels;
pub mod model;
pub mod ops;
pub mod prove;
pub mod replay;
pub mod survey;
pub mod timing;

use std::path::PathBuf;
use std::process::Command;

/// A task that failed, for its reader.
pub type Failure = String;

/// The folders with rooms of the compiler: those of the crates below `compiler`, and its own.
pub const COMPILER: [&str; 3] = ["theory/src", "ir/src", "compiler/src"];

/// The root of the workspace.
pub fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}

/// Runs a command to its end.
///
/// # Errors
/// It cannot be started, or it fails.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let shown = format!("{command:?}");
    let status = command.status().map_err(|error| format!("{shown}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{shown}: {status}")) }
}

/// The cargo that runs this task, in the root of the workspace.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

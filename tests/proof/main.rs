//! What finds mistakes: the separate checker and the emulator, over real kernels and planted mistakes.

mod kernels;
mod mutants;
mod protocol;
#[path = "../support/mod.rs"]
mod support;

use tilewright::kernel::info::KernelInfo;
use tilewright_compiler::emit::{EmitError, emit};
use tilewright_compiler::kernel_ir::Kernel;
use tilewright_compiler::lower::Entry;

/// The kernel with another loop program in place of its first entry point.
fn with_first(info: &KernelInfo, entries: &[Entry], first: &Kernel) -> Result<KernelInfo, EmitError> {
    let mut info = info.clone();
    let mut kernels: Vec<&Kernel> = entries.iter().map(|entry| &entry.kernel).collect();
    kernels[0] = first;
    info.ptx.text = emit(&kernels, &info.name)?.to_string().into();
    Ok(info)
}

//! PTX programs with inputs and expected outputs: what an emulator or a GPU must compute, one file an instruction
//! family.
//!
//! `files/FAMILY.ptx` has the kernels of a family, and `files/FAMILY.json` for each of them how it is launched, what it
//! reads and what it must leave. No expected word was recorded from an emulator: the words of arithmetic come from the
//! oracle in `emulator/tests/oracle` (exact integers, and exact numbers that are rounded once), those of everything
//! else from `emulator/tests/rows`, where each program has its results as a formula of its own. Both write the files
//! (`cargo xtask conformance`), and fail while a file is not what they would write.
//!
//! `docs/conformance.md` describes the format for those who run the files elsewhere.
//!
//! | room | holds |
//! | --- | --- |
//! | [`file`](mod@file) | a family: read, checked, written |
//! | [`want`] | what a result must be: bits, a NaN, a range, anything |
//! | [`machine`] | what runs a case: the interface, the emulator, the table that is printed |
//! | [`questions`] | what nobody has told of the hardware: experiments, and what their answers decide |
#![forbid(unsafe_code)]

pub mod file;
pub mod machine;
pub mod questions;
pub mod want;

use std::path::PathBuf;

use tilewright_ptx::{PtxVersion, Requirement, Target};

/// The folder with the files, in a checkout of the repository.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("files")
}

/// Kernels with the directives of a module before them: the least version and target that their instructions need, and
/// at least these. Text that is no PTX gets these, so that whoever assembles it says what is wrong.
pub fn with_header(kernels: &str, version: &str, target: &str) -> String {
    let header =
        |version: &str, target: &str| format!(".version {version}\n.target {target}\n.address_size 64\n{kernels}");
    let Ok(module) = tilewright_ptx::parse(&header("8.8", "sm_90a")) else { return header(version, target) };
    let floor = (PtxVersion::from_text(version), Target::from_text(target));
    let (Some(version), Some(target)) = floor else { return header(version, target) };
    let need = tilewright_ptx::requirement(&module).and(Requirement { version, target });
    let need = need.and(Requirement { version: need.target.introduced(), target });
    header(&need.version.to_string(), &need.target.to_string())
}

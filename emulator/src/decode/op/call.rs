//! Calls of device functions: where arguments and results are.

use super::{Slot, WideSlot};

/// What is called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A function of the kernel's list.
    Function(u32),
    /// The function whose address is in the register.
    Address(WideSlot),
    /// A function that the driver has for every module.
    Library(Library),
    /// A function that the module only declares.
    Undefined(String),
}

/// A function that device code calls and no module defines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Library {
    /// `vprintf(format, arguments)`, what `printf` becomes.
    Print,
    /// `malloc(bytes)`.
    Allocate,
    /// `free(address)`.
    Free,
    /// `__assertfail(message, file, line, function, size of a character)`.
    AssertFail,
}

impl Library {
    /// The function of this name with so many arguments and results.
    pub fn of(name: &str, arguments: usize, results: usize) -> Option<Library> {
        Some(match (name, arguments, results) {
            ("vprintf", 2, 1) => Library::Print,
            ("malloc", 1, 1) => Library::Allocate,
            ("free", 1, 0) => Library::Free,
            ("__assertfail", 5, 0) => Library::AssertFail,
            _ => return None,
        })
    }
}

/// An argument or result, at the caller's or the callee's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passed {
    /// Bytes in the frame, from its base.
    Frame {
        /// First byte, a multiple of 4.
        offset: u32,
        /// Number of bytes.
        bytes: u32,
    },
    /// A register, with its number among the tracked ones if its reads are checked.
    Register {
        /// The register.
        slot: Slot,
        /// Its number.
        tracked: Option<u32>,
    },
    /// Dropped.
    Nothing,
}

/// A call instruction. It writes the registers of its results, when the function returns, and those of the callee.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallSite {
    /// What is called.
    pub target: Target,
    /// Arguments.
    pub arguments: Vec<Passed>,
    /// Results.
    pub results: Vec<Passed>,
    /// The caller's frame base; none in the kernel itself, whose frame starts at 0.
    pub base: Option<WideSlot>,
}

/// A device function in a kernel's code. Its frame in local memory holds its results, parameters and variables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Callee {
    /// Its name.
    pub name: String,
    /// Its address as a value.
    pub address: u64,
    /// First instruction.
    pub entry: u32,
    /// Where the frame starts.
    pub base: WideSlot,
    /// Bytes of the frame.
    pub bytes: u32,
    /// Alignment of the frame.
    pub align: u32,
    /// Parameters.
    pub parameters: Vec<Passed>,
    /// Results.
    pub results: Vec<Passed>,
    /// Registers to keep for the caller, when the function may be called while it runs.
    pub saved: Vec<Slot>,
    /// Its registers whose reads are checked: first and one past the last.
    pub tracked: [u32; 2],
}

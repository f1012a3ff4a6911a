//! Running launches on the emulator.

mod options;

pub use options::{EmulatorOptions, EmulatorReport};

use crate::device::Emulator;
use crate::error::{Error, Fault, Result};
use crate::launch::Work;

impl Emulator {
    /// Runs a launch; returns when it is done.
    pub(crate) fn run(&self, work: &Work) -> Result<()> {
        let fault = Fault {
            kernel: work.kernel.to_string(),
            kind: "missing".to_owned(),
            message: "the emulator is not wired in yet".to_owned(),
            statement: None,
            thread: None,
            address: None,
            element: None,
        };
        Err(Error::Emulation(Box::new(fault)))
    }
}

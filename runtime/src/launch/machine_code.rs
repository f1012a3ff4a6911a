//! What the driver's assembler made of a kernel.

use super::Prepared;
use crate::error::Result;

/// What the driver's assembler made of the entry point of a launch: [`Prepared::machine_code`].
///
/// It depends on the GPU and on the driver, so that a program can look only where it runs. Nothing is refused for it: a
/// kernel with [losses](Self::losses) computes the same, slower.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MachineCode {
    /// Registers of a thread, in words of 32 bits.
    pub registers: u32,
    /// Bytes of local memory of a thread. Kernels of this crate ask for none: these are registers that were spilled.
    pub local_bytes: u32,
    /// What the assembler said of the kernel, of all its entry points. It is empty if it said nothing, and if the
    /// driver had the machine code from an earlier run of some program: it keeps code, and not what was said of it.
    pub log: String,
}

impl MachineCode {
    /// What makes the kernel slower than its schedule says, a sentence each: spilled registers, and the lines of the
    /// log about products that wait for each other and registers of roles that are not honoured.
    #[must_use]
    pub fn losses(&self) -> Vec<String> {
        let spilled = (self.local_bytes > 0).then(|| {
            format!("{} bytes of registers of each thread are kept in local memory: they did not fit", self.local_bytes)
        });
        spilled.into_iter().chain(tilewright_kernel::assembler::losses(&self.log).map(str::to_owned)).collect()
    }
}

impl Prepared<'_> {
    /// What the driver's assembler made of the kernel; `None` on the emulator, which has no machine code, and for a
    /// launch that has nothing to compute.
    ///
    /// # Errors
    /// A failure of the driver.
    pub fn machine_code(&self) -> Result<Option<MachineCode>> {
        #[cfg(feature = "cuda")]
        if let Some(call) = &self.work.call {
            return call.function.machine_code().map(Some);
        }
        Ok(None)
    }
}

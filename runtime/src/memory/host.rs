//! Memory of the emulator: an allocation in its address space, freed with its last owner.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilewright_emulator::Memory;

use crate::error::{Error, Result};

/// An allocation of an emulator.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Arc<Memory>,
    address: u64,
    bytes: u64,
    /// Orders host copies and launches; what is ordered lies in the emulator.
    uses: Mutex<()>,
}

impl Buffer {
    /// Uninitialised memory at an address of its own.
    pub(super) fn new(memory: &Arc<Memory>, bytes: usize) -> Result<Self> {
        let bytes = bytes as u64;
        let address =
            memory.alloc(bytes, "tensor").map_err(|_| Error::OutOfMemory { bytes, device: "the emulator".into() })?;
        Ok(Self { memory: Arc::clone(memory), address, bytes, uses: Mutex::new(()) })
    }

    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Keeps other uses away for as long as the guard lives.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let _guard = self.lock();
        self.memory.write(self.address + offset as u64, bytes).map_err(failed)
    }

    pub(super) fn zero(&self) -> Result<()> {
        let _guard = self.lock();
        self.memory.fill(self.address, self.bytes, 0).map_err(failed)
    }

    pub(super) fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let _guard = self.lock();
        self.memory.read(self.address + offset as u64, bytes).map_err(failed)
    }
}

fn failed(error: tilewright_emulator::Error) -> Error {
    Error::Layout { operation: "copy", reason: error.to_string() }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // It was allocated there, and is freed once.
        let _ = self.memory.free(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_freed_and_absurd_sizes_are_errors() {
        let memory = Arc::new(Memory::new(1 << 20));
        let (a, b) = (Buffer::new(&memory, 1000).unwrap(), Buffer::new(&memory, 0).unwrap());
        assert_ne!(a.address(), b.address());
        assert_eq!((a.address() % 256, memory.used()), (0, 1000));
        assert!(matches!(Buffer::new(&memory, 1 << 21), Err(Error::OutOfMemory { bytes: 0x20_0000, .. })));
        assert!(matches!(Buffer::new(&memory, usize::MAX), Err(Error::OutOfMemory { .. })));
        drop((a, b));
        assert_eq!(memory.used(), 0);
    }
}

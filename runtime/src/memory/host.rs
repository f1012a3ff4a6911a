//! Memory of the emulator: bytes on the host, with an address that kernels see.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// Bytes with an emulated address.
#[derive(Debug)]
pub(crate) struct Buffer {
    address: u64,
    bytes: Mutex<Vec<u8>>,
}

/// What addresses are multiples of, as on a GPU.
const ALIGNMENT: u64 = 512;
/// Addresses between two buffers that belong to neither, so that a stray access is seen.
const GAP: u64 = 1 << 20;

impl Buffer {
    /// Zeroed memory at an address of its own; addresses are never reused.
    pub(crate) fn new(bytes: usize) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1 << 40);
        let contents = zeroed(bytes)?;
        let space = (bytes as u64).checked_next_multiple_of(ALIGNMENT).and_then(|b| b.checked_add(GAP));
        let space = space.filter(|s| *s < 1 << 48);
        let Some(space) = space else { return Err(no_memory(bytes)) };
        let address = NEXT
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(space))
            .map_err(|_| no_memory(bytes))?;
        Ok(Self { address, bytes: Mutex::new(contents) })
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The bytes, for as long as the guard lives.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self, offset: usize, bytes: &[u8]) {
        self.lock()[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn zero(&self) {
        self.lock().fill(0);
    }

    pub(super) fn read(&self, offset: usize, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.lock()[offset..offset + bytes.len()]);
    }
}

/// Zero bytes, or an error where the host has not that many.
pub(super) fn zeroed(bytes: usize) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    all.try_reserve_exact(bytes).map_err(|_| no_memory(bytes))?;
    all.resize(bytes, 0);
    Ok(all)
}

fn no_memory(bytes: usize) -> Error {
    Error::OutOfMemory { bytes: bytes as u64, device: "host".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_aligned_and_apart() {
        let (a, b, empty) = (Buffer::new(1000).unwrap(), Buffer::new(8).unwrap(), Buffer::new(0).unwrap());
        let mut addresses = [a.address(), b.address(), empty.address()];
        addresses.sort_unstable();
        assert!(addresses.iter().all(|x| x % ALIGNMENT == 0));
        assert!(addresses.windows(2).all(|w| w[1] - w[0] >= GAP));
    }

    #[test]
    fn absurd_sizes_are_errors() {
        assert!(matches!(Buffer::new(usize::MAX), Err(Error::OutOfMemory { .. })));
        assert!(matches!(Buffer::new(isize::MAX as usize), Err(Error::OutOfMemory { .. })));
    }
}

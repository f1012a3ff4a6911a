//! Device memory as a cell: bytes that many handles may name, and of which nobody ever holds a `&[T]`.
//!
//! An [`Allocation`] is shared by the tensor that owns it, by prepared launches that keep it alive, and by running
//! launches. Every access goes through its lock; a launch takes the locks of all its allocations in one order.

mod foreign;
#[cfg(feature = "emulator")]
mod host;
mod pinned;

use std::sync::Arc;

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::DeviceInner;
use crate::error::Result;

#[cfg(feature = "emulator")]
use host::Buffer;
#[cfg(feature = "cuda")]
pub(crate) use pinned::Way;
pub use pinned::{Pinned, Transfer};

/// A range of device memory.
#[derive(Debug)]
pub(crate) struct Allocation {
    storage: Storage,
    device: Arc<DeviceInner>,
    bytes: usize,
}

#[derive(Debug)]
enum Storage {
    /// Of the emulator.
    #[cfg(feature = "emulator")]
    Host(Buffer),
    #[cfg(feature = "cuda")]
    Cuda(cuda::Block),
    /// An address of somebody else's CUDA memory, on an emulator: a launch refuses it.
    #[cfg(feature = "emulator")]
    Unreachable(u64),
}

impl std::fmt::Debug for DeviceInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

impl Allocation {
    /// Uninitialised memory of `bytes` bytes.
    pub(crate) fn new(device: &Arc<DeviceInner>, bytes: usize) -> Result<Self> {
        let storage = match &**device {
            #[cfg(feature = "cuda")]
            DeviceInner::Cuda(context) => Storage::Cuda(cuda::Block::allocate(context, bytes)?),
            #[cfg(feature = "emulator")]
            DeviceInner::Emulator(emulator) => Storage::Host(Buffer::new(emulator.memory(), bytes)?),
        };
        Ok(Self { storage, device: Arc::clone(device), bytes })
    }

    /// Over a block of CUDA memory.
    #[cfg(feature = "cuda")]
    pub(crate) fn over(block: cuda::Block, device: &Arc<DeviceInner>, bytes: usize) -> Self {
        Self { storage: Storage::Cuda(block), device: Arc::clone(device), bytes }
    }

    pub(crate) fn address(&self) -> u64 {
        match &self.storage {
            #[cfg(feature = "emulator")]
            Storage::Host(buffer) => buffer.address(),
            #[cfg(feature = "cuda")]
            Storage::Cuda(block) => block.address(),
            #[cfg(feature = "emulator")]
            Storage::Unreachable(address) => *address,
        }
    }

    /// Size in bytes; of foreign memory, the range that its view reaches.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn device(&self) -> &Arc<DeviceInner> {
        &self.device
    }

    /// Whether launches can reach the memory.
    pub(crate) fn is_reachable(&self) -> bool {
        match &self.storage {
            #[cfg(feature = "emulator")]
            Storage::Unreachable(_) => false,
            #[cfg(feature = "emulator")]
            Storage::Host(_) => true,
            #[cfg(feature = "cuda")]
            Storage::Cuda(_) => true,
        }
    }

    /// The emulator's buffer, if it is emulated.
    #[cfg(feature = "emulator")]
    pub(crate) fn host(&self) -> Option<&Buffer> {
        match &self.storage {
            #[cfg(feature = "emulator")]
            Storage::Host(buffer) => Some(buffer),
            #[cfg(feature = "cuda")]
            Storage::Cuda(_) => None,
            Storage::Unreachable(_) => None,
        }
    }

    /// The driver's block, if it is on a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda(&self) -> Option<&cuda::Block> {
        match &self.storage {
            Storage::Cuda(block) => Some(block),
            #[cfg(feature = "emulator")]
            Storage::Host(_) | Storage::Unreachable(_) => None,
        }
    }

    /// The driver's block by value.
    #[cfg(feature = "cuda")]
    pub(crate) fn into_cuda(self) -> Option<cuda::Block> {
        match self.storage {
            Storage::Cuda(block) => Some(block),
            #[cfg(feature = "emulator")]
            Storage::Host(_) | Storage::Unreachable(_) => None,
        }
    }

    /// Writes bytes at an offset, after all pending uses, and waits. The range lies in the allocation.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.check(offset, bytes.len())?;
        match &self.storage {
            #[cfg(feature = "emulator")]
            Storage::Host(buffer) => buffer.write(offset, bytes)?,
            #[cfg(feature = "cuda")]
            Storage::Cuda(block) => block.write(offset, bytes)?,
            #[cfg(feature = "emulator")]
            Storage::Unreachable(_) => return Err(unreachable_memory()),
        }
        Ok(())
    }

    /// Fills with zeros.
    pub(crate) fn zero(&self) -> Result<()> {
        match &self.storage {
            #[cfg(feature = "emulator")]
            Storage::Host(buffer) => buffer.zero()?,
            #[cfg(feature = "cuda")]
            Storage::Cuda(block) => block.zero(self.bytes)?,
            #[cfg(feature = "emulator")]
            Storage::Unreachable(_) => return Err(unreachable_memory()),
        }
        Ok(())
    }

    /// Bytes from an offset, after the last write.
    pub(crate) fn read(&self, offset: usize, len: usize) -> Result<Vec<u8>> {
        self.check(offset, len)?;
        let mut bytes = zeroed(len)?;
        match &self.storage {
            #[cfg(feature = "emulator")]
            Storage::Host(buffer) => buffer.read(offset, &mut bytes)?,
            #[cfg(feature = "cuda")]
            Storage::Cuda(block) => block.read(offset, &mut bytes)?,
            #[cfg(feature = "emulator")]
            Storage::Unreachable(_) => return Err(unreachable_memory()),
        }
        Ok(bytes)
    }

    /// Copies bytes of another allocation, after all pending uses, and waits; on the device, if it is one device.
    pub(crate) fn copy_from(&self, offset: usize, source: &Self, from: usize, len: usize) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let (Storage::Cuda(target), Storage::Cuda(block)) = (&self.storage, &source.storage)
            && self.device.is(&source.device)
            && target.address() != block.address()
        {
            self.check(offset, len)?;
            source.check(from, len)?;
            return target.copy_from(offset, block, from, len);
        }
        self.write(offset, &source.read(from, len)?)
    }

    /// The ranges come from views, which were checked when they were made; the check here keeps a mistake there from
    /// becoming a stray copy.
    fn check(&self, offset: usize, len: usize) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(crate::error::Error::Layout {
                operation: "copy",
                reason: format!("bytes {offset}..+{len} of an allocation of {} bytes", self.bytes),
            }),
        }
    }
}

/// Zero bytes on the host, or an error where it has not that many.
fn zeroed(bytes: usize) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    let failed = |_| crate::error::Error::OutOfMemory { bytes: bytes as u64, device: "the host".to_owned() };
    all.try_reserve_exact(bytes).map_err(failed)?;
    all.resize(bytes, 0);
    Ok(all)
}

#[cfg(feature = "emulator")]
fn unreachable_memory() -> crate::error::Error {
    crate::error::Error::Layout {
        operation: "copy",
        reason: "foreign CUDA memory cannot be read on the emulator".to_owned(),
    }
}

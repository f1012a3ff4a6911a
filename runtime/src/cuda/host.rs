//! Page-locked host memory, and copies that read or write it while the host goes on.

use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::sys;

use super::call;
use super::context::{Context, Event};
use super::run::{not_cuda, ordered};
use crate::device::StreamInner;
use crate::error::{Error, Result};
use crate::launch::Access;
use crate::memory::Way;

/// Page-locked memory of the host. It belongs to one owner, which a copy under way takes over: see
/// [`Transfer`](crate::Transfer).
#[derive(Debug)]
pub(crate) struct HostBlock {
    context: Arc<Context>,
    pointer: NonNull<u8>,
    bytes: usize,
    /// A copy may still be under way, and nothing can wait for it: the memory is never freed.
    lost: bool,
}

// SAFETY: the memory is plain bytes, which only the owner of the block reaches.
unsafe impl Send for HostBlock {}
// SAFETY: a shared reference allows reading, from any thread.
unsafe impl Sync for HostBlock {}

impl HostBlock {
    /// Bytes of zero; of `bytes` = 0 still an address of its own. The start is aligned for every element type: the
    /// driver locks whole pages.
    pub(crate) fn zeros(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        context.bind()?;
        let mut pointer = std::ptr::null_mut();
        // Portable: copies to every device take the fast way.
        // SAFETY: writes one address; a context is current.
        let status = unsafe { sys::cuMemHostAlloc(&raw mut pointer, bytes.max(1), sys::CU_MEMHOSTALLOC_PORTABLE) };
        match (status, NonNull::new(pointer.cast::<u8>())) {
            (sys::CUresult::CUDA_SUCCESS, Some(pointer)) => {
                // SAFETY: the driver gave as many bytes, which nobody else knows of.
                unsafe { pointer.write_bytes(0, bytes.max(1)) };
                Ok(Self { context: Arc::clone(context), pointer, bytes, lost: false })
            }
            (sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY | sys::CUresult::CUDA_SUCCESS, _) => {
                Err(Error::OutOfMemory { bytes: bytes as u64, device: "the host, page-locked".to_owned() })
            }
            (other, _) => Err(super::failure("cuMemHostAlloc", other)),
        }
    }

    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the block has as many bytes, all of which were written; it is borrowed as a whole.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.bytes) }
    }

    /// Gives the memory up: a copy that nothing can wait for may still use it.
    pub(crate) fn lose(&mut self) {
        self.lost = true;
    }

    /// Enqueues a copy between the whole block and as many bytes of an allocation from `offset` on, in the order that
    /// the allocation's other uses demand. What is given back happens when the copy is done.
    ///
    /// After an error the block may be dropped: it was waited for, or it is lost.
    ///
    /// # Safety
    /// Until then nothing reads, writes or frees the block. The range lies in the allocation.
    pub(crate) unsafe fn copy(
        &mut self,
        way: Way,
        access: &Access,
        offset: usize,
        on: &StreamInner,
    ) -> Result<Arc<Event>> {
        let (Some(device), Some(stream)) = (access.allocation.cuda(), on.cuda()) else { return Err(not_cuda()) };
        let (address, host, raw) = (device.address() + offset as u64, self.pointer.as_ptr(), stream.raw());
        // Before anything is enqueued, so that the block is not lost for it.
        stream.check()?;
        device.context.bind()?;
        let enqueue = |_: &mut bool| match way {
            // SAFETY: both ranges are there, as the caller promised; `ordered` keeps the device's memory alive and in
            // order, and the caller the host's.
            Way::ToDevice => unsafe { call!(cuMemcpyHtoDAsync_v2(address, host.cast(), self.bytes, raw)) },
            // SAFETY: as above.
            Way::ToHost => unsafe { call!(cuMemcpyDtoHAsync_v2(host.cast(), address, self.bytes, raw)) },
        };
        let copied = ordered(std::slice::from_ref(access), stream, enqueue);
        if copied.is_err() && stream.synchronize().is_err() {
            self.lose();
        }
        copied
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        if !self.lost && self.context.bind().is_ok() {
            // SAFETY: ours and not used again: whoever drops the block has waited for its copies.
            let _ = unsafe { sys::cuMemFreeHost(self.pointer.as_ptr().cast()) };
        }
    }
}

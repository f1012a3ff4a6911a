//! Adopting and giving back the slices of `cudarc`.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice};

use super::context::{self, Context};
use super::memory::{Block, Owner};
use crate::error::{Error, Result};

/// Takes a slice over. Work already enqueued on the slice is waited for on the device.
pub(crate) fn adopt<T>(slice: CudaSlice<T>) -> Result<(Arc<Context>, Block)> {
    let context = Context::get(slice.ordinal())?;
    let stream = Arc::clone(slice.stream());
    if slice.context().cu_ctx() != context.raw() {
        return Err(Error::Layout {
            operation: "from_cudarc",
            reason: "the slice belongs to a context that is not the device's primary one".to_owned(),
        });
    }
    // `leak` makes the slice's own stream wait for what other streams of cudarc do with it, so an event recorded after
    // it covers everything. Were recording to fail, the memory would stay allocated, which is safe.
    let pointer = slice.leak();
    let ready = context::record_raw(context.raw(), stream.cu_stream())?;
    let block = Block::adopted(Arc::clone(&context), pointer, stream, ready);
    Ok((context, block))
}

/// Gives a block up as a slice of `len` elements.
pub(crate) fn release<T>(mut block: Block, len: usize) -> Result<CudaSlice<T>> {
    let failed = |reason: String| Error::Layout { operation: "into_cudarc", reason };
    let stream = match &block.owner {
        Owner::Adopted(stream) => Arc::clone(stream),
        Owner::Own => {
            let context = CudaContext::new(block.context.ordinal).map_err(|e| failed(e.to_string()))?;
            context.new_stream().map_err(|e| failed(e.to_string()))?
        }
        Owner::Foreign(_) => return Err(failed("the memory is not ours to give".to_owned())),
    };
    block.context.bind()?;
    {
        // After an error the block is dropped with its uses, and waits for them itself.
        let uses = block.lock();
        if uses.is_lost() {
            return Err(failed("an earlier launch on it could not be recorded".to_owned()));
        }
        uses.drain_into(stream.cu_stream())?;
    }
    let pointer = std::mem::replace(&mut block.pointer, 0);
    drop(block);
    // SAFETY: the block is ours, `pointer` is its start, it has room for `len` elements of `T`, and dropping the block
    // no longer frees it (its pointer is 0). All its uses come before later work of `stream`.
    Ok(unsafe { stream.upgrade_device_ptr(pointer, len) })
}

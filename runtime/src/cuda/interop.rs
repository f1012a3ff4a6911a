//! Slices and streams of `cudarc`: adopted, given back, borrowed.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut};

use super::context::{self, Context};
use super::memory::{Block, Owner};
use crate::device::{DeviceInner, Stream};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::tensor::{Layout, TensorMut, TensorRef, check_length};

impl Stream {
    /// A stream of `cudarc`, and so of what is built on it: launches and copies on it are in the order of its other
    /// work. It stays alive as long as the result. Keep the result where you can: it holds memory that launches leave
    /// for each other.
    ///
    /// While the stream is captured into a graph, launches and copies on it are errors; see
    /// [`Prepared::enqueue`](crate::Prepared::enqueue).
    ///
    /// # Errors
    /// [`Error::Layout`] for a stream of another context than the device's primary one, and for the stream that every
    /// thread has of its own; [`Error::NoCuda`]; a failure of the driver.
    pub fn from_cudarc(stream: Arc<CudaStream>) -> Result<Self> {
        let context = primary("Stream::from_cudarc", stream.context())?;
        // Its one handle means as many streams as there are threads: no order can be kept by it.
        if stream.cu_stream().addr() == PER_THREAD {
            let reason = "the stream of each thread is another one on every thread; make a stream".to_owned();
            return Err(Error::Layout { operation: "Stream::from_cudarc", reason });
        }
        let lent = context::Stream::lent(&context, stream);
        Ok(Self::over(DeviceInner::Cuda(context), lent))
    }
}

/// The stream of a borrowed slice, which must take work now.
fn home(stream: &Arc<CudaStream>) -> Result<Stream> {
    let home = Stream::from_cudarc(Arc::clone(stream))?;
    home.inner().cuda().map_or(Ok(()), context::Stream::check)?;
    Ok(home)
}

/// The handle of a stream that every thread has of its own.
const PER_THREAD: usize = 2;

/// Our context of a device, which is the same as one of `cudarc`.
fn primary(operation: &'static str, theirs: &CudaContext) -> Result<Arc<Context>> {
    let context = Context::get(theirs.ordinal())?;
    if theirs.cu_ctx() == context.raw() {
        return Ok(context);
    }
    let reason = "it belongs to a context that is not the device's primary one".to_owned();
    Err(Error::Layout { operation, reason })
}

impl<'m, T: Element, const R: usize> TensorRef<'m, T, R> {
    /// A slice of `cudarc`, borrowed. Part of it is a [`slice`](Self::slice) of the view.
    ///
    /// To `cudarc` the memory is used in the order of the slice's own stream: launches wait for it, and it waits for
    /// them. Before you write the slice on another stream of `cudarc`, make that one wait:
    /// `other.join(slice.stream())`.
    ///
    /// # Errors
    /// [`Error::Length`] if the slice does not have as many elements as the shape; as [`Stream::from_cudarc`]
    /// otherwise.
    pub fn from_cudarc(slice: &'m CudaSlice<T>, shape: [usize; R]) -> Result<Self> {
        check_length(&shape, slice.len(), size_of::<T>())?;
        let home = home(slice.stream())?;
        // The slice's stream now waits for what others write to it.
        let address = slice.device_ptr(slice.stream()).0;
        let strides = Layout::row_major(shape).strides;
        // SAFETY: the slice has as many elements, and stays while it is borrowed. Its memory is freed in the order of
        // its stream, which every launch makes wait. So are other uses; one on a stream of `cudarc` that was not made
        // to wait finds wrong numbers, and no more: device memory is never a `&[T]`.
        Ok(unsafe { Self::from_raw_parts(&home, address, shape, strides, slice) })
    }
}

impl<'m, T: Element, const R: usize> TensorMut<'m, T, R> {
    /// As [`TensorRef::from_cudarc`], to write. Before you use the slice on another stream of `cudarc`, make that one
    /// wait.
    ///
    /// # Errors
    /// As there.
    pub fn from_cudarc(slice: &'m mut CudaSlice<T>, shape: [usize; R]) -> Result<Self> {
        check_length(&shape, slice.len(), size_of::<T>())?;
        let stream = Arc::clone(slice.stream());
        let home = home(&stream)?;
        // The slice's stream now waits for all that others do with it.
        let address = slice.device_ptr_mut(&stream).0;
        let strides = Layout::row_major(shape).strides;
        // SAFETY: as above, and nothing else names the slice while it is borrowed.
        Ok(unsafe { Self::from_raw_parts(&home, address, shape, strides, slice) })
    }
}

/// Takes a slice over. Work already enqueued on the slice is waited for on the device.
pub(crate) fn adopt<T>(slice: CudaSlice<T>) -> Result<(Arc<Context>, Block)> {
    let context = primary("from_cudarc", slice.context())?;
    let stream = Arc::clone(slice.stream());
    context::check_not_captured(context.raw(), stream.cu_stream())?;
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

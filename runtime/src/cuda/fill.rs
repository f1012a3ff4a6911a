//! Fills of device memory, in the order of a stream and as nodes of graphs.

use cudarc::driver::sys;

use super::call;
use super::context::Context;
use crate::error::Result;
use crate::launch::Fill;

/// Enqueues a fill on a stream of the current context.
///
/// # Safety
/// The stream is alive; the rows lie in memory that is alive and ordered against other uses.
pub(super) unsafe fn enqueue(fill: &Fill, stream: sys::CUstream) -> Result<()> {
    let Fill { address, unit, value, .. } = *fill;
    let (width, height, pitch) = (fill.width as usize, fill.height as usize, fill.pitch as usize);
    let byte = value as u8;
    match (unit, height) {
        // SAFETY: the caller's promise.
        (1, 1) => unsafe { call!(cuMemsetD8Async(address, byte, width, stream)) },
        // SAFETY: as above.
        (1, _) => unsafe { call!(cuMemsetD2D8Async(address, pitch, byte, width, height, stream)) },
        // SAFETY: as above.
        (_, 1) => unsafe { call!(cuMemsetD32Async(address, value, width, stream)) },
        // SAFETY: as above.
        (_, _) => unsafe { call!(cuMemsetD2D32Async(address, pitch, value, width, height, stream)) },
    }
}

/// Adds a fill to a graph, after these nodes of it.
///
/// # Safety
/// The graph and its nodes are alive, and the context is current.
pub(super) unsafe fn add(
    fill: &Fill,
    context: &Context,
    graph: sys::CUgraph,
    after: &[sys::CUgraphNode],
) -> Result<sys::CUgraphNode> {
    let parameters = sys::CUDA_MEMSET_NODE_PARAMS {
        dst: fill.address,
        pitch: fill.pitch as usize,
        value: fill.value,
        elementSize: fill.unit,
        width: fill.width as usize,
        height: fill.height as usize,
    };
    let mut handle = std::ptr::null_mut();
    // SAFETY: the driver copies the parameters; the caller's promise covers the handles.
    unsafe {
        call!(cuGraphAddMemsetNode(
            &raw mut handle,
            graph,
            after.as_ptr(),
            after.len(),
            &raw const parameters,
            context.raw()
        ))
    }?;
    Ok(handle)
}

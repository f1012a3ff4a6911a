//! Graphs of launches, built from explicit kernel nodes.

use std::sync::Arc;

use cudarc::driver::sys;

use super::call;
use super::context::{Context, Stream};
use super::kernel::{Call, pointers};
use crate::error::{Error, Result};

/// One launch of a graph.
pub(crate) struct Node<'a> {
    pub(crate) call: &'a Call,
    /// Positions of the earlier nodes that it must come after.
    pub(crate) after: Vec<usize>,
}

/// An instantiated graph.
#[derive(Debug)]
pub(crate) struct Graph {
    context: Arc<Context>,
    graph: sys::CUgraph,
    exec: sys::CUgraphExec,
}

// SAFETY: graph handles may be used from any thread, one at a time; `launch` takes `&mut self`.
unsafe impl Send for Graph {}
// SAFETY: a shared reference gives no access.
unsafe impl Sync for Graph {}

impl Graph {
    /// Builds and instantiates a graph.
    ///
    /// # Safety
    /// The parameters of every call fit its function.
    pub(crate) unsafe fn new(context: &Arc<Context>, nodes: &[Node<'_>]) -> Result<Self> {
        if !context.has_kernel_nodes() {
            return Err(Error::NoCuda { reason: "graphs need a driver for CUDA 12.0 or newer".to_owned() });
        }
        if nodes.iter().any(|n| n.call.cluster > 1) && !context.has_cluster_nodes() {
            return Err(Error::NoCuda { reason: "clusters need a driver for CUDA 11.8 or newer".to_owned() });
        }
        context.bind()?;
        let mut graph = std::ptr::null_mut();
        // SAFETY: writes one handle; a context is current.
        unsafe { call!(cuGraphCreate(&raw mut graph, 0)) }?;
        // From here on `this` destroys what there is.
        let mut this = Self { context: Arc::clone(context), graph, exec: std::ptr::null_mut() };
        let mut handles: Vec<sys::CUgraphNode> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let after: Vec<sys::CUgraphNode> = node.after.iter().filter_map(|&i| handles.get(i).copied()).collect();
            let mut values = node.call.parameters.clone();
            let mut pointers = pointers(&mut values);
            let parameters = sys::CUDA_KERNEL_NODE_PARAMS {
                func: node.call.raw_function(),
                gridDimX: node.call.blocks,
                gridDimY: 1,
                gridDimZ: 1,
                blockDimX: node.call.threads,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: node.call.shared_bytes,
                kernelParams: pointers.as_mut_ptr(),
                extra: std::ptr::null_mut(),
                kern: std::ptr::null_mut(),
                ctx: std::ptr::null_mut(),
            };
            let mut handle = std::ptr::null_mut();
            // SAFETY: the driver copies the parameters, whose pointers live until the call returns; `after` holds nodes
            // of this graph; the caller promised that parameters fit.
            unsafe {
                call!(cuGraphAddKernelNode_v2(
                    &raw mut handle,
                    this.graph,
                    after.as_ptr(),
                    after.len(),
                    &raw const parameters
                ))
            }?;
            if node.call.cluster > 1 {
                let (id, value) =
                    (sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, node.call.cluster_dimension());
                // SAFETY: the node is of this graph and a kernel; the driver reads one value.
                unsafe { call!(cuGraphKernelNodeSetAttribute(handle, id, &raw const value)) }?;
            }
            handles.push(handle);
        }
        // SAFETY: writes one handle; the graph is complete.
        unsafe { call!(cuGraphInstantiateWithFlags(&raw mut this.exec, this.graph, 0)) }?;
        Ok(this)
    }

    /// Enqueues the graph.
    ///
    /// # Safety
    /// The memory that its nodes point to is alive and ordered against other uses.
    pub(crate) unsafe fn launch(&mut self, stream: &Stream) -> Result<()> {
        self.context.bind()?;
        // SAFETY: both handles are alive; the caller's promise covers the memory.
        unsafe { call!(cuGraphLaunch(self.exec, stream.raw())) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.bind().is_err() {
            return;
        }
        if !self.exec.is_null() {
            // SAFETY: ours and not used again; the driver finishes a running launch first.
            let _ = unsafe { sys::cuGraphExecDestroy(self.exec) };
        }
        // SAFETY: as above.
        let _ = unsafe { sys::cuGraphDestroy(self.graph) };
    }
}

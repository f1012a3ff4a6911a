//! Graphs of launches, built from explicit kernel nodes.

use std::sync::Arc;

use cudarc::driver::sys;

use super::call;
use super::context::{Context, Stream};
use super::fill;
use super::kernel::{Call, pointers};
use crate::error::{Error, Result};
use crate::launch::Fill;

/// One launch of a graph.
pub(crate) struct Node<'a> {
    /// What is filled before.
    pub(crate) fills: &'a [Fill],
    /// None where there is nothing to compute.
    pub(crate) call: Option<&'a Call>,
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
        if nodes.iter().any(|n| n.call.is_some_and(|call| call.cluster > 1)) && !context.has_cluster_nodes() {
            return Err(Error::NoCuda { reason: "clusters need a driver for CUDA 11.8 or newer".to_owned() });
        }
        context.bind()?;
        let mut graph = std::ptr::null_mut();
        // SAFETY: writes one handle; a context is current.
        unsafe { call!(cuGraphCreate(&raw mut graph, 0)) }?;
        // From here on `this` destroys what there is.
        let mut this = Self { context: Arc::clone(context), graph, exec: std::ptr::null_mut() };
        // The last nodes of each launch.
        let mut last: Vec<Vec<sys::CUgraphNode>> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let after: Vec<sys::CUgraphNode> =
                node.after.iter().filter_map(|&i| last.get(i)).flatten().copied().collect();
            // SAFETY: the graph and its nodes are ours; a context is current.
            let fills = node.fills.iter().map(|fill| unsafe { fill::add(fill, context, graph, &after) });
            let fills: Vec<sys::CUgraphNode> = fills.collect::<Result<_>>()?;
            let after = if fills.is_empty() { after } else { fills };
            let Some(call) = node.call else {
                last.push(after);
                continue;
            };
            // SAFETY: the caller's promise; the nodes are of this graph.
            last.push(vec![unsafe { add(call, graph, &after) }?]);
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

/// Adds a launch to a graph, after these nodes of it.
///
/// # Safety
/// The graph and its nodes are alive, the context is current, and the parameters of the call fit its function.
unsafe fn add(call: &Call, graph: sys::CUgraph, after: &[sys::CUgraphNode]) -> Result<sys::CUgraphNode> {
    let mut values = call.parameters.clone();
    let mut pointers = pointers(&mut values);
    let parameters = sys::CUDA_KERNEL_NODE_PARAMS {
        func: call.raw_function(),
        gridDimX: call.blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: call.threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: call.shared_bytes,
        kernelParams: pointers.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    };
    let mut handle = std::ptr::null_mut();
    // SAFETY: the driver copies the parameters, whose pointers live until the call returns; `after` holds nodes of this
    // graph; the caller promised that parameters fit.
    unsafe {
        call!(cuGraphAddKernelNode_v2(&raw mut handle, graph, after.as_ptr(), after.len(), &raw const parameters))
    }?;
    if call.cluster > 1 {
        let (id, value) = (sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, call.cluster_dimension());
        // SAFETY: the node is of this graph and a kernel; the driver reads one value.
        unsafe { call!(cuGraphKernelNodeSetAttribute(handle, id, &raw const value)) }?;
    }
    Ok(handle)
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

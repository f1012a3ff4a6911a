//! Running launches and graphs in an order that keeps device memory a cell.

use std::sync::{Arc, MutexGuard};

use cudarc::driver::sys;

use super::context::{Context, Event, Stream};
use super::fill;
use super::graph::{Graph as RawGraph, Node};
use super::memory::{Block, Uses};
use crate::device::StreamInner;
use crate::error::{Error, Result};
use crate::launch::{Access, Prepared, Work};

/// Enqueues a launch.
pub(crate) fn run(work: &Work, on: &StreamInner) -> Result<()> {
    let stream = on.cuda().ok_or_else(not_cuda)?;
    bind(work)?;
    // SAFETY: the checks of the launch made the parameters from the kernel's own table, whose types the compiler also
    // gave the entry point; they and the fills point into the allocations of `accesses`, which are alive, locked and
    // ordered by `ordered`.
    ordered(&work.accesses, stream, |begun| unsafe { enqueue(work, stream.raw(), begun) }).map(|_| ())
}

/// Makes the context of a launch's device current.
fn bind(work: &Work) -> Result<()> {
    let context = work.accesses.iter().find_map(|access| Some(&access.allocation.cuda()?.context));
    context.ok_or_else(not_cuda)?.bind()
}

/// Enqueues the fills of a launch, then the launch, if there is something to compute. `begun` becomes true once
/// something is on its way.
///
/// # Safety
/// The parameters fit the function's signature; the memory that they and the fills point to is alive and ordered
/// against other uses; the stream is alive, and of the context.
unsafe fn enqueue(work: &Work, stream: sys::CUstream, begun: &mut bool) -> Result<()> {
    bind(work)?;
    for fill in &work.fills {
        // SAFETY: the caller's promise: the fill lies in one of the launch's tensors.
        unsafe { fill::enqueue(fill, stream) }?;
        *begun = true;
    }
    match &work.call {
        // SAFETY: the caller's promise.
        Some(call) => unsafe { call.enqueue_raw(stream) },
        None => Ok(()),
    }
}

/// Enqueues work under the locks of what it uses: waits for conflicting uses, enqueues, records. The event happens when
/// the work is done.
///
/// `accesses` is sorted and holds each allocation once, so that two threads never wait for each other. `enqueue` sets
/// what it is given once some of the work is on its way, whether or not the rest follows.
pub(super) fn ordered(
    accesses: &[Access],
    stream: &Stream,
    enqueue: impl FnOnce(&mut bool) -> Result<()>,
) -> Result<Arc<Event>> {
    stream.check()?;
    let blocks: Vec<(&Block, bool)> = accesses.iter().filter_map(|a| Some((a.allocation.cuda()?, a.write))).collect();
    let mut uses: Vec<MutexGuard<'_, Uses>> = blocks.iter().map(|(block, _)| block.lock()).collect();
    for ((block, write), uses) in blocks.iter().zip(&uses) {
        block.wait(uses, stream, *write)?;
    }
    let mut begun = false;
    let enqueued = enqueue(&mut begun);
    // Part of it may be on its way all the same.
    if !begun && let Err(error) = enqueued {
        return Err(error);
    }
    let noted = stream.record().and_then(|event| {
        let mut each = blocks.iter().zip(&mut uses);
        each.try_for_each(|((block, write), uses)| block.note(uses, stream, &event, *write))?;
        Ok(event)
    });
    if noted.is_err() {
        // The work is on its way and nothing tells others to wait for it: wait here, or else give the memory up.
        let waited = stream.synchronize().is_ok();
        uses.iter_mut().for_each(|u| u.lose(waited));
    }
    enqueued.and(noted)
}

/// A graph with what its nodes use.
#[derive(Debug)]
pub(crate) struct Graph {
    raw: RawGraph,
}

impl Graph {
    /// A graph of launches; `after[i]` are the positions that launch `i` comes after.
    pub(crate) fn new(context: &Arc<Context>, works: &[Work], after: &[Vec<usize>]) -> Result<Self> {
        let mut nodes = Vec::with_capacity(works.len());
        for (work, after) in works.iter().zip(after) {
            nodes.push(Node { fills: &work.fills, call: work.call.as_ref(), after: after.clone() });
        }
        // SAFETY: as in `run`: the parameters of a checked launch fit its function.
        let raw = unsafe { RawGraph::new(context, &nodes) }?;
        Ok(Self { raw })
    }

    /// Enqueues the graph, which uses `accesses`: the union over its launches, sorted.
    pub(crate) fn run(&mut self, accesses: &[Access], on: &StreamInner) -> Result<()> {
        let stream = on.cuda().ok_or_else(not_cuda)?;
        let raw = &mut self.raw;
        // SAFETY: as in `run`; `accesses` covers every node.
        ordered(accesses, stream, |_| unsafe { raw.launch(stream) }).map(|_| ())
    }
}

pub(super) fn not_cuda() -> Error {
    Error::Layout { operation: "run", reason: "the launch was not prepared for a GPU".to_owned() }
}

impl Prepared<'_> {
    /// Enqueues the launch on a stream of the driver, without ordering it against anything: for captures, and for code
    /// that keeps its own order.
    ///
    /// # Errors
    /// [`Error::Layout`] on the emulator; a failure of the driver.
    ///
    /// # Safety
    /// The stream is alive and belongs to the primary context of the device that the launch was prepared for. Until the
    /// launch is done the tensors stay alive and this is not dropped, no other run of it overlaps, nothing writes what
    /// it reads, and nothing uses what it writes, other than in stream order.
    pub unsafe fn enqueue(&self, stream: sys::CUstream) -> Result<()> {
        if self.work.is_nothing() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { enqueue(&self.work, stream, &mut false) }
    }
}

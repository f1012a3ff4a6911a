//! Running launches and graphs in an order that keeps device memory a cell.

use std::sync::{Arc, MutexGuard};

use cudarc::driver::sys;

use super::context::{Context, Event, Stream};
use super::graph::{Graph as RawGraph, Node};
use super::memory::{Block, Uses};
use crate::device::StreamInner;
use crate::error::{Error, Result};
use crate::launch::{Access, Prepared, Work};

/// Enqueues a launch.
pub(crate) fn run(work: &Work, on: &StreamInner) -> Result<()> {
    let (Some(call), Some(stream)) = (&work.call, on.cuda()) else { return Err(not_cuda()) };
    call.context().bind()?;
    // SAFETY: the checks of the launch made the parameters from the kernel's own table, whose types the compiler also
    // gave the entry point; they point into the allocations of `accesses`, which are alive, locked and ordered by
    // `ordered`.
    ordered(&work.accesses, stream, || unsafe { call.enqueue(stream) }).map(|_| ())
}

/// Enqueues work under the locks of what it uses: waits for conflicting uses, enqueues, records. The event happens when
/// the work is done.
///
/// `accesses` is sorted and holds each allocation once, so that two threads never wait for each other.
pub(super) fn ordered(
    accesses: &[Access],
    stream: &Stream,
    enqueue: impl FnOnce() -> Result<()>,
) -> Result<Arc<Event>> {
    stream.check()?;
    let blocks: Vec<(&Block, bool)> = accesses.iter().filter_map(|a| Some((a.allocation.cuda()?, a.write))).collect();
    let mut uses: Vec<MutexGuard<'_, Uses>> = blocks.iter().map(|(block, _)| block.lock()).collect();
    for ((block, write), uses) in blocks.iter().zip(&uses) {
        block.wait(uses, stream, *write)?;
    }
    enqueue()?;
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
    noted
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
            nodes.push(Node { call: work.call.as_ref().ok_or_else(not_cuda)?, after: after.clone() });
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
        ordered(accesses, stream, || unsafe { raw.launch(stream) }).map(|_| ())
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
        if self.work.empty {
            return Ok(());
        }
        let call = self.work.call.as_ref().ok_or_else(not_cuda)?;
        // SAFETY: the caller's promise.
        unsafe { call.enqueue_raw(stream) }
    }
}

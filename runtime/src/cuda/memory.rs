//! Device memory and the order of its uses.
//!
//! A block keeps one event for its last writer and one event per stream for the readers since. A use on a stream waits
//! for those it conflicts with; a launch does so for all its blocks while it holds their locks (taken in one order, by
//! the caller), enqueues, and records its own event before it lets go. So of two conflicting launches from two threads
//! one is completely before the other, and no rule depends on a destructor running.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{CudaStream, sys};

use super::call;
use super::context::{self, Context, Event, Stream};
use crate::error::{Error, Result};

/// A range of device memory.
#[derive(Debug)]
pub(crate) struct Block {
    pub(super) context: Arc<Context>,
    pub(super) pointer: sys::CUdeviceptr,
    pub(super) owner: Owner,
    uses: Mutex<Uses>,
}

/// Who frees a block.
#[derive(Debug)]
pub(super) enum Owner {
    /// We do.
    Own,
    /// We do; adopted from a `CudaSlice`, which is given back with the stream it came with.
    Adopted(Arc<CudaStream>),
    /// Somebody else does, in the order of this stream.
    Foreign(Arc<crate::device::StreamInner>),
}

/// The pending uses of a block.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    writer: Option<(u64, Arc<Event>)>,
    readers: BTreeMap<u64, Arc<Event>>,
    /// A use was enqueued that could be neither recorded nor waited for: the block is never freed.
    lost: bool,
}

impl Block {
    /// Uninitialised memory; of `bytes` = 0 still an address of its own.
    pub(crate) fn allocate(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        context.bind()?;
        let mut pointer = 0;
        let size = bytes.max(1);
        let (name, status) = if context.pools {
            // SAFETY: writes one address; the service stream lives as long as the context.
            let status = unsafe { sys::cuMemAllocAsync(&raw mut pointer, size, context.service.raw()) };
            ("cuMemAllocAsync", status)
        } else {
            // SAFETY: writes one address; a context is current.
            ("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&raw mut pointer, size) })
        };
        match status {
            sys::CUresult::CUDA_SUCCESS => {}
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                return Err(Error::OutOfMemory { bytes: bytes as u64, device: format!("{context:?}") });
            }
            other => return Err(super::failure(name, other)),
        }
        let block = Self { context: Arc::clone(context), pointer, owner: Owner::Own, uses: Mutex::default() };
        if context.pools {
            // Other streams may use the memory once the allocation is done in stream order.
            let allocated = context.service.record()?;
            block.lock().writer = Some((context.service.id, allocated));
        }
        Ok(block)
    }

    /// Memory that another library handed over, usable after `ready`.
    pub(super) fn adopted(context: Arc<Context>, pointer: u64, stream: Arc<CudaStream>, ready: Arc<Event>) -> Self {
        // Stream number 0 is no stream of ours: every use waits.
        let uses = Uses { writer: Some((0, ready)), ..Uses::default() };
        Self { context, pointer, owner: Owner::Adopted(stream), uses: Mutex::new(uses) }
    }

    /// Memory of somebody else, used in the order of `home`.
    pub(crate) fn foreign(context: Arc<Context>, pointer: u64, home: Arc<crate::device::StreamInner>) -> Self {
        Self { context, pointer, owner: Owner::Foreign(home), uses: Mutex::default() }
    }

    pub(crate) fn address(&self) -> u64 {
        self.pointer
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `stream` wait for the uses that a read (or a write) conflicts with.
    pub(crate) fn wait(&self, uses: &Uses, stream: &Stream, write: bool) -> Result<()> {
        if let Owner::Foreign(home) = &self.owner
            && let Some(home) = home.cuda()
            && home.id != stream.id
        {
            stream.wait(&*home.record()?)?;
        }
        for (id, event) in uses.conflicts(write) {
            if id != stream.id {
                stream.wait(event)?;
            }
        }
        Ok(())
    }

    /// Notes that the work recorded in `event` on `stream` reads (or writes) the block.
    ///
    /// # Errors
    /// The home stream of foreign memory could not be made to wait; the caller must then wait on the host.
    pub(crate) fn note(&self, uses: &mut Uses, stream: &Stream, event: &Arc<Event>, write: bool) -> Result<()> {
        if write {
            uses.writer = Some((stream.id, Arc::clone(event)));
            uses.readers.clear();
        } else {
            uses.readers.insert(stream.id, Arc::clone(event));
        }
        if let Owner::Foreign(home) = &self.owner
            && let Some(home) = home.cuda()
            && home.id != stream.id
        {
            home.wait(event)?;
        }
        Ok(())
    }

    /// Copies from the host and waits.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let mut uses = self.lock();
        let stream = &self.context.service;
        self.context.bind()?;
        self.wait(&uses, stream, true)?;
        let target = self.pointer + offset as u64;
        // SAFETY: the caller checked that the range lies in the block; the source lives until the wait below.
        let copied = unsafe { call!(cuMemcpyHtoDAsync_v2(target, bytes.as_ptr().cast(), bytes.len(), stream.raw())) };
        self.settle(&mut uses, stream, copied)
    }

    /// Fills with zero bytes and waits.
    pub(crate) fn zero(&self, bytes: usize) -> Result<()> {
        let mut uses = self.lock();
        let stream = &self.context.service;
        self.context.bind()?;
        self.wait(&uses, stream, true)?;
        // SAFETY: the block has `bytes` bytes.
        let filled = unsafe { call!(cuMemsetD8Async(self.pointer, 0, bytes, stream.raw())) };
        self.settle(&mut uses, stream, filled)
    }

    /// Copies to the host, after the last write, and waits.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let uses = self.lock();
        let stream = &self.context.service;
        self.context.bind()?;
        self.wait(&uses, stream, false)?;
        let source = self.pointer + offset as u64;
        // SAFETY: the caller checked that the range lies in the block; the target lives until the wait below.
        unsafe { call!(cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), source, bytes.len(), stream.raw())) }?;
        stream.synchronize()
    }

    /// Copies from another block of the same context, after its last write, and waits.
    pub(crate) fn copy_from(&self, offset: usize, source: &Self, from: usize, bytes: usize) -> Result<()> {
        // In one order, as launches take them.
        let (first, second) = if self.pointer < source.pointer { (self, source) } else { (source, self) };
        let (first, second) = (first.lock(), second.lock());
        let (mut own, others) = if self.pointer < source.pointer { (first, second) } else { (second, first) };
        let stream = &self.context.service;
        self.context.bind()?;
        source.wait(&others, stream, false)?;
        self.wait(&own, stream, true)?;
        let (target, from) = (self.pointer + offset as u64, source.pointer + from as u64);
        // SAFETY: the caller checked that both ranges lie in their blocks, which are two.
        let copied = unsafe { call!(cuMemcpyDtoDAsync_v2(target, from, bytes, stream.raw())) };
        self.settle(&mut own, stream, copied)
    }

    /// After a host copy: waits for it; everything before it is then done as well.
    fn settle(&self, uses: &mut Uses, stream: &Stream, enqueued: Result<()>) -> Result<()> {
        let done = stream.synchronize();
        if done.is_ok() {
            uses.writer = None;
            uses.readers.clear();
        }
        enqueued.and(done)
    }
}

impl Uses {
    /// The events that a use must wait for, with their streams.
    fn conflicts(&self, write: bool) -> impl Iterator<Item = (u64, &Event)> {
        let readers = self.readers.iter().filter(move |_| write).map(|(id, event)| (*id, &**event));
        self.writer.iter().map(|(id, event)| (*id, &**event)).chain(readers)
    }

    /// A use could not be recorded: wait for the stream on the host, or give the memory up.
    pub(crate) fn lose(&mut self, waited: bool) {
        self.lost |= !waited;
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Makes `stream` wait for all uses.
    pub(super) fn drain_into(&self, stream: sys::CUstream) -> Result<()> {
        self.conflicts(true).try_for_each(|(_, event)| context::wait_raw(stream, event))
    }

    /// Waits for all uses on the host.
    fn drain(&self) -> Result<()> {
        self.conflicts(true).try_for_each(|(_, event)| event.synchronize())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let uses = std::mem::take(self.uses.get_mut().unwrap_or_else(PoisonError::into_inner));
        // Foreign memory was ordered before its owner's stream when it was used. Memory whose uses cannot be waited for
        // is left allocated: a leak is safe, a free is not.
        if matches!(self.owner, Owner::Foreign(_))
            || self.pointer == 0
            || uses.is_lost()
            || self.context.bind().is_err()
        {
            return;
        }
        let service = self.context.service.raw();
        if self.context.pools {
            if uses.drain_into(service).is_ok() {
                // SAFETY: ours, not used again, and freed after all uses in the order of the service stream.
                let _ = unsafe { sys::cuMemFreeAsync(self.pointer, service) };
            }
        } else if uses.drain().is_ok() {
            // SAFETY: ours, not used again, and all uses are complete.
            let _ = unsafe { sys::cuMemFree_v2(self.pointer) };
        }
    }
}

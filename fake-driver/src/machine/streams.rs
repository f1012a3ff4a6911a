//! Streams, events and memory: what the host asks for at once, and what it puts into a stream.

use super::{Fill, INVALID_VALUE, Machine, NOT_READY, OUT_OF_MEMORY, Op, SUCCESS, Status, Stream, abort};

/// What a driver takes as the distance of rows (CUDA driver API, `CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
const MOST_PITCH: u64 = i32::MAX as u64;

impl Fill {
    /// Whether a driver takes it.
    pub(super) fn is_possible(&self) -> bool {
        let unit = self.unit.len() as u64;
        let is_aligned = self.address.is_multiple_of(unit) && (self.height == 1 || self.pitch.is_multiple_of(unit));
        is_aligned && (self.height == 1 || (unit * self.width..=MOST_PITCH).contains(&self.pitch))
    }
}

impl Machine {
    pub(crate) fn stream_create(&mut self, context: u64) -> u64 {
        let handle = self.handle();
        self.streams.insert(handle, Stream { context, ..Stream::default() });
        handle
    }

    /// The live stream with this handle; 0 is the legacy stream of the context.
    pub(super) fn stream(&mut self, handle: u64, context: u64) -> &mut Stream {
        if handle == 0 {
            return self.streams.entry(context).or_insert(Stream { context, ..Stream::default() });
        }
        match self.streams.get_mut(&handle) {
            Some(stream) if stream.destroyed => abort("a stream is used after its end"),
            Some(stream) if stream.context != context => abort("a stream is used while another context is current"),
            Some(stream) => stream,
            None => abort(&format!("{handle:#x} is no stream")),
        }
    }

    /// The driver lets pending work finish.
    pub(crate) fn stream_destroy(&mut self, handle: u64, context: u64) {
        self.stream(handle, context).destroyed = true;
    }

    pub(crate) fn event_create(&mut self, context: u64) -> u64 {
        let handle = self.handle();
        self.events.insert(handle, (context, None));
        handle
    }

    fn event(&mut self, handle: u64) -> &mut (u64, Option<u64>) {
        self.events.get_mut(&handle).unwrap_or_else(|| abort(&format!("{handle:#x} is no live event")))
    }

    pub(crate) fn event_destroy(&mut self, handle: u64) {
        self.event(handle);
        self.events.remove(&handle);
    }

    pub(crate) fn event_record(&mut self, event: u64, stream: u64, context: u64) {
        let recording = self.handle();
        let known = self.event(event);
        if known.0 != context {
            abort("an event is recorded on a stream of another context");
        }
        known.1 = Some(recording);
        self.push(stream, context, Op::Record(recording));
    }

    pub(crate) fn event_query(&mut self, event: u64) -> Status {
        let recording = self.event(event).1;
        let done = recording.is_none_or(|r| self.recorded.contains(&r));
        if done { SUCCESS } else { NOT_READY }
    }

    pub(crate) fn event_synchronize(&mut self, event: u64) -> Status {
        if let Some(recording) = self.event(event).1 {
            self.until_recorded(recording);
        }
        self.failed
    }

    /// An event that was never recorded is waited for at once.
    pub(crate) fn stream_wait(&mut self, stream: u64, event: u64, context: u64) {
        if let Some(recording) = self.event(event).1 {
            self.push(stream, context, Op::Wait(recording));
        }
    }

    /// Launches on the stream become nodes of a graph, one after the other.
    pub(crate) fn capture_begin(&mut self, stream: u64, context: u64) -> Status {
        let stream = self.stream(stream, context);
        if stream.capture.is_some() {
            return INVALID_VALUE;
        }
        stream.capture = Some(Vec::new());
        SUCCESS
    }

    /// The graph of a capture that was begun.
    pub(crate) fn capture_end(&mut self, stream: u64, context: u64) -> Option<u64> {
        let nodes = self.stream(stream, context).capture.take()?;
        let graph = self.graph_create();
        self.graphs.insert(graph, nodes);
        Some(graph)
    }

    pub(crate) fn captures(&mut self, stream: u64, context: u64) -> bool {
        self.stream(stream, context).capture.is_some()
    }

    pub(crate) fn stream_synchronize(&mut self, stream: u64, context: u64) -> Status {
        let key = if stream == 0 { context } else { stream };
        if self.stream(stream, context).capture.is_some() {
            abort("a stream is waited for while it is captured");
        }
        self.until_empty(key);
        self.failed
    }

    pub(crate) fn context_synchronize(&mut self, context: u64) -> Status {
        let keys: Vec<u64> = self.streams.iter().filter(|(_, s)| s.context == context).map(|(k, _)| *k).collect();
        for key in keys {
            self.until_empty(key);
        }
        self.failed
    }

    // Memory.

    pub(crate) fn allocate(&mut self, bytes: u64) -> Result<u64, Status> {
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        self.memory.alloc(bytes, "cuMemAlloc").map_err(|_| OUT_OF_MEMORY)
    }

    pub(crate) fn allocate_async(&mut self, bytes: u64, stream: u64, context: u64) -> Result<u64, Status> {
        let address = self.allocate(bytes)?;
        self.future.insert(address, bytes);
        self.push(stream, context, Op::Allocate(address));
        Ok(address)
    }

    /// The driver waits for all work of the context before it frees.
    pub(crate) fn free(&mut self, address: u64, context: u64) -> Status {
        self.context_synchronize(context);
        if self.memory.free(address).is_err() { INVALID_VALUE } else { self.failed }
    }

    pub(crate) fn free_async(&mut self, address: u64, stream: u64, context: u64) {
        self.push(stream, context, Op::Free(address));
    }

    // Memory of the host.

    /// Page-locked memory that the caller has allocated.
    pub(crate) fn host_add(&mut self, address: usize, bytes: usize) {
        self.host.insert(address, bytes);
    }

    /// The bytes of page-locked memory that the caller frees. Nothing may be about to use it.
    pub(crate) fn host_remove(&mut self, address: usize) -> usize {
        let Some(bytes) = self.host.remove(&address) else { abort(&format!("{address:#x} is no page-locked memory")) };
        let uses = |op: &Op| match op {
            Op::FromHost(_, host, count) | Op::ToHost(host, _, count) => {
                *host < address + bytes && address < *host + count
            }
            _ => false,
        };
        if self.failed == SUCCESS && self.streams.values().any(|s| s.queue.iter().any(uses)) {
            abort("page-locked memory is freed while a copy that uses it is pending");
        }
        bytes
    }

    /// Counts a copy that is executed.
    pub(super) fn count_copy(&mut self, host: usize, bytes: usize) {
        let before = self.host.range(..=host).next_back();
        let is_locked = before.is_some_and(|(base, size)| host + bytes <= base + size);
        self.copies[0] += 1;
        self.copies[1] += u64::from(is_locked);
    }

    pub(crate) fn copy_in(&mut self, device: u64, host: usize, bytes: usize, stream: u64, context: u64) {
        self.push(stream, context, Op::FromHost(device, host, bytes));
    }

    pub(crate) fn copy_out(&mut self, host: usize, device: u64, bytes: usize, stream: u64, context: u64) {
        self.push(stream, context, Op::ToHost(host, device, bytes));
    }

    pub(crate) fn copy_between(&mut self, target: u64, source: u64, bytes: usize, stream: u64, context: u64) {
        self.push(stream, context, Op::Between(target, source, bytes));
    }

    /// Recordings are numbered in the order of the calls; here, each takes a millisecond.
    pub(crate) fn event_elapsed(&mut self, start: u64, end: u64) -> Result<f32, Status> {
        let [start, end] = [start, end].map(|event| self.event(event).1);
        match (start, end) {
            (Some(start), Some(end)) if [start, end].iter().all(|r| self.recorded.contains(r)) => {
                Ok(end as f32 - start as f32)
            }
            _ => Err(NOT_READY),
        }
    }

    /// A driver refuses rows that overlap, and units that are not aligned.
    pub(crate) fn fill(&mut self, fill: Fill, stream: u64, context: u64) -> Status {
        if !fill.is_possible() {
            return INVALID_VALUE;
        }
        self.push(stream, context, Op::Fill(fill));
        SUCCESS
    }
}

//! Streams, events and memory.

use std::ffi::{c_uint, c_void};

use super::{Handle, free_page_locked, give, handle, number, page_locked, with, with_done};
use crate::machine::{Fill, INVALID_VALUE, SUCCESS, Status, machine};

driver! {
    fn cuStreamCreate(stream: *mut Handle, _flags: c_uint) -> Status {
        with_done(|machine, context| give(stream, handle(machine.stream_create(context))))
    }

    fn cuStreamDestroy_v2(stream: Handle) -> Status {
        with_done(|machine, context| machine.stream_destroy(number(stream), context))
    }

    fn cuStreamSynchronize(stream: Handle) -> Status {
        with(|machine, context| machine.stream_synchronize(number(stream), context))
    }

    fn cuStreamWaitEvent(stream: Handle, event: Handle, _flags: c_uint) -> Status {
        with_done(|machine, context| machine.stream_wait(number(stream), number(event), context))
    }

    fn cuStreamBeginCapture_v2(stream: Handle, _mode: c_uint) -> Status {
        with(|machine, context| machine.capture_begin(number(stream), context))
    }

    fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) -> Status {
        with(|machine, context| match machine.capture_end(number(stream), context) {
            Some(captured) => {
                give(graph, handle(captured));
                SUCCESS
            }
            None => INVALID_VALUE,
        })
    }

    fn cuStreamIsCapturing(stream: Handle, status: *mut c_uint) -> Status {
        with_done(|machine, context| give(status, machine.captures(number(stream), context).into()))
    }

    fn cuEventCreate(event: *mut Handle, _flags: c_uint) -> Status {
        with_done(|machine, context| give(event, handle(machine.event_create(context))))
    }

    fn cuEventRecord(event: Handle, stream: Handle) -> Status {
        with_done(|machine, context| machine.event_record(number(event), number(stream), context))
    }

    fn cuEventSynchronize(event: Handle) -> Status {
        with(|machine, _| machine.event_synchronize(number(event)))
    }

    fn cuEventQuery(event: Handle) -> Status {
        with(|machine, _| machine.event_query(number(event)))
    }

    fn cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) -> Status {
        with(|machine, _| match machine.event_elapsed(number(start), number(end)) {
            Ok(found) => {
                give(milliseconds, found);
                SUCCESS
            }
            Err(status) => status,
        })
    }

    fn cuEventDestroy_v2(event: Handle) -> Status {
        with_done(|machine, _| machine.event_destroy(number(event)))
    }

    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> Status {
        with(|machine, _| match machine.allocate(bytes as u64) {
            Ok(found) => {
                give(address, found);
                SUCCESS
            }
            Err(status) => status,
        })
    }

    fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: Handle) -> Status {
        with(|machine, context| match machine.allocate_async(bytes as u64, number(stream), context) {
            Ok(found) => {
                give(address, found);
                SUCCESS
            }
            Err(status) => status,
        })
    }

    fn cuMemFree_v2(address: u64) -> Status {
        with(|machine, context| machine.free(address, context))
    }

    fn cuMemFreeAsync(address: u64, stream: Handle) -> Status {
        with_done(|machine, context| machine.free_async(address, number(stream), context))
    }

    fn cuMemcpyHtoDAsync_v2(device: u64, host: *const c_void, bytes: usize, stream: Handle) -> Status {
        with_done(|machine, context| {
            machine.copy_in(device, host.expose_provenance(), bytes, number(stream), context);
        })
    }

    fn cuMemcpyDtoHAsync_v2(host: *mut c_void, device: u64, bytes: usize, stream: Handle) -> Status {
        with_done(|machine, context| {
            machine.copy_out(host.expose_provenance(), device, bytes, number(stream), context);
        })
    }

    fn cuMemcpyDtoDAsync_v2(target: u64, source: u64, bytes: usize, stream: Handle) -> Status {
        with_done(|machine, context| machine.copy_between(target, source, bytes, number(stream), context))
    }

    fn cuMemHostAlloc(pointer: *mut Handle, bytes: usize, flags: c_uint) -> Status {
        // Portable memory and no other.
        if flags != 1 {
            return INVALID_VALUE;
        }
        with(|machine, _| {
            let Some(found) = page_locked(bytes) else { return INVALID_VALUE };
            machine.host_add(found.expose_provenance(), bytes);
            give(pointer, found.cast());
            SUCCESS
        })
    }

    /// Memory of the host goes after a fault as well.
    fn cuMemFreeHost(pointer: Handle) -> Status {
        let bytes = machine().host_remove(pointer.addr());
        free_page_locked(pointer.addr(), bytes);
        SUCCESS
    }

    fn cuMemsetD8Async(device: u64, value: u8, bytes: usize, stream: Handle) -> Status {
        fill((device, vec![value]), (bytes, 1, 0), stream)
    }

    fn cuMemsetD32Async(device: u64, value: c_uint, words: usize, stream: Handle) -> Status {
        fill((device, value.to_le_bytes().to_vec()), (words, 1, 0), stream)
    }

    fn cuMemsetD2D8Async(device: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) -> Status {
        fill((device, vec![value]), (width, height, pitch), stream)
    }

    fn cuMemsetD2D32Async(
        device: u64,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
        stream: Handle,
    ) -> Status {
        fill((device, value.to_le_bytes().to_vec()), (width, height, pitch), stream)
    }
}

/// Puts a fill of rows into a stream: where, with which unit; units of a row, rows, and bytes from one to the next.
fn fill((address, unit): (u64, Vec<u8>), (width, height, pitch): (usize, usize, usize), stream: Handle) -> Status {
    let fill = Fill { address, unit, width: width as u64, height: height as u64, pitch: pitch as u64 };
    with(|machine, context| machine.fill(fill, number(stream), context))
}

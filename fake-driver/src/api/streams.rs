//! Streams, events and memory.

use std::ffi::{c_uint, c_void};

use super::{Handle, give, handle, number, with, with_done};
use crate::machine::{SUCCESS, Status};

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

    fn cuMemsetD8Async(device: u64, value: u8, bytes: usize, stream: Handle) -> Status {
        with_done(|machine, context| machine.fill(device, value, bytes as u64, number(stream), context))
    }
}

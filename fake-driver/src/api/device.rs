//! The driver itself, devices and contexts.

use std::ffi::{CStr, c_char, c_int, c_uint};

use super::{CURRENT, Handle, MULTIPROCESSORS, give, handle, number, with, with_done};
use crate::machine::{INVALID_DEVICE, INVALID_VALUE, Machine, NO_DEVICE, SHARED_MOST, SUCCESS, Status, machine};

/// Attributes of devices.
const MAJOR: c_uint = 75;
const MINOR: c_uint = 76;
const SHARED_OPTIN: c_uint = 97;
const MEMORY_POOLS: c_uint = 115;
const MULTIPROCESSOR_COUNT: c_uint = 16;

driver! {
    fn cuInit(flags: c_uint) -> Status {
        if flags != 0 {
            return INVALID_VALUE;
        }
        if machine().devices == 0 { NO_DEVICE } else { SUCCESS }
    }

    fn cuDriverGetVersion(version: *mut c_int) -> Status {
        give(version, machine().version);
        SUCCESS
    }

    fn cuGetErrorName(status: Status, text: *mut *const c_char) -> Status {
        give(text, name(status).as_ptr());
        SUCCESS
    }

    fn cuGetErrorString(status: Status, text: *mut *const c_char) -> Status {
        give(text, name(status).as_ptr());
        SUCCESS
    }

    fn cuDeviceGetCount(count: *mut c_int) -> Status {
        give(count, machine().devices);
        SUCCESS
    }

    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Status {
        if ordinal < 0 || ordinal >= machine().devices {
            return INVALID_DEVICE;
        }
        give(device, ordinal);
        SUCCESS
    }

    fn cuDeviceGetName(text: *mut c_char, bytes: c_int, _device: c_int) -> Status {
        let name = c"Fake GPU".to_bytes_with_nul();
        if (bytes as usize) < name.len() {
            return INVALID_VALUE;
        }
        // SAFETY: the caller's buffer has `bytes` bytes.
        unsafe { std::ptr::copy_nonoverlapping(name.as_ptr().cast(), text, name.len()) };
        SUCCESS
    }

    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: c_int) -> Status {
        let machine = machine();
        if device < 0 || device >= machine.devices {
            return INVALID_DEVICE;
        }
        give(value, match attribute {
            MAJOR => machine.capability / 10,
            MINOR => machine.capability % 10,
            SHARED_OPTIN => SHARED_MOST as c_int,
            MEMORY_POOLS => c_int::from(machine.pools),
            MULTIPROCESSOR_COUNT => MULTIPROCESSORS,
            _ => 0,
        });
        SUCCESS
    }

    fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) -> Status {
        give(bytes, machine().bytes as usize);
        SUCCESS
    }

    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> Status {
        give(uuid, [device as u8; 16]);
        SUCCESS
    }

    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Status {
        with_done(|machine, _| {
            give(free, (machine.bytes - machine.live()[0]) as usize);
            give(total, machine.bytes as usize);
        })
    }

    fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) -> Status {
        if device < 0 || device >= machine().devices {
            return INVALID_DEVICE;
        }
        give(context, handle(device as u64 + 1));
        SUCCESS
    }

    fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> Status {
        SUCCESS
    }

    fn cuCtxSetCurrent(context: Handle) -> Status {
        CURRENT.set(number(context));
        SUCCESS
    }

    fn cuCtxGetCurrent(context: *mut Handle) -> Status {
        give(context, handle(CURRENT.get()));
        SUCCESS
    }

    fn cuCtxSynchronize() -> Status {
        with(Machine::context_synchronize)
    }

    /// Not of the driver: bytes allocated, live events, live streams, bytes of page-locked memory of the host.
    fn fakeLive(counts: *mut [u64; 4]) -> Status {
        give(counts, machine().live());
        SUCCESS
    }

    /// Not of the driver: copies that were executed, and how many of them between page-locked memory and the device.
    fn fakeCopies(counts: *mut [u64; 2]) -> Status {
        give(counts, machine().copies());
        SUCCESS
    }
}

fn name(status: Status) -> &'static CStr {
    match status {
        SUCCESS => c"no error",
        1 => c"invalid argument",
        2 => c"out of memory",
        100 => c"no CUDA-capable device is detected",
        201 => c"invalid device context",
        209 => c"no kernel image is available for execution on the device",
        218 => c"a PTX JIT compilation failed",
        222 => c"the provided PTX was compiled with an unsupported toolchain.",
        500 => c"named symbol not found",
        700 => c"an illegal memory access was encountered",
        719 => c"unspecified launch failure",
        912 => c"misconfiguration in the cluster size",
        _ => c"some error",
    }
}

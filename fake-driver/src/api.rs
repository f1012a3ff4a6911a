//! The functions of `libcuda` that the runtime and `cudarc` call. Names, order and types of parameters are those of
//! `cuda.h`.

#![allow(unsafe_code, reason = "a C library")]
#![allow(non_snake_case, reason = "the names of cuda.h")]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use cudarc::driver::sys::{CUDA_KERNEL_NODE_PARAMS, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig};

use crate::machine::{
    INVALID_CONTEXT, INVALID_DEVICE, INVALID_VALUE, Machine, NO_DEVICE, NOT_FOUND, SHARED_MOST, SUCCESS, Status, abort,
    machine,
};

/// Options of `cuModuleLoadDataEx`.
const JIT_ERROR_LOG: c_uint = 5;
const JIT_ERROR_LOG_BYTES: c_uint = 6;

/// Attributes of devices.
const MAJOR: c_uint = 75;
const MINOR: c_uint = 76;
const SHARED_OPTIN: c_uint = 97;
const MEMORY_POOLS: c_uint = 115;
const MULTIPROCESSOR_COUNT: c_uint = 16;
/// Multiprocessors of the machine, and blocks that each runs at one time, or clusters: few, so that persistent blocks
/// take several tiles.
const MULTIPROCESSORS: c_int = 2;
const RESIDENT: c_int = 1;

/// Attribute of functions.
const NON_PORTABLE_CLUSTER: c_uint = 14;

thread_local! {
    /// The context that is current on this thread, 0 if none is. Contexts are numbered from 1, by device.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

type Handle = *mut c_void;

fn handle(number: u64) -> Handle {
    std::ptr::without_provenance_mut(number as usize)
}

fn number(handle: Handle) -> u64 {
    handle.addr() as u64
}

/// Bytes of the host, when the copy is executed.
pub(crate) fn copy_from_host(address: usize, bytes: usize) -> Vec<u8> {
    // SAFETY: the caller of `cuMemcpyHtoDAsync` promised that the memory stays valid until the copy is done.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(address), bytes) }.to_vec()
}

/// Writes bytes of the host, when the copy is executed.
pub(crate) fn copy_to_host(address: usize, bytes: &[u8]) {
    // SAFETY: the caller of `cuMemcpyDtoHAsync` promised that the memory stays valid until the copy is done.
    unsafe { std::ptr::copy(bytes.as_ptr(), std::ptr::with_exposed_provenance_mut(address), bytes.len()) }
}

/// Stores a result through a pointer of the caller.
fn give<T>(target: *mut T, value: T) {
    if target.is_null() {
        abort("a null pointer for a result");
    }
    // SAFETY: the caller passed a pointer to a variable of this type, as `cuda.h` demands.
    unsafe { target.write(value) }
}

/// Runs a call that needs a current context and a machine without a fault.
fn with(call: impl FnOnce(&mut Machine, u64) -> Status) -> Status {
    let context = CURRENT.get();
    if context == 0 {
        return INVALID_CONTEXT;
    }
    let mut machine = machine();
    match machine.failed() {
        SUCCESS => call(&mut machine, context),
        failed => failed,
    }
}

/// As [`with`], for calls that give nothing back.
fn with_done(call: impl FnOnce(&mut Machine, u64)) -> Status {
    with(|machine, context| {
        call(machine, context);
        SUCCESS
    })
}

/// Exports functions under their own names.
macro_rules! driver {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $ty:ty),* $(,)?) -> Status $body:block)*) => {
        $(
            $(#[$meta])*
            // SAFETY: no other library of the process has this name: the real driver is not loaded.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($argument: $ty),*) -> Status $body
        )*
    };
}

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

    fn cuMemsetD8Async(device: u64, value: u8, bytes: usize, stream: Handle) -> Status {
        with_done(|machine, context| machine.fill(device, value, bytes as u64, number(stream), context))
    }

    fn cuModuleLoadDataEx(
        module: *mut Handle,
        image: *const c_char,
        count: c_uint,
        options: *const c_uint,
        values: *const Handle,
    ) -> Status {
        // SAFETY: PTX is passed as NUL-terminated text.
        let text = unsafe { CStr::from_ptr(image) }.to_string_lossy();
        let (mut log, mut room) = (std::ptr::null_mut(), 0);
        for i in 0..count as usize {
            // SAFETY: both lists have `count` entries.
            let (option, value) = unsafe { (options.add(i).read(), values.add(i).read()) };
            match option {
                JIT_ERROR_LOG => log = value.cast::<u8>(),
                JIT_ERROR_LOG_BYTES => room = value.addr(),
                _ => {}
            }
        }
        with(|machine, _| match machine.load(&text) {
            Ok(loaded) => {
                give(module, handle(loaded));
                SUCCESS
            }
            Err((status, message)) => {
                let bytes = message.len().min(room.saturating_sub(1));
                if !log.is_null() && room > 0 {
                    // SAFETY: the caller's buffer has `room` bytes, and `bytes + 1` are not more.
                    unsafe {
                        std::ptr::copy_nonoverlapping(message.as_ptr(), log, bytes);
                        log.add(bytes).write(0);
                    }
                }
                status
            }
        })
    }

    fn cuModuleUnload(_module: Handle) -> Status {
        SUCCESS
    }

    fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) -> Status {
        // SAFETY: names are NUL-terminated.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        with(|machine, _| match machine.function(number(module), &name) {
            Some(found) => {
                give(function, handle(found));
                SUCCESS
            }
            None => NOT_FOUND,
        })
    }

    fn cuFuncSetAttribute(function: Handle, attribute: c_uint, value: c_int) -> Status {
        // 8 is the largest dynamic shared memory.
        with(|machine, _| match attribute {
            8 => machine.allow_shared(number(function), value as u32),
            NON_PORTABLE_CLUSTER => machine.allow_any_cluster(number(function), value != 0),
            _ => INVALID_VALUE,
        })
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        count: *mut c_int,
        _function: Handle,
        threads: c_int,
        _shared: usize,
    ) -> Status {
        if !(1..=1024).contains(&threads) {
            return INVALID_VALUE;
        }
        give(count, RESIDENT);
        SUCCESS
    }

    fn cuOccupancyMaxActiveClusters(count: *mut c_int, _function: Handle, config: *const CUlaunchConfig) -> Status {
        // SAFETY: the caller passed a configuration.
        if unsafe { &*config }.numAttrs == 0 {
            return INVALID_VALUE;
        }
        give(count, RESIDENT * MULTIPROCESSORS);
        SUCCESS
    }

    fn cuLaunchKernel(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: Handle,
        parameters: *const Handle,
        extra: *const Handle,
    ) -> Status {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        if !extra.is_null() {
            return INVALID_VALUE;
        }
        with(|machine, context| {
            let args = arguments(machine, number(function), parameters);
            match machine.work(number(function), grid, block, shared, args) {
                Ok(work) => {
                    machine.launch(work, number(stream), context);
                    SUCCESS
                }
                Err(status) => status,
            }
        })
    }

    fn cuLaunchKernelEx(
        config: *const CUlaunchConfig,
        function: Handle,
        parameters: *const Handle,
        extra: *const Handle,
    ) -> Status {
        // SAFETY: the caller passed a configuration.
        let c = unsafe { &*config };
        // SAFETY: the caller passed as many attributes.
        let attributes = (0..c.numAttrs as usize).map(|at| unsafe { c.attrs.add(at).read() });
        let (mut cluster, mut dependent) = (None, false);
        for attribute in attributes {
            match attribute.id {
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => cluster = Some(dimension(&attribute.value)),
                // Launches here begin when what is before them has ended, which is always allowed.
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION => {
                    // SAFETY: the attribute has this value.
                    dependent = unsafe { attribute.value.programmaticStreamSerializationAllowed } != 0;
                }
                _ => return INVALID_VALUE,
            }
        }
        let (grid, block) = ([c.gridDimX, c.gridDimY, c.gridDimZ], [c.blockDimX, c.blockDimY, c.blockDimZ]);
        if !extra.is_null() {
            return INVALID_VALUE;
        }
        with(|machine, context| {
            let function = number(function);
            let args = arguments(machine, function, parameters);
            let work = machine.work(function, grid, block, c.sharedMemBytes, args);
            let work = work.and_then(|work| match cluster {
                Some(cluster) => machine.in_clusters(work, cluster),
                None => Ok(work),
            });
            match work {
                Ok(mut work) => {
                    work.launch.dependent = dependent;
                    machine.launch(work, number(c.hStream.cast()), context);
                    SUCCESS
                }
                Err(status) => status,
            }
        })
    }

    fn cuGraphKernelNodeSetAttribute(
        node: Handle,
        attribute: CUlaunchAttributeID,
        value: *const CUlaunchAttributeValue,
    ) -> Status {
        if attribute != CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION {
            return INVALID_VALUE;
        }
        // SAFETY: the caller passed a value.
        let cluster = dimension(unsafe { &*value });
        with(|machine, _| machine.node_cluster(number(node), cluster))
    }

    fn cuGraphCreate(graph: *mut Handle, flags: c_uint) -> Status {
        if flags != 0 {
            return INVALID_VALUE;
        }
        with_done(|machine, _| give(graph, handle(machine.graph_create())))
    }

    fn cuGraphAddKernelNode_v2(
        node: *mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        parameters: *const CUDA_KERNEL_NODE_PARAMS,
    ) -> Status {
        // SAFETY: the caller passed parameters, and `count` nodes.
        let (p, after): (_, Vec<usize>) =
            unsafe { (&*parameters, (0..count).map(|i| after.add(i).read().addr()).collect()) };
        let (grid, block) = ([p.gridDimX, p.gridDimY, p.gridDimZ], [p.blockDimX, p.blockDimY, p.blockDimZ]);
        with(|machine, _| {
            let function = number(p.func.cast());
            let args = arguments(machine, function, p.kernelParams.cast());
            match machine.work(function, grid, block, p.sharedMemBytes, args) {
                Ok(work) => {
                    give(node, handle(machine.graph_add(number(graph), work, after)));
                    SUCCESS
                }
                Err(status) => status,
            }
        })
    }

    fn cuGraphInstantiateWithFlags(executable: *mut Handle, graph: Handle, _flags: u64) -> Status {
        with_done(|machine, _| give(executable, handle(machine.graph_instantiate(number(graph)))))
    }

    fn cuGraphLaunch(executable: Handle, stream: Handle) -> Status {
        with_done(|machine, context| machine.graph_launch(number(executable), number(stream), context))
    }

    fn cuGraphDestroy(graph: Handle) -> Status {
        with_done(|machine, _| machine.graph_destroy(number(graph)))
    }

    fn cuGraphExecDestroy(executable: Handle) -> Status {
        with_done(|machine, _| machine.executable_destroy(number(executable)))
    }

    /// Not of the driver: bytes allocated, live events, live streams.
    fn fakeLive(counts: *mut [u64; 3]) -> Status {
        give(counts, machine().live());
        SUCCESS
    }
}

/// The shape of a cluster.
fn dimension(value: &CUlaunchAttributeValue) -> [u32; 3] {
    // SAFETY: the attribute says that this is the member.
    let shape = unsafe { value.clusterDim };
    [shape.x, shape.y, shape.z]
}

/// Copies the parameters of an entry point, which has their sizes.
fn arguments(machine: &mut Machine, function: u64, parameters: *const Handle) -> Vec<Vec<u8>> {
    let sizes = machine.parameters(function);
    let copy = |(i, bytes): (usize, usize)| {
        // SAFETY: the caller passed one pointer for each parameter of the entry point, to as many bytes as it has.
        unsafe { std::slice::from_raw_parts(parameters.add(i).read().cast::<u8>(), bytes) }.to_vec()
    };
    sizes.into_iter().enumerate().map(copy).collect()
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

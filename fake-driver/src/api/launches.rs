//! Modules and their functions, launches, and graphs of launches.

use std::ffi::{CStr, c_char, c_int, c_uint};

use cudarc::driver::sys::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig,
};

use super::{Handle, RESIDENT, give, handle, number, with, with_done};
use crate::machine::{Fill, INVALID_VALUE, Machine, NOT_FOUND, SUCCESS, Status};

/// Options of `cuModuleLoadDataEx`.
const JIT_INFO_LOG: c_uint = 3;
const JIT_INFO_LOG_BYTES: c_uint = 4;
const JIT_ERROR_LOG: c_uint = 5;
const JIT_ERROR_LOG_BYTES: c_uint = 6;

/// Attributes of functions.
const LOCAL_BYTES: c_uint = 3;
const REGISTERS: c_uint = 4;
const NON_PORTABLE_CLUSTER: c_uint = 14;

/// Registers of a thread, of every kernel.
const REGISTERS_OF_ALL: c_int = 32;

/// A buffer of the caller for a log: where it is, and its bytes.
type LogBuffer = (*mut u8, usize);

/// Writes a log, as far as there is room, and a NUL.
fn write_log((log, room): LogBuffer, message: &str) {
    let bytes = message.len().min(room.saturating_sub(1));
    if !log.is_null() && room > 0 {
        // SAFETY: the caller's buffer has `room` bytes, and `bytes + 1` are not more.
        unsafe {
            std::ptr::copy_nonoverlapping(message.as_ptr(), log, bytes);
            log.add(bytes).write(0);
        }
    }
}

driver! {
    fn cuModuleLoadDataEx(
        module: *mut Handle,
        image: *const c_char,
        count: c_uint,
        options: *const c_uint,
        values: *const Handle,
    ) -> Status {
        // SAFETY: PTX is passed as NUL-terminated text.
        let text = unsafe { CStr::from_ptr(image) }.to_string_lossy();
        let [mut said, mut errors]: [LogBuffer; 2] = [(std::ptr::null_mut(), 0); 2];
        for i in 0..count as usize {
            // SAFETY: both lists have `count` entries.
            let (option, value) = unsafe { (options.add(i).read(), values.add(i).read()) };
            match option {
                JIT_INFO_LOG => said.0 = value.cast::<u8>(),
                JIT_INFO_LOG_BYTES => said.1 = value.addr(),
                JIT_ERROR_LOG => errors.0 = value.cast::<u8>(),
                JIT_ERROR_LOG_BYTES => errors.1 = value.addr(),
                _ => {}
            }
        }
        with(|machine, _| match machine.load(&text) {
            Ok(loaded) => {
                write_log(said, &machine.log);
                give(module, handle(loaded));
                SUCCESS
            }
            Err((status, message)) => {
                write_log(errors, &message);
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

    fn cuFuncGetAttribute(value: *mut c_int, attribute: c_uint, _function: Handle) -> Status {
        with(|machine, _| {
            give(value, match attribute {
                LOCAL_BYTES => machine.local,
                REGISTERS => REGISTERS_OF_ALL,
                _ => return INVALID_VALUE,
            });
            SUCCESS
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
        with(|machine, _| {
            give(count, machine.clusters);
            SUCCESS
        })
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

    fn cuGraphAddMemsetNode(
        node: *mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        parameters: *const CUDA_MEMSET_NODE_PARAMS,
        context: Handle,
    ) -> Status {
        // SAFETY: the caller passed parameters, and `count` nodes.
        let (p, after): (_, Vec<usize>) =
            unsafe { (&*parameters, (0..count).map(|i| after.add(i).read().addr()).collect()) };
        let unit = match p.elementSize {
            size @ (1 | 2 | 4) => p.value.to_le_bytes()[..size as usize].to_vec(),
            _ => return INVALID_VALUE,
        };
        let fill =
            Fill { address: p.dst, unit, width: p.width as u64, height: p.height as u64, pitch: p.pitch as u64 };
        with(|machine, current| {
            if number(context) != current {
                return INVALID_VALUE;
            }
            match machine.graph_add_fill(number(graph), fill, after) {
                Some(added) => {
                    give(node, handle(added));
                    SUCCESS
                }
                None => INVALID_VALUE,
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

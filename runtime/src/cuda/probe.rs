//! Is there a driver, is it complete, and how new is it? Asked once a process, before any other call.

use std::sync::OnceLock;

use cudarc::driver::sys;
use libloading::Library;

use crate::error::{Error, Result};

/// A driver that was found and initialised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driver {
    /// CUDA version that it supports, such as (12, 4).
    pub version: (u8, u8),
    /// Whether it has the extended launch call, which clusters need (CUDA 11.8).
    pub extended_launch: bool,
    /// Whether it can build graphs from kernel nodes as this crate does (CUDA 12.0).
    pub kernel_nodes: bool,
    /// Whether nodes of graphs have attributes, which clusters need.
    pub cluster_nodes: bool,
    /// Whether it encodes tensor maps (CUDA 12.0).
    pub tensor_maps: bool,
}

/// Every symbol that this crate calls, but those of the optional groups.
const REQUIRED: [&str; 46] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGet",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuStreamIsCapturing",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventQuery",
    "cuEventElapsedTime",
    "cuEventDestroy_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemsetD8Async",
    "cuMemsetD32Async",
    "cuMemsetD2D8Async",
    "cuMemsetD2D32Async",
    "cuModuleLoadDataEx",
    "cuModuleGetFunction",
    "cuModuleUnload",
    "cuFuncSetAttribute",
    "cuFuncGetAttribute",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuLaunchKernel",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetUuid_v2",
    "cuCtxGetCurrent",
    "cuMemGetInfo_v2",
];

/// Symbols of the extended launch call.
const EXTENDED: [&str; 2] = ["cuLaunchKernelEx", "cuOccupancyMaxActiveClusters"];

/// Symbols that building graphs needs.
const GRAPHS: [&str; 7] = [
    "cuGraphCreate",
    "cuGraphAddMemsetNode",
    "cuGraphAddKernelNode_v2",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
];

/// Symbols that clusters in graphs need.
const CLUSTER_NODES: [&str; 1] = ["cuGraphKernelNodeSetAttribute"];

/// Symbols that tensor maps need.
const TENSOR_MAPS: [&str; 1] = ["cuTensorMapEncodeTiled"];

/// The driver, if this machine has a usable one.
pub(super) fn probe() -> Result<Driver> {
    static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
    DRIVER.get_or_init(find).clone()
}

fn find() -> Result<Driver> {
    let none = |reason: String| Error::NoCuda { reason };
    if library().is_none() {
        return Err(none("the driver library (libcuda) was not found".to_owned()));
    }
    if let Some(symbol) = REQUIRED.into_iter().find(|s| !has(s)) {
        return Err(none(format!(
            "the driver library has no function {symbol}: the driver is too old (CUDA 11.4 is needed)"
        )));
    }
    // SAFETY: no preconditions; the symbol is there.
    let status = unsafe { sys::cuInit(0) };
    match status {
        sys::CUresult::CUDA_SUCCESS => {}
        // No GPU, or a library that only pretends to be a driver.
        sys::CUresult::CUDA_ERROR_NO_DEVICE | sys::CUresult::CUDA_ERROR_STUB_LIBRARY => {
            return Err(none(format!("cuInit: {status:?}")));
        }
        other => return Err(super::failure("cuInit", other)),
    }
    let mut version = 0;
    // SAFETY: writes one integer.
    let status = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    super::check("cuDriverGetVersion", status)?;
    Ok(Driver {
        version: split_version(version),
        extended_launch: EXTENDED.into_iter().all(has),
        kernel_nodes: GRAPHS.into_iter().all(has),
        cluster_nodes: CLUSTER_NODES.into_iter().all(has),
        tensor_maps: TENSOR_MAPS.into_iter().all(has),
    })
}

/// The driver library, if there is one. It is never unloaded.
///
/// `cudarc` finds it by these names in this order, among others that no system has, or is linked with it: that depends
/// on what else is in the program, and here it does not matter.
fn library() -> Option<&'static Library> {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    let name = |name: &str, version: &str| format!("{DLL_PREFIX}{name}{DLL_SUFFIX}{version}");
    let names = || [name("cuda", ""), name("cuda", ".1"), name("nvcuda", "")];
    // SAFETY: loads the driver library if there is one; its initialisers are the vendor's.
    LIBRARY.get_or_init(|| names().iter().find_map(|name| unsafe { Library::new(name) }.ok())).as_ref()
}

/// Whether the driver library has this symbol.
fn has(symbol: &str) -> bool {
    // SAFETY: the pointer is not called.
    library().is_some_and(|library| unsafe { library.get::<*const ()>(symbol).is_ok() })
}

/// 12040 is CUDA 12.4.
fn split_version(version: i32) -> (u8, u8) {
    let part = |n: i32| u8::try_from(n).unwrap_or(0);
    (part(version / 1000), part(version % 1000 / 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_split() {
        assert_eq!(split_version(12040), (12, 4));
        assert_eq!(split_version(11080), (11, 8));
        assert_eq!(split_version(13000), (13, 0));
        assert_eq!(split_version(-1), (0, 0));
    }

    #[test]
    fn probing_answers_and_never_panics() {
        match probe() {
            Ok(driver) => assert!(driver.version.0 >= 11, "{driver:?}"),
            Err(Error::NoCuda { reason }) => assert!(!reason.is_empty()),
            // A GPU with a problem.
            Err(other) => assert!(matches!(other, Error::Cuda { .. }), "{other}"),
        }
    }
}

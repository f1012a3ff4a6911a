//! The driver room: everything that talks to the CUDA driver, and one of the two rooms with `unsafe`.
//!
//! Contract relied on throughout: handles ([`CUcontext`](sys::CUcontext), streams, events, modules, device pointers)
//! are created here, never leave except through documented `unsafe` functions, and are used only while their owner
//! lives. Contexts are the devices' primary contexts, are created once a process, and are never released: nothing can
//! outlive them.
//!
//! `cudarc` declares the driver's result as a Rust enum of the codes of its CUDA version; that a driver returns no code
//! that a program of that version does not know is the driver's own promise of compatibility, and is relied on.
//!
//! Driver functions are looked up when first called, and `cudarc` panics where a library or a symbol is missing;
//! [`probe`](probe::probe) therefore comes before everything else.

#![allow(unsafe_code, reason = "the driver is a C library")]

mod context;
mod fill;
mod graph;
mod host;
mod interop;
mod kernel;
mod memory;
mod probe;
mod run;
mod tensor_map;
mod text;

pub(crate) use context::{Context, Event, Stream};
pub(crate) use host::HostBlock;
pub(crate) use interop::{adopt, release};
pub(crate) use kernel::Call;
pub(crate) use memory::Block;
pub(crate) use run::{Graph, run};
pub(crate) use tensor_map::parameters;
pub use text::{TextLaunch, TextParameter, run_text};

use cudarc::driver::sys;

use crate::error::{Error, Result};

/// The result of driver function `call`.
fn check(call: &'static str, result: sys::CUresult) -> Result<()> {
    if result == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(failure(call, result)) }
}

/// The error for a driver function's unsuccessful result.
fn failure(call: &'static str, result: sys::CUresult) -> Error {
    // The derived name is the C name of the constant. The driver's own sentence needs a working driver: it was probed.
    let code = format!("{result:?}");
    let mut message = describe(result);
    if is_fault(result) {
        message += "; a kernel that was launched earlier failed, and every call of the device says so from then on";
    }
    Error::Cuda { call, code, message }
}

/// Whether a result tells of a fault of a kernel, which the context keeps: whichever call comes next returns it, and
/// has nothing to do with it.
fn is_fault(result: sys::CUresult) -> bool {
    use sys::CUresult as R;
    matches!(
        result,
        R::CUDA_ERROR_ILLEGAL_ADDRESS
            | R::CUDA_ERROR_MISALIGNED_ADDRESS
            | R::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | R::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | R::CUDA_ERROR_INVALID_PC
            | R::CUDA_ERROR_HARDWARE_STACK_ERROR
            | R::CUDA_ERROR_ASSERT
            | R::CUDA_ERROR_LAUNCH_TIMEOUT
            | R::CUDA_ERROR_LAUNCH_FAILED
    )
}

/// The driver's description of a result.
fn describe(result: sys::CUresult) -> String {
    let mut text = std::ptr::null();
    // SAFETY: writes one pointer, to a static string of the driver or null.
    let status = unsafe { sys::cuGetErrorString(result, &raw mut text) };
    if status != sys::CUresult::CUDA_SUCCESS || text.is_null() {
        return "no description".to_owned();
    }
    // SAFETY: the driver returned a pointer to a NUL-terminated string that lives as long as the driver.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Calls a driver function and turns its result into a [`Result`].
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {
        $crate::cuda::check(stringify!($name), cudarc::driver::sys::$name($($argument),*))
    };
}
use call;

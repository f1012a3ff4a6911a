//! The functions of `libcuda` that the runtime and `cudarc` call. Names, order and types of parameters are those of
//! `cuda.h`. Here is what they share; they themselves are in `device`, `streams` and `launches`.

#![allow(unsafe_code, reason = "a C library")]
#![allow(non_snake_case, reason = "the names of cuda.h")]

use std::alloc::Layout;
use std::cell::Cell;
use std::ffi::{c_int, c_void};

use crate::machine::{INVALID_CONTEXT, Machine, SUCCESS, Status, abort, machine};

/// Multiprocessors of the machine, and blocks that each runs at one time: few, so that persistent blocks take several
/// tiles.
const MULTIPROCESSORS: c_int = 2;
const RESIDENT: c_int = 1;

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

/// The layout of page-locked memory.
fn pages(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, 4096).ok().filter(|_| bytes > 0)
}

/// Memory of the host, full of what nobody expects; none for 0 bytes and where there is too little.
fn page_locked(bytes: usize) -> Option<*mut u8> {
    let layout = pages(bytes)?;
    // SAFETY: the layout has bytes.
    let pointer = unsafe { std::alloc::alloc(layout) };
    if pointer.is_null() {
        return None;
    }
    // SAFETY: as many bytes were allocated.
    unsafe { pointer.write_bytes(0xa5, bytes) };
    Some(pointer)
}

/// Frees what [`page_locked`] gave.
fn free_page_locked(address: usize, bytes: usize) {
    if let Some(layout) = pages(bytes) {
        // SAFETY: the machine knew the address with its bytes, and knows it no longer.
        unsafe { std::alloc::dealloc(std::ptr::with_exposed_provenance_mut(address), layout) };
    }
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

mod device;
mod launches;
mod maps;
mod streams;

//! GPU kernels inside Rust, where a wrong schedule does not compile.
//!
//! `schedule!` holds a kernel's algorithm (what every element is) and its schedule (which part of the machine computes it, and
//! how). It is checked while the crate compiles and becomes PTX text; this crate runs it, on a GPU or on an emulator of one.
//!
//! ```
//! use tilewright::{Device, Tensor};
//!
//! # fn main() -> tilewright::Result<()> {
//! let device = Device::best()?; // a GPU if there is one, else the emulator
//! let x = Tensor::from_slice(&device, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
//! let column = x.slice(1, 1..2)?; // a view: no copy
//! assert_eq!(column.to_vec()?, [2.0, 5.0]);
//! # Ok(()) }
//! ```
//!
//! For `kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])` the macro makes a struct with those fields and three methods:
//!
//! ```ignore
//! Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.launch(&device)?;                 // checks, then runs
//! let again = Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.prepare(&device)?;    // checks once, runs often
//! let admissible = Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.reference()?;    // what the algorithm admits, on the host
//! admissible.check("z", &z)?;
//! ```
//!
//! A launch is safe: before anything runs, shapes, strides, facts, alignment, aliasing, sizes of the grid and the device are
//! checked, and a launch that fails a check is an [`Error::Refused`] with the values. On the emulator a race, a stray access or
//! a broken barrier is an [`Error::Emulation`] that names the statement of the schedule, the thread and the tensor element.
//!
//! # Devices
//!
//! [`Device::best`] needs nothing installed: the CUDA driver is looked for at run time. The emulator runs kernels hundreds to
//! thousands of times slower than a GPU, and much slower still if it is not optimised. In a dev build, add
//!
//! ```toml
//! [profile.dev.package.tilewright-emulator]
//! opt-level = 3
//! [profile.dev.package.tilewright]
//! opt-level = 3
//! ```
//!
//! # Order
//!
//! Launches on one stream run in order. Launches on different streams, from any threads, may overlap, except where one writes
//! what the other uses: those run in the order in which they were made. Reading a tensor waits for the launches that write it.
//! Dropping a tensor waits for nothing: its memory is freed after its last use.
//!
//! # Features
//!
//! `cuda` (default): GPUs, by way of `cudarc`. `emulator` (default): the emulator. At least one is needed. A program that uses
//! `cudarc` itself must ask for the same features `dynamic-loading` and `cuda-12080`: `cudarc` cannot be built for two CUDA
//! versions at once. Drivers from CUDA 11.4 on will do.

#![deny(unsafe_code)]

#[cfg(not(any(feature = "cuda", feature = "emulator")))]
compile_error!("tilewright needs a device: enable its feature `cuda`, its feature `emulator`, or both");

#[doc(hidden)]
pub mod __private;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod element;
#[cfg(feature = "emulator")]
mod emulator;
pub mod error;
mod launch;
mod memory;
mod reference;
mod tensor;

pub use device::{Device, Stream};
pub use element::Element;
#[cfg(feature = "emulator")]
pub use emulator::{EmulatorOptions, EmulatorReport};
pub use error::{Error, Result};
pub use half::{bf16, f16};
pub use launch::{Graph, Prepared};
pub use reference::{Admissible, Agreement, Interval, Reference, ReferenceOutput};
pub use tensor::{Input, Output, Tensor, TensorMut, TensorRef};
pub use tilewright_kernel as kernel;

#[doc(hidden)]
pub use tilewright_macros::__schedule;

/// Compiles kernels: tensor equations with an explicit schedule, checked while this crate compiles.
///
/// The language is described in the repository's `docs/language.md`. Each kernel becomes a struct with one field a parameter,
/// and the methods `launch`, `prepare` and `reference`.
#[macro_export]
macro_rules! schedule {
    ($($tokens:tt)*) => { $crate::__schedule! { ($crate) $($tokens)* } };
}

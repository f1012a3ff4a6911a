//! GPU kernels inside Rust, where a wrong schedule does not compile.
//!
//! `schedule!` holds a kernel's algorithm (what every element is) and its schedule (which part of the machine computes
//! it, and how). It is checked while the crate compiles and becomes PTX text; this crate runs it, on a GPU or on an
//! emulator of one.
//!
//! ```
//! use tilewright::{Device, Tensor, schedule};
//!
//! schedule! {
//!     /// z = a·x + y
//!     pub kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])
//!     where N % 4 == 0
//!     {
//!         z[i] = a * x[i] + y[i];
//!
//!         launch threads(256);
//!         schedule z {
//!             split i by 4 -> io, v;        // 16-byte vectors
//!             split io by 256 -> b, t;
//!             bind b: grid;
//!             bind t: thread;
//!             vectorize v;
//!         }
//!     }
//! }
//!
//! # fn main() -> tilewright::Result<()> {
//! let n = 1000;
//! let device = Device::best()?; // a GPU if there is one, else the emulator
//! let x = Tensor::from_slice(&device, &vec![1.5_f32; n], [n])?;
//! let y = Tensor::from_slice(&device, &vec![0.25_f32; n], [n])?;
//! let mut z = Tensor::zeros(&device, [n])?;
//! Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.launch(&device)?; // checks, then runs
//! assert_eq!(z.to_vec()?, vec![3.25; n]);
//!
//! // Checked once, run often.
//! let again = Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.prepare(&device)?;
//! again.run()?;
//!
//! // What the algorithm admits, evaluated on the host without the schedule: the oracle of a test.
//! let admissible = Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.reference()?;
//! admissible.check("z", &z)?;
//!
//! // Nothing runs when a check fails.
//! let short = x.slice(0, 0..10)?;
//! let error = Saxpy { a: 2.0, x: &short, y: &y, z: &mut z }.launch(&device).unwrap_err();
//! assert_eq!(error.to_string(), "kernel Saxpy was not launched: N would be 10 (x.shape[0]) and 1000 (y.shape[0])");
//! # Ok(()) }
//! ```
//!
//! A launch is safe: before anything runs, shapes, strides, facts, alignment, aliasing, sizes of the grid and the
//! device are checked, and a launch that fails a check is an [`Error::Refused`] with the values. On the emulator a
//! race, a stray access or a broken barrier is an [`Error::Emulation`] that names the statement of the schedule, the
//! thread and the tensor element.
//!
//! # Devices
//!
//! [`Device::best`] needs nothing installed: the CUDA driver is looked for at run time. The emulator runs kernels
//! hundreds to thousands of times slower than a GPU, and much slower still if it is not optimised. In a dev build, add
//!
//! ```toml
//! [profile.dev.package]
//! tilewright = { opt-level = 3 }
//! tilewright-emulator = { opt-level = 3 }
//! ```
//!
//! # Order
//!
//! Launches on one stream run in order. Launches on different streams, from any threads, may overlap, except where one
//! writes what the other uses: those run in the order in which they were made. Reading a tensor waits for the launches
//! that write it. Dropping a tensor waits for nothing: its memory is freed after its last use.
//!
//! # Features
//!
//! `cuda` (default): GPUs, by way of `cudarc`. `emulator` (default): the emulator. At least one is needed. Drivers from
//! CUDA 11.4 on will do. `ndarray`: arrays of that crate to tensors and back.
//!
//! A program that uses `cudarc` 0.19 itself, or by way of candle, shares it with this crate. The driver is loaded at
//! run time, unless another crate asks `cudarc` for another way to it (`dynamic-linking`). The newest CUDA version
//! whose feature anybody asks for is the one of all; here it is `cuda-12000`.
//!
//! # Copies
//!
//! [`Tensor::to_vec`] and its like wait. [`Pinned`] is page-locked memory, and a [`Transfer`] a copy between it and a
//! tensor that goes on while the host does something else.

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
pub mod errors;
mod event;
mod launch;
mod memory;
mod reference;
mod tensor;

pub use device::{Device, Properties, Stream};
pub use element::Element;
#[cfg(feature = "emulator")]
pub use emulator::{EmulatorOptions, EmulatorReport};
pub use error::{Error, Result};
pub use event::Event;
pub use half::{bf16, f16};
pub use launch::{Graph, Kernel, MachineCode, Prepared};
pub use memory::{Pinned, Transfer};
pub use reference::{Admissible, Agreement, Interval, Reference, ReferenceOutput, Specials, Width};
pub use tensor::{DynTensor, DynTensorMut, DynTensorRef, Input, Output, Tensor, TensorMut, TensorRef};
pub use tilewright_kernel as kernel;
pub use tilewright_kernel::storage::{e4m3, e5m2, tf32};

#[doc(hidden)]
pub use tilewright_macros::__schedule;

/// Compiles kernels: tensor equations with an explicit schedule, checked while this crate compiles.
///
/// The language is described in the repository's `docs/language.md`. Each kernel becomes a struct with one field a
/// parameter, and the methods `launch`, `prepare` and `reference`.
#[macro_export]
macro_rules! schedule {
    ($($tokens:tt)*) => { $crate::__schedule! { ($crate) $($tokens)* } };
}

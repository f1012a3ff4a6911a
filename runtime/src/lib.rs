//! See the package description.
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

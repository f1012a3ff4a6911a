//! What the expansion of `schedule!` calls. Not an API: it may change in any release.
//!
//! # The expansion
//!
//! For `pub kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z:
//! f32[N])` the macro emits this, with `$crate` for `tilewright` (`tests/expanded.rs` holds the same by hand and runs
//! it):
//!
//! ```text
//! pub struct Saxpy<'a, 'm> {
//!     pub a: f32,
//!     pub x: &'a (dyn $crate::Input<f32, 1> + 'm),
//!     pub y: &'a (dyn $crate::Input<f32, 1> + 'm),
//!     pub z: &'a mut (dyn $crate::Output<f32, 1> + 'm),
//! }
//!
//! impl<'m> Saxpy<'_, 'm> {
//!     pub const KERNEL: &'static $crate::kernel::KernelInfo = {
//!         static KERNEL: $crate::kernel::KernelInfo = …;
//!         &KERNEL
//!     };
//!
//!     pub fn launch(self, on: impl ::core::convert::AsRef<$crate::Stream>) -> $crate::Result<()> {
//!         $crate::__private::launch(Self::KERNEL, &self.arguments(), on.as_ref())
//!     }
//!
//!     pub fn prepare(self, on: impl ::core::convert::AsRef<$crate::Stream>) -> $crate::Result<$crate::Prepared<'m>> {
//!         $crate::__private::prepare(Self::KERNEL, &self.arguments(), on.as_ref())
//!     }
//!
//!     pub fn reference(self) -> $crate::Result<$crate::Reference> {
//!         $crate::__private::reference(Self::KERNEL, &self.arguments())
//!     }
//!
//!     fn arguments(self) -> [$crate::__private::Arg<'m>; 4] {
//!         [
//!             $crate::__private::Arg::scalar(&self.a),
//!             $crate::__private::Arg::input(self.x),
//!             $crate::__private::Arg::input(self.y),
//!             $crate::__private::Arg::output(self.z),
//!         ]
//!     }
//! }
//!
//! impl<'m> $crate::Kernel<'m> for Saxpy<'_, 'm> {
//!     const INFO: &'static $crate::kernel::KernelInfo = Self::KERNEL;
//!
//!     fn into_arguments(self) -> ::std::vec::Vec<$crate::__private::Arg<'m>> {
//!         ::std::vec::Vec::from(self.arguments())
//!     }
//! }
//! ```
//!
//! - Lists in the static are written `List::Borrowed(const { &[…] })`: without the `const` block a list whose elements
//!   have destructors (sizes, texts) is not promoted to a static by rustc 1.88.
//! - Arguments come in the order of `KernelInfo::parameters`: one a parameter, inputs first.
//! - Element types: `f64 f32 i64 … u8 bool` as they are, `f16 bf16 tf32 e4m3 e5m2` as `$crate::f16` and so on.
//! - An `inout x` is one field and one argument, `Arg::output`, at the position of its one parameter.
//! - A kernel without tensor inputs still has `'a` and `'m`: its outputs use them.
//! - On a compile error emit the same struct and methods with bodies that diverge, so that callers do not cascade.

#[cfg(feature = "cuda")]
pub use crate::cuda::{TextLaunch, TextParameter, run_text};
#[cfg(feature = "emulator")]
pub use crate::emulator::{Part, count};
pub use crate::launch::{Arg, blocks, launch, prepare};
pub use crate::reference::{reference, reference_as_scheduled};
pub use crate::tensor::DynamicTensor;

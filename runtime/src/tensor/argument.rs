//! What a kernel accepts as a tensor argument.

use std::sync::Arc;

use tilewright_kernel::ElementType;

use super::layout::{Axes, Layout};
use crate::memory::Allocation;

/// Where the elements of an argument lie.
pub struct Parts<'a> {
    pub(crate) allocation: &'a Arc<Allocation>,
    pub(crate) offset: usize,
    pub(crate) shape: &'a [usize],
    pub(crate) strides: &'a [usize],
    pub(crate) element: ElementType,
}

impl<'a> Parts<'a> {
    pub(crate) fn new<A: Axes>(allocation: &'a Arc<Allocation>, layout: &'a Layout<A>, element: ElementType) -> Self {
        let (shape, strides) = (layout.shape.as_ref(), layout.strides.as_ref());
        Self { allocation, offset: layout.offset, shape, strides, element }
    }
}

/// Keeps the traits ours: memory safety rests on what `parts` says.
pub trait Sealed {
    /// Where the elements lie.
    fn parts(&self) -> Parts<'_>;
}

/// A tensor that a kernel can read: [`Tensor`](crate::Tensor), [`TensorRef`](crate::TensorRef) or
/// [`TensorMut`](crate::TensorMut) with elements of type `T` and `R` axes; or one whose rank is known at run time only,
/// such as [`DynTensor`](crate::DynTensor), which a launch refuses if it is another one.
///
/// ```compile_fail,E0277
/// # use tilewright::{Device, EmulatorOptions, Input, Tensor};
/// # let device = Device::emulator(EmulatorOptions::default());
/// let doubles = Tensor::<f64, 1>::zeros(&device, [8]).unwrap();
/// let x: &dyn Input<f32, 1> = &doubles; // another element type
/// ```
///
/// ```compile_fail,E0277
/// # use tilewright::{Device, EmulatorOptions, Input, Tensor};
/// # let device = Device::emulator(EmulatorOptions::default());
/// let matrix = Tensor::<f32, 2>::zeros(&device, [8, 8]).unwrap();
/// let x: &dyn Input<f32, 1> = &matrix; // another rank
/// ```
#[diagnostic::on_unimplemented(
    message = "this argument must be a tensor of `{T}` of rank {R}, not `{Self}`",
    label = "expected a tensor of `{T}` of rank {R}",
    note = "pass `&tensor`, where `tensor` is a Tensor<{T}, {R}>, or a view of one"
)]
pub trait Input<T, const R: usize>: Sealed {}

/// A tensor that a kernel can write: [`Tensor`](crate::Tensor) or [`TensorMut`](crate::TensorMut), or one of them whose
/// rank is known at run time only.
///
/// ```compile_fail,E0277
/// # use tilewright::{Device, EmulatorOptions, Output, Tensor};
/// # let device = Device::emulator(EmulatorOptions::default());
/// let x = Tensor::<f32, 1>::zeros(&device, [8]).unwrap();
/// let z: &mut dyn Output<f32, 1> = &mut x.view(); // a view to read
/// ```
#[diagnostic::on_unimplemented(
    message = "this argument must be a writable tensor of `{T}` of rank {R}, not `{Self}`",
    label = "expected a writable tensor of `{T}` of rank {R}",
    note = "pass `&mut tensor`, where `tensor` is a Tensor<{T}, {R}>, or a mutable view of one"
)]
pub trait Output<T, const R: usize>: Input<T, R> {}

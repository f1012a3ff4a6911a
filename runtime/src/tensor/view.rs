//! Borrowed tensors, strided ones included.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use super::Tensor;
use super::argument::{Input, Output, Parts, Sealed};
use super::layout::{Axes, Layout, run};
use crate::device::Device;
use crate::element::Element;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::memory::Allocation;

/// A tensor to read, borrowed for `'m` from an owner: all of it or a part, with the axes in any order.
///
/// ```
/// # use tilewright::{Device, EmulatorOptions, Tensor};
/// # fn main() -> tilewright::Result<()> {
/// let device = Device::emulator(EmulatorOptions::default());
/// let x = Tensor::from_slice(&device, &[1, 2, 3, 4, 5, 6_i32], [2, 3])?;
/// let columns = x.view().slice(1, 1..3)?.permute([1, 0])?;
/// assert_eq!(columns.shape(), [2, 2]);
/// assert_eq!(columns.to_vec()?, [2, 5, 3, 6]);
/// # Ok(()) }
/// ```
///
/// A view cannot outlive its owner:
///
/// ```compile_fail,E0505
/// # use tilewright::{Device, EmulatorOptions, Tensor};
/// let device = Device::emulator(EmulatorOptions::default());
/// let x = Tensor::<f32, 1>::zeros(&device, [8]).unwrap();
/// let view = x.view();
/// drop(x);
/// view.to_vec().unwrap();
/// ```
pub struct TensorRef<'m, T, const R: usize> {
    allocation: Arc<Allocation>,
    layout: Layout<[usize; R]>,
    owner: PhantomData<&'m ()>,
    element: PhantomData<fn() -> T>,
}

/// A tensor to write, borrowed for `'m` from an owner.
///
/// Two of them never name the same element:
///
/// ```compile_fail,E0499
/// # use tilewright::{Device, EmulatorOptions, Tensor};
/// let device = Device::emulator(EmulatorOptions::default());
/// let mut x = Tensor::<f32, 1>::zeros(&device, [8]).unwrap();
/// let first = x.view_mut();
/// let second = x.view_mut();
/// drop(first);
/// ```
pub struct TensorMut<'m, T, const R: usize> {
    allocation: Arc<Allocation>,
    layout: Layout<[usize; R]>,
    owner: PhantomData<&'m mut ()>,
    element: PhantomData<fn() -> T>,
}

macro_rules! shared {
    ($view:ident) => {
        impl<T: Element, const R: usize> $view<'_, T, R> {
            pub(crate) fn new(allocation: Arc<Allocation>, layout: Layout<[usize; R]>) -> Self {
                Self { allocation, layout, owner: PhantomData, element: PhantomData }
            }

            /// Where the elements lie.
            pub(super) fn into_layout(self) -> (Arc<Allocation>, Layout<[usize; R]>) {
                (self.allocation, self.layout)
            }

            /// Part of an axis: `0..4`, `..4`, `2..`, `..=3` or `..`.
            ///
            /// # Errors
            /// [`Error::Axis`] or [`Error::Range`].
            pub fn slice(self, axis: usize, range: impl RangeBounds<usize>) -> Result<Self> {
                Ok(Self { layout: self.layout.slice(axis, range)?, ..self })
            }

            /// Every `step`-th position of an axis, from its first: `x.slice(0, 1..n)?.step(0, 2)?` are the odd ones.
            ///
            /// # Errors
            /// [`Error::Axis`]; [`Error::Layout`] if `step` is 0.
            pub fn step(self, axis: usize, step: usize) -> Result<Self> {
                Ok(Self { layout: self.layout.step(axis, step)?, ..self })
            }

            /// The axes in another order: axis `d` of the result is axis `axes[d]` of this.
            ///
            /// # Errors
            /// [`Error::Permutation`] unless each axis is named once.
            pub fn permute(self, axes: [usize; R]) -> Result<Self> {
                Ok(Self { layout: self.layout.permute(&axes)?, ..self })
            }

            /// The elements in row-major order of the view's axes, after every launch that writes them.
            ///
            /// # Errors
            /// A driver failure, among them the error of an earlier launch.
            pub fn to_vec(&self) -> Result<Vec<T>> {
                gather(&Parts::new(&self.allocation, &self.layout, T::TYPE)).map(|bytes| T::decode(&bytes))
            }

            /// Copies the elements to a slice, in row-major order of the view's axes, after every launch that writes
            /// them.
            ///
            /// # Errors
            /// [`Error::Length`]; a driver failure, among them the error of an earlier launch.
            pub fn copy_to_slice(&self, elements: &mut [T]) -> Result<()>
            where
                T: Copy,
            {
                super::check_length(&self.layout.shape, elements.len(), size_of::<T>())?;
                elements.copy_from_slice(&self.to_vec()?);
                Ok(())
            }

            /// A row-major and contiguous copy on a device, which may be another one. Elements without gaps are copied
            /// on their device; else the copy goes by way of the host.
            ///
            /// # Errors
            /// Too little memory; a driver failure, among them the error of an earlier launch.
            pub fn to_tensor(&self, device: &Device) -> Result<Tensor<T, R>> {
                copied(&self.parts(), self.layout.shape, device)
            }

            /// Extent of each axis, outermost first.
            pub fn shape(&self) -> [usize; R] {
                self.layout.shape
            }

            /// Distance between neighbours along each axis, in elements.
            pub fn strides(&self) -> [usize; R] {
                self.layout.strides
            }

            /// Number of elements.
            pub fn len(&self) -> usize {
                self.layout.len()
            }

            /// Whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        impl<T: Element, const R: usize> fmt::Debug for $view<'_, T, R> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Layout { shape, strides, .. } = self.layout;
                write!(f, concat!(stringify!($view), "<{}, {}>{:?} with strides {:?}"), T::TYPE, R, shape, strides)
            }
        }

        impl<T: Element, const R: usize> Sealed for $view<'_, T, R> {
            fn parts(&self) -> Parts<'_> {
                Parts::new(&self.allocation, &self.layout, T::TYPE)
            }
        }

        impl<T: Element, const R: usize> Input<T, R> for $view<'_, T, R> {}
    };
}

shared!(TensorRef);
shared!(TensorMut);

impl<T: Element, const R: usize> Output<T, R> for TensorMut<'_, T, R> {}

impl<T, const R: usize> Clone for TensorRef<'_, T, R> {
    fn clone(&self) -> Self {
        Self { allocation: Arc::clone(&self.allocation), layout: self.layout, owner: PhantomData, element: PhantomData }
    }
}

impl<'m, T: Element, const R: usize> TensorRef<'m, T, R> {
    /// The same elements under another shape, in row-major order of the view's axes.
    ///
    /// # Errors
    /// [`Error::Length`] if the shape has another number of elements; [`Error::Layout`] if the elements lie apart.
    pub fn reshape<const S: usize>(self, shape: [usize; S]) -> Result<TensorRef<'m, T, S>> {
        let layout = self.layout.reshape(shape, size_of::<T>())?;
        Ok(TensorRef::new(self.allocation, layout))
    }
}

impl<'m, T: Element, const R: usize> TensorMut<'m, T, R> {
    /// The same elements under another shape, in row-major order of the view's axes.
    ///
    /// # Errors
    /// As [`TensorRef::reshape`].
    pub fn reshape<const S: usize>(self, shape: [usize; S]) -> Result<TensorMut<'m, T, S>> {
        let layout = self.layout.reshape(shape, size_of::<T>())?;
        Ok(TensorMut::new(self.allocation, layout))
    }

    /// The two parts of an axis before and from `at`.
    ///
    /// # Errors
    /// [`Error::Axis`], or [`Error::Range`] if `at` lies beyond the axis.
    pub fn split_at(self, axis: usize, at: usize) -> Result<(Self, Self)> {
        let (first, second) = self.layout.split_at(axis, at)?;
        Ok((Self::new(Arc::clone(&self.allocation), first), Self::new(self.allocation, second)))
    }

    /// The same tensor, to read.
    pub fn as_ref(&self) -> TensorRef<'_, T, R> {
        TensorRef::new(Arc::clone(&self.allocation), self.layout)
    }

    /// The same tensor, to write, for a shorter time.
    pub fn reborrow(&mut self) -> TensorMut<'_, T, R> {
        TensorMut::new(Arc::clone(&self.allocation), self.layout)
    }

    /// Replaces all elements; in row-major order of the view's axes. Writes no other byte of the owner.
    ///
    /// # Errors
    /// [`Error::Length`]; a driver failure.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<()> {
        scatter(&self.allocation, &self.layout, elements)
    }
}

/// A row-major copy of a view on a device: on the device, if it is the view's own and the elements have no gaps.
pub(super) fn copied<T: Element, const R: usize>(
    view: &Parts<'_>,
    shape: [usize; R],
    device: &Device,
) -> Result<Tensor<T, R>> {
    if run(view.shape, view.strides).0 > 0 {
        return Tensor::from_slice(device, &T::decode(&gather(view)?), shape);
    }
    let tensor = Tensor::uninit(device, shape)?;
    let size = size_of::<T>();
    tensor.allocation.copy_from(0, view.allocation, view.offset * size, tensor.len() * size)?;
    Ok(tensor)
}

/// Writes elements, in row-major order, where a layout has them, and no other byte.
pub(super) fn scatter<T: Element, A: Axes>(allocation: &Allocation, layout: &Layout<A>, elements: &[T]) -> Result<()> {
    super::check_length(layout.shape.as_ref(), elements.len(), size_of::<T>())?;
    let (_, run) = layout.run();
    for (offset, part) in layout.run_offsets().into_iter().zip(elements.chunks_exact(run.max(1))) {
        allocation.write(offset * size_of::<T>(), &T::encode(part))?;
    }
    Ok(())
}

/// Bytes of a tensor's elements in row-major order.
pub(crate) fn gather(parts: &Parts<'_>) -> Result<Vec<u8>> {
    let size = parts.element.bytes() as usize;
    if parts.shape.contains(&0) {
        return Ok(Vec::new());
    }
    // Saturating: the allocation refuses what does not fit, and what fits does not overflow.
    let reach =
        |end: usize, (&extent, &stride): (&usize, &usize)| end.saturating_add((extent - 1).saturating_mul(stride));
    let end = parts.shape.iter().zip(parts.strides).fold(1, reach).saturating_mul(size);
    let bytes = parts.allocation.read(parts.offset.saturating_mul(size), end)?;
    let count: usize = parts.shape.iter().product();
    if run(parts.shape, parts.strides).0 == 0 {
        return Ok(bytes);
    }
    let mut gathered = Vec::with_capacity(count * size);
    let mut index = vec![0_usize; parts.shape.len()];
    for _ in 0..count {
        let at = size * index.iter().zip(parts.strides).map(|(&i, &s)| i * s).sum::<usize>();
        gathered.extend_from_slice(&bytes[at..at + size]);
        for (i, &extent) in index.iter_mut().zip(parts.shape).rev() {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
    Ok(gathered)
}

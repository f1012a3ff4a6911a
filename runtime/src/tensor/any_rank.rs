//! Tensors whose rank is known at run time only: owned, and borrowed for reading and writing.
//!
//! An owned one is a flat [`Tensor`] with a shape; layouts and copies are those of the other tensors.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use super::argument::{Input, Output, Parts, Sealed};
use super::layout::{Layout, elements};
use super::view::{copied, gather, scatter};
use super::{Tensor, TensorMut, TensorRef, check_length};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::memory::Allocation;

/// A tensor on a device, row-major and contiguous, that owns its memory; its rank is known at run time only, as that
/// of a tensor from a file is.
///
/// Kernels take it as they take a [`Tensor`]: a launch with one of another rank than the kernel's parameter is refused,
/// with both ranks. [`into_rank`](Self::into_rank) makes it a [`Tensor`] whose rank is part of its type, and
/// [`Tensor::into_dyn`] is the way back; neither copies.
///
/// ```
/// # use tilewright::{Device, DynTensor, EmulatorOptions};
/// # fn main() -> tilewright::Result<()> {
/// let device = Device::emulator(EmulatorOptions::default());
/// let x = DynTensor::from_slice(&device, &[1, 2, 3, 4, 5, 6_i32], &[2, 3])?;
/// assert_eq!((x.rank(), x.shape(), x.strides()), (2, &[2, 3][..], &[3, 1][..]));
/// assert_eq!(x.view().permute(&[1, 0])?.to_vec()?, [1, 4, 2, 5, 3, 6]);
/// assert_eq!(x.as_rank::<2>()?.shape(), [2, 3]);
///
/// let error = x.into_rank::<3>().unwrap_err();
/// assert_eq!(error.to_string(), "a tensor of shape [2, 3] has rank 2, not 3");
/// # Ok(()) }
/// ```
pub struct DynTensor<T: Element> {
    flat: Tensor<T, 1>,
    layout: Layout<Vec<usize>>,
}

/// A tensor to read whose rank is known at run time only: all of an owner or a part, with the axes in any order. As
/// [`TensorRef`] otherwise.
pub struct DynTensorRef<'m, T> {
    allocation: Arc<Allocation>,
    layout: Layout<Vec<usize>>,
    owner: PhantomData<&'m ()>,
    element: PhantomData<fn() -> T>,
}

/// A tensor to write whose rank is known at run time only. As [`TensorMut`] otherwise: two of them never name the same
/// element.
pub struct DynTensorMut<'m, T> {
    allocation: Arc<Allocation>,
    layout: Layout<Vec<usize>>,
    owner: PhantomData<&'m mut ()>,
    element: PhantomData<fn() -> T>,
}

/// One number for each axis of a rank that is a type.
fn fixed<const R: usize>(layout: &Layout<Vec<usize>>) -> Result<Layout<[usize; R]>> {
    let all = |axes: &[usize]| <[usize; R]>::try_from(axes).ok();
    match (all(&layout.shape), all(&layout.strides)) {
        (Some(shape), Some(strides)) => Ok(Layout { offset: layout.offset, shape, strides }),
        _ => Err(Error::Rank { shape: layout.shape.clone(), expected: R, found: layout.rank() }),
    }
}

/// The same of a rank that is not.
fn open<const R: usize>(layout: &Layout<[usize; R]>) -> Layout<Vec<usize>> {
    Layout { offset: layout.offset, shape: layout.shape.to_vec(), strides: layout.strides.to_vec() }
}

impl<T: Element> DynTensor<T> {
    /// A tensor with these elements, in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    pub fn from_slice(device: &Device, elements: &[T], shape: &[usize]) -> Result<Self> {
        check_length(shape, elements.len(), size_of::<T>())?;
        Self::shaped(Tensor::from_slice(device, elements, [elements.len()])?, shape)
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn zeros(device: &Device, shape: &[usize]) -> Result<Self> {
        Self::shaped(Tensor::zeros(device, [elements(shape, size_of::<T>())?])?, shape)
    }

    /// A tensor whose elements have no particular value until a kernel writes them. (Reading them is safe.)
    ///
    /// # Errors
    /// As [`Tensor::uninit`].
    pub fn uninit(device: &Device, shape: &[usize]) -> Result<Self> {
        Self::shaped(Tensor::uninit(device, [elements(shape, size_of::<T>())?])?, shape)
    }

    fn shaped(flat: Tensor<T, 1>, shape: &[usize]) -> Result<Self> {
        let layout = flat.layout.reshape(shape.to_vec(), size_of::<T>())?;
        Ok(Self { flat, layout })
    }

    /// The same tensor with a rank that is part of its type. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::Rank`] with both ranks; the tensor is then dropped.
    pub fn into_rank<const R: usize>(self) -> Result<Tensor<T, R>> {
        self.flat.reshape(fixed::<R>(&self.layout)?.shape)
    }

    /// The whole tensor with a rank that is part of its type, to read.
    ///
    /// # Errors
    /// [`Error::Rank`] with both ranks.
    pub fn as_rank<const R: usize>(&self) -> Result<TensorRef<'_, T, R>> {
        self.view().into_rank()
    }

    /// The whole tensor with a rank that is part of its type, to write.
    ///
    /// # Errors
    /// [`Error::Rank`] with both ranks.
    pub fn as_rank_mut<const R: usize>(&mut self) -> Result<TensorMut<'_, T, R>> {
        self.view_mut().into_rank()
    }

    /// The whole tensor, to read.
    pub fn view(&self) -> DynTensorRef<'_, T> {
        DynTensorRef::new(Arc::clone(&self.flat.allocation), self.layout.clone())
    }

    /// The whole tensor, to write.
    pub fn view_mut(&mut self) -> DynTensorMut<'_, T> {
        DynTensorMut::new(Arc::clone(&self.flat.allocation), self.layout.clone())
    }

    /// The elements in row-major order, after every launch that writes them.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.flat.to_vec()
    }

    /// Replaces all elements; in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::copy_from_slice`].
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<()> {
        scatter(&self.flat.allocation, &self.layout, elements)
    }

    /// The same elements under another shape, in row-major order. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::Length`] if the shape has another number of elements.
    pub fn reshape(self, shape: &[usize]) -> Result<Self> {
        Self::shaped(self.flat, shape)
    }

    /// A copy with memory of its own, on the same device.
    ///
    /// # Errors
    /// As [`Tensor::try_clone`].
    pub fn try_clone(&self) -> Result<Self> {
        self.to_device(self.device())
    }

    /// A copy on a device, which may be another one.
    ///
    /// # Errors
    /// As [`Tensor::to_device`].
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        self.view().to_tensor(device)
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// Extent of each axis, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// Distance between neighbours along each axis, in elements.
    pub fn strides(&self) -> &[usize] {
        &self.layout.strides
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device it lives on.
    pub fn device(&self) -> &Device {
        self.flat.device()
    }
}

impl<T: Element, const R: usize> Tensor<T, R> {
    /// The same tensor with a rank that is known at run time only. Nothing is copied.
    pub fn into_dyn(self) -> DynTensor<T> {
        let layout = open(&self.layout);
        let flat = Layout::row_major([self.layout.len()]);
        let flat = Tensor { allocation: self.allocation, layout: flat, device: self.device, element: PhantomData };
        DynTensor { flat, layout }
    }
}

impl<T: Element, const R: usize> From<Tensor<T, R>> for DynTensor<T> {
    fn from(tensor: Tensor<T, R>) -> Self {
        tensor.into_dyn()
    }
}

impl<T: Element, const R: usize> TryFrom<DynTensor<T>> for Tensor<T, R> {
    type Error = Error;

    fn try_from(tensor: DynTensor<T>) -> Result<Self> {
        tensor.into_rank()
    }
}

macro_rules! views {
    ($($view:ident, $fixed:ident;)*) => { $(
        impl<'m, T: Element> $view<'m, T> {
            fn new(allocation: Arc<Allocation>, layout: Layout<Vec<usize>>) -> Self {
                Self { allocation, layout, owner: PhantomData, element: PhantomData }
            }

            /// The same elements with a rank that is part of the type.
            ///
            /// # Errors
            /// [`Error::Rank`] with both ranks.
            pub fn into_rank<const R: usize>(self) -> Result<$fixed<'m, T, R>> {
                let layout = fixed(&self.layout)?;
                Ok($fixed::new(self.allocation, layout))
            }

            /// Part of an axis: `0..4`, `..4`, `2..`, `..=3` or `..`.
            ///
            /// # Errors
            /// [`Error::Axis`] or [`Error::Range`].
            pub fn slice(self, axis: usize, range: impl RangeBounds<usize>) -> Result<Self> {
                Ok(Self { layout: self.layout.slice(axis, range)?, ..self })
            }

            /// Every `step`-th position of an axis, from its first.
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
            pub fn permute(self, axes: &[usize]) -> Result<Self> {
                Ok(Self { layout: self.layout.permute(axes)?, ..self })
            }

            /// The same elements under another shape, in row-major order of the view's axes.
            ///
            /// # Errors
            /// As [`TensorRef::reshape`].
            pub fn reshape(self, shape: &[usize]) -> Result<Self> {
                Ok(Self { layout: self.layout.reshape(shape.to_vec(), size_of::<T>())?, ..self })
            }

            /// The elements in row-major order of the view's axes, after every launch that writes them.
            ///
            /// # Errors
            /// A driver failure, among them the error of an earlier launch.
            pub fn to_vec(&self) -> Result<Vec<T>> {
                gather(&self.parts()).map(|bytes| T::decode(&bytes))
            }

            /// A row-major and contiguous copy on a device, which may be another one.
            ///
            /// # Errors
            /// As [`TensorRef::to_tensor`].
            pub fn to_tensor(&self, device: &Device) -> Result<DynTensor<T>> {
                DynTensor::shaped(copied(&self.parts(), [self.len()], device)?, self.shape())
            }

            /// Number of axes.
            pub fn rank(&self) -> usize {
                self.layout.rank()
            }

            /// Extent of each axis, outermost first.
            pub fn shape(&self) -> &[usize] {
                &self.layout.shape
            }

            /// Distance between neighbours along each axis, in elements.
            pub fn strides(&self) -> &[usize] {
                &self.layout.strides
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

        impl<'m, T: Element, const R: usize> $fixed<'m, T, R> {
            /// The same view with a rank that is known at run time only.
            pub fn into_dyn(self) -> $view<'m, T> {
                let (allocation, layout) = self.into_layout();
                $view::new(allocation, open(&layout))
            }
        }

        impl<T: Element> fmt::Debug for $view<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Layout { shape, strides, .. } = &self.layout;
                write!(f, concat!(stringify!($view), "<{}>{:?} with strides {:?}"), T::TYPE, shape, strides)
            }
        }

        impl<T: Element> Sealed for $view<'_, T> {
            fn parts(&self) -> Parts<'_> {
                Parts::new(&self.allocation, &self.layout, T::TYPE)
            }
        }

        /// Of any rank: a launch refuses another one than the parameter's.
        impl<T: Element, const R: usize> Input<T, R> for $view<'_, T> {}
    )* };
}

views! {
    DynTensorRef, TensorRef;
    DynTensorMut, TensorMut;
}

impl<T> Clone for DynTensorRef<'_, T> {
    fn clone(&self) -> Self {
        let (allocation, layout) = (Arc::clone(&self.allocation), self.layout.clone());
        Self { allocation, layout, owner: PhantomData, element: PhantomData }
    }
}

impl<T: Element> DynTensorMut<'_, T> {
    /// The two parts of an axis before and from `at`.
    ///
    /// # Errors
    /// [`Error::Axis`], or [`Error::Range`] if `at` lies beyond the axis.
    pub fn split_at(self, axis: usize, at: usize) -> Result<(Self, Self)> {
        let (first, second) = self.layout.split_at(axis, at)?;
        Ok((Self::new(Arc::clone(&self.allocation), first), Self::new(self.allocation, second)))
    }

    /// The same tensor, to write, for a shorter time.
    pub fn reborrow(&mut self) -> DynTensorMut<'_, T> {
        DynTensorMut::new(Arc::clone(&self.allocation), self.layout.clone())
    }

    /// Replaces all elements; in row-major order of the view's axes. Writes no other byte of the owner.
    ///
    /// # Errors
    /// [`Error::Length`]; a driver failure.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<()> {
        scatter(&self.allocation, &self.layout, elements)
    }
}

impl<T: Element> fmt::Debug for DynTensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynTensor<{}>{:?} on {}", T::TYPE, self.layout.shape, self.device().name())
    }
}

impl<T: Element> Sealed for DynTensor<T> {
    fn parts(&self) -> Parts<'_> {
        Parts::new(&self.flat.allocation, &self.layout, T::TYPE)
    }
}

/// Of any rank: a launch refuses another one than the parameter's.
impl<T: Element, const R: usize> Input<T, R> for DynTensor<T> {}
/// Of any rank: a launch refuses another one than the parameter's.
impl<T: Element, const R: usize> Output<T, R> for DynTensor<T> {}
/// Of any rank: a launch refuses another one than the parameter's.
impl<T: Element, const R: usize> Output<T, R> for DynTensorMut<'_, T> {}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::EmulatorOptions;

    #[test]
    fn ranks_come_and_go_without_copies() {
        let device = Device::emulator(EmulatorOptions::default());
        let x = Tensor::from_slice(&device, &[1_u16, 2, 3, 4, 5, 6], [3, 2]).unwrap();
        let allocation = Arc::clone(&x.allocation);
        let x = DynTensor::from(x);
        assert_eq!((x.rank(), x.shape(), x.strides(), x.len()), (2, &[3, 2][..], &[2, 1][..], 6));
        assert!(Arc::ptr_eq(x.parts().allocation, &allocation));
        assert_eq!(x.as_rank::<2>().unwrap().to_vec().unwrap(), [1, 2, 3, 4, 5, 6]);
        let wrong = Error::Rank { shape: vec![3, 2], expected: 1, found: 2 };
        assert_eq!(x.as_rank::<1>().unwrap_err(), wrong);
        assert_eq!(wrong.to_string(), "a tensor of shape [3, 2] has rank 2, not 1");
        let mut x = x.reshape(&[1, 6, 1]).unwrap();
        assert!(matches!(x.as_rank_mut::<2>(), Err(Error::Rank { expected: 2, found: 3, .. })));
        x.as_rank_mut::<3>().unwrap().copy_from_slice(&[6, 5, 4, 3, 2, 1]).unwrap();
        let x = Tensor::<u16, 3>::try_from(x).unwrap();
        assert!(Arc::ptr_eq(&x.allocation, &allocation));
        assert_eq!((x.shape(), x.to_vec().unwrap()), ([1, 6, 1], vec![6, 5, 4, 3, 2, 1]));
        let part = x.view().slice(1, 2..5).unwrap().into_dyn();
        assert_eq!((part.shape(), part.to_vec().unwrap()), (&[1, 3, 1][..], vec![4, 3, 2]));
        let point = DynTensor::from_slice(&device, &[7_i64], &[]).unwrap();
        assert_eq!((point.rank(), point.to_string()), (0, "7".to_owned()));
        assert_eq!(point.into_rank::<0>().unwrap().to_vec().unwrap(), [7]);
        let empty = DynTensor::<f32>::zeros(&device, &[2, 0, 3]).unwrap();
        assert!(empty.is_empty() && empty.into_rank::<3>().unwrap().is_empty());
    }

    #[test]
    fn views_are_those_of_known_ranks() {
        let device = Device::emulator(EmulatorOptions::default());
        let numbers: Vec<i32> = (0..60).collect();
        let mut x = DynTensor::from_slice(&device, &numbers, &[3, 4, 5]).unwrap();
        let part = x.view().slice(2, 1..).unwrap().step(2, 2).unwrap().permute(&[2, 0, 1]).unwrap();
        let fixed = x.as_rank::<3>().unwrap().slice(2, 1..).unwrap().step(2, 2).unwrap().permute([2, 0, 1]).unwrap();
        assert_eq!((part.shape(), part.strides()), (&fixed.shape()[..], &fixed.strides()[..]));
        assert_eq!(part.to_vec().unwrap(), fixed.to_vec().unwrap());
        assert_eq!(part.to_tensor(&device).unwrap().to_vec().unwrap(), fixed.to_vec().unwrap());
        assert_eq!(part.to_string(), fixed.to_string());
        assert_eq!(format!("{part:?}"), "DynTensorRef<i32>[2, 3, 4] with strides [2, 20, 5]");
        assert_eq!(format!("{x:?}"), "DynTensor<i32>[3, 4, 5] on emulator");
        assert!(matches!(part.clone().reshape(&[24]), Err(Error::Layout { operation: "reshape", .. })));
        assert_eq!(part.clone().permute(&[0, 1]).unwrap_err(), Error::Permutation { axes: vec![0, 1] });
        assert_eq!(part.clone().permute(&[0, 1, 1]).unwrap_err(), Error::Permutation { axes: vec![0, 1, 1] });
        assert_eq!(part.slice(3, ..).unwrap_err(), Error::Axis { axis: 3, rank: 3 });
        let (_, mut right) = x.view_mut().split_at(1, 3).unwrap();
        right.reborrow().copy_from_slice(&[-1; 15]).unwrap();
        right.slice(0, ..1).unwrap().copy_from_slice(&[-2; 5]).unwrap();
        let found = x.try_clone().unwrap().to_vec().unwrap();
        let expected = |at: i32| {
            if at % 20 < 15 {
                at
            } else if at < 20 {
                -2
            } else {
                -1
            }
        };
        assert!((0..).zip(&found).all(|(at, found)| *found == expected(at)), "{found:?}");
        assert!(matches!(x.copy_from_slice(&[0; 59]), Err(Error::Length { expected: 60, found: 59, .. })));
        assert!(matches!(DynTensor::<f32>::zeros(&device, &[usize::MAX, 2]), Err(Error::TooLarge { .. })));
        assert!(matches!(DynTensor::from_slice(&device, &[1.0_f32; 5], &[2, 3]), Err(Error::Length { .. })));
    }
}

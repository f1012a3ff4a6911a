//! Tensors from arrays of the crate `ndarray`, and back: the feature `ndarray`.
//!
//! Elements are copied, in the order of indices. So arrays have any strides: those of a transposed array, of one that
//! is reversed (a negative stride is copied, not refused), and of one that is broadcast (a stride of 0). Tensors are
//! row-major and contiguous, and so are the arrays that come back.

use std::borrow::Cow;

use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, Dim, Dimension, IxDyn};

use super::{DynTensor, DynTensorMut, DynTensorRef, Tensor, TensorMut, TensorRef};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};

/// The elements in row-major order; without a copy, if that is how they lie.
fn row_by_row<'a, T: Element, D: Dimension>(array: &ArrayView<'a, T, D>) -> Cow<'a, [T]> {
    match array.to_slice() {
        Some(elements) => Cow::Borrowed(elements),
        None => Cow::Owned(array.iter().copied().collect()),
    }
}

/// An array of these elements, which are as many as its dimension has.
fn array<T, D: Dimension>(dimension: D, elements: Vec<T>) -> Result<Array<T, D>> {
    let failed = |e: ndarray::ShapeError| Error::Layout { operation: "to_ndarray", reason: e.to_string() };
    Array::from_shape_vec(dimension, elements).map_err(failed)
}

/// A shape as the dimension of an array whose type has its rank.
fn dimension<D: Dimension>(shape: &[usize]) -> D {
    let mut dimension = D::default();
    dimension.slice_mut().copy_from_slice(shape);
    dimension
}

/// The shape of an array whose type has its rank.
fn shape<const R: usize>(shape: &[usize]) -> Result<[usize; R]> {
    shape.try_into().map_err(|_| Error::Rank { shape: shape.to_vec(), expected: R, found: shape.len() })
}

impl<T: Element, const R: usize> Tensor<T, R>
where
    Dim<[usize; R]>: Dimension,
{
    /// A copy of an array of `ndarray`, with any strides: reversed axes are copied as they are indexed.
    ///
    /// ```
    /// # use tilewright::{Device, EmulatorOptions, Tensor};
    /// # fn main() -> tilewright::Result<()> {
    /// let device = Device::emulator(EmulatorOptions::default());
    /// let array = ndarray::array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// let x = Tensor::from_ndarray(&device, array.t())?;
    /// assert_eq!(x.to_vec()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// assert_eq!(x.to_ndarray()?, array.t());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::from_slice`].
    pub fn from_ndarray(device: &Device, array: ArrayView<'_, T, Dim<[usize; R]>>) -> Result<Self> {
        Self::from_slice(device, &row_by_row(&array), shape(array.shape())?)
    }

    /// Replaces all elements by those of an array of the same shape, with any strides.
    ///
    /// # Errors
    /// [`Error::Layout`] for another shape; a driver failure.
    pub fn copy_from_ndarray(&mut self, array: ArrayView<'_, T, Dim<[usize; R]>>) -> Result<()> {
        same(array.shape(), &self.shape())?;
        self.copy_from_slice(&row_by_row(&array))
    }
}

impl<T: Element> DynTensor<T> {
    /// A copy of an array of `ndarray`, with any strides: `array.view().into_dyn()`.
    ///
    /// # Errors
    /// As [`Self::from_slice`].
    pub fn from_ndarray(device: &Device, array: ArrayViewD<'_, T>) -> Result<Self> {
        Self::from_slice(device, &row_by_row(&array), array.shape())
    }

    /// Replaces all elements by those of an array of the same shape, with any strides.
    ///
    /// # Errors
    /// [`Error::Layout`] for another shape; a driver failure.
    pub fn copy_from_ndarray(&mut self, array: ArrayViewD<'_, T>) -> Result<()> {
        same(array.shape(), self.shape())?;
        self.copy_from_slice(&row_by_row(&array))
    }
}

/// The shape of an array is that of the tensor.
fn same(array: &[usize], tensor: &[usize]) -> Result<()> {
    let reason = || format!("the array has shape {array:?}, the tensor {tensor:?}");
    if array == tensor { Ok(()) } else { Err(Error::Layout { operation: "copy_from_ndarray", reason: reason() }) }
}

macro_rules! to_array {
    ($($tensor:ty),*) => { $(
        impl<T: Element, const R: usize> $tensor
        where
            Dim<[usize; R]>: Dimension,
        {
            /// The elements as an array of `ndarray`, row-major, after every launch that writes them.
            ///
            /// # Errors
            /// A driver failure, among them the error of an earlier launch.
            pub fn to_ndarray(&self) -> Result<Array<T, Dim<[usize; R]>>> {
                array(dimension::<Dim<[usize; R]>>(&self.shape()), self.to_vec()?)
            }
        }
    )* };
}

to_array!(Tensor<T, R>, TensorRef<'_, T, R>, TensorMut<'_, T, R>);

macro_rules! to_dynamic_array {
    ($($tensor:ty),*) => { $(
        impl<T: Element> $tensor {
            /// The elements as an array of `ndarray`, row-major, after every launch that writes them.
            ///
            /// # Errors
            /// A driver failure, among them the error of an earlier launch.
            pub fn to_ndarray(&self) -> Result<ArrayD<T>> {
                array(IxDyn(self.shape()), self.to_vec()?)
            }
        }
    )* };
}

to_dynamic_array!(DynTensor<T>, DynTensorRef<'_, T>, DynTensorMut<'_, T>);

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use ndarray::{Array1, Array3, Axis, Ix0, Ix6, s};

    use super::*;
    use crate::EmulatorOptions;

    #[test]
    fn arrays_of_all_strides_survive_the_device() {
        let device = Device::emulator(EmulatorOptions::default());
        let whole = Array3::from_shape_fn([3, 4, 5], |(i, j, k)| (100 * i + 10 * j + k) as i32);
        let row = Array1::from_iter(0..5);
        let views = [
            whole.view(),
            whole.view().reversed_axes(),
            whole.view().permuted_axes([1, 2, 0]),
            whole.slice(s![.., ..;-1, ..]),
            whole.slice(s![..;-2, 1..3, ..;-1]),
            whole.slice(s![1.., ..;2, 1..;3]),
            whole.slice(s![.., 2..2, ..]),
            whole.slice(s![1..2, .., 3..4]),
            row.broadcast([2, 3, 5]).expect("rows repeat"),
        ];
        for view in views {
            let x = Tensor::from_ndarray(&device, view).unwrap();
            assert_eq!(&x.shape()[..], view.shape());
            // The order of indices, element by element.
            let found = x.to_vec().unwrap();
            let indices = view.indexed_iter().map(|(at, _)| view[at]);
            assert!(indices.eq(found), "{view:?}");
            assert_eq!(x.to_ndarray().unwrap(), view);
            let x = DynTensor::from_ndarray(&device, view.into_dyn()).unwrap();
            assert_eq!(x.to_ndarray().unwrap(), view.into_dyn());
            assert!(x.to_ndarray().unwrap().is_standard_layout());
        }
        let x = Tensor::from_ndarray(&device, whole.view()).unwrap();
        let columns = x.view().permute([2, 0, 1]).unwrap();
        assert_eq!(columns.to_ndarray().unwrap(), whole.view().permuted_axes([2, 0, 1]));
        assert_eq!(x.slice(0, 1..2).unwrap().to_ndarray().unwrap(), whole.slice(s![1..2, .., ..]));
    }

    #[test]
    fn arrays_have_every_rank_and_type() {
        let device = Device::emulator(EmulatorOptions::default());
        let point = ndarray::arr0(true);
        assert_eq!(Tensor::from_ndarray(&device, point.view()).unwrap().to_ndarray().unwrap(), point);
        let six = Array::<half::f16, Ix6>::from_elem([1, 2, 1, 2, 1, 3], half::f16::from_f32(0.5));
        assert_eq!(Tensor::from_ndarray(&device, six.view()).unwrap().to_ndarray().unwrap(), six);
        let none: Array<u8, Ix0> = Tensor::from_slice(&device, &[9], []).unwrap().to_ndarray().unwrap();
        assert_eq!(none.into_scalar(), 9);
        let deep = ArrayD::from_elem(IxDyn(&[1; 9]), 1.5_f64);
        assert_eq!(DynTensor::from_ndarray(&device, deep.view()).unwrap().to_ndarray().unwrap(), deep);
    }

    #[test]
    fn elements_are_replaced_by_those_of_the_same_shape() {
        let device = Device::emulator(EmulatorOptions::default());
        let mut x = Tensor::<u32, 2>::zeros(&device, [2, 3]).unwrap();
        let mut array = ndarray::array![[1, 2], [3, 4], [5, 6]];
        x.copy_from_ndarray(array.t()).unwrap();
        assert_eq!(x.to_vec().unwrap(), [1, 3, 5, 2, 4, 6]);
        let wrong = x.copy_from_ndarray(array.view()).unwrap_err();
        assert_eq!(wrong.to_string(), "copy_from_ndarray: the array has shape [3, 2], the tensor [2, 3]");
        array.invert_axis(Axis(0));
        let mut x = x.into_dyn().reshape(&[3, 2]).unwrap();
        x.copy_from_ndarray(array.view().into_dyn()).unwrap();
        assert_eq!(x.to_vec().unwrap(), [5, 6, 3, 4, 1, 2]);
        assert!(x.copy_from_ndarray(array.t().into_dyn()).is_err());
    }
}

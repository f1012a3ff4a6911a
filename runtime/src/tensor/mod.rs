//! Tensors: owned, borrowed, strided, foreign; and what makes them arguments of kernels.

mod argument;
mod dynamic;
mod layout;
mod view;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

pub use argument::{Input, Output};
pub(crate) use argument::{Parts, Sealed};
pub use dynamic::DynamicTensor;
pub(crate) use layout::{Layout, elements};
pub(crate) use view::gather;
pub use view::{TensorMut, TensorRef};

use crate::device::Device;
#[cfg(feature = "cuda")]
use crate::device::DeviceInner;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::memory::Allocation;

/// A tensor on a device, row-major and contiguous, that owns its memory.
///
/// Rank 0 is one element. Its memory is freed when the last of the tensor, its prepared launches and its running
/// launches is gone; none of them needs to be waited for.
pub struct Tensor<T: Element, const R: usize> {
    allocation: Arc<Allocation>,
    layout: Layout<R>,
    device: Device,
    element: PhantomData<fn() -> T>,
}

impl<T: Element, const R: usize> Tensor<T, R> {
    /// A tensor with these elements, in row-major order.
    ///
    /// # Errors
    /// [`Error::Length`] if the slice does not have as many elements as the shape; too little memory; a driver failure.
    pub fn from_slice(device: &Device, elements: &[T], shape: [usize; R]) -> Result<Self> {
        check_length(&shape, elements.len(), size_of::<T>())?;
        let tensor = Self::uninit(device, shape)?;
        tensor.allocation.write(0, &T::encode(elements))?;
        Ok(tensor)
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// Too little memory; a driver failure.
    pub fn zeros(device: &Device, shape: [usize; R]) -> Result<Self> {
        let tensor = Self::uninit(device, shape)?;
        tensor.allocation.zero()?;
        Ok(tensor)
    }

    /// A tensor whose elements have no particular value until a kernel writes them. (Reading them is safe.)
    ///
    /// # Errors
    /// Too little memory; a driver failure.
    pub fn uninit(device: &Device, shape: [usize; R]) -> Result<Self> {
        let bytes = elements(&shape, size_of::<T>())? * size_of::<T>();
        let allocation = Arc::new(Allocation::new(device.inner(), bytes)?);
        let layout = Layout::row_major(shape);
        Ok(Self { allocation, layout, device: device.clone(), element: PhantomData })
    }

    /// The elements in row-major order, after every launch that writes them.
    ///
    /// # Errors
    /// A driver failure, among them the error of an earlier launch.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let bytes = self.allocation.read(0, self.layout.len() * size_of::<T>())?;
        Ok(T::decode(&bytes))
    }

    /// Replaces all elements; in row-major order.
    ///
    /// # Errors
    /// [`Error::Length`]; a driver failure.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<()> {
        check_length(&self.layout.shape, elements.len(), size_of::<T>())?;
        self.allocation.write(0, &T::encode(elements))
    }

    /// The whole tensor, to read.
    pub fn view(&self) -> TensorRef<'_, T, R> {
        TensorRef::new(Arc::clone(&self.allocation), self.layout)
    }

    /// The whole tensor, to write.
    pub fn view_mut(&mut self) -> TensorMut<'_, T, R> {
        TensorMut::new(Arc::clone(&self.allocation), self.layout)
    }

    /// The two parts of an axis before and from `at`, to write independently.
    ///
    /// # Errors
    /// [`Error::Axis`], or [`Error::Range`] if `at` lies beyond the axis.
    pub fn split_at_mut(&mut self, axis: usize, at: usize) -> Result<(TensorMut<'_, T, R>, TensorMut<'_, T, R>)> {
        self.view_mut().split_at(axis, at)
    }

    /// Part of an axis, to read; short for `view().slice(axis, range)`.
    ///
    /// # Errors
    /// As [`TensorRef::slice`].
    pub fn slice(&self, axis: usize, range: Range<usize>) -> Result<TensorRef<'_, T, R>> {
        self.view().slice(axis, range)
    }

    /// Extent of each axis, outermost first.
    pub fn shape(&self) -> [usize; R] {
        self.layout.shape
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
        &self.device
    }

    /// Adopts a slice of `cudarc`, whose memory must belong to the device's primary context.
    ///
    /// # Errors
    /// [`Error::Length`] if the slice does not have as many elements as the shape (the slice is then dropped);
    /// [`Error::Layout`] for another context; a driver failure.
    #[cfg(feature = "cuda")]
    pub fn from_cudarc(slice: cudarc::driver::CudaSlice<T>, shape: [usize; R]) -> Result<Self> {
        check_length(&shape, slice.len(), size_of::<T>())?;
        let bytes = slice.len() * size_of::<T>();
        let (context, block) = crate::cuda::adopt(slice)?;
        let device = Device::over(DeviceInner::Cuda(context))?;
        let allocation = Arc::new(Allocation::over(block, device.inner(), bytes));
        Ok(Self { allocation, layout: Layout::row_major(shape), device, element: PhantomData })
    }

    /// Gives the memory to `cudarc`, ordered after all launches that use it.
    ///
    /// # Errors
    /// [`Error::Layout`] if the tensor lives on the emulator, or a prepared launch still holds its memory.
    #[cfg(feature = "cuda")]
    pub fn into_cudarc(self) -> Result<cudarc::driver::CudaSlice<T>> {
        let failed = |reason: &str| Error::Layout { operation: "into_cudarc", reason: reason.to_owned() };
        let len = self.layout.len();
        let allocation =
            Arc::into_inner(self.allocation).ok_or_else(|| failed("a prepared launch holds the memory"))?;
        let block = allocation.into_cuda().ok_or_else(|| failed("the tensor lives on the emulator"))?;
        crate::cuda::release(block, len)
    }
}

/// The number of elements of a slice fits a shape.
fn check_length(shape: &[usize], found: usize, element_bytes: usize) -> Result<()> {
    let expected = elements(shape, element_bytes)?;
    if found == expected { Ok(()) } else { Err(Error::Length { shape: shape.to_vec(), expected, found }) }
}

impl<T: Element, const R: usize> fmt::Debug for Tensor<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}, {R}>{:?} on {}", T::TYPE, self.layout.shape, self.device.name())
    }
}

impl<T: Element, const R: usize> Sealed for Tensor<T, R> {
    fn parts(&self) -> Parts<'_> {
        Parts::new(&self.allocation, &self.layout, T::TYPE)
    }
}

impl<T: Element, const R: usize> Input<T, R> for Tensor<T, R> {}
impl<T: Element, const R: usize> Output<T, R> for Tensor<T, R> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EmulatorOptions, Graph, Prepared, Stream};

    #[test]
    fn handles_cross_threads() {
        fn check<T: Send + Sync>() {}
        check::<Tensor<f32, 2>>();
        check::<TensorRef<'_, f32, 2>>();
        check::<TensorMut<'_, f32, 2>>();
        check::<(Device, Stream)>();
        check::<(Prepared<'_>, Graph<'_>)>();
    }

    #[test]
    fn elements_survive_the_device() {
        let device = Device::emulator(EmulatorOptions::default());
        let mut x = Tensor::from_slice(&device, &[1_u16, 2, 3, 4, 5, 6], [3, 2]).unwrap();
        assert_eq!(x.to_vec().unwrap(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(x.view().permute([1, 0]).unwrap().to_vec().unwrap(), [1, 3, 5, 2, 4, 6]);
        let (left, mut right) = x.split_at_mut(1, 1).unwrap();
        right.copy_from_slice(&[20, 40, 60]).unwrap();
        assert_eq!(left.to_vec().unwrap(), [1, 3, 5]);
        assert_eq!(x.to_vec().unwrap(), [1, 20, 3, 40, 5, 60]);
        let scalar = Tensor::from_slice(&device, &[true], []).unwrap();
        assert_eq!(scalar.to_vec().unwrap(), [true]);
        assert_eq!(Tensor::<i64, 2>::zeros(&device, [2, 1]).unwrap().to_vec().unwrap(), [0, 0]);
        assert!(Tensor::<f64, 3>::uninit(&device, [2, 0, 7]).unwrap().is_empty());
    }

    #[test]
    fn wrong_lengths_and_absurd_shapes_are_errors() {
        let device = Device::emulator(EmulatorOptions::default());
        let wrong = Tensor::from_slice(&device, &[1.0_f32; 5], [2, 3]);
        assert_eq!(wrong.unwrap_err(), Error::Length { shape: vec![2, 3], expected: 6, found: 5 });
        let mut x = Tensor::<f32, 1>::zeros(&device, [4]).unwrap();
        assert!(matches!(x.copy_from_slice(&[0.0; 3]), Err(Error::Length { .. })));
        assert!(matches!(x.split_at_mut(0, 5), Err(Error::Range { .. })));
        assert!(matches!(x.split_at_mut(1, 0), Err(Error::Axis { .. })));
        assert!(matches!(Tensor::<f32, 2>::zeros(&device, [usize::MAX, 2]), Err(Error::TooLarge { .. })));
        assert!(matches!(Tensor::<f32, 1>::zeros(&device, [1 << 40]), Err(Error::OutOfMemory { .. })));
    }
}

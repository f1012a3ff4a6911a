//! Tensors: owned, borrowed, strided, foreign; and what makes them arguments of kernels.

mod any_rank;
mod argument;
mod display;
mod dynamic;
mod layout;
#[cfg(feature = "ndarray")]
mod ndarray;
mod view;

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

pub use any_rank::{DynTensor, DynTensorMut, DynTensorRef};
pub use argument::{Input, Output};
pub(crate) use argument::{Parts, Sealed};
pub use dynamic::DynamicTensor;
pub(crate) use layout::{Layout, elements, run};
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
    layout: Layout<[usize; R]>,
    device: Device,
    element: PhantomData<fn() -> T>,
}

/// Elements that are written at one time.
const PIECE: usize = 1 << 16;

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

    /// The same of a vector: all of its elements are the tensor's, in row-major order.
    ///
    /// # Errors
    /// As [`Self::from_slice`].
    pub fn from_vec(device: &Device, elements: Vec<T>, shape: [usize; R]) -> Result<Self> {
        Self::from_slice(device, &elements, shape)
    }

    /// A tensor all of whose elements are the same.
    ///
    /// # Errors
    /// Too little memory, on the host as well; a driver failure.
    pub fn full(device: &Device, element: T, shape: [usize; R]) -> Result<Self>
    where
        T: Copy,
    {
        let tensor = Self::uninit(device, shape)?;
        let count = tensor.len();
        // Piece by piece: a large tensor has no copy on the host.
        let piece = T::encode(&vec![element; count.min(PIECE)]);
        for start in (0..count).step_by(PIECE) {
            let bytes = (count - start).min(PIECE) * size_of::<T>();
            tensor.allocation.write(start * size_of::<T>(), &piece[..bytes])?;
        }
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

    /// Copies the elements to a slice, in row-major order, after every launch that writes them.
    ///
    /// # Errors
    /// [`Error::Length`]; a driver failure, among them the error of an earlier launch.
    pub fn copy_to_slice(&self, elements: &mut [T]) -> Result<()>
    where
        T: Copy,
    {
        self.view().copy_to_slice(elements)
    }

    /// The same elements under another shape, in row-major order. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::Length`] if the shape has another number of elements.
    pub fn reshape<const S: usize>(self, shape: [usize; S]) -> Result<Tensor<T, S>> {
        let layout = self.layout.reshape(shape, size_of::<T>())?;
        Ok(Tensor { allocation: self.allocation, layout, device: self.device, element: PhantomData })
    }

    /// A copy with memory of its own, on the same device.
    ///
    /// # Errors
    /// Too little memory; a driver failure.
    pub fn try_clone(&self) -> Result<Self> {
        self.view().to_tensor(&self.device)
    }

    /// A copy on a device, which may be another one: then it goes by way of the host.
    ///
    /// # Errors
    /// As [`Self::try_clone`].
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        self.view().to_tensor(device)
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
    pub fn slice(&self, axis: usize, range: impl RangeBounds<usize>) -> Result<TensorRef<'_, T, R>> {
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
pub(crate) fn check_length(shape: &[usize], found: usize, element_bytes: usize) -> Result<()> {
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

    #[test]
    fn ranges_are_those_of_rust() {
        let device = Device::emulator(EmulatorOptions::default());
        let x = Tensor::from_vec(&device, vec![0, 1, 2, 3, 4, 5], [6]).unwrap();
        let of = |view: Result<TensorRef<'_, i32, 1>>| view.and_then(|view| view.to_vec());
        assert_eq!(of(x.slice(0, ..)).unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of(x.slice(0, 4..)).unwrap(), [4, 5]);
        assert_eq!(of(x.slice(0, ..2)).unwrap(), [0, 1]);
        assert_eq!(of(x.slice(0, 1..=3)).unwrap(), [1, 2, 3]);
        assert_eq!(of(x.slice(0, ..=5)).unwrap(), x.to_vec().unwrap());
        assert!(of(x.slice(0, 6..)).unwrap().is_empty());
        for wrong in [of(x.slice(0, 7..)), of(x.slice(0, ..=6)), of(x.slice(0, ..=usize::MAX))] {
            assert!(matches!(wrong, Err(Error::Range { extent: 6, .. })), "{wrong:?}");
        }
    }

    #[test]
    fn shapes_change_and_copies_are_apart() {
        let device = Device::emulator(EmulatorOptions::default());
        let mut x = Tensor::from_vec(&device, vec![1, 2, 3, 4, 5, 6], [2, 3]).unwrap();
        let copy = x.try_clone().unwrap();
        let columns = x.view().permute([1, 0]).unwrap();
        assert!(matches!(columns.clone().reshape([6]), Err(Error::Layout { operation: "reshape", .. })));
        let columns = columns.to_tensor(&device).unwrap();
        x.copy_from_slice(&[0; 6]).unwrap();
        assert_eq!(copy.to_vec().unwrap(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(columns.reshape([6]).unwrap().to_vec().unwrap(), [1, 4, 2, 5, 3, 6]);
        let row = copy.slice(0, 1..).unwrap().reshape([3, 1]).unwrap();
        assert_eq!((row.shape(), row.to_vec().unwrap()), ([3, 1], vec![4, 5, 6]));
        let mut found = [0; 3];
        row.copy_to_slice(&mut found).unwrap();
        assert_eq!(found, [4, 5, 6]);
        assert!(matches!(row.copy_to_slice(&mut found[..2]), Err(Error::Length { .. })));
        assert!(matches!(copy.reshape([4]), Err(Error::Length { expected: 4, found: 6, .. })));
        let other = Device::emulator(EmulatorOptions::default());
        assert_eq!(x.to_device(&other).unwrap().to_vec().unwrap(), [0; 6]);
        let many = Tensor::full(&device, 1.5_f64, [PIECE + 7]).unwrap();
        assert!(many.to_vec().unwrap().iter().all(|x| *x == 1.5));
        x.view_mut().reshape([6]).unwrap().copy_from_slice(&[6, 5, 4, 3, 2, 1]).unwrap();
        assert_eq!(x.to_vec().unwrap(), [6, 5, 4, 3, 2, 1]);
    }
}

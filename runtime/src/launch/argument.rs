//! Arguments as the generated code passes them.

use std::marker::PhantomData;
use std::sync::Arc;

use tilewright_kernel::ElementType;

use crate::device::Device;
use crate::element::Element;
use crate::error::Result;
use crate::memory::Allocation;
use crate::tensor::{Input, Output, Parts, gather};

/// One argument of a launch. `'m` bounds foreign memory; owned memory is kept alive by the argument.
pub struct Arg<'m> {
    pub(crate) given: Given,
    memory: PhantomData<&'m ()>,
}

impl<'m> Arg<'m> {
    /// A scalar parameter.
    pub fn scalar<T: Element>(value: &T) -> Self {
        Self { given: Given::Scalar { element: T::TYPE, bits: value.bits() }, memory: PhantomData }
    }

    /// A tensor that the kernel reads.
    pub fn input<T, const R: usize>(tensor: &(dyn Input<T, R> + 'm)) -> Self {
        Self::tensor(&tensor.parts(), false)
    }

    /// A tensor that the kernel writes.
    pub fn output<T, const R: usize>(tensor: &mut (dyn Output<T, R> + 'm)) -> Self {
        Self::tensor(&tensor.parts(), true)
    }

    /// A scalar of a type that is known at run time only: its bits, zero-extended.
    pub fn scalar_bits(element: ElementType, bits: u64) -> Self {
        Self { given: Given::Scalar { element, bits }, memory: PhantomData }
    }

    /// A tensor of a rank and type that are known at run time only, with memory of its own: `bytes` is what lies from its first
    /// element to its last, gaps included; strides are in elements.
    ///
    /// # Errors
    /// Too little memory; a driver failure.
    pub fn dynamic(
        device: &Device,
        element: ElementType,
        shape: &[i64],
        strides: &[i64],
        bytes: &[u8],
        writable: bool,
    ) -> Result<Self> {
        let allocation = Arc::new(Allocation::new(device.inner(), bytes.len())?);
        allocation.write(0, bytes)?;
        let address = allocation.address();
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        let tensor = GivenTensor { allocation, address, offset: 0, element, shape, strides, writable };
        Ok(Self { given: Given::Tensor(tensor), memory: PhantomData })
    }

    fn tensor(parts: &Parts<'_>, writable: bool) -> Self {
        Self { given: Given::Tensor(GivenTensor::new(parts, writable)), memory: PhantomData }
    }
}

/// What was passed.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// A value.
    Scalar {
        /// Its type.
        element: ElementType,
        /// Its bits, zero-extended.
        bits: u64,
    },
    /// A tensor.
    Tensor(GivenTensor),
}

/// A tensor argument.
#[derive(Clone, Debug)]
pub(crate) struct GivenTensor {
    pub(crate) allocation: Arc<Allocation>,
    /// Address of the first element.
    pub(crate) address: u64,
    /// Offset of the first element in its allocation, in bytes.
    pub(crate) offset: usize,
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<i64>,
    /// In elements; never negative.
    pub(crate) strides: Vec<i64>,
    pub(crate) writable: bool,
}

impl GivenTensor {
    pub(crate) fn new(parts: &Parts<'_>, writable: bool) -> Self {
        // Extents and strides of real memory fit; what does not was made up and fails the checks as the largest number.
        let signed = |sizes: &[usize]| sizes.iter().map(|&s| i64::try_from(s).unwrap_or(i64::MAX)).collect();
        let offset = parts.offset.saturating_mul(parts.element.bytes() as usize);
        Self {
            allocation: Arc::clone(parts.allocation),
            address: parts.allocation.address().saturating_add(offset as u64),
            offset,
            element: parts.element,
            shape: signed(parts.shape),
            strides: signed(parts.strides),
            writable,
        }
    }

    /// The bytes of the elements in row-major order.
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        let sizes = |sizes: &[i64]| -> Vec<usize> { sizes.iter().map(|&s| usize::try_from(s).unwrap_or(0)).collect() };
        let (shape, strides) = (sizes(&self.shape), sizes(&self.strides));
        let offset = self.offset / self.element.bytes() as usize;
        gather(&Parts { allocation: &self.allocation, offset, shape: &shape, strides: &strides, element: self.element })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }
}

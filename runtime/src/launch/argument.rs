//! Arguments as the generated code passes them.

use std::marker::PhantomData;
use std::sync::Arc;

use tilewright_kernel::ElementType;

use crate::element::Element;
use crate::error::Result;
use crate::memory::Allocation;
use crate::tensor::{DynamicTensor, Input, Output, Parts, Sealed, gather};

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

    /// A scalar whose type is known at run time only: its bits, zero-extended.
    pub fn bits(element: ElementType, bits: u64) -> Self {
        Self { given: Given::Scalar { element, bits }, memory: PhantomData }
    }

    /// A tensor whose rank and type are known at run time only.
    pub fn dynamic(tensor: &DynamicTensor, writable: bool) -> Self {
        Self::tensor(&tensor.parts(), writable)
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

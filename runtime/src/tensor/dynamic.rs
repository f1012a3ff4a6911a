//! Tensors whose rank and element type are known at run time only: what the command line passes to a kernel.

use std::sync::Arc;

use tilewright_kernel::ElementType;

use super::argument::{Parts, Sealed};
use super::layout::elements;
use super::view::gather;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::Allocation;

/// A tensor that owns its memory, strided or not.
#[derive(Debug)]
pub struct DynamicTensor {
    allocation: Arc<Allocation>,
    element: ElementType,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl DynamicTensor {
    /// A tensor with these elements: little-endian bytes in row-major order. Strides are in elements; what lies between
    /// the elements is filled with the byte `filler`.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of elements; [`Error::Layout`] if shape and strides differ in length;
    /// [`Error::TooLarge`]; too little memory; a driver failure.
    pub fn new(
        device: &Device,
        element: ElementType,
        (shape, strides): (&[usize], &[usize]),
        bytes: &[u8],
        filler: u8,
    ) -> Result<Self> {
        let size = element.bytes() as usize;
        if shape.len() != strides.len() {
            let reason = format!("shape {shape:?} and strides {strides:?}");
            return Err(Error::Layout { operation: "DynamicTensor::new", reason });
        }
        let expected = elements(shape, size)?;
        if bytes.len() != expected * size {
            return Err(Error::Length { shape: shape.to_vec(), expected, found: bytes.len() / size });
        }
        let too_large = || Error::TooLarge { shape: shape.to_vec(), element_bytes: size };
        let reach = shape.iter().zip(strides).try_fold(1_usize, |end, (&extent, &stride)| {
            end.checked_add(extent.saturating_sub(1).checked_mul(stride)?)
        });
        let span = if expected == 0 { Some(0) } else { reach.and_then(|r| r.checked_mul(size)) };
        let span = span.filter(|&s| s <= isize::MAX as usize).ok_or_else(too_large)?;
        let allocation = Arc::new(Allocation::new(device.inner(), span)?);
        let mut memory = Vec::new();
        let no_memory = |_| Error::OutOfMemory { bytes: span as u64, device: "host".to_owned() };
        memory.try_reserve_exact(span).map_err(no_memory)?;
        memory.resize(span, filler);
        let mut index = vec![0_usize; shape.len()];
        for value in bytes.chunks_exact(size) {
            let at: usize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
            memory[at * size..(at + 1) * size].copy_from_slice(value);
            for (i, &extent) in index.iter_mut().zip(shape).rev() {
                *i += 1;
                if *i < extent {
                    break;
                }
                *i = 0;
            }
        }
        allocation.write(0, &memory)?;
        Ok(Self { allocation, element, shape: shape.to_vec(), strides: strides.to_vec() })
    }

    /// The bytes of the elements in row-major order, after every launch that writes them.
    ///
    /// # Errors
    /// A driver failure, among them the error of an earlier launch.
    pub fn read(&self) -> Result<Vec<u8>> {
        gather(&self.parts())
    }
}

impl Sealed for DynamicTensor {
    fn parts(&self) -> Parts<'_> {
        let Self { allocation, element, shape, strides } = self;
        Parts { allocation, offset: 0, shape, strides, element: *element }
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::emulator::EmulatorOptions;

    #[test]
    fn strided_elements_come_back_in_row_major_order() {
        let device = Device::emulator(EmulatorOptions::default());
        let bytes: Vec<u8> = (0..24).collect();
        // 3 × 4 of two bytes each, columns first, with a gap.
        let tensor = DynamicTensor::new(&device, ElementType::U16, (&[3, 4], &[1, 5]), &bytes, 0xee).unwrap();
        assert_eq!(tensor.read().unwrap(), bytes);
        let raw = tensor.allocation.read(0, 36).unwrap();
        assert_eq!(raw[..12], [0, 1, 8, 9, 16, 17, 0xee, 0xee, 0xee, 0xee, 2, 3]);
        let empty = DynamicTensor::new(&device, ElementType::F64, (&[0, 4], &[4, 1]), &[], 0).unwrap();
        assert_eq!(empty.read().unwrap(), [0_u8; 0]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let device = Device::emulator(EmulatorOptions::default());
        let new = |shape: &[usize], strides: &[usize], bytes: &[u8]| {
            DynamicTensor::new(&device, ElementType::F32, (shape, strides), bytes, 0).map(|_| ())
        };
        assert!(matches!(new(&[2], &[1], &[0; 4]), Err(Error::Length { expected: 2, found: 1, .. })));
        assert!(matches!(new(&[2], &[1, 1], &[0; 8]), Err(Error::Layout { .. })));
        assert!(matches!(new(&[2], &[usize::MAX], &[0; 8]), Err(Error::TooLarge { .. })));
        assert!(matches!(new(&[usize::MAX, 2], &[1, 1], &[]), Err(Error::TooLarge { .. })));
    }
}

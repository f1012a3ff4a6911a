//! Tensor maps, which the driver encodes without a look at memory.

use std::ffi::c_uint;

use tilewright_kernel::tensor_map::{Dimension, ENCODED_BYTES, Fill, Format, MAX_RANK, Promotion, Swizzle, TensorMap};

use super::{give, with};
use crate::machine::{INVALID_VALUE, SUCCESS, Status};

/// The types of elements by the numbers of the driver's enumeration, which are not those in a map: after `FLOAT16` (6)
/// come `FLOAT32`, `FLOAT64` and `BFLOAT16`.
const FORMATS: [Format; 10] = [
    Format::U8,
    Format::U16,
    Format::U32,
    Format::I32,
    Format::U64,
    Format::I64,
    Format::F16,
    Format::F32,
    Format::F64,
    Format::Bf16,
];

/// Promotions by the numbers of the driver's enumeration.
const PROMOTIONS: [Promotion; 4] = [Promotion::None, Promotion::B64, Promotion::B128, Promotion::B256];

/// The entries of a list of the caller.
fn list<T: Copy>(from: *const T, count: usize) -> Vec<T> {
    // SAFETY: the manual asks for lists of as many entries as the rank, of the strides one less.
    (0..count).map(|at| unsafe { from.add(at).read() }).collect()
}

driver! {
    fn cuTensorMapEncodeTiled(
        map: *mut [u8; ENCODED_BYTES],
        element: c_uint,
        rank: c_uint,
        address: u64,
        sizes: *const u64,
        strides: *const u64,
        boxes: *const u32,
        steps: *const u32,
        interleave: c_uint,
        swizzle: c_uint,
        promotion: c_uint,
        fill: c_uint,
    ) -> Status {
        let rank = rank as usize;
        let format = FORMATS.get(element as usize);
        let (swizzle, promotion) = (Swizzle::ALL.get(swizzle as usize), PROMOTIONS.get(promotion as usize));
        let (Some(&format), Some(&swizzle), Some(&promotion)) = (format, swizzle, promotion) else {
            return INVALID_VALUE;
        };
        // Interleaved layouts are of no map of this project.
        if !(1..=MAX_RANK).contains(&rank) || interleave != 0 || fill > 1 {
            return INVALID_VALUE;
        }
        let outer = list(strides, rank - 1);
        let strides: Vec<u64> = std::iter::once(u64::from(format.bytes())).chain(outer).collect();
        let (sizes, boxes, steps) = (list(sizes, rank), list(boxes, rank), list(steps, rank));
        let dimension = |at: usize| Dimension {
            size: sizes[at],
            stride: strides[at],
            box_size: boxes[at],
            element_stride: steps[at],
        };
        let wanted = TensorMap {
            format,
            address,
            dimensions: (0..rank).map(dimension).collect(),
            swizzle,
            fill: if fill == 1 { Fill::Nan } else { Fill::Zero },
            promotion,
        };
        with(|_, _| match wanted.encode() {
            Ok(bytes) => {
                give(map, bytes);
                SUCCESS
            }
            Err(_) => INVALID_VALUE,
        })
    }
}

//! Tensor maps, encoded by the driver: the bits are its own business.

use cudarc::driver::sys;
use tilewright_kernel::tensor_map::{Fill, Format, Promotion, Swizzle, TensorMap};

use super::call;
use super::kernel::Parameter;
use super::probe::probe;
use crate::error::{Error, Result};
use crate::launch::Passed;

/// The parameters of a launch as the driver copies them.
pub(crate) fn parameters(passed: &[Passed]) -> Result<Vec<Parameter>> {
    let one = |passed: &Passed| match passed {
        Passed::Word(word, _) => Ok(Parameter::Word(*word)),
        Passed::Workspace(_) => Ok(Parameter::Word(0)), // none is left
        Passed::Map(map) => encode(map).map(|map| Parameter::Map(Box::new(map))),
    };
    passed.iter().map(one).collect()
}

/// The words of a map as the driver encodes it, in the order of their addresses.
pub(super) fn words(map: &TensorMap) -> Result<Vec<u32>> {
    let encoded = encode(map)?;
    Ok(encoded.opaque.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).collect())
}

/// A map that was checked, encoded.
fn encode(map: &TensorMap) -> Result<sys::CUtensorMap> {
    if !probe()?.tensor_maps {
        return Err(Error::NoCuda { reason: "tensor maps need a driver for CUDA 12.0 or newer".to_owned() });
    }
    let mut encoded = sys::CUtensorMap { opaque: [0; 16] };
    let rank = map.dimensions.len() as u32;
    let sizes: Vec<u64> = map.dimensions.iter().map(|d| d.size).collect();
    // Of the innermost dimension there is no stride.
    let strides: Vec<u64> = map.dimensions.iter().skip(1).map(|d| d.stride).collect();
    let boxes: Vec<u32> = map.dimensions.iter().map(|d| d.box_size).collect();
    let element_strides: Vec<u32> = map.dimensions.iter().map(|d| d.element_stride).collect();
    // SAFETY: the driver writes 128 bytes, aligned to 64; the lists have as many entries as it reads for this rank. It
    // does not access the tensor.
    unsafe {
        call!(cuTensorMapEncodeTiled(
            &raw mut encoded,
            format(map.format),
            rank,
            std::ptr::without_provenance_mut(map.address as usize),
            sizes.as_ptr(),
            strides.as_ptr(),
            boxes.as_ptr(),
            element_strides.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle(map.swizzle),
            promotion(map.promotion),
            fill(map.fill),
        ))
    }?;
    Ok(encoded)
}

fn format(format: Format) -> sys::CUtensorMapDataType {
    use sys::CUtensorMapDataType as T;
    match format {
        Format::U8 => T::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        Format::U16 => T::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        Format::U32 => T::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        Format::I32 => T::CU_TENSOR_MAP_DATA_TYPE_INT32,
        Format::U64 => T::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        Format::I64 => T::CU_TENSOR_MAP_DATA_TYPE_INT64,
        Format::F16 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        Format::F32 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        Format::F64 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        Format::Bf16 => T::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    }
}

fn swizzle(swizzle: Swizzle) -> sys::CUtensorMapSwizzle {
    use sys::CUtensorMapSwizzle as T;
    match swizzle {
        Swizzle::None => T::CU_TENSOR_MAP_SWIZZLE_NONE,
        Swizzle::B32 => T::CU_TENSOR_MAP_SWIZZLE_32B,
        Swizzle::B64 => T::CU_TENSOR_MAP_SWIZZLE_64B,
        Swizzle::B128 => T::CU_TENSOR_MAP_SWIZZLE_128B,
    }
}

fn promotion(promotion: Promotion) -> sys::CUtensorMapL2promotion {
    use sys::CUtensorMapL2promotion as T;
    match promotion {
        Promotion::None => T::CU_TENSOR_MAP_L2_PROMOTION_NONE,
        Promotion::B64 => T::CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
        Promotion::B128 => T::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        Promotion::B256 => T::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
    }
}

fn fill(fill: Fill) -> sys::CUtensorMapFloatOOBfill {
    use sys::CUtensorMapFloatOOBfill as T;
    match fill {
        Fill::Zero => T::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        Fill::Nan => T::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
    }
}

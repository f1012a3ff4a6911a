//! `map:8x32,swizzle128:in:x.npy`: a tensor map over a buffer of its own. The buffer's shape and the box are in C
//! order, the last dimension innermost; the tensor is dense.

use tilewright_kernel::tensor_map::{Dimension, Fill, Format, Promotion, Swizzle, TensorMap};

use super::argument::Buffer;

/// What is copied of the tensor, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Box {
    /// Elements of a box, outermost dimension first.
    pub extents: Vec<u32>,
    /// The permutation of chunks.
    pub swizzle: Swizzle,
    /// What lies outside.
    pub fill: Fill,
}

/// Reads `8x32,swizzle128,nan`.
///
/// # Errors
/// What is wrong, as text.
pub fn parse(text: &str) -> Result<Box, String> {
    let mut parts = text.split(',');
    let extents = parts.next().unwrap_or_default();
    let bad = || format!("`{extents}` is no box, such as 8x32");
    let extents = extents.split('x').map(|part| part.trim().parse().map_err(|_| bad())).collect::<Result<_, _>>()?;
    let mut result = Box { extents, swizzle: Swizzle::None, fill: Fill::Zero };
    for part in parts {
        let span = part.strip_prefix("swizzle").and_then(|span| span.parse().ok()).and_then(Swizzle::with_span);
        match (part, span) {
            ("nan", _) => result.fill = Fill::Nan,
            (_, Some(swizzle)) => result.swizzle = swizzle,
            _ => return Err(format!("`{part}` is neither swizzle32, swizzle64, swizzle128 nor nan")),
        }
    }
    Ok(result)
}

fn format(dtype: &str) -> Option<Format> {
    Some(match dtype {
        "u1" | "i1" | "b1" => Format::U8,
        "u2" | "i2" => Format::U16,
        "f2" => Format::F16,
        "u4" => Format::U32,
        "i4" => Format::I32,
        "f4" => Format::F32,
        "u8" => Format::U64,
        "i8" => Format::I64,
        "f8" => Format::F64,
        _ => return None,
    })
}

/// The encoded map of a buffer at an address.
///
/// # Errors
/// A buffer without a shape, or a rule of tensor maps that is broken.
pub fn encode(map: &Box, buffer: &Buffer, address: u64) -> Result<Vec<u8>, String> {
    let Some((dtype, shape)) = &buffer.form else {
        return Err(
            "a tensor map needs a buffer with a shape: a file of NumPy's, or one that is written with its shape"
                .to_owned(),
        );
    };
    let format = format(dtype).ok_or_else(|| format!("tensor maps have no elements of type {dtype}"))?;
    if map.extents.len() != shape.len() {
        let (given, have) = (map.extents.len(), shape.len());
        return Err(format!("the box has {given} dimensions and the buffer {have}"));
    }
    let mut stride = u64::from(format.bytes());
    let mut dimensions = Vec::new();
    for (size, extent) in shape.iter().zip(&map.extents).rev() {
        dimensions.push(Dimension { size: *size, stride, box_size: *extent, element_stride: 1 });
        stride = stride.saturating_mul(*size);
    }
    let map =
        TensorMap { format, address, dimensions, swizzle: map.swizzle, fill: map.fill, promotion: Promotion::None };
    map.encode().map(|bytes| bytes.to_vec()).map_err(|error| error.to_string())
}

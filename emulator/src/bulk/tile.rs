//! Which bytes of global memory a tiled copy moves, and where they stand in the tile (PTX manual 5.5; CUDA driver API,
//! `cuTensorMapEncodeTiled`).
//!
//! Slot (k₀, …, kₙ) of a tile is element start + k · element stride of the tensor. Every slot is tested by its own
//! coordinates: those outside the tensor are filled in loads and left out in stores. Slots stand densely in shared
//! memory, innermost dimension first; the swizzle then moves 16-byte chunks by their absolute addresses. Stores reach
//! along the innermost dimension to the end of the 16-byte chunk of global memory that the tensor ends in: what lies
//! after it there is overwritten.

use std::ops::Range;

use tilewright_kernel::tensor_map::{Dimension, Fill, Format, GRANULE, TensorMap};

/// Bytes that are consecutive in the tile and in global memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// From the start of the tile.
    pub offset: u32,
    /// In global memory.
    pub address: u64,
    /// How many.
    pub bytes: u32,
}

impl Span {
    /// The bytes in global memory.
    pub fn global(&self) -> Range<u64> {
        self.address..self.address.saturating_add(u64::from(self.bytes))
    }
}

/// The bytes that a copy moves from or (`store`) to the tensor when its box starts at these coordinates, innermost
/// first, one for each dimension of the map.
pub fn spans(map: &TensorMap, start: &[i32], store: bool) -> Vec<Span> {
    let element = i64::from(map.format.bytes());
    let Some((inner, outer)) = map.dimensions.split_first() else { return Vec::new() };
    let row = i64::from(inner.tile()) * element;
    // Sizes are at most 2³², so that nothing here overflows.
    let size = inner.size * u64::from(map.format.bytes());
    let end = if store { size.next_multiple_of(GRANULE) } else { size } as i64;
    let at = i64::from(start[0]) * element;
    let (first, last) = ((-at).max(0), row.min(end - at));
    let mut spans: Vec<Span> = Vec::new();
    if first >= last {
        return spans;
    }
    let mut slot = vec![0u32; outer.len()];
    let mut offset = 0;
    loop {
        if let Some(base) = row_base(outer, &start[1..], &slot) {
            let base = i128::from(map.address) + base + i128::from(at + first);
            let span = Span {
                offset: offset + first as u32,
                // What does not fit into 64 bits is in no memory.
                address: u64::try_from(base).unwrap_or(u64::MAX),
                bytes: (last - first) as u32,
            };
            match spans.last_mut() {
                Some(before)
                    if before.offset + before.bytes == span.offset
                        && before.address.checked_add(u64::from(before.bytes)) == Some(span.address) =>
                {
                    before.bytes += span.bytes;
                }
                _ => spans.push(span),
            }
        }
        offset += row as u32;
        // The next row of slots.
        let carried = slot.iter_mut().zip(outer).all(|(k, dimension)| {
            *k = (*k + 1) % dimension.tile();
            *k == 0
        });
        if carried {
            return spans;
        }
    }
}

/// Bytes from the tensor's start to a row of it; `None` outside.
fn row_base(outer: &[Dimension], start: &[i32], slot: &[u32]) -> Option<i128> {
    let mut base = 0;
    for ((dimension, start), slot) in outer.iter().zip(start).zip(slot) {
        let at = i64::from(*start) + i64::from(*slot) * i64::from(dimension.element_stride);
        if at < 0 || at as u64 >= dimension.size {
            return None;
        }
        base += i128::from(at) * i128::from(dimension.stride);
    }
    Some(base)
}

/// A tile of nothing but filled slots.
pub fn filled(map: &TensorMap) -> Vec<u8> {
    let bytes = map.tile_bytes() as usize;
    match map.fill {
        Fill::Zero => vec![0; bytes],
        Fill::Nan => nan(map.format).iter().copied().cycle().take(bytes).collect(),
    }
}

/// The NaN that slots are filled with. The manual does not say which one; this is the one that instructions of PTX
/// return.
fn nan(format: Format) -> &'static [u8] {
    match format {
        Format::F16 | Format::Bf16 => &[0xff, 0x7f],
        Format::F32 => &[0xff, 0xff, 0xff, 0x7f],
        Format::F64 => &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        // A map that would fill these with NaN breaks a rule.
        Format::U8 | Format::U16 | Format::U32 | Format::I32 | Format::U64 | Format::I64 => &[0],
    }
}

//! Tensor maps: what the tensor memory accelerator knows of a tensor and of the boxes that it copies.
//!
//! A [`TensorMap`] is a map over concrete values, as it is encoded at launch. Its rules are checked here, before a
//! driver sees them; its 128 bytes are written and read here, for the emulator and for comparison with what a driver
//! writes. The choices that a map has are in `modes`, its bytes in `encoding`, broken rules in `fault`.
//!
//! Dimensions are listed innermost first, as the hardware counts them. Sources: the CUDA driver API,
//! `cuTensorMapEncodeTiled`, for the rules; for the bits, public encoders that were compared with drivers (the layout
//! is opaque by contract, so that a GPU only ever gets what its own driver encoded).

mod encoding;
mod fault;
mod modes;

pub use encoding::NotAMap;
pub use fault::Fault;
pub use modes::{Fill, Format, Promotion, Swizzle};

/// Most dimensions of a tensor map.
pub const MAX_RANK: usize = 5;
/// Largest box along one dimension, in elements.
pub const MAX_BOX: u32 = 256;
/// Largest element stride.
pub const MAX_ELEMENT_STRIDE: u32 = 8;
/// Largest size of a dimension, in elements.
pub const MAX_SIZE: u64 = 1 << 32;
/// Strides lie below this many bytes.
pub const STRIDE_LIMIT: u64 = 1 << 40;
/// Addresses, strides and the inner length of a box are multiples of so many bytes.
pub const GRANULE: u64 = 16;
/// Most bytes of a tile: the shared memory of a block of compute capability 9.0.
pub const MAX_TILE_BYTES: u64 = 227 * 1024;
/// Bytes of an encoded map.
pub const ENCODED_BYTES: usize = 128;

/// A tensor in global memory, and the box that one copy moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Type of an element, as the accelerator knows it.
    pub format: Format,
    /// Address of element (0, …, 0).
    pub address: u64,
    /// One to five dimensions, innermost first.
    pub dimensions: Vec<Dimension>,
    /// Permutation of the 16-byte chunks of a tile in shared memory.
    pub swizzle: Swizzle,
    /// What out-of-bounds elements of a load become.
    pub fill: Fill,
    /// Bytes that a miss fetches into the second-level cache.
    pub promotion: Promotion,
}

/// One dimension of a [`TensorMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Elements of the tensor along it.
    pub size: u64,
    /// Bytes from one element to its neighbour. Of the innermost dimension it is the size of an element, which no map
    /// can change.
    pub stride: u64,
    /// Elements that a box spans.
    pub box_size: u32,
    /// Every so manieth element of a box is copied.
    pub element_stride: u32,
}

impl Dimension {
    /// Elements of a tile: those of a box that are copied, ⌈box / element stride⌉.
    pub const fn tile(self) -> u32 {
        self.box_size.div_ceil(self.element_stride)
    }
}

impl TensorMap {
    /// Bytes that one copy moves, and counts: the whole tile, out-of-bounds part included.
    pub fn tile_bytes(&self) -> u64 {
        self.dimensions.iter().map(|d| u64::from(d.tile())).product::<u64>() * u64::from(self.format.bytes())
    }

    /// The rules that do not depend on the address, the sizes and the strides: what is known while compiling.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check_box(&self) -> Result<(), Fault> {
        let rank = self.dimensions.len();
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(Fault::Rank(rank));
        }
        for (dimension, d) in self.dimensions.iter().enumerate() {
            if !(1..=MAX_BOX).contains(&d.box_size) {
                return Err(Fault::Box { dimension, box_size: d.box_size });
            }
            if !(1..=MAX_ELEMENT_STRIDE).contains(&d.element_stride) {
                return Err(Fault::ElementStride { dimension, element_stride: d.element_stride });
            }
        }
        let inner = self.dimensions[0];
        if inner.element_stride != 1 {
            return Err(Fault::InnerElementStride(inner.element_stride));
        }
        let bytes = inner.box_size * self.format.bytes();
        if !u64::from(bytes).is_multiple_of(GRANULE) {
            return Err(Fault::InnerBoxGranule { bytes });
        }
        if self.swizzle != Swizzle::None && bytes > self.swizzle.span() {
            return Err(Fault::InnerBoxSpan { bytes, span: self.swizzle.span() });
        }
        if self.tile_bytes() > MAX_TILE_BYTES {
            return Err(Fault::TileBytes(self.tile_bytes()));
        }
        if self.fill == Fill::Nan && !self.format.is_float() {
            return Err(Fault::NanFill(self.format));
        }
        Ok(())
    }

    /// Every rule.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), Fault> {
        self.check_box()?;
        if !self.address.is_multiple_of(GRANULE) {
            return Err(Fault::Address(self.address));
        }
        for (dimension, d) in self.dimensions.iter().enumerate() {
            if !(1..=MAX_SIZE).contains(&d.size) {
                return Err(Fault::Size { dimension, size: d.size });
            }
            if dimension == 0 {
                if d.stride != u64::from(self.format.bytes()) {
                    return Err(Fault::InnerStride { stride: d.stride, element: self.format.bytes() });
                }
                continue;
            }
            if !d.stride.is_multiple_of(GRANULE) {
                return Err(Fault::StrideGranule { dimension, stride: d.stride });
            }
            if d.stride >= STRIDE_LIMIT {
                return Err(Fault::StrideLimit { dimension, stride: d.stride });
            }
            // What the driver and the accelerator make of elements that are all one is not confirmed on hardware.
            if d.stride == 0 && d.size > 1 {
                return Err(Fault::ZeroStride { dimension, size: d.size });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementType;

    fn dimension(size: u64, stride: u64, box_size: u32, element_stride: u32) -> Dimension {
        Dimension { size, stride, box_size, element_stride }
    }

    /// Rows of 1000 floats, 4096 bytes apart, in boxes of 64 rows by 32 columns.
    fn rows() -> TensorMap {
        TensorMap {
            format: Format::F32,
            address: 0x7f12_3456_7000,
            dimensions: vec![dimension(1000, 4, 32, 1), dimension(500, 4096, 64, 1)],
            swizzle: Swizzle::B128,
            fill: Fill::Zero,
            promotion: Promotion::B256,
        }
    }

    #[test]
    fn fields_are_where_the_hardware_looks() {
        let bytes = rows().encode().unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(u64::from_le_bytes(bytes[..8].try_into().unwrap()), 0x7f12_3456_7000);
        // Rank 2, format 7, swizzle 3, promotion 3, large: 499 · 4096 + 999 · 4 + 4 bytes.
        assert_eq!(word(8), 1 << 4 | 7 << 7 | 3 << 13 | 3 << 17 | 1 << 21);
        assert_eq!([word(12), word(16), word(28)], [256, 0, 0]);
        assert_eq!([word(32), word(36), word(40)], [999, 499, 0]);
        assert_eq!([word(52), word(56)], [31 << 24, 63]);
        assert_eq!([word(64), word(72)], [64 * 32 * 4, 1024]);
    }

    #[test]
    fn decoding_inverts_encoding() {
        let mut state = 12345u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..20_000 {
            let format = Format::ALL[next(10) as usize];
            let swizzle = Swizzle::ALL[next(4) as usize];
            let chunk = 16 / format.bytes();
            let widest = if swizzle == Swizzle::None { MAX_BOX / chunk } else { swizzle.span() / 16 };
            let rank = 1 + next(5);
            let dimensions: Vec<Dimension> = (0..rank)
                .map(|i| match i {
                    0 => {
                        let chunks = 1 + next(u64::from(widest)) as u32;
                        dimension(1 + next(MAX_SIZE), u64::from(format.bytes()), chunk * chunks, 1)
                    }
                    _ => {
                        let stride = (1 + next(STRIDE_LIMIT / GRANULE - 1)) * GRANULE;
                        dimension(1 + next(MAX_SIZE), stride, 1 + next(256) as u32, 1 + next(8) as u32)
                    }
                })
                .collect();
            let map = TensorMap {
                format,
                address: next(1 << 31) << 20,
                dimensions,
                swizzle,
                fill: if format.is_float() && next(2) == 1 { Fill::Nan } else { Fill::Zero },
                promotion: Promotion::B128,
            };
            if map.tile_bytes() > MAX_TILE_BYTES {
                assert_eq!(map.encode(), Err(Fault::TileBytes(map.tile_bytes())));
            } else {
                assert_eq!(TensorMap::decode(&map.encode().unwrap()), Ok(map));
            }
        }
    }

    #[test]
    fn every_rule_is_checked() {
        let broken = |change: &dyn Fn(&mut TensorMap)| {
            let mut map = rows();
            change(&mut map);
            map.check().unwrap_err()
        };
        assert_eq!(broken(&|m| m.dimensions.clear()), Fault::Rank(0));
        assert_eq!(broken(&|m| m.dimensions = vec![m.dimensions[0]; 6]), Fault::Rank(6));
        assert_eq!(broken(&|m| m.address += 8), Fault::Address(0x7f12_3456_7008));
        assert_eq!(broken(&|m| m.dimensions[1].size = 0), Fault::Size { dimension: 1, size: 0 });
        assert_eq!(broken(&|m| m.dimensions[0].size = MAX_SIZE + 1), Fault::Size { dimension: 0, size: MAX_SIZE + 1 });
        assert_eq!(broken(&|m| m.dimensions[0].stride = 8), Fault::InnerStride { stride: 8, element: 4 });
        assert_eq!(broken(&|m| m.dimensions[1].stride = 4100), Fault::StrideGranule { dimension: 1, stride: 4100 });
        assert_eq!(
            broken(&|m| m.dimensions[1].stride = STRIDE_LIMIT),
            Fault::StrideLimit { dimension: 1, stride: STRIDE_LIMIT }
        );
        assert_eq!(broken(&|m| m.dimensions[1].stride = 0), Fault::ZeroStride { dimension: 1, size: 500 });
        assert_eq!(broken(&|m| m.dimensions[1].box_size = 0), Fault::Box { dimension: 1, box_size: 0 });
        assert_eq!(broken(&|m| m.dimensions[1].box_size = 257), Fault::Box { dimension: 1, box_size: 257 });
        assert_eq!(broken(&|m| m.dimensions[0].box_size = 30), Fault::InnerBoxGranule { bytes: 120 });
        assert_eq!(broken(&|m| m.dimensions[0].box_size = 64), Fault::InnerBoxSpan { bytes: 256, span: 128 });
        for element_stride in [0, 9] {
            let fault = Fault::ElementStride { dimension: 1, element_stride };
            assert_eq!(broken(&|m| m.dimensions[1].element_stride = element_stride), fault);
        }
        assert_eq!(broken(&|m| m.dimensions[0].element_stride = 2), Fault::InnerElementStride(2));
        let nan_in_integers = |m: &mut TensorMap| (m.format, m.fill) = (Format::I32, Fill::Nan);
        assert_eq!(broken(&nan_in_integers), Fault::NanFill(Format::I32));
        assert_eq!(rows().check(), Ok(()));
        // Of one element there is no next one.
        let mut one = rows();
        (one.dimensions[1].size, one.dimensions[1].stride) = (1, 0);
        assert_eq!(one.check(), Ok(()));
    }

    /// The rows of chunks that the manual draws: chunk c of row r goes to c xor ⌊r / (128 / span)⌋ mod (span / 16).
    #[test]
    fn swizzles_permute_chunks_as_drawn() {
        for swizzle in Swizzle::ALL {
            let (span, chunks) = (swizzle.span(), swizzle.span() / 16);
            for address in 0..4 * swizzle.period() {
                let (row, chunk, byte) = (address / span, address % span / 16, address % 16);
                let to = chunk ^ (row / (128 / span) % chunks);
                assert_eq!(swizzle.apply(address), row * span + to * 16 + byte, "{swizzle:?} at {address}");
                assert_eq!(swizzle.apply(swizzle.apply(address)), address);
            }
        }
    }

    #[test]
    fn every_element_type_has_a_format_of_its_size() {
        for element in ElementType::ALL {
            assert_eq!(Format::of(element).bytes(), element.bytes(), "{element}");
        }
    }
}

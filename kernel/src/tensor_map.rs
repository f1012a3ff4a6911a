//! Tensor maps: what the tensor memory accelerator knows of a tensor and of the boxes that it copies.
//!
//! A [`TensorMap`] is a map over concrete values, as it is encoded at launch. Its rules are checked here, before a
//! driver sees them; its 128 bytes are written and read here, for the emulator and for comparison with what a driver
//! writes.
//!
//! Dimensions are listed innermost first, as the hardware counts them. Sources: the CUDA driver API,
//! `cuTensorMapEncodeTiled`, for the rules; for the bits, public encoders that were compared with drivers (the layout
//! is opaque by contract, so that a GPU only ever gets what its own driver encoded).

use crate::ElementType;

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
/// Extent in bytes from which recent drivers mark a tensor as large.
const LARGE_BYTES: u128 = 128 * 1024;

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

/// Element types of tensor maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// One byte of any kind.
    U8,
    /// Two bytes of any kind but the 16-bit floats.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 64-bit integer.
    U64,
    /// Signed 64-bit integer.
    I64,
    /// binary16
    F16,
    /// binary32
    F32,
    /// binary64
    F64,
    /// The upper half of a binary32.
    Bf16,
}

impl Format {
    /// Every format, by ascending code.
    pub const ALL: [Self; 10] =
        [Self::U8, Self::U16, Self::U32, Self::I32, Self::U64, Self::I64, Self::F16, Self::F32, Self::F64, Self::Bf16];

    /// The format that moves elements of this type without changing a bit.
    pub const fn of(element: ElementType) -> Self {
        use ElementType::{Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I16, I32, I64, Tf32, U8, U16, U32, U64};
        match element {
            F64 => Self::F64,
            // A tf32 element is a binary32 already; the accelerator's own tf32 formats round.
            F32 | Tf32 => Self::F32,
            F16 => Self::F16,
            Bf16 => Self::Bf16,
            I64 => Self::I64,
            I32 => Self::I32,
            U64 => Self::U64,
            U32 => Self::U32,
            I16 | U16 => Self::U16,
            E4m3 | E5m2 | I8 | U8 | Bool => Self::U8,
        }
    }

    /// Size of an element in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether out-of-bounds elements can be filled with NaN.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64 | Self::Bf16)
    }

    /// The code in a map (PTX ISA, `tensormap.replace`, field `.elemtype`).
    const fn code(self) -> u32 {
        match self {
            Self::U8 => 0,
            Self::U16 => 1,
            Self::U32 => 2,
            Self::I32 => 3,
            Self::U64 => 4,
            Self::I64 => 5,
            Self::F16 => 6,
            Self::F32 => 7,
            // 8 is binary32 with subnormals flushed.
            Self::F64 => 9,
            Self::Bf16 => 10,
        }
    }
}

/// How the 16-byte chunks of a tile are permuted in shared memory, so that a column of it touches many banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Swizzle {
    /// Not at all.
    None,
    /// Within spans of 32 bytes.
    B32,
    /// Within spans of 64 bytes.
    B64,
    /// Within spans of 128 bytes.
    B128,
}

impl Swizzle {
    /// Every mode, by ascending code.
    pub const ALL: [Self; 4] = [Self::None, Self::B32, Self::B64, Self::B128];

    /// The mode with this span; none for other numbers.
    pub const fn with_span(bytes: u32) -> Option<Self> {
        match bytes {
            16 => Some(Self::None),
            32 => Some(Self::B32),
            64 => Some(Self::B64),
            128 => Some(Self::B128),
            _ => None,
        }
    }

    /// Bytes within which chunks are permuted; of no swizzle, one chunk.
    pub const fn span(self) -> u32 {
        match self {
            Self::None => 16,
            Self::B32 => 32,
            Self::B64 => 64,
            Self::B128 => 128,
        }
    }

    /// Bytes after which the permutation repeats: eight spans. A tile that starts at a multiple of it has phase 0.
    pub const fn period(self) -> u32 {
        match self {
            Self::None => 16,
            _ => 8 * self.span(),
        }
    }

    /// Alignment of a tile in shared memory, in bytes: at least 128 for every tensor copy.
    pub const fn alignment(self) -> u32 {
        if self.period() > 128 { self.period() } else { 128 }
    }

    /// Where the byte that a tile without swizzle has at `address` really is. An involution on absolute addresses: bits
    /// 4 and up, one to three of them, are combined by exclusive or with those from bit 7 (PTX ISA, tensor swizzling
    /// modes).
    pub const fn apply(self, address: u32) -> u32 {
        address ^ ((address >> 3) & (self.span() - 16))
    }

    const fn code(self) -> u32 {
        self as u32
    }
}

/// What elements outside the tensor become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// All bits 0.
    Zero,
    /// A NaN; floats only.
    Nan,
}

/// Bytes that a miss fetches into the second-level cache. Changes nothing but speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promotion {
    /// What the copy touches.
    None,
    /// 64 bytes.
    B64,
    /// 128 bytes.
    B128,
    /// 256 bytes.
    B256,
}

/// A rule that a map breaks. Dimensions are counted from 0, the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A map has one to five dimensions.
    Rank(usize),
    /// The address is not a multiple of 16.
    Address(u64),
    /// A size is 0 or beyond 2³².
    Size {
        /// Which one.
        dimension: usize,
        /// Elements along it.
        size: u64,
    },
    /// The innermost stride is not the size of an element.
    InnerStride {
        /// Bytes.
        stride: u64,
        /// Bytes of an element.
        element: u32,
    },
    /// A stride is not a multiple of 16 bytes.
    StrideGranule {
        /// Which one.
        dimension: usize,
        /// Bytes.
        stride: u64,
    },
    /// A stride is 2⁴⁰ bytes or more.
    StrideLimit {
        /// Which one.
        dimension: usize,
        /// Bytes.
        stride: u64,
    },
    /// A box is 0 or beyond 256.
    Box {
        /// Which one.
        dimension: usize,
        /// Elements that the box spans.
        box_size: u32,
    },
    /// The innermost box is not a multiple of 16 bytes.
    InnerBoxGranule {
        /// Length of the box in bytes.
        bytes: u32,
    },
    /// The innermost box is longer than the span of the swizzle.
    InnerBoxSpan {
        /// Length of the box in bytes.
        bytes: u32,
        /// Span of the swizzle in bytes.
        span: u32,
    },
    /// A tile does not fit into shared memory.
    TileBytes(u64),
    /// An element stride is 0 or beyond 8.
    ElementStride {
        /// Which one.
        dimension: usize,
        /// The stride, in elements.
        element_stride: u32,
    },
    /// The innermost element stride is not 1: the hardware ignores it.
    InnerElementStride(u32),
    /// Only floats can be filled with NaN.
    NanFill(Format),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Rank(rank) => write!(f, "a tensor map has 1 to {MAX_RANK} dimensions, not {rank}"),
            Self::Address(address) => write!(f, "the address {address:#x} is not a multiple of {GRANULE}"),
            Self::Size { dimension, size } => {
                write!(f, "dimension {dimension} has {size} elements; a tensor map needs 1 to {MAX_SIZE}")
            }
            Self::InnerStride { stride, element } => {
                write!(f, "neighbours along dimension 0 are {stride} bytes apart; elements have {element}")
            }
            Self::StrideGranule { dimension, stride } => {
                write!(f, "the stride of dimension {dimension} is {stride} bytes, not a multiple of {GRANULE}")
            }
            Self::StrideLimit { dimension, stride } => {
                write!(f, "the stride of dimension {dimension} is {stride} bytes; it must be below {STRIDE_LIMIT}")
            }
            Self::Box { dimension, box_size } => {
                write!(f, "the box spans {box_size} elements of dimension {dimension}; it must span 1 to {MAX_BOX}")
            }
            Self::InnerBoxGranule { bytes } => {
                write!(f, "the box is {bytes} bytes long along dimension 0, not a multiple of {GRANULE}")
            }
            Self::InnerBoxSpan { bytes, span } => {
                write!(f, "the box is {bytes} bytes long along dimension 0, and the swizzle spans {span}")
            }
            Self::TileBytes(bytes) => {
                write!(f, "a tile has {bytes} bytes; a block has {MAX_TILE_BYTES} bytes of shared memory")
            }
            Self::ElementStride { dimension, element_stride } => write!(
                f,
                "the element stride of dimension {dimension} is {element_stride}; it must be 1 to {MAX_ELEMENT_STRIDE}"
            ),
            Self::InnerElementStride(stride) => {
                write!(f, "the element stride of dimension 0 is {stride}; the hardware knows 1 only")
            }
            Self::NanFill(format) => write!(f, "{format:?} has no NaN to fill with"),
        }
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// The dimension that it is about, counted from the innermost.
    pub fn dimension(&self) -> Option<usize> {
        match *self {
            Self::Size { dimension, .. }
            | Self::StrideGranule { dimension, .. }
            | Self::StrideLimit { dimension, .. }
            | Self::Box { dimension, .. }
            | Self::ElementStride { dimension, .. } => Some(dimension),
            Self::InnerStride { .. }
            | Self::InnerBoxGranule { .. }
            | Self::InnerBoxSpan { .. }
            | Self::InnerElementStride(_) => Some(0),
            Self::Rank(_) | Self::Address(_) | Self::TileBytes(_) | Self::NanFill(_) => None,
        }
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
        }
        Ok(())
    }

    /// Bytes from the first element to the end of the last.
    fn extent_bytes(&self) -> u128 {
        let reach = |d: &Dimension| u128::from(d.size - 1) * u128::from(d.stride);
        self.dimensions.iter().map(reach).sum::<u128>() + u128::from(self.format.bytes())
    }

    /// The map as the hardware reads it.
    ///
    /// # Errors
    /// A rule that is broken.
    pub fn encode(&self) -> Result<[u8; ENCODED_BYTES], Fault> {
        self.check()?;
        let rank = self.dimensions.len();
        let mut words = [0u32; ENCODED_BYTES / 4];
        words[0] = self.address as u32;
        words[1] = (self.address >> 32) as u32;
        words[2] = ((rank as u32 - 1) << 4)
            | (self.format.code() << 7)
            | (self.swizzle.code() << 13)
            | (u32::from(self.fill == Fill::Nan) << 15)
            | ((self.promotion as u32) << 17)
            | (u32::from(self.extent_bytes() >= LARGE_BYTES) << 21);
        for (i, d) in self.dimensions.iter().enumerate() {
            if i > 0 {
                let chunks = d.stride / GRANULE;
                words[2 + i] = chunks as u32;
                words[7] |= ((chunks >> 32) as u32) << (4 * (i - 1));
                words[14] |= (d.box_size - 1) << (8 * (i - 1));
            }
            words[8 + i] = (d.size - 1) as u32;
            words[13] |= (d.element_stride - 1) << (3 * i);
        }
        words[13] |= (self.dimensions[0].box_size - 1) << 24;
        let whole = |d: &Dimension| d.box_size / d.element_stride;
        words[16] = self.dimensions.iter().map(whole).product::<u32>() * self.format.bytes();
        words[18] = self.swizzle.period();
        let mut bytes = [0; ENCODED_BYTES];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        Ok(bytes)
    }

    /// The map that these bytes encode.
    ///
    /// # Errors
    /// Bytes that are no map of this kind: other modes of the accelerator, or a broken rule.
    pub fn decode(bytes: &[u8; ENCODED_BYTES]) -> Result<Self, NotAMap> {
        let word = |i: usize| u32::from_le_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
        let control = word(2);
        let bits = |from: u32, count: u32| (control >> from) & ((1 << count) - 1);
        if bits(0, 1) != 0 {
            return Err(NotAMap::Mode("im2col"));
        }
        if bits(11, 2) != 0 {
            return Err(NotAMap::Mode("an interleaved layout"));
        }
        let format = Format::ALL.into_iter().find(|f| f.code() == bits(7, 4)).filter(|_| bits(16, 1) == 0);
        let format = format.ok_or(NotAMap::Format(bits(7, 4)))?;
        let rank = bits(4, 3) as usize + 1;
        if rank > MAX_RANK {
            return Err(NotAMap::Rule(Fault::Rank(rank)));
        }
        let dimension = |i: usize| {
            let (low, high) = if i == 0 { (0, 0) } else { (word(2 + i), (word(7) >> (4 * (i - 1))) & 15) };
            let stride = (u64::from(high) << 32 | u64::from(low)) * GRANULE;
            let box_field = if i == 0 { word(13) >> 24 } else { (word(14) >> (8 * (i - 1))) & 255 };
            Dimension {
                size: u64::from(word(8 + i)) + 1,
                stride: if i == 0 { u64::from(format.bytes()) } else { stride },
                box_size: box_field + 1,
                element_stride: ((word(13) >> (3 * i)) & 7) + 1,
            }
        };
        let promotion = [Promotion::None, Promotion::B64, Promotion::B128, Promotion::B256];
        let map = Self {
            format,
            address: u64::from(word(1)) << 32 | u64::from(word(0)),
            dimensions: (0..rank).map(dimension).collect(),
            swizzle: Swizzle::ALL[bits(13, 2) as usize],
            fill: if bits(15, 1) == 1 { Fill::Nan } else { Fill::Zero },
            promotion: promotion[bits(17, 2) as usize],
        };
        map.check().map_err(NotAMap::Rule)?;
        Ok(map)
    }
}

/// Why bytes are not a map that this crate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAMap {
    /// A mode of the accelerator that is not supported.
    Mode(&'static str),
    /// A code of an element type that is not supported.
    Format(u32),
    /// A rule of tensor maps is broken.
    Rule(Fault),
}

impl std::fmt::Display for NotAMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mode(mode) => write!(f, "the tensor map asks for {mode}, which is not supported"),
            Self::Format(code) => write!(f, "the tensor map has element type {code}, which is not supported"),
            Self::Rule(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for NotAMap {}

#[cfg(test)]
mod tests {
    use super::*;

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
                        let stride = next(STRIDE_LIMIT / GRANULE) * GRANULE;
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

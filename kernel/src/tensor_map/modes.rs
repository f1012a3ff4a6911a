//! The choices of a tensor map: element format, swizzle, fill, and what a miss fetches.

use crate::ElementType;

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
    pub(super) const fn code(self) -> u32 {
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

    pub(super) const fn code(self) -> u32 {
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

//! The rules that a tensor map can break, with the values that break them.

use super::{Format, GRANULE, MAX_BOX, MAX_ELEMENT_STRIDE, MAX_RANK, MAX_SIZE, MAX_TILE_BYTES, STRIDE_LIMIT};

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
    /// A stride is 0 where there are several elements: all of them would be one.
    ZeroStride {
        /// Which one.
        dimension: usize,
        /// Elements along it.
        size: u64,
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
            Self::ZeroStride { dimension, size } => {
                write!(f, "the stride of dimension {dimension} is 0, and it has {size} elements: they would all be one")
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
            | Self::ZeroStride { dimension, .. }
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

//! Functions of one lane, and conversions with a fast path.

use crate::lanes::int::{Int2, Prmt, Width};
use crate::num::cvt::Cvt;
use crate::num::float::FloatMode;

/// A function of one lane for instructions that are not worth a row of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneFn {
    /// High half of the product plus the third operand.
    MadHi {
        /// Signed product.
        signed: bool,
        /// Width.
        width: Width,
        /// Clamp the signed sum.
        sat: bool,
    },
    /// 24-bit product plus the third operand.
    Mad24 {
        /// Signed operands.
        signed: bool,
        /// Bits 47..16 of the product.
        high: bool,
        /// Clamp the signed sum.
        sat: bool,
    },
    /// `c + |a - b|`.
    Sad {
        /// Signed operands.
        signed: bool,
        /// Width.
        width: Width,
    },
    /// `prmt`.
    Prmt(Prmt),
    /// `bfe` of 32 or 64 bits.
    Bfe {
        /// Sign-extend.
        signed: bool,
        /// 32 or 64.
        bits: u32,
    },
    /// `bfi` of 32 or 64 bits.
    Bfi {
        /// 32 or 64.
        bits: u32,
    },
    /// `shf`.
    Shf {
        /// Left.
        left: bool,
        /// Amount modulo 32 instead of at most 32.
        wrap: bool,
    },
    /// `dp4a`.
    Dp4a {
        /// First operand signed.
        a: bool,
        /// Second operand signed.
        b: bool,
    },
    /// `dp2a`.
    Dp2a {
        /// First operand signed.
        a: bool,
        /// Second operand signed.
        b: bool,
        /// Upper half of the second operand.
        high: bool,
    },
    /// `bmsk`.
    Bmsk {
        /// Amounts modulo 32.
        wrap: bool,
    },
    /// `szext`.
    Szext {
        /// Sign-extend.
        signed: bool,
        /// Amount modulo 32.
        wrap: bool,
    },
    /// `fns`.
    Fns,
    /// `slct`: first operand where the third is at least zero.
    SlctInt,
    /// `slct` by an f32.
    SlctFloat {
        /// Flush the third operand.
        ftz: bool,
    },
    /// Two 16-bit integers in 32 bits.
    Packed16 {
        /// The operation on each half.
        op: Int2,
        /// Negative results become 0.
        relu: bool,
    },
    /// A SIMD video instruction.
    Video(crate::lanes::video::Video),
    /// Signed minimum or maximum with negative results made 0.
    Relu {
        /// Maximum.
        max: bool,
    },
    /// `cvt.pack` of two s32 into halves or bytes above `c`.
    CvtPack {
        /// Bits of each part: 16 or 8.
        bits: u32,
        /// Signed parts.
        signed: bool,
    },
    /// A conversion of two operands into packed halves or bytes; the first operand goes up.
    CvtTwo(Cvt),
    /// A conversion of each half (or byte) of the operand: `from_bits` and `to_bits` wide.
    CvtEach {
        /// The conversion of one element.
        cvt: Cvt,
        /// Bits of a source element.
        from_bits: u32,
        /// Bits of a result element.
        to_bits: u32,
    },
    /// `div.approx`, `div.full` of f32.
    DivApprox {
        /// Mode.
        mode: FloatMode,
        /// `div.full`.
        full: bool,
    },
    /// `mad.hi`-like product half of 64 bits and others: `fma` with `.oob`.
    FmaOob(FloatMode, bool),
}

impl LaneFn {
    /// Whether rows of 32 bits have code of their own.
    pub fn has_row(self) -> bool {
        matches!(
            self,
            LaneFn::Bfe { bits: 32, .. } | LaneFn::Bfi { bits: 32 } | LaneFn::Shf { .. } | LaneFn::Prmt(Prmt::Default)
        )
    }
}

/// A row conversion with a fast path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FastCvt {
    /// Zero-extension of 32 to 64 bits.
    ZeroExtend,
    /// Sign-extension of 32 to 64 bits.
    SignExtend,
    /// Low 32 of 64 bits.
    Truncate,
    /// s32 to the nearest f32.
    F32FromS32,
    /// u32 to the nearest f32.
    F32FromU32,
    /// Exact.
    F32FromF16,
    /// Exact.
    F32FromBf16,
    /// Nearest.
    F16FromF32,
    /// Nearest.
    Bf16FromF32,
    /// Nearest, two operands, the first one up.
    Bf16x2FromF32,
    /// Nearest, two operands, the first one up.
    F16x2FromF32,
}

//! `f32` to and from the types for storage, by integer operations: the instructions that convert need PTX for sm_89
//! (`e4m3`, `e5m2`) and sm_90 (`tf32`, to nearest even), and these give the same numbers on every device. Kernels with
//! `wgmma` are for compute capability 9.0 alone: they round to 8-bit floats by the instruction.
//!
//! The rule is [`tilewright_kernel::format`]: to nearest even; 8-bit floats saturate.

use tilewright_kernel::ElementType::{self, E5m2};
use tilewright_kernel::format::Format;
use tilewright_ptx::{Immediate, Operand, RegId, ScalarType};

use super::entry::Entry;

use ScalarType::{B16, B32, F32, Pred};

/// Exponent bias of `f32`, and its fraction bits.
const BIAS: i32 = 127;
const FRACTION: i32 = 23;

/// 2ⁿ as an `f32`, for the exponent of a normal number.
const fn power_of_two(n: i32) -> u32 {
    ((n + BIAS) << FRACTION).cast_unsigned()
}

fn float(bits: u32) -> Operand {
    Immediate::F32(bits).into()
}

fn word(bits: u32) -> Operand {
    i64::from(bits.cast_signed()).into()
}

impl Entry<'_> {
    /// Drops 13 bits, to nearest even: half of what they count less one, and one more if the last bit that stays is
    /// set. The carry runs into the exponent, up to infinity.
    pub(super) fn round_tf32(&mut self, x: RegId) -> RegId {
        let bits = self.result("mov.b32", B32, [x.into()]);
        let rounded = self.round_bits(bits, 13, 0);
        let kept = self.result("and.b32", B32, [rounded.into(), word(!0x1FFF)]);
        let nan = self.result("setp.nan.f32", Pred, [x.into(), x.into()]);
        let result = self.result("selp.b32", B32, [word(0x7FFF_E000), kept.into(), nan.into()]);
        self.result("mov.b32", F32, [result.into()])
    }

    /// bits + (half of the last `drop` bits, for ties to even) + offset, wrapping.
    fn round_bits(&mut self, bits: RegId, drop: u32, offset: u32) -> RegId {
        let last = self.result("shr.u32", B32, [bits.into(), drop.into()]);
        let odd = self.result("and.b32", B32, [last.into(), 1.into()]);
        let half = self.result("add.s32", B32, [bits.into(), word(((1 << (drop - 1)) - 1_u32).wrapping_add(offset))]);
        self.result("add.s32", B32, [half.into(), odd.into()])
    }

    /// An `f32` rounded to an 8-bit float, in the low byte of a register whose other bits are 0.
    ///
    /// Two results are computed. For normal numbers the bits are rounded as for `tf32`, with the exponent biased anew.
    /// For subnormal ones a power of two is added whose last place is the smallest number, so that the addition rounds,
    /// and the low bits of the sum count smallest numbers. NaN ends as the largest magnitude of the first kind.
    pub(super) fn round_fp8(&mut self, x: RegId, to: ElementType) -> RegId {
        let Some(format) = Format::of(to) else { return x };
        if self.has_wgmma() {
            // Of the two that it rounds, the first one is in the high byte. The assembler does not know that what it
            // makes of them has no other bits, and would mask them.
            let both = self.result(&format!("cvt.rn.satfinite.{to}x2.f32"), B16, [float(0), x.into()]);
            let zero = self.result("mov.u16", B16, [0.into()]);
            return self.result("mov.b32", B32, [Operand::vector([both, zero])]);
        }
        let fraction = format.fraction.cast_signed();
        let least = format.least_exponent();
        let largest = format.value(format.largest()) as f32;

        let size = self.result("abs.f32", F32, [x.into()]);
        let size = self.result("min.NaN.f32", F32, [size.into(), float(largest.to_bits())]);
        let bits = self.result("mov.b32", B32, [size.into()]);
        let drop = (FRACTION - fraction).cast_unsigned();
        // The least normal exponent has the field 1 in both formats.
        let rebias = power_of_two(least - 1).wrapping_neg();
        let normal = self.round_bits(bits, drop, rebias);
        let normal = self.result("shr.u32", B32, [normal.into(), drop.into()]);

        let unit = power_of_two(least - fraction + FRACTION);
        let sum = self.result("add.rn.f32", F32, [size.into(), float(unit)]);
        let sum = self.result("mov.b32", B32, [sum.into()]);
        let subnormal = self.result("sub.s32", B32, [sum.into(), word(unit)]);

        let small = self.result("setp.lt.f32", Pred, [size.into(), float(power_of_two(least))]);
        let magnitude = self.result("selp.b32", B32, [subnormal.into(), normal.into(), small.into()]);
        let magnitude = self.result("min.u32", B32, [magnitude.into(), 0x7F.into()]);
        let sign = self.result("mov.b32", B32, [x.into()]);
        let sign = self.result("shr.u32", B32, [sign.into(), 24.into()]);
        let sign = self.result("and.b32", B32, [sign.into(), 0x80.into()]);
        self.result("or.b32", B32, [magnitude.into(), sign.into()])
    }

    /// The same number as `f32`.
    pub(super) fn widen_fp8(&mut self, x: RegId, from: ElementType) -> RegId {
        if from == E5m2 {
            // The upper half of an f16.
            let bits = self.result("shl.b32", B32, [x.into(), 8.into()]);
            let half = self.result("cvt.u16.u32", B16, [bits.into()]);
            return self.result("cvt.f32.f16", F32, [half.into()]);
        }
        // Exponent and fraction in the places of those of an f32 give the number times 2^-120, subnormal ones included.
        let magnitude = self.result("and.b32", B32, [x.into(), 0x7F.into()]);
        let bits = self.result("shl.b32", B32, [magnitude.into(), 20.into()]);
        let scaled = self.result("mov.b32", F32, [bits.into()]);
        let size = self.result("mul.rn.f32", F32, [scaled.into(), float(power_of_two(120))]);
        let nan = self.result("setp.eq.s32", Pred, [magnitude.into(), 0x7F.into()]);
        let size = self.result("selp.f32", F32, [float(0x7FC0_0000), size.into(), nan.into()]);
        let size = self.result("mov.b32", B32, [size.into()]);
        let sign = self.result("and.b32", B32, [x.into(), 0x80.into()]);
        let sign = self.result("shl.b32", B32, [sign.into(), 24.into()]);
        let bits = self.result("or.b32", B32, [size.into(), sign.into()]);
        self.result("mov.b32", F32, [bits.into()])
    }
}

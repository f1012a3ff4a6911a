//! Conversions of one lane (PTX manual 9.7.9.21): between integers, between floats, and across.

use super::exact;
use super::format::{Format, Round};

/// One side of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CvtType {
    /// An integer of 8, 16, 32 or 64 bits.
    Int {
        /// Width in bits.
        bits: u32,
        /// Two's complement.
        signed: bool,
    },
    /// A float.
    Float(Format),
    /// tf32, which a register holds in the upper bits of 32.
    Tf32,
}

/// A conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cvt {
    /// Result type.
    pub to: CvtType,
    /// Operand type.
    pub from: CvtType,
    /// Rounding, of the result or to an integral value.
    pub round: Round,
    /// Whether a float-to-float conversion of one type rounds to an integral value (`.rni` and its kin).
    pub integral: bool,
    /// Subnormal f32 operands and results become zeros.
    pub ftz: bool,
    /// Clamp: an integer to the result's range, a float to [0, 1].
    pub sat: bool,
    /// Negative results become +0.
    pub relu: bool,
    /// Overflow and infinity become the largest finite value.
    pub satfinite: bool,
}

fn integer(bits: u32, signed: bool, raw: u64) -> i128 {
    let shift = 64 - bits;
    if signed { i128::from(((raw << shift) as i64) >> shift) } else { i128::from((raw << shift) >> shift) }
}

/// Least and greatest value of an integer type.
fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) }
}

fn truncate(bits: u32, value: i128) -> u64 {
    (value as u64) & (u64::MAX >> (64 - bits))
}

/// The 19-bit format of tf32 values, and where they sit in a register.
const TF32_SHIFT: u32 = 13;

/// Converts one operand. The result has the width of its type, zero-extended.
pub fn cvt(op: Cvt, raw: u64) -> u64 {
    use super::format::{F32, TF32};

    match (op.from, op.to) {
        (CvtType::Int { bits, signed }, CvtType::Int { bits: wide, signed: to_signed }) => {
            let value = integer(bits, signed, raw);
            let (least, greatest) = range(wide, to_signed);
            truncate(wide, if op.sat { value.clamp(least, greatest) } else { value })
        }
        (CvtType::Int { bits, signed }, CvtType::Float(to)) => {
            finish(op, to, exact::from_integer(to, op.round, integer(bits, signed, raw)))
        }
        (CvtType::Int { bits, signed }, CvtType::Tf32) => {
            finish(op, TF32, exact::from_integer(TF32, op.round, integer(bits, signed, raw))) << TF32_SHIFT
        }
        (CvtType::Float(from), CvtType::Int { bits, signed }) => {
            let raw = if op.ftz && from == F32 { from.flush(raw) } else { raw };
            let nan = nan_integer(from, bits, signed);
            truncate(bits, exact::to_integer(from, op.round, raw, range(bits, signed), nan))
        }
        (CvtType::Float(from), CvtType::Float(to)) => {
            let raw = if op.ftz && from == F32 { from.flush(raw) } else { raw };
            let raw = if op.integral { exact::round_to_integral(from, op.round, raw) } else { raw };
            let round = if op.integral { Round::Nearest } else { op.round };
            finish_from(op, to, exact::convert(from, to, round, raw), from.is_nan(raw))
        }
        (CvtType::Float(from), CvtType::Tf32) => {
            finish_from(op, TF32, exact::convert(from, TF32, op.round, raw), from.is_nan(raw)) << TF32_SHIFT
        }
        (CvtType::Tf32, CvtType::Float(to)) => finish(op, to, exact::convert(F32, to, op.round, raw)),
        (CvtType::Tf32, _) => raw,
    }
}

/// What NaN becomes in an integer: 0, but the most significant bit alone when the operand is f64 or the result has 64
/// bits.
fn nan_integer(from: Format, bits: u32, signed: bool) -> i128 {
    if from != super::format::F64 && bits != 64 {
        return 0;
    }
    let top = 1i128 << (bits - 1);
    if signed { -top } else { top }
}

fn finish(op: Cvt, to: Format, bits: u64) -> u64 {
    finish_from(op, to, bits, false)
}

/// As `finish`, for an operand that may have been NaN: in a format without infinities overflow looks like NaN too.
fn finish_from(op: Cvt, to: Format, bits: u64, nan: bool) -> u64 {
    let bits = if op.ftz && to == super::format::F32 { to.flush(bits) } else { bits };
    if nan {
        return if op.sat { 0 } else { to.nan };
    }
    if op.relu && to.is_negative(bits) {
        return 0;
    }
    if op.satfinite && bits & !to.zero(true) == to.infinity() {
        return to.with_sign(to.max_finite(), to.is_negative(bits));
    }
    if op.sat {
        let one = exact::convert(super::format::F32, to, Round::Nearest, u64::from(1f32.to_bits()));
        return if to.is_negative(bits) { 0 } else { bits.min(one) };
    }
    bits
}

//! Literals: from digits to the bits of an element type, rounded to nearest once.
//!
//! A literal of a type that exists for storage only (`tf32`, `e4m3`, `e5m2`) must be exact: how such types round is
//! the business of conversions.

use std::cmp::Ordering;

use tilewright_kernel::ElementType;

use crate::diag::tw01xx::LiteralProblem;
use crate::syntax::ast;

/// The bits of a literal as `element`, with a minus sign in front if `negative`.
pub(super) fn bits(kind: &ast::ExprKind, negative: bool, element: ElementType) -> Result<u64, LiteralProblem> {
    match kind {
        ast::ExprKind::Int(literal) => {
            if element.is_integer() {
                return integer(literal.value, negative, element);
            }
            Err(if element.is_float() { LiteralProblem::IntegerForFloat } else { LiteralProblem::NotThatKind })
        }
        ast::ExprKind::Float(literal) if element.is_float() => {
            Ok(float(&literal.digits, element)? | sign(negative, element))
        }
        ast::ExprKind::Constant(constant) if element.is_float() => {
            Ok(named(*constant, element)? | sign(negative, element))
        }
        _ => Err(LiteralProblem::NotThatKind),
    }
}

fn sign(negative: bool, element: ElementType) -> u64 {
    u64::from(negative) << (8 * element.bytes() - 1)
}

fn integer(value: u64, negative: bool, element: ElementType) -> Result<u64, LiteralProblem> {
    let bits = 8 * element.bytes();
    let (least, greatest) = if element.is_signed_integer() {
        (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
    } else {
        (0, (1_i128 << bits) - 1)
    };
    let value = if negative { -i128::from(value) } else { i128::from(value) };
    if value < least || value > greatest {
        return Err(LiteralProblem::OutOfRange { least, greatest });
    }
    // The low bits of the two's complement, zero-extended: the mask keeps exactly the type's width.
    let mask = u64::MAX >> (64 - bits);
    Ok(u64::try_from(value & i128::from(u64::MAX)).unwrap_or(0) & mask)
}

/// Exponent and fraction bits of a floating type.
fn fields(element: ElementType) -> (u32, u32) {
    match element {
        ElementType::F64 => (11, 52),
        ElementType::F16 => (5, 10),
        ElementType::Bf16 => (8, 7),
        ElementType::Tf32 => (8, 10),
        ElementType::E4m3 => (4, 3),
        ElementType::E5m2 => (5, 2),
        _ => (8, 23),
    }
}

fn named(constant: ast::Constant, element: ElementType) -> Result<u64, LiteralProblem> {
    // tf32 is stored as an f32.
    let (exponent, fraction) = if element == ElementType::Tf32 { (8, 23) } else { fields(element) };
    let infinity = ((1_u64 << exponent) - 1) << fraction;
    match (constant, element) {
        (ast::Constant::Infinity, ElementType::E4m3) => Err(LiteralProblem::NoInfinity),
        (ast::Constant::Infinity, _) => Ok(infinity),
        (ast::Constant::Nan, ElementType::E4m3) => Ok(0x7f),
        (ast::Constant::Nan, _) => Ok(infinity | 1 << (fraction - 1)),
    }
}

fn float(digits: &str, element: ElementType) -> Result<u64, LiteralProblem> {
    let value: f64 = digits.parse().map_err(|_| LiteralProblem::NotThatKind)?;
    if value.is_infinite() {
        return Err(LiteralProblem::Overflow);
    }
    match element {
        ElementType::F64 => Ok(value.to_bits()),
        ElementType::F32 => {
            let value: f32 = digits.parse().map_err(|_| LiteralProblem::NotThatKind)?;
            if value.is_infinite() { Err(LiteralProblem::Overflow) } else { Ok(u64::from(value.to_bits())) }
        }
        _ => {
            let (exponent, fraction) = fields(element);
            let (bits, exact) = round(digits, value, exponent, fraction);
            let all_ones = ((1 << exponent) - 1) << fraction;
            // e4m3 uses the top exponent for numbers too; only its last pattern is NaN.
            let limit = if element == ElementType::E4m3 { all_ones | 7 } else { all_ones };
            if bits >= limit {
                return Err(LiteralProblem::Overflow);
            }
            let must_be_exact = super::function::is_storage_only(element);
            if must_be_exact && !exact {
                return Err(LiteralProblem::NotExact);
            }
            Ok(if element == ElementType::Tf32 { bits << 13 } else { bits })
        }
    }
}

/// The non-negative number `digits`, of which `value` is the nearest `f64`, rounded to nearest even with the given field
/// widths, and whether nothing was lost. A number that is too large gives bits at or above the top exponent's.
fn round(digits: &str, value: f64, exponent: u32, fraction: u32) -> (u64, bool) {
    let raw = value.to_bits();
    if raw == 0 {
        return (0, compare(digits, value) == Ordering::Equal);
    }
    let (raw_exponent, raw_fraction) = (raw >> 52, raw & ((1 << 52) - 1));
    // value = significand · 2^scale
    let (significand, scale) = match i32::try_from(raw_exponent).unwrap_or(0) {
        0 => (raw_fraction, -1074),
        e => (raw_fraction | 1 << 52, e - 1075),
    };
    let bias = (1_i32 << (exponent - 1)) - 1;
    let fraction_i = fraction.cast_signed();
    let least_quantum = 1 - bias - fraction_i;
    let top = 63 - significand.leading_zeros().cast_signed() + scale;
    let quantum = (top - fraction_i).max(least_quantum);
    let shift = quantum - scale;
    let mut exact = compare(digits, value) == Ordering::Equal;
    let quanta = if shift <= 0 {
        // The f64 has at most 53 bits and the target fewer; only short significands come here.
        significand << shift.unsigned_abs()
    } else if shift > 54 {
        exact = false;
        0
    } else {
        let low = significand & ((1 << shift) - 1);
        let half = 1_u64 << (shift - 1);
        let kept = significand >> shift;
        exact &= low == 0;
        let up = match low.cmp(&half) {
            Ordering::Greater => true,
            Ordering::Less => false,
            // The f64 is half-way; the digits may be a little above or below it.
            Ordering::Equal => match compare(digits, value) {
                Ordering::Greater => true,
                Ordering::Less => false,
                Ordering::Equal => kept & 1 == 1,
            },
        };
        kept + u64::from(up)
    };
    // A carry out of the fraction moves into the exponent by itself.
    let steps = u64::try_from(quantum - least_quantum).unwrap_or(0);
    (quanta + (steps << fraction), exact)
}

/// How the number written as `digits` compares with the non-negative `value`, exactly.
fn compare(digits: &str, value: f64) -> Ordering {
    // 1074 decimal places write every f64 exactly.
    let (a, b) = (decimal(digits), decimal(&format!("{value:.1074}")));
    match (a.0.is_empty(), b.0.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0)),
    }
}

/// Digits d and power p with value 0.d · 10^p; d neither starts nor ends with a zero, and is empty for zero.
fn decimal(text: &str) -> (String, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(if exponent.starts_with('-') { -1_000_000 } else { 1_000_000 });
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all: String = [whole, part].concat();
    let digits = all.trim_start_matches('0');
    let leading = i64::try_from(all.len() - digits.len()).unwrap_or(0);
    let power = i64::try_from(whole.len()).unwrap_or(0) - leading;
    (digits.trim_end_matches('0').to_owned(), power.saturating_add(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::ast::{ExprKind, FloatLiteral, IntLiteral};

    fn f(digits: &str, element: ElementType) -> Result<u64, LiteralProblem> {
        bits(&ExprKind::Float(FloatLiteral { digits: digits.to_owned(), suffix: None }), false, element)
    }

    fn i(value: u64, negative: bool, element: ElementType) -> Result<u64, LiteralProblem> {
        bits(&ExprKind::Int(IntLiteral { value, suffix: None }), negative, element)
    }

    #[test]
    fn digits_round_once() {
        use ElementType::{Bf16, F16, F32, F64};
        assert_eq!(f("1.5", F16), Ok(0x3e00));
        assert_eq!(f("1.5", Bf16), Ok(0x3fc0));
        assert_eq!(f("0.1", F32), Ok(u64::from(0.1_f32.to_bits())));
        assert_eq!(f("0.1", F64), Ok(0.1_f64.to_bits()));
        assert_eq!(f("65504.0", F16), Ok(0x7bff));
        assert_eq!(f("65519.999", F16), Ok(0x7bff));
        assert_eq!(f("65520.0", F16), Err(LiteralProblem::Overflow));
        assert_eq!(f("1e39", Bf16), Err(LiteralProblem::Overflow));
        // Half-way between 1 and the next f16: to even; a hair above, up, though the f64 is the same.
        assert_eq!(f("1.00048828125", F16), Ok(0x3c00));
        assert_eq!(f("1.00048828125000000000000001", F16), Ok(0x3c01));
        assert_eq!(f("1.00146484375", F16), Ok(0x3c02));
        assert_eq!(f("1.00146484374999999999999999", F16), Ok(0x3c01));
        // Subnormals.
        assert_eq!(f("5.9604644775390625e-8", F16), Ok(1));
        assert_eq!(f("2.98023223876953125e-8", F16), Ok(0));
        assert_eq!(f("1e-300", F16), Ok(0));
        assert_eq!(f("6.103515625e-5", F16), Ok(0x0400));
    }

    #[test]
    fn half_precision_agrees_with_every_value_it_has() {
        for pattern in 0..0x7c00_u64 {
            let value = if pattern < 0x400 {
                pattern as f64 * 2_f64.powi(-24)
            } else {
                (1024 + (pattern & 1023)) as f64 * 2_f64.powi((pattern >> 10) as i32 - 25)
            };
            assert_eq!(f(&format!("{value:?}"), ElementType::F16), Ok(pattern));
        }
    }

    #[test]
    fn storage_types_take_exact_literals_only() {
        use ElementType::{E4m3, E5m2, Tf32};
        assert_eq!(f("448.0", E4m3), Ok(0x7e));
        assert_eq!(f("449.0", E4m3), Err(LiteralProblem::NotExact));
        assert_eq!(f("480.0", E4m3), Err(LiteralProblem::Overflow));
        assert_eq!(f("1.0", E5m2), Ok(0x3c));
        assert_eq!(f("1.1", E5m2), Err(LiteralProblem::NotExact));
        assert_eq!(f("1.5", Tf32), Ok(u64::from(1.5_f32.to_bits())));
        assert_eq!(f("0.1", Tf32), Err(LiteralProblem::NotExact));
        assert_eq!(f("0.0", Tf32), Ok(0));
    }

    #[test]
    fn integers_fit_or_are_refused() {
        use ElementType::{Bool, F32, I8, I64, U8, U64};
        assert_eq!(i(128, true, I8), Ok(0x80));
        assert_eq!(i(128, false, I8), Err(LiteralProblem::OutOfRange { least: -128, greatest: 127 }));
        assert_eq!(i(1, true, U8), Err(LiteralProblem::OutOfRange { least: 0, greatest: 255 }));
        assert_eq!(i(u64::MAX, false, U64), Ok(u64::MAX));
        assert_eq!(i(1 << 63, true, I64), Ok(1 << 63));
        assert_eq!(i(2, false, F32), Err(LiteralProblem::IntegerForFloat));
        assert_eq!(i(1, false, Bool), Err(LiteralProblem::NotThatKind));
    }
}

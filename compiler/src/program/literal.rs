//! Literals: from digits to the bits of an element type, rounded to nearest once.
//!
//! A literal of a type that exists for storage only (`tf32`, `e4m3`, `e5m2`) must be exact: how such types round is
//! the business of conversions.

use std::cmp::Ordering;

use tilewright_kernel::ElementType;
use tilewright_kernel::format::Format;

use crate::diag::codes::LiteralFault;
use crate::source::ast;

/// The bits of a literal as `element`, with a minus sign in front if `negative`.
pub(super) fn bits(kind: &ast::ExprKind, negative: bool, element: ElementType) -> Result<u64, LiteralFault> {
    match kind {
        ast::ExprKind::Int(literal) => {
            if element.is_integer() {
                return integer(literal.value, negative, element);
            }
            Err(if element.is_float() { LiteralFault::IntegerForFloat } else { LiteralFault::NotThatKind })
        }
        ast::ExprKind::Float(literal) if element.is_float() => {
            Ok(float(&literal.digits, element)? | sign(negative, element))
        }
        ast::ExprKind::Constant(constant) if element.is_float() => {
            Ok(named(*constant, element)? | sign(negative, element))
        }
        _ => Err(LiteralFault::NotThatKind),
    }
}

fn sign(negative: bool, element: ElementType) -> u64 {
    u64::from(negative) << (8 * element.bytes() - 1)
}

fn integer(value: u64, negative: bool, element: ElementType) -> Result<u64, LiteralFault> {
    let bits = 8 * element.bytes();
    let (least, greatest) = if element.is_signed_integer() {
        (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
    } else {
        (0, (1_i128 << bits) - 1)
    };
    let value = if negative { -i128::from(value) } else { i128::from(value) };
    if value < least || value > greatest {
        return Err(LiteralFault::OutOfRange { least, greatest });
    }
    // The low bits of the two's complement, zero-extended: the mask keeps exactly the type's width.
    let mask = u64::MAX >> (64 - bits);
    Ok(u64::try_from(value & i128::from(u64::MAX)).unwrap_or(0) & mask)
}

fn named(constant: ast::Constant, element: ElementType) -> Result<u64, LiteralFault> {
    let format = Format::of(element).ok_or(LiteralFault::NotThatKind)?;
    match constant {
        ast::Constant::Infinity => format.infinity().ok_or(LiteralFault::NoInfinity),
        ast::Constant::Nan => Ok(format.nan()),
    }
}

fn float(digits: &str, element: ElementType) -> Result<u64, LiteralFault> {
    let format = Format::of(element).ok_or(LiteralFault::NotThatKind)?;
    let nearest: f64 = digits.parse().map_err(|_| LiteralFault::NotThatKind)?;
    if nearest.is_infinite() {
        return Err(LiteralFault::Overflow);
    }
    let must_be_exact = super::function::is_storage_only(element);
    let [below, at, above] =
        [Ordering::Less, Ordering::Equal, Ordering::Greater].map(|side| round(nearest, side, format));
    if below == at && at == above && !must_be_exact {
        return at.ok_or(LiteralFault::Overflow);
    }
    let side = compare(digits, nearest);
    let bits = match side {
        Ordering::Less => below,
        Ordering::Equal => at,
        Ordering::Greater => above,
    };
    let bits = bits.ok_or(LiteralFault::Overflow)?;
    if must_be_exact && (side != Ordering::Equal || format.value(bits) != nearest) {
        return Err(LiteralFault::NotExact);
    }
    Ok(bits)
}

/// A non-negative number rounded once, given the nearest `f64` and on which side of it the number lies. None if it is
/// too large.
fn round(nearest: f64, side: Ordering, format: Format) -> Option<u64> {
    let raw = nearest.to_bits();
    // nearest = significand · 2^scale
    let (significand, scale) = match i32::try_from(raw >> 52).unwrap_or(0) {
        0 => (raw, -1074),
        e => (raw & ((1 << 52) - 1) | 1 << 52, e - 1075),
    };
    // Two more bits: what is a little less than the nearest is a little more than the multiple before it.
    let wide = u128::from(significand) << 2;
    match side {
        Ordering::Less => format.magnitude(wide.saturating_sub(1), scale - 2, true),
        Ordering::Equal => format.magnitude(wide, scale - 2, false),
        Ordering::Greater => format.magnitude(wide, scale - 2, true),
    }
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
    use crate::source::ast::{ExprKind, FloatLiteral, IntLiteral};

    fn f(digits: &str, element: ElementType) -> Result<u64, LiteralFault> {
        bits(&ExprKind::Float(FloatLiteral { digits: digits.to_owned(), suffix: None }), false, element)
    }

    fn i(value: u64, negative: bool, element: ElementType) -> Result<u64, LiteralFault> {
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
        assert_eq!(f("65520.0", F16), Err(LiteralFault::Overflow));
        assert_eq!(f("1e39", Bf16), Err(LiteralFault::Overflow));
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
        assert_eq!(f("449.0", E4m3), Err(LiteralFault::NotExact));
        assert_eq!(f("480.0", E4m3), Err(LiteralFault::Overflow));
        assert_eq!(f("1.0", E5m2), Ok(0x3c));
        assert_eq!(f("1.1", E5m2), Err(LiteralFault::NotExact));
        assert_eq!(f("1.5", Tf32), Ok(u64::from(1.5_f32.to_bits())));
        assert_eq!(f("0.1", Tf32), Err(LiteralFault::NotExact));
        assert_eq!(f("0.0", Tf32), Ok(0));
    }

    #[test]
    fn integers_fit_or_are_refused() {
        use ElementType::{Bool, F32, I8, I64, U8, U64};
        assert_eq!(i(128, true, I8), Ok(0x80));
        assert_eq!(i(128, false, I8), Err(LiteralFault::OutOfRange { least: -128, greatest: 127 }));
        assert_eq!(i(1, true, U8), Err(LiteralFault::OutOfRange { least: 0, greatest: 255 }));
        assert_eq!(i(u64::MAX, false, U64), Ok(u64::MAX));
        assert_eq!(i(1 << 63, true, I64), Ok(1 << 63));
        assert_eq!(i(2, false, F32), Err(LiteralFault::IntegerForFloat));
        assert_eq!(i(1, false, Bool), Err(LiteralFault::NotThatKind));
    }
}

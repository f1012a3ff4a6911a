//! A scalar oracle for elements: their bits, zero-extended to 64, and what each operation gives. It rounds by integer
//! arithmetic and shares nothing with emission.

use tilewright_kernel::ElementType::{
    self, Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I16, I32, I64, Tf32, U8, U16, U32, U64,
};
use tilewright_kernel::algorithm::{Binary, Compare};

use crate::kernel_ir::UnaryOp;

/// Fraction bits and bias of a binary format.
struct Format {
    fraction: i32,
    bias: i32,
    bits: u32,
    /// What conversions give for magnitudes that are too large: infinity, or the largest number.
    overflow: u64,
}

const fn format(element: ElementType) -> Option<Format> {
    Some(match element {
        F64 => Format { fraction: 52, bias: 1023, bits: 64, overflow: 0x7FF0_0000_0000_0000 },
        F32 => Format { fraction: 23, bias: 127, bits: 32, overflow: 0x7F80_0000 },
        // Without the low bits of the f32 that it is kept as.
        Tf32 => Format { fraction: 10, bias: 127, bits: 19, overflow: 0x3_FC00 },
        F16 => Format { fraction: 10, bias: 15, bits: 16, overflow: 0x7C00 },
        Bf16 => Format { fraction: 7, bias: 127, bits: 16, overflow: 0x7F80 },
        E4m3 => Format { fraction: 3, bias: 7, bits: 8, overflow: 0x7E },
        E5m2 => Format { fraction: 2, bias: 15, bits: 8, overflow: 0x7B },
        _ => return None,
    })
}

/// A number: sign, and magnitude · 2^exponent; or infinity, or NaN.
#[derive(Clone, Copy, Debug)]
enum Number {
    Finite { negative: bool, magnitude: u128, exponent: i32 },
    Infinite { negative: bool },
    Nan,
}

fn decode(element: ElementType, bits: u64) -> Number {
    if let Some(Format { fraction, bias, bits: width, .. }) = format(element) {
        let bits = if element == Tf32 { bits >> 13 } else { bits };
        let negative = bits >> (width - 1) & 1 == 1;
        let mask = (1_u64 << fraction) - 1;
        let top = (1 << (width as i32 - 1 - fraction)) - 1;
        let (exponent, low) = ((bits >> fraction) as i32 & top, u128::from(bits & mask));
        return match exponent {
            0 => Number::Finite { negative, magnitude: low, exponent: 1 - bias - fraction },
            e if e == top && element == E4m3 && low < 7 => {
                Number::Finite { negative, magnitude: low | 8, exponent: e - bias - fraction }
            }
            e if e == top && low == 0 => Number::Infinite { negative },
            e if e == top => Number::Nan,
            e => Number::Finite { negative, magnitude: low | 1 << fraction, exponent: e - bias - fraction },
        };
    }
    let value = integer(element, bits);
    Number::Finite { negative: value < 0, magnitude: value.unsigned_abs(), exponent: 0 }
}

/// Round to nearest, ties to even.
fn encode(element: ElementType, number: Number) -> u64 {
    let Format { fraction, bias, bits: width, overflow } = format(element).expect("a float");
    let sign = |negative| u64::from(negative) << (width - 1);
    let bits = match number {
        Number::Nan => (1 << (width - 1)) - 1,
        Number::Infinite { negative } => sign(negative) | overflow,
        Number::Finite { negative, magnitude: 0, .. } => sign(negative),
        Number::Finite { negative, magnitude, exponent } => {
            // The exponent of the last place of the result.
            let leading = 127 - magnitude.leading_zeros() as i32;
            let last = (exponent + leading - fraction).max(1 - bias - fraction);
            let drop = last - exponent;
            let rounded = if drop <= 0 {
                magnitude << -drop
            } else if drop > 127 {
                0
            } else {
                let (kept, rest, half) = (magnitude >> drop, magnitude & ((1 << drop) - 1), 1 << (drop - 1));
                kept + u128::from(rest > half || rest == half && kept & 1 == 1)
            };
            // A carry out of the fraction moves into the exponent by itself.
            let biased = (last + fraction + bias - 1) as u64;
            sign(negative) | ((biased << fraction) + rounded as u64).min(overflow)
        }
    };
    if element == Tf32 { bits << 13 } else { bits }
}

/// The value of an integer or bool.
fn integer(element: ElementType, bits: u64) -> i128 {
    match element {
        I64 => i128::from(bits as i64),
        I32 => i128::from(bits as i32),
        I16 => i128::from(bits as i16),
        I8 => i128::from(bits as i8),
        _ => i128::from(bits),
    }
}

pub(super) fn mask(element: ElementType) -> u64 {
    if element == Bool { 1 } else { u64::MAX >> (64 - 8 * element.bytes()) }
}

fn range(element: ElementType) -> (i128, i128) {
    let bits = 8 * element.bytes();
    if element.is_signed_integer() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// A cast, as Rust's `as`.
pub(super) fn cast(from: ElementType, to: ElementType, bits: u64) -> u64 {
    if to.is_float() {
        return encode(to, decode(from, bits));
    }
    if !from.is_float() {
        return integer(from, bits) as u64 & mask(to);
    }
    let (least, greatest) = range(to);
    let value = match decode(from, bits) {
        Number::Nan => 0,
        Number::Infinite { negative } => {
            if negative {
                least
            } else {
                greatest
            }
        }
        Number::Finite { negative, magnitude, exponent } => {
            let magnitude = match exponent {
                0..70 => magnitude << exponent,
                70.. if magnitude != 0 => 1 << 100,
                -127..0 => magnitude >> -exponent,
                _ => 0,
            };
            let value = magnitude as i128;
            (if negative { -value } else { value }).clamp(least, greatest)
        }
    };
    value as u64 & mask(to)
}

fn f32_of(element: ElementType, bits: u64) -> f32 {
    f32::from_bits(cast(element, F32, bits) as u32)
}

/// Computes in f32 or f64, and rounds once to the element type.
fn in_float(element: ElementType, operands: &[u64], single: fn(&[f32]) -> f32, double: fn(&[f64]) -> f64) -> u64 {
    if element == F64 {
        let operands: Vec<_> = operands.iter().map(|bits| f64::from_bits(*bits)).collect();
        return double(&operands).to_bits();
    }
    let operands: Vec<_> = operands.iter().map(|bits| f32_of(element, *bits)).collect();
    cast(F32, element, u64::from(single(&operands).to_bits()))
}

pub(super) fn unary(op: UnaryOp, element: ElementType, a: u64) -> Option<u64> {
    if element.is_float() {
        return Some(match op {
            UnaryOp::Neg => in_float(element, &[a], |v| -v[0], |v| -v[0]),
            UnaryOp::Abs => in_float(element, &[a], |v| v[0].abs(), |v| v[0].abs()),
            UnaryOp::Floor => in_float(element, &[a], |v| v[0].floor(), |v| v[0].floor()),
            UnaryOp::Ceil => in_float(element, &[a], |v| -(-v[0]).floor(), |v| -(-v[0]).floor()),
            UnaryOp::Trunc => {
                in_float(element, &[a], |v| v[0].abs().floor().copysign(v[0]), |v| v[0].abs().floor().copysign(v[0]))
            }
            UnaryOp::RoundEven => in_float(element, &[a], |v| v[0].round_ties_even(), |v| v[0].round_ties_even()),
            UnaryOp::Sqrt => in_float(element, &[a], |v| v[0].sqrt(), |v| v[0].sqrt()),
            UnaryOp::Recip => in_float(element, &[a], |v| 1.0 / v[0], |v| 1.0 / v[0]),
            _ => return None,
        });
    }
    let value = integer(element, a);
    let result = match op {
        UnaryOp::Not => !value,
        UnaryOp::Neg if element != Bool => -value,
        UnaryOp::Abs if element != Bool => value.abs(),
        UnaryOp::Floor if element != Bool => value,
        _ => return None,
    };
    Some(result as u64 & mask(element))
}

/// The larger of two numbers, NaN aside.
macro_rules! larger {
    ($a:expr, $b:expr) => {
        if $a > $b || ($a == $b && $a.is_sign_positive()) { $a } else { $b }
    };
}
macro_rules! maximum {
    ($v:expr) => {
        if $v[0].is_nan() || $v[1].is_nan() { $v[0] + $v[1] } else { larger!($v[0], $v[1]) }
    };
}
macro_rules! maximum_number {
    ($v:expr) => {
        if $v[0].is_nan() {
            $v[1]
        } else if $v[1].is_nan() {
            $v[0]
        } else {
            larger!($v[0], $v[1])
        }
    };
}
macro_rules! negated {
    ($v:expr) => {
        [-$v[0], -$v[1]]
    };
}

/// None where the operation does not exist or is not defined.
pub(super) fn binary(op: Binary, element: ElementType, a: u64, b: u64) -> Option<u64> {
    if element.is_float() {
        let v = [a, b];
        return Some(match op {
            Binary::Add => in_float(element, &v, |v| v[0] + v[1], |v| v[0] + v[1]),
            Binary::Sub => in_float(element, &v, |v| v[0] - v[1], |v| v[0] - v[1]),
            Binary::Mul => in_float(element, &v, |v| v[0] * v[1], |v| v[0] * v[1]),
            Binary::Div => in_float(element, &v, |v| v[0] / v[1], |v| v[0] / v[1]),
            Binary::Max => in_float(element, &v, |v| maximum!(v), |v| maximum!(v)),
            Binary::MaxNum => in_float(element, &v, |v| maximum_number!(v), |v| maximum_number!(v)),
            Binary::Min => in_float(element, &v, |v| -maximum!(negated!(v)), |v| -maximum!(negated!(v))),
            Binary::MinNum => {
                in_float(element, &v, |v| -maximum_number!(negated!(v)), |v| -maximum_number!(negated!(v)))
            }
            Binary::Rem | Binary::And | Binary::Or | Binary::Xor | Binary::Shl | Binary::Shr => return None,
        });
    }
    let (x, y) = (integer(element, a), integer(element, b));
    let arithmetic = element != Bool;
    let result = match op {
        Binary::Add if arithmetic => x + y,
        Binary::Sub if arithmetic => x - y,
        Binary::Mul if arithmetic => x.wrapping_mul(y),
        Binary::Div if arithmetic => x.checked_div(y)?,
        Binary::Rem if arithmetic => x.checked_rem(y)?,
        Binary::Max | Binary::MaxNum => x.max(y),
        Binary::Min | Binary::MinNum => x.min(y),
        Binary::And => x & y,
        Binary::Or => x | y,
        Binary::Xor => x ^ y,
        // An amount outside of the width leaves no bit: only the sign, to the right.
        Binary::Shl if arithmetic => match u32::try_from(y) {
            Ok(by) if by < 8 * element.bytes() => x << by,
            _ => 0,
        },
        Binary::Shr if arithmetic => match u32::try_from(y) {
            Ok(by) if by < 8 * element.bytes() => x.div_euclid(1 << by),
            _ if x < 0 => -1,
            _ => 0,
        },
        _ => return None,
    };
    Some(result as u64 & mask(element))
}

pub(super) fn fma(element: ElementType, a: u64, b: u64, c: u64) -> u64 {
    if element.is_float() {
        return in_float(element, &[a, b, c], |v| v[0].mul_add(v[1], v[2]), |v| v[0].mul_add(v[1], v[2]));
    }
    let product = integer(element, a).wrapping_mul(integer(element, b));
    product.wrapping_add(integer(element, c)) as u64 & mask(element)
}

pub(super) fn compare(op: Compare, element: ElementType, a: u64, b: u64) -> bool {
    let order = match element {
        F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        _ if element.is_float() => f32_of(element, a).partial_cmp(&f32_of(element, b)),
        _ => Some(integer(element, a).cmp(&integer(element, b))),
    };
    match op {
        Compare::Eq => order.is_some_and(|o| o.is_eq()),
        Compare::Ne => order.is_none_or(|o| o.is_ne()),
        Compare::Lt => order.is_some_and(|o| o.is_lt()),
        Compare::Le => order.is_some_and(|o| o.is_le()),
        Compare::Gt => order.is_some_and(|o| o.is_gt()),
        Compare::Ge => order.is_some_and(|o| o.is_ge()),
    }
}

/// Equal bits, or both NaN.
pub(super) fn same(element: ElementType, a: u64, b: u64) -> bool {
    a == b
        || format(element).is_some() && matches!((decode(element, a), decode(element, b)), (Number::Nan, Number::Nan))
}

/// Values at which something happens: limits, ties, neighbours of both, and some ordinary ones.
#[expect(clippy::too_many_lines, reason = "one list of values a type")]
pub(super) fn edges(element: ElementType) -> Vec<u64> {
    match element {
        Bool => vec![0, 1],
        E4m3 | E5m2 => (0..256).collect(),
        I8 | U8 => [0, 1, 2, 3, 7, 10, 100, 126, 127, 128, 129, 156, 254, 255].to_vec(),
        I16 | U16 => {
            [0, 1, 2, 3, 7, 100, 257, 4095, 4097, 0x7FFE, 0x7FFF, 0x8000, 0x8001, 0xFF9C, 0xFFFE, 0xFFFF].to_vec()
        }
        I32 | U32 => {
            let mut all = vec![
                0,
                1,
                2,
                3,
                7,
                100,
                257,
                65504,
                65519,
                65520,
                65521,
                0x7FFF_FFFE,
                0x7FFF_FFFF,
                0x8000_0000,
                0x8000_0001,
            ];
            // Ties of f16, bf16, f32 and their neighbours, and negative numbers.
            all.extend([
                0x0101,
                0x0102,
                0x0103,
                0x0080_8000,
                0x0080_8001,
                0x0080_7FFF,
                0x0100_0001,
                0x0100_0003,
                0x1010_0000,
                0x1010_0001,
            ]);
            all.extend([0xFFFF_FFFF, 0xFFFF_FFFE, 0xFFFF_FF9C, 0xFF7F_8000, 0xFF7F_7FFF, 0xFFFE_0010]);
            all
        }
        I64 | U64 => {
            let mut all = vec![0, 1, 2, 3, 7, 100, 65519, 65520, 1 << 31, 1 << 32, (1 << 31) - 1, (1 << 32) - 1];
            all.extend([
                (1 << 40) + (1 << 32),
                (1 << 40) + (1 << 32) + 1,
                (1 << 40) + (1 << 32) - 1,
                (1 << 53) + 1,
                (1 << 53) + 3,
            ]);
            all.extend([(1 << 62) + (1 << 54), (1 << 62) + (1 << 54) + 1, i64::MAX as u64, 1 << 63, (1 << 63) + 1]);
            all.extend([-1_i64, -2, -100, -(1 << 31), -(1 << 31) - 1, -(1 << 40) - (1 << 32) - 1].map(|v| v as u64));
            all
        }
        F16 => {
            let positive = [
                0, 1, 0x03FF, 0x0400, 0x2E66, 0x3555, 0x3800, 0x3C00, 0x3C01, 0x3E00, 0x4100, 0x4248, 0x5BF0, 0x5C00,
                0x7BFF, 0x7C00, 0x7E00,
            ];
            positive.iter().flat_map(|v| [*v, *v | 0x8000]).collect()
        }
        Bf16 => {
            let positive = [
                0, 1, 0x007F, 0x0080, 0x3DCD, 0x3F00, 0x3F80, 0x3F81, 0x3FC0, 0x4020, 0x4049, 0x42FF, 0x4300, 0x4F00,
                0x5F00, 0x7F7F, 0x7F80, 0x7FC0,
            ];
            positive.iter().flat_map(|v| [*v, *v | 0x8000]).collect()
        }
        F32 | Tf32 => {
            let positive = [
                0.0,
                f32::from_bits(1),
                f32::MIN_POSITIVE,
                1.0,
                1.0 + f32::EPSILON,
                0.5,
                1.5,
                2.5,
                0.1,
                3.75,
                100.25,
                127.5,
                128.0,
                255.9,
                256.0,
                32767.9,
                65504.0,
                65519.0,
                65520.0,
                65536.0,
                2_147_483_520.0,
                2_147_483_648.0,
                4_294_967_040.0,
                4_294_967_296.0,
                9.223_372e18,
                1.844_674_4e19,
                5.960_464_5e-8,
                2.980_232_2e-8,
                2.980_232_6e-8,
                1.003_906_3,
                1.003_906_4,
                1.011_718_8,
                1.000_488_3,
                1.000_976_6,
                f32::MAX,
                f32::INFINITY,
                f32::NAN,
            ];
            positive.iter().flat_map(|v: &f32| [u64::from(v.to_bits()), u64::from((-v).to_bits())]).collect()
        }
        F64 => {
            let positive = [
                0.0,
                f64::from_bits(1),
                f64::MIN_POSITIVE,
                1.0,
                1.0 + f64::EPSILON,
                0.5,
                1.5,
                2.5,
                0.1,
                127.5,
                128.0,
                255.9,
                65504.0,
                65_519.999_999,
                65520.0,
                2_147_483_647.5,
                2_147_483_648.0,
                4_294_967_295.5,
                4_294_967_296.0,
                9.223_372_036_854_775e18,
                9_223_372_036_854_775_808.0,
                1.844_674_407_370_955e19,
                1.844_674_407_370_955_2e19,
                // Ties of bf16, f16 and f32, and beside them by less than an f32 can hold.
                1.003_906_25,
                1.003_906_25 + 1e-12,
                1.003_906_25 - 1e-12,
                1.011_718_75 - 1e-12,
                1.000_488_281_25,
                1.000_488_281_25 + 1e-12,
                1.0 + 5.960_464_477_539_063e-8,
                1.0 + 5.960_464_477_539_063e-8 + 1e-15,
                2.980_232_238_769_531_3e-8,
                2.980_232_238_769_532e-8,
                1e-45,
                4.6e-41,
                1e-60,
                3.402_823_466_385_288_6e38,
                3.402_823_567_797_336_6e38,
                3.39e38,
                1e300,
                f64::INFINITY,
                f64::NAN,
            ];
            positive.iter().flat_map(|v: &f64| [v.to_bits(), (-v).to_bits()]).collect()
        }
    }
}

/// The oracle itself, against the host's own conversions.
#[test]
fn the_oracle_rounds_like_the_host() {
    for bits in edges(F64).into_iter().chain((0..20_000_u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15))) {
        let value = f64::from_bits(bits);
        assert!(same(F32, cast(F64, F32, bits), u64::from((value as f32).to_bits())), "{value:e}");
        assert_eq!(cast(F64, I32, bits), u64::from(value as i32 as u32), "{value:e}");
        assert_eq!(cast(F64, U64, bits), value as u64, "{value:e}");
        let single = value as f32;
        assert!(same(F64, cast(F32, F64, u64::from(single.to_bits())), f64::from(single).to_bits()));
        assert_eq!(cast(F32, I8, u64::from(single.to_bits())), u64::from(single as i8 as u8), "{single:e}");
        assert!(same(F32, cast(I64, F32, bits), u64::from((bits as i64 as f32).to_bits())), "{bits}");
        assert!(same(F64, cast(U64, F64, bits), (bits as f64).to_bits()), "{bits}");
    }
    for bits in 0..1 << 16 {
        for element in [F16, Bf16] {
            assert!(same(element, cast(F32, element, cast(element, F32, bits)), bits), "{element} {bits:#x}");
        }
    }
    assert_eq!(
        [cast(F64, Bf16, 1.003_906_25_f64.to_bits()), cast(F64, Bf16, 1.003_906_26_f64.to_bits())],
        [0x3F80, 0x3F81]
    );
    assert_eq!(
        [cast(I32, F16, 65519), cast(I32, F16, 65520), cast(F32, Tf32, 0x3F80_3000)],
        [0x7BFF, 0x7C00, 0x3F80_4000]
    );
}

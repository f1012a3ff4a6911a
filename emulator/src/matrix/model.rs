//! What a product and sum is.
//!
//! - *fast*: f32 sums in the order of k, starting from c. Products of f16, bf16, tf32 and fp8 are exact in f32 (but for
//!   underflow), so
//!   |d − exact| ≤ 2^-23 · (k + 1) · (|c| + Σ|ab|) up to second order.
//! - *bit models*: the products of a block and c are aligned to the greatest exponent among them, truncated to F bits
//!   below it, added exactly, and the sum is truncated to f32 (rounded to nearest for f16 results). Blocks follow each
//!   other from k = 0. After Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS
//!   7:e330 (2021), and Xie and others, "MMA-Sim" (2025). Ampere: blocks of 8 (tf32: 4) and F = 24; Hopper: blocks of
//!   16 (tf32: 8) and F = 25; fp8: blocks of 32 and F = 13.
//! - f64: fused multiply-adds in the order of k. Integers: exact, then wrapped or clamped.
//!
//! Matrices are row-major and raw: an element is the bits that a register holds for it.

use super::{Element, Product, Sum};
use crate::launch::MatrixModel;
use crate::num::exact;
use crate::num::format::{BF16, E4M3, E5M2, F16, F32, F64, Format, Number, Round, TF32};

/// A format and the shift that brings its bits down.
fn format(element: Element) -> (Format, u32) {
    match element {
        Element::Bf16 => (BF16, 0),
        Element::Tf32 => (TF32, 13),
        Element::E4m3 => (E4M3, 0),
        Element::E5m2 => (E5M2, 0),
        _ => (F16, 0),
    }
}

fn to_f32(element: Element, bits: u32) -> f32 {
    match element {
        Element::F16 => half::f16::from_bits(bits as u16).to_f32(),
        Element::Bf16 => f32::from_bits(bits << 16),
        // The lower bits of a tf32 operand are ignored.
        Element::Tf32 => f32::from_bits(bits & !0x1fff),
        other => {
            let (format, _) = format(other);
            f32::from_bits(exact::convert(format, F32, Round::Nearest, u64::from(bits)) as u32)
        }
    }
}

/// `d = a·b + c` on raw elements of at most 32 bits: `a` is m × k, `b` k × n, `c` and `d` m × n.
pub fn multiply(product: &Product, model: MatrixModel, a: &[u32], b: &[u32], c: &[u32], d: &mut [u32]) {
    match product.a {
        Element::Int { .. } | Element::Bits => integers(product, a, b, c, d),
        _ => match model {
            MatrixModel::Fast => fast(product, a, b, c, d),
            MatrixModel::Ampere => blocks(product, (8, 24), a, b, c, d),
            MatrixModel::Hopper => blocks(product, (16, 25), a, b, c, d),
        },
    }
}

fn fast(product: &Product, a: &[u32], b: &[u32], c: &[u32], d: &mut [u32]) {
    let Product { m, n, k, .. } = *product;
    let a: Vec<f32> = a[..m * k].iter().map(|bits| to_f32(product.a, *bits)).collect();
    let b: Vec<f32> = b[..k * n].iter().map(|bits| to_f32(product.b, *bits)).collect();
    let mut row = vec![0f32; n];
    for i in 0..m {
        for (sum, bits) in row.iter_mut().zip(&c[i * n..][..n]) {
            *sum = match product.c {
                Sum::F16 => to_f32(Element::F16, *bits),
                _ => f32::from_bits(*bits),
            };
        }
        for (x, line) in a[i * k..][..k].iter().zip(b.chunks_exact(n)) {
            for (sum, y) in row.iter_mut().zip(line) {
                *sum += x * y;
            }
        }
        for (out, sum) in d[i * n..][..n].iter_mut().zip(&row) {
            *out = result(product.d, sum.to_bits(), Round::Nearest);
        }
    }
}

/// An f32 as an element of D.
fn result(sum: Sum, bits: u32, round: Round) -> u32 {
    let is_nan = F32.is_nan(u64::from(bits));
    match sum {
        Sum::F16 => exact::convert(F32, F16, round, u64::from(bits)) as u32,
        _ if is_nan => F32.nan as u32,
        _ => bits,
    }
}

fn blocks(product: &Product, (length, fraction): (usize, u32), a: &[u32], b: &[u32], c: &[u32], d: &mut [u32]) {
    let Product { m, n, k, .. } = *product;
    let (length, fraction) = match product.a {
        Element::Tf32 => (length / 2, fraction),
        Element::E4m3 | Element::E5m2 => (32, 13),
        _ => (length, fraction),
    };
    let unpack = |element: Element, bits: u32| {
        let (format, shift) = format(element);
        format.unpack(u64::from(bits >> shift))
    };
    let widths = (format(product.a).0.fraction + format(product.b).0.fraction) as i32;
    for i in 0..m {
        for j in 0..n {
            let mut sum = match product.c {
                Sum::F16 => exact::convert(F16, F32, Round::Nearest, u64::from(c[i * n + j])) as u32,
                _ => c[i * n + j],
            };
            for first in (0..k).step_by(length) {
                let terms = (first..k.min(first + length))
                    .map(|l| (unpack(product.a, a[i * k + l]), unpack(product.b, b[l * n + j])));
                sum = block(sum, terms, widths, fraction);
            }
            d[i * n + j] = result(product.d, sum, Round::Nearest);
        }
    }
}

/// One block: `c` plus the products, aligned, truncated to `fraction` bits below the greatest exponent, added,
/// truncated to f32. `widths` is the number of fraction bits of both factors: exponents are those of the formats, so
/// that a subnormal factor counts as its least exponent, and products are not normalised before they are aligned.
pub fn block(c: u32, terms: impl Iterator<Item = (Number, Number)> + Clone, widths: i32, fraction: u32) -> u32 {
    let c = F32.unpack(u64::from(c));
    let mut infinite = None;
    let (mut nan, mut greatest) = (c == Number::Nan, i32::MIN);
    let mut see_infinity = |negative: bool, nan: &mut bool| match infinite {
        Some(sign) if sign != negative => *nan = true,
        _ => infinite = Some(negative),
    };
    match c {
        Number::Infinity { negative } => see_infinity(negative, &mut nan),
        Number::Finite { exponent, .. } => greatest = exponent + F32.fraction as i32,
        _ => {}
    }
    for (x, y) in terms.clone() {
        match (x, y) {
            (Number::Nan, _) | (_, Number::Nan) => nan = true,
            (Number::Infinity { .. }, Number::Zero { .. }) | (Number::Zero { .. }, Number::Infinity { .. }) => {
                nan = true
            }
            (Number::Infinity { negative: s }, other) | (other, Number::Infinity { negative: s }) => {
                let negative = match other {
                    Number::Infinity { negative } | Number::Finite { negative, .. } => negative,
                    _ => false,
                };
                see_infinity(s != negative, &mut nan);
            }
            (Number::Finite { exponent: e, .. }, Number::Finite { exponent: f, .. }) => {
                greatest = greatest.max(e + f + widths)
            }
            _ => {}
        }
    }
    if nan {
        return F32.nan as u32;
    }
    if let Some(negative) = infinite {
        return F32.with_sign(F32.infinity(), negative) as u32;
    }
    if greatest == i32::MIN {
        // All products are zeros: the sum keeps c, or is a positive zero unless everything is negative.
        let all_negative =
            matches!(c, Number::Zero { negative: true }) && terms.clone().all(|(x, y)| negative(x) != negative(y));
        return F32.zero(all_negative) as u32;
    }
    let last = greatest - fraction as i32;
    let aligned = |negative: bool, exponent: i32, significand: u128| {
        let shift = exponent - last;
        let magnitude = if shift >= 0 {
            significand << shift.min(100)
        } else {
            significand.checked_shr(-shift as u32).unwrap_or(0)
        };
        if negative { -(magnitude as i128) } else { magnitude as i128 }
    };
    let mut sum = match c {
        Number::Finite { negative, exponent, significand } => aligned(negative, exponent, significand),
        _ => 0,
    };
    for (x, y) in terms {
        if let (
            Number::Finite { negative: n, exponent: e, significand: s },
            Number::Finite { negative: m, exponent: f, significand: t },
        ) = (x, y)
        {
            sum += aligned(n != m, e + f, s * t);
        }
    }
    let bits = F32.round(sum < 0, last, sum.unsigned_abs(), false, Round::Zero);
    // Beyond the largest finite value the hardware gives infinity.
    let beyond = sum != 0 && last + top(sum.unsigned_abs()) > 127;
    (if beyond { F32.with_sign(F32.infinity(), sum < 0) } else { bits }) as u32
}

/// Number of the topmost set bit.
fn top(significand: u128) -> i32 {
    127 - significand.leading_zeros() as i32
}

fn negative(number: Number) -> bool {
    match number {
        Number::Nan => false,
        Number::Infinity { negative } | Number::Zero { negative } | Number::Finite { negative, .. } => negative,
    }
}

fn integers(product: &Product, a: &[u32], b: &[u32], c: &[u32], d: &mut [u32]) {
    let Product { m, n, k, .. } = *product;
    let value = |element: Element, bits: u32| match element {
        Element::Int { bits: size, signed: true } => i64::from((bits << (32 - size)) as i32 >> (32 - size)),
        _ => i64::from(bits),
    };
    for i in 0..m {
        for j in 0..n {
            let mut sum = i64::from(c[i * n + j] as i32);
            for l in 0..k {
                let (x, y) = (a[i * k + l], b[l * n + j]);
                sum += match product.a {
                    Element::Bits => i64::from(if product.and { x & y } else { x ^ y }.count_ones()),
                    _ => value(product.a, x) * value(product.b, y),
                };
            }
            let clamped = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
            d[i * n + j] = (if product.saturate { clamped } else { sum }) as u32;
        }
    }
}

/// `d = a·b + c` in f64.
pub fn multiply_f64(product: &Product, a: &[u64], b: &[u64], c: &[u64], d: &mut [u64]) {
    let Product { m, n, k, round, .. } = *product;
    for i in 0..m {
        for j in 0..n {
            let mut sum = c[i * n + j];
            for l in 0..k {
                let (x, y) = (a[i * k + l], b[l * n + j]);
                sum = match round {
                    Round::Nearest => f64::from_bits(x).mul_add(f64::from_bits(y), f64::from_bits(sum)).to_bits(),
                    _ => exact::fma(F64, round, x, y, sum),
                };
            }
            d[i * n + j] = if F64.is_nan(sum) { F64.nan } else { sum };
        }
    }
}

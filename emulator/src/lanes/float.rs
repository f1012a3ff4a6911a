//! Floating-point rows. Round-to-nearest instructions run on the host's own arithmetic where that is exact by proof (each case says
//! why); everything else loops over `num::float`, which is exact in every rounding.

use super::{LANES, Mask, Row, Wide, mask_of};
use crate::num::approx::{Approx, approx};
use crate::num::float::{Float1, Float2, FloatCompare, FloatMode, FloatType, compare, float1, float2, fma};

const NAN32: u32 = 0x7fff_ffff;

/// Flushes a subnormal f32 to a zero of its sign.
#[inline(always)]
fn flush(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

#[inline(always)]
fn operand<const FTZ: bool>(bits: u32) -> f32 {
    f32::from_bits(if FTZ { flush(bits) } else { bits })
}

#[inline(always)]
fn result<const FTZ: bool>(value: f32) -> u32 {
    let bits = if FTZ { flush(value.to_bits()) } else { value.to_bits() };
    if value.is_nan() { NAN32 } else { bits }
}

/// The f64 sum of `a · b` and `c` rounded to odd, for operands of at most 26 significant bits: the product is exact, and a result
/// with its last bit set whenever it is inexact can be rounded again to any format of at most 51 bits as if it were exact.
#[inline(always)]
fn fma_odd(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    // Knuth's exact error of an addition.
    let part = sum - product;
    let error = (product - (sum - part)) + (c - part);
    let bits = sum.to_bits();
    // One when the sum is inexact (and finite: the error of an infinite sum is NaN) and its last bit is clear.
    let step = u64::from(error.abs() > 0.0) & !bits & 1;
    let towards_zero = (error.to_bits() ^ bits) >> 63;
    f64::from_bits(bits.wrapping_add(step).wrapping_sub((step & towards_zero) << 1))
}

/// An f64 rounded to f32, to odd.
#[inline(always)]
fn narrow_odd(value: f64) -> f32 {
    let near = value as f32;
    let error = value - f64::from(near);
    let bits = near.to_bits();
    let step = u32::from(error.abs() > 0.0) & !bits & 1;
    let towards_zero = u32::from((error < 0.0) != (near < 0.0));
    // Overflow leaves an infinity with an infinite error; every narrower format overflows there as well.
    if near.is_infinite() || near == 0.0 && error == 0.0 {
        return near;
    }
    if near == 0.0 {
        return f32::from_bits(u32::from(value < 0.0) << 31 | 1);
    }
    f32::from_bits(bits.wrapping_add(step).wrapping_sub((step & towards_zero) << 1))
}

/// The value of f16 bits.
#[inline(always)]
pub fn f16_to_f32(bits: u32) -> f32 {
    let magnitude = (bits & 0x7fff) << 13;
    // Scaling by 2^112 moves the exponent bias, and makes subnormals normal.
    let scaled = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    let special = magnitude >= 0x0f80_0000;
    let magnitude = if special { magnitude | 0x7f80_0000 } else { scaled.to_bits() };
    f32::from_bits(magnitude | (bits & 0x8000) << 16)
}

/// The nearest f16, NaN canonical.
#[inline(always)]
pub fn f32_to_f16(value: f32) -> u32 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let sign = bits >> 16 & 0x8000;
    let normal = (magnitude.wrapping_add(0xc800_0fff).wrapping_add(magnitude >> 13 & 1)) >> 13;
    // Adding 1/2 puts the unit in the last place of an f16 subnormal, 2^-24, at the end of the fraction.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let finite = if magnitude < 0x3880_0000 { small } else { normal };
    let rounded = if magnitude >= 0x477f_f000 { 0x7c00 } else { finite };
    if magnitude > 0x7f80_0000 { 0x7fff } else { rounded | sign }
}

/// The nearest bf16, NaN canonical.
#[inline(always)]
pub fn f32_to_bf16(value: f32) -> u32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff).wrapping_add(bits >> 16 & 1) >> 16;
    if bits & 0x7fff_ffff > 0x7f80_0000 { 0x7fff } else { rounded }
}

/// The value of bf16 bits.
#[inline(always)]
pub fn bf16_to_f32(bits: u32) -> f32 {
    f32::from_bits(bits << 16)
}

#[inline(always)]
fn each(out: &mut Row, f: impl Fn(usize) -> u32) {
    for (lane, value) in out.iter_mut().enumerate() {
        *value = f(lane);
    }
}

fn native2<const FTZ: bool>(op: Float2, a: &Row, b: &Row, out: &mut Row) -> bool {
    let x = |i: usize| operand::<FTZ>(a[i]);
    let y = |i: usize| operand::<FTZ>(b[i]);
    match op {
        Float2::Add => each(out, |i| result::<FTZ>(x(i) + y(i))),
        Float2::Sub => each(out, |i| result::<FTZ>(x(i) - y(i))),
        Float2::Mul => each(out, |i| result::<FTZ>(x(i) * y(i))),
        Float2::Div => each(out, |i| result::<FTZ>(x(i) / y(i))),
        Float2::Min { nan, xorsign: false } => each(out, |i| extremum(x(i), y(i), nan, false)),
        Float2::Max { nan, xorsign: false } => each(out, |i| extremum(x(i), y(i), nan, true)),
        Float2::Min { .. } | Float2::Max { .. } | Float2::Copysign => return false,
    }
    true
}

#[inline(always)]
fn extremum(x: f32, y: f32, nan: bool, greatest: bool) -> u32 {
    // The integer order of the bits, with the magnitude bits of negative numbers complemented, is the order of the numbers with −0 below +0.
    let rank = |v: f32| {
        let bits = v.to_bits() as i32;
        bits ^ (((bits >> 31) as u32) >> 1) as i32
    };
    let chosen = if (rank(x) < rank(y)) == greatest { y.to_bits() } else { x.to_bits() };
    let chosen = if y.is_nan() { x.to_bits() } else { chosen };
    let chosen = if x.is_nan() { y.to_bits() } else { chosen };
    let all = x.is_nan() && y.is_nan();
    let any = x.is_nan() || y.is_nan();
    if all || (nan && any) { NAN32 } else { chosen }
}

/// Rows of f16 or bf16, round to nearest without flushing. The f32 sum of two such numbers rounds to them as if it were exact (24 ≥ 2·11 + 2
/// bits, and sums are never subnormal and inexact); an f16 product is exact in f32; a bf16 product may be an inexact f32 subnormal, so it
/// goes through an exact f64.
fn narrow2(op: Float2, ty: FloatType, a: &Row, b: &Row, out: &mut Row) -> bool {
    match (ty, op) {
        (FloatType::F16, Float2::Add) => each(out, |i| f32_to_f16(f16_to_f32(a[i]) + f16_to_f32(b[i]))),
        (FloatType::F16, Float2::Sub) => each(out, |i| f32_to_f16(f16_to_f32(a[i]) - f16_to_f32(b[i]))),
        (FloatType::F16, Float2::Mul) => each(out, |i| f32_to_f16(f16_to_f32(a[i]) * f16_to_f32(b[i]))),
        (FloatType::Bf16, Float2::Add) => each(out, |i| f32_to_bf16(bf16_to_f32(a[i]) + bf16_to_f32(b[i]))),
        (FloatType::Bf16, Float2::Sub) => each(out, |i| f32_to_bf16(bf16_to_f32(a[i]) - bf16_to_f32(b[i]))),
        (FloatType::Bf16, Float2::Mul) => {
            each(out, |i| f32_to_bf16(narrow_odd(f64::from(bf16_to_f32(a[i])) * f64::from(bf16_to_f32(b[i])))));
        }
        _ => return false,
    }
    true
}

/// Splits packed halves into two rows.
fn halves(row: &Row) -> (Row, Row) {
    (row.map(|v| v & 0xffff), row.map(|v| v >> 16))
}

fn join(low: &Row, high: &Row, out: &mut Row) {
    for lane in 0..LANES {
        out[lane] = low[lane] | high[lane] << 16;
    }
}

/// One operand of at most 32 bits.
pub fn row1(op: Float1, mode: FloatMode, packed: bool, a: &Row, out: &mut Row) {
    if packed {
        let (low, high) = halves(a);
        let (mut x, mut y) = ([0; LANES], [0; LANES]);
        row1(op, mode, false, &low, &mut x);
        row1(op, mode, false, &high, &mut y);
        return join(&x, &y, out);
    }
    if mode.ty == FloatType::F32 && mode.is_nearest() {
        match (op, mode.ftz) {
            (Float1::Sqrt, false) => return each(out, |i| result::<false>(operand::<false>(a[i]).sqrt())),
            (Float1::Sqrt, true) => return each(out, |i| result::<true>(operand::<true>(a[i]).sqrt())),
            (Float1::Rcp, false) => return each(out, |i| result::<false>(1.0 / operand::<false>(a[i]))),
            (Float1::Rcp, true) => return each(out, |i| result::<true>(1.0 / operand::<true>(a[i]))),
            (Float1::Abs | Float1::Neg, _) => {}
        }
    }
    each(out, |i| float1(op, mode, u64::from(a[i])) as u32);
}

/// Two operands of at most 32 bits.
pub fn row2(op: Float2, mode: FloatMode, packed: bool, a: &Row, b: &Row, out: &mut Row) {
    if packed {
        let ((a_low, a_high), (b_low, b_high)) = (halves(a), halves(b));
        let (mut x, mut y) = ([0; LANES], [0; LANES]);
        row2(op, mode, false, &a_low, &b_low, &mut x);
        row2(op, mode, false, &a_high, &b_high, &mut y);
        return join(&x, &y, out);
    }
    let done = match mode.ty {
        _ if !mode.is_nearest() => false,
        FloatType::F32 if mode.ftz => native2::<true>(op, a, b, out),
        FloatType::F32 => native2::<false>(op, a, b, out),
        FloatType::F16 | FloatType::Bf16 if !mode.ftz => narrow2(op, mode.ty, a, b, out),
        _ => false,
    };
    if !done {
        each(out, |i| float2(op, mode, u64::from(a[i]), u64::from(b[i])) as u32);
    }
}

fn native_fma<const FTZ: bool>(a: &Row, b: &Row, c: &Row, out: &mut Row) {
    let value = |bits: u32| f64::from(operand::<FTZ>(bits));
    each(out, |i| result::<FTZ>(fma_odd(value(a[i]), value(b[i]), value(c[i])) as f32));
}

/// `a · b + c` of at most 32 bits, rounded once.
pub fn row3(mode: FloatMode, packed: bool, a: &Row, b: &Row, c: &Row, out: &mut Row) {
    if packed {
        let ((a_low, a_high), (b_low, b_high), (c_low, c_high)) = (halves(a), halves(b), halves(c));
        let (mut x, mut y) = ([0; LANES], [0; LANES]);
        row3(mode, false, &a_low, &b_low, &c_low, &mut x);
        row3(mode, false, &a_high, &b_high, &c_high, &mut y);
        return join(&x, &y, out);
    }
    if mode.is_nearest() {
        let half = |bits: u32| f64::from(f16_to_f32(bits));
        let brain = |bits: u32| f64::from(bf16_to_f32(bits));
        match (mode.ty, mode.ftz) {
            (FloatType::F32, true) => return native_fma::<true>(a, b, c, out),
            (FloatType::F32, false) => return native_fma::<false>(a, b, c, out),
            (FloatType::F16, false) => {
                return each(out, |i| f32_to_f16(narrow_odd(fma_odd(half(a[i]), half(b[i]), half(c[i])))));
            }
            (FloatType::Bf16, false) => {
                return each(out, |i| f32_to_bf16(narrow_odd(fma_odd(brain(a[i]), brain(b[i]), brain(c[i])))));
            }
            _ => {}
        }
    }
    each(out, |i| fma(mode, u64::from(a[i]), u64::from(b[i]), u64::from(c[i])) as u32);
}

fn wide_result(value: f64) -> u64 {
    if value.is_nan() { crate::num::format::F64.nan } else { value.to_bits() }
}

/// One f64 operand.
pub fn wide1(op: Float1, mode: FloatMode, a: &Wide, out: &mut Wide) {
    for lane in 0..LANES {
        out[lane] = match op {
            Float1::Sqrt if mode.is_nearest() => wide_result(f64::from_bits(a[lane]).sqrt()),
            Float1::Rcp if mode.is_nearest() => wide_result(1.0 / f64::from_bits(a[lane])),
            _ => float1(op, mode, a[lane]),
        };
    }
}

/// Two f64 operands.
pub fn wide2(op: Float2, mode: FloatMode, a: &Wide, b: &Wide, out: &mut Wide) {
    let native = |out: &mut Wide, f: fn(f64, f64) -> f64| {
        for lane in 0..LANES {
            out[lane] = wide_result(f(f64::from_bits(a[lane]), f64::from_bits(b[lane])));
        }
    };
    match op {
        Float2::Add if mode.is_nearest() => native(out, |x, y| x + y),
        Float2::Sub if mode.is_nearest() => native(out, |x, y| x - y),
        Float2::Mul if mode.is_nearest() => native(out, |x, y| x * y),
        Float2::Div if mode.is_nearest() => native(out, |x, y| x / y),
        _ => {
            for lane in 0..LANES {
                out[lane] = float2(op, mode, a[lane], b[lane]);
            }
        }
    }
}

/// f64 `a · b + c`, rounded once.
pub fn wide3(mode: FloatMode, a: &Wide, b: &Wide, c: &Wide, out: &mut Wide) {
    for lane in 0..LANES {
        out[lane] = if mode.is_nearest() {
            wide_result(f64::from_bits(a[lane]).mul_add(f64::from_bits(b[lane]), f64::from_bits(c[lane])))
        } else {
            fma(mode, a[lane], b[lane], c[lane])
        };
    }
}

/// Comparison of at most 32 bits.
pub fn compare_row(op: FloatCompare, ty: FloatType, ftz: bool, a: &Row, b: &Row) -> Mask {
    let value = |bits: u32| match ty {
        FloatType::F16 => f16_to_f32(bits),
        FloatType::Bf16 => bf16_to_f32(bits),
        _ => f32::from_bits(if ftz { flush(bits) } else { bits }),
    };
    let simple = |f: &dyn Fn(f32, f32) -> bool| mask_of(|i| f(value(a[i]), value(b[i])));
    if ftz && ty != FloatType::F32 {
        return mask_of(|i| compare(op, ty, ftz, u64::from(a[i]), u64::from(b[i])));
    }
    match op {
        FloatCompare::Lt => mask_of(|i| value(a[i]) < value(b[i])),
        FloatCompare::Gt => mask_of(|i| value(a[i]) > value(b[i])),
        FloatCompare::Le => simple(&|x, y| x <= y),
        FloatCompare::Ge => simple(&|x, y| x >= y),
        FloatCompare::Eq => simple(&|x, y| x == y),
        FloatCompare::Neu => simple(&|x, y| x != y),
        _ => mask_of(|i| compare(op, ty, ftz, u64::from(a[i]), u64::from(b[i]))),
    }
}

/// Comparison of f64.
pub fn compare_wide(op: FloatCompare, a: &Wide, b: &Wide) -> Mask {
    mask_of(|i| compare(op, FloatType::F64, false, a[i], b[i]))
}

/// An approximate function of at most 32 bits.
pub fn approx_row(op: Approx, mode: FloatMode, packed: bool, perturb: Option<u64>, a: &Row, out: &mut Row) {
    if packed {
        let (low, high) = halves(a);
        let (mut x, mut y) = ([0; LANES], [0; LANES]);
        approx_row(op, mode, false, perturb, &low, &mut x);
        approx_row(op, mode, false, perturb, &high, &mut y);
        return join(&x, &y, out);
    }
    if mode.ty == FloatType::F32 && mode.is_nearest() && perturb.is_none() {
        let run = |out: &mut Row, f: fn(f64) -> f64| {
            if mode.ftz {
                each(out, |i| result::<true>(f(f64::from(operand::<true>(a[i]))) as f32));
            } else {
                each(out, |i| result::<false>(f(f64::from(operand::<false>(a[i]))) as f32));
            }
        };
        return match op {
            Approx::Rcp => run(out, |x| 1.0 / x),
            Approx::Sqrt => run(out, f64::sqrt),
            Approx::Rsqrt => run(out, |x| 1.0 / x.sqrt()),
            Approx::Ex2 => run(out, f64::exp2),
            Approx::Lg2 => run(out, f64::log2),
            Approx::Sin => run(out, f64::sin),
            Approx::Cos => run(out, f64::cos),
            Approx::Tanh => run(out, f64::tanh),
        };
    }
    each(out, |i| approx(op, mode, u64::from(a[i]), perturb) as u32);
}

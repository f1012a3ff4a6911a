//! Floating-point rows. Round-to-nearest instructions run on the host's own arithmetic where that is exact by proof
//! (each case says why); everything else loops over `num::float`, which is exact in every rounding.

use super::{LANES, Mask, Row, Rows, Wide};
use crate::num::approx::{Approx, approx};
use crate::num::elementary::{exp2, log2};
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

/// The f64 sum of `a · b` and `c` rounded to odd, for operands of at most 26 significant bits: the product is exact,
/// and a result with its last bit set whenever it is inexact can be rounded again to any format of at most 51 bits as
/// if it were exact.
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

macro_rules! native {
    ($($name:ident $op:tt $what:literal),*) => {$(
        #[doc = concat!("The ", $what, " of f32, rounded to nearest.")]
        #[inline(always)]
        pub fn $name<const FTZ: bool>(rows: &mut Rows<u32>, [d, a, b]: [u32; 3]) {
            let (a, b) = (&rows[a], &rows[b]);
            each!(rows[d], i => result::<FTZ>(operand::<FTZ>(a[i]) $op operand::<FTZ>(b[i])));
        }
    )*};
}
native!(add + "sum", sub - "difference", mul * "product");

#[inline(always)]
fn native2<const FTZ: bool>(op: Float2, rows: &mut Rows<u32>, [d, a, b]: [u32; 3]) -> bool {
    let (xs, ys) = (&rows[a], &rows[b]);
    // What an operand is, as an expression of the lane.
    macro_rules! x {
        ($i:ident) => {
            operand::<FTZ>(xs[$i])
        };
    }
    macro_rules! y {
        ($i:ident) => {
            operand::<FTZ>(ys[$i])
        };
    }
    match op {
        Float2::Add => add::<FTZ>(rows, [d, a, b]),
        Float2::Sub => sub::<FTZ>(rows, [d, a, b]),
        Float2::Mul => mul::<FTZ>(rows, [d, a, b]),
        Float2::Div => each!(rows[d], i => result::<FTZ>(x!(i) / y!(i))),
        Float2::Min { nan: false, xorsign: false } => each!(rows[d], i => extremum(x!(i), y!(i), false, false)),
        Float2::Max { nan: false, xorsign: false } => maximum::<FTZ>(rows, [d, a, b]),
        Float2::Min { nan: true, xorsign: false } => each!(rows[d], i => extremum(x!(i), y!(i), true, false)),
        Float2::Max { nan: true, xorsign: false } => each!(rows[d], i => extremum(x!(i), y!(i), true, true)),
        Float2::Min { .. } | Float2::Max { .. } | Float2::Copysign => return false,
    }
    true
}

/// The integer order of the ranks is the order of the numbers with −0 below +0: magnitude bits of negative numbers are
/// complemented.
#[inline(always)]
fn rank(value: f32) -> i32 {
    let bits = value.to_bits() as i32;
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

/// The maximum of f32, of a number and NaN the number.
#[inline(always)]
pub fn maximum<const FTZ: bool>(rows: &mut Rows<u32>, [d, a, b]: [u32; 3]) {
    let (a, b) = (&rows[a], &rows[b]);
    each!(rows[d], i => extremum(operand::<FTZ>(a[i]), operand::<FTZ>(b[i]), false, true));
}

#[inline(always)]
fn extremum(x: f32, y: f32, nan: bool, greatest: bool) -> u32 {
    let chosen = if (rank(x) < rank(y)) == greatest { y.to_bits() } else { x.to_bits() };
    let chosen = if y.is_nan() { x.to_bits() } else { chosen };
    let chosen = if x.is_nan() { y.to_bits() } else { chosen };
    let all = x.is_nan() && y.is_nan();
    let any = x.is_nan() || y.is_nan();
    if all || (nan && any) { NAN32 } else { chosen }
}

/// Rows of f16 or bf16, round to nearest without flushing. The f32 sum of two such numbers rounds to them as if it were
/// exact (24 ≥ 2·11 + 2 bits, and sums are never subnormal and inexact); an f16 product is exact in f32; a bf16 product
/// may be an inexact f32 subnormal, so it goes through an exact f64.
#[inline(always)]
fn narrow2(op: Float2, ty: FloatType, a: &Row, b: &Row, out: &mut Row) -> bool {
    match (ty, op) {
        (FloatType::F16, Float2::Add) => each!(*out, i => f32_to_f16(f16_to_f32(a[i]) + f16_to_f32(b[i]))),
        (FloatType::F16, Float2::Sub) => each!(*out, i => f32_to_f16(f16_to_f32(a[i]) - f16_to_f32(b[i]))),
        (FloatType::F16, Float2::Mul) => each!(*out, i => f32_to_f16(f16_to_f32(a[i]) * f16_to_f32(b[i]))),
        (FloatType::Bf16, Float2::Add) => each!(*out, i => f32_to_bf16(bf16_to_f32(a[i]) + bf16_to_f32(b[i]))),
        (FloatType::Bf16, Float2::Sub) => each!(*out, i => f32_to_bf16(bf16_to_f32(a[i]) - bf16_to_f32(b[i]))),
        (FloatType::Bf16, Float2::Mul) => {
            each!(*out, i => f32_to_bf16(narrow_odd(f64::from(bf16_to_f32(a[i])) * f64::from(bf16_to_f32(b[i])))));
        }
        _ => return false,
    }
    true
}

/// Runs a body that makes a row from others of at most 32 bits: once, or for packed halves twice, so that it is
/// compiled once.
macro_rules! halves {
    ($mode:ident, $packed:ident, $rows:ident[$d:ident], [$($row:ident)*], $out:ident => $body:expr) => {{
        let keep = if $mode.ty == FloatType::F32 { u32::MAX } else { 0xffff };
        let mut target: Row = [0; LANES];
        for pass in 0..1 + u32::from($packed) {
            $(let $row: &Row = &row!(i => $rows[$row][i] >> (16 * pass) & keep);)*
            let mut result: Row = [0; LANES];
            let $out = &mut result;
            $body;
            target = row!(i => target[i] | result[i] << (16 * pass));
        }
        $rows[$d] = target;
    }};
}

#[inline(never)]
fn exact1(op: Float1, mode: FloatMode, a: &Row, out: &mut Row) {
    each!(*out, i => float1(op, mode, u64::from(a[i])) as u32);
}

#[inline(never)]
fn exact2(op: Float2, mode: FloatMode, a: &Row, b: &Row, out: &mut Row) {
    each!(*out, i => float2(op, mode, u64::from(a[i]), u64::from(b[i])) as u32);
}

#[inline(never)]
fn exact3(mode: FloatMode, a: &Row, b: &Row, c: &Row, out: &mut Row) {
    each!(*out, i => fma(mode, u64::from(a[i]), u64::from(b[i]), u64::from(c[i])) as u32);
}

/// One operand of at most 32 bits.
#[inline(always)]
pub fn row1(op: Float1, mode: FloatMode, packed: bool, rows: &mut Rows<u32>, [d, a]: [u32; 2]) {
    // Signs need no rounding.
    let sign = mode.ty.format().zero(true) as u32;
    if mode.ty == FloatType::F32 {
        let a = &rows[a];
        match (op, mode.ftz) {
            (Float1::Abs, false) => return each!(rows[d], i => a[i] & !sign),
            (Float1::Abs, true) => return each!(rows[d], i => flush(a[i]) & !sign),
            (Float1::Neg, false) => return each!(rows[d], i => a[i] ^ sign),
            (Float1::Neg, true) => return each!(rows[d], i => flush(a[i]) ^ sign),
            (Float1::Sqrt, false) if mode.is_nearest() => {
                return each!(rows[d], i => result::<false>(operand::<false>(a[i]).sqrt()));
            }
            (Float1::Sqrt, true) if mode.is_nearest() => {
                return each!(rows[d], i => result::<true>(operand::<true>(a[i]).sqrt()));
            }
            (Float1::Rcp, false) if mode.is_nearest() => {
                return each!(rows[d], i => result::<false>(1.0 / operand::<false>(a[i])));
            }
            (Float1::Rcp, true) if mode.is_nearest() => {
                return each!(rows[d], i => result::<true>(1.0 / operand::<true>(a[i])));
            }
            _ => {}
        }
    }
    halves!(mode, packed, rows[d], [a], out => match op {
        Float1::Abs if !mode.ftz => each!(*out, i => a[i] & !sign),
        Float1::Neg if !mode.ftz => each!(*out, i => a[i] ^ sign),
        _ => exact1(op, mode, a, out),
    });
}

/// Two operands of at most 32 bits.
#[inline(always)]
pub fn row2(op: Float2, mode: FloatMode, packed: bool, rows: &mut Rows<u32>, [d, a, b]: [u32; 3]) {
    if mode.ty == FloatType::F32 && mode.is_nearest() {
        let done = if mode.ftz { native2::<true>(op, rows, [d, a, b]) } else { native2::<false>(op, rows, [d, a, b]) };
        if done {
            return;
        }
    }
    halves!(mode, packed, rows[d], [a b], out => {
        if !(mode.is_nearest() && !mode.ftz && narrow2(op, mode.ty, a, b, out)) {
            exact2(op, mode, a, b, out);
        }
    });
}

/// `a · b + c` of f32, rounded to nearest once.
#[inline(always)]
pub fn fma_row<const FTZ: bool, const FMA: bool>(rows: &mut Rows<u32>, [d, a, b, c]: [u32; 4]) {
    let (a, b, c) = (&rows[a], &rows[b], &rows[c]);
    if FMA {
        each!(rows[d], i => result::<FTZ>(operand::<FTZ>(a[i]).mul_add(operand::<FTZ>(b[i]), operand::<FTZ>(c[i]))));
        return;
    }
    each!(rows[d], i => {
        let [a, b, c] = [operand::<FTZ>(a[i]), operand::<FTZ>(b[i]), operand::<FTZ>(c[i])];
        result::<FTZ>(fma_odd(f64::from(a), f64::from(b), f64::from(c)) as f32)
    });
}

/// `a · b + c` of at most 32 bits, rounded once. `FMA` says that the host has the instruction; its results are the
/// same.
#[inline(always)]
pub fn row3<const FMA: bool>(mode: FloatMode, packed: bool, rows: &mut Rows<u32>, [d, a, b, c]: [u32; 4]) {
    if mode.ty == FloatType::F32 && mode.is_nearest() {
        return if mode.ftz {
            fma_row::<true, FMA>(rows, [d, a, b, c])
        } else {
            fma_row::<false, FMA>(rows, [d, a, b, c])
        };
    }
    halves!(mode, packed, rows[d], [a b c], out => match mode.ty {
        FloatType::F16 if mode.is_nearest() && !mode.ftz => {
            each!(*out, i => f32_to_f16(narrow_odd(fma_odd(f16_to_f64(a[i]), f16_to_f64(b[i]), f16_to_f64(c[i])))));
        }
        FloatType::Bf16 if mode.is_nearest() && !mode.ftz => {
            each!(*out, i => f32_to_bf16(narrow_odd(fma_odd(bf16_to_f64(a[i]), bf16_to_f64(b[i]), bf16_to_f64(c[i])))));
        }
        _ => exact3(mode, a, b, c, out),
    });
}

#[inline(always)]
fn f16_to_f64(bits: u32) -> f64 {
    f64::from(f16_to_f32(bits))
}

#[inline(always)]
fn bf16_to_f64(bits: u32) -> f64 {
    f64::from(bf16_to_f32(bits))
}

#[inline(always)]
fn wide_result(value: f64) -> u64 {
    if value.is_nan() { crate::num::format::F64.nan } else { value.to_bits() }
}

/// One f64 operand.
#[inline(always)]
pub fn wide1(op: Float1, mode: FloatMode, rows: &mut Rows<u64>, [d, a]: [u32; 2]) {
    let a = rows[a];
    match op {
        Float1::Sqrt if mode.is_nearest() => each!(rows[d], i => wide_result(f64::from_bits(a[i]).sqrt())),
        Float1::Rcp if mode.is_nearest() => each!(rows[d], i => wide_result(1.0 / f64::from_bits(a[i]))),
        _ => exact_wide1(op, mode, &a, &mut rows[d]),
    }
}

#[inline(never)]
fn exact_wide1(op: Float1, mode: FloatMode, a: &Wide, out: &mut Wide) {
    each!(*out, i => float1(op, mode, a[i]));
}

/// Two f64 operands.
#[inline(always)]
pub fn wide2(op: Float2, mode: FloatMode, rows: &mut Rows<u64>, [d, a, b]: [u32; 3]) {
    let (x, y) = (&rows[a], &rows[b]);
    macro_rules! native {
        ($op:tt) => {
            each!(rows[d], i => wide_result(f64::from_bits(x[i]) $op f64::from_bits(y[i])))
        };
    }
    match op {
        Float2::Add if mode.is_nearest() => native!(+),
        Float2::Sub if mode.is_nearest() => native!(-),
        Float2::Mul if mode.is_nearest() => native!(*),
        Float2::Div if mode.is_nearest() => native!(/),
        _ => exact_wide2(op, mode, rows, [d, a, b]),
    }
}

#[inline(never)]
fn exact_wide2(op: Float2, mode: FloatMode, rows: &mut Rows<u64>, [d, a, b]: [u32; 3]) {
    let (a, b) = (&rows[a], &rows[b]);
    each!(rows[d], i => float2(op, mode, a[i], b[i]));
}

/// f64 `a · b + c`, rounded once.
#[inline(always)]
pub fn wide3<const FMA: bool>(mode: FloatMode, rows: &mut Rows<u64>, slots: [u32; 4]) {
    if !mode.is_nearest() {
        return exact_wide3(mode, rows, slots);
    }
    let [d, a, b, c] = slots;
    let (a, b, c) = (&rows[a], &rows[b], &rows[c]);
    // Without the host's instruction this is a library call, exact as well.
    each!(rows[d], i => wide_result(f64::from_bits(a[i]).mul_add(f64::from_bits(b[i]), f64::from_bits(c[i]))));
}

#[inline(never)]
fn exact_wide3(mode: FloatMode, rows: &mut Rows<u64>, [d, a, b, c]: [u32; 4]) {
    let (a, b, c) = (&rows[a], &rows[b], &rows[c]);
    each!(rows[d], i => fma(mode, a[i], b[i], c[i]));
}

/// Comparison of at most 32 bits.
#[inline(always)]
pub fn compare_row(op: FloatCompare, ty: FloatType, ftz: bool, a: &Row, b: &Row) -> Mask {
    let (x, y) = match (ty, ftz) {
        (FloatType::F32, false) => return compare_f32(op, a, b),
        (FloatType::F32, true) => (row!(i => flush(a[i])), row!(i => flush(b[i]))),
        (FloatType::F16, false) => (row!(i => f16_to_f32(a[i]).to_bits()), row!(i => f16_to_f32(b[i]).to_bits())),
        (FloatType::Bf16, false) => (row!(i => a[i] << 16), row!(i => b[i] << 16)),
        _ => return exact_compare(op, ty, ftz, a, b),
    };
    compare_f32(op, &x, &y)
}

#[inline(never)]
fn exact_compare(op: FloatCompare, ty: FloatType, ftz: bool, a: &Row, b: &Row) -> Mask {
    mask!(i => compare(op, ty, ftz, u64::from(a[i]), u64::from(b[i])))
}

/// Which of the relations less, equal, greater and unordered make a comparison true.
fn relations(op: FloatCompare) -> [Mask; 4] {
    let [less, equal, greater, unordered] = match op {
        FloatCompare::Eq => [0, 1, 0, 0],
        FloatCompare::Ne => [1, 0, 1, 0],
        FloatCompare::Lt => [1, 0, 0, 0],
        FloatCompare::Le => [1, 1, 0, 0],
        FloatCompare::Gt => [0, 0, 1, 0],
        FloatCompare::Ge => [0, 1, 1, 0],
        FloatCompare::Equ => [0, 1, 0, 1],
        FloatCompare::Neu => [1, 0, 1, 1],
        FloatCompare::Ltu => [1, 0, 0, 1],
        FloatCompare::Leu => [1, 1, 0, 1],
        FloatCompare::Gtu => [0, 0, 1, 1],
        FloatCompare::Geu => [0, 1, 1, 1],
        FloatCompare::Num => [1, 1, 1, 0],
        FloatCompare::Nan => [0, 0, 0, 1],
    };
    [less, equal, greater, unordered].map(|yes: u32| 0u32.wrapping_sub(yes))
}

/// Rows of f32, in one body for all operations.
#[inline(always)]
fn compare_f32(op: FloatCompare, a: &Row, b: &Row) -> Mask {
    let less = mask!(i => f32::from_bits(a[i]) < f32::from_bits(b[i]));
    let equal = mask!(i => f32::from_bits(a[i]) == f32::from_bits(b[i]));
    let greater = mask!(i => f32::from_bits(a[i]) > f32::from_bits(b[i]));
    let [l, e, g, u] = relations(op);
    (less & l) | (equal & e) | (greater & g) | (!(less | equal | greater) & u)
}

/// Comparison of f64.
#[inline(always)]
pub fn compare_wide(op: FloatCompare, a: &Wide, b: &Wide) -> Mask {
    let less = mask!(i => f64::from_bits(a[i]) < f64::from_bits(b[i]));
    let equal = mask!(i => f64::from_bits(a[i]) == f64::from_bits(b[i]));
    let greater = mask!(i => f64::from_bits(a[i]) > f64::from_bits(b[i]));
    let [l, e, g, u] = relations(op);
    (less & l) | (equal & e) | (greater & g) | (!(less | equal | greater) & u)
}

/// An approximate function of at most 32 bits.
#[inline(always)]
pub fn approx_row(
    op: Approx,
    mode: FloatMode,
    packed: bool,
    perturb: Option<u64>,
    rows: &mut Rows<u32>,
    [d, a]: [u32; 2],
) {
    if mode.ty == FloatType::F32 && mode.is_nearest() && perturb.is_none() {
        let row = &rows[a];
        let x: [f32; LANES] =
            if mode.ftz { row!(i => operand::<true>(row[i])) } else { row!(i => operand::<false>(row[i])) };
        let value: [f32; LANES] = match op {
            // The quotient and the root of f32 numbers in f64, rounded to f32, are those of f32: 53 ≥ 2·24 + 2 bits.
            Approx::Rcp => row!(i => 1.0 / x[i]),
            Approx::Sqrt => row!(i => x[i].sqrt()),
            Approx::Rsqrt => row!(i => (1.0 / f64::from(x[i]).sqrt()) as f32),
            Approx::Ex2 => row!(i => exp2(f64::from(x[i])) as f32),
            Approx::Lg2 => row!(i => log2(f64::from(x[i])) as f32),
            Approx::Sin | Approx::Cos | Approx::Tanh => return exact_approx(op, mode, packed, perturb, rows, [d, a]),
        };
        if mode.ftz {
            each!(rows[d], i => result::<true>(value[i]));
        } else {
            each!(rows[d], i => result::<false>(value[i]));
        }
        return;
    }
    exact_approx(op, mode, packed, perturb, rows, [d, a]);
}

/// `div.approx`, `div.full` of f32, round to nearest: see [`crate::num::approx::div`]. A quotient of f32 numbers in
/// f64, rounded to f32, is that of f32.
#[inline(always)]
pub fn div_approx(mode: FloatMode, full_range: bool, rows: &mut Rows<u32>, [d, a, b]: [u32; 3]) {
    let (a, b) = (&rows[a], &rows[b]);
    let limit = if full_range { u32::MAX } else { 0x7e80_0000 };
    each!(rows[d], i => {
        let (a, b) = if mode.ftz { (flush(a[i]), flush(b[i])) } else { (a[i], b[i]) };
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let magnitude = b & 0x7fff_ffff;
        // Divisors above 2^126: a zero, or NaN for an infinite dividend.
        let huge = (magnitude > limit) & (magnitude < 0x7f80_0000);
        let zero = 0.0 * x * y.signum();
        let quotient = if huge { zero } else { x / y };
        if mode.ftz { result::<true>(quotient) } else { result::<false>(quotient) }
    });
}

#[inline(never)]
fn exact_approx(
    op: Approx,
    mode: FloatMode,
    packed: bool,
    perturb: Option<u64>,
    rows: &mut Rows<u32>,
    [d, a]: [u32; 2],
) {
    halves!(mode, packed, rows[d], [a], out => each!(*out, i => approx(op, mode, u64::from(a[i]), perturb) as u32));
}

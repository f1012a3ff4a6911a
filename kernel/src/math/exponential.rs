//! `exp`, `log`, `tanh`, `erf`: argument reduction by powers of two, then a polynomial. Coefficients come from `derive.py`.

use super::ops::{Single, polynomial};

// 0x1.8p23: adding it to a number below 2^22 rounds that number to an integer, which is then the low bits of the sum.
const ROUND: f32 = 12_582_912.0;
const LOG2_E: f32 = std::f32::consts::LOG2_E;
const LN_2: f32 = std::f32::consts::LN_2;
/// ln 2 − `LN_2`
const LN_2_REST: f32 = -1.904_654_2e-9;

/// exp(r) = 1 + r + r²·P(r) for |r| ≤ ln(2)/2, to 2^-28.
const EXP: [f32; 5] = [0.499_999_94, 0.166_665_17, 0.041_668_102, 0.008_369_192_5, 0.001_383_890_2];
/// log(1 + f) = f + f²·P(f) for √½ ≤ 1 + f ≤ √2, relative to it, to 2^-27.
const LOG1P: [f32; 9] = [
    -0.499_999_88,
    0.333_333_25,
    -0.250_015_83,
    0.200_019_75,
    -0.166_090_82,
    0.141_818_18,
    -0.132_429_85,
    0.129_044_8,
    -0.076_218_374,
];
/// tanh(x) = x + x·s·P(s), s = x², for |x| ≤ 0.55, relative to it, to 2^-29.
const TANH: [f32; 5] = [-0.333_333_16, 0.133_325_44, -0.053_847_548, 0.021_050_714, -0.006_242_849_4];
/// erf(x) = x + x·P(x²) for |x| ≤ 1, relative to it, to 2^-29.
const ERF_NEAR: [f32; 7] =
    [0.128_379_17, -0.376_126_26, 0.112_835_79, -0.026_853_347, 0.005_187_162, -0.000_799_785_3, 7.806_904e-5];
/// erf(x) = 1 − 2^−Q(x) for 1 ≤ x ≤ 4, to 2^-25.9.
const ERF_FAR: [f32; 6] = [0.003_778_781_5, 1.612_386_2, 0.943_869_53, 0.128_110_45, -0.021_397_665, 0.001_669_493_9];
/// 2^−f = 1 + f·P(f) for |f| ≤ ½, to 2^-23 (of a number that is at most 0.16 where it is used).
// The first is near ln 2, but not it.
const EXP2_NEG: [f32; 5] = [-f32::from_bits(0x3f31_7215), 0.240_222_25, -0.055_506_51, 0.009_672_649, -0.001_330_358_9];

/// eˣ over all of f32.
///
/// x = n·ln 2 + r; the scale 2^n is applied as two factors 2^⌊n/2⌋·2^⌈n/2⌉, so that the only rounding of a subnormal result
/// is that of the last multiplication. Clamping the argument leaves every result as it is and keeps n small.
pub fn exp<O: Single>(o: &mut O, x: O::F) -> O::F {
    let (low, high, one) = (o.float(-104.0), o.float(89.0), o.float(1.0));
    // Bits of `t`: n + 254, so that halving gives ⌊n/2⌋ + 127, a biased exponent.
    let (scale, round) = (o.float(LOG2_E), o.float(ROUND + 254.0));
    let x = o.max(x, low);
    let x = o.min(x, high);
    let t = o.fma(x, scale, round);
    let n = o.sub(t, round);
    let r = reduce(o, x, n);
    let p = polynomial(o, r, &EXP);
    let p = o.fma(p, r, one);
    let p = o.fma(p, r, one);
    let t = o.bits(t);
    let half = o.shr(t, 1);
    let rest = o.int_sub(t, half);
    let (half, rest) = (o.shl(half, 23), o.shl(rest, 23));
    let (half, rest) = (o.float_of(half), o.float_of(rest));
    let p = o.mul(p, half);
    o.mul(p, rest)
}

/// x − n·ln 2
fn reduce<O: Single>(o: &mut O, x: O::F, n: O::F) -> O::F {
    let (ln_2, rest) = (o.float(-LN_2), o.float(-LN_2_REST));
    let r = o.fma(n, ln_2, x);
    o.fma(n, rest, r)
}

/// Natural logarithm over all of f32.
///
/// x = 2^e·(1 + f) with √½ ≤ 1 + f < √2: near 1 the exponent is 0 and the polynomial is accurate relative to log(1 + f).
pub fn log<O: Single>(o: &mut O, x: O::F) -> O::F {
    const TWO_POW_23: f32 = 8_388_608.0;
    let (zero, one, infinity) = (o.float(0.0), o.float(1.0), o.float(f32::INFINITY));
    // Subnormal numbers are made normal first.
    let (least, lift, lifted) = (o.float(f32::MIN_POSITIVE), o.float(TWO_POW_23), o.float(-23.0));
    let subnormal = o.lt(x, least);
    let larger = o.mul(x, lift);
    let y = o.select(subnormal, larger, x);
    let offset = o.select(subnormal, lifted, zero);

    let bits = o.bits(y);
    let root = o.int(std::f32::consts::FRAC_1_SQRT_2.to_bits());
    let e = o.int_sub(bits, root);
    let e = o.shr(e, 23);
    let shift = o.shl(e, 23);
    let mantissa = o.int_sub(bits, shift);
    let mantissa = o.float_of(mantissa);
    let f = o.sub(mantissa, one);
    let e = o.to_float(e);
    let e = o.add(e, offset);

    let p = polynomial(o, f, &LOG1P);
    let square = o.mul(f, f);
    let p = o.fma(p, square, f);
    let ln_2 = o.float(LN_2);
    let p = o.fma(e, ln_2, p);

    let (nan, negative) = (o.float(f32::NAN), o.float(f32::NEG_INFINITY));
    let is_zero = o.eq(x, zero);
    let outside = o.select(is_zero, negative, nan);
    let positive = o.lt(zero, x);
    let p = o.select(positive, p, outside);
    let is_infinite = o.eq(x, infinity);
    o.select(is_infinite, infinity, p)
}

/// Hyperbolic tangent over all of f32: a polynomial up to |x| = 0.55, 1 − 2/(exp(2|x|) + 1) above, which is 1 from |x| = 10 on.
pub fn tanh<O: Single>(o: &mut O, x: O::F) -> O::F {
    let (switch, limit, one, minus_2) = (o.float(0.55), o.float(10.0), o.float(1.0), o.float(-2.0));
    let a = o.abs(x);

    let square = o.mul(a, a);
    let p = polynomial(o, square, &TANH);
    let p = o.mul(p, square);
    let near = o.fma(p, a, a);

    // Low bits of `t`: n + 127, a biased exponent.
    let (scale, round) = (o.float(LOG2_E), o.float(ROUND + 127.0));
    let b = o.min(a, limit);
    let b = o.add(b, b);
    let t = o.fma(b, scale, round);
    let n = o.sub(t, round);
    let r = reduce(o, b, n);
    let p = polynomial(o, r, &EXP);
    let p = o.fma(p, r, one);
    let p = o.fma(p, r, one);
    let t = o.bits(t);
    let power = o.shl(t, 23);
    let power = o.float_of(power);
    let denominator = o.fma(power, p, one);
    let quotient = o.recip(denominator);
    let far = o.fma(quotient, minus_2, one);

    let is_near = o.lt(a, switch);
    let size = o.select(is_near, near, far);
    o.copysign(size, x)
}

/// Error function over all of f32: a polynomial up to |x| = 1, 1 − 2^−Q(|x|) above, which is 1 from |x| = 4 on.
pub fn erf<O: Single>(o: &mut O, x: O::F) -> O::F {
    let (limit, one) = (o.float(4.0), o.float(1.0));
    let a = o.abs(x);

    let square = o.mul(a, a);
    let p = polynomial(o, square, &ERF_NEAR);
    let near = o.fma(p, a, a);

    let b = o.min(a, limit);
    let q = polynomial(o, b, &ERF_FAR);
    // Low bits of `t`: 256 + 127 − n for the nearest integer n of Q: the bits of −2^−n once shifted.
    let round = o.float(ROUND + 256.0 + 127.0);
    let t = o.sub(round, q);
    let minus_n = o.sub(t, round);
    let f = o.add(q, minus_n);
    let p = polynomial(o, f, &EXP2_NEG);
    let p = o.fma(p, f, one);
    let t = o.bits(t);
    let power = o.shl(t, 23);
    let power = o.float_of(power);
    let far = o.fma(power, p, one);

    let is_near = o.lt(a, one);
    let size = o.select(is_near, near, far);
    o.copysign(size, x)
}

//! `exp`, `log`, `tanh`, `erf`: argument reduction by powers of two, then a polynomial. Written once over a [`Format`];
//! the coefficients of each come from `derive.py`.

use super::ops::{Ops, Single, polynomial};

/// What these functions need to know of a float format, and their approximations in it.
pub(super) struct Format<N: 'static, W> {
    /// Bits of the fraction.
    pub fraction: u32,
    /// 1.5 · 2^fraction: adding it to a small number rounds that number to an integer, which is then the low bits of
    /// the sum. Here with twice the exponent's bias added: halving those bits gives ⌊n/2⌋ and a biased exponent.
    pub round_twice_biased: N,
    /// The same with the bias added once: the bits of 2^n once shifted.
    pub round_biased: N,
    /// The same for −2^−n: with the bias and the sign's place above it.
    pub round_negative: N,
    /// Arguments beyond which `exp` is 0 or infinite anyway.
    pub exp_range: (N, N),
    /// log₂ e.
    pub log2_e: N,
    /// −ln 2, in two parts.
    pub minus_ln_2: (N, N),
    /// exp(r) = 1 + r + r²·P(r) for |r| ≤ ln(2)/2.
    pub exp: &'static [N],
    /// The least normal number, what makes subnormal ones normal, and its exponent negated.
    pub subnormal: (N, N, N),
    /// Bits of √½.
    pub root_half: W,
    /// tanh(x) = x + x·s·P(s), s = x², for |x| up to the switch.
    pub tanh: &'static [N],
    /// Where `tanh` changes to 1 − 2/(exp(2|x|) + 1), and from where on that is 1.
    pub tanh_range: (N, N),
    /// erf(x) = x + x·P(x²) for |x| ≤ 1.
    pub erf_near: &'static [N],
    /// erf(x) = 1 − 2^−Q above.
    pub erf_far: &'static [N],
    /// 2^−f = 1 + f·P(f) for |f| ≤ ½.
    pub exp2_neg: &'static [N],
    /// −2, 0, 1, infinity, NaN.
    pub numbers: [N; 5],
    /// −infinity.
    pub minus_infinity: N,
}

/// eˣ.
///
/// x = n·ln 2 + r; the scale 2^n is applied as two factors 2^⌊n/2⌋·2^⌈n/2⌉, so that the only rounding of a subnormal
/// result is that of the last multiplication. Clamping the argument leaves every result as it is and keeps n small.
pub(super) fn exp_in<O: Ops>(o: &mut O, x: O::F, format: &Format<O::Number, O::Word>) -> O::F {
    let (low, high) = (o.float(format.exp_range.0), o.float(format.exp_range.1));
    let (scale, round) = (o.float(format.log2_e), o.float(format.round_twice_biased));
    let x = o.max(x, low);
    let x = o.min(x, high);
    let t = o.fma(x, scale, round);
    let n = o.sub(t, round);
    let p = exp_of_rest(o, x, n, format);
    let t = o.bits(t);
    let half = o.shr(t, 1);
    let rest = o.int_sub(t, half);
    let (half, rest) = (o.shl(half, format.fraction), o.shl(rest, format.fraction));
    let (half, rest) = (o.float_of(half), o.float_of(rest));
    let p = o.mul(p, half);
    o.mul(p, rest)
}

/// exp(x − n·ln 2), the difference at most ln(2)/2.
fn exp_of_rest<O: Ops>(o: &mut O, x: O::F, n: O::F, format: &Format<O::Number, O::Word>) -> O::F {
    let (ln_2, rest) = (o.float(format.minus_ln_2.0), o.float(format.minus_ln_2.1));
    let r = o.fma(n, ln_2, x);
    let r = o.fma(n, rest, r);
    one_plus(o, r, format.exp, format, 2)
}

/// 1 + x·(1 + x·P(x)), or with one factor less.
fn one_plus<O: Ops>(o: &mut O, x: O::F, p: &[O::Number], format: &Format<O::Number, O::Word>, factors: u32) -> O::F {
    let one = o.float(format.numbers[2]);
    let p = polynomial(o, x, p);
    (0..factors).fold(p, |p, _| o.fma(p, x, one))
}

/// Natural logarithm: `of(o, e, f)` is log(2^e·(1 + f)) for √½ ≤ 1 + f < √2.
pub(super) fn log_in<O: Ops>(
    o: &mut O,
    x: O::F,
    format: &Format<O::Number, O::Word>,
    of: impl FnOnce(&mut O, O::F, O::F) -> O::F,
) -> O::F {
    let [_, zero, one, infinity, nan] = format.numbers.map(|n| o.float(n));
    // Subnormal numbers are made normal first.
    let (least, lift, lifted) = format.subnormal;
    let (least, lift, lifted) = (o.float(least), o.float(lift), o.float(lifted));
    let subnormal = o.lt(x, least);
    let larger = o.mul(x, lift);
    let y = o.select(subnormal, larger, x);
    let offset = o.select(subnormal, lifted, zero);

    let bits = o.bits(y);
    let root = o.int(format.root_half);
    let e = o.int_sub(bits, root);
    let e = o.shr(e, format.fraction);
    let shift = o.shl(e, format.fraction);
    let mantissa = o.int_sub(bits, shift);
    let mantissa = o.float_of(mantissa);
    let f = o.sub(mantissa, one);
    let e = o.to_float(e);
    let e = o.add(e, offset);
    let p = of(o, e, f);

    let negative = o.float(format.minus_infinity);
    let is_zero = o.eq(x, zero);
    let outside = o.select(is_zero, negative, nan);
    let positive = o.lt(zero, x);
    let p = o.select(positive, p, outside);
    let is_infinite = o.eq(x, infinity);
    o.select(is_infinite, infinity, p)
}

/// Hyperbolic tangent: a polynomial for small |x|, 1 − 2/(exp(2|x|) + 1) above.
pub(super) fn tanh_in<O: Ops>(o: &mut O, x: O::F, format: &Format<O::Number, O::Word>) -> O::F {
    let [minus_2, _, one, ..] = format.numbers.map(|n| o.float(n));
    let (switch, limit) = (o.float(format.tanh_range.0), o.float(format.tanh_range.1));
    let a = o.abs(x);

    let square = o.mul(a, a);
    let p = polynomial(o, square, format.tanh);
    let p = o.mul(p, square);
    let near = o.fma(p, a, a);

    let (scale, round) = (o.float(format.log2_e), o.float(format.round_biased));
    let b = o.min(a, limit);
    let b = o.add(b, b);
    let t = o.fma(b, scale, round);
    let n = o.sub(t, round);
    let p = exp_of_rest(o, b, n, format);
    let t = o.bits(t);
    let power = o.shl(t, format.fraction);
    let power = o.float_of(power);
    let denominator = o.fma(power, p, one);
    let quotient = o.recip(denominator);
    let far = o.fma(quotient, minus_2, one);

    let is_near = o.lt(a, switch);
    let size = o.select(is_near, near, far);
    o.copysign(size, x)
}

/// Error function: a polynomial up to |x| = 1, 1 − 2^−Q above; `argument(o, |x|)` is that of Q, clamped where the
/// result is 1.
pub(super) fn erf_in<O: Ops>(
    o: &mut O,
    x: O::F,
    format: &Format<O::Number, O::Word>,
    argument: impl FnOnce(&mut O, O::F) -> O::F,
) -> O::F {
    let one = o.float(format.numbers[2]);
    let a = o.abs(x);

    let square = o.mul(a, a);
    let p = polynomial(o, square, format.erf_near);
    let near = o.fma(p, a, a);

    let b = argument(o, a);
    let q = polynomial(o, b, format.erf_far);
    let round = o.float(format.round_negative);
    let t = o.sub(round, q);
    let minus_n = o.sub(t, round);
    let f = o.add(q, minus_n);
    let p = one_plus(o, f, format.exp2_neg, format, 1);
    let t = o.bits(t);
    let power = o.shl(t, format.fraction);
    let power = o.float_of(power);
    let far = o.fma(power, p, one);

    let is_near = o.lt(a, one);
    let size = o.select(is_near, near, far);
    o.copysign(size, x)
}

// 0x1.8p23
const ROUND: f32 = 12_582_912.0;
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

const SHAPE: Format<f32, u32> = Format {
    fraction: 23,
    round_twice_biased: ROUND + 254.0,
    round_biased: ROUND + 127.0,
    round_negative: ROUND + 383.0,
    exp_range: (-104.0, 89.0),
    log2_e: std::f32::consts::LOG2_E,
    minus_ln_2: (-LN_2, -LN_2_REST),
    exp: &EXP,
    subnormal: (f32::MIN_POSITIVE, 8_388_608.0, -23.0),
    root_half: std::f32::consts::FRAC_1_SQRT_2.to_bits(),
    tanh: &TANH,
    tanh_range: (0.55, 10.0),
    erf_near: &ERF_NEAR,
    erf_far: &ERF_FAR,
    exp2_neg: &EXP2_NEG,
    numbers: [-2.0, 0.0, 1.0, f32::INFINITY, f32::NAN],
    minus_infinity: f32::NEG_INFINITY,
};

/// Where `exp` clamps its argument.
pub(super) fn range() -> (f64, f64) {
    (SHAPE.exp_range.0.into(), SHAPE.exp_range.1.into())
}

/// eˣ over all of f32.
pub fn exp<O: Single>(o: &mut O, x: O::F) -> O::F {
    exp_in(o, x, &SHAPE)
}

/// Natural logarithm over all of f32.
///
/// Near 1 the exponent is 0 and the polynomial is accurate relative to log(1 + f).
pub fn log<O: Single>(o: &mut O, x: O::F) -> O::F {
    log_in(o, x, &SHAPE, |o, e, f| {
        let p = polynomial(o, f, &LOG1P);
        let square = o.mul(f, f);
        let p = o.fma(p, square, f);
        let ln_2 = o.float(LN_2);
        o.fma(e, ln_2, p)
    })
}

/// Hyperbolic tangent over all of f32: a polynomial up to |x| = 0.55; 1 from |x| = 10 on.
pub fn tanh<O: Single>(o: &mut O, x: O::F) -> O::F {
    tanh_in(o, x, &SHAPE)
}

/// Error function over all of f32; 1 from |x| = 4 on.
pub fn erf<O: Single>(o: &mut O, x: O::F) -> O::F {
    erf_in(o, x, &SHAPE, |o, a| {
        let limit = o.float(4.0);
        o.min(a, limit)
    })
}

//! `exp`, `log`, `tanh`, `erf`: as for `f32`, with more terms; the logarithm by a quotient.

use crate::math::ops::{Double, polynomial};

// 0x1.8p52: adding it to a number below 2^51 rounds that number to an integer, which is then the low bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;
const LOG2_E: f64 = std::f64::consts::LOG2_E;
const LN_2: f64 = std::f64::consts::LN_2;
/// ln 2 − `LN_2`
const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;
/// ln 2 without its low bits, so that multiples up to 2^20 are exact, and the rest.
const LN_2_HIGH: f64 = 0.693_146_705_627_441_4;
const LN_2_LOW: f64 = 4.749_325_039_031_672_6e-7;

/// exp(r) = 1 + r + r²·P(r) for |r| ≤ ln(2)/2, to 2^-56.
const EXP: [f64; 10] = [
    0.500_000_000_000_001_1,
    0.166_666_666_666_664_13,
    0.041_666_666_666_530_27,
    0.008_333_333_333_494_336,
    0.001_388_888_894_359_652_3,
    0.000_198_412_695_067_667_67,
    2.480_149_313_735_98e-05,
    2.755_758_628_092_083e-06,
    2.763_023_352_643_206_6e-07,
    2.500_006_742_404_749_7e-08,
];
/// log((1 + s)/(1 − s)) = 2s + s·s²·P(s²) for |s| ≤ (√2 − 1)/(√2 + 1), relative to it, to 2^-59.
const ATANH: [f64; 7] = [
    0.666_666_666_666_673_4,
    0.399_999_999_994_146_9,
    0.285_714_287_423_851_1,
    0.222_221_985_733_519_78,
    0.181_835_643_208_169_14,
    0.153_140_506_234_909_24,
    0.147_959_494_784_814_57,
];
/// tanh(x) = x + x·s·P(s), s = x², for |x| ≤ 0.55, relative to it, to 2^-58.
const TANH: [f64; 11] = [
    -0.333_333_333_333_333,
    0.133_333_333_333_266_22,
    -0.053_968_253_963_760_68,
    0.021_869_488_385_857_963,
    -0.008_863_232_601_475_377,
    0.003_592_092_030_769_932_5,
    -0.001_455_542_847_839_409_3,
    0.000_588_444_494_562_749,
    -0.000_233_381_585_958_421_98,
    8.331_647_615_330_396e-05,
    -1.949_470_464_252_983e-05,
];
/// erf(x) = x + x·P(x²) for |x| ≤ 1, relative to it, to 2^-56.
const ERF_NEAR: [f64; 13] = [
    0.128_379_167_095_512_6,
    -0.376_126_389_031_837_5,
    0.112_837_916_709_548_57,
    -0.026_866_170_645_072_896,
    0.005_223_977_624_780_875,
    -0.000_854_832_697_874_263_3,
    0.000_120_553_310_369_137_94,
    -1.492_559_350_719_066_1e-05,
    1.646_097_282_118_467_2e-06,
    -1.635_002_526_005_509_5e-07,
    1.465_788_005_199_366e-08,
    -1.136_566_662_456_770_2e-09,
    5.945_262_640_753_955e-11,
];
/// erf(x) = 1 − 2^−Q(x − 2) for 1 ≤ x ≤ 6, to 2^-56.
const ERF_FAR: [f64; 19] = [
    7.739_974_157_122_987,
    6.374_058_684_658_132,
    1.332_690_758_516_207_8,
    0.023_754_144_283_689_164,
    -0.005_151_512_472_831_043,
    0.001_056_628_961_918_822_2,
    -0.000_195_210_106_032_615_6,
    2.987_306_698_463_978_3e-05,
    -2.816_421_042_193_574_7e-06,
    -2.937_929_477_967_152_5e-07,
    2.498_831_981_978_732e-07,
    -8.338_497_372_910_661e-08,
    2.012_523_138_590_340_7e-08,
    -3.662_268_441_241_586_6e-09,
    3.963_261_529_450_048e-10,
    6.173_918_548_984_476e-11,
    -5.397_919_341_250_901e-11,
    1.467_770_168_126_429e-11,
    -1.514_247_510_077_914_7e-12,
];
/// 2^−f = 1 + f·P(f) for |f| ≤ ½, to 2^-55 (of a number that is at most 0.16 where it is used).
const EXP2_NEG: [f64; 11] = [
    -LN_2,
    0.240_226_506_959_101_3,
    -0.055_504_108_664_820_084,
    0.009_618_129_107_594_12,
    -0.001_333_355_814_677_463,
    0.000_154_035_304_571_122_3,
    -1.525_273_349_311_038e-05,
    1.321_543_528_219_328e-06,
    -1.017_819_958_043_482_4e-07,
    7.073_783_277_083_125e-09,
    -4.434_769_938_408_383e-10,
];

/// eˣ over all of `f64`.
///
/// x = n·ln 2 + r; the scale 2^n is applied as two factors 2^⌊n/2⌋·2^⌈n/2⌉, so that the only rounding of a subnormal result
/// is that of the last multiplication. Clamping the argument leaves every result as it is and keeps n small.
pub fn exp<O: Double>(o: &mut O, x: O::F) -> O::F {
    let (low, high, one) = (o.float(-746.0), o.float(710.0), o.float(1.0));
    // Bits of `t`: n + 2046, so that halving gives ⌊n/2⌋ + 1023, a biased exponent.
    let (scale, round) = (o.float(LOG2_E), o.float(ROUND + 2046.0));
    let x = o.max(x, low);
    let x = o.min(x, high);
    let t = o.fma(x, scale, round);
    let n = o.sub(t, round);
    let p = exp_of_rest(o, x, n, one);
    let t = o.bits(t);
    let half = o.shr(t, 1);
    let rest = o.int_sub(t, half);
    let (half, rest) = (o.shl(half, 52), o.shl(rest, 52));
    let (half, rest) = (o.float_of(half), o.float_of(rest));
    let p = o.mul(p, half);
    o.mul(p, rest)
}

/// exp(x − n·ln 2), the difference at most ln(2)/2.
fn exp_of_rest<O: Double>(o: &mut O, x: O::F, n: O::F, one: O::F) -> O::F {
    let (ln_2, rest) = (o.float(-LN_2), o.float(-LN_2_REST));
    let r = o.fma(n, ln_2, x);
    let r = o.fma(n, rest, r);
    let p = polynomial(o, r, &EXP);
    let p = o.fma(p, r, one);
    o.fma(p, r, one)
}

/// Natural logarithm over all of `f64`.
///
/// x = 2^e·(1 + f) with √½ ≤ 1 + f < √2, and with s = f/(2 + f): log(1 + f) = log((1 + s)/(1 − s)) = f − s·(f − R) where R = s²·P(s²),
/// since 2s = f − s·f.
pub fn log<O: Double>(o: &mut O, x: O::F) -> O::F {
    const TWO_POW_54: f64 = 18_014_398_509_481_984.0;
    let (zero, one, two, infinity) = (o.float(0.0), o.float(1.0), o.float(2.0), o.float(f64::INFINITY));
    // Subnormal numbers are made normal first.
    let (least, lift, lifted) = (o.float(f64::MIN_POSITIVE), o.float(TWO_POW_54), o.float(-54.0));
    let subnormal = o.lt(x, least);
    let larger = o.mul(x, lift);
    let y = o.select(subnormal, larger, x);
    let offset = o.select(subnormal, lifted, zero);

    let bits = o.bits(y);
    let root = o.int(std::f64::consts::FRAC_1_SQRT_2.to_bits());
    let e = o.int_sub(bits, root);
    let e = o.shr(e, 52);
    let shift = o.shl(e, 52);
    let mantissa = o.int_sub(bits, shift);
    let mantissa = o.float_of(mantissa);
    let f = o.sub(mantissa, one);
    let e = o.to_float(e);
    let e = o.add(e, offset);

    let denominator = o.add(f, two);
    let s = o.div(f, denominator);
    let square = o.mul(s, s);
    let p = polynomial(o, square, &ATANH);
    let p = o.mul(p, square);
    // e·ln 2 + f − (s·(f − p) − e·low)
    let rest = o.sub(f, p);
    let minus_s = o.float(-1.0);
    let minus_s = o.mul(s, minus_s);
    let low = o.float(LN_2_LOW);
    let low = o.mul(e, low);
    let rest = o.fma(minus_s, rest, low);
    let rest = o.add(f, rest);
    let high = o.float(LN_2_HIGH);
    let p = o.fma(e, high, rest);

    let (nan, negative) = (o.float(f64::NAN), o.float(f64::NEG_INFINITY));
    let is_zero = o.eq(x, zero);
    let outside = o.select(is_zero, negative, nan);
    let positive = o.lt(zero, x);
    let p = o.select(positive, p, outside);
    let is_infinite = o.eq(x, infinity);
    o.select(is_infinite, infinity, p)
}

/// Hyperbolic tangent over all of `f64`: a polynomial up to |x| = 0.55, 1 − 2/(exp(2|x|) + 1) above, which is 1 from |x| = 20 on.
pub fn tanh<O: Double>(o: &mut O, x: O::F) -> O::F {
    let (switch, limit, one, minus_2) = (o.float(0.55), o.float(20.0), o.float(1.0), o.float(-2.0));
    let a = o.abs(x);

    let square = o.mul(a, a);
    let p = polynomial(o, square, &TANH);
    let p = o.mul(p, square);
    let near = o.fma(p, a, a);

    // Low bits of `t`: n + 1023, a biased exponent.
    let (scale, round) = (o.float(LOG2_E), o.float(ROUND + 1023.0));
    let b = o.min(a, limit);
    let b = o.add(b, b);
    let t = o.fma(b, scale, round);
    let n = o.sub(t, round);
    let p = exp_of_rest(o, b, n, one);
    let t = o.bits(t);
    let power = o.shl(t, 52);
    let power = o.float_of(power);
    let denominator = o.fma(power, p, one);
    let quotient = o.recip(denominator);
    let far = o.fma(quotient, minus_2, one);

    let is_near = o.lt(a, switch);
    let size = o.select(is_near, near, far);
    o.copysign(size, x)
}

/// Error function over all of `f64`: a polynomial up to |x| = 1, 1 − 2^−Q above, which is 1 from |x| = 6 on.
pub fn erf<O: Double>(o: &mut O, x: O::F) -> O::F {
    let (limit, one, two) = (o.float(6.0), o.float(1.0), o.float(2.0));
    let a = o.abs(x);

    let square = o.mul(a, a);
    let p = polynomial(o, square, &ERF_NEAR);
    let near = o.fma(p, a, a);

    let b = o.min(a, limit);
    let b = o.sub(b, two);
    let q = polynomial(o, b, &ERF_FAR);
    // Low bits of `t`: 2048 + 1023 − n for the nearest integer n of Q: the bits of −2^−n once shifted.
    let round = o.float(ROUND + 2048.0 + 1023.0);
    let t = o.sub(round, q);
    let minus_n = o.sub(t, round);
    let f = o.add(q, minus_n);
    let p = polynomial(o, f, &EXP2_NEG);
    let p = o.fma(p, f, one);
    let t = o.bits(t);
    let power = o.shl(t, 52);
    let power = o.float_of(power);
    let far = o.fma(power, p, one);

    let is_near = o.lt(a, one);
    let size = o.select(is_near, near, far);
    o.copysign(size, x)
}

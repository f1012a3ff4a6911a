//! `exp`, `log`, `tanh`, `erf`: as for `f32`, with more terms; the logarithm by a quotient.

use crate::math::exponential::{Format, erf_in, exp_in, log_in, tanh_in};
use crate::math::ops::{Double, polynomial};

// 0x1.8p52
const ROUND: f64 = 6_755_399_441_055_744.0;
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

const SHAPE: Format<f64, u64> = Format {
    fraction: 52,
    round_twice_biased: ROUND + 2046.0,
    round_biased: ROUND + 1023.0,
    round_negative: ROUND + 3071.0,
    exp_range: (-746.0, 710.0),
    log2_e: std::f64::consts::LOG2_E,
    minus_ln_2: (-LN_2, -LN_2_REST),
    exp: &EXP,
    subnormal: (f64::MIN_POSITIVE, 18_014_398_509_481_984.0, -54.0),
    root_half: std::f64::consts::FRAC_1_SQRT_2.to_bits(),
    tanh: &TANH,
    tanh_range: (0.55, 20.0),
    erf_near: &ERF_NEAR,
    erf_far: &ERF_FAR,
    exp2_neg: &EXP2_NEG,
    numbers: [-2.0, 0.0, 1.0, f64::INFINITY, f64::NAN],
    minus_infinity: f64::NEG_INFINITY,
};

/// Where `exp` clamps its argument.
pub fn exp_range() -> (f64, f64) {
    SHAPE.exp_range
}

/// eˣ over all of `f64`.
pub fn exp<O: Double>(o: &mut O, x: O::F) -> O::F {
    exp_in(o, x, &SHAPE)
}

/// Natural logarithm over all of `f64`.
///
/// With s = f/(2 + f): log(1 + f) = log((1 + s)/(1 − s)) = f − s·(f − R) where R = s²·P(s²), since 2s = f − s·f.
pub fn log<O: Double>(o: &mut O, x: O::F) -> O::F {
    log_in(o, x, &SHAPE, |o, e, f| {
        let two = o.float(2.0);
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
        o.fma(e, high, rest)
    })
}

/// Hyperbolic tangent over all of `f64`: a polynomial up to |x| = 0.55; 1 from |x| = 20 on.
pub fn tanh<O: Double>(o: &mut O, x: O::F) -> O::F {
    tanh_in(o, x, &SHAPE)
}

/// Error function over all of `f64`; 1 from |x| = 6 on.
pub fn erf<O: Double>(o: &mut O, x: O::F) -> O::F {
    erf_in(o, x, &SHAPE, |o, a| {
        let (limit, two) = (o.float(6.0), o.float(2.0));
        let b = o.min(a, limit);
        o.sub(b, two)
    })
}

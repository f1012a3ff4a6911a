//! Arithmetic and conversions of one lane against LLVM's soft floats, over edge values × edge values and random ones,
//! in every rounding.

use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round as Oracle};

use super::cvt::{Cvt, CvtType, cvt};
use super::exact;
use super::float::{Float2, FloatMode, FloatType, float2};
use super::format::{BF16, E4M3, E5M2, F16, F32, F64, Format, Round, TF32};

const MODES: [(Round, Oracle); 5] = [
    (Round::Nearest, Oracle::NearestTiesToEven),
    (Round::NearestAway, Oracle::NearestTiesToAway),
    (Round::Zero, Oracle::TowardZero),
    (Round::Down, Oracle::TowardNegative),
    (Round::Up, Oracle::TowardPositive),
];

/// A stream of bits.
pub(crate) struct Bits(pub u64);

impl Bits {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 32 ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Zeros, subnormals, powers of two, neighbours of everything, infinities and NaN, of both signs; then random values,
/// many of them with exponents near each other.
pub(crate) fn samples(format: Format, random: usize, seed: u64) -> Vec<u64> {
    let bias = (1u64 << (format.exponent - 1)) - 1;
    let one = bias << format.fraction;
    let least_normal = 1 << format.fraction;
    let centres = [
        0,
        least_normal,
        one,
        2 * least_normal,
        one + least_normal,
        one - least_normal,
        format.infinity(),
        format.infinity() - least_normal,
    ];
    let mut all = Vec::new();
    for centre in centres {
        for delta in [0i64, 1, -1, 2, 3] {
            let magnitude = centre.wrapping_add(delta as u64) & ((1 << (format.bits() - 1)) - 1);
            all.extend([magnitude, format.with_sign(magnitude, true)]);
        }
    }
    all.push(one | (1 << (format.fraction - 1)));
    let mut bits = Bits(seed);
    for index in 0..random {
        let value = bits.next() & (u64::MAX >> (64 - format.bits()));
        let near = bits.next() % (1 << format.fraction);
        let exponent = (bias + bits.next() % 8).saturating_sub(4);
        all.push(if index % 2 == 0 {
            value
        } else {
            format.with_sign(exponent << format.fraction | near, value & 1 == 1)
        });
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Equal bits, or both NaN with ours canonical.
fn check<T: Float>(what: &str, format: Format, ours: u64, oracle: T) {
    if oracle.is_nan() {
        assert_eq!(ours, format.nan, "{what}: {ours:#x}, expected NaN");
    } else {
        assert_eq!(u128::from(ours), oracle.to_bits(), "{what}: {ours:#x}, expected {:#x}", oracle.to_bits());
    }
}

fn arithmetic<T: Float>(format: Format, random: usize) {
    let values = samples(format, random, 7);
    let thirds = samples(format, 8, 9);
    for (mode, oracle) in MODES {
        for (i, a) in values.iter().enumerate() {
            let x = T::from_bits(u128::from(*a));
            for (j, b) in values.iter().enumerate() {
                let y = T::from_bits(u128::from(*b));
                let what = |op| format!("{op} {mode:?} {a:#x} {b:#x}");
                check(&what("add"), format, exact::add(format, mode, *a, *b), x.add_r(y, oracle).value);
                check(&what("mul"), format, exact::mul(format, mode, *a, *b), x.mul_r(y, oracle).value);
                check(&what("div"), format, exact::div(format, mode, *a, *b), x.div_r(y, oracle).value);
                let c = thirds[(i * 31 + j * 17) % thirds.len()];
                let z = T::from_bits(u128::from(c));
                check(
                    &format!("fma {mode:?} {a:#x} {b:#x} {c:#x}"),
                    format,
                    exact::fma(format, mode, *a, *b, c),
                    x.mul_add_r(y, z, oracle).value,
                );
            }
        }
    }
}

#[test]
fn half_arithmetic_is_exact() {
    arithmetic::<Half>(F16, 60);
}

#[test]
fn bfloat_arithmetic_is_exact() {
    arithmetic::<BFloat>(BF16, 60);
}

#[test]
fn single_arithmetic_is_exact() {
    arithmetic::<Single>(F32, 60);
}

#[test]
fn double_arithmetic_is_exact() {
    arithmetic::<Double>(F64, 60);
}

#[test]
fn fused_cancellation_is_exact() {
    let mut bits = Bits(3);
    for _ in 0..20_000 {
        let a = bits.next() & 0xffff_ffff;
        let b = bits.next() & 0xffff_ffff;
        // The third operand almost cancels the product.
        let product = exact::mul(F32, Round::Nearest, a, b) ^ F32.zero(true);
        let c = product.wrapping_add(bits.next() % 5).wrapping_sub(2) & 0xffff_ffff;
        for (mode, oracle) in MODES {
            let [x, y, z] = [a, b, c].map(|v| Single::from_bits(u128::from(v)));
            check(
                &format!("{a:#x} {b:#x} {c:#x}"),
                F32,
                exact::fma(F32, mode, a, b, c),
                x.mul_add_r(y, z, oracle).value,
            );
        }
    }
}

#[test]
fn square_roots_are_bracketed() {
    // 24-bit values square exactly in f64, so the defining inequalities can be checked without rounding.
    let square = |bits: u64| f64::from(f32::from_bits(bits as u32)).powi(2);
    for a in samples(F32, 20_000, 5) {
        let x = f32::from_bits(a as u32);
        assert_eq!(exact::sqrt(F32, Round::Nearest, a), canonical32(x.sqrt()), "{a:#x}");
        if x.is_nan() || x < 0.0 || x == 0.0 || x.is_infinite() {
            continue;
        }
        let (down, up) = (exact::sqrt(F32, Round::Down, a), exact::sqrt(F32, Round::Up, a));
        assert_eq!(exact::sqrt(F32, Round::Zero, a), down);
        assert!(square(down) <= f64::from(x) && square(up) >= f64::from(x), "{a:#x}");
        assert!(up == down && square(up) == f64::from(x) || up == down + 1, "{a:#x}");
    }
    for a in samples(F64, 20_000, 5) {
        // A compiler that sees through this may take one NaN for another.
        let root = std::hint::black_box(f64::from_bits(a).sqrt());
        let expected = if root.is_nan() { F64.nan } else { root.to_bits() };
        assert_eq!(exact::sqrt(F64, Round::Nearest, a), expected);
    }
}

fn canonical32(value: f32) -> u64 {
    if value.is_nan() { F32.nan } else { u64::from(value.to_bits()) }
}

fn conversion<A: Float + FloatConvert<B>, B: Float>(from: Format, to: Format, values: &[u64]) {
    for (mode, oracle) in MODES {
        for bits in values {
            let expected: B = A::from_bits(u128::from(*bits)).convert_r(oracle, &mut false).value;
            check(&format!("{mode:?} {bits:#x}"), to, exact::convert(from, to, mode, *bits), expected);
        }
    }
}

#[test]
fn narrow_formats_widen_exactly() {
    let all: Vec<u64> = (0..=0xffff).collect();
    conversion::<Half, Single>(F16, F32, &all);
    conversion::<BFloat, Single>(BF16, F32, &all);
    let bytes: Vec<u64> = (0..=0xff).collect();
    conversion::<Float8E5M2, Half>(E5M2, F16, &bytes);
    conversion::<Float8E4M3FN, Half>(E4M3, F16, &bytes);
}

#[test]
fn formats_narrow_with_one_rounding() {
    // Every half, its neighbours in single precision and the points between halves.
    let mut near_halves = Vec::new();
    for bits in 0..=0xffffu64 {
        let single = exact::convert(F16, F32, Round::Nearest, bits);
        near_halves.extend([single, single ^ 1, single | 0x1000, single | 0x0fff, single | 0x1001]);
    }
    conversion::<Single, Half>(F32, F16, &near_halves);
    let mut near_bfloats = Vec::new();
    for bits in 0..=0xffffu64 {
        near_bfloats.extend([bits << 16, bits << 16 | 0x8000, bits << 16 | 0x7fff, bits << 16 | 0x8001]);
    }
    conversion::<Single, BFloat>(F32, BF16, &near_bfloats);
    let singles = samples(F32, 20_000, 11);
    conversion::<Single, Double>(F32, F64, &singles);
    conversion::<Single, Float8E5M2>(F32, E5M2, &singles);
    let doubles = samples(F64, 20_000, 13);
    conversion::<Double, Single>(F64, F32, &doubles);
    conversion::<Double, Half>(F64, F16, &doubles);
}

fn plain(from: CvtType, to: CvtType, round: Round) -> Cvt {
    Cvt { to, from, round, integral: false, ftz: false, sat: false, relu: false, satfinite: false }
}

#[test]
fn e4m3_saturates() {
    let op = Cvt { satfinite: true, ..plain(CvtType::Float(F32), CvtType::Float(E4M3), Round::Nearest) };
    for bits in samples(F32, 20_000, 17) {
        let value = f32::from_bits(bits as u32);
        let ours = cvt(op, bits);
        if value.is_nan() {
            assert_eq!(ours, 0x7f);
            continue;
        }
        let limit = value.clamp(-448.0, 448.0);
        let expected: Float8E4M3FN =
            Single::from_bits(u128::from(limit.to_bits())).convert_r(Oracle::NearestTiesToEven, &mut false).value;
        assert_eq!(u128::from(ours), expected.to_bits(), "{value}");
    }
}

#[test]
fn tf32_keeps_ten_bits() {
    for bits in samples(F32, 20_000, 19) {
        for round in [Round::NearestAway, Round::Nearest, Round::Zero] {
            let ours = cvt(plain(CvtType::Float(F32), CvtType::Tf32, round), bits);
            if F32.is_nan(bits) {
                assert_eq!(ours, TF32.nan << 13);
                continue;
            }
            // On the bits themselves: the magnitude is rounded as an integer, carries run into the exponent.
            let (sign, magnitude) = (bits & 1 << 31, bits & 0x7fff_ffff);
            let kept = magnitude >> 13;
            let rest = magnitude & 0x1fff;
            let up = match round {
                Round::NearestAway => rest >= 0x1000,
                Round::Nearest => rest > 0x1000 || rest == 0x1000 && kept & 1 == 1,
                _ => false,
            };
            let rounded = if magnitude == 0x7f80_0000 { magnitude } else { (kept + u64::from(up)) << 13 };
            assert_eq!(ours, sign | rounded, "{bits:#x} {round:?}");
        }
    }
}

#[test]
fn floats_become_integers_with_saturation() {
    for (round, oracle) in MODES {
        for bits in samples(F32, 3000, 23) {
            for (width, signed) in [(8, true), (16, false), (32, true), (32, false), (64, true), (64, false)] {
                let ours = cvt(plain(CvtType::Float(F32), CvtType::Int { bits: width, signed }, round), bits);
                let x = Single::from_bits(u128::from(bits));
                let (least, greatest) = if signed {
                    (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1)
                } else {
                    (0, (1i128 << width) - 1)
                };
                let expected = if x.is_nan() {
                    if width == 64 { 1i128 << 63 } else { 0 }
                } else {
                    x.round_to_integral(oracle)
                        .value
                        .to_i128_r(120, Oracle::TowardZero, &mut true)
                        .value
                        .clamp(least, greatest)
                };
                assert_eq!(
                    ours,
                    expected as u64 & (u64::MAX >> (64 - width)),
                    "{bits:#x} to {width} {signed} {round:?}"
                );
            }
        }
    }
    let nan = cvt(plain(CvtType::Float(F64), CvtType::Int { bits: 32, signed: true }, Round::Zero), F64.nan);
    assert_eq!(nan, 0x8000_0000);
}

#[test]
fn integers_become_floats() {
    let mut bits = Bits(29);
    for step in 0..20_000 {
        let raw = bits.next() >> (step % 64);
        for (round, oracle) in MODES {
            for (width, signed) in [(32, true), (32, false), (64, true), (64, false)] {
                let raw = raw & (u64::MAX >> (64 - width));
                let value = match (width, signed) {
                    (32, true) => i128::from(raw as i32),
                    (64, true) => i128::from(raw as i64),
                    _ => i128::from(raw),
                };
                let from = CvtType::Int { bits: width, signed };
                check(
                    "s",
                    F32,
                    cvt(plain(from, CvtType::Float(F32), round), raw),
                    Single::from_i128_r(value, oracle).value,
                );
                check(
                    "d",
                    F64,
                    cvt(plain(from, CvtType::Float(F64), round), raw),
                    Double::from_i128_r(value, oracle).value,
                );
                check(
                    "h",
                    F16,
                    cvt(plain(from, CvtType::Float(F16), round), raw),
                    Half::from_i128_r(value, oracle).value,
                );
            }
        }
    }
}

#[test]
fn integral_values_keep_their_sign() {
    for (round, oracle) in MODES {
        for bits in samples(F32, 5000, 31) {
            let expected = Single::from_bits(u128::from(bits)).round_to_integral(oracle).value;
            check("integral", F32, exact::round_to_integral(F32, round, bits), expected);
        }
    }
}

#[test]
fn extrema_follow_the_nan_rules() {
    let mode = FloatMode::plain(FloatType::F32);
    for a in samples(F32, 40, 37) {
        for b in samples(F32, 40, 41) {
            let (x, y) = (Single::from_bits(u128::from(a)), Single::from_bits(u128::from(b)));
            let both = x.is_nan() && y.is_nan();
            for (op, nan, minimum) in [
                (Float2::Max { nan: false, xorsign: false }, false, false),
                (Float2::Max { nan: true, xorsign: false }, true, false),
                (Float2::Min { nan: false, xorsign: false }, false, true),
                (Float2::Min { nan: true, xorsign: false }, true, true),
            ] {
                let ours = float2(op, mode, a, b);
                if both || nan && (x.is_nan() || y.is_nan()) {
                    assert_eq!(ours, F32.nan);
                } else if x.is_nan() || y.is_nan() {
                    assert_eq!(ours, if x.is_nan() { b } else { a });
                } else {
                    // IEEE 754-2019 minimum and maximum order −0 below +0.
                    let expected = if minimum { x.minimum(y) } else { x.maximum(y) };
                    assert_eq!(u128::from(ours), expected.to_bits(), "{op:?} {a:#x} {b:#x}");
                }
            }
        }
    }
}

#[test]
fn flushing_and_saturation() {
    let ftz = FloatMode { ftz: true, ..FloatMode::plain(FloatType::F32) };
    let least = u64::from(f32::MIN_POSITIVE.to_bits());
    let half = u64::from(0.5f32.to_bits());
    assert_eq!(float2(Float2::Mul, ftz, least, half), 0);
    assert_eq!(float2(Float2::Mul, ftz, least | 1 << 31, half), 1 << 31);
    assert_eq!(float2(Float2::Add, ftz, 1, least), least, "a subnormal operand counts as zero");
    assert_eq!(float2(Float2::Mul, FloatMode::plain(FloatType::F32), least, half), least / 2);
    let sat = FloatMode { sat: true, ..FloatMode::plain(FloatType::F32) };
    let bits = |v: f32| u64::from(v.to_bits());
    assert_eq!(float2(Float2::Add, sat, bits(0.75), bits(0.75)), bits(1.0));
    assert_eq!(float2(Float2::Add, sat, bits(-0.75), bits(0.25)), 0);
    assert_eq!(float2(Float2::Add, sat, bits(f32::NAN), bits(0.25)), 0);
}

#[test]
fn perturbed_results_stay_within_their_bounds_and_move() {
    use super::approx::{Approx, approx};
    /// Function, its value, log2 of the bound, whether the bound is absolute.
    type Case = (Approx, fn(f64) -> f64, f64, bool);
    let mode = FloatMode::plain(FloatType::F32);
    let cases: [Case; 6] = [
        (Approx::Rcp, |x| 1.0 / x, -23.0, false),
        (Approx::Rsqrt, |x| 1.0 / x.sqrt(), -22.9, false),
        (Approx::Sqrt, f64::sqrt, -23.0, false),
        (Approx::Ex2, f64::exp2, -22.0, false),
        (Approx::Tanh, f64::tanh, -11.0, false),
        (Approx::Sin, f64::sin, -20.5, true),
    ];
    for (op, function, bound, absolute) in cases {
        let mut moved = 0;
        let mut bits = Bits(43);
        for seed in 0..4000u64 {
            let x = (bits.next() % 100_000) as f32 / 20_000.0 + 0.01;
            let a = u64::from(x.to_bits());
            let exact = function(f64::from(x));
            let ours = f64::from(f32::from_bits(approx(op, mode, a, Some(seed)) as u32));
            let scale = if absolute { 1.0 } else { exact.abs() };
            assert!((ours - exact).abs() <= scale * bound.exp2(), "{op:?} {x}: {ours} is not {exact}");
            moved += u64::from(approx(op, mode, a, Some(seed)) != approx(op, mode, a, None));
            assert_eq!(approx(op, mode, a, Some(seed)), approx(op, mode, a, Some(seed)));
        }
        assert!(moved > 100, "{op:?} moved {moved} times");
    }
}

//! Math functions: of one value the very bits of [`tilewright_kernel::math`], of a set the values at its ends, widened
//! by the stated bound. `approx::` functions differ between machines: theirs are sets always.
//!
//! f16 and bf16 functions are the f32 function, rounded once more.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Unary;
use tilewright_kernel::math::{self, Bound, Host, bound};

use super::interval::{Format, Interval, less};

/// A function at one end of an interval.
pub(super) type Ends<'a> = dyn Fn(f64) -> Interval + 'a;

/// Error of the host's own functions in f64, relative, with a margin: they are good to one or two units in the last
/// place.
const HOST: f64 = 8.0 * f64::EPSILON;

/// The result of an accurate function for one argument; none for other operations.
pub(super) fn exact(op: Unary, format: Format, x: f64) -> Option<f64> {
    use Unary::{Cos, Erf, Exp, Log, Rsqrt, Sin, Tanh};
    if !matches!(op, Exp | Log | Rsqrt | Tanh | Erf | Sin | Cos) {
        return None;
    }
    if format == Format::F64 {
        return math::apply_double(op, &mut Host::<f64>::default(), x);
    }
    let y = math::apply(op, &mut Host::<f32>::default(), x as f32)?;
    Some(if format == Format::F32 { f64::from(y) } else { format.round(f64::from(y)) })
}

/// The values that are within the stated bound of a function over a non-empty interval. `monotone` applies a function
/// to both ends and takes the hull. `None` for operations that are not functions of this room, and types that do not
/// have the function.
pub(super) fn function(
    op: Unary,
    format: Format,
    x: Interval,
    monotone: &dyn Fn(&Ends<'_>) -> Interval,
) -> Option<Interval> {
    let (inner, element) = match format {
        Format::F64 => (Format::F64, ElementType::F64),
        _ => (Format::F32, ElementType::F32),
    };
    let stated = bound(op, element)?;
    let near = |x: f64, y: f64| around(y, stated.tolerance(x, y) + HOST * y.abs());
    let result = match op {
        Unary::Exp | Unary::ApproxExp => monotone(&|x| near(x, x.exp())).clamp(0.0, f64::INFINITY),
        Unary::ApproxExp2 => monotone(&|x| near(x, x.exp2())).clamp(0.0, f64::INFINITY),
        Unary::Tanh => monotone(&|x| near(x, x.tanh())).clamp(-1.0, 1.0),
        Unary::ApproxTanh => monotone(&|x| near(x, x.tanh())),
        Unary::Erf => monotone(&|x| near(x, erf(x))).clamp(-1.0, 1.0),
        Unary::Log | Unary::ApproxLog => positive(x, &|x| near(x, x.ln())),
        Unary::ApproxSqrt => positive(x, &|x| near(x, x.sqrt())).clamp(-0.0, f64::INFINITY),
        Unary::Rsqrt | Unary::ApproxRsqrt => decreasing(x, &|x| near(x, 1.0 / x.sqrt())),
        Unary::Sin | Unary::ApproxSin => periodic(stated, x, std::f64::consts::FRAC_PI_2),
        Unary::Cos | Unary::ApproxCos => periodic(stated, x, 0.0),
        Unary::Neg | Unary::Not | Unary::Abs | Unary::Sqrt => return None,
        Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round => return None,
    };
    let result = in_range(inner, result);
    Some(if format == inner || result.is_empty() {
        result
    } else {
        Interval { lo: format.round(result.lo), hi: format.round(result.hi), nan: result.nan }
    })
}

/// Numbers beyond the largest finite one become infinity.
fn in_range(format: Format, set: Interval) -> Interval {
    if set.is_empty() {
        return set;
    }
    let max = format.max();
    let low = |x: f64| if x < -max { f64::NEG_INFINITY } else { x.min(max) };
    let high = |x: f64| if x > max { f64::INFINITY } else { x.max(-max) };
    // An end that is infinite without error stays what it is.
    let lo = if set.lo == f64::INFINITY { set.lo } else { low(set.lo) };
    let hi = if set.hi == f64::NEG_INFINITY { set.hi } else { high(set.hi) };
    Interval { lo, hi, nan: set.nan }
}

/// `y ± error`.
fn around(y: f64, error: f64) -> Interval {
    if y.is_nan() {
        return Interval::NAN;
    }
    if y.is_infinite() { Interval::exact(y) } else { Interval::between(y - error, y + error) }
}

/// An increasing function on the numbers from zero; NaN below.
fn positive(x: Interval, f: &dyn Fn(f64) -> Interval) -> Interval {
    if x.hi < 0.0 {
        return Interval::NAN;
    }
    let lo = if x.lo < 0.0 { 0.0 } else { x.lo };
    f(lo).hull(f(x.hi)).or_nan(x.lo < 0.0)
}

/// A decreasing function on the numbers from zero, where it is infinite with the sign of the zero; NaN below.
fn decreasing(x: Interval, f: &dyn Fn(f64) -> Interval) -> Interval {
    if x.hi < 0.0 {
        return Interval::NAN;
    }
    if let Some(zero) = x.single().filter(|z| *z == 0.0) {
        return Interval::exact(1.0 / zero);
    }
    let lo = if x.lo < 0.0 { 0.0 } else { x.lo };
    let result = f(lo.abs()).hull(f(x.hi.abs())).or_nan(x.lo < 0.0);
    // A zero in a set is of either sign.
    if x.has_zero() { result.hull(Interval::exact(f64::NEG_INFINITY)) } else { result }
}

/// `sin` (peak at π/2) or `cos` (peak at 0).
fn periodic(stated: &Bound, x: Interval, peak: f64) -> Interval {
    use std::f64::consts::{PI, TAU};
    let value = |x: f64| if peak == 0.0 { x.cos() } else { x.sin() };
    if x.has_infinity() && x.lo == x.hi {
        return Interval::NAN;
    }
    if !stated.covers(x.lo) || !stated.covers(x.hi) {
        // The table promises nothing out there.
        return Interval::ALL;
    }
    if let Some(x) = x.single() {
        let y = value(x);
        return around(y, stated.tolerance(x, y) + HOST * y.abs());
    }
    let mut set = Interval::exact(value(x.lo)).hull(Interval::exact(value(x.hi)));
    // A maximum lies at peak + 2πk, a minimum half a turn further. The margin covers the rounding of large arguments.
    let holds = |at: f64| ((x.lo - 1e-6 - at) / TAU).ceil() * TAU + at <= x.hi + 1e-6;
    if x.hi - x.lo >= TAU {
        set = Interval::between(-1.0, 1.0);
    } else {
        if holds(peak) {
            set.hi = 1.0;
        }
        if holds(peak + PI) {
            set.lo = -1.0;
        }
    }
    // The largest error of the range, where the value is 1. An infinity has no place on the circle.
    let error = stated.tolerance(x.hi, 1.0) + HOST;
    Interval::between(set.lo - error, set.hi + error).or_nan(x.has_infinity())
}

/// The error function, to a few units in the last place of f64.
///
/// erf x = 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (2n+1)!!, a series of terms of one sign (Abramowitz & Stegun 7.1.6), below
/// 6; from there 1 − erf x is less than 2.2e-17.
pub(super) fn erf(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() || a >= 6.0 {
        return if x.is_nan() { x } else { 1_f64.copysign(x) };
    }
    if a < 1e-10 {
        return x * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let (mut term, mut sum, mut n) = (a, a, 0.0);
    while term > sum * 1e-18 {
        n += 1.0;
        term *= 2.0 * a * a / (2.0 * n + 1.0);
        sum += term;
    }
    less(std::f64::consts::FRAC_2_SQRT_PI * (-a * a).exp() * sum, 1.0).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(op: Unary, format: Format, lo: f64, hi: f64) -> Interval {
        let x = Interval::between(lo, hi);
        function(op, format, x, &|f| f(x.lo).hull(f(x.hi))).unwrap()
    }

    #[test]
    fn the_error_function_agrees_with_tables() {
        // Abramowitz & Stegun, table 7.1, and two further values by continued fractions.
        for (x, y) in [
            (0.0, 0.0),
            (0.1, 0.112_462_916_018_284_9),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
            (5.0, 0.999_999_999_998_462_5),
        ] {
            assert!((erf(x) - y).abs() <= HOST * y, "erf {x} = {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert_eq!(erf(f64::INFINITY), 1.0);
        assert!(erf(f64::NAN).is_nan());
    }

    #[test]
    fn sets_hold_the_exact_values() {
        for format in [Format::F64, Format::F32, Format::F16, Format::Bf16] {
            for op in [Unary::Exp, Unary::Log, Unary::Rsqrt, Unary::Tanh, Unary::Erf, Unary::Sin, Unary::Cos] {
                for i in -600..600 {
                    let x = format.round(f64::from(i) * 0.0371);
                    let y = exact(op, format, x).unwrap();
                    for step in [0.0, format.ulp(x)] {
                        let set = at(op, format, x - step, x + step);
                        assert!(set.contains(y), "{op:?} {x}: {y} is not in {set}");
                    }
                }
            }
        }
    }

    #[test]
    fn bounds_hold_the_true_value_and_are_tight() {
        type Host = fn(f64) -> f64;
        let functions: [(Unary, Host, f64); 4] = [
            (Unary::ApproxSqrt, f64::sqrt, 1.0 / 8_388_608.0),
            (Unary::ApproxRsqrt, |x| 1.0 / x.sqrt(), 1.0 / 4_194_304.0),
            (Unary::ApproxTanh, f64::tanh, 1.0 / 2048.0),
            (Unary::ApproxExp, f64::exp, 1.0 / 4_194_304.0),
        ];
        for (op, f, relative) in functions {
            for i in 1..2000 {
                let x = f64::from(i as f32 * 0.037_f32);
                let (set, y) = (at(op, Format::F32, x, x), f(x));
                assert!(set.contains(y * (1.0 + relative)) && set.contains(y * (1.0 - relative)), "{op:?} {x} {set}");
                let far = y * 4.0 * relative * (1.0 + x) + 4.0 * Format::F32.ulp(y);
                assert!(!set.contains(y + far) && !set.contains(y - far), "{op:?} {x} {set}");
            }
        }
    }

    #[test]
    fn extrema_inside_an_interval_are_found() {
        for (lo, hi) in [(0.0, 4.0), (-3.0, 1.0), (5.0, 9.0), (100.0, 103.0), (1.0, 1.25), (-1.6, -1.5)] {
            for op in [Unary::Sin, Unary::Cos] {
                let set = at(op, Format::F32, lo, hi);
                for k in 0..=1000 {
                    let x = lo + (hi - lo) * f64::from(k) / 1000.0;
                    assert!(set.contains(if op == Unary::Sin { x.sin() } else { x.cos() }), "{op:?} [{lo}, {hi}] {x}");
                }
            }
        }
        assert!(at(Unary::Sin, Format::F32, 1.0, 1.25).hi < 0.96);
    }

    #[test]
    fn special_arguments() {
        let one = |op, x: f64| at(op, Format::F32, x, x).single();
        assert_eq!(exact(Unary::Exp, Format::F32, f64::NEG_INFINITY), Some(0.0));
        assert_eq!(exact(Unary::ApproxExp, Format::F32, 1.0), None);
        assert!(at(Unary::Log, Format::F32, -1.0, -1.0).is_empty());
        assert_eq!(one(Unary::Log, 0.0), Some(f64::NEG_INFINITY));
        assert_eq!(one(Unary::Rsqrt, 0.0), Some(f64::INFINITY));
        assert_eq!(one(Unary::Rsqrt, -0.0), Some(f64::NEG_INFINITY));
        assert!(at(Unary::Sin, Format::F32, f64::INFINITY, f64::INFINITY).is_empty());
        for op in [Unary::Sin, Unary::Cos] {
            let overflow = at(op, Format::F32, 1.0, f64::INFINITY);
            assert!(overflow.nan && overflow.contains(1.0) && overflow.contains(-1.0), "{overflow}");
        }
        assert_eq!(at(Unary::ApproxSin, Format::F32, 1e7, 1e7), Interval::ALL);
        // Also where a double holds the exponential, and not its product with the argument.
        for x in [88.8, 200.0, 709.0, 709.7, 710.0, f64::INFINITY] {
            let overflow = at(Unary::ApproxExp, Format::F32, x, x);
            assert!(overflow.lo >= f64::from(f32::MAX) && overflow.hi == f64::INFINITY, "{x}: {overflow}");
        }
        assert_eq!(function(Unary::ApproxExp, Format::F64, Interval::exact(1.0), &|f| f(1.0)), None);
    }
}

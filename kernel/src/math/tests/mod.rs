//! The functions of f32 against an f64 oracle: measured error, edge cases, order, cost. Those of f64 in `double`.

mod double;
mod narrow;
mod oracle;

use super::{Host, apply, apply_double, bound, rsqrt, sqrt, ulp};
use crate::algorithm::Unary;
use crate::element::ElementType;
use Unary::{Cos, Erf, Exp, Log, Rsqrt, Sin, Sqrt, Tanh};

fn value(function: Unary, x: f32) -> f32 {
    apply(function, &mut Host::<f32>::default(), x).expect("a math function")
}

/// Largest error in ulp and its argument over arguments `step` bits apart; panics where the bound does not admit a
/// result.
fn measure(function: Unary, step: u32) -> (f64, f32) {
    let bound = bound(function, ElementType::F32).expect("a bound");
    let (mut worst, mut at) = (0.0, 0.0);
    let mut bits = Some(0_u32);
    while let Some(b) = bits {
        let x = f32::from_bits(b);
        let (exact, got) = (oracle::exact(function, f64::from(x)), f64::from(value(function, x)));
        assert!(bound.admits(f64::from(x), exact, got), "{function:?}({x:e}): got {got:e}, exact {exact:e}");
        if bound.covers(f64::from(x)) && exact.is_finite() && got.is_finite() {
            let error = (got - exact).abs() / ulp(ElementType::F32, exact);
            if error > worst {
                (worst, at) = (error, x);
            }
        }
        bits = b.checked_add(step);
    }
    (worst, at)
}

/// Every so many-th argument as the environment asks for, so that 1 is all of them; else every few thousandth.
fn check(function: Unary) {
    let asked = std::env::var("TILEWRIGHT_EXHAUSTIVE").ok();
    let step = asked.map_or(2503, |step| step.parse().expect("a number from 1 on"));
    let (worst, at) = measure(function, step);
    println!("{function:?}: {worst:.4} ulp at {at:e} ({:#010x})", at.to_bits());
}

macro_rules! bounds {
    ($($test:ident $function:ident)*) => { $(#[test] fn $test() { check(Unary::$function); })* };
}
bounds! {
    exp Exp log Log sqrt_ Sqrt rsqrt_ Rsqrt tanh Tanh erf Erf sin Sin cos Cos
    approx_exp ApproxExp approx_exp2 ApproxExp2 approx_log ApproxLog approx_sqrt ApproxSqrt approx_rsqrt ApproxRsqrt
    approx_tanh ApproxTanh approx_sin ApproxSin approx_cos ApproxCos
}

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;
/// Least subnormal number.
const LEAST: f32 = f32::from_bits(1);

#[test]
fn edge_cases_have_their_exact_values_and_signs() {
    let cases: &[(Unary, f32, f32)] = &[
        (Exp, 0.0, 1.0),
        (Exp, -0.0, 1.0),
        (Exp, INF, INF),
        (Exp, -INF, 0.0),
        (Exp, f32::MAX, INF),
        (Exp, f32::MIN, 0.0),
        (Exp, LEAST, 1.0),
        (Exp, 88.722_84, INF), // the least argument that overflows
        (Exp, -103.972_08, LEAST),
        (Exp, -103.972_09, 0.0),
        (Log, 0.0, -INF),
        (Log, -0.0, -INF),
        (Log, 1.0, 0.0),
        (Log, INF, INF),
        (Log, -1.0, NAN),
        (Log, -LEAST, NAN),
        (Log, -INF, NAN),
        (Log, LEAST, -103.278_93),
        (Sqrt, -0.0, -0.0),
        (Sqrt, INF, INF),
        (Sqrt, -LEAST, NAN),
        (Rsqrt, 0.0, INF),
        (Rsqrt, -0.0, -INF),
        (Rsqrt, INF, 0.0),
        (Rsqrt, -1.0, NAN),
        (Rsqrt, 4.0, 0.5),
        (Tanh, 0.0, 0.0),
        (Tanh, INF, 1.0),
        (Tanh, f32::MAX, 1.0),
        (Tanh, LEAST, LEAST),
        (Erf, 0.0, 0.0),
        (Erf, INF, 1.0),
        (Erf, f32::MAX, 1.0),
        (Erf, LEAST, LEAST),
        (Sin, 0.0, 0.0),
        (Sin, LEAST, LEAST),
        (Sin, INF, NAN),
        (Cos, 0.0, 1.0),
        (Cos, LEAST, 1.0),
        (Cos, INF, NAN),
        (Sin, f32::MAX, -0.521_876_5),
        (Cos, f32::MAX, 0.853_021),
    ];
    for &(function, x, expected) in cases {
        let odd = matches!(function, Tanh | Erf | Sin);
        let even = function == Cos;
        let mirrored = [(x, expected), (-x, if odd { -expected } else { expected })];
        for (x, expected) in mirrored.into_iter().take(if odd || even { 2 } else { 1 }) {
            let got = value(function, x);
            let same = got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
            assert!(same, "{function:?}({x:e}): got {got:e}, expected {expected:e}");
        }
    }
    for (function, ..) in cases {
        for nan in [NAN, -NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xffff_ffff)] {
            assert!(value(*function, nan).is_nan(), "{function:?}");
        }
    }
}

#[test]
fn results_stay_in_range_and_symmetric() {
    for bits in (0..0x7f80_0000_u32).step_by(1009) {
        let x = f32::from_bits(bits);
        for function in [Tanh, Erf, Sin, Cos] {
            let (y, z) = (value(function, x), value(function, -x));
            assert!(y.is_nan() || y.abs() <= 1.0, "{function:?}({x:e}) = {y:e}");
            let mirrored = if function == Cos { z } else { -z };
            assert!(mirrored.to_bits() == y.to_bits() || y.is_nan(), "{function:?}(±{x:e}): {y:e} and {z:e}");
        }
        assert!(value(Exp, x) >= 1.0 && value(Exp, -x) <= 1.0 && value(Exp, -x) >= 0.0, "exp(±{x:e})");
    }
}

/// A step down by more than the two errors allow would show a seam between polynomials.
#[test]
fn seams_do_not_step_down() {
    for (function, seam) in [(Tanh, 0.55_f32), (Tanh, 10.0), (Erf, 1.0), (Erf, 4.0), (Log, std::f32::consts::SQRT_2)] {
        let mut before = f32::NEG_INFINITY;
        for bits in seam.to_bits() - 3000..seam.to_bits() + 3000 {
            let y = value(function, f32::from_bits(bits));
            assert!(y >= before.next_down(), "{function:?} around {seam}");
            before = y;
        }
    }
}

/// 1/y = √x ⇔ x·y² = 1: the residual by fma tells the error of y without a wider type. With δ = x·y² − 1, the exact
/// value is y·(1 − δ/2 + …).
#[test]
fn double_rsqrt_is_within_its_bound() {
    let bound = bound(Rsqrt, ElementType::F64).expect("a bound");
    let mut worst = 0.0_f64;
    for i in 0..200_000_u64 {
        let x = f64::from_bits(0x3fe0_0000_0000_0000 + i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 53));
        let y = rsqrt(&mut Host::<f64>::default(), x);
        let square = y * y;
        let square_rest = y.mul_add(y, -square);
        let delta = x.mul_add(square, -1.0) + x * square_rest;
        worst = worst.max((y * delta / 2.0).abs() / ulp(ElementType::F64, y));
    }
    assert!(worst > 0.5 && worst <= bound.ulp, "{worst}");
    assert_eq!(rsqrt(&mut Host::<f64>::default(), 0.0), f64::INFINITY);
    assert_eq!(rsqrt(&mut Host::<f64>::default(), -0.0), f64::NEG_INFINITY);
    assert_eq!(rsqrt(&mut Host::<f64>::default(), f64::INFINITY), 0.0);
    assert!(rsqrt(&mut Host::<f64>::default(), -1.0).is_nan() && sqrt(&mut Host::<f64>::default(), -1.0).is_nan());
}

/// The counts of the table in the room's documentation.
#[test]
fn costs_are_as_documented() {
    let documented = include_str!("../mod.rs");
    let mut wrong = Vec::new();
    let mut check = |name: String, operations: u32| {
        let row = documented.lines().find(|l| l.starts_with(&format!("//! | `{name}` |"))).expect("a row");
        if row.trim_end_matches([' ', '|']).rsplit(' ').next() != Some(operations.to_string().as_str()) {
            wrong.push((name, operations));
        }
    };
    for function in [Exp, Log, Sqrt, Rsqrt, Tanh, Erf, Sin, Cos] {
        let name = format!("{function:?}").to_lowercase();
        let mut host = Host::<f64>::default();
        apply_double(function, &mut host, 0.3);
        if !matches!(function, Sqrt | Rsqrt) {
            check(format!("double::{name}"), host.operations);
        }
        let mut host = Host::<f32>::default();
        apply(function, &mut host, 0.3);
        check(name, host.operations);
    }
    assert_eq!(wrong, [], "counted operations that the table does not give");
    for function in [Unary::Neg, Unary::Not, Unary::Abs, Unary::Floor, Unary::Ceil, Unary::Trunc, Unary::Round] {
        assert_eq!(apply(function, &mut Host::<f32>::default(), 1.0), None);
    }
}

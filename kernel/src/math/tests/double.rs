//! The functions of f64 against points that `measure.py` computed to 60 and more digits: usual arguments, ends of
//! ranges, seams of polynomials, and arguments next to multiples of π/2.

use super::super::{Host, apply_double, bound, ulp};
use super::Unary::{self, Cos, Erf, Exp, Log, Sin, Tanh};
use crate::element::ElementType;

const FUNCTIONS: [(&str, Unary); 6] =
    [("exp", Exp), ("log", Log), ("tanh", Tanh), ("erf", Erf), ("sin", Sin), ("cos", Cos)];

fn value(function: Unary, x: f64) -> f64 {
    apply_double(function, &mut Host::<f64>::default(), x).expect("a math function")
}

/// A line: function, argument, the nearest f64 to the exact value (both as bits), and what is left in 1/1000 ulp.
#[test]
fn agrees_with_committed_points() {
    for (name, function) in FUNCTIONS {
        let bound = bound(function, ElementType::F64).expect("a bound");
        let (mut worst, mut count) = (0.0_f64, 0);
        for line in include_str!("points.txt").lines().filter(|line| line.starts_with(name)) {
            let mut words = line.split(' ').skip(1);
            let mut bits = || u64::from_str_radix(words.next().expect("bits"), 16).expect("hexadecimal");
            let (x, nearest) = (f64::from_bits(bits()), f64::from_bits(bits()));
            let rest: f64 = words.next().expect("a rest").parse().expect("a number");
            let got = value(function, x);
            if nearest.is_infinite() || got.is_infinite() {
                assert_eq!(got, nearest, "{name}({x:e})");
                continue;
            }
            // The difference of neighbours is exact.
            let error = ((got - nearest) / ulp(ElementType::F64, nearest) - rest / 1000.0).abs();
            assert!(error <= bound.ulp, "{name}({x:e}) = {got:e}: {error} ulp from {nearest:e}");
            (worst, count) = (worst.max(error), count + 1);
        }
        println!("{name}: {worst:.3} ulp at most, of {count} points");
        assert!(count >= 300, "{name}: {count} points");
    }
}

/// Prints many arguments and results for `measure.py`, if the environment asks for so many of each function.
#[test]
fn results_for_measurement() {
    let Some(count) = std::env::var("TILEWRIGHT_POINTS").ok().and_then(|n| n.parse::<u64>().ok()) else { return };
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    for (name, function) in FUNCTIONS {
        for n in 0..count {
            let bits = random();
            let unit = (bits >> 11) as f64 / (1_u64 << 53) as f64;
            let x = match (n % 4, function) {
                // Any finite number; small ones; around 1; where the function is not yet constant.
                (0, _) => f64::from_bits((bits % 0x7ff0_0000_0000_0000) | (bits & (1 << 63))),
                (1, Log) => 1.0 + (unit - 0.5) / 4.0,
                (1, _) => (unit - 0.5) * 4.0,
                (2, _) => (unit - 0.5) * 16.0,
                (_, Exp) => (unit - 0.5) * 1500.0,
                (_, Sin | Cos) => (unit - 0.5) * 3e6,
                _ => (unit - 0.5) * 45.0,
            };
            println!("point {name} {:016x} {:016x}", x.to_bits(), value(function, x).to_bits());
        }
    }
}

#[test]
fn edge_cases_have_their_exact_values_and_signs() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    const LEAST: f64 = f64::from_bits(1);
    let cases: &[(Unary, f64, f64)] = &[
        (Exp, 0.0, 1.0),
        (Exp, -0.0, 1.0),
        (Exp, INF, INF),
        (Exp, -INF, 0.0),
        (Exp, f64::MAX, INF),
        (Exp, f64::MIN, 0.0),
        (Exp, LEAST, 1.0),
        (Exp, 709.782_712_893_384_1, INF), // the least argument that overflows
        (Exp, -745.133_219_101_941_1, LEAST),
        (Exp, -745.133_219_101_941_2, 0.0),
        (Log, 0.0, -INF),
        (Log, -0.0, -INF),
        (Log, 1.0, 0.0),
        (Log, INF, INF),
        (Log, -1.0, NAN),
        (Log, -LEAST, NAN),
        (Log, -INF, NAN),
        (Tanh, 0.0, 0.0),
        (Tanh, INF, 1.0),
        (Tanh, f64::MAX, 1.0),
        (Tanh, LEAST, LEAST),
        (Erf, 0.0, 0.0),
        (Erf, INF, 1.0),
        (Erf, f64::MAX, 1.0),
        (Erf, LEAST, LEAST),
        (Sin, 0.0, 0.0),
        (Sin, LEAST, LEAST),
        (Sin, INF, NAN),
        (Cos, 0.0, 1.0),
        (Cos, LEAST, 1.0),
        (Cos, INF, NAN),
    ];
    for &(function, x, expected) in cases {
        let odd = matches!(function, Tanh | Erf | Sin);
        let mirrored = [(x, expected), (-x, if odd { -expected } else { expected })];
        for (x, expected) in mirrored.into_iter().take(if odd || function == Cos { 2 } else { 1 }) {
            let got = value(function, x);
            let same = got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
            assert!(same, "{function:?}({x:e}): got {got:e}, expected {expected:e}");
        }
    }
    for (_, function) in FUNCTIONS {
        for nan in [NAN, -NAN, f64::from_bits(0x7ff0_0000_0000_0001)] {
            assert!(value(function, nan).is_nan(), "{function:?}");
        }
    }
}

#[test]
fn results_stay_in_range_and_symmetric() {
    for bits in (0..0x7ff0_0000_0000_0000_u64).step_by(0x0000_7fed_cba9_8765) {
        let x = f64::from_bits(bits);
        for function in [Tanh, Erf, Sin, Cos] {
            let (y, z) = (value(function, x), value(function, -x));
            assert!(y.abs() <= 1.0, "{function:?}({x:e}) = {y:e}");
            let mirrored = if function == Cos { z } else { -z };
            assert_eq!(mirrored.to_bits(), y.to_bits(), "{function:?}(±{x:e})");
        }
        assert!(value(Exp, x) >= 1.0 && value(Exp, -x) <= 1.0 && value(Exp, -x) >= 0.0, "exp(±{x:e})");
    }
}

//! Math functions reach the machine: each agrees with the host's to its bound. The functions themselves are tested in
//! their room.

use tilewright_kernel::ElementType::{self, Bf16, Bool, F16, F32, F64, I8, I32, I64, U32};
use tilewright_kernel::algorithm::Unary;
use tilewright_kernel::math::{self, Host};

use super::machine::run;
use super::oracle;
use super::{build, scalar};
use crate::emit::functions::{NoFunction, unary};

type Real = fn(f64) -> f64;

const FUNCTIONS: [(Unary, Real); 11] = [
    (Unary::Sqrt, f64::sqrt),
    (Unary::Rsqrt, |x| 1.0 / x.sqrt()),
    (Unary::Exp, f64::exp),
    (Unary::Log, f64::ln),
    (Unary::Tanh, f64::tanh),
    (Unary::Sin, f64::sin),
    (Unary::Cos, f64::cos),
    (Unary::Floor, f64::floor),
    (Unary::Ceil, f64::ceil),
    (Unary::Trunc, f64::trunc),
    (Unary::Round, f64::round_ties_even),
];

/// Distance in units of the last place of an `f32`.
fn ulps(found: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if found == nearest || found.is_nan() && nearest.is_nan() {
        return 0.0;
    }
    let place = (nearest.abs().max(f32::MIN_POSITIVE)).to_bits();
    let place = f64::from(f32::from_bits(place + 1)) - f64::from(f32::from_bits(place));
    ((f64::from(found) - exact) / place).abs()
}

#[test]
fn accurate_functions_on_f32() {
    let values: Vec<f32> =
        (-200..200).map(|n| n as f32 * 0.137).chain([-0.0, 1e-30, 1e30, f32::INFINITY, f32::NAN]).collect();
    let bits: Vec<u64> = values.iter().map(|v| u64::from(v.to_bits())).collect();
    let found = run(&[(F32, &bits)], &[F32; 11], |b, v| {
        FUNCTIONS.map(|(op, _)| unary(b, op, v[0]).expect("it exists")).to_vec()
    });
    for ((op, host), found) in FUNCTIONS.iter().zip(found) {
        for (x, found) in values.iter().zip(found) {
            let (found, exact) = (f32::from_bits(found as u32), host(f64::from(*x)));
            assert!(ulps(found, exact) <= 2.0, "{op:?}({x}) is {found}, not {exact}");
        }
    }
}

/// Every accurate function gives the bits that the host computes for it: the reference relies on it.
#[test]
fn the_machine_and_the_host_agree_bit_for_bit() {
    let ops = [Unary::Exp, Unary::Log, Unary::Rsqrt, Unary::Tanh, Unary::Erf, Unary::Sin, Unary::Cos];
    // Any bits, numbers of usual size, and those on whose reduction every bit of π counts.
    let mut singles: Vec<u64> = (0..1 << 32).step_by(6_000_011).collect();
    singles.extend((-400..400).map(|n| u64::from((n as f32 * 0.0371).to_bits())));
    singles.extend((1..60).map(|n| u64::from((n as f32 * std::f32::consts::FRAC_PI_2 * 1e6).to_bits())));
    let mut doubles: Vec<u64> = oracle::edges(F64);
    doubles.extend((0..1000_u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    doubles.extend((-400..400).map(|n| (f64::from(n) * 0.0371).to_bits()));
    doubles.extend((0..60).map(|n| (1.5_f64 * 2_f64.powi(20 + 16 * n)).to_bits()));
    doubles.push(0x7506_AC5B_262C_A1FF);
    for (element, bits) in [(F32, &singles), (F64, &doubles)] {
        let found = run(&[(element, bits)], &[element; 7], |b, v| {
            ops.map(|op| unary(b, op, v[0]).expect("it exists")).to_vec()
        });
        for (op, found) in ops.iter().zip(found) {
            for (x, found) in bits.iter().zip(found) {
                let expected = match element {
                    F32 => {
                        let x = f32::from_bits(*x as u32);
                        math::apply(*op, &mut Host::<f32>::default(), x).map(|y| u64::from(y.to_bits()))
                    }
                    _ => math::apply_double(*op, &mut Host::<f64>::default(), f64::from_bits(*x)).map(f64::to_bits),
                };
                let expected = expected.expect("it exists");
                assert!(oracle::same(element, found, expected), "{op:?}({x:#x}) is {found:#x}, not {expected:#x}");
            }
        }
    }
}

#[test]
fn the_error_function() {
    let cases =
        [(0.0, 0.0), (0.5, 0.520_499_877_813_046_5), (-1.0, -0.842_700_792_949_714_9), (2.0, 0.995_322_265_018_952_7)];
    let bits: Vec<u64> = cases.iter().map(|(x, _): &(f32, f64)| u64::from(x.to_bits())).collect();
    let found = run(&[(F32, &bits)], &[F32], |b, v| vec![unary(b, Unary::Erf, v[0]).expect("it exists")]);
    for ((x, exact), found) in cases.iter().zip(&found[0]) {
        assert!(ulps(f32::from_bits(*found as u32), *exact) <= 2.0, "erf({x})");
    }
}

/// Half types: the f32 function, rounded once.
#[test]
fn functions_on_halves() {
    for element in [F16, Bf16] {
        let bits: Vec<u64> = (0..1 << 16).step_by(97).collect();
        let wide: Vec<u64> = bits.iter().map(|bits| oracle::cast(element, F32, *bits)).collect();
        let ops = [Unary::Exp, Unary::Rsqrt, Unary::Tanh, Unary::Floor, Unary::Neg];
        let [half, single] = [(element, &bits), (F32, &wide)].map(|(ty, bits): (ElementType, &Vec<u64>)| {
            run(&[(ty, bits)], &[ty; 5], |b, v| ops.map(|op| unary(b, op, v[0]).expect("it exists")).to_vec())
        });
        for ((op, half), single) in ops.iter().zip(half).zip(single) {
            for n in 0..bits.len() {
                let rounded = oracle::cast(F32, element, single[n]);
                assert!(oracle::same(element, half[n], rounded), "{op:?}({:#x}) on {element}", bits[n]);
            }
        }
    }
}

#[test]
fn roots_on_f64() {
    let bits = oracle::edges(F64);
    let found = run(&[(F64, &bits)], &[F64; 2], |b, v| {
        [Unary::Sqrt, Unary::Rsqrt].map(|op| unary(b, op, v[0]).expect("it exists")).to_vec()
    });
    for (n, bits) in bits.iter().enumerate() {
        let root = f64::from_bits(*bits).sqrt();
        assert!(oracle::same(F64, found[0][n], root.to_bits()));
        assert!(oracle::same(F64, found[1][n], (1.0 / root).to_bits()));
    }
}

#[test]
fn approximate_functions() {
    let cases: [(Unary, Real); 8] = [
        (Unary::ApproxExp, f64::exp),
        (Unary::ApproxExp2, f64::exp2),
        (Unary::ApproxLog, f64::ln),
        (Unary::ApproxSqrt, f64::sqrt),
        (Unary::ApproxRsqrt, |x| 1.0 / x.sqrt()),
        (Unary::ApproxTanh, f64::tanh),
        (Unary::ApproxSin, f64::sin),
        (Unary::ApproxCos, f64::cos),
    ];
    let values: Vec<f32> = (1..100).map(|n| n as f32 * 0.03).collect();
    let bits: Vec<u64> = values.iter().map(|v| u64::from(v.to_bits())).collect();
    let found =
        run(&[(F32, &bits)], &[F32; 8], |b, v| cases.map(|(op, _)| unary(b, op, v[0]).expect("it exists")).to_vec());
    for ((op, host), found) in cases.iter().zip(found) {
        for (x, found) in values.iter().zip(found) {
            let (found, exact) = (f64::from(f32::from_bits(found as u32)), host(f64::from(*x)));
            // tanh.approx has the widest bound: 2^-11 relative.
            assert!((found - exact).abs() <= exact.abs() * 6e-4 + 1e-6, "{op:?}({x}) is {found}, not {exact}");
        }
    }
}

#[test]
fn functions_that_do_not_exist_are_refused() {
    let refused = [
        (Unary::ApproxSqrt, F64),
        (Unary::Sqrt, I32),
        (Unary::Exp, I8),
        (Unary::Floor, U32),
        (Unary::Round, I64),
        (Unary::Neg, Bool),
        (Unary::Not, F32),
    ];
    for (op, element) in refused {
        build(vec![scalar("s", element)], |b| {
            let s = b.scalar(0);
            assert_eq!(unary(b, op, s), Err(NoFunction { op, element }));
        });
    }
}

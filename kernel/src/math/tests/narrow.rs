//! The functions of f16 and bf16 for all arguments: those of f32, rounded once more.

use super::{Unary, oracle, value};
use crate::element::ElementType;
use crate::format::Format;
use Unary::{Cos, Erf, Exp, Log, Rsqrt, Sin, Sqrt, Tanh};

/// Distance of neighbours around a value.
fn unit(format: Format, exact: f64) -> f64 {
    let exponent = exact.abs().log2().floor().max(f64::from(format.least_exponent()));
    (exponent - f64::from(format.fraction)).exp2()
}

/// Two units of f32 are 2^-12 of f16's and 2^-15 of bf16's: no result is further from the exact value than half a unit
/// and that.
#[test]
fn narrow_functions_are_rounded_twice_and_hardly_differ() {
    for (ty, excess) in [(ElementType::F16, 2.0 / 8192.0), (ElementType::Bf16, 2.0 / 65536.0)] {
        let format = Format::of(ty).expect("a float");
        for function in [Exp, Log, Sqrt, Rsqrt, Tanh, Erf, Sin, Cos] {
            let (mut worst, mut at, mut wrong) = (0.0_f64, 0.0, 0);
            for bits in 0..0x1_0000 {
                let x = format.value(bits);
                let exact = oracle::exact(function, x);
                let got = format.from_f64(f64::from(value(function, x as f32)));
                let rounded = format.from_f64(exact);
                let got_value = format.value(got);
                if exact.is_nan() {
                    assert!(got_value.is_nan(), "{function:?}({x:e}) of {ty:?}");
                    continue;
                }
                if rounded == got {
                    if exact.is_finite() && got_value.is_finite() && exact != 0.0 {
                        worst = worst.max((got_value - exact).abs() / unit(format, exact));
                    }
                    continue;
                }
                // Next to a tie.
                let error = (got_value - exact).abs() / unit(format, exact);
                assert!(
                    error <= 0.5 + excess,
                    "{function:?}({x:e}) of {ty:?}: {got_value:e} is {error} units from {exact:e}"
                );
                wrong += 1;
                if error > worst {
                    (worst, at) = (error, x);
                }
            }
            println!("{function:?} of {ty:?}: {worst:.6} units at {at:e}, {wrong} results not the nearest");
            assert!(wrong <= 8, "{function:?} of {ty:?}: {wrong} results are not the nearest");
        }
    }
}

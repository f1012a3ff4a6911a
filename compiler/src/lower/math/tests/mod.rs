//! The functions against an f64 oracle: measured error, edge cases, order, cost.

mod host;
mod oracle;

use super::{Roots, apply, rsqrt, sqrt};
use host::Host;
use tilewright_kernel::algorithm::Unary;
use tilewright_kernel::element::ElementType;
use tilewright_kernel::math::{BOUNDS, bound, ulp};

const ACCURATE: [Unary; 8] =
    [Unary::Exp, Unary::Log, Unary::Sqrt, Unary::Rsqrt, Unary::Tanh, Unary::Erf, Unary::Sin, Unary::Cos];

fn value(function: Unary, x: f32) -> f32 {
    apply(function, &mut Host::default(), x).expect("a math function")
}

/// Largest error in ulp and its argument over arguments `step` bits apart; panics where the bound does not admit a result.
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

/// All arguments if the environment asks for it, else every few thousandth.
fn check(function: Unary) {
    let exhaustive = std::env::var_os("TILEWRIGHT_EXHAUSTIVE").is_some();
    let (worst, at) = measure(function, if exhaustive { 1 } else { 2503 });
    println!("{function:?}: {worst:.4} ulp at {at:e} ({:#010x})", at.to_bits());
}

macro_rules! bounds {
    ($($test:ident $function:ident)*) => { $(#[test] fn $test() { check(Unary::$function); })* };
}
bounds! {
    exp Exp log Log sqrt_ Sqrt rsqrt_ Rsqrt tanh Tanh erf Erf sin Sin cos Cos
    approx_exp ApproxExp approx_log ApproxLog approx_sqrt ApproxSqrt approx_rsqrt ApproxRsqrt
    approx_tanh ApproxTanh approx_sin ApproxSin approx_cos ApproxCos
}

//! The math functions of the language: bounded error, and the same bits on every machine.
//!
//! [`Ops`] is an instruction set of one float width; [`exp`] and its neighbours (for `f64` those in [`double`]) are
//! written in it. The compiler emits instructions through it, the reference computes numbers through it ([`Host`]). The
//! accurate functions use correctly rounded and integer operations only, so GPU, emulator and host agree bit for bit
//! (but for which NaN a NaN is); they have no branches, except that `sin` and `cos` reduce large arguments apart:
//! beyond 2^17 in `f32`, 2^20 in `f64`. The functions of [`approx`] wrap approximate instructions, whose results differ
//! between machines.
//!
//! Error bounds are data, [`BOUNDS`]. These tables give the largest errors found, in units in the last place.
//! *Operations* are PTX instructions without constants and free moves, for usual arguments; `rcp`, `div` and `sqrt`
//! count as one.
//!
//! Of `f32` against `f64` functions, for all 2^32 arguments (`TILEWRIGHT_EXHAUSTIVE=1 cargo test --release -p
//! tilewright-kernel math -- --nocapture`):
//!
//! | function | promised | measured | operations |
//! | --- | --- | --- | --- |
//! | `exp` | 2 | 0.892 | 18 |
//! | `log` | 2 | 0.922 | 28 |
//! | `sqrt` | 0.5 | 0.500 | 1 |
//! | `rsqrt` | 2 | 1.491 | 2 |
//! | `tanh` | 2 | 1.590 | 27 |
//! | `erf` | 2 | 1.305 | 28 |
//! | `sin` | 2 | 1.577 | 27 |
//! | `cos` | 2 | 1.582 | 26 |
//!
//! Of `f64` against 60 and more digits (`tests/measure.py`), for 200,000 arguments each (of `log`, the positive ones),
//! a quarter of them any finite numbers:
//!
//! | function | promised | measured | operations |
//! | --- | --- | --- | --- |
//! | `double::exp` | 2 | 0.868 | 23 |
//! | `double::log` | 2 | 0.806 | 33 |
//! | `double::tanh` | 2 | 1.467 | 38 |
//! | `double::erf` | 2 | 1.263 | 54 |
//! | `double::sin` | 2 | 0.749 | 52 |
//! | `double::cos` | 2 | 0.751 | 51 |

pub mod approx;
mod bounds;
pub mod double;
mod exponential;
mod host;
mod ops;
#[cfg(test)]
mod tests;
mod trigonometric;

pub use bounds::{BOUNDS, Bound, bound, ulp};
pub use exponential::{erf, exp, log, tanh};
pub use host::Host;
pub use ops::{Double, Ops, Single};
pub use trigonometric::{cos, sin};

use crate::algorithm::Unary;
use crate::element::ElementType;

/// Where [`exp`] of a type clamps its argument.
pub fn exp_range(ty: ElementType) -> Option<(f64, f64)> {
    match ty {
        ElementType::F32 => Some(exponential::range()),
        ElementType::F64 => Some(double::exp_range()),
        _ => None,
    }
}

/// √x, correctly rounded: √−0 = −0, NaN below 0. f32 or f64.
pub fn sqrt<O: Ops>(o: &mut O, x: O::F) -> O::F {
    o.sqrt(x)
}

/// 1/√x: ±inf of ±0, NaN below 0. f32 or f64.
pub fn rsqrt<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let root = o.sqrt(x);
    o.recip(root)
}

/// The f64 function that an operation of the language names; none for those that are no math function, or have none.
pub fn apply_double<O: Double>(function: Unary, o: &mut O, x: O::F) -> Option<O::F> {
    Some(match function {
        Unary::Sqrt => sqrt(o, x),
        Unary::Rsqrt => rsqrt(o, x),
        Unary::Exp => double::exp(o, x),
        Unary::Log => double::log(o, x),
        Unary::Tanh => double::tanh(o, x),
        Unary::Erf => double::erf(o, x),
        Unary::Sin => double::sin(o, x),
        Unary::Cos => double::cos(o, x),
        _ => return None,
    })
}

/// The f32 function that an operation of the language names; none for those that are no math function.
pub fn apply<O: Single>(function: Unary, o: &mut O, x: O::F) -> Option<O::F> {
    Some(match function {
        Unary::Sqrt => sqrt(o, x),
        Unary::Rsqrt => rsqrt(o, x),
        Unary::Exp => exp(o, x),
        Unary::Log => log(o, x),
        Unary::Tanh => tanh(o, x),
        Unary::Erf => erf(o, x),
        Unary::Sin => sin(o, x),
        Unary::Cos => cos(o, x),
        Unary::ApproxExp => approx::exp(o, x),
        Unary::ApproxExp2 => o.ex2_approx(x),
        Unary::ApproxLog => approx::log(o, x),
        Unary::ApproxSqrt => approx::sqrt(o, x),
        Unary::ApproxRsqrt => approx::rsqrt(o, x),
        Unary::ApproxTanh => approx::tanh(o, x),
        Unary::ApproxSin => approx::sin(o, x),
        Unary::ApproxCos => approx::cos(o, x),
        Unary::Neg | Unary::Not | Unary::Abs => return None,
        Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round => return None,
    })
}

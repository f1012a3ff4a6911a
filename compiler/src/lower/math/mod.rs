//! The math functions of generated code: bounded error, no branches, the same bits on every machine.
//!
//! [`Ops`] is the instruction set; [`exp`] and its neighbours emit a straight line of operations through it. The accurate
//! functions use correctly rounded and integer operations only, so GPU, emulator and host agree bit for bit (but for which NaN
//! a NaN is). The functions of [`approx`] wrap approximate instructions, whose results differ between machines.
//!
//! Error bounds are data, [`tilewright_kernel::math::BOUNDS`]. This table gives the largest error found against f64 on every
//! 2503rd of the 2^32 arguments, in units in the last place; `TILEWRIGHT_EXHAUSTIVE=1 cargo test --release -p
//! tilewright-compiler math -- --nocapture` tries them all. *Operations* are PTX instructions without constants and free moves;
//! `rcp` and `sqrt` count as one.
//!
//! | function | promised | measured | operations |
//! | --- | --- | --- | --- |
//! | `exp` | 2 | 0.802 | 18 |
//! | `log` | 2 | 0.868 | 28 |
//! | `sqrt` | 0.5 | 0.500 | 1 |
//! | `rsqrt` | 2 | 1.469 | 2 |
//! | `tanh` | 2 | 1.486 | 27 |
//! | `erf` | 2 | 1.024 | 28 |
//! | `sin` | 2 | 1.408 | 23 |
//! | `cos` | 2 | 1.464 | 24 |

pub mod approx;
mod exponential;
mod ops;
#[cfg(test)]
mod tests;
mod trigonometric;

pub use exponential::{erf, exp, log, tanh};
pub use ops::{Ops, Roots};
pub use trigonometric::{cos, sin};

use tilewright_kernel::algorithm::Unary;

/// √x, correctly rounded: √−0 = −0, NaN below 0. f32 or f64.
pub fn sqrt<O: Roots>(o: &mut O, x: O::F) -> O::F {
    o.sqrt(x)
}

/// 1/√x: ±inf of ±0, NaN below 0. f32 or f64.
pub fn rsqrt<O: Roots>(o: &mut O, x: O::F) -> O::F {
    let root = o.sqrt(x);
    o.recip(root)
}

/// The f32 function that an operation of the language names; none for those that are no math function.
pub fn apply<O: Ops>(function: Unary, o: &mut O, x: O::F) -> Option<O::F> {
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
        Unary::ApproxLog => approx::log(o, x),
        Unary::ApproxSqrt => approx::sqrt(o, x),
        Unary::ApproxRsqrt => approx::rsqrt(o, x),
        Unary::ApproxTanh => approx::tanh(o, x),
        Unary::ApproxSin => approx::sin(o, x),
        Unary::ApproxCos => approx::cos(o, x),
        Unary::Neg | Unary::Not | Unary::Abs | Unary::Floor => return None,
    })
}

//! The math functions of `f64`. Coefficients come from `derive.py`.

mod exponential;
pub(super) mod trigonometric;

pub use exponential::{erf, exp, exp_range, log, tanh};
pub use trigonometric::{cos, sin};

//! `approx::` functions: the approximate instruction and, where its base is 2, one multiplication.

use super::ops::Single;

/// eˣ = 2^(x·log₂ e) by `ex2.approx`: the rounding of the product gives an error that grows with |x|.
pub fn exp<O: Single>(o: &mut O, x: O::F) -> O::F {
    let scale = o.float(std::f32::consts::LOG2_E);
    let x = o.mul(x, scale);
    o.ex2_approx(x)
}

/// ln x = log₂ x · ln 2 by `lg2.approx`.
pub fn log<O: Single>(o: &mut O, x: O::F) -> O::F {
    let scale = o.float(std::f32::consts::LN_2);
    let y = o.lg2_approx(x);
    o.mul(y, scale)
}

/// √x by `sqrt.approx`.
pub fn sqrt<O: Single>(o: &mut O, x: O::F) -> O::F {
    o.sqrt_approx(x)
}

/// 1/√x by `rsqrt.approx`.
pub fn rsqrt<O: Single>(o: &mut O, x: O::F) -> O::F {
    o.rsqrt_approx(x)
}

/// tanh x by `tanh.approx`.
pub fn tanh<O: Single>(o: &mut O, x: O::F) -> O::F {
    o.tanh_approx(x)
}

/// sin x by `sin.approx`.
pub fn sin<O: Single>(o: &mut O, x: O::F) -> O::F {
    o.sin_approx(x)
}

/// cos x by `cos.approx`.
pub fn cos<O: Single>(o: &mut O, x: O::F) -> O::F {
    o.cos_approx(x)
}

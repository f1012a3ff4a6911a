//! The operations that a math function is built from: one trait method is one PTX instruction.
//!
//! The lowering implements the trait over its instruction builder, the tests over plain host numbers. The value types are those
//! of 32-bit registers; [`bits`](Ops::bits) and [`float_of`](Ops::float_of) are free if registers are declared `.b32`.

/// Square root and reciprocal, of f32 or f64: all that [`sqrt`](super::sqrt) and [`rsqrt`](super::rsqrt) need.
pub trait Roots {
    /// A float value, f32 or f64.
    type F: Copy;
    /// √a, correctly rounded: `sqrt.rn.f32`, `sqrt.rn.f64`.
    fn sqrt(&mut self, a: Self::F) -> Self::F;
    /// 1/a, correctly rounded: `rcp.rn.f32`, `rcp.rn.f64`.
    fn recip(&mut self, a: Self::F) -> Self::F;
}

/// Operations on f32 values and their 32 bits. All arithmetic rounds to nearest even and keeps subnormal numbers (no `.ftz`).
pub trait Ops: Roots {
    /// Thirty-two bits.
    type I: Copy;
    /// A predicate.
    type P: Copy;

    /// A constant: an immediate operand.
    fn float(&mut self, value: f32) -> Self::F;
    /// A constant: an immediate operand.
    fn int(&mut self, value: u32) -> Self::I;

    /// a + b: `add.rn.f32` (never contracted, hence the explicit `.rn`).
    fn add(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// a − b: `sub.rn.f32`.
    fn sub(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// a · b: `mul.rn.f32`.
    fn mul(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// a · b + c, rounded once: `fma.rn.f32`.
    fn fma(&mut self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// |a|: `abs.f32`.
    fn abs(&mut self, a: Self::F) -> Self::F;
    /// The size of `a` with the sign of `sign`: `copysign.f32 d, sign, a` (PTX names the sign first).
    fn copysign(&mut self, a: Self::F, sign: Self::F) -> Self::F;
    /// Smaller; NaN if either is NaN: `min.NaN.f32`.
    fn min(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// Larger; NaN if either is NaN: `max.NaN.f32`.
    fn max(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// a < b, false if either is NaN: `setp.lt.f32`.
    fn lt(&mut self, a: Self::F, b: Self::F) -> Self::P;
    /// a = b, false if either is NaN: `setp.eq.f32`.
    fn eq(&mut self, a: Self::F, b: Self::F) -> Self::P;
    /// `yes` where the predicate holds, else `no`: `selp.f32`.
    fn select(&mut self, p: Self::P, yes: Self::F, no: Self::F) -> Self::F;

    /// The bits of a float: `mov.b32`, or nothing.
    fn bits(&mut self, a: Self::F) -> Self::I;
    /// The float with these bits: `mov.b32`, or nothing.
    fn float_of(&mut self, a: Self::I) -> Self::F;
    /// a + b, wrapping: `add.s32`.
    fn int_add(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// a − b, wrapping: `sub.s32`.
    fn int_sub(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise and: `and.b32`.
    fn and(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise exclusive or: `xor.b32`.
    fn xor(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Shift left by less than 32: `shl.b32`.
    fn shl(&mut self, a: Self::I, by: u32) -> Self::I;
    /// Arithmetic shift right by less than 32: `shr.s32`.
    fn shr(&mut self, a: Self::I, by: u32) -> Self::I;
    /// a ≠ 0: `setp.ne.s32`.
    fn is_nonzero(&mut self, a: Self::I) -> Self::P;
    /// The signed integer as a float: `cvt.rn.f32.s32`.
    fn to_float(&mut self, a: Self::I) -> Self::F;

    /// 2^a, approximately: `ex2.approx.f32`.
    fn ex2_approx(&mut self, a: Self::F) -> Self::F;
    /// log₂ a, approximately: `lg2.approx.f32`.
    fn lg2_approx(&mut self, a: Self::F) -> Self::F;
    /// √a, approximately: `sqrt.approx.f32`.
    fn sqrt_approx(&mut self, a: Self::F) -> Self::F;
    /// 1/√a, approximately: `rsqrt.approx.f32`.
    fn rsqrt_approx(&mut self, a: Self::F) -> Self::F;
    /// tanh a, approximately: `tanh.approx.f32`.
    fn tanh_approx(&mut self, a: Self::F) -> Self::F;
    /// sin a, approximately: `sin.approx.f32`.
    fn sin_approx(&mut self, a: Self::F) -> Self::F;
    /// cos a, approximately: `cos.approx.f32`.
    fn cos_approx(&mut self, a: Self::F) -> Self::F;
}

/// c₀ + x·(c₁ + x·(c₂ + …)), by one `fma` for each coefficient but the last.
pub(super) fn polynomial<O: Ops>(o: &mut O, x: O::F, coefficients: &[f32]) -> O::F {
    let (&last, rest) = coefficients.split_last().unwrap_or((&0.0, &[]));
    let mut sum = o.float(last);
    for &c in rest.iter().rev() {
        let c = o.float(c);
        sum = o.fma(sum, x, c);
    }
    sum
}

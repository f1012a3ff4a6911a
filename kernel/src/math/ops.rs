//! The operations that a math function is built from: one trait method is one PTX instruction, or very few.
//!
//! The compiler implements the traits over its instruction builder, [`Host`](super::Host) over plain numbers.

/// Operations on floats of one width and on their bits. All arithmetic rounds to nearest even and keeps subnormal
/// numbers (no `.ftz`). Instructions are named for `f32`; those for `f64` have the same names with another width.
pub trait Ops {
    /// A constant: `f32` or `f64`.
    type Number: Copy;
    /// A constant of as many bits.
    type Word: Copy;
    /// A float.
    type F: Copy;
    /// The bits of a float.
    type I: Copy;
    /// A predicate.
    type P: Copy;

    /// A constant: an immediate operand.
    fn float(&mut self, value: Self::Number) -> Self::F;
    /// A constant: an immediate operand.
    fn int(&mut self, value: Self::Word) -> Self::I;

    /// a + b: `add.rn.f32` (never contracted, hence the explicit `.rn`).
    fn add(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// a − b: `sub.rn.f32`.
    fn sub(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// a · b: `mul.rn.f32`.
    fn mul(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// a / b: `div.rn.f32`.
    fn div(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// a · b + c, rounded once: `fma.rn.f32`.
    fn fma(&mut self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// √a, correctly rounded: `sqrt.rn.f32`.
    fn sqrt(&mut self, a: Self::F) -> Self::F;
    /// 1/a, correctly rounded: `rcp.rn.f32`.
    fn recip(&mut self, a: Self::F) -> Self::F;
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
    /// Low half of a · b: `mul.lo.s32`.
    fn int_mul(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// High half of a · b, unsigned: `mul.hi.u32`.
    fn mul_high(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise and: `and.b32`.
    fn and(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise or: `or.b32`.
    fn or(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise exclusive or: `xor.b32`.
    fn xor(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Shift left by less than the width: `shl.b32`.
    fn shl(&mut self, a: Self::I, by: u32) -> Self::I;
    /// Arithmetic shift right by less than the width: `shr.s32`.
    fn shr(&mut self, a: Self::I, by: u32) -> Self::I;
    /// Logical shift right by less than the width: `shr.u32`.
    fn shr_logical(&mut self, a: Self::I, by: u32) -> Self::I;
    /// Shift left by a number below the width: `shl.b32`.
    fn shl_by(&mut self, a: Self::I, by: Self::I) -> Self::I;
    /// Logical shift right by a number below the width: `shr.u32`.
    fn shr_by(&mut self, a: Self::I, by: Self::I) -> Self::I;
    /// a ≠ 0: `setp.ne.s32`.
    fn is_nonzero(&mut self, a: Self::I) -> Self::P;
    /// a < b, unsigned: `setp.lt.u32`.
    fn int_below(&mut self, a: Self::I, b: Self::I) -> Self::P;
    /// `yes` where the predicate holds, else `no`: `selp.b32`.
    fn int_select(&mut self, p: Self::P, yes: Self::I, no: Self::I) -> Self::I;
    /// The signed integer as a float: `cvt.rn.f32.s32`.
    fn to_float(&mut self, a: Self::I) -> Self::F;

    /// The results of `rare` where the predicate holds, else `usual`: a branch that warps normally do not take.
    fn rarely<const N: usize>(
        &mut self,
        p: Self::P,
        usual: ([Self::F; N], Self::I),
        rare: impl FnOnce(&mut Self) -> ([Self::F; N], Self::I),
    ) -> ([Self::F; N], Self::I);
}

/// Operations on `f64`.
pub trait Double: Ops<Number = f64, Word = u64> {}
impl<O: Ops<Number = f64, Word = u64>> Double for O {}

/// Operations on `f32`, the way to `f64`, and the approximate instructions.
pub trait Single: Ops<Number = f32, Word = u32> {
    /// An `f64`.
    type WideF: Copy;
    /// The bits of an `f64`.
    type WideI: Copy;
    /// The operations on them.
    type Wide<'a>: Ops<Number = f64, Word = u64, F = Self::WideF, I = Self::WideI>
    where
        Self: 'a;

    /// The same number: `cvt.f64.f32`.
    fn widen(&mut self, a: Self::F) -> Self::WideF;
    /// The nearest `f32`: `cvt.rn.f32.f64`.
    fn narrow(&mut self, a: Self::WideF) -> Self::F;
    /// The low half: `cvt.u32.u64`.
    fn low(&mut self, a: Self::WideI) -> Self::I;
    /// Computes with `f64`.
    fn wide<R>(&mut self, f: impl FnOnce(&mut Self::Wide<'_>) -> R) -> R;

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

/// c₀ + x·(c₁ + x·(c₂ + …)), by one `fma` for each coefficient but the last. There is at least one.
pub(super) fn polynomial<O: Ops>(o: &mut O, x: O::F, coefficients: &[O::Number]) -> O::F {
    debug_assert!(!coefficients.is_empty(), "a polynomial has coefficients");
    let sum = coefficients.iter().rev().fold(None, |sum, &c| {
        let c = o.float(c);
        Some(sum.map_or(c, |sum| o.fma(sum, x, c)))
    });
    sum.unwrap_or(x)
}

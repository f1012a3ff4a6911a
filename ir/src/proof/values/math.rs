//! Math functions on terms: the definitions of the kernel crate, over the algebra.

use std::marker::PhantomData;

use tilewright_kernel::ElementType::{self, F32, F64, I32, I64, U32, U64};
use tilewright_kernel::algorithm::{Binary, Compare, Unary};
use tilewright_kernel::math::{self, Ops, Single};

use super::Algebra;
use crate::kernel_ir::UnaryOp;
use crate::proof::row::{Known, wrapped};

/// A function of a float of the type `ty`, `f32` or `f64`; none if there is no such function.
pub(super) fn apply(algebra: &Algebra, function: Unary, ty: ElementType, x: i64) -> Known {
    let x = Some(x);
    match ty {
        F64 => math::apply_double(function, &mut Terms::<f64>::new(algebra), x)?,
        _ => math::apply(function, &mut Terms::<f32>::new(algebra), x)?,
    }
}

/// The exponential by its definition.
pub(super) fn exp(algebra: &Algebra, ty: ElementType, x: i64) -> Known {
    apply(algebra, Unary::Exp, ty, x)
}

/// Where that clamps its argument.
pub(super) fn exp_range(ty: ElementType) -> Option<(f64, f64)> {
    math::exp_range(ty)
}

/// Types of one width.
trait Width: Copy {
    type Word: Copy + Into<u64>;
    const FLOAT: ElementType;
    const SIGNED: ElementType;
    const UNSIGNED: ElementType;
    fn bits(self) -> u64;
}

impl Width for f32 {
    type Word = u32;
    const FLOAT: ElementType = F32;
    const SIGNED: ElementType = I32;
    const UNSIGNED: ElementType = U32;
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

impl Width for f64 {
    type Word = u64;
    const FLOAT: ElementType = F64;
    const SIGNED: ElementType = I64;
    const UNSIGNED: ElementType = U64;
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// The operations on terms; what is not known stays so.
struct Terms<'a, T> {
    algebra: &'a Algebra,
    width: PhantomData<T>,
}

impl<'a, T: Width> Terms<'a, T> {
    fn new(algebra: &'a Algebra) -> Self {
        Self { algebra, width: PhantomData }
    }

    fn unary(&self, op: UnaryOp, a: Known) -> Known {
        self.algebra.unary(op, T::FLOAT, a?)
    }

    fn float_op(&self, op: Binary, a: Known, b: Known) -> Known {
        self.algebra.binary(op, T::FLOAT, a?, b?)
    }

    fn int_op(&self, op: Binary, a: Known, b: Known) -> Known {
        self.algebra.binary(op, T::SIGNED, a?, b?)
    }

    fn compare(&self, op: Compare, ty: ElementType, a: Known, b: Known) -> Option<bool> {
        Some(self.algebra.compare(op, ty, a?, b?))
    }

    fn unsigned(&self, a: Known) -> Option<u64> {
        Some(wrapped(T::UNSIGNED, a?) as u64)
    }

    fn signed(&self, a: u64) -> Known {
        Some(wrapped(T::SIGNED, a as i64))
    }
}

impl<T: Width> Ops for Terms<'_, T> {
    type Number = T;
    type Word = T::Word;
    type F = Known;
    type I = Known;
    type P = Option<bool>;

    fn float(&mut self, value: T) -> Known {
        self.algebra.of_bits(T::FLOAT, value.bits())
    }
    fn int(&mut self, value: T::Word) -> Known {
        self.signed(value.into())
    }
    fn add(&mut self, a: Known, b: Known) -> Known {
        self.float_op(Binary::Add, a, b)
    }
    fn sub(&mut self, a: Known, b: Known) -> Known {
        self.float_op(Binary::Sub, a, b)
    }
    fn mul(&mut self, a: Known, b: Known) -> Known {
        self.float_op(Binary::Mul, a, b)
    }
    fn div(&mut self, a: Known, b: Known) -> Known {
        self.float_op(Binary::Div, a, b)
    }
    fn fma(&mut self, a: Known, b: Known, c: Known) -> Known {
        self.algebra.fma(T::FLOAT, a?, b?, c?)
    }
    fn sqrt(&mut self, a: Known) -> Known {
        self.unary(UnaryOp::Sqrt, a)
    }
    fn recip(&mut self, a: Known) -> Known {
        self.unary(UnaryOp::Recip, a)
    }
    fn abs(&mut self, a: Known) -> Known {
        self.unary(UnaryOp::Abs, a)
    }
    fn copysign(&mut self, a: Known, sign: Known) -> Known {
        let top = 1_u64 << (8 * T::FLOAT.bytes() - 1);
        let (a, sign) = (self.bits(a), self.bits(sign));
        let bits = self.unsigned(a)? & !top | self.unsigned(sign)? & top;
        let bits = self.signed(bits);
        self.float_of(bits)
    }
    fn min(&mut self, a: Known, b: Known) -> Known {
        self.float_op(Binary::Min, a, b)
    }
    fn max(&mut self, a: Known, b: Known) -> Known {
        self.float_op(Binary::Max, a, b)
    }
    fn lt(&mut self, a: Known, b: Known) -> Option<bool> {
        self.compare(Compare::Lt, T::FLOAT, a, b)
    }
    fn eq(&mut self, a: Known, b: Known) -> Option<bool> {
        self.compare(Compare::Eq, T::FLOAT, a, b)
    }
    fn select(&mut self, p: Option<bool>, yes: Known, no: Known) -> Known {
        if p? { yes } else { no }
    }
    fn bits(&mut self, a: Known) -> Known {
        self.algebra.same_bits(T::FLOAT, T::SIGNED, a?)
    }
    fn float_of(&mut self, a: Known) -> Known {
        self.algebra.same_bits(T::SIGNED, T::FLOAT, a?)
    }
    fn int_add(&mut self, a: Known, b: Known) -> Known {
        self.int_op(Binary::Add, a, b)
    }
    fn int_sub(&mut self, a: Known, b: Known) -> Known {
        self.int_op(Binary::Sub, a, b)
    }
    fn int_mul(&mut self, a: Known, b: Known) -> Known {
        self.int_op(Binary::Mul, a, b)
    }
    fn mul_high(&mut self, a: Known, b: Known) -> Known {
        let (a, b) = (self.unsigned(a)?, self.unsigned(b)?);
        let high = self.algebra.mul_high(T::UNSIGNED, a as i64, b as i64)?;
        self.signed(high as u64)
    }
    fn and(&mut self, a: Known, b: Known) -> Known {
        self.int_op(Binary::And, a, b)
    }
    fn or(&mut self, a: Known, b: Known) -> Known {
        self.int_op(Binary::Or, a, b)
    }
    fn xor(&mut self, a: Known, b: Known) -> Known {
        self.int_op(Binary::Xor, a, b)
    }
    fn shl(&mut self, a: Known, by: u32) -> Known {
        self.signed(self.unsigned(a)?.checked_shl(by).unwrap_or(0))
    }
    fn shr(&mut self, a: Known, by: u32) -> Known {
        Some(a? >> by.min(63))
    }
    fn shr_logical(&mut self, a: Known, by: u32) -> Known {
        self.signed(self.unsigned(a)?.checked_shr(by).unwrap_or(0))
    }
    fn shl_by(&mut self, a: Known, by: Known) -> Known {
        let by = wrapped(U32, by?) as u32;
        if by >= 8 * T::FLOAT.bytes() { Some(0) } else { self.shl(a, by) }
    }
    fn shr_by(&mut self, a: Known, by: Known) -> Known {
        let by = wrapped(U32, by?) as u32;
        if by >= 8 * T::FLOAT.bytes() { Some(0) } else { self.shr_logical(a, by) }
    }
    fn is_nonzero(&mut self, a: Known) -> Option<bool> {
        Some(a? != 0)
    }
    fn int_below(&mut self, a: Known, b: Known) -> Option<bool> {
        Some(self.unsigned(a)? < self.unsigned(b)?)
    }
    fn int_select(&mut self, p: Option<bool>, yes: Known, no: Known) -> Known {
        if p? { yes } else { no }
    }
    fn to_float(&mut self, a: Known) -> Known {
        self.algebra.cast(T::SIGNED, T::FLOAT, a?)
    }
    fn rarely<const N: usize>(
        &mut self,
        p: Option<bool>,
        usual: ([Known; N], Known),
        rare: impl FnOnce(&mut Self) -> ([Known; N], Known),
    ) -> ([Known; N], Known) {
        match p {
            Some(true) => rare(self),
            Some(false) => usual,
            None => ([None; N], None),
        }
    }
}

impl Single for Terms<'_, f32> {
    type WideF = Known;
    type WideI = Known;
    type Wide<'w>
        = Terms<'w, f64>
    where
        Self: 'w;

    fn widen(&mut self, a: Known) -> Known {
        self.algebra.cast(F32, F64, a?)
    }
    fn narrow(&mut self, a: Known) -> Known {
        self.algebra.cast(F64, F32, a?)
    }
    fn low(&mut self, a: Known) -> Known {
        Some(wrapped(I32, a?))
    }
    fn wide<R>(&mut self, f: impl FnOnce(&mut Terms<'_, f64>) -> R) -> R {
        f(&mut Terms::new(self.algebra))
    }
    fn ex2_approx(&mut self, a: Known) -> Known {
        self.unary(UnaryOp::Exp2Approx, a)
    }
    fn lg2_approx(&mut self, a: Known) -> Known {
        self.unary(UnaryOp::Log2Approx, a)
    }
    fn sqrt_approx(&mut self, a: Known) -> Known {
        self.unary(UnaryOp::SqrtApprox, a)
    }
    fn rsqrt_approx(&mut self, a: Known) -> Known {
        self.unary(UnaryOp::RsqrtApprox, a)
    }
    fn tanh_approx(&mut self, a: Known) -> Known {
        self.unary(UnaryOp::TanhApprox, a)
    }
    fn sin_approx(&mut self, a: Known) -> Known {
        self.unary(UnaryOp::SinApprox, a)
    }
    fn cos_approx(&mut self, a: Known) -> Known {
        self.unary(UnaryOp::CosApprox, a)
    }
}

//! The unary operations of the language over the builder: core operations as they are, math functions from
//! [`tilewright_kernel::math`].
//!
//! `f16` and `bf16` go through `f32` and are rounded once. `approx::` functions do not exist for `f64`.

use std::marker::PhantomData;

use tilewright_kernel::ElementType::{self, F32, F64, I32, I64, U32, U64};
use tilewright_kernel::algorithm::{Binary, Compare, Unary};
use tilewright_kernel::math::{self, Ops, Single};

use crate::kernel_ir::{Builder, Shift, UnaryOp, ValueId, arithmetic_type};

/// An operation that an element type does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFunction {
    /// The operation.
    pub op: Unary,
    /// The element type.
    pub element: ElementType,
}

/// A unary operation of the language on an element; the result has its type.
///
/// # Errors
/// When the operation does not exist on the type: an `approx::` function on `f64`, any function of reals on an integer
/// or `bool`.
pub fn unary(b: &mut Builder, op: Unary, a: ValueId) -> Result<ValueId, NoFunction> {
    let element = b.ty(a).element().unwrap_or(I32);
    let missing = NoFunction { op, element };
    let wide = arithmetic_type(element);
    let core = match op {
        Unary::Neg => Some(UnaryOp::Neg),
        Unary::Not => Some(UnaryOp::Not),
        Unary::Abs => Some(UnaryOp::Abs),
        Unary::Floor => Some(UnaryOp::Floor),
        Unary::Ceil => Some(UnaryOp::Ceil),
        Unary::Trunc => Some(UnaryOp::Trunc),
        Unary::Round => Some(UnaryOp::RoundEven),
        Unary::Sqrt => Some(UnaryOp::Sqrt),
        _ => None,
    };
    let exists = match op {
        Unary::Neg | Unary::Abs => element != ElementType::Bool,
        Unary::Not => !element.is_float(),
        _ => element.is_float(),
    };
    if !exists {
        return Err(missing);
    }
    if let Some(core) = core {
        return Ok(b.unary(core, a));
    }
    let x = b.cast(a, wide);
    let result = match wide {
        F64 => math::apply_double(op, &mut Functions::<f64>::new(b), x),
        _ => math::apply(op, &mut Functions::<f32>::new(b), x),
    };
    Ok(b.cast(result.ok_or(missing)?, element))
}

/// The float type whose operations are meant: its values, and integers of as many bits.
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
        u64::from(self.to_bits())
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

/// The instruction set of the math room over a builder: floats are `f32` or `f64` values, their bits `i32` or `i64`
/// values.
struct Functions<'a, T> {
    b: &'a mut Builder,
    width: PhantomData<T>,
}

impl<'a, T: Width> Functions<'a, T> {
    fn new(b: &'a mut Builder) -> Self {
        Self { b, width: PhantomData }
    }

    fn unsigned(&mut self, a: ValueId) -> ValueId {
        self.b.bits(a, T::UNSIGNED)
    }

    fn signed(&mut self, a: ValueId) -> ValueId {
        self.b.bits(a, T::SIGNED)
    }

    fn shift(&mut self, op: Shift, a: ValueId, by: u32) -> ValueId {
        let by = self.b.literal(U32, u64::from(by));
        self.b.shift(op, a, by)
    }
}

impl<T: Width> Ops for Functions<'_, T> {
    type Number = T;
    type Word = T::Word;
    type F = ValueId;
    type I = ValueId;
    type P = ValueId;

    fn float(&mut self, value: T) -> ValueId {
        self.b.literal(T::FLOAT, value.bits())
    }

    fn int(&mut self, value: T::Word) -> ValueId {
        self.b.literal(T::SIGNED, value.into())
    }

    fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Add, a, b)
    }

    fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Sub, a, b)
    }

    fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Mul, a, b)
    }

    fn div(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Div, a, b)
    }

    fn fma(&mut self, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        self.b.fma(a, b, c)
    }

    fn sqrt(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::Sqrt, a)
    }

    fn recip(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::Recip, a)
    }

    fn abs(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::Abs, a)
    }

    /// By the bits, which the assembler makes one three-input operation.
    fn copysign(&mut self, a: ValueId, sign: ValueId) -> ValueId {
        let (a, sign) = (self.bits(a), self.bits(sign));
        let top = 1_u64 << (8 * T::FLOAT.bytes() - 1);
        let (magnitude, top) = (self.b.literal(T::SIGNED, top - 1), self.b.literal(T::SIGNED, top));
        let (a, sign) = (self.and(a, magnitude), self.and(sign, top));
        let bits = self.or(a, sign);
        self.float_of(bits)
    }

    fn min(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Min, a, b)
    }

    fn max(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Max, a, b)
    }

    fn lt(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.compare(Compare::Lt, a, b)
    }

    fn eq(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.compare(Compare::Eq, a, b)
    }

    fn select(&mut self, p: ValueId, yes: ValueId, no: ValueId) -> ValueId {
        self.b.select(p, yes, no)
    }

    fn bits(&mut self, a: ValueId) -> ValueId {
        self.b.bits(a, T::SIGNED)
    }

    fn float_of(&mut self, a: ValueId) -> ValueId {
        self.b.bits(a, T::FLOAT)
    }

    fn int_add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Add, a, b)
    }

    fn int_sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Sub, a, b)
    }

    fn int_mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Mul, a, b)
    }

    fn mul_high(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let (a, b) = (self.unsigned(a), self.unsigned(b));
        let high = self.b.mul_high(a, b);
        self.signed(high)
    }

    fn and(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::And, a, b)
    }

    fn or(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Or, a, b)
    }

    fn xor(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Xor, a, b)
    }

    fn shl(&mut self, a: ValueId, by: u32) -> ValueId {
        self.shift(Shift::Left, a, by)
    }

    fn shr(&mut self, a: ValueId, by: u32) -> ValueId {
        self.shift(Shift::Right, a, by)
    }

    fn shr_logical(&mut self, a: ValueId, by: u32) -> ValueId {
        let a = self.unsigned(a);
        let shifted = self.shift(Shift::Right, a, by);
        self.signed(shifted)
    }

    fn shl_by(&mut self, a: ValueId, by: ValueId) -> ValueId {
        let by = self.b.cast(by, U32);
        self.b.shift(Shift::Left, a, by)
    }

    fn shr_by(&mut self, a: ValueId, by: ValueId) -> ValueId {
        let (a, by) = (self.unsigned(a), self.b.cast(by, U32));
        let shifted = self.b.shift(Shift::Right, a, by);
        self.signed(shifted)
    }

    fn is_nonzero(&mut self, a: ValueId) -> ValueId {
        let zero = self.b.literal(T::SIGNED, 0);
        self.b.compare(Compare::Ne, a, zero)
    }

    fn int_below(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let (a, b) = (self.unsigned(a), self.unsigned(b));
        self.b.compare(Compare::Lt, a, b)
    }

    fn int_select(&mut self, p: ValueId, yes: ValueId, no: ValueId) -> ValueId {
        self.b.select(p, yes, no)
    }

    fn to_float(&mut self, a: ValueId) -> ValueId {
        self.b.cast(a, T::FLOAT)
    }

    fn rarely<const N: usize>(
        &mut self,
        p: ValueId,
        usual: ([ValueId; N], ValueId),
        rare: impl FnOnce(&mut Self) -> ([ValueId; N], ValueId),
    ) -> ([ValueId; N], ValueId) {
        let floats = usual.0.map(|value| self.b.variable(value));
        let word = self.b.variable(usual.1);
        self.b.begin_if(p);
        let found = rare(self);
        for (variable, value) in floats.into_iter().zip(found.0) {
            self.b.set(variable, value);
        }
        self.b.set(word, found.1);
        self.b.end_if();
        (floats.map(|variable| self.b.get(variable)), self.b.get(word))
    }
}

impl Single for Functions<'_, f32> {
    type WideF = ValueId;
    type WideI = ValueId;
    type Wide<'w>
        = Functions<'w, f64>
    where
        Self: 'w;

    fn widen(&mut self, a: ValueId) -> ValueId {
        self.b.cast(a, F64)
    }

    fn narrow(&mut self, a: ValueId) -> ValueId {
        self.b.cast(a, F32)
    }

    fn low(&mut self, a: ValueId) -> ValueId {
        self.b.cast(a, I32)
    }

    fn wide<R>(&mut self, f: impl FnOnce(&mut Functions<'_, f64>) -> R) -> R {
        f(&mut Functions::new(self.b))
    }

    fn ex2_approx(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::Exp2Approx, a)
    }

    fn lg2_approx(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::Log2Approx, a)
    }

    fn sqrt_approx(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::SqrtApprox, a)
    }

    fn rsqrt_approx(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::RsqrtApprox, a)
    }

    fn tanh_approx(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::TanhApprox, a)
    }

    fn sin_approx(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::SinApprox, a)
    }

    fn cos_approx(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::CosApprox, a)
    }
}

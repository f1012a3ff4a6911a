//! The unary operations of the language over the builder: core operations as they are, math functions from the `math` room.
//!
//! `f16` and `bf16` go through `f32` and are rounded once. Of the math functions, `f64` has `sqrt` and `rsqrt`.

use tilewright_kernel::ElementType::{self, F32, F64, I32, U32};
use tilewright_kernel::algorithm::{Binary, Compare, Unary};

use crate::kernel_ir::{Builder, Shift, UnaryOp, ValueId, arithmetic_type};
use crate::lower::math::{self, Ops, Roots};

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
/// When the operation does not exist on the type: a function other than `abs floor sqrt rsqrt` on `f64`, any function of reals on
/// an integer or `bool`.
pub fn unary(b: &mut Builder, op: Unary, a: ValueId) -> Result<ValueId, NoFunction> {
    let element = b.ty(a).element().unwrap_or(I32);
    let missing = NoFunction { op, element };
    let wide = arithmetic_type(element);
    let core = match op {
        Unary::Neg => Some(UnaryOp::Neg),
        Unary::Not => Some(UnaryOp::Not),
        Unary::Abs => Some(UnaryOp::Abs),
        Unary::Floor => Some(UnaryOp::Floor),
        Unary::Sqrt => Some(UnaryOp::Sqrt),
        _ => None,
    };
    let exists = match op {
        Unary::Neg | Unary::Abs => element != ElementType::Bool,
        Unary::Not => !element.is_float(),
        Unary::Floor | Unary::Sqrt | Unary::Rsqrt => element.is_float(),
        _ => wide == F32,
    };
    if !exists {
        return Err(missing);
    }
    if let Some(core) = core {
        return Ok(b.unary(core, a));
    }
    let x = b.cast(a, wide);
    let mut functions = Functions { b };
    let result = match wide {
        F64 => math::rsqrt(&mut functions, x),
        _ => math::apply(op, &mut functions, x).ok_or(missing)?,
    };
    Ok(b.cast(result, element))
}

/// The instruction set of the math room over a builder: floats are `f32` (or, for [`Roots`], `f64`) values, integers `i32` values.
struct Functions<'a> {
    b: &'a mut Builder,
}

impl Roots for Functions<'_> {
    type F = ValueId;

    fn sqrt(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::Sqrt, a)
    }

    fn recip(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::Recip, a)
    }
}

impl Ops for Functions<'_> {
    type I = ValueId;
    type P = ValueId;

    fn float(&mut self, value: f32) -> ValueId {
        self.b.f32_literal(value)
    }

    fn int(&mut self, value: u32) -> ValueId {
        self.b.literal(I32, u64::from(value))
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

    fn fma(&mut self, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        self.b.fma(a, b, c)
    }

    fn abs(&mut self, a: ValueId) -> ValueId {
        self.b.unary(UnaryOp::Abs, a)
    }

    /// By the bits, which the assembler makes one three-input operation.
    fn copysign(&mut self, a: ValueId, sign: ValueId) -> ValueId {
        let (a, sign) = (self.bits(a), self.bits(sign));
        let (magnitude, top) = (self.int(0x7FFF_FFFF), self.int(0x8000_0000));
        let (a, sign) = (self.b.binary(Binary::And, a, magnitude), self.b.binary(Binary::And, sign, top));
        let bits = self.b.binary(Binary::Or, a, sign);
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
        self.b.bits(a, I32)
    }

    fn float_of(&mut self, a: ValueId) -> ValueId {
        self.b.bits(a, F32)
    }

    fn int_add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Add, a, b)
    }

    fn int_sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Sub, a, b)
    }

    fn and(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::And, a, b)
    }

    fn is_nonzero(&mut self, a: ValueId) -> ValueId {
        let zero = self.int(0);
        self.b.compare(Compare::Ne, a, zero)
    }

    fn xor(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.b.binary(Binary::Xor, a, b)
    }

    fn shl(&mut self, a: ValueId, by: u32) -> ValueId {
        let by = self.b.literal(U32, u64::from(by));
        self.b.shift(Shift::Left, a, by)
    }

    fn shr(&mut self, a: ValueId, by: u32) -> ValueId {
        let by = self.b.literal(U32, u64::from(by));
        self.b.shift(Shift::Right, a, by)
    }

    fn to_float(&mut self, a: ValueId) -> ValueId {
        self.b.cast(a, F32)
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

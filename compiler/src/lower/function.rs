//! Functions of the language as operations of `kernel_ir`: reductions' identities and steps, math functions in each type.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare, Reduction, Unary};

use super::math;
use crate::kernel_ir::{Builder, Shift, Type, UnaryOp, ValueId};

/// One operand; `f16` and `bf16` are computed in `f32` and rounded once.
pub fn unary(b: &mut Builder, op: Unary, x: ValueId) -> ValueId {
    let simple = match op {
        Unary::Neg => Some(UnaryOp::Neg),
        Unary::Not => Some(UnaryOp::Not),
        Unary::Abs => Some(UnaryOp::Abs),
        Unary::Floor => Some(UnaryOp::Floor),
        _ => None,
    };
    if let Some(op) = simple {
        return b.unary(op, x);
    }
    let Type::Element(ty) = b.ty(x) else { return x };
    if ty == ElementType::F64 {
        // The program room admits no other function of `f64`.
        let mut m = Double(b);
        return if op == Unary::Rsqrt { math::rsqrt(&mut m, x) } else { math::sqrt(&mut m, x) };
    }
    let single = b.cast(x, ElementType::F32);
    let result = math::apply(op, &mut Single(b), single).unwrap_or(single);
    b.cast(result, ty)
}

/// The operation that takes in a term.
pub fn combine(op: Reduction) -> Binary {
    match op {
        Reduction::Sum => Binary::Add,
        Reduction::Prod => Binary::Mul,
        Reduction::Max | Reduction::ArgMax => Binary::Max,
        Reduction::Min | Reduction::ArgMin => Binary::Min,
        Reduction::All => Binary::And,
        Reduction::Any => Binary::Or,
    }
}

/// The bits of the value of an empty reduction, which is the identity of its operation.
pub fn identity(op: Reduction, ty: ElementType) -> u64 {
    use ElementType::{Bf16, Bool, E4m3, E5m2, F16, F32, F64, Tf32};
    let one = match ty {
        F64 => 1.0_f64.to_bits(),
        F32 | Tf32 => u64::from(1.0_f32.to_bits()),
        F16 => 0x3c00,
        Bf16 => 0x3f80,
        E4m3 => 0x38,
        E5m2 => 0x3c,
        _ => 1,
    };
    let infinity = match ty {
        F64 => f64::INFINITY.to_bits(),
        F32 | Tf32 => u64::from(f32::INFINITY.to_bits()),
        F16 => 0x7c00,
        Bf16 => 0x7f80,
        E4m3 => 0x7e, // the largest finite value: the type has no infinity
        E5m2 => 0x7c,
        _ => 0,
    };
    let bits = ty.bytes() * 8;
    let all_ones = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let sign = 1_u64 << (bits - 1);
    match op {
        Reduction::Sum | Reduction::Any => 0,
        Reduction::Prod => one,
        Reduction::All => 1,
        Reduction::Max | Reduction::ArgMax | Reduction::Min | Reduction::ArgMin => {
            let least = matches!(op, Reduction::Max | Reduction::ArgMax);
            match ty {
                _ if ty.is_float() => infinity | if least { sign } else { 0 },
                Bool => u64::from(!least),
                _ if ty.is_signed_integer() => {
                    if least {
                        sign
                    } else {
                        all_ones ^ sign
                    }
                }
                _ if least => 0,
                _ => all_ones,
            }
        }
    }
}

/// Whether a term comes before the best so far in an argmax or argmin: larger (smaller), or equal at a smaller index; a NaN comes
/// before every number, and the first NaN before later ones. Needs no order of the terms.
pub fn precedes(b: &mut Builder, op: Reduction, term: (ValueId, ValueId), best: (ValueId, ValueId)) -> ValueId {
    let compare = if op == Reduction::ArgMax { Compare::Gt } else { Compare::Lt };
    let earlier = b.compare(Compare::Lt, term.1, best.1);
    let strictly = b.compare(compare, term.0, best.0);
    let equal = b.compare(Compare::Eq, term.0, best.0);
    let tie = b.and(equal, earlier);
    let better = b.or(strictly, tie);
    let Type::Element(ty) = b.ty(term.0) else { return better };
    if !ty.is_float() {
        return better;
    }
    let term_nan = b.compare(Compare::Ne, term.0, term.0);
    let best_nan = b.compare(Compare::Ne, best.0, best.0);
    let best_number = b.not(best_nan);
    let first = b.or(best_number, earlier);
    let by_nan = b.and(term_nan, first);
    b.or(better, by_nan)
}

/// Math on `f64`.
struct Double<'a>(&'a mut Builder);

impl math::Roots for Double<'_> {
    type F = ValueId;
    fn sqrt(&mut self, a: ValueId) -> ValueId {
        self.0.unary(UnaryOp::Sqrt, a)
    }
    fn recip(&mut self, a: ValueId) -> ValueId {
        let one = self.0.literal(ElementType::F64, 1.0_f64.to_bits());
        self.0.binary(Binary::Div, one, a)
    }
}

/// Math on `f32`.
struct Single<'a>(&'a mut Builder);

impl Single<'_> {
    fn signed(&mut self, a: ValueId) -> ValueId {
        self.0.bits(a, ElementType::I32)
    }
}

impl math::Roots for Single<'_> {
    type F = ValueId;
    fn sqrt(&mut self, a: ValueId) -> ValueId {
        self.0.unary(UnaryOp::Sqrt, a)
    }
    fn recip(&mut self, a: ValueId) -> ValueId {
        let one = self.0.f32_literal(1.0);
        self.0.binary(Binary::Div, one, a)
    }
}

impl math::Ops for Single<'_> {
    type I = ValueId;
    type P = ValueId;

    fn float(&mut self, value: f32) -> ValueId {
        self.0.f32_literal(value)
    }
    fn int(&mut self, value: u32) -> ValueId {
        self.0.literal(ElementType::U32, u64::from(value))
    }
    fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Add, a, b)
    }
    fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Sub, a, b)
    }
    fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Mul, a, b)
    }
    fn fma(&mut self, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        self.0.fma(a, b, c)
    }
    fn abs(&mut self, a: ValueId) -> ValueId {
        self.0.unary(UnaryOp::Abs, a)
    }
    fn copysign(&mut self, a: ValueId, sign: ValueId) -> ValueId {
        let (a, sign) = (self.bits(a), self.bits(sign));
        let (magnitude, top) = (self.int(0x7fff_ffff), self.int(0x8000_0000));
        let a = self.0.binary(Binary::And, a, magnitude);
        let sign = self.0.binary(Binary::And, sign, top);
        let both = self.0.binary(Binary::Or, a, sign);
        self.float_of(both)
    }
    fn min(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Min, a, b)
    }
    fn max(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Max, a, b)
    }
    fn lt(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.compare(Compare::Lt, a, b)
    }
    fn eq(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.compare(Compare::Eq, a, b)
    }
    fn select(&mut self, p: ValueId, yes: ValueId, no: ValueId) -> ValueId {
        self.0.select(p, yes, no)
    }
    fn bits(&mut self, a: ValueId) -> ValueId {
        self.0.bits(a, ElementType::U32)
    }
    fn float_of(&mut self, a: ValueId) -> ValueId {
        self.0.bits(a, ElementType::F32)
    }
    fn int_add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Add, a, b)
    }
    fn int_sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Sub, a, b)
    }
    fn and(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::And, a, b)
    }
    fn is_nonzero(&mut self, a: ValueId) -> ValueId {
        let zero = self.int(0);
        self.0.compare(Compare::Ne, a, zero)
    }
    fn xor(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.0.binary(Binary::Xor, a, b)
    }
    fn shl(&mut self, a: ValueId, by: u32) -> ValueId {
        let by = self.int(by);
        self.0.shift(Shift::Left, a, by)
    }
    fn shr(&mut self, a: ValueId, by: u32) -> ValueId {
        let (a, by) = (self.signed(a), self.int(by));
        let shifted = self.0.shift(Shift::Right, a, by);
        self.0.bits(shifted, ElementType::U32)
    }
    fn to_float(&mut self, a: ValueId) -> ValueId {
        let a = self.signed(a);
        self.0.cast(a, ElementType::F32)
    }
    fn ex2_approx(&mut self, a: ValueId) -> ValueId {
        self.0.unary(UnaryOp::Exp2Approx, a)
    }
    fn lg2_approx(&mut self, a: ValueId) -> ValueId {
        self.0.unary(UnaryOp::Log2Approx, a)
    }
    fn sqrt_approx(&mut self, a: ValueId) -> ValueId {
        self.0.unary(UnaryOp::SqrtApprox, a)
    }
    fn rsqrt_approx(&mut self, a: ValueId) -> ValueId {
        self.0.unary(UnaryOp::RsqrtApprox, a)
    }
    fn tanh_approx(&mut self, a: ValueId) -> ValueId {
        self.0.unary(UnaryOp::TanhApprox, a)
    }
    fn sin_approx(&mut self, a: ValueId) -> ValueId {
        self.0.unary(UnaryOp::SinApprox, a)
    }
    fn cos_approx(&mut self, a: ValueId) -> ValueId {
        self.0.unary(UnaryOp::CosApprox, a)
    }
}

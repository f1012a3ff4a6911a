//! Element arithmetic, comparison and selection, on arithmetic types.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare};
use tilewright_ptx::{Immediate, RegId, ScalarType};

use super::entry::{Entry, register_type};
use crate::kernel_ir::{Shift, Type, UnaryOp, ValueId};

/// The NaN that an operation makes out of nothing.
const NAN_F64: Immediate = Immediate::F64(0x7FF8_0000_0000_0000);

/// The instruction type of an arithmetic type.
const fn scalar(ty: Type) -> ScalarType {
    match ty {
        Type::I32 | Type::Element(ElementType::I32) => ScalarType::S32,
        Type::I64 | Type::Element(ElementType::I64) => ScalarType::S64,
        Type::Element(ElementType::U32) => ScalarType::U32,
        Type::Element(ElementType::U64) => ScalarType::U64,
        Type::Element(_) => register_type(ty),
    }
}

/// The untyped bits of a register, or `pred`.
const fn bits(ty: Type) -> ScalarType {
    register_type(ty).as_bits()
}

/// The word of `setp` for signed integers and ordered floats.
pub(super) const fn comparison(op: Compare) -> &'static str {
    match op {
        Compare::Eq => "eq",
        Compare::Ne => "ne",
        Compare::Lt => "lt",
        Compare::Le => "le",
        Compare::Gt => "gt",
        Compare::Ge => "ge",
    }
}

impl Entry<'_> {
    pub(super) fn unary(&mut self, op: UnaryOp, ty: Type, a: ValueId) -> RegId {
        let (register, scalar, bits) = (register_type(ty), scalar(ty), bits(ty));
        let x = self.operand(a);
        let mnemonic = match op {
            // Wrapping negation does not depend on the sign.
            UnaryOp::Neg => match scalar {
                ScalarType::U32 => "neg.s32".to_owned(),
                ScalarType::U64 => "neg.s64".to_owned(),
                _ => format!("neg.{scalar}"),
            },
            UnaryOp::Not => format!("not.{bits}"),
            UnaryOp::Abs if matches!(scalar, ScalarType::U32 | ScalarType::U64) => return self.register(a),
            UnaryOp::Abs => format!("abs.{scalar}"),
            UnaryOp::Floor => format!("cvt.rmi.{scalar}.{scalar}"),
            UnaryOp::Ceil => format!("cvt.rpi.{scalar}.{scalar}"),
            UnaryOp::Trunc => format!("cvt.rzi.{scalar}.{scalar}"),
            UnaryOp::RoundEven => format!("cvt.rni.{scalar}.{scalar}"),
            UnaryOp::Sqrt => format!("sqrt.rn.{scalar}"),
            UnaryOp::Recip => format!("rcp.rn.{scalar}"),
            UnaryOp::Exp2Approx => "ex2.approx.ftz.f32".to_owned(),
            UnaryOp::Log2Approx => "lg2.approx.f32".to_owned(),
            UnaryOp::SinApprox => "sin.approx.f32".to_owned(),
            UnaryOp::CosApprox => "cos.approx.f32".to_owned(),
            UnaryOp::TanhApprox => "tanh.approx.f32".to_owned(),
            UnaryOp::SqrtApprox => "sqrt.approx.f32".to_owned(),
            UnaryOp::RsqrtApprox => "rsqrt.approx.f32".to_owned(),
            UnaryOp::RcpApprox => "rcp.approx.f32".to_owned(),
        };
        self.result(&mnemonic, register, [x])
    }

    pub(super) fn binary(&mut self, op: Binary, ty: Type, a: ValueId, b: ValueId) -> RegId {
        let (register, scalar, bits) = (register_type(ty), scalar(ty), bits(ty));
        let float = scalar.is_float();
        let (x, y) = (self.operand(a), self.operand(b));
        let mnemonic = match op {
            Binary::Add if float => format!("add.rn.{scalar}"),
            Binary::Add => format!("add.{scalar}"),
            Binary::Sub if float => format!("sub.rn.{scalar}"),
            Binary::Sub => format!("sub.{scalar}"),
            Binary::Mul if float => format!("mul.rn.{scalar}"),
            Binary::Mul => format!("mul.lo.{scalar}"),
            Binary::Div if float => format!("div.rn.{scalar}"),
            Binary::Div => format!("div.{scalar}"),
            Binary::Rem => format!("rem.{scalar}"),
            // PTX orders −0 below +0 (9.7.3.11).
            Binary::Max if scalar == ScalarType::F32 => "max.NaN.f32".to_owned(),
            Binary::Min if scalar == ScalarType::F32 => "min.NaN.f32".to_owned(),
            Binary::Max | Binary::Min if float => {
                // There is no `.NaN` for f64.
                let word = if op == Binary::Max { "max.f64" } else { "min.f64" };
                let number = self.result(word, register, [x.clone(), y.clone()]);
                let unordered = self.result("setp.nan.f64", ScalarType::Pred, [x, y]);
                return self.result("selp.f64", register, [NAN_F64.into(), number.into(), unordered.into()]);
            }
            Binary::Max | Binary::MaxNum => format!("max.{scalar}"),
            Binary::Min | Binary::MinNum => format!("min.{scalar}"),
            Binary::And => format!("and.{bits}"),
            Binary::Or => format!("or.{bits}"),
            Binary::Xor => format!("xor.{bits}"),
            Binary::Shl => format!("shl.{bits}"),
            Binary::Shr => format!("shr.{scalar}"),
        };
        self.result(&mnemonic, register, [x, y])
    }

    pub(super) fn mul_high(&mut self, ty: Type, a: ValueId, b: ValueId) -> RegId {
        let (x, y) = (self.operand(a), self.operand(b));
        self.result(&format!("mul.hi.{}", scalar(ty)), register_type(ty), [x, y])
    }

    pub(super) fn shift(&mut self, op: Shift, ty: Type, a: ValueId, amount: ValueId) -> RegId {
        let (x, y) = (self.operand(a), self.operand(amount));
        let mnemonic = match op {
            Shift::Left => format!("shl.{}", bits(ty)),
            Shift::Right => format!("shr.{}", scalar(ty)),
        };
        self.result(&mnemonic, register_type(ty), [x, y])
    }

    pub(super) fn fma(&mut self, ty: Type, a: ValueId, b: ValueId, c: ValueId) -> RegId {
        let sources = [self.operand(a), self.operand(b), self.operand(c)];
        self.result(&format!("fma.rn.{}", scalar(ty)), register_type(ty), sources)
    }

    pub(super) fn compare(&mut self, op: Compare, a: ValueId, b: ValueId) -> RegId {
        let scalar = scalar(self.ty(a));
        let (x, y) = (self.operand(a), self.operand(b));
        // NaN differs from everything, itself included.
        let word = if op == Compare::Ne && scalar.is_float() { "neu" } else { comparison(op) };
        self.result(&format!("setp.{word}.{scalar}"), ScalarType::Pred, [x, y])
    }

    pub(super) fn select(&mut self, ty: Type, condition: ValueId, a: ValueId, b: ValueId) -> RegId {
        let condition = self.register(condition);
        let (x, y) = (self.operand(a), self.operand(b));
        let register = register_type(ty);
        if register != ScalarType::Pred {
            return self.result(&format!("selp.{register}"), register, [x, y, condition.into()]);
        }
        let taken = self.result("and.pred", register, [condition.into(), x]);
        let not = self.result("not.pred", register, [condition.into()]);
        let other = self.result("and.pred", register, [not.into(), y]);
        self.result("or.pred", register, [taken.into(), other.into()])
    }
}

//! Which operations and updates there are for which types.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Binary;

use crate::kernel_ir::{AtomicOp, Op, Type, UnaryOp, ValueId, arithmetic_type};

/// Whether memory has an update of this type.
pub(super) fn updates(op: AtomicOp, ty: Type) -> bool {
    matches!(ty, Type::Element(element) if op.takes(element))
}

pub(super) fn literal_fits(ty: Type, bits: u64) -> bool {
    match ty {
        Type::I32 => i32::try_from(bits as i64).is_ok(),
        Type::I64 => true,
        Type::Element(ElementType::Bool) => bits <= 1,
        Type::Element(element) => element.bytes() == 8 || bits >> (8 * element.bytes()) == 0,
    }
}

/// Whether a pure operation takes operands of these types and gives a value of this one; none if an operand does not
/// exist.
pub(super) fn types_fit(op: Op, ty: Type, type_of: impl Fn(ValueId) -> Option<Type>) -> Option<bool> {
    use ElementType::{Bool, F32, F64, I32, I64, U32, U64};
    let arithmetic = |ty: Type| ty.element().is_some_and(|e| arithmetic_type(e) == e);
    let wide_integer = |ty: Type| matches!(ty, Type::Element(I32 | U32 | I64 | U64));
    let float = |ty: Type| matches!(ty, Type::Element(F32 | F64));
    let all = |operands: &[ValueId], wanted: Type| operands.iter().all(|id| type_of(*id) == Some(wanted));
    Some(match op {
        Op::Literal(_) | Op::LoopIndex | Op::Loaded | Op::Shuffled | Op::Arrived | Op::Agreed => false,
        Op::Get(_) | Op::Dim(_) | Op::Scalar(_) => false,
        Op::BlockIndex | Op::BlockCount | Op::ThreadIndex | Op::ClusterRank => ty == Type::I32,
        Op::Index(_, a, b) => ty.is_index() && all(&[a, b], ty),
        Op::CompareIndex(_, a, b) | Op::InRange(a, b) => {
            ty == Type::PRED && type_of(a)?.is_index() && type_of(a) == type_of(b)
        }
        Op::ConvertIndex(a) => ty.is_index() && type_of(a)?.is_index(),
        Op::OfWarp(a) => ty == Type::I32 && type_of(a)? == ty,
        Op::Select(condition, a, b) => type_of(condition)? == Type::PRED && all(&[a, b], ty),
        Op::Unary(op, a) => {
            let domain = match op {
                UnaryOp::Neg | UnaryOp::Abs => arithmetic(ty) && ty != Type::PRED,
                UnaryOp::Not => arithmetic(ty) && !float(ty),
                UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::RoundEven => float(ty),
                UnaryOp::Sqrt | UnaryOp::Recip => float(ty),
                _ => ty == Type::Element(F32),
            };
            domain && all(&[a], ty)
        }
        Op::Binary(op, a, b) => {
            let domain = match op {
                Binary::Add | Binary::Sub | Binary::Mul | Binary::Div => float(ty) || wide_integer(ty),
                Binary::Max | Binary::Min => float(ty) || wide_integer(ty),
                Binary::MaxNum | Binary::MinNum => float(ty),
                Binary::Rem => wide_integer(ty),
                Binary::And | Binary::Or | Binary::Xor => wide_integer(ty) || ty == Type::PRED,
                // A shift has an operation of its own, whose amount is a `u32`.
                Binary::Shl | Binary::Shr => false,
            };
            domain && all(&[a, b], ty)
        }
        Op::MulHigh(a, b) => wide_integer(ty) && all(&[a, b], ty),
        Op::Shift(_, a, amount) => wide_integer(ty) && all(&[a], ty) && all(&[amount], Type::Element(U32)),
        Op::Compare(_, a, b) => {
            let operand = type_of(a)?;
            ty == Type::PRED && arithmetic(operand) && operand != Type::PRED && all(&[b], operand)
        }
        Op::Fma(a, b, c) => float(ty) && all(&[a, b, c], ty),
        Op::Cast(a) => {
            let from = type_of(a)?.element()?;
            // As in Rust, nothing is cast to bool.
            ty.element().is_some_and(|to| to != Bool && to != from)
        }
        Op::Bits(a) => {
            let from = type_of(a)?.element()?;
            ty.element().is_some_and(|to| to.bytes() == from.bytes() && to != Bool && from != Bool)
        }
        Op::FromIndex(a) => type_of(a)?.is_index() && ty.element().is_some_and(|to| to != Bool),
        Op::ToIndex(a) => {
            let from = type_of(a)?.element()?;
            let narrow = from.bytes() < 4 || from == I32;
            from.is_integer() && (ty == Type::I64 || ty == Type::I32 && narrow)
        }
    })
}

//! Values of all threads: known integers, or unknown. Elements are known where they are integers or predicates that indices make.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare};

use crate::kernel_ir::{IndexOp, Kernel, Op, Shift, Type, UnaryOp, Value, ValueId};

/// One thread's value. Predicates are 0 and 1; a `u64` has the bits of an `i64`.
pub(super) type Known = Option<i64>;

/// The value of every thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// One for all.
    Same(Known),
    /// One each.
    Each(Vec<Known>),
}

impl Row {
    pub const UNKNOWN: Self = Self::Same(None);

    pub fn of(&self, thread: usize) -> Known {
        match self {
            Self::Same(value) => *value,
            Self::Each(values) => values[thread],
        }
    }

    /// Other values for some threads.
    pub fn replace(&mut self, threads: usize, with: impl Fn(usize, Known) -> Known) {
        let values = (0..threads).map(|thread| with(thread, self.of(thread))).collect();
        *self = Self::Each(values);
    }
}

/// The value of a literal.
pub(super) fn literal(ty: Type, bits: u64) -> Known {
    match ty {
        Type::I32 | Type::I64 => Some(bits as i64),
        Type::Element(element) if is_known(element) => Some(wrapped(element, bits as i64)),
        Type::Element(_) => None,
    }
}

/// Whether elements of a type can be known.
fn is_known(element: ElementType) -> bool {
    element == ElementType::Bool || element.is_integer()
}

/// An integer's low bits as an element.
fn wrapped(element: ElementType, value: i64) -> i64 {
    match element {
        ElementType::Bool => value & 1,
        ElementType::I8 => i64::from(value as i8),
        ElementType::U8 => i64::from(value as u8),
        ElementType::I16 => i64::from(value as i16),
        ElementType::U16 => i64::from(value as u16),
        ElementType::I32 => i64::from(value as i32),
        ElementType::U32 => i64::from(value as u32),
        _ => value,
    }
}

/// The row of a pure operation, given those of its operands.
pub(super) fn pure(kernel: &Kernel, value: &Value, threads: usize, rows: &[Row]) -> Row {
    let operands: Vec<ValueId> = value.op.operands().collect();
    let of = |thread: usize| {
        let mut known = [None; 3];
        for (known, operand) in known.iter_mut().zip(&operands) {
            *known = rows[operand.index()].of(thread);
        }
        one(kernel, value, known)
    };
    if operands.iter().all(|operand| matches!(rows[operand.index()], Row::Same(_))) {
        return Row::Same(of(0));
    }
    Row::Each((0..threads).map(of).collect())
}

fn one(kernel: &Kernel, value: &Value, known: [Known; 3]) -> Known {
    let [a, b, c] = known;
    let type_of = |id: ValueId| kernel.value(id).ty;
    match value.op {
        Op::Index(op, ..) => index(op, a, b),
        Op::CompareIndex(op, ..) => Some(i64::from(compare(op, a?, b?))),
        Op::InRange(..) => match (a, b) {
            (_, Some(end)) if end <= 0 => Some(0),
            _ => Some(i64::from((0..b?).contains(&a?))),
        },
        Op::ConvertIndex(_) | Op::ToIndex(_) => a,
        Op::FromIndex(_) => element(value.ty).map(|to| wrapped(to, a.unwrap_or(0))).filter(|_| a.is_some()),
        Op::Select(..) => match a {
            Some(0) => c,
            Some(_) => b,
            None if b == c => b,
            None => None,
        },
        Op::Unary(op, _) => {
            let (a, ty) = (a?, element(value.ty)?);
            match op {
                UnaryOp::Not => Some(wrapped(ty, !a)),
                UnaryOp::Neg => Some(wrapped(ty, a.wrapping_neg())),
                _ => None,
            }
        }
        Op::Binary(op, ..) => binary(op, element(value.ty)?, a, b),
        Op::Compare(op, left, _) => match element(type_of(left))? {
            ElementType::U64 => Some(i64::from(compare(op, a? as u64, b? as u64))),
            _ => Some(i64::from(compare(op, a?, b?))),
        },
        Op::Cast(from) => {
            element(type_of(from))?;
            Some(wrapped(element(value.ty)?, a?))
        }
        Op::Shift(op, ..) => {
            let (a, by, ty) = (a?, b?, element(value.ty)?);
            let bits = i64::from(8 * ty.bytes());
            match op {
                Shift::Left if by >= bits => Some(0),
                Shift::Left => Some(wrapped(ty, a << by)),
                Shift::Right if ty == ElementType::U64 => Some(if by >= bits { 0 } else { (a as u64 >> by) as i64 }),
                Shift::Right => Some(a >> by.min(63)),
            }
        }
        _ => None,
    }
}

/// The element type, if elements of it can be known.
fn element(ty: Type) -> Option<ElementType> {
    ty.element().filter(|e| is_known(*e))
}

fn index(op: IndexOp, a: Known, b: Known) -> Known {
    match op {
        IndexOp::Add => a?.checked_add(b?),
        IndexOp::Sub => a?.checked_sub(b?),
        IndexOp::Mul if a == Some(0) || b == Some(0) => Some(0),
        IndexOp::Mul => a?.checked_mul(b?),
        IndexOp::Div => b.filter(|b| *b > 0).and_then(|b| Some(a?.div_euclid(b))),
        IndexOp::Mod if b == Some(1) => Some(0),
        IndexOp::Mod => b.filter(|b| *b > 0).and_then(|b| Some(a?.rem_euclid(b))),
        IndexOp::Min => Some(a?.min(b?)),
        IndexOp::Max => Some(a?.max(b?)),
        IndexOp::And => Some(a? & b?),
        IndexOp::Xor => Some(a? ^ b?),
    }
}

fn compare<T: Ord>(op: Compare, a: T, b: T) -> bool {
    match op {
        Compare::Eq => a == b,
        Compare::Ne => a != b,
        Compare::Lt => a < b,
        Compare::Le => a <= b,
        Compare::Gt => a > b,
        Compare::Ge => a >= b,
    }
}

fn binary(op: Binary, ty: ElementType, a: Known, b: Known) -> Known {
    if ty == ElementType::Bool {
        return match (op, a, b) {
            (Binary::And, Some(0), _) | (Binary::And, _, Some(0)) => Some(0),
            (Binary::Or, Some(1), _) | (Binary::Or, _, Some(1)) => Some(1),
            (Binary::And, ..) => Some(a? & b?),
            (Binary::Or, ..) => Some(a? | b?),
            (Binary::Xor, ..) => Some(a? ^ b?),
            _ => None,
        };
    }
    let (a, b) = (a?, b?);
    let less = if ty == ElementType::U64 { (a as u64) < (b as u64) } else { a < b };
    let result = match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::Min => {
            if less {
                a
            } else {
                b
            }
        }
        Binary::Max => {
            if less {
                b
            } else {
                a
            }
        }
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        _ => return None,
    };
    Some(wrapped(ty, result))
}

//! Elements and predicates: operations on narrow types are spelled out as those of their arithmetic type, rounded or
//! wrapped once.
//!
//! Only bits are folded here (casts between integers, exact widenings, predicates): floating-point results are the
//! machine's.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare};

use super::super::{Op, Range, Shift, Type, UnaryOp, Value, ValueId, arithmetic_type};
use super::Builder;

use ElementType::{Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I16, I32, I64, Tf32, U8, U16, U32, U64};

/// The low bits that an element of this type occupies.
const fn mask(element: ElementType) -> u64 {
    match element {
        Bool => 1,
        _ => u64::MAX >> (64 - 8 * element.bytes()),
    }
}

/// The value of an integer's bits.
fn integer(element: ElementType, bits: u64) -> i128 {
    match element {
        I64 => i128::from(bits as i64),
        I32 => i128::from(bits as i32),
        I16 => i128::from(bits as i16),
        I8 => i128::from(bits as i8),
        _ => i128::from(bits),
    }
}

/// The same number as `f32`, of a finite or infinite `f16`.
fn widen_f16(bits: u64) -> Option<u32> {
    let (sign, exponent, fraction) = ((bits as u32 & 0x8000) << 16, bits as u32 >> 10 & 0x1F, bits as u32 & 0x3FF);
    match exponent {
        0 => {
            // Subnormal: fraction · 2⁻²⁴, exact in f32.
            let magnitude = fraction as f32 * f32::from_bits(0x3380_0000);
            Some(sign | magnitude.to_bits())
        }
        0x1F if fraction == 0 => Some(sign | 0x7F80_0000),
        0x1F => None,
        _ => Some(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

impl Builder {
    /// An element constant: its bits; those above the element's width are ignored.
    pub fn literal(&mut self, element: ElementType, bits: u64) -> ValueId {
        self.literal_bits(Type::Element(element), bits & mask(element), Range::ALL)
    }

    /// A constant predicate.
    pub fn bool_literal(&mut self, value: bool) -> ValueId {
        self.literal(Bool, u64::from(value))
    }

    /// An `f32` constant.
    pub fn f32_literal(&mut self, value: f32) -> ValueId {
        self.literal(F32, u64::from(value.to_bits()))
    }

    /// A scalar parameter.
    pub fn scalar(&mut self, parameter: u16) -> ValueId {
        let element = self.kernel.signature.parameters.get(usize::from(parameter)).map_or(F32, |p| p.element);
        self.pure(Op::Scalar(parameter), Type::Element(element), Range::ALL, true)
    }

    /// One operand; the result has its type.
    pub fn unary(&mut self, op: UnaryOp, a: ValueId) -> ValueId {
        let Type::Element(element) = self.ty(a) else {
            return self.pure(Op::Unary(op, a), self.ty(a), Range::ALL, true);
        };
        let wide = arithmetic_type(element);
        if wide != element {
            let a = self.cast(a, wide);
            let result = self.unary(op, a);
            return self.cast(result, element);
        }
        match op {
            UnaryOp::Not if element == Bool => return self.not(a),
            UnaryOp::Abs if matches!(element, U32 | U64) => return a,
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::RoundEven if element.is_integer() => return a,
            _ => {}
        }
        self.pure(Op::Unary(op, a), Type::Element(element), Range::ALL, true)
    }

    /// Two operands of one type, which the result has too.
    pub fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        let Type::Element(element) = self.ty(a) else {
            return self.pure(Op::Binary(op, a, b), self.ty(a), Range::ALL, true);
        };
        let wide = arithmetic_type(element);
        if wide != element {
            let (a, b) = (self.cast(a, wide), self.cast(b, wide));
            let result = self.binary(op, a, b);
            return self.cast(result, element);
        }
        match op {
            Binary::Shl => return self.shift_by(Shift::Left, a, b),
            Binary::Shr => return self.shift_by(Shift::Right, a, b),
            _ => {}
        }
        // false < true; a number is never NaN where there is no NaN.
        let op = match op {
            Binary::Max | Binary::MaxNum if element == Bool => Binary::Or,
            Binary::Min | Binary::MinNum if element == Bool => Binary::And,
            Binary::MaxNum if element.is_integer() => Binary::Max,
            Binary::MinNum if element.is_integer() => Binary::Min,
            other => other,
        };
        if element == Bool
            && let Some(known) = self.fold_bool(op, a, b)
        {
            return known;
        }
        // Integer operations and predicates commute exactly; the payload of a NaN would depend on the order.
        let commutes = !element.is_float() && !matches!(op, Binary::Sub | Binary::Div | Binary::Rem);
        let (a, b) = if commutes && b < a { (b, a) } else { (a, b) };
        self.pure(Op::Binary(op, a, b), Type::Element(element), Range::ALL, true)
    }

    fn fold_bool(&mut self, op: Binary, a: ValueId, b: ValueId) -> Option<ValueId> {
        let (a, b, literal) = match (self.kernel.pred_literal(a), self.kernel.pred_literal(b)) {
            (Some(value), _) => (b, a, Some(value)),
            (None, value) => (a, b, value),
        };
        match (op, literal) {
            (Binary::And, Some(true)) | (Binary::Or | Binary::Xor, Some(false)) => Some(a),
            (Binary::And, Some(false)) | (Binary::Or, Some(true)) => Some(b),
            (Binary::Xor, Some(true)) => Some(self.not(a)),
            (Binary::And | Binary::Or, None) if a == b => Some(a),
            (Binary::Xor, None) if a == b => Some(self.bool_literal(false)),
            _ => None,
        }
    }

    /// Logical complement of a predicate.
    pub fn not(&mut self, a: ValueId) -> ValueId {
        match self.kernel.value(a).op {
            Op::Literal(bits) => self.bool_literal(bits == 0),
            Op::Unary(UnaryOp::Not, inner) => inner,
            _ => self.pure(Op::Unary(UnaryOp::Not, a), Type::PRED, Range::ALL, true),
        }
    }

    /// Conjunction of predicates.
    pub fn and(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::And, a, b)
    }

    /// Disjunction of predicates.
    pub fn or(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::Or, a, b)
    }

    /// Comparison of two elements of one type; a predicate, false where an operand is NaN, except `Ne`.
    pub fn compare(&mut self, op: Compare, a: ValueId, b: ValueId) -> ValueId {
        let Type::Element(element) = self.ty(a) else {
            return self.pure(Op::Compare(op, a, b), Type::PRED, Range::ALL, true);
        };
        if element == Bool {
            return match op {
                Compare::Ne => self.binary(Binary::Xor, a, b),
                Compare::Eq => {
                    let differ = self.binary(Binary::Xor, a, b);
                    self.not(differ)
                }
                Compare::Lt | Compare::Le => {
                    let not_a = self.not(a);
                    self.binary(if op == Compare::Lt { Binary::And } else { Binary::Or }, not_a, b)
                }
                Compare::Gt | Compare::Ge => {
                    let not_b = self.not(b);
                    self.binary(if op == Compare::Gt { Binary::And } else { Binary::Or }, a, not_b)
                }
            };
        }
        let wide = arithmetic_type(element);
        let (a, b) = (self.cast(a, wide), self.cast(b, wide));
        let (op, a, b) = match op {
            Compare::Gt => (Compare::Lt, b, a),
            Compare::Ge => (Compare::Le, b, a),
            Compare::Eq | Compare::Ne => (op, a.min(b), a.max(b)),
            Compare::Lt | Compare::Le => (op, a, b),
        };
        self.pure(Op::Compare(op, a, b), Type::PRED, Range::ALL, true)
    }

    /// a·b + c: floats round once, integers wrap.
    pub fn fma(&mut self, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        let Type::Element(element) = self.ty(a) else {
            return self.pure(Op::Fma(a, b, c), self.ty(a), Range::ALL, true);
        };
        let wide = arithmetic_type(element);
        if wide != element {
            let (a, b, c) = (self.cast(a, wide), self.cast(b, wide), self.cast(c, wide));
            let result = self.fma(a, b, c);
            return self.cast(result, element);
        }
        if element.is_integer() {
            let product = self.binary(Binary::Mul, a, b);
            return self.binary(Binary::Add, product, c);
        }
        self.pure(Op::Fma(a, b, c), Type::Element(element), Range::ALL, true)
    }

    /// `if_true` where the condition holds, elsewhere `if_false`; any type. Both are evaluated.
    pub fn select(&mut self, condition: ValueId, if_true: ValueId, if_false: ValueId) -> ValueId {
        if if_true == if_false {
            return if_true;
        }
        match self.kernel.pred_literal(condition) {
            Some(true) => return if_true,
            Some(false) => return if_false,
            None => {}
        }
        if let Op::Unary(UnaryOp::Not, inner) = self.kernel.value(condition).op {
            return self.select(inner, if_false, if_true);
        }
        let range = self.facts(if_true).range.hull(self.facts(if_false).range);
        self.pure(Op::Select(condition, if_true, if_false), self.ty(if_true), range, true)
    }

    /// Conversion to another element type, as Rust's `as`.
    pub fn cast(&mut self, a: ValueId, to: ElementType) -> ValueId {
        let Value { op, ty, .. } = *self.kernel.value(a);
        let Type::Element(from) = ty else { return self.pure(Op::Cast(a), Type::Element(to), Range::ALL, true) };
        if from == to {
            return a;
        }
        if let Op::Literal(bits) = op {
            let folded = match (from, to) {
                (F16, F32) => widen_f16(bits).map(u64::from),
                // The upper half of an f32; a NaN's payload is the machine's.
                (Bf16, F32) if bits & 0x7FFF <= 0x7F80 => Some(bits << 16),
                _ if (from.is_integer() || from == Bool) && to.is_integer() => Some(integer(from, bits) as u64),
                _ => None,
            };
            if let Some(bits) = folded {
                return self.literal(to, bits);
            }
        }
        self.pure(Op::Cast(a), Type::Element(to), Range::ALL, true)
    }

    /// The same bits as another element type of the same width.
    pub fn bits(&mut self, a: ValueId, to: ElementType) -> ValueId {
        let Value { op, ty, .. } = *self.kernel.value(a);
        match op {
            _ if ty == Type::Element(to) => a,
            Op::Literal(bits) => self.literal(to, bits),
            _ => self.pure(Op::Bits(a), Type::Element(to), Range::ALL, true),
        }
    }

    /// A shift of an `i32`, `u32`, `i64` or `u64` by a `u32`.
    pub fn shift(&mut self, op: Shift, a: ValueId, amount: ValueId) -> ValueId {
        self.pure(Op::Shift(op, a, amount), self.ty(a), Range::ALL, true)
    }

    /// A shift by an amount of the same type, of which one that is negative, or too large, shifts everything out.
    fn shift_by(&mut self, op: Shift, a: ValueId, amount: ValueId) -> ValueId {
        let amount = match (self.kernel.value(amount).op, self.ty(amount).element()) {
            // A negative one of 32 bits is too large as well once its sign is cut off.
            (Op::Literal(bits), _) => self.literal(U32, bits.min(64)),
            (_, Some(I64 | U64)) => {
                let (unsigned, most) = (self.cast(amount, U64), self.literal(U64, 64));
                let amount = self.binary(Binary::Min, unsigned, most);
                self.cast(amount, U32)
            }
            _ => self.cast(amount, U32),
        };
        self.shift(op, a, amount)
    }

    /// High half of the product of two `i32`, `u32`, `i64` or `u64`.
    pub fn mul_high(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.pure(Op::MulHigh(a.min(b), a.max(b)), self.ty(a), Range::ALL, true)
    }

    /// An index integer as an element: wrapped to an integer, rounded once to a float.
    pub fn from_index(&mut self, a: ValueId, to: ElementType) -> ValueId {
        if let Some(value) = self.kernel.index_literal(a) {
            match to {
                F64 => return self.literal(to, (value as f64).to_bits()),
                F32 => return self.literal(to, u64::from((value as f32).to_bits())),
                I64 | I32 | I16 | I8 | U64 | U32 | U16 | U8 => return self.literal(to, value as u64),
                Tf32 | F16 | Bf16 | E4m3 | E5m2 | Bool => {}
            }
        }
        self.pure(Op::FromIndex(a), Type::Element(to), Range::ALL, true)
    }

    /// An integer element as an index of type `ty`: any integer as `I64`, those of at most 32 signed bits as `I32`. A
    /// `u64` of 2⁶³ and more becomes negative, so that it is outside every range that it should be outside of.
    pub fn to_index(&mut self, a: ValueId, ty: Type) -> ValueId {
        let Value { op, ty: from, .. } = *self.kernel.value(a);
        let Type::Element(element) = from else { return self.pure(Op::ToIndex(a), ty, Range::ALL, true) };
        if let Op::Literal(bits) = op {
            return self.index_literal(ty, integer(element, bits) as i64);
        }
        let range = match element {
            I8 => Range::new(i8::MIN.into(), i8::MAX.into()),
            I16 => Range::new(i16::MIN.into(), i16::MAX.into()),
            I32 => Range::new(i32::MIN.into(), i32::MAX.into()),
            U8 => Range::new(0, u8::MAX.into()),
            U16 => Range::new(0, u16::MAX.into()),
            U32 => Range::new(0, u32::MAX.into()),
            _ => Range::ALL,
        };
        self.pure(Op::ToIndex(a), ty, range, true)
    }
}

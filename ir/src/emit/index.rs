//! Index arithmetic. Where the range says that nothing is negative, division needs no correction.

use tilewright_kernel::algorithm::Compare;
use tilewright_ptx::{RegId, ScalarType};

use super::element::comparison;
use super::entry::{Entry, register_type};
use crate::kernel_ir::{IndexOp, Type, ValueId};

/// Number of bits of an index type, as PTX spells it.
const fn width(ty: Type) -> &'static str {
    if matches!(ty, Type::I32) { "32" } else { "64" }
}

impl Entry<'_> {
    pub(super) fn index(&mut self, op: IndexOp, ty: Type, a: ValueId, b: ValueId) -> RegId {
        let (bits, register) = (width(ty), register_type(ty));
        let (x, y) = (self.operand(a), self.operand(b));
        let word = match op {
            IndexOp::Add => "add.s",
            IndexOp::Sub => "sub.s",
            IndexOp::Mul => "mul.lo.s",
            IndexOp::Min => "min.s",
            IndexOp::Max => "max.s",
            IndexOp::And => "and.b",
            IndexOp::Xor => "xor.b",
            IndexOp::Div | IndexOp::Mod => return self.divide(op, ty, a, b),
        };
        self.result(&format!("{word}{bits}"), register, [x, y])
    }

    /// Quotient or remainder of the division that rounds down, by a positive divisor.
    fn divide(&mut self, op: IndexOp, ty: Type, a: ValueId, b: ValueId) -> RegId {
        let (bits, register) = (width(ty), register_type(ty));
        let non_negative = self.kernel.value(a).facts.range.is_non_negative();
        let divisor = self.kernel.index_literal(b).filter(|d| d.count_ones() == 1 && *d > 0);
        let (x, y) = (self.operand(a), self.operand(b));
        match (op, divisor) {
            // In two's complement, shifts and masks round down for negative dividends too.
            (IndexOp::Mod, Some(power)) => {
                return self.result(&format!("and.b{bits}"), register, [x, (power - 1).into()]);
            }
            (_, Some(power)) => {
                let sign = if non_negative { "u" } else { "s" };
                return self.result(&format!("shr.{sign}{bits}"), register, [x, power.trailing_zeros().into()]);
            }
            (IndexOp::Mod, None) if non_negative => return self.result(&format!("rem.u{bits}"), register, [x, y]),
            (_, None) if non_negative => return self.result(&format!("div.u{bits}"), register, [x, y]),
            _ => {}
        }
        // The machine truncates: a negative remainder is one divisor too low, and its quotient one too high.
        let remainder = self.result(&format!("rem.s{bits}"), register, [x.clone(), y.clone()]);
        let negative = self.result(&format!("setp.lt.s{bits}"), ScalarType::Pred, [remainder.into(), 0.into()]);
        let (base, correction) = match op {
            IndexOp::Mod => (remainder, y),
            _ => (self.result(&format!("div.s{bits}"), register, [x, y]), (-1).into()),
        };
        let correction = self.result(&format!("selp.b{bits}"), register, [correction, 0.into(), negative.into()]);
        self.result(&format!("add.s{bits}"), register, [base.into(), correction.into()])
    }

    pub(super) fn compare_index(&mut self, op: Compare, a: ValueId, b: ValueId) -> RegId {
        let bits = width(self.ty(a));
        let (x, y) = (self.operand(a), self.operand(b));
        self.result(&format!("setp.{}.s{bits}", comparison(op)), ScalarType::Pred, [x, y])
    }

    /// 0 ≤ a < b as one unsigned comparison where b is known not to be negative.
    pub(super) fn in_range(&mut self, a: ValueId, b: ValueId) -> RegId {
        let bits = width(self.ty(a));
        let (x, y) = (self.operand(a), self.operand(b));
        if self.kernel.value(b).facts.range.is_non_negative() {
            return self.result(&format!("setp.lt.u{bits}"), ScalarType::Pred, [x, y]);
        }
        let below = self.result(&format!("setp.lt.s{bits}"), ScalarType::Pred, [x.clone(), y]);
        self.result(&format!("setp.ge.and.s{bits}"), ScalarType::Pred, [x, 0.into(), below.into()])
    }

    pub(super) fn convert_index(&mut self, a: ValueId, to: Type) -> RegId {
        let x = self.operand(a);
        match (self.ty(a), to) {
            (Type::I32, Type::I64) => self.result("cvt.s64.s32", ScalarType::B64, [x]),
            (Type::I64, Type::I32) => self.result("cvt.u32.u64", ScalarType::B32, [x]),
            _ => self.register(a),
        }
    }
}

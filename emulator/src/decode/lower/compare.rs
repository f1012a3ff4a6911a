//! Comparisons and selections.

use tilewright_ptx::isa::Compare;
use tilewright_ptx::{BoolOp, Comparison as Test, Flag, Inst as Source, NumberClass as Tested, Operand, ScalarType};

use super::arith::{Shape, shape};
use super::{Lowered, Lowering, refuse};
use crate::decode::op::{self, Comparison, LaneFn, Op, PredRef, Slot};
use crate::lanes::int::{IntCompare, Width};
use crate::num::float::{FloatCompare, FloatType, NumberClass};

impl Lowering<'_> {
    /// The test, its operands and the predicate it is combined with; `types` is the number of the operands' type.
    #[allow(clippy::type_complexity, reason = "the three parts of one comparison, taken apart at once by both callers")]
    fn test(&mut self, inst: &Source, types: usize) -> Lowered<(Comparison, u32, u32, Option<(op::Logic, PredRef)>)> {
        let ty = self.ty(inst, types)?;
        let Some(test) = inst.find::<Test>() else { return refuse("the comparison is missing") };
        let (a, b) = (self.value(self.operand(inst, 1)?, ty)?, self.value(self.operand(inst, 2)?, ty)?);
        let combine = match inst.find::<BoolOp>() {
            None => None,
            Some(logic) => {
                let logic = match logic {
                    BoolOp::And => op::Logic::And,
                    BoolOp::Or => op::Logic::Or,
                    BoolOp::Xor => op::Logic::Xor,
                };
                Some((logic, self.pred(self.operand(inst, 3)?)?))
            }
        };
        let comparison = match shape(ty)? {
            Shape::Int(Width::W64, signed) => Comparison::WideInt(int_compare(test, signed)?),
            Shape::Int(width, signed) => Comparison::Int(int_compare(test, signed)?, width),
            Shape::Float(FloatType::F64, _) => Comparison::WideFloat(float_compare(test)?),
            Shape::Float(float, _) => Comparison::Float(float_compare(test)?, float, inst.has(Flag::Ftz)),
            Shape::Halves(_) | Shape::Pred => return refuse(format!("type {ty} is not supported here")),
        };
        match (a, b) {
            (Slot::Narrow(a), Slot::Narrow(b)) | (Slot::Wide(a), Slot::Wide(b)) => Ok((comparison, a, b, combine)),
            _ => refuse("operands of different sizes"),
        }
    }

    pub(super) fn compare(&mut self, compare: Compare, inst: &Source) -> Lowered<()> {
        match compare {
            Compare::Setp => {
                let (d, p) = match self.operand(inst, 0)? {
                    Operand::Pair(d, p) => (self.pred_result(d)?, self.pred_result(p)?),
                    other => (self.pred_result(other)?, None),
                };
                let packed = matches!(self.ty(inst, 0)?, ScalarType::F16x2 | ScalarType::Bf16x2);
                let (test, a, b, combine) = self.test(inst, 0)?;
                match (packed, test) {
                    (true, Comparison::Float(op, ty, ftz)) => {
                        self.emit(Op::SetpPacked { op, ty, ftz, d, p, a, b, combine })
                    }
                    _ => self.emit(Op::Setp { test, d, p, a, b, combine }),
                }
                Ok(())
            }
            Compare::Set => {
                let ty = self.ty(inst, 0)?;
                let yes = match ty {
                    ScalarType::F32 => 1f32.to_bits(),
                    ScalarType::F16 | ScalarType::F16x2 => 0x3c00,
                    ScalarType::Bf16 | ScalarType::Bf16x2 => 0x3f80,
                    _ if ty.bits() == 16 => 0xffff,
                    _ => u32::MAX,
                };
                let packed = matches!(self.ty(inst, 1)?, ScalarType::F16x2 | ScalarType::Bf16x2);
                let d = self.narrow(self.operand(inst, 0)?, ty)?;
                let (test, a, b, combine) = self.test(inst, 1)?;
                match (packed, test) {
                    (true, Comparison::Float(op, ty, ftz)) => {
                        self.emit(Op::SetPacked { op, ty, ftz, yes: yes as u16, d, a, b, combine })
                    }
                    _ => self.emit(Op::Set { test, yes, d, a, b, combine }),
                }
                Ok(())
            }
            Compare::Selp => {
                let ty = self.ty(inst, 0)?;
                let [d, a, b] = self.values(inst, ty)?;
                let c = self.pred(self.operand(inst, 3)?)?;
                match [d, a, b] {
                    [Slot::Narrow(d), Slot::Narrow(a), Slot::Narrow(b)] => self.emit(Op::Selp { d, a, b, c }),
                    [Slot::Wide(d), Slot::Wide(a), Slot::Wide(b)] => self.emit(Op::SelpWide { d, a, b, c }),
                    _ => return refuse("operands of different sizes"),
                }
                Ok(())
            }
            Compare::Slct => {
                let (ty, by) = (self.ty(inst, 0)?, self.ty(inst, 1)?);
                let [d, a, b] = self.values(inst, ty)?;
                let c = self.value(self.operand(inst, 3)?, by)?;
                let f = if by == ScalarType::F32 {
                    LaneFn::SlctFloat { ftz: inst.has(Flag::Ftz) }
                } else {
                    LaneFn::SlctInt
                };
                self.lane(f, &[d, a, b, c]);
                Ok(())
            }
            Compare::Testp => {
                let ty = self.ty(inst, 0)?;
                let Shape::Float(float, _) = shape(ty)? else { return refuse("a floating-point type is expected") };
                let class = match inst.find::<Tested>() {
                    Some(Tested::Finite) => NumberClass::Finite,
                    Some(Tested::Infinite) => NumberClass::Infinite,
                    Some(Tested::Number) => NumberClass::Number,
                    Some(Tested::NotANumber) => NumberClass::NotANumber,
                    Some(Tested::Normal) => NumberClass::Normal,
                    Some(Tested::Subnormal) => NumberClass::Subnormal,
                    None => return refuse("the class is missing"),
                };
                let Some(d) = self.pred_result(self.operand(inst, 0)?)? else { return Ok(()) };
                let a = self.value(self.operand(inst, 1)?, ty)?;
                self.emit(Op::Testp { class, ty: float, d, a });
                Ok(())
            }
        }
    }
}

fn int_compare(test: Test, signed: bool) -> Lowered<IntCompare> {
    Ok(match (test, signed) {
        (Test::Eq, _) => IntCompare::Eq,
        (Test::Ne, _) => IntCompare::Ne,
        (Test::Lt, true) => IntCompare::LtS,
        (Test::Le, true) => IntCompare::LeS,
        (Test::Gt, true) => IntCompare::GtS,
        (Test::Ge, true) => IntCompare::GeS,
        (Test::Lt | Test::Lo, _) => IntCompare::LtU,
        (Test::Le | Test::Ls, _) => IntCompare::LeU,
        (Test::Gt | Test::Hi, _) => IntCompare::GtU,
        (Test::Ge | Test::Hs, _) => IntCompare::GeU,
        _ => return refuse("integers have no such comparison"),
    })
}

fn float_compare(test: Test) -> Lowered<FloatCompare> {
    Ok(match test {
        Test::Eq => FloatCompare::Eq,
        Test::Ne => FloatCompare::Ne,
        Test::Lt => FloatCompare::Lt,
        Test::Le => FloatCompare::Le,
        Test::Gt => FloatCompare::Gt,
        Test::Ge => FloatCompare::Ge,
        Test::Equ => FloatCompare::Equ,
        Test::Neu => FloatCompare::Neu,
        Test::Ltu => FloatCompare::Ltu,
        Test::Leu => FloatCompare::Leu,
        Test::Gtu => FloatCompare::Gtu,
        Test::Geu => FloatCompare::Geu,
        Test::Num => FloatCompare::Num,
        Test::NanTest => FloatCompare::Nan,
        Test::Lo | Test::Ls | Test::Hi | Test::Hs => return refuse("floats have no unsigned comparison"),
    })
}

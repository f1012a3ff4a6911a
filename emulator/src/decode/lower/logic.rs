//! Bitwise operations, shifts, bit fields, and the logic of predicates.

use tilewright_ptx::isa::Logic;
use tilewright_ptx::{Flag, Inst as Source, Operand, PrmtMode, ScalarType};

use super::arith::{Shape, shape};
use super::{Lowered, Lowering, refuse};
use crate::decode::op::{self, Comparison, LaneFn, Op, PredRef, Slot};
use crate::lanes::int::{Int1, Int2, IntCompare, Prmt, Width};

impl Lowering<'_> {
    pub(super) fn logic(&mut self, logic: Logic, inst: &Source) -> Lowered<()> {
        let ty = self.ty(inst, 0)?;
        let width = match shape(ty)? {
            Shape::Int(width, _) => width,
            Shape::Pred => return self.pred_logic(logic, inst),
            _ => return refuse(format!("type {ty} is not supported here")),
        };
        let signed = ty.is_signed();
        let bits = width.bits();
        match logic {
            Logic::And | Logic::Or | Logic::Xor => {
                let op = match logic {
                    Logic::And => Int2::And,
                    Logic::Or => Int2::Or,
                    _ => Int2::Xor,
                };
                let slots = self.values(inst, ty)?;
                self.int2(op, width, slots)
            }
            Logic::Not | Logic::Cnot | Logic::Brev => {
                let op = match logic {
                    Logic::Not => Int1::Not,
                    Logic::Cnot => Int1::Cnot,
                    _ => Int1::Brev,
                };
                let slots = self.values(inst, ty)?;
                self.int1(op, width, slots)
            }
            Logic::Popc | Logic::Clz | Logic::Bfind => {
                let op = match logic {
                    Logic::Popc => Int1::Popc,
                    Logic::Clz => Int1::Clz,
                    _ => Int1::Bfind { signed, shift: inst.has(Flag::Shiftamt) },
                };
                let d = self.value(self.operand(inst, 0)?, ScalarType::U32)?;
                let a = self.value(self.operand(inst, 1)?, ty)?;
                self.int1(op, width, [d, a])
            }
            Logic::Shl | Logic::Shr => {
                let d = self.value(self.operand(inst, 0)?, ty)?;
                let a = self.value(self.operand(inst, 1)?, ty)?;
                let b = self.value(self.operand(inst, 2)?, ScalarType::U32)?;
                let op = match (logic, signed) {
                    (Logic::Shl, _) => Int2::Shl,
                    (_, false) => Int2::ShrU,
                    (_, true) => Int2::ShrS,
                };
                self.int2(op, width, [d, a, b])
            }
            Logic::Lop3 => self.lop3(inst, ty),
            Logic::Shf => self.lanes3(
                inst,
                [ty, ty, ty, ScalarType::U32],
                LaneFn::Shf { left: inst.has(Flag::L), wrap: inst.has(Flag::Wrap) },
            ),
            Logic::Fns => self.lanes3(inst, [ty, ty, ty, ScalarType::S32], LaneFn::Fns),
            Logic::Bfe => self.lanes3(inst, [ty, ty, ScalarType::U32, ScalarType::U32], LaneFn::Bfe { signed, bits }),
            Logic::Prmt => {
                let mode = match inst.find::<PrmtMode>() {
                    None => Prmt::Default,
                    Some(PrmtMode::F4e) => Prmt::F4e,
                    Some(PrmtMode::B4e) => Prmt::B4e,
                    Some(PrmtMode::Rc8) => Prmt::Rc8,
                    Some(PrmtMode::Ecl) => Prmt::Ecl,
                    Some(PrmtMode::Ecr) => Prmt::Ecr,
                    Some(PrmtMode::Rc16) => Prmt::Rc16,
                };
                self.lanes3(inst, [ty; 4], LaneFn::Prmt(mode))
            }
            Logic::Bfi => {
                let types = [ty, ty, ty, ScalarType::U32, ScalarType::U32];
                let mut slots = [Slot::Narrow(0); 5];
                for (index, slot) in slots.iter_mut().enumerate() {
                    *slot = self.value(self.operand(inst, index)?, types[index])?;
                }
                self.lane(LaneFn::Bfi { bits }, &slots);
                Ok(())
            }
            Logic::Szext => self.lanes2(inst, ty, LaneFn::Szext { signed, wrap: inst.has(Flag::Wrap) }),
            Logic::Bmsk => self.lanes2(inst, ty, LaneFn::Bmsk { wrap: inst.has(Flag::Wrap) }),
        }
    }

    fn lop3(&mut self, inst: &Source, ty: ScalarType) -> Lowered<()> {
        let Operand::Imm(table) = self.operand(inst, 4)? else {
            return refuse("the truth table must be an immediate");
        };
        let table = table.int_bits().unwrap_or(0) as u8;
        let (first, flag) = match self.operand(inst, 0)? {
            Operand::Pair(d, p) => ((**d).clone(), Some((**p).clone())),
            other => (other.clone(), None),
        };
        let d = if first == Operand::Sink { self.temporary()? } else { self.narrow(&first, ty)? };
        let mut row = [0; 3];
        for (index, slot) in row.iter_mut().enumerate() {
            *slot = self.narrow(self.operand(inst, index + 1)?, ty)?;
        }
        let [a, b, c] = row;
        self.emit(Op::Lop3 { table, d, a, b, c });
        let Some(flag) = flag else { return Ok(()) };
        // p = (d ≠ 0) op q.
        let q = self.pred(self.operand(inst, 5)?)?;
        let Some(Slot::Narrow(zero)) = self.slots.constant(32, 0) else {
            return refuse("no room for a constant");
        };
        let logic = if inst.has(Flag::Or) { op::Logic::Or } else { op::Logic::And };
        let test = Comparison::Int(IntCompare::Ne, Width::W32);
        let p = self.pred_result(&flag)?;
        self.emit(Op::Setp { test, d: p, p: None, a: d, b: zero, combine: Some((logic, q)) });
        Ok(())
    }

    pub(super) fn video(&mut self, op: tilewright_ptx::isa::Video, inst: &Source) -> Lowered<()> {
        use crate::lanes::video::{Operation, Video};
        let tilewright_ptx::isa::Video::Simd = op;
        let mnemonic = inst.form().mnemonic;
        let (name, lanes) = mnemonic.split_at(mnemonic.len() - 1);
        let operation = match name {
            "vadd" => Operation::Add,
            "vsub" => Operation::Sub,
            "vavrg" => Operation::Average,
            "vabsdiff" => Operation::AbsDiff,
            "vmin" => Operation::Min,
            "vmax" => Operation::Max,
            _ => return refuse("this video instruction is not supported"),
        };
        let [d, a, b] = [self.ty(inst, 0)?, self.ty(inst, 1)?, self.ty(inst, 2)?];
        let video = Video {
            operation,
            bits: if lanes == "4" { 8 } else { 16 },
            signed: [d, a, b].map(ScalarType::is_signed),
            saturate: inst.has(Flag::Sat),
            accumulate: inst.has(Flag::Add),
        };
        self.lanes3(inst, [d, a, b, d], LaneFn::Video(video))
    }

    fn lanes3(&mut self, inst: &Source, types: [ScalarType; 4], f: LaneFn) -> Lowered<()> {
        let mut slots = [Slot::Narrow(0); 4];
        for (index, slot) in slots.iter_mut().enumerate() {
            *slot = self.value(self.operand(inst, index)?, types[index])?;
        }
        self.lane(f, &slots);
        Ok(())
    }

    fn lanes2(&mut self, inst: &Source, ty: ScalarType, f: LaneFn) -> Lowered<()> {
        let d = self.value(self.operand(inst, 0)?, ty)?;
        let a = self.value(self.operand(inst, 1)?, ty)?;
        let b = self.value(self.operand(inst, 2)?, ScalarType::U32)?;
        self.lane(f, &[d, a, b]);
        Ok(())
    }

    fn temporary(&mut self) -> Lowered<u32> {
        match self.slots.temporary(32) {
            Some(Slot::Narrow(slot)) => Ok(slot),
            _ => refuse("no room for a register"),
        }
    }

    fn pred_logic(&mut self, logic: Logic, inst: &Source) -> Lowered<()> {
        let Some(d) = self.pred_result(self.operand(inst, 0)?)? else { return Ok(()) };
        let a = self.pred(self.operand(inst, 1)?)?;
        if logic == Logic::Not {
            let b = PredRef { slot: a.slot, negated: !a.negated };
            self.emit(Op::PredLogic { op: op::Logic::And, d, a: b, b });
            return Ok(());
        }
        let b = self.pred(self.operand(inst, 2)?)?;
        let op = match logic {
            Logic::And => op::Logic::And,
            Logic::Or => op::Logic::Or,
            Logic::Xor => op::Logic::Xor,
            _ => return refuse("predicates have no such operation"),
        };
        self.emit(Op::PredLogic { op, d, a, b });
        Ok(())
    }
}

//! Arithmetic, logic, comparisons, functions.

use tilewright_ptx::isa::{Arith, Compare, Logic, Math};
use tilewright_ptx::{
    BoolOp, Comparison as Test, Flag, Inst as Source, MulPart, NumberClass as Tested, Operand, PrmtMode, ScalarType,
};

use super::{Lowered, Lowering, refuse};
use crate::decode::op::{self, Comparison, LaneFn, Op, PredRef, Slot};
use crate::lanes::int::{Int1, Int2, IntCompare, Prmt, Width};
use crate::num::approx::Approx;
use crate::num::float::{Float1, Float2, FloatCompare, FloatMode, FloatType, NumberClass};

/// How the emulator sees a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Int(Width, bool),
    Float(FloatType, bool),
    Halves(bool),
    Pred,
}

fn shape(ty: ScalarType) -> Lowered<Shape> {
    use ScalarType::*;
    Ok(match ty {
        Pred => Shape::Pred,
        B16 | U16 | S16 => Shape::Int(Width::W16, ty.is_signed()),
        B32 | U32 | S32 => Shape::Int(Width::W32, ty.is_signed()),
        B64 | U64 | S64 => Shape::Int(Width::W64, ty.is_signed()),
        F16 => Shape::Float(FloatType::F16, false),
        F16x2 => Shape::Float(FloatType::F16, true),
        Bf16 => Shape::Float(FloatType::Bf16, false),
        Bf16x2 => Shape::Float(FloatType::Bf16, true),
        F32 => Shape::Float(FloatType::F32, false),
        F64 => Shape::Float(FloatType::F64, false),
        U16x2 | S16x2 => Shape::Halves(ty.is_signed()),
        _ => return refuse(format!("type {ty} is not supported here")),
    })
}

impl Lowering<'_> {
    fn mode(&self, inst: &Source, ty: FloatType) -> FloatMode {
        FloatMode {
            ty,
            round: self.rounding(inst),
            ftz: inst.has(Flag::Ftz),
            sat: inst.has(Flag::Sat),
            relu: inst.has(Flag::Relu),
        }
    }

    /// All operands as values of the first type.
    fn values<const N: usize>(&mut self, inst: &Source, ty: ScalarType) -> Lowered<[Slot; N]> {
        let mut slots = [Slot::Narrow(0); N];
        for (index, slot) in slots.iter_mut().enumerate() {
            *slot = self.value(self.operand(inst, index)?, ty)?;
        }
        Ok(slots)
    }

    fn int2(&mut self, op: Int2, width: Width, slots: [Slot; 3]) -> Lowered<()> {
        match slots {
            [Slot::Narrow(d), Slot::Narrow(a), Slot::Narrow(b)] => self.emit(Op::Int2 { op, width, d, a, b }),
            [Slot::Wide(d), Slot::Wide(a), Slot::Wide(b)] => self.emit(Op::Int2Wide { op, d, a, b }),
            [Slot::Wide(d), Slot::Wide(a), Slot::Narrow(b)] => self.emit(Op::ShiftWide { op, d, a, b }),
            _ => return refuse("operands of different sizes"),
        }
        Ok(())
    }

    fn int1(&mut self, op: Int1, width: Width, slots: [Slot; 2]) -> Lowered<()> {
        match slots {
            [Slot::Narrow(d), Slot::Narrow(a)] => self.emit(Op::Int1 { op, width, d, a }),
            [Slot::Wide(d), Slot::Wide(a)] => self.emit(Op::Int1Wide { op, d, a }),
            [Slot::Narrow(d), Slot::Wide(a)] => self.emit(Op::CountWide { op, d, a }),
            _ => return refuse("operands of different sizes"),
        }
        Ok(())
    }

    fn float1(&mut self, op: Float1, mode: FloatMode, packed: bool, slots: [Slot; 2]) -> Lowered<()> {
        match slots {
            [Slot::Narrow(d), Slot::Narrow(a)] => self.emit(Op::Float1 { op, mode, packed, d, a }),
            [Slot::Wide(d), Slot::Wide(a)] => self.emit(Op::Float1Wide { op, mode, d, a }),
            _ => return refuse("operands of different sizes"),
        }
        Ok(())
    }

    fn float2(&mut self, op: Float2, mode: FloatMode, packed: bool, slots: [Slot; 3]) -> Lowered<()> {
        match slots {
            [Slot::Narrow(d), Slot::Narrow(a), Slot::Narrow(b)] => self.emit(Op::Float2 { op, mode, packed, d, a, b }),
            [Slot::Wide(d), Slot::Wide(a), Slot::Wide(b)] => self.emit(Op::Float2Wide { op, mode, d, a, b }),
            _ => return refuse("operands of different sizes"),
        }
        Ok(())
    }

    fn fma(&mut self, mode: FloatMode, packed: bool, slots: [Slot; 4]) -> Lowered<()> {
        match slots {
            [Slot::Narrow(d), Slot::Narrow(a), Slot::Narrow(b), Slot::Narrow(c)] => {
                self.emit(Op::Fma { mode, packed, d, a, b, c })
            }
            [Slot::Wide(d), Slot::Wide(a), Slot::Wide(b), Slot::Wide(c)] => self.emit(Op::FmaWide { mode, d, a, b, c }),
            _ => return refuse("operands of different sizes"),
        }
        Ok(())
    }

    fn lane(&mut self, f: LaneFn, slots: &[Slot]) {
        let at = |index: usize| slots.get(index).copied().unwrap_or(slots[1]);
        self.emit(Op::Lane { f, d: slots[0], a: at(1), b: at(2), c: at(3), e: at(4) });
    }

    pub(super) fn arith(&mut self, arith: Arith, inst: &Source) -> Lowered<()> {
        let ty = self.ty(inst, 0)?;
        let shape_of = shape(ty)?;
        let sat = inst.has(Flag::Sat);
        match (arith, shape_of) {
            (Arith::Add | Arith::Sub, Shape::Int(width, _)) => {
                let op = match (arith == Arith::Add, sat) {
                    (true, false) => Int2::Add,
                    (true, true) => Int2::AddSat,
                    (false, false) => Int2::Sub,
                    (false, true) => Int2::SubSat,
                };
                let slots = self.values(inst, ty)?;
                self.int2(op, width, slots)
            }
            (Arith::Add, Shape::Halves(_)) => {
                let slots = self.values::<3>(inst, ty)?;
                self.lane(LaneFn::Packed16 { op: Int2::Add, relu: false }, &slots);
                Ok(())
            }
            (Arith::Add | Arith::Sub | Arith::Mul, Shape::Float(float, packed)) => {
                let op = match arith {
                    Arith::Add => Float2::Add,
                    Arith::Sub => Float2::Sub,
                    _ => Float2::Mul,
                };
                let slots = self.values(inst, ty)?;
                self.float2(op, self.mode(inst, float), packed, slots)
            }
            (Arith::Mul, Shape::Int(width, signed)) => match inst.find::<MulPart>() {
                Some(MulPart::Wide) => self.mul_wide(inst, ty, width, signed, false),
                part => {
                    let op = match (part == Some(MulPart::Hi), signed) {
                        (false, _) => Int2::Mul,
                        (true, false) => Int2::MulHiU,
                        (true, true) => Int2::MulHiS,
                    };
                    let slots = self.values(inst, ty)?;
                    self.int2(op, width, slots)
                }
            },
            (Arith::Mul24, Shape::Int(width, signed)) => {
                let slots = self.values(inst, ty)?;
                self.int2(Int2::Mul24 { signed, high: inst.has(Flag::Hi) }, width, slots)
            }
            (Arith::Mad, Shape::Int(width, signed)) => match inst.find::<MulPart>() {
                Some(MulPart::Wide) => self.mul_wide(inst, ty, width, signed, true),
                Some(MulPart::Hi) => {
                    let slots = self.values::<4>(inst, ty)?;
                    self.lane(LaneFn::MadHi { signed, width, sat }, &slots);
                    Ok(())
                }
                _ => {
                    match self.values::<4>(inst, ty)? {
                        [Slot::Narrow(d), Slot::Narrow(a), Slot::Narrow(b), Slot::Narrow(c)] => {
                            self.emit(Op::Mad { width, d, a, b, c })
                        }
                        [Slot::Wide(d), Slot::Wide(a), Slot::Wide(b), Slot::Wide(c)] => {
                            self.emit(Op::MadLoWide { d, a, b, c })
                        }
                        _ => return refuse("operands of different sizes"),
                    }
                    Ok(())
                }
            },
            (Arith::Mad24, Shape::Int(_, signed)) => {
                let slots = self.values::<4>(inst, ty)?;
                self.lane(LaneFn::Mad24 { signed, high: inst.has(Flag::Hi), sat }, &slots);
                Ok(())
            }
            (Arith::Mad | Arith::Fma, Shape::Float(float, packed)) => {
                let slots = self.values::<4>(inst, ty)?;
                let mode = self.mode(inst, float);
                if inst.has(Flag::Oob) {
                    self.lane(LaneFn::FmaOob(mode, packed), &slots);
                    return Ok(());
                }
                self.fma(mode, packed, slots)
            }
            (Arith::Div, Shape::Int(width, signed)) => {
                let slots = self.values(inst, ty)?;
                self.int2(if signed { Int2::DivS } else { Int2::DivU }, width, slots)
            }
            (Arith::Div, Shape::Float(float, _)) => {
                let slots = self.values::<3>(inst, ty)?;
                let mode = self.mode(inst, float);
                if inst.has(Flag::Approx) || inst.has(Flag::Full) {
                    self.lane(LaneFn::DivApprox { mode, full: inst.has(Flag::Full) }, &slots);
                    return Ok(());
                }
                self.float2(Float2::Div, mode, false, slots)
            }
            (Arith::Rem, Shape::Int(width, signed)) => {
                let slots = self.values(inst, ty)?;
                self.int2(if signed { Int2::RemS } else { Int2::RemU }, width, slots)
            }
            (Arith::Abs | Arith::Neg, Shape::Int(width, _)) => {
                let slots = self.values(inst, ty)?;
                self.int1(if arith == Arith::Abs { Int1::Abs } else { Int1::Neg }, width, slots)
            }
            (Arith::Abs | Arith::Neg, Shape::Float(float, packed)) => {
                let slots = self.values(inst, ty)?;
                self.float1(
                    if arith == Arith::Abs { Float1::Abs } else { Float1::Neg },
                    self.mode(inst, float),
                    packed,
                    slots,
                )
            }
            (Arith::Min | Arith::Max, Shape::Int(width, signed)) => {
                let max = arith == Arith::Max;
                if inst.has(Flag::Relu) {
                    let slots = self.values::<3>(inst, ty)?;
                    self.lane(LaneFn::Relu { max }, &slots);
                    return Ok(());
                }
                let slots = self.values(inst, ty)?;
                self.int2(extremum(max, signed), width, slots)
            }
            (Arith::Min | Arith::Max, Shape::Halves(signed)) => {
                let slots = self.values::<3>(inst, ty)?;
                let op = extremum(arith == Arith::Max, signed);
                self.lane(LaneFn::Packed16 { op, relu: inst.has(Flag::Relu) }, &slots);
                Ok(())
            }
            (Arith::Min | Arith::Max, Shape::Float(float, packed)) => {
                let (nan, xorsign) = (inst.has(Flag::Nan), inst.has(Flag::XorSign));
                let op = if arith == Arith::Max { Float2::Max { nan, xorsign } } else { Float2::Min { nan, xorsign } };
                let slots = self.values(inst, ty)?;
                self.float2(op, self.mode(inst, float), packed, slots)
            }
            (Arith::Sad, Shape::Int(width, signed)) => {
                let slots = self.values::<4>(inst, ty)?;
                self.lane(LaneFn::Sad { signed, width }, &slots);
                Ok(())
            }
            (Arith::Copysign, Shape::Float(float, _)) => {
                let slots = self.values(inst, ty)?;
                self.float2(Float2::Copysign, FloatMode::plain(float), false, slots)
            }
            (Arith::Dp4a | Arith::Dp2a, Shape::Int(_, a)) => {
                let b = self.ty(inst, 1)?.is_signed();
                let slots = self.values::<4>(inst, ScalarType::U32)?;
                let high = inst.has(Flag::Hi);
                self.lane(
                    if arith == Arith::Dp4a { LaneFn::Dp4a { a, b } } else { LaneFn::Dp2a { a, b, high } },
                    &slots,
                );
                Ok(())
            }
            (Arith::AddCc | Arith::Addc | Arith::SubCc | Arith::Subc, Shape::Int(..)) => {
                let [d, a, b] = self.values(inst, ty)?;
                let subtract = matches!(arith, Arith::SubCc | Arith::Subc);
                let carry_in = matches!(arith, Arith::Addc | Arith::Subc);
                self.emit(Op::Carry { subtract, carry_in, carry_out: inst.has(Flag::Cc), d, a, b });
                Ok(())
            }
            (Arith::MadCc | Arith::Madc, Shape::Int(_, signed)) => {
                let [d, a, b, c] = self.values(inst, ty)?;
                let (carry_in, carry_out) = (arith == Arith::Madc, inst.has(Flag::Cc));
                self.emit(Op::MadCarry { high: inst.has(Flag::Hi), signed, carry_in, carry_out, d, a, b, c });
                Ok(())
            }
            _ => refuse(format!("type {ty} is not supported here")),
        }
    }

    fn mul_wide(&mut self, inst: &Source, ty: ScalarType, width: Width, signed: bool, add: bool) -> Lowered<()> {
        let Some(wide) = ty.widened() else { return refuse("there is no wider type") };
        let d = self.value(self.operand(inst, 0)?, wide)?;
        let a = self.narrow(self.operand(inst, 1)?, ty)?;
        let b = self.narrow(self.operand(inst, 2)?, ty)?;
        let c = if add { Some(self.value(self.operand(inst, 3)?, wide)?) } else { None };
        match (width, d, c) {
            (Width::W32, Slot::Wide(d), None) => self.emit(Op::MulWide { signed, d, a, b, c: None }),
            (Width::W32, Slot::Wide(d), Some(Slot::Wide(c))) => self.emit(Op::MulWide { signed, d, a, b, c: Some(c) }),
            (Width::W16, Slot::Narrow(d), None) => self.emit(Op::MulWide16 { signed, d, a, b, c: None }),
            (Width::W16, Slot::Narrow(d), Some(Slot::Narrow(c))) => {
                self.emit(Op::MulWide16 { signed, d, a, b, c: Some(c) })
            }
            _ => return refuse("operands of different sizes"),
        }
        Ok(())
    }

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
            Logic::Lop3 => {
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
                if ty == ScalarType::F16x2 {
                    return refuse("packed results are not supported");
                }
                let yes = match ty {
                    ScalarType::F32 => 1f32.to_bits(),
                    ScalarType::F16 => 0x3c00,
                    _ if ty.bits() == 16 => 0xffff,
                    _ => u32::MAX,
                };
                let d = self.narrow(self.operand(inst, 0)?, ty)?;
                let (test, a, b, combine) = self.test(inst, 1)?;
                self.emit(Op::Set { test, yes, d, a, b, combine });
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

    pub(super) fn math(&mut self, math: Math, inst: &Source) -> Lowered<()> {
        let ty = self.ty(inst, 0)?;
        let Shape::Float(float, packed) = shape(ty)? else { return refuse("a floating-point type is expected") };
        let mode = self.mode(inst, float);
        let slots = self.values(inst, ty)?;
        let approximate = inst.has(Flag::Approx);
        let op = match math {
            Math::Rcp if !approximate => return self.float1(Float1::Rcp, mode, packed, slots),
            Math::Sqrt if !approximate => return self.float1(Float1::Sqrt, mode, packed, slots),
            Math::Rcp => Approx::Rcp,
            Math::Sqrt => Approx::Sqrt,
            Math::Rsqrt => Approx::Rsqrt,
            Math::Sin => Approx::Sin,
            Math::Cos => Approx::Cos,
            Math::Lg2 => Approx::Lg2,
            Math::Ex2 => Approx::Ex2,
            Math::Tanh => Approx::Tanh,
        };
        match slots {
            [Slot::Narrow(d), Slot::Narrow(a)] => self.emit(Op::Approx { op, mode, packed, d, a }),
            [Slot::Wide(d), Slot::Wide(a)] => self.emit(Op::ApproxWide { op, mode, d, a }),
            _ => return refuse("operands of different sizes"),
        }
        Ok(())
    }
}

fn extremum(max: bool, signed: bool) -> Int2 {
    match (max, signed) {
        (true, true) => Int2::MaxS,
        (true, false) => Int2::MaxU,
        (false, true) => Int2::MinS,
        (false, false) => Int2::MinU,
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

//! Arithmetic and functions of one argument.

use tilewright_ptx::isa::{Arith, Math};
use tilewright_ptx::{Flag, Inst as Source, MulPart, ScalarType};

use super::{Lowered, Lowering, refuse};
use crate::decode::op::{LaneFn, Op, Slot};
use crate::lanes::int::{Int1, Int2, Width};
use crate::num::approx::Approx;
use crate::num::float::{Float1, Float2, FloatMode, FloatType};

/// How the emulator sees a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    Int(Width, bool),
    Float(FloatType, bool),
    Halves(bool),
    Pred,
}

pub(super) fn shape(ty: ScalarType) -> Lowered<Shape> {
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
    pub(super) fn values<const N: usize>(&mut self, inst: &Source, ty: ScalarType) -> Lowered<[Slot; N]> {
        let mut slots = [Slot::Narrow(0); N];
        for (index, slot) in slots.iter_mut().enumerate() {
            *slot = self.value(self.operand(inst, index)?, ty)?;
        }
        Ok(slots)
    }

    pub(super) fn int2(&mut self, op: Int2, width: Width, slots: [Slot; 3]) -> Lowered<()> {
        match slots {
            [Slot::Narrow(d), Slot::Narrow(a), Slot::Narrow(b)] => self.emit(Op::Int2 { op, width, d, a, b }),
            [Slot::Wide(d), Slot::Wide(a), Slot::Wide(b)] => self.emit(Op::Int2Wide { op, d, a, b }),
            [Slot::Wide(d), Slot::Wide(a), Slot::Narrow(b)] => self.emit(Op::ShiftWide { op, d, a, b }),
            _ => return refuse("operands of different sizes"),
        }
        Ok(())
    }

    pub(super) fn int1(&mut self, op: Int1, width: Width, slots: [Slot; 2]) -> Lowered<()> {
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

    pub(super) fn lane(&mut self, f: LaneFn, slots: &[Slot]) {
        let at = |index: usize| slots.get(index).copied().unwrap_or(slots[1]);
        self.emit(Op::Lane { f, d: slots[0], a: at(1), b: at(2), c: at(3), e: at(4) });
    }

    #[expect(clippy::too_many_lines, reason = "one arm an instruction")]
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

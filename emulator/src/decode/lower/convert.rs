//! Moves, packing, conversions of numbers and of addresses.

use tilewright_ptx::isa::Convert;
use tilewright_ptx::{Flag, Inst as Source, Operand, Rounding, ScalarType, StateSpace};

use super::{Lowered, Lowering, refuse};
use crate::decode::op::{FastCvt, LaneFn, Mapa, Op, Slot, Space};
use crate::num::cvt::{Cvt, CvtType};
use crate::num::format::{BF16, E4M3, E5M2, F16, F32, F64, Round};

fn cvt_type(ty: ScalarType) -> Lowered<CvtType> {
    use ScalarType::*;
    Ok(match ty {
        U8 | S8 | U16 | S16 | U32 | S32 | U64 | S64 => CvtType::Int { bits: ty.bits(), signed: ty.is_signed() },
        F16 | F16x2 => CvtType::Float(self::F16),
        Bf16 | Bf16x2 => CvtType::Float(BF16),
        F32 => CvtType::Float(self::F32),
        F64 => CvtType::Float(self::F64),
        Tf32 => CvtType::Tf32,
        E4m3x2 | E4m3 => CvtType::Float(E4M3),
        E5m2x2 | E5m2 => CvtType::Float(E5M2),
        _ => return refuse(format!("conversions of type {ty} are not supported")),
    })
}

fn is_packed(ty: ScalarType) -> bool {
    use ScalarType::*;
    matches!(ty, F16x2 | Bf16x2 | E4m3x2 | E5m2x2)
}

impl Lowering<'_> {
    pub(super) fn convert(&mut self, convert: Convert, inst: &Source) -> Lowered<()> {
        match convert {
            Convert::Mov => self.mov(inst),
            Convert::Cvt => self.cvt(inst),
            Convert::CvtPack => {
                let ty = self.ty(inst, 0)?;
                let f = LaneFn::CvtPack { bits: ty.bits(), signed: ty.is_signed() };
                let d = self.value(self.operand(inst, 0)?, ScalarType::B32)?;
                let a = self.value(self.operand(inst, 1)?, ScalarType::S32)?;
                let b = self.value(self.operand(inst, 2)?, ScalarType::S32)?;
                let c = if ty.bits() == 8 { self.value(self.operand(inst, 3)?, ScalarType::B32)? } else { b };
                self.emit(Op::Lane { f, d, a, b, c, e: b });
                Ok(())
            }
            Convert::Cvta => {
                let ty = self.ty(inst, 0)?;
                let space = self.window_space(inst)?;
                let (d, a) = (self.value(self.operand(inst, 0)?, ty)?, self.value(self.operand(inst, 1)?, ty)?);
                match (space, d, a) {
                    (Space::Global, Slot::Wide(d), Slot::Wide(a)) => self.emit(Op::MovWide { d, a }),
                    (_, Slot::Wide(_), Slot::Wide(_)) => self.emit(Op::Cvta { to: inst.has(Flag::To), space, d, a }),
                    _ => return refuse("generic addresses have 64 bits"),
                }
                Ok(())
            }
            Convert::Isspacep => {
                let space = self.window_space(inst)?;
                let Some(d) = self.pred_result(self.operand(inst, 0)?)? else { return Ok(()) };
                let a = self.wide(self.operand(inst, 1)?, ScalarType::U64)?;
                self.emit(Op::Isspacep { space, d, a });
                Ok(())
            }
            Convert::Mapa => {
                let ty = self.ty(inst, 0)?;
                let d = self.value(self.operand(inst, 0)?, ty)?;
                let rank = Some(self.narrow(self.operand(inst, 2)?, ScalarType::U32)?);
                self.mapa(inst, d, rank)
            }
            Convert::Getctarank => {
                let d = self.value(self.operand(inst, 0)?, ScalarType::U32)?;
                self.mapa(inst, d, None)
            }
        }
    }

    fn mapa(&mut self, inst: &Source, d: Slot, rank: Option<u32>) -> Lowered<()> {
        let operand = self.operand(inst, 1)?;
        // A variable stands for its address in shared memory.
        let generic = inst.space().is_none() && !matches!(operand, Operand::Symbol(..));
        let a = self.value(operand, self.ty(inst, 0)?)?;
        if inst.space().is_none() && !generic {
            return refuse("a variable has a generic address only by `cvta`");
        }
        self.kernel.clusters = true;
        self.emit(Op::Mapa(Mapa { d, a, rank, generic }));
        Ok(())
    }

    fn window_space(&self, inst: &Source) -> Lowered<Space> {
        match inst.space() {
            Some(StateSpace::SharedCluster) => Ok(Space::Cluster),
            Some(space) => match space.base() {
                StateSpace::Global => Ok(Space::Global),
                StateSpace::Shared => Ok(Space::Shared),
                StateSpace::Local => Ok(Space::Local),
                StateSpace::Const => Ok(Space::Const),
                StateSpace::Param if self.is_in_frame(None) => Ok(Space::Local),
                StateSpace::Param => Ok(Space::Param),
                _ => refuse("this state space has no addresses"),
            },
            None => refuse("the state space is missing"),
        }
    }

    fn mov(&mut self, inst: &Source) -> Lowered<()> {
        let ty = self.ty(inst, 0)?;
        let (d, a) = (self.operand(inst, 0)?, self.operand(inst, 1)?);
        if ty == ScalarType::Pred {
            let Some(d) = self.pred_result(d)? else { return Ok(()) };
            let a = self.pred(a)?;
            self.emit(if a.negated {
                Op::PredLogic { op: crate::decode::op::Logic::And, d, a, b: a }
            } else {
                Op::MovPred { d, a: a.slot }
            });
            return Ok(());
        }
        if ty == ScalarType::B128 {
            return self.mov_128(d, a);
        }
        match (d, a) {
            (Operand::Vector(parts), whole) => {
                let a = self.value(whole, ty)?;
                let (parts, count, bits) = self.parts(parts, ty)?;
                self.emit(Op::Unpack { a, parts, count, bits });
                Ok(())
            }
            (whole, Operand::Vector(parts)) => {
                let d = self.value(whole, ty)?;
                let (parts, count, bits) = self.parts(parts, ty)?;
                self.emit(Op::Pack { d, parts, count, bits });
                Ok(())
            }
            _ => {
                let (d, a) = (self.value(d, ty)?, self.value(a, ty)?);
                match (d, a) {
                    (Slot::Narrow(d), Slot::Narrow(a)) => self.emit(Op::Mov { d, a }),
                    (Slot::Wide(d), Slot::Wide(a)) => self.emit(Op::MovWide { d, a }),
                    _ => return refuse("operands of different sizes"),
                }
                Ok(())
            }
        }
    }

    /// Halves of 64 bits, or four words, into a register of 128 bits or back.
    fn mov_128(&mut self, d: &Operand, a: &Operand) -> Lowered<()> {
        match (d, a) {
            (Operand::Vector(parts), whole) => {
                let pair = self.pair(whole)?;
                let each = parts.len() / 2;
                for (half, a) in pair.into_iter().enumerate() {
                    let parts = parts.get(half * each..(half + 1) * each).unwrap_or(&[]);
                    match (parts, a) {
                        ([Operand::Sink], _) => {}
                        ([part], Slot::Wide(a)) => {
                            let d = self.wide(part, ScalarType::B64)?;
                            self.emit(Op::MovWide { d, a });
                        }
                        (parts, a) => {
                            let (parts, count, bits) = self.parts(parts, ScalarType::B64)?;
                            self.emit(Op::Unpack { a, parts, count, bits });
                        }
                    }
                }
            }
            (whole, Operand::Vector(parts)) => {
                let pair = self.pair(whole)?;
                let each = parts.len() / 2;
                for (half, d) in pair.into_iter().enumerate() {
                    let parts = parts.get(half * each..(half + 1) * each).unwrap_or(&[]);
                    match (parts, d) {
                        ([part], Slot::Wide(d)) => {
                            let a = self.wide(part, ScalarType::B64)?;
                            self.emit(Op::MovWide { d, a });
                        }
                        (parts, d) => {
                            let (parts, count, bits) = self.parts(parts, ScalarType::B64)?;
                            self.emit(Op::Pack { d, parts, count, bits });
                        }
                    }
                }
            }
            (d, a) => {
                for (d, a) in self.pair(d)?.into_iter().zip(self.pair(a)?) {
                    match (d, a) {
                        (Slot::Wide(d), Slot::Wide(a)) => self.emit(Op::MovWide { d, a }),
                        _ => return refuse("operands of different sizes"),
                    }
                }
            }
        }
        Ok(())
    }

    /// The halves of a register of 128 bits.
    pub(super) fn pair(&mut self, operand: &Operand) -> Lowered<[Slot; 2]> {
        let pair = match operand {
            Operand::Reg(reg) => self.slots.pair(*reg),
            _ => None,
        };
        match pair {
            Some(pair) => Ok(pair),
            None => refuse("a register of 128 bits is expected"),
        }
    }

    /// The parts of a packed value in the data list: first entry, number, bits of each.
    fn parts(&mut self, parts: &[Operand], ty: ScalarType) -> Lowered<(u32, u8, u8)> {
        let count = parts.len() as u32;
        let bits = ty.bits().checked_div(count).unwrap_or(0);
        let part = match bits {
            8 => ScalarType::B8,
            16 => ScalarType::B16,
            32 => ScalarType::B32,
            _ => return refuse(format!("{count} parts of {ty}")),
        };
        let mut slots = Vec::new();
        for operand in parts {
            slots.push(if *operand == Operand::Sink { None } else { Some(self.value(operand, part)?) });
        }
        let first = self.kernel.data.len() as u32;
        self.kernel.data.extend(slots);
        Ok((first, count as u8, bits as u8))
    }

    fn cvt(&mut self, inst: &Source) -> Lowered<()> {
        use ScalarType::*;
        let (to_ty, from_ty) = (self.ty(inst, 0)?, self.ty(inst, 1)?);
        let (to, from) = (cvt_type(to_ty)?, cvt_type(from_ty)?);
        let integral =
            matches!(inst.find::<Rounding>(), Some(Rounding::Rni | Rounding::Rzi | Rounding::Rmi | Rounding::Rpi));
        let cvt = Cvt {
            to,
            from,
            round: self.rounding(inst),
            integral,
            ftz: inst.has(Flag::Ftz),
            sat: inst.has(Flag::Sat),
            relu: inst.has(Flag::Relu),
            satfinite: inst.has(Flag::Satfinite),
        };
        let d = self.value(self.operand(inst, 0)?, to_ty)?;
        let a = self.value(self.operand(inst, 1)?, from_ty)?;
        let plain = cvt.round == Round::Nearest && !(cvt.ftz || cvt.sat || cvt.relu || cvt.satfinite);
        if is_packed(to_ty) && !is_packed(from_ty) {
            let b = self.value(self.operand(inst, 2)?, from_ty)?;
            match (plain, to_ty, d, a, b) {
                (true, F16x2 | Bf16x2, Slot::Narrow(d), Slot::Narrow(a), Slot::Narrow(b)) => {
                    let half = if to_ty == F16x2 { FastCvt::F16x2FromF32 } else { FastCvt::Bf16x2FromF32 };
                    self.emit(Op::CvtFast { cvt: half, d, a, b });
                }
                _ => self.emit(Op::Lane { f: LaneFn::CvtTwo(cvt), d, a, b, c: a, e: a }),
            }
            return Ok(());
        }
        if is_packed(to_ty) {
            let f = LaneFn::CvtEach { cvt, from_bits: from_ty.bits() / 2, to_bits: to_ty.bits() / 2 };
            self.emit(Op::Lane { f, d, a, b: a, c: a, e: a });
            return Ok(());
        }
        let fast = match (to_ty, from_ty) {
            (U64 | S64, U32) if !cvt.sat => Some(FastCvt::ZeroExtend),
            (U64 | S64, S32) if !cvt.sat => Some(FastCvt::SignExtend),
            (U32 | S32, U64 | S64) if !cvt.sat => Some(FastCvt::Truncate),
            (F32, S32) if plain => Some(FastCvt::F32FromS32),
            (F32, U32) if plain => Some(FastCvt::F32FromU32),
            (F32, F16) if plain => Some(FastCvt::F32FromF16),
            (F32, Bf16) if plain => Some(FastCvt::F32FromBf16),
            (F16, F32) if plain => Some(FastCvt::F16FromF32),
            (Bf16, F32) if plain => Some(FastCvt::Bf16FromF32),
            _ => None,
        };
        match (fast, d, a) {
            // A register may be wider than the operand's type, so that the classes must fit too.
            (Some(FastCvt::ZeroExtend | FastCvt::SignExtend), Slot::Wide(d), Slot::Narrow(a))
            | (Some(FastCvt::Truncate), Slot::Narrow(d), Slot::Wide(a)) => {
                self.emit(Op::CvtFast { cvt: fast.unwrap_or(FastCvt::Truncate), d, a, b: a });
            }
            (Some(cvt), Slot::Narrow(d), Slot::Narrow(a)) if cvt != FastCvt::Truncate => {
                self.emit(Op::CvtFast { cvt, d, a, b: a })
            }
            _ => {
                self.emit(Op::Cvt { cvt, d, a });
                self.widen(inst, to_ty, d)?;
            }
        }
        Ok(())
    }

    /// A signed integer result is extended into a wider register (PTX manual 9.4.1).
    fn widen(&mut self, inst: &Source, ty: ScalarType, d: Slot) -> Lowered<()> {
        let Operand::Reg(reg) = self.operand(inst, 0)? else { return Ok(()) };
        let bits = self.slots.bits(*reg);
        if !ty.is_signed() || bits <= ty.bits() {
            return Ok(());
        }
        let to = CvtType::Int { bits, signed: true };
        let from = CvtType::Int { bits: ty.bits(), signed: true };
        let cvt = Cvt {
            to,
            from,
            round: Round::Nearest,
            integral: false,
            ftz: false,
            sat: false,
            relu: false,
            satfinite: false,
        };
        self.emit(Op::Cvt { cvt, d, a: d });
        Ok(())
    }
}

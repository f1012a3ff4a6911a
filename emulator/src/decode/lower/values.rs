//! Operands: the slot that holds a register, an immediate, a special register or an address.

use tilewright_ptx::{Inst as Source, Linkage, Operand, RegId, Rounding, ScalarType, SpecialReg, StateSpace, Symbol};

use super::{Lowered, Lowering, RESERVED_SHARED, Refusal, refuse};
use crate::decode::module::function_address;
use crate::decode::op::{self, Inst, Op, PredRef, Slot};
use crate::decode::slots::{Slots, immediate};
use crate::memory::region::GRID_WORKSPACE;
use crate::num::format::Round;

/// Where the part of the reserved shared memory for libraries begins: the manual names the offset and not its value.
const RESERVED_LIBRARY: u32 = 256;

impl Lowering<'_> {
    pub(super) fn emit(&mut self, op: Op) {
        self.kernel.code.push(Inst {
            guard: self.guard,
            once: false,
            row: None,
            step: 1,
            stretch: 0,
            part: None,
            number: 0,
            registers: [0; 4],
            op,
        });
        self.kernel.origins.push(self.origin.clone());
    }

    pub(super) fn operand<'i>(&self, inst: &'i Source, index: usize) -> Lowered<&'i Operand> {
        inst.operands.get(index).ok_or_else(|| Refusal(format!("operand {index} is missing")))
    }

    pub(super) fn reg(&mut self, reg: RegId) -> Lowered<Slot> {
        self.slots.register(reg).ok_or_else(|| Refusal("a register of 128 bits is not supported here".to_owned()))
    }

    pub(super) fn pred_reg(&mut self, reg: RegId) -> Lowered<u32> {
        match self.reg(reg)? {
            Slot::Pred(slot) => Ok(slot),
            _ => refuse("a predicate is expected"),
        }
    }

    /// A register, immediate, special register or address as a value of this type.
    pub(super) fn value(&mut self, operand: &Operand, ty: ScalarType) -> Lowered<Slot> {
        let bits = ty.bits();
        let constant = |slots: &mut Slots<'_>, value| {
            slots.constant(bits, value).ok_or_else(|| Refusal(format!("constants of {bits} bits are not supported")))
        };
        match operand {
            Operand::Reg(reg) => self.reg(*reg),
            Operand::Imm(value) => match immediate(*value, ty) {
                Some(value) => constant(&mut self.slots, value),
                None => refuse(format!("an immediate is not a value of type {ty}")),
            },
            Operand::Special(special) => self.special(*special, bits),
            Operand::Symbol(symbol, offset) => match self.frame_base(*symbol) {
                Some(base) => {
                    let address = self.place(*symbol)?.wrapping_add(*offset as u64);
                    let (Some(Slot::Wide(d)), Some(Slot::Wide(b))) =
                        (self.slots.temporary(64), self.slots.constant(64, address))
                    else {
                        return refuse("no room for a register");
                    };
                    self.emit(Op::Int2Wide { op: crate::lanes::int::Int2::Add, d, a: base, b });
                    match bits {
                        64 => Ok(Slot::Wide(d)),
                        _ => {
                            let Some(Slot::Narrow(low)) = self.slots.temporary(32) else {
                                return refuse("no room for a register");
                            };
                            self.emit(Op::CvtFast { cvt: op::FastCvt::Truncate, d: low, a: d, b: d });
                            Ok(Slot::Narrow(low))
                        }
                    }
                }
                None => {
                    let address = self.place(*symbol)?.wrapping_add(*offset as u64);
                    constant(&mut self.slots, address)
                }
            },
            _ => refuse("this kind of operand is not supported here"),
        }
    }

    pub(super) fn special(&mut self, special: SpecialReg, bits: u32) -> Lowered<Slot> {
        use SpecialReg::*;
        let which = match special {
            Clock | GlobaltimerLo => Some(op::Clock::Low),
            ClockHi | GlobaltimerHi => Some(op::Clock::High),
            Clock64 | Globaltimer => Some(op::Clock::Full),
            _ => None,
        };
        let slot = match (which, special) {
            (Some(which), _) => {
                let bits = special.ty().bits();
                let Some(d) = self.slots.temporary(bits) else {
                    return refuse("this special register is not supported");
                };
                self.emit(Op::Clock { d, which });
                d
            }
            // No graph launches this kernel.
            (None, Gridid | CurrentGraphExec) => self.slots.constant(64, 0).unwrap_or(Slot::Wide(0)),
            (None, ReservedSmemOffsetBegin | ReservedSmemOffset0) => self.constant_32(0)?,
            (None, ReservedSmemOffsetEnd | ReservedSmemOffsetCap) => self.constant_32(RESERVED_SHARED)?,
            (None, ReservedSmemOffset1) => self.constant_32(RESERVED_LIBRARY)?,
            // Counters of nothing, and of what the driver tells only where the workspace of a cooperative launch is.
            (None, Envreg1 | Envreg2) => {
                self.kernel.grid_workspace = true;
                let half = if special == Envreg1 { GRID_WORKSPACE >> 32 } else { GRID_WORKSPACE & 0xffff_ffff };
                self.slots.constant(32, half).unwrap_or(Slot::Narrow(0))
            }
            (None, other) if other.text().starts_with("%envreg") || other.text().starts_with("%pm") => {
                self.slots.constant(other.ty().bits(), 0).unwrap_or(Slot::Narrow(0))
            }
            // Kept as a number, and tested where it is asked for.
            (None, IsExplicitCluster) => {
                let (Slot::Narrow(a), Some(Slot::Narrow(b)), Some(Slot::Pred(d))) =
                    (self.slots.special(special), self.slots.constant(32, 0), self.slots.temporary(1))
                else {
                    return refuse("no room for a predicate");
                };
                let test = op::Comparison::Int(crate::lanes::int::IntCompare::Ne, crate::lanes::int::Width::W32);
                self.emit(Op::Setp { test, d: Some(d), p: None, a, b, combine: None });
                Slot::Pred(d)
            }
            (None, _) => self.slots.special(special),
        };
        // A 64-bit read of a 32-bit special register extends it.
        match (slot, bits) {
            (Slot::Narrow(a), 64) => {
                let Some(Slot::Wide(d)) = self.slots.temporary(64) else { return refuse("no room for a register") };
                self.emit(Op::CvtFast { cvt: op::FastCvt::ZeroExtend, d, a, b: a });
                Ok(Slot::Wide(d))
            }
            (Slot::Wide(a), 2..=32) => {
                let Some(Slot::Narrow(d)) = self.slots.temporary(32) else { return refuse("no room for a register") };
                self.emit(Op::CvtFast { cvt: op::FastCvt::Truncate, d, a, b: a });
                Ok(Slot::Narrow(d))
            }
            _ => Ok(slot),
        }
    }

    fn constant_32(&mut self, value: u32) -> Lowered<Slot> {
        self.slots.constant(32, u64::from(value)).ok_or_else(|| Refusal("no room for a constant".to_owned()))
    }

    /// The offset of a variable in its state space.
    pub(super) fn place(&self, symbol: Symbol) -> Lowered<u64> {
        match (self.places.get(&symbol), symbol) {
            (Some(place), _) => Ok(*place),
            (None, Symbol::Function(id)) => Ok(function_address(id)),
            (None, Symbol::Global(id)) => {
                let variable = self.module.variables.get(id.index());
                let name = variable.map_or("?", |v| v.name.as_str());
                match variable.map(|v| v.linkage) {
                    Some(Linkage::Extern) => refuse(format!("variable `{name}` is only declared in this module")),
                    _ => refuse(format!("variable `{name}` has no place in this kernel")),
                }
            }
            _ => refuse("the address of this symbol is not supported"),
        }
    }

    /// State space of a variable.
    pub(super) fn space_of(&self, symbol: Symbol) -> Option<StateSpace> {
        match symbol {
            Symbol::Global(id) => self.module.variables.get(id.index()).map(|v| v.space.base()),
            Symbol::Local(id) => self.function.variables.get(id.index()).map(|v| v.space.base()),
            Symbol::Param(_) | Symbol::Return(_) => Some(StateSpace::Param),
            Symbol::Function(_) => None,
        }
    }

    pub(super) fn narrow(&mut self, operand: &Operand, ty: ScalarType) -> Lowered<u32> {
        match self.value(operand, ty)? {
            Slot::Narrow(slot) => Ok(slot),
            _ => refuse("an operand of at most 32 bits is expected"),
        }
    }

    pub(super) fn wide(&mut self, operand: &Operand, ty: ScalarType) -> Lowered<u32> {
        match self.value(operand, ty)? {
            Slot::Wide(slot) => Ok(slot),
            _ => refuse("an operand of 64 bits is expected"),
        }
    }

    /// A source predicate.
    pub(super) fn pred(&mut self, operand: &Operand) -> Lowered<PredRef> {
        match operand {
            Operand::NotReg(reg) => Ok(PredRef { slot: self.pred_reg(*reg)?, negated: true }),
            other => match self.value(other, ScalarType::Pred)? {
                Slot::Pred(slot) => Ok(PredRef { slot, negated: false }),
                _ => refuse("a predicate is expected"),
            },
        }
    }

    /// A result predicate; a sink drops it.
    pub(super) fn pred_result(&mut self, operand: &Operand) -> Lowered<Option<u32>> {
        match operand {
            Operand::Sink => Ok(None),
            Operand::Reg(reg) => self.pred_reg(*reg).map(Some),
            _ => refuse("a predicate register is expected"),
        }
    }

    pub(super) fn rounding(&self, inst: &Source) -> Round {
        match inst.find::<Rounding>() {
            None | Some(Rounding::Rn | Rounding::Rni | Rounding::Rs) => Round::Nearest,
            Some(Rounding::Rna) => Round::NearestAway,
            Some(Rounding::Rz | Rounding::Rzi) => Round::Zero,
            Some(Rounding::Rm | Rounding::Rmi) => Round::Down,
            Some(Rounding::Rp | Rounding::Rpi) => Round::Up,
        }
    }

    pub(super) fn ty(&self, inst: &Source, index: usize) -> Lowered<ScalarType> {
        inst.ty(index).ok_or_else(|| Refusal("the type is missing".to_owned()))
    }
}

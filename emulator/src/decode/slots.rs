//! Numbering: registers by class, and a slot for every immediate and special register that the kernel uses.

use tilewright_ptx::{Function, Immediate, RegId, ScalarType, SpecialReg};
use tilewright_sorted::SortedMap;

use super::Kernel;
use super::op::Slot;
use crate::num::exact::convert;
use crate::num::format::{BF16, F16, F32, F64, Round};

/// The slots of a kernel while it is lowered.
pub(crate) struct Slots<'a> {
    function: &'a Function,
    registers: Vec<Option<Slot>>,
    /// Registers of 128 bits: their halves, low one first.
    pairs: SortedMap<RegId, [Slot; 2]>,
    constants: SortedMap<(u8, u64), Slot>,
    /// These are few.
    specials: Vec<(SpecialReg, u32)>,
    /// Offset, bytes, whether sign-extended, whether wide.
    params: Vec<((u32, u8, bool, bool), Slot)>,
    narrow: u32,
    wide: u32,
    preds: u32,
}

/// The bits of an immediate in an operand of this type; `None` for a number that has no such value (a float for an
/// integer).
pub(crate) fn immediate(value: Immediate, ty: ScalarType) -> Option<u64> {
    let bits = ty.bits().min(64);
    let ones = u64::MAX >> (64 - bits);
    let float = match ty {
        ScalarType::F16 => Some(F16),
        ScalarType::Bf16 => Some(BF16),
        ScalarType::F32 | ScalarType::Tf32 => Some(F32),
        ScalarType::F64 => Some(F64),
        _ => None,
    };
    match (value, float) {
        // As it is written: a conversion would change NaNs.
        (Immediate::F32(v), Some(F32)) => Some(u64::from(v)),
        (Immediate::F64(v), Some(F64)) => Some(v),
        (Immediate::F32(v), Some(to)) => Some(convert(F32, to, Round::Nearest, u64::from(v))),
        (Immediate::F64(v), Some(to)) => Some(convert(F64, to, Round::Nearest, v)),
        // Untyped operands take the bits of a constant of their own size.
        (Immediate::F32(v), None) if bits == 32 => Some(u64::from(v)),
        (Immediate::F64(v), None) if bits == 64 => Some(v),
        (Immediate::F64(v), None) if bits == 32 => Some(convert(F64, F32, Round::Nearest, v)),
        (Immediate::F32(_) | Immediate::F64(_), None) => None,
        (integer, _) => integer.int_bits().map(|v| if ty == ScalarType::Pred { u64::from(v != 0) } else { v & ones }),
    }
}

impl<'a> Slots<'a> {
    pub fn new(function: &'a Function) -> Self {
        Slots {
            function,
            registers: vec![None; function.regs.len()],
            pairs: SortedMap::new(),
            constants: SortedMap::new(),
            specials: Vec::new(),
            params: Vec::new(),
            narrow: 0,
            wide: 0,
            preds: 0,
        }
    }

    /// Turns to another function, whose registers are others.
    pub fn enter(&mut self, function: &'a Function) {
        self.function = function;
        self.pairs.clear();
        self.registers.clear();
        self.registers.resize(function.regs.len(), None);
    }

    /// The slots of the current function's registers so far, each once.
    pub fn in_use(&self) -> Vec<Slot> {
        let whole = self.registers.iter().copied().flatten();
        let mut slots: Vec<Slot> = whole.chain(self.pairs.values().flatten().copied()).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    fn fresh(&mut self, bits: u32) -> Option<Slot> {
        let (counter, make): (_, fn(u32) -> Slot) = match bits {
            1 => (&mut self.preds, Slot::Pred),
            2..=32 => (&mut self.narrow, Slot::Narrow),
            64 => (&mut self.wide, Slot::Wide),
            _ => return None,
        };
        *counter += 1;
        Some(make(*counter - 1))
    }

    /// The slot of a register; `None` for one of 128 bits.
    pub fn register(&mut self, reg: RegId) -> Option<Slot> {
        if let Some(slot) = self.registers.get(reg.index()).copied().flatten() {
            return Some(slot);
        }
        let slot = self.fresh(self.function.regs.ty(reg)?.bits())?;
        self.registers[reg.index()] = Some(slot);
        Some(slot)
    }

    /// The slots of the halves of a register of 128 bits; `None` for another one.
    pub fn pair(&mut self, reg: RegId) -> Option<[Slot; 2]> {
        if self.bits(reg) != 128 {
            return None;
        }
        if let Some(pair) = self.pairs.get(&reg) {
            return Some(*pair);
        }
        let pair = [self.fresh(64)?, self.fresh(64)?];
        self.pairs.insert(reg, pair);
        Some(pair)
    }

    /// Declared width of a register.
    pub fn bits(&self, reg: RegId) -> u32 {
        self.function.regs.ty(reg).map_or(32, ScalarType::bits)
    }

    /// The slot of a constant of this many bits: 1, up to 32, or 64.
    pub fn constant(&mut self, bits: u32, value: u64) -> Option<Slot> {
        let class = match bits {
            1 => 1,
            2..=32 => 32,
            _ => 64,
        };
        if let Some(slot) = self.constants.get(&(class, value)) {
            return Some(*slot);
        }
        let slot = self.fresh(u32::from(class))?;
        self.constants.insert((class, value), slot);
        Some(slot)
    }

    /// The slot of a special register that does not change while a warp runs.
    pub fn special(&mut self, special: SpecialReg) -> Slot {
        if let Some((_, slot)) = self.specials.iter().find(|(known, _)| *known == special) {
            return Slot::Narrow(*slot);
        }
        self.specials.push((special, self.narrow));
        self.narrow += 1;
        Slot::Narrow(self.narrow - 1)
    }

    /// The slot of a parameter's value, for registers like `like`.
    pub fn param(&mut self, offset: u32, bytes: u8, signed: bool, like: Slot) -> Option<Slot> {
        let wide = matches!(like, Slot::Wide(_));
        let key = (offset, bytes, signed, wide);
        if let Some((_, slot)) = self.params.iter().find(|(known, _)| *known == key) {
            return Some(*slot);
        }
        let slot = self.fresh(if wide { 64 } else { 32 })?;
        self.params.push((key, slot));
        Some(slot)
    }

    /// A slot for a value that no register of the program holds.
    pub fn temporary(&mut self, bits: u32) -> Option<Slot> {
        self.fresh(bits)
    }

    /// Writes the numbers into the kernel.
    pub fn finish(self, kernel: &mut Kernel) {
        kernel.narrow = self.narrow as usize;
        kernel.wide = self.wide as usize;
        kernel.preds = self.preds as usize;
        kernel.constants = self.constants.into_iter().map(|((_, value), slot)| (slot, value)).collect();
        kernel.param_slots =
            self.params.into_iter().map(|((offset, bytes, signed, _), slot)| (slot, offset, bytes, signed)).collect();
        kernel.specials = self.specials;
    }
}

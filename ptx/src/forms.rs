//! Forms that were chosen for instructions of a function. Most are like one before: the mnemonic is the same, and
//! operands are of the same kinds and types.

use tilewright_sorted::SortedMap;

use crate::builder::{BuildError, chosen};
use crate::check::check_operands;
use crate::inst::Inst;
use crate::module::RegTable;
use crate::operand::{AddressBase, Immediate, Operand, RegId};
use crate::version::Requirement;

/// Most operands of an instruction that is looked up.
const MOST_OPERANDS: usize = 7;
/// Constants from 0 that every integer type has.
const SMALL: i64 = 128;

/// The kinds and types of an instruction's operands, as one number; whether constants have to be looked at as well.
struct Kinds {
    number: u128,
    looks: bool,
}

impl Kinds {
    /// None if there are others than most instructions have.
    fn of(operands: &[Operand], regs: &RegTable) -> Option<Self> {
        if operands.len() > MOST_OPERANDS {
            return None;
        }
        let (mut number, mut looks, mut at) = (1_u128, false, 0);
        // A loop: this runs for every instruction, and a debug build calls what iterators do.
        while at < operands.len() {
            let kind = match &operands[at] {
                Operand::Reg(reg) => class(*reg, regs)?,
                Operand::Imm(Immediate::Int(value)) => {
                    looks |= *value < 0 || *value >= SMALL;
                    32
                }
                Operand::Imm(Immediate::F32(_)) => 33,
                Operand::Imm(Immediate::F64(_)) => 34,
                Operand::Label(_) => 35,
                Operand::Address(address) => match address.base {
                    AddressBase::Reg(reg) => 64 + class(reg, regs)?,
                    _ => return None,
                },
                Operand::Vector(elements) => 4096 + 256 * vector(elements, regs)? + elements.len() as u128,
                _ => return None,
            };
            number = number << 16 | kind;
            at += 1;
        }
        Some(Self { number, looks })
    }
}

/// The class of a register.
fn class(reg: RegId, regs: &RegTable) -> Option<u128> {
    regs.get(reg).map(|register| register.name.into())
}

/// The class that all registers of a short vector have.
fn vector(elements: &[Operand], regs: &RegTable) -> Option<u128> {
    let (Some(Operand::Reg(first)), true) = (elements.first(), elements.len() < 256) else { return None };
    let (own, mut at) = (class(*first, regs)?, 1);
    while at < elements.len() {
        let Operand::Reg(reg) = &elements[at] else { return None };
        if class(*reg, regs)? != own {
            return None;
        }
        at += 1;
    }
    Some(own)
}

/// The instructions of a function so far.
#[derive(Clone, Debug)]
pub(crate) struct Forms {
    /// Of each mnemonic one for each list of kinds, without operands.
    known: SortedMap<String, Vec<(u128, Inst)>>,
    /// What all of them need.
    pub need: Requirement,
}

impl Forms {
    pub fn new() -> Self {
        Self { known: SortedMap::new(), need: Requirement::ANCIENT }
    }

    /// An instruction with registers of a table, whose prefixes are one for each class.
    pub fn inst(&mut self, mnemonic: &str, operands: Vec<Operand>, regs: &RegTable) -> Result<Inst, BuildError> {
        let kinds = Kinds::of(&operands, regs);
        if let Some(kinds) = &kinds
            && let Some(known) = self.known.get(mnemonic)
            && let Some((_, own)) = known.iter().find(|one| one.0 == kinds.number)
            && (!kinds.looks || check_operands(own.form(), &own.modifiers, &operands, Some(regs)).is_ok())
        {
            let Inst { op, form, ref modifiers, .. } = *own;
            return Ok(Inst { guard: None, op, form, modifiers: modifiers.clone(), operands, line: 0 });
        }
        let inst = chosen(mnemonic, operands, Some(regs))?;
        self.need = self.need.and(inst.requirement());
        if let Some(kinds) = kinds {
            let one = Inst { operands: Vec::new(), ..inst.clone() };
            self.known.entry(mnemonic.to_owned()).or_default().push((kinds.number, one));
        }
        Ok(inst)
    }
}

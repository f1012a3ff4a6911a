//! Forms that were chosen for instructions. Most are like one before: the mnemonic is the same, and operands are of the
//! same kinds and types. A function looks at what it chose itself, and then at what any function did.

use std::sync::{Mutex, PoisonError};

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
                Operand::Reg(reg) => of_type(*reg, regs)?,
                Operand::Imm(Immediate::Int(value)) => {
                    looks |= *value < 0 || *value >= SMALL;
                    TYPES
                }
                Operand::Imm(Immediate::F32(_)) => TYPES + 1,
                Operand::Imm(Immediate::F64(_)) => TYPES + 2,
                Operand::Label(_) => TYPES + 3,
                Operand::Address(address) => match address.base {
                    AddressBase::Reg(reg) => 2 * TYPES + of_type(reg, regs)?,
                    _ => return None,
                },
                Operand::Vector(elements) => (3 * TYPES + vector(elements, regs)?) << 8 | elements.len() as u128,
                _ => return None,
            };
            number = number << 16 | kind;
            at += 1;
        }
        Some(Self { number, looks })
    }
}

/// A number above those of all types.
const TYPES: u128 = 64;

/// The number of a register's type.
fn of_type(reg: RegId, regs: &RegTable) -> Option<u128> {
    regs.get(reg).map(|register| register.ty as u128)
}

/// The number of the type that all registers of a short vector have.
fn vector(elements: &[Operand], regs: &RegTable) -> Option<u128> {
    let (Some(Operand::Reg(first)), true) = (elements.first(), elements.len() < 256) else { return None };
    let (own, mut at) = (of_type(*first, regs)?, 1);
    while at < elements.len() {
        let Operand::Reg(reg) = &elements[at] else { return None };
        if of_type(*reg, regs)? != own {
            return None;
        }
        at += 1;
    }
    Some(own)
}

/// Of each mnemonic an instruction for each list of kinds, without operands.
#[derive(Clone, Debug)]
struct Known(SortedMap<String, Vec<(u128, Inst)>>);

/// What functions chose, on all threads: a few hundred instructions of the table's forms.
static CHOSEN: Mutex<Known> = Mutex::new(Known(SortedMap::new()));

impl Known {
    /// The instruction with these operands, if one like it is known.
    fn with(&self, mnemonic: &str, operands: &mut Vec<Operand>, kinds: &Kinds, regs: &RegTable) -> Option<Inst> {
        let (_, own) = self.0.get(mnemonic)?.iter().find(|one| one.0 == kinds.number)?;
        if kinds.looks && check_operands(own.form(), &own.modifiers, operands, Some(regs)).is_err() {
            return None;
        }
        let Inst { op, form, ref modifiers, .. } = *own;
        let operands = std::mem::take(operands);
        Some(Inst { guard: None, op, form, modifiers: modifiers.clone(), operands, line: 0 })
    }

    fn add(&mut self, mnemonic: &str, kinds: &Kinds, inst: &Inst) {
        let Inst { op, form, ref modifiers, .. } = *inst;
        let like = Inst { guard: None, op, form, modifiers: modifiers.clone(), operands: Vec::new(), line: 0 };
        self.0.entry(mnemonic.to_owned()).or_default().push((kinds.number, like));
    }
}

/// The instructions of a function so far.
#[derive(Clone, Debug)]
pub(crate) struct Forms {
    known: Known,
    /// What all of them need.
    pub need: Requirement,
}

impl Forms {
    pub fn new() -> Self {
        Self { known: Known(SortedMap::new()), need: Requirement::ANCIENT }
    }

    /// An instruction with registers of a table, whose prefixes are one for each class.
    pub fn inst(&mut self, mnemonic: &str, mut operands: Vec<Operand>, regs: &RegTable) -> Result<Inst, BuildError> {
        let Some(kinds) = Kinds::of(&operands, regs) else { return self.first(chosen(mnemonic, operands, Some(regs))) };
        if let Some(inst) = self.known.with(mnemonic, &mut operands, &kinds, regs) {
            return Ok(inst);
        }
        let of_all = || CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
        let like = of_all().with(mnemonic, &mut operands, &kinds, regs);
        let is_known = like.is_some();
        let inst = self.first(like.map_or_else(|| chosen(mnemonic, operands, Some(regs)), Ok))?;
        self.known.add(mnemonic, &kinds, &inst);
        if !is_known {
            of_all().add(mnemonic, &kinds, &inst);
        }
        Ok(inst)
    }

    /// The first of its kind in the function.
    fn first(&mut self, inst: Result<Inst, BuildError>) -> Result<Inst, BuildError> {
        let inst = inst?;
        self.need = self.need.and(inst.requirement());
        Ok(inst)
    }
}

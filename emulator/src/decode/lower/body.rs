//! The statements of one function in their order: labels, branches, source lines, and around every instruction what
//! is known of the registers that it reads and writes.

use tilewright_ptx::isa::Op as Family;
use tilewright_ptx::{Flag, Inst as Source, Item as ModuleItem, Loc, Operand, RegId, ScalarType, Statement};

use super::{Lowered, Lowering, Refusal};
use crate::counters::Class;
use crate::decode::layout::unsupported;
use crate::decode::op::{Op, PredRef};
use crate::decode::written::{self, Item, Own, completes, joins, passes_on, unproved};
use crate::decode::{SourcePlace, Tracked, guess, work};
use crate::error::Error;
use crate::report::Inlined;

/// Most decoded instructions of a kernel: the race detector packs their numbers.
const MOST_CODE: usize = 1 << crate::shadow::cell::PC_BITS;

/// Most calls around a position that are told.
const MOST_INLINED: usize = 64;

impl Lowering<'_> {
    /// Lowers the statements of the current function.
    pub(super) fn body(&mut self) -> Result<(), Error> {
        let function = self.function;
        let mut flat = Vec::new();
        flatten(&function.body, &mut flat);
        for statement in &flat {
            if let Statement::BranchTargets { label, targets } = statement {
                self.tables.insert(*label, targets.clone());
            }
        }
        let items: Vec<Item<'_>> = flat
            .iter()
            .filter_map(|statement| match statement {
                Statement::Inst(inst) => Some(Item::Inst(inst)),
                Statement::Label(label) => Some(Item::Label(*label)),
                _ => None,
            })
            .collect();
        let tables = &self.tables;
        let targets = |inst: &Source| {
            let mut labels = Vec::new();
            for operand in &inst.operands {
                if let Operand::Label(label) = operand {
                    match tables.get(label) {
                        Some(list) => labels.extend(list),
                        None => labels.push(*label),
                    }
                }
            }
            labels
        };
        let unproved = unproved(&items, function.regs.len(), self.own(), &targets);
        let first = self.kernel.tracked.len() as u32;
        for reg in unproved.reads.iter().flatten().chain(&unproved.offered) {
            let next = first + self.tracked.len() as u32;
            self.tracked.entry(*reg).or_insert(next);
        }
        let mut tracked: Vec<_> = self.tracked.iter().map(|(reg, index)| (*index, *reg)).collect();
        tracked.sort_unstable();
        for (_, reg) in tracked {
            let name = function.regs.name(reg);
            // What follows a register of 128 bits is the state of its lower half.
            let Some(slot) = self.slots.register(reg).or_else(|| self.slots.pair(reg).map(|pair| pair[0])) else {
                return Err(unsupported(function.line, format!("register {name}"), "", "it has no size of a register"));
            };
            let ones = if self.slots.bits(reg) <= 16 { 0xffff } else { u32::MAX };
            self.kernel.tracked.push(Tracked { name, slot, ones });
        }
        let insts: Vec<&Source> =
            items.iter().filter_map(|item| if let Item::Inst(inst) = item { Some(*inst) } else { None }).collect();
        self.matrix_registers(&insts).map_err(|Refusal(why)| {
            unsupported(function.line, format!("function `{}`", function.name), "9.7.15", why)
        })?;
        let number = self.module.functions.iter().position(|other| std::ptr::eq(other, function)).unwrap_or(0);
        let guesses = guess::guesses(&insts, |reg| self.kept.contains(&(number, reg)));
        let (mut index, mut number) = (0, 0);
        for statement in &flat {
            match statement {
                Statement::Label(label) => {
                    self.labels.insert(*label, self.kernel.code.len() as u32);
                    index += 1;
                }
                Statement::Inst(inst) => {
                    self.guess = guesses.contains(&number);
                    self.instruction(inst, &unproved.reads[index])?;
                    (index, number) = (index + 1, number + 1);
                }
                Statement::Loc(loc) => self.source(loc),
                _ => {}
            }
        }
        // Falling off the end returns.
        self.guard = None;
        self.origin.class = Class::Control;
        self.origin.mnemonic = self.mnemonic("end of the function".to_owned());
        self.emit(if self.frame.is_some() { Op::Return } else { Op::Exit });
        if self.kernel.code.len() > MOST_CODE {
            return Err(unsupported(
                function.line,
                format!("kernel `{}`", self.kernel.name),
                "",
                format!("it has more than {MOST_CODE} instructions"),
            ));
        }
        self.fix_branches()
    }

    /// Fills in the targets of branches.
    fn fix_branches(&mut self) -> Result<(), Error> {
        let function = self.function;
        let missing = |why: &str| unsupported(function.line, format!("function `{}`", function.name), "", why);
        for (at, label) in std::mem::take(&mut self.fixes) {
            let target = self.labels.get(&label).ok_or_else(|| missing("a branch has no target"))?;
            if let Op::Branch { target: field, .. } = &mut self.kernel.code[at].op {
                *field = *target;
            }
        }
        for (at, label) in std::mem::take(&mut self.table_fixes) {
            let list = self.tables.get(&label).cloned().unwrap_or_default();
            let resolved = (self.kernel.targets.len() as u32, list.len() as u32);
            for label in list {
                let target =
                    self.labels.get(&label).ok_or_else(|| missing("a branch table names a label without a place"))?;
                self.kernel.targets.push(*target);
            }
            if let Op::BranchTable { first, count, .. } = &mut self.kernel.code[at].op {
                (*first, *count) = resolved;
            }
        }
        Ok(())
    }

    fn mnemonic(&mut self, text: String) -> u32 {
        if let Some(index) = self.mnemonics.get(&text) {
            return *index;
        }
        let index = self.kernel.mnemonics.len() as u32;
        self.kernel.mnemonics.push(text.clone());
        self.mnemonics.insert(text, index);
        index
    }

    /// A position of the source. Where it was inlined is a position, too, which compilers give before with the place
    /// where that was inlined.
    fn source(&mut self, loc: &Loc) {
        let module = self.module;
        let file = |file: u32| {
            let name = module.items.iter().find_map(|item| match item {
                ModuleItem::File(f) if f.index == file => Some(f.name.clone()),
                _ => None,
            });
            name.unwrap_or_else(|| format!("file {file}"))
        };
        let named = |(label, offset): &(String, i64)| module.strings.get(label, *offset).map(str::to_owned);
        let call = loc.inlined.as_deref();
        let function = call.and_then(|call| call.function.as_ref()).and_then(named).unwrap_or_default();
        let at = call.map(|call| call.at);
        self.inlined.insert((loc.file, loc.line, loc.column), (function.clone(), at));
        let (mut inlined, mut next) = (Vec::new(), at.map(|at| (function, at)));
        while let Some((function, at)) = next.filter(|_| inlined.len() < MOST_INLINED) {
            inlined.push(Inlined { function, at: (file(at.0), at.1, at.2) });
            next = self.inlined.get(&at).and_then(|(function, outer)| Some((function.clone(), (*outer)?)));
        }
        let place = SourcePlace { at: (file(loc.file), loc.line, loc.column), inlined };
        let next = self.kernel.sources.len() as u32 + 1;
        let index = *self.sources.entry(place.clone()).or_insert(next);
        if index == next {
            self.kernel.sources.push(place);
        }
        self.origin.source = index;
    }

    fn instruction(&mut self, inst: &Source, unproved: &[RegId]) -> Result<(), Error> {
        self.origin.line = inst.line;
        self.origin.mnemonic = self.mnemonic(inst.mnemonic());
        self.origin.class = class(inst);
        self.guard = None;
        let explain = |Refusal(why): Refusal| unsupported(inst.line, inst.mnemonic(), inst.op.desc().section, why);
        let guard = match inst.guard {
            None => None,
            Some(guard) => Some(PredRef { slot: self.pred_reg(guard.reg).map_err(explain)?, negated: guard.negated }),
        };
        // The guard itself is read by every lane, the operands where it holds.
        let mut sources = Vec::new();
        let local = self.own().accesses(inst);
        let (reads, writes) = written::uses(inst);
        let stores_local = local && writes.is_empty();
        let all_lack = reads.iter().all(|reg| unproved.contains(reg));
        for reg in unproved {
            let is_guard = inst.guard.is_some_and(|g| g.reg == *reg);
            let register = self.tracked[reg];
            let is_address = inst.operands.first().is_some_and(
                |operand| matches!(operand, Operand::Address(a) if a.base == tilewright_ptx::AddressBase::Reg(*reg)),
            );
            if !is_guard && !is_address && stores_local {
                continue;
            }
            if !is_guard && passes_on(inst) {
                sources.push((*reg, register));
                continue;
            }
            self.guard = if is_guard { None } else { guard };
            self.emit(Op::CheckInit { register });
        }
        self.guard = guard;
        if stores_local {
            self.stored_undefined(inst, unproved);
        }
        self.touches(inst);
        let first = self.kernel.code.len();
        self.lower(inst).map_err(explain)?;
        // Once, however many decoded instructions it takes.
        if let Some(at) = self.kernel.origins.get_mut(first) {
            let product = match &self.kernel.code[first].op {
                Op::Mma(mma) => Some(&mma.product),
                Op::Wgmma { site, .. } => Some(&self.kernel.wgmmas[*site as usize].product),
                _ => None,
            };
            at.work = work::of(inst, product).map(Box::new);
        }
        for (element, reg) in writes.into_iter().enumerate() {
            let Some(register) = self.tracked.get(&reg).copied() else { continue };
            let flow = match local {
                true => Op::LoadedInit { register, element: element as u32 },
                false if joins(inst) && (!all_lack || completes(inst)) => Op::MarkInit { register },
                false => self.flow(inst, register, &sources).map_err(explain)?,
            };
            self.emit(flow);
        }
        Ok(())
    }

    fn own(&self) -> Own {
        Own { local: self.local_memory, function: self.frame.is_some(), shared: self.kernel.follows }
    }

    /// Says which elements of the store that follows are undefined in which lanes.
    fn stored_undefined(&mut self, inst: &Source, unproved: &[RegId]) {
        let Some(data) = inst.operands.get(1) else { return };
        let mut elements = Vec::new();
        let one = std::slice::from_ref(data);
        for element in if let Operand::Vector(elements) = data { elements.as_slice() } else { one } {
            elements.push(match element {
                Operand::Reg(reg) if unproved.contains(reg) => self.tracked.get(reg).copied().unwrap_or(u32::MAX),
                _ => u32::MAX,
            });
        }
        if elements.iter().any(|register| *register != u32::MAX) {
            let (first, count) = (self.kernel.flows.len() as u32, elements.len() as u32);
            self.kernel.flows.extend(elements);
            self.emit(Op::StoredInit { first, count });
        }
    }

    /// How a result is defined, given the operands that may not be.
    fn flow(&mut self, inst: &Source, register: u32, sources: &[(RegId, u32)]) -> Lowered<Op> {
        if sources.is_empty() {
            return Ok(Op::MarkInit { register });
        }
        if let (Family::Compare(tilewright_ptx::isa::Compare::Selp), [_, a, b, c]) = (inst.op, &inst.operands[..]) {
            let number = |operand: &Operand| match operand {
                Operand::Reg(reg) => sources.iter().find(|source| source.0 == *reg).map(|source| source.1),
                _ => None,
            };
            let condition = match c {
                Operand::Reg(reg) | Operand::NotReg(reg) => sources.iter().any(|source| source.0 == *reg),
                _ => false,
            };
            if !condition {
                let p = self.pred(c)?;
                let (a, b) = (number(a).unwrap_or(u32::MAX), number(b).unwrap_or(u32::MAX));
                return Ok(Op::FlowSelect { register, p, a, b });
            }
        }
        let first = self.kernel.flows.len() as u32;
        self.kernel.flows.extend(sources.iter().map(|source| source.1));
        Ok(Op::FlowInit { register, first, count: sources.len() as u32, any: joins(inst) })
    }
}

/// All statements, those of nested scopes included.
fn flatten<'a>(statements: &'a [Statement], out: &mut Vec<&'a Statement>) {
    for statement in statements {
        match statement {
            Statement::Scope(inner) => flatten(inner, out),
            other => out.push(other),
        }
    }
}

fn class(inst: &Source) -> Class {
    let types: Vec<ScalarType> = inst.types().collect();
    match inst.op {
        Family::Memory(_) | Family::Atomic(_) | Family::AsyncCopy(_) => Class::Memory,
        Family::Synchronization(_) | Family::Warp(_) => Class::Sync,
        Family::Matrix(op) if op == tilewright_ptx::isa::Matrix::Mma || op == tilewright_ptx::isa::Matrix::WmmaMma => {
            Class::Tensor
        }
        Family::Matrix(_) => Class::Memory,
        Family::Control(_) => Class::Control,
        Family::Convert(tilewright_ptx::isa::Convert::Mov) => Class::Integer,
        Family::Convert(_) => Class::Convert,
        Family::Math(_) if inst.has(Flag::Approx) => Class::Special,
        _ if types.contains(&ScalarType::F64) => Class::Double,
        _ if types.iter().any(|ty| ty.is_float()) => Class::Float,
        _ => Class::Integer,
    }
}

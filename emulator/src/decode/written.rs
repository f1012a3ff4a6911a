//! Which reads of registers are provably preceded by a write on every path. The others are followed when the kernel
//! runs.
//!
//! A forward analysis over basic blocks: a register is defined after an instruction that writes it without a guard, or
//! if it was on every way in. Guarded writes prove nothing. An instruction that only computes passes on what its
//! operands lack: compilers move and combine values that no thread uses in the end (Triton shuffles what guarded loads
//! left out), so that a finding is made where such a value becomes an address, a condition or data in memory. A
//! register that no instruction of the function writes is reported where it is read.

use tilewright_ptx::{Inst, LabelId, Operand, RegId};

/// Most register-block pairs that are analysed; beyond it every read is checked at run time.
const LIMIT: usize = 1 << 28;

/// A statement that matters here.
pub(crate) enum Item<'a> {
    Inst(&'a Inst),
    Label(LabelId),
}

/// The registers an instruction reads, guard included, and those it writes.
pub(crate) fn uses(inst: &Inst) -> (Vec<RegId>, Vec<RegId>) {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    if let Some(guard) = inst.guard {
        reads.push(guard.reg);
    }
    // Results come first in every form of the table.
    let has_result = inst.form().operands.first().is_some_and(|spec| spec.written);
    for (index, operand) in inst.operands.iter().enumerate() {
        let written = index == 0 && has_result && !matches!(operand, Operand::Address(_));
        operand.for_each_reg(&mut |reg| if written { writes.push(reg) } else { reads.push(reg) });
    }
    (reads, writes)
}

/// Whether the instruction passes on undefined operands instead of needing them.
pub(crate) fn passes_on(inst: &Inst) -> bool {
    use tilewright_ptx::isa::Op;
    matches!(inst.op, Op::Arith(_) | Op::Logic(_) | Op::Compare(_) | Op::Convert(_) | Op::Math(_) | Op::Video(_))
}

/// Whether the result is defined if one of the operands is: what puts values together from parts, some of which may be
/// the padding of a structure.
pub(crate) fn joins(inst: &Inst) -> bool {
    use tilewright_ptx::isa::{Convert, Logic, Op};
    match inst.op {
        Op::Logic(Logic::Or | Logic::Xor | Logic::And | Logic::Lop3 | Logic::Shf | Logic::Bfi | Logic::Prmt) => true,
        Op::Convert(Convert::Mov) => matches!(inst.operands.get(1), Some(Operand::Vector(_))),
        _ => false,
    }
}

/// Whether a constant is one of the parts that are put together: bits of a field that are set, or a field.
pub(crate) fn completes(inst: &Inst) -> bool {
    use tilewright_ptx::isa::{Logic, Op};
    matches!(inst.op, Op::Logic(Logic::Or | Logic::Bfi))
        && inst.operands.iter().skip(1).take(2).any(|operand| matches!(operand, Operand::Imm(_)))
}

/// What a function knows of memory of its thread's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    /// The kernel has such memory, so that a generic address may be in it.
    pub local: bool,
    /// It is a device function, whose parameters are in it.
    pub function: bool,
    /// What is loaded from shared memory is followed, too: see [`Kernel::follows`](super::Kernel::follows).
    pub shared: bool,
}

impl Own {
    /// Whether the instruction loads from, or stores to, a memory whose undefined values are followed, or may do so: in
    /// a thread's own memory, since compilers copy structures with their padding, and, if asked for, in shared memory.
    pub fn accesses(self, inst: &Inst) -> bool {
        use tilewright_ptx::isa::{Matrix, Memory, Op};
        use tilewright_ptx::{Address, AddressBase, StateSpace, Symbol};
        let symbol = inst.operands.iter().find_map(|operand| match operand {
            Operand::Address(Address { base: AddressBase::Symbol(symbol), .. }) => Some(*symbol),
            _ => None,
        });
        match inst.op {
            Op::Memory(Memory::Ld | Memory::St) => {}
            // Their space may be left out.
            Op::Matrix(Matrix::Ldmatrix | Matrix::WmmaLoad) => {
                return self.shared && inst.space().is_none_or(|space| space.base() == StateSpace::Shared);
            }
            _ => return false,
        }
        match inst.space().map(StateSpace::base) {
            Some(StateSpace::Local) => true,
            Some(StateSpace::Param) => self.function || matches!(symbol, Some(Symbol::Local(_))),
            Some(StateSpace::Shared) => self.shared,
            None => (self.local || self.shared) && symbol.is_none(),
            _ => false,
        }
    }
}

/// The operand whose undefined value an instruction may take and give as a defined one: what lanes offer to a shuffle,
/// as most of them are not asked for it.
fn offered(inst: &Inst) -> Option<RegId> {
    match (inst.op, inst.operands.get(1)) {
        (tilewright_ptx::isa::Op::Warp(tilewright_ptx::isa::Warp::Shfl), Some(Operand::Reg(reg))) => Some(*reg),
        _ => None,
    }
}

/// What the analysis knows of an instruction.
struct Step {
    reads: Vec<RegId>,
    /// See [`offered`].
    offered: Option<RegId>,
    writes: Vec<RegId>,
    guarded: bool,
    passes_on: bool,
    joins: bool,
    /// Whether what it loads may be undefined.
    undefines: bool,
}

impl Step {
    fn new(inst: &Inst, own: Own) -> Self {
        let (mut reads, writes) = uses(inst);
        let offered = offered(inst);
        // Once: the same register may say from which lane.
        if let Some(at) = reads.iter().position(|reg| Some(*reg) == offered) {
            reads.remove(at);
        }
        let undefines = !writes.is_empty() && own.accesses(inst);
        let (passes_on, joins) = (passes_on(inst) && !completes(inst), joins(inst));
        Step { reads, offered, writes, guarded: inst.guard.is_some(), passes_on, joins, undefines }
    }

    /// Changes the set of defined registers.
    fn apply(&self, state: &mut [u64]) {
        let missing = |reg: &RegId| !has(state, *reg);
        let lacks = match (self.passes_on, self.joins) {
            (true, true) => !self.reads.is_empty() && self.reads.iter().all(missing),
            (true, false) => self.reads.iter().any(missing),
            _ => self.undefines,
        };
        for reg in &self.writes {
            let (word, bit) = (reg.index() / 64, 1 << (reg.index() % 64));
            if lacks {
                state[word] &= !bit;
            } else if !self.guarded {
                state[word] |= bit;
            }
        }
    }
}

fn has(set: &[u64], reg: RegId) -> bool {
    set[reg.index() / 64] >> (reg.index() % 64) & 1 == 1
}

struct Block {
    items: std::ops::Range<usize>,
    successors: Vec<usize>,
}

/// What the analysis could not prove.
#[derive(Default)]
pub(crate) struct Unproved {
    /// For every instruction (by index in `items`) the registers that it may read unwritten.
    pub reads: Vec<Vec<RegId>>,
    /// Registers that may be offered to other lanes unwritten: they need a value that does not depend on what ran
    /// before.
    pub offered: Vec<RegId>,
}

/// Looks for registers that may be read unwritten.
pub(crate) fn unproved(
    items: &[Item<'_>],
    registers: usize,
    own: Own,
    targets: &dyn Fn(&Inst) -> Vec<LabelId>,
) -> Unproved {
    let blocks = blocks(items, targets);
    let steps: Vec<Option<Step>> = items
        .iter()
        .map(|item| match item {
            Item::Inst(inst) => Some(Step::new(inst, own)),
            Item::Label(_) => None,
        })
        .collect();
    let words = registers.div_ceil(64);
    let mut result = Unproved { reads: items.iter().map(|_| Vec::new()).collect(), offered: Vec::new() };
    if blocks.len().saturating_mul(registers) > LIMIT {
        for (index, item) in items.iter().enumerate() {
            if let Item::Inst(inst) = item {
                result.reads[index] = uses(inst).0;
            }
        }
        return result;
    }
    // On entry: everything, until a way in says otherwise.
    let mut entry: Vec<Option<Vec<u64>>> = blocks.iter().map(|_| None).collect();
    let mut work = Vec::new();
    if !blocks.is_empty() {
        entry[0] = Some(vec![0; words]);
        work.push(0);
    }
    while let Some(block) = work.pop() {
        let mut state = entry[block].clone().unwrap_or_else(|| vec![0; words]);
        for step in steps[blocks[block].items.clone()].iter().flatten() {
            step.apply(&mut state);
        }
        for successor in &blocks[block].successors {
            let changed = match &mut entry[*successor] {
                none @ None => {
                    *none = Some(state.clone());
                    true
                }
                Some(known) => {
                    let mut changed = false;
                    for (word, now) in known.iter_mut().zip(&state) {
                        changed |= *word & !now != 0;
                        *word &= now;
                    }
                    changed
                }
            };
            if changed {
                work.push(*successor);
            }
        }
    }
    for (block, state) in blocks.iter().zip(entry) {
        // Unreachable code reads nothing.
        let Some(mut state) = state else { continue };
        for index in block.items.clone() {
            let Some(step) = &steps[index] else { continue };
            for reg in &step.reads {
                if !has(&state, *reg) && !result.reads[index].contains(reg) {
                    result.reads[index].push(*reg);
                }
            }
            result.offered.extend(step.offered.filter(|reg| !has(&state, *reg)));
            step.apply(&mut state);
        }
    }
    result
}

fn blocks(items: &[Item<'_>], targets: &dyn Fn(&Inst) -> Vec<LabelId>) -> Vec<Block> {
    use tilewright_ptx::isa::{Control, Op};
    let mut starts = vec![0];
    for (index, item) in items.iter().enumerate() {
        match item {
            Item::Label(_) => starts.push(index),
            Item::Inst(inst) if matches!(inst.op, Op::Control(_)) => starts.push(index + 1),
            Item::Inst(_) => {}
        }
    }
    starts.retain(|start| *start < items.len());
    starts.sort_unstable();
    starts.dedup();
    let block_of = |index: usize| starts.partition_point(|start| *start <= index) - 1;
    let mut labels = tilewright_sorted::SortedMap::new();
    for (index, item) in items.iter().enumerate() {
        if let Item::Label(label) = item {
            labels.insert(*label, block_of(index));
        }
    }
    let mut blocks = Vec::new();
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(items.len());
        let mut successors = Vec::new();
        let mut falls = true;
        for item in &items[*start..end] {
            let Item::Inst(inst) = item else { continue };
            let ends = matches!(
                inst.op,
                Op::Control(Control::Bra | Control::BrxIdx | Control::Ret | Control::Exit | Control::Trap)
            );
            if ends {
                successors.extend(targets(inst).iter().filter_map(|label| labels.get(label)));
                falls = inst.guard.is_some();
            }
        }
        if falls && number + 1 < starts.len() {
            successors.push(number + 1);
        }
        blocks.push(Block { items: *start..end, successors });
    }
    blocks
}

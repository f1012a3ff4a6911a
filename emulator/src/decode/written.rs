//! Which reads of registers are provably preceded by a write on every path. The others are checked when the kernel runs.
//!
//! A forward analysis over basic blocks: a register is written after a block if it is written in it without a guard, or was on every way in.
//! Guarded writes prove nothing.

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

struct Block {
    items: std::ops::Range<usize>,
    successors: Vec<usize>,
    written: Vec<u64>,
}

/// For every instruction (by index in `items`) the registers that it may read unwritten.
pub(crate) fn unproved(
    items: &[Item<'_>],
    registers: usize,
    targets: &dyn Fn(&Inst) -> Vec<LabelId>,
) -> Vec<Vec<RegId>> {
    let blocks = blocks(items, registers, targets);
    let words = registers.div_ceil(64);
    let mut result: Vec<Vec<RegId>> = items.iter().map(|_| Vec::new()).collect();
    if blocks.len().saturating_mul(registers) > LIMIT {
        for (index, item) in items.iter().enumerate() {
            if let Item::Inst(inst) = item {
                result[index] = uses(inst).0;
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
        for (word, written) in state.iter_mut().zip(&blocks[block].written) {
            *word |= written;
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
            let Item::Inst(inst) = &items[index] else { continue };
            let (reads, writes) = uses(inst);
            for reg in reads {
                if state[reg.index() / 64] >> (reg.index() % 64) & 1 == 0 && !result[index].contains(&reg) {
                    result[index].push(reg);
                }
            }
            if inst.guard.is_none() {
                for reg in writes {
                    state[reg.index() / 64] |= 1 << (reg.index() % 64);
                }
            }
        }
    }
    result
}

fn blocks(items: &[Item<'_>], registers: usize, targets: &dyn Fn(&Inst) -> Vec<LabelId>) -> Vec<Block> {
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
    let mut labels = std::collections::BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        if let Item::Label(label) = item {
            labels.insert(*label, block_of(index));
        }
    }
    let words = registers.div_ceil(64);
    let mut blocks = Vec::new();
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(items.len());
        let mut written = vec![0u64; words];
        let mut successors = Vec::new();
        let mut falls = true;
        for item in &items[*start..end] {
            let Item::Inst(inst) = item else { continue };
            if inst.guard.is_none() {
                for reg in uses(inst).1 {
                    written[reg.index() / 64] |= 1 << (reg.index() % 64);
                }
            }
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
        blocks.push(Block { items: *start..end, successors, written });
    }
    blocks
}

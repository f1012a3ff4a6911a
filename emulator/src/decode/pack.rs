//! Registers packed by liveness: PTX has a register for every value, and rows of values that are never alive together
//! share memory, so that the rows of a warp stay in the host's cache.
//!
//! A lane's column of the rows is a thread of its own, so that the usual liveness of one thread's control flow is sound
//! for a warp whose lanes are anywhere. A value is alive from its first write to its last read, over whole blocks where
//! it is alive at their ends; a write that may leave out lanes ends nothing. What an instruction reads and what it
//! writes never share a row.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tilewright_sorted::{SortedMap, SortedSet};

use super::Kernel;
use super::op::{Op, Slot};
use super::operands::{Role, renumber, visit};

/// Most slot-block pairs that are analysed; a kernel beyond it keeps its numbering.
const LIMIT: usize = 1 << 26;

/// Whether a slot holds the same value from a warp's start to its end: constants, parameters and special registers.
pub(super) fn fixed(kernel: &Kernel) -> SortedSet<Slot> {
    let mut fixed: SortedSet<Slot> = kernel.constants.iter().map(|(slot, _)| *slot).collect();
    fixed.extend(kernel.specials.iter().map(|(_, slot)| Slot::Narrow(*slot)));
    fixed.extend(kernel.param_slots.iter().map(|(slot, ..)| *slot));
    fixed
}

/// Where the control flow goes after an instruction: the targets of a branch, and whether it may go on.
pub(super) fn successors(kernel: &Kernel, at: usize) -> (&[u32], bool) {
    let guarded = kernel.code[at].guard.is_some();
    match &kernel.code[at].op {
        Op::Branch { target, .. } => (std::slice::from_ref(target), guarded),
        Op::BranchTable { first, count, .. } => (&kernel.targets[*first as usize..][..*count as usize], guarded),
        Op::Exit | Op::Trap | Op::Return => (&[], guarded),
        _ => (&[], true),
    }
}

/// Starts of the blocks of straight code.
fn block_starts(kernel: &Kernel) -> Vec<usize> {
    let mut starts = vec![0];
    for at in 0..kernel.code.len() {
        let (targets, falls) = successors(kernel, at);
        if !targets.is_empty() || !falls {
            starts.push(at + 1);
            starts.extend(targets.iter().map(|target| *target as usize));
        }
    }
    starts.retain(|start| *start < kernel.code.len());
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// The slots that may be renumbered, in order: those that no constant, parameter, special register or checked register
/// has.
struct Free {
    slots: Vec<Slot>,
}

impl Free {
    fn new(kernel: &mut Kernel) -> Free {
        let mut fixed = fixed(kernel);
        fixed.extend(kernel.tracked.iter().map(|tracked| tracked.slot));
        // Products read and write these at some later time.
        fixed.extend(kernel.matrix_registers.iter().map(|register| register.slot));
        let mut free = SortedSet::new();
        for inst in &mut kernel.code {
            visit(inst, &mut kernel.data, &mut |slot, _| {
                if !fixed.contains(&slot) {
                    free.insert(slot);
                }
                slot
            });
        }
        Free { slots: free.into_iter().collect() }
    }

    /// The place of a slot among them.
    fn number(&self, slot: Slot) -> Option<usize> {
        self.slots.binary_search(&slot).ok()
    }
}

/// First and last instruction at which each free slot is alive.
fn lifetimes(kernel: &mut Kernel, free: &Free) -> Option<Vec<(usize, usize)>> {
    let starts = block_starts(kernel);
    let words = free.slots.len().div_ceil(64);
    if starts.len().saturating_mul(free.slots.len()) > LIMIT {
        return None;
    }
    let end = |block: usize| starts.get(block + 1).copied().unwrap_or(kernel.code.len());
    let block_of = |at: usize| starts.partition_point(|start| *start <= at) - 1;
    let mut follows = Vec::new();
    let ends: Vec<usize> = (0..starts.len()).map(end).collect();
    for last in &ends {
        let (targets, falls) = successors(kernel, last - 1);
        let mut next: Vec<usize> = targets.iter().map(|target| block_of(*target as usize)).collect();
        if falls && *last < kernel.code.len() {
            next.push(block_of(*last));
        }
        follows.push(next);
    }
    // Read before any unguarded write in the block; written by one without a guard.
    let (mut reads, mut kills) = (vec![vec![0u64; words]; starts.len()], vec![vec![0u64; words]; starts.len()]);
    let mut lives = vec![(usize::MAX, 0); free.slots.len()];
    for (block, start) in starts.iter().enumerate() {
        for at in *start..ends[block] {
            let mut inst = kernel.code[at];
            let guarded = inst.guard.is_some();
            let mut written = Vec::new();
            visit(&mut inst, &mut kernel.data, &mut |slot, role| {
                if let Some(n) = free.number(slot) {
                    lives[n] = (lives[n].0.min(at), lives[n].1.max(at));
                    match role {
                        Role::Write => written.push(n),
                        Role::Read | Role::Both => {
                            reads[block][n / 64] |= 1 << (n % 64) & !kills[block][n / 64];
                        }
                    }
                }
                slot
            });
            if !guarded {
                for n in written {
                    kills[block][n / 64] |= 1 << (n % 64);
                }
            }
        }
    }
    // Alive on entry, backwards to a fixed point.
    let mut entry = reads.clone();
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..starts.len()).rev() {
            for word in 0..words {
                let out = follows[block].iter().fold(0, |out, next| out | entry[*next][word]);
                let new = reads[block][word] | (out & !kills[block][word]);
                changed |= new != entry[block][word];
                entry[block][word] = new;
            }
        }
    }
    for (block, start) in starts.iter().enumerate() {
        for (word, alive) in entry[block].iter().enumerate() {
            let out = follows[block].iter().fold(0, |out, next| out | entry[*next][word]);
            for (mask, at) in [(*alive, *start), (out, ends[block] - 1)] {
                let mut rest = mask;
                while rest != 0 {
                    let n = word * 64 + rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    lives[n] = (lives[n].0.min(at), lives[n].1.max(at));
                }
            }
        }
    }
    Some(lives)
}

/// Reads of a register that only ever holds a copy of a fixed slot become reads of that slot, and the copy does
/// nothing.
fn forward(kernel: &mut Kernel) {
    let fixed = fixed(kernel);
    // A read of a register that is not checked comes after a write of it on every path.
    let checked: SortedSet<Slot> = kernel.tracked.iter().map(|tracked| tracked.slot).collect();
    let (mut written, mut twice) = (SortedSet::new(), SortedSet::new());
    for inst in &mut kernel.code {
        visit(inst, &mut kernel.data, &mut |slot, role| {
            if role != Role::Read && !written.insert(slot) {
                twice.insert(slot);
            }
            slot
        });
    }
    let mut copies: SortedMap<Slot, Slot> = SortedMap::new();
    for inst in kernel.code.iter_mut().filter(|inst| inst.guard.is_none()) {
        let (d, a) = match inst.op {
            Op::Mov { d, a } => (Slot::Narrow(d), Slot::Narrow(a)),
            Op::MovWide { d, a } => (Slot::Wide(d), Slot::Wide(a)),
            Op::MovPred { d, a } => (Slot::Pred(d), Slot::Pred(a)),
            _ => continue,
        };
        let source = copies.get(&a).copied().unwrap_or(a);
        if fixed.contains(&source) && !checked.contains(&d) && !twice.contains(&d) {
            copies.insert(d, source);
            inst.op = Op::Nop;
        }
    }
    for inst in &mut kernel.code {
        visit(inst, &mut kernel.data, &mut |slot, role| match copies.get(&slot) {
            Some(source) if role == Role::Read => *source,
            _ => slot,
        });
    }
}

/// What the executor wants to know of instructions, now that they are final. Those that do nothing are stepped over
/// where control falls through; they still count as executed: what counts is where straight code begins and ends.
pub(super) fn finish(kernel: &mut Kernel) {
    // Of the instruction that is executed next: how far ahead it is, and the stretch of plain instructions that it
    // begins.
    let (mut ahead, mut follows) = (1, 0);
    for inst in kernel.code.iter_mut().rev() {
        if let Op::Barrier(barrier) = &mut inst.op {
            let named = |(slot, _): &&(Slot, u64)| *slot == Slot::Narrow(barrier.id);
            barrier.known = kernel.constants.iter().find(named).map(|(_, value)| *value as u32);
        }
        inst.step = ahead;
        inst.row = inst.op.row();
        let plain = inst.guard.is_none() && !inst.once;
        inst.part = inst.op.part();
        if let Op::Load(access) | Op::Store(access) = &inst.op {
            inst.number = crate::exec::host::access_number(access);
        }
        if let Some(part) = inst.part {
            (inst.number, inst.registers) = crate::exec::host::number(&inst.op, part);
        }
        inst.stretch = if inst.part.is_none() {
            0
        } else if plain {
            1 + follows
        } else {
            1
        };
        if inst.guard.is_none() && inst.op == Op::Nop {
            ahead += 1;
        } else {
            (ahead, follows) = (1, if plain { inst.stretch } else { 0 });
        }
    }
}

/// Gives slots whose lives do not overlap the same number.
pub(super) fn pack(kernel: &mut Kernel) {
    // Calls read and write registers of other functions.
    if !kernel.calls.is_empty() || !kernel.functions.is_empty() {
        return;
    }
    forward(kernel);
    let free = Free::new(kernel);
    let Some(lives) = lifetimes(kernel, &free) else { return };
    let mut order: Vec<usize> = (0..free.slots.len()).collect();
    order.sort_unstable_by_key(|n| (lives[*n], free.slots[*n]));
    let mut renamed = SortedMap::new();
    for class in [Slot::Pred as fn(u32) -> Slot, Slot::Narrow, Slot::Wide] {
        let same = |slot: &Slot| std::mem::discriminant(slot) == std::mem::discriminant(&class(0));
        // The numbers of the class, lowest first, and until when each is taken.
        let mut numbers: Vec<Slot> = free.slots.iter().copied().filter(same).collect();
        numbers.sort_unstable();
        let mut idle = SortedSet::new();
        idle.extend(numbers);
        let mut taken: BinaryHeap<Reverse<(usize, Slot)>> = BinaryHeap::new();
        for n in order.iter().filter(|n| same(&free.slots[**n])) {
            let (first, last) = lives[*n];
            while let Some(Reverse((until, slot))) = taken.peek().copied()
                && until < first
            {
                taken.pop();
                idle.insert(slot);
            }
            // There are as many numbers as slots.
            let Some(slot) = idle.pop_first() else { return };
            taken.push(Reverse((last, slot)));
            renamed.insert(free.slots[*n], slot);
        }
    }
    renumber(kernel, &mut |slot| renamed.get(&slot).copied().unwrap_or(slot));
    squeeze(kernel);
}

/// Numbers the slots that are left without gaps.
fn squeeze(kernel: &mut Kernel) {
    let mut used: SortedSet<Slot> = SortedSet::new();
    renumber(kernel, &mut |slot| {
        used.insert(slot);
        slot
    });
    used.extend(fixed(kernel));
    used.extend(kernel.tracked.iter().map(|tracked| tracked.slot));
    let mut new = SortedMap::new();
    let [mut preds, mut narrow, mut wide] = [0; 3];
    for slot in used {
        let (counter, class): (&mut u32, fn(u32) -> Slot) = match slot {
            Slot::Pred(_) => (&mut preds, Slot::Pred),
            Slot::Narrow(_) => (&mut narrow, Slot::Narrow),
            Slot::Wide(_) => (&mut wide, Slot::Wide),
        };
        new.insert(slot, class(*counter));
        *counter += 1;
    }
    let moved = |slot: Slot| new.get(&slot).copied().unwrap_or(slot);
    renumber(kernel, &mut |slot| moved(slot));
    kernel.constants.iter_mut().for_each(|(slot, _)| *slot = moved(*slot));
    for (_, slot) in &mut kernel.specials {
        if let Slot::Narrow(number) = moved(Slot::Narrow(*slot)) {
            *slot = number;
        }
    }
    kernel.param_slots.iter_mut().for_each(|(slot, ..)| *slot = moved(*slot));
    kernel.tracked.iter_mut().for_each(|tracked| tracked.slot = moved(tracked.slot));
    (kernel.preds, kernel.narrow, kernel.wide) = (preds as usize, narrow as usize, wide as usize);
}

#[cfg(test)]
mod tests {
    use crate::decode::{Kernel, decode};

    fn kernel(body: &str) -> Kernel {
        let text = format!(
            ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n.reg .pred %p<9>; .reg .b32 %r<999>; .reg .b64 %a<9>;\nld.param.u64 %a0, [p];\nmov.u32 %r0, %tid.x;\n{body}\nst.global.u32 [%a0], %r1;\nret;\n}}\n"
        );
        let module = tilewright_ptx::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        decode(&module, &tilewright_sorted::SortedMap::new())
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
            .kernels
            .remove(0)
    }

    /// A chain of values, each read by the next alone.
    fn chain(from: u32, to: u32) -> String {
        (from..to).map(|i| format!("add.u32 %r{}, %r{i}, %r0;\n", i + 1)).collect()
    }

    #[test]
    fn a_chain_takes_two_rows() {
        let one = kernel("add.u32 %r1, %r0, %r0;");
        let many = kernel(&format!("add.u32 %r2, %r0, %r0;\n{}mov.u32 %r1, %r400;", chain(2, 400)));
        assert!(many.narrow <= one.narrow + 2, "{} rows, {} for one instruction", many.narrow, one.narrow);
    }

    #[test]
    fn values_that_live_together_keep_rows_of_their_own() {
        // A hundred values, all read at the end.
        let write: String = (2..102).map(|i| format!("add.u32 %r{i}, %r0, {i};\n")).collect();
        let read: String = (2..102).map(|i| format!("xor.b32 %r1, %r1, %r{i};\n")).collect();
        assert!(kernel(&format!("mov.u32 %r1, 0;\n{write}{read}")).narrow >= 101);
        // Written before a loop, read in it: alive to its end, though the loop writes more values after the read.
        let turn = format!("xor.b32 %r1, %r1, %r500;\nadd.u32 %r2, %r0, 1;\n{}", chain(2, 20));
        let body = format!("mov.u32 %r1, 0;\nadd.u32 %r500, %r0, 3;\nL:\n{turn}setp.lt.u32 %p0, %r20, 7;\n@%p0 bra L;");
        let kernel = kernel(&body);
        let slots = |at: usize| format!("{:?}", kernel.code[at].op);
        let position = |text: &str| (0..kernel.code.len()).find(|at| slots(*at).contains(text)).expect("it is there");
        let crate::decode::op::Op::Int2 { d: kept, .. } = kernel.code[position("op: Add")].op else {
            panic!("the sum before the loop")
        };
        let first = position("op: Xor") + 1;
        for inst in &kernel.code[first..first + 19] {
            let crate::decode::op::Op::Int2 { d, .. } = inst.op else { panic!("{inst:?}") };
            assert_ne!(d, kept, "a row that is read in the next turn");
        }
    }

    #[test]
    fn copies_of_parameters_are_read_where_they_are() {
        let kernel = kernel("add.u32 %r1, %r0, 1;");
        let moves =
            kernel.code.iter().filter(|inst| matches!(inst.op, super::Op::Mov { .. } | super::Op::MovWide { .. }));
        assert_eq!(moves.count(), 0);
        assert!(kernel.code.iter().filter(|inst| inst.op == super::Op::Nop).count() == 2, "they still count");
    }
}

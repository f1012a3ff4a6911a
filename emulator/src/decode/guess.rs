//! Loops of compare-and-swap begin with a guess of the old value, by an ordinary load as in the CUDA programming guide and in CUDA's own
//! headers. By the letter of the memory model such a load races with the swap of another thread. It is harmless: what it loaded is only the value
//! that the swap compares, and a wrong one makes another turn. So a load is taken for a relaxed one if copies of its value are what a
//! compare-and-swap at the same address compares.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ptx::isa::{Atomic, Convert, Memory, Op as Family};
use tilewright_ptx::{Address, AddressBase, AtomicOp, Inst, Operand, RegId, Semantics, StateSpace};

/// The loads among the instructions of a function that guess, by their number.
pub(crate) fn guesses(insts: &[&Inst]) -> BTreeSet<usize> {
    let is_swap =
        |inst: &&&Inst| inst.op == Family::Atomic(Atomic::Atom) && inst.find::<AtomicOp>() == Some(AtomicOp::Cas);
    let swaps: Vec<&Inst> = insts.iter().filter(is_swap).copied().collect();
    if swaps.is_empty() {
        return BTreeSet::new();
    }
    // Copies from register to register, and the registers that have one definition, which is a copy of a register or a variable's address.
    let mut copies: BTreeMap<RegId, Vec<RegId>> = BTreeMap::new();
    let mut source: BTreeMap<RegId, Option<(AddressBase, i64)>> = BTreeMap::new();
    for inst in insts {
        let copied = match (inst.op, &inst.operands[..]) {
            (Family::Convert(Convert::Mov | Convert::Cvta), [Operand::Reg(d), Operand::Reg(a)]) => {
                copies.entry(*a).or_default().push(*d);
                Some((AddressBase::Reg(*a), 0))
            }
            (Family::Convert(Convert::Mov), [Operand::Reg(_), Operand::Symbol(symbol, offset)]) => {
                Some((AddressBase::Symbol(*symbol), *offset))
            }
            _ => None,
        };
        for d in super::written::uses(inst).1 {
            let first = !source.contains_key(&d);
            source.insert(d, copied.filter(|_| first));
        }
    }
    let place = |address: &Operand| {
        let Operand::Address(Address { base, offset }) = address else { return None };
        let (mut base, mut offset) = (*base, *offset);
        // A chain of copies is no longer than there are registers.
        for _ in 0..source.len() {
            match base {
                AddressBase::Reg(reg) => match source.get(&reg) {
                    Some(Some((before, more))) => (base, offset) = (*before, offset.wrapping_add(*more)),
                    _ => break,
                },
                _ => break,
            }
        }
        Some((base, offset))
    };
    let guess = |inst: &Inst| {
        let plain = inst.op == Family::Memory(Memory::Ld)
            && matches!(inst.find::<Semantics>(), None | Some(Semantics::Weak))
            && !matches!(
                inst.space().map(StateSpace::base),
                Some(StateSpace::Param | StateSpace::Const | StateSpace::Local)
            );
        let [Operand::Reg(loaded), address, ..] = &inst.operands[..] else { return false };
        let Some(at) = plain.then(|| place(address)).flatten() else { return false };
        let compared: Vec<RegId> = swaps
            .iter()
            .filter(|swap| swap.operands.get(1).and_then(place) == Some(at))
            .filter_map(|swap| match swap.operands.get(2) {
                Some(Operand::Reg(reg)) => Some(*reg),
                _ => None,
            })
            .collect();
        if compared.is_empty() {
            return false;
        }
        let (mut seen, mut work) = (BTreeSet::from([*loaded]), vec![*loaded]);
        while let Some(reg) = work.pop() {
            if compared.contains(&reg) {
                return true;
            }
            work.extend(copies.get(&reg).into_iter().flatten().copied().filter(|d| seen.insert(*d)));
        }
        false
    };
    (0..insts.len()).filter(|at| guess(insts[*at])).collect()
}

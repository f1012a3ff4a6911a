//! Loops of compare-and-swap begin with a guess of the old value, by an ordinary load as in the CUDA programming guide
//! and in CUDA's own headers. By the letter of the memory model such a load races with the swap of another thread. It
//! is harmless: what it loaded is only the value that the swap compares, and a wrong one makes another turn. So a load
//! is taken for a relaxed one if copies of its value are what a compare-and-swap at the same address compares. Code
//! that is not optimised keeps values in memory and swaps in a function: there, of a load whose value comes to a
//! comparison by way of memory of the thread's own, the address is not looked at.

use tilewright_ptx::isa::{Atomic, Control, Convert, Memory, Op as Family};
use tilewright_ptx::{
    Address, AddressBase, AtomicOp, Inst, Module, Operand, RegId, Semantics, StateSpace, Symbol, VarId,
};
use tilewright_sorted::{SortedMap, SortedSet};

fn is_swap(inst: &Inst) -> bool {
    inst.op == Family::Atomic(Atomic::Atom) && inst.find::<AtomicOp>() == Some(AtomicOp::Cas)
}

/// A load that orders nothing, of memory that others may share.
fn is_plain_load(inst: &Inst) -> bool {
    inst.op == Family::Memory(Memory::Ld)
        && matches!(inst.find::<Semantics>(), None | Some(Semantics::Weak))
        && !matches!(
            inst.space().map(StateSpace::base),
            Some(StateSpace::Param | StateSpace::Const | StateSpace::Local)
        )
}

/// Where a function keeps a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    Register(RegId),
    /// At a register's address and offset, or in a variable: memory is told apart by how it is named.
    Memory(AddressBase, i64),
}

/// The registers of all functions, by function and register, whose values come to the comparison of a compare-and-swap
/// by way of memory.
pub(crate) fn kept(module: &Module) -> SortedSet<(usize, RegId)> {
    // From every place to those that its value is copied from, and the first places: what is compared.
    let mut sources: SortedMap<(usize, Place), Vec<(usize, Place)>> = SortedMap::new();
    let mut work = Vec::new();
    for (number, function) in module.functions.iter().enumerate() {
        function.for_each_inst(&mut |inst| {
            if let (true, Some(Operand::Reg(reg))) = (is_swap(inst), inst.operands.get(2)) {
                work.push((number, Place::Register(*reg), false));
            }
            copies_of(module, number, inst, &mut |to, from| sources.entry(to).or_default().push(from));
        });
    }
    let mut seen: SortedSet<(usize, Place, bool)> = work.iter().copied().collect();
    while let Some((function, place, through)) = work.pop() {
        for (from, source) in sources.get(&(function, place)).into_iter().flatten() {
            let next = (*from, *source, through || matches!(source, Place::Memory(..)));
            if seen.insert(next) {
                work.push(next);
            }
        }
    }
    let register = |(function, place, through): (usize, Place, bool)| match place {
        Place::Register(reg) if through => Some((function, reg)),
        _ => None,
    };
    seen.into_iter().filter_map(register).collect()
}

/// Tells what an instruction copies: to, from.
fn copies_of(module: &Module, function: usize, inst: &Inst, copy: &mut impl FnMut((usize, Place), (usize, Place))) {
    let memory = |address: &Address| Place::Memory(address.base, address.offset);
    match (inst.op, &inst.operands[..]) {
        (Family::Convert(Convert::Mov | Convert::Cvt), [Operand::Reg(d), Operand::Reg(a)]) => {
            copy((function, Place::Register(*d)), (function, Place::Register(*a)));
        }
        (Family::Memory(Memory::Ld), [Operand::Reg(d), Operand::Address(address)]) => {
            copy((function, Place::Register(*d)), (function, memory(address)));
        }
        (Family::Memory(Memory::St), [Operand::Address(address), Operand::Reg(a)]) => {
            copy((function, memory(address)), (function, Place::Register(*a)));
        }
        (Family::Control(Control::Call), operands) => {
            let Some(Operand::Symbol(Symbol::Function(id), 0)) = super::module::callee(inst) else { return };
            // A prototype stands for the function of its name.
            let name = module.functions.get(id.index()).map(|callee| &callee.name);
            let called =
                |at: &usize| Some(&module.functions[*at].name) == name && !module.functions[*at].body.is_empty();
            let Some(callee) = (0..module.functions.len()).find(called) else { return };
            let mut results = true;
            for operand in operands {
                let Operand::List(elements) = operand else {
                    results = false;
                    continue;
                };
                for (index, element) in elements.iter().enumerate() {
                    let Operand::Symbol(symbol, 0) = element else { continue };
                    let (own, index) = (Place::Memory(AddressBase::Symbol(*symbol), 0), VarId(index as u32));
                    let other = |symbol| Place::Memory(AddressBase::Symbol(symbol), 0);
                    if results {
                        copy((function, own), (callee, other(Symbol::Return(index))));
                    } else {
                        copy((callee, other(Symbol::Param(index))), (function, own));
                    }
                }
            }
        }
        _ => {}
    }
}

/// The loads among the instructions of a function that guess, by their number; of registers that are `kept` without
/// more ado.
pub(crate) fn guesses(insts: &[&Inst], kept: impl Fn(RegId) -> bool) -> SortedSet<usize> {
    let is_kept =
        |inst: &Inst| matches!(inst.operands.first(), Some(Operand::Reg(reg)) if is_plain_load(inst) && kept(*reg));
    let mut guesses = direct(insts);
    guesses.extend((0..insts.len()).filter(|at| is_kept(insts[*at])));
    guesses
}

/// Those whose value is compared at their address.
fn direct(insts: &[&Inst]) -> SortedSet<usize> {
    let swaps: Vec<&Inst> = insts.iter().filter(|inst| is_swap(inst)).copied().collect();
    if swaps.is_empty() {
        return SortedSet::new();
    }
    // Copies from register to register, and the registers that have one definition, which is a copy of a register or a
    // variable's address.
    let mut copies: SortedMap<RegId, Vec<RegId>> = SortedMap::new();
    let mut source: SortedMap<RegId, Option<(AddressBase, i64)>> = SortedMap::new();
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
        let [Operand::Reg(loaded), address, ..] = &inst.operands[..] else { return false };
        let Some(at) = is_plain_load(inst).then(|| place(address)).flatten() else { return false };
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
        let (mut seen, mut work) = (SortedSet::from([*loaded]), vec![*loaded]);
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

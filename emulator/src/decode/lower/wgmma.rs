//! Products by a warpgroup (PTX manual 9.7.15). Their registers are read and written when the product happens, which is
//! later than its instruction: what other instructions do with these is followed at run time, and moves between them
//! are taken for names, as the assembler takes them.

use tilewright_ptx::isa::{Convert, Matrix, Op as Family};
use tilewright_ptx::{Flag, Inst as Source, Operand, RegId, ScalarType};
use tilewright_sorted::{SortedMap, SortedSet};

use super::matrix::{element, sum};
use super::{Lowered, Lowering, refuse};
use crate::decode::MatrixRegister;
use crate::decode::op::{Op, Slot, Wgmma};
use crate::decode::written::uses;
use crate::matrix::Product;
use crate::matrix::places::Places;
use crate::num::format::Round;
use crate::registers::WARPGROUP;

/// Whether an instruction is a product by a warpgroup.
fn is_product(inst: &Source) -> bool {
    matches!(inst.op, Family::Matrix(Matrix::WgmmaMmaAsync))
}

/// The registers that a move writes and those that it reads, if it has no other operands: whole ones, or the parts of
/// one.
fn moved(inst: &Source) -> Option<[Vec<RegId>; 2]> {
    let (Family::Convert(Convert::Mov), [d, a]) = (inst.op, &inst.operands[..]) else { return None };
    let registers = |operand: &Operand| {
        let mut list = Vec::new();
        let parts = if let Operand::Vector(parts) = operand { parts.as_slice() } else { std::slice::from_ref(operand) };
        for part in parts {
            let Operand::Reg(reg) = part else { return None };
            list.push(*reg);
        }
        Some(list)
    };
    Some([registers(d)?, registers(a)?])
}

/// The registers of all products, and those that moves connect with them.
fn registers(insts: &[&Source]) -> SortedSet<RegId> {
    let mut found = SortedSet::new();
    for inst in insts.iter().filter(|inst| is_product(inst)) {
        for operand in &inst.operands[..2] {
            if let Operand::Vector(_) = operand {
                operand.for_each_reg(&mut |reg| {
                    found.insert(reg);
                });
            }
        }
    }
    if found.is_empty() {
        return found;
    }
    let mut neighbours: SortedMap<RegId, Vec<RegId>> = SortedMap::new();
    for [written, read] in insts.iter().filter_map(|inst| moved(inst)) {
        for (d, a) in written.iter().flat_map(|d| read.iter().map(move |a| (*d, *a))) {
            neighbours.entry(d).or_default().push(a);
            neighbours.entry(a).or_default().push(d);
        }
    }
    let mut work: Vec<RegId> = found.iter().copied().collect();
    while let Some(reg) = work.pop() {
        let next = neighbours.get(&reg).into_iter().flatten();
        work.extend(next.copied().filter(|reg| found.insert(*reg)));
    }
    found
}

impl Lowering<'_> {
    /// Takes up the registers of the products of a function.
    pub(super) fn matrix_registers(&mut self, insts: &[&Source]) -> Lowered<()> {
        self.matrix_registers.clear();
        for reg in registers(insts) {
            let slot = self.reg(reg)?;
            self.matrix_registers.insert(reg, self.kernel.matrix_registers.len() as u32);
            let name = self.function.regs.name(reg);
            self.kernel.matrix_registers.push(MatrixRegister { name, slot });
        }
        Ok(())
    }

    /// Before an instruction: what it does with the registers of products.
    pub(super) fn touches(&mut self, inst: &Source) {
        if self.matrix_registers.is_empty() || is_product(inst) {
            return;
        }
        let moves = moved(inst);
        let renames = moves.is_some();
        let [writes, reads] = moves.unwrap_or_else(|| {
            let (reads, writes) = uses(inst);
            [writes, reads]
        });
        let number = |reg: &RegId| self.matrix_registers.get(reg).copied();
        let [reads, writes] = [reads, writes].map(|regs| regs.iter().filter_map(number).collect::<Vec<u32>>());
        if reads.is_empty() && writes.is_empty() {
            return;
        }
        let first = self.kernel.flows.len() as u32;
        let touch = Op::MatrixTouch { first, reads: reads.len() as u16, writes: writes.len() as u16, renames };
        self.kernel.flows.extend(reads.into_iter().chain(writes));
        self.emit(touch);
    }

    pub(super) fn wgmma(&mut self, matrix: Matrix, inst: &Source) -> Lowered<()> {
        self.kernel.warpgroups = true;
        match matrix {
            Matrix::WgmmaFence => self.emit(Op::WgmmaFence),
            Matrix::WgmmaCommitGroup => self.emit(Op::WgmmaCommit),
            Matrix::WgmmaWaitGroup => {
                let Operand::Imm(count) = self.operand(inst, 0)? else { return refuse("a constant is expected") };
                let keep = count.int_bits().map_or(u32::MAX, |count| u32::try_from(count).unwrap_or(u32::MAX));
                self.emit(Op::WgmmaWait { keep });
            }
            _ => return self.product(inst),
        }
        Ok(())
    }

    fn product(&mut self, inst: &Source) -> Lowered<()> {
        let Some(shape) = inst.shape() else { return refuse("the shape is missing") };
        let types: Vec<ScalarType> = inst.types().collect();
        let [d, a, b] = types[..] else { return refuse("the types are missing") };
        let product = Product {
            m: usize::from(shape.m) / WARPGROUP,
            n: usize::from(shape.n),
            k: usize::from(shape.k),
            a: element(a)?,
            b: element(b)?,
            c: sum(d)?,
            d: sum(d)?,
            saturate: inst.has(Flag::Satfinite),
            and: false,
            round: Round::Nearest,
        };
        let (mut counts, mut slots, mut numbers) = ([0; 2], Vec::new(), Vec::new());
        for (index, ty) in [d, ScalarType::B32].into_iter().enumerate() {
            let Operand::Vector(elements) = self.operand(inst, index)? else { continue };
            counts[index] = elements.len() as u8;
            let ty = if ty == ScalarType::F32 { ty } else { ScalarType::B32 };
            for element in elements {
                let Operand::Reg(reg) = element else { return refuse("a register is expected") };
                slots.push(Some(self.value(element, ty)?));
                numbers.extend(self.matrix_registers.get(reg).copied());
            }
        }
        let in_registers = counts[1] > 0;
        for index in if in_registers { 2..3 } else { 1..3 } {
            slots.push(Some(Slot::Wide(self.wide(self.operand(inst, index)?, ScalarType::B64)?)));
        }
        let add = self.pred(self.operand(inst, 3)?)?;
        slots.push(Some(Slot::Pred(add.slot)));
        let mut flags = [0i64; 4];
        for (flag, operand) in flags.iter_mut().zip(&inst.operands[4..]) {
            let Operand::Imm(value) = operand else { return refuse("a constant is expected") };
            *flag = value.int_bits().unwrap_or(0) as i64;
        }
        // The last ones are whether A and B are transposed; A in registers cannot be.
        let across = if in_registers { [false, flags[2] == 1] } else { [flags[2] == 1, flags[3] == 1] };
        let places = self.places_of(&product, None, [counts[0], counts[1], 0, counts[0]]);
        let site = self.kernel.wgmmas.len() as u32;
        self.kernel.wgmmas.push(Wgmma {
            product,
            counts,
            add_negated: add.negated,
            negate: [flags[0] < 0, flags[1] < 0],
            across,
            places,
            registers: self.kernel.flows.len() as u32,
        });
        self.kernel.flows.extend(numbers);
        let others = (slots.len() - usize::from(counts[0])) as u8;
        let data = self.push(slots);
        self.emit(Op::Wgmma { site, data, sums: counts[0], others });
        Ok(())
    }

    /// The number of the tables of a product, which are made once.
    pub(super) fn places_of(&mut self, product: &Product, wmma: Option<[bool; 2]>, counts: [u8; 4]) -> u32 {
        let places = &mut self.kernel.places;
        let known = places.iter().position(|places| places.is_of(product, wmma, counts));
        known.unwrap_or_else(|| {
            places.push(Places::new(product, wmma, counts));
            places.len() - 1
        }) as u32
    }
}

//! Products of tiles by tensor cores, in the place of the terms of a `dot`. Those of warps are over at once; what
//! follows is about warpgroups.
//!
//! Inside the loops around a tile, each warpgroup starts the products of all its tiles and of all steps along k as one
//! group, and waits for it, or for the one before it (`inflight(1)`):
//!
//! ```text
//! for each step, tile of rows, tile of columns: variables += a · b
//! ```
//!
//! The accumulators are the variables that threads would add terms to: the loops over the elements of a fragment tell
//! them apart in the order of the instruction's registers. An entry point without staged copies has no such stage: who
//! reads it computes the terms.

use tilewright_kernel::algorithm::{Compare, Value};
use tilewright_kernel::info::DimKind;
use tilewright_kernel::tensor_map::Swizzle;

use super::arithmetic::Emit;
use super::defect::Defect;
use super::stage::{Nest, Point};
use super::staging::Copy;
use crate::domain::{AxisId, AxisKind};
use crate::extent::{Expr, Var};
use crate::kernel_ir::{Factor, LoadMatrix, Matrix, MmaSync, Range, ValueId, VariableId, Wgmma};
use crate::lower::nested_stage::Kept;
use crate::plan::Analysed;
use crate::plan::product::{self as plan, Operand, Product};
use crate::plan::staged::Staged;
use crate::schedule::{Mma, Register, register as register_of};

impl Nest<'_, '_> {
    /// Whether the loop over an axis is the first of a product's.
    pub(super) fn begins_product(&self, axis: AxisId) -> bool {
        let mma = self.stage.product.as_ref().filter(|_| self.product.is_some());
        mma.is_some_and(|mma| mma.serial().first() == Some(&axis))
    }

    /// The products of all tiles of a warpgroup.
    pub(super) fn products(&mut self, point: &Point) {
        let (Some(product), Some(mma)) = (self.product, &self.stage.product) else { return };
        let extent = |axis: AxisId| self.stage.domain.axes[axis].extent.as_constant().unwrap_or(1);
        let tiles = mma.rows.tiles.map_or(1, extent);
        let steps = mma.steps.map_or(1, extent);
        let all = 8 * extent(mma.columns.eights);
        let starts = self.starts_sums().then(|| self.is_behind_first(point));
        let mut group = Vec::new();
        for step in 0..steps {
            for tile in 0..tiles {
                for first in (0..all).step_by(product.columns as usize) {
                    let Some(sums) = self.sums(point, (tile, tiles), (first, all), product.columns) else {
                        return self.values.unknown(Defect::Plan("the accumulators of a product are not in a row"));
                    };
                    let column = first / 8;
                    let at = [(mma.steps, step), (mma.rows.tiles, tile), (Some(mma.columns.eights), column)];
                    let mut factors = product.factors.iter().zip([tile, column]).map(|(factor, tile)| match factor {
                        plan::Factor::Shared(operand) => self.matrix(point, mma, operand, &at).map(Factor::Shared),
                        plan::Factor::Held(held) => self.held_factor(held, mma, [tile, step]).map(Factor::Registers),
                    });
                    let found = (factors.next().flatten(), factors.next().flatten());
                    match found {
                        (Some(a), Some(Factor::Shared(b))) if mma.is_async() => {
                            let adds = starts.filter(|_| step == 0);
                            group.push(Wgmma { sums, columns: product.columns, a, b, adds });
                        }
                        (Some(Factor::Registers(a)), Some(Factor::Registers(b))) if !mma.is_async() => {
                            self.b.mma_sync(MmaSync { sums, a, b });
                        }
                        _ => return self.values.unknown(Defect::Plan("a factor of a product has no place")),
                    }
                }
            }
        }
        if mma.is_async() {
            self.b.wgmma_group(group, mma.inflight);
        }
    }

    /// Whether the first product of a tile is the first thing that is in its accumulators: what was in them is not
    /// added, and they need not be zero.
    pub(super) fn starts_sums(&self) -> bool {
        // What a warp adds to has a value.
        let own = self.stage.product.as_ref().filter(|mma| self.product.is_some() && mma.is_async());
        let Some(mma) = own else { return false };
        let inside = mma.serial();
        let outer = || self.sequence[self.split..].iter().take_while(|axis| !inside.contains(axis));
        let domain = &self.stage.domain;
        // No iteration is left out, and there is one; no block is without.
        let kept = self.kept_of_terms() && self.stage.across_blocks().all(|a| self.is_never_empty(a));
        kept && outer().filter(|a| domain.axes[**a].kind == AxisKind::Reduction).all(|a| self.is_never_empty(*a))
    }

    /// Whether an iteration of the loops over terms came before the present one.
    fn is_behind_first(&mut self, point: &Point) -> ValueId {
        let inside = self.stage.product.as_ref().map_or_else(Vec::new, Mma::serial);
        let axes: Vec<AxisId> = self.sequence[self.split..].iter().copied().filter(|a| !inside.contains(a)).collect();
        let mut any = self.b.bool_literal(false);
        for axis in axes.into_iter().filter(|a| self.stage.domain.axes[*a].kind == AxisKind::Reduction) {
            let Some(value) = point.values[axis] else { continue };
            let zero = self.b.index_literal(self.index, 0);
            let later = self.b.index_compare(Compare::Ne, value, zero);
            any = self.b.or(any, later);
        }
        any
    }

    /// Whether a loop has an iteration for all sizes that an entry point with copies is for.
    fn is_never_empty(&self, axis: AxisId) -> bool {
        let (facts, one) = (self.facts, Expr::constant(1));
        let mut system = facts.residue_system();
        let sizes = self.stage.program.dims.iter().enumerate().filter(|(_, dim)| dim.kind == DimKind::Size);
        for (d, _) in sizes {
            system.require(&facts.with_residues(&facts.normal(&Expr::var(d as Var).sub(&one))));
        }
        system.require(&facts.with_residues(&facts.normal(&self.stage.domain.axes[axis].extent.scale(-1))));
        system.is_infeasible()
    }

    /// Whether the slots of a copy inside `k` loops are handed back an iteration later: products read it, or a copy
    /// that shares its slots, and are under way till then.
    pub(super) fn is_late(&self, copy: &Copy<'_>, k: usize) -> bool {
        let late = self.stage.product.as_ref().is_some_and(|mma| mma.inflight > 0);
        let (true, Some(product)) = (late && !self.is_slice(), self.product) else { return false };
        let is_read =
            |staged: &Staged| product.operands().any(|operand| staged.is_for(operand.parameter, Some(operand.read)));
        let here = self.copies.iter().filter(|other| other.staged.attach.loops == k);
        here.filter(|other| other.buffer == copy.buffer || other.shares_slots_with(copy))
            .any(|other| is_read(other.staged))
    }

    /// Hands the slot of the last iteration back, whose products are over; the present one is that of the loop around.
    pub(super) fn release_late(&mut self, copy: &Copy<'_>, point: &Point, k: usize, slot: ValueId) {
        let Some(now) = k.checked_sub(1).and_then(|k| point.values[self.sequence[k]]) else { return };
        let zero = self.b.index_literal(self.index, 0);
        let has_last = self.b.index_compare(Compare::Ne, now, zero);
        self.b.begin_if(has_last);
        let last = copy.pipeline.slot_after(self.b, slot, copy.staged.ring - 1);
        copy.pipeline.release(self.b, last);
        self.b.end_if();
    }

    /// After the loop at position `k`, which has so many iterations: waits for its last products, and hands the last
    /// slots back.
    pub(super) fn end_products(&mut self, k: usize, count: ValueId) {
        if self.product.is_none() {
            return;
        }
        let copies = self.parts(k + 1).into_iter().map(|part| part.copy);
        let late: Vec<Copy<'_>> = copies.filter(|copy| copy.leads() && self.is_late(copy, k + 1)).collect();
        if late.is_empty() {
            return;
        }
        self.b.wgmma_wait_group(0);
        let zero = self.b.index_literal(self.index, 0);
        let any = self.b.index_compare(Compare::Lt, zero, count);
        self.b.begin_if(any);
        for copy in &late {
            let slot = copy.pipeline.slot(self.b);
            let last = copy.pipeline.slot_after(self.b, slot, copy.staged.ring - 1);
            copy.pipeline.release(self.b, last);
        }
        self.b.end_if();
    }

    /// The first of the accumulators of a tile, if they are in a row.
    fn sums(
        &self,
        point: &Point,
        (tile, tiles): (i128, i128),
        (column, columns): (i128, i128),
        count: u32,
    ) -> Option<VariableId> {
        // Each tile of rows has half as many variables as columns.
        let before = (point.accumulator() as i128 * tiles + tile) * columns / 2 + column / 2;
        let own = self.accumulators();
        let own = own.get(usize::try_from(before).ok()?..)?.get(..count as usize / 2)?;
        let first = own.first()?.first()?.0;
        (first..).zip(own).all(|(n, own)| own[..] == [VariableId(n)]).then_some(VariableId(first))
    }

    /// Where a tile of a factor is.
    fn matrix(&mut self, point: &Point, mma: &Mma, operand: &Operand, at: &[(Option<AxisId>, i128)]) -> Option<Matrix> {
        let Operand { parameter, read, across, leading, stride, swizzle, .. } = *operand;
        let held = self.values.staged.iter().find(|held| held.staged.is_for(parameter, Some(read))).cloned()?;
        // Its first element, of all threads of the warpgroup.
        let mut values: Vec<Option<ValueId>> = vec![None; point.values.len()];
        let zero = self.b.index_literal(self.index, 0);
        for leaf in &self.stage.domain.leaves {
            let inside = mma.threads().any(|own| own == *leaf) || mma.serial().contains(leaf);
            values[*leaf] = if inside { Some(zero) } else { point.values[*leaf] };
        }
        for (leaf, number) in at {
            if let Some(leaf) = leaf {
                values[*leaf] = Some(self.b.index_literal(self.index, *number as i64));
            }
        }
        self.stage.domain.toward_roots(&mut Emit { b: &mut *self.b, index: self.index }, &mut values);
        let scope = self.scope(&values);
        let Value::Read { indices, .. } = self.stage.program.algorithm.values[read as usize] else { return None };
        let list = &self.stage.program.algorithm.index_lists[indices.range()];
        let indices: Vec<ValueId> = list.iter().map(|i| self.values.index(self.b, *i, &scope)).collect();
        let offset = held.offset_in_slot(self.b, &indices, self.index, Swizzle::None);
        let most = i64::try_from(held.staged.elements()).unwrap_or(i64::MAX);
        if self.b.kernel().index_literal(offset).is_none() {
            self.b.assume(offset, Range::new(0, most - 1));
        }
        Some(Matrix { buffer: held.buffer, slot: held.slot, offset, across, leading, stride, swizzle })
    }

    /// The variables that hold a tile of a factor, in the order of the instruction's registers.
    fn held_factor(&self, held: &plan::Held, mma: &Mma, at: [i128; 2]) -> Option<Vec<VariableId>> {
        let instance = self.values.held(held.source, held.read)?;
        let Some(Kept::Registers(variables)) = instance.holds(held.source, held.read) else { return None };
        let bytes = mma.operand.bytes();
        let each = i128::from(Wgmma::FACTOR_REGISTER / bytes);
        // Of the left factor, halves of a warp's rows follow each other, then groups of terms.
        let halves = if held.registers[1].is_some() { 2 } else { 1 };
        let one = |n: u32| {
            let register = i128::from(n) / each;
            let within = [register / halves, register % halves, i128::from(n) % each];
            let numbered = held.tiles.into_iter().chain(held.registers);
            let all = numbered.zip(at.into_iter().chain(within));
            let numbers: Vec<(Var, i128)> = all.filter_map(|(v, n)| Some((v?, n))).collect();
            let number = |v: Var| numbers.iter().find(|known| known.0 == v).map(|known| Expr::constant(known.1));
            let present = |e: &Expr| self.values.at_present(&e.substitute(&number));
            match register_of(instance.stage, &held.leaves, &present) {
                Register::Number(number) => variables.get(number).copied(),
                Register::Outside | Register::Unknown => None,
            }
        };
        let [left, right] = MmaSync::factor_variables(bytes);
        (0..if halves == 2 { left } else { right }).map(one).collect()
    }
}

impl Nest<'_, '_> {
    /// Loads all of a fragment by matrices into the registers of the instance; whether that is how it is loaded. Of so
    /// many matrices together, a lane says where a row of the one lies that its number is of.
    pub(super) fn loads_matrices(&mut self, point: &Point) -> bool {
        let Some(plan::Fragment { read, source, matrices: Some(matrices) }) = &self.analysed.fragment else {
            return false;
        };
        let held = self.values.held(*source, *read);
        let target = self.target.clone();
        let (Some(held), Some(target)) = (held, target) else { return false };
        let (Some(Kept::Buffer { buffer, base }), Some(Kept::Registers(variables))) =
            (held.holds(*source, *read).cloned(), target.memory.first())
        else {
            return false;
        };
        let bytes = self.b.kernel().buffers[buffer.index()].element.bytes();
        let plan::Matrices { lanes: [rows, quads], term, each, loops, count, transposed } = matrices;
        let (each, rows_of) = (i64::from(*each), i64::from(LoadMatrix::ROWS));
        let literal = |this: &mut Self, n: i64| this.b.index_literal(this.index, n);
        let thread = self.b.thread_in_role();
        let thread = self.b.index_convert(thread, self.index);
        let (eight, matrix) = (literal(self, rows_of), literal(self, i64::from(*count)));
        let row = self.b.index_mod(thread, eight);
        let number = self.b.index_div(thread, eight);
        let number = self.b.index_mod(number, matrix);
        // Which iteration the row is of.
        let zero = literal(self, 0);
        let mut values = point.values.clone();
        let (across, along) = if *transposed { (zero, row) } else { (row, zero) };
        values[*rows] = Some(across);
        let each_of = literal(self, each);
        values[*quads] = Some(self.b.index_div(along, each_of));
        if let Some(term) = term {
            values[*term] = Some(self.b.index_mod(along, each_of));
        }
        let all: i128 = loops.iter().map(|l| l.1).product();
        let digits = |number: i128| {
            let mut rest = number;
            let digit = |(_, extent, registers): &(AxisId, i128, i128)| {
                let digit = rest % extent;
                rest /= extent;
                digit * registers
            };
            loops.iter().rev().map(digit).sum::<i128>()
        };
        for first in (0..all).step_by(*count as usize) {
            let mut at = values.clone();
            let mut stride = 1;
            for (leaf, extent, _) in loops.iter().rev() {
                let base = first / stride % extent;
                // The loops inside of a group are told apart by the number of the matrix.
                at[*leaf] = Some(if stride >= i128::from(*count) {
                    literal(self, base as i64)
                } else {
                    let (step, extent) = (literal(self, stride as i64), literal(self, *extent as i64));
                    let own = self.b.index_div(number, step);
                    let own = self.b.index_mod(own, extent);
                    let base = literal(self, base as i64);
                    self.b.index_add(base, own)
                });
                stride *= extent;
            }
            self.stage.domain.toward_roots(&mut Emit { b: &mut *self.b, index: self.index }, &mut at);
            let scope = self.scope(&at);
            let Value::Read { indices, .. } = self.stage.program.algorithm.values[*read as usize] else { return false };
            let list = &self.stage.program.algorithm.index_lists[indices.range()];
            let indices: Vec<ValueId> = list.iter().map(|i| self.values.index(self.b, *i, &scope)).collect();
            let offset = held.place(self.b, &indices, (base, bytes), self.index);
            let loaded = self.b.load_matrix(buffer, offset, *count, *transposed);
            for (n, value) in (0..).zip(loaded) {
                let register = digits(first + n / i128::from(each)) + n % i128::from(each);
                let variable = usize::try_from(register).ok().and_then(|n| variables.get(n));
                let Some(variable) = variable else { return false };
                self.b.set(*variable, value);
            }
        }
        true
    }

    /// Whether blocks share a product in the loops of this output that is no stage in this entry point: each of them
    /// would compute all of it, and write what comes of it.
    pub(super) fn repeats_products(&self) -> bool {
        let is_here = |a: &&Analysed| a.stage.attach.as_ref().is_some_and(|attach| attach.stage == self.own);
        let mut shared = self.around.stages.iter().filter(|a| a.stage.arrives() && !is_computed(a, self.around.staged));
        shared.any(|a| is_here(&a))
    }
}

/// What tensor cores compute of a stage, in an entry point with staged copies or without.
pub(super) fn of(analysed: &Analysed, staged: bool) -> Option<&Product> {
    analysed.product.as_ref().filter(|_| is_computed(analysed, staged))
}

/// Whether an entry point has a stage: without staged copies, who reads a product of these computes its terms.
pub(super) fn is_computed(analysed: &Analysed, staged: bool) -> bool {
    staged || analysed.stage.product.as_ref().is_none_or(|mma| !mma.is_async())
}

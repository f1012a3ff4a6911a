//! Products of tiles by tensor cores, in the place of the terms of a `dot`. Those of warps are over at once; what
//! follows is about warpgroups.
//!
//! Inside the loops around a tile, each warpgroup starts the products of all its tiles and of all steps along k as one
//! group, and waits for it, or for the one that many before it (`inflight(n)`):
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
use super::pipeline::Pipeline;
use super::stage::{Nest, Point};
use super::staging::Copy;
use crate::domain::{AxisId, AxisKind};
use crate::extent::{Expr, Var};
use crate::kernel_ir::{Factor, Matrix, MmaSync, Range, ValueId, VariableId, Wgmma};
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
            self.b.wgmma_group(group);
            if !self.start_behind() {
                self.b.wgmma_wait_group(mma.inflight);
            }
        }
    }

    /// Whether the first product of a tile is the first thing that is in its accumulators: what was in them is not
    /// added, and they need not be zero.
    pub(super) fn starts_sums(&self) -> bool {
        // What a warp adds to has a value.
        let own = self.stage.product.as_ref().filter(|mma| self.product.is_some() && mma.is_async());
        let Some(mma) = own.filter(|_| !self.continues()) else { return false };
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
        let is_of_terms = |a: &AxisId| self.stage.domain.axes[*a].kind == AxisKind::Reduction;
        let axes: Vec<AxisId> = axes.into_iter().filter(is_of_terms).collect();
        // The first iteration is written out, so that nothing is asked in the others. Of loops in each other that would
        // be every one of them a second time. Where threads copy for themselves, the copies of that iteration hide from
        // the assembler that lanes agree, and descriptors would move between registers in the others.
        let only = axes.len() == 1 && self.around.role.is_some();
        let mut any = self.b.bool_literal(false);
        for axis in axes {
            let Some(value) = point.values[axis] else { continue };
            let number = self.b.index_literal(self.index, i64::from(only));
            let at = self.iteration_at(axis, number);
            let later = match only {
                true => self.b.cut_loop(value, at),
                false => self.b.index_compare(Compare::Ne, value, at),
            };
            any = self.b.or(any, later);
        }
        any
    }

    /// Whether a loop has an iteration for all sizes that an entry point with copies is for.
    pub(super) fn is_never_empty(&self, axis: AxisId) -> bool {
        let (facts, one) = (self.facts, Expr::constant(1));
        let mut system = facts.residue_system();
        let sizes = self.stage.program.dims.iter().enumerate().filter(|(_, dim)| dim.kind == DimKind::Size);
        for (d, _) in sizes {
            system.require(&facts.with_residues(&facts.normal(&Expr::var(d as Var).sub(&one))));
        }
        system.require(&facts.with_residues(&facts.normal(&self.stage.domain.axes[axis].extent.scale(-1))));
        system.is_infeasible()
    }

    /// Whether the slots of a copy inside `k` loops are handed back iterations later: products read it, or a copy that
    /// shares its slots, and are under way till then.
    pub(super) fn is_late(&self, copy: &Copy<'_>, k: usize) -> bool {
        let (true, Some(product)) = (self.under_way(k) > 0 && !self.is_slice(), self.product) else { return false };
        let is_read = |staged: &Staged| product.operands().any(|operand| operand.is_in(staged));
        let here = self.copies.iter().filter(|other| other.staged.attach.loops == k);
        here.filter(|other| other.buffer == copy.buffer || other.shares_slots_with(copy))
            .any(|other| is_read(other.staged))
    }

    /// Whether the slots of the stage with a position, which stands inside `k` loops, are handed back so.
    pub(super) fn is_read_late(&self, at: usize, k: usize) -> bool {
        let late = self.under_way(k) > 0 && !self.is_slice();
        let is_read = || self.product.is_some_and(|product| product.written().any(|written| written == at));
        late && is_read() && self.children.contains(&(at, k))
    }

    /// Hands the slot of an earlier iteration back, of so many slots: the latest one whose products are over. The
    /// present one is that of the loop around, and of so many iterations groups are under way.
    pub(super) fn release_late(&mut self, (pipeline, ring): (&Pipeline, u32), point: &Point, k: usize, slot: ValueId) {
        let behind = self.under_way(k);
        let Some(axis) = k.checked_sub(1).map(|k| self.sequence[k]) else { return };
        let Some(now) = point.values[axis] else { return };
        let first = self.b.index_literal(self.index, behind.into());
        let first = self.iteration_at(axis, first);
        let is_over = self.b.cut_loop(now, first);
        self.b.begin_if(is_over);
        let over = pipeline.slot_after(self.b, slot, ring - behind);
        pipeline.release(self.b, over);
        self.b.end_if();
    }

    /// In how many iterations of the loop around what stands inside `k` loops products stay under way.
    fn under_way(&self, k: usize) -> u32 {
        let leaf = k.checked_sub(1).and_then(|k| self.sequence.get(k));
        let product = self.stage.product.as_ref().zip(leaf);
        product.and_then(|(mma, leaf)| mma.iterations_under_way(self.stage, *leaf)).unwrap_or(0)
    }

    /// After the loop at position `k`, which has so many iterations: waits for its last products, and hands the last
    /// slots back, one for each iteration of which products may be under way.
    pub(super) fn end_products(&mut self, k: usize, count: ValueId) {
        if self.product.is_none() {
            return;
        }
        let copies = self.parts(k + 1).into_iter().map(|part| part.copy);
        let copies = copies.filter(|copy| copy.leads() && self.is_late(copy, k + 1));
        let mut late: Vec<(Pipeline, u32)> = copies.map(|copy| (copy.pipeline, copy.staged.ring)).collect();
        let stages = self.children.iter().map(|child| child.0).filter(|at| self.is_read_late(*at, k + 1));
        late.extend(stages.map(|at| (self.pipeline(at).clone(), self.around.stages[at].stage.ring)));
        if late.is_empty() {
            return;
        }
        self.b.wgmma_wait_group(0);
        // The oldest first. There may be fewer iterations than could have products under way.
        for behind in (1..=self.under_way(k + 1)).rev() {
            let before = self.b.index_literal(self.index, i64::from(behind) - 1);
            let any = self.b.index_compare(Compare::Lt, before, count);
            self.b.begin_if(any);
            for (pipeline, ring) in &late {
                let slot = pipeline.slot(self.b);
                let last = pipeline.slot_after(self.b, slot, ring - behind);
                pipeline.release(self.b, last);
            }
            self.b.end_if();
        }
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
        let Operand { source, read, across, leading, stride, swizzle, .. } = *operand;
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
        let (buffer, slot, offset) = if operand.stage.is_some() {
            let indices: Vec<ValueId> = list.iter().map(|i| self.values.index(self.b, *i, &scope)).collect();
            let instance = self.values.held(source, read)?;
            let Some(Kept::Buffer { buffer, slot, .. }) = instance.holds(source, read).cloned() else { return None };
            (buffer, slot, instance.place_before_swizzle(self.b, &indices, self.index))
        } else {
            let held = self.values.staged.iter().find(|held| operand.is_in(held.staged)).cloned()?;
            let indices = self.values.within_instance(self.b, &held, list, &scope);
            (held.buffer, held.slot, held.offset_in_slot(self.b, &indices, self.index, Swizzle::None))
        };
        // Where the last block of each tile goes on alone, the assembler takes what is carried from tile to tile for
        // another value in each lane.
        let told = self.stage.arrives() && self.around.tile.is_some();
        let most = i64::from(self.b.kernel().buffers[buffer.index()].elements);
        if self.b.kernel().index_literal(offset).is_none() {
            self.b.assume(offset, Range::new(0, most - 1));
        }
        Some(Matrix { buffer, slot, offset, across, leading, stride, swizzle, told })
    }

    /// The variables that hold a tile of a factor, in the order of the instruction's registers.
    fn held_factor(&self, held: &plan::Held, mma: &Mma, at: [i128; 2]) -> Option<Vec<VariableId>> {
        let instance = self.values.held(held.source, held.read)?;
        let Some(Kept::Registers(variables)) = instance.holds(held.source, held.read) else { return None };
        let bytes = mma.bytes();
        let each = i128::from(Wgmma::FACTOR_REGISTER / bytes);
        // Of the left factor, halves of a warp's rows follow each other, then groups of terms.
        let halves = if held.registers[1].is_some() { 2 } else { 1 };
        let one = |n: u32| {
            let register = i128::from(n) / each;
            let within = [register / halves, register % halves, i128::from(n) % each];
            let numbered = held.tiles.into_iter().chain(held.registers);
            let all = numbered.zip(at.into_iter().chain(within));
            let numbers: Vec<(Var, i128)> = all.filter_map(|(v, n)| Some((v?, n))).collect();
            let number = |v: Var| numbers.iter().find(|known| known.0 == v).map(|known| known.1);
            let present = |e: &Expr| self.values.number_at_present(e, &number);
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

/// Whether an entry point has a stage: without staged copies, who reads a product of these computes its terms, and the
/// factors that threads would hold for it.
pub(super) fn is_computed(analysed: &Analysed, staged: bool) -> bool {
    let is_async = analysed.stage.product.as_ref().is_some_and(Mma::is_async);
    staged || !is_async && !analysed.is_of_groups
}

/// Whether an entry point comes to a stage: it has that, and all that it stands in.
pub(super) fn is_reached(stages: &[Analysed], at: usize, staged: bool) -> bool {
    let next = |at: &usize| stages[*at].stage.attach.as_ref().map(|attach| attach.stage);
    staged || std::iter::successors(Some(at), next).all(|at| is_computed(&stages[at], staged))
}

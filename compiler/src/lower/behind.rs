//! Products that are one block behind in a pass over blocks of terms: see [`Behind`].
//!
//! ```text
//! for each block b
//!     start the scores of b
//!     if b > 0: wait for the slot of b − 1; start its product; await the scores, not the product
//!     what is made of the scores
//!     if b > 0: await the product of b − 1; hand its slot back
//!     correct the sums; compute the factor of b
//! if there was a block: wait for the slot of the last one; its product, awaited; hand the slot back
//! ```
//!
//! The factor is in variables that outlive an iteration. The loop is cut before its second iteration, so that nothing
//! of this is a branch in the iterations after it.
//!
//! **Property.** The sums are those of the loop without it. **Argument.** Between the start of a product and its end,
//! nothing reads or writes its accumulators, its factor or its slot: corrections and the factor of the next block come
//! after it, and the slot is handed back then. Accumulators get the terms of b − 1 before they are corrected for b, as
//! they would in iteration b − 1, at the end.

use tilewright_kernel::algorithm::Compare;

use super::defect::Defect;
use super::nested_stage::{Instance, Kept};
use super::product;
use super::stage::{Around, Frame, Nest, Point};
use super::staging::{Copy, Held};
use crate::domain::AxisId;
use crate::kernel_ir::{Builder, ValueId};
use crate::plan::product::Behind;

/// The product of a pass, in its loop over blocks.
#[derive(Clone, Debug)]
pub(super) struct InLoop {
    /// The stage with the product: a position.
    at: usize,
    of: Behind,
    /// The loop, and how many are around what stands in it.
    axis: AxisId,
    loops: usize,
    /// What holds its factor.
    factor: Vec<Kept>,
    /// Whether an iteration came before the present one, once one is under way.
    later: Option<ValueId>,
}

/// The group of a product that is started in the stage of another one.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    /// The stage that starts it after its own, and awaits that: a position.
    first: usize,
    at: usize,
    later: ValueId,
    instances: Vec<Instance<'a>>,
    staged: Vec<Held<'a>>,
    target: Instance<'a>,
}

impl<'a> Nest<'a, '_> {
    /// Before the loop at position `k`: what holds the factor of a product that is behind in it.
    pub(super) fn begin_behind(&mut self, k: usize) {
        let Around { stages, staged, .. } = self.around;
        let is_own = |(at, loops): &(usize, usize)| *loops == k + 1 && product::of(&stages[*at], staged).is_some();
        let here = if self.is_slice() {
            None
        } else {
            self.children.iter().find(|child| is_own(child) && stages[child.0].behind.is_some())
        };
        let Some((at, of)) = here.and_then(|(at, _)| Some((*at, stages[*at].behind?))) else { return };
        let factor = self.registers_of(of.factor);
        self.behind = Some(InLoop { at, of, axis: self.sequence[k], loops: k + 1, factor, later: None });
    }

    /// What holds a stage whose variables outlive an iteration.
    pub(super) fn outlives(&self, at: usize) -> Option<Vec<Kept>> {
        self.behind.as_ref().filter(|behind| behind.of.factor == at).map(|behind| behind.factor.clone())
    }

    /// Whether the stage with a position is a product that is behind.
    pub(super) fn is_behind(&self, at: usize) -> bool {
        self.behind.as_ref().is_some_and(|behind| behind.at == at)
    }

    /// Whether a copy inside so many loops is for a product that is behind: it is waited for and handed back with that.
    pub(super) fn is_for_behind(&self, copy: &Copy<'_>, loops: usize) -> bool {
        self.copies_behind(loops).iter().any(|own| own.buffer == copy.buffer)
    }

    fn copies_behind(&self, loops: usize) -> Vec<Copy<'a>> {
        let Some(behind) = self.behind.as_ref().filter(|behind| behind.loops == loops) else { return Vec::new() };
        let Some(product) = &self.around.stages[behind.at].product else { return Vec::new() };
        let here = self.copies.iter().filter(|copy| copy.staged.attach.loops == loops);
        here.filter(|copy| product.operands().any(|operand| operand.is_in(copy.staged))).cloned().collect()
    }

    /// Before the stage with a position is computed in an iteration: if it starts the group of the block before, that
    /// group.
    pub(super) fn group_behind(&mut self, point: &Point, at: usize) -> Option<Group<'a>> {
        let behind = self.behind.clone().filter(|behind| behind.of.first == at)?;
        let now = point.values[behind.axis]?;
        let one = self.b.index_literal(self.index, 1);
        let second = self.iteration_at(behind.axis, one);
        let later = self.b.cut_loop(now, second);
        if let Some(own) = &mut self.behind {
            own.later = Some(later);
        }
        let before = self.before(now);
        self.b.begin_if(later);
        self.await_behind(behind.loops);
        self.b.end_if();
        Some(self.group_of(point, &behind, before, later))
    }

    /// The number of the iteration before another one, if there is one. None is negative, so that starts of regions are
    /// known to be where they are taken off again.
    fn before(&mut self, iteration: ValueId) -> ValueId {
        let [zero, one] = [0, 1].map(|n| self.b.index_literal(self.index, n));
        let before = self.b.index_sub(iteration, one);
        self.b.index_max(before, zero)
    }

    /// The group of an iteration.
    fn group_of(&mut self, point: &Point, behind: &InLoop, iteration: ValueId, later: ValueId) -> Group<'a> {
        let mut point = point.clone();
        point.values[behind.axis] = Some(iteration);
        let mut staged = self.values.staged.clone();
        for copy in self.copies_behind(behind.loops) {
            let slot = copy.pipeline.slot(self.b);
            let starts = self.starts(&copy, (&point, None), None);
            staged.push(copy.held(self.b, slot, starts, self.index));
        }
        let around = self.around(&point, None);
        let stages = self.around.stages;
        let instance =
            |at: usize, memory: Vec<Kept>| Instance { at, stage: &stages[at].stage, memory, around: around.clone() };
        let mut instances = self.values.instances.clone();
        instances.push(instance(behind.of.factor, behind.factor.clone()));
        let sums = self.continued(behind.at).unwrap_or_default();
        let target = instance(behind.at, vec![Kept::Registers(sums)]);
        Group { first: behind.of.first, at: behind.at, later, instances, staged, target }
    }

    /// Waits for the slots of the block whose product is started next.
    fn await_behind(&mut self, loops: usize) {
        for copy in self.copies_behind(loops) {
            let slot = copy.pipeline.slot(self.b);
            copy.finish(self.b, slot);
        }
    }

    /// Hands them back.
    fn release_behind(&mut self, loops: usize) {
        for copy in self.copies_behind(loops) {
            let slot = copy.pipeline.slot(self.b);
            copy.pipeline.release(self.b, slot);
            copy.pipeline.advance(self.b, slot, None);
        }
    }

    /// Before the stage with a position is computed: if it is the factor of a product that is behind, that is over, and
    /// its sums are corrected.
    pub(super) fn end_behind_before(&mut self, point: &Point, k: usize, at: usize) {
        let behind = self.behind.as_ref().filter(|behind| behind.of.factor == at && behind.loops == k);
        let Some((later, loops)) = behind.map(|behind| (behind.later, behind.loops)) else { return };
        let Some(later) = later else {
            return self.values.unknown(Defect::Plan("a product that is behind was not started"));
        };
        self.b.begin_if(later);
        self.b.wgmma_wait_group(0);
        self.release_behind(loops);
        self.b.end_if();
        self.correct(point, k);
    }

    /// The instance of a product that is behind, which others read.
    pub(super) fn hold_behind(&mut self, point: &Point, at: usize) {
        let sums = self.continued(at).unwrap_or_default();
        let stage = &self.around.stages[at].stage;
        let instance = Instance { at, stage, memory: vec![Kept::Registers(sums)], around: self.around(point, None) };
        self.values.instances.push(instance);
    }

    /// After the loop at position `k`, which has so many iterations: the product of the last one.
    pub(super) fn end_behind(&mut self, point: &Point, k: usize, count: ValueId) {
        let Some(behind) = self.behind.clone().filter(|behind| behind.loops == k + 1) else { return };
        let zero = self.b.index_literal(self.index, 0);
        let any = self.b.index_compare(Compare::Lt, zero, count);
        let end = self.iteration_at(behind.axis, count);
        let last = self.before(end);
        self.b.begin_if(any);
        self.await_behind(behind.loops);
        let group = self.group_of(point, &behind, last, any);
        if let Err(missing) = group.start(self.b, self.around) {
            self.values.defect.get_or_insert(missing);
        }
        self.b.wgmma_wait_group(0);
        self.release_behind(behind.loops);
        self.b.end_if();
        self.behind = None;
    }

    /// After the group of this stage was started: starts the one that is behind, if it is started here, and waits for
    /// the own one alone. Whether it was.
    pub(super) fn start_behind(&mut self) -> bool {
        let Some(group) = self.around.behind.filter(|group| group.first == self.own) else { return false };
        self.b.begin_if(group.later);
        if let Err(missing) = group.start(self.b, self.around) {
            self.values.defect.get_or_insert(missing);
        }
        self.b.begin_else();
        self.b.wgmma_wait_group(0);
        self.b.end_if();
        true
    }
}

impl Group<'_> {
    /// Whether an iteration came before the present one, if the stage with a position starts it.
    pub(super) fn later_than_first(&self, at: usize) -> Option<ValueId> {
        (self.first == at).then_some(self.later)
    }

    /// Starts it, and waits until no other is under way.
    fn start(&self, b: &mut Builder, around: Around<'_>) -> Result<(), Defect> {
        let outer = b.loops_around(self.target.around.clone());
        let frame = Frame {
            around: Around { behind: None, ..around },
            more_blocks: false,
            instances: &self.instances,
            staged: &self.staged,
            target: Some(&self.target),
            set: &[],
        };
        let found = super::stage::lower(b, self.at, &frame);
        b.loops_around(outer);
        found
    }
}

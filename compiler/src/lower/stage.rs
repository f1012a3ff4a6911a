//! One stage as a loop nest: bound leaves from the block and thread index, sequential leaves as loops, predicates as branches at the
//! outermost point where they are decided, the result stored once per element.
//!
//! A reduction whose axes are in the nest keeps one accumulator for every element of the data loops inside it: those are
//! written out, first around the terms, then again around the stores.

use tilewright_kernel::algorithm::{Compare, ValueId as AlgorithmValue};

use super::across::{self, Layout};
use super::combine::Digit;
use super::inner::{Held as HeldStage, Instance, Storage};
use super::staging::{Copy, Held};
use super::value::{Accumulator, Bound, Lane, Scope, Values, expression, size};
use crate::domain::{Arithmetic, AxisId, AxisKind, Binding};
use crate::extent::{Expr, Facts, Var};
use crate::holes::{Holes, Predicate, Side};
use crate::kernel_ir::{Builder, Memory, Type, ValueId, VariableId, WARP};
use crate::memory::vector::Vector;
use crate::memory::{access, buffer};
use crate::program::Program;
use crate::schedule::{self, AXIS, Owner, Place, ROOT, Stage, register_loops};
use crate::tma::staged::Way;

use super::Analysed;
use super::emit::functions::NoFunction;

/// Index arithmetic as instructions.
struct Emit<'a> {
    b: &'a mut Builder,
    index: Type,
}

impl Arithmetic for Emit<'_> {
    type Value = ValueId;
    fn size(&mut self, e: &Expr) -> ValueId {
        size(self.b, e, self.index)
    }
    fn add(&mut self, a: &ValueId, b: &ValueId) -> ValueId {
        self.b.index_add(*a, *b)
    }
    fn mul(&mut self, a: &ValueId, b: &ValueId) -> ValueId {
        self.b.index_mul(*a, *b)
    }
    fn div(&mut self, a: &ValueId, b: &ValueId) -> ValueId {
        self.b.index_div(*a, *b)
    }
    fn modulo(&mut self, a: &ValueId, b: &ValueId) -> ValueId {
        self.b.index_mod(*a, *b)
    }
    fn xor(&mut self, a: &ValueId, b: &ValueId, _bound: &Expr) -> ValueId {
        self.b.index_xor(*a, *b)
    }
}

/// The state of one descent into the nest.
#[derive(Clone)]
pub(super) struct Point {
    /// Values of axes, as far as their leaves are set.
    pub(super) values: Vec<Option<ValueId>>,
    /// Predicates that were emitted.
    done: Vec<bool>,
    /// Which accumulator: position among the written-out data iterations.
    accumulator: usize,
    /// Where what is fetched is read: elsewhere it is zero.
    filled: Option<ValueId>,
    /// Conditions that threads may disagree on, held back until every copy that all of them wait for is there.
    pub(super) pending: Vec<Condition>,
}

/// What must hold for a point to do anything.
#[derive(Clone, Copy)]
pub(super) struct Condition {
    holds: ValueId,
    /// Whether terms may be taken in where it does not (see [`crate::tma::demand`]).
    waived: bool,
    /// Whether the element has a place in the instance where it does not, and nobody reads it.
    fills: bool,
}

impl Condition {
    pub(super) const fn holds(self) -> ValueId {
        self.holds
    }
}

/// What happens at the innermost point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Take in a term.
    Accumulate,
    /// Store the element.
    Store,
}

pub(super) struct Nest<'a, 'b> {
    pub(super) b: &'b mut Builder,
    /// The stage with all that was found out about it.
    pub(super) analysed: &'a Analysed,
    program: &'a Program,
    pub(super) facts: &'a Facts,
    pub(super) stage: &'a Stage,
    holes: &'a Holes,
    pub(super) values: Values<'a>,
    vector: Option<Vector>,
    /// For each kept predicate, whether terms need not test it.
    waived: Vec<bool>,
    /// Sequential leaves, outermost first.
    pub(super) sequence: Vec<AxisId>,
    /// Position in `sequence` where the reduction starts: its first axis, or the end.
    split: usize,
    accumulators: Vec<Accumulator>,
    /// What keeps units out that have no terms.
    of_terms: Vec<ValueId>,
    /// What blocks that share results share beside, from that workspace on.
    across: Option<(Layout, u16)>,
    /// Staged copies.
    pub(super) copies: Vec<Copy<'a>>,
    /// Buffers of staged outputs that elements are written to at this point.
    pub(super) targets: Vec<Held<'a>>,
    pub(super) index: Type,
    /// What all stages share.
    pub(super) around: Around<'a>,
    /// The stages that stand in its loops, each with the loops around it; in an order in which they can be computed.
    pub(super) children: Vec<(usize, usize)>,
    /// The outputs that stand beside it, each with the loops of its own around it.
    pub(super) besides: Vec<(usize, usize)>,
    /// The instance that it computes; none if it is an output.
    pub(super) target: Option<Instance<'a>>,
}

/// What all stages of an entry point share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around<'a> {
    /// Threads of a block.
    pub threads: u32,
    /// Type of index integers.
    pub index: Type,
    /// All stages of the kernel.
    pub stages: &'a [Analysed],
    /// What they have in shared memory.
    pub storage: &'a [Storage],
    /// The staged copies that stand in their loops; none if copies are not staged.
    pub copies: &'a [Vec<Copy<'a>>],
}

/// What surrounds a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// What it shares with the others.
    pub around: Around<'a>,
    /// Whether the launch may have more blocks than the stage uses.
    pub more_blocks: bool,
    /// Its first workspace, if it has any.
    pub workspace: u16,
    /// The instances that it can read.
    pub instances: &'a [Instance<'a>],
    /// The staged copies that it can read.
    pub staged: &'a [Held<'a>],
    /// The instance that it computes; none if it is an output.
    pub target: Option<&'a Instance<'a>>,
    /// The first leaves, where loops around have set them already.
    pub set: &'a [ValueId],
}

/// Emits the stage with a position among all.
///
/// # Errors
/// A function that its type does not have, which the program room should have refused.
pub(super) fn lower(b: &mut Builder, own: usize, frame: &Frame<'_>) -> Result<(), NoFunction> {
    let Frame { around, more_blocks, workspace, instances, staged, target, set } = *frame;
    let Around { threads, index, stages, copies, .. } = around;
    let analysed = &stages[own];
    let stage = &analysed.stage;
    let (program, facts) = (&stage.program, &stage.facts);
    let (sequence, split) = across::loops(stage);
    b.line(stage.statement as u32 + 1);
    let values = Values {
        program,
        facts,
        symbolic: &analysed.symbolic,
        index,
        lane: None,
        reduced: None,
        next_var: (facts.dims() + analysed.symbolic.variables.len()) as u32,
        conditional: false,
        staged: staged.to_vec(),
        copies_of: if stage.copy.is_some() { &stage.serves } else { &[] },
        instances: instances.to_vec(),
        literals: Vec::new(),
        defect: None,
    };
    // Readers were placed before what they read.
    let inner = stages.iter().enumerate().rev();
    let at = |(n, s): (usize, &Analysed)| {
        s.stage.attach.as_ref().filter(|attach| attach.stage == own).map(|attach| (n, attach.loops))
    };
    let children = inner.filter_map(at).collect();
    let beside = |(n, s): (usize, &Analysed)| {
        s.stage.beside.as_ref().filter(|beside| beside.stage == own).map(|beside| (n, beside.loops))
    };
    let besides = stages.iter().enumerate().filter_map(beside).collect();
    // Only where the copies are.
    let copies = copies.get(own).map_or(&[][..], Vec::as_slice);
    let waives = |p: usize| !copies.is_empty() && analysed.waived.iter().any(|w| w.predicate == p);
    let waived: Vec<bool> = (0..analysed.holes.kept.len()).map(waives).collect();
    let mut nest = Nest {
        b,
        analysed,
        program,
        facts,
        stage,
        holes: &analysed.holes,
        values,
        vector: analysed.vector.clone(),
        waived,
        sequence,
        split,
        accumulators: Vec::new(),
        of_terms: Vec::new(),
        copies: copies.to_vec(),
        across: Layout::of(stage).map(|layout| (layout, workspace)),
        targets: Vec::new(),
        index,
        around,
        children,
        besides,
        target: target.cloned(),
    };
    let mut point = Point {
        values: vec![None; stage.domain.axes.len()],
        done: vec![false; analysed.holes.kept.len() + stage.limits.len() + 1],
        accumulator: 0,
        filled: None,
        pending: Vec::new(),
    };
    let (mut guards, terms) = nest.bind(&mut point, threads);
    for (leaf, value) in stage.domain.leaves.iter().zip(set) {
        point.values[*leaf] = Some(*value);
    }
    nest.of_terms = terms;
    let mut exists = Vec::new();
    if more_blocks {
        let (at, count) = (nest.block(), nest.blocks());
        exists.push(nest.b.index_compare(Compare::Lt, at, count));
    }
    // What stands beside it has the same blocks.
    let alone = nest.besides.is_empty();
    if alone {
        guards.append(&mut exists);
    }
    let exists = exists.into_iter().map(|holds| Condition { holds, waived: false, fills: false }).collect();
    let outer = nest.open_if(exists);
    let goal = if stage.reduction.is_some() { Goal::Accumulate } else { Goal::Store };
    // Loops that are around it already.
    let loops = stage.beside.as_ref().map_or(0, |beside| beside.loops);
    let opened = nest.advance(&mut point, guards, loops, goal);
    nest.descend(&point, loops, goal);
    nest.close(opened);
    nest.close(outer);
    nest.drain();
    nest.values.defect.map_or(Ok(()), Err)
}

impl Nest<'_, '_> {
    pub(super) fn size(&mut self, e: &Expr) -> ValueId {
        size(self.b, e, self.index)
    }

    /// Number of blocks of the stage.
    fn blocks(&mut self) -> ValueId {
        let one = self.b.index_literal(self.index, 1);
        let grid = &self.stage.distribution.grid;
        grid.iter().fold(one, |product, axis| {
            let count = self.along(*axis);
            self.b.index_mul(product, count)
        })
    }

    fn block(&mut self) -> ValueId {
        let at = self.b.block_index();
        self.b.index_convert(at, self.index)
    }

    /// Gives bound leaves their values; the predicates that keep idle units out, of everything and of the terms.
    fn bind(&mut self, point: &mut Point, threads: u32) -> (Vec<ValueId>, Vec<ValueId>) {
        let stage = self.stage;
        let (mut guards, mut terms) = (Vec::new(), Vec::new());
        let extent = |a: AxisId| stage.domain.axes[a].extent.clone();
        if !stage.distribution.grid.is_empty() {
            let at = self.block();
            self.unpack(at, &stage.distribution.grid, &|this, n| this.along(stage.distribution.grid[n]), point);
        }
        // An axis of the reduction without iterations has a block that has no terms.
        for axis in stage.across_blocks() {
            if let (e, true) = across::blocks_along(stage, axis, self.facts)
                && let Some(value) = point.values[axis]
            {
                let count = self.size(&e);
                terms.push(self.b.index_compare(Compare::Lt, value, count));
            }
        }
        let axes = |list: &[(AxisId, i128)]| -> Vec<AxisId> { list.iter().map(|l| l.0).collect() };
        let thread = self.b.thread_index();
        let thread = self.b.index_convert(thread, self.index);
        let warp_size = self.b.index_literal(self.index, 32);
        let distribution = &stage.distribution;
        let mut room = i128::from(threads);
        let mut lane = thread;
        if !distribution.warps.is_empty() {
            let warp = self.b.index_div(thread, warp_size);
            lane = self.b.index_mod(thread, warp_size);
            let warps = &distribution.warps;
            self.unpack(warp, &axes(warps), &|this, n| this.b.index_literal(this.index, warps[n].1 as i64), point);
            if distribution.warp_count() < room / 32 {
                let count = self.b.index_literal(self.index, distribution.warp_count() as i64);
                guards.push(self.b.index_compare(Compare::Lt, warp, count));
            }
            room = 32;
        } else if distribution.of_warp {
            lane = self.b.index_mod(thread, warp_size);
            room = 32;
        }
        if stage.beside.is_some() && distribution.threads.is_empty() && room > 1 {
            let first = self.b.index_literal(self.index, 0);
            guards.push(self.b.index_compare(Compare::Eq, lane, first));
        }
        if !distribution.threads.is_empty() {
            let threads = &distribution.threads;
            self.unpack(lane, &axes(threads), &|this, n| this.b.index_literal(this.index, threads[n].1 as i64), point);
            if distribution.thread_count() < room {
                let count = self.b.index_literal(self.index, distribution.thread_count() as i64);
                guards.push(self.b.index_compare(Compare::Lt, lane, count));
            }
        }
        // A bound that only the facts give is larger than some extents.
        for (axis, _) in distribution.warps.iter().chain(&distribution.threads) {
            let e = extent(*axis);
            if e.as_constant().is_none()
                && let Some(value) = point.values[*axis]
            {
                let count = self.size(&e);
                let holds = self.b.index_compare(Compare::Lt, value, count);
                let is_data = stage.domain.axes[*axis].kind == AxisKind::Data;
                if is_data { guards.push(holds) } else { terms.push(holds) }
            }
        }
        (guards, terms)
    }

    /// Splits a unit's number over its axes, the last one fastest.
    fn unpack(
        &mut self,
        number: ValueId,
        axes: &[AxisId],
        count: &dyn Fn(&mut Self, usize) -> ValueId,
        point: &mut Point,
    ) {
        let mut rest = number;
        for (at, axis) in axes.iter().enumerate().rev() {
            if at == 0 {
                point.values[*axis] = Some(rest);
                break;
            }
            let count = count(self, at);
            point.values[*axis] = Some(self.b.index_mod(rest, count));
            rest = self.b.index_div(rest, count);
        }
    }

    /// Computes what the new values decide; the predicates among that. Inside so many loops.
    fn decide(&mut self, point: &mut Point, loops: usize, goal: Goal) -> Vec<Condition> {
        let mut emit = Emit { b: &mut *self.b, index: self.index };
        self.stage.domain.toward_roots(&mut emit, &mut point.values);
        let in_terms = goal == Goal::Accumulate && (loops > self.split || !self.accumulators.is_empty());
        let mut conditions = Vec::new();
        for at in 0..self.holes.kept.len() {
            let predicate = self.holes.kept[at];
            // Units that share a result may have no term each.
            let of_terms = self.stage.domain.axes[predicate.axis].kind == AxisKind::Reduction;
            if point.done[at] || (of_terms && !in_terms) {
                continue;
            }
            let Some(value) = point.values[predicate.axis] else { continue };
            point.done[at] = true;
            let waived = self.waived[at];
            if in_terms && waived {
                continue;
            }
            // Both sides of one axis are one comparison.
            let is_twin = |p: &Predicate| p.axis == predicate.axis && p.side != predicate.side;
            let twin = self.holes.kept.iter().position(is_twin).filter(|twin| self.waived[*twin] == waived);
            let zero = self.b.index_literal(self.index, 0);
            let extent = self.stage.domain.axes[predicate.axis].extent.clone();
            let holds = match (predicate.side, twin) {
                (_, Some(twin)) => {
                    point.done[twin] = true;
                    let extent = self.size(&extent);
                    self.b.in_range(value, extent)
                }
                (Side::Lower, None) => self.b.index_compare(Compare::Ge, value, zero),
                (Side::Upper, None) => {
                    let extent = self.size(&extent);
                    self.b.index_compare(Compare::Lt, value, extent)
                }
            };
            conditions.push(Condition { holds, waived, fills: false });
        }
        for (n, limit) in self.stage.limits.iter().enumerate() {
            let at = self.holes.kept.len() + n;
            if point.done[at] {
                continue;
            }
            let Some(value) = self.of_roots(limit, &point.values) else { continue };
            point.done[at] = true;
            let zero = self.b.index_literal(self.index, 0);
            let holds = self.b.index_compare(Compare::Ge, value, zero);
            conditions.push(Condition { holds, waived: false, fills: true });
        }
        self.decide_members(point, &mut conditions);
        conditions
    }

    /// Whether the element is one that is asked for, once that is known. Lanes of a vector are computed together.
    fn decide_members(&mut self, point: &mut Point, conditions: &mut Vec<Condition>) {
        let at = self.holes.kept.len() + self.stage.limits.len();
        if point.done[at] || self.stage.members.is_empty() || self.vector.is_some() {
            return;
        }
        let zero = self.b.index_literal(self.index, 0);
        let mut any = self.b.bool_literal(false);
        for list in &self.stage.members {
            let mut all = self.b.bool_literal(true);
            for e in list {
                let Some(value) = self.of_roots(e, &point.values) else { return };
                let holds = self.b.index_compare(Compare::Ge, value, zero);
                all = self.b.and(all, holds);
            }
            any = self.b.or(any, all);
        }
        point.done[at] = true;
        conditions.push(Condition { holds: any, waived: false, fills: true });
    }

    /// Whether units that share a result combine what they have.
    fn combines(&self) -> bool {
        !self.stage.reduced.is_empty()
    }

    /// Whether something for all threads of the block stands inside `loops` loops or more.
    fn gathers(&self, loops: usize, goal: Goal) -> bool {
        let inner = |(stage, boundary): &(usize, usize)| {
            *boundary >= loops && self.around.stages[*stage].stage.owner != Owner::Thread
        };
        let combines =
            self.combines() && goal == Goal::Accumulate && self.accumulators.is_empty() && loops <= self.split;
        combines
            || self.copies.iter().any(|copy| copy.boundary >= loops)
            || self.children.iter().any(inner)
            || self.besides.iter().any(|(_, boundary)| *boundary >= loops)
    }

    /// Opens one branch for all predicates that the new values decide, and for `others`, inside so many loops. Returns what
    /// to close. What threads disagree on waits while copies for all of them are to come.
    fn advance(&mut self, point: &mut Point, others: Vec<ValueId>, loops: usize, goal: Goal) -> bool {
        let mut conditions: Vec<Condition> =
            others.into_iter().map(|holds| Condition { holds, waived: false, fills: false }).collect();
        conditions.extend(self.decide(point, loops, goal));
        if self.stage.fetches {
            // An instruction that reads nothing is cheaper than a branch.
            let fills = |c: &Condition| c.fills && !self.b.facts(c.holds).uniform;
            let (fills, others): (Vec<Condition>, Vec<Condition>) = conditions.into_iter().partition(fills);
            let all = point.filled.into_iter().chain(fills.into_iter().map(|c| c.holds));
            point.filled = all.reduce(|a, c| self.b.and(a, c));
            conditions = others;
        }
        // What a ring holds is copied before it is known whether its iteration has anything to do.
        let ahead = |copy: &Copy<'_>| copy.boundary == loops && copy.staged.ring > 1 && copy.staged.way == Way::Load;
        let fetched = |(at, boundary): &(usize, usize)| {
            let stage = &self.around.stages[*at].stage;
            *boundary == loops && stage.ring > 1 && stage.fetches
        };
        let ahead = self.copies.iter().any(ahead) || self.children.iter().any(fetched);
        if self.gathers(loops, goal) {
            // What it decides is not decided for outputs beside it.
            let apart = self.besides.iter().any(|(_, boundary)| *boundary >= loops);
            let agreed = |c: &Condition| self.b.facts(c.holds).uniform && !ahead && !apart;
            let (agreed, held_back) = conditions.into_iter().partition(agreed);
            point.pending.extend::<Vec<Condition>>(held_back);
            conditions = agreed;
        }
        self.open_if(conditions)
    }

    /// Opens a branch where all conditions hold; whether there is one to close.
    pub(super) fn open_if(&mut self, conditions: Vec<Condition>) -> bool {
        let Some(all) = conditions.into_iter().map(|c| c.holds).reduce(|a, c| self.b.and(a, c)) else { return false };
        if self.b.kernel().pred_literal(all) == Some(true) {
            return false;
        }
        self.b.begin_if(all);
        true
    }

    pub(super) fn close(&mut self, opened: bool) {
        if opened {
            self.b.end_if();
        }
    }

    /// Runs the loops from position `k` of the sequence, with the copies that stand in front of them.
    fn descend(&mut self, point: &Point, k: usize, goal: Goal) {
        let storing = goal == Goal::Store && self.stage.reduction.is_some();
        // Around a reduction this is entered twice, for its accumulators and for its terms; its stores come after both.
        let entered = k == self.split && !self.accumulators.is_empty();
        let first = !(storing || entered);
        let held = self.values.instances.len();
        if first {
            self.begin_instances(point, k);
            self.begin_stages(point, k);
        }
        let reduces = self.combines() && goal == Goal::Accumulate && k == self.split && !entered;
        let later = !storing && (reduces || self.gathers(k + 1, goal));
        if later || point.pending.is_empty() {
            self.loops(point, k, goal);
        } else {
            let mut inner = point.clone();
            let mut conditions = std::mem::take(&mut inner.pending);
            // Around a reduction they hold for its store, too.
            if goal == Goal::Accumulate && (entered || k > self.split) {
                conditions.retain(|c| !c.waived);
            }
            let opened = self.open_if(conditions);
            self.loops(&inner, k, goal);
            self.close(opened);
        }
        if first {
            self.beside(point, k);
            self.end_instances(point, k);
            self.values.instances.truncate(held);
        }
    }

    /// The loops themselves.
    fn loops(&mut self, point: &Point, k: usize, goal: Goal) {
        if self.stage.reduction.is_some() && k == self.split && goal == Goal::Accumulate && self.accumulators.is_empty()
        {
            return self.reduce(point, k);
        }
        let Some(&axis) = self.sequence.get(k) else { return self.innermost(point, goal) };
        let is_data = self.stage.domain.axes[axis].kind == AxisKind::Data;
        if goal == Goal::Store && !is_data {
            return self.descend(point, k + 1, goal);
        }
        let binding = self.stage.domain.axes[axis].binding;
        let extent = self.facts.normal(&self.stage.domain.axes[axis].extent);
        if binding == Binding::Vector {
            return self.lanes(point, axis, goal);
        }
        // Inside a reduction every data loop is written out: its accumulators are registers.
        let inside = self.stage.reduction.is_some() && k > self.split && is_data;
        // So is one that tells registers apart.
        let registers = is_data && self.stage.place == Place::Registers;
        match binding {
            Binding::Unroll(None) => self.unrolled(point, k, goal, axis, &extent, is_data && inside),
            Binding::Unroll(Some(by)) if !inside && !registers => self.partly(point, k, goal, axis, &extent, by),
            _ if inside || registers => self.unrolled(point, k, goal, axis, &extent, inside),
            _ => {
                let count = self.size(&extent);
                self.fill_rings(point, k, count);
                self.fetch_ahead(point, k, count);
                let at = self.b.begin_loop(count);
                self.enter(point, k, goal, axis, at, Vec::new());
                self.b.end_loop();
            }
        }
    }

    /// One iteration: the axis has its value.
    fn enter(&mut self, point: &Point, k: usize, goal: Goal, axis: AxisId, value: ValueId, conditions: Vec<ValueId>) {
        let mut inner = point.clone();
        inner.values[axis] = Some(value);
        let opened = self.advance(&mut inner, conditions, k + 1, goal);
        self.descend(&inner, k + 1, goal);
        self.close(opened);
    }

    /// Every iteration written out, up to the bound that the facts give.
    fn unrolled(&mut self, point: &Point, k: usize, goal: Goal, axis: AxisId, extent: &Expr, accumulators: bool) {
        let copies = extent.as_constant().or_else(|| self.facts.upper_bound(extent)).unwrap_or(0);
        for i in 0..copies {
            let value = self.b.index_literal(self.index, i as i64);
            let mut inner = point.clone();
            if accumulators {
                inner.accumulator = point.accumulator * copies as usize + i as usize;
            }
            let mut conditions = Vec::new();
            if extent.as_constant().is_none() {
                let count = self.size(extent);
                conditions.push(self.b.index_compare(Compare::Lt, value, count));
            }
            self.values.literals.push((self.leaf_var(axis), i));
            self.enter(&inner, k, goal, axis, value, conditions);
            self.values.literals.pop();
        }
    }

    /// The variable of a leaf.
    fn leaf_var(&self, axis: AxisId) -> Var {
        let at = self.stage.domain.leaves.iter().position(|leaf| *leaf == axis).unwrap_or(0);
        (self.facts.dims() + at) as Var
    }

    /// `by` iterations written out in a loop; a tail is guarded.
    fn partly(&mut self, point: &Point, k: usize, goal: Goal, axis: AxisId, extent: &Expr, by: i128) {
        let step = Expr::constant(by);
        let trips = self.size(&self.facts.normal(&extent.ceil_div(&step)));
        let at = self.b.begin_loop(trips);
        let factor = self.b.index_literal(self.index, by as i64);
        let first = self.b.index_mul(at, factor);
        let whole = self.facts.proves_multiple(extent, by);
        for i in 0..by {
            let offset = self.b.index_literal(self.index, i as i64);
            let value = self.b.index_add(first, offset);
            let mut conditions = Vec::new();
            if !whole {
                let count = self.size(extent);
                conditions.push(self.b.index_compare(Compare::Lt, value, count));
            }
            self.enter(point, k, goal, axis, value, conditions);
        }
        self.b.end_loop();
    }

    /// The reduction: accumulators, the terms, then the stores.
    fn reduce(&mut self, point: &Point, k: usize) {
        let Some(reduction) = self.stage.reduction else { return };
        // The data loops inside, outermost first, with their iterations: each combination has an accumulator.
        let inside: Vec<(AxisId, i128)> = (self.sequence[k..].iter())
            .filter(|a| self.stage.domain.axes[**a].kind == AxisKind::Data)
            .map(|a| (*a, across::copies(self.stage, *a, self.facts)))
            .collect();
        let count: i128 = inside.iter().map(|i| i.1).product();
        self.accumulators = Vec::new();
        for number in 0..count {
            // Initial values of a fold may depend on the element, and may be read where there is one.
            let mut first = point.clone();
            let mut conditions = Vec::new();
            let mut rest = number;
            for (axis, copies) in inside.iter().rev() {
                let value = self.b.index_literal(self.index, (rest % copies) as i64);
                first.values[*axis] = Some(value);
                let extent = self.facts.normal(&self.stage.domain.axes[*axis].extent);
                if extent.as_constant().is_none() {
                    let count = self.size(&extent);
                    conditions.push(self.b.index_compare(Compare::Lt, value, count));
                }
                rest /= copies;
            }
            let decided = self.decide(&mut first, k, Goal::Store).into_iter();
            conditions.extend(decided.chain(std::mem::take(&mut first.pending)).map(|c| c.holds));
            let scope = self.scope(&first.values);
            let guard = conditions.into_iter().reduce(|a, c| self.b.and(a, c));
            let accumulator = self.values.start(self.b, reduction, &scope, guard);
            self.accumulators.push(accumulator);
        }
        // What stands inside the loops over the terms is not there behind them: they may have no iteration.
        let held = self.values.staged.clone();
        let starts: Vec<Vec<ValueId>> = match self.across {
            Some(_) => self.accumulators().iter().map(|v| v.iter().map(|v| self.b.get(*v)).collect()).collect(),
            None => Vec::new(),
        };
        let mut terms = point.clone();
        let of_terms = if self.combines() { self.of_terms.clone() } else { Vec::new() };
        let opened = self.combines() && self.advance(&mut terms, of_terms, k, Goal::Accumulate);
        self.descend(&terms, k, Goal::Accumulate);
        self.close(opened);
        self.values.staged = held;
        let mut store = point.clone();
        let across = self.across.clone();
        if self.combines() {
            self.combine(reduction);
            if let Some((layout, first)) = &across {
                self.across_blocks(layout, *first, reduction, point, &starts);
            }
            if self.stage.place != Place::Registers {
                // One of those that share the result.
                let zero = self.b.index_literal(self.index, 0);
                let of_blocks: Vec<AxisId> = self.stage.across_blocks().collect();
                for reduced in self.stage.reduced.iter().filter(|r| !of_blocks.contains(&r.axis)) {
                    if let Some(value) = point.values[reduced.axis] {
                        let holds = self.b.index_compare(Compare::Eq, value, zero);
                        store.pending.push(Condition { holds, waived: false, fills: false });
                    }
                }
            }
        }
        self.descend(&store, k, Goal::Store);
        if across.is_some() {
            self.b.end_if();
        }
        self.accumulators.clear();
    }

    /// The variables of each accumulator.
    pub(super) fn accumulators(&self) -> Vec<Vec<VariableId>> {
        self.accumulators.iter().map(Accumulator::variables).collect()
    }

    /// Combines the accumulators of the threads that share results.
    pub(super) fn combine(&mut self, reduction: AlgorithmValue) {
        let narrow = |n: i128| u32::try_from(n).unwrap_or(u32::MAX);
        let digit =
            |d: &schedule::Digit| Digit { stride: narrow(d.stride), extent: narrow(d.extent), reduced: d.reduced };
        let mut digits: Vec<Digit> = schedule::digits(self.stage).iter().map(digit).collect();
        if self.stage.distribution.of_warp {
            // Each warp for itself.
            digits.insert(0, Digit { stride: WARP, extent: self.around.threads / WARP, reduced: false });
        }
        for accumulator in self.accumulators.clone() {
            let variables = accumulator.variables();
            let states: Vec<ValueId> = variables.iter().map(|v| self.b.get(*v)).collect();
            let values = &mut self.values;
            let mut merge =
                |b: &mut Builder, left: &[ValueId], right: &[ValueId]| values.merge(b, reduction, left, right);
            let name = format!("{}_parts", self.stage.name);
            let all = super::combine::across_threads(self.b, &name, self.around.threads, &digits, &states, &mut merge);
            for (variable, value) in variables.into_iter().zip(all) {
                self.b.set(variable, value);
            }
        }
    }

    /// The vectorised axis: all lanes at one point.
    fn lanes(&mut self, point: &Point, axis: AxisId, goal: Goal) {
        let Some(vector) = self.vector.clone() else { return };
        // Guards are uniform over the lanes: lane 0 decides.
        let zero = self.b.index_literal(self.index, 0);
        let mut first = point.clone();
        first.values[axis] = Some(zero);
        let opened = self.advance(&mut first, Vec::new(), self.sequence.len(), goal);
        self.values.lane = Some(Lane { vector: vector.clone(), number: 0, loaded: Default::default() });
        let is_data = self.stage.domain.axes[axis].kind == AxisKind::Data;
        let mut results: Vec<Vec<ValueId>> = Vec::new();
        let mut points = Vec::new();
        for lane in 0..vector.lanes {
            let value = self.b.index_literal(self.index, lane as i64);
            let mut inner = point.clone();
            inner.values[axis] = Some(value);
            let mut emit = Emit { b: &mut *self.b, index: self.index };
            self.stage.domain.toward_roots(&mut emit, &mut inner.values);
            if is_data && !self.accumulators.is_empty() {
                inner.accumulator = point.accumulator * vector.lanes as usize + lane as usize;
            }
            if let Some(state) = &mut self.values.lane {
                state.number = lane as u32;
            }
            self.values.literals.push((vector.var, lane));
            match goal {
                Goal::Accumulate => self.accumulate(&inner),
                Goal::Store if self.stage.fetches => {}
                Goal::Store => results.push(self.elements(&inner)),
            }
            self.values.literals.pop();
            points.push(inner);
        }
        self.values.lane = None;
        if let Some(target) = self.target.clone().filter(|_| self.stage.fetches) {
            self.fetch(&target, &points, first.filled);
        } else if goal == Goal::Store {
            let components = results.first().map_or(0, Vec::len);
            for c in 0..components {
                let lanes: Vec<ValueId> = results.iter().map(|r| r[c]).collect();
                self.store(&points, c, &lanes);
            }
        }
        self.close(opened);
    }

    fn innermost(&mut self, point: &Point, goal: Goal) {
        match goal {
            Goal::Accumulate => self.accumulate(point),
            Goal::Store if self.stage.fetches => {
                if let Some(target) = self.target.clone() {
                    self.fetch(&target, std::slice::from_ref(point), point.filled);
                }
            }
            Goal::Store => {
                let elements = self.elements(point);
                for (c, element) in elements.into_iter().enumerate() {
                    self.store(std::slice::from_ref(point), c, &[element]);
                }
            }
        }
    }

    /// The value of an expression over the roots, as [`Stage::indices`] are, or over other axes; none if one of them has none.
    pub(super) fn of_roots(&mut self, e: &Expr, values: &[Option<ValueId>]) -> Option<ValueId> {
        let roots = &self.stage.domain.roots;
        let root = |v: Var| match v.checked_sub(AXIS) {
            Some(axis) => Some(values.get(axis as usize).copied().flatten()),
            None => v.checked_sub(ROOT).map(|n| roots.get(n as usize).and_then(|root| values[*root])),
        };
        if e.vars().into_iter().any(|v| root(v) == Some(None)) {
            return None;
        }
        let ty = self.index;
        Some(expression(self.b, e, ty, &|b, v| root(v).flatten().unwrap_or_else(|| b.dim(v as u16, ty))))
    }

    /// The algorithm's axes at a point.
    pub(super) fn scope(&mut self, values: &[Option<ValueId>]) -> Scope {
        let mut scope = Scope::default();
        for (axis, index) in &self.stage.indices {
            let Some(value) = self.of_roots(index, values) else { continue };
            let expr = access::of_roots(index, self.stage, self.values.symbolic);
            scope.axes.insert(*axis, Bound { value, expr });
        }
        scope
    }

    fn accumulate(&mut self, point: &Point) {
        let Some(reduction) = self.stage.reduction else { return };
        let scope = self.scope(&point.values);
        if let Some(accumulator) = self.accumulators.get(point.accumulator).cloned() {
            self.values.step(self.b, reduction, &accumulator, &scope);
        }
    }

    /// The value of every component that is stored.
    fn elements(&mut self, point: &Point) -> Vec<ValueId> {
        if let Some(reduction) = self.stage.reduction
            && let Some(accumulator) = self.accumulators.get(point.accumulator).cloned()
        {
            let states = self.values.finish(self.b, &accumulator);
            self.values.reduced = Some((reduction, states));
        }
        let scope = self.scope(&point.values);
        let components = self.stored();
        let values = components.into_iter().map(|value| self.values.value(self.b, value, &scope)).collect();
        self.values.reduced = None;
        values
    }

    /// Every component that is stored: outputs, or all of a stage inside others.
    fn stored(&self) -> Vec<AlgorithmValue> {
        let equation = &self.program.algorithm.equations[self.stage.equation];
        let components = &self.program.algorithm.components[equation.components.range()];
        let inner = self.target.is_some();
        components.iter().filter(|c| inner || c.parameter.is_some()).map(|c| c.value).collect()
    }

    /// Stores lanes of a component of the instance.
    fn store_instance(&mut self, target: &Instance<'_>, points: &[Point], component: usize, lanes: &[ValueId]) {
        match target.memory.get(component) {
            Some(HeldStage::Registers(variables)) => {
                let loops = register_loops(self.stage);
                for (lane, value) in lanes.iter().enumerate() {
                    let number = loops.iter().fold(0, |number, (leaf, most)| {
                        let var = self.leaf_var(*leaf);
                        let is_lane = points.len() > 1 && self.vector.as_ref().is_some_and(|v| v.axis == *leaf);
                        let known = self.values.literals.iter().rfind(|(v, _)| *v == var).map_or(0, |l| l.1);
                        number * most + if is_lane { lane as i128 } else { known }
                    });
                    if let Some(variable) = usize::try_from(number).ok().and_then(|n| variables.get(n)) {
                        self.b.set(*variable, *value);
                    }
                }
            }
            Some(HeldStage::Buffer { buffer, base }) => {
                let bytes = self.b.kernel().buffers[buffer.index()].element.bytes();
                let symbolic = self.values.symbolic;
                let run = match self.vector.as_ref().filter(|_| points.len() > 1) {
                    Some(vector) => buffer::written(self.stage, &self.stage.layout, vector, symbolic, bytes) as usize,
                    None => 1,
                };
                for (points, values) in points.chunks(run).zip(lanes.chunks(run)) {
                    if let Some(at) = self.place(&points[0], *buffer, *base) {
                        self.b.store(Memory::Shared(*buffer), at, values);
                    }
                }
            }
            None => {}
        }
    }

    /// Value and parameter of every component that is an output.
    fn outputs(&self) -> Vec<(AlgorithmValue, u16)> {
        let equation = &self.program.algorithm.equations[self.stage.equation];
        let components = &self.program.algorithm.components[equation.components.range()];
        components.iter().filter_map(|c| c.parameter.map(|p| (c.value, p))).collect()
    }

    /// Stores one component of an element, or of the neighbours that a vector's lanes are, each with its point.
    fn store(&mut self, points: &[Point], component: usize, lanes: &[ValueId]) {
        if let Some(target) = self.target.clone() {
            return self.store_instance(&target, points, component, lanes);
        }
        let (Some(&(_, parameter)), Some(point)) = (self.outputs().get(component), points.first()) else { return };
        let Some(tensor) = access::tensor(self.program, parameter) else { return };
        if let Some(held) = self.targets.iter().find(|held| held.staged.parameter == parameter) {
            return self.store_staged(&held.clone(), points, lanes);
        }
        let scope = self.scope(&point.values);
        let equation = &self.program.algorithm.equations[self.stage.equation];
        let strides = access::strides(tensor, self.facts);
        let mut offset = self.b.index_literal(self.index, 0);
        for (axis, stride) in self.program.algorithm.axis_lists[equation.axes.range()].iter().zip(&strides) {
            let Some(bound) = scope.axes.get(axis) else { continue };
            let stride = self.size(stride);
            let scaled = self.b.index_mul(bound.value, stride);
            offset = self.b.index_add(offset, scaled);
        }
        self.b.store(Memory::Parameter(parameter), offset, lanes);
    }

    /// Stores to the buffer of a staged output: as many lanes at a time as are neighbours there.
    fn store_staged(&mut self, held: &Held<'_>, points: &[Point], lanes: &[ValueId]) {
        let program = self.program;
        let axes = &program.algorithm.axis_lists[program.algorithm.equations[self.stage.equation].axes.range()];
        let mut run = 1;
        for (at, point) in points.iter().enumerate() {
            let scope = self.scope(&point.values);
            if at == 0
                && let Some(vector) = self.vector.as_ref().filter(|_| points.len() > 1)
            {
                let of_leaves = access::stage_scope(self.stage, self.values.symbolic);
                let indices: Vec<Expr> =
                    axes.iter().map(|a| of_leaves.get(a).map_or_else(Expr::unknown, Expr::clone)).collect();
                run = held.staged.neighbours(&indices, vector, self.values.symbolic, self.facts) as usize;
            }
            if at % run != 0 {
                continue;
            }
            let indices: Vec<ValueId> =
                axes.iter().filter_map(|a| scope.axes.get(a).map(|bound| bound.value)).collect();
            let offset = held.offset(self.b, &indices, self.index);
            let Some(values) = lanes.get(at..at + run) else { continue };
            self.b.store(Memory::Shared(held.buffer), offset, values);
        }
    }
}

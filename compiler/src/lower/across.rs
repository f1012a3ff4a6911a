//! Reductions across blocks: each block writes its partial states to memory that all of them share, and the last one to arrive merges them.
//!
//! **Groups.** Blocks that differ only in axes of the reduction share results: a group, which has a counter. Of each state a group has a
//! workspace with
//!
//! ```text
//! [group][accumulator][partial][slot]
//! ```
//!
//! where a group is given by the block's axes of the result and the loops around the reduction, an accumulator by the loops of the result
//! inside it, a partial by the block's axes of the reduction, a slot by the threads' axes of the result.
//!
//! **Order.** A partial is written by one thread of those that have it. The last block reads all partials of its group: its threads that
//! share a result divide them in runs, each takes in its run in ascending order, and then they merge what they have as they do with
//! terms. So the order depends on the numbers of blocks and threads alone, and not on which block is the last.
//!
//! **Atomic operations.** `by atomic` has one element instead of the partials, in which blocks combine what they have as they come: a word of
//! zero at first ([`Word`]). The last block takes the word, and leaves zero.
//!
//! **Empty ranges.** An axis of a reduction without iterations still has one block, which has no terms: results are the identity.

use tilewright_kernel::algorithm::{Compare, Reduction, Value, ValueId as AlgorithmValue};
use tilewright_kernel::info::Workspace;
use tilewright_kernel::{ElementType, Size, SizeOp};

use super::atomic::Word;
use super::stage::{Nest, Point};
use crate::domain::{AxisId, AxisKind};
use crate::extent::{Expr, Facts};
use crate::kernel_ir::{Guard, Memory, Type, ValueId};
use crate::schedule::{Stage, digits};

/// Loads of a thread that are under way together.
const CHUNK: usize = 8;

/// Iterations of an axis bound to the grid: an axis of the reduction has a block even if it has none.
pub(super) fn blocks_along(stage: &Stage, axis: AxisId, facts: &Facts) -> (Expr, bool) {
    let along = &stage.domain.axes[axis];
    let extent = facts.normal(&along.extent);
    let may_be_empty = along.kind == AxisKind::Reduction && extent.as_constant().is_none_or(|n| n < 1);
    (extent, may_be_empty)
}

/// A number of iterations as a size.
fn along(stage: &Stage, axis: AxisId, facts: &Facts) -> Option<Size> {
    let (extent, may_be_empty) = blocks_along(stage, axis, facts);
    let size = extent.to_size(facts.dims())?;
    Some(if may_be_empty { Size::binary(SizeOp::Max, &size, &Size::constant(1)) } else { size })
}

fn product(mut factors: impl Iterator<Item = Option<Size>>) -> Option<Size> {
    let first = factors.next().unwrap_or_else(|| Some(Size::constant(1)))?;
    factors.try_fold(first, |product, factor| Some(times(&product, &factor?)))
}

fn times(a: &Size, b: &Size) -> Size {
    match (a.as_constant(), b.as_constant()) {
        (Some(1), _) => b.clone(),
        (_, Some(1)) => a.clone(),
        (Some(x), Some(y)) if x.checked_mul(y).is_some() => Size::constant(x * y),
        _ => Size::binary(SizeOp::Mul, a, b),
    }
}

/// Number of blocks of a stage; none if it cannot be written down.
pub fn blocks(stage: &Stage, facts: &Facts) -> Option<Size> {
    product(stage.distribution.grid.iter().map(|axis| along(stage, *axis, facts)))
}

/// What blocks share of a stage.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The axes that tell groups apart, outermost first: those of the block, then loops.
    groups: Vec<AxisId>,
    /// Results of a thread in one group.
    accumulators: i128,
    /// The axes that tell partials apart, outermost first.
    partials: Vec<AxisId>,
    /// The axes that tell apart the results of a block's threads, outermost first, with the most iterations that each has.
    slots: Vec<(AxisId, i128)>,
    /// The same for threads that share results.
    ranks: Vec<(AxisId, i128)>,
    /// Types of the states.
    states: Vec<ElementType>,
    /// What blocks combine by atomic operations, if they do.
    word: Option<Word>,
}

/// The loops of a stage, outermost first, and where its reduction starts among them: at its first axis, or at lanes, which come last.
pub(super) fn loops(stage: &Stage) -> (Vec<AxisId>, usize) {
    use crate::domain::Binding;
    let axes = &stage.domain.axes;
    let sequence = stage.sequence();
    let starts = |a: &AxisId| axes[*a].kind == AxisKind::Reduction || axes[*a].binding == Binding::Vector;
    let first = stage.reduction.and_then(|_| sequence.iter().position(starts));
    let split = first.unwrap_or(sequence.len());
    (sequence, split)
}

/// The iterations of a loop that is written out inside a reduction.
pub(super) fn copies(stage: &Stage, axis: AxisId, facts: &Facts) -> i128 {
    let extent = facts.normal(&stage.domain.axes[axis].extent);
    extent.as_constant().or_else(|| facts.upper_bound(&extent)).unwrap_or(1).max(1)
}

/// The types of a reduction's states, in the order of its accumulator.
fn states(stage: &Stage, reduction: AlgorithmValue) -> Vec<ElementType> {
    let algorithm = &stage.program.algorithm;
    match algorithm.values[reduction as usize] {
        Value::Reduce { op: Reduction::ArgMax | Reduction::ArgMin, body, .. } => {
            vec![algorithm.types[body as usize], ElementType::U32, ElementType::Bool]
        }
        Value::Fold { states, .. } => {
            algorithm.folds[states.range()].iter().map(|s| algorithm.types[s.init as usize]).collect()
        }
        _ => vec![algorithm.types[reduction as usize]],
    }
}

impl Layout {
    /// What the blocks of a stage share; none if none of them share results.
    pub(super) fn of(stage: &Stage) -> Option<Self> {
        let partials: Vec<AxisId> = stage.across_blocks().collect();
        let reduction = stage.reduction.filter(|_| !partials.is_empty())?;
        let (sequence, split) = loops(stage);
        let is_data = |a: &AxisId| stage.domain.axes[*a].kind == AxisKind::Data;
        let grid = stage.distribution.grid.iter().copied().filter(is_data);
        let groups = grid.chain(sequence[..split].iter().copied()).collect();
        let inside = sequence[split..].iter().filter(|a| is_data(a));
        let accumulators = inside.map(|a| copies(stage, *a, &stage.facts)).product();
        let of = |reduced: bool| {
            let digits = digits(stage).into_iter().filter(move |d| d.reduced == reduced);
            digits.map(|d| (d.leaf, d.extent)).collect()
        };
        let (slots, ranks) = (of(false), of(true));
        let states = states(stage, reduction);
        let word = match stage.program.algorithm.values[reduction as usize] {
            Value::Reduce { op, .. } if stage.is_atomic() => Some(Word::of(op, states[0])?),
            _ => None,
        };
        Some(Self { groups, accumulators, partials, slots, ranks, states, word })
    }

    fn slots(&self) -> i128 {
        self.slots.iter().map(|s| s.1).product()
    }

    fn ranks(&self) -> i128 {
        self.ranks.iter().map(|r| r.1).product()
    }

    /// The memory that blocks share: counters, then each state.
    fn workspaces(&self, stage: &Stage, facts: &Facts) -> Option<Vec<Workspace>> {
        let groups = product(self.groups.iter().map(|axis| along(stage, *axis, facts)))?;
        let partials = product(self.partials.iter().map(|axis| along(stage, *axis, facts)))?;
        let within = i64::try_from(self.accumulators.checked_mul(self.slots())?).ok()?;
        let within = Size::constant(within);
        let elements = times(&times(&groups, &partials), &within);
        let name = |n: usize| match self.states.len() {
            _ if self.word.is_some() => format!("{}_combined", stage.name),
            1 => format!("{}_parts", stage.name),
            _ => format!("{}_parts{n}", stage.name),
        };
        let counters = Workspace {
            name: format!("{}_arrived", stage.name).into(),
            element: ElementType::U32,
            elements: groups.clone(),
            zeroed: true,
        };
        if let Some(word) = self.word {
            let (name, element) = (name(0).into(), word.word);
            let elements = times(&groups, &within);
            return Some(vec![counters, Workspace { name, element, elements, zeroed: true }]);
        }
        let parts = self.states.iter().enumerate().map(|(n, element)| Workspace {
            name: name(n).into(),
            element: *element,
            elements: elements.clone(),
            zeroed: false,
        });
        Some(std::iter::once(counters).chain(parts).collect())
    }

    /// A bound of the number of elements of each workspace.
    pub(super) fn bound(&self, stage: &Stage, facts: &Facts) -> Expr {
        let factor = |axis: &AxisId| {
            let (extent, may_be_empty) = blocks_along(stage, *axis, facts);
            if may_be_empty { extent.add(&Expr::constant(1)) } else { extent }
        };
        let all = self.groups.iter().chain(&self.partials).map(factor);
        all.fold(Expr::constant(self.accumulators * self.slots()), |product, factor| product.mul(&factor))
    }
}

/// What blocks share of all stages, in order; none if a size cannot be written down.
pub fn workspaces<'a>(stages: impl Iterator<Item = &'a Stage>, facts: &Facts) -> Option<Vec<Workspace>> {
    let each = stages.filter_map(|stage| Some(Layout::of(stage)?.workspaces(stage, facts)));
    Some(each.collect::<Option<Vec<_>>>()?.concat())
}

/// Where the states of a group lie.
#[derive(Clone, Copy)]
struct Place {
    /// The group.
    group: ValueId,
    /// Number of its partials.
    partials: ValueId,
    /// The thread's slot.
    slot: ValueId,
}

impl Nest<'_, '_> {
    /// Iterations of an axis bound to the grid.
    pub(super) fn along(&mut self, axis: AxisId) -> ValueId {
        let (extent, may_be_empty) = blocks_along(self.stage, axis, self.facts);
        let count = self.size(&extent);
        if !may_be_empty {
            return count;
        }
        let one = self.b.index_literal(self.index, 1);
        self.b.index_max(count, one)
    }

    /// The number of a point along several axes, the last one fastest.
    fn number(&mut self, point: &Point, axes: impl Iterator<Item = (AxisId, ValueId)>) -> ValueId {
        let mut number = self.b.index_literal(self.index, 0);
        for (axis, count) in axes {
            let Some(value) = point.values[axis] else { continue };
            number = self.b.index_mul(number, count);
            number = self.b.index_add(number, value);
        }
        number
    }

    fn counts(&mut self, axes: &[AxisId]) -> Vec<(AxisId, ValueId)> {
        axes.iter().map(|axis| (*axis, self.along(*axis))).collect()
    }

    fn literals(&mut self, axes: &[(AxisId, i128)]) -> Vec<(AxisId, ValueId)> {
        axes.iter().map(|(axis, n)| (*axis, self.b.index_literal(self.index, *n as i64))).collect()
    }

    /// Where the partial with a number lies.
    fn partial(&mut self, layout: &Layout, place: Place, accumulator: usize, number: ValueId) -> ValueId {
        let literal = |this: &mut Self, n: i128| this.b.index_literal(this.index, n as i64);
        let (all, own, slots) =
            (literal(self, layout.accumulators), literal(self, accumulator as i128), literal(self, layout.slots()));
        let group = self.b.index_mul(place.group, all);
        let group = self.b.index_add(group, own);
        let first = self.b.index_mul(group, place.partials);
        let at = self.b.index_add(first, number);
        let at = self.b.index_mul(at, slots);
        self.b.index_add(at, place.slot)
    }

    /// Hands the states of this block to the last one of its group, and opens the branch in which that block has the states of all.
    /// `starts` are the states without terms.
    pub(super) fn across_blocks(
        &mut self,
        layout: &Layout,
        first: u16,
        reduction: AlgorithmValue,
        point: &Point,
        starts: &[Vec<ValueId>],
    ) {
        let ty = self.index;
        let yes = self.b.bool_literal(true);
        let live = point.pending.iter().fold(yes, |all, c| self.b.and(all, c.holds()));
        let (groups, partials) = (self.counts(&layout.groups), self.counts(&layout.partials));
        let (slots, ranks) = (self.literals(&layout.slots), self.literals(&layout.ranks));
        let one = self.b.index_literal(ty, 1);
        let count = partials.iter().fold(one, |product, (_, n)| self.b.index_mul(product, *n));
        let group = self.number(point, groups.into_iter());
        let own = self.number(point, partials.into_iter());
        let slot = self.number(point, slots.into_iter());
        let rank = self.number(point, ranks.into_iter());
        let place = Place { group, partials: count, slot };
        let memory = |component: usize| Memory::Workspace(first + 1 + component as u16);
        // One of those that share the result; of a block with one result the thread that arrives, so that nobody needs to wait for it.
        let zero = self.b.index_literal(ty, 0);
        let is_first = if layout.slots() == 1 {
            let (thread, zero) = (self.b.thread_index(), self.b.index_literal(Type::I32, 0));
            self.b.index_compare(Compare::Eq, thread, zero)
        } else {
            self.b.index_compare(Compare::Eq, rank, zero)
        };
        let writes = self.b.and(live, is_first);
        let accumulators = self.accumulators();
        let states: Vec<Vec<ValueId>> =
            accumulators.iter().map(|variables| variables.iter().map(|v| self.b.get(*v)).collect()).collect();
        if let Some(word) = layout.word {
            let one = self.b.index_literal(ty, 1);
            let place = Place { partials: one, ..place };
            let words: Vec<ValueId> = states.iter().map(|states| word.encode(self.b, states)).collect();
            self.b.begin_if(writes);
            for (a, word_of) in words.iter().enumerate() {
                let at = self.partial(layout, place, a, zero);
                self.b.update(first + 1, at, word.update(), *word_of);
            }
            self.b.end_if();
            let blocks = self.b.index_convert(count, Type::I32);
            let last = self.b.arrive(first, group, blocks);
            self.b.begin_if(last);
            for (a, variables) in accumulators.iter().enumerate() {
                let at = self.partial(layout, place, a, zero);
                let nothing = self.b.literal(word.word, 0);
                let guard = Guard { predicate: writes, otherwise: &[nothing] };
                let all = self.b.load(memory(0), at, 1, Some(guard))[0];
                self.b.begin_if(writes);
                self.b.store(memory(0), at, &[nothing]);
                self.b.end_if();
                let states = word.decode(self.b, all);
                variables.iter().zip(states).for_each(|(variable, state)| self.b.set(*variable, state));
            }
            return;
        }
        self.b.begin_if(writes);
        for (a, states) in states.iter().enumerate() {
            let at = self.partial(layout, place, a, own);
            for (component, state) in states.iter().enumerate() {
                self.b.store(memory(component), at, &[*state]);
            }
        }
        self.b.end_if();
        let blocks = self.b.index_convert(count, Type::I32);
        let last = self.b.arrive(first, group, blocks);
        self.b.begin_if(last);
        for (variables, states) in accumulators.iter().zip(starts) {
            variables.iter().zip(states).for_each(|(variable, state)| self.b.set(*variable, *state));
        }
        // Each of the threads that share the result takes a run of partials.
        let (sharing, chunk) = (layout.ranks(), (CHUNK / accumulators.len().max(1)).max(1));
        let ceil_div = |this: &mut Self, n: ValueId, by: i128| {
            let (less, by) = (this.b.index_literal(ty, by as i64 - 1), this.b.index_literal(ty, by as i64));
            let n = this.b.index_add(n, less);
            this.b.index_div(n, by)
        };
        let run = ceil_div(self, count, sharing);
        let begin = self.b.index_mul(rank, run);
        let trips = ceil_div(self, run, chunk as i128);
        let trip = self.b.begin_rolled_loop(trips);
        let mut loaded = Vec::with_capacity(chunk);
        for n in 0..chunk {
            let (each, n) = (self.b.index_literal(ty, chunk as i64), self.b.index_literal(ty, n as i64));
            let within = self.b.index_mul(trip, each);
            let within = self.b.index_add(within, n);
            let number = self.b.index_add(begin, within);
            let (mine, exists) =
                (self.b.index_compare(Compare::Lt, within, run), self.b.index_compare(Compare::Lt, number, count));
            let holds = self.b.and(mine, exists);
            let holds = self.b.and(holds, live);
            let mut states = Vec::with_capacity(accumulators.len());
            for (a, starts) in starts.iter().enumerate() {
                let at = self.partial(layout, place, a, number);
                let one = |this: &mut Self, component: usize, start: ValueId| {
                    let guard = Guard { predicate: holds, otherwise: &[start] };
                    this.b.load(memory(component), at, 1, Some(guard))[0]
                };
                states.push(starts.iter().enumerate().map(|(c, s)| one(self, c, *s)).collect::<Vec<_>>());
            }
            loaded.push((holds, states));
        }
        for (holds, states) in loaded {
            for (variables, right) in accumulators.iter().zip(states) {
                let left: Vec<ValueId> = variables.iter().map(|v| self.b.get(*v)).collect();
                let merged = self.values.merge(self.b, reduction, &left, &right);
                for ((variable, left), merged) in variables.iter().zip(left).zip(merged) {
                    let next = self.b.select(holds, merged, left);
                    self.b.set(*variable, next);
                }
            }
        }
        self.b.end_loop();
        if sharing > 1 {
            self.combine(reduction);
        }
    }
}

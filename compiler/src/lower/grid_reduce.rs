//! Reductions across blocks: each block writes its partial states to memory that all of them share, and the last one to
//! arrive merges them.
//!
//! **Groups.** Blocks that differ only in axes of the reduction share results: a group, which has a counter. Of each
//! state a group has a workspace with
//!
//! ```text
//! [group][accumulator][partial][slot]
//! ```
//!
//! where a group is given by the block's axes of the result and the loops around the reduction, an accumulator by the
//! loops of the result inside it, a partial by the block's axes of the reduction, a slot by the threads' axes of the
//! result.
//!
//! **Stages in loops.** Of a stage in the loops of an output, the blocks of the group are neighbours: the output's own
//! axes tell groups apart, with the loops around the place. All of its loops over results are inside the reduction, so
//! that there is one arrival, and what is after it in the place belongs to the branch of the last block.
//!
//! **Order.** A partial is written by one thread of those that have it. The last block reads all partials of its group:
//! its threads that share a result divide them in runs, each takes in its run in ascending order, and then they merge
//! what they have as they do with terms. So the order depends on the numbers of blocks and threads alone, and not on
//! which block is the last.
//!
//! **Atomic operations.** `by atomic` has one element instead of the partials, in which blocks combine what they have
//! as they come: a word of zero at first ([`Word`]). The last block takes the word, and leaves zero.
//!
//! **Empty ranges.** An axis of a reduction without iterations still has one block, which has no terms: results are the
//! identity.

use tilewright_kernel::algorithm::{Compare, Reduction, Value, ValueId as AlgorithmValue};
use tilewright_kernel::info::Workspace;
use tilewright_kernel::{ElementType, Size, SizeOp};

use super::atomic::Word;
use super::stage::{Nest, Point};
use super::value::size;
use crate::domain::{AxisId, AxisKind};
use crate::extent::{Expr, Facts, Var, absolute};
use crate::kernel_ir::{Builder, Guard, Memory, Type, ValueId};
use crate::schedule::{Stage, digits};
use crate::source::ast::Place;

/// Loads of a thread that are under way together.
const CHUNK: usize = 8;

/// Iterations that blocks are given, or that tell apart what they share.
#[derive(Clone, Debug)]
struct Count {
    extent: Expr,
    /// Whether there is one block if there is no iteration: of an axis of the reduction.
    at_least_one: bool,
}

impl Count {
    fn of(extent: &Expr, reduces: bool, facts: &Facts) -> Self {
        let extent = facts.normal(extent);
        let at_least_one = reduces && extent.as_constant().is_none_or(|n| n < 1);
        Self { extent, at_least_one }
    }

    fn along(stage: &Stage, axis: AxisId, facts: &Facts) -> Self {
        let along = &stage.domain.axes[axis];
        Self::of(&along.extent, along.kind == AxisKind::Reduction, facts)
    }

    fn size(&self, facts: &Facts) -> Option<Size> {
        let size = self.extent.to_size(facts.dims())?;
        Some(if self.at_least_one { Size::binary(SizeOp::Max, &size, &Size::constant(1)) } else { size })
    }

    /// The number of them as a value.
    fn value(&self, b: &mut Builder, index: Type) -> ValueId {
        let iterations = size(b, &self.extent, index);
        if !self.at_least_one {
            return iterations;
        }
        let one = b.index_literal(index, 1);
        b.index_max(iterations, one)
    }

    /// An upper bound. Where there is one block in any case, the extent may be negative, and what is multiplied by the
    /// bound counts all the same.
    fn bound(&self) -> Expr {
        let any = || absolute(&self.extent, &|_| None).add(&Expr::constant(1));
        if self.at_least_one { any() } else { self.extent.clone() }
    }
}

/// Iterations of an axis bound to the grid: an axis of the reduction has a block even if it has none.
pub(super) fn blocks_along(stage: &Stage, axis: AxisId, facts: &Facts) -> (Expr, bool) {
    let Count { extent, at_least_one } = Count::along(stage, axis, facts);
    (extent, at_least_one)
}

/// What the blocks of an output count, or the clusters: its own axes, then the parts of a stage in its loops.
fn counts(stage: &Stage, facts: &Facts) -> (Vec<Count>, Vec<Count>) {
    let own = stage.distribution.grid.iter().map(|axis| Count::along(stage, *axis, facts));
    (own.collect(), stage.distribution.parts.iter().map(|extent| Count::of(extent, true, facts)).collect())
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
    let (own, parts) = counts(stage, facts);
    let all = product(own.iter().chain(&parts).map(|count| count.size(facts)))?;
    Some(times(&all, &Size::constant(stage.distribution.cluster.into())))
}

/// Number of blocks of a stage, or of clusters, as a value.
pub(super) fn clusters(b: &mut Builder, stage: &Stage, facts: &Facts, index: Type) -> ValueId {
    let (own, parts) = counts(stage, facts);
    let one = b.index_literal(index, 1);
    own.iter().chain(&parts).fold(one, |product, count| {
        let count = count.value(b, index);
        b.index_mul(product, count)
    })
}

/// A bound of the number of blocks of a stage.
pub(super) fn most_blocks(stage: &Stage, facts: &Facts) -> Expr {
    let (own, parts) = counts(stage, facts);
    let cluster = Expr::constant(stage.distribution.cluster.into());
    own.iter().chain(&parts).fold(cluster, |product, count| product.mul(&count.bound()))
}

/// What tells groups apart.
#[derive(Clone, Copy, Debug)]
enum Which {
    /// An axis of the stage.
    Own(AxisId),
    /// A loop around its place, by the variable that stands for it.
    Around(Var),
}

/// What blocks share of a stage.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// What tells groups apart, outermost first: axes of the block, then loops.
    groups: Vec<(Which, Count)>,
    /// Results of a thread in one group.
    accumulators: i128,
    /// The axes that tell partials apart, outermost first.
    partials: Vec<AxisId>,
    /// The axes that tell apart the results of a block's threads, outermost first, with the most iterations that each
    /// has.
    slots: Vec<(AxisId, i128)>,
    /// The same for threads that share results.
    ranks: Vec<(AxisId, i128)>,
    /// Threads that nothing tells apart, which share results, too.
    alike: i128,
    /// Types of the states.
    states: Vec<ElementType>,
    /// What blocks combine by atomic operations, if they do.
    word: Option<Word>,
}

/// The loops of a stage, outermost first, and where its reduction starts among them: at its first axis, or at lanes,
/// which come last.
pub(super) fn loops(stage: &Stage) -> (Vec<AxisId>, usize) {
    use crate::domain::Binding;
    let axes = &stage.domain.axes;
    let sequence = stage.sequence();
    let starts = |a: &AxisId| axes[*a].kind == AxisKind::Reduction || axes[*a].binding == Binding::Vector;
    let first = stage.reduction.and_then(|_| sequence.iter().position(starts));
    // One arrival for all results of an instance.
    let split = if stage.arrives() { 0 } else { first.unwrap_or(sequence.len()) };
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
    /// What the blocks of a stage share; none if none of them share results. A block has so many threads.
    pub(super) fn of(stage: &Stage, threads: u32) -> Option<Self> {
        let partials: Vec<AxisId> = stage.across_blocks().collect();
        let reduction = stage.reduction.filter(|_| !partials.is_empty())?;
        let (sequence, split) = loops(stage);
        let is_data = |a: &AxisId| stage.domain.axes[*a].kind == AxisKind::Data;
        let grid = stage.distribution.grid.iter().copied().filter(is_data);
        let own = grid.chain(sequence[..split].iter().copied());
        let own = own.map(|axis| (Which::Own(axis), Count::along(stage, axis, &stage.facts)));
        let around = stage.attach.iter().flat_map(|attach| &attach.iterations);
        let around = around.map(|(v, extent)| (Which::Around(*v), Count::of(extent, false, &stage.facts)));
        let groups = around.chain(own).collect();
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
        // In registers each of them has what it computed.
        let finest = stage.distribution.finest().unwrap_or_else(|| threads.into());
        let alike = if stage.place == Place::Registers { finest } else { 1 };
        Some(Self { groups, accumulators, partials, slots, ranks, alike, states, word })
    }

    fn slots(&self) -> i128 {
        self.slots.iter().map(|s| s.1).product()
    }

    /// Threads that share a result.
    fn sharing(&self) -> i128 {
        self.ranks.iter().map(|r| r.1).product::<i128>() * self.alike
    }

    /// The memory that blocks share: counters, then each state.
    fn workspaces(&self, stage: &Stage, facts: &Facts) -> Option<Vec<Workspace>> {
        let groups = product(self.groups.iter().map(|(_, count)| count.size(facts)))?;
        let partials = product(self.partials.iter().map(|axis| Count::along(stage, *axis, facts).size(facts)))?;
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
        let partials = self.partials.iter().map(|axis| Count::along(stage, *axis, facts));
        let all = self.groups.iter().map(|(_, count)| count.clone()).chain(partials);
        all.fold(Expr::constant(self.accumulators * self.slots()), |product, count| product.mul(&count.bound()))
    }
}

/// What blocks share of each stage; none if a size cannot be written down.
pub fn workspaces<'a>(stages: impl Iterator<Item = &'a Stage>, facts: &Facts) -> Option<Vec<Vec<Workspace>>> {
    // How many threads a block has changes nothing about them.
    let each = stages.map(|stage| Layout::of(stage, 1).map_or(Some(Vec::new()), |l| l.workspaces(stage, facts)));
    each.collect()
}

/// Where the states of a group lie.
#[derive(Clone, Copy)]
struct Site {
    /// The group.
    group: ValueId,
    /// Number of its partials.
    partials: ValueId,
    /// The thread's slot.
    slot: ValueId,
}

impl Nest<'_, '_> {
    fn count(&mut self, count: &Count) -> ValueId {
        count.value(self.b, self.index)
    }

    /// Iterations of an axis bound to the grid.
    pub(super) fn along(&mut self, axis: AxisId) -> ValueId {
        self.count(&Count::along(self.stage, axis, self.facts))
    }

    fn product(&mut self, counts: &[Count]) -> ValueId {
        let one = self.b.index_literal(self.index, 1);
        counts.iter().fold(one, |product, count| {
            let count = self.count(count);
            self.b.index_mul(product, count)
        })
    }

    /// Number of blocks of the stage, or of clusters.
    pub(super) fn blocks(&mut self) -> ValueId {
        clusters(self.b, self.stage, self.facts, self.index)
    }

    /// The number of the block among those that the stage's own axes tell apart: those of a group of a stage in its
    /// loops are one; of such a stage itself, the number in the group. Clusters count as blocks do.
    pub(super) fn own_block(&mut self) -> ValueId {
        let block = self.cluster();
        if self.stage.arrives() {
            let own: Vec<Count> = self.partials().into_iter().map(|(_, count)| count).collect();
            let parts = self.product(&own);
            return self.b.index_mod(block, parts);
        }
        let (_, parts) = counts(self.stage, self.facts);
        if parts.is_empty() {
            return block;
        }
        let parts = self.product(&parts);
        self.b.index_div(block, parts)
    }

    fn partials(&self) -> Vec<(AxisId, Count)> {
        self.stage.across_blocks().map(|axis| (axis, Count::along(self.stage, axis, self.facts))).collect()
    }

    /// The number of a point along several axes, the last one fastest.
    fn number(&mut self, point: &Point, axes: impl Iterator<Item = (AxisId, ValueId)>) -> ValueId {
        let known: Vec<(ValueId, ValueId)> = axes.filter_map(|(a, count)| Some((point.values[a]?, count))).collect();
        self.linear(known)
    }

    /// Values below counts as one number, the last one fastest.
    fn linear(&mut self, values: Vec<(ValueId, ValueId)>) -> ValueId {
        let mut number = self.b.index_literal(self.index, 0);
        for (value, count) in values {
            number = self.b.index_mul(number, count);
            number = self.b.index_add(number, value);
        }
        number
    }

    /// The number of the group at a point.
    fn group(&mut self, layout: &Layout, point: &Point) -> ValueId {
        let mut values = Vec::with_capacity(layout.groups.len());
        for (which, count) in &layout.groups {
            let value = match which {
                Which::Own(axis) => point.values[*axis],
                Which::Around(v) => Some(self.size(&Expr::var(*v))),
            };
            let Some(value) = value else { continue };
            values.push((value, self.count(count)));
        }
        self.linear(values)
    }

    fn literals(&mut self, axes: &[(AxisId, i128)]) -> Vec<(AxisId, ValueId)> {
        axes.iter().map(|(axis, n)| (*axis, self.b.index_literal(self.index, *n as i64))).collect()
    }

    /// Where the partial with a number lies.
    fn partial(&mut self, layout: &Layout, place: Site, accumulator: usize, number: ValueId) -> ValueId {
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

    /// Hands the states of this block to the last one of its group, and opens the branch in which that block has the
    /// states of all. `starts` are the states without terms. In registers every thread that shares a result has it.
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
        let partials: Vec<(AxisId, ValueId)> = layout.partials.iter().map(|a| (*a, self.along(*a))).collect();
        let (slots, ranks) = (self.literals(&layout.slots), self.literals(&layout.ranks));
        let one = self.b.index_literal(ty, 1);
        let count = partials.iter().fold(one, |product, (_, n)| self.b.index_mul(product, *n));
        let group = self.group(layout, point);
        let own = self.number(point, partials.into_iter());
        let slot = self.number(point, slots.into_iter());
        let mut rank = self.number(point, ranks.into_iter());
        if layout.alike > 1 {
            let thread = self.b.thread_index();
            let thread = self.b.index_convert(thread, ty);
            let alike = self.b.index_literal(ty, layout.alike as i64);
            let within = self.b.index_mod(thread, alike);
            rank = self.b.index_mul(rank, alike);
            rank = self.b.index_add(rank, within);
        }
        let place = Site { group, partials: count, slot };
        let memory = |component: usize| Memory::Workspace(first + 1 + component as u16);
        // One of those that share the result; of a block with one result the thread that arrives, so that nobody needs
        // to wait for it.
        let zero = self.b.index_literal(ty, 0);
        let by_first = layout.slots() == 1 && !self.stage.distribution.has_range();
        let is_first = if by_first {
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
            let place = Site { partials: one, ..place };
            let words: Vec<ValueId> = states.iter().map(|states| word.encode(self.b, states)).collect();
            self.b.begin_if(writes);
            for (a, word_of) in words.iter().enumerate() {
                let at = self.partial(layout, place, a, zero);
                self.b.atomic_update(first + 1, at, word.update(), *word_of);
            }
            self.b.end_if();
            let blocks = self.b.index_convert(count, Type::I32);
            // Of one result the first thread alone takes what is combined, and stores what comes of it.
            let last = match by_first && !self.stage.arrives() {
                true => self.b.last_block_ticket_untold(first, group, blocks),
                false => self.b.last_block_ticket(first, group, blocks),
            };
            self.b.begin_if(last);
            let passed_on = self.stage.place == Place::Registers && layout.sharing() > 1;
            for (a, variables) in accumulators.iter().enumerate() {
                let at = self.partial(layout, place, a, zero);
                let nothing = self.b.literal(word.word, 0);
                let guard = Guard { predicate: writes, otherwise: &[nothing] };
                let all = self.b.load(memory(0), at, 1, Some(guard))[0];
                self.b.begin_if(writes);
                self.b.store(memory(0), at, &[nothing]);
                self.b.end_if();
                let states = word.decode(self.b, all);
                for ((variable, state), start) in variables.iter().zip(states).zip(&starts[a]) {
                    // A word of zero is for blocks: as states it may be anything.
                    let state = if passed_on { self.b.select(writes, state, *start) } else { state };
                    self.b.set(*variable, state);
                }
            }
            if passed_on {
                self.combine(reduction, layout.alike);
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
        let last = self.b.last_block_ticket(first, group, blocks);
        self.b.begin_if(last);
        for (variables, states) in accumulators.iter().zip(starts) {
            variables.iter().zip(states).for_each(|(variable, state)| self.b.set(*variable, *state));
        }
        // Each of the threads that share the result takes a run of partials.
        let (sharing, chunk) = (layout.sharing(), (CHUNK / accumulators.len().max(1)).max(1));
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
            self.combine(reduction, layout.alike);
        }
    }
}

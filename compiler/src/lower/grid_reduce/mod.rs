//! Reductions across blocks: each block writes its partial states to memory that all of them share, and the last one to
//! arrive merges them.
//!
//! **Groups.** Blocks that differ only in axes of the reduction share results: a group, which has a counter. Of each
//! state a group has a workspace with
//!
//! ```text
//! [group][partial][vector][slot][lane]
//! ```
//!
//! where a group is given by the block's axes of the result, the loops around the reduction and the block's number in
//! its cluster, a partial by the block's axes of the reduction, vector and lane by the loops of the result inside it, a
//! slot by the threads' axes of the result. As many accumulators as divide what a thread has, and 16 bytes hold, are
//! the lanes of one access, and threads side by side write side by side. All accumulators of a thread lie at known
//! distances from each other, so that they have one address.
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

mod merge;

use tilewright_kernel::algorithm::{Reduction, Value, ValueId as AlgorithmValue};
use tilewright_kernel::info::Workspace;
use tilewright_kernel::{ElementType, Size, SizeOp};

use super::atomic::Word;
use super::value::size;
use crate::domain::{AxisId, AxisKind};
use crate::extent::{Expr, Facts, Var, absolute};
use crate::kernel_ir::{Builder, Type, ValueId};
use crate::schedule::{Stage, digits};
use crate::source::ast::Place;

/// Partials, or vectors of one, that a thread loads together at most.
const CHUNK: usize = 8;
/// Bytes that it has room for meanwhile.
const UNDER_WAY_BYTES: u32 = 128;
/// Bytes that an instruction moves at most.
const VECTOR_BYTES: u32 = 16;

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
    /// The number of the block in its cluster: blocks with one number arrive together, whatever the others do.
    Rank,
}

/// What blocks share of a stage.
#[derive(Clone, Debug)]
pub(super) struct GridPartials {
    /// What tells groups apart, outermost first: axes of the block, then loops.
    groups: Vec<(Which, Count)>,
    /// Results of a thread in one group.
    accumulators: i128,
    /// How many of them one access moves: a power of two that divides them.
    lanes: u32,
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

impl GridPartials {
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
        let cluster = i128::from(stage.distribution.cluster);
        let rank = (cluster > 1).then(|| (Which::Rank, Count::of(&Expr::constant(cluster), false, &stage.facts)));
        let groups = around.chain(own).chain(rank).collect();
        let inside = sequence[split..].iter().filter(|a| is_data(a));
        let accumulators: i128 = inside.map(|a| copies(stage, *a, &stage.facts)).product();
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
        let widest = states.iter().map(|state| state.bytes()).max().unwrap_or(1);
        let most = if word.is_some() { 1 } else { VECTOR_BYTES / widest };
        let lanes = most.min(1 << accumulators.trailing_zeros().min(4));
        // In registers each of them has what it computed.
        let finest = stage.distribution.finest().unwrap_or_else(|| threads.into());
        let alike = if stage.place == Place::Registers { finest } else { 1 };
        Some(Self { groups, accumulators, lanes, partials, slots, ranks, alike, states, word })
    }

    fn slots(&self) -> i128 {
        self.slots.iter().map(|s| s.1).product()
    }

    /// How many vectors a thread loads together, with all their states.
    fn loads(&self) -> usize {
        let each = self.lanes * self.states.iter().map(|state| state.bytes()).sum::<u32>();
        CHUNK.min((UNDER_WAY_BYTES / each.max(1)) as usize).max(1)
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
    let each = stages.map(|stage| GridPartials::of(stage, 1).map_or(Some(Vec::new()), |l| l.workspaces(stage, facts)));
    each.collect()
}

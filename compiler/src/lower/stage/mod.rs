//! One stage as a loop nest: bound leaves from the block and thread index, sequential leaves as loops, predicates as
//! branches at the outermost point where they are decided, the result stored once per element.
//!
//! A reduction whose axes are in the nest keeps one accumulator for every element of the data loops inside it: those
//! are written out, first around the terms, then again around the stores.

mod conditions;
mod loops;
mod mask;
mod narrowed;
mod online;
mod raster;
mod reduce;
mod scatter;
mod store;
mod units;

pub(super) use loops::Iteration;

use std::collections::VecDeque;
use std::rc::Rc;

use tilewright_sorted::SortedMap;

use conditions::Condition;
use narrowed::Narrowed;
use tilewright_kernel::algorithm::{Compare, ValueId as AlgorithmValue};

use crate::domain::AxisId;
use crate::extent::{Expr, Facts, Family, Var};
use crate::holes::Holes;
use crate::kernel_ir::{Builder, Type, ValueId};
use crate::lower::arithmetic::Emit;
use crate::lower::behind::{Group, InLoop};
use crate::lower::defect::Defect;
use crate::lower::grid_reduce::{self, GridPartials};
use crate::lower::nested_stage::{Instance, Storage};
use crate::lower::staging::{Copy, Held};
use crate::lower::tma_pipeline::PlaceRead;
use crate::lower::turns::Turns;
use crate::lower::value::{Accumulator, Bound, Scope, Values, expression, size};
use crate::lower::{product, role_pipeline};
use crate::plan::Analysed;
use crate::plan::product::Product;
use crate::program::{Program, expressions};
use crate::schedule::vector::Vector;
use crate::schedule::{Stage, accesses};

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
    /// The expressions of the stage's own axes, as [`Stage::indices`] has them, over its leaves.
    indices: Vec<Rc<Expr>>,
    /// For each kept predicate, whether it is waived: see [`Analysed::waived`].
    waived: Vec<bool>,
    /// Sequential leaves, outermost first.
    pub(super) sequence: Vec<AxisId>,
    /// Position in `sequence` where the reduction starts: its first axis, or the end.
    pub(super) split: usize,
    accumulators: Vec<Accumulator>,
    /// Of sums that follow an extreme: what is done with the terms of a block.
    follows: Option<online::Follows>,
    /// What they are multiplied with, if blocks of terms are taken in.
    corrections: online::Corrections,
    /// Loops around that have the iterations with terms alone.
    narrowed: Vec<Narrowed>,
    /// The product that is a block behind in the loop around.
    pub(super) behind: Option<InLoop>,
    /// Scores are replaced: whether one stays, and the score of no term.
    masking: Option<(AlgorithmValue, AlgorithmValue)>,
    /// Whether what it computes is made of registers alone: the last answer, with the goal and the number of instances
    /// that it could read.
    of_registers: Option<((Goal, usize), bool)>,
    /// What keeps units out that have no terms.
    of_terms: Vec<ValueId>,
    /// What blocks that share results share beside, from that workspace on.
    across: Option<(GridPartials, u16)>,
    /// Its position among all.
    pub(super) own: usize,
    /// For each axis, whether the number of a thread is part of its value.
    of_threads: Vec<bool>,
    /// Whether the loops around the terms are those of another role.
    in_terms: bool,
    /// What tensor cores compute of it here.
    pub(super) product: Option<&'a Product>,
    /// Staged copies.
    pub(super) copies: Vec<Copy<'a>>,
    /// What memory holds of the places of copies, where it was read before loops.
    pub(super) places_read: Vec<PlaceRead>,
    /// Where the terms of a scatter belong at this point, and whether that is in the tensor: one for each lane.
    places: Vec<(ValueId, ValueId)>,
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
    /// Threads of a block, or of the role.
    pub threads: u32,
    /// The role; none if there are no roles.
    pub role: Option<usize>,
    /// Whether the tile is that of another unit of the role, whose turn it is: this one only counts the slots.
    pub passes: bool,
    /// Turns that it takes, if units of the role take tiles in turn.
    pub turns: Option<&'a Turns>,
    /// The group of another product that a stage starts after its own.
    pub behind: Option<&'a Group<'a>>,
    /// Whether copies are staged.
    pub staged: bool,
    /// Number of the tile, a [`Type::I32`], where blocks take several.
    pub tile: Option<ValueId>,
    /// Bytes of shared memory that one merge across threads may take.
    pub trip_bytes: u64,
    /// Type of index integers.
    pub index: Type,
    /// All stages of the kernel.
    pub stages: &'a [Analysed],
    /// What they have in shared memory.
    pub storage: &'a [Storage],
    /// The first workspace of each, if it has any.
    pub workspaces: &'a [u16],
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
    /// The instances that it can read.
    pub instances: &'a [Instance<'a>],
    /// The staged copies that it can read.
    pub staged: &'a [Held<'a>],
    /// The instance that it computes; none if it is an output.
    pub target: Option<&'a Instance<'a>>,
    /// The first leaves, where loops around have set them already.
    pub set: &'a [Option<ValueId>],
}

/// The nest of the stage with a position among all.
fn nest<'a, 'b>(b: &'b mut Builder, own: usize, frame: &Frame<'a>) -> Nest<'a, 'b> {
    let Frame { around, instances, staged, target, .. } = *frame;
    let Around { threads, index, stages, copies, workspaces, .. } = around;
    let analysed = &stages[own];
    let stage = &analysed.stage;
    let (program, facts) = (&stage.program, &stage.facts);
    let (sequence, split) = grid_reduce::loops(stage);
    let sees = |i: &Instance<'_>| stage.sees.iter().any(|n| std::ptr::eq(&stages[*n].stage, i.stage));
    let not_here = stages.iter().filter(|s| s.stage.product.is_some() && !product::is_computed(s, around.staged));
    let not_here = not_here.flat_map(|s| s.stage.serves.iter().copied());
    let values = Values {
        program,
        facts,
        domain: &stage.domain,
        symbolic: &analysed.symbolic,
        index,
        lane: None,
        reduced: None,
        next_var: (facts.dims() + analysed.symbolic.variables.len()) as u32,
        conditional: false,
        staged: staged.to_vec(),
        bases: (!around.staged && stages.iter().any(|s| !product::is_computed(s, false))).then_some(stages),
        copies_of: if stage.copy.is_some() { &stage.serves } else { &[] },
        // Others may stand there, too, for readers of other units.
        instances: instances.iter().filter(|i| sees(i)).cloned().collect(),
        not_here: not_here.collect(),
        known: mask::known(program, stages, around.staged),
        in_product: false,
        in_instance: None,
        literals: Vec::new(),
        indices: SortedMap::new(),
        neighbours: SortedMap::new(),
        empty: SortedMap::new(),
        leaves: VecDeque::new(),
        computed: Vec::new(),
        is_inside: false,
        defect: None,
    };
    // Readers were placed before what they read.
    let inner = stages.iter().enumerate().rev();
    let inner = inner.filter(|(_, s)| product::is_computed(s, around.staged));
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
    let waives = |p: usize| around.staged && analysed.waived.iter().any(|w| w.predicate == p);
    let waived: Vec<bool> = (0..analysed.holes.kept.len()).map(waives).collect();
    let indices = stage.indices.iter();
    Nest {
        b,
        analysed,
        own,
        of_threads: role_pipeline::of_threads(stage),
        in_terms: false,
        program,
        facts,
        stage,
        holes: &analysed.holes,
        values,
        vector: analysed.vector.clone(),
        indices: indices.map(|(_, e)| Rc::new(accesses::of_roots(e, stage, &analysed.symbolic))).collect(),
        waived,
        sequence,
        split,
        accumulators: Vec::new(),
        follows: None,
        corrections: Vec::new(),
        narrowed: Vec::new(),
        behind: None,
        masking: None,
        of_registers: None,
        of_terms: Vec::new(),
        product: product::of(analysed, around.staged),
        copies: copies.to_vec(),
        places_read: Vec::new(),
        across: GridPartials::of(stage, threads).zip(workspaces.get(own).copied()),
        places: Vec::new(),
        targets: Vec::new(),
        index,
        around,
        children,
        besides,
        target: target.cloned(),
    }
}

/// Emits the stage with a position among all.
///
/// # Errors
/// The first thing that is not known where it is needed.
pub(super) fn lower(b: &mut Builder, own: usize, frame: &Frame<'_>) -> Result<(), Defect> {
    let Frame { around, more_blocks, set, .. } = *frame;
    let analysed = &around.stages[own];
    let stage = &analysed.stage;
    b.line(stage.statement as u32 + 1);
    let mut nest = nest(b, own, frame);
    let mut point = Point {
        values: vec![None; stage.domain.axes.len()],
        done: vec![false; analysed.holes.kept.len() + stage.limits.len() + 1],
        accumulator: 0,
        filled: None,
        pending: Vec::new(),
    };
    let (guards, terms) = nest.bind(&mut point, around.threads);
    let mut guards: Vec<Condition> = guards.into_iter().map(Condition::of).collect();
    // The units of another role have no value: those of the own one have theirs.
    for (leaf, value) in stage.domain.leaves.iter().zip(set).filter(|(_, value)| value.is_some()) {
        point.values[*leaf] = *value;
    }
    nest.of_terms = terms;
    let mut exists = Vec::new();
    if more_blocks {
        let (at, count) = (nest.cluster(), nest.blocks());
        exists.push(Condition::of_all(nest.b.index_compare(Compare::Lt, at, count)));
    }
    if nest.repeats_products() {
        let (part, zero) = (nest.number_in_group(), nest.b.index_literal(nest.index, 0));
        exists.push(Condition::of_all(nest.b.index_compare(Compare::Eq, part, zero)));
    }
    // What stands beside it has the same blocks.
    let alone = nest.besides.is_empty();
    if alone {
        guards.append(&mut exists);
    }
    let outer = nest.open_if(exists);
    let goal = if stage.reduction.is_some() { Goal::Accumulate } else { Goal::Store };
    // Loops that are around it already.
    let loops = stage.beside.as_ref().map_or(0, |beside| beside.loops);
    let opened = nest.advance(&mut point, guards, loops, goal);
    // The branch of the last block is open after it, and would be closed instead.
    debug_assert!(!(opened && stage.arrives()), "a branch around an arrival");
    if !nest.loads_matrices(&point) {
        nest.descend(&point, loops, goal);
    }
    nest.close(opened);
    nest.close(outer);
    // What tiles leave is after all of them.
    if around.tile.is_none() {
        nest.drain();
    }
    nest.values.defect.map_or(Ok(()), Err)
}

impl Point {
    /// Which accumulator: position among the written-out data iterations.
    pub(super) const fn accumulator(&self) -> usize {
        self.accumulator
    }
}

impl Nest<'_, '_> {
    pub(super) fn size(&mut self, e: &Expr) -> ValueId {
        size(self.b, e, self.index)
    }

    /// The value of an expression over the roots, as [`Stage::indices`] are, or over other axes; none if one of them
    /// has none.
    pub(super) fn of_roots(&mut self, e: &Expr, values: &[Option<ValueId>]) -> Option<ValueId> {
        let domain = &self.stage.domain;
        let value = |v: Var| domain.axis_of(v).and_then(|axis| values.get(axis).copied().flatten());
        if e.mentions(&|v| !Family::is_size(v) && value(v).is_none()) {
            return None;
        }
        let ty = self.index;
        Some(expression(self.b, e, ty, &|b, v| value(v).unwrap_or_else(|| b.dim(v as u16, ty))))
    }

    /// The algorithm's axes as expressions over the leaves.
    fn scope_of_leaves(&self) -> expressions::Scope {
        let axes = self.stage.indices.iter().zip(&self.indices);
        axes.map(|((axis, _), index)| (*axis, (**index).clone())).collect()
    }

    /// The algorithm's axes at a point.
    pub(super) fn scope(&mut self, values: &[Option<ValueId>]) -> Scope {
        let mut axes = Vec::with_capacity(self.indices.len());
        for (n, (axis, index)) in self.stage.indices.iter().enumerate() {
            let Some(value) = self.of_roots(index, values) else { continue };
            axes.push((*axis, Bound { value, expr: self.indices[n].clone() }));
        }
        Scope::of_stage(axes)
    }
}

//! Stages inside the loops of others: where each stands, and the region of its tensor that is needed there.
//!
//! A stage at a leaf of another one is computed once for each iteration of the loops *around* it, for what the stages
//! inside that place read. Which loops are around follows from who owns an instance (docs/theory.md, Regions): of the
//! loops that one thread runs, those up to the leaf; of the loops that are given to units, those given to the owner or
//! to something coarser. To the stage the loops around it are dimensions, so that every room treats it as it treats an
//! output.

use tilewright_kernel::Algorithm;
use tilewright_kernel::algorithm::{Source, Value, ValueId};
use tilewright_sorted::SortedSet;

use super::asked::{Asked, longest, varies};
use super::{Stage, cta_rank, fused_output, idle, range};
use crate::diag::Diagnostics;
use crate::diag::codes::{Internal, NoInstance, NotAround};
use crate::domain::{AxisId, AxisKind, Binding, Symbolic, Unit};
use crate::extent::{Expr, Facts, Family, Var};
use crate::program::Program;
use crate::region::{Loops, NotATile, Parts, Request};
use crate::schedule::accesses::{self, StageRead};
use crate::source::Span;

/// Where a stage stands.
#[derive(Clone, Debug)]
pub struct Attach {
    /// The stage whose loops it stands in: a position in [`Plan::stages`](super::Plan::stages).
    pub stage: usize,
    /// The leaf of that stage.
    pub leaf: AxisId,
    /// How many of that stage's sequential loops are around it.
    pub loops: usize,
    /// The leaves of that stage that are around it.
    pub around: Vec<AxisId>,
    /// Of each of these the variable that stands for it there, and its number of iterations.
    pub iterations: Vec<(Var, Expr)>,
    /// Who owns an instance.
    pub owner: Unit,
}

/// The tensors that a value of an equation reads, itself or through equations that are computed where they are read.
pub(super) fn sources(algorithm: &Algorithm, equation: usize, served: &[Source]) -> SortedSet<Source> {
    reads(algorithm, equation, served).into_iter().map(|(source, _)| source).collect()
}

/// The same, with each value that reads one.
pub(super) fn reads(algorithm: &Algorithm, equation: usize, served: &[Source]) -> SortedSet<(Source, ValueId)> {
    let mut found = SortedSet::new();
    let mut seen = SortedSet::new();
    let components = |equation: usize| {
        let range = algorithm.equations[equation].components.range();
        algorithm.components[range].iter().map(|c| c.value).collect::<Vec<_>>()
    };
    let mut open = components(equation);
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        open.extend(algorithm.operands(value));
        let Value::Read { source, .. } = algorithm.values[value as usize] else { continue };
        found.insert((source, value));
        if let Source::Equation { equation, component } = source
            && !served.contains(&source)
        {
            open.push(components(usize::from(equation))[usize::from(component)]);
        }
    }
    found
}

impl Attach {
    /// Where `leaf` of `parent` is; `owner` is that of the stage that stands there.
    pub fn new(stage: usize, parent: &Stage, leaf: AxisId, owner: Unit) -> Self {
        let axes = &parent.domain.axes;
        let sequential: Vec<AxisId> =
            parent.domain.leaves.iter().copied().filter(|l| axes[*l].binding.is_sequential()).collect();
        let at = parent.domain.leaves.iter().position(|l| *l == leaf).unwrap_or(0);
        // Axes of blocks are around every loop of a block.
        let inner = axes[leaf].binding.is_of_blocks();
        let before = |l: &AxisId| parent.domain.leaves[..=at].contains(l);
        let around_loops: Vec<AxisId> = sequential.into_iter().filter(|l| !inner && before(l)).collect();
        let around = |l: &AxisId| match Unit::of(axes[*l].binding) {
            Some(unit) => unit <= owner,
            None => around_loops.contains(l),
        };
        let dims = parent.facts.dims();
        let found = parent.domain.leaves.iter().enumerate().filter(|(_, l)| around(l));
        let (around, iterations) =
            found.map(|(n, l)| (*l, ((dims + n) as Var, parent.facts.normal(&axes[*l].extent)))).unzip();
        Self { stage, leaf, loops: around_loops.len(), around, iterations, owner }
    }

    /// The loop that it stands in; none if it stands in its block.
    pub fn innermost(&self) -> Option<AxisId> {
        (self.loops > 0).then_some(self.leaf)
    }

    /// Whether that loop, one of `parent`, is over terms, or stands in one that is.
    pub fn is_inside_reduction(&self, parent: &Stage) -> bool {
        self.innermost().is_some_and(|leaf| parent.is_inside_reduction(leaf))
    }
}

/// Whether the stage with position `of` reads inside the place `outer`: it has the loops around that place itself, or
/// stands inside them, there or further in, or inside a stage that does; or stands beside the stage with these loops,
/// or inside one that does.
pub(super) fn is_under(stages: &[Stage], of: usize, outer: &Attach) -> bool {
    let stage = |at| stages.get(at);
    let root = || ancestors(&stage, of).last().and_then(stage);
    let is_beside = |stage: &Stage| stage.beside.as_ref().is_some_and(|b| b.sees(outer, &stages[outer.stage]));
    // What belongs to a part of a block is computed where the stage with the loops gives it work: others may come where
    // it has none.
    let is_for = |at: &usize| outer.owner <= Unit::Cta || stages[*at].owner >= outer.owner;
    let chain = chain_under(&stage, of, outer);
    chain.is_some_and(|chain| chain[1..].iter().all(is_for)) || root().is_some_and(is_beside)
}

/// The stage with position `of` and those whose loops are around it, from the inside out. `stage` gives them by
/// position.
pub fn ancestors<'a>(stage: &dyn Fn(usize) -> Option<&'a Stage>, of: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(of), move |at| Some(stage(*at)?.attach.as_ref()?.stage))
}

/// The stages from the one whose loops the place `outer` is in to the one with position `of`, each in a loop of the one
/// before it; none if that one does not stand inside the place. `stage` gives them by position.
pub fn chain_under<'a>(stage: &dyn Fn(usize) -> Option<&'a Stage>, of: usize, outer: &Attach) -> Option<Vec<usize>> {
    let mut chain: Vec<usize> = ancestors(stage, of).take_while(|at| *at != outer.stage).collect();
    // The outermost of them stands in the loops of that stage, if the place is around it.
    let last = chain.last().copied();
    match last.map(|at| stage(at).and_then(|s| s.attach.as_ref())) {
        Some(Some(attach)) if attach.stage == outer.stage && attach.loops >= outer.loops => {}
        Some(_) => return None,
        None => {}
    }
    chain.push(outer.stage);
    chain.reverse();
    Some(chain)
}

/// What must hold of the loops around a place for the stage that has them to come there with something to do, as far as
/// they decide it: expressions that are at least 0, over what a stage there sees as dimensions. Those that always hold
/// are left out. None if one of them is too large to be written down.
///
/// What holds for terms alone is said of a place inside a loop over terms, or with an axis of the reduction: then
/// [`lacks_terms`](super::idle::lacks_terms) sees it. An axis of one iteration leaves no trace of itself in what is
/// said of it, and before the terms the place is reached without any.
pub(super) fn reached(parent: &Stage, attach: &Attach, inner: &Facts) -> Option<Vec<Expr>> {
    let symbolic = Symbolic::new(&parent.domain, &parent.facts);
    // Each with whether it holds for terms alone.
    let mut conditions: Vec<(Expr, bool)> = Vec::new();
    for (axis, value) in parent.domain.axes.iter().zip(&symbolic.values) {
        let of_terms = axis.kind == AxisKind::Reduction;
        conditions.push((axis.extent.sub(value).sub(&Expr::constant(1)), of_terms));
        conditions.push((value.clone(), of_terms));
    }
    let limit = |e: &Expr| (accesses::of_roots(e, parent, &symbolic), range::is_of_terms(e, &parent.domain));
    conditions.extend(parent.limits.iter().map(limit));
    let dims = parent.facts.dims();
    let leaf = |v: Var| (v as usize).checked_sub(dims).map(|n| parent.domain.leaves.get(n).copied());
    let around = |v: Var| leaf(v).is_none_or(|leaf| leaf.is_some_and(|leaf| attach.around.contains(&leaf)));
    let is_term = |v: Var| leaf(v).flatten().is_some_and(|leaf| parent.domain.axes[leaf].kind == AxisKind::Reduction);
    let inside = idle::loop_of_terms(parent, attach).is_some();
    // What is known inside takes the other loops for 0: they are sorted out before.
    let conditions: Vec<(Expr, bool)> = conditions.into_iter().map(|(e, t)| (parent.facts.normal(&e), t)).collect();
    if conditions.iter().any(|(e, _)| e.is_unknown()) {
        return None;
    }
    let is_said = |(e, of_terms): &(Expr, bool)| {
        let vars = e.vars();
        vars.iter().all(|v| around(*v)) && (!of_terms || inside || vars.into_iter().any(is_term))
    };
    let known = conditions.into_iter().filter(is_said).map(|(e, _)| inner.normal(&e));
    Some(known.filter(|e| !inner.proves_nonnegative(e)).collect())
}

/// What a stage sees inside the loops around it.
pub(super) fn within(parent: &Stage, attach: &Attach) -> Option<(Program, Facts)> {
    let symbolic = Symbolic::new(&parent.domain, &parent.facts);
    let leaves = &parent.domain.leaves;
    let name = |n: usize| match leaves.get(n) {
        Some(leaf) => format!("{}.{}", parent.name, parent.domain.axes[*leaf].name),
        None => format!("{} (swizzled)", parent.name),
    };
    let program = parent.program.within((0..symbolic.variables.len()).map(name));
    Some((program, facts_within(parent, &parent.facts, attach)?))
}

/// What is known inside the loops of `parent` around a place, where `facts` are known of it; none if these loops have
/// no iteration.
pub fn facts_within(parent: &Stage, facts: &Facts, attach: &Attach) -> Option<Facts> {
    let symbolic = Symbolic::new(&parent.domain, facts);
    let extent = |n: usize| {
        let leaf = parent.domain.leaves.get(n)?;
        // What a cluster owns is computed in each of its blocks, one of which runs it.
        let in_block = parent.domain.axes[*leaf].binding == Binding::Cta;
        (in_block || attach.around.contains(leaf)).then(|| symbolic.variables[n].extent.clone())
    };
    let extents: Vec<Option<Expr>> = (0..symbolic.variables.len()).map(extent).collect();
    facts.within(&extents).ok()
}

/// Finds the regions that readers need.
pub(super) struct Needs<'a> {
    /// The stages so far.
    pub stages: &'a [Stage],
    /// What reads may take, beside tensors in device memory.
    pub served: &'a [Source],
    /// What each equation reads.
    pub sources: &'a [SortedSet<Source>],
    /// The stage that they are for: its name, what it serves, where it stands.
    pub name: &'a str,
    pub serves: &'a [Source],
    pub attach: &'a Attach,
    /// Whether it is a copy: readers elsewhere take the original.
    pub is_copy: bool,
    /// What it sees.
    pub facts: &'a Facts,
    /// At least 0 where its place is reached: see [`reached`].
    pub reached: &'a [Expr],
    pub span: Span,
    /// What says where it stands.
    pub at: Span,
}

impl Needs<'_> {
    /// What the stages inside the place read; none after an error.
    pub fn asked(&self, diags: &mut Diagnostics) -> Option<Asked> {
        let mut asked = Asked::default();
        let mut next = Family::FRESH.var(0);
        for (at, reader) in self.stages.iter().enumerate() {
            let sources = &self.sources[reader.equation];
            if !self.serves.iter().any(|source| sources.contains(source)) {
                continue;
            }
            let reads = self.reads(at, reader)?;
            if reads.is_empty() {
                continue;
            }
            if !is_under(self.stages, at, self.attach) {
                // Copies serve the readers that they stand around.
                if self.is_copy {
                    continue;
                }
                match reader.name == self.stages[self.attach.stage].name {
                    true => self.one_of_several(diags),
                    false if self.not_theirs(at, reads[0].span, diags) => {}
                    false => self.not_around(&reader.name, reader.attach.is_none(), reads[0].span, diags),
                }
                return None;
            }
            let inside = self.inside(at, &mut next, &mut asked.loops);
            for read in reads {
                let mut known = inside.elements.clone();
                if read.in_terms {
                    known.conditions.extend_from_slice(&inside.terms.conditions);
                    known.axes.extend_from_slice(&inside.terms.axes);
                }
                known.indices = renamed(&read, &inside.renamed, &mut next, &mut asked.loops.inside, &mut known);
                // A loop whose end is not known takes any value.
                let endless = |v: Var| asked.loops.inside.iter().any(|(l, extent)| *l == v && extent.is_unknown());
                for index in &mut known.indices {
                    if index.vars().into_iter().any(endless) {
                        *index = Expr::unknown();
                    }
                }
                let is_beside = reader.beside.as_ref().is_some_and(|b| b.stage == self.attach.stage);
                if !read.in_terms && (at == self.attach.stage || is_beside) {
                    asked.beside_terms = Some(at);
                }
                asked.wider = self.wider(at, &known).or(asked.wider);
                asked.requests.push(known);
                asked.reads.push((read.value, read.span));
            }
        }
        asked.loops.reached = self.reached.to_vec();
        let parent = &self.stages[self.attach.stage];
        for (n, leaf) in parent.domain.leaves.iter().enumerate() {
            if self.attach.around.contains(leaf) {
                let var = (parent.facts.dims() + n) as Var;
                asked.loops.outside.push((var, parent.domain.axes[*leaf].extent.clone()));
            }
        }
        if asked.requests.is_empty() {
            let algorithm = &parent.program.algorithm;
            let of_output = |source: &Source| match *source {
                Source::Parameter(_) => false,
                Source::Equation { equation, component } => {
                    let range = algorithm.equations[usize::from(equation)].components.range();
                    algorithm.components[range][usize::from(component)].parameter.is_some()
                }
            };
            let is_output = self.is_copy && self.serves.iter().any(of_output);
            self.not_around("", is_output, self.span, diags);
            return None;
        }
        Some(asked)
    }

    /// Of a reader and the stages around it, inside the place, the first one that belongs to a wider unit, and an axis
    /// of which a unit inside that one may have no iteration and come to the read all the same.
    fn wider(&self, reader: usize, read: &Request) -> Option<(usize, AxisId)> {
        let parent = &self.stages[self.attach.stage];
        let known = (self.reached, self.facts);
        let lacks = |at: usize| {
            let wider = Some(self.stages[at].owner).filter(|owner| *owner < self.attach.owner)?;
            Some((at, idle::lacks_work(wider, parent, self.attach, known, read)?))
        };
        let stage = |at: usize| self.stages.get(at);
        let mut inside = ancestors(&stage, reader).take_while(|at| *at != self.attach.stage);
        inside.find_map(lacks)
    }

    pub(super) fn place(&self) -> String {
        let parent = &self.stages[self.attach.stage];
        format!("{}.{}", parent.name, parent.domain.axes[self.attach.leaf].name)
    }

    /// The stage with the loops computes several boxes of what it is asked for, each in loops of its own: none of these
    /// is around all that read.
    fn one_of_several(&self, diags: &mut Diagnostics) {
        let parent = &self.stages[self.attach.stage];
        let problem = format!("`{}` keeps several boxes, and each is computed in loops of its own", parent.name);
        let instead = Some(format!(
            "leave `{own}` without a schedule, and it is computed where `{}` reads it; a reduction needs `inline {own};`",
            parent.name,
            own = self.name
        ));
        let (stage, place, known) = (self.name.to_owned(), Some(self.place()), Vec::new());
        diags.report(NoInstance { stage, place, problem, known, instead, span: self.span });
    }

    fn not_around(&self, reader: &str, is_output: bool, read: Span, diags: &mut Diagnostics) {
        let (stage, reader, place) = (self.name.to_owned(), reader.to_owned(), self.place());
        let unseen = fused_output::unseen(self.attach, &self.stages[self.attach.stage]);
        diags.report(NotAround { stage, reader, is_output, unseen, place, span: self.span, read });
    }

    /// The parts of the region of that, of a tensor whose axes have these ranges; with runs, if it may be laid out as
    /// one.
    ///
    /// # Errors
    /// See [`NotATile`].
    pub fn parts(&self, asked: &Asked, domain: &[(Expr, Expr)], has_runs: bool) -> Result<Parts<'_>, NotATile> {
        Parts::new(&asked.requests, &asked.loops, domain, self.facts, has_runs)
    }

    /// Says that there is no such region: an index that is not understood asks for all of its axis, so this is our own
    /// mistake.
    pub fn refuse(&self, problem: &NotATile, diags: &mut Diagnostics) {
        let what = format!("no region of `{}` inside `{}`: {problem:?}", self.name, self.place());
        diags.report(Internal { room: "schedule", what, span: self.span });
    }

    /// The reads of a stage that take from this one; none if it reads too much.
    fn reads(&self, at: usize, reader: &Stage) -> Option<Vec<StageRead>> {
        let symbolic = Symbolic::new(&reader.domain, &reader.facts);
        let served = |source, _, _| self.served.contains(&source) || self.serves.contains(&source);
        let found = accesses::collect_served(&reader.program, &reader.facts, reader, &symbolic, &served)?;
        // What a copy around the reader holds is taken from there; a copy does not take what it copies from another
        // one.
        let is_own = |r: &StageRead| {
            let taken = |copy: &Stage| {
                let around = copy.attach.as_ref().is_some_and(|attach| is_under(self.stages, at, attach));
                copy.copy.is_some() && copy.serves.contains(&r.source) && around
            };
            // Before a loop over terms and after it, the original is read, or a copy further outside.
            let is_there = |attach: &Attach| idle::is_there(attach, (at, reader), r.in_terms);
            let is_copied = reader.copy.is_some() && reader.serves.contains(&r.source);
            let by_other = self
                .stages
                .iter()
                .enumerate()
                .any(|(n, copy)| n != at && taken(copy) && copy.attach.as_ref().is_some_and(is_there));
            let is_own = self.serves.contains(&r.source) && (!self.is_copy || is_there(self.attach));
            is_own && !(is_copied && self.is_copy) && (is_copied || !by_other)
        };
        Some(found.stages.into_iter().filter(is_own).collect())
    }

    /// Gives every loop of the readers that is inside the place a variable of its own.
    fn inside(&self, reader: usize, next: &mut Var, loops: &mut Loops) -> Inside {
        let (mut elements, mut terms) = (Request::default(), Request::default());
        let mut renamed: Vec<(Var, Expr)> = Vec::new();
        // A reader beside that stage does not stand in its loops: then these are all around it.
        let mut chain: Vec<usize> = ancestors(&|at| self.stages.get(at), reader).collect();
        if let Some(end) = chain.iter().position(|at| *at == self.attach.stage) {
            chain.truncate(end + 1);
        }
        for stage in chain.into_iter().rev() {
            let of = &self.stages[stage];
            let symbolic = Symbolic::new(&of.domain, &of.facts);
            // Leaves around a place beside another output are the first ones there, too.
            let beside = of.beside.as_ref().filter(|b| b.stage == self.attach.stage);
            // An instance of a block is read by what that block runs.
            let ranks = if self.attach.owner >= Unit::Cta && stage != self.attach.stage {
                cta_rank::in_block(&self.stages[self.attach.stage], of)
            } else {
                Vec::new()
            };
            for (n, leaf) in symbolic.variables.iter().enumerate() {
                let shared = stage == self.attach.stage || beside.is_some_and(|b| n < b.around);
                let axis = self.stages[self.attach.stage].domain.leaves.get(n).filter(|_| shared);
                if axis.is_some_and(|axis| self.attach.around.contains(axis)) {
                    continue;
                }
                if let Some(digit) = ranks.iter().find(|(var, _)| *var == leaf.var) {
                    renamed.push(digit.clone());
                    continue;
                }
                let extent = rename(&leaf.extent, &renamed);
                renamed.push((leaf.var, Expr::var(*next)));
                let within = longest(&mut loops.inside, *next, extent);
                // Its own terms an element may do without.
                let of = if leaf.is_term && stage == reader { &mut terms } else { &mut elements };
                of.conditions.extend(within);
                *next += 1;
            }
            if stage != reader {
                continue;
            }
            // What is known of the reader's own points. It comes whether or not the stages around it have something to
            // do, as far as its limits let it (see `reached`).
            for (axis, value) in of.domain.axes.iter().zip(&symbolic.values) {
                let of = if axis.kind == AxisKind::Reduction { &mut terms } else { &mut elements };
                let (value, extent) = (rename(value, &renamed), rename(&axis.extent, &renamed));
                if varies(&extent, &loops.inside) {
                    let last = extent.sub(&value).sub(&Expr::constant(1));
                    of.conditions.extend([value, last]);
                } else {
                    of.axes.push((value, extent));
                }
            }
            let limit = |e: &Expr| rename(&accesses::of_roots(e, of, &symbolic), &renamed);
            for e in &of.limits {
                let of = if range::is_of_terms(e, &of.domain) { &mut terms } else { &mut elements };
                of.conditions.push(limit(e));
            }
        }
        Inside { renamed, elements, terms }
    }
}

/// What is known of the loops of a reader that are inside the place.
struct Inside {
    /// What stands for a loop, and its value.
    renamed: Vec<(Var, Expr)>,
    /// What holds wherever the reader reads.
    elements: Request,
    /// What also holds where it reads for a term: a reduction may have none, and what its result is used with is read
    /// all the same.
    terms: Request,
}

/// The indices of a read, over the new variables; the axes of reductions around it are loops inside as well.
fn renamed(
    read: &StageRead,
    scope: &[(Var, Expr)],
    next: &mut Var,
    loops: &mut Vec<(Var, Expr)>,
    Request { conditions, axes, .. }: &mut Request,
) -> Vec<Expr> {
    let mut own = scope.to_vec();
    for axis in &read.inner {
        let var = *next;
        *next += 1;
        // Ranges of later axes may begin at this one: at its value, not at the number of the iteration.
        let (lower, upper) = (rename(&axis.lower, &own), rename(&axis.upper, &own));
        own.push((axis.var, lower.add(&Expr::var(var))));
        let extent = upper.sub(&lower);
        match longest(loops, var, extent.clone()) {
            Some(within) => conditions.push(within),
            None => axes.push((Expr::var(var), extent)),
        }
    }
    read.indices.iter().map(|index| rename(index, &own)).collect()
}

fn rename(e: &Expr, pairs: &[(Var, Expr)]) -> Expr {
    e.substitute(&|v| pairs.iter().find(|(old, _)| *old == v).map(|(_, new)| new.clone()))
}

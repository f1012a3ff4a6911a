//! The range of every axis.
//!
//! | axis | range |
//! | --- | --- |
//! | with a written range | that one |
//! | of an equation for an output | the output's shape |
//! | of a reduction | the size of each dimension that the bare axis indexes; all must agree; reads with `or` count if there are no others |
//! | of an intermediate | the union of what its readers demand, where conditions around a read narrow the ranges of its axes, unless it is observed |
//!
//! An intermediate's range is *simple* or it must be written: the smallest lower and the largest upper bound among its
//! readers must be comparable by their difference and the facts on single sizes. Reads with `or` demand nothing. Where
//! readers say nothing, because they take their own range from this tensor (`sum(|j| e[i, j])`), the axis takes the
//! size of what it indexes bare in its own equation, with `or` only if it does so nowhere else.
//!
//! For an equation that is inlined the range matters to nobody but reductions that infer theirs from it, and reads with
//! `or`: it is *observed* then, conditions do not narrow it, and it is the same whatever facts are known. Where it is
//! not observed any range will do that holds what is read: whether reads are in bounds is proved at the reader, and
//! elements of the box that nobody reads need not exist. If what conditions narrow is not comparable, bounds that they
//! do not narrow are tried, so that a fact more never makes a range harder to infer.

mod demand;

use demand::Stop;
use tilewright_kernel::Constraint;
use tilewright_kernel::algorithm::{AxisId, Index, IndexId, Source, Value};

use super::equations::{ReadSite, Sites};
use super::nodes::{Nodes, UNKNOWN};
use super::order::Plan;
use super::signature::Signature;
use crate::diag::Diagnostics;
use crate::diag::codes::{OutputDomain, RangeConflict, RangeReason, UnknownRange};
use crate::extent::{Expr, Facts};
use crate::source::Span;
use crate::source::ast::Scatter;

/// Most bounds that are tried for one end of a range that nobody observes.
const COVERING_ENDS: usize = 32;

/// `lower .. upper`
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    lower: Expr,
    upper: Expr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Known(Range),
    /// An error was reported.
    Poison,
}

/// A dimension of a tensor that an axis indexes bare.
#[derive(Clone, Copy, Debug)]
struct BareUse {
    source: Source,
    dimension: usize,
    span: Span,
    /// Whether the read says what is outside.
    guarded: bool,
}

struct Infer<'a> {
    signature: &'a Signature,
    nodes: &'a mut Nodes,
    sites: &'a Sites,
    /// What ends of ranges are compared by: for sizes of at least 1. That a range is enough for others is proved at its
    /// readers.
    facts: Facts,
    /// What given ranges are written down with: for any sizes, since nothing else is asked about them.
    of_any_size: Facts,
    states: Vec<State>,
    /// Whether the range is given rather than inferred: written, or of an output.
    given: Vec<bool>,
    /// For an axis of an equation: the equation and the position.
    owner: Vec<Option<(u16, usize)>>,
    bare: Vec<Vec<BareUse>>,
    /// Unguarded reads of each equation.
    readers: Vec<Vec<ReadSite>>,
    /// Whether the range of an axis of an intermediate shows in a result: a read with `or` asks where it ends, or a
    /// reduction runs over it.
    observed: Vec<bool>,
    diags: &'a mut Diagnostics,
}

/// Infers all ranges and enters them into the axes.
pub(super) fn infer(signature: &Signature, plan: &Plan<'_>, nodes: &mut Nodes, sites: &Sites, diags: &mut Diagnostics) {
    let count = nodes.axes.len();
    let constraints: Vec<Constraint> = signature.facts.iter().map(|f| f.constraint.clone()).collect();
    // Facts that contradict each other are reported by the room of sizes; no range depends on them here.
    let facts = Facts::new(&signature.dims, &constraints)
        .or_else(|_| Facts::new(&signature.dims, &[]))
        .expect("no facts do not contradict each other");
    let all: Vec<u16> = (0..signature.dims.len() as u16).collect();
    let mut infer = Infer {
        signature,
        of_any_size: Facts::with_zeros(&signature.dims, &constraints, &all).unwrap_or_else(|_| facts.clone()),
        facts,
        states: vec![State::Unknown; count],
        given: vec![false; count],
        owner: vec![None; count],
        bare: vec![Vec::new(); count],
        readers: vec![Vec::new(); sites.axes.len()],
        observed: vec![false; count],
        nodes,
        sites,
        diags,
    };
    infer.prepare(plan);
    infer.solve();
    infer.finish();
}

impl Infer<'_> {
    fn prepare(&mut self, plan: &Plan<'_>) {
        for axis in 0..self.states.len() {
            let (lower, upper) = (self.nodes.axes[axis].lower, self.nodes.axes[axis].upper);
            if lower != UNKNOWN && upper != UNKNOWN {
                let (lower, upper) = (self.far_end(lower, false), self.far_end(upper, true));
                self.states[axis] = State::Known(Range { lower, upper });
                self.given[axis] = true;
            }
        }
        for (equation, axes) in (0..).zip(&self.sites.axes) {
            for (position, &axis) in axes.iter().enumerate() {
                self.owner[axis as usize] = Some((equation, position));
            }
            let planned = &plan.equations[usize::from(equation)];
            for &parameter in planned.parameters.iter().flatten() {
                for (position, &axis) in axes.iter().enumerate() {
                    let declared = self.nodes.axis_spans[axis as usize];
                    let own = |scatter: &Scatter| scatter.indices.iter().position(|index| index.span == declared);
                    let dimension = planned.ast.scatter.as_ref().and_then(own).unwrap_or(position);
                    self.take_size(parameter, dimension, axis);
                }
            }
        }
        for site in &self.sites.reads {
            let Value::Read { source, indices, or } = self.nodes.values[site.value as usize] else { continue };
            let guarded = or.is_some();
            if let Source::Equation { equation, .. } = source {
                if guarded {
                    for &axis in &self.sites.axes[usize::from(equation)] {
                        self.observed[axis as usize] = true;
                    }
                } else {
                    self.readers[usize::from(equation)].push(*site);
                }
            }
            for (dimension, &index) in self.nodes.index_lists[indices.range()].iter().enumerate() {
                let Index::Axis(axis) = self.nodes.indices[index as usize] else { continue };
                let span = self.nodes.value_span(site.value);
                self.bare[axis as usize].push(BareUse { source, dimension, span, guarded });
                let is_inferred = !self.given[axis as usize] && self.owner[axis as usize].is_none();
                if let Source::Equation { equation, .. } = source
                    && let Some(&of) = self.sites.axes[usize::from(equation)].get(dimension)
                {
                    self.observed[of as usize] |= is_inferred;
                }
            }
        }
    }

    /// The domain of an output is its shape: that of an axis is the size of its dimension.
    fn take_size(&mut self, parameter: u16, dimension: usize, axis: AxisId) {
        let size = self.signature.tensor(parameter).and_then(|tensor| tensor.shape.get(dimension));
        if let Some(size) = size {
            let shape = Range { lower: Expr::constant(0), upper: self.size(size) };
            let at = axis as usize;
            match &self.states[at] {
                State::Known(written) if !self.same(written, &shape) => {
                    let (written, shape) = (self.show(&written.clone()), self.show(&shape));
                    let span = self.nodes.axis_spans[at];
                    let axis = self.nodes.axes[at].name.to_string();
                    let declared = self.signature.parameter_spans[usize::from(parameter)];
                    let output = self.signature.parameters[usize::from(parameter)].name.to_string();
                    self.diags.report(OutputDomain { axis, output, written, shape, declared, span });
                    self.states[at] = State::Poison;
                }
                State::Unknown => {
                    self.states[at] = State::Known(shape);
                    self.given[at] = true;
                }
                _ => {}
            }
        }
    }

    /// Applies the rules until nothing changes.
    fn solve(&mut self) {
        // Every sweep costs about as many steps as there are axes and reads.
        let size = self.states.len() + self.sites.reads.len() + 1;
        let mut sweeps = (4_000_000 / size).max(16);
        loop {
            let mut changed = false;
            while sweeps > 0 && self.sweep() {
                changed = true;
                sweeps -= 1;
            }
            if sweeps > 0 && self.take_own_reads() {
                sweeps -= 1;
                continue;
            }
            if !changed || sweeps == 0 {
                break;
            }
        }
        for axis in 0..self.states.len() {
            if self.states[axis] == State::Unknown {
                let reason = match self.owner[axis] {
                    Some(_) => RangeReason::Intermediate,
                    None if self.bare[axis].is_empty() => RangeReason::NeverBare,
                    None => RangeReason::Circular,
                };
                self.unknown(axis, reason);
            }
        }
    }

    fn unknown(&mut self, axis: usize, reason: RangeReason) {
        let name = self.nodes.axes[axis].name.to_string();
        self.diags.report(UnknownRange { axis: name, reason, span: self.nodes.axis_spans[axis] });
        self.states[axis] = State::Poison;
    }

    /// One round; readers come after what they read, so intermediates are visited from the last one.
    fn sweep(&mut self) -> bool {
        let mut changed = false;
        for axis in 0..self.states.len() {
            if self.states[axis] == State::Unknown && self.owner[axis].is_none() {
                changed |= self.reduction_axis(axis);
            }
        }
        for axis in (0..self.states.len()).rev() {
            if self.states[axis] == State::Unknown
                && let Some((equation, position)) = self.owner[axis]
            {
                changed |= self.demanded_axis(axis, equation, position);
            }
        }
        changed
    }

    /// The extent of a dimension of a tensor: its range, and whether it is given rather than inferred.
    fn extent(&self, source: Source, dimension: usize) -> (State, bool) {
        match source {
            Source::Parameter(parameter) => {
                let size = self.signature.tensor(parameter).and_then(|t| t.shape.get(dimension));
                let range = size.map(|s| Range { lower: Expr::constant(0), upper: self.size(s) });
                (range.map_or(State::Poison, State::Known), true)
            }
            Source::Equation { equation, .. } => {
                let axis = self.sites.axes.get(usize::from(equation)).and_then(|axes| axes.get(dimension));
                axis.map_or((State::Poison, true), |&a| (self.states[a as usize].clone(), self.given[a as usize]))
            }
        }
    }

    /// The places that tell the range of an axis. Reads with `or` may go further: they tell only if no other read does.
    fn telling(&self, axis: usize) -> Vec<BareUse> {
        let told = self.bare[axis].iter().any(|u| !u.guarded);
        self.bare[axis].iter().filter(|u| !u.guarded || !told).copied().collect()
    }

    fn reduction_axis(&mut self, axis: usize) -> bool {
        let uses = self.telling(axis);
        let extents: Vec<(State, bool)> = uses.iter().map(|u| self.extent(u.source, u.dimension)).collect();
        let any_given = extents.iter().any(|(_, given)| *given);
        if !any_given && extents.iter().any(|(state, _)| *state == State::Unknown) {
            return false;
        }
        let counted = uses.iter().zip(extents).filter(|(_, (_, given))| *given || !any_given);
        let counted: Vec<(Span, State)> = counted.map(|(u, (state, _))| (u.span, state)).collect();
        self.agree(axis, &counted)
    }

    /// All of these must be one range, which becomes the axis's; `false` if there is none.
    fn agree(&mut self, axis: usize, extents: &[(Span, State)]) -> bool {
        let Some((first_span, first)) = extents.first() else { return false };
        if extents.iter().any(|(_, state)| *state == State::Poison) {
            self.states[axis] = State::Poison;
            return true;
        }
        let State::Known(first) = first.clone() else { return false };
        for (span, state) in extents {
            if let State::Known(other) = state
                && !self.same(other, &first)
            {
                let (a, b) = (self.show(&first), self.show(other));
                let name = self.nodes.axes[axis].name.to_string();
                let at = self.nodes.axis_spans[axis];
                self.diags.report(RangeConflict { axis: name, first: (*first_span, a), second: (*span, b), span: at });
                self.states[axis] = State::Poison;
                return true;
            }
        }
        self.states[axis] = State::Known(first);
        true
    }

    /// The union of what the readers of an intermediate demand.
    fn demanded_axis(&mut self, axis: usize, equation: u16, position: usize) -> bool {
        let mut sites: Vec<(IndexId, ReadSite)> = Vec::new();
        for site in &self.readers[usize::from(equation)] {
            let Value::Read { indices, .. } = self.nodes.values[site.value as usize] else { continue };
            let Some(&index) = self.nodes.index_lists[indices.range()].get(position) else { continue };
            // A reduction that takes its range from here demands whatever there is.
            if !self.takes_range(index) {
                sites.push((index, *site));
            }
        }
        let is_observed = self.observed[axis];
        let mut union: Option<(Range, Span)> = None;
        let mut problem = None;
        for (index, site) in &sites {
            let span = self.nodes.value_span(site.value);
            let narrowed = if is_observed { Vec::new() } else { self.narrowed(site) };
            let demand = match self.demand(*index, &narrowed) {
                Ok(demand) => demand,
                Err(Stop::NotYet) => return false,
                Err(Stop::Poison) => {
                    self.states[axis] = State::Poison;
                    return true;
                }
                Err(Stop::Never) => {
                    problem.get_or_insert(RangeReason::NotSimple(span));
                    continue;
                }
            };
            union = match union {
                None => Some((demand, span)),
                Some((known, first)) => match self.union(&known, &demand) {
                    Some(range) => Some((range, first)),
                    None => {
                        let (a, b) = (self.show(&known), self.show(&demand));
                        problem.get_or_insert(RangeReason::NotComparable { first: (first, a), second: (span, b) });
                        Some((known, first))
                    }
                },
            };
        }
        let range = match problem {
            None => union.map(|(range, _)| range),
            Some(problem) => {
                let covering = if is_observed { None } else { self.covering(&sites) };
                if covering.is_none() {
                    self.unknown(axis, problem);
                    return true;
                }
                covering
            }
        };
        let Some(range) = range else { return false };
        self.states[axis] = State::Known(range);
        true
    }

    /// Whether an index is the axis of a reduction without a range of its own yet.
    fn takes_range(&self, index: IndexId) -> bool {
        matches!(self.nodes.indices[index as usize], Index::Axis(reader)
            if self.states[reader as usize] == State::Unknown && self.owner[reader as usize].is_none())
    }

    /// A range that holds what every reader demands, from the bounds that the axes' own ranges and the conditions give:
    /// each end is one of them that the facts show to reach as far as one of every reader's. More facts never leave
    /// fewer.
    fn covering(&self, sites: &[(IndexId, ReadSite)]) -> Option<Range> {
        let demands: Vec<Vec<Range>> =
            sites.iter().map(|(index, site)| self.demands(*index, site).ok()).collect::<Option<_>>()?;
        let end = |of: &dyn Fn(&Range) -> Expr, reaches: &dyn Fn(&Expr, &Expr) -> bool| -> Option<Expr> {
            let ends: Vec<Vec<Expr>> = demands.iter().map(|list| list.iter().map(of).collect()).collect();
            let mut all: Vec<&Expr> = Vec::new();
            for e in ends.iter().flatten() {
                if !all.contains(&e) {
                    all.push(e);
                }
            }
            all.truncate(COVERING_ENDS);
            let holds_all = |e: &&&Expr| ends.iter().all(|list| list.iter().any(|other| reaches(e, other)));
            let mut enough = all.iter().filter(holds_all);
            let first = *enough.next()?;
            Some(enough.fold(first, |best, e| if reaches(best, e) { e } else { best }).clone())
        };
        let lower = end(&|r| r.lower.clone(), &|a, b| self.at_least(b, a) == Some(true))?;
        let upper = end(&|r| r.upper.clone(), &|a, b| self.at_least(a, b) == Some(true))?;
        Some(Range { lower, upper })
    }

    /// Gives an intermediate axis that its readers do not decide the size of what it indexes itself; readers first,
    /// since what they get decides for what they read.
    fn take_own_reads(&mut self) -> bool {
        for axis in (0..self.states.len()).rev() {
            if self.states[axis] != State::Unknown || self.owner[axis].is_none() {
                continue;
            }
            let extents: Vec<(Span, State)> = (self.telling(axis).iter())
                .map(|u| (u.span, self.extent(u.source, u.dimension).0))
                .filter(|(_, state)| *state != State::Unknown)
                .collect();
            if self.agree(axis, &extents) {
                return true;
            }
        }
        false
    }

    fn union(&self, a: &Range, b: &Range) -> Option<Range> {
        let lower = if self.at_least(&b.lower, &a.lower)? { &a.lower } else { &b.lower };
        let upper = if self.at_least(&b.upper, &a.upper)? { &b.upper } else { &a.upper };
        Some(Range { lower: lower.clone(), upper: upper.clone() })
    }

    /// Enters the ranges into the axes.
    fn finish(&mut self) {
        for axis in 0..self.states.len() {
            let State::Known(range) = self.states[axis].clone() else { continue };
            if self.nodes.axes[axis].lower != UNKNOWN {
                continue;
            }
            let span = self.nodes.axis_spans[axis];
            let (lower, upper) = (self.index_of(&range.lower, span), self.index_of(&range.upper, span));
            match (lower, upper) {
                (Some(lower), Some(upper)) => {
                    self.nodes.axes[axis].lower = lower;
                    self.nodes.axes[axis].upper = upper;
                }
                _ => self.unknown(axis, RangeReason::TooLong),
            }
        }
    }
}

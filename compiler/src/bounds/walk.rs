//! The walk over the values of an equation that meets every obligation with what is known there.
//!
//! Each equation is walked once over its whole domain. What cannot be proved there, and belongs to an intermediate, is
//! left to a second walk from the outputs that follows reads into the equations concerned, with the axes replaced by
//! the index expressions: conditions and ranges at the reader then count too.

use tilewright_sorted::{SortedMap, SortedSet};

use kernel::algorithm::{AxisId, Binary, Run};
use kernel::algorithm::{IndexId, Reduction, Source, Value, ValueId};
use tilewright_kernel as kernel;

use super::constant;
use super::context::Context;
use super::divisor;
use super::witness::{Goal, Step, equation_axes, limits};
use crate::extent::{Expr, Facts};
use crate::program::{INLINE_LIMIT, Program};

/// A proof in the second walk counts as so many operations.
const PROOF: u32 = 10;

/// Failing places that are kept for one obligation.
const PLACES: usize = 4;

/// An obligation that could not be proved, and what is known where it stands.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The equation that the path starts from.
    pub root: u16,
    pub goal: Goal,
    pub context: Context,
}

/// The facts that proofs use.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    /// Sizes are at least 1.
    pub facts: &'a Facts,
    /// The same facts for sizes that may be 0.
    pub with_empty: &'a Facts,
}

/// What was found.
#[derive(Default)]
pub(super) struct Findings {
    /// By the node that the obligation belongs to.
    pub failures: SortedMap<ValueId, Vec<Failure>>,
    /// Outputs that read too much through intermediates.
    pub too_large: Vec<u16>,
    /// What is always so.
    pub constant: constant::Found,
    /// Ends of searches, over sizes: an index that one gives is a `u32`. None for one that could not be found.
    pub ends: Vec<(ValueId, AxisId, Option<Expr>)>,
}

struct Walker<'a> {
    program: &'a Program,
    given: Given<'a>,
    context: Context,
    root: u16,
    equation: u16,
    /// Whether this is the second walk.
    inlining: bool,
    /// Obligations of intermediates that the first walk could not prove.
    pending: SortedSet<ValueId>,
    /// Equations that hold, or lead to, pending obligations.
    wanted: Vec<bool>,
    entered: SortedSet<(u16, Vec<Expr>, u64)>,
    folds: SortedSet<ValueId>,
    /// Operations that the second walk may still visit.
    left: u32,
    out: Findings,
}

/// Walks all equations.
pub(super) fn walk(program: &Program, given: Given<'_>) -> Findings {
    let algorithm = &program.algorithm;
    let equations = u16::try_from(algorithm.equations.len()).unwrap_or(u16::MAX);
    let mut walker = Walker {
        program,
        given,
        context: Context::new(program),
        root: 0,
        equation: 0,
        inlining: false,
        pending: SortedSet::new(),
        wanted: vec![false; algorithm.equations.len()],
        entered: SortedSet::new(),
        folds: SortedSet::new(),
        left: u32::MAX,
        out: Findings::default(),
    };
    let reads = reads_of_equations(program);
    let read: SortedSet<u16> = reads.iter().flatten().copied().collect();
    let is_root = |equation: u16| {
        let components = &algorithm.components[algorithm.equations[usize::from(equation)].components.range()];
        // What a stage of its own holds is computed wherever its region reaches, not only where it is read.
        let is_stage = program.schedules.iter().any(|s| s.equation == equation);
        components.iter().any(|c| c.parameter.is_some()) || is_stage || !read.contains(&equation)
    };
    for equation in 0..equations {
        walker.domain(equation);
        if !is_root(equation) {
            // Whether it fails where it is read is for the second walk to say.
            let open = std::mem::take(&mut walker.out.failures);
            for (value, failures) in open {
                if failures.iter().any(|f| f.root == equation) {
                    walker.pending.insert(value);
                    walker.wanted[usize::from(equation)] = true;
                } else {
                    walker.out.failures.insert(value, failures);
                }
            }
        }
        let leads = reads[usize::from(equation)].iter().any(|e| walker.wanted[usize::from(*e)]);
        walker.wanted[usize::from(equation)] |= leads;
    }
    walker.inlining = true;
    for equation in (0..equations).filter(|e| is_root(*e)) {
        if walker.wanted[usize::from(equation)] {
            walker.left = INLINE_LIMIT;
            walker.domain(equation);
            if walker.left == 0 {
                walker.out.too_large.push(equation);
            }
        }
    }
    walker.out
}

/// The equations that each equation reads.
fn reads_of_equations(program: &Program) -> Vec<Vec<u16>> {
    // Nodes of an equation come before its component's value and after those of the equation before.
    let mut walk = Reads { program, found: Vec::new() };
    let components = |e: &kernel::algorithm::Equation| program.algorithm.components[e.components.range()].to_vec();
    let collect = |e| {
        components(e).iter().for_each(|c| walk.value(c.value));
        walk.found.sort_unstable();
        walk.found.dedup();
        std::mem::take(&mut walk.found)
    };
    program.algorithm.equations.iter().map(collect).collect()
}

struct Reads<'a> {
    program: &'a Program,
    found: Vec<u16>,
}

impl Reads<'_> {
    fn value(&mut self, id: ValueId) {
        if let Some(Value::Read { source: Source::Equation { equation, .. }, .. }) =
            self.program.algorithm.values.get(id as usize)
        {
            self.found.push(*equation);
        }
        self.program.algorithm.operands(id).into_iter().for_each(|v| self.value(v));
    }
}

/// The values that an index is computed from.
pub(super) fn index_values(program: &Program, id: IndexId) -> Vec<ValueId> {
    let mut list = Vec::new();
    program.algorithm.index_values(id, &mut list);
    list
}

impl Walker<'_> {
    /// Walks an equation over its whole domain.
    fn domain(&mut self, equation: u16) {
        let mark = self.context.mark();
        (self.root, self.equation) = (equation, equation);
        for axis in equation_axes(self.program, equation).to_vec() {
            self.context.enter_axis(self.program, axis);
        }
        self.components(equation);
        self.context.reset(mark);
    }

    fn components(&mut self, equation: u16) {
        let run = self.program.algorithm.equations[usize::from(equation)].components;
        let folds = std::mem::take(&mut self.folds);
        for component in &self.program.algorithm.components[run.range()] {
            self.value(component.value);
        }
        self.folds = folds;
    }

    fn index(&mut self, id: IndexId) {
        for value in index_values(self.program, id) {
            self.value(value);
        }
    }

    /// Walks a value where a condition holds, or fails.
    fn value_if(&mut self, condition: ValueId, holds: bool, id: ValueId) {
        let mark = self.context.mark();
        self.context.assume(self.program, condition, holds);
        self.value(id);
        self.context.reset(mark);
    }

    fn value(&mut self, id: ValueId) {
        if self.inlining {
            self.left = self.left.saturating_sub(1);
        }
        if self.left == 0 {
            return;
        }
        let program = self.program;
        let algorithm = &program.algorithm;
        let Some(&node) = algorithm.values.get(id as usize) else { return };
        let is_bool = algorithm.types.get(id as usize) == Some(&kernel::ElementType::Bool);
        match node {
            // `a && b` is `if a { b } else { false }`.
            Value::Binary(op @ (Binary::And | Binary::Or), a, b) if is_bool => {
                self.value(a);
                self.value_if(a, op == Binary::And, b);
            }
            Value::Binary(op, a, b) => {
                self.value(a);
                self.value(b);
                if matches!(op, Binary::Div | Binary::Rem) && algorithm.types[id as usize].is_integer() {
                    self.require(Goal::NonZero { value: id, divisor: b });
                }
            }
            Value::Select(c, a, b) => {
                self.value(c);
                self.value_if(c, true, a);
                self.value_if(c, false, b);
            }
            Value::CompareIndex(op, a, b) => {
                self.index(a);
                self.index(b);
                if !self.inlining {
                    let found = constant::condition(program, &self.context, self.given.with_empty, (op, a, b));
                    constant::note(&mut self.out.constant, id, found);
                }
            }
            Value::Read { source, indices, or } => self.read(id, source, indices, or),
            Value::Reduce { op, axes, body, .. } => {
                let mark = self.context.mark();
                let axes = algorithm.axis_lists[axes.range()].to_vec();
                self.range(id, &axes);
                if matches!(op, Reduction::ArgMax | Reduction::ArgMin) {
                    for &axis in &axes {
                        self.require(Goal::Search { value: id, axis });
                        self.end(id, axis);
                    }
                }
                for axis in axes {
                    self.enter_axis(axis);
                }
                self.value(body);
                self.context.reset(mark);
            }
            Value::Fold { axes, states } => {
                if !self.folds.insert(id) {
                    return;
                }
                let states = algorithm.folds[states.range()].to_vec();
                for state in &states {
                    self.value(state.init);
                    state.merge.into_iter().for_each(|merge| self.value(merge));
                }
                let mark = self.context.mark();
                self.range(id, &algorithm.axis_lists[axes.range()]);
                for &axis in &algorithm.axis_lists[axes.range()] {
                    self.enter_axis(axis);
                }
                states.iter().for_each(|state| self.value(state.step));
                self.context.reset(mark);
            }
            _ => {
                algorithm.operands(id).into_iter().for_each(|v| self.value(v));
            }
        }
    }

    /// The axis of a reduction: what decides its range is read before it has a value.
    fn enter_axis(&mut self, axis: AxisId) {
        let of = &self.program.algorithm.axes[axis as usize];
        self.index(of.lower);
        self.index(of.upper);
        self.context.enter_axis(self.program, axis);
    }

    /// Finds how far a search goes.
    fn end(&mut self, id: ValueId, axis: AxisId) {
        if !self.inlining {
            let (_, end) = self.context.range(self.program, axis);
            self.out.ends.push((id, axis, self.context.extreme(&end, true)));
        }
    }

    /// Looks whether a reduction has a term at all.
    fn range(&mut self, id: ValueId, axes: &[AxisId]) {
        if !self.inlining {
            let found = constant::reduction(self.program, &self.context, self.given.with_empty, axes);
            constant::note(&mut self.out.constant, id, found);
        }
    }

    fn read(&mut self, id: ValueId, source: Source, indices: Run, or: Option<ValueId>) {
        let list = self.program.algorithm.index_lists[indices.range()].to_vec();
        list.iter().for_each(|&i| self.index(i));
        or.into_iter().for_each(|v| self.value(v));
        let dimensions: Vec<_> = list.iter().copied().zip(limits(self.program, source)).collect();
        if or.is_none() {
            self.require(Goal::Inside { read: id, dimensions });
        } else if !self.inlining {
            let found = constant::read(self.program, &self.context, self.given.with_empty, &dimensions);
            constant::note(&mut self.out.constant, id, found);
        }
        let Source::Equation { equation, .. } = source else { return };
        if self.inlining && self.wanted[usize::from(equation)] {
            self.enter(id, equation, &list, or.is_some());
        }
    }

    /// Follows a read into the equation that it reads.
    fn enter(&mut self, read: ValueId, equation: u16, indices: &[IndexId], guarded: bool) {
        let values: Vec<Expr> = indices.iter().map(|&i| self.context.index(self.program, i)).collect();
        if !values.iter().any(Expr::is_unknown)
            && !guarded
            && !self.entered.insert((equation, values.clone(), self.context.scope))
        {
            return;
        }
        let mark = self.context.mark();
        self.context.path.push(Step::Enter(read));
        let axes = equation_axes(self.program, equation).to_vec();
        for ((axis, &index), value) in axes.into_iter().zip(indices).zip(values) {
            if self.program.algorithm.is_read(index) {
                self.context.enter_gathered(self.program, axis, index);
            } else {
                self.context.assign(self.program, axis, index, value, guarded);
            }
        }
        let outer = std::mem::replace(&mut self.equation, equation);
        self.components(equation);
        self.equation = outer;
        self.context.reset(mark);
    }

    fn require(&mut self, goal: Goal) {
        if self.inlining {
            if !self.pending.contains(&goal.value()) {
                return;
            }
            self.left = self.left.saturating_sub(PROOF);
        }
        if !holds(self.program, &self.context, self.given, &goal) {
            self.fail(goal);
        }
    }

    fn fail(&mut self, goal: Goal) {
        let places = self.out.failures.entry(goal.value()).or_default();
        if places.len() < PLACES {
            places.push(Failure { root: self.root, goal, context: self.context.clone() });
        }
    }
}

/// Whether an index is provably at least the first and below the end of what it indexes.
pub(super) fn sides(
    program: &Program,
    context: &Context,
    facts: &Facts,
    index: IndexId,
    limit: &super::witness::Limit,
) -> (bool, bool) {
    let index = context.index(program, index);
    let (lower, upper) = context.limit(program, limit);
    let above = upper.sub(&index).sub(&Expr::constant(1));
    (context.proves(facts, &index.sub(&lower)), context.proves(facts, &above))
}

/// Whether a goal provably holds.
pub(super) fn holds(program: &Program, context: &Context, given: Given<'_>, goal: &Goal) -> bool {
    match goal {
        Goal::Inside { dimensions, .. } => {
            dimensions.iter().all(|(index, limit)| sides(program, context, given.facts, *index, limit) == (true, true))
        }
        Goal::Search { axis, .. } => {
            context.search(program, *axis).iter().all(|needed| context.proves(given.with_empty, needed))
        }
        Goal::NonZero { divisor, .. } => divisor::is_not_zero(program, context, given.facts, *divisor),
    }
}

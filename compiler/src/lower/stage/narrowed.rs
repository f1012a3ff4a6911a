//! Loops over terms whose range memory decides: without the iterations beside it.
//!
//! **Property.** What is left out has no term of any element that the loop is for; all threads that wait for each other
//! inside of the loop have the same iterations. **Formula.** The index of a term, from where the longest range begins,
//! is step·i + r with i the loop: over the loops inside, and the threads that wait for each other there, r is between
//! r₀ and r₁. With the range low .. high, counted from there as well, the iterations are from ⌈(low − r₁) / step⌉ to
//! ⌈(high − r₀) / step⌉ (docs/theory.md, Ranges that memory decides). **Approximated.** A loop stays as it is where
//! that is not seen; one that copies, stages or barriers stand in is narrowed only if all threads of all roles read the
//! same ends, from tensors that nobody writes.

use tilewright_kernel::algorithm::{AxisId as AlgorithmAxis, Index, IndexId, Source, Value, ValueId as AlgorithmValue};

use super::{Emit, Goal, Nest, Point};
use crate::domain::{AxisId, Unit};
use crate::extent::{Expr, Var, grows};
use crate::kernel_ir::ValueId;
use crate::lower::value::expression;
use crate::program::expressions;
use crate::schedule::{Stage, extreme, is_of_terms};

/// Which iterations of a loop have terms.
#[derive(Clone, Copy)]
pub(super) struct Narrowed {
    /// The loop.
    pub axis: AxisId,
    /// The first one; none if that is 0.
    first: Option<ValueId>,
    /// How many there are from it on.
    pub count: ValueId,
}

/// An end of ranges that is read before a loop.
pub(super) struct ReadHere {
    pub value: ValueId,
    /// Whether all threads of all roles read the same, and blocks that copy together.
    pub is_alike: bool,
}

/// An index of terms along a loop: step·i + r.
struct Along {
    step: i128,
    /// The least and the greatest r, over what is around the loop.
    least: Expr,
    greatest: Expr,
}

/// What the ends of a range are computed from, over dimensions and leaves.
#[derive(Default)]
struct Ends {
    /// Indices that are not read from memory, and the axes in them.
    indices: Vec<Expr>,
    axes: Vec<AlgorithmAxis>,
    /// What is read without `or`: the tensor and the indices.
    reads: Vec<(u16, Vec<Expr>)>,
}

impl Nest<'_, '_> {
    /// The iterations of the loop at position `k` that have terms, of `all`.
    pub(super) fn narrowed(&mut self, point: &Point, k: usize, goal: Goal, all: ValueId) -> Option<Narrowed> {
        let reduction = self.stage.reduction.filter(|_| goal == Goal::Accumulate && self.is_in_terms())?;
        let program = self.program;
        let (Value::Reduce { axes, .. } | Value::Fold { axes, .. }) = program.algorithm.values[reduction as usize]
        else {
            return None;
        };
        let leaf = *self.sequence.get(k)?;
        let of_memory = |axis: &&AlgorithmAxis| program.algorithm.is_of_memory(**axis);
        let waits = self.gathers(k + 1, goal);
        program.algorithm.axis_lists[axes.range()].iter().filter(of_memory).find_map(|axis| {
            let along = self.terms_along(point, *axis, (leaf, waits))?;
            let declared = &program.algorithm.axes[*axis as usize];
            let low = self.end_here(point, declared.lower, (false, waits));
            let high = self.end_here(point, declared.upper, (true, waits));
            self.iterations(point, (*axis, leaf), (low, high), &along, (all, waits))
        })
    }

    /// The iteration of a loop with a number among those that it has.
    pub(in crate::lower) fn iteration_at(&mut self, axis: AxisId, number: ValueId) -> ValueId {
        match self.narrowed.iter().find(|narrowed| narrowed.axis == axis).and_then(|narrowed| narrowed.first) {
            Some(first) => self.b.index_add(first, number),
            None => number,
        }
    }

    /// What memory says of an end of a range, as far as that can be read before a loop: the least of its parts, or of a
    /// start the greatest one. If threads wait for each other inside of the loop, of what is alike for all of them.
    fn end_here(&mut self, point: &Point, end: IndexId, (is_upper, waits): (bool, bool)) -> Option<ValueId> {
        let mut found = None;
        for part in self.end_parts(end, is_upper) {
            if !self.program.algorithm.is_read(part) {
                continue;
            }
            let Some(here) = self.read_here(point, part).filter(|here| here.is_alike || !waits) else { continue };
            found = Some(match (found, is_upper) {
                (None, _) => here.value,
                (Some(other), true) => self.b.index_min(other, here.value),
                (Some(other), false) => self.b.index_max(other, here.value),
            });
        }
        found
    }

    /// What an end of a range is the least of, or a start the greatest of, if memory decides.
    pub(super) fn end_parts(&self, end: IndexId, is_upper: bool) -> Vec<IndexId> {
        let algorithm = &self.program.algorithm;
        match (algorithm.indices[end as usize], is_upper) {
            (Index::Min(a, b), true) | (Index::Max(a, b), false) if algorithm.is_read(end) => {
                [self.end_parts(a, is_upper), self.end_parts(b, is_upper)].concat()
            }
            _ => vec![end],
        }
    }

    /// How the index of an axis of terms, from the start of its longest range, goes on along a leaf.
    fn terms_along(&self, point: &Point, axis: AlgorithmAxis, (leaf, waits): (AxisId, bool)) -> Option<Along> {
        let domain = &self.stage.domain;
        let number = self.stage.indices.iter().position(|(own, _)| *own == axis)?;
        let (lower, _) = expressions::range(self.program, axis, self.facts, &self.scope_of_leaves());
        let index = self.facts.normal(&self.indices[number].sub(&lower));
        let var = self.leaf_var(leaf);
        let own = Expr::var(var);
        let atoms = &own.terms().first()?.atoms;
        let step = index.terms().iter().find(|term| term.atoms == *atoms)?.coefficient;
        let rest = self.facts.normal(&index.sub(&own.scale(step)));
        let extents = self.leaf_extents();
        let extent = |v: Var| extents.get((v as usize).checked_sub(self.facts.dims())?);
        // What threads that wait for each other differ in counts as if it were inside.
        let differs = |l: AxisId| waits && Unit::of(domain.axes[l].binding).is_some_and(|unit| unit >= Unit::Cta);
        let is_inside = |v: Var| self.axis_of_leaf(v).is_some_and(|leaf| point.values[leaf].is_none() || differs(leaf));
        let inside = |v: Var| extent(v).filter(|_| is_inside(v));
        let [least, greatest] = [extreme(&rest, false, &inside)?, extreme(&rest, true, &inside)?];
        // Terms of no range come from ops that move an axis to the left: there are none.
        let is_known = !rest.is_unknown() && !rest.vars().contains(&var) && step >= 1;
        let is_least = |e: Expr| self.facts.lower_bound(&self.facts.normal(&e)).is_some_and(|low| low >= 0);
        let is_right = grows(&rest) || extreme(&rest, false, &extent).is_some_and(is_least);
        (is_known && is_right).then(|| {
            let [least, greatest] = [self.facts.normal(&least), self.facts.normal(&greatest)];
            Along { step, least, greatest }
        })
    }

    /// An end of ranges, read before a loop; none if it is not the same for all terms and elements of the loop, or may
    /// not be read there.
    ///
    /// Leaves that have no value yet are taken for 0, since nothing depends on them. There may be no such element: then
    /// every read has to be inside of its tensor for all values of the others.
    pub(super) fn read_here(&mut self, point: &Point, end: IndexId) -> Option<ReadHere> {
        let (of, mut ends) = (self.scope_of_leaves(), Ends::default());
        self.ends_of_index(end, &of, &mut ends)?;
        let values: Vec<ValueId> = ends.indices.iter().map(|e| self.of_leaves(e, point)).collect::<Option<_>>()?;
        // What is known of an axis was tested, unless that is waived, or all threads have to come along first.
        let is_known = |axis: &AlgorithmAxis| {
            let mut own = self.stage.indices.iter().filter(|(own, _)| own == axis).peekable();
            let root = |v: Var| self.stage.domain.axis_of(v).is_none_or(|root| point.values[root].is_some());
            own.peek().is_some() && own.all(|(_, index)| index.vars().into_iter().all(root))
        };
        let Stage { members, limits, .. } = self.stage;
        let is_box = members.is_empty() && limits.iter().all(|limit| is_of_terms(limit, &self.stage.domain));
        let is_tested = point.pending.is_empty() && !self.waived.contains(&true) && is_box;
        let exists = is_tested && ends.axes.iter().all(is_known);
        if !exists && !ends.reads.iter().all(|(parameter, at)| self.is_inside(*parameter, at)) {
            return None;
        }
        let of_all = |v: Var| self.axis_of_leaf(v).is_none_or(|leaf| !self.of_threads[leaf]);
        let is_alike = ends.indices.iter().flat_map(Expr::vars).all(of_all) && self.are_alike(&values);
        let mut all = point.values.clone();
        let zero = self.b.index_literal(self.index, 0);
        for leaf in &self.stage.domain.leaves {
            all[*leaf].get_or_insert(zero);
        }
        self.stage.domain.toward_roots(&mut Emit { b: &mut *self.b, index: self.index }, &mut all);
        let scope = self.scope(&all);
        let value = self.values.fitted(self.b, end, &scope);
        if is_alike {
            self.b.assume_follows(value, &values);
        }
        Some(ReadHere { value, is_alike })
    }

    /// Whether all threads of the block or role have the same values, and those of blocks that wait for each other.
    fn are_alike(&self, values: &[ValueId]) -> bool {
        let shares = self.around.stages.iter().any(|s| s.stage.across_ctas())
            || self.around.copies.iter().flatten().any(|copy| copy.staged.multicast.is_some());
        values.iter().map(|v| self.b.facts(*v)).all(|facts| facts.uniform && (facts.cluster || !shares))
    }

    /// Whether a read is inside of a tensor for all values of leaves.
    fn is_inside(&self, parameter: u16, indices: &[Expr]) -> bool {
        let extents = self.leaf_extents();
        let extent = |v: Var| extents.get((v as usize).checked_sub(self.facts.dims())?);
        let is_at_least_0 = |e: Option<Expr>| e.is_some_and(|e| self.facts.proves_nonnegative(&e));
        expressions::tensor(self.program, parameter).is_some_and(|tensor| {
            tensor.shape.iter().zip(indices).all(|(size, index)| {
                let last = extreme(index, true, &extent);
                let room = last.map(|last| Expr::from_size(size).sub(&last).sub(&Expr::constant(1)));
                is_at_least_0(extreme(index, false, &extent)) && is_at_least_0(room)
            })
        })
    }

    /// The extents of the leaves.
    pub(super) fn leaf_extents(&self) -> Vec<Expr> {
        let domain = &self.stage.domain;
        domain.leaves.iter().map(|leaf| self.facts.normal(&domain.axes[*leaf].extent)).collect()
    }

    /// The leaf that a variable stands for.
    fn axis_of_leaf(&self, v: Var) -> Option<AxisId> {
        self.stage.domain.leaves.get((v as usize).checked_sub(self.facts.dims())?).copied()
    }

    /// Adds what an index is computed from; none if that is more than axes, sizes, and tensors that nobody writes.
    fn ends_of_index(&self, index: IndexId, of: &expressions::Scope, ends: &mut Ends) -> Option<()> {
        if !self.program.algorithm.is_read(index) {
            let e = self.facts.normal(&expressions::index(self.program, index, of));
            // A leaf with one iteration is 0.
            let only = |v: Var| {
                let extent = &self.stage.domain.axes[self.axis_of_leaf(v)?].extent;
                (self.facts.normal(extent).as_constant() == Some(1)).then(|| Expr::constant(0))
            };
            let e = self.facts.normal(&e.substitute(&only));
            ends.indices.push(e.clone());
            self.axes_of_index(index, &mut ends.axes);
            return (!e.is_unknown()).then_some(());
        }
        match self.program.algorithm.indices[index as usize] {
            Index::Value(value) => self.ends_of_value(value, of, ends),
            node => node.operands().try_for_each(|operand| self.ends_of_index(operand, of, ends)),
        }
    }

    fn axes_of_index(&self, index: IndexId, axes: &mut Vec<AlgorithmAxis>) {
        match self.program.algorithm.indices[index as usize] {
            Index::Axis(axis) => axes.push(axis),
            node => node.operands().for_each(|operand| self.axes_of_index(operand, axes)),
        }
    }

    fn ends_of_value(&self, value: AlgorithmValue, of: &expressions::Scope, ends: &mut Ends) -> Option<()> {
        let algorithm = &self.program.algorithm;
        match algorithm.values[value as usize] {
            Value::Literal(_) | Value::Scalar(_) => Some(()),
            Value::FromIndex(index) => self.ends_of_index(index, of, ends),
            Value::CompareIndex(_, a, b) => {
                self.ends_of_index(a, of, ends)?;
                self.ends_of_index(b, of, ends)
            }
            Value::Read { source: Source::Parameter(parameter), indices, or } => {
                if algorithm.components.iter().any(|c| c.parameter == Some(parameter)) {
                    return None;
                }
                let mut at = Vec::new();
                for index in &algorithm.index_lists[indices.range()] {
                    self.ends_of_index(*index, of, ends)?;
                    // One that is read from memory itself has `or`.
                    at.push(ends.indices.last().map_or_else(Expr::unknown, Expr::clone));
                }
                match or {
                    Some(or) => self.ends_of_value(or, of, ends)?,
                    None => ends.reads.push((parameter, at)),
                }
                Some(())
            }
            Value::Read { .. }
            | Value::Variable(_)
            | Value::Component { .. }
            | Value::Reduce { .. }
            | Value::Fold { .. }
            | Value::Scatter { .. } => None,
            _ => algorithm.operands(value).into_iter().try_for_each(|operand| self.ends_of_value(operand, of, ends)),
        }
    }

    /// The iterations between the ends of a range, as far as these are known.
    fn iterations(
        &mut self,
        point: &Point,
        (axis, leaf): (AlgorithmAxis, AxisId),
        (low, high): (Option<ValueId>, Option<ValueId>),
        along: &Along,
        (all, waits): (ValueId, bool),
    ) -> Option<Narrowed> {
        if low.is_none() && high.is_none() {
            return None;
        }
        let (first, end) = expressions::range(self.program, axis, self.facts, &self.scope_of_leaves());
        let [first, end] = [self.of_leaves(&first, point)?, self.of_leaves(&end, point)?];
        let least = self.of_leaves(&along.least, point)?;
        // Rounded up by a number that is larger, where there is room for it; rounded down there is one iteration more.
        let less = self.facts.normal(&along.greatest.sub(&Expr::constant(along.step - 1)));
        let is_exact = self.facts.lower_bound(&less).is_some_and(|low| low >= 0);
        let greatest = if is_exact { &less } else { &along.greatest };
        let greatest = if low.is_some() { self.of_leaves(greatest, point)? } else { least };
        let from: Vec<ValueId> = [first, end, least, greatest, all].into_iter().chain(low).chain(high).collect();
        if waits && !self.are_alike(&from) {
            return None;
        }
        // Inside of the longest range nothing that is computed here is too large for an index.
        let mut from_first = |at| {
            let at = self.b.index_min(at, end);
            let at = self.b.index_max(at, first);
            self.b.index_sub(at, first)
        };
        let (low, high) = (low.map(&mut from_first), high.map(&mut from_first));
        let ty = self.index;
        let zero = self.b.index_literal(ty, 0);
        let step = self.b.index_literal(ty, i64::try_from(along.step).ok()?);
        let mut end = all;
        if let Some(high) = high {
            let room = self.b.index_sub(high, least);
            let room = self.b.index_max(room, zero);
            end = self.rounded_up(room, step);
            end = self.b.index_min(end, all);
        }
        let Some(low) = low else {
            if waits {
                self.b.assume_follows(end, &from);
            }
            return Some(Narrowed { axis: leaf, first: None, count: end });
        };
        let room = self.b.index_sub(low, greatest);
        let room = self.b.index_max(room, zero);
        let first = self.b.index_div(room, step);
        let count = self.b.index_sub(end, first);
        let count = self.b.index_max(count, zero);
        if waits {
            [first, count].into_iter().for_each(|value| self.b.assume_follows(value, &from));
        }
        Some(Narrowed { axis: leaf, first: Some(first), count })
    }

    /// An expression over dimensions and leaves that have a value.
    fn of_leaves(&mut self, e: &Expr, point: &Point) -> Option<ValueId> {
        let leaves = &self.stage.domain.leaves;
        let dims = self.facts.dims();
        let value = |v: Var| Some(point.values[*leaves.get((v as usize).checked_sub(dims)?)?]);
        if e.is_unknown() || e.vars().into_iter().any(|v| value(v).is_some_and(|known| known.is_none())) {
            return None;
        }
        let ty = self.index;
        Some(expression(self.b, e, ty, &|b, v| value(v).flatten().unwrap_or_else(|| b.dim(v as u16, ty))))
    }
}

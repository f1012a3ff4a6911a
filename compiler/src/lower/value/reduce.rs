//! Reductions: their states, steps and merges.

use std::rc::Rc;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{
    AxisId as AlgorithmAxis, Compare, FoldState, IndexId, Reduction, Run, Value, ValueId as AlgorithmValue,
};
use tilewright_sorted::SortedMap;

use super::{Accumulator, Bound, ComputedOf, Scope, Values};
use crate::extent::Expr;
use crate::kernel_ir::{Builder, Type, ValueId, VariableId, reduction};
use crate::lower::defect::Defect;
use crate::program::expressions;

impl<'a> Values<'a> {
    /// The states of a reduction or fold: known, or computed here by loops of their own.
    pub(super) fn reduction(&mut self, b: &mut Builder, id: AlgorithmValue, scope: &Scope) -> Vec<ValueId> {
        if let Some((known, states)) = &self.reduced
            && *known == id
        {
            return states.clone();
        }
        let algorithm = &self.program.algorithm;
        let (Value::Reduce { axes, .. } | Value::Fold { axes, .. }) = algorithm.values[id as usize] else {
            return vec![self.value(b, id, scope)];
        };
        let axes_of = scope.axes.iter().map(|(axis, bound)| (*axis, bound.value)).collect();
        let of = ComputedOf::Reduction(id, axes_of, scope.variables.iter().map(|(v, value)| (*v, *value)).collect());
        if let Some(states) = self.computed_before(b, &of) {
            return states.to_vec();
        }
        let accumulator = self.start(b, id, scope, None);
        // A vector loaded inside the loops is not there after them.
        let outer = self.lane.as_ref().map(|l| l.loaded.clone());
        let mut inner = scope.clone();
        let list = &algorithm.axis_lists[axes.range()];
        for axis in list {
            let (low, high) = self.ends(b, *axis, &inner);
            let count = b.index_sub(high, low);
            let at = b.begin_loop(count);
            let value = b.index_add(low, at);
            inner.bind(*axis, Bound { value, expr: Rc::new(Expr::var(self.next_var)) });
            self.next_var += 1;
        }
        self.restore(&outer.as_ref().map(|_| SortedMap::new()));
        self.together(|this| this.take_in(b, id, &accumulator, &inner, None));
        for _ in list {
            b.end_loop();
        }
        self.restore(&outer);
        let states = self.finish(b, &accumulator);
        self.remember(b, of, states.clone());
        states
    }

    /// Where the range of an axis begins and ends, in the width of indices. Where memory decides, an end that does not
    /// come before the beginning.
    fn ends(&mut self, b: &mut Builder, axis: AlgorithmAxis, scope: &Scope) -> (ValueId, ValueId) {
        let declared = &self.program.algorithm.axes[axis as usize];
        let (low, high) = (self.fitted(b, declared.lower, scope), self.fitted(b, declared.upper, scope));
        match self.program.algorithm.is_of_memory(axis) {
            true => (low, b.index_max(low, high)),
            false => (low, high),
        }
    }

    /// An end of a range in the width of indices.
    ///
    /// What memory holds may be anything, and only what is inside of a range that is known at the launch fits an index:
    /// it is cut to what fits, which changes no range that has an element.
    pub fn fitted(&mut self, b: &mut Builder, end: IndexId, scope: &Scope) -> ValueId {
        let end = self.index(b, end, scope);
        if b.ty(end) == self.index {
            return end;
        }
        let [least, most] = [i32::MIN, i32::MAX].map(|end| b.index_literal(Type::I64, end.into()));
        let end = b.index_max(end, least);
        let end = b.index_min(end, most);
        b.index_convert(end, self.index)
    }

    /// Whether an axis that goes through all that its range may be is in its range; none if it is in any case.
    pub fn is_in_ranges(&mut self, b: &mut Builder, axes: Run, scope: &Scope) -> Option<ValueId> {
        let algorithm = &self.program.algorithm;
        let mut inside = None;
        for axis in &algorithm.axis_lists[axes.range()] {
            if !algorithm.is_of_memory(*axis) {
                continue;
            }
            let Some(at) = scope.value(*axis) else {
                self.unknown(Defect::Axis(algorithm.axes[*axis as usize].name.to_string()));
                continue;
            };
            let (low, high) = self.ends(b, *axis, scope);
            for (op, end) in [(Compare::Ge, low), (Compare::Lt, high)] {
                let holds = b.index_compare(op, at, end);
                inside = Some(inside.map_or(holds, |others| b.and(others, holds)));
            }
        }
        inside
    }

    /// The accumulators of a reduction, at its identity. Initial values of a fold that read are read only where `guard`
    /// holds, if there is one; elsewhere they are zero.
    pub fn start(&mut self, b: &mut Builder, id: AlgorithmValue, scope: &Scope, guard: Option<ValueId>) -> Accumulator {
        let algorithm = &self.program.algorithm;
        match algorithm.values[id as usize] {
            Value::Reduce { op: Reduction::ArgMax | Reduction::ArgMin, body, .. } => {
                let ty = algorithm.types[body as usize];
                let (zero, none, no) = (b.literal(ty, 0), b.literal(ElementType::U32, 0), b.bool_literal(false));
                Accumulator::Best { value: b.variable(zero), index: b.variable(none), found: b.variable(no) }
            }
            Value::Reduce { .. } => {
                let identity = self.identity(b, id);
                Accumulator::States(vec![b.variable(identity)])
            }
            Value::Fold { states, .. } => {
                let states = &algorithm.folds[states.range()];
                let guard = guard.filter(|_| states.iter().any(|s| self.has_effects(s.init)));
                let Some(guard) = guard else {
                    let initial: Vec<ValueId> = states.iter().map(|s| self.value(b, s.init, scope)).collect();
                    return Accumulator::States(initial.into_iter().map(|v| b.variable(v)).collect());
                };
                let zero = |s: &FoldState| b.literal(algorithm.types[s.init as usize], 0);
                let zeros: Vec<ValueId> = states.iter().map(zero).collect();
                let variables: Vec<VariableId> = zeros.into_iter().map(|v| b.variable(v)).collect();
                b.begin_if(guard);
                for (state, variable) in states.iter().zip(&variables) {
                    let value = self.value(b, state.init, scope);
                    b.set(*variable, value);
                }
                b.end_if();
                Accumulator::States(variables)
            }
            _ => Accumulator::States(Vec::new()),
        }
    }

    /// What a reduction with one state gives without terms.
    pub fn identity(&self, b: &mut Builder, id: AlgorithmValue) -> ValueId {
        let ty = self.program.algorithm.types[id as usize];
        let Value::Reduce { op, .. } = self.program.algorithm.values[id as usize] else { return b.literal(ty, 0) };
        b.literal(ty, reduction::identity(op, ty))
    }

    /// An accumulator of a reduction whose first term replaces what is in it.
    pub fn start_unset(&mut self, b: &mut Builder, id: AlgorithmValue) -> Accumulator {
        Accumulator::States(vec![b.unset(self.program.algorithm.types[id as usize])])
    }

    /// Whether a range of a reduction is empty for every size.
    pub(in crate::lower) fn has_no_term(&mut self, id: AlgorithmValue, axes: Run, scope: &Scope) -> bool {
        if let Some(known) = self.empty.get(&id).filter(|_| scope.is_own) {
            return *known;
        }
        let of = scope.exprs();
        let range = |axis: &AlgorithmAxis| expressions::range(self.program, *axis, self.facts, &of);
        let found = self.program.algorithm.axis_lists[axes.range()].iter().any(|a| expressions::is_never(&range(a)));
        if scope.is_own {
            self.empty.insert(id, found);
        }
        found
    }

    /// Takes in the term at the axes in scope, which a schedule goes through: if it is one.
    pub fn step(&mut self, b: &mut Builder, id: AlgorithmValue, accumulator: &Accumulator, scope: &Scope) {
        self.together(|this| {
            let (Value::Reduce { axes, .. } | Value::Fold { axes, .. }) = this.program.algorithm.values[id as usize]
            else {
                return;
            };
            let is_term = this.is_in_ranges(b, axes, scope);
            this.take_in(b, id, accumulator, scope, is_term);
        });
    }

    /// A variable has this value, if what was at hand was a term.
    pub fn take(&self, b: &mut Builder, variable: VariableId, next: ValueId, is_term: Option<ValueId>) {
        let next = match is_term {
            Some(is_term) => {
                let before = b.get(variable);
                b.select(is_term, next, before)
            }
            None => next,
        };
        b.set(variable, next);
    }

    fn take_in(
        &mut self,
        b: &mut Builder,
        id: AlgorithmValue,
        accumulator: &Accumulator,
        scope: &Scope,
        is_term: Option<ValueId>,
    ) {
        let algorithm = &self.program.algorithm;
        if let Value::Reduce { axes, .. } | Value::Fold { axes, .. } = algorithm.values[id as usize]
            && self.has_no_term(id, axes, scope)
        {
            // What its terms read is no access (`schedule::accesses`), and may have no place in an instance.
            return;
        }
        match (algorithm.values[id as usize], accumulator) {
            (Value::Reduce { op, axes, body, .. }, Accumulator::Best { value, index, found }) => {
                let term = self.value(b, body, scope);
                let axis = algorithm.axis_lists[axes.range()][0];
                let Some(at) = scope.value(axis) else {
                    let name = self.program.algorithm.axes[axis as usize].name.to_string();
                    return self.unknown(Defect::Axis(name));
                };
                let at = b.from_index(at, ElementType::U32);
                let (best, best_at, seen) = (b.get(*value), b.get(*index), b.get(*found));
                let better = reduction::precedes(b, op, (term, at), (best, best_at));
                let unseen = b.not(seen);
                let take = b.or(unseen, better);
                let (next, next_at) = (b.select(take, term, best), b.select(take, at, best_at));
                b.set(*value, next);
                b.set(*index, next_at);
                let yes = b.bool_literal(true);
                b.set(*found, yes);
            }
            (Value::Reduce { op, body, .. }, Accumulator::States(variables)) => {
                let term = self.value(b, body, scope);
                let sum = b.get(variables[0]);
                let next = b.binary(reduction::combine(op), sum, term);
                self.take(b, variables[0], next, is_term);
            }
            (Value::Fold { states, .. }, Accumulator::States(variables)) => {
                let states = &algorithm.folds[states.range()];
                let mut inner = scope.clone();
                for (state, variable) in states.iter().zip(variables) {
                    inner.variables.insert(state.variable, b.get(*variable));
                }
                let next: Vec<ValueId> = states.iter().map(|s| self.value(b, s.step, &inner)).collect();
                for (variable, value) in variables.iter().zip(next) {
                    self.take(b, *variable, value, is_term);
                }
            }
            _ => {}
        }
    }

    /// Two parts of a reduction as one: states of the left part and of the right one, as [`Accumulator::variables`]
    /// are.
    pub fn merge(&mut self, b: &mut Builder, id: AlgorithmValue, left: &[ValueId], right: &[ValueId]) -> Vec<ValueId> {
        let algorithm = &self.program.algorithm;
        match algorithm.values[id as usize] {
            Value::Reduce { op: op @ (Reduction::ArgMax | Reduction::ArgMin), .. } => {
                let ([value, at, found], [other, other_at, other_found]) = (left, right) else { return left.to_vec() };
                let better = reduction::precedes(b, op, (*other, *other_at), (*value, *at));
                let unseen = b.not(*found);
                let either = b.or(unseen, better);
                let take = b.and(*other_found, either);
                let any = b.or(*found, *other_found);
                vec![b.select(take, *other, *value), b.select(take, *other_at, *at), any]
            }
            Value::Reduce { op, .. } => {
                left.iter().zip(right).map(|(l, r)| b.binary(reduction::combine(op), *l, *r)).collect()
            }
            Value::Fold { states, .. } => {
                let states = &algorithm.folds[states.range()];
                let mut scope = Scope::default();
                for ((state, l), r) in states.iter().zip(left).zip(right) {
                    scope.variables.insert(state.left, *l);
                    scope.variables.insert(state.right, *r);
                }
                let merged = |s: &FoldState| s.merge;
                states.iter().zip(left).map(|(s, l)| merged(s).map_or(*l, |m| self.value(b, m, &scope))).collect()
            }
            _ => left.to_vec(),
        }
    }

    /// The result of a reduction: one value per state.
    pub fn finish(&mut self, b: &mut Builder, accumulator: &Accumulator) -> Vec<ValueId> {
        match accumulator {
            Accumulator::States(variables) => variables.iter().map(|v| b.get(*v)).collect(),
            Accumulator::Best { index, .. } => vec![b.get(*index)],
        }
    }
}

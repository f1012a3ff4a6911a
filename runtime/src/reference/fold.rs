//! The general reduction with state.
//!
//! Without a `merge` the steps run in ascending order and the result is exact. With one, the order is free: the terms
//! may be dealt to any number of partial states, each stepped from `init`, and merged in any bracketing. Where step and
//! merge do not round (integers, maxima, comparisons) every order gives the same result, because the user states that
//! `merge` makes the states a commutative monoid with `init` as its identity and `step` as merging with one term.
//!
//! Where they round, that statement holds for real numbers only, and orders differ by rounding errors. No useful bound
//! over all orders follows from the expressions alone: a `merge` may amplify errors without limit. What is given is an
//! **estimate**: three orders (one chain; halves; 32 interleaved chains merged pairwise) are evaluated with sets that
//! hold both the rounded and the unrounded value of every operation, and the hull of the three is widened by its own
//! width on both sides. By chance none of the three may round where others do (a mean of 32 equal terms is divided by
//! powers of two only): where their hull is one value and the state is multiplied, divided or given to a function, it
//! is taken again from sets that are wider at every operation. A state that is only added up keeps its value: if three
//! orders do not round, its terms mostly have room to spare. (Of 290,000 launches of random kernels one rounded where
//! none of the three did, in the last place.) Outputs that rest on an estimate say so
//! ([`Evaluator::estimates`]).

use std::rc::Rc;

use tilewright_kernel::algorithm::{AxisId, Binary, FoldState, Run, Source, Unary, Value, ValueId};

use super::column::{Column, joint};
use super::eval::{Evaluator, Fail};
use super::interval::{Format, Interval};
use super::scope::{Place, Scope, Variables};

type Eval<T> = Result<T, Fail>;
/// One column a state variable.
type States = Vec<Rc<Column>>;

/// Chains that the interleaved order deals the terms to.
const CHAINS: usize = 32;
/// Terms of a chain at the leaves of the order by halves: few, so that the orders differ for few terms as well.
const LEAF: usize = 2;
/// Terms of a fold whose order is free: their indices are listed.
const MOST_TERMS: usize = 1 << 24;

impl Evaluator<'_> {
    /// The final states, one column each.
    pub(super) fn fold(
        &self,
        axes: Run,
        states: Run,
        scope: &Scope<'_>,
        active: Option<&[bool]>,
    ) -> Eval<Rc<[Column]>> {
        let axes = self.axis_list(axes)?;
        let states = self.algorithm.folds.get(states.range()).ok_or("a malformed fold")?;
        let own = states.iter().fold(self.free.axis_list(axes), |set, s| {
            set | self.free.variable(s.variable) | self.free.variable(s.left) | self.free.variable(s.right)
        });
        let one_by_one = scope.points > 1 && self.ragged(axes, scope);
        if !one_by_one {
            let mut inside = Scope::inside(scope, own);
            return self.run_fold(axes, states, &mut inside, active);
        }
        let mut results: Vec<Column> = states.iter().map(|s| Column::empty(self.type_of(s.init))).collect();
        for point in 0..scope.points {
            let mut inside = Scope::at_point(scope, point, own, &self.free);
            if active.is_some_and(|a| !a[point]) {
                for (result, state) in results.iter_mut().zip(states) {
                    result.append(&self.value(state.init, &inside, None)?[0], 1);
                }
                continue;
            }
            let one = self.run_fold(axes, states, &mut inside, None)?;
            for (result, value) in results.iter_mut().zip(one.iter()) {
                result.append(value, 1);
            }
        }
        Ok(Rc::from(results))
    }

    fn type_of(&self, id: ValueId) -> tilewright_kernel::ElementType {
        self.algorithm.types.get(id as usize).copied().unwrap_or(tilewright_kernel::ElementType::Bool)
    }

    fn run_fold(
        &self,
        axes: &[AxisId],
        states: &[FoldState],
        inside: &mut Scope<'_>,
        active: Option<&[bool]>,
    ) -> Eval<Rc<[Column]>> {
        let variables = states.iter().fold(0, |set, s| {
            set | self.free.variable(s.variable) | self.free.variable(s.left) | self.free.variable(s.right)
        });
        let merges: Option<Vec<ValueId>> = states.iter().map(|s| s.merge).collect();
        let free_order = if self.is_free(states)? { merges } else { None };
        let fold = Fold { evaluator: self, states, active };
        let Some(merges) = free_order else {
            // Without listing the terms: there may be any number of them.
            let mut current = fold.initial(inside)?;
            self.walk(axes, inside, &mut |inside, axis, lower, upper| {
                for value in lower..upper {
                    inside.place(axis, Place::At(value));
                    current = fold.step(&current, inside)?;
                }
                Ok(())
            })?;
            return Ok(current.iter().map(|c| (**c).clone()).collect());
        };
        let mut terms: Vec<Vec<i64>> = Vec::new();
        self.walk(axes, inside, &mut |inside, _, lower, upper| {
            let outer: Vec<i64> = axes[..axes.len() - 1].iter().map(|&a| at(inside.axes[a as usize])).collect();
            if (upper - lower).max(0) as usize > MOST_TERMS - terms.len().min(MOST_TERMS) {
                return Err(format!("a fold of free order with more than {MOST_TERMS} terms"));
            }
            terms.extend((lower..upper).map(|v| outer.iter().copied().chain([v]).collect()));
            Ok(())
        })?;
        inside.widen |= variables;
        inside.forget();
        if terms.is_empty() {
            return Ok(fold.initial(inside)?.iter().map(|c| (**c).clone()).collect());
        }
        let orders = fold.orders(axes, &terms, &merges, inside)?;
        let of = |orders: &[States; 3], n: usize| orders.each_ref().map(|states| Rc::clone(&states[n]));
        let hull = |n: usize| estimate(&of(&orders, n), Format::of(self.type_of(states[n].init)));
        let mut hulls: Vec<Column> = (0..states.len()).map(hull).collect();
        let scaled = self.scaled(states)?;
        let by_chance = |n: usize| match &hulls[n] {
            Column::Float(_) => true,
            sets => (0..sets.len()).any(|i| sets.interval(i).single().is_some()),
        };
        if (0..states.len()).any(|n| scaled[n] && by_chance(n)) {
            inside.loose = true;
            inside.forget();
            let loose = fold.orders(axes, &terms, &merges, inside)?;
            for (n, hull) in hulls.iter_mut().enumerate().filter(|(n, _)| scaled[*n]) {
                *hull = unless_single(hull, &estimate(&of(&loose, n), Format::of(self.type_of(states[n].init))));
            }
        }
        Ok(Rc::from(hulls))
    }

    /// Of each state that is a float, whether more than sums, comparisons and choices lead to it: then whether an order
    /// rounds depends on how many terms meet where.
    fn scaled(&self, states: &[FoldState]) -> Eval<Vec<bool>> {
        let own =
            |s: &FoldState| self.free.variable(s.variable) | self.free.variable(s.left) | self.free.variable(s.right);
        let scales = |id: ValueId| match self.algorithm.values[id as usize] {
            Value::Binary(Binary::Mul | Binary::Div, ..)
            | Value::Fma(..)
            | Value::Reduce { .. }
            | Value::Fold { .. } => true,
            Value::Unary(op, _) => !matches!(op, Unary::Neg | Unary::Abs | Unary::Not),
            _ => false,
        };
        let all = states.iter().fold(0, |set, s| set | own(s));
        let mut scaled = Vec::with_capacity(states.len());
        let mut reads = Vec::with_capacity(states.len());
        for state in states {
            let mut scales_itself = false;
            let mut read: Variables = 0;
            self.visit([Some(state.step), state.merge].into_iter().flatten(), |id| {
                let free = self.free.value(id) & all;
                read |= free;
                scales_itself |= free != 0 && self.type_of(id).is_float() && scales(id);
                free != 0
            })?;
            scaled.push(scales_itself && self.type_of(state.init).is_float());
            reads.push(read);
        }
        // What is read of a scaled state may be rounded, too.
        while let Some(n) = (0..states.len()).find(|&n| {
            !scaled[n]
                && self.type_of(states[n].init).is_float()
                && (0..states.len()).any(|m| scaled[m] && reads[n] & own(&states[m]) != 0)
        }) {
            scaled[n] = true;
        }
        Ok(scaled)
    }

    /// Whether the order of a fold is free and its result depends on it.
    fn is_free(&self, states: &[FoldState]) -> Eval<bool> {
        let variables = states.iter().fold(0, |set, s| {
            set | self.free.variable(s.variable) | self.free.variable(s.left) | self.free.variable(s.right)
        });
        let expressions = states.iter().flat_map(|s| [Some(s.step), s.merge]).flatten();
        Ok(states.iter().all(|s| s.merge.is_some()) && self.rounds(expressions, variables)?)
    }

    /// Whether a value rests on an estimate, given which equations before do.
    pub(super) fn estimates(&self, value: ValueId, before: &[bool]) -> Eval<bool> {
        let mut seen = vec![false; self.algorithm.values.len()];
        let mut open = vec![value];
        while let Some(id) = open.pop() {
            if std::mem::replace(seen.get_mut(id as usize).ok_or("a malformed value")?, true) {
                continue;
            }
            match self.algorithm.values[id as usize] {
                Value::Fold { states, .. }
                    if self.is_free(self.algorithm.folds.get(states.range()).ok_or("a malformed fold")?)? =>
                {
                    return Ok(true);
                }
                Value::Read { source: Source::Equation { equation, .. }, .. }
                    if before.get(usize::from(equation)).copied().unwrap_or(false) =>
                {
                    return Ok(true);
                }
                _ => {}
            }
            open.extend(self.algorithm.operands(id));
        }
        Ok(false)
    }

    /// Calls `each` once for every value that these rest on, themselves included; below one only where it says so.
    fn visit(&self, from: impl Iterator<Item = ValueId>, mut each: impl FnMut(ValueId) -> bool) -> Eval<()> {
        let mut seen = vec![false; self.algorithm.values.len()];
        let mut open: Vec<ValueId> = from.collect();
        while let Some(id) = open.pop() {
            let seen = seen.get_mut(id as usize).ok_or("a malformed fold")?;
            if !std::mem::replace(seen, true) && each(id) {
                open.extend(self.algorithm.operands(id));
            }
        }
        Ok(())
    }

    /// Whether some operation on these variables rounds.
    fn rounds(&self, expressions: impl Iterator<Item = ValueId>, variables: Variables) -> Eval<bool> {
        let mut seen = vec![false; self.algorithm.values.len()];
        let mut open: Vec<ValueId> = expressions.collect();
        while let Some(id) = open.pop() {
            let seen = seen.get_mut(id as usize).ok_or("a malformed fold")?;
            if std::mem::replace(seen, true) || self.free.value(id) & variables == 0 {
                continue;
            }
            let float = self.type_of(id).is_float();
            match self.algorithm.values[id as usize] {
                Value::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Div, ..) | Value::Fma(..) if float => {
                    return Ok(true);
                }
                Value::Unary(op, a)
                    if matches!(op, Unary::Neg | Unary::Abs | Unary::Not) || op.rounding().is_some() =>
                {
                    open.push(a);
                }
                Value::Unary(..) => return Ok(true),
                // A float to a narrower one, or an integer to a float.
                Value::Cast(_) if float => return Ok(true),
                Value::Reduce { .. } | Value::Fold { .. } if float => return Ok(true),
                Value::Cast(a) => open.push(a),
                Value::Binary(_, a, b) | Value::Compare(_, a, b) => open.extend([a, b]),
                Value::Fma(a, b, c) | Value::Select(a, b, c) => open.extend([a, b, c]),
                Value::Read { or, .. } => open.extend(or),
                Value::Reduce { body, .. } | Value::Scatter { term: body, .. } => open.push(body),
                Value::Component { fold, .. } => open.push(fold),
                Value::Fold { states, .. } => {
                    let states = self.algorithm.folds.get(states.range()).ok_or("a malformed fold")?;
                    open.extend(states.iter().flat_map(|s| [s.init, s.step]));
                }
                Value::Literal(_)
                | Value::Scalar(_)
                | Value::FromIndex(_)
                | Value::CompareIndex(..)
                | Value::Variable(_) => {}
            }
        }
        Ok(false)
    }
}

/// The value of an axis that stands still.
fn at(place: Place) -> i64 {
    match place {
        Place::At(v) | Place::From(v) => v,
        Place::Unbound => 0,
    }
}

/// `column`, and `other` where it holds one number.
fn unless_single(column: &Column, other: &Column) -> Column {
    let one = |i: usize| {
        let set = column.interval(i);
        if set.single().is_some_and(f64::is_finite) { set.hull(other.interval(i)) } else { set }
    };
    Column::from_intervals((0..joint(&[column.len(), other.len()])).map(one).collect())
}

/// The hull of several results, widened by its own width on both sides.
fn estimate(results: &[Rc<Column>], format: Option<Format>) -> Column {
    let points = joint(&results.iter().map(|c| c.len()).collect::<Vec<_>>());
    let Some(format) = format else {
        let hull = |i: usize| results.iter().map(|c| c.range(i)).reduce(|a, b| a.hull(&b));
        return Column::from_ranges((0..points).filter_map(hull).collect());
    };
    let one = |i: usize| {
        let hull = results.iter().map(|c| c.interval(i)).reduce(Interval::hull)?;
        let width = hull.hi - hull.lo;
        Some(if width > 0.0 && width.is_finite() {
            let beyond = |x: f64| if x.abs() > format.max() { f64::INFINITY.copysign(x) } else { x };
            Interval { lo: beyond(hull.lo - width), hi: beyond(hull.hi + width), nan: hull.nan }
        } else {
            hull
        })
    };
    Column::from_intervals((0..points).filter_map(one).collect())
}

/// A fold being evaluated.
struct Fold<'a> {
    evaluator: &'a Evaluator<'a>,
    states: &'a [FoldState],
    active: Option<&'a [bool]>,
}

impl Fold<'_> {
    fn initial(&self, scope: &Scope<'_>) -> Eval<States> {
        let init = |s: &FoldState| Ok(Rc::new(self.evaluator.value(s.init, scope, self.active)?[0].clone()));
        self.states.iter().map(init).collect()
    }

    /// The next states, where the axes stand.
    fn step(&self, current: &States, scope: &mut Scope<'_>) -> Eval<States> {
        for (state, value) in self.states.iter().zip(current) {
            scope.assign(state.variable, Rc::clone(value));
        }
        scope.forget();
        let next = |s: &FoldState| Ok(Rc::new(self.evaluator.value(s.step, scope, self.active)?[0].clone()));
        self.states.iter().map(next).collect()
    }

    /// The final states by each of three orders.
    fn orders(
        &self,
        axes: &[AxisId],
        terms: &[Vec<i64>],
        merges: &[ValueId],
        scope: &mut Scope<'_>,
    ) -> Eval<[States; 3]> {
        Ok([
            self.chain(axes, &mut terms.iter(), scope)?,
            self.halves(axes, terms, merges, scope)?,
            self.interleaved(axes, terms, merges, scope)?,
        ])
    }

    fn chain(
        &self,
        axes: &[AxisId],
        terms: &mut dyn Iterator<Item = &Vec<i64>>,
        scope: &mut Scope<'_>,
    ) -> Eval<States> {
        let mut current = self.initial(scope)?;
        for term in terms {
            for (&axis, &value) in axes.iter().zip(term) {
                scope.axes[axis as usize] = Place::At(value);
            }
            current = self.step(&current, scope)?;
        }
        Ok(current)
    }

    fn merge(&self, left: &States, right: &States, merges: &[ValueId], scope: &mut Scope<'_>) -> Eval<States> {
        for ((state, left), right) in self.states.iter().zip(left).zip(right) {
            scope.assign(state.left, Rc::clone(left));
            scope.assign(state.right, Rc::clone(right));
        }
        scope.forget();
        let next = |&m: &ValueId| Ok(Rc::new(self.evaluator.value(m, scope, self.active)?[0].clone()));
        merges.iter().map(next).collect()
    }

    fn halves(&self, axes: &[AxisId], terms: &[Vec<i64>], merges: &[ValueId], scope: &mut Scope<'_>) -> Eval<States> {
        if terms.len() <= LEAF {
            return self.chain(axes, &mut terms.iter(), scope);
        }
        let (left, right) = terms.split_at(terms.len() / 2);
        let left = self.halves(axes, left, merges, scope)?;
        let right = self.halves(axes, right, merges, scope)?;
        self.merge(&left, &right, merges, scope)
    }

    fn interleaved(
        &self,
        axes: &[AxisId],
        terms: &[Vec<i64>],
        merges: &[ValueId],
        scope: &mut Scope<'_>,
    ) -> Eval<States> {
        let mut parts = Vec::with_capacity(CHAINS);
        for first in 0..CHAINS {
            parts.push(self.chain(axes, &mut terms.iter().skip(first).step_by(CHAINS), scope)?);
        }
        while parts.len() > 1 {
            let half = parts.len() / 2;
            let right = parts.split_off(half);
            for (left, right) in parts.iter_mut().zip(&right) {
                *left = self.merge(left, right, merges, scope)?;
            }
        }
        parts.pop().ok_or_else(|| "a fold without chains".to_owned())
    }
}

//! How a reduction runs: over its axes one step at a time with all points side by side, or at one point after the other
//! over blocks of its innermost axis.

use tilewright_kernel::algorithm::{AxisId, Binary, Order, Reduction, Run, Value, ValueId};
use tilewright_kernel::dot;
use tilewright_kernel::online::Chain;

use super::column::{Column, joint, map2, pick};
use super::eval::{BLOCK, Eval, Evaluator, Single};
use super::reduce::{Accumulator, Along, Terms};
use super::scope::{Place, Scope};

/// Reductions run over fewer points than this one point at a time.
const FEW: usize = 8;
/// Terms of a reduction that is worth running over at every point anew.
const LONG: i64 = 32;

/// Terms of a reduction, with what belongs to a [`Terms`].
struct Evaluated {
    column: Single,
    sizes: Option<Vec<f64>>,
    weights: Option<Vec<f64>>,
    spread: Option<Vec<f64>>,
}

impl Evaluated {
    fn borrow(&self) -> Terms<'_> {
        let (sizes, weights, spread) = (self.sizes.as_deref(), self.weights.as_deref(), self.spread.as_deref());
        Terms { column: &self.column, sizes, weights, spread }
    }
}

impl Evaluator<'_> {
    pub(super) fn axis_list(&self, axes: Run) -> Eval<&[AxisId]> {
        let list = self.algorithm.axis_lists.get(axes.range()).ok_or("a malformed list of axes")?;
        if list.iter().any(|&a| a as usize >= self.algorithm.axes.len()) {
            return Err("a malformed list of axes".to_owned());
        }
        Ok(list)
    }

    /// Calls `inner` with the range of the innermost axis, for every step of the outer ones, in order.
    pub(super) fn walk(
        &self,
        axes: &[AxisId],
        scope: &mut Scope<'_>,
        inner: &mut dyn FnMut(&mut Scope<'_>, AxisId, i64, i64) -> Eval<()>,
    ) -> Eval<()> {
        let Some((&axis, rest)) = axes.split_first() else { return Ok(()) };
        let declared = &self.algorithm.axes[axis as usize];
        let (lower, upper) = (self.uniform(declared.lower, scope)?, self.uniform(declared.upper, scope)?);
        // Before it is walked: a range may be so long that nobody waits for its end.
        let terms = i128::from(upper).saturating_sub(lower.into()).max(0).saturating_mul(scope.points as i128);
        self.work.take(u64::try_from(terms).unwrap_or(u64::MAX)).map_err(|limit| {
            let (name, sizes) = (&declared.name, self.sizes());
            format!("with {sizes} the reduction along `{name}` in {lower}..{upper} has {terms} terms more; {limit}")
        })?;
        if rest.is_empty() {
            return inner(scope, axis, lower, upper);
        }
        for value in lower..upper {
            scope.place(axis, Place::At(value));
            self.walk(rest, scope, inner)?;
        }
        Ok(())
    }

    /// Whether the range of some of these axes depends on the axis that runs over the points.
    pub(super) fn ragged(&self, axes: &[AxisId], scope: &Scope<'_>) -> bool {
        let lane = scope.lane.map_or(0, |a| self.free.axis(a));
        let mut bounds = axes.iter().map(|&a| &self.algorithm.axes[a as usize]);
        bounds.any(|axis| (self.free.index(axis.lower) | self.free.index(axis.upper)) & lane != 0)
    }

    pub(super) fn reduce(
        &self,
        id: ValueId,
        (op, order): (Reduction, Order),
        axes: Run,
        body: ValueId,
        scope: &Scope<'_>,
        active: Option<&[bool]>,
    ) -> Eval<Column> {
        let axes = self.axis_list(axes)?;
        if matches!(op, Reduction::ArgMax | Reduction::ArgMin) && axes.len() != 1 {
            return Err(format!("{op:?} over {} axes", axes.len()));
        }
        let element = self.element(body);
        let chain = self.chains.get(&id).filter(|_| order.is_online());
        let additions = self.additions.get(&id).copied();
        let accumulator = |points: usize| {
            Accumulator::new(op, order, (chain, additions), element, points)
                .ok_or_else(|| format!("the host cannot evaluate: {op:?} of {element}"))
        };
        let bound = self.free.axis_list(axes);
        let lane = scope.lane.map_or(0, |a| self.free.axis(a));
        let varies = scope.points > 1 && (self.free.value(id) & lane != 0 || self.varies(scope));
        if varies && scope.points >= FEW && !self.ragged(axes, scope) && !self.runs_along(axes, body, scope) {
            let mut inside = Scope::inside(scope, bound);
            let mut accumulator = accumulator(scope.points)?;
            self.walk(axes, &mut inside, &mut |inside, axis, lower, upper| {
                for value in lower..upper {
                    inside.place(axis, Place::At(value));
                    let terms = self.term((order, chain), body, inside, active)?;
                    accumulator.take(terms.borrow(), Along::Points, inside.points, value, active);
                }
                Ok(())
            })?;
            return self.finished(id, accumulator);
        }
        // One point at a time, with the terms side by side.
        let mut results = Column::empty(self.element(id));
        let points = if varies { scope.points } else { 1 };
        let mut inside = Scope::at_point(scope, 0, bound, &self.free);
        for point in 0..points {
            if active.is_some_and(|a| if points == 1 { !a.contains(&true) } else { !a[point] }) {
                // Nobody looks.
                let nothing = if self.element(id).is_float() { Column::Float(vec![0.0]) } else { Column::Int(vec![0]) };
                results.append(&nothing, 1);
                continue;
            }
            inside.move_to(point);
            let mut accumulator = accumulator(1)?;
            self.walk(axes, &mut inside, &mut |inside, axis, lower, upper| {
                let mut start = lower;
                while start < upper {
                    let count = (upper - start).min(BLOCK as i64) as usize;
                    inside.run(axis, start, count);
                    let terms = self.term((order, chain), body, inside, None)?;
                    accumulator.take(terms.borrow(), Along::Terms, count, start, None);
                    start += count as i64;
                }
                // The next step of an outer axis evaluates this axis' range at one point.
                inside.points = 1;
                inside.lane = None;
                inside.place(axis, Place::Unbound);
                Ok(())
            })?;
            results.append(&self.finished(id, accumulator)?, 1);
        }
        Ok(results)
    }

    fn finished(&self, id: ValueId, accumulator: Accumulator) -> Eval<Column> {
        let found = accumulator.finish()?;
        Ok(if self.loose.contains(&id) { found.or_nan() } else { found })
    }

    /// The terms of a reduction, and what the contract of its order asks for beside them.
    fn term(
        &self,
        (order, chain): (Order, Option<&Chain>),
        body: ValueId,
        scope: &Scope<'_>,
        active: Option<&[bool]>,
    ) -> Eval<Evaluated> {
        let column = self.one(body, scope, active)?;
        let mut terms = Evaluated { column, sizes: None, weights: None, spread: None };
        if let Some(chain) = chain {
            let sizes = |column: &Column| -> Vec<f64> {
                let most = |i: usize| {
                    let set = column.interval(i);
                    if set.is_empty() { 0.0 } else { set.lo.abs().max(set.hi.abs()) }
                };
                (0..column.len()).map(most).collect()
            };
            let mut weights = sizes(&*self.one(chain.weight, scope, active)?);
            if let Some(of) = chain.weights() {
                terms.spread = Some(sizes(&*self.one(of.size, scope, active)?));
            }
            if let Some((exponential, (k, u))) = chain.exponential().and_then(|own| Some((own, own.fused?))) {
                let limit = exponential.most_fused(self.element(u));
                let (k, u) = (self.one(k, scope, active)?, self.one(u, scope, active)?);
                let size = |column: &Column, i: usize| {
                    let set = column.interval(i);
                    [set.lo, set.hi]
                        .into_iter()
                        .filter(|end| end.is_finite())
                        .fold(0.0, |most: f64, end| most.max(end.abs()))
                };
                // Exponentials may be of any size where k·u is large.
                let count = weights.len().max(k.len()).max(u.len());
                let large = (0..count).map(|i| size(&k, i) * size(&u, i) > limit);
                weights = large.enumerate().map(|(i, is)| if is { f64::INFINITY } else { pick(&weights, i) }).collect();
            }
            terms.weights = Some(weights);
        }
        let Order::Dot { operands, promote, .. } = order else { return Ok(terms) };
        let (Some(loss), Some(&Value::Binary(Binary::Mul, a, b))) =
            (dot::loss(operands, 1, promote), self.algorithm.values.get(body as usize))
        else {
            return Ok(terms);
        };
        let (a, b) = (self.one(a, scope, active)?, self.one(b, scope, active)?);
        let size = |n: usize, x: f64| if x == 0.0 { 0.0 } else { x.abs().max(loss.least[n]) };
        let sizes = match (&*a, &*b) {
            (Column::Float(a), Column::Float(b)) => map2(a, b, |x, y| size(0, x) * size(1, y)),
            _ => {
                let most = |n: usize, column: &Column, i: usize| {
                    let set = column.interval(i);
                    size(n, set.lo).max(size(n, set.hi))
                };
                (0..joint(&[a.len(), b.len()])).map(|i| most(0, &a, i) * most(1, &b, i)).collect()
            }
        };
        terms.sizes = Some(sizes);
        Ok(terms)
    }

    /// Whether a long reduction reads memory in order along its innermost axis, and not along the axis of the points.
    fn runs_along(&self, axes: &[AxisId], body: ValueId, scope: &Scope<'_>) -> bool {
        let (Some(&last), Some(lane)) = (axes.last(), scope.lane) else { return false };
        let axis = &self.algorithm.axes[last as usize];
        let bounds = self.uniform(axis.lower, scope).ok().zip(self.uniform(axis.upper, scope).ok());
        if bounds.is_none_or(|(lower, upper)| upper.saturating_sub(lower) < LONG) {
            return false;
        }
        let (term, point) = (self.free.axis(last), self.free.axis(lane));
        let (mut along_terms, mut along_points) = (0, 0);
        let mut open = vec![body];
        // A few nodes tell: the choice changes speed only.
        for _ in 0..64 {
            let Some(node) = open.pop().and_then(|id| self.algorithm.values.get(id as usize)) else { break };
            match *node {
                Value::Read { indices, .. } => {
                    let last = self.algorithm.index_lists.get(indices.range()).and_then(|list| list.last());
                    let free = last.map_or(0, |&i| self.free.index(i));
                    along_terms += usize::from(free & term != 0);
                    along_points += usize::from(free & point != 0);
                }
                Value::Unary(_, a) | Value::Cast(a) => open.push(a),
                Value::Binary(_, a, b) | Value::Compare(_, a, b) => open.extend([a, b]),
                Value::Fma(a, b, c) | Value::Select(a, b, c) => open.extend([a, b, c]),
                _ => {}
            }
        }
        along_terms > along_points
    }

    /// Whether fold variables in scope differ from point to point.
    fn varies(&self, scope: &Scope<'_>) -> bool {
        scope.variables.iter().flatten().any(|v| v.len() > 1)
    }
}

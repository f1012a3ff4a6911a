//! Terms whose places memory gives: the elements that a scatter leaves.
//!
//! An element with terms is the reduction of what it was and of these, in any order: of floats, that of an `unordered`
//! sum with one term more ([`super::sum`]). Its zeros are different: a sum that begins as −0 stays −0 until it meets
//! another number. Where one term was promised, it takes the place of what was there, and a second one is an error that
//! names both iterations.

use tilewright_kernel::algorithm::{AxisId, Equation, Order, Reduction, Run, Value, ValueId};

use super::column::Column;
use super::eval::{Eval, Evaluator};
use super::interval::Interval;
use super::reduce::{Accumulator, Along, Terms};
use super::scope::Scope;
use super::tensor::Values;

/// What the terms of an equation are taken into.
pub(super) struct Scattered {
    /// None: one term at most.
    op: Option<Reduction>,
    indices: Run,
    term: ValueId,
    parameter: u16,
}

impl Evaluator<'_> {
    /// The scatter that an equation is; none if it is none.
    pub(super) fn scatter_of(&self, equation: &Equation) -> Option<Scattered> {
        let [component] = self.algorithm.components.get(equation.components.range())? else { return None };
        match *self.algorithm.values.get(component.value as usize)? {
            Value::Scatter { op, indices, term } => {
                Some(Scattered { op, indices, term, parameter: component.parameter? })
            }
            _ => None,
        }
    }

    /// The terms at some points, and where each of them belongs: an offset in the tensor, or −1.
    pub(super) fn placed(&self, of: &Scattered, scope: &Scope<'_>, points: usize) -> Eval<[Column; 2]> {
        let before = self.before(of)?;
        let list = self.algorithm.index_lists.get(of.indices.range()).ok_or("a malformed scatter")?;
        let places = list.iter().map(|&i| self.index(i, scope, None)).collect::<Eval<Vec<_>>>()?;
        if places.len() != before.shape.len() {
            return Err(format!("{} indices of a tensor of rank {}", places.len(), before.shape.len()));
        }
        let offset = |point: usize| before.offset(places.iter().map(|p| p.at(point))).map_or(-1, |at| at as i128);
        let term = (*self.one(of.term, scope, None)?).clone();
        Ok([term, Column::Int((0..points).map(offset).collect())])
    }

    /// The tensor once all terms were taken in, of iterations of these axes from `lower` on, so many of each.
    pub(super) fn taken_in(
        &self,
        of: &Scattered,
        [terms, offsets]: [&Column; 2],
        iterations: (&[AxisId], &[i64], &[i64]),
    ) -> Eval<Values> {
        let before = self.before(of)?;
        let element = self.element(of.term);
        // By element, in the order of the axes.
        let mut placed: Vec<(i128, usize)> = (0..offsets.len()).map(|at| (offsets.range(at).lo, at)).collect();
        placed.retain(|(offset, _)| *offset >= 0);
        placed.sort_unstable();
        if of.op.is_none()
            && let Some([(offset, first), (_, second)]) = placed.windows(2).find(|pair| pair[0].0 == pair[1].0)
        {
            let element = self.element_at(of, before, *offset);
            let [first, second] = [*first, *second].map(|at| self.iteration(at, iterations));
            let why = format!("{element} has two terms, those of {first} and of {second}: `only` promises one");
            return Err(self.broken.get_or_init(|| why).clone());
        }
        let mut after = Column::empty(element);
        let mut next = 0;
        for at in 0..before.data.len() {
            let mine = placed[next..].iter().take_while(|(offset, _)| *offset == at as i128).count();
            let own = &placed[next..next + mine];
            next += mine;
            let mut all = before.data.only(at);
            if mine > 0 {
                all = match of.op {
                    Some(op) => {
                        own.iter().for_each(|(_, term)| all.append(&terms.only(*term), 1));
                        combined(op, element, &all)?
                    }
                    None => terms.only(own[0].1),
                };
            }
            after.append(&all, 1);
        }
        Ok(Values { data: after, ..before.clone() })
    }

    /// An iteration, by its number among all: `t = 3, d = 5`.
    fn iteration(&self, number: usize, (axes, lower, shape): (&[AxisId], &[i64], &[i64])) -> String {
        let mut rest = number as i64;
        let mut all: Vec<String> = Vec::with_capacity(axes.len());
        for ((axis, lower), extent) in axes.iter().zip(lower).zip(shape).rev() {
            all.push(format!("{} = {}", self.algorithm.axes[*axis as usize].name, lower + rest % extent));
            rest /= extent;
        }
        all.reverse();
        all.join(", ")
    }

    /// An element of the tensor, by its offset: `y[7, 5]`.
    fn element_at(&self, of: &Scattered, tensor: &Values, offset: i128) -> String {
        let mut rest = offset as i64;
        let mut index: Vec<i64> = Vec::with_capacity(tensor.shape.len());
        for extent in tensor.shape.iter().rev() {
            index.push(rest % extent);
            rest /= extent;
        }
        index.reverse();
        let name = self.kernel.parameters.get(usize::from(of.parameter)).map_or("?", |parameter| &*parameter.name);
        format!("{name}{index:?}")
    }

    fn before(&self, of: &Scattered) -> Eval<&Values> {
        let tensor = self.parameters.get(usize::from(of.parameter)).and_then(Option::as_ref);
        tensor.ok_or_else(|| "terms are taken into a tensor that begins as nothing".to_owned())
    }
}

/// All of these numbers as one.
fn combined(op: Reduction, element: tilewright_kernel::ElementType, all: &Column) -> Eval<Column> {
    let order = (op, Order::Unordered);
    let mut accumulator = Accumulator::new(order.0, order.1, (None, None), element, 1)
        .ok_or_else(|| format!("the host cannot evaluate: {op:?} of {element}"))?;
    accumulator.take(Terms { column: all, sizes: None, weights: None, spread: None }, Along::Terms, all.len(), 0, None);
    let result = accumulator.finish()?;
    let is_minus_zero = |x: f64| x == 0.0 && x.is_sign_negative();
    let stays = |at: usize| all.interval(at).single().is_some_and(is_minus_zero);
    let is_zero = element.is_float() && result.interval(0).single() == Some(0.0);
    Ok(if is_zero && (0..all.len()).all(stays) { Column::from_intervals(vec![Interval::exact(-0.0)]) } else { result })
}

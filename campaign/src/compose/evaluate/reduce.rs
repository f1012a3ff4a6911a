//! Reductions, by their definitions.

use super::{Evaluation, Fault, arithmetic};
use crate::compose::ast::{End, Expr, Number, Reduce, Reduction, States, Type};

impl<'a> Evaluation<'a> {
    /// The points of a reduction in ascending order; a range may follow from axes around, and from those in front.
    fn run(&mut self, r: &'a Reduce) -> Result<Vec<Vec<i64>>, Fault> {
        let mut points = vec![Vec::new()];
        for (n, (_, extent)) in r.axes.iter().enumerate() {
            let mut longer = Vec::new();
            for point in points {
                // What memory says may be of the axes in front, too.
                let depth = self.axes.len();
                self.axes.extend(r.axes[..n].iter().map(|a| a.0.as_str()).zip(point.iter().copied()));
                let end = |end: &'a End| -> Result<(i64, Option<i64>), Fault> {
                    let memory = end.memory.as_ref().map(|index| self.index(index)).transpose()?;
                    let Some((axis, times)) = &end.axis else { return Ok((end.plus.at(self.dims), memory)) };
                    Ok((times * self.axis(axis)? + end.plus.at(self.dims), memory))
                };
                let (from, to) = match r.ranges.get(n) {
                    Some(Some((from, to))) => {
                        let ((from, start), (to, stop)) = (end(from)?, end(to)?);
                        (start.map_or(from, |start| start.max(from)), stop.map_or(to, |stop| stop.min(to)))
                    }
                    _ => (0, extent.at(self.dims)),
                };
                self.axes.truncate(depth);
                longer.extend((from..to).map(|at| point.iter().copied().chain([at]).collect()));
            }
            points = longer;
        }
        Ok(points)
    }

    /// An expression at each point.
    fn terms(&mut self, r: &'a Reduce, term: &'a Expr, ty: Type) -> Result<Vec<Number>, Fault> {
        let depth = self.axes.len();
        let mut terms = Vec::new();
        for point in self.run(r)? {
            self.axes.extend(r.axes.iter().map(|a| a.0.as_str()).zip(point));
            let value = match (r.by, term) {
                // Operands of a product are of the narrow type, the product is of the wide one.
                (Reduction::Dot, Expr::Binary(_, a, b)) => {
                    let (a, b) = (self.value(a, r.of)?, self.value(b, r.of)?);
                    arithmetic::binary("*", arithmetic::cast(a, ty)?, arithmetic::cast(b, ty)?, ty)?
                }
                _ => self.value(term, r.of)?,
            };
            terms.push(value);
            self.axes.truncate(depth);
        }
        Ok(terms)
    }

    /// A reduction with one result.
    pub(super) fn reduce(&mut self, r: &'a Reduce, ty: Type) -> Result<Number, Fault> {
        let terms = self.terms(r, &r.term, ty)?;
        let zero = ty.number(0);
        let above = |t: &Number| t.compare(">", r.of.number(0));
        let one_if = |is: bool| ty.number(i64::from(is));
        let points = matches!(r.by, Reduction::Argmax | Reduction::Argmin).then(|| self.run(r)).transpose()?;
        // The index of the first one that no other is better than; the first NaN wins.
        let best = |op: &str| {
            let is_nan = |t: &Number| t.float().is_nan();
            let mut best = 0;
            for at in 1..terms.len() {
                if !is_nan(&terms[best]) && (is_nan(&terms[at]) || terms[at].compare(op, terms[best])) {
                    best = at;
                }
            }
            let first = points.as_ref().and_then(|points| Some(*points.get(best)?.first()?)).unwrap_or(0);
            arithmetic::cast(Number::Int(first.into()), ty)
        };
        match r.by {
            Reduction::Sum
            | Reduction::UnorderedSum
            | Reduction::OnlineSum
            | Reduction::OrderedSum
            | Reduction::Fold
            | Reduction::Dot => sum(&terms, ty),
            Reduction::Prod => {
                let mut product = ty.number(1);
                // What overflows on the way meets a zero in some orders only. With an infinite term each order has the
                // same.
                let finite = terms.iter().all(|t| t.float().is_finite());
                let size: f64 = terms.iter().map(|t| t.float().abs().max(1.0)).product();
                let size = if finite { size.min(f64::MAX) } else { size };
                for t in &terms {
                    product = match (product, *t) {
                        (Number::Int(a), Number::Int(b)) => Number::Int(ty.wrapped(a.wrapping_mul(b))),
                        (a, b) => Number::Float(a.float() * b.float()),
                    };
                }
                arithmetic::held(product, size, ty)
            }
            Reduction::Max => {
                let least = ty.ends().map_or(Number::Float(f64::NEG_INFINITY), |e| Number::Int(e.0));
                Ok(terms.iter().copied().fold(least, arithmetic::max))
            }
            Reduction::Min => {
                let greatest = ty.ends().map_or(Number::Float(f64::INFINITY), |e| Number::Int(e.1));
                Ok(terms.iter().copied().fold(greatest, arithmetic::min))
            }
            Reduction::Argmax => best(">"),
            Reduction::Argmin => best("<"),
            Reduction::Any => Ok(one_if(terms.iter().any(above))),
            Reduction::All => Ok(one_if(terms.iter().all(above))),
            Reduction::Last => Ok(terms.iter().rev().copied().find(above).unwrap_or(zero)),
            Reduction::States(_) => Err(Fault::Outside),
        }
    }

    /// A fold with several states: all of them.
    pub(super) fn states(&mut self, r: &'a Reduce) -> Result<Vec<Number>, Fault> {
        let Reduction::States(states) = r.by else { return Err(Fault::Outside) };
        let terms = self.terms(r, &r.term, r.of)?;
        let second = match &r.second {
            Some(second) => self.terms(r, second, r.of)?,
            None => Vec::new(),
        };
        // With NaN these are no laws.
        if terms.iter().chain(&second).any(|t| t.float().is_nan()) {
            return Err(Fault::Inexact);
        }
        let (zero, start) = (r.of.number(0), r.of.number(states.start(r.of)));
        let above = terms.iter().filter(|t| t.compare(">", zero)).count() as i64;
        let greatest = |from: Number| terms.iter().copied().fold(from, arithmetic::max);
        let least = |from: Number| terms.iter().copied().fold(from, arithmetic::min);
        Ok(match states {
            States::SumMax => vec![sum(&terms, r.of)?, greatest(start)],
            States::MinMax => vec![least(start), greatest(zero)],
            States::CountSum => vec![Type::I32.number(above), sum(&terms, r.of)?],
            States::Best => {
                let best = greatest(start);
                // What the state begins with takes part.
                let first = start.compare("==", best).then_some(zero);
                let beside = terms.iter().zip(&second).filter(|(t, _)| t.compare("==", best)).map(|(_, p)| *p);
                vec![best, first.into_iter().chain(beside).reduce(arithmetic::min).unwrap_or(zero)]
            }
            States::Three => vec![least(start), sum(&second, r.of)?, Type::U32.number(terms.len() as i64)],
            States::Rises => {
                let before = std::iter::once(&zero).chain(&terms);
                let rises = terms.iter().zip(before).filter(|(now, before)| now.compare(">", **before)).count();
                vec![terms.last().copied().unwrap_or(zero), Type::I32.number(rises as i64)]
            }
            States::Alternate => {
                // The newest term is in the second state, the one before it in the first one.
                let every_second =
                    |from: usize| -> Vec<Number> { terms.iter().rev().skip(from).step_by(2).copied().collect() };
                vec![sum(&every_second(1), r.of)?, sum(&every_second(0), r.of)?]
            }
        })
    }
}

/// A sum that is the same in any order.
fn sum(terms: &[Number], ty: Type) -> Result<Number, Fault> {
    let size: f64 = terms.iter().map(|t| t.float().abs()).sum();
    let add = |a: Number, b: &Number| match (a, *b) {
        (Number::Int(a), Number::Int(b)) => Number::Int(ty.wrapped(a.wrapping_add(b))),
        (a, b) => Number::Float(a.float() + b.float()),
    };
    arithmetic::held(terms.iter().fold(ty.number(0), add), size, ty)
}

//! Requests that ask for the same elements: they differ in the names of their loops, or in the order of what is said.
//!
//! A tensor that several equations of one nest read is asked for by each of them with loops of its own. If the loops of
//! one request stand for those of another one, with as many iterations each, and the same holds of both, then the same
//! is asked for; and it is worked out once.

use super::Request;
use super::known::Known;
use crate::extent::{Atom, Expr, Var};

/// Which loop inside of one request stands for which of another one, one to one.
struct Names<'k, 'a> {
    known: &'k Known<'a>,
    pairs: Vec<(Var, Var)>,
}

/// Whether two requests ask for the same elements, as far as that shows: a no says nothing.
pub(super) fn is_same(a: &Request, b: &Request, known: &Known<'_>) -> bool {
    if a == b {
        return true;
    }
    let mut names = Names { known, pairs: Vec::new() };
    let indices =
        a.indices.len() == b.indices.len() && a.indices.iter().zip(&b.indices).all(|(a, b)| names.agree(a, b));
    let zero = Expr::constant(0);
    let conditions = |request: &Request| request.conditions.iter().map(|e| (e.clone(), zero.clone())).collect();
    indices && names.agree_all(conditions(a), conditions(b)) && names.agree_all(said(a, known), said(b, known))
}

/// The ends of axes that say something: not those of numbers, nor those of loops outside that are axes.
fn said(request: &Request, known: &Known<'_>) -> Vec<(Expr, Expr)> {
    let says = |(value, extent): &&(Expr, Expr)| match (value.as_constant(), extent.as_constant()) {
        (Some(value), Some(extent)) => !(0..extent).contains(&value),
        _ => value.as_var().is_none_or(|v| !known.is_loop_of(v, extent)),
    };
    request.axes.iter().filter(says).cloned().collect()
}

impl Names<'_, '_> {
    /// Whether each of one list is one of the other, whatever their order.
    fn agree_all(&mut self, a: Vec<(Expr, Expr)>, mut b: Vec<(Expr, Expr)>) -> bool {
        if a.len() != b.len() {
            return false;
        }
        let is_one_of_b = |(value, extent): &(Expr, Expr)| {
            let found = (0..b.len()).find(|at| {
                // What is no pair names nothing.
                let before = self.pairs.len();
                let agrees = self.agree(value, &b[*at].0) && self.agree(extent, &b[*at].1);
                if !agrees {
                    self.pairs.truncate(before);
                }
                agrees
            });
            found.map(|at| b.swap_remove(at)).is_some()
        };
        a.iter().all(is_one_of_b)
    }

    /// Whether one expression is the other one under other names. What is not known is nothing else.
    fn agree(&mut self, a: &Expr, b: &Expr) -> bool {
        let known = !a.is_unknown() && !b.is_unknown() && a.terms().len() == b.terms().len();
        known
            && a.terms().iter().zip(b.terms()).all(|(a, b)| {
                a.coefficient == b.coefficient
                    && a.atoms.len() == b.atoms.len()
                    && a.atoms.iter().zip(&b.atoms[..]).all(|(a, b)| self.agree_on(a, b))
            })
    }

    fn agree_on(&mut self, a: &Atom, b: &Atom) -> bool {
        match (a, b) {
            (Atom::Var(a), Atom::Var(b)) => self.name(*a, *b),
            (Atom::Quotient { of, by }, Atom::Quotient { of: other, by: divisor }) => {
                self.agree(of, other) && self.agree(by, divisor)
            }
            (Atom::Positive { of }, Atom::Positive { of: other }) => self.agree(of, other),
            _ => false,
        }
    }

    /// Whether one variable may stand for another one.
    fn name(&mut self, a: Var, b: Var) -> bool {
        let [own, other] = [a, b].map(|v| self.known.inside(v));
        match (own, other) {
            (None, None) => a == b,
            (Some(own), Some(other)) => match self.pairs.iter().find(|pair| pair.0 == a || pair.1 == b) {
                Some(pair) => *pair == (a, b),
                None => {
                    let agree = own == other;
                    self.pairs.push((a, b));
                    agree
                }
            },
            _ => false,
        }
    }
}

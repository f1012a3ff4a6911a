//! What one read demands: indices in normal form, their extreme values over the ranges of their axes, and the
//! conditions around a read that narrow those ranges.

use tilewright_kernel::Size;
use tilewright_kernel::algorithm::{AxisId, Binary, Compare, Index, IndexId, Unary, Value, ValueId};

use super::super::equations::ReadSite;
use super::{Infer, Range, State};
use crate::extent::{Atom, Expr, Term, Var};
use crate::program::expressions::of_sides;
use crate::source::Span;

/// Why a demand has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It depends on a range that is not known yet.
    NotYet,
    /// It has no simple form.
    Never,
    /// It depends on a range that is wrong.
    Poison,
}

/// A bound of an axis.
enum Bound {
    /// Its least value.
    Lower(Expr),
    /// One past its greatest value.
    Upper(Expr),
}

/// Most choices among the bounds of conditions around one read.
const CHOICES: usize = 16;

impl Infer<'_> {
    /// Whether a ≥ b; `None` if it is not known.
    pub(super) fn at_least(&self, a: &Expr, b: &Expr) -> Option<bool> {
        self.sign(&a.sub(b)).ok()
    }

    pub(super) fn same(&self, a: &Range, b: &Range) -> bool {
        let equal = |a: &Expr, b: &Expr| self.facts.normal(&a.sub(b)).as_constant() == Some(0);
        equal(&a.lower, &b.lower) && equal(&a.upper, &b.upper)
    }

    /// The variable that stands for an axis.
    fn var(&self, axis: AxisId) -> Var {
        Var::try_from(self.signature.dims.len()).unwrap_or(Var::MAX).saturating_add(axis)
    }

    pub(super) fn size(&self, size: &Size) -> Expr {
        self.of_any_size.normal(&Expr::from_size(size))
    }

    /// The normal form of an index; unknown if it is read from memory.
    pub(super) fn expr(&self, id: IndexId) -> Expr {
        self.of_any_size.normal(
            &self.raw_expr(id, &mut |node, _, a, b| Ok(of_sides(node, a, b))).unwrap_or_else(|_| Expr::unknown()),
        )
    }

    /// The normal form of an end of a range; where memory decides it, of one that holds it.
    pub(super) fn far_end(&self, id: IndexId, is_upper: bool) -> Expr {
        match self.nodes.gathers[id as usize] {
            true => self.of_any_size.normal(&self.nodes.farthest(id, is_upper, &|axis| Expr::var(self.var(axis)))),
            false => self.expr(id),
        }
    }

    /// The normal form of an index, with `bend(node, whether axes are in it, a, b)` for what is not linear.
    fn raw_expr(&self, id: IndexId, bend: &mut Bend<'_>) -> Result<Expr, Stop> {
        Ok(match self.nodes.indices[id as usize] {
            Index::Literal(c) => Expr::constant(i128::from(c)),
            Index::Dim(d) => Expr::var(Var::from(d)),
            Index::Axis(a) => Expr::var(self.var(a)),
            node => {
                let Some([a, b]) = node.sides() else { return Ok(Expr::unknown()) };
                let (a, b) = (self.raw_expr(a, bend)?, self.raw_expr(b, bend)?);
                match node {
                    Index::Add(..) | Index::Sub(..) | Index::Mul(..) => of_sides(node, &a, &b),
                    _ => bend(node, self.nodes.varies[id as usize], &a, &b)?,
                }
            }
        })
    }

    /// The values that an index takes at a read where its axes have their own ranges, or those in `narrowed`. Exact for
    /// axes that occur linearly; a quotient, remainder, minimum or maximum of axes is bounded apart from other
    /// occurrences of the same axes.
    pub(super) fn demand(&self, index: IndexId, narrowed: &[(AxisId, Range)]) -> Result<Range, Stop> {
        let first_fresh = self.var(AxisId::try_from(self.states.len()).unwrap_or(AxisId::MAX));
        // What is not linear becomes a variable of its own, with a range.
        let mut fresh: Vec<Range> = Vec::new();
        let form = self.raw_expr(index, &mut |node, varies, a, b| {
            if !varies {
                return Ok(of_sides(node, a, b));
            }
            let range = match node {
                Index::Mod(..) => Range { lower: Expr::constant(0), upper: b.clone() },
                _ => {
                    // It grows with both sides; divisors have no axes.
                    let at = |greatest| {
                        let a = self.extreme(a, greatest, narrowed, &fresh)?;
                        Ok(of_sides(node, &a, &self.extreme(b, greatest, narrowed, &fresh)?))
                    };
                    Range { lower: at(false)?, upper: at(true)?.add(&Expr::constant(1)) }
                }
            };
            fresh.push(range);
            Ok(Expr::var(first_fresh + Var::try_from(fresh.len() - 1).map_err(|_| Stop::Never)?))
        })?;
        let lower = self.extreme(&form, false, narrowed, &fresh)?;
        let upper = self.extreme(&form, true, narrowed, &fresh)?.add(&Expr::constant(1));
        Ok(Range { lower, upper })
    }

    /// The greatest value of `form` over the ranges of its variables, or the least.
    fn extreme(
        &self,
        form: &Expr,
        greatest: bool,
        narrowed: &[(AxisId, Range)],
        fresh: &[Range],
    ) -> Result<Expr, Stop> {
        let dims = self.var(0);
        let first_fresh = self.states.len();
        let mut form = self.facts.normal(form);
        // Each step removes the innermost axis: the bounds of an axis mention outer axes only.
        while let Some(var) = form.vars().into_iter().filter(|&v| v >= dims).max() {
            if let Some((is_smaller, [a, b])) = form.sides(|_, of| of.vars().iter().any(|v| *v >= dims)) {
                let of = |side| self.extreme(side, greatest, narrowed, fresh);
                let (a, b) = (of(&a)?, of(&b)?);
                return Ok(match (self.at_least(&a, &b), is_smaller) {
                    (Some(true), true) | (Some(false), false) => b,
                    (Some(_), _) => a,
                    (None, true) => a.minimum(&b),
                    (None, false) => a.maximum(&b),
                });
            }
            let atom = Atom::Var(var);
            let (with, without): (Vec<&Term>, Vec<&Term>) = form.terms().iter().partition(|t| t.atoms.contains(&atom));
            let mut coefficient = Expr::constant(0);
            for term in with {
                let mut rest = Expr::constant(term.coefficient);
                let mut seen = false;
                for factor in &term.atoms {
                    if *factor == atom && !seen {
                        seen = true;
                    } else {
                        rest = rest.mul(&Expr::from_atoms(std::slice::from_ref(factor)));
                    }
                }
                coefficient = coefficient.add(&rest);
            }
            // Inside a quotient, or multiplied by another axis.
            if coefficient.vars().iter().any(|&v| v >= dims)
                || without.iter().any(|t| term_expr(t).vars().contains(&var))
            {
                return Err(Stop::Never);
            }
            let axis = var - dims;
            let range = match narrowed.iter().find(|(a, _)| *a == axis) {
                Some((_, range)) => range.clone(),
                None => match (axis as usize).checked_sub(first_fresh) {
                    Some(position) => fresh.get(position).cloned().ok_or(Stop::Never)?,
                    None => self.known(axis)?,
                },
            };
            let up = self.sign(&coefficient)? == greatest;
            let bound = if up { range.upper.sub(&Expr::constant(1)) } else { range.lower };
            let rest = without.iter().fold(Expr::constant(0), |sum, t| sum.add(&term_expr(t)));
            form = self.facts.normal(&rest.add(&coefficient.mul(&bound)));
        }
        if form.is_unknown() { Err(Stop::Never) } else { Ok(form) }
    }

    /// Whether an expression of sizes is at least 0, or at most 0.
    fn sign(&self, form: &Expr) -> Result<bool, Stop> {
        let form = self.facts.normal(form);
        match form.as_constant() {
            Some(value) => Ok(value >= 0),
            None if form.is_unknown() => Err(Stop::Never),
            None if self.facts.proves_nonnegative(&form) => Ok(true),
            None if self.facts.proves_nonnegative(&form.scale(-1)) => Ok(false),
            None => Err(Stop::Never),
        }
    }

    fn known(&self, axis: AxisId) -> Result<Range, Stop> {
        match &self.states[axis as usize] {
            State::Known(range) => Ok(range.clone()),
            State::Unknown => Err(Stop::NotYet),
            State::Poison => Err(Stop::Poison),
        }
    }

    /// Ranges of axes as the conditions around a read narrow them. A bound that is not known to be the tighter one is
    /// left out: the declared range always holds what is read, in the sizes of tensors.
    pub(super) fn narrowed(&self, site: &ReadSite) -> Vec<(AxisId, Range)> {
        let mut ranges: Vec<(AxisId, Range)> = Vec::new();
        for (axis, bound) in self.conditions(site) {
            let known = ranges.iter().position(|(a, _)| *a == axis);
            let Some(mut range) = known.map_or_else(|| self.known(axis).ok(), |at| Some(ranges[at].1.clone())) else {
                continue;
            };
            match bound {
                Bound::Lower(lower) if self.at_least(&lower, &range.lower) == Some(true) => range.lower = lower,
                Bound::Upper(upper) if self.at_least(&range.upper, &upper) == Some(true) => range.upper = upper,
                _ => {}
            }
            match known {
                Some(at) => ranges[at].1 = range,
                None => ranges.push((axis, range)),
            }
        }
        ranges
    }

    /// Everything that the values of an index at a read are known to lie between: with the axes' own ranges first, then
    /// with each choice among the bounds that the conditions give, whether or not they are tighter. Which bounds are on
    /// offer does not depend on facts.
    pub(super) fn demands(&self, index: IndexId, site: &ReadSite) -> Result<Vec<Range>, Stop> {
        let mut choices: Vec<Vec<(AxisId, Range)>> = vec![Vec::new()];
        for (axis, bound) in self.conditions(site) {
            let Ok(own) = self.known(axis) else { continue };
            if 2 * choices.len() > CHOICES {
                break;
            }
            for mut choice in choices.clone() {
                let at = choice.iter().position(|(a, _)| *a == axis).unwrap_or(choice.len());
                if at == choice.len() {
                    choice.push((axis, own.clone()));
                }
                match &bound {
                    Bound::Lower(lower) => choice[at].1.lower = lower.clone(),
                    Bound::Upper(upper) => choice[at].1.upper = upper.clone(),
                }
                choices.push(choice);
            }
        }
        let mut list = Vec::new();
        for choice in choices {
            match self.demand(index, &choice) {
                Ok(range) if !list.contains(&range) => list.push(range),
                Ok(_) | Err(Stop::Never) => {}
                Err(stop) => return Err(stop),
            }
        }
        Ok(list)
    }

    /// The bounds that the conditions around a read give, each of the innermost axis that the condition mentions.
    fn conditions(&self, site: &ReadSite) -> Vec<(AxisId, Bound)> {
        let mut at_least_zero = Vec::new();
        let mut guard = site.guard;
        while let Some(position) = guard {
            let entry = self.sites.guards[position as usize];
            self.constraints(entry.condition, entry.holds, &mut at_least_zero);
            guard = entry.outer;
        }
        at_least_zero.iter().filter_map(|form| self.bound(form)).collect()
    }

    /// Exprs that are at least 0 where `condition` holds (or fails).
    fn constraints(&self, condition: ValueId, holds: bool, out: &mut Vec<Expr>) {
        match self.nodes.values[condition as usize] {
            Value::Unary(Unary::Not, inner) => self.constraints(inner, !holds, out),
            Value::Binary(Binary::And, a, b) if holds => {
                self.constraints(a, true, out);
                self.constraints(b, true, out);
            }
            Value::Binary(Binary::Or, a, b) if !holds => {
                self.constraints(a, false, out);
                self.constraints(b, false, out);
            }
            Value::CompareIndex(op, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                let op = if holds { op } else { negated(op) };
                let (ge, le) = (a.sub(&b), b.sub(&a));
                let less_one = |form: Expr| form.sub(&Expr::constant(1));
                match op {
                    Compare::Ge => out.push(ge),
                    Compare::Gt => out.push(less_one(ge)),
                    Compare::Le => out.push(le),
                    Compare::Lt => out.push(less_one(le)),
                    Compare::Eq => out.extend([ge, le]),
                    Compare::Ne => {}
                }
            }
            _ => {}
        }
    }

    /// What `form` ≥ 0 says about its innermost axis, if that occurs with coefficient ±1.
    fn bound(&self, form: &Expr) -> Option<(AxisId, Bound)> {
        let dims = self.var(0);
        let var = form.vars().into_iter().max().filter(|&v| v >= dims && !form.is_unknown())?;
        let alone = form.terms().iter().find(|t| t.atoms == [Atom::Var(var)]);
        let coefficient = alone.map(|t| t.coefficient).filter(|c| c.abs() == 1)?;
        let rest = form.sub(&Expr::var(var).scale(coefficient));
        if rest.vars().contains(&var) {
            return None;
        }
        // axis ≥ −rest, or axis ≤ rest
        let bound =
            if coefficient > 0 { Bound::Lower(rest.scale(-1)) } else { Bound::Upper(rest.add(&Expr::constant(1))) };
        Some((var - dims, bound))
    }

    /// An index with the value of `form`; `None` if it has none.
    pub(super) fn index_of(&mut self, form: &Expr, span: Span) -> Option<IndexId> {
        if form.is_unknown() {
            return None;
        }
        if let Some((is_smaller, [a, b])) = form.sides(|_, _| true) {
            let (a, b) = (self.index_of(&a, span)?, self.index_of(&b, span)?);
            return Some(self.nodes.index(if is_smaller { Index::Min(a, b) } else { Index::Max(a, b) }, span));
        }
        // Positive terms first and the constant last, as people write them.
        let mut terms: Vec<&Term> = form.terms().iter().collect();
        terms.sort_by_key(|t| (t.atoms.is_empty(), t.coefficient < 0));
        let mut sum: Option<IndexId> = None;
        for term in terms {
            let magnitude = i64::try_from(term.coefficient.checked_abs()?).ok()?;
            let negative = term.coefficient < 0;
            let mut product: Option<IndexId> = None;
            if magnitude != 1 || term.atoms.is_empty() {
                let value = if negative && sum.is_none() { -magnitude } else { magnitude };
                product = Some(self.nodes.index(Index::Literal(value), span));
            } else if negative && sum.is_none() {
                product = Some(self.nodes.index(Index::Literal(-1), span));
            }
            for atom in &term.atoms {
                let factor = self.index_of_atom(atom, span)?;
                product = Some(match product {
                    Some(product) => self.nodes.index(Index::Mul(product, factor), span),
                    None => factor,
                });
            }
            let product = product?;
            sum = Some(match sum {
                None => product,
                Some(sum) if negative => self.nodes.index(Index::Sub(sum, product), span),
                Some(sum) => self.nodes.index(Index::Add(sum, product), span),
            });
        }
        Some(sum.unwrap_or_else(|| self.nodes.index(Index::Literal(0), span)))
    }

    fn index_of_atom(&mut self, atom: &Atom, span: Span) -> Option<IndexId> {
        let dims = self.var(0);
        match atom {
            Atom::Var(var) if *var < dims => Some(self.nodes.index(Index::Dim(u16::try_from(*var).ok()?), span)),
            Atom::Var(var) => Some(self.nodes.index(Index::Axis(var - dims), span)),
            Atom::Quotient { of, by } => {
                let (of, by) = (self.index_of(of, span)?, self.index_of(by, span)?);
                Some(self.nodes.index(Index::Div(of, by), span))
            }
            // In a product.
            Atom::Positive { of } => {
                let (of, zero) = (self.index_of(of, span)?, self.nodes.index(Index::Literal(0), span));
                Some(self.nodes.index(Index::Max(of, zero), span))
            }
        }
    }

    pub(super) fn show(&self, range: &Range) -> String {
        let dims = self.var(0);
        let names = |var: Var| match var.checked_sub(dims) {
            Some(axis) => self.nodes.axes.get(axis as usize).map_or("?".to_owned(), |a| a.name.to_string()),
            None => self.signature.dims.get(var as usize).map_or("?".to_owned(), |d| d.name.to_string()),
        };
        format!("{}..{}", range.lower.show(&names), range.upper.show(&names))
    }
}

/// What becomes of nodes that are not linear: see [`Infer::raw_expr`].
type Bend<'d> = dyn FnMut(Index, bool, &Expr, &Expr) -> Result<Expr, Stop> + 'd;

fn term_expr(term: &Term) -> Expr {
    Expr::from_atoms(&term.atoms).scale(term.coefficient)
}

fn negated(op: Compare) -> Compare {
    match op {
        Compare::Eq => Compare::Ne,
        Compare::Ne => Compare::Eq,
        Compare::Lt => Compare::Ge,
        Compare::Ge => Compare::Lt,
        Compare::Gt => Compare::Le,
        Compare::Le => Compare::Gt,
    }
}

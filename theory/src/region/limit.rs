//! Linear limits on loops inside: the ends of axes, and what they say of a sum.

use super::known::Known;
use super::run::{Fit, Run, exact_quotient};
use crate::extent::{Atom, Expr, Var};

/// Loops inside with their factors.
pub(super) type Parts = Vec<(Var, Expr)>;

/// `low ≤ Σ factor · loop ≤ high`, over loops inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    pub parts: Parts,
    pub low: Option<Expr>,
    pub high: Option<Expr>,
}

/// A part of a linear sum that is one run.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// The value that `run` has.
    pub parts: Parts,
    /// What the sum has of it.
    pub factor: Expr,
    pub run: Run,
}

/// The factor by which one sum is another.
pub(super) fn ratio(sum: &Parts, of: &Parts) -> Option<Expr> {
    let factor = |(var, part): &(Var, Expr)| exact_quotient(&sum.iter().find(|p| p.0 == *var)?.1, part);
    let first = factor(of.first()?)?;
    of.iter().all(|part| factor(part).as_ref() == Some(&first)).then_some(first)
}

impl Limit {
    /// The least or the greatest value of the sum by the extents of its loops.
    pub fn end(&self, greatest: bool, known: &Known<'_>) -> Option<Expr> {
        end(self.parts.iter(), greatest, known)
    }

    /// Whether it says no more than how many iterations its loops have, in numbers: the least question of
    /// [`Limit::is_idle`], which most limits answer.
    pub fn is_of_its_loops(&self, known: &Known<'_>) -> bool {
        let (mut least, mut greatest) = (0_i128, 0_i128);
        for (var, factor) in &self.parts {
            let iterations = known.inside(*var).and_then(Expr::as_constant).filter(|n| *n > 0);
            let last = match (iterations, factor.as_constant()) {
                (Some(iterations), Some(factor)) => (iterations - 1).checked_mul(factor),
                _ => None,
            };
            let Some(last) = last else { return false };
            let end = if last < 0 { &mut least } else { &mut greatest };
            *end = end.saturating_add(last);
        }
        let is_below = |e: &Expr| e.as_constant().is_some_and(|low| low <= least);
        let is_above = |e: &Expr| e.as_constant().is_some_and(|high| high >= greatest);
        self.low.as_ref().is_none_or(is_below) && self.high.as_ref().is_none_or(is_above)
    }

    /// Whether the extents of the loops say all that it says.
    pub fn is_idle(&self, known: &Known<'_>) -> bool {
        let least = self.end(false, known);
        let greatest = self.end(true, known);
        let above = |(low, least): (&Expr, Expr)| known.proves(&least.sub(low));
        let below = |(high, greatest): (&Expr, Expr)| known.proves(&high.sub(&greatest));
        self.low.as_ref().is_none_or(|low| least.is_some_and(|least| above((low, least))))
            && self.high.as_ref().is_none_or(|high| greatest.is_some_and(|greatest| below((high, greatest))))
    }

    /// Units that make up the sum with one common factor, and the unit that they become.
    pub fn merge(&self, units: &[Unit], known: &Known<'_>) -> Option<(Vec<usize>, Unit)> {
        let mine = |unit: &Unit| unit.parts.iter().any(|p| self.parts.iter().any(|q| q.0 == p.0));
        let members: Vec<usize> = (0..units.len()).filter(|u| mine(&units[*u])).collect();
        let count: usize = members.iter().map(|u| units[*u].parts.len()).sum();
        if count != self.parts.len() || members.is_empty() {
            return None;
        }
        let mut runs: Vec<Run> = Vec::with_capacity(members.len());
        let mut whole: Option<Expr> = None;
        for unit in members.iter().map(|u| &units[*u]) {
            let own = ratio(&self.parts, &unit.parts)?;
            let factor = exact_quotient(&unit.factor, &own)?;
            if whole.as_ref().is_some_and(|whole| *whole != factor) {
                return None;
            }
            whole = Some(factor);
            runs.push(unit.run.clone().scale(&own, known)?);
        }
        runs.sort_by_key(|run| run.step.as_constant().map_or((1, 0), |step| (0, step)));
        let zero = Run::point(Expr::constant(0));
        let run = runs.into_iter().fold(zero, |sum, run| sum.sum(run, known));
        let run = run.clip(self.low.as_ref(), self.high.as_ref(), known);
        Some((members, Unit { parts: self.parts.clone(), factor: whole?, run }))
    }

    /// What the limit says of a unit that is a part of its sum.
    pub fn project(&self, unit: &mut Unit, known: &Known<'_>) {
        let is_mine = |p: &&(Var, Expr)| unit.parts.iter().any(|q| q.0 == p.0);
        let mine: Parts = self.parts.iter().filter(is_mine).cloned().collect();
        let rest: Vec<&(Var, Expr)> = self.parts.iter().filter(|p| !is_mine(p)).collect();
        if mine.is_empty() {
            // Any value occurs with the loops of the limit at 0.
            let zero = |low: &Option<Expr>, sign: i128| low.as_ref().is_none_or(|e| known.proves(&e.scale(sign)));
            if !zero(&self.low, -1) || !zero(&self.high, 1) {
                unit.run.fit = Fit::Sound;
            }
            return;
        }
        let factor = (mine.len() == unit.parts.len()).then(|| ratio(&mine, &unit.parts)).flatten();
        let Some(factor) = factor.and_then(|f| f.as_constant()) else {
            if !self.is_idle(known) {
                unit.run.fit = Fit::Sound;
            }
            return;
        };
        let (least, greatest) = (end(rest.iter().copied(), false, known), end(rest.iter().copied(), true, known));
        let by = Expr::constant(factor.abs());
        // low ≤ factor·unit + rest ≤ high
        let above = self.low.clone().zip(greatest).map(|(low, greatest)| low.sub(&greatest));
        let below = self.high.clone().zip(least.clone()).map(|(high, least)| high.sub(&least));
        let (above, below) =
            if factor > 0 { (above, below) } else { (below.map(|e| e.scale(-1)), above.map(|e| e.scale(-1))) };
        let above = above.map(|e| e.ceil_div(&by));
        let below = below.map(|e| e.floor_div(&by));
        unit.run = unit.run.clone().clip(above.as_ref(), below.as_ref(), known);
        if rest.is_empty() {
            return;
        }
        // With the rest at 0, its smallest value, the lower end must hold by itself.
        let at_zero = least.is_some_and(|l| l == Expr::constant(0));
        let low = if factor > 0 { unit.run.low() } else { unit.run.high(known) }.scale(factor);
        let holds = self.low.as_ref().is_none_or(|bound| known.proves(&low.sub(bound)));
        if !at_zero || !holds {
            unit.run.fit = unit.run.fit.min(if self.is_idle(known) { Fit::Exact } else { Fit::Sound });
        }
    }
}

fn end<'p>(parts: impl Iterator<Item = &'p (Var, Expr)>, greatest: bool, known: &Known<'_>) -> Option<Expr> {
    let mut sum = Expr::constant(0);
    for (var, factor) in parts {
        let rises = known.proves(factor);
        if !rises && !known.proves(&factor.scale(-1)) {
            return None;
        }
        if rises == greatest {
            sum = sum.add(&known.inside(*var)?.sub(&Expr::constant(1)).mul(factor));
        }
    }
    Some(sum)
}

/// A linear expression of loops inside, and what is left; none if it is not one.
pub(super) fn linear(e: &Expr, known: &Known<'_>) -> Option<(Parts, Expr)> {
    let mut parts: Parts = Vec::new();
    let mut rest = Expr::constant(0);
    for term in e.terms() {
        let whole = Expr::from_atoms(&term.atoms).scale(term.coefficient);
        if !known.varies(&whole) {
            rest = rest.add(&whole);
            continue;
        }
        let is_loop = |a: &&Atom| matches!(a, Atom::Var(v) if known.inside(*v).is_some());
        let [Atom::Var(var)] = term.atoms.iter().filter(is_loop).collect::<Vec<_>>()[..] else { return None };
        let others: Vec<Atom> = term.atoms.iter().filter(|a| **a != Atom::Var(*var)).cloned().collect();
        let factor = Expr::from_atoms(&others).scale(term.coefficient);
        if known.varies(&factor) || others.len() + 1 != term.atoms.len() {
            return None;
        }
        match parts.iter_mut().find(|p| p.0 == *var) {
            Some(part) => part.1 = part.1.add(&factor),
            None => parts.push((*var, factor)),
        }
    }
    (!e.is_unknown()).then_some((parts, rest))
}

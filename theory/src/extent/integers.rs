//! Equations and inequalities over integers that have ranges: a sound, incomplete test that they have no solution.
//!
//! **Formula.** In turns, until nothing changes: ranges of variables are narrowed by each inequality and by what ranges
//! say of its other terms; a variable with one value is that value, which makes products linear; an equation whose
//! coefficients have a divisor that its constant does not have has no solution (U. Banerjee, Dependence analysis for
//! supercomputing, 1988: the gcd test); an equation with a coefficient of ±1 is solved for that variable. What depends
//! on no range that has changed since it was looked at is not looked at again. What is left
//! goes to [`System`]; then variables of few values are tried one value after the other. **Approximation.** Products of
//! variables are bounded by ranges alone; what cannot be represented is left out. "No solution" is a proof, anything
//! else says nothing. The work is counted in expressions that are looked at, so that it ends at the same point
//! everywhere.

use super::expr::{Atom, Expr, Var, gcd};
use super::linear::System;
use super::range::{collapsed, term_bound};
use super::search::Budget;

/// Times that every inequality narrows ranges before something else is tried.
const TURNS: usize = 6;
/// Values of a variable that are tried one by one.
const VALUES: i128 = 4;
/// Variables of which that is done at a time.
const SPLITS: u32 = 1;
/// What an elimination costs, in expressions.
const ELIMINATION: u64 = 40;

/// Least and largest value, where there are such.
type Ends = (Option<i128>, Option<i128>);

/// A conjunction over integers. Variables are numbered from 0 without large gaps.
#[derive(Clone, Debug, Default)]
pub struct Integers {
    ranges: Ranges,
    /// What is not negative.
    rows: Vec<Part>,
    /// What is zero.
    equations: Vec<Part>,
}

/// An expression, and when it was last looked at to no avail: while ranges of its variables stay as they were then,
/// there is nothing to be had from it.
#[derive(Clone, Debug)]
struct Part {
    e: Expr,
    simple: Simple,
    /// When its bounds, and those of its opposite, narrowed nothing.
    idle: [Option<u32>; 2],
}

/// What ranges say of an expression.
#[derive(Clone, Copy, Debug)]
enum Simple {
    /// It has not been looked at.
    Open,
    /// It was simplified once, ahead of the first turn.
    Ahead(u32),
    /// Nothing.
    Settled(u32),
}

impl Part {
    const fn new(e: Expr) -> Self {
        Self { e, simple: Simple::Open, idle: [None; 2] }
    }
}

/// What becomes of an expression.
enum Simpler {
    Same,
    Other(Expr),
    /// It says nothing.
    Always,
    /// It has no solution.
    Never,
}

impl Simpler {
    /// Decides what ranges decide of `e ≥ 0` or `e = 0`, and divides by common factors.
    fn of(e: &Expr, is_zero: bool, ranges: &Ranges) -> Self {
        let range = |v: Var| match ranges.of(v) {
            (Some(least), Some(most)) => Some((least, most)),
            _ => None,
        };
        let new = collapsed(e, &range);
        let e = new.as_ref().unwrap_or(e);
        if e.is_unknown() {
            return Self::Always;
        }
        if let Some(value) = e.as_constant() {
            let holds = if is_zero { value == 0 } else { value >= 0 };
            return if holds { Self::Always } else { Self::Never };
        }
        let constant = e.constant_term();
        let varying = e.terms().iter().filter(|t| !t.atoms.is_empty());
        let g = varying.clone().fold(0, |g, t| gcd(g, t.coefficient));
        if g > 1 && is_zero && constant % g != 0 {
            return Self::Never;
        }
        if g > 1 {
            let part = |sum: Expr, t: &super::Term| sum.add(&Expr::from_atoms(&t.atoms).scale(t.coefficient / g));
            return Self::Other(varying.fold(Expr::constant(constant.div_euclid(g)), part));
        }
        new.map_or(Self::Same, Self::Other)
    }
}

/// The range of each variable; none is known of those beyond.
#[derive(Clone, Debug, Default)]
struct Ranges {
    /// With the change that was the last one of it.
    all: Vec<(Ends, u32)>,
    /// How many changes there were.
    changes: u32,
}

impl Ranges {
    fn of(&self, var: Var) -> Ends {
        self.all.get(var as usize).map_or((None, None), |range| range.0)
    }

    fn set(&mut self, var: Var, ends: Ends) {
        let var = var as usize;
        if var >= self.all.len() {
            self.all.resize(var + 1, Default::default());
        }
        self.changes += 1;
        self.all[var] = (ends, self.changes);
    }

    /// Whether a range of its variables has changed after so many changes.
    fn has_changed(&self, e: &Expr, since: u32) -> bool {
        since < self.changes && e.mentions(&|v| self.all.get(v as usize).is_some_and(|range| range.1 > since))
    }

    /// Narrows the ranges of the variables of sign · e, which is not negative; whether one became narrower, none if one
    /// is empty.
    fn narrow(&mut self, e: &Expr, sign: i128, bounds: &mut Bounds) -> Option<bool> {
        let mut changed = false;
        bounds.find(e, sign, self);
        for (at, term) in e.terms().iter().enumerate() {
            let &[Atom::Var(var)] = &term.atoms[..] else { continue };
            let Some(most) = bounds.of_others(at) else { continue };
            // coefficient · var ≥ −most
            let c = term.coefficient * sign;
            let Some(least) = most.checked_neg() else { continue };
            let (low, high) = self.of(var);
            let new = if c > 0 {
                (low.max(Some(least.div_euclid(c) + i128::from(least.rem_euclid(c) != 0))), high)
            } else {
                let most = most.div_euclid(-c);
                (low, Some(high.map_or(most, |high| high.min(most))))
            };
            if let (Some(least), Some(most)) = new
                && least > most
            {
                return None;
            }
            if new != (low, high) {
                changed = true;
                self.set(var, new);
                bounds.find(e, sign, self);
            }
        }
        Some(changed)
    }
}

/// What a turn came to.
enum Turn {
    Never,
    Changed,
    Same,
    Spent,
}

impl Integers {
    /// Everything is a solution.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds that a variable is in a range.
    pub fn within(&mut self, var: Var, (least, most): Ends) {
        let ends = self.ranges.of(var);
        self.ranges.set(var, (ends.0.max(least), [ends.1, most].into_iter().flatten().min()));
    }

    /// Adds `e ≥ 0`.
    pub fn require(&mut self, e: Expr) {
        self.rows.push(Part::new(e));
    }

    /// Adds `e = 0`.
    pub fn require_zero(&mut self, e: Expr) {
        self.equations.push(Part::new(e));
    }

    /// Looks at everything once, so that several questions that add little to it need not.
    pub fn prepare(&mut self) {
        let mut bounds = Bounds::default();
        for (list, is_zero) in [(&mut self.rows, false), (&mut self.equations, true)] {
            for part in list.iter_mut().filter(|part| matches!(part.simple, Simple::Open)) {
                let now = self.ranges.changes;
                match Simpler::of(&part.e, is_zero, &self.ranges) {
                    Simpler::Same => part.simple = Simple::Settled(now),
                    Simpler::Other(e) => *part = Part { simple: Simple::Ahead(now), ..Part::new(e) },
                    // The first turn says so.
                    Simpler::Always | Simpler::Never => continue,
                }
                for (idle, sign) in part.idle.iter_mut().zip([1, -1]).take(1 + usize::from(is_zero)) {
                    let is_idle = self.ranges.clone().narrow(&part.e, sign, &mut bounds) == Some(false);
                    *idle = is_idle.then_some(now);
                }
            }
        }
    }

    /// Whether there is provably no solution.
    pub fn has_no_solution(self, work: &mut Budget) -> bool {
        self.refuted(SPLITS, work)
    }

    fn refuted(mut self, splits: u32, work: &mut Budget) -> bool {
        loop {
            match self.turn(work) {
                Turn::Never => return true,
                Turn::Changed => {}
                Turn::Same => break,
                Turn::Spent => return false,
            }
        }
        if !work.take(ELIMINATION) {
            return false;
        }
        if self.system().is_infeasible() {
            return true;
        }
        let few = |(var, ends): (Var, &Ends)| match *ends {
            (Some(least), Some(most)) => {
                (most - least < VALUES && self.mentions(var)).then_some((most - least, var, least, most))
            }
            _ => None,
        };
        let ranges = (0..).zip(self.ranges.all.iter().map(|range| &range.0));
        let Some((_, var, least, most)) = ranges.filter_map(few).min().filter(|_| splits > 0) else {
            return false;
        };
        (least..=most).all(|value| {
            let mut one = self.clone();
            one.within(var, (Some(value), Some(value)));
            one.refuted(splits - 1, work)
        })
    }

    fn mentions(&self, var: Var) -> bool {
        self.rows.iter().chain(&self.equations).any(|part| part.e.mentions(&|v| v == var))
    }

    /// What the test by elimination gets.
    fn system(&self) -> System {
        let mut system = System::new();
        let mut vars: Vec<Var> = self.rows.iter().chain(&self.equations).flat_map(|part| part.e.vars()).collect();
        vars.sort_unstable();
        vars.dedup();
        for var in vars {
            let (least, most) = self.ranges.of(var);
            if let Some(least) = least {
                system.at_least(var, least);
            }
            if let Some(most) = most {
                system.require(&Expr::constant(most).sub(&Expr::var(var)));
            }
        }
        self.rows.iter().for_each(|row| system.require(&row.e));
        self.equations.iter().for_each(|part| system.require_zero(&part.e));
        system
    }

    /// Simplifies, narrows, and solves one equation.
    fn turn(&mut self, work: &mut Budget) -> Turn {
        for _ in 0..TURNS {
            if !work.take(1 + (self.rows.len() + self.equations.len()) as u64) {
                return Turn::Spent;
            }
            if !self.simplify() {
                return Turn::Never;
            }
            match self.narrow() {
                None => return Turn::Never,
                Some(false) => break,
                Some(true) => {}
            }
        }
        let solved = self.equations.iter().enumerate().find_map(|(at, part)| Some((at, unit(&part.e)?)));
        let Some((at, (var, value))) = solved else { return Turn::Same };
        self.equations.swap_remove(at);
        let (least, most) = self.ranges.of(var);
        self.ranges.set(var, Ends::default());
        self.rows.extend(least.map(|least| Part::new(value.sub(&Expr::constant(least)))));
        self.rows.extend(most.map(|most| Part::new(Expr::constant(most).sub(&value))));
        for part in self.rows.iter_mut().chain(&mut self.equations) {
            if part.e.mentions(&|v| v == var) {
                *part = Part::new(part.e.substitute(&|v| (v == var).then(|| value.clone())));
            }
        }
        Turn::Changed
    }

    /// Decides what ranges decide, and divides by common factors; false if that leaves no solution.
    fn simplify(&mut self) -> bool {
        let ranges = &self.ranges;
        let mut holds = true;
        let mut keep = |part: &mut Part, is_zero: bool| {
            if let Simple::Ahead(since) | Simple::Settled(since) = part.simple
                && !ranges.has_changed(&part.e, since)
            {
                let is_settled = matches!(part.simple, Simple::Settled(_));
                debug_assert!(
                    !cfg!(test) || !is_settled || matches!(Simpler::of(&part.e, is_zero, ranges), Simpler::Same)
                );
                // What was simplified may become simpler once more.
                part.simple = if is_settled { part.simple } else { Simple::Open };
                return true;
            }
            match Simpler::of(&part.e, is_zero, ranges) {
                Simpler::Same => part.simple = Simple::Settled(ranges.changes),
                Simpler::Other(e) => *part = Part::new(e),
                Simpler::Always => return false,
                Simpler::Never => holds = false,
            }
            true
        };
        self.rows.retain_mut(|part| keep(part, false));
        self.equations.retain_mut(|part| keep(part, true));
        for list in [&mut self.rows, &mut self.equations] {
            // After the first time few are out of place.
            if !list.windows(2).all(|pair| pair[0].e < pair[1].e) {
                list.sort_by(|a, b| a.e.cmp(&b.e));
                list.dedup_by(|next, kept| next.e == kept.e);
            }
        }
        holds
    }

    /// Narrows ranges once by every expression; whether one became narrower, none if one is empty.
    fn narrow(&mut self) -> Option<bool> {
        let Self { ranges, rows, equations } = self;
        let mut changed = false;
        let mut bounds = Bounds::default();
        let mut narrow = |part: &mut Part, side: usize| {
            let sign = [1, -1][side];
            if part.idle[side].is_some_and(|since| !ranges.has_changed(&part.e, since)) {
                debug_assert!(!cfg!(test) || ranges.clone().narrow(&part.e, sign, &mut bounds) == Some(false));
                return Some(());
            }
            let now = ranges.changes;
            let is_narrower = ranges.narrow(&part.e, sign, &mut bounds)?;
            part.idle[side] = (!is_narrower).then_some(now);
            changed |= is_narrower;
            Some(())
        };
        rows.iter_mut().try_for_each(|part| narrow(part, 0))?;
        equations.iter_mut().try_for_each(|part| narrow(part, 0))?;
        equations.iter_mut().try_for_each(|part| narrow(part, 1))?;
        Some(changed)
    }
}

/// What each term of a sum can be at most.
#[derive(Default)]
struct Bounds {
    /// None for one that has no bound.
    of_terms: Vec<Option<i128>>,
    /// How many have none, and the sum of the others.
    open: usize,
    sum: i128,
}

impl Bounds {
    /// Of the terms of sign · e, where variables have ranges.
    fn find(&mut self, e: &Expr, sign: i128, ranges: &Ranges) {
        let end = |v: Var, upper: bool| {
            let (least, most) = ranges.of(v);
            if upper { most } else { least }
        };
        self.of_terms.clear();
        (self.open, self.sum) = (0, 0);
        for term in e.terms() {
            let bound = term_bound(term, sign > 0, &end).and_then(|n| n.checked_mul(sign));
            // What is too large is no bound.
            let sum = bound.and_then(|n| self.sum.checked_add(n));
            self.open += usize::from(sum.is_none());
            self.sum = sum.unwrap_or(self.sum);
            self.of_terms.push(bound.filter(|_| sum.is_some()));
        }
    }

    /// What all but one can be together.
    fn of_others(&self, at: usize) -> Option<i128> {
        match self.of_terms[at] {
            Some(own) if self.open == 0 => self.sum.checked_sub(own),
            None if self.open == 1 => Some(self.sum),
            _ => None,
        }
    }
}

/// A variable of an equation that stands there once, with a coefficient of ±1, and what it then is.
fn unit(e: &Expr) -> Option<(Var, Expr)> {
    e.terms().iter().filter(|term| term.coefficient.abs() == 1).find_map(|term| {
        let &[Atom::Var(var)] = &term.atoms[..] else { return None };
        let rest = e.sub(&Expr::var(var).scale(term.coefficient));
        let alone = !rest.is_unknown() && !rest.vars().contains(&var);
        alone.then(|| (var, rest.scale(-term.coefficient)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(i: Var) -> Expr {
        Expr::var(i)
    }

    fn c(n: i128) -> Expr {
        Expr::constant(n)
    }

    fn never(integers: &Integers) -> bool {
        integers.clone().has_no_solution(&mut Budget::new(100_000))
    }

    /// Elements t + 33·k of two threads; rows q of a tile with r < N ≤ 40 columns at a pitch of 40, of which the first
    /// row is meant.
    #[test]
    fn elements_of_threads_are_apart() {
        let mut integers = Integers::new();
        let (t, k, q, r, n) = (v(0), v(1), v(2), v(3), v(4));
        let (other, turn) = (v(5), v(6));
        for thread in [0, 5] {
            integers.within(thread, (Some(0), Some(32)));
        }
        for var in [1, 2, 3, 6] {
            integers.within(var, (Some(0), None));
        }
        integers.within(4, (Some(1), Some(40)));
        // t + 33·k = q·n + r, r < n; r + 40·q = t' + 33·k' < n.
        integers.require_zero(t.add(&k.scale(33)).sub(&q.mul(&n)).sub(&r));
        integers.require(n.sub(&r).sub(&c(1)));
        let read = other.add(&turn.scale(33));
        integers.require_zero(r.add(&q.scale(40)).sub(&read));
        integers.require(n.sub(&read).sub(&c(1)));
        assert!(!never(&integers));
        integers.require(other.sub(&t).sub(&c(1)));
        assert!(never(&integers));
    }

    #[test]
    fn divisors_decide() {
        // 2·x = 4 + 5·u − w with u, w in 0..=1 and u ≠ w.
        let mut integers = Integers::new();
        for var in [1, 2] {
            integers.within(var, (Some(0), Some(1)));
        }
        integers.require_zero(v(0).scale(2).sub(&c(4)).sub(&v(1).scale(5)).add(&v(2)));
        assert!(!never(&integers));
        integers.require(v(2).sub(&v(1)).sub(&c(1)));
        assert!(never(&integers));
    }

    /// What has a solution in a small box is never called infeasible; products, quotients and maxima included.
    #[test]
    fn no_solution_is_never_wrong() {
        let mut state = 11_u64;
        let mut random = move |bound: i128| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i128::from((state >> 33) as u32) % bound
        };
        let mut infeasible = 0;
        for _ in 0..4000 {
            let mut integers = Integers::new();
            let ends: Vec<(i128, i128)> = (0..3).map(|_| (random(4) - 2, random(4) + 1)).collect();
            for (var, (least, most)) in ends.iter().enumerate() {
                integers.within(var as Var, (Some(*least), Some(*most)));
            }
            let made = |random: &mut dyn FnMut(i128) -> i128| {
                let linear = |random: &mut dyn FnMut(i128) -> i128| {
                    (0..3).fold(c(random(9) - 4), |sum, var| sum.add(&v(var).scale(random(9) - 4)))
                };
                let e = linear(random);
                match random(4) {
                    0 => e.add(&v(random(3) as Var).mul(&v(random(3) as Var))),
                    1 => e.add(&linear(random).floor_div(&c(random(4) + 1))),
                    2 => e.sub(&linear(random).positive()),
                    _ => e,
                }
            };
            let (rows, zero): (Vec<Expr>, Expr) = ((0..3).map(|_| made(&mut random)).collect(), made(&mut random));
            rows.iter().for_each(|row| integers.require(row.clone()));
            integers.require_zero(zero.clone());
            // What was prepared gives the same answer for the same work.
            let mut prepared = Integers { rows: integers.rows[..2].to_vec(), ..integers.clone() };
            prepared.prepare();
            prepared.require(rows[2].clone());
            let mut work = [0; 2].map(|_| Budget::new(random(600) as u64 + 20));
            work[1] = work[0].clone();
            let answers = [integers.clone(), prepared].into_iter().zip(&mut work);
            let answers: Vec<(bool, u64)> = answers.map(|(of, work)| (of.has_no_solution(work), work.left())).collect();
            assert_eq!(answers[0], answers[1], "{rows:?} {zero:?}");
            if never(&integers) {
                infeasible += 1;
                for x in ends[0].0..=ends[0].1 {
                    for y in ends[1].0..=ends[1].1 {
                        for z in ends[2].0..=ends[2].1 {
                            let at = |e: &Expr| e.eval(&[x, y, z]).unwrap();
                            let solves = at(&zero) == 0 && rows.iter().all(|row| at(row) >= 0);
                            assert!(!solves, "{rows:?} {zero:?} at {x}, {y}, {z}");
                        }
                    }
                }
            }
        }
        assert!(infeasible > 1000, "{infeasible}");
    }

    /// Work ends where it is told to, and then nothing is known.
    #[test]
    fn work_is_bounded() {
        let mut integers = Integers::new();
        integers.require(v(0).sub(&v(1)).sub(&c(1)));
        integers.require(v(1).sub(&v(0)).sub(&c(1)));
        assert!(never(&integers));
        let mut work = Budget::new(2);
        assert!(!integers.has_no_solution(&mut work) && work.is_exhausted());
    }
}

//! Runs: the sets that an index takes, `low + step·t` for `0 ≤ t < count`, and what arithmetic makes of them.
//!
//! - **Sum** of independent runs with steps s | s′: where s′ ≤ s·count, every multiple of s occurs,
//!   `count + (s′/s)(count′ − 1)` of them; otherwise the sum has gaps, and the run with the greatest common step is its
//!   hull.
//! - **Quotient** ⌊x / d⌋: rounding down keeps order, so ends go to ends. With step ≤ d nothing in between is left out;
//!   with d | step the step is divided.
//! - **Digit** x mod n of a dense run [a, b]: where ⌊a / n⌋ = ⌊b / n⌋ it is [a mod n, b mod n]; otherwise both n − 1
//!   and 0 occur, so the smallest cover is [0, n). For x = ⌊f / S⌋ this is the rule of the first differing digit of
//!   mixed radix: ⌊a / Sn⌋ = ⌊b / Sn⌋ says that all digits before agree. It is stated for each digit by itself, so
//!   digits may be shuffled among dimensions, and some of them missing.
//! - **Bounds.** ⌊b / d⌋ − ⌊a / d⌋ + 1 is at most ⌊(r + width) / d⌋ + 1, r the largest remainder that a can leave,
//!   which is d − g + (c mod g) for a constant part c and the divisor g that d and the coefficients of a share.

use super::known::Known;
use crate::extent::{Atom, Expr, Term, gcd};

/// Most clips of one expression that a bound of it takes apart.
const CLIPS: u32 = 6;
/// Most ends that are kept apart.
const ENDS: usize = 4;

/// What is claimed of a set that covers what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// It holds all that is asked for, and maybe more.
    Sound,
    /// No interval is smaller: both ends of every coordinate are asked for.
    Minimal,
    /// It holds nothing else.
    Exact,
}

/// The set {low + step·t : low + step·t ≤ high}, over dimensions and loops outside.
///
/// Ends are lists: the largest of `lows`, the smallest of `highs`. Sums, quotients and digits go through lists end by
/// end, since all of them keep order, so that what a tail clips stands beside what it would be without, and is taken
/// the minimum of only once.
#[derive(Clone, Debug)]
pub(super) struct Run {
    lows: Vec<Expr>,
    highs: Vec<Expr>,
    /// From one value to the next; positive.
    pub step: Expr,
    /// Over dimensions: there are never more values.
    pub most: Expr,
    /// What is claimed.
    pub fit: Fit,
}

fn one() -> Expr {
    Expr::constant(1)
}

/// a / b if that is an expression.
pub(super) fn exact_quotient(a: &Expr, b: &Expr) -> Option<Expr> {
    if let (Some(a), Some(b)) = (a.as_constant(), b.as_constant()) {
        return (b != 0 && a % b == 0).then(|| Expr::constant(a / b));
    }
    match b.as_constant() {
        Some(-1) => Some(a.scale(-1)),
        Some(b) if b <= 0 => None,
        Some(b) => a.terms().iter().all(|t| t.coefficient % b == 0).then(|| a.floor_div(&Expr::constant(b))),
        None => {
            let quotient = a.floor_div(b);
            (quotient.mul(b) == *a && !a.is_unknown()).then_some(quotient)
        }
    }
}

/// The same list without what another one of it makes needless; `sign` 1 for the smallest, −1 for the largest.
fn pruned(list: Vec<Expr>, sign: i128, known: &Known<'_>) -> Vec<Expr> {
    let mut kept: Vec<Expr> = Vec::with_capacity(list.len());
    for e in list {
        if kept.iter().any(|k| known.proves(&e.sub(k).scale(sign))) {
            continue;
        }
        kept.retain(|k| !known.proves(&k.sub(&e).scale(sign)));
        kept.push(e);
    }
    if kept.len() <= ENDS {
        return kept;
    }
    let join = |a: Expr, b: &Expr| if sign > 0 { a.minimum(b) } else { a.maximum(b) };
    let (first, rest) = kept.split_first().map_or((Expr::unknown(), &[][..]), |(first, rest)| (first.clone(), rest));
    vec![rest.iter().fold(first, join)]
}

fn each(list: &[Expr], f: impl Fn(&Expr) -> Expr) -> Vec<Expr> {
    list.iter().map(f).collect()
}

fn sums(a: &[Expr], b: &[Expr]) -> Vec<Expr> {
    a.iter().flat_map(|a| b.iter().map(move |b| a.add(b))).collect()
}

impl Run {
    /// One value.
    pub fn point(value: Expr) -> Self {
        Self { lows: vec![value.clone()], highs: vec![value], step: one(), most: one(), fit: Fit::Exact }
    }

    /// `low … low + count − 1`, where `most` is a bound of `count`.
    pub fn dense(low: Expr, count: &Expr, most: Expr) -> Self {
        let high = low.add(count).sub(&one());
        Self { lows: vec![low], highs: vec![high], step: one(), most, fit: Fit::Exact }
    }

    /// From `low` to below `end`: nothing is known of what is asked for.
    pub fn whole(low: &Expr, end: &Expr) -> Self {
        let count = end.sub(low);
        Self { fit: Fit::Sound, ..Self::dense(low.clone(), &count, count.clone()) }
    }

    pub fn is_point(&self) -> bool {
        self.lows.len() == 1 && self.lows == self.highs
    }

    pub fn is_unknown(&self) -> bool {
        self.lows.iter().chain(&self.highs).chain([&self.most]).any(Expr::is_unknown)
    }

    /// The smallest value.
    pub fn low(&self) -> Expr {
        let (first, rest) = (self.lows[0].clone(), &self.lows[1..]);
        rest.iter().fold(first, |a, b| a.maximum(b))
    }

    /// Values that none exceeds.
    pub fn highs(&self) -> &[Expr] {
        &self.highs
    }

    /// A value that none exceeds; the largest one if the step is 1.
    fn end(&self) -> Expr {
        let (first, rest) = (self.highs[0].clone(), &self.highs[1..]);
        rest.iter().fold(first, |a, b| a.minimum(b))
    }

    /// How many values; at least 1 where something is asked for.
    pub fn count(&self, known: &Known<'_>) -> Expr {
        known.quotient(&self.end().sub(&self.low()), &self.step).add(&one())
    }

    /// The largest value.
    pub fn high(&self, known: &Known<'_>) -> Expr {
        if self.step == one() { self.end() } else { self.low().add(&self.step.mul(&self.count(known).sub(&one()))) }
    }

    /// The same set, its ends among its values: nothing to do if the step is 1.
    fn aligned(self, known: &Known<'_>) -> Self {
        if self.step == one() || self.is_point() || (self.highs.len() == 1 && self.lows.len() == 1 && self.is_whole()) {
            return self;
        }
        Self { lows: vec![self.low()], highs: vec![self.high(known)], ..self }
    }

    fn is_whole(&self) -> bool {
        exact_quotient(&self.highs[0].sub(&self.lows[0]), &self.step).is_some()
    }

    pub fn shift(mut self, by: &Expr) -> Self {
        self.lows = each(&self.lows, |e| e.add(by));
        self.highs = each(&self.highs, |e| e.add(by));
        self
    }

    /// Every value times a factor that is not 0; none if its sign is not known.
    pub fn scale(self, factor: &Expr, known: &Known<'_>) -> Option<Self> {
        if *factor == one() {
            return Some(self);
        }
        let positive = known.proves(&factor.sub(&one()));
        if !positive && !known.proves(&factor.scale(-1).sub(&one())) {
            return None;
        }
        let mut run = self.aligned(known);
        let (lows, highs) = (each(&run.lows, |e| e.mul(factor)), each(&run.highs, |e| e.mul(factor)));
        (run.lows, run.highs) = if positive { (lows, highs) } else { (highs, lows) };
        if !run.is_point() {
            run.step = run.step.mul(factor).scale(if positive { 1 } else { -1 });
        }
        Some(run)
    }

    /// Sums of a value of each, if neither depends on the other.
    pub fn sum(self, other: Self, known: &Known<'_>) -> Self {
        if other.is_point() {
            return self.shift(&other.lows[0]);
        }
        if self.is_point() {
            return other.shift(&self.lows[0]);
        }
        let (a, b) = (self.aligned(known), other.aligned(known));
        let fit = a.fit.min(b.fit);
        let lows = pruned(sums(&a.lows, &b.lows), -1, known);
        let highs = pruned(sums(&a.highs, &b.highs), 1, known);
        let dense = [(&a, &b), (&b, &a)].into_iter().find(|(fine, coarse)| {
            exact_quotient(&coarse.step, &fine.step).is_some()
                && known.proves(&fine.step.mul(&fine.count(known)).sub(&coarse.step))
        });
        let (step, fit) = match dense {
            Some((fine, _)) => (fine.step.clone(), fit),
            None => (common(&a.step, &b.step), fit.min(Fit::Minimal)),
        };
        let width = |run: &Self| run.step.mul(&run.most.sub(&one()));
        let width = width(&a).add(&width(&b));
        let most = exact_quotient(&width, &step).unwrap_or_else(|| width.floor_div(&step)).add(&one());
        Self { lows, highs, step, most, fit }
    }

    /// Only values from `low` to `high`.
    pub fn clip(mut self, low: Option<&Expr>, high: Option<&Expr>, known: &Known<'_>) -> Self {
        let keep = |fit: Fit| if fit == Fit::Exact { Fit::Exact } else { Fit::Sound };
        if let Some(low) = low
            && !self.lows.iter().any(|e| known.proves(&e.sub(low)))
        {
            if self.step == one() {
                self.lows.push(low.clone());
                self.lows = pruned(self.lows, -1, known);
            } else {
                let own = self.low();
                let ahead = low.sub(&own).add(&self.step).sub(&one());
                let skip = known.maximum(&known.quotient(&ahead, &self.step), &Expr::constant(0));
                self.lows = vec![own.add(&self.step.mul(&skip))];
            }
            self.fit = keep(self.fit);
        }
        if let Some(high) = high
            && !self.highs.iter().any(|e| known.proves(&high.sub(e)))
        {
            self.highs.push(high.clone());
            self.highs = pruned(self.highs, 1, known);
            self.fit = keep(self.fit);
        }
        if let (Some(low), Some(high)) = (low, high) {
            // Both ends fixed: no more values than between them.
            let room = known.facts.normal(&high.sub(low)).floor_div(&self.step).add(&one());
            self.most = known.largest(&room, &self.most);
        }
        self
    }

    /// ⌊value / by⌋ for a positive divisor.
    pub fn divide(self, by: &Expr, known: &Known<'_>) -> Self {
        if *by == one() {
            return self;
        }
        let (aligned, lows) = (exact_quotient(&self.lows[0], by).is_some(), self.lows.clone());
        let run = self.aligned(known);
        let lows_divided = each(&run.lows, |e| known.quotient(e, by));
        let highs = each(&run.highs, |e| known.quotient(e, by));
        if run.is_point() {
            return Self::point(lows_divided[0].clone());
        }
        if let Some(step) = exact_quotient(&run.step, by) {
            return Self { lows: lows_divided, highs, step, ..run };
        }
        let dense = known.proves(&by.sub(&run.step));
        let fit = if dense { run.fit } else { run.fit.min(Fit::Minimal) };
        let width = run.step.mul(&run.most.sub(&one()));
        let most = match (by.as_constant(), width.as_constant()) {
            (Some(d), Some(width)) => {
                let worst = lows.iter().map(|low| known.worst_remainder(low, d)).max().unwrap_or(d - 1);
                Expr::constant(worst.saturating_add(width).div_euclid(d) + 1)
            }
            // An aligned start loses nothing; another one at most one position.
            _ => {
                let loses = !(aligned && lows.len() == 1);
                known.quotient(&width, by).add(&Expr::constant(1 + i128::from(loses)))
            }
        };
        let (lows, highs) = (pruned(lows_divided, -1, known), pruned(highs, 1, known));
        Self { lows, highs, step: one(), most, fit }
    }

    /// value − n·⌊value / n⌋ for a positive n.
    pub fn modulo(self, n: &Expr, known: &Known<'_>) -> Self {
        let run = self.aligned(known);
        let low = run.low();
        let block = known.quotient(&low, n);
        let digit = low.sub(&n.mul(&block));
        if run.is_point() || exact_quotient(&run.step, n).is_some() {
            // All values leave the same remainder.
            return Self::point(digit);
        }
        let last_blocks = each(&run.highs, |high| known.quotient(high, n));
        let highs = each(&run.highs, |high| high.sub(&n.mul(&block)));
        if last_blocks.iter().any(|last| known.proves(&block.sub(last))) {
            return Self { lows: vec![digit], highs, ..run };
        }
        let step = common(&run.step, n);
        let orbit = exact_quotient(n, &step).unwrap_or_else(|| n.clone());
        let is_dense = run.step == one();
        let always = last_blocks.iter().all(|last| known.proves(&last.sub(&block).sub(&one())));
        // As many values as there are remainders in a row.
        let least = orbit.sub(&one()).mul(&run.step);
        let complete = run.highs.iter().all(|high| run.lows.iter().all(|low| known.proves(&high.sub(low).sub(&least))));
        if is_dense && !always && !complete {
            // Some iterations wrap around: there low is below the last block, and high is after the first one.
            let lows = last_blocks.iter().map(|last| low.sub(&n.mul(last))).chain([Expr::constant(0)]).collect();
            let highs = highs.into_iter().chain([n.sub(&one())]).collect();
            let fit = if run.fit == Fit::Exact { Fit::Minimal } else { Fit::Sound };
            let (lows, highs) = (pruned(lows, -1, known), pruned(highs, 1, known));
            let mut digits = Self { lows, highs, step, most: n.clone(), fit };
            digits.most = known.largest(&digits.count(known), n);
            return digits;
        }
        // What a wrap leaves of the start is its remainder modulo the common step.
        let low = low.sub(&step.mul(&known.quotient(&low, &step)));
        let fit = match run.fit {
            Fit::Exact if complete => Fit::Exact,
            Fit::Exact if is_dense => Fit::Minimal,
            _ => Fit::Sound,
        };
        let high = low.add(n).sub(&step);
        Self { lows: vec![low], highs: vec![high], step, most: orbit, fit }
    }

    /// Whether every value lies between two.
    pub fn is_within(&self, low: &Expr, high: &Expr, known: &Known<'_>) -> bool {
        self.lows.iter().any(|e| known.proves(&e.sub(low))) && self.highs.iter().any(|e| known.proves(&high.sub(e)))
    }

    /// What is at least 0 if there is a value at all, and not known to be.
    pub fn rows(&self, known: &Known<'_>) -> Vec<Expr> {
        let pairs = self.highs.iter().flat_map(|high| self.lows.iter().map(move |low| high.sub(low)));
        pairs.filter(|row| !known.proves(row)).collect()
    }

    /// Only where all rows are at least 0: with most·(row + 1) values at most, which is none, or no less than there
    /// are.
    pub fn only_where(mut self, rows: &[Expr]) -> Self {
        let values = |row: &Expr| self.step.mul(&self.most.mul(&row.add(&one())).sub(&one()));
        let ends: Vec<Expr> = rows.iter().map(|row| self.low().add(&values(row))).collect();
        self.highs.extend(ends);
        self
    }

    /// Whether it is dense and consists of whole blocks `n·k … n·k + n − 1`.
    pub fn is_multiple(&self, n: &Expr) -> bool {
        self.step == one()
            && self.lows.iter().all(|e| exact_quotient(e, n).is_some())
            && self.highs.iter().all(|e| exact_quotient(&e.add(&one()), n).is_some())
    }

    /// As a run whose step is a literal.
    pub fn literal_step(self, known: &Known<'_>) -> Self {
        if self.step.as_constant().is_some() || self.is_point() {
            return self;
        }
        let run = self.aligned(known);
        let most = run.step.mul(&run.most.sub(&one())).add(&one());
        Self { most, step: one(), fit: run.fit.min(Fit::Minimal), ..run }
    }

    /// Whether the two say the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.lows == other.lows && self.highs == other.highs && self.step == other.step
    }

    /// The steps of two, as far as they have any.
    fn steps<'r>(&'r self, other: &'r Self) -> Vec<&'r Expr> {
        [self, other].into_iter().filter(|run| !run.is_point()).map(|run| &run.step).collect()
    }

    /// How far the start of another one lies after this one's, if that is a literal.
    pub fn distance(&self, other: &Self, known: &Known<'_>) -> Option<i128> {
        known.facts.normal(&other.low().sub(&self.low())).as_constant()
    }

    /// Whether no value is in both.
    pub fn is_disjoint(&self, other: &Self, known: &Known<'_>) -> bool {
        let before = |a: &Self, b: &Self| {
            a.highs.iter().any(|high| b.lows.iter().any(|low| known.proves(&low.sub(high).sub(&one()))))
        };
        let step = self.steps(other).into_iter().cloned().reduce(|a, b| common(&a, &b)).and_then(|s| s.as_constant());
        before(self, other)
            || before(other, self)
            || step.zip(self.distance(other, known)).is_some_and(|(step, apart)| apart % step != 0)
    }

    /// The smallest run that holds both, where a bound of its length is known.
    pub fn hull(&self, other: &Self, known: &Known<'_>) -> Option<Self> {
        if self.is_same(other) {
            return Some(Self { fit: self.fit.max(other.fit), ..self.clone() });
        }
        let apart = self.distance(other, known);
        let steps = self.steps(other).into_iter().cloned().reduce(|a, b| common(&a, &b));
        let between = known.facts.normal(&other.low().sub(&self.low()));
        let step = match (steps, apart) {
            (Some(step), _) if exact_quotient(&between, &step).is_some() => step,
            (Some(step), Some(apart)) => common(&step, &Expr::constant(apart.abs())),
            (None, Some(apart)) if apart != 0 => Expr::constant(apart.abs()),
            _ => one(),
        };
        // The ends of the one that starts first, and of the one that ends last; else one end each.
        let lows = match (self.starts_first(other, known), other.starts_first(self, known)) {
            (true, _) => self.lows.clone(),
            (_, true) => other.lows.clone(),
            _ => vec![known.minimum(&self.low(), &other.low())],
        };
        let dense = self.step == one() && other.step == one();
        let highs = match (dense && self.ends_last(other, known), dense && other.ends_last(self, known)) {
            (true, _) => self.highs.clone(),
            (_, true) => other.highs.clone(),
            _ => vec![known.maximum(&self.high(known), &other.high(known))],
        };
        let width = |run: &Self| run.step.mul(&run.most.sub(&one()));
        let fit = if self.meets(other, known) { Fit::Exact } else { self.fit.min(other.fit).min(Fit::Minimal) };
        let mut hull = Self { lows, highs, step, most: one(), fit };
        hull.most = match apart {
            Some(apart) => {
                let (first, second) = if apart >= 0 { (self, other) } else { (other, self) };
                let width = known.maximum(&width(first), &width(second).add(&Expr::constant(apart.abs())));
                exact_quotient(&width, &hull.step).unwrap_or_else(|| width.floor_div(&hull.step)).add(&one())
            }
            None => {
                let spread = self.spread(other, known).map(|spread| spread.floor_div(&hull.step).add(&one()));
                known.largest(&hull.count(known), &spread.unwrap_or_else(Expr::unknown))
            }
        };
        (!hull.most.is_unknown()).then_some(hull)
    }

    /// Whether no value of the other one is smaller than its first.
    fn starts_first(&self, other: &Self, known: &Known<'_>) -> bool {
        self.lows.iter().all(|own| other.lows.iter().any(|low| known.proves(&low.sub(own))))
    }

    /// Whether no value of the other one is larger than its end.
    fn ends_last(&self, other: &Self, known: &Known<'_>) -> bool {
        self.highs.iter().all(|own| other.highs.iter().any(|high| known.proves(&own.sub(high))))
    }

    /// A literal that no difference of values of both exceeds, from ends that are a literal apart.
    fn spread(&self, other: &Self, known: &Known<'_>) -> Option<Expr> {
        let width = |highs: &[Expr], lows: &[Expr]| {
            let pairs = highs.iter().flat_map(|high| lows.iter().map(move |low| high.sub(low)));
            pairs.filter_map(|e| at_most(&known.facts.normal(&e), CLIPS)).min()
        };
        let both = [self, other];
        let widths = both.iter().flat_map(|a| both.iter().map(|b| width(&a.highs, &b.lows)));
        widths.collect::<Option<Vec<i128>>>()?.into_iter().max().map(|most| Expr::constant(most.max(0)))
    }

    /// Whether two exact runs together are one.
    pub fn meets(&self, other: &Self, known: &Known<'_>) -> bool {
        if self.fit != Fit::Exact || other.fit != Fit::Exact {
            return false;
        }
        let steps = self.steps(other);
        let Some(step) = steps.first() else { return true };
        steps.windows(2).all(|pair| pair[0] == pair[1])
            && exact_quotient(&known.facts.normal(&other.low().sub(&self.low())), step).is_some()
            && known.proves(&self.high(known).add(step).sub(&other.low()))
            && known.proves(&other.high(known).add(step).sub(&self.low()))
    }
}

/// A literal that an expression never exceeds: each clip that it loses by is at least what it clips, and at least 0.
fn at_most(e: &Expr, clips: u32) -> Option<i128> {
    if let Some(value) = e.as_constant() {
        return Some(value);
    }
    let loses = |t: &&Term| t.coefficient < 0 && matches!(&t.atoms[..], [Atom::Positive { .. }]);
    let term = e.terms().iter().find(loses).filter(|_| clips > 0)?;
    let [Atom::Positive { of }] = &term.atoms[..] else { return None };
    let rest = e.sub(&Expr::from_atoms(&term.atoms).scale(term.coefficient));
    let either = [at_most(&rest, clips - 1), at_most(&rest.add(&of.scale(term.coefficient)), clips - 1)];
    either.into_iter().flatten().min()
}

/// A common divisor of two steps.
pub(super) fn common(a: &Expr, b: &Expr) -> Expr {
    if exact_quotient(a, b).is_some() {
        return b.clone();
    }
    if exact_quotient(b, a).is_some() {
        return a.clone();
    }
    let content = |e: &Expr| e.terms().iter().fold(0, |g, t| gcd(g, t.coefficient));
    Expr::constant(gcd(content(a), content(b)).max(1))
}

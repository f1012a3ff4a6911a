//! From an index to the run of its values.
//!
//! An index is taken apart into what loops outside decide, a linear sum of loops inside, quotients ⌊e / d⌋, and digits
//! k·(⌊e / s⌋ mod n). In the normal form of expressions a digit is two or more terms, k·⌊e / s⌋ − k·n·⌊e / sn⌋, the first of which has merged with
//! others, so for a quotient with coefficient −kn every s with s·n = d is tried, and taken if more terms cancel than go away by themselves.
//!
//! **Splits.** A linear sum is built up from the axes of the schedule, small ones first: an axis whose loops stand in the sum with
//! one common factor is one run, which ends with the axis (`Limit`). A limit on a sum of which only a part occurs bounds that part where the
//! rest is smallest. A split that overruns its axis, at any depth, is exact by this.
//!
//! **Approximation.** Parts that share loops, or are tied by one limit, are summed as if they were independent; then nothing but soundness
//! is claimed.

use super::known::Known;
use super::run::{Fit, Run, exact_quotient};
use super::{Loops, NotATile};
use crate::extent::{Atom, Expr, Term, Var};

/// Most quotients inside each other.
const DEPTH: u32 = 8;
/// Most divisors tried for the digits of one quotient.
const DIVISORS: usize = 64;

/// Loops inside with their factors.
type Parts = Vec<(Var, Expr)>;

/// `low ≤ Σ factor · loop ≤ high`, over loops inside.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    parts: Parts,
    low: Option<Expr>,
    high: Option<Expr>,
}

/// What bounds the loops inside.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    linear: Vec<Limit>,
    /// Ends of values that are no linear sums, and that nothing else implies.
    others: Vec<Other>,
    /// At least 0 where something is asked for, not proved from the loops outside alone.
    pub live: Vec<Expr>,
    /// Whether there are limits that are not here: then nothing but soundness is claimed.
    is_partial: bool,
}

/// `0 ≤ value < extent`, for a value that is no linear sum.
#[derive(Clone, Debug)]
struct Other {
    value: Expr,
    extent: Expr,
    sources: Vec<Source>,
}

/// What an index takes, and what of the loops inside decides it.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub run: Run,
    pub sources: Vec<Source>,
}

/// A loop inside, or a digit of a sum of them.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Loop(Var),
    /// The digit, and the run of what it is a digit of.
    Digit(Box<(Digit, Run)>),
}

impl Source {
    fn mentions(&self, var: Var) -> bool {
        match self {
            Self::Loop(own) => *own == var,
            Self::Digit(digit) => digit.0.of.vars().contains(&var),
        }
    }

    /// Of two digits of one number, each of which takes all its values beside each of the other's: the number.
    fn number_of_both<'s>(&'s self, other: &'s Self) -> Option<&'s Expr> {
        let (Self::Digit(a), Self::Digit(b)) = (self, other) else { return None };
        let (upper, lower) = if exact_quotient(&a.0.by, &b.0.by).is_some() { (a, b) } else { (b, a) };
        let ((upper, run), lower) = (&**upper, &lower.0);
        let block = lower.by.mul(lower.radix.as_ref()?);
        let top = upper.radix.as_ref().map_or_else(|| block.clone(), |radix| upper.by.mul(radix));
        let apart = upper.of.sub(&lower.of);
        let is_digit = exact_quotient(&upper.by, &block).is_some() && exact_quotient(&apart, &block).is_some();
        let is_whole = run.fit == Fit::Exact && run.is_multiple(&block) && run.is_multiple(&top);
        (is_digit && is_whole).then_some(&upper.of)
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Loop(a), Self::Loop(b)) => a == b,
            (Self::Digit(a), Self::Digit(b)) => a.0.of == b.0.of && a.0.by == b.0.by && a.0.radix == b.0.radix,
            _ => false,
        }
    }
}

/// factor · (⌊of / by⌋ mod radix)
#[derive(Clone, Debug)]
pub(super) struct Digit {
    factor: Expr,
    of: Expr,
    by: Expr,
    /// None for a quotient.
    radix: Option<Expr>,
}

/// A linear expression of loops inside, and what is left; none if it is not one.
fn linear(e: &Expr, known: &Known<'_>) -> Option<(Parts, Expr)> {
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

/// A quotient with loops inside: what it is multiplied by, its dividend and its divisor.
fn quotient<'t>(term: &'t Term, known: &Known<'_>) -> Option<(Expr, &'t Expr, &'t Expr)> {
    let varies = |a: &&Atom| known.varies(&Expr::from_atoms(std::slice::from_ref(*a)));
    let [atom] = term.atoms.iter().filter(varies).collect::<Vec<_>>()[..] else { return None };
    let Atom::Quotient { of, by } = atom else { return None };
    let mut others = term.atoms.clone();
    others.remove(others.iter().position(|a| a == atom)?);
    (!known.varies(by)).then(|| (Expr::from_atoms(&others).scale(term.coefficient), &**of, &**by))
}

impl Limits {
    /// The ends of axes, and conditions `e ≥ 0` under which something is asked for. What they say of the loops outside becomes known.
    ///
    /// # Errors
    /// An axis or condition over a variable that is no loop.
    pub fn new(loops: &Loops, conditions: &[Expr], known: &mut Known<'_>) -> Self {
        let mut limits = Self::default();
        let (zero, mut others) = (Expr::constant(0), Vec::new());
        for (value, extent) in &loops.axes {
            let (value, extent) = (known.facts.normal(value), known.facts.normal(extent));
            let last = extent.sub(&Expr::constant(1));
            if value.is_unknown() || extent.is_unknown() || known.varies(&extent) {
                limits.is_partial = true;
                continue;
            }
            if !limits.add(&value, Some(&zero), Some(&last), known) {
                others.push((value, extent));
            }
        }
        for condition in conditions {
            let condition = known.facts.normal(condition);
            if condition.is_unknown() || !limits.add(&condition, Some(&zero), None, known) {
                limits.is_partial = true;
            }
        }
        // Quotients whose dividends have become known by now.
        others.retain(|(value, extent)| !limits.add(value, Some(&zero), Some(&extent.sub(&Expr::constant(1))), known));
        limits.linear.sort_by_key(|l| l.parts.len());
        let mut live = Vec::new();
        for limit in &limits.linear {
            let ends = |greatest: bool| limit.end(greatest, known);
            if let (Some(high), Some(least)) = (&limit.high, ends(false)) {
                live.push(high.sub(&least));
            }
            if let (Some(low), Some(greatest)) = (&limit.low, ends(true)) {
                live.push(greatest.sub(low));
            }
        }
        live.retain(|row| !known.proves_always(row));
        for row in &live {
            known.assume(row.clone());
        }
        limits.live.extend(live);
        // Limits that exclude each other.
        for at in 0..limits.linear.len() {
            let Ok(run) = limits.sum(&limits.linear[at].parts, known) else { continue };
            limits.live.extend(run.rows(known));
            limits.live.iter().for_each(|row| known.assume(row.clone()));
        }
        // What is left of the others: those that the linear ones do not imply.
        for (value, extent) in others {
            let last = extent.sub(&Expr::constant(1));
            let Ok(found) = limits.values_within(&value, known, DEPTH) else {
                limits.is_partial = true;
                continue;
            };
            if found.run.is_within(&zero, &last, known) {
                continue;
            }
            for row in found.run.clip(Some(&zero), Some(&last), known).rows(known) {
                known.assume(row.clone());
                limits.live.push(row);
            }
            limits.others.push(Other { value, extent, sources: found.sources });
        }
        limits
    }

    /// Adds `low ≤ value ≤ high`; false if it has no linear form.
    fn add(&mut self, value: &Expr, low: Option<&Expr>, high: Option<&Expr>, known: &mut Known<'_>) -> bool {
        if let Some((parts, rest)) = linear(value, known) {
            let (low, high) = (low.map(|l| l.sub(&rest)), high.map(|h| h.sub(&rest)));
            if parts.is_empty() {
                for row in low.map(|l| l.scale(-1)).into_iter().chain(high) {
                    if !known.proves_always(&row) {
                        self.live.push(row.clone());
                        known.assume(row);
                    }
                }
            } else {
                self.linear.push(Limit { parts, low, high });
            }
            return true;
        }
        // low ≤ rest + k·⌊e / d⌋ ≤ high, k > 0: d·⌈(low − rest) / k⌉ ≤ e ≤ d·⌊(high − rest) / k⌋ + d − 1
        let Some((digit, rest)) = self.only_quotient(value, known) else { return false };
        let Some(k) = digit.factor.as_constant().filter(|_| known.proves(&digit.by.sub(&Expr::constant(1)))) else {
            return false;
        };
        let (low, high) = (low.map(|l| l.sub(&rest)), high.map(|h| h.sub(&rest)));
        let (low, high) = if k > 0 { (low, high) } else { (high.map(|h| h.scale(-1)), low.map(|l| l.scale(-1))) };
        let k = Expr::constant(k.abs());
        let low = low.map(|l| digit.by.mul(&l.ceil_div(&k)));
        let high = high.map(|h| digit.by.mul(&h.floor_div(&k)).add(&digit.by).sub(&Expr::constant(1)));
        self.add(&digit.of, low.as_ref(), high.as_ref(), known)
    }

    /// The quotient of a value that is one quotient and what loops outside decide.
    fn only_quotient(&self, value: &Expr, known: &Known<'_>) -> Option<(Digit, Expr)> {
        let (mut digits, rest) = take_digits(value, known);
        let (mut parts, rest) = linear(&rest, known)?;
        let mut digit = digits.pop().filter(|digit| digits.is_empty() && digit.radix.is_none())?;
        self.complete(&mut digit, &mut parts, known);
        parts.is_empty().then_some((digit, rest))
    }

    /// The values of an index.
    ///
    /// # Errors
    /// Steps or extents that are not known well enough to say anything.
    pub fn values(&self, index: &Expr, known: &Known<'_>) -> Result<Values, NotATile> {
        let index = known.unclipped(index);
        let mut found = self.values_within(&index, known, DEPTH)?;
        // Limits that have not been applied.
        let reaches =
            |other: &Other| known.varies(&index.sub(&other.value)) && self.reaches(other, &found.sources, known);
        if self.is_partial || self.others.iter().any(reaches) {
            found.run.fit = Fit::Sound;
        }
        Ok(found)
    }

    fn values_within(&self, index: &Expr, known: &Known<'_>, depth: u32) -> Result<Values, NotATile> {
        if index.is_unknown() || depth == 0 {
            return Err(NotATile::Unknown);
        }
        if !known.varies(index) {
            return Ok(Values { run: Run::point(index.clone()), sources: Vec::new() });
        }
        let (mut digits, rest) = take_digits(index, known);
        let Some((mut parts, outside)) = linear(&rest, known) else {
            let var = index.vars().into_iter().find(|v| known.inside(*v).is_some());
            return Err(var.map_or(NotATile::Unknown, NotATile::SymbolicStep));
        };
        for digit in &mut digits {
            self.complete(digit, &mut parts, known);
        }
        let mut sources: Vec<Source> = parts.iter().map(|p| Source::Loop(p.0)).collect();
        let mut run = self.sum(&parts, known)?;
        for digit in &digits {
            let of = self.values_within(&digit.of, known, depth - 1)?;
            let step =
                NotATile::SymbolicStep(digit.of.vars().into_iter().find(|v| known.inside(*v).is_some()).unwrap_or(0));
            let mut own = of.run.clone().divide(&digit.by, known);
            if let Some(radix) = &digit.radix {
                own = own.modulo(radix, known);
            }
            let own = own.scale(&digit.factor, known).ok_or(step)?;
            if own.is_point() {
                // The same whatever the loops inside do.
                run = run.shift(&own.low());
                continue;
            }
            let source = Source::Digit(Box::new((digit.clone(), of.run)));
            let tied = self.ties(&sources, std::slice::from_ref(&source), known);
            run = run.sum(own, known);
            if tied {
                run.fit = Fit::Sound;
            }
            sources.push(source);
        }
        run = run.shift(&outside);
        for other in &self.others {
            let apart = index.sub(&other.value);
            if !known.varies(&apart) {
                let last = apart.add(&other.extent).sub(&Expr::constant(1));
                run = run.clip(Some(&apart), Some(&last), known);
            }
        }
        Ok(Values { run, sources })
    }

    /// Whether a limit says something of these sources that is not said of each of its own alone.
    fn reaches(&self, other: &Other, sources: &[Source], known: &Known<'_>) -> bool {
        match &other.sources[..] {
            // One digit: what it cannot be is of no concern to digits beside it.
            [digit @ Source::Digit(_)] => sources.iter().any(|s| s.is_same(digit) || self.tied(s, digit, known)),
            _ => self.ties(&other.sources, sources, known),
        }
    }

    /// Gives a quotient back the whole multiples that the normal form took out of it, c·k·v + c·⌊e / d⌋ = c·⌊(e + d·k·v) / d⌋, where a limit
    /// is on the dividend as it was.
    fn complete(&self, digit: &mut Digit, parts: &mut Parts, known: &Known<'_>) {
        if digit.radix.is_some() {
            return;
        }
        parts.retain(|(var, factor)| {
            let Some(multiple) = exact_quotient(factor, &digit.factor) else { return true };
            let whole = digit.of.add(&Expr::var(*var).mul(&multiple.mul(&digit.by)));
            let Some((sum, _)) = linear(&whole, known) else { return true };
            let is_of = |limit: &&Limit| {
                let shared: Parts = sum.iter().filter(|p| limit.parts.iter().any(|q| q.0 == p.0)).cloned().collect();
                shared.len() > 1 && shared.iter().any(|p| p.0 == *var) && ratio(&limit.parts, &shared).is_some()
            };
            let taken = self.linear.iter().any(|limit| is_of(&limit));
            if taken {
                digit.of = whole;
            }
            !taken
        });
    }

    /// Whether what is decided by these sources depends on each other.
    pub fn ties(&self, a: &[Source], b: &[Source], known: &Known<'_>) -> bool {
        a.iter().any(|a| b.iter().any(|b| self.tied(a, b, known)))
    }

    /// Whether two sources depend on each other: by a common loop, unless they are digits apart, or by a limit that is not known to hold.
    fn tied(&self, a: &Source, b: &Source, known: &Known<'_>) -> bool {
        let number = a.number_of_both(b);
        let mut loops = known.loops_inside();
        let shares = loops.any(|v| a.mentions(v) && b.mentions(v));
        if shares && number.is_none() {
            return true;
        }
        let number = number.and_then(|of| linear(of, known)).map(|(parts, _)| parts);
        let binds = |limit: &&Limit| {
            let mentions = |source: &Source| limit.parts.iter().any(|p| source.mentions(p.0));
            // A limit on the number itself has its part in the number's run.
            let is_own =
                number.as_ref().is_some_and(|n| n.len() == limit.parts.len() && ratio(&limit.parts, n).is_some());
            mentions(a) && mentions(b) && !is_own && !limit.is_idle(known)
        };
        self.linear.iter().any(|limit| binds(&limit))
            || self.others.iter().any(|other| match &other.sources[..] {
                [digit @ Source::Digit(_)] if number.is_some() => {
                    let beside = |s: &Source| s.is_same(digit) || s.number_of_both(digit).is_some();
                    !(beside(a) && beside(b))
                }
                sources => {
                    let meets = |source: &Source| {
                        known.loops_inside().any(|v| source.mentions(v) && sources.iter().any(|s| s.mentions(v)))
                    };
                    meets(a) && meets(b)
                }
            })
    }

    /// The values of Σ factor · loop.
    fn sum(&self, parts: &Parts, known: &Known<'_>) -> Result<Run, NotATile> {
        let mut units: Vec<Unit> = Vec::with_capacity(parts.len());
        for (var, factor) in parts {
            let extent = known.inside(*var).ok_or(NotATile::SymbolicStep(*var))?;
            let run = Run::dense(Expr::constant(0), extent, extent.clone());
            units.push(Unit { parts: vec![(*var, Expr::constant(1))], factor: factor.clone(), run });
        }
        let mut used = vec![false; self.linear.len()];
        for (limit, used) in self.linear.iter().zip(&mut used) {
            if let Some((members, whole)) = limit.merge(&units, known) {
                let mut at = 0;
                units.retain(|_| {
                    at += 1;
                    !members.contains(&(at - 1))
                });
                units.push(whole);
                *used = true;
            }
        }
        let rest: Vec<&Limit> = self.linear.iter().zip(&used).filter(|(_, used)| !**used).map(|(l, _)| l).collect();
        let mut coupled = false;
        for unit in &mut units {
            for limit in &rest {
                limit.project(unit, known);
            }
        }
        for limit in &rest {
            let met = units.iter().filter(|u| limit.parts.iter().any(|p| u.parts.iter().any(|q| q.0 == p.0)));
            coupled |= met.count() > 1 && !limit.is_idle(known);
        }
        // Fine steps first: each next one then builds on what is there.
        let mut scaled: Vec<Run> = Vec::with_capacity(units.len());
        for unit in units {
            let var = unit.parts[0].0;
            scaled.push(unit.run.scale(&unit.factor, known).ok_or(NotATile::SymbolicStep(var))?);
        }
        scaled.sort_by_key(|run| run.step.as_constant().map_or((1, 0), |step| (0, step)));
        let zero = Run::point(Expr::constant(0));
        let mut run = scaled.into_iter().fold(zero, |sum, run| sum.sum(run, known));
        if coupled {
            run.fit = Fit::Sound;
        }
        Ok(run)
    }
}

/// A part of a linear sum that is one run.
#[derive(Clone, Debug)]
struct Unit {
    /// The value that `run` has.
    parts: Parts,
    /// What the sum has of it.
    factor: Expr,
    run: Run,
}

/// The factor by which one sum is another.
fn ratio(sum: &Parts, of: &Parts) -> Option<Expr> {
    let factor = |(var, part): &(Var, Expr)| exact_quotient(&sum.iter().find(|p| p.0 == *var)?.1, part);
    let first = factor(of.first()?)?;
    of.iter().all(|part| factor(part).as_ref() == Some(&first)).then_some(first)
}

impl Limit {
    /// The least or the greatest value of the sum by the extents of its loops.
    fn end(&self, greatest: bool, known: &Known<'_>) -> Option<Expr> {
        end(self.parts.iter(), greatest, known)
    }

    /// Whether the extents of the loops say all that it says.
    fn is_idle(&self, known: &Known<'_>) -> bool {
        let least = self.end(false, known);
        let greatest = self.end(true, known);
        let above = |(low, least): (&Expr, Expr)| known.proves(&least.sub(low));
        let below = |(high, greatest): (&Expr, Expr)| known.proves(&high.sub(&greatest));
        self.low.as_ref().is_none_or(|low| least.is_some_and(|least| above((low, least))))
            && self.high.as_ref().is_none_or(|high| greatest.is_some_and(|greatest| below((high, greatest))))
    }

    /// Units that make up the sum with one common factor, and the unit that they become.
    fn merge(&self, units: &[Unit], known: &Known<'_>) -> Option<(Vec<usize>, Unit)> {
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
    fn project(&self, unit: &mut Unit, known: &Known<'_>) {
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

/// The radix of an index that is one digit of something, apart from what loops outside add.
pub(super) fn radix(index: &Expr, known: &Known<'_>) -> Option<Expr> {
    let (digits, rest) = take_digits(index, known);
    match &digits[..] {
        [Digit { radix: Some(radix), .. }] if !known.varies(&rest) => Some(radix.clone()),
        _ => None,
    }
}

/// How many quotients stand inside each other.
fn depth(e: &Expr) -> u32 {
    let atom = |a: &Atom| match a {
        Atom::Var(_) => 0,
        Atom::Positive { of } => depth(of),
        Atom::Quotient { of, by } => 1 + depth(of).max(depth(by)),
    };
    e.terms().iter().flat_map(|t| &t.atoms).map(atom).max().unwrap_or(0)
}

/// How many terms of an expression move with the loops inside.
fn varying(e: &Expr, known: &Known<'_>) -> usize {
    e.terms().iter().filter(|t| known.varies(&Expr::from_atoms(&t.atoms))).count()
}

/// The digits and quotients of an index, and the rest.
fn take_digits(index: &Expr, known: &Known<'_>) -> (Vec<Digit>, Expr) {
    let (mut rest, mut digits) = (index.clone(), Vec::new());
    loop {
        // Quotients of quotients and large divisors first: these are the tails of digits.
        let found = rest.terms().iter().filter_map(|t| Some((t, quotient(t, known)?)));
        let largest = found.max_by_key(|(_, (_, of, by))| (depth(of), by.as_constant().unwrap_or(i128::MAX)));
        let Some((term, (factor, of, by))) = largest else { return (digits, rest) };
        let tail = Expr::from_atoms(&term.atoms).scale(term.coefficient);
        let mut best = (Digit { factor: factor.clone(), of: of.clone(), by: by.clone(), radix: None }, rest.sub(&tail));
        let mut left = varying(&best.1, known);
        for step in steps(&rest, of, by, known) {
            let Some(radix) = exact_quotient(by, &step) else { continue };
            let Some(k) = exact_quotient(&factor.scale(-1), &radix) else { continue };
            let digit = of.floor_div(&step).sub(&radix.mul(&of.floor_div(by)));
            let without = rest.sub(&digit.mul(&k));
            let count = varying(&without, known);
            if count < left && !without.is_unknown() {
                left = count;
                best = (Digit { factor: k, of: of.clone(), by: step, radix: Some(radix) }, without);
            }
        }
        let (digit, without) = best;
        digits.push(digit);
        rest = without;
        if digits.len() > crate::extent::TERM_LIMIT {
            return (digits, rest);
        }
    }
}

/// Divisors s for which ⌊of / s⌋ may be the head of a digit whose tail is ⌊of / by⌋.
fn steps(index: &Expr, of: &Expr, by: &Expr, known: &Known<'_>) -> Vec<Expr> {
    let mut steps = vec![Expr::constant(1)];
    for (_, other, s) in index.terms().iter().filter_map(|t| quotient(t, known)) {
        if s != by || other != of {
            steps.push(s.clone());
        }
    }
    let content = by.terms().iter().fold(0, |g, t| crate::extent::gcd(g, t.coefficient));
    let mut small = 2;
    while small * small <= content && steps.len() < DIVISORS {
        if content % small == 0 {
            steps.push(Expr::constant(small));
            steps.push(Expr::constant(content / small));
        }
        small += 1;
        if small > 4096 {
            break;
        }
    }
    steps.retain(|s| s != by);
    steps.sort();
    steps.dedup();
    steps
}

//! From an index to the run of its values.
//!
//! An index is taken apart into what loops outside decide, a linear sum of loops inside, quotients ⌊e / d⌋, and digits
//! k·(⌊e / s⌋ mod n). In the normal form of expressions a digit is two or more terms, k·⌊e / s⌋ − k·n·⌊e / sn⌋, the
//! first of which has merged with others, so for a quotient with coefficient −kn every s with s·n = d is tried, and
//! taken if more terms cancel than go away by themselves.
//!
//! **Splits.** A linear sum is built up from the axes of the schedule, small ones first: an axis whose loops stand in
//! the sum with one common factor is one run, which ends with the axis (`Limit`). A limit on a sum of which only a part
//! occurs bounds that part where the rest is smallest. A split that overruns its axis, at any depth, is exact by this.
//!
//! **Approximation.** Parts that share loops, or are tied by one limit, are summed as if they were independent; then
//! nothing but soundness is claimed.

use super::NotATile;
use super::digit::{Digit, take_digits};
use super::known::Known;
use super::limit::{Limit, Parts, Unit, linear, ratio};
use super::run::{Fit, Run, exact_quotient};
use crate::extent::{Expr, Var};

/// Most quotients inside each other.
const DEPTH: u32 = 8;

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

impl Limits {
    /// The ends of axes, and conditions `e ≥ 0` under which something is asked for. What they say of the loops outside
    /// becomes known.
    ///
    /// # Errors
    /// An axis or condition over a variable that is no loop.
    pub fn new(axes: &[(Expr, Expr)], conditions: &[Expr], known: &mut Known<'_>) -> Self {
        let mut limits = Self::default();
        let (zero, mut others) = (Expr::constant(0), Vec::new());
        for (value, extent) in axes {
            let (value, extent) = (known.facts.normal(value), known.facts.normal(extent));
            let last = extent.sub(&Expr::constant(1));
            let is_strange = known.stranger(&value).or(known.stranger(&extent)).is_some();
            if value.is_unknown() || extent.is_unknown() || known.varies(&extent) || is_strange {
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
            // What its loops say by themselves excludes nothing.
            if limits.linear[at].is_of_its_loops(known) {
                continue;
            }
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
                let limit = Limit { parts, low, high };
                // Many axes are loops, and what several stages ask for has the same ends again.
                if (limit.parts.len() > 1 || !limit.is_of_its_loops(known)) && !self.linear.contains(&limit) {
                    self.linear.push(limit);
                }
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

    /// Gives a quotient back the whole multiples that the normal form took out of it, c·k·v + c·⌊e / d⌋ = c·⌊(e +
    /// d·k·v) / d⌋, where a limit is on the dividend as it was. A digit loses nothing by whole multiples of what it
    /// repeats itself after.
    fn complete(&self, digit: &mut Digit, parts: &mut Parts, known: &Known<'_>) {
        if let Some(radix) = &digit.radix {
            let block = digit.by.mul(radix);
            if let Some(lost) = self.linear.iter().find_map(|limit| lost(&digit.of, limit, &block, known)) {
                digit.of = digit.of.add(&lost);
            }
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

    /// Whether two sources depend on each other: by a common loop, unless they are digits apart, or by a limit that is
    /// not known to hold.
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

/// What a dividend lacks, in whole multiples of `block`, to have the sum of a limit in it.
fn lost(of: &Expr, limit: &Limit, block: &Expr, known: &Known<'_>) -> Option<Expr> {
    let (parts, _) = linear(of, known).filter(|_| limit.parts.len() > 1)?;
    let own = |v: Var| parts.iter().find(|p| p.0 == v).map_or_else(|| Expr::constant(0), |p| p.1.clone());
    let ratios = limit.parts.iter().filter_map(|(v, factor)| exact_quotient(&own(*v), factor));
    ratios.filter(|ratio| *ratio != Expr::constant(0)).find_map(|ratio| {
        let apart = limit.parts.iter().map(|(v, factor)| {
            let apart = factor.mul(&ratio).sub(&own(*v));
            exact_quotient(&apart, block).map(|_| apart.mul(&Expr::var(*v)))
        });
        let lost = apart.collect::<Option<Vec<Expr>>>()?.iter().fold(Expr::constant(0), |sum, e| sum.add(e));
        (lost != Expr::constant(0)).then_some(lost)
    })
}

//! Float sums in free order.
//!
//! A float `sum` may add its n terms in any order and bracketing, each step rounded to nearest. For every order
//!
//! > |computed − exact| ≤ (n − 1) · u · Σ|xᵢ|
//!
//! with u half a unit in the last place of 1 (Jeannerod and Rump, "Improved error bounds for inner products in
//! floating-point arithmetic", 2013; sums are exact where they underflow). The exact value is accumulated in f64, for
//! f64 terms in two of them, with its own error added. Where no rounding can happen the result is exact: fewer than
//! three terms, or terms that are multiples of one power of two so large that every partial sum is representable. A
//! partial sum that may overflow makes infinity admissible, and NaN where overflow in both directions is possible. An
//! `unordered` sum may be added up in memory, where operands and results of `f32` that are subnormal count as zeros
//! (PTX manual, `red`): up to three of them an addition, each below 2⁻¹²⁶.
//!
//! Where it is known that no term goes through more than h additions, each of which multiplies it by 1 + δ with
//! |δ| ≤ u, |computed − exact| ≤ ((1 + u)ʰ − 1) · Σ|xᵢ| (Higham, "Accuracy and Stability of Numerical Algorithms",
//! 2002, section 4.2), and the smaller of the two bounds counts.
//!
//! An `online` sum may be corrected where an extreme changes, [`online::loss`]: it is never exact, and partial sums may
//! reach the sum of what exponentials are multiplied with.
//!
//! A `dot` of narrow types has a contract of its own, [`dot::loss`], with other magnitudes and fewer exact sums. An
//! `online dot` may lose both.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Order;
use tilewright_kernel::dot;
use tilewright_kernel::online::{self, Chain, Loss, Rule as Follows};

use super::column::{Column, pick};
use super::interval::{Format, Interval, lowest_bit, power_of_two};
use super::reduce::{Along, Terms};

/// Float sums at a number of points.
///
/// Once no sum can be exact any more, and while all terms are finite single values, two numbers a point are enough;
/// they are kept apart from the rest, so that the loop over the points is a vector loop.
pub(super) struct Sums {
    each: Vec<Sum>,
    rule: Rule,
    /// Sum of the terms, and of their magnitudes, that are not in `each` yet.
    sums: Vec<f64>,
    magnitudes: Vec<f64>,
    count: u64,
    /// Whether two numbers a point are enough.
    plain: bool,
    /// Columns taken.
    taken: u64,
}

impl Sums {
    pub(super) fn new(
        points: usize,
        (format, element): (Format, ElementType),
        (order, chain): (Order, Option<&Chain>),
        additions: Option<u64>,
    ) -> Self {
        let zeros = vec![0.0; points];
        let each = vec![Sum::default(); points];
        let unordered = order == Order::Unordered;
        let lost = if unordered && format == Format::F32 { 3.0 * f64::from(f32::MIN_POSITIVE) } else { 0.0 };
        let dot = match order {
            Order::Dot { operands, promote, .. } if dot::loss(operands, 1, promote).is_some() => {
                Some((operands, promote))
            }
            _ => None,
        };
        // Products that underflow in `f32` do not in a tensor core.
        let lost = match dot {
            Some(([ElementType::Bf16 | ElementType::Tf32, _], _)) => 2.0 * Format::F32.min_positive(),
            _ => lost,
        };
        let kept =
            dot.and_then(|(operands, promote)| dot::loss(operands, 1, promote)).map(|loss| loss.kept.cast_signed());
        let online = chain.map(|chain| Box::new((chain.clone(), element)));
        let rule = Rule { format, lost, dot, online, additions, bits: kept.unwrap_or(format.precision()) };
        Self { each, rule, sums: zeros.clone(), magnitudes: zeros, count: 0, plain: false, taken: 0 }
    }

    /// Takes terms.
    pub(super) fn take(
        &mut self,
        Terms { column: terms, sizes, weights, spread }: Terms<'_>,
        along: Along,
        count: usize,
        active: Option<&[bool]>,
    ) {
        self.taken += 1;
        if self.rule.online.is_some() {
            for i in (0..count).filter(|&i| active.is_none_or(|a| a[i])) {
                let set = terms.interval(i);
                let sum = &mut self.each[if along == Along::Points { i } else { 0 }];
                let size = sizes.map_or_else(|| magnitude(set), |sizes| pick(sizes, i));
                let weight = weights.map_or(0.0, |weights| pick(weights, i));
                // An exponential that is 0 now may have been larger when the term was added.
                let set = if weight.is_infinite() && set.is_empty() { Interval::ALL } else { set };
                sum.take_set(set, size, &self.rule);
                sum.weight += weight;
                sum.spread = sum.spread.max(spread.map_or(0.0, |spread| pick(spread, i)));
            }
            return;
        }
        let format = self.rule.format;
        let size = |i: usize| sizes.map(|sizes| pick(sizes, i));
        // Looked at now and then: the answer changes once.
        if !self.plain && along == Along::Points && self.taken.is_multiple_of(8) {
            self.plain = format != Format::F64 && self.each.iter().all(|s| s.exact && s.quantum.is_none());
        }
        match (terms, along, active) {
            (Column::Float(values), Along::Points, None) if self.plain && values.iter().all(|x| x.is_finite()) => {
                self.count += 1;
                match values[..] {
                    [x] => self.sums.iter_mut().for_each(|s| *s += x),
                    _ => self.sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x),
                }
                match sizes.unwrap_or(values) {
                    &[x] => self.magnitudes.iter_mut().for_each(|m| *m += x.abs()),
                    sizes => self.magnitudes.iter_mut().zip(sizes).for_each(|(sum, x)| *sum += x.abs()),
                }
            }
            (Column::Float(values), Along::Points, None) if !self.plain => {
                for (i, sum) in self.each.iter_mut().enumerate() {
                    let x = pick(values, i);
                    sum.take(x, size(i).unwrap_or(x.abs()), &self.rule);
                }
            }
            (Column::Float(values), Along::Terms, None)
                if values.len() == count && sizes.is_none_or(|sizes| sizes.len() == count) =>
            {
                self.each[0].take_all(values, sizes.unwrap_or(values), &self.rule);
            }
            _ => {
                self.settle();
                for i in (0..count).filter(|&i| active.is_none_or(|a| a[i])) {
                    let set = terms.interval(i);
                    let size = size(i).unwrap_or_else(|| magnitude(set));
                    self.each[if along == Along::Points { i } else { 0 }].take_set(set, size, &self.rule);
                }
            }
        }
    }

    /// Moves everything into `each`.
    fn settle(&mut self) {
        for (i, sum) in self.each.iter_mut().enumerate() {
            sum.lo += self.sums[i];
            sum.hi += self.sums[i];
            sum.magnitude += self.magnitudes[i];
            sum.count += self.count;
        }
        self.sums.fill(0.0);
        self.magnitudes.fill(0.0);
        (self.count, self.plain) = (0, false);
    }

    pub(super) fn finish(mut self) -> Column {
        self.settle();
        Column::from_intervals(self.each.iter().map(|s| s.finish(&self.rule)).collect())
    }
}

/// What a sum may lose.
struct Rule {
    format: Format,
    /// What an addition may lose besides rounding.
    lost: f64,
    /// The extreme that an `online` sum follows, and its type.
    online: Option<Box<(Chain, ElementType)>>,
    /// The types of the factors of a `dot` with a contract, and its `promote`.
    dot: Option<([ElementType; 2], Option<u32>)>,
    /// Through how many additions a term goes at most, if that is known.
    additions: Option<u64>,
    /// Sums of multiples of q are exact up to q · 2^`bits`.
    bits: i32,
}

/// What a sum of `count` terms in free order may lose, relative to the sum of their magnitudes.
fn free(count: u64, additions: Option<u64>, roundoff: f64) -> f64 {
    let any = (count as f64 - 1.0) * roundoff;
    // (1 + u)ʰ − 1 ≤ hu / (1 − hu), rounded up.
    let own = additions.map(|h| h as f64 * roundoff).filter(|lost| *lost < 0.5);
    own.map_or(any, |lost| any.min(lost / (1.0 - lost) * (1.0 + 4.0 * f64::EPSILON)))
}

/// A number that can be summed; what is not finite is noted elsewhere.
fn finite(x: f64) -> f64 {
    if x.is_finite() { x } else { 0.0 }
}

/// The largest finite magnitude in a set.
fn magnitude(set: Interval) -> f64 {
    finite(set.lo).abs().max(finite(set.hi).abs())
}

/// The terms of one float sum so far.
#[derive(Clone, Debug)]
struct Sum {
    count: u64,
    /// Sum of the lower and of the upper ends; with `rest`, the part that f64 lost.
    lo: f64,
    hi: f64,
    rest: f64,
    /// Sum of the largest magnitudes.
    magnitude: f64,
    /// Sum of what exponentials are multiplied with, of an `online` sum; of magnitudes, or of weights.
    weight: f64,
    /// The largest magnitude of what is weighted.
    spread: f64,
    /// Largest power of two that divides all terms, if it may still matter.
    quantum: Option<f64>,
    /// Every term was one value.
    exact: bool,
    /// Nothing is known of the result.
    any: bool,
    /// What non-finite terms there may be, and whether some are certain.
    nan: bool,
    only_nan: bool,
    positive: bool,
    negative: bool,
    certain_positive: bool,
    certain_negative: bool,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            count: 0,
            lo: 0.0,
            hi: 0.0,
            rest: 0.0,
            magnitude: 0.0,
            weight: 0.0,
            spread: 0.0,
            quantum: Some(f64::INFINITY),
            exact: true,
            any: false,
            nan: false,
            only_nan: false,
            positive: false,
            negative: false,
            certain_positive: false,
            certain_negative: false,
        }
    }
}

impl Sum {
    /// Many terms at once: the loop that products spend their time in.
    fn take_all(&mut self, values: &[f64], sizes: &[f64], rule: &Rule) {
        let one_by_one = |sum: &mut Self| values.iter().zip(sizes).for_each(|(x, size)| sum.take(*x, size.abs(), rule));
        let tracked = self.quantum.is_some() || rule.format == Format::F64 || !self.exact;
        if tracked {
            return one_by_one(self);
        }
        // Four partial sums, so that the additions need not wait for each other.
        let mut sums = [0.0_f64; 4];
        let mut magnitudes = [0.0_f64; 4];
        let (fours, rest) = values.as_chunks::<4>();
        let (sizes, rest_of_sizes) = sizes.as_chunks::<4>();
        for (four, sizes) in fours.iter().zip(sizes) {
            for i in 0..4 {
                sums[i] += four[i];
                magnitudes[i] += sizes[i].abs();
            }
        }
        let magnitude = magnitudes.iter().sum::<f64>() + rest_of_sizes.iter().map(|x| x.abs()).sum::<f64>();
        if !magnitude.is_finite() {
            // Some term is not finite (finite f32 do not overflow here).
            return one_by_one(self);
        }
        self.lo += sums.iter().chain(rest).sum::<f64>();
        self.magnitude += magnitude;
        self.count += values.len() as u64;
    }

    #[inline]
    fn take(&mut self, x: f64, size: f64, rule: &Rule) {
        if !x.is_finite() || !self.exact {
            return self.take_set(Interval::exact(x), size, rule);
        }
        self.count += 1;
        self.magnitude += size;
        if rule.format == Format::F64 {
            let sum = self.lo + x;
            // Knuth's two-sum: the part that rounding lost.
            let virtual_x = sum - self.lo;
            self.rest += (self.lo - (sum - virtual_x)) + (x - virtual_x);
            self.lo = sum;
        } else {
            self.lo += x;
        }
        if let Some(quantum) = self.quantum
            && x != 0.0
        {
            let quantum = quantum.min(lowest_bit(x));
            // Beyond this some partial sum may not be representable, and more terms do not change that.
            let representable = self.magnitude <= quantum * power_of_two(rule.bits);
            self.quantum = representable.then_some(quantum);
        }
    }

    fn take_set(&mut self, x: Interval, size: f64, rule: &Rule) {
        if self.exact && x.single().is_some_and(f64::is_finite) {
            return self.take(x.lo, size, rule);
        }
        if self.exact {
            self.exact = false;
            self.hi = self.lo;
        }
        self.count += 1;
        self.quantum = None;
        // Factors are finite, and their product is not: a tensor core may add it to one of the other sign.
        self.any |= rule.dot.is_some() && size.is_finite() && (x.hi == f64::INFINITY || x.lo == f64::NEG_INFINITY);
        self.nan |= x.nan;
        if x.is_empty() {
            self.only_nan = true;
            return;
        }
        self.positive |= x.hi == f64::INFINITY;
        self.negative |= x.lo == f64::NEG_INFINITY;
        self.certain_positive |= x.lo == f64::INFINITY;
        self.certain_negative |= x.hi == f64::NEG_INFINITY;
        // Infinite ends were noted; what is summed is finite.
        self.lo += finite(x.lo);
        self.hi += finite(x.hi);
        self.magnitude += finite(size);
    }

    fn finish(&self, rule: &Rule) -> Interval {
        let Rule { format, lost, dot, ref online, additions, .. } = *rule;
        let hi = if self.exact { self.lo } else { self.hi };
        if self.any {
            return Interval::ALL;
        }
        let nan = self.nan || self.positive && self.negative;
        if self.only_nan || self.certain_positive && self.certain_negative {
            return Interval::NAN;
        }
        if self.count == 0 {
            return Interval::exact(0.0);
        }
        let n = self.count as f64;
        if online.is_some() && self.weight > format.max() / 2.0 {
            return Interval::ALL;
        }
        let corrected = online.as_deref().and_then(|(chain, element)| match &chain.rule {
            Follows::Exponential(exponential) => online::loss(exponential, *element, self.count),
            Follows::Scaled(scaled) => online::scaled_loss(*scaled, *element, self.count),
            Follows::Squares { .. } | Follows::Choice { .. } => None,
        });
        let squares = online.as_deref().and_then(|(chain, element)| match &chain.rule {
            Follows::Squares { weights: None } => online::squares_loss(*element, self.count, self.weight, hi),
            Follows::Squares { weights: Some(_) } => {
                // Where nothing is promised it is off by any number.
                let all = [self.weight, self.spread, hi];
                Some(online::weighted_loss(*element, self.count, all).unwrap_or(f64::INFINITY))
            }
            _ => None,
        });
        if squares == Some(f64::INFINITY) {
            return Interval::ALL;
        }
        // Multiples of a normal number have no subnormal sums.
        let lost = if self.quantum.is_some_and(|q| q >= f64::from(f32::MIN_POSITIVE)) { 0.0 } else { n * lost };
        let all_fit = self.quantum.is_some() && self.magnitude <= format.max();
        let exactly = online.is_none() && lost == 0.0 && self.exact && (self.count <= 2 && dot.is_none() || all_fit);
        if exactly {
            // Two terms are rounded once; more of them were found to need no rounding. A sum of zeros is +0.
            let value = format.operate(|| self.lo, || self.lo as f32);
            return Interval::exact(if value == 0.0 { 0.0 } else { value });
        }
        // A correction rounds a partial sum by half of the least number at least.
        let underflow = |loss: Loss| loss.underflow * self.weight + n * format.min_positive();
        let lost = lost + corrected.map_or(0.0, underflow) + squares.unwrap_or(0.0);
        let of_dot = dot.and_then(|(operands, promote)| dot::loss(operands, self.count, promote));
        let relative = match (of_dot, corrected) {
            (Some(dot), Some(online)) => (1.0 + dot.relative) * (1.0 + online.relative) - 1.0,
            (Some(dot), None) => dot.relative,
            (None, Some(online)) => online.relative,
            (None, None) => free(self.count, additions, format.unit_roundoff()),
        };
        let roundings = relative * self.magnitude;
        // Our own error: each of the n additions in f64, those of the magnitudes included; for f64 that of the two-part
        // sum.
        let ours = match format {
            Format::F64 if self.exact => 2.0 * f64::EPSILON * (self.lo.abs() + n * n * f64::EPSILON * self.magnitude),
            _ => 2.0 * n * f64::EPSILON * self.magnitude,
        };
        // The last summand covers an error that underflows while it is computed.
        let error = (roundings + ours) * (1.0 + 4.0 * n * f64::EPSILON) + lost + f64::from_bits(1);
        let mut set = Interval { lo: self.lo + self.rest - error, hi: hi + self.rest + error, nan };
        // Partial sums reach at most the sum of the positive terms, and at least that of the negative ones.
        let threshold = format.max() / (1.0 + relative + format.unit_roundoff());
        // Corrections may be more than the terms in the end, by what they are off by.
        let over =
            (self.magnitude + hi + error + squares.unwrap_or(0.0)) / 2.0 > threshold || self.magnitude.is_infinite();
        let under = (self.magnitude - self.lo + error) / 2.0 > threshold || self.magnitude.is_infinite();
        let (positive, negative) = (self.positive || over, self.negative || under);
        set.nan |= positive && negative;
        if self.certain_positive {
            set.lo = f64::INFINITY;
        }
        if self.certain_negative {
            set.hi = f64::NEG_INFINITY;
        }
        if positive && !self.certain_negative {
            set.hi = f64::INFINITY;
        }
        if negative && !self.certain_positive {
            set.lo = f64::NEG_INFINITY;
        }
        if set.lo.is_nan() || set.hi.is_nan() { Interval::ALL } else { set }
    }
}

//! Known integers of all threads as a pattern times a factor, plus an offset. What is added to all of them, or
//! multiplies all of them, leaves the pattern as it is, and where the least and the greatest decide a question no
//! thread is asked: most of a kernel's indices are such.

use std::rc::Rc;

use tilewright_kernel::algorithm::Compare;

use super::agent::Active;
use super::row::Known;

/// Most sums of two patterns that are remembered.
const MOST_SUMS: usize = 64;
/// What a pattern's values times a factor are between, where they are added to others.
const LIMIT: i128 = 1 << 60;

/// A number for each thread that has one: at least one of them.
#[derive(Debug, PartialEq, Eq)]
struct Pattern {
    values: Vec<Known>,
    least: i64,
    most: i64,
}

impl Pattern {
    /// Numbers with their ends; none if no thread has one.
    fn new(values: Vec<Known>) -> Option<Rc<Self>> {
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        let all = &values[..];
        // No iterators, as in `row::pure`.
        let mut thread = 0;
        while thread < all.len() {
            if let Some(value) = all[thread] {
                least = if value < least { value } else { least };
                most = if value > most { value } else { most };
            }
            thread += 1;
        }
        (least <= most).then(|| Rc::new(Self { values, least, most }))
    }

    /// The least and the greatest times a factor, in any order.
    fn ends(&self, factor: i64) -> [i128; 2] {
        [self.least, self.most].map(|end| i128::from(end) * i128::from(factor))
    }
}

/// Sums of patterns with factors: the same rows and columns are added again and again, at other offsets.
#[derive(Debug, Default)]
pub(super) struct Sums(Vec<(Summands, Rc<Pattern>)>);

/// Two patterns, each with a factor.
type Summands = [(Rc<Pattern>, i64); 2];

impl Sums {
    /// The sum of two; none if there is no thread that has both, or if the numbers are large.
    fn of(&mut self, a: (&Rc<Pattern>, i64), b: (&Rc<Pattern>, i64)) -> Option<Rc<Pattern>> {
        let is = |known: &(Rc<Pattern>, i64), one: (&Rc<Pattern>, i64)| known.1 == one.1 && Rc::ptr_eq(&known.0, one.0);
        for (known, sum) in &self.0 {
            if is(&known[0], a) && is(&known[1], b) {
                return Some(sum.clone());
            }
        }
        let is_large = |end: i128| end <= -LIMIT || end >= LIMIT;
        if [a, b].iter().any(|(pattern, factor)| pattern.ends(*factor).into_iter().any(is_large)) {
            return None;
        }
        let (left, right, mut sums) = (&a.0.values[..], &b.0.values[..], vec![None; a.0.values.len()]);
        let (own, mut thread) = (&mut sums[..], 0);
        while thread < left.len() {
            if let (Some(x), Some(y)) = (left[thread], right[thread]) {
                own[thread] = Some(x * a.1 + y * b.1);
            }
            thread += 1;
        }
        let sum = Pattern::new(sums)?;
        if self.0.len() < MOST_SUMS {
            self.0.push(([(a.0.clone(), a.1), (b.0.clone(), b.1)], sum.clone()));
        }
        Some(sum)
    }
}

/// A number for each thread that has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pattern: Rc<Pattern>,
    factor: i64,
    offset: i64,
    /// The least and the greatest of all.
    low: i64,
    high: i64,
}

impl Line {
    /// These numbers; none if no thread has one.
    pub fn new(values: Vec<Known>) -> Option<Self> {
        let pattern = Pattern::new(values)?;
        Some(Self { low: pattern.least, high: pattern.most, pattern, factor: 1, offset: 0 })
    }

    /// A pattern, multiplied and moved; none if a number leaves 64 bits.
    fn of(pattern: Rc<Pattern>, factor: i64, offset: i64) -> Option<Self> {
        let ends = pattern.ends(factor).map(|end| end + i128::from(offset));
        let [low, high] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
        Some(Self { pattern, factor, offset, low: i64::try_from(low).ok()?, high: i64::try_from(high).ok()? })
    }

    /// A thread's number.
    pub fn get(&self, thread: usize) -> Known {
        // The result is between the ends, whatever is in between.
        self.pattern.values[thread].map(|value| value.wrapping_mul(self.factor).wrapping_add(self.offset))
    }

    /// The numbers of threads that come to something; the others have none.
    pub fn each(&self, lanes: &[bool]) -> Vec<Known> {
        let mut all = vec![None; lanes.len()];
        let (results, values, mut thread) = (&mut all[..], &self.pattern.values[..], 0);
        while thread < lanes.len() {
            if lanes[thread]
                && let Some(value) = values[thread]
            {
                results[thread] = Some(value.wrapping_mul(self.factor).wrapping_add(self.offset));
            }
            thread += 1;
        }
        all
    }

    /// Whether all are between two numbers.
    pub fn is_within(&self, low: i64, high: i64) -> bool {
        low <= self.low && self.high <= high
    }

    /// Whether all are one.
    pub fn is_same(&self) -> bool {
        self.low == self.high
    }

    /// Whether each thread that comes to something has a number.
    fn covers(&self, active: &Active) -> bool {
        let (values, lanes) = (&self.pattern.values[..], &active.lanes[..]);
        let mut thread = active.range.start;
        while thread < active.range.end {
            if lanes[thread] && values[thread].is_none() {
                return false;
            }
            thread += 1;
        }
        true
    }

    /// Each plus a number; none if one leaves 64 bits.
    pub fn shifted(&self, by: i64) -> Option<Self> {
        let (low, high) = (self.low.checked_add(by)?, self.high.checked_add(by)?);
        Some(Self {
            pattern: self.pattern.clone(),
            factor: self.factor,
            offset: self.offset.wrapping_add(by),
            low,
            high,
        })
    }

    /// Each times a number; none if one leaves 64 bits.
    pub fn scaled(&self, by: i64) -> Option<Self> {
        Self::of(self.pattern.clone(), self.factor.checked_mul(by)?, self.offset.checked_mul(by)?)
    }

    /// The sums of both; none if no thread has both, or one may leave 64 bits.
    pub fn plus(&self, other: &Self, sums: &mut Sums) -> Option<Self> {
        let offset = self.offset.checked_add(other.offset)?;
        if Rc::ptr_eq(&self.pattern, &other.pattern) {
            return Self::of(self.pattern.clone(), self.factor.checked_add(other.factor)?, offset);
        }
        Self::of(sums.of((&self.pattern, self.factor), (&other.pattern, other.factor))?, 1, offset)
    }

    /// What all threads that come to it say of a comparison with a number; none if they disagree, or one has none.
    pub fn compare(&self, op: Compare, with: i64, active: &Active) -> Option<bool> {
        let (below, above) = (self.high < with, self.low > with);
        let is_it = self.is_same() && self.low == with;
        let decided = match op {
            Compare::Eq | Compare::Ne if below || above => Some(op == Compare::Ne),
            Compare::Eq | Compare::Ne => is_it.then_some(op == Compare::Eq),
            Compare::Lt if below || self.low >= with => Some(below),
            Compare::Le if above || self.high <= with => Some(!above),
            Compare::Gt if above || self.high <= with => Some(above),
            Compare::Ge if below || self.low >= with => Some(!below),
            _ => None,
        };
        decided.filter(|_| self.covers(active))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drawn number of at most so many.
    fn drawn(state: &mut u64, most: u64) -> i64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 33) % most) as i64
    }

    /// What is made of lines is, thread by thread, what is made of their numbers.
    #[test]
    fn lines_are_what_their_numbers_are() {
        let (mut state, mut sums, mut decided, mut lost) = (1, Sums::default(), 0, 0);
        let one = |state: &mut u64, large: bool| {
            let of = |state: &mut u64| match drawn(state, 4) {
                0 => None,
                _ if large => Some((drawn(state, 1 << 30) << 33) - (1 << 62)),
                _ => Some(drawn(state, 9) - 4),
            };
            let values: Vec<Known> = (0..6).map(|_| of(state)).collect();
            (Line::new(values.clone()), values)
        };
        for n in 0..20_000 {
            let large = n % 5 == 0;
            let ((Some(mut a), mut of_a), (Some(b), of_b)) = (one(&mut state, large), one(&mut state, large)) else {
                continue;
            };
            for step in 0..4 {
                let by = if step == 3 && large { i64::MAX } else { drawn(&mut state, 7) - 3 };
                let twice = step == 2 && drawn(&mut state, 2) == 0;
                let (next, each): (_, Vec<Option<Known>>) = match drawn(&mut state, 3) {
                    0 => (a.shifted(by), of_a.iter().map(|x| x.map(|x| x.checked_add(by))).collect()),
                    1 => (a.scaled(by), of_a.iter().map(|x| x.map(|x| x.checked_mul(by))).collect()),
                    _ if twice => (a.plus(&a, &mut sums), of_a.iter().map(|x| x.map(|x| x.checked_add(x))).collect()),
                    _ => {
                        let both = of_a.iter().zip(&of_b).map(|(x, y)| x.zip(*y).map(|(x, y)| x.checked_add(y)));
                        (a.plus(&b, &mut sums), both.collect())
                    }
                };
                let Some(next) = next else {
                    lost += 1;
                    break;
                };
                (a, of_a) = (next, each.into_iter().map(|x| x.map(|x| x.expect("no number leaves 64 bits"))).collect());
                assert_eq!((0..6).map(|thread| a.get(thread)).collect::<Vec<_>>(), of_a);
                assert!(a.is_within(a.low, a.high) && of_a.iter().flatten().all(|x| (a.low..=a.high).contains(x)));
                let active = Active::of(6, |thread| thread != 1, false, false);
                assert!(
                    a.each(&active.lanes)
                        .iter()
                        .zip(&of_a)
                        .enumerate()
                        .all(|(n, (x, y))| x == if n == 1 { &None } else { y })
                );
                for op in [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge] {
                    if let Some(all) = a.compare(op, by, &active) {
                        decided += 1;
                        let said = |x: &Known| x.is_some_and(|x| super::super::row::compare(op, x, by) == all);
                        assert!(of_a.iter().enumerate().all(|(n, x)| n == 1 || said(x)), "{of_a:?} {op:?} {by}");
                    }
                }
            }
        }
        assert!(decided > 1_000 && lost > 500, "{decided} {lost}");
    }
}

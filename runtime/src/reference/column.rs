//! Columns: the values of one expression at a block of points.
//!
//! A column has one entry a point, or a single entry that stands for all. Exact columns (the usual case) are plain
//! numbers; the others hold sets of admissible values.

use std::sync::Arc;

use tilewright_kernel::ElementType;

use super::interval::Interval;

/// The integers from `lo` to `hi`; of those only `only`, if it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) lo: i128,
    pub(super) hi: i128,
    /// Ascending.
    pub(super) only: Option<Arc<[i128]>>,
}

impl Range {
    pub(super) fn exact(value: i128) -> Self {
        Self { lo: value, hi: value, only: None }
    }

    pub(super) fn between(lo: i128, hi: i128) -> Self {
        Self { lo, hi, only: None }
    }

    pub(super) fn single(&self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    pub(super) fn contains(&self, value: i128) -> bool {
        match &self.only {
            Some(only) => only.binary_search(&value).is_ok(),
            None => self.lo <= value && value <= self.hi,
        }
    }

    pub(super) fn hull(&self, other: &Self) -> Self {
        if self == other {
            return self.clone();
        }
        Self::between(self.lo.min(other.lo), self.hi.max(other.hi))
    }
}

/// Values at a block of points. Booleans are the integers 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Column {
    /// Floats, each one value.
    Float(Vec<f64>),
    /// Floats, each a set.
    FloatSets(Vec<Interval>),
    /// Integers, each one value.
    Int(Vec<i128>),
    /// Integers, each a set.
    IntSets(Vec<Range>),
}

impl Column {
    /// An empty column for values of a type.
    pub(super) fn empty(element: ElementType) -> Self {
        if element.is_float() { Self::Float(Vec::new()) } else { Self::Int(Vec::new()) }
    }

    /// One entry of this kind, for a place at which nobody looks.
    pub(super) fn nothing(&self) -> Self {
        if matches!(self, Self::Float(_) | Self::FloatSets(_)) { Self::Float(vec![0.0]) } else { Self::Int(vec![0]) }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Float(v) => v.len(),
            Self::FloatSets(v) => v.len(),
            Self::Int(v) => v.len(),
            Self::IntSets(v) => v.len(),
        }
    }

    /// Whether every entry is one value.
    pub(super) fn is_exact(&self) -> bool {
        matches!(self, Self::Float(_) | Self::Int(_))
    }

    /// Entry at a point, as a set of floats.
    pub(super) fn interval(&self, at: usize) -> Interval {
        match self {
            Self::Float(v) => Interval::exact(pick(v, at)),
            Self::FloatSets(v) => pick(v, at),
            Self::Int(v) => Interval::exact(pick(v, at) as f64),
            Self::IntSets(v) => {
                let r = &v[if v.len() == 1 { 0 } else { at }];
                Interval::between(r.lo as f64, r.hi as f64)
            }
        }
    }

    /// Entry at a point, as a set of integers; of a float column everything.
    pub(super) fn range(&self, at: usize) -> Range {
        match self {
            Self::Int(v) => Range::exact(pick(v, at)),
            Self::IntSets(v) => v[if v.len() == 1 { 0 } else { at }].clone(),
            Self::Float(_) | Self::FloatSets(_) => Range::between(i128::MIN, i128::MAX),
        }
    }

    /// The entry at one point, as a column of its own.
    pub(super) fn only(&self, at: usize) -> Self {
        match self {
            Self::Float(v) => Self::Float(vec![pick(v, at)]),
            Self::FloatSets(v) => Self::FloatSets(vec![pick(v, at)]),
            Self::Int(v) => Self::Int(vec![pick(v, at)]),
            Self::IntSets(_) => Self::IntSets(vec![self.range(at)]),
        }
    }

    /// From sets; exact if each holds one value.
    /// The same, or NaN.
    pub(super) fn or_nan(&self) -> Self {
        Self::FloatSets((0..self.len()).map(|at| Interval { nan: true, ..self.interval(at) }).collect())
    }

    pub(super) fn from_intervals(sets: Vec<Interval>) -> Self {
        match sets.iter().map(Interval::single).collect::<Option<Vec<f64>>>() {
            Some(values) => Self::Float(values),
            None => Self::FloatSets(sets),
        }
    }

    /// From sets; exact if each holds one value.
    pub(super) fn from_ranges(sets: Vec<Range>) -> Self {
        match sets.iter().map(Range::single).collect::<Option<Vec<i128>>>() {
            Some(values) => Self::Int(values),
            None => Self::IntSets(sets),
        }
    }

    /// Appends `points` entries of a column for as many points.
    pub(super) fn append(&mut self, other: &Self, points: usize) {
        match (&mut *self, other) {
            (Self::Float(all), Self::Float(v)) => extend(all, v, points),
            (Self::Int(all), Self::Int(v)) => extend(all, v, points),
            (Self::FloatSets(all), _) => all.extend((0..points).map(|i| other.interval(i))),
            (Self::IntSets(all), _) => all.extend((0..points).map(|i| other.range(i))),
            (Self::Float(all), _) => {
                let sets = all.iter().map(|&v| Interval::exact(v)).collect();
                *self = Self::FloatSets(sets);
                self.append(other, points);
            }
            (Self::Int(all), _) => {
                let sets = all.iter().map(|&v| Range::exact(v)).collect();
                *self = Self::IntSets(sets);
                self.append(other, points);
            }
        }
    }

    /// For each point, the entry of `self` where `first` says yes, of `other` where it says no, both where it does not
    /// say.
    pub(super) fn choose(&self, other: &Self, points: usize, first: impl Fn(usize) -> Option<bool>) -> Self {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) if (0..points).all(|i| first(i).is_some()) => {
                Self::Float((0..points).map(|i| if first(i) == Some(true) { pick(a, i) } else { pick(b, i) }).collect())
            }
            (Self::Int(a), Self::Int(b)) if (0..points).all(|i| first(i).is_some()) => {
                Self::Int((0..points).map(|i| if first(i) == Some(true) { pick(a, i) } else { pick(b, i) }).collect())
            }
            (Self::Float(_) | Self::FloatSets(_), _) => Self::from_intervals(
                (0..points)
                    .map(|i| match first(i) {
                        Some(true) => self.interval(i),
                        Some(false) => other.interval(i),
                        None => self.interval(i).hull(other.interval(i)),
                    })
                    .collect(),
            ),
            _ => Self::from_ranges(
                (0..points)
                    .map(|i| match first(i) {
                        Some(true) => self.range(i),
                        Some(false) => other.range(i),
                        None => self.range(i).hull(&other.range(i)),
                    })
                    .collect(),
            ),
        }
    }
}

/// Entry at a point.
#[inline(always)]
pub(super) fn pick<T: Copy>(entries: &[T], at: usize) -> T {
    if entries.len() == 1 { entries[0] } else { entries[at] }
}

fn extend<T: Copy>(all: &mut Vec<T>, entries: &[T], points: usize) {
    if entries.len() == 1 {
        all.extend(std::iter::repeat_n(entries[0], points))
    } else {
        all.extend_from_slice(entries)
    }
}

/// Applies a function to each entry.
///
/// A loop, and no chain of iterators, of which a debug build compiles six functions for each function applied.
pub(super) fn map<T: Copy, U>(a: &[T], f: impl Fn(T) -> U) -> Vec<U> {
    let mut all = Vec::with_capacity(a.len());
    for &x in a {
        all.push(f(x));
    }
    all
}

/// Applies a function to the entries of two columns at each point.
#[inline(always)]
pub(super) fn map2<T: Copy, U>(a: &[T], b: &[T], f: impl Fn(T, T) -> U) -> Vec<U> {
    let points = joint(&[a.len(), b.len()]);
    let mut all = Vec::with_capacity(points);
    for at in 0..points {
        all.push(f(pick(a, at), pick(b, at)));
    }
    all
}

/// Number of entries of a result of columns with these lengths.
pub(super) fn joint(lengths: &[usize]) -> usize {
    lengths.iter().copied().find(|&n| n != 1).unwrap_or(1)
}

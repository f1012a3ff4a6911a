//! Reductions: an accumulator takes the terms in ascending order and gives the set of admissible results.
//!
//! Float sums and products of free order have rooms of their own: `sum`, `prod`; `argmax` and `argmin` are in `winner`.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Order, Reduction};

use tilewright_kernel::online::Chain;

use super::arith::{self, limits};
use super::column::{Column, Range};
use super::interval::Format;
use super::prod::Prod;
use super::sum::Sums;
use super::winner::Arg;

/// The running results of one reduction at a number of points.
pub(super) enum Accumulator {
    Sum(Sums),
    Prod(Vec<Prod>, Format),
    /// Terms one after the other.
    Ordered {
        product: bool,
        element: ElementType,
        value: Column,
    },
    /// Max, min, and every reduction of integers and booleans: exact in any order.
    Exact {
        op: Reduction,
        element: ElementType,
        value: Column,
    },
    Arg {
        points: Vec<Arg>,
        largest: bool,
    },
}

/// Terms of a reduction.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    /// Their values.
    pub column: &'a Column,
    /// The magnitudes with which those of a `dot` count (see [`tilewright_kernel::dot`]).
    pub sizes: Option<&'a [f64]>,
    /// What the exponentials of an online sum are multiplied with; magnitudes, or weights, of one of squares.
    pub weights: Option<&'a [f64]>,
    /// The magnitudes of what has weights.
    pub spread: Option<&'a [f64]>,
}

/// How the points of a column map to those of an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    /// Entry i belongs to point i.
    Points,
    /// All entries are terms of the one point there is, in ascending order.
    Terms,
}

impl Accumulator {
    /// For `points` results; `None` if the type does not have the reduction. No term of a float sum goes through more
    /// `additions`, if that is known.
    pub(super) fn new(
        op: Reduction,
        order: Order,
        (chain, additions): (Option<&Chain>, Option<u64>),
        element: ElementType,
        points: usize,
    ) -> Option<Self> {
        let format = Format::of(element);
        if element.is_float() && format.is_none() {
            return None;
        }
        Some(match (op, format) {
            (Reduction::ArgMax | Reduction::ArgMin, _) => {
                Self::Arg { points: vec![Arg::default(); points], largest: op == Reduction::ArgMax }
            }
            (Reduction::Sum | Reduction::Prod, Some(_)) if order == Order::Ordered => {
                let product = op == Reduction::Prod;
                Self::Ordered { product, element, value: Column::Float(vec![if product { 1.0 } else { 0.0 }; points]) }
            }
            (Reduction::Sum, Some(format)) => {
                Self::Sum(Sums::new(points, (format, element), (order, chain), additions))
            }
            (Reduction::Prod, Some(format)) => Self::Prod(vec![Prod::default(); points], format),
            (Reduction::Max, Some(_)) => Self::exact(op, element, Column::Float(vec![f64::NEG_INFINITY; points])),
            (Reduction::Min, Some(_)) => Self::exact(op, element, Column::Float(vec![f64::INFINITY; points])),
            (Reduction::All | Reduction::Any, Some(_)) => return None,
            (_, None) => {
                let (least, greatest) = limits(element);
                let identity = match op {
                    Reduction::Sum | Reduction::Any => 0,
                    Reduction::Prod | Reduction::All => 1,
                    Reduction::Max => least,
                    _ => greatest,
                };
                Self::exact(op, element, Column::Int(vec![identity; points]))
            }
        })
    }

    fn exact(op: Reduction, element: ElementType, value: Column) -> Self {
        Self::Exact { op, element, value }
    }

    /// Takes one term a point (or all of a column's entries as terms of the one point), where `active` says so.
    /// `position` is the index of the term, of the first one if there are several.
    pub(super) fn take(&mut self, all: Terms<'_>, along: Along, count: usize, position: i64, active: Option<&[bool]>) {
        let is_active = |i: usize| active.is_none_or(|a| a[i]);
        let terms = all.column;
        match self {
            Self::Sum(sums) => sums.take(all, along, count, active),
            Self::Prod(products, format) => {
                for i in (0..count).filter(|&i| is_active(i)) {
                    products[if along == Along::Points { i } else { 0 }].take(terms.interval(i), *format);
                }
            }
            Self::Arg { points, largest } => {
                for i in (0..count).filter(|&i| is_active(i)) {
                    let (point, at) = if along == Along::Points { (i, position) } else { (0, position + i as i64) };
                    points[point].take(at, terms, i, *largest);
                }
            }
            Self::Ordered { .. } | Self::Exact { .. } => self.step(terms, along, count, active),
        }
    }

    /// One more term (or several) of a reduction that is evaluated from the left.
    fn step(&mut self, terms: &Column, along: Along, count: usize, active: Option<&[bool]>) {
        let op = self.operation();
        let (Self::Ordered { element, value, .. } | Self::Exact { element, value, .. }) = self else { return };
        let points = value.len();
        // These operations exist for every type that `new` accepted.
        let next = |value: &Column, term: &Column| {
            arith::binary(op, *element, value, term, arith::Widen::No).unwrap_or_else(|_| value.clone())
        };
        match (along, active) {
            (Along::Points, None) => *value = next(value, terms),
            (Along::Points, Some(active)) => *value = next(value, terms).choose(value, points, |i| Some(active[i])),
            (Along::Terms, None) if terms.len() == count && terms.is_exact() && value.is_exact() => {
                if let Some(result) = arith::chain(op, *element, value, terms) {
                    *value = result;
                }
            }
            (Along::Terms, _) => {
                for i in (0..count).filter(|&i| active.is_none_or(|a| a[i])) {
                    *value = next(value, &terms.only(i));
                }
            }
        }
    }

    fn operation(&self) -> Binary {
        match self {
            Self::Ordered { product: true, .. } | Self::Exact { op: Reduction::Prod, .. } => Binary::Mul,
            Self::Exact { op: Reduction::Max, .. } => Binary::Max,
            Self::Exact { op: Reduction::Min, .. } => Binary::Min,
            Self::Exact { op: Reduction::All, .. } => Binary::And,
            Self::Exact { op: Reduction::Any, .. } => Binary::Or,
            _ => Binary::Add,
        }
    }

    /// The admissible results; an error message where there is none.
    pub(super) fn finish(self) -> Result<Column, String> {
        Ok(match self {
            Self::Sum(sums) => sums.finish(),
            Self::Prod(products, format) => Column::from_intervals(products.iter().map(|p| p.finish(format)).collect()),
            Self::Ordered { value, .. } | Self::Exact { value, .. } => value,
            Self::Arg { points, .. } => {
                let each: Option<Vec<Range>> = points.iter().map(Arg::finish).collect();
                Column::from_ranges(each.ok_or_else(|| "argmax or argmin of no elements".to_owned())?)
            }
        })
    }
}

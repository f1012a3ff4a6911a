//! Comparisons of columns; the result is `bool`, or both where sets of values allow both.

use tilewright_kernel::algorithm::Compare;

use crate::reference::column::{Column, Range, joint, map2};
use crate::reference::interval::Interval;

/// Compares two columns of one type; the result is `bool`.
pub(in crate::reference) fn compare(op: Compare, a: &Column, b: &Column) -> Column {
    match (a, b) {
        (Column::Float(a), Column::Float(b)) => Column::Int(map2(a, b, |x, y| i128::from(holds(op, x, y)))),
        (Column::Int(a), Column::Int(b)) => Column::Int(map2(a, b, |x, y| i128::from(holds(op, x, y)))),
        (Column::Float(_) | Column::FloatSets(_), _) => {
            let one = |a: Interval, b: Interval| {
                let (nan, only_nan) = (a.nan || b.nan, a.is_empty() || b.is_empty());
                let numbers = if only_nan { None } else { decide(op, a.lo, a.hi, b.lo, b.hi) };
                let with_nan = op == Compare::Ne;
                match numbers {
                    _ if only_nan => Some(with_nan),
                    Some(answer) if !nan || answer == with_nan => Some(answer),
                    _ => None,
                }
            };
            answers(joint(&[a.len(), b.len()]), |i| one(a.interval(i), b.interval(i)))
        }
        _ => answers(joint(&[a.len(), b.len()]), |i| {
            let (a, b) = (a.range(i), b.range(i));
            decide(op, a.lo, a.hi, b.lo, b.hi)
        }),
    }
}

fn answers(points: usize, one: impl Fn(usize) -> Option<bool>) -> Column {
    let range = |answer: Option<bool>| answer.map_or(Range::between(0, 1), |a| Range::exact(i128::from(a)));
    Column::from_ranges((0..points).map(|i| range(one(i))).collect())
}

/// Whether two numbers stand in a relation; false for NaN, except `Ne`.
fn holds<T: PartialOrd>(op: Compare, x: T, y: T) -> bool {
    match op {
        Compare::Eq => x == y,
        Compare::Ne => x != y,
        Compare::Lt => x < y,
        Compare::Le => x <= y,
        Compare::Gt => x > y,
        Compare::Ge => x >= y,
    }
}

/// Whether all (or no) numbers of two intervals stand in a relation.
fn decide<T: PartialOrd>(op: Compare, a: T, b: T, c: T, d: T) -> Option<bool> {
    let decided = |yes: bool, no: bool| {
        if yes {
            Some(true)
        } else if no {
            Some(false)
        } else {
            None
        }
    };
    match op {
        Compare::Lt => decided(b < c, a >= d),
        Compare::Le => decided(b <= c, a > d),
        Compare::Gt => decided(a > d, b <= c),
        Compare::Ge => decided(a >= d, b < c),
        Compare::Eq => decided(a == b && c == d && a == c, b < c || a > d),
        Compare::Ne => decided(b < c || a > d, a == b && c == d && a == c),
    }
}

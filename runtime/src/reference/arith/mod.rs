//! Operations on columns: each rounds once to its type.
//!
//! Rounding is monotone, so the rounded results of an operation that is monotone in each operand lie between the
//! rounded results at the ends; no outward rounding is needed. A fold whose order is free needs wider ones: see
//! [`Widen`]. Comparisons are in `compare`, integers in `integer`.

mod compare;
mod integer;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Unary};

use super::column::{Column, Range, joint, map, map2};
use super::interval::{Format, Interval, greater, less};
use super::math;
use integer::{int_binary, range_binary};

pub(super) use compare::compare;
pub(super) use integer::{limits, wrap};

/// Why an operation has no result.
pub(super) enum Undefined {
    /// The type does not have the operation, or the host does not have the type.
    Unsupported(String),
    /// An integer division by zero at an active point.
    DivisionByZero,
}

/// What the result of an operation holds beside the rounded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Widen {
    /// Nothing.
    No,
    /// The unrounded value.
    Rounded,
    /// Its neighbours, also where nothing was rounded: as if other terms had stood there.
    Loose,
}

/// Applies `op` to two columns of type `element`.
pub(super) fn binary(
    op: Binary,
    element: ElementType,
    a: &Column,
    b: &Column,
    widen: Widen,
) -> Result<Column, Undefined> {
    let unsupported = || Undefined::Unsupported(format!("{op:?} of {element}"));
    if element.is_float() {
        let format = Format::of(element).ok_or_else(unsupported)?;
        return match (a, b) {
            (Column::Float(a), Column::Float(b)) if widen == Widen::No => {
                float_binary(op, format, a, b).map(Column::Float).ok_or_else(unsupported)
            }
            _ => {
                let points = joint(&[a.len(), b.len()]);
                let each = (0..points).map(|i| interval_binary(op, format, a.interval(i), b.interval(i), widen));
                each.collect::<Option<Vec<_>>>().map(Column::from_intervals).ok_or_else(unsupported)
            }
        };
    }
    match (a, b) {
        (Column::Int(a), Column::Int(b)) => {
            let int = |x, y| int_binary(op, element, x, y);
            let all: Result<Vec<i128>, Undefined> = map2(a, b, int).into_iter().collect();
            all.map(Column::Int)
        }
        _ => {
            let points = joint(&[a.len(), b.len()]);
            let each = (0..points).map(|i| range_binary(op, element, &a.range(i), &b.range(i)));
            each.collect::<Result<Vec<_>, _>>().map(Column::from_ranges)
        }
    }
}

fn float_binary(op: Binary, format: Format, a: &[f64], b: &[f64]) -> Option<Vec<f64>> {
    // One loop per operation and format, so that each is vectorised.
    macro_rules! each_format {
        ($op:tt) => {
            match format {
                Format::F64 => map2(a, b, |x, y| x $op y),
                Format::F32 => map2(a, b, |x, y| f64::from(x as f32 $op y as f32)),
                _ => map2(a, b, |x, y| format.operate(|| x $op y, || x as f32 $op y as f32)),
            }
        };
    }
    Some(match op {
        Binary::Add => each_format!(+),
        Binary::Sub => each_format!(-),
        Binary::Mul => each_format!(*),
        Binary::Div => each_format!(/),
        Binary::Max => map2(a, b, max),
        Binary::Min => map2(a, b, min),
        Binary::MaxNum => map2(a, b, |x, y| {
            if x.is_nan() {
                y
            } else if y.is_nan() {
                x
            } else {
                greater(x, y)
            }
        }),
        Binary::MinNum => map2(a, b, |x, y| {
            if x.is_nan() {
                y
            } else if y.is_nan() {
                x
            } else {
                less(x, y)
            }
        }),
        Binary::Rem | Binary::And | Binary::Or | Binary::Xor | Binary::Shl | Binary::Shr => return None,
    })
}

/// Larger; NaN if either is NaN.
pub(super) fn max(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { greater(x, y) }
}

/// Smaller; NaN if either is NaN.
pub(super) fn min(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { less(x, y) }
}

fn interval_binary(op: Binary, format: Format, a: Interval, b: Interval, widen: Widen) -> Option<Interval> {
    let nan = a.nan || b.nan;
    let result = match op {
        Binary::MaxNum | Binary::MinNum => {
            let both = |f: fn(f64, f64) -> f64| Interval::between(f(a.lo, b.lo), f(a.hi, b.hi));
            let both = if op == Binary::MaxNum { both(greater) } else { both(less) };
            let numbers = match (a.is_empty(), b.is_empty()) {
                (false, false) => both.hull(if a.nan { b } else { both }).hull(if b.nan { a } else { both }),
                (true, _) => b,
                (_, true) => a,
            };
            return Some(Interval { nan: a.nan && b.nan, ..numbers });
        }
        _ if a.is_empty() || b.is_empty() => return Some(Interval::NAN),
        Binary::Max => Interval::between(greater(a.lo, b.lo), greater(a.hi, b.hi)),
        Binary::Min => Interval::between(less(a.lo, b.lo), less(a.hi, b.hi)),
        Binary::Add => sum(format, a, b, widen),
        Binary::Sub => sum(format, a, Interval { lo: -b.hi, hi: -b.lo, nan: b.nan }, widen),
        Binary::Mul => {
            let nan = a.has_zero() && b.has_infinity() || b.has_zero() && a.has_infinity();
            let zero = nan && annihilates(a, b);
            let at =
                |x: f64, y: f64| rounding(format, x * y, || x as f32 * y as f32, || is_product(x, y, x * y), widen);
            corners(a, b, at).or_zero(zero).or_nan(nan)
        }
        Binary::Div if b.has_zero() && !(b.lo == 0.0 && b.single().is_some()) => {
            Interval::between(f64::NEG_INFINITY, f64::INFINITY)
                .or_nan(a.has_zero() || a.has_infinity() && b.has_infinity())
        }
        Binary::Div => {
            let nan = a.has_zero() && b.has_zero() || a.has_infinity() && b.has_infinity();
            // A number over infinity, where all corners are ∞ / ∞.
            let zero = nan && a.has_number() && b.has_infinity();
            let at =
                |x: f64, y: f64| rounding(format, x / y, || x as f32 / y as f32, || is_product(x / y, y, x), widen);
            corners(a, b, at).or_zero(zero).or_nan(nan)
        }
        Binary::Rem | Binary::And | Binary::Or | Binary::Xor | Binary::Shl | Binary::Shr => return None,
    };
    Some(result.or_nan(nan))
}

/// The rounded result, widened: the error of the unrounded one, an f64, is covered by a step outwards.
///
/// `is_exact` says whether the f64 itself is: of a smaller type it is seen from the f64.
pub(super) fn rounding(
    format: Format,
    wide: f64,
    single: impl Fn() -> f32,
    is_exact: impl Fn() -> bool,
    widen: Widen,
) -> Interval {
    let rounded = format.operate(|| wide, single);
    if rounded.is_nan() {
        return Interval::NAN;
    }
    let exact = widen == Widen::Rounded && if format == Format::F64 { is_exact() } else { rounded == wide };
    if widen == Widen::No || exact {
        return Interval::between(rounded, rounded);
    }
    let (lo, hi) = (less(rounded, wide), greater(rounded, wide));
    Interval::between(lo - format.ulp(lo), hi + format.ulp(hi))
}

/// Whether x + y is exactly `sum`, the rounded one: Knuth's two-sum.
fn is_sum(x: f64, y: f64, sum: f64) -> bool {
    let virtual_y = sum - x;
    (x - (sum - virtual_y)) + (y - virtual_y) == 0.0
}

/// Whether x·y is exactly `product`: the fused operation rounds the difference once, unless that is too small to be
/// told from 0.
fn is_product(x: f64, y: f64, product: f64) -> bool {
    x.mul_add(y, -product) == 0.0 && (x == 0.0 || y == 0.0 || product.abs() > 1e-290)
}

fn sum(format: Format, a: Interval, b: Interval, widen: Widen) -> Interval {
    let at = |x: f64, y: f64| rounding(format, x + y, || x as f32 + y as f32, || is_sum(x, y, x + y), widen);
    let (low, high) = (at(a.lo, b.lo), at(a.hi, b.hi));
    // An end that is ∞ − ∞: one operand is that infinity alone, and with it every other sum is infinite.
    let lo = if low.is_empty() { f64::INFINITY } else { low.lo };
    let hi = if high.is_empty() { f64::NEG_INFINITY } else { high.hi };
    let opposite = |x: Interval, y: Interval| x.hi == f64::INFINITY && y.lo == f64::NEG_INFINITY;
    Interval { lo, hi, nan: opposite(a, b) || opposite(b, a) }
}

/// Whether 0 is a product of a finite number and 0. At the corners it may only be seen as 0 · ∞.
fn annihilates(a: Interval, b: Interval) -> bool {
    a.has_zero() && b.has_number() || b.has_zero() && a.has_number()
}

/// The hull of the results at the four corners; a corner that is NaN adds nothing to the numbers.
fn corners(a: Interval, b: Interval, f: impl Fn(f64, f64) -> Interval) -> Interval {
    let all = [f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)];
    let numbers = all.into_iter().filter(|c| !c.is_empty()).reduce(Interval::hull);
    numbers.map_or(Interval::NAN, |n| Interval { nan: false, ..n })
}

/// `init op t₀ op t₁ …` from the left, for exact columns whose entries are all terms of one result.
pub(super) fn chain(op: Binary, element: ElementType, init: &Column, terms: &Column) -> Option<Column> {
    match (init, terms) {
        (Column::Float(init), Column::Float(terms)) => {
            let (format, init) = (Format::of(element)?, *init.first()?);
            let all = terms.iter();
            Some(Column::Float(vec![match op {
                Binary::Max => all.fold(init, |a, &x| max(a, x)),
                Binary::Min => all.fold(init, |a, &x| min(a, x)),
                Binary::Add => all.fold(init, |a, &x| format.operate(|| a + x, || a as f32 + x as f32)),
                Binary::Mul => all.fold(init, |a, &x| format.operate(|| a * x, || a as f32 * x as f32)),
                _ => return None,
            }]))
        }
        (Column::Int(init), Column::Int(terms)) => {
            let init = *init.first()?;
            let step = |a: i128, &x: &i128| int_binary(op, element, a, x).ok();
            terms.iter().try_fold(init, step).map(|value| Column::Int(vec![value]))
        }
        _ => None,
    }
}

/// a·b in f64, not rounded further.
pub(super) fn product(a: Interval, b: Interval) -> Interval {
    interval_binary(Binary::Mul, Format::F64, a, b, Widen::No).unwrap_or(Interval::ALL)
}

/// a·a, which unlike a product of two values is never negative.
pub(super) fn square(element: ElementType, a: &Column, widen: Widen) -> Result<Column, Undefined> {
    let Some(format) = Format::of(element).filter(|_| widen != Widen::No || !a.is_exact()) else {
        return binary(Binary::Mul, element, a, a, widen);
    };
    let one = |x: Interval| {
        if x.is_empty() {
            return Interval::NAN;
        }
        let at = |x: f64| rounding(format, x * x, || x as f32 * x as f32, || is_product(x, x, x * x), widen);
        let ends = at(x.lo).hull(at(x.hi));
        let lo = if x.has_zero() { 0.0 } else { ends.lo.max(0.0) };
        Interval { lo, ..ends }.or_nan(x.nan)
    };
    Ok(Column::from_intervals((0..a.len()).map(|i| one(a.interval(i))).collect()))
}

/// a·b + c, rounded once.
pub(super) fn fma(element: ElementType, a: &Column, b: &Column, c: &Column, widen: Widen) -> Result<Column, Undefined> {
    let unsupported = || Undefined::Unsupported(format!("fma of {element}"));
    let format = Format::of(element).ok_or_else(unsupported)?;
    let points = joint(&[a.len(), b.len(), c.len()]);
    let exact = |x: f64, y: f64, z: f64| format.operate(|| x.mul_add(y, z), || (x as f32).mul_add(y as f32, z as f32));
    if let (Column::Float(a), Column::Float(b), Column::Float(c), Widen::No) = (a, b, c, widen) {
        let at = super::column::pick::<f64>;
        return Ok(Column::Float((0..points).map(|i| exact(at(a, i), at(b, i), at(c, i))).collect()));
    }
    let one = |a: Interval, b: Interval, c: Interval| {
        if a.is_empty() || b.is_empty() || c.is_empty() {
            return Interval::NAN;
        }
        let at = |z: f64| {
            let single = |x: f64, y: f64| (x as f32).mul_add(y as f32, z as f32);
            corners(a, b, |x, y| rounding(format, x.mul_add(y, z), || single(x, y), || false, widen))
        };
        let product_nan = a.has_zero() && b.has_infinity() || b.has_zero() && a.has_infinity();
        let product_infinite = a.has_infinity() || b.has_infinity() || {
            // The product of finite numbers overflows only in f64, and then it may meet an infinite c.
            corners(a, b, |x, y| Interval::exact(x * y)).has_infinity()
        };
        let nan = a.nan || b.nan || c.nan || product_nan || product_infinite && c.has_infinity();
        if product_infinite && c.has_infinity() {
            return Interval::ALL;
        }
        let sums = at(c.lo).hull(at(c.hi)).or_nan(nan);
        // 0 + c
        if product_nan && annihilates(a, b) { sums.hull(Interval::between(c.lo, c.hi)) } else { sums }
    };
    let each = (0..points).map(|i| one(a.interval(i), b.interval(i), c.interval(i)));
    Ok(Column::from_intervals(each.collect()))
}

/// Applies `op` to a column of type `element`.
pub(super) fn unary(op: Unary, element: ElementType, a: &Column, widen: Widen) -> Result<Column, Undefined> {
    let unsupported = || Undefined::Unsupported(format!("{op:?} of {element}"));
    if !element.is_float() {
        let one = |x: i128| -> Option<i128> {
            Some(match op {
                Unary::Neg => wrap(element, -x),
                Unary::Not if element == ElementType::Bool => 1 - x,
                Unary::Not => wrap(element, !x),
                Unary::Abs => wrap(element, x.abs()),
                _ => return None,
            })
        };
        return match a {
            Column::Int(a) => map(a, one).into_iter().collect::<Option<_>>().map(Column::Int).ok_or_else(unsupported),
            _ => {
                // Negation and complement turn the ends around; where one wraps, everything is possible.
                let (least, greatest) = limits(element);
                let range = |r: Range| -> Option<Range> {
                    let (x, y) = (one(r.lo)?, one(r.hi)?);
                    let wraps = r.lo == least && op != Unary::Not || op == Unary::Neg && least == 0 && r.hi != 0;
                    let lo = if op == Unary::Abs && r.lo < 0 && r.hi > 0 { 0 } else { x.min(y) };
                    Some(if wraps { Range::between(least, greatest) } else { Range::between(lo, x.max(y)) })
                };
                let each: Option<Vec<Range>> = (0..a.len()).map(|i| range(a.range(i))).collect();
                each.map(Column::from_ranges).ok_or_else(unsupported)
            }
        };
    }
    let format = Format::of(element).ok_or_else(unsupported)?;
    // Exact operations stay exact.
    if let Column::Float(values) = a {
        let exact = match op {
            Unary::Neg => Some(map(values, |x| -x)),
            Unary::Abs => Some(map(values, f64::abs)),
            Unary::Sqrt if widen == Widen::No => {
                Some(map(values, |x| format.operate(|| x.sqrt(), || (x as f32).sqrt())))
            }
            _ => op.rounding().map(|round| map(values, round)),
        };
        if let Some(exact) = exact {
            return Ok(Column::Float(exact));
        }
    }
    // The accurate functions give the same bits everywhere.
    let exact = |x: f64| if widen != Widen::No { None } else { math::exact(op, format, x) };
    if let Column::Float(values) = a
        && let Some(results) = values.iter().map(|x| exact(*x)).collect()
    {
        return Ok(Column::Float(results));
    }
    let one = |x: Interval| -> Option<Interval> {
        if x.is_empty() {
            return Some(Interval::NAN);
        }
        if let Some(y) = x.single().and_then(exact) {
            return Some(Interval::exact(y));
        }
        let monotone = |f: &math::Ends<'_>| f(x.lo).hull(f(x.hi));
        let result = match op {
            Unary::Neg => Interval::between(-x.hi, -x.lo),
            Unary::Abs if x.lo <= 0.0 && x.hi >= 0.0 => Interval::between(0.0, greater(-x.lo, x.hi)),
            Unary::Abs => Interval::between(x.lo.abs().min(x.hi.abs()), x.lo.abs().max(x.hi.abs())),
            Unary::Sqrt if x.hi < 0.0 => Interval::NAN,
            Unary::Sqrt => {
                let root = |x: f64| rounding(format, x.sqrt(), || (x as f32).sqrt(), || false, widen);
                let low = Interval { lo: if x.lo < 0.0 { -0.0 } else { x.lo }, ..x };
                root(low.lo).hull(root(low.hi)).clamp(-0.0, f64::INFINITY).or_nan(x.lo < 0.0)
            }
            Unary::Not => return None,
            _ => match op.rounding() {
                Some(round) => Interval::between(round(x.lo), round(x.hi)),
                None => math::function(op, format, x, &monotone)?,
            },
        };
        Some(result.or_nan(x.nan))
    };
    let each: Option<Vec<Interval>> = (0..a.len()).map(|i| one(a.interval(i))).collect();
    each.map(Column::from_intervals).ok_or_else(unsupported)
}

/// Converts a column between element types, as Rust's `as`.
pub(super) fn cast(from: ElementType, to: ElementType, a: &Column, widen: Widen) -> Result<Column, Undefined> {
    let unsupported = || Undefined::Unsupported(format!("conversion from {from} to {to}"));
    if from == to {
        return Ok(a.clone());
    }
    if to.is_float() {
        let format = Format::of(to).ok_or_else(unsupported)?;
        let int = |x: i128| format.round_integer(x);
        let narrow = |x: f64| format.round(x);
        return Ok(match a {
            Column::Float(a) if widen == Widen::No => Column::Float(map(a, narrow)),
            Column::Int(a) => Column::Float(map(a, int)),
            Column::Float(_) | Column::FloatSets(_) => {
                let one = |x: Interval| {
                    if x.is_empty() {
                        return Interval::NAN;
                    }
                    let ends = Interval::between(narrow(x.lo), narrow(x.hi)).or_nan(x.nan);
                    if widen == Widen::No { ends } else { ends.hull(x) }
                };
                Column::from_intervals((0..a.len()).map(|i| one(a.interval(i))).collect())
            }
            Column::IntSets(a) => {
                Column::from_intervals(a.iter().map(|r| Interval::between(int(r.lo), int(r.hi))).collect())
            }
        });
    }
    let (least, greatest) = limits(to);
    let saturate = |x: f64| if x.is_nan() { 0 } else { (x as i128).clamp(least, greatest) };
    Ok(match a {
        Column::Float(a) => Column::Int(map(a, saturate)),
        Column::FloatSets(a) => Column::from_ranges(
            a.iter()
                .map(|x| match (x.is_empty(), x.nan) {
                    (true, _) => Range::exact(0),
                    (false, true) => Range::between(saturate(x.lo).min(0), saturate(x.hi).max(0)),
                    (false, false) => Range::between(saturate(x.lo), saturate(x.hi)),
                })
                .collect(),
        ),
        Column::Int(a) => Column::Int(map(a, |x| wrap(to, x))),
        Column::IntSets(a) => Column::from_ranges(
            a.iter()
                .map(|r| if r.lo >= least && r.hi <= greatest { r.clone() } else { Range::between(least, greatest) })
                .collect(),
        ),
    })
}

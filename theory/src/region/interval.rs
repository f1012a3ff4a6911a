//! The region of a tensor that one instance of a staged copy must hold: along each axis an interval that starts at an
//! expression of the loops around the instance and has a length known at compile time.
//!
//! **Property.** Every position that the reader asks for, for every value of the loops inside, lies in the interval.
//! **Formula.** An index is a sum of terms; a term over loops outside moves the start, a term over loops inside spans
//! an interval of constants. A quotient of both, ⌊(o + n) / d⌋ with n in [a, b], starts at ⌊(o + a) / d⌋ and spans
//! ⌊(r + b − a) / d⌋ + 1 positions, where r is the largest remainder that o + a can leave: d − g + (c mod g) for a
//! constant part c and the divisor g that d and all other coefficients of o share. A remainder e − d⌊e / d⌋, which
//! stands in a sum as two terms, is taken for what it is: it lies in [0, d). The same holds for ⌊e / q⌋ − m⌊e / qm⌋,
//! the digits of merged axes. A sum of loops that is an axis of the schedule ends where that axis does, since a
//! predicate keeps away what is past it. **Approximation.** Otherwise terms are taken one by one, so that terms which
//! cancel make the interval wider, never narrower; every remainder is taken to occur.

use crate::extent::{Atom, Expr, Facts, Term, Var, gcd};

/// A loop inside the attach point: a variable and the most iterations it has.
#[derive(Clone, Copy, Debug)]
pub struct Inner {
    /// The variable.
    pub var: Var,
    /// Iterations, from 0; at least 1.
    pub extent: i128,
}

/// A sum of loops inside that lies in `0..extent` wherever something is asked for: an axis whose end a predicate
/// guards.
#[derive(Clone, Debug)]
pub struct Sum {
    /// The axis, over loops inside.
    pub value: Expr,
    /// Its extent.
    pub extent: i128,
}

/// What is inside the attach point.
#[derive(Clone, Copy, Debug)]
pub struct Inside<'a> {
    /// The loops.
    pub loops: &'a [Inner],
    /// What is known of sums of them.
    pub sums: &'a [Sum],
}

/// Positions `start … start + extent − 1` along one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The first one, over dimensions and loops outside the attach point.
    pub start: Expr,
    /// How many; at least 1.
    pub extent: i128,
}

/// Why a set of positions is not such an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotATile {
    /// The index is read from memory, or was lost.
    Unknown,
    /// A loop inside moves the index by an amount that is known at launch only.
    SymbolicStep(Var),
    /// Two reads are apart by an amount that is known at launch only: their starts.
    Apart(Box<[Expr; 2]>),
    /// The length passes what can be counted.
    TooLong,
    /// An index mentions a variable that is no loop of its reader.
    Unlisted(Var),
    /// The elements are no run in row-major order.
    NotFlat,
}

/// Most remainders that are looked for in one index.
const REMAINDERS: u32 = 6;

/// What a part of an index spans: a start and the offsets from it, both ends included.
struct Span {
    start: Expr,
    low: i128,
    high: i128,
}

/// The positions of `index` over all values of the loops inside.
///
/// # Errors
/// An index whose positions have no static extent.
pub fn interval(index: &Expr, inside: Inside<'_>, facts: &Facts) -> Result<Interval, NotATile> {
    if index.is_unknown() {
        return Err(NotATile::Unknown);
    }
    let span = span(index, inside, REMAINDERS)?;
    let extent = span.high.checked_sub(span.low).and_then(|w| w.checked_add(1)).ok_or(NotATile::TooLong)?;
    Ok(Interval { start: facts.normal(&span.start.add(&Expr::constant(span.low))), extent })
}

/// The narrowest span over all ways to read pairs of terms as remainders, and sums of terms as axes.
fn span(index: &Expr, inside: Inside<'_>, remainders: u32) -> Result<Span, NotATile> {
    let mut best = digits(index, inside, remainders);
    let counted = |e: &Expr| {
        let mentioned = |t: &&Term| mentions(&Expr::from_atoms(&t.atoms), inside.loops).is_some();
        e.terms().iter().filter(mentioned).cloned().collect::<Vec<Term>>()
    };
    for (at, sum) in inside.sums.iter().enumerate() {
        let parts = counted(&sum.value);
        let (Some(part), terms) = (parts.first(), counted(index)) else { continue };
        let same = terms.iter().find(|t| t.atoms == part.atoms && t.coefficient % part.coefficient == 0);
        let Some(k) = same.map(|t| t.coefficient / part.coefficient) else { continue };
        let rest = index.sub(&sum.value.scale(k));
        if counted(&rest).len() + parts.len() > terms.len() {
            continue;
        }
        let others = Inside { sums: &inside.sums[at + 1..], ..inside };
        let (Ok(rest), Some(end)) = (span(&rest, others, remainders), k.checked_mul(sum.extent - 1)) else { continue };
        let (Some(low), Some(high)) = (rest.low.checked_add(end.min(0)), rest.high.checked_add(end.max(0))) else {
            continue;
        };
        if best.as_ref().is_ok_and(|b| b.high - b.low <= high - low) {
            continue;
        }
        best = Ok(Span { start: rest.start, low, high });
    }
    best
}

/// The narrowest span over all ways to read pairs of terms as remainders.
fn digits(index: &Expr, inside: Inside<'_>, remainders: u32) -> Result<Span, NotATile> {
    let mut best = term_by_term(index, inside, remainders);
    for term in index.terms().iter().filter(|_| remainders > 0) {
        let [Atom::Quotient { of, by }] = &term.atoms[..] else { continue };
        let Some(by) = by.as_constant().filter(|by| *by > 0) else { continue };
        if mentions(of, inside.loops).is_none() {
            continue;
        }
        // A digit of `of`: ⌊of / q⌋ mod m with q·m = by, where ⌊of / by⌋ = ⌊⌊of / q⌋ / m⌋ is this term.
        let own = |other: &Term| match &other.atoms[..] {
            [Atom::Quotient { of: same, by: q }] if same == of => q.as_constant().filter(|q| *q < by && by % q == 0),
            _ => None,
        };
        for q in std::iter::once(1).chain(index.terms().iter().filter_map(own)) {
            let m = by / q;
            if term.coefficient % m != 0 {
                continue;
            }
            let shifted = of.floor_div(&Expr::constant(q));
            // The rest of index = rest + k·(⌊of / q⌋ mod m).
            let k = -term.coefficient / m;
            let rest = index.sub(&shifted.sub(&Expr::from_atoms(&term.atoms).scale(m)).scale(k));
            let Ok(rest) = span(&rest, inside, remainders - 1) else { continue };
            let digit = remainder(&shifted, m, inside, remainders - 1);
            let (a, b) = (k * digit.0, k * digit.1);
            let found = Span { start: rest.start, low: rest.low + a.min(b), high: rest.high + a.max(b) };
            if best.as_ref().is_ok_and(|b| b.high - b.low <= found.high - found.low) {
                continue;
            }
            best = Ok(found);
        }
    }
    best
}

/// The least and the greatest value of e mod d.
fn remainder(e: &Expr, d: i128, inside: Inside<'_>, remainders: u32) -> (i128, i128) {
    if let Ok(span) = span(e, inside, remainders)
        && let Some(start) = span.start.as_constant()
    {
        let (low, high) = (start + span.low, start + span.high);
        if low.div_euclid(d) == high.div_euclid(d) {
            return (low.rem_euclid(d), high.rem_euclid(d));
        }
    }
    (0, d - 1)
}

fn term_by_term(index: &Expr, inside: Inside<'_>, remainders: u32) -> Result<Span, NotATile> {
    let mut sum = Span { start: Expr::constant(index.constant_term()), low: 0, high: 0 };
    for term in index.terms().iter().filter(|t| !t.atoms.is_empty()) {
        let part = term_span(term, inside, remainders)?;
        sum.start = sum.start.add(&part.start);
        sum.low = sum.low.checked_add(part.low).ok_or(NotATile::TooLong)?;
        sum.high = sum.high.checked_add(part.high).ok_or(NotATile::TooLong)?;
    }
    Ok(sum)
}

/// The first loop inside that an expression mentions.
fn mentions<'a>(e: &Expr, inner: &'a [Inner]) -> Option<&'a Inner> {
    let vars = e.vars();
    inner.iter().find(|i| vars.contains(&i.var))
}

fn term_span(term: &Term, inside: Inside<'_>, remainders: u32) -> Result<Span, NotATile> {
    let whole = Expr::from_atoms(&term.atoms).scale(term.coefficient);
    let Some(first) = mentions(&whole, inside.loops) else { return Ok(Span { start: whole, low: 0, high: 0 }) };
    let step = NotATile::SymbolicStep(first.var);
    let [atom] = &term.atoms[..] else { return Err(step) };
    let base = match atom {
        Atom::Var(var) => {
            let extent = inside.loops.iter().find(|i| i.var == *var).map_or(1, |i| i.extent);
            Span { start: Expr::constant(0), low: 0, high: extent - 1 }
        }
        Atom::Positive { of } => {
            let of = span(of, inside, remainders)?;
            let width = of.high.checked_sub(of.low).ok_or(NotATile::TooLong)?;
            Span { start: of.start.add(&Expr::constant(of.low)).positive(), low: 0, high: width }
        }
        Atom::Quotient { of, by } => {
            let by = by.as_constant().filter(|by| *by > 0).ok_or(step)?;
            let of = span(of, inside, remainders)?;
            let from = of.start.add(&Expr::constant(of.low));
            let width = of.high.checked_sub(of.low).ok_or(NotATile::TooLong)?;
            match from.as_constant() {
                Some(from) => {
                    let (low, high) = (from.div_euclid(by), (from + width).div_euclid(by));
                    Span { start: Expr::constant(0), low, high }
                }
                None => {
                    let shared = from.terms().iter().filter(|t| !t.atoms.is_empty());
                    let shared = shared.fold(by, |g, t| gcd(g, t.coefficient));
                    let worst = by - shared + from.constant_term().rem_euclid(shared);
                    let high = worst.checked_add(width).ok_or(NotATile::TooLong)?.div_euclid(by);
                    Span { start: from.floor_div(&Expr::constant(by)), low: 0, high }
                }
            }
        }
    };
    let scaled = |v: i128| v.checked_mul(term.coefficient).ok_or(NotATile::TooLong);
    let (a, b) = (scaled(base.low)?, scaled(base.high)?);
    Ok(Span { start: base.start.scale(term.coefficient), low: a.min(b), high: a.max(b) })
}

/// The smallest interval that covers both.
///
/// # Errors
/// Starts whose distance is not a constant.
pub fn hull(a: &Interval, b: &Interval, facts: &Facts) -> Result<Interval, NotATile> {
    let distance = facts.normal(&b.start.sub(&a.start));
    let Some(distance) = distance.as_constant() else {
        return Err(NotATile::Apart(Box::new([a.start.clone(), b.start.clone()])));
    };
    let end = a.extent.max(distance.checked_add(b.extent).ok_or(NotATile::TooLong)?);
    let start = if distance < 0 { b.start.clone() } else { a.start.clone() };
    Ok(Interval { start, extent: end - distance.min(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(loops: &[Inner]) -> Inside<'_> {
        Inside { loops, sums: &[] }
    }

    fn facts() -> Facts {
        Facts::new(&[], &[]).unwrap()
    }

    /// Random indices over two loops outside (variables 0 and 1) and two inside (2 and 3): every position lies in the
    /// interval, and of indices without a mixed quotient, or with nothing else, some values of the loops reach both
    /// ends.
    #[test]
    fn intervals_hold_every_position() {
        let mut state = 99u64;
        let mut next = |first: i128, last: i128| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            first + i128::from(state >> 33) % (last - first + 1)
        };
        let (mut mixed, mut tight) = (0, 0);
        for _ in 0..3000 {
            let linear = |next: &mut dyn FnMut(i128, i128) -> i128| {
                (0..4).fold(Expr::constant(next(-5, 5)), |e, v| e.add(&Expr::var(v).scale(next(-3, 3))))
            };
            let mut index = linear(&mut next);
            let quotient = next(0, 3);
            if quotient == 3 {
                let other = linear(&mut next).modulo(&Expr::constant(next(2, 6)));
                index = other.scale(next(1, 3)).add(&Expr::var(next(0, 1) as Var));
            } else if quotient > 0 {
                let other = linear(&mut next).floor_div(&Expr::constant(next(2, 6)));
                index = if quotient == 1 { other } else { index.add(&other.scale(next(-2, 2))) };
            }
            let inner = [Inner { var: 2, extent: next(1, 4) }, Inner { var: 3, extent: next(1, 5) }];
            let found = interval(&index, only(&inner), &facts()).unwrap();
            let mut reached = (false, false);
            for outer in 0..36 {
                for n in 0..inner[0].extent * inner[1].extent {
                    let values = [outer % 6, outer / 6, n % inner[0].extent, n / inner[0].extent];
                    let at = index.eval(&values).unwrap() - found.start.eval(&values).unwrap();
                    assert!((0..found.extent).contains(&at), "{index:?}");
                    reached = (reached.0 | (at == 0), reached.1 | (at == found.extent - 1));
                }
            }
            // One term that holds all loops inside is covered tightly, if its loops outside reach the worst remainder.
            let terms = index.terms().iter().filter(|t| mentions(&Expr::from_atoms(&t.atoms), &inner).is_some());
            if (1..=2).contains(&quotient) && terms.count() == 1 {
                mixed += 1;
                tight += u32::from(reached == (true, true));
            }
            if quotient == 0 {
                assert_eq!(reached, (true, true), "{index:?}");
            }
            if quotient == 3 {
                assert!(found.extent <= 3 * 5 + 1, "{index:?}: {found:?}");
            }
        }
        assert!(mixed > 200 && tight == mixed, "{tight} of {mixed}");
    }

    /// The digits of a merged axis: each is as long as the axis that was merged, wherever it stands.
    #[test]
    fn digits_of_merged_axes_are_tight() {
        let inner = [Inner { var: 2, extent: 2 * 3 * 5 * 7 }];
        let t = Expr::var(2);
        let digit = |q: i128, m: i128| t.floor_div(&Expr::constant(q)).modulo(&Expr::constant(m));
        for (digit, extent) in [(digit(105, 2), 2), (digit(35, 3), 3), (digit(7, 5), 5), (digit(1, 7), 7)] {
            let outside = Expr::var(0).scale(extent);
            let found = interval(&outside.add(&digit), only(&inner), &facts()).unwrap();
            assert_eq!(found, Interval { start: outside, extent });
        }
    }

    /// Splits that do not divide, one inside the other: whatever they overrun, the interval ends with the axis.
    #[test]
    fn sums_end_with_their_axis() {
        let mut cases = 0;
        for (extent, first, second) in (1..20).flat_map(|e| (1..9).flat_map(move |f| (1..9).map(move |g| (e, f, g)))) {
            // extent → a·first + r; r < first → b·second + c
            let ceil = |a: i128, b: i128| (a + b - 1).div_euclid(b);
            let loops = [
                Inner { var: 2, extent: ceil(extent, first) },
                Inner { var: 3, extent: ceil(first, second) },
                Inner { var: 4, extent: second },
            ];
            let rest = Expr::var(3).scale(second).add(&Expr::var(4));
            let whole = Expr::var(2).scale(first).add(&rest);
            let sums = [Sum { value: whole.clone(), extent }, Sum { value: rest.clone(), extent: first }];
            let inside = Inside { loops: &loops, sums: &sums };
            let outside = Expr::var(0).scale(extent);
            let found = interval(&outside.add(&whole), inside, &facts()).unwrap();
            assert_eq!(found, Interval { start: outside.clone(), extent });
            // Mirrored, doubled, and the inner part alone.
            let found = interval(&outside.sub(&whole.scale(2)), inside, &facts()).unwrap();
            assert_eq!(found.extent, 2 * (extent - 1) + 1);
            let found = interval(&rest.add(&Expr::var(2).scale(100)), inside, &facts()).unwrap();
            assert_eq!(found.extent, 100 * (loops[0].extent - 1) + first.min((loops[1].extent - 1) * second + second));
            cases += 1;
        }
        assert_eq!(cases, 19 * 64);
    }

    #[test]
    fn hulls_need_a_constant_distance() {
        let at = |start: Expr, extent| Interval { start, extent };
        let (x, y) = (Expr::var(0), Expr::var(1));
        let left = at(x.sub(&Expr::constant(1)), 4);
        assert_eq!(hull(&at(x.clone(), 6), &left, &facts()), Ok(at(left.start.clone(), 7)));
        assert_eq!(hull(&left, &at(x.clone(), 6), &facts()), Ok(at(left.start.clone(), 7)));
        assert_eq!(hull(&at(x.clone(), 6), &at(x.clone(), 2), &facts()), Ok(at(x.clone(), 6)));
        assert_eq!(hull(&at(x.clone(), 6), &at(y.clone(), 2), &facts()), Err(NotATile::Apart(Box::new([x, y]))));
    }

    #[test]
    fn what_is_not_a_tile_is_said() {
        let inner = [Inner { var: 2, extent: 4 }];
        let strided = Expr::var(2).mul(&Expr::var(0));
        assert_eq!(interval(&strided, only(&inner), &facts()), Err(NotATile::SymbolicStep(2)));
        let divided = Expr::var(2).floor_div(&Expr::var(0));
        assert_eq!(interval(&divided, only(&inner), &facts()), Err(NotATile::SymbolicStep(2)));
        assert_eq!(interval(&Expr::unknown(), only(&inner), &facts()), Err(NotATile::Unknown));
    }
}

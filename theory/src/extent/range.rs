//! Expressions whose variables have ranges: what they can be, and what of them is thereby decided.

use super::expr::{Atom, Expr, Term, Var, gcd};

/// An expression in which every quotient that ranges decide is decided; `range` gives the least and the largest value
/// of a variable.
#[must_use]
pub fn collapse(e: &Expr, range: &dyn Fn(Var) -> Option<(i128, i128)>) -> Expr {
    collapsed(e, range).unwrap_or_else(|| e.clone())
}

/// The same, or nothing where nothing is decided.
pub fn collapsed(e: &Expr, range: &dyn Fn(Var) -> Option<(i128, i128)>) -> Option<Expr> {
    // Most stay as they are, and need not be copied.
    if !may_collapse(e, range) {
        return None;
    }
    let mut sum: Option<Expr> = None;
    for (at, term) in e.terms().iter().enumerate() {
        let new = || term.atoms.iter().map(|atom| decided(atom, range)).collect::<Vec<Option<Expr>>>();
        let new = if term.atoms.iter().any(|atom| is_open(atom, range)) { new() } else { Vec::new() };
        if new.iter().all(Option::is_none) {
            sum = sum.map(|sum| sum.add(&from_term(term)));
            continue;
        }
        let product = term.atoms.iter().zip(new).fold(Expr::constant(term.coefficient), |product, (atom, new)| {
            product.mul(&new.unwrap_or_else(|| Expr::from_atoms(std::slice::from_ref(atom))))
        });
        // The terms before it have stayed as they are.
        let before = sum.unwrap_or_else(|| e.terms()[..at].iter().fold(Expr::constant(0), |s, t| s.add(&from_term(t))));
        sum = Some(before.add(&product));
    }
    sum
}

/// What an atom is by ranges, if that is something else.
fn decided(atom: &Atom, range: &dyn Fn(Var) -> Option<(i128, i128)>) -> Option<Expr> {
    match atom {
        Atom::Var(v) => range(*v).filter(|(least, most)| least == most).map(|(least, _)| Expr::constant(least)),
        Atom::Quotient { of, by } => {
            let (new_of, new_by) = (collapsed(of, range), collapsed(by, range));
            let is_same = new_of.is_none() && new_by.is_none();
            let (of, by) = (new_of.as_ref().unwrap_or(of), new_by.as_ref().unwrap_or(by));
            let known = by.as_constant().filter(|by| *by > 0 && !of.is_unknown()).and_then(|by| {
                // What is a multiple of the divisor comes out of the quotient; the rest may be too small to count. So
                // it may be beside multiples of a part of the divisor.
                let parts = of.terms().iter().map(|t| gcd(t.coefficient, by)).filter(|part| *part > 1 && *part < by);
                std::iter::once(by).chain(parts).find_map(|part| {
                    let (whole, quotient) = whole_and_rest(of, part, range)?;
                    let sum = whole.add(&Expr::constant(quotient));
                    Some(if part == by { sum } else { sum.floor_div(&Expr::constant(by / part)) })
                })
            });
            known.or_else(|| (!is_same).then(|| of.floor_div(by)))
        }
        Atom::Positive { of } => {
            let new = collapsed(of, range);
            let is_same = new.is_none();
            let of = new.as_ref().unwrap_or(of);
            match interval(of, range) {
                Some((least, _)) if least >= 0 => Some(of.clone()),
                Some((_, most)) if most <= 0 => Some(Expr::constant(0)),
                _ if is_same => None,
                _ => Some(of.positive()),
            }
        }
    }
}

/// An expression divided by a number: its terms that are multiples of it, divided, and the quotient of the others, if
/// their ranges decide that.
fn whole_and_rest(of: &Expr, by: i128, range: &dyn Fn(Var) -> Option<(i128, i128)>) -> Option<(Expr, i128)> {
    let is_whole = |t: &&Term| t.coefficient % by == 0;
    let end = |v: Var, upper: bool| range(v).map(|(least, most)| if upper { most } else { least });
    let rest = |upper: bool| bound_of(of.terms().iter().filter(|t| !is_whole(t)), upper, &end);
    let quotient = rest(false)?.div_euclid(by);
    (quotient == rest(true)?.div_euclid(by)).then(|| {
        let add = |s: Expr, t: &Term| s.add(&Expr::from_atoms(&t.atoms).scale(t.coefficient / by));
        (of.terms().iter().filter(is_whole).fold(Expr::constant(0), add), quotient)
    })
}

/// Whether [`collapse`] may change an expression: there is a quotient, a maximum or a variable of one value.
fn may_collapse(e: &Expr, range: &dyn Fn(Var) -> Option<(i128, i128)>) -> bool {
    e.terms().iter().flat_map(|term| &term.atoms).any(|atom| is_open(atom, range))
}

fn is_open(atom: &Atom, range: &dyn Fn(Var) -> Option<(i128, i128)>) -> bool {
    match atom {
        Atom::Var(v) => range(*v).is_some_and(|(least, most)| least == most),
        Atom::Quotient { .. } | Atom::Positive { .. } => true,
    }
}

fn from_term(term: &Term) -> Expr {
    match term.atoms[..] {
        [] => Expr::constant(term.coefficient),
        _ => Expr::from_atoms(&term.atoms).scale(term.coefficient),
    }
}

/// A literal that `e` is never above (or, if not `upper`, never below), term by term; `end` gives those of variables.
///
/// Where a term has no bound of its own, but is a part of a quotient that outweighs it, quotients are taken for
/// fractions: of ⌈(128 − m)/128⌉ = ⌊(127·m + 127)/128⌋ − m + 1 what is left is (127 − m)/128 + 1.
pub fn bound(e: &Expr, upper: bool, end: &dyn Fn(Var, bool) -> Option<i128>) -> Option<i128> {
    if e.is_unknown() {
        return None;
    }
    bound_of(e.terms().iter(), upper, end).or_else(|| bound_of_fractions(e, upper, end))
}

/// The same, where a quotient by a literal is at most a fraction, and more than that less 1.
fn bound_of_fractions(e: &Expr, upper: bool, end: &dyn Fn(Var, bool) -> Option<i128>) -> Option<i128> {
    let terms = e.terms();
    // What is a factor of all terms: of D·⌈(128 − m)/128⌉, D.
    let is_common = |atom: &&Atom| terms.iter().all(|term| term.atoms.contains(atom));
    if let Some(common) = terms.first().filter(|_| terms.len() > 1).and_then(|t| t.atoms.iter().find(is_common)) {
        let without = |term: &Term| {
            let at = term.atoms.iter().position(|atom| atom == common)?;
            let atoms: Vec<Atom> = [&term.atoms[..at], &term.atoms[at + 1..]].concat();
            Some(Expr::from_atoms(&atoms).scale(term.coefficient))
        };
        let rest = terms.iter().try_fold(Expr::constant(0), |sum, term| Some(sum.add(&without(term)?)))?;
        let rest = bound(&rest, upper, end)?;
        let factor = atom_bound(common, upper == (rest >= 0), end)?;
        return (atom_bound(common, false, end)? >= 0).then(|| rest.checked_mul(factor)).flatten();
    }
    terms.iter().find_map(|term| {
        let [Atom::Quotient { of, by }] = &term.atoms[..] else { return None };
        let by = by.as_constant().filter(|by| *by > 0)?;
        // Only if something cancels: a term of the dividend stands beside the quotient.
        let is_beside = |part: &Term| !part.atoms.is_empty() && terms.iter().any(|t| t.atoms == part.atoms);
        if !of.terms().iter().any(is_beside) {
            return None;
        }
        let others = terms.iter().filter(|t| !std::ptr::eq(*t, term));
        let times = others.fold(of.scale(term.coefficient), |sum, t| sum.add(&from_term(t).scale(by)));
        if times.is_unknown() {
            return None;
        }
        // What the quotient is less than the fraction, at most.
        let rest = if upper == (term.coefficient >= 0) { 0 } else { term.coefficient.checked_mul(by - 1)? };
        let most = bound_of(times.terms().iter(), upper, end)?.checked_sub(rest)?;
        Some(if upper { most.div_euclid(by) } else { -(-most).div_euclid(by) })
    })
}

/// The same of some terms.
fn bound_of<'t>(
    mut terms: impl Iterator<Item = &'t Term>,
    upper: bool,
    end: &dyn Fn(Var, bool) -> Option<i128>,
) -> Option<i128> {
    terms.try_fold(0_i128, |sum, term| sum.checked_add(term_bound(term, upper, end)?))
}

/// The same of one term.
pub fn term_bound(term: &Term, upper: bool, end: &dyn Fn(Var, bool) -> Option<i128>) -> Option<i128> {
    if term.atoms.is_empty() {
        return Some(term.coefficient);
    }
    // Products of several atoms: only of non-negative ones.
    let want_upper = upper == (term.coefficient >= 0);
    let mut product = 1_i128;
    for atom in &term.atoms {
        let least = atom_bound(atom, false, end)?;
        if term.atoms.len() > 1 && least < 0 {
            return None;
        }
        product = product.checked_mul(if want_upper { atom_bound(atom, true, end)? } else { least })?;
    }
    term.coefficient.checked_mul(product)
}

fn atom_bound(atom: &Atom, upper: bool, end: &dyn Fn(Var, bool) -> Option<i128>) -> Option<i128> {
    match atom {
        Atom::Var(v) => end(*v, upper),
        Atom::Positive { of } if upper => Some(bound(of, true, end)?.max(0)),
        Atom::Positive { of } => Some(bound(of, false, end).unwrap_or(0).max(0)),
        Atom::Quotient { of, by } => {
            let of = bound(of, upper, end)?;
            let by = by.as_constant().or_else(|| {
                // A larger divisor makes a smaller quotient of a non-negative dividend.
                (of >= 0).then(|| bound(by, !upper, end)).flatten()
            });
            match by {
                Some(d) if d > 0 => Some(of.div_euclid(d)),
                _ if !upper && of >= 0 => Some(0),
                _ => None,
            }
        }
    }
}

/// Both bounds of an expression, where `range` gives the least and the largest value of a variable.
pub fn interval(e: &Expr, range: &dyn Fn(Var) -> Option<(i128, i128)>) -> Option<(i128, i128)> {
    let end = |v: Var, upper: bool| range(v).map(|(least, most)| if upper { most } else { least });
    Some((bound(e, false, &end)?, bound(e, true, &end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The extent of `split i by 128` of an axis that ends where 128 elements or the tensor do.
    #[test]
    fn a_quotient_outweighs_what_stands_beside_it() {
        let m = Expr::var(0).positive();
        let whole = Expr::constant(128).sub(&m);
        let blocks = whole.add(&Expr::constant(127)).floor_div(&Expr::constant(128));
        let end = |_: Var, upper: bool| (!upper).then_some(-1000);
        assert_eq!(bound(&blocks, true, &end), Some(1), "{blocks:?}");
        assert_eq!(bound(&blocks.scale(-1), false, &end), Some(-1));
        assert_eq!(bound(&blocks, false, &end), None);
        // Times a size, of which 0 to 9 are tried.
        let sized = |v: Var, upper: bool| if v == 1 { Some(if upper { 9 } else { 0 }) } else { end(v, upper) };
        assert_eq!(bound(&blocks.mul(&Expr::var(1)), true, &sized), Some(9));
        assert_eq!(bound(&blocks.mul(&Expr::var(1)), false, &sized), None);
        // What is too large to be written down has no bound.
        assert_eq!(bound(&blocks.scale(1 << 120), true, &end), None);
        // Without it beside, nothing outweighs.
        assert_eq!(bound(&m.scale(127).floor_div(&Expr::constant(128)), true, &end), None);
    }

    /// Fractions bound what has bounds of its own as well, at every point.
    #[test]
    fn fractions_are_bounds() {
        let end = |_: Var, upper: bool| Some(if upper { 9 } else { -9 });
        let mut found = [0; 2];
        for (a, b, c, by) in
            (-4..=4).flat_map(|a| (-4..=4).flat_map(move |b| (-4..=4).map(move |c| (a, b, c, a * a + 2))))
        {
            let v = Expr::var(0);
            let quotient = v.scale(b).add(&Expr::constant(c)).floor_div(&Expr::constant(by));
            let e = v.scale(a).add(&quotient.scale(if c > 0 { 3 } else { -2 }));
            // Alone, and times a size.
            let sized = |v: Var, upper: bool| if v == 1 { Some(if upper { 3 } else { 0 }) } else { end(v, upper) };
            for (upper, times) in [(false, 0), (true, 0), (false, 1), (true, 1)] {
                let e = if times == 1 { e.mul(&Expr::var(1)) } else { e.clone() };
                let Some(bound) = bound_of_fractions(&e, upper, &sized) else { continue };
                found[times] += 1;
                for (at, size) in (-9..=9).flat_map(|at| (0..=3).map(move |size| (at, size))) {
                    let value = e.eval(&[at, size]).unwrap();
                    assert!(if upper { value <= bound } else { value >= bound }, "{e:?} at {at}: {value}, {bound}");
                }
            }
        }
        assert!(found[0] > 500 && found[1] > 500, "{found:?}");
    }

    /// Random expressions with nested quotients and maxima: what is decided is the same at every point, and both bounds
    /// hold there.
    #[test]
    fn what_ranges_decide_is_so_at_every_point() {
        let mut state = 7_u64;
        let mut next = |first: i128, last: i128| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            first + i128::from(state >> 33) % (last - first + 1)
        };
        let (mut decided, mut bounded) = (0, 0);
        for _ in 0..2000 {
            let ends = [(0, next(0, 5)), (next(0, 2), 4)];
            let range = |v: Var| ends.get(v as usize).copied();
            let linear = |next: &mut dyn FnMut(i128, i128) -> i128| {
                let step = next(1, 4);
                Expr::var(0)
                    .scale(next(-2, 8) * step)
                    .add(&Expr::var(1).scale(next(-2, 3)))
                    .add(&Expr::constant(next(-6, 6)))
            };
            let inner = linear(&mut next).floor_div(&Expr::constant(next(1, 8)));
            let whole = inner.scale(next(-2, 6)).add(&linear(&mut next)).floor_div(&Expr::constant(next(2, 9)));
            let e = match next(0, 2) {
                0 => whole,
                1 => whole.positive().add(&inner),
                _ => linear(&mut next).modulo(&Expr::constant(next(2, 9))).mul(&Expr::var(1)),
            };
            let simpler = collapse(&e, &range);
            decided += usize::from(simpler != e);
            assert!(may_collapse(&e, &range) || simpler == e, "{e:?}");
            assert_eq!(collapsed(&e, &range).is_none(), simpler == e, "{e:?}");
            let known = interval(&e, &range);
            bounded += usize::from(known.is_some());
            for x in ends[0].0..=ends[0].1 {
                for y in ends[1].0..=ends[1].1 {
                    let value = e.eval(&[x, y]).unwrap();
                    assert_eq!(simpler.eval(&[x, y]), Some(value), "{e:?} at {x}, {y}: {simpler:?}");
                    assert!(
                        known.is_none_or(|(least, most)| (least..=most).contains(&value)),
                        "{e:?} at {x}, {y}: {known:?}"
                    );
                }
            }
        }
        assert!(decided > 400 && bounded > 1000, "{decided} {bounded}");
        assert_eq!(interval(&Expr::unknown(), &|_| None), None);
    }

    /// What is less than a part of the divisor leaves the quotient of the rest; and a maximum that is taken off is two
    /// conditions.
    #[test]
    fn parts_of_divisors_and_of_maxima() {
        let (r, x) = (Expr::var(0), Expr::var(1));
        let quotient = |most: i128| {
            let range = move |v: Var| [(0, most), (0, 99)].get(v as usize).copied();
            collapse(&r.add(&x.scale(8)).floor_div(&Expr::constant(16)), &range)
        };
        assert_eq!(quotient(7), x.floor_div(&Expr::constant(2)));
        assert_ne!(quotient(8), x.floor_div(&Expr::constant(2)));
        let below = Expr::constant(5).sub(&x.sub(&Expr::constant(3)).positive().scale(2)).sub(&r);
        let parts = below.at_least_parts();
        assert_eq!(parts.len(), 2);
        for point in (0..9).flat_map(|a| (0..9).map(move |b| [a, b])) {
            let holds = |e: &Expr| e.eval(&point).is_some_and(|value| value >= 0);
            assert_eq!(holds(&below), parts.iter().all(holds), "{point:?}");
        }
        assert_eq!(x.positive().sub(&r).at_least_parts().len(), 1);
    }

    /// The digits of a thread's number, as `like` compares them.
    #[test]
    fn digits_of_thread_numbers_are_decided() {
        let (r, t, v) = (Expr::var(0), Expr::var(1), Expr::var(2));
        let range = |var: Var| [(0, 7), (0, 511), (0, 3)].get(var as usize).copied();
        let j = r.scale(512).add(&t).scale(4).add(&v);
        let outer = collapse(&j.floor_div(&Expr::constant(4)), &range);
        assert_eq!(outer, r.scale(512).add(&t));
        assert_eq!(collapse(&outer.modulo(&Expr::constant(512)), &range), t);
        assert_eq!(collapse(&outer.floor_div(&Expr::constant(512)), &range), r);
    }
}

//! Digits of an index: k·(⌊e / s⌋ mod n), found in the normal form of expressions.

use super::known::Known;
use super::run::exact_quotient;
use crate::extent::{Atom, Expr, Term};

/// Most divisors tried for the digits of one quotient.
const DIVISORS: usize = 64;

/// factor · (⌊of / by⌋ mod radix)
#[derive(Clone, Debug)]
pub(super) struct Digit {
    pub factor: Expr,
    pub of: Expr,
    pub by: Expr,
    /// None for a quotient.
    pub radix: Option<Expr>,
}

/// A quotient with loops inside: what it is multiplied by, its dividend and its divisor.
fn quotient<'t>(term: &'t Term, known: &Known<'_>) -> Option<(Expr, &'t Expr, &'t Expr)> {
    let varies = |a: &&Atom| known.varies(&Expr::from_atoms(std::slice::from_ref(*a)));
    let [atom] = term.atoms.iter().filter(varies).collect::<Vec<_>>()[..] else { return None };
    let Atom::Quotient { of, by } = atom else { return None };
    let mut others = term.atoms.to_vec();
    others.remove(others.iter().position(|a| a == atom)?);
    (!known.varies(by)).then(|| (Expr::from_atoms(&others).scale(term.coefficient), &**of, &**by))
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
pub(super) fn take_digits(index: &Expr, known: &Known<'_>) -> (Vec<Digit>, Expr) {
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

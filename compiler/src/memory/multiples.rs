//! Facts that make an expression a multiple of a number: what the help of a message proposes.

use tilewright_kernel::size::{Constraint, Relation, Size, SizeOp};

use crate::extent::{Atom, Expr, Facts, Var};
use crate::program::Program;

/// The parts of `e` over dimensions alone that are not known multiples of `m`: what a fact could be about.
pub fn misaligned_terms(facts: &Facts, e: &Expr, m: i128) -> Vec<Expr> {
    let mut parts: Vec<Expr> = Vec::new();
    for term in e.terms() {
        let mut part = Expr::constant(term.coefficient);
        for atom in &term.atoms {
            if let Atom::Var(v) = atom
                && (*v as usize) < facts.dims()
            {
                part = part.mul(&Expr::var(*v));
            }
        }
        if !facts.proves_multiple(&part, m) && !part.vars().is_empty() && !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// Facts `… % m == 0` that make `goal` true: one per expression, about its last dimension if that suffices.
pub fn proposals(program: &Program, of: &[Expr], m: i128, goal: &dyn Fn(&Facts) -> bool) -> Vec<String> {
    let with = |extra: &[Constraint]| -> Option<Facts> {
        let mut all: Vec<Constraint> = program.facts.iter().map(|f| f.constraint.clone()).collect();
        all.extend_from_slice(extra);
        Facts::new(&program.dims, &all).ok()
    };
    let name = |v: Var| program.dim_name(v as u16).to_owned();
    let Ok(modulus) = i64::try_from(m) else { return Vec::new() };
    let multiple = |size: Size, text: String, by: i64| Constraint {
        lhs: Size::binary(SizeOp::Mod, &size, &Size::constant(by)),
        relation: Relation::Eq,
        rhs: Size::constant(0),
        text: format!("{text} % {by} == 0").into(),
    };
    let mut extra: Vec<Constraint> = Vec::new();
    for e in of {
        let vars = e.vars();
        if with(&extra).is_some_and(|facts| facts.proves_multiple(e, m)) {
            continue;
        }
        // One dimension that is a multiple of m, or of m times what it is divided by.
        let factors = [Some(1), e.divisors().filter(|d| *d > 1)];
        let candidates = factors.into_iter().flatten().filter_map(|d| i64::try_from(m.checked_mul(d)?).ok());
        let simple = candidates
            .flat_map(|by| vars.iter().rev().map(move |v| (*v, by)))
            .filter(|(v, _)| program.is_nameable(*v))
            .map(|(v, by)| multiple(Size::dim(v as u16), name(v), by))
            .find(|c| {
                let mut trial = extra.clone();
                trial.push(c.clone());
                with(&trial).is_some_and(|facts| facts.proves_multiple(e, m))
            });
        let is_sum = e.terms().iter().flat_map(|t| &t.atoms).all(|a| matches!(a, Atom::Var(_)));
        let whole = || {
            // Facts are written without quotients, and know no loops.
            if !is_sum || !vars.iter().all(|v| program.is_nameable(*v)) {
                return None;
            }
            let text = e.show(&|v| name(v));
            let text = if vars.len() > 1 || e.terms().len() > 1 { format!("({text})") } else { text };
            e.to_size(program.dims.len()).map(|size| multiple(size, text, modulus))
        };
        extra.extend(simple.or_else(whole));
    }
    let enough = !extra.is_empty() && with(&extra).is_some_and(|facts| goal(&facts));
    if enough { extra.into_iter().map(|c| c.text.into_owned()).collect() } else { Vec::new() }
}

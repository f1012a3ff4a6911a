//! Facts that would make an obligation provable: candidates, each tried by repeating the proof with it.

use kernel::algorithm::Value;
use kernel::{Constraint, Relation, Size, SizeOp};
use tilewright_kernel as kernel;

use super::interval::range_of;
use super::walk::{Failure, Given, holds};
use super::witness::Goal;
use super::{admitting_empty, with_facts};
use crate::extent::{Atom, Expr, Facts, Var, gcd};
use crate::program::Program;

/// Sets of facts that are tried at most.
const ATTEMPTS: usize = 6;

/// Facts that make all of these places right, as the user would write them; empty if none was found.
pub(super) fn find(program: &Program, facts: &Facts, failures: &[Failure]) -> Vec<String> {
    let mut needs: Vec<Expr> = Vec::new();
    let mut divisibility: Vec<Constraint> = Vec::new();
    let mut reachable = true;
    for failure in failures {
        for need in failure_needs(program, failure) {
            if failure.context.proves(facts, &need) {
                continue;
            }
            multiples(program, &need, &mut divisibility);
            match failure.context.extreme(&need, false) {
                // A literal that is negative: no size helps, but divisibility may.
                Some(least) if facts.normal(&least).as_constant().is_some() => reachable = false,
                Some(least) => needs.push(least),
                None => reachable = false,
            }
        }
    }
    needs.sort();
    needs.dedup();
    divisibility.truncate(4);
    let bounds: Vec<Constraint> = needs.iter().filter_map(|e| constraint(program, e)).collect();
    if bounds.len() < needs.len() {
        reachable = false;
    }
    let mut attempts: Vec<Vec<Constraint>> = Vec::new();
    if reachable && !bounds.is_empty() && bounds.len() <= 4 {
        // One bound often implies the others.
        attempts.extend(bounds.iter().map(|b| vec![b.clone()]));
        attempts.push(joined(bounds));
    }
    attempts.extend(divisibility.iter().map(|d| vec![d.clone()]));
    let works = |added: &Vec<Constraint>| {
        let (Some(facts), Some(with_empty)) = (with_facts(program, added), admitting_empty(program, added)) else {
            return false;
        };
        let given = Given { facts: &facts, with_empty: &with_empty };
        failures.iter().all(|f| holds(program, &f.context, given, &f.goal))
    };
    let found = attempts.into_iter().take(ATTEMPTS).find(works).unwrap_or_default();
    found.into_iter().map(|c| c.text.to_string()).collect()
}

/// The same facts with `a == b` for `a <= b, b <= a`.
fn joined(bounds: Vec<Constraint>) -> Vec<Constraint> {
    let mut facts: Vec<Constraint> = Vec::new();
    for bound in bounds {
        let opposite = |f: &&mut Constraint| match (f.relation, bound.relation) {
            (Relation::Le, Relation::Le) => f.lhs == bound.rhs && f.rhs == bound.lhs,
            (Relation::Le, Relation::Ge) | (Relation::Ge, Relation::Le) => f.lhs == bound.lhs && f.rhs == bound.rhs,
            _ => false,
        };
        match facts.iter_mut().find(opposite) {
            Some(fact) => {
                fact.text = fact.text.replacen(fact.relation.symbol(), "==", 1).into();
                fact.relation = Relation::Eq;
            }
            None => facts.push(bound),
        }
    }
    facts
}

/// The expressions that must be at least 0 for the goal.
fn failure_needs(program: &Program, failure: &Failure) -> Vec<Expr> {
    let one = Expr::constant(1);
    let context = &failure.context;
    match &failure.goal {
        Goal::Inside { dimensions, .. } => (dimensions.iter())
            .flat_map(|(index, limit)| {
                let index = context.index(program, *index);
                let (lower, upper) = context.limit(program, limit);
                [index.sub(&lower), upper.sub(&index).sub(&one)]
            })
            .collect(),
        Goal::Search { axis, .. } => context.search(program, *axis).to_vec(),
        Goal::NonZero { divisor, .. } => match program.algorithm.values.get(*divisor as usize) {
            Some(Value::FromIndex(index)) => {
                let e = context.index(program, *index);
                let range = program.algorithm.types.get(*divisor as usize).and_then(|t| range_of(*t));
                let period = range.map_or(0, |r| r.high - r.low + 1);
                vec![e.sub(&one), Expr::constant(period).sub(&one).sub(&e)]
            }
            _ => Vec::new(),
        },
    }
}

/// `N % d == 0` for every dimension that is divided by a literal.
fn multiples(program: &Program, e: &Expr, out: &mut Vec<Constraint>) {
    for atom in e.terms().iter().flat_map(|t| &t.atoms) {
        let Atom::Quotient { of, by } = atom else { continue };
        multiples(program, of, out);
        let Some(by) = by.as_constant().and_then(|d| i64::try_from(d).ok()) else { continue };
        for var in of.vars() {
            let Some(dim) = dimension(program, var) else { continue };
            let lhs = Size::binary(SizeOp::Mod, &Size::dim(dim), &Size::constant(by));
            let fact = written(program, lhs, Relation::Eq, Size::constant(0));
            if !out.contains(&fact) {
                out.push(fact);
            }
        }
    }
}

fn dimension(program: &Program, var: Var) -> Option<u16> {
    u16::try_from(var).ok().filter(|d| usize::from(*d) < program.dims.len())
}

/// `e ≥ 0` as a fact; none if it cannot be written as one.
fn constraint(program: &Program, e: &Expr) -> Option<Constraint> {
    let constant = e.constant_term();
    let varying = e.sub(&Expr::constant(constant));
    let g = varying.terms().iter().fold(0, |g, t| gcd(g, t.coefficient));
    if g == 0 || e.is_unknown() {
        return None;
    }
    let constant = constant.div_euclid(g);
    let part = |positive: bool| {
        let terms = varying.terms().iter().filter(|t| (t.coefficient > 0) == positive);
        terms.fold(Expr::constant(0), |sum, t| sum.add(&Expr::from_atoms(&t.atoms).scale((t.coefficient / g).abs())))
    };
    let (more, less) = (part(true), part(false));
    let size = |e: &Expr| e.to_size(program.dims.len()).filter(|s| !s.ops.contains(&SizeOp::CeilDiv));
    // more + constant ≥ less
    if less == Expr::constant(0) {
        return Some(written(program, size(&more)?, Relation::Ge, size(&Expr::constant(-constant))?));
    }
    if constant >= 0 {
        let bound = more.add(&Expr::constant(constant));
        return Some(written(program, size(&less)?, Relation::Le, size(&bound)?));
    }
    Some(written(program, size(&less.sub(&Expr::constant(constant)))?, Relation::Le, size(&more)?))
}

pub(super) fn written(program: &Program, lhs: Size, relation: Relation, rhs: Size) -> Constraint {
    let names = |d: u16| program.dim_name(d);
    let text = format!("{} {} {}", lhs.display(&names), relation.symbol(), rhs.display(&names));
    Constraint { lhs, relation, rhs, text: text.into() }
}

/// The fact `e ≥ 0` over sizes, if it can be written and decides.
pub(super) fn positive(program: &Program, e: &Expr) -> Vec<String> {
    let fact = constraint(program, e);
    let decides =
        |c: &Constraint| with_facts(program, std::slice::from_ref(c)).is_some_and(|facts| facts.proves_nonnegative(e));
    fact.filter(decides).map(|c| c.text.to_string()).into_iter().collect()
}

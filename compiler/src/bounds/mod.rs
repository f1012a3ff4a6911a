//! In-bounds proof of every read, and the other obligations of the algorithm: `argmax` of something, divisors not 0.
//!
//! Property: if nothing is reported, then for every admissible size (at least 1) every read without `or` that is
//! executed for some output element is inside its tensor, however intermediates are inlined or computed over their
//! domains. A refusal carries the smallest failing case, replayed on concrete numbers by an evaluator that shares
//! nothing with the proofs. What is approximated: some true obligations are neither proved nor refuted (undecided).
//! Source: docs/language.md (reads, `or`, domains); docs/theory.md, Bounds of reads.
//!
//! | room | holds |
//! | --- | --- |
//! | `walk` | every obligation with its place: over each domain, then through reads of intermediates |
//! | `context` | what is known at a place, and proofs from it |
//! | `constant` | what is written and never matters: warnings |
//! | `divisor` | proofs that a divisor is not 0 |
//! | `interval` | the nodes evaluated over intervals |
//! | `memory` | what memory holds for an index that is read from it to have a value |
//! | `zeros` | which sizes the launcher must not let be 0 |
//! | `witness` | the smallest failing case |
//! | `remedy` | facts that would make an obligation provable |
//! | `report` | from an obligation to a finding |

mod constant;
mod context;
mod divisor;
mod interval;
mod memory;
mod remedy;
mod report;
#[cfg(test)]
mod tests;
mod walk;
mod witness;
mod zeros;

pub use zeros::{Zeros, admitting, at_least_one, zeros};

use kernel::info::{Dim, DimKind};
use kernel::{Constraint, Relation, Size};
use tilewright_kernel as kernel;

use crate::diag::Diagnostics;
use crate::diag::codes::InlinedTooFar;
use crate::extent::{Expr, Facts};
use crate::program::{INLINE_LIMIT, Obligation, Program};

/// Checks every read and the other obligations; `facts` are those of the program, for sizes of at least 1 or others.
/// What launches must check so that every index that an `argmax` or `argmin` gives is a `u32`.
pub fn check(program: &Program, facts: &Facts, diags: &mut Diagnostics) -> Vec<Constraint> {
    let divisors = program.obligations.iter().filter_map(|o| match *o {
        Obligation::DivisorPositive { index } => Some(index),
        _ => None,
    });
    let mut sound = true;
    for index in divisors {
        sound &= report::index_divisor(program, facts, index, diags);
    }
    if !sound {
        // Indices that have no value say nothing about reads.
        return Vec::new();
    }
    let with_empty = admitting_empty(program, &[]).unwrap_or_else(|| facts.clone());
    let given = walk::Given { facts, with_empty: &with_empty };
    let found = walk::walk(program, given);
    report::report(program, given, &found.failures, diags);
    constant::warn(program, &found.constant, diags);
    for equation in found.too_large {
        let run = program.algorithm.equations[usize::from(equation)].components;
        let output = program.algorithm.components[run.range()].first().map_or("?", |c| &c.name).to_owned();
        let span = program.equation_spans[usize::from(equation)];
        diags.report(InlinedTooFar { stage: output, span, limit: INLINE_LIMIT });
    }
    let mut places = Vec::new();
    for (value, axis, end) in found.ends {
        match end.as_ref().map(|end| place(program, facts, end)) {
            Some(Ok(None)) => {}
            Some(Ok(Some(condition))) if places.contains(&condition) => {}
            Some(Ok(Some(condition))) => places.push(condition),
            None | Some(Err(())) => report::far(program, value, axis, diags),
        }
    }
    places
}

/// The condition that a search which ends before this index finds it below 2³²; none if it always does, and no
/// such thing if it never does or the condition cannot be written down.
fn place(program: &Program, facts: &Facts, end: &Expr) -> Result<Option<Constraint>, ()> {
    let (end, most) = (facts.normal(end), 1 << 32);
    if facts.upper_bound(&end).is_some_and(|bound| bound <= i128::from(most)) {
        return Ok(None);
    }
    let size = end.to_size(facts.dims()).filter(|_| end.as_constant().is_none()).ok_or(())?;
    Ok(Some(remedy::written(program, size, Relation::Le, Size::constant(most))))
}

/// The facts of the program and more; none if they exclude every size.
fn with_facts(program: &Program, more: &[Constraint]) -> Option<Facts> {
    Facts::new(&program.dims, &constraints(program, more)).ok()
}

/// The same facts for sizes that may be 0.
fn admitting_empty(program: &Program, more: &[Constraint]) -> Option<Facts> {
    // Strides are what may be 0.
    let dims: Vec<Dim> = program.dims.iter().map(|d| Dim { name: d.name.clone(), kind: DimKind::Stride }).collect();
    Facts::new(&dims, &constraints(program, more)).ok()
}

fn constraints(program: &Program, more: &[Constraint]) -> Vec<Constraint> {
    program.facts.iter().map(|f| f.constraint.clone()).chain(more.iter().cloned()).collect()
}

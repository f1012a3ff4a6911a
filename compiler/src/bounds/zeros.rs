//! Sizes of 0: which ones the launcher has to refuse.
//!
//! Everything is proved for sizes of at least 1. With a size of 0 most kernels are still right, since no iteration is
//! left that could read something; but an output that is not empty may read a tensor that is. The proofs are repeated
//! with 0 admitted; a size for which they fail becomes a requirement `N >= 1`. (A launch whose outputs are all empty
//! does nothing, and needs none.) The same goes for an output that is not empty although its shape mentions the size,
//! as `N + 3` does: its predicates and vectors were found for sizes of at least 1, and are found once more.

use tilewright_kernel::info::DimKind;
use tilewright_kernel::size::{Constraint, Relation, Size};

use crate::diag::Diagnostics;
use crate::extent::{Expr, Facts};
use crate::program::Program;

/// The sizes that must not be 0, as conditions for the launcher. `holds_for(dims, facts)` says whether what was found
/// about the stages holds for other facts too; it is asked for the sizes that the shape of an output mentions without
/// vanishing with them.
pub fn requirements(
    program: &Program,
    facts: &Facts,
    shapes: &[Vec<Expr>],
    holds_for: &dyn Fn(&Facts) -> bool,
) -> Vec<Constraint> {
    // Facts may already say that a size is not 0: a bound above 1 as well as `N >= 1`, which reads like the assumption.
    let says_positive = |d: u16| {
        program.facts.iter().any(|f| {
            let c = &f.constraint;
            let at = |zero: &[i64]| c.holds(zero) == Ok(false);
            c.dims() == [d] && at(&vec![0; program.dims.len()])
        })
    };
    let open: Vec<u16> = (0..program.dims.len() as u16)
        .filter(|d| program.dims[usize::from(*d)].kind == DimKind::Size && !says_positive(*d))
        .collect();
    let constraints: Vec<Constraint> = program.facts.iter().map(|f| f.constraint.clone()).collect();
    // Facts such as `N % 4 == 0, N <= 7` fix a size only because it is not 0, and the code relies on it.
    let relaxed = Facts::with_zeros(&program.dims, &constraints, &open);
    let same = |d: &u16| {
        let size = Expr::var(u32::from(*d));
        relaxed.as_ref().is_ok_and(|r| r.normal(&size) == facts.normal(&size))
    };
    let (open, mut needed): (Vec<u16>, Vec<u16>) = open.into_iter().partition(same);
    let candidates = open.clone();
    let safe = |zeros: &[u16]| match Facts::with_zeros(&program.dims, &constraints, zeros) {
        Ok(facts) => {
            let mut found = Diagnostics::new();
            super::check(program, &facts, &mut found);
            !found.has_errors()
        }
        Err(_) => false,
    };
    if !safe(&open) {
        let (harmless, harmful): (Vec<u16>, Vec<u16>) = open.into_iter().partition(|d| safe(&[*d]));
        needed.extend(harmful);
        // Each by itself is harmless; together they might not be.
        if !safe(&harmless) {
            needed.extend(harmless);
        }
    }
    // Sizes in a shape that is not empty without them.
    let lasting = |d: &u16| {
        shapes.iter().any(|extents| {
            let at_zero = |e: &Expr| e.substitute(&|v| (v == u32::from(*d)).then(|| Expr::constant(0)));
            extents.iter().any(|e| e.vars().contains(&u32::from(*d)))
                && !extents.iter().any(|e| at_zero(e) == Expr::constant(0))
        })
    };
    let lasting: Vec<u16> = candidates.into_iter().filter(|d| !needed.contains(d) && lasting(d)).collect();
    if !lasting.is_empty() && !Facts::with_zeros(&program.dims, &constraints, &lasting).is_ok_and(|f| holds_for(&f)) {
        needed.extend(lasting);
    }
    needed.sort_unstable();
    needed.into_iter().map(|d| at_least_one(program, d)).collect()
}

/// The condition that a size is not 0.
pub fn at_least_one(program: &Program, d: u16) -> Constraint {
    let text = format!("{} >= 1", program.dim_name(d)).into();
    Constraint { lhs: Size::dim(d), relation: Relation::Ge, rhs: Size::constant(1), text }
}

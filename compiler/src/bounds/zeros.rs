//! Sizes of 0: which ones the launcher has to refuse.
//!
//! Everything is proved for sizes of at least 1. With a size of 0 most kernels are still right, since no iteration is left that
//! could read something; but an output that is not empty may read a tensor that is. The proofs are repeated with 0 admitted; a
//! size for which they fail becomes a requirement `N >= 1`. (A launch whose outputs are all empty does nothing, and needs none.)

use tilewright_kernel::info::DimKind;
use tilewright_kernel::size::{Constraint, Relation, Size};

use crate::diag::Diagnostics;
use crate::extent::{Expr, Facts};
use crate::program::Program;

/// The sizes that must not be 0, as conditions for the launcher.
pub fn requirements(program: &Program, facts: &Facts) -> Vec<Constraint> {
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
    needed.sort_unstable();
    let requirement = |d: u16| Constraint {
        lhs: Size::dim(d),
        relation: Relation::Ge,
        rhs: Size::constant(1),
        text: format!("{} >= 1", program.dim_name(d)).into(),
    };
    needed.into_iter().map(requirement).collect()
}

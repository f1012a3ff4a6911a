//! Sizes of 0: which ones a launch may have, and which ones the launcher has to refuse.
//!
//! A launch whose outputs are all empty does nothing. So a size that empties them all is at least 1 wherever something
//! is proved; any other size may be 0 there, unless a proof about the algorithm itself fails for that: an output that
//! is not empty may read a tensor that is. Such a size becomes a requirement `N >= 1`.

use tilewright_kernel::info::{DimKind, ParameterKind};
use tilewright_kernel::size::{Constraint, Relation, Size};

use crate::diag::Diagnostics;
use crate::extent::{Expr, Facts};
use crate::program::Program;

/// What is known of sizes of 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zeros {
    /// Sizes that may be 0 while an output has elements: the algorithm is right for them, each and together.
    pub admitted: Vec<u16>,
    /// Sizes for which it is not: the launcher refuses them.
    pub refused: Vec<u16>,
    /// What [`check`](super::check()) gives for sizes that are left.
    pub places: Vec<Constraint>,
}

/// What is known of a program whose reads are in bounds for sizes of at least 1, which are what `facts` and the
/// conditions `given` speak of.
pub fn zeros(program: &Program, facts: &Facts, given: &[Constraint]) -> Zeros {
    let sizes = (0..program.dims.len() as u16).filter(|d| program.dims[usize::from(*d)].kind == DimKind::Size);
    let open: Vec<u16> = sizes.filter(|d| !is_said_positive(program, *d) && !empties_all(program, facts, *d)).collect();
    let places = |zeros: &[u16]| {
        let mut found = Diagnostics::new();
        let places = super::check(program, &admitting(program, zeros)?, &mut found);
        (!found.has_errors()).then_some(places)
    };
    if open.is_empty() {
        return Zeros { admitted: open, refused: Vec::new(), places: given.to_vec() };
    }
    if let Some(places) = places(&open) {
        return Zeros { admitted: open, refused: Vec::new(), places };
    }
    let (admitted, refused): (Vec<u16>, Vec<u16>) = open.into_iter().partition(|d| places(&[*d]).is_some());
    match places(&admitted) {
        Some(places) => Zeros { admitted, refused, places },
        // Each by itself is harmless; together they might not be.
        None => Zeros { refused: [refused, admitted].concat(), admitted: Vec::new(), places: given.to_vec() },
    }
}

/// The facts of a program where these sizes may be 0.
pub fn admitting(program: &Program, zeros: &[u16]) -> Option<Facts> {
    Facts::with_zeros(&program.dims, &super::constraints(program, &[]), zeros).ok()
}

/// Whether a fact already says that a size is not 0: a bound above 1 as well as `N >= 1`, which reads like what is
/// assumed. So does a shape that has no such extent, as `f32[N - 1]`.
fn is_said_positive(program: &Program, d: u16) -> bool {
    let zero = vec![0; program.dims.len()];
    let mut constraints = program.facts.iter().map(|fact| &fact.constraint);
    let tensors = program.parameters.iter().filter_map(|parameter| match &parameter.kind {
        ParameterKind::Tensor(tensor) => Some(&tensor.shape),
        ParameterKind::Scalar => None,
    });
    let is_negative = |extent: &Size| extent.dims().all(|of| of == d) && extent.eval(&zero).is_ok_and(|n| n < 0);
    constraints.any(|c| c.dims() == [d] && c.holds(&zero) == Ok(false))
        || tensors.flat_map(|shape| shape.iter()).any(is_negative)
}

/// Whether no output has elements where a size is 0.
fn empties_all(program: &Program, facts: &Facts, d: u16) -> bool {
    let at_zero = |size: &Size| {
        let size = facts.normal(&Expr::from_size(size));
        size.substitute(&|v| (v == u32::from(d)).then(|| Expr::constant(0)))
    };
    let outputs = program.parameters.iter().filter_map(|parameter| match &parameter.kind {
        ParameterKind::Tensor(tensor) if tensor.role.is_written() => Some(&tensor.shape),
        _ => None,
    });
    let mut outputs = outputs.peekable();
    outputs.peek().is_some() && outputs.all(|shape| shape.iter().any(|e| at_zero(e) == Expr::constant(0)))
}

/// The condition that a size is not 0.
pub fn at_least_one(program: &Program, d: u16) -> Constraint {
    let text = format!("{} >= 1", program.dim_name(d)).into();
    Constraint { lhs: Size::dim(d), relation: Relation::Ge, rhs: Size::constant(1), text }
}

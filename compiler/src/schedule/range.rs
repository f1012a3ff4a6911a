//! Ranges that other axes decide: `sum(|j in 0..=i| …)`.
//!
//! A domain is a box. An axis of a reduction whose range depends on other axes is as long as the hull of its ranges,
//! and conditions exclude the iterations outside: [`Stage::limits`](super::Stage::limits) over that axis, which hold
//! for terms. Of an instance with one element, the loops around decide the range, and nothing is excluded.

use kernel::Algorithm;
use kernel::algorithm::{Index, IndexId};
use tilewright_kernel as kernel;

use super::{AlgorithmAxis, ast};
use crate::domain::{AxisKind, Domain};
use crate::extent::{Atom, Expr, Family, Var};
use crate::program::expressions;

/// The ends of the longest range: the first index inside and the first one outside, over dimensions, and what must be
/// at least 0 where a shorter one ends, with `index` for the axis.
pub(super) struct Hull {
    pub lower: Expr,
    pub upper: Expr,
    pub limits: Vec<Expr>,
}

/// The hull of the ranges from `lower` to `upper`, expressions over dimensions and roots with these extents; `index` is
/// the axis itself. None if the ends are not monotone in the roots.
pub(super) fn hull(lower: &Expr, upper: &Expr, index: impl Fn(&Expr) -> Expr, extents: &[&Expr]) -> Option<Hull> {
    let extent = |v: Var| extents.get(Family::ROOT.number(v)?).copied();
    let (least, most) = (extreme(lower, false, &extent)?, extreme(upper, true, &extent)?);
    let index = index(&least);
    let mut limits = Vec::new();
    if least != *lower {
        limits.push(index.sub(lower));
    }
    if most != *upper {
        limits.push(upper.sub(&index).sub(&Expr::constant(1)));
    }
    Some(Hull { lower: least, upper: most, limits })
}

/// The greatest or least value over all variables with an extent, which count from 0, or one beyond; none if it is not
/// known to be at their ends.
pub fn extreme<'a>(e: &Expr, greatest: bool, extent: &dyn Fn(Var) -> Option<&'a Expr>) -> Option<Expr> {
    at_ends(e, greatest, extent, &mut Vec::new()).or_else(|| at_sides(e, greatest, extent))
}

/// The same by the sides of a maximum or minimum.
fn at_sides<'a>(e: &Expr, greatest: bool, extent: &dyn Fn(Var) -> Option<&'a Expr>) -> Option<Expr> {
    let varies = |_, of: &Expr| of.vars().into_iter().any(|v| extent(v).is_some());
    e.extreme_of_sides(varies, |side| extreme(side, greatest, extent))
}

/// The same where each variable is at one end. `ends` has the ends that variables are taken at so far: where two terms
/// want different ones, as in `i % 7`, the extreme is at neither.
fn at_ends<'a>(
    e: &Expr,
    greatest: bool,
    extent: &dyn Fn(Var) -> Option<&'a Expr>,
    ends: &mut Vec<(Var, bool)>,
) -> Option<Expr> {
    let mut sum = Expr::constant(0);
    for term in e.terms() {
        let up = greatest == (term.coefficient > 0);
        let mut product = Expr::constant(term.coefficient);
        let mut varying = 0;
        for atom in &term.atoms {
            let factor = Expr::from_atoms(std::slice::from_ref(atom));
            if !factor.vars().into_iter().any(|v| extent(v).is_some()) {
                product = product.mul(&factor);
                continue;
            }
            varying += 1;
            let end = match atom {
                Atom::Var(v) => {
                    if ends.contains(&(*v, !up)) {
                        return None;
                    }
                    ends.push((*v, up));
                    if up { extent(*v)?.sub(&Expr::constant(1)) } else { Expr::constant(0) }
                }
                Atom::Quotient { of, by } if by.as_constant().is_some_and(|by| by > 0) => {
                    at_ends(of, up, extent, ends).or_else(|| at_sides(of, up, extent))?.floor_div(by)
                }
                Atom::Positive { of } => at_ends(of, up, extent, ends)?.positive(),
                Atom::Quotient { .. } => return None,
            };
            product = product.mul(&end);
        }
        // Dimensions and loops are at least 0; of a product of more, it would have to be known which end it takes.
        let is_simple = term.atoms.iter().all(|atom| matches!(atom, Atom::Var(_))) || term.atoms.len() == 1;
        if varying > 1 || (varying == 1 && !is_simple) {
            return None;
        }
        sum = sum.add(&product);
    }
    Some(sum)
}

/// An index over dimensions and the axes with these values; none if it mentions another axis, or a value.
pub(super) fn over(algorithm: &Algorithm, index: IndexId, axes: &[(AlgorithmAxis, Expr)]) -> Option<Expr> {
    Some(match algorithm.indices[index as usize] {
        Index::Literal(c) => Expr::constant(i128::from(c)),
        Index::Dim(d) => Expr::var(u32::from(d)),
        Index::Axis(a) => axes.iter().find(|(axis, _)| *axis == a)?.1.clone(),
        Index::Value(_) => return None,
        node => {
            let [a, b] = node.sides()?.map(|side| over(algorithm, side, axes));
            expressions::of_sides(node, &a?, &b?)
        }
    })
}

/// Whether ops speak of an axis: by its name, or for all that another stage has.
pub(super) fn is_named(ops: &[ast::Op], name: &str) -> bool {
    let is_it = |axis: &ast::Name| axis.text == name;
    ops.iter().any(|op| match &op.kind {
        ast::OpKind::Split { axis, .. }
        | ast::OpKind::Resize { axis, .. }
        | ast::OpKind::Vectorize { axis }
        | ast::OpKind::Unroll { axis, .. } => is_it(axis),
        ast::OpKind::Merge { axes, .. }
        | ast::OpKind::Reorder { axes }
        | ast::OpKind::Bind { axes, .. }
        | ast::OpKind::Reduce { axes, .. } => axes.iter().any(is_it),
        ast::OpKind::Swizzle { x, y, .. } => is_it(x) || is_it(y),
        ast::OpKind::Mma { m, n, k, .. } => [m, n, k].into_iter().any(is_it),
        ast::OpKind::Fragment { m, n, .. } => is_it(m) || n.as_ref().is_some_and(is_it),
        ast::OpKind::Like { .. } => true,
        // These are for staged copies, or speak of reductions as a whole.
        ast::OpKind::Box { .. }
        | ast::OpKind::BoxRun { .. }
        | ast::OpKind::Tile { .. }
        | ast::OpKind::Layout { .. }
        | ast::OpKind::Multicast { .. }
        | ast::OpKind::Region { .. }
        | ast::OpKind::Fill { .. }
        | ast::OpKind::L2 { .. }
        | ast::OpKind::Online { .. } => false,
    })
}

/// Whether a limit of a stage with this domain is about terms.
pub(crate) fn is_of_terms(limit: &Expr, domain: &Domain) -> bool {
    let kind = |v: Var| Some(domain.axes.get(domain.axis_of(v)?)?.kind);
    limit.vars().into_iter().any(|v| kind(v) == Some(AxisKind::Reduction))
}

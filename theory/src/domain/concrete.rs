//! A domain at concrete dimensions: extents as numbers, index maps evaluated. Witnesses are replayed here, by the tree
//! of index maps and not by the formula that found them.

use super::{Arithmetic, AxisId, AxisKind, Domain};
use crate::extent::Expr;

/// A domain at concrete dimensions.
#[derive(Debug)]
pub struct Concrete<'a> {
    domain: &'a Domain,
    dims: Vec<i128>,
    /// Extent of every axis.
    pub extents: Vec<i128>,
}

/// Index arithmetic on numbers, for dimensions of these sizes.
pub struct Numbers<'a>(pub &'a [i128]);

impl Arithmetic for Numbers<'_> {
    type Value = i128;

    fn size(&mut self, e: &Expr) -> i128 {
        // The extents were evaluated when the domain was made concrete, so their parts have values too.
        e.eval(self.0).unwrap_or(1)
    }
    fn literal(&mut self, n: i128) -> i128 {
        n
    }
    fn add(&mut self, a: &i128, b: &i128) -> i128 {
        a.saturating_add(*b)
    }
    fn mul(&mut self, a: &i128, b: &i128) -> i128 {
        a.saturating_mul(*b)
    }
    fn div(&mut self, a: &i128, b: &i128) -> i128 {
        a.div_euclid((*b).max(1))
    }
    fn modulo(&mut self, a: &i128, b: &i128) -> i128 {
        a.rem_euclid((*b).max(1))
    }
    fn xor(&mut self, a: &i128, b: &i128, _bound: &Expr) -> i128 {
        a ^ b
    }
}

impl<'a> Concrete<'a> {
    /// The domain at these dimensions; none if an extent has no value.
    pub fn new(domain: &'a Domain, dims: &[i64]) -> Option<Self> {
        let dims: Vec<i128> = dims.iter().map(|d| i128::from(*d)).collect();
        let extents = domain.axes.iter().map(|a| a.extent.eval(&dims).map(|e| e.max(0))).collect::<Option<Vec<_>>>()?;
        Some(Self { domain, dims, extents })
    }

    /// The value of every axis, given one value per leaf (in the order of `leaves`).
    pub fn from_leaves(&self, leaves: &[i128]) -> Vec<i128> {
        let mut values = vec![None; self.domain.axes.len()];
        for (axis, value) in self.domain.leaves.iter().zip(leaves) {
            values[*axis] = Some(*value);
        }
        self.domain.toward_roots(&mut Numbers(&self.dims), &mut values);
        values.into_iter().map(|v| v.unwrap_or(0)).collect()
    }

    /// The value of every axis, given one value per root.
    pub fn from_roots(&self, roots: &[i128]) -> Vec<i128> {
        let mut values = vec![None; self.domain.axes.len()];
        for (axis, value) in self.domain.roots.iter().zip(roots) {
            values[*axis] = Some(*value);
        }
        self.domain.toward_leaves(&mut Numbers(&self.dims), &mut values);
        values.into_iter().map(|v| v.unwrap_or(0)).collect()
    }

    /// Whether `values[axis]` lies in the axis's extent.
    pub fn in_bounds(&self, values: &[i128], axis: AxisId) -> bool {
        (0..self.extents[axis]).contains(&values[axis])
    }

    /// Number of leaf points; saturates.
    pub fn points(&self) -> i128 {
        self.domain.leaves.iter().fold(1, |n, a| n.saturating_mul(self.extents[*a]))
    }

    /// Visits the points of some leaves (positions in `leaves`) in lexicographic order, the others at 0, until `visit`
    /// returns something or the domain ends. Nothing is visited where the result is empty, or a varying leaf; a
    /// reduction that is empty and does not vary leaves the elements of the result to be visited, as they are written
    /// all the same.
    pub fn visit<W>(&self, varying: &[usize], mut visit: impl FnMut(&[i128]) -> std::ops::ControlFlow<W>) -> Option<W> {
        let extents: Vec<i128> = self.domain.leaves.iter().map(|a| self.extents[*a]).collect();
        let is_term = |at: usize| self.domain.axes[self.domain.leaves[at]].kind == AxisKind::Reduction;
        if (0..extents.len()).any(|at| extents[at] == 0 && (!is_term(at) || varying.contains(&at))) {
            return None;
        }
        let mut point = vec![0_i128; extents.len()];
        loop {
            if let std::ops::ControlFlow::Break(found) = visit(&point) {
                return Some(found);
            }
            let next = varying.iter().rev().copied().find(|at| point[*at] + 1 < extents[*at])?;
            for at in varying.iter().rev().copied() {
                if at == next {
                    point[at] += 1;
                    break;
                }
                point[at] = 0;
            }
        }
    }
}

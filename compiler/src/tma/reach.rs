//! The theorems: conditions on the starts that copies reach, as linear inequalities.

use crate::extent::{Expr, System};

/// An integer that may depend on sizes and coordinates.
pub trait Integer: Clone {
    /// A literal.
    fn constant(value: i128) -> Self;
    /// self + other
    fn plus(&self, other: &Self) -> Self;
    /// self − other
    fn minus(&self, other: &Self) -> Self;
}

impl Integer for i128 {
    fn constant(value: i128) -> Self {
        value
    }
    fn plus(&self, other: &Self) -> Self {
        self + other
    }
    fn minus(&self, other: &Self) -> Self {
        self - other
    }
}

impl Integer for Expr {
    fn constant(value: i128) -> Self {
        Self::constant(value)
    }
    fn plus(&self, other: &Self) -> Self {
        self.add(other)
    }
    fn minus(&self, other: &Self) -> Self {
        self.sub(other)
    }
}

/// One dimension of the copies that a schedule issues: box and element stride are literals, the rest is a number or
/// symbolic.
#[derive(Clone, Debug)]
pub struct Reach<V> {
    /// Elements of the tensor along it: S ≥ 1.
    pub size: V,
    /// Elements that the box spans: B ≥ 1.
    pub box_size: i128,
    /// Distance between two slots: e ≥ 1. Every phase 0 … e − 1 is copied.
    pub element_stride: i128,
    /// Where the box starts: x.
    pub start: V,
    /// Elements of the box that were asked for: 1 ≤ L ≤ B.
    pub live: V,
}

impl<V: Integer> Reach<V> {
    /// Positions that the tiles of all phases span: e·⌈B / e⌉, each of them in exactly one slot of one phase.
    fn span(&self) -> i128 {
        let e = self.element_stride;
        (self.box_size + e - 1).div_euclid(e) * e
    }

    /// `a > b`, as an expression that is ≥ 0.
    fn above(a: &V, b: &V) -> V {
        a.minus(b).minus(&V::constant(1))
    }

    /// All ≥ 0 iff some phase has a slot inside the tensor: [x, x + eT) meets [0, S).
    pub fn inside(&self) -> Vec<V> {
        let end = self.start.plus(&V::constant(self.span()));
        vec![Self::above(&end, &V::constant(0)), Self::above(&self.size, &self.start)]
    }

    /// All ≥ 0 iff some phase has a live slot: [x, x + L) meets [0, S).
    pub fn live(&self) -> Vec<V> {
        let end = self.start.plus(&self.live);
        vec![Self::above(&end, &V::constant(0)), Self::above(&self.size, &self.start)]
    }

    /// All ≥ 0 iff some phase has a hole that holds an element: [x + L, x + eT) meets [0, S).
    pub fn holes(&self) -> Vec<V> {
        let (live_end, end) = (self.start.plus(&self.live), self.start.plus(&V::constant(self.span())));
        vec![Self::above(&end, &live_end), Self::above(&self.size, &live_end), Self::above(&end, &V::constant(0))]
    }

    /// Theorem G: all ≥ 0 iff some phase has both a live slot and a hole that holds an element.
    ///
    /// 0 < x + L < S ∧ L < eT ∧ min(x + eT, S) − max(x, 0) > e. The last condition says that the part of the span
    /// inside the tensor is longer than the stride, so that two slots of one phase lie in it; minimum and maximum
    /// unfold to four inequalities.
    pub fn mixed(&self) -> Vec<V> {
        let (zero, e, span) = (V::constant(0), V::constant(self.element_stride), V::constant(self.span()));
        let (live_end, end) = (self.start.plus(&self.live), self.start.plus(&span));
        let mut all =
            vec![Self::above(&live_end, &zero), Self::above(&self.size, &live_end), Self::above(&span, &self.live)];
        for upper in [&end, &self.size] {
            for lower in [&self.start, &zero] {
                all.push(Self::above(&upper.minus(lower), &e));
            }
        }
        all
    }
}

/// What holes of a staged copy need for zeros, worst case over all copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing: every hole lies outside the tensor.
    Free,
    /// Copies without a live slot are sent out of bounds.
    Redirect,
    /// Cannot be had: one copy holds live slots and holes with elements.
    Impossible,
}

/// The level of copies of several dimensions, as far as it can be proved: the true level is at most this one.
///
/// `reachable` holds what is known of sizes and coordinates; the conditions of all dimensions are judged jointly, so
/// that coordinates that move together are not taken apart. A copy is impossible iff every dimension has a live slot
/// and some dimension mixes; it needs to be redirected iff every dimension has a slot inside the tensor and some
/// dimension has a hole that holds an element.
pub fn level(reachable: &System, dimensions: &[Reach<Expr>]) -> Level {
    let never = |bad: &dyn Fn(&Reach<Expr>) -> Vec<Expr>, others: &dyn Fn(&Reach<Expr>) -> Vec<Expr>| {
        let is_none = |c: &Expr| c.as_constant().is_some_and(|c| c < 0);
        (0..dimensions.len()).all(|at| {
            // Most boxes have no holes.
            if bad(&dimensions[at]).iter().any(is_none) {
                return true;
            }
            let mut system = reachable.clone();
            for (i, dimension) in dimensions.iter().enumerate() {
                let conditions = if i == at { bad(dimension) } else { others(dimension) };
                conditions.iter().for_each(|c| system.require(c));
            }
            system.is_infeasible()
        })
    };
    if never(&Reach::holes, &Reach::inside) {
        Level::Free
    } else if never(&Reach::mixed, &Reach::live) {
        Level::Redirect
    } else {
        Level::Impossible
    }
}

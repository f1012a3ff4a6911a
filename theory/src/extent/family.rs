//! What variables stand for. A small number is a dimension, or a loop around that a stage sees as one; beyond those, a
//! number says of which family a variable is, and which one of it. Families are ordered, and so are the terms of an
//! expression.

use super::{Expr, Var};

/// Variables that stand for things of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    first: Var,
    /// One past the last one.
    end: Var,
}

impl Family {
    /// What is given a number where it is met: loops inside a place, values of a finished kernel.
    pub const FRESH: Self = Self { first: 1 << 20, end: 1 << 23 };
    /// The roots of a stage, in the order of its domain.
    pub const ROOT: Self = Self { first: Self::FRESH.end, end: (1 << 23) + (1 << 22) };
    /// Axes of a domain, by their numbers there.
    pub const AXIS: Self = Self { first: Self::ROOT.end, end: 1 << 24 };
    /// The indices of a tensor, outermost first, then coordinates of an instance.
    pub const PLACEHOLDER: Self = Self { first: Self::AXIS.end, end: 1 << 25 };
    /// Exclusive ors, of which only the range is known.
    pub const XOR: Self = Self { first: Self::PLACEHOLDER.end, end: 1 << 28 };
    /// Coordinates of a region.
    pub const COORDINATE: Self = Self { first: Self::XOR.end, end: (1 << 28) + (1 << 16) };
    /// Indices among which those of a region are, one for each dimension.
    pub const INDEX: Self = Self { first: Self::COORDINATE.end, end: 1 << 29 };
    /// Integers that memory holds, of which nothing is known.
    pub const MEMORY: Self = Self { first: Self::INDEX.end, end: (1 << 29) + (1 << 16) };

    /// The one with a number.
    pub const fn var(self, number: usize) -> Var {
        self.first + number as Var
    }

    /// The same as an expression.
    pub fn expr(self, number: usize) -> Expr {
        Expr::var(self.var(number))
    }

    /// The number of a variable of this family; none of others.
    pub fn number(self, v: Var) -> Option<usize> {
        (self.first..self.end).contains(&v).then(|| (v - self.first) as usize)
    }

    /// Whether a variable stands for a dimension, or a loop around.
    pub const fn is_size(v: Var) -> bool {
        v < Self::FRESH.first
    }
}

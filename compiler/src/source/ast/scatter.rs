//! The left side of an equation whose places memory gives.

use super::{Expr, Spanned};

/// The left of `y[p[i], j] += …`: an index there is read from memory. Or it is only computed, as in `y[i + 1] = …`,
/// which no equation has.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    /// The left-hand indices, in order; an axis is a name.
    pub indices: Vec<Expr>,
    /// How terms are taken in, and where it is written.
    pub update: Spanned<Update>,
}

impl Scatter {
    /// Whether memory says which element is meant: a tensor is read in an index.
    #[must_use]
    pub fn is_placed_by_memory(&self) -> bool {
        self.indices.iter().any(Expr::reads_a_tensor)
    }
}

/// How the terms of a scatter are taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// `=`: nothing of what was there stays.
    Assign,
    /// `+=`
    Add,
    /// `max=`
    Max,
    /// `min=`
    Min,
}

impl Update {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Assign => "=",
            Self::Add => "+=",
            Self::Max => "max=",
            Self::Min => "min=",
        }
    }
}

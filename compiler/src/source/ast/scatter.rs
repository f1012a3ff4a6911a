//! The left side of an equation whose places memory gives.

use super::{Expr, Spanned};

/// The left of `y[p[i], j] += …`: an index there is read from memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    /// The left-hand indices, in order; an axis is a name.
    pub indices: Vec<Expr>,
    /// How terms are taken in, and where it is written.
    pub update: Spanned<Update>,
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

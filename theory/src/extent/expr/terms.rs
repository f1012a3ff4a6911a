//! The terms of an expression. Most expressions are a literal, a variable or a shared copy of another one, and then no
//! list has to be allocated, copied and freed.

use std::ops::Deref;
use std::sync::Arc;

use super::Term;

/// A list of terms, which reads as a slice; lists of several are shared by their copies.
#[derive(Clone, Debug)]
pub(super) struct Terms(List);

#[derive(Clone, Debug)]
enum List {
    /// Something was lost.
    Unknown,
    None,
    One(Term),
    Many(Arc<Vec<Term>>),
}

impl Terms {
    /// Those of an expression of which something was lost; reads as no terms.
    pub const UNKNOWN: Self = Self(List::Unknown);

    /// No terms: those of 0.
    pub const NONE: Self = Self(List::None);

    /// One term, whose coefficient is not 0.
    pub const fn one(term: Term) -> Self {
        Self(List::One(term))
    }

    /// Whether something was lost.
    #[inline(always)] // every sum asks
    pub fn is_unknown(&self) -> bool {
        matches!(self.0, List::Unknown)
    }
}

impl From<Vec<Term>> for Terms {
    fn from(mut list: Vec<Term>) -> Self {
        Self(match list.len() {
            0 => List::None,
            1 => list.pop().map_or(List::None, List::One),
            _ => List::Many(Arc::new(list)),
        })
    }
}

impl Deref for Terms {
    type Target = [Term];

    #[inline(always)] // unoptimised builds read terms all the time
    fn deref(&self) -> &[Term] {
        match &self.0 {
            List::Unknown | List::None => &[],
            List::One(term) => std::slice::from_ref(term),
            List::Many(list) => list,
        }
    }
}

impl PartialEq for Terms {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (List::Many(own), List::Many(other)) => Arc::ptr_eq(own, other) || own == other,
            (List::Unknown, List::Unknown) => true,
            (List::Unknown, _) | (_, List::Unknown) => false,
            _ => **self == **other,
        }
    }
}

impl Eq for Terms {}

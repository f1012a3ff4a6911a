//! The factors of a term. Nearly all terms have one or none, and then no list has to be allocated, copied and freed.

use std::ops::Deref;
use std::sync::Arc;

use super::Atom;

/// A list of factors, which reads as a slice.
#[derive(Clone, Debug)]
pub struct Atoms(List);

#[derive(Clone, Debug)]
enum List {
    None,
    One(Atom),
    Many(Arc<[Atom]>),
}

impl Atoms {
    /// No factors: those of a constant term.
    pub const NONE: Self = Self(List::None);

    /// One factor.
    pub const fn one(atom: Atom) -> Self {
        Self(List::One(atom))
    }
}

impl From<Vec<Atom>> for Atoms {
    fn from(mut list: Vec<Atom>) -> Self {
        Self(match list.len() {
            0 => List::None,
            1 => list.pop().map_or(List::None, List::One),
            _ => List::Many(list.into()),
        })
    }
}

impl From<&[Atom]> for Atoms {
    fn from(list: &[Atom]) -> Self {
        Self(match list {
            [] => List::None,
            [atom] => List::One(atom.clone()),
            _ => List::Many(list.into()),
        })
    }
}

impl Deref for Atoms {
    type Target = [Atom];

    #[inline(always)] // unoptimised builds read factors all the time
    fn deref(&self) -> &[Atom] {
        match &self.0 {
            List::None => &[],
            List::One(atom) => std::slice::from_ref(atom),
            List::Many(list) => list,
        }
    }
}

impl<'a> IntoIterator for &'a Atoms {
    type Item = &'a Atom;
    type IntoIter = std::slice::Iter<'a, Atom>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Atoms {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Atoms {}

impl PartialOrd for Atoms {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Atoms {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl<const N: usize> PartialEq<[Atom; N]> for Atoms {
    fn eq(&self, other: &[Atom; N]) -> bool {
        **self == other[..]
    }
}

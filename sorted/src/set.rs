//! The set.

use std::borrow::Borrow;
use std::fmt;

use crate::{borrowed, find};

/// A set whose elements lie in a vector, ascending.
///
/// Looking up takes a logarithmic number of comparisons; inserting and removing also move the elements behind, which
/// are none for an element above all others.
#[derive(Clone, PartialEq, Eq)]
pub struct SortedSet<K> {
    elements: Vec<K>,
}

impl<K> Default for SortedSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug> fmt::Debug for SortedSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.elements).finish()
    }
}

impl<K> SortedSet<K> {
    /// An empty set.
    pub const fn new() -> Self {
        Self { elements: Vec::new() }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The elements, ascending.
    pub fn iter(&self) -> std::slice::Iter<'_, K> {
        self.elements.iter()
    }
}

impl<K: Ord> SortedSet<K> {
    /// Whether the element is there.
    pub fn contains<Q: Ord + ?Sized>(&self, element: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        find(&self.elements, borrowed, element).is_ok()
    }

    /// Adds an element; whether it was missing.
    pub fn insert(&mut self, element: K) -> bool {
        let at = match self.elements.last() {
            Some(last) if *last < element => Err(self.elements.len()),
            _ => find(&self.elements, |element| element, &element),
        };
        if let Err(at) = at {
            self.elements.insert(at, element);
        }
        at.is_err()
    }

    /// Removes an element; whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, element: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        match find(&self.elements, borrowed, element) {
            Ok(at) => {
                self.elements.remove(at);
                true
            }
            Err(_) => false,
        }
    }

    /// Removes and returns the least element.
    pub fn pop_first(&mut self) -> Option<K> {
        (!self.elements.is_empty()).then(|| self.elements.remove(0))
    }

    /// Whether the sets share no element.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        !self.elements.iter().any(|element| other.contains(element))
    }
}

impl<K: Ord> Extend<K> for SortedSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, elements: I) {
        for element in elements {
            self.insert(element);
        }
    }
}

impl<K: Ord> FromIterator<K> for SortedSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(elements: I) -> Self {
        let mut set = Self::new();
        set.extend(elements);
        set
    }
}

impl<K: Ord, const N: usize> From<[K; N]> for SortedSet<K> {
    fn from(elements: [K; N]) -> Self {
        elements.into_iter().collect()
    }
}

impl<'a, K> IntoIterator for &'a SortedSet<K> {
    type Item = &'a K;
    type IntoIter = std::slice::Iter<'a, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.elements.iter()
    }
}

impl<K> IntoIterator for SortedSet<K> {
    type Item = K;
    type IntoIter = std::vec::IntoIter<K>;

    fn into_iter(self) -> Self::IntoIter {
        self.elements.into_iter()
    }
}

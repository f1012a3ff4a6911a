//! The map.

use std::borrow::Borrow;
use std::fmt;
use std::ops::{Bound, Index, RangeBounds};

use crate::find;

/// A map whose entries lie in a vector in the order of their keys. Iterating yields `&(K, V)`.
///
/// Looking up takes a logarithmic number of comparisons; inserting and removing also move the entries behind, which are
/// none for a key above all others.
#[derive(Clone, PartialEq, Eq)]
pub struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

/// One side of the entries of a map: its keys or its values, by key.
pub type Parts<'a, K, V, Part> = std::iter::Map<std::slice::Iter<'a, (K, V)>, fn(&'a (K, V)) -> &'a Part>;

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (key, value) in &self.entries {
            map.entry(key, value);
        }
        map.finish()
    }
}

impl<K, V> SortedMap<K, V> {
    /// An empty map.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The entries, by key.
    pub fn iter(&self) -> std::slice::Iter<'_, (K, V)> {
        self.entries.iter()
    }

    /// The keys, ascending.
    pub fn keys(&self) -> Parts<'_, K, V, K> {
        self.entries.iter().map(|entry| &entry.0)
    }

    /// The values, by key.
    pub fn values(&self) -> Parts<'_, K, V, V> {
        self.entries.iter().map(|entry| &entry.1)
    }

    /// The values, by key.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.entries.iter_mut().map(|entry| &mut entry.1)
    }

    /// The values, by key.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.entries.into_iter().map(|entry| entry.1)
    }

    /// Keeps the entries of which the condition holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|entry| keep(&entry.0, &mut entry.1));
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        find(&self.entries, |entry| entry.0.borrow(), key)
    }

    /// Where a key stands or would stand; a key above all others costs one comparison.
    fn place(&self, key: &K) -> Result<usize, usize> {
        match self.entries.last() {
            Some(last) if last.0 < *key => Err(self.entries.len()),
            _ => self.find(key),
        }
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        match self.find(key) {
            Ok(at) => Some(&self.entries[at].1),
            Err(_) => None,
        }
    }

    /// The value of a key.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        match self.find(key) {
            Ok(at) => Some(&mut self.entries[at].1),
            Err(_) => None,
        }
    }

    /// Whether the key has a value.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Gives a key a value; returns the one it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.entries.insert(at, (key, value));
                None
            }
        }
    }

    /// Takes a key's value out.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        match self.find(key) {
            Ok(at) => Some(self.entries.remove(at).1),
            Err(_) => None,
        }
    }

    /// A key and its place.
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        Entry { at: self.place(&key), key, map: self }
    }

    /// The entries with keys in a range, by key; none of a range that ends before it starts.
    pub fn range<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> std::slice::Iter<'_, (K, V)>
    where
        K: Borrow<Q>,
    {
        let or_behind = |found: Result<usize, usize>| found.map_or_else(|at| at, |at| at + 1);
        let or_there = |found: Result<usize, usize>| found.unwrap_or_else(|at| at);
        let from = match range.start_bound() {
            Bound::Included(key) => or_there(self.find(key)),
            Bound::Excluded(key) => or_behind(self.find(key)),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(key) => or_behind(self.find(key)),
            Bound::Excluded(key) => or_there(self.find(key)),
            Bound::Unbounded => self.entries.len(),
        };
        self.entries[from..to.max(from)].iter()
    }
}

/// A key of a map and where it stands or would stand.
#[must_use]
pub struct Entry<'a, K, V> {
    map: &'a mut SortedMap<K, V>,
    key: K,
    at: Result<usize, usize>,
}

impl<'a, K, V> Entry<'a, K, V> {
    /// Its value, after giving it this one if it has none.
    pub fn or_insert(self, value: V) -> &'a mut V {
        let at = match self.at {
            Ok(at) => at,
            Err(at) => {
                self.map.entries.insert(at, (self.key, value));
                at
            }
        };
        &mut self.map.entries[at].1
    }

    /// Its value, after giving it what the function returns if it has none.
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> &'a mut V {
        let at = match self.at {
            Ok(at) => at,
            Err(at) => {
                self.map.entries.insert(at, (self.key, value()));
                at
            }
        };
        &mut self.map.entries[at].1
    }

    /// Its value, after giving it the default of its type if it has none.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }
}

impl<K: Ord + Borrow<Q>, Q: Ord + ?Sized, V> Index<&Q> for SortedMap<K, V> {
    type Output = V;

    /// The value of a key that has one.
    ///
    /// # Panics
    ///
    /// Panics if the key has none.
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("a key of the map")
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for SortedMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<'a, K, V> IntoIterator for &'a SortedMap<K, V> {
    type Item = &'a (K, V);
    type IntoIter = std::slice::Iter<'a, (K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

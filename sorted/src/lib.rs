//! Maps and sets as sorted vectors.
//!
//! They stand in for `BTreeMap` and `BTreeSet` where a collection stays small or grows at its end. The reason is what a
//! user's build pays: each type of `BTreeMap` brings about 4,300 lines of LLVM IR into a debug build, each of these
//! about 300, and nothing of a procedural macro is optimised, so that their code is also the faster one there.
//!
//! Inserting in the middle moves what stands behind: a collection that grows with the number of a kernel's instructions
//! and not at its end stays a tree.
//!
//! **Not for use on its own.** This crate is published because `tilewright` is made of it. Any version may change
//! anything here, and all crates of one version belong together.

mod map;
mod set;
#[cfg(test)]
mod tests;

pub use map::{Entry, Parts, SortedMap};
pub use set::SortedSet;

use std::borrow::Borrow;
use std::cmp::Ordering;

/// Where a key stands among entries whose keys ascend, or where it would stand.
///
/// One loop for maps and sets, without the closures of `slice::binary_search_by`, which a debug build calls one by one.
///
/// # Errors
/// Where it would stand, if it does not.
pub fn find<Q: Ord + ?Sized, E>(entries: &[E], key: impl Fn(&E) -> &Q, wanted: &Q) -> Result<usize, usize> {
    let (mut from, mut to) = (0, entries.len());
    while from < to {
        let middle = from.midpoint(to);
        match key(&entries[middle]).cmp(wanted) {
            Ordering::Less => from = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => to = middle,
        }
    }
    Err(from)
}

/// A key as what it is looked up by.
fn borrowed<Q: ?Sized, K: Borrow<Q>>(key: &K) -> &Q {
    key.borrow()
}

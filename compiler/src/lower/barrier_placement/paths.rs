//! What happened on the paths to a statement, by what is known there.

use std::rc::Rc;

use tilewright_sorted::SortedMap;

use crate::lower::guards::Known;
use crate::lower::pending_accesses::Since;

/// What happened on the paths to a statement, by what is known there. Those that part share it until one changes it.
pub(super) type Paths = SortedMap<Known, Rc<Since>>;

/// So many kinds of paths are told apart; beyond that, all are one.
pub(super) const MOST_PATHS: usize = 64;

/// A role, on all paths that came to it.
#[derive(Clone, Debug)]
pub(super) struct InRole {
    /// What happened before it.
    pub before: Paths,
    /// What happened at its end.
    pub after: Paths,
}

/// A loop on all paths that came to it: inside another loop, in each iteration of that.
#[derive(Clone, Debug, Default)]
pub(super) struct Iterations {
    /// What happened before it.
    pub before: Paths,
    /// What happened after one of its iterations.
    pub after: Paths,
}

pub(super) fn add(paths: &mut Paths, known: Known, since: Rc<Since>) {
    match paths.get_mut(&known) {
        Some(other) if Rc::ptr_eq(other, &since) => {}
        Some(other) => Rc::make_mut(other).join(&since),
        None => drop(paths.insert(known, since)),
    }
}

/// Changes what happened on all paths: once where the same did on several of them, which then share it.
pub(super) fn change(paths: &mut Paths, how: impl Fn(&mut Since)) {
    let mut changed: Vec<(Rc<Since>, Rc<Since>)> = Vec::new();
    for since in paths.values_mut() {
        let is_it = |before: &Rc<Since>| Rc::ptr_eq(before, since) || *before == *since;
        if let Some((_, after)) = changed.iter().find(|(before, _)| is_it(before)) {
            *since = after.clone();
            continue;
        }
        let before = since.clone();
        how(Rc::make_mut(since));
        changed.push((before, since.clone()));
    }
}

/// The paths on which something happened that did not on others.
pub(super) fn other_than(paths: &Paths, others: &Paths) -> Paths {
    paths.iter().filter(|(known, since)| others.get(known) != Some(since)).cloned().collect()
}

/// The paths, without what tells them apart.
pub(super) fn as_one(paths: Paths) -> Paths {
    let mut all = Paths::new();
    paths.into_values().for_each(|since| add(&mut all, Known::default(), since));
    all
}

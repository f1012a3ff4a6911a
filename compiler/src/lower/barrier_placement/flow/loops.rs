//! What happens in the iterations of loops, and what is known on the paths through them.

use std::rc::Rc;

use tilewright_sorted::SortedMap;

use super::super::paths::{Iterations, MOST_PATHS, Paths, add, as_one, change, other_than};
use super::Pass;
use crate::kernel_ir::{Loop, RegionId};
use crate::lower::dependence::Group;
use crate::lower::guards::{Fact, Known};
use crate::lower::pending_accesses::Since;

impl Pass<'_> {
    /// What happened after a loop inside so many others; none if something in it is not ordered.
    pub(super) fn iterations(&self, l: &Loop, depth: usize, paths: Paths) -> Option<Paths> {
        let [runs, skips] = self.sides(paths, Fact::Runs(l.count));
        // What was before the loop is after it only where it has no iteration.
        let always = self.kernel.value(l.count).facts.range.low >= 1;
        let skips = if always { Paths::new() } else { skips };
        let mut paths = Paths::new();
        if self.is_alike(l.body) {
            for (known, since) in runs {
                add(&mut paths, known, self.repeated_alike(l, depth, since)?);
            }
        } else {
            paths = self.repeated(l, depth, runs)?;
            change(&mut paths, |since| since.behind(depth));
            paths = self.forgotten(l.body, paths);
        }
        skips.into_iter().for_each(|(known, since)| add(&mut paths, known, since));
        Some(paths)
    }

    /// Whether nothing tells paths apart in a loop with this body.
    fn is_alike(&self, body: RegionId) -> bool {
        #[cfg(test)]
        if self.follows_all.get() {
            return false;
        }
        self.alike.contains(&body)
    }

    /// What happened after one iteration or more of a loop in which nothing tells paths apart, by what happened before.
    fn repeated_alike(&self, l: &Loop, depth: usize, before: Rc<Since>) -> Option<Rc<Since>> {
        // Who asks which buffers are used beside each other asks every statement.
        let is_kept = self.apart.borrow().is_none();
        let seen = if is_kept { self.seen.after_loop(l.body, &before, self.searches) } else { None };
        if seen.is_some() {
            return seen;
        }
        let changes = self.seen.changes();
        self.loops.borrow_mut().remove(&l.body);
        let mut after = self.repeated(l, depth, SortedMap::from([(Known::default(), before.clone())]))?;
        self.loops.borrow_mut().remove(&l.body);
        change(&mut after, |since| since.behind(depth));
        let after = as_one(after).into_values().next()?;
        if is_kept && self.seen.changes() == changes {
            self.seen.keep_loop(l.body, before, after.clone(), self.searches);
        }
        Some(after)
    }

    /// What happened after one iteration or more of a loop that is come to on these paths, or was before: a loop inside
    /// another one is come to in each of its iterations, and what happens there on any path is one set in the end.
    fn repeated(&self, l: &Loop, depth: usize, paths: Paths) -> Option<Paths> {
        let Iterations { mut before, mut after } = self.loops.borrow_mut().remove(&l.body).unwrap_or_default();
        let earlier = before.clone();
        paths.into_iter().for_each(|(known, since)| add(&mut before, known, since));
        before = if before.len() > MOST_PATHS { as_one(before) } else { before };
        let placed = self.placed.borrow().clone();
        let is_around = |group: Group| self.dependences.is_around(l.body, depth, group);
        let mut many = false;
        // What comes to an iteration that did not come to one so far.
        let mut fresh = other_than(&before, &earlier);
        // Nothing more can come at some time: each turn adds something, and there is little to add.
        while !fresh.is_empty() {
            let earlier = after.clone();
            let behind = self.iterated(l.body, self.flow(l.body, depth + 1, fresh)?);
            behind.into_iter().for_each(|(known, since)| add(&mut after, known, since));
            many |= after.len() > MOST_PATHS;
            after = if many { as_one(after) } else { after };
            fresh = other_than(&after, &earlier);
            change(&mut fresh, |since| since.again(depth, &is_around));
        }
        // What was found before a barrier was put is more than happens now.
        if *self.placed.borrow() != placed {
            return Some(after);
        }
        let found = after.clone();
        self.loops.borrow_mut().insert(l.body, Iterations { before, after });
        Some(found)
    }

    /// The paths after a region: what it binds is another value the next time.
    pub(super) fn forgotten(&self, region: RegionId, paths: Paths) -> Paths {
        self.known_as(paths, |fact| (self.kernel.value(fact.value()).region != region).then_some(fact))
    }

    /// The paths after an iteration, where what it binds was so in the iteration before.
    fn iterated(&self, body: RegionId, paths: Paths) -> Paths {
        let bound = |fact: Fact| self.kernel.value(fact.value()).region == body;
        self.known_as(paths, |fact| if bound(fact) { self.guards.before(fact) } else { Some(fact) })
    }

    fn known_as(&self, paths: Paths, how: impl Fn(Fact) -> Option<Fact>) -> Paths {
        let mut behind = Paths::new();
        for (known, since) in paths {
            add(&mut behind, self.guards.known_as(known, &how), since);
        }
        if behind.len() > MOST_PATHS { as_one(behind) } else { behind }
    }

    /// The paths on which a fact holds, and those on which it does not.
    pub(super) fn sides(&self, paths: Paths, fact: Fact) -> [Paths; 2] {
        let mut sides = [Paths::new(), Paths::new()];
        for (known, since) in paths {
            for (side, holds) in sides.iter_mut().zip([true, false]) {
                if !self.guards.excludes(known, fact, holds) {
                    add(side, self.guards.with(known, fact, holds), since.clone());
                }
            }
        }
        sides
    }
}

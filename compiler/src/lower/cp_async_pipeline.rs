//! Copies by `cp.async`: threads start them, go on, and wait for them where they are read.
//!
//! ```text
//! fetch …; commit                 each thread copies its elements
//! await all but 0 commits         its own are done
//! ```
//!
//! With rings at one loop, of which the shortest has n buffers, instances are fetched ahead, one less than the ring has
//! buffers. A commit is one step of all of them, made whether there is anything left to fetch or not, so that what an
//! iteration reads is always the commit that came n − 1 before the newest:
//!
//! ```text
//! fetch instance 0; commit …      n − 1 commits; instances that the loop does not have are left out
//! for i in 0..count {
//!     await all but n − 2 commits
//!     if i + ring − 1 < count { fetch instance i + ring − 1 }         to the slot that iteration i − 1 read
//!     commit
//!     …
//! }
//! ```
//!
//! One barrier an iteration, after the wait, orders the copies before their readers, and the readers before the next
//! copies to their slot (`barrier_placement`). Groups of other loops that are committed in between only make a wait
//! longer, never shorter. Slots are variables of the whole kernel: a loop that is entered again goes on where it
//! stopped, and nothing is under way when it ends.
//!
//! An instance is computed by the nest of its stage, for whatever iteration the loop around it is said to be in.
//! Predicates that say that an element is outside become an operand of the copy, which then writes zeros; those that
//! say that there is no such place stay branches.

use super::nested_stage::{Instance, Kept};
use super::stage::{Iteration, Nest, Point};
use crate::kernel_ir::{CpAsync, ValueId};
use crate::memory::fetch;
use crate::schedule::Stage;

impl<'a> Nest<'a, '_> {
    /// Whether instances of a stage are fetched ahead in the loops of whoever reads them: not by another role, which is
    /// ahead itself.
    pub(super) fn runs_ahead(&self, at: usize) -> bool {
        self.stage_at(at).fetches && self.pipeline(at).between.is_none()
    }

    fn stage_at(&self, at: usize) -> &'a Stage {
        &self.around.stages[at].stage
    }

    /// Before the loop at position `k`, which has so many iterations: fetches the first instances of the rings in
    /// it.
    pub(super) fn fetch_ahead(&mut self, point: &Point, k: usize, count: ValueId) {
        let children = self.children.iter().filter(|child| child.1 == k + 1).map(|child| child.0);
        let rings: Vec<usize> = children.filter(|at| self.runs_ahead(*at) && self.stage_at(*at).ring > 1).collect();
        let is_own = |at: &usize| self.stage_at(*at).role == self.around.role && !self.around.passes;
        let rings: Vec<usize> = rings.into_iter().filter(is_own).collect();
        let Some(longest) = rings.iter().map(|at| self.stage_at(*at).ring).max() else { return };
        for step in 0..longest - 1 {
            for at in &rings {
                // All rings are full at the last step.
                let Some(ahead) = (step + self.stage_at(*at).ring).checked_sub(longest) else { continue };
                let first = self.iteration(self.sequence[k], ahead, count);
                self.fetch_instance(point, *at, first, ahead);
            }
            self.b.cp_async_commit_group();
        }
    }

    /// Fetches the instance of an iteration, if that exists, to the slot `ahead` of the next one that is
    /// read.
    fn fetch_instance(&mut self, point: &Point, at: usize, iteration: Iteration, ahead: u32) {
        let slot = self.pipeline(at).slot(self.b);
        let slot = self.pipeline(at).slot_after(self.b, slot, ahead);
        self.b.begin_if(iteration.exists);
        self.fetched_to(point, at, slot, Some(iteration));
        self.b.end_if();
    }

    fn fetched_to(&mut self, point: &Point, at: usize, slot: ValueId, other: Option<Iteration>) {
        let memory = self.begin_lifetime(at, slot);
        let instance = Instance { at, stage: self.stage_at(at), memory, around: self.around(point, other) };
        self.compute(at, &instance);
    }

    /// Fetches and awaits the instances that stand inside `k` loops.
    pub(super) fn begin_fetched(&mut self, point: &Point, k: usize, fetched: &[usize]) {
        if fetched.is_empty() {
            return;
        }
        let (rings, single): (Vec<usize>, Vec<usize>) = fetched.iter().partition(|at| self.stage_at(**at).ring > 1);
        if !single.is_empty() {
            for at in &single {
                let slot = self.pipeline(*at).slot(self.b);
                self.fetched_to(point, *at, slot, None);
            }
            self.b.cp_async_commit_group();
        }
        let shortest = rings.iter().map(|at| self.stage_at(*at).ring).min();
        let pending = shortest.filter(|_| single.is_empty()).map_or(0, |ring| ring - 2);
        self.b.cp_async_wait_group(pending);
        for at in &rings {
            let ahead = self.stage_at(*at).ring - 1;
            if let Some(later) = self.later(point, k, ahead) {
                self.fetch_instance(point, *at, later, ahead);
            }
        }
        if !rings.is_empty() {
            self.b.cp_async_commit_group();
        }
        for at in fetched {
            let slot = self.pipeline(*at).slot(self.b);
            self.pipeline(*at).advance(self.b, slot, None);
            let memory = self.in_slot(*at, slot);
            let instance = Instance { at: *at, stage: self.stage_at(*at), memory, around: self.around(point, None) };
            self.values.instances.push(instance);
        }
    }

    /// Copies the lanes of an element of the instance. Where `filled` does not hold, they become zero.
    pub(super) fn fetch(&mut self, target: &Instance<'_>, points: &[Point], filled: Option<ValueId>) {
        let analysed = self.analysed;
        let Some(read) = analysed.accesses.iter().find(|a| !a.is_write) else { return };
        let (Some(id), Some(Kept::Buffer { buffer, base, .. })) = (read.value, target.memory.first()) else { return };
        // The lanes of a vector go together.
        let whole = analysed.vector.as_ref().filter(|_| points.len() > 1);
        let Ok(lanes) = fetch::unit(&analysed.stage, whole, &analysed.symbolic, read) else { return };
        for point in points.iter().step_by(lanes as usize) {
            let scope = self.scope(&point.values);
            let Some((parameter, from)) = self.values.place_read(self.b, id, &scope) else { continue };
            let Some(to) = self.place(point, *buffer, *base) else { continue };
            self.b.cp_async(CpAsync { parameter, from, buffer: *buffer, to, lanes, predicate: filled });
        }
    }
}

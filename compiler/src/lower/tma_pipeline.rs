//! Where a loop nest starts, waits for and ends the instances of its staged copies.
//!
//! An instance of a copy to shared memory stands before what the loops around it do:
//!
//! ```text
//! elect { expect; copy … }
//! await
//! ```
//!
//! With a ring of n buffers the first n instances are started before the loop, and each is replaced by the one n
//! iterations later as soon as its readers are done:
//!
//! ```text
//! elect { for s in 0..n: if s < count { expect slot s; copy … } }
//! for i in 0..count {
//!     await slot
//!     …
//!     if i + n < count { elect { expect slot; copy … of iteration i + n } }
//!     slot = next slot; a barrier's phase ends when the slots come around
//! }
//! ```
//!
//! Slots and phases are variables of the whole kernel: a loop that is entered again goes on where it stopped. An
//! instance of a copy to a tensor stands after what the loops do, in a ring of n buffers:
//!
//! ```text
//! publish                         every thread, after its writes
//! elect { await reads of all but n − 2 commits }      the next instance's slot is free, n ≥ 2
//! elect { copy …; commit }
//! ```
//!
//! With one buffer the elected thread waits after its commit. Before a block ends, its copies have read shared memory.
//! Where threads wait for each other, `barrier_placement` finds out: before a slot is filled again, its readers are
//! done, in all blocks that take a copy together.

use super::stage::{Iteration, Nest, Point};
use super::staging::{self, Copy};
use crate::extent::Var;
use crate::kernel_ir::{Builder, Type, ValueId};
use crate::plan::staged::Way;

impl<'a> Nest<'a, '_> {
    /// The copies inside so many loops that are not handed to other roles.
    fn here(&self, k: usize, way: Way) -> Vec<Copy<'a>> {
        let is_here = |copy: &&Copy<'_>| copy.boundary == k && copy.staged.way == way && self.is_own(copy);
        self.copies.iter().filter(is_here).cloned().collect()
    }

    /// Whether what stands inside `k` loops of the stage may come again in a block: the stage may stand in loops
    /// itself, and the block take several tiles.
    pub(super) fn repeats(&self, k: usize) -> bool {
        k > 0 || self.target.is_some() || self.around.tile.is_some()
    }

    /// Where the region of an instance starts, for the loops at `point`; `other` gives one of them another value.
    pub(super) fn starts(&mut self, copy: &Copy<'_>, point: &Point, other: Option<Iteration>) -> Vec<ValueId> {
        let (leaves, dims, ty) = (&self.stage.domain.leaves, self.facts.dims(), self.index);
        let value = |b: &mut Builder, v: Var| {
            let leaf = (v as usize).checked_sub(dims).and_then(|n| leaves.get(n));
            let other = other.filter(|other| leaf == Some(&other.axis)).map(|other| other.value);
            match other.or_else(|| leaf.and_then(|leaf| point.values[*leaf])) {
                Some(value) => b.index_convert(value, ty),
                None => b.dim(v as u16, ty),
            }
        };
        staging::starts(self.b, copy.staged, ty, &value)
    }

    /// The same, for the copies that the elected thread starts.
    pub(super) fn corners(&mut self, copy: &Copy<'_>, point: &Point, other: Option<Iteration>) -> Vec<ValueId> {
        let starts = self.starts(copy, point, other);
        copy.corners(self.b, starts)
    }

    /// Before the loop at position `k`, which has so many iterations: fills the rings of the copies in it.
    pub(super) fn fill_rings(&mut self, point: &Point, k: usize, count: ValueId) {
        let rings: Vec<Copy<'_>> = self.here(k + 1, Way::Load).into_iter().filter(|c| c.staged.ring > 1).collect();
        if rings.is_empty() {
            return;
        }
        let slots: Vec<ValueId> = rings.iter().map(|copy| self.slot_at(copy, k)).collect();
        self.b.begin_elect();
        for (copy, first) in rings.iter().zip(slots) {
            for ahead in 0..copy.staged.ring {
                let at = self.iteration(self.sequence[k], ahead, count);
                let starts = self.corners(copy, point, Some(at));
                let slot = copy.pipeline.slot_after(self.b, first, ahead);
                self.b.begin_if(at.exists);
                copy.start(self.b, &starts, slot);
                self.b.end_if();
            }
        }
        self.b.end_elect();
    }

    /// The slot that the first instance of a loop inside `k` others has: the first one, if the loop is entered once.
    fn slot_at(&mut self, copy: &Copy<'_>, k: usize) -> ValueId {
        match self.repeats(k) {
            false => self.b.index_literal(Type::I32, 0),
            true => copy.pipeline.slot(self.b),
        }
    }

    /// Starts the copies of which an instance stands here, inside `k` loops, and waits for them; gives copies to
    /// tensors their buffer.
    pub(super) fn begin_instances(&mut self, point: &Point, k: usize) {
        let (loads, stores) = (self.here(k, Way::Load), self.here(k, Way::Store));
        let now: Vec<&Copy<'_>> = loads.iter().filter(|copy| copy.staged.ring == 1).collect();
        if !now.is_empty() {
            let starts: Vec<Vec<ValueId>> = now.iter().map(|copy| self.corners(copy, point, None)).collect();
            let slot = self.b.index_literal(Type::I32, 0);
            self.b.begin_elect();
            for (copy, starts) in now.iter().zip(&starts) {
                copy.start(self.b, starts, slot);
            }
            self.b.end_elect();
        }
        for copy in loads.iter().chain(&stores) {
            let slot = copy.pipeline.slot(self.b);
            let parity = copy.finish(self.b, slot);
            if copy.staged.ring == 1 && copy.staged.way == Way::Load && self.repeats(k) {
                copy.pipeline.advance(self.b, slot, parity);
            }
            self.hold(copy, slot, point);
        }
    }

    /// From here on the instance of a copy in `slot` is what readers and writers see.
    pub(super) fn hold(&mut self, copy: &Copy<'a>, slot: ValueId, point: &Point) {
        let starts = self.starts(copy, point, None);
        let held = copy.held(self.b, slot, starts, self.index);
        let list = match copy.staged.way {
            Way::Load => &mut self.values.staged,
            Way::Store => &mut self.targets,
        };
        list.retain(|held| held.buffer != copy.buffer);
        list.push(held);
    }

    /// After everything that an instance inside `k` loops is for: hands its buffer to the instance that comes next, or
    /// to the tensor.
    pub(super) fn end_instances(&mut self, point: &Point, k: usize) {
        let (loads, stores) = (self.here(k, Way::Load), self.here(k, Way::Store));
        let rings: Vec<&Copy<'_>> = loads.iter().filter(|copy| copy.staged.ring > 1).collect();
        // Each ring with whether there is an iteration to fill the slot for, and which.
        let mut refills = Vec::with_capacity(rings.len());
        for copy in &rings {
            let Some(later) = self.later(point, k, copy.staged.ring) else { continue };
            let starts = self.corners(copy, point, Some(later));
            let slot = copy.pipeline.slot(self.b);
            refills.push((*copy, later.exists, starts, slot));
        }
        let outgoing: Vec<_> = (stores.iter())
            .map(|copy| {
                let slot = copy.pipeline.slot(self.b);
                (copy, self.corners(copy, point, None), slot)
            })
            .collect();
        let shortest = stores.iter().map(|copy| copy.staged.ring).min();
        // Groups of other loops would be counted, too.
        let alone = self.commits().iter().all(|c| c.boundary == k);
        if let Some(ring) = shortest {
            self.b.fence_proxy_async();
            if self.repeats(k) && ring > 1 {
                self.b.begin_elect();
                self.b.bulk_wait_group_read(if alone { ring - 2 } else { 0 });
                self.b.end_elect();
            }
        }
        // The shortest ring is the last to have nothing left to fill.
        let any = refills.iter().min_by_key(|r| r.0.staged.ring).map(|r| r.1);
        let conditional = any.filter(|_| stores.is_empty());
        if let Some(any) = conditional {
            self.b.begin_if(any);
        }
        if !(refills.is_empty() && outgoing.is_empty()) {
            self.b.begin_elect();
            for (copy, exists, starts, slot) in &refills {
                // One branch is enough.
                let own = conditional != Some(*exists);
                if own {
                    self.b.begin_if(*exists);
                }
                copy.start(self.b, starts, *slot);
                if own {
                    self.b.end_if();
                }
            }
            for (copy, starts, slot) in &outgoing {
                copy.start(self.b, starts, *slot);
            }
            if let Some(ring) = shortest {
                self.b.bulk_commit_group();
                if self.repeats(k) && ring == 1 {
                    self.b.bulk_wait_group_read(0);
                }
            }
            self.b.end_elect();
        }
        if conditional.is_some() {
            self.b.end_if();
        }
        for (copy, _, _, slot) in &refills {
            copy.pipeline.advance(self.b, *slot, None);
        }
        for (copy, _, slot) in &outgoing {
            copy.pipeline.advance(self.b, *slot, None);
        }
    }

    /// The copies to tensors that the elected thread of this role starts.
    pub(super) fn commits(&self) -> Vec<Copy<'a>> {
        let hands = |copy: &Copy<'_>| copy.pipeline.between.is_some() && copy.staged.role == self.around.role;
        let is_started = |copy: &&Copy<'_>| copy.staged.way == Way::Store && (self.is_own(copy) || hands(copy));
        self.copies.iter().filter(is_started).cloned().collect()
    }

    /// At the end: shared memory stays until the accelerator has read it. A store with one buffer in a loop has been
    /// waited for.
    pub(super) fn drain(&mut self) {
        let waits = |copy: &Copy<'_>| copy.staged.ring == 1 && (copy.boundary > 0 || copy.pipeline.between.is_some());
        let stores = self.commits();
        let waited = |copy: &Copy<'_>| stores.iter().any(|other| other.boundary == copy.boundary && waits(other));
        if !stores.iter().all(waited) {
            self.b.begin_elect();
            self.b.bulk_wait_group_read(0);
            self.b.end_elect();
        }
    }
}

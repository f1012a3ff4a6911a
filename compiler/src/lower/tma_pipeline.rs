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
//! What another role makes or reads is started and awaited here as well, with a wait for a free slot before it is
//! filled; `role_pipeline` says how it is handed over.
//! Where threads wait for each other, `barrier_placement` finds out: before a slot is filled again, its readers are
//! done, in all blocks that take a copy together.

use super::stage::{Iteration, Nest, Point};
use super::staging::{self, Copy, Corners};
use super::value::expression;
use crate::domain::AxisId;
use crate::extent::{Expr, Family, Var};
use crate::kernel_ir::{Builder, RegionId, Type, ValueId};
use crate::plan::roles::is_read_behind;
use crate::plan::staged::Way;
use crate::schedule::accesses::FromMemory;

/// A copy that this role makes or reads; or all threads do, without roles.
pub(super) struct Part<'a> {
    pub copy: Copy<'a>,
    pub makes: bool,
    reads: bool,
}

impl Part<'_> {
    fn is_load(&self) -> bool {
        self.copy.staged.way == Way::Load
    }

    /// Whether others make it or read it, too.
    pub fn is_handed(&self) -> bool {
        self.copy.pipeline.between.is_some()
    }

    /// Whether each instance takes the place of one that has been read, in the iteration that read it.
    fn is_refilled(&self) -> bool {
        !self.is_handed() && self.copy.staged.ring > 1
    }
}

/// What memory holds of the places of copies, where it was read.
pub(super) struct PlaceRead {
    read: FromMemory,
    /// For these iterations: those of a loop that is written out stand in one region.
    iterations: Vec<Option<ValueId>>,
    /// It is there as long as this is open.
    region: RegionId,
    value: ValueId,
}

/// The loops of a stage around an instance.
#[derive(Clone, Copy)]
struct Loops<'p> {
    leaves: &'p [AxisId],
    dims: usize,
    point: &'p Point,
    /// The iteration that is meant of one of them, if not the present one.
    other: Option<Iteration>,
}

impl Loops<'_> {
    fn leaf(&self, v: Var) -> Option<AxisId> {
        (v as usize).checked_sub(self.dims).and_then(|n| self.leaves.get(n)).copied()
    }

    /// The iteration of a loop; none of a dimension.
    fn iteration(&self, v: Var) -> Option<ValueId> {
        let leaf = self.leaf(v)?;
        let other = self.other.filter(|other| other.axis == leaf).map(|other| other.value);
        other.or(self.point.values[leaf])
    }

    /// The value of a loop, or of a dimension.
    fn value(&self, b: &mut Builder, v: Var, ty: Type) -> ValueId {
        match self.iteration(v) {
            Some(value) => b.index_convert(value, ty),
            None => b.dim(v as u16, ty),
        }
    }

    /// The iterations that decide which element is read.
    fn iterations(&self, read: &FromMemory) -> Vec<Option<ValueId>> {
        read.indices.iter().flat_map(Expr::vars).map(|v| self.iteration(v)).collect()
    }
}

/// An instance of a copy that is about to be started.
struct Due<'a, 'c> {
    copy: &'c Copy<'a>,
    slot: ValueId,
    /// Where it is copied from or to.
    corners: Corners,
    /// Whether there is such an instance; always, if nothing says so.
    exists: Option<ValueId>,
}

impl<'a> Nest<'a, '_> {
    /// The copies inside so many loops that this role has a part in.
    pub(super) fn parts(&self, k: usize) -> Vec<Part<'a>> {
        let here = self.copies.iter().filter(|copy| copy.staged.attach.loops == k);
        let part = |copy: &Copy<'a>| {
            let Some(between) = &copy.pipeline.between else {
                return self.is_own(copy).then(|| Part { copy: copy.clone(), makes: true, reads: true });
            };
            let (roles, role) = (&between.roles, self.around.role.filter(|role| between.roles.has(*role))?);
            let makes = roles.producer == role;
            let reads = roles.consumers.contains(&role) || makes && roles.reads_own;
            Some(Part { copy: copy.clone(), makes, reads })
        };
        here.filter_map(part).collect()
    }

    /// How many iterations before its own an instance of a copy inside `k` loops is started: as many as the ring has
    /// slots, where each is filled again once it has been read; one less where a role fills the ring for itself and
    /// others, since it reads one slot meanwhile.
    fn ahead(&self, part: &Part<'a>, k: usize) -> u32 {
        let axis = k.checked_sub(1).and_then(|k| self.sequence.get(k));
        let is_rolled = axis.is_some_and(|axis| self.stage.is_rolled(*axis));
        let ring = part.copy.staged.ring;
        if !is_rolled || !part.makes || !part.is_load() {
            0
        } else if part.is_refilled() {
            ring
        } else if part.reads {
            ring - 1
        } else {
            0
        }
    }

    /// Whether what stands inside `k` loops of the stage may come again in a block: the stage may stand in loops
    /// itself, and the block take several tiles.
    pub(super) fn repeats(&self, k: usize) -> bool {
        k > 0 || self.target.is_some() || self.around.tile.is_some()
    }

    /// Where the region of an instance starts, for the loops at `point`, of which `other` gives one another value; with
    /// what is `added` by memory, or as [`Held::starts`](staging::Held::starts) says.
    pub(super) fn starts(
        &mut self,
        copy: &Copy<'_>,
        (point, other): (&Point, Option<Iteration>),
        added: Option<&[(Var, ValueId)]>,
    ) -> Vec<ValueId> {
        let around = Loops { leaves: &self.stage.domain.leaves, dims: self.facts.dims(), point, other };
        let number = |v: Var| {
            let (_, read) = copy.staged.memory.iter().find(|(other, _)| *other == v)?;
            Some(&read.indices[read.listed?.along])
        };
        let value = |b: &mut Builder, v: Var, ty: Type| match (Family::MEMORY.number(v), added) {
            (None, _) => around.value(b, v, ty),
            (Some(_), None) => {
                let number = number(v).map(|e| expression(b, e, ty, &|b, v| around.value(b, v, ty)));
                number.unwrap_or_else(|| b.index_literal(ty, 0))
            }
            (Some(_), Some(added)) => {
                let known = added.iter().find(|(other, _)| *other == v);
                known.map_or_else(|| b.index_literal(ty, 0), |(_, value)| *value)
            }
        };
        staging::starts(self.b, copy.staged, (self.index, added.is_some()), &value)
    }

    /// The same for the copies that the elected thread starts.
    pub(super) fn corners(&mut self, copy: &Copy<'_>, point: &Point, other: Option<Iteration>) -> Corners {
        let mut added: Vec<(Var, ValueId)> = Vec::with_capacity(copy.staged.memory.len());
        let mut places = Vec::new();
        for (v, read) in &copy.staged.memory {
            let each: Vec<ValueId> = read.each().map(|one| self.of_memory(&one, (point, other))).collect();
            added.push((*v, each[0]));
            if read.listed.is_some() {
                places = each;
            }
        }
        let mut at = |added: &[(Var, ValueId)]| {
            let starts = self.starts(copy, (point, other), Some(added));
            copy.coordinates(self.b, starts)
        };
        let starts = at(&added);
        let listed = copy.staged.listed().map(|(axis, (v, _))| {
            let mut one = |place: ValueId| {
                added.iter_mut().filter(|(other, _)| other == v).for_each(|(_, value)| *value = place);
                at(&added)[axis]
            };
            (axis, places.iter().map(|place| one(*place)).collect())
        });
        Corners { starts, listed }
    }

    /// An integer that memory holds, for the loops at `point`.
    fn of_memory(&mut self, read: &FromMemory, (point, other): (&Point, Option<Iteration>)) -> ValueId {
        let around = Loops { leaves: &self.stage.domain.leaves, dims: self.facts.dims(), point, other };
        if let Some(known) = self.place_read_before(read, &around.iterations(read)) {
            return known;
        }
        let ty = self.index;
        self.values.of_memory(self.b, read, &|b, v| around.value(b, v, ty))
    }

    /// The same, if it was read before for these iterations.
    fn place_read_before(&self, read: &FromMemory, iterations: &[Option<ValueId>]) -> Option<ValueId> {
        let is_it =
            |known: &&PlaceRead| known.read == *read && known.iterations == iterations && self.b.is_open(known.region);
        self.places_read.iter().find(is_it).map(|known| known.value)
    }

    /// Before the loop at position `k`: reads what copies in it need of memory, if it is the same in each iteration.
    pub(super) fn read_places(&mut self, point: &Point, k: usize) {
        if self.around.passes {
            return;
        }
        self.places_read.retain(|known| self.b.is_open(known.region));
        let inside = &self.sequence[k..];
        let vars: Vec<Var> = (self.stage.domain.leaves.iter().enumerate())
            .filter(|(_, leaf)| inside.contains(leaf))
            .map(|(n, _)| (self.facts.dims() + n) as Var)
            .collect();
        let parts = (k + 1..=self.sequence.len()).flat_map(|n| self.parts(n)).filter(|part| part.makes);
        let reads: Vec<FromMemory> =
            parts.flat_map(|part| &part.copy.staged.memory).flat_map(|(_, read)| read.each()).collect();
        for read in reads {
            let is_inside = read.indices.iter().flat_map(Expr::vars).any(|v| vars.contains(&v));
            let around = Loops { leaves: &self.stage.domain.leaves, dims: self.facts.dims(), point, other: None };
            let iterations = around.iterations(&read);
            if !is_inside && self.place_read_before(&read, &iterations).is_none() {
                let value = self.of_memory(&read, (point, None));
                self.places_read.push(PlaceRead { read, iterations, region: self.b.region(), value });
            }
        }
    }

    /// Before the loop at position `k`, which has so many iterations: starts the first instances of the copies in it
    /// that are ahead.
    pub(super) fn fill_rings(&mut self, point: &Point, k: usize, count: ValueId) {
        if self.around.passes {
            return;
        }
        let parts = self.parts(k + 1);
        let mut due = Vec::new();
        for part in &parts {
            let copy = &part.copy;
            let ahead = self.ahead(part, k + 1);
            if ahead == 0 {
                continue;
            }
            let now = (self.slot_at(copy, k), copy.pipeline.parity(self.b).filter(|_| part.is_handed()));
            for n in 0..ahead {
                let first = self.iteration(self.sequence[k], n, count);
                // Nobody has used the slots of a loop that is entered once.
                due.push(self.due(part, (now, n), (point, Some(first)), self.repeats(k)));
            }
        }
        self.start(&due);
    }

    /// The instance that comes so many after the one that has this slot and parity, of another iteration than the
    /// present one if there is `other`. Threads wait for others to free the slot, where it `is_used`.
    fn due<'c>(
        &mut self,
        part: &'c Part<'a>,
        (now, ahead): ((ValueId, Option<ValueId>), u32),
        (point, other): (&Point, Option<Iteration>),
        is_used: bool,
    ) -> Due<'a, 'c> {
        let copy = &part.copy;
        let next = copy.pipeline.instance_after(self.b, now, ahead);
        let exists = other.map(|other| other.exists);
        if is_used && part.is_handed() && copy.leads() {
            self.if_it_exists(exists, |b| copy.pipeline.acquire_for(b, next));
        }
        Due { copy, slot: next.0, corners: self.corners(copy, point, other), exists }
    }

    /// The slot that the first instance of a loop inside `k` others has: the first one, if the loop is entered once.
    fn slot_at(&mut self, copy: &Copy<'_>, k: usize) -> ValueId {
        match self.repeats(k) {
            false => self.b.index_literal(Type::I32, 0),
            true => copy.pipeline.slot(self.b),
        }
    }

    /// What is done for an instance, in a branch if it may not exist.
    fn if_it_exists(&mut self, exists: Option<ValueId>, what: impl FnOnce(&mut Builder)) {
        exists.into_iter().for_each(|exists| self.b.begin_if(exists));
        what(self.b);
        exists.into_iter().for_each(|_| self.b.end_if());
    }

    /// Starts instances of copies by the elected thread.
    fn start(&mut self, due: &[Due<'a, '_>]) {
        if due.is_empty() {
            return;
        }
        self.b.begin_elect();
        for Due { copy, slot, corners, exists } in due {
            self.if_it_exists(*exists, |b| copy.start(b, corners, *slot));
        }
        self.b.end_elect();
    }

    /// Starts the copies that this role makes inside `k` loops, but those that are [late](Self::begin_late), and waits
    /// for those that it reads; gives copies to tensors their buffer.
    pub(super) fn begin_instances(&mut self, point: &Point, k: usize) {
        if self.around.passes {
            return;
        }
        let parts = self.parts(k);
        self.begin_made(point, k, &parts, false);
        for part in parts.iter().filter(|part| !(part.reads && self.is_for_behind(&part.copy, k))).collect::<Vec<_>>() {
            let copy = &part.copy;
            let slot = self.slot(copy);
            match copy.staged.way {
                Way::Load if part.reads => {
                    let parity = if self.learns_of(copy, k) { None } else { copy.finish(self.b, slot) };
                    if !part.is_handed() && copy.staged.ring == 1 && self.repeats(k) {
                        copy.pipeline.advance(self.b, slot, parity);
                    }
                }
                Way::Store if part.makes => copy.pipeline.acquire(self.b, slot),
                _ => continue,
            }
            self.hold(copy, slot, point);
        }
    }

    /// After everything else that this role makes inside `k` loops: starts the copies whose slots are handed back by a
    /// product that is a block behind. It is over when the next block's scores are under way, which need the rest.
    pub(super) fn begin_late(&mut self, point: &Point, k: usize) {
        if !self.around.passes {
            let parts = self.parts(k);
            self.begin_made(point, k, &parts, true);
        }
    }

    fn begin_made(&mut self, point: &Point, k: usize, parts: &[Part<'a>], are_late: bool) {
        let stages = self.around.stages;
        let made = parts.iter().filter(|part| part.makes && part.is_load() && !part.is_refilled());
        let mut due = Vec::new();
        for part in made.filter(|part| is_read_behind(stages, part.copy.staged) == are_late) {
            let copy = &part.copy;
            let ahead = self.ahead(part, k);
            let now = (copy.pipeline.slot(self.b), copy.pipeline.parity(self.b).filter(|_| part.is_handed()));
            // What comes so many iterations later takes the slot that the last iteration read.
            let later = if ahead > 0 { self.later(point, k, ahead) } else { None };
            due.push(self.due(part, (now, ahead), (point, later), true));
        }
        self.start(&due);
    }

    /// From here on the instance of a copy in `slot` is what readers and writers see.
    pub(super) fn hold(&mut self, copy: &Copy<'a>, slot: ValueId, point: &Point) {
        let starts = self.starts(copy, (point, None), None);
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
        if self.around.passes {
            return;
        }
        let parts = self.parts(k);
        let mut refills = Vec::new();
        for copy in parts.iter().filter(|part| part.is_load() && part.is_refilled()).map(|part| &part.copy) {
            let Some(later) = self.later(point, k, copy.staged.ring) else { continue };
            let corners = self.corners(copy, point, Some(later));
            refills.push(Due { copy, slot: copy.pipeline.slot(self.b), corners, exists: Some(later.exists) });
        }
        let mut stores = Vec::new();
        for copy in parts.iter().filter(|part| !part.is_load() && !part.is_handed()).map(|part| &part.copy) {
            let slot = self.slot(copy);
            stores.push(Due { copy, slot, corners: self.corners(copy, point, None), exists: None });
        }
        let shortest = stores.iter().map(|due| due.copy.staged.ring).min();
        // Groups of other loops would be counted, too.
        let alone = self.commits().iter().all(|c| c.staged.attach.loops == k);
        if let Some(ring) = shortest {
            self.b.fence_proxy_async();
            if self.repeats(k) && ring > 1 {
                self.b.begin_elect();
                self.b.bulk_wait_group_read(if alone { ring - 2 } else { 0 });
                self.b.end_elect();
            }
        }
        // The shortest ring is the last to have nothing left to fill: one branch around all is enough.
        let last = refills.iter().min_by_key(|due| due.copy.staged.ring).and_then(|due| due.exists);
        let any = last.filter(|_| stores.is_empty());
        let due: Vec<Due<'_, '_>> = refills.into_iter().chain(stores).collect();
        if let Some(any) = any {
            self.b.begin_if(any);
        }
        if !due.is_empty() {
            self.b.begin_elect();
            for Due { copy, slot, corners, exists } in &due {
                self.if_it_exists(exists.filter(|exists| any != Some(*exists)), |b| copy.start(b, corners, *slot));
            }
            if let Some(ring) = shortest {
                self.b.bulk_commit_group();
                if self.repeats(k) && ring == 1 {
                    self.b.bulk_wait_group_read(0);
                }
            }
            self.b.end_elect();
        }
        if any.is_some() {
            self.b.end_if();
        }
        for Due { copy, slot, .. } in &due {
            if self.fixed_slot(copy).is_none() {
                copy.pipeline.advance(self.b, *slot, None);
            }
        }
    }

    /// The slot of the instance at hand.
    fn slot(&mut self, copy: &Copy<'_>) -> ValueId {
        match self.fixed_slot(copy) {
            Some(slot) => self.b.index_literal(Type::I32, slot),
            None => copy.pipeline.slot(self.b),
        }
    }

    /// The slot of the instance at hand of a copy to a tensor, where it is the same one each time: its loop is written
    /// out, ends at the last slot, and leaves no iteration out.
    fn fixed_slot(&self, copy: &Copy<'_>) -> Option<i64> {
        let Copy { staged, pipeline, .. } = copy;
        let is_own = staged.way == Way::Store && pipeline.between.is_none() && pipeline.is_ring();
        let leaf = &self.stage.domain.axes[staged.attach.leaf];
        let ring = i128::from(staged.ring);
        let all = leaf.extent.as_constant().is_some_and(|count| count % ring == 0) && self.tests_nothing();
        let present = self.present(staged.attach.leaf).filter(|_| is_own && all)?;
        i64::try_from(present % ring).ok()
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
        let waits = |copy: &Copy<'_>| {
            copy.staged.ring == 1 && (copy.staged.attach.loops > 0 || copy.pipeline.between.is_some())
        };
        let stores = self.commits();
        let waited = |copy: &Copy<'_>| {
            stores.iter().any(|other| other.staged.attach.loops == copy.staged.attach.loops && waits(other))
        };
        if !stores.iter().all(waited) {
            self.b.begin_elect();
            self.b.bulk_wait_group_read(0);
            self.b.end_elect();
        }
    }
}

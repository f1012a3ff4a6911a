//! What roles hand to each other: slots of shared memory, one after the other.
//!
//! Every role runs a *slice* of the kernel: its loops, in their order, with what is the role's own. A stage or copy
//! that one role makes and others read has two barriers for each slot of its ring:
//!
//! ```text
//! maker                                   readers
//! await empty, the phase before           await full
//! renew; write …; release full            read …
//!                                         release empty
//! ```
//!
//! A reader that waits for what another reader made of the instance waits for nothing else.
//!
//! The bytes of a copy by the accelerator end the phase of `full` themselves: its maker expects them. So do threads
//! that fetch: each arrives when its fetches are done, and goes on to the next slot at once. If they read the instance,
//! too, they wait for it first. What a copy *to* a tensor takes is made by the stage that writes it, and read by the
//! role of the copy; that releases a slot when the accelerator has read it, up to a ring of instances later. If a maker
//! reads what it makes, its threads wait for each other as in a kernel without roles. Phases are counted along the
//! whole kernel, however often loops are entered.
//!
//! Of a copy that blocks of a cluster take together, each fills a part of the slots of all: a slot is released to all
//! of them, by the readers of each, and whoever fills it waits for that. `full` of each block counts the bytes of all
//! parts; those that come before its maker says so belong to this phase, as the last one ended before the slot was
//! released. If the first block fills all, the others wait for their own readers before they expect bytes; that one
//! waits for all readers, at barriers of their own: readers of blocks that are ahead must not count in a phase that
//! others wait for. A block ends when all blocks of its cluster have told it what they had to tell.
//!
//! **Property.** No slot is written while others read it, or read before it is written, and no role waits forever.
//! **Argument.** All roles, of all blocks of a cluster, follow one order of statements, that of the kernel without
//! roles. Each wait is for releases that come earlier in this order: of `full` for what was made just before, of
//! `empty` for readers of an instance that is a ring older. So the earliest statement that has not been done can be
//! done. Whether an instance comes about is decided alike in all roles: by what no thread's number is part of; and no
//! number of a block, where they take copies together.

use tilewright_kernel::algorithm::Compare;

use super::multicast;
use super::nested_stage::{Instance, Storage};
use super::stage::{Around, Nest, Point};
use super::staging::{Copy, turn};
use crate::domain::{Arithmetic, Unit};
use crate::extent::Expr;
use crate::kernel_ir::{Builder, MbarrierId, Range, Receivers, Type, ValueId, VariableId};
use crate::plan::Analysed;
use crate::plan::roles::ProducerConsumers;
use crate::plan::staged::{Multicast, Staged, Way};
use crate::schedule::{Attach, Role, Stage};

/// What is handed over: by whom, and its barriers.
#[derive(Clone, Debug)]
pub(super) struct FullEmptyBarriers {
    pub between: ProducerConsumers,
    /// Ends a phase when a slot is made.
    pub full: MbarrierId,
    /// Whether threads fetch it, and go on while they do.
    pub in_background: bool,
    /// Ends a phase when a slot has been read.
    pub empty: MbarrierId,
    /// The blocks of a cluster that fill a slot together.
    multicast: Option<Multicast>,
    /// If the first of them fills it alone: ends a phase, in its block, when all of them have read a slot. `empty` is
    /// then of the own readers.
    of_all: Option<MbarrierId>,
}

impl FullEmptyBarriers {
    /// Declares the barriers of a stage.
    pub fn of_stage(b: &mut Builder, between: ProducerConsumers, roles: &[Role], stage: &Stage) -> Self {
        let in_background = stage.fetches && !between.reads_own;
        let made = in_background.then(|| roles[between.producer].threads());
        Self { in_background, ..Self::new(b, between, roles, (stage.ring, made), None) }
    }

    /// Declares the barriers of a copy.
    pub fn of_copy(b: &mut Builder, between: ProducerConsumers, roles: &[Role], staged: &Staged) -> Self {
        let made = (staged.way == Way::Load).then_some(1);
        Self::new(b, between, roles, (staged.ring, made), staged.multicast.clone())
    }

    /// `made` is how often a slot is released when it is made, if not once by each warp of the maker.
    fn new(
        b: &mut Builder,
        between: ProducerConsumers,
        roles: &[Role],
        (slots, made): (u32, Option<u32>),
        multicast: Option<Multicast>,
    ) -> Self {
        let full = b.mbarrier_of(slots, made.unwrap_or(roles[between.producer].warps));
        let reads = (0..roles.len()).filter(|role| between.is_released_by(*role, multicast.is_some()));
        let read: u32 = reads.map(|role| roles[role].warps).sum();
        let read_by_all = multicast.as_ref().map_or(read, |m| read * m.blocks);
        let by_first = multicast.as_ref().is_some_and(|m| m.by.is_none());
        let empty = b.mbarrier_of(slots, if by_first { read } else { read_by_all });
        let of_all = by_first.then(|| b.mbarrier_of(slots, read_by_all));
        Self { full, in_background: false, empty, between, multicast, of_all }
    }

    /// Says that a slot has been read, to all who fill it.
    fn release_empty(&self, b: &mut Builder, slot: ValueId) {
        let Some(multicast) = &self.multicast else { return b.mbarrier_arrive(self.empty, slot, Receivers::Own) };
        match self.of_all {
            Some(of_all) => {
                b.mbarrier_arrive(self.empty, slot, Receivers::Own);
                let first = multicast::first(b, multicast);
                b.mbarrier_arrive(of_all, slot, Receivers::One(first));
            }
            None => {
                let all = multicast::receivers(b, multicast);
                all.into_iter().for_each(|to| b.mbarrier_arrive(self.empty, slot, to));
            }
        }
    }

    /// Waits until a slot may be filled: for the readers of its last instance, which ended the phase with this parity.
    fn await_empty(&self, b: &mut Builder, slot: ValueId, parity: ValueId) {
        b.mbarrier_wait(self.empty, slot, parity);
        if let (Some(of_all), Some(multicast)) = (self.of_all, &self.multicast) {
            let is_first = multicast::is_first(b, multicast);
            b.begin_if(is_first);
            b.mbarrier_wait(of_all, slot, parity);
            b.end_if();
        }
    }
}

/// Whether something of a role stands in the nest of the stage with a position, inside so many of its loops; copies do
/// if they are `staged`.
pub(super) fn comes(stages: &[Analysed], staged: bool, (at, loops): (usize, usize), role: usize) -> bool {
    let of_stage = |n: usize| {
        stages[n].stage.role == Some(role)
            || ProducerConsumers::of_stage(stages, n).is_some_and(|between| between.has(role))
            || comes(stages, staged, (n, 0), role)
    };
    let is_inside = |attach: &Attach| attach.stage == at && attach.loops >= loops;
    let sequence = stages[at].stage.sequence();
    let of_copy = |staged: &Staged| {
        let boundary = staged.attach.and_then(|leaf| sequence.iter().position(|a| *a == leaf)).map_or(0, |n| n + 1);
        let between = ProducerConsumers::of_copy(stages, at, staged);
        boundary >= loops && (staged.role == Some(role) || between.is_some_and(|between| between.has(role)))
    };
    (staged && stages[at].staged.iter().any(of_copy))
        || (0..stages.len()).any(|n| {
            let stage = &stages[n].stage;
            stage.attach.as_ref().is_some_and(is_inside) && of_stage(n)
                || stage.beside.as_ref().is_some_and(|b| b.stage == at && b.loops >= loops) && of_stage(n)
        })
}

/// For each axis of a stage, whether the number of a thread is part of its value.
pub(super) fn of_threads(stage: &Stage) -> Vec<bool> {
    struct Mention;
    impl Arithmetic for Mention {
        type Value = bool;
        fn size(&mut self, _: &Expr) -> bool {
            false
        }
        fn add(&mut self, a: &bool, b: &bool) -> bool {
            *a || *b
        }
        fn mul(&mut self, a: &bool, b: &bool) -> bool {
            *a || *b
        }
        fn div(&mut self, a: &bool, b: &bool) -> bool {
            *a || *b
        }
        fn modulo(&mut self, a: &bool, b: &bool) -> bool {
            *a || *b
        }
        fn xor(&mut self, a: &bool, b: &bool, _: &Expr) -> bool {
            *a || *b
        }
    }
    let axes = &stage.domain.axes;
    let mut values: Vec<Option<bool>> = vec![None; axes.len()];
    for leaf in &stage.domain.leaves {
        values[*leaf] = Some(Unit::of(axes[*leaf].binding).is_some_and(|unit| unit > Unit::Cta));
    }
    stage.domain.toward_roots(&mut Mention, &mut values);
    values.into_iter().map(|value| value.unwrap_or(true)).collect()
}

/// The parity of the phase before the one with a parity.
fn before(b: &mut Builder, parity: ValueId) -> ValueId {
    let one = b.index_literal(Type::I32, 1);
    b.index_xor(parity, one)
}

impl<'a> Nest<'a, '_> {
    /// Whether the stage is one of another role: then of its nest there is what stands in the loops, for this role.
    pub(super) fn is_slice(&self) -> bool {
        self.around.role.is_some() && self.stage.role != self.around.role
    }

    /// Whether something of this role stands inside so many loops or more.
    pub(super) fn comes(&self, loops: usize) -> bool {
        let Around { stages, staged, role, .. } = self.around;
        role.is_none_or(|role| comes(stages, staged, (self.own, loops), role))
    }

    /// Whether a copy is made and read by this role alone, or there are no roles.
    pub(super) fn is_own(&self, copy: &Copy<'_>) -> bool {
        copy.handing.is_none() && self.around.role.is_none_or(|role| copy.staged.role == Some(role))
    }

    /// The copies inside so many loops that this role hands over or is handed, with whether it makes them and whether
    /// it reads them.
    fn handed(&self, k: usize) -> Vec<(Copy<'a>, FullEmptyBarriers, bool, bool)> {
        let Some(role) = self.around.role else { return Vec::new() };
        let here = self.copies.iter().filter(|copy| copy.boundary == k);
        let mine = here.filter_map(|copy| {
            let handing = copy.handing.clone().filter(|handing| handing.between.has(role))?;
            let makes = handing.between.producer == role;
            let reads = handing.between.consumers.contains(&role) || makes && handing.between.reads_own;
            Some((copy.clone(), handing, makes, reads))
        });
        mine.collect()
    }

    /// Makes the copies that stand inside `k` loops, or waits for them.
    pub(super) fn begin_handed(&mut self, point: &Point, k: usize) {
        let handed = self.handed(k);
        let issued: Vec<&(Copy<'a>, FullEmptyBarriers, bool, bool)> =
            handed.iter().filter(|(copy, _, makes, _)| *makes && copy.staged.way == Way::Load).collect();
        if !issued.is_empty() {
            let mut starts = Vec::with_capacity(issued.len());
            for (copy, handing, ..) in &issued {
                let slot = copy.slot(self.b);
                self.await_empty(handing, slot, copy.parity);
                starts.push((self.corners(copy, point, None), slot));
            }
            // Who starts copies goes on: others of its role may still read the last instance, and the phase that they
            // wait for may end.
            self.b.bar_sync();
            self.b.begin_elect();
            for ((copy, ..), (starts, slot)) in issued.iter().zip(&starts) {
                copy.start(self.b, starts, *slot);
            }
            self.b.end_elect();
        }
        for (copy, handing, makes, reads) in &handed {
            let slot = copy.slot(self.b);
            match copy.staged.way {
                Way::Store if *makes => self.await_empty(handing, slot, copy.parity),
                Way::Load if *reads => {
                    let ProducerConsumers { producer, consumers, reads_own } = &handing.between;
                    if !self.learns(k, None, |role| consumers.contains(&role) || *reads_own && *producer == role) {
                        self.await_full(handing, slot, copy.parity);
                    }
                }
                _ => continue,
            }
            self.hold(copy, slot, point);
        }
    }

    /// Whether this role learns that an instance inside `k` loops is there without a wait of its own: before it runs
    /// anything else that stands there, or after the stage `behind` among that, it waits for what a role hands over
    /// that knows of the instance.
    ///
    /// **Argument.** Who releases a slot tells all that it did and was told before. A reader of the instance knows of
    /// it before what it makes at this place, by a wait of its own, or because it learns of it in turn: from
    /// something that stands before what it makes, so that this comes to an end, at a reader that waits itself.
    fn learns(&self, k: usize, behind: Option<usize>, knows: impl Fn(usize) -> bool) -> bool {
        let Around { stages, staged, storage, role: Some(role), .. } = self.around else { return false };
        let here = self.children.iter().filter(|child| child.1 == k).map(|child| child.0);
        let last = behind.and_then(|behind| here.clone().position(|at| at == behind)).map_or(0, |n| n + 1);
        for at in here.skip(last) {
            if stages[at].stage.role == Some(role) || comes(stages, staged, (at, 0), role) {
                return false;
            }
            let handing = storage[at].handing.as_ref().filter(|handing| handing.between.consumers.contains(&role));
            if handing.is_some_and(|handing| knows(handing.between.producer)) {
                return true;
            }
        }
        false
    }

    fn await_empty(&mut self, handing: &FullEmptyBarriers, slot: ValueId, parity: Option<VariableId>) {
        let Some(parity) = parity else { return };
        let parity = self.b.get(parity);
        let parity = before(self.b, parity);
        handing.await_empty(self.b, slot, parity);
    }

    fn await_full(&mut self, handing: &FullEmptyBarriers, slot: ValueId, parity: Option<VariableId>) {
        let Some(parity) = parity else { return };
        let parity = self.b.get(parity);
        self.b.mbarrier_wait(handing.full, slot, parity);
    }

    /// After everything that the copies inside `k` loops are for: hands slots back, and those of copies to tensors on.
    pub(super) fn end_handed(&mut self, point: &Point, k: usize) {
        let Some(role) = self.around.role else { return };
        for (copy, handing, makes, _) in self.handed(k) {
            let slot = copy.slot(self.b);
            match copy.staged.way {
                Way::Load if handing.between.is_released_by(role, handing.multicast.is_some()) => {
                    handing.release_empty(self.b, slot)
                }
                Way::Load => {}
                Way::Store if makes => {
                    self.b.fence_proxy_async();
                    self.b.mbarrier_arrive(handing.full, slot, Receivers::Own);
                }
                Way::Store => self.store_handed(&copy, &handing, point, slot),
            }
            copy.advance(self.b, slot, None);
        }
    }

    /// Copies what another role has written, in `slot`, to a tensor. The slot is free when the accelerator has read it:
    /// with a ring of n, and no other copies to wait for, that is asked n − 1 instances later.
    fn store_handed(&mut self, copy: &Copy<'_>, handing: &FullEmptyBarriers, point: &Point, slot: ValueId) {
        self.await_full(handing, slot, copy.parity);
        let starts = self.corners(copy, point, None);
        // Groups of other copies would be counted, too.
        let released = copy.released.filter(|_| self.commits().len() == 1);
        let behind = released.map_or(0, |_| copy.staged.ring - 1);
        self.b.begin_elect();
        copy.start(self.b, &starts, slot);
        self.b.bulk_commit_group();
        self.b.bulk_wait_group_read(behind);
        self.b.end_elect();
        // What the role itself writes next may lie where the accelerator has read.
        self.b.bar_sync();
        let Some(released) = released else { return self.b.mbarrier_arrive(handing.empty, slot, Receivers::Own) };
        let count = self.b.get(released);
        self.b.assume(count, Range::new(0, i64::from(behind)));
        // It counts what all threads of the role come to.
        self.b.assume_uniform(count);
        let most = self.b.index_literal(Type::I32, i64::from(behind));
        let is_full = self.b.index_compare(Compare::Ge, count, most);
        self.b.begin_if(is_full);
        let oldest = copy.slot_after(self.b, slot, 1);
        self.b.mbarrier_arrive(handing.empty, oldest, Receivers::Own);
        self.b.begin_else();
        let one = self.b.index_literal(Type::I32, 1);
        let more = self.b.index_add(count, one);
        self.b.set(released, more);
        self.b.end_if();
    }

    /// Computes an instance of the stage with a position that stands here, as far as this role has a part in it.
    pub(super) fn instance_of_role(&mut self, point: &Point, at: usize, role: usize) {
        let analysed = &self.around.stages[at];
        let stage: &'a Stage = &analysed.stage;
        let around = self.around;
        let Storage { handing, parity, .. } = &around.storage[at];
        let slice = |this: &mut Self| {
            if comes(around.stages, around.staged, (at, 0), role) {
                let instance = Instance { at, stage, memory: Vec::new(), around: this.around(point, None) };
                this.compute(at, &instance);
            }
        };
        let Some(handing) = handing else {
            match stage.role == Some(role) {
                true => self.instance(point, at),
                false => slice(self),
            }
            return;
        };
        let slot = self.next_slot(at);
        match handing.between.producer == role {
            true => {
                self.await_empty(handing, slot, *parity);
                if handing.between.reads_own {
                    self.b.bar_sync();
                }
                let memory = self.renewed(at, slot);
                let instance = Instance { at, stage, memory, around: self.around(point, None) };
                self.compute(at, &instance);
                if handing.in_background {
                    self.b.cp_async_mbarrier_arrive(handing.full, slot);
                } else {
                    if stage.fetches {
                        self.b.cp_async_commit_group();
                        self.b.cp_async_wait_group(0);
                    }
                    self.b.mbarrier_arrive(handing.full, slot, Receivers::Own);
                }
                if handing.between.reads_own {
                    self.b.bar_sync();
                    self.values.instances.push(instance);
                }
            }
            false => slice(self),
        }
        if handing.between.consumers.contains(&role) {
            let loops = self.children.iter().find(|child| child.0 == at).map_or(0, |child| child.1);
            if !self.learns(loops, Some(at), |other| handing.between.consumers.contains(&other)) {
                self.await_full(handing, slot, *parity);
            }
            let memory = self.in_slot(at, slot);
            let instance = Instance { at, stage, memory, around: self.around(point, None) };
            self.values.instances.push(instance);
        }
    }

    /// After everything that the stages inside `k` loops are for: hands their slots back.
    pub(super) fn end_stages(&mut self, k: usize) {
        let Some(role) = self.around.role else { return };
        let here: Vec<usize> = self.children.iter().filter(|child| child.1 == k).map(|child| child.0).collect();
        for at in here {
            let Storage { handing, parity, .. } = &self.around.storage[at];
            let Some(handing) = handing.as_ref().filter(|handing| handing.between.has(role)) else { continue };
            let slot = self.next_slot(at);
            if handing.between.consumers.contains(&role) {
                self.b.mbarrier_arrive(handing.empty, slot, Receivers::Own);
            }
            let parity = *parity;
            let next = self.take_slot(at, slot);
            if let Some(parity) = parity {
                turn(self.b, parity, None, next);
            }
        }
    }
}

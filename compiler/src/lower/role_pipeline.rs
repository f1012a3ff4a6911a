//! Pipelines between roles: one role fills slots of shared memory, and others read them.
//!
//! Every role runs a *slice* of the kernel: its loops, in their order, with what is the role's own. A stage or copy
//! that one role produces and others read has two barriers for each slot of its ring ([`Pipeline`](super::pipeline)):
//!
//! ```text
//! producer                                consumers
//! acquire                                 wait
//! start its lifetime; write …             read …
//! commit                                  release
//! ```
//!
//! What one product alone reads is released when that is over; else a release comes at the end of an iteration.
//! A consumer that waits for what another consumer made of the instance waits for nothing else. A role that reads what
//! it copies itself, for others or together with other blocks, is ahead of itself: it starts as many instances before a
//! loop as the ring has slots but one, and in each iteration the one that comes next.
//!
//! The bytes of a copy by the accelerator end the phase of `full` themselves: the producer expects them. So do threads
//! that copy by `cp.async`: each arrives when its copies are done, and goes on to the next slot at once. If they read
//! the instance, too, they wait for it first. What a copy *to* a tensor takes is produced by the stage that writes it,
//! and consumed by the role of the copy; that releases a slot when the accelerator has read it, up to a ring of
//! instances later. If a producer reads what it makes, its threads wait for each other as in a kernel without roles
//! (`barrier_placement`).
//! Phases are counted along the whole kernel, however often loops are entered.
//!
//! Of a copy that blocks of a cluster take together, each fills a part of the slots of all: a slot is released to all
//! of them, by the consumers of each, and whoever fills it acquires it from all. `full` of each block counts the bytes
//! of all parts; those that come before its producer says so belong to this phase, as the last one ended before the
//! slot was released. If the first block fills all, the others wait for their own consumers before they expect bytes;
//! that one waits for all consumers, at barriers of their own: consumers of blocks that are ahead must not count in a
//! phase that others wait for. A block ends when all blocks of its cluster have told it what they had to tell.
//!
//! **Property.** No slot is written while others read it, or read before it is written, and no role waits forever.
//! **Argument.** All roles, of all blocks of a cluster, follow one order of statements, that of the kernel without
//! roles. Each wait is for arrivals that come earlier in this order: at `full` for what was produced just before, at
//! `empty` for consumers of an instance that is a ring older. So the earliest statement that has not been done can be
//! done. Whether an instance exists must not depend on the thread index, nor, where blocks take copies together, on the
//! block's rank: all roles decide it alike.

use tilewright_kernel::algorithm::Compare;

use super::nested_stage::{Instance, Storage};
use super::stage::{Around, Nest, Point};
use super::staging::Copy;
use crate::domain::{Arithmetic, Unit};
use crate::extent::Expr;
use crate::kernel_ir::{Range, Type, ValueId};
use crate::plan::Analysed;
use crate::plan::roles::{ProducerConsumers, consumers};
use crate::plan::staged::{Staged, Way};
use crate::schedule::{Attach, Stage};

/// Whether something of a role stands in the nest of the stage with a position, inside so many of its loops; copies do
/// if they are `staged`. Who `passes` a tile by has a part in nothing but what roles hand over.
pub(super) fn comes(
    stages: &[Analysed],
    staged: bool,
    (at, loops): (usize, usize),
    (role, passes): (usize, bool),
) -> bool {
    let is_own = |own: Option<usize>| own == Some(role) && !passes;
    let of_stage = |n: usize| {
        is_own(stages[n].stage.role)
            || ProducerConsumers::of_stage(stages, n).is_some_and(|between| between.has(role))
            || comes(stages, staged, (n, 0), (role, passes))
    };
    let is_inside = |attach: &Attach| attach.stage == at && attach.loops >= loops;
    let of_copy = |staged: &Staged| {
        let between = ProducerConsumers::of_copy(stages, staged);
        staged.attach.loops >= loops && (is_own(staged.role) || between.is_some_and(|between| between.has(role)))
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

impl<'a> Nest<'a, '_> {
    /// Whether the stage is one of another role: then of its nest there is what stands in the loops, for this role.
    pub(super) fn is_slice(&self) -> bool {
        self.around.passes || self.around.role.is_some() && self.stage.role != self.around.role
    }

    /// Whether something of this role stands inside so many loops or more.
    pub(super) fn comes(&self, loops: usize) -> bool {
        let Around { stages, staged, role, passes, .. } = self.around;
        role.is_none_or(|role| comes(stages, staged, (self.own, loops), (role, passes)))
    }

    /// Whether a copy is made and read by this role alone, or there are no roles.
    pub(super) fn is_own(&self, copy: &Copy<'_>) -> bool {
        copy.pipeline.between.is_none() && self.around.role.is_none_or(|role| copy.staged.role == Some(role))
    }

    /// Whether this role learns that an instance of a copy inside `k` loops is there without a wait of its own.
    pub(super) fn learns_of(&self, copy: &Copy<'_>, k: usize) -> bool {
        copy.pipeline.between.as_ref().is_some_and(|between| {
            let ProducerConsumers { producer, consumers, reads_own } = &between.roles;
            self.learns(k, None, |role| consumers.contains(&role) || *reads_own && *producer == role)
        })
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
            if stages[at].stage.role == Some(role) || comes(stages, staged, (at, 0), (role, false)) {
                return false;
            }
            let between = storage[at].pipeline.between.as_ref().map(|between| &between.roles);
            if between.is_some_and(|roles| roles.consumers.contains(&role) && knows(roles.producer)) {
                return true;
            }
        }
        false
    }

    /// After everything that the copies inside `k` loops are for: hands slots back, and those of copies to tensors on.
    pub(super) fn end_handed(&mut self, point: &Point, k: usize) {
        let Some(role) = self.around.role else { return };
        for part in self.parts(k).into_iter().filter(|part| part.is_handed() && part.copy.leads()) {
            let copy = &part.copy;
            if self.is_for_behind(copy, k) {
                continue;
            }
            let slot = copy.pipeline.slot(self.b);
            match copy.staged.way {
                _ if self.around.passes => {}
                Way::Load if !copy.pipeline.is_released_by(role) || self.only_product(copy, k).is_some() => {}
                Way::Load if self.is_late(copy, k) => {
                    self.release_late((&copy.pipeline, copy.staged.ring), point, k, slot)
                }
                Way::Load => copy.pipeline.release(self.b, slot),
                Way::Store if part.makes => {
                    self.b.fence_proxy_async();
                    copy.pipeline.commit(self.b, slot);
                }
                Way::Store => self.store_handed(copy, point, slot),
            }
            copy.pipeline.advance(self.b, slot, None);
        }
    }

    /// The stage with the only product that reads a copy inside `k` loops, if it stands there and has no groups under
    /// way after it: then the slot is handed back at once, and filled while others use what the product has made.
    fn only_product(&self, copy: &Copy<'_>, k: usize) -> Option<usize> {
        let Around { stages, role, .. } = self.around;
        let readers = consumers(stages, copy.staged);
        let &[at] = &readers[..] else { return None };
        let stage = &stages[at].stage;
        let is_over = stage.product.as_ref().is_some_and(|mma| mma.is_async() && mma.inflight == 0);
        let is_here = self.children.contains(&(at, k)) && stage.role == role && !self.is_slice();
        let shares = |other: &Copy<'_>| other.buffer != copy.buffer && other.shares_slots_with(copy);
        (is_over && is_here && !self.copies.iter().any(shares)).then_some(at)
    }

    /// After the stage with a position was computed inside `k` loops: hands back the slots that it alone reads.
    pub(super) fn end_read(&mut self, k: usize, at: usize) {
        let Around { stages, role, passes, .. } = self.around;
        let Some(role) = role.filter(|_| !passes && stages[at].product.is_some()) else { return };
        for part in self.parts(k).into_iter().filter(|part| part.is_handed() && part.copy.leads()) {
            let copy = &part.copy;
            let is_released = copy.staged.way == Way::Load && copy.pipeline.is_released_by(role);
            if is_released && self.only_product(copy, k) == Some(at) {
                let slot = copy.pipeline.slot(self.b);
                copy.pipeline.release(self.b, slot);
            }
        }
    }

    /// Copies what another role has written, in `slot`, to a tensor. The slot is free when the accelerator has read it:
    /// with a ring of n, and no other copies to wait for, that is asked n − 1 instances later.
    fn store_handed(&mut self, copy: &Copy<'_>, point: &Point, slot: ValueId) {
        copy.pipeline.wait(self.b, slot);
        let corners = self.corners(copy, point, None);
        // Groups of other copies would be counted, too.
        let released = copy.released.filter(|_| self.commits().len() == 1);
        let behind = released.map_or(0, |_| copy.staged.ring - 1);
        self.b.begin_elect();
        copy.start(self.b, &corners, slot);
        self.b.bulk_commit_group();
        self.b.bulk_wait_group_read(behind);
        self.b.end_elect();
        let Some(released) = released else { return copy.pipeline.release(self.b, slot) };
        let count = self.b.get(released);
        self.b.assume(count, Range::new(0, i64::from(behind)));
        // It counts what all threads of the role come to.
        self.b.assume_uniform(count);
        let most = self.b.index_literal(Type::I32, i64::from(behind));
        let is_full = self.b.index_compare(Compare::Ge, count, most);
        self.b.begin_if(is_full);
        let oldest = copy.pipeline.slot_after(self.b, slot, 1);
        copy.pipeline.release(self.b, oldest);
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
        let Storage { pipeline, .. } = &around.storage[at];
        let slice = |this: &mut Self| {
            if comes(around.stages, around.staged, (at, 0), (role, around.passes)) {
                let instance = Instance { at, stage, memory: Vec::new(), around: this.around(point, None) };
                this.compute(at, &instance);
            }
        };
        let Some(between) = pipeline.between.as_ref().filter(|_| !around.passes) else {
            match stage.role == Some(role) && !around.passes {
                true => self.instance(point, at),
                false => slice(self),
            }
            return;
        };
        let slot = pipeline.slot(self.b);
        match between.roles.producer == role {
            true => {
                pipeline.acquire(self.b, slot);
                let memory = self.begin_lifetime(at, slot);
                let instance = Instance { at, stage, memory, around: self.around(point, None) };
                self.compute(at, &instance);
                if between.in_background {
                    self.b.cp_async_mbarrier_arrive(between.full, slot);
                } else {
                    if stage.fetches {
                        self.b.cp_async_commit_group();
                        self.b.cp_async_wait_group(0);
                    }
                    self.publish(at);
                    pipeline.commit(self.b, slot);
                }
                if between.roles.reads_own {
                    self.values.instances.push(instance);
                }
            }
            false => slice(self),
        }
        if between.roles.consumers.contains(&role) {
            let loops = self.children.iter().find(|child| child.0 == at).map_or(0, |child| child.1);
            if !self.learns(loops, Some(at), |other| between.roles.consumers.contains(&other)) {
                pipeline.wait(self.b, slot);
            }
            let memory = self.in_slot(at, slot);
            let instance = Instance { at, stage, memory, around: self.around(point, None) };
            self.values.instances.push(instance);
        }
    }

    /// After everything that the stages inside `k` loops are for: hands their slots back.
    pub(super) fn end_stages(&mut self, point: &Point, k: usize) {
        let Some(role) = self.around.role else { return };
        let here: Vec<usize> = self.children.iter().filter(|child| child.1 == k).map(|child| child.0).collect();
        for at in here {
            let pipeline = &self.around.storage[at].pipeline;
            let Some(between) = pipeline.between.as_ref().filter(|between| between.roles.has(role)) else { continue };
            let slot = pipeline.slot(self.b);
            if between.roles.consumers.contains(&role) && !self.around.passes {
                match self.is_read_late(at, k) {
                    true => self.release_late((pipeline, self.around.stages[at].stage.ring), point, k, slot),
                    false => pipeline.release(self.b, slot),
                }
            }
            pipeline.advance(self.b, slot, None);
        }
    }
}

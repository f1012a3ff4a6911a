//! The state of a software pipeline: the slot that the instance at hand has, and the phase of its mbarriers.
//!
//! ```text
//! producer                                    consumers
//! acquire     wait for empty, phase before    wait        wait for full
//! …           fill the slot                   …           read the slot
//! commit      arrive at full                  release     arrive at empty
//! advance     the next slot                   advance     the next slot
//! ```
//!
//! Instances take the slots of a buffer in turn, and a phase of a slot's barriers ends where the slots come around.
//! Slots and phases are variables of the whole kernel, or of a role: a loop that is entered again goes on where it
//! stopped. Who fills a slot, and when, is not known here: copies in place and ahead of a loop are in `tma_pipeline`
//! and `cp_async_pipeline`, those between roles in `role_pipeline`.

use tilewright_kernel::algorithm::Compare;

use super::multicast;
use crate::kernel_ir::{Builder, MbarrierId, Range, Receivers, Type, ValueId, VariableId};
use crate::plan::roles::ProducerConsumers;
use crate::plan::staged::{Multicast, Staged, Way};
use crate::schedule::{Role, Stage};

/// A pipeline.
#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    /// Slots of its buffers.
    slots: u32,
    /// Who fills a slot for whom, and their barriers; none where one role does both, or there are none.
    pub between: Option<FullEmptyBarriers>,
    /// The slot of the instance at hand; none if there is one slot.
    slot: Option<VariableId>,
    /// Number of the phase modulo 2 that the barriers of that slot are in, if it has some.
    parity: Option<VariableId>,
}

impl Pipeline {
    /// One of so many slots, whose state is not declared yet.
    pub fn new(slots: u32, between: Option<FullEmptyBarriers>) -> Self {
        Self { slots, between, slot: None, parity: None }
    }

    /// Declares what one role, or all threads, know of it: the first slot and phase come next.
    pub fn begin(&mut self, b: &mut Builder, has_phases: bool) {
        let zero = b.index_literal(Type::I32, 0);
        self.parity = has_phases.then(|| b.variable(zero));
        self.slot = (self.slots > 1).then(|| b.variable(zero));
    }

    /// Whether a role says that it has read a slot.
    pub fn is_released_by(&self, role: usize) -> bool {
        self.between.as_ref().is_some_and(|between| between.roles.is_released_by(role, between.multicast.is_some()))
    }

    /// Whether it has several slots, and its state is declared.
    pub fn is_ring(&self) -> bool {
        self.slot.is_some()
    }

    /// The slot of the instance at hand.
    pub fn slot(&self, b: &mut Builder) -> ValueId {
        let Some(variable) = self.slot else { return b.index_literal(Type::I32, 0) };
        let slot = b.get(variable);
        b.assume(slot, Range::new(0, i64::from(self.slots) - 1));
        slot
    }

    /// The slot of the instance that comes `ahead` after the one that has `slot`: fewer than there are slots.
    pub fn slot_after(&self, b: &mut Builder, slot: ValueId, ahead: u32) -> ValueId {
        let slots = i64::from(self.slots);
        let ahead = b.index_literal(Type::I32, i64::from(ahead));
        let (moved, length) = (b.index_add(slot, ahead), b.index_literal(Type::I32, slots));
        if self.slots.is_power_of_two() {
            return b.index_mod(moved, length);
        }
        let around = b.index_compare(Compare::Ge, moved, length);
        let wrapped = b.index_sub(moved, length);
        let slot = b.select(around, wrapped, moved);
        if b.kernel().index_literal(slot).is_none() {
            b.assume(slot, Range::new(0, slots - 1));
        }
        slot
    }

    /// Slot and parity of the instance that comes `ahead` after the one that has these.
    pub fn instance_after(
        &self,
        b: &mut Builder,
        (slot, parity): (ValueId, Option<ValueId>),
        ahead: u32,
    ) -> (ValueId, Option<ValueId>) {
        if ahead == 0 {
            return (slot, parity);
        }
        let next = self.slot_after(b, slot, ahead);
        let of_phase = parity.map(|parity| {
            let one = b.index_literal(Type::I32, 1);
            let (around, other) = (b.index_compare(Compare::Lt, next, slot), b.index_xor(parity, one));
            b.select(around, other, parity)
        });
        (next, of_phase)
    }

    /// The parity of the phase.
    pub fn parity(&self, b: &mut Builder) -> Option<ValueId> {
        self.parity.map(|parity| b.get(parity))
    }

    /// Waits until `slot` may be filled with the instance at hand.
    pub fn acquire(&self, b: &mut Builder, slot: ValueId) {
        let parity = self.parity(b);
        self.acquire_for(b, (slot, parity));
    }

    /// Waits until a slot may be filled with an instance of the phase with a parity: for the consumers of its last one,
    /// which ended the phase before.
    pub fn acquire_for(&self, b: &mut Builder, (slot, parity): (ValueId, Option<ValueId>)) {
        let (Some(between), Some(parity)) = (&self.between, parity) else { return };
        let one = b.index_literal(Type::I32, 1);
        let before = b.index_xor(parity, one);
        b.mbarrier_wait(between.empty, slot, before);
        if let (Some(of_all), Some(multicast)) = (between.of_all, &between.multicast) {
            let is_first = multicast::is_first(b, multicast);
            b.begin_if(is_first);
            b.mbarrier_wait(of_all, slot, before);
            b.end_if();
        }
    }

    /// Says that `slot` is filled, by what the threads did themselves.
    pub fn commit(&self, b: &mut Builder, slot: ValueId) {
        if let Some(between) = &self.between {
            b.mbarrier_arrive(between.full, slot, Receivers::Own);
        }
    }

    /// Waits until `slot` is filled.
    pub fn wait(&self, b: &mut Builder, slot: ValueId) {
        if let (Some(between), Some(parity)) = (&self.between, self.parity(b)) {
            b.mbarrier_wait(between.full, slot, parity);
        }
    }

    /// Says that `slot` has been read, to all who fill it.
    pub fn release(&self, b: &mut Builder, slot: ValueId) {
        let Some(between) = &self.between else { return };
        let Some(multicast) = &between.multicast else {
            return b.mbarrier_arrive(between.empty, slot, Receivers::Own);
        };
        match between.of_all {
            Some(of_all) => {
                b.mbarrier_arrive(between.empty, slot, Receivers::Own);
                let first = multicast::first(b, multicast);
                b.mbarrier_arrive(of_all, slot, Receivers::One(first));
            }
            None => {
                let all = multicast::receivers(b, multicast);
                all.into_iter().for_each(|to| b.mbarrier_arrive(between.empty, slot, to));
            }
        }
    }

    /// After the instance in `slot`: the next one has the next slot, and the next phase where the slots come around.
    /// `parity` is that of the phase, where it was read since.
    pub fn advance(&self, b: &mut Builder, slot: ValueId, parity: Option<ValueId>) {
        let next = self.slot_after(b, slot, 1);
        if let Some(variable) = self.parity {
            let zero = b.index_literal(Type::I32, 0);
            let now = parity.unwrap_or_else(|| b.get(variable));
            let one = b.index_literal(Type::I32, 1);
            let first = b.index_compare(Compare::Eq, next, zero);
            let turn = b.select(first, one, zero);
            let turned = b.index_xor(now, turn);
            b.set(variable, turned);
        }
        if let Some(variable) = self.slot {
            b.set(variable, next);
        }
    }
}

/// The barriers of a pipeline between roles.
#[derive(Clone, Debug)]
pub(super) struct FullEmptyBarriers {
    /// Who fills and reads slots.
    pub roles: ProducerConsumers,
    /// Ends a phase when a slot is filled.
    pub full: MbarrierId,
    /// Whether threads fill it by `cp.async`, and go on meanwhile.
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
    pub fn of_stage(b: &mut Builder, between: ProducerConsumers, all: &[Role], stage: &Stage) -> Self {
        let in_background = stage.fetches && !between.reads_own;
        let made = in_background.then(|| all[between.producer].threads());
        Self { in_background, ..Self::new(b, between, all, (stage.ring, made), None) }
    }

    /// Declares the barriers of a copy, which other blocks fill, too.
    pub fn of_copy(
        b: &mut Builder,
        between: ProducerConsumers,
        all: &[Role],
        (staged, multicast): (&Staged, Option<Multicast>),
    ) -> Self {
        let made = (staged.way == Way::Load).then_some(1);
        Self::new(b, between, all, (staged.ring, made), multicast)
    }

    /// `made` is how many arrivals say that a slot is filled, if not one of each warp of the producer.
    fn new(
        b: &mut Builder,
        between: ProducerConsumers,
        all: &[Role],
        (slots, made): (u32, Option<u32>),
        multicast: Option<Multicast>,
    ) -> Self {
        let full = b.mbarrier_of(slots, made.unwrap_or(all[between.producer].warps));
        let reads = (0..all.len()).filter(|role| between.is_released_by(*role, multicast.is_some()));
        let read: u32 = reads.map(|role| all[role].warps).sum();
        let read_by_all = multicast.as_ref().map_or(read, |m| read * m.blocks);
        let by_first = multicast.as_ref().is_some_and(|m| m.by.is_none());
        let empty = b.mbarrier_of(slots, if by_first { read } else { read_by_all });
        let of_all = by_first.then(|| b.mbarrier_of(slots, read_by_all));
        Self { full, in_background: false, empty, roles: between, multicast, of_all }
    }
}

//! Units of a role that take the tiles of a persistent launch in turn (ping-pong): one is in the loop over terms while
//! another one finishes its tile and stores it.
//!
//! Each unit runs the whole role for its own tiles, and goes through the tiles of the others without doing anything:
//! it counts the slots that these take. So all of them share the rings that other roles fill, and an instance is for
//! the one unit that has its tile.
//!
//! ```text
//! for each tile of the block, the n-th:
//!     if n mod units == own number:
//!         take the turn       wait at turn[own]
//!         …                   all waits for other roles
//!         hand it on          arrive at turn[next]
//!         …                   what is the unit's own: the epilogue
//!     else: advance each pipeline, as often as the tile has instances
//! ```
//!
//! **Property.** Who waits for a phase of a slot's barrier is never two phases ahead of it: a wait by parity would end
//! at once (PTX ISA, `mbarrier.test_wait`). **Argument.** The turn comes with all that the unit before it did. That one
//! has waited for each phase of its tile, and knew of all phases of the tiles before. So each phase before those of the
//! own tile is over, and these come one after the other.
//!
//! A *section* is what takes and hands on the turn at once: a stage that stands in all loops of an output, with all
//! that stands in it, or the output itself, if it waits for other roles in its own loops. All instances of a pipeline
//! are in one section. A tile has each section once, or not at all where conditions leave it out: then the turn is
//! taken and handed on at the end of the tile. So all units come to all turns in one order, and nobody waits forever.

use std::cell::Cell;

use tilewright_kernel::algorithm::Compare;

use super::nested_stage::Storage;
use super::pipeline::Pipeline;
use super::staging::Copy;
use crate::kernel_ir::{Builder, MbarrierId, Receivers, Type, VariableId};
use crate::plan::Analysed;
use crate::schedule::Role;

/// The sections of a role; none if all of it takes each tile.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// How many units there are.
    units: u32,
    sections: Vec<Section>,
    /// The unit whose code comes next.
    own: u32,
    /// How many branches and loops there are around its tiles.
    depth: Cell<usize>,
}

#[derive(Clone, Debug)]
struct Section {
    /// The stage that it is.
    stage: usize,
    /// Its slots are the units: whose turn it is.
    barrier: MbarrierId,
    /// What the unit knows, once it is declared.
    state: Option<State>,
    /// Whether conditions may leave it out.
    may_be_left_out: Cell<bool>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// The parity of the phase that gives the next turn.
    parity: VariableId,
    /// 1 once the tile at hand has had its turn; set where conditions may leave that out.
    had: VariableId,
}

impl Turns {
    /// Declares the barriers of a role.
    pub fn declare(
        b: &mut Builder,
        (stages, storage, copies): (&[Analysed], &[Storage], &[Vec<Copy<'_>>]),
        (at, role): (usize, &Role),
    ) -> Self {
        let mut turns = Self { units: role.turns, ..Self::default() };
        if role.turns == 1 {
            return turns;
        }
        let waits = |pipeline: &Pipeline| pipeline.between.as_ref().is_some_and(|between| between.roles.has(at));
        let of_stages = (0..stages.len()).filter(|n| waits(&storage[*n].pipeline));
        let hosts = of_stages.filter_map(|n| stages[n].stage.attach.as_ref().map(|attach| attach.stage));
        let of_copies =
            copies.iter().flatten().filter(|copy| waits(&copy.pipeline)).map(|copy| copy.staged.attach.stage);
        let mut sections: Vec<usize> = hosts.chain(of_copies).map(|host| section(stages, host)).collect();
        sections.sort_unstable();
        sections.dedup();
        // The whole tile of an output has what stands in it.
        let is_inside = |at: &usize| {
            let attach = stages[*at].stage.attach.as_ref();
            attach.is_some_and(|attach| sections.contains(&attach.stage))
        };
        for stage in sections.iter().copied().filter(|at| !is_inside(at)) {
            let barrier = b.mbarrier_of(role.turns, role.warps);
            turns.sections.push(Section { stage, barrier, state: None, may_be_left_out: Cell::new(false) });
        }
        turns
    }

    /// Declares what the unit with a number knows. The first one has the first turn: it would have been given in the
    /// phase before the first.
    pub fn begin(&mut self, b: &mut Builder, unit: u32) {
        self.own = unit;
        let (first, zero) = (b.index_literal(Type::I32, i64::from(unit == 0)), b.index_literal(Type::I32, 0));
        for section in &mut self.sections {
            section.state = Some(State { parity: b.variable(first), had: b.variable(zero) });
        }
    }

    /// How many units take tiles in turn.
    pub const fn units(&self) -> u32 {
        self.units
    }

    /// What comes next is a tile of this unit.
    pub fn begin_tile(&self, b: &Builder) {
        self.depth.set(b.depth());
    }

    fn section(&self, stage: usize) -> Option<(&Section, State)> {
        let section = self.sections.iter().find(|section| section.stage == stage)?;
        Some((section, section.state?))
    }

    /// Waits for the turn, if the stage with a position is a section.
    pub fn take(&self, b: &mut Builder, stage: usize) {
        let Some((section, State { parity, .. })) = self.section(stage) else { return };
        let (own, now) = (b.index_literal(Type::I32, self.own.into()), b.get(parity));
        b.mbarrier_wait(section.barrier, own, now);
        let one = b.index_literal(Type::I32, 1);
        let next = b.index_xor(now, one);
        b.set(parity, next);
    }

    /// Gives it to the next unit.
    pub fn hand_on(&self, b: &mut Builder, stage: usize) {
        let Some((section, State { had, .. })) = self.section(stage) else { return };
        let next = b.index_literal(Type::I32, ((self.own + 1) % self.units).into());
        b.mbarrier_arrive(section.barrier, next, Receivers::Own);
        if b.depth() > self.depth.get() {
            section.may_be_left_out.set(true);
            let one = b.index_literal(Type::I32, 1);
            b.set(had, one);
        }
    }

    /// After a tile: hands on the turns that conditions left out.
    pub fn end_tile(&self, b: &mut Builder) {
        for section in self.sections.iter().filter(|section| section.may_be_left_out.get()) {
            let Some(State { had, .. }) = section.state else { continue };
            let (zero, now) = (b.index_literal(Type::I32, 0), b.get(had));
            b.assume_uniform(now);
            let is_left_out = b.index_compare(Compare::Eq, now, zero);
            b.begin_if(is_left_out);
            self.take(b, section.stage);
            self.hand_on(b, section.stage);
            b.end_if();
            b.set(had, zero);
        }
    }
}

/// The section that the loops of a stage belong to: that of an output, or of what stands in the loops of one.
fn section(stages: &[Analysed], host: usize) -> usize {
    let mut at = host;
    while let Some(attach) = &stages[at].stage.attach {
        let is_output = |n: usize| stages[n].stage.attach.is_none() && stages[n].stage.beside.is_none();
        if is_output(attach.stage) {
            return if attach.loops == 0 { at } else { attach.stage };
        }
        at = attach.stage;
    }
    stages[at].stage.beside.as_ref().map_or(at, |beside| section(stages, beside.stage))
}

//! CTA barriers: 16 of them, each with arrivals, waiting warps, a clock and the predicate of `bar.red` (PTX manual
//! 9.7.13.1). The inbox of a CTA's warps is here too: other things that wake warps (`cluster`, `registers`) put their
//! wakes into it.

use crate::lanes::{Mask, count};
use crate::shadow::clock::Clocks;

/// Barriers of a CTA.
pub const BARRIERS: usize = 16;

/// A fragment of a warp that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiter {
    /// Warp of the cluster.
    pub warp: u32,
    /// Its lanes.
    pub mask: Mask,
    /// The instruction.
    pub pc: u32,
    /// Whether it is a `bar.red`, and takes a result.
    pub votes: bool,
}

/// What a woken fragment learns from `bar.red`.
#[derive(Clone, Copy, Debug)]
pub struct Wake {
    /// Lanes that waited.
    pub mask: Mask,
    /// The instruction they waited at.
    pub pc: u32,
    /// Threads whose predicate was true.
    pub count: u32,
    /// Whether all were.
    pub all: bool,
}

/// One barrier.
#[derive(Debug, Default)]
pub struct BarrierState {
    /// Threads that complete the phase; 0 when nobody has arrived.
    pub expected: u32,
    /// Whether that is the whole CTA, by default.
    pub everyone: bool,
    /// Threads that have arrived, whole warps counted as 32.
    pub arrived: u32,
    /// Who waits.
    pub waiting: Vec<Waiter>,
    clock: Vec<u32>,
    trues: u32,
    voters: u32,
}

impl BarrierState {
    fn reset(&mut self) {
        self.expected = 0;
        self.everyone = false;
        self.arrived = 0;
        self.waiting.clear();
        self.clock.clear();
        self.trues = 0;
        self.voters = 0;
    }
}

/// Why an arrival is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// Arrivals of one phase name different thread counts.
    Counts(u32, u32),
    /// More threads arrive than the phase takes.
    TooMany(u32, u32),
}

/// An arrival.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Barrier number, below 16.
    pub id: usize,
    /// Who.
    pub waiter: Waiter,
    /// Threads it counts for.
    pub threads: u32,
    /// Threads that complete the phase.
    pub expected: u32,
    /// Whether that is the whole CTA, by default.
    pub everyone: bool,
    /// Whether it waits.
    pub waits: bool,
    /// Lanes whose predicate is true, for `bar.red`.
    pub trues: Option<Mask>,
}

/// All barriers of a CTA.
#[derive(Debug, Default)]
pub struct Barriers {
    states: [BarrierState; BARRIERS],
    /// Number in the cluster of the CTA's first warp.
    first: u32,
    /// Wakes not yet seen by each warp.
    inbox: Vec<Vec<Wake>>,
    /// Warps that have been woken since somebody looked, one bit each.
    pub woken: u32,
    /// Whole warps that have been woken, have not seen it yet, and have nothing more to learn.
    whole: u32,
}

impl Barriers {
    /// The state at the start of a CTA.
    pub fn reset(&mut self, warps: usize, first: usize) {
        self.first = first as u32;
        self.states.iter_mut().for_each(BarrierState::reset);
        self.inbox.resize(warps, Vec::new());
        self.inbox.iter_mut().for_each(Vec::clear);
        self.woken = 0;
        self.whole = 0;
    }

    /// The barriers.
    pub fn states(&self) -> &[BarrierState; BARRIERS] {
        &self.states
    }

    /// Whether a warp waited as a whole, was woken, and has nothing more to learn; it is told once.
    #[inline(always)]
    pub fn take_whole(&mut self, warp: usize) -> bool {
        let woken = self.whole >> warp & 1 == 1;
        self.whole &= !(1 << warp);
        woken
    }

    /// Takes a warp's wakes.
    #[inline(always)]
    pub fn take_wakes(&mut self, warp: usize, mut each: impl FnMut(Wake)) {
        if !self.inbox[warp].is_empty() {
            self.inbox[warp].drain(..).for_each(&mut each);
        }
    }

    /// Records an arrival; the last one of a phase wakes everybody who waits, itself included.
    pub fn arrive(&mut self, clocks: &mut Clocks, arrival: Arrival) -> Result<(), Misuse> {
        let state = &mut self.states[arrival.id];
        if state.expected == 0 {
            state.expected = arrival.expected;
            state.everyone = arrival.everyone;
        } else if state.expected != arrival.expected {
            return Err(Misuse::Counts(state.expected, arrival.expected));
        }
        let arrived = state.arrived.saturating_add(arrival.threads);
        if arrived > state.expected {
            return Err(Misuse::TooMany(arrived, state.expected));
        }
        state.arrived = arrived;
        if arrival.waits {
            state.trues += count(arrival.trues.unwrap_or(0) & arrival.waiter.mask);
            state.voters += count(arrival.waiter.mask);
        }
        clocks.release(arrival.waiter.warp as usize, arrival.threads == 32, &mut state.clock);
        if arrival.waits {
            state.waiting.push(arrival.waiter);
        }
        if state.arrived == state.expected {
            self.complete(clocks, arrival.id);
        }
        Ok(())
    }

    /// Ends the phase.
    pub fn complete(&mut self, clocks: &mut Clocks, id: usize) {
        let state = &mut self.states[id];
        for waiter in &state.waiting {
            clocks.acquire(waiter.warp as usize, &state.clock);
            let warp = waiter.warp - self.first;
            if waiter.mask == Mask::MAX && !waiter.votes {
                self.whole |= 1 << warp;
            } else {
                self.inbox[warp as usize].push(Wake {
                    mask: waiter.mask,
                    pc: waiter.pc,
                    count: state.trues,
                    all: state.trues == state.voters,
                });
            }
            self.woken |= 1 << warp;
        }
        state.reset();
    }

    /// Wakes a fragment that waited for something else.
    pub fn wake(&mut self, waiter: Waiter) {
        let warp = waiter.warp - self.first;
        self.inbox[warp as usize].push(Wake { mask: waiter.mask, pc: waiter.pc, count: 0, all: false });
        self.woken |= 1 << warp;
    }
}

//! What CTAs of a cluster share besides memory: the cluster's barrier (PTX manual 9.7.13.3), and who may still touch
//! whose shared memory.
//!
//! Shared memory of a CTA exists from the start of its first thread to the exit of its last one (CUDA programming
//! guide, distributed shared memory). Whether an access of another CTA falls between the two must not depend on luck:
//! it must be ordered after something that the owner did, and before the exit of one of the owner's warps. Both are
//! questions to the clocks, so that every order of CTAs finds the same.

use tilewright_sorted::SortedMap;

use crate::lanes::{Mask, count};
use crate::shadow::clock::Clocks;
use crate::sync::Waiter;

/// Why an operation on the cluster's barrier is refused: the lanes that break the rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// They have arrived and not waited since.
    Twice(Mask),
    /// They have not arrived.
    Unannounced(Mask),
}

/// The barrier of a cluster. Every live thread arrives, then waits.
#[derive(Debug, Default)]
pub struct ClusterBarrier {
    /// Completed phases.
    pub phase: u32,
    /// Lanes that have not exited, by warp of the cluster.
    live: Vec<Mask>,
    /// Those that have arrived in this phase.
    arrived: Vec<Mask>,
    /// Those that have arrived and not waited since.
    owing: Vec<Mask>,
    /// Live threads that have not arrived.
    missing: u32,
    /// Who waits.
    waiting: Vec<Waiter>,
    clock: Vec<u32>,
    completed: Vec<u32>,
}

impl ClusterBarrier {
    /// The state at the start of a cluster whose warps have these lanes.
    pub fn reset(&mut self, lanes: impl Iterator<Item = Mask>) {
        self.live.clear();
        self.live.extend(lanes);
        for masks in [&mut self.arrived, &mut self.owing] {
            masks.clear();
            masks.resize(self.live.len(), 0);
        }
        self.missing = self.live.iter().map(|mask| count(*mask)).sum();
        self.phase = 0;
        self.waiting.clear();
        self.clock.clear();
        self.completed.clear();
    }

    /// An arrival of some lanes. With `clocks` it orders what they did before; else it hands on only `fenced`, what
    /// their last fence did. Whether the phase ends.
    pub fn arrive(
        &mut self,
        (warp, run): (usize, Mask),
        clocks: Option<&mut Clocks>,
        fenced: Option<&[u32]>,
    ) -> Result<bool, Misuse> {
        let twice = run & self.owing[warp];
        if twice != 0 {
            return Err(Misuse::Twice(twice));
        }
        self.arrived[warp] |= run;
        self.owing[warp] |= run;
        self.missing -= count(run);
        if let Some(clocks) = clocks {
            clocks.release(warp, run == self.live[warp], &mut self.clock);
        }
        if let Some(fenced) = fenced {
            self.clock.resize(self.clock.len().max(fenced.len()), 0);
            self.clock.iter_mut().zip(fenced).for_each(|(sum, known)| *sum = (*sum).max(*known));
        }
        Ok(self.missing == 0)
    }

    /// A wait of some lanes: those whose phase has not ended, which wait from now on. The others are ordered after it
    /// if `clocks` is given.
    pub fn wait(&mut self, waiter: Waiter, clocks: Option<&mut Clocks>) -> Result<Mask, Misuse> {
        let warp = waiter.warp as usize;
        let unannounced = waiter.mask & !self.owing[warp];
        if unannounced != 0 {
            return Err(Misuse::Unannounced(unannounced));
        }
        let early = waiter.mask & self.arrived[warp];
        self.owing[warp] &= !(waiter.mask & !early);
        if early != waiter.mask
            && let Some(clocks) = clocks
        {
            clocks.acquire(warp, &self.completed);
        }
        if early != 0 {
            self.waiting.push(Waiter { mask: early, ..waiter });
        }
        Ok(early)
    }

    /// Ends the phase; who waited, and goes on.
    pub fn complete(&mut self) -> Vec<Waiter> {
        self.phase = self.phase.wrapping_add(1);
        self.completed = std::mem::take(&mut self.clock);
        self.arrived.fill(0);
        self.missing = self.live.iter().map(|mask| count(*mask)).sum();
        let waiting = std::mem::take(&mut self.waiting);
        for waiter in &waiting {
            self.owing[waiter.warp as usize] &= !waiter.mask;
        }
        waiting
    }

    /// What the last completed phase ordered.
    pub fn completed(&self) -> &[u32] {
        &self.completed
    }

    /// Some lanes exit: the barrier does not wait for them any more. Whether the phase ends by that.
    pub fn exit(&mut self, warp: usize, gone: Mask) -> bool {
        self.missing -= count(gone & !self.arrived[warp]);
        self.live[warp] &= !gone;
        self.arrived[warp] &= !gone;
        self.owing[warp] &= !gone;
        self.missing == 0 && self.live.iter().zip(&self.arrived).any(|(live, arrived)| live & arrived != 0)
    }

    /// For messages.
    pub fn describe(&self) -> String {
        let arrived: u32 = self.arrived.iter().map(|mask| count(*mask)).sum();
        let live: u32 = self.live.iter().map(|mask| count(*mask)).sum();
        format!("the barrier of the cluster in phase {}, where {arrived} of {live} threads have arrived", self.phase)
    }
}

/// An access to the shared memory of another CTA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// The CTA whose memory it is, by rank.
    pub owner: u32,
    /// Who: warp of the cluster and lane.
    pub warp: u32,
    /// The lane.
    pub lane: u32,
    /// The instruction.
    pub pc: u32,
    /// The warp's epoch.
    pub epoch: u32,
}

/// Who touches whose shared memory.
#[derive(Debug, Default)]
pub struct Peers {
    /// Warps of a CTA.
    warps: usize,
    /// What some warp of each CTA knew when it exited: what is in it was over before the CTA's memory was gone.
    exits: Vec<Vec<u32>>,
    /// The last access of each warp to each other CTA: what comes before an access that is over is over as well.
    reaches: SortedMap<(u32, u32), Reach>,
    /// CTAs, one bit each, that each warp knows to have started.
    started: Vec<u32>,
}

impl Peers {
    /// The state at the start of a cluster.
    pub fn reset(&mut self, ctas: usize, warps: usize) {
        self.warps = warps;
        self.exits.resize(ctas, Vec::new());
        self.exits.iter_mut().for_each(Vec::clear);
        self.reaches.clear();
        self.started.clear();
        self.started.resize(ctas * warps, 0);
    }

    /// A warp has waited at the barrier of the cluster, for which every CTA has arrived.
    pub fn met(&mut self, warp: u32) {
        self.started[warp as usize] = u32::MAX;
    }

    /// Records an access.
    pub fn reach(&mut self, reach: Reach) {
        self.reaches.insert((reach.owner, reach.warp), reach);
    }

    /// Whether a warp knows that a CTA has started.
    pub fn started(&mut self, clocks: &Clocks, owner: u32, warp: u32) -> bool {
        let (warp, bit) = (warp as usize, 1 << owner);
        if self.started[warp] & bit != 0 {
            return true;
        }
        let first = owner as usize * self.warps;
        let known = (first..first + self.warps).any(|other| clocks.ordered(warp, other, 1));
        // One finding is enough for this warp.
        self.started[warp] |= bit;
        known
    }

    /// A warp of a CTA ends.
    pub fn exit(&mut self, clocks: &mut Clocks, owner: usize, warp: usize) {
        clocks.release(warp, true, &mut self.exits[owner]);
    }

    /// Whether something with this component and number was over before a CTA's memory was gone.
    pub fn outlived(&self, owner: u32, component: usize, number: u32) -> bool {
        self.exits[owner as usize].get(component).is_some_and(|known| *known >= number)
    }

    /// The accesses that may come after their owner's exit.
    pub fn late(&self) -> Vec<Reach> {
        let late = |reach: &&Reach| !self.outlived(reach.owner, reach.warp as usize, reach.epoch);
        self.reaches.values().filter(late).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(warp: u32, mask: Mask) -> Waiter {
        Waiter { warp, mask, pc: 0, votes: false }
    }

    #[test]
    fn every_live_thread_arrives_then_waits() {
        let mut barrier = ClusterBarrier::default();
        barrier.reset([u32::MAX, 0b11].into_iter());
        assert_eq!(barrier.wait(waiter(1, 1), None), Err(Misuse::Unannounced(1)));
        assert_eq!(barrier.arrive((0, u32::MAX), None, None), Ok(false));
        assert_eq!(barrier.arrive((0, 1), None, None), Err(Misuse::Twice(1)));
        assert_eq!(barrier.wait(waiter(0, u32::MAX), None), Ok(u32::MAX));
        assert_eq!(barrier.arrive((1, 0b01), None, None), Ok(false));
        // The last one leaves instead of arriving.
        assert!(barrier.exit(1, 0b10));
        assert_eq!(barrier.complete(), [waiter(0, u32::MAX)]);
        // Warp 1 was not there yet: its wait passes, and the next phase begins.
        assert_eq!(barrier.wait(waiter(1, 1), None), Ok(0));
        assert_eq!(barrier.arrive((1, 1), None, None), Ok(false));
        assert_eq!(barrier.arrive((0, u32::MAX), None, None), Ok(true));
        assert_eq!(barrier.phase, 1);
    }
}

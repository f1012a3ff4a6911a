//! Vector clocks of the warps of a CTA, or of all CTAs of a cluster. What bulk copies add to them is in `agent`.

mod agent;

pub use agent::{Proxied, Sight};

use agent::Agents;

use super::cell::LAST_EPOCH;
use crate::lanes::{LANES, Mask, lanes};

/// The epochs of each warp, and how far each warp knows the others.
#[derive(Debug, Default)]
pub struct Clocks {
    warps: usize,
    /// Components of a clock: the warps, and what `agents` adds.
    width: usize,
    agents: Agents,
    /// Whether anybody asks; otherwise nothing is kept.
    tracked: bool,
    /// Current epoch of each warp, from 1.
    epoch: Vec<u32>,
    /// `known[w · width + v]`: the last epoch of warp v whose accesses are ordered before what warp w does now; of w
    /// itself the one before its own.
    known: Vec<u32>,
    /// The last epoch up to which everything that any warp did is ordered before what this warp does now.
    floor: Vec<u32>,
    /// Whether the lanes of each warp know different things: after a `bar.warp.sync`, a fence or an arrival of some of
    /// them, until all of them meet.
    apart: Vec<bool>,
    /// Where they do, `split[w][b][a]`: the last epoch of lane a whose accesses are ordered before what lane b of warp
    /// w does now.
    split: Vec<Vec<[u32; LANES]>>,
}

impl Clocks {
    /// The state at the start of a CTA; `bulk` says whether there may be bulk copies.
    pub fn reset(&mut self, warps: usize, tracked: bool, bulk: bool) {
        self.warps = warps;
        self.width = self.agents.reset(warps, tracked && bulk);
        self.tracked = tracked;
        self.epoch.clear();
        self.epoch.resize(warps, 1);
        self.known.clear();
        self.known.resize(warps * self.width, 0);
        self.floor.clear();
        self.floor.resize(warps, 0);
        self.apart.clear();
        self.apart.resize(warps, false);
        self.split.resize(warps, Vec::new());
    }

    /// Whether anybody asks.
    pub fn is_tracked(&self) -> bool {
        self.tracked
    }

    /// The warp's current epoch.
    #[inline(always)]
    pub fn epoch(&self, warp: usize) -> u32 {
        self.epoch[warp]
    }

    /// The last epoch up to which everything that any warp did is ordered before what this warp does now.
    #[inline(always)]
    pub fn floor(&self, warp: usize) -> u32 {
        self.floor[warp]
    }

    /// Whether what `warp` did in `epoch` is ordered before what warp `me` does now; inside one epoch, lanes of a warp
    /// are not ordered.
    #[inline(always)]
    pub fn ordered(&self, me: usize, warp: usize, epoch: u32) -> bool {
        if epoch <= self.floor[me] {
            return true;
        }
        epoch <= self.known[me * self.width + warp]
    }

    /// Whether what a lane of the same warp did in an epoch is ordered before what this lane does now.
    pub fn lanes_ordered(&self, warp: usize, me: u32, lane: u32, epoch: u32) -> bool {
        me == lane
            || epoch <= self.known[warp * self.width + warp]
            || self.apart[warp] && epoch <= self.split[warp][me as usize][lane as usize]
    }

    /// Some lanes of a warp meet: what each of them did and knows is ordered before what all of them do now. None of
    /// them: the epoch ends, and no lane learns of another.
    pub fn meet(&mut self, warp: usize, mask: Mask) {
        if !self.tracked {
            return;
        }
        let (now, base) = (self.epoch[warp], self.known[warp * self.width + warp]);
        let split = &mut self.split[warp];
        if !std::mem::replace(&mut self.apart[warp], true) {
            split.clear();
            split.resize(LANES, [base; LANES]);
        }
        let mut sum = [0; LANES];
        for lane in lanes(mask) {
            for (sum, known) in sum.iter_mut().zip(&split[lane]) {
                *sum = (*sum).max(*known);
            }
        }
        lanes(mask).for_each(|lane| sum[lane] = now);
        lanes(mask).for_each(|lane| split[lane] = sum);
        self.epoch[warp] = (now + 1).min(LAST_EPOCH);
        self.settle(warp);
    }

    /// Ends the warp's epoch: its earlier accesses are ordered before the later ones of all its lanes. After
    /// [`LAST_EPOCH`] of them, which take minutes, everything counts as ordered.
    pub fn next_epoch(&mut self, warp: usize) {
        if !self.tracked {
            return;
        }
        let epoch = (self.epoch[warp] + 1).min(LAST_EPOCH);
        self.epoch[warp] = epoch;
        self.apart[warp] = false;
        let before = std::mem::replace(&mut self.known[warp * self.width + warp], epoch - 1);
        // The floor stays unless it was this warp's own epoch that held it down.
        if before <= self.floor[warp] || epoch == LAST_EPOCH {
            self.settle(warp);
        }
    }

    fn settle(&mut self, warp: usize) {
        let own = self.epoch[warp];
        // Whoever knows what a warp did in all epochs before this one knows it of every lane.
        self.apart[warp] &= self.known[warp * self.width + warp] < own - 1;
        let row = &self.known[warp * self.width..][..self.warps];
        let floor =
            row.iter().fold(LAST_EPOCH, |least, known| if (*known as i32) < least as i32 { *known } else { least });
        self.floor[warp] = if own == LAST_EPOCH { LAST_EPOCH } else { floor };
    }

    /// Adds all that the warp knows and did to `clock`, and ends its epoch. If its lanes do so `together`, they learn
    /// of each other.
    pub fn release(&mut self, warp: usize, together: bool, clock: &mut Vec<u32>) {
        if !self.tracked {
            return;
        }
        clock.resize(self.width, 0);
        let row = &self.known[warp * self.width..][..self.width];
        for (sum, known) in clock.iter_mut().zip(row) {
            *sum = later(*sum, *known);
        }
        clock[warp] = clock[warp].max(self.epoch[warp]);
        if together { self.next_epoch(warp) } else { self.meet(warp, 0) }
    }

    /// What a release by some lanes of a warp covers: the last epoch of each warp that is ordered before it, and,
    /// unless they are `together` all lanes of the warp, that of each lane.
    pub fn released(&self, warp: usize, run: Mask, together: bool) -> (Vec<u32>, Option<[u32; LANES]>) {
        let mut epochs = self.known[warp * self.width..][..self.warps].to_vec();
        let now = self.epoch[warp];
        if together {
            epochs[warp] = now;
            return (epochs, None);
        }
        let mut row = [epochs[warp]; LANES];
        for lane in lanes(run) {
            if self.apart[warp] {
                row.iter_mut().zip(&self.split[warp][lane]).for_each(|(sum, known)| *sum = (*sum).max(*known));
            }
        }
        lanes(run).for_each(|lane| row[lane] = now);
        (epochs, Some(row))
    }

    /// Makes everything in `clock` ordered before what the warp does now.
    pub fn acquire(&mut self, warp: usize, clock: &[u32]) {
        if !self.tracked {
            return;
        }
        let row = &mut self.known[warp * self.width..][..self.width];
        for (known, other) in row.iter_mut().zip(clock) {
            *known = later(*known, *other);
        }
        self.settle(warp);
    }
}

/// The later of two epochs. They are small, and signed numbers are compared in fewer steps by vector code.
#[inline(always)]
fn later(a: u32, b: u32) -> u32 {
    if (a as i32) < b as i32 { b } else { a }
}

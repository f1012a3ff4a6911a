//! What bulk copies add to the clocks of warps: components after those of the warps.
//!
//! Each warp has a component for each of two memories, the last of its epochs that a proxy fence has made visible to
//! the asynchronous proxy; it travels with what the warp releases, as its epochs do. After these come *agents*: an
//! mbarrier whose phases copies complete, or the bulk groups of a thread. An agent counts phases or groups; a copy is
//! ordered before whoever knows its number. A copy hands on nothing else: who waits for it learns nothing of what its
//! issuer did or knew (PTX manual 8.9.1.1 and 9.7.9.25.1: the completion orders the copy's own accesses).

use super::Clocks;
use crate::lanes::{LANES, Mask, lanes};

/// Memories that proxy fences tell apart.
const SPACES: usize = 2;
/// Agents that room is made for at a time.
const ROOM: usize = 8;

/// A memory that a proxy fence may be about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proxied {
    /// Shared memory.
    Shared = 0,
    /// Global memory.
    Global = 1,
}

/// How an earlier ordinary access stands to a bulk copy that is issued now.
/// The worst comes last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sight {
    /// Ordered before it, and visible to it.
    Visible,
    /// Ordered before it, and fenced by the thread that issues the copy, not by the one that wrote.
    FencedLate,
    /// Ordered before it, but the asynchronous proxy may not see it.
    Unfenced,
    /// Not ordered.
    Unordered,
}

/// The additional components.
#[derive(Debug, Default)]
pub(super) struct Agents {
    /// Agents so far.
    count: usize,
    /// The last epoch in which each lane executed a proxy fence, by memory and warp: a fence by some lanes is for these
    /// alone.
    fenced: Vec<[u32; LANES]>,
    /// The lanes of each warp's last proxy fence, by memory and warp, and what the warp knew then.
    late: Vec<(Mask, Vec<u32>)>,
}

impl Agents {
    /// Components of a clock at the start of a CTA.
    pub fn reset(&mut self, warps: usize, used: bool) -> usize {
        self.count = 0;
        self.fenced.clear();
        self.late.clear();
        if !used {
            return warps;
        }
        self.fenced.resize(warps * SPACES, [0; LANES]);
        self.late.resize(warps * SPACES, (0, Vec::new()));
        warps * (1 + SPACES)
    }
}

impl Clocks {
    /// A proxy fence by some lanes of a warp, for these memories.
    pub fn proxy_fence(&mut self, warp: usize, spaces: [Option<Proxied>; SPACES], run: Mask) {
        if !self.tracked || self.agents.fenced.is_empty() {
            return;
        }
        let epoch = self.epoch[warp];
        for space in spaces.into_iter().flatten().map(|space| space as usize) {
            self.known[warp * self.width + (1 + space) * self.warps + warp] = epoch;
            let fenced = &mut self.agents.fenced[space * self.warps + warp];
            lanes(run).for_each(|lane| fenced[lane] = epoch);
            let (mask, knew) = &mut self.agents.late[space * self.warps + warp];
            *mask = run;
            knew.clear();
            knew.extend_from_slice(&self.known[warp * self.width..][..self.warps]);
            knew[warp] = epoch;
        }
        // What comes later is not fenced; lanes learn nothing of each other.
        self.meet(warp, 0);
    }

    /// How what a lane of `warp` did in an epoch stands to a copy that lane `me.1` of warp `me.0` issues now.
    pub fn sight(&self, me: (usize, u32), space: Proxied, (warp, lane): (usize, u32), epoch: u32) -> Sight {
        let ordered = self.ordered(me.0, warp, epoch) || warp == me.0 && self.lanes_ordered(warp, me.1, lane, epoch);
        if !ordered {
            return Sight::Unordered;
        }
        let visible = self.known[me.0 * self.width + (1 + space as usize) * self.warps + warp];
        let fenced = self.agents.fenced[space as usize * self.warps + warp][lane as usize];
        if epoch <= visible && epoch <= fenced {
            return Sight::Visible;
        }
        let (mask, knew) = &self.agents.late[space as usize * self.warps + me.0];
        let late = mask >> me.1 & 1 == 1 && knew.get(warp).is_some_and(|known| epoch <= *known);
        if late { Sight::FencedLate } else { Sight::Unfenced }
    }

    /// A new agent; nobody knows anything of it.
    pub fn new_agent(&mut self) -> usize {
        let agent = self.agents.count;
        self.agents.count += 1;
        let need = self.warps * (1 + SPACES) + self.agents.count;
        if self.tracked && need > self.width {
            let width = self.width + ROOM;
            let mut known = vec![0; self.warps * width];
            for (row, old) in known.chunks_exact_mut(width).zip(self.known.chunks_exact(self.width)) {
                row[..old.len()].copy_from_slice(old);
            }
            (self.known, self.width) = (known, width);
        }
        agent
    }

    /// The component of an agent.
    pub fn component(&self, agent: usize) -> usize {
        self.warps * (1 + SPACES) + agent
    }

    /// Makes everything that an agent has counted up to this number ordered before what the warp does now.
    pub fn learn(&mut self, warp: usize, agent: usize, number: u32) {
        if self.tracked {
            let at = warp * self.width + self.component(agent);
            self.known[at] = self.known[at].max(number);
        }
    }

    /// Whether what an agent counted with this number is ordered before what the warp does now.
    pub fn knows(&self, warp: usize, agent: usize, number: u32) -> bool {
        !self.tracked || self.known[warp * self.width + self.component(agent)] >= number
    }

    /// Whether it is ordered before what any (`all`: every) warp does now.
    pub fn known_to(&self, all: bool, agent: usize, number: u32) -> bool {
        let mut warps = 0..self.warps;
        if all {
            warps.all(|warp| self.knows(warp, agent, number))
        } else {
            warps.any(|warp| self.knows(warp, agent, number))
        }
    }
}

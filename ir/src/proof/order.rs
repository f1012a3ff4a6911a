//! What agents know of each other: clocks, and what separates accesses.

use tilewright_kernel::target::{WARP, WARPGROUP};
use tilewright_sorted::SortedMap;

/// Nobody, or nothing.
pub(super) const NONE: u32 = u32::MAX;
/// Several threads.
pub(super) const SEVERAL: u32 = u32::MAX - 1;
/// From here on, several lanes of a warp: the warp's number follows.
pub(super) const LANES: u32 = 1 << 15;
/// From here on, several threads of a warpgroup.
pub(super) const GROUPS: u32 = LANES + (1 << 14);
/// Copies are agents from here on; threads are those below.
pub(super) const COPIES: u32 = 1 << 16;

/// Points in time: the number of statements so far, of all agents of a cluster together.
pub(super) type Time = u32;

/// What runs as one: the threads of a block that have no roles at present, or those of a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AgentId {
    /// Number of the block in its cluster.
    pub rank: u8,
    /// 0, or the number of the role from 1.
    pub role: u8,
}

/// What an agent knows of others: one entry of a vector clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// The other one has come so far when what comes now begins.
    pub passed: Time,
    /// What it accessed before is over.
    pub seen: Time,
    /// What it wrote before is seen now.
    pub written: Time,
    /// What its threads wrote before is seen by copies that are issued now.
    pub visible: Time,
}

/// A vector clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(SortedMap<AgentId, Known>);

impl Clock {
    pub fn of(&self, agent: AgentId) -> Known {
        self.0.get(&agent).copied().unwrap_or_default()
    }

    /// Learns of one agent.
    pub fn learn(&mut self, agent: AgentId, known: Known) {
        let own = self.0.entry(agent).or_default();
        own.passed = own.passed.max(known.passed);
        own.seen = own.seen.max(known.seen);
        own.written = own.written.max(known.written);
        own.visible = own.visible.max(known.visible);
    }

    /// Learns what another clock knows.
    pub fn join(&mut self, other: &Self) {
        other.0.iter().for_each(|(agent, known)| self.learn(*agent, *known));
    }

    /// What the end of a copy says of who issued it: that it had come so far.
    pub fn progress(&self) -> Self {
        Self(self.0.iter().map(|(agent, known)| (*agent, Known { passed: known.passed, ..Known::default() })).collect())
    }

    /// The same of what is over, and nothing of what was written.
    pub fn reads(&self) -> Self {
        Self(self.0.iter().map(|(agent, known)| (*agent, Known { written: 0, visible: 0, ..*known })).collect())
    }

    /// Whether an agent has come after a time.
    pub fn is_past(&self, (agent, time): (AgentId, Time)) -> bool {
        time < self.of(agent).passed
    }

    /// Whether what an agent did at a time is known.
    pub fn covers(&self, (agent, time): (AgentId, Time)) -> bool {
        time < self.of(agent).seen
    }
}

/// What an agent knows when it does something.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub by: AgentId,
    pub order: Order,
    /// Of other agents.
    pub clock: &'a Clock,
}

/// What separates accesses of one agent's threads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    pub now: Time,
    /// What came before is ordered before what comes now.
    pub synced: Time,
    /// The same between threads of one warpgroup.
    pub synced_warpgroup: Time,
    /// The same between lanes of one warp.
    pub synced_warp: Time,
    /// What threads wrote before is seen by copies that are issued now.
    pub visible: Time,
    /// The last publication.
    pub published: Time,
}

/// The warp of an agent, if it has one.
pub(super) fn warp(agent: u32) -> Option<u32> {
    match agent {
        LANES.. => (agent < GROUPS).then_some(agent - LANES),
        thread => Some(thread / WARP),
    }
}

/// The warpgroup of an agent, if it has one.
pub(super) fn warpgroup(agent: u32) -> Option<u32> {
    match agent {
        GROUPS.. => (agent < COPIES).then_some(agent - GROUPS),
        _ => warp(agent).map(|warp| warp / (WARPGROUP / WARP)),
    }
}

impl Order {
    /// All threads of the agent wait for each other.
    pub fn meet(&mut self) {
        (self.synced, self.visible) = (self.now, self.published);
    }

    /// All threads of the agent learn what others know of it: they waited, so that it is behind all of them.
    pub fn learn(&mut self, own: Known) {
        (self.synced, self.visible) = (self.synced.max(own.written), self.visible.max(own.visible));
    }
}

impl View<'_> {
    /// Whether what a thread of an agent wrote at a time is seen by what one of this agent does now.
    pub fn sees(self, by: AgentId, first: u32, time: Time, second: u32) -> bool {
        match by == self.by {
            true => self.is_behind(by, first, time, second),
            false => by.rank == self.by.rank && first == second && first < LANES || time < self.clock.of(by).written,
        }
    }

    /// Whether what a thread of an agent did at a time comes before what one of this agent does now.
    pub fn is_behind(self, by: AgentId, first: u32, time: Time, second: u32) -> bool {
        if by != self.by {
            // A thread of a role is the thread of the block that it was, and will be.
            let same = by.rank == self.by.rank && first == second && first < LANES;
            return same || self.clock.covers((by, time));
        }
        let order = self.order;
        let are_lanes = || warp(first).is_some() && warp(first) == warp(second);
        let are_of_group = || warpgroup(first).is_some() && warpgroup(first) == warpgroup(second);
        first == second
            || time < order.synced
            || time < order.synced_warpgroup && are_of_group()
            || time < order.synced_warp && are_lanes()
    }
}

pub(super) fn name(agent: u32) -> String {
    match agent {
        SEVERAL => "a thread".to_owned(),
        COPIES.. => "a copy".to_owned(),
        GROUPS.. => format!("a thread of warpgroup {}", agent - GROUPS),
        LANES.. => format!("a lane of warp {}", agent - LANES),
        thread => format!("thread {thread}"),
    }
}

/// Who stands for a reader and for a thread that reads after it, where nothing orders them: who comes after that
/// comes after both.
pub(super) fn both(reader: u32, thread: u32) -> u32 {
    match (warp(reader), warpgroup(reader)) {
        (Some(lanes), _) if lanes == thread / WARP => LANES + lanes,
        (_, Some(group)) if group == thread / WARPGROUP => GROUPS + group,
        _ => SEVERAL,
    }
}

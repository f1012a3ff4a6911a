//! Memory that blocks share, and what orders their accesses: a block that arrives at a counter sees what those did that
//! arrived there before.
//!
//! Blocks are run one after the other, which decides who is the last to arrive, and nothing else: an access is right
//! only if what it meets is ordered before it by arrivals.

use std::collections::BTreeMap;

use super::global::{Access, Actor};
use super::order::{Order, Time};
use super::shared::Fault;
use super::violation::Kind;
use crate::target::WARP;

/// What an arrival releases of a block: up to when what its threads did comes before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Until {
    /// Any thread or copy.
    all: Time,
    /// Lanes of the first warp.
    warp: Time,
    /// The first thread, which arrives.
    first: Time,
}

impl Until {
    /// An arrival now.
    fn now(order: Order) -> Self {
        Self { all: order.synced, warp: order.synced.max(order.synced_warp), first: order.now }
    }

    fn join(&mut self, other: Self) {
        let Self { all, warp, first } = other;
        *self = Self { all: self.all.max(all), warp: self.warp.max(warp), first: self.first.max(first) };
    }

    fn covers(self, actor: Actor, time: Time) -> bool {
        time < match actor {
            Actor::Thread(0) => self.first,
            Actor::Thread(1..WARP) => self.warp,
            Actor::Thread(_) | Actor::Copy(_) => self.all,
        }
    }
}

/// What is known of other blocks.
type Seen = BTreeMap<i64, Until>;

fn join(seen: &mut Seen, other: &Seen) {
    other.iter().for_each(|(block, until)| seen.entry(*block).or_default().join(*until));
}

/// What is known of other blocks in the block that runs, and by whom.
#[derive(Clone, Debug, Default)]
struct Knowledge {
    all: Seen,
    /// By the lanes of the first warp, besides.
    warp: Seen,
    /// By the first thread, besides.
    first: Seen,
}

/// An arrival at a counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub workspace: u16,
    pub at: i64,
    pub blocks: i64,
    pub block: i64,
    pub releases: bool,
    pub acquires: bool,
}

/// A counter.
#[derive(Clone, Debug, Default)]
struct Counter {
    arrived: i64,
    /// What those that arrived did, and had seen.
    released: Seen,
}

/// An element.
#[derive(Clone, Debug, Default)]
struct Cell {
    writer: Option<Access>,
    /// The last update by each block since, and the last read.
    updates: BTreeMap<i64, Access>,
    readers: BTreeMap<i64, Access>,
    /// Whether it may be other than zero, if it was zero at first.
    changed: bool,
}

/// One workspace.
#[derive(Clone, Debug)]
struct Elements {
    cells: Vec<Cell>,
    zeroed: bool,
}

impl Access {
    /// Takes the place of the block's accesses so far: whoever comes after this one comes after those, or nobody is
    /// named.
    fn stand_for(self, all: &mut BTreeMap<i64, Access>, synced: Time) {
        let before = all.get(&self.block).filter(|other| other.actor != self.actor && other.time >= synced);
        let actor = if before.is_some() { Actor::SEVERAL } else { self.actor };
        all.insert(self.block, Access { actor, ..self });
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    /// Whether what is written is known to be zero.
    Write(bool),
    Update,
}

/// All workspaces of a launch.
#[derive(Clone, Debug, Default)]
pub(super) struct Workspaces {
    all: Vec<Elements>,
    counters: BTreeMap<(u16, i64), Counter>,
    /// Of each block of the cluster, and the one that runs.
    blocks: Vec<Knowledge>,
    now: usize,
}

impl Workspaces {
    /// Workspaces with so many elements, and whether they are zero at first; none if they have more than `most`
    /// together.
    pub fn new(sizes: impl Iterator<Item = (i64, bool)>, most: u64) -> Option<Self> {
        let mut left = most;
        let all = sizes.map(|(elements, zeroed)| {
            let elements = u64::try_from(elements).ok()?;
            left = left.checked_sub(elements)?;
            Some(Elements { cells: vec![Cell::default(); elements as usize], zeroed })
        });
        Some(Self { all: all.collect::<Option<_>>()?, ..Self::default() })
    }

    /// Another cluster runs, of so many blocks.
    pub fn begin(&mut self, blocks: usize) {
        self.blocks = vec![Knowledge::default(); blocks];
        self.now = 0;
    }

    /// Another block of the cluster runs.
    pub fn select(&mut self, rank: usize) {
        self.now = rank;
    }

    fn seen(&mut self) -> &mut Knowledge {
        &mut self.blocks[self.now]
    }

    /// The blocks of the cluster wait for each other: their numbers and times.
    pub fn tell_cluster(&mut self, blocks: &[(i64, Order)]) {
        let mut all = Seen::new();
        for rank in 0..self.blocks.len() {
            self.select(rank);
            self.tell_all();
            join(&mut all, &self.blocks[rank].all);
        }
        for (block, order) in blocks {
            all.entry(*block).or_default().join(Until::now(*order));
        }
        self.blocks.iter_mut().for_each(|own| own.all = all.clone());
    }

    /// The first thread of a block arrives; whether the block is the last one.
    pub fn arrive(&mut self, arrival: Arrival, order: Order) -> Result<bool, Fault> {
        let Arrival { workspace, at, blocks, block, releases, acquires } = arrival;
        self.cell(workspace, at)?;
        let counter = self.counters.entry((workspace, at)).or_default();
        if acquires {
            join(&mut self.blocks[self.now].first, &counter.released);
        }
        if releases {
            let seen = &self.blocks[self.now];
            [&seen.all, &seen.warp, &seen.first].into_iter().for_each(|s| join(&mut counter.released, s));
            counter.released.entry(block).or_default().join(Until::now(order));
        }
        counter.arrived += 1;
        if counter.arrived > blocks {
            return Err((Kind::Left, format!("block {block} is the {}th of {blocks} to arrive", counter.arrived)));
        }
        let last = counter.arrived == blocks;
        if last {
            counter.arrived = 0;
        }
        Ok(last)
    }

    /// Lanes of each warp wait for each other.
    pub fn tell_warp(&mut self) {
        let first = std::mem::take(&mut self.seen().first);
        join(&mut self.seen().warp, &first);
    }

    /// All threads wait for each other.
    pub fn tell_all(&mut self) {
        self.tell_warp();
        let warp = std::mem::take(&mut self.seen().warp);
        join(&mut self.seen().all, &warp);
    }

    /// Whether an access of another block comes before what an agent of the block that runs does now.
    pub fn sees(&self, actor: Actor, other: &Access) -> bool {
        let by = |seen: &Seen| seen.get(&other.block).is_some_and(|until| until.covers(other.actor, other.time));
        let (warp, first) = match actor {
            Actor::Thread(0) => (true, true),
            Actor::Thread(thread) => (thread < WARP, false),
            Actor::Copy(_) => (false, false),
        };
        let seen = &self.blocks[self.now];
        by(&seen.all) || warp && by(&seen.warp) || first && by(&seen.first)
    }

    fn cell(&mut self, workspace: u16, at: i64) -> Result<&mut Cell, Fault> {
        let elements = self.all.get_mut(usize::from(workspace));
        let cell = elements.and_then(|e| usize::try_from(at).ok().and_then(|at| e.cells.get_mut(at)));
        cell.ok_or_else(|| (Kind::Outside, "the workspace has no such element".to_owned()))
    }

    /// An element is accessed; `synced` is the last barrier of the block.
    pub fn access(&mut self, workspace: u16, at: i64, touch: Touch, own: Access, synced: Time) -> Result<(), Fault> {
        let zeroed = self.all.get(usize::from(workspace)).is_some_and(|e| e.zeroed);
        self.cell(workspace, at)?;
        let cell = &self.all[usize::from(workspace)].cells[at.unsigned_abs() as usize];
        let ordered = |other: &Access| match (other.block == own.block, other.actor) {
            (true, Actor::Thread(_)) => other.actor == own.actor || other.time < synced,
            (true, Actor::Copy(_)) => false,
            (false, _) => self.sees(own.actor, other),
        };
        let updates = cell.updates.values().filter(|_| touch != Touch::Update);
        let readers = cell.readers.values().filter(|_| touch != Touch::Read);
        let mut before = cell.writer.iter().chain(updates).chain(readers);
        if let Some(other) = before.find(|other| !ordered(other)) {
            return Err((Kind::Race, format!("block {} accesses it, and nothing orders that", other.block)));
        }
        let cell = self.cell(workspace, at)?;
        // A zero that nobody has added to is not worth a look.
        let has_value = cell.writer.is_some() || zeroed && (touch == Touch::Update || !cell.updates.is_empty());
        if !has_value && !matches!(touch, Touch::Write(_)) {
            return Err((Kind::Uninitialised, "nobody wrote it".to_owned()));
        }
        match touch {
            Touch::Read => own.stand_for(&mut cell.readers, synced),
            Touch::Update => {
                own.stand_for(&mut cell.updates, synced);
                cell.changed = true;
            }
            Touch::Write(zero) => {
                *cell = Cell { writer: Some(own), changed: !zero, ..Cell::default() };
            }
        }
        Ok(())
    }

    /// What is not zero again at the end of the launch: a workspace, and an element of it.
    pub fn left(&self) -> Option<(u16, i64)> {
        let open = self.counters.iter().find(|(_, counter)| counter.arrived != 0).map(|(at, _)| *at);
        let zeroed = self.all.iter().enumerate().filter(|(_, e)| e.zeroed);
        let changed = |(n, e): (usize, &Elements)| Some((n as u16, e.cells.iter().position(|c| c.changed)? as i64));
        open.or_else(|| zeroed.into_iter().find_map(changed))
    }
}

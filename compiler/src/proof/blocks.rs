//! Memory that blocks share, and what orders their accesses: a block that arrives at a counter sees what those did that arrived there before.
//!
//! Blocks are run one after the other, which decides who is the last to arrive, and nothing else: an access is right only if what it meets
//! is ordered before it by arrivals.

use std::collections::BTreeMap;

use super::global::{Access, Agent};
use super::shared::{Fault, Time};
use super::violation::Kind;

/// What a block knows of others: up to when it sees what each of them did.
type Seen = BTreeMap<i64, Time>;

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
    /// What the block that runs has seen.
    seen: Seen,
}

impl Workspaces {
    /// Workspaces with so many elements, and whether they are zero at first; none if they have more than `most` together.
    pub fn new(sizes: impl Iterator<Item = (i64, bool)>, most: u64) -> Option<Self> {
        let mut left = most;
        let all = sizes.map(|(elements, zeroed)| {
            let elements = u64::try_from(elements).ok()?;
            left = left.checked_sub(elements)?;
            Some(Elements { cells: vec![Cell::default(); elements as usize], zeroed })
        });
        Some(Self { all: all.collect::<Option<_>>()?, ..Self::default() })
    }

    /// Another block runs.
    pub fn begin(&mut self) {
        self.seen = Seen::new();
    }

    /// A block arrives; whether it is the last of `blocks`.
    pub fn arrive(&mut self, workspace: u16, at: i64, blocks: i64, block: i64, now: Time) -> Result<bool, Fault> {
        self.cell(workspace, at)?;
        let counter = self.counters.entry((workspace, at)).or_default();
        for (other, time) in &counter.released {
            let seen = self.seen.entry(*other).or_default();
            *seen = (*seen).max(*time);
        }
        let own = self.seen.iter().map(|(other, time)| (*other, *time)).chain([(block, now)]);
        for (other, time) in own {
            let released = counter.released.entry(other).or_default();
            *released = (*released).max(time);
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

    /// Whether the block that runs sees what another one did at that time.
    pub fn sees(&self, block: i64, time: Time) -> bool {
        self.seen.get(&block).is_some_and(|seen| time < *seen)
    }

    fn cell(&mut self, workspace: u16, at: i64) -> Result<&mut Cell, Fault> {
        let elements = self.all.get_mut(usize::from(workspace));
        let cell = elements.and_then(|e| usize::try_from(at).ok().and_then(|at| e.cells.get_mut(at)));
        cell.ok_or_else(|| (Kind::Outside, "the workspace has no such element".to_owned()))
    }

    /// An element is accessed; `synced` is the last barrier of the block.
    pub fn access(&mut self, workspace: u16, at: i64, touch: Touch, own: Access, synced: Time) -> Result<(), Fault> {
        let zeroed = self.all.get(usize::from(workspace)).is_some_and(|e| e.zeroed);
        let seen = self.seen.clone();
        let cell = self.cell(workspace, at)?;
        let ordered = |other: &Access| match (other.block == own.block, other.agent) {
            (true, Agent::Thread(_)) => other.agent == own.agent || other.time < synced,
            (true, Agent::Copy(_)) => false,
            (false, _) => seen.get(&other.block).is_some_and(|time| other.time < *time),
        };
        let updates = cell.updates.values().filter(|_| touch != Touch::Update);
        let readers = cell.readers.values().filter(|_| touch != Touch::Read);
        let mut before = cell.writer.iter().chain(updates).chain(readers);
        if let Some(other) = before.find(|other| !ordered(other)) {
            return Err((Kind::Race, format!("block {} accesses it, and nothing orders that", other.block)));
        }
        // A zero that nobody has added to is not worth a look.
        let has_value = cell.writer.is_some() || zeroed && (touch == Touch::Update || !cell.updates.is_empty());
        if !has_value && !matches!(touch, Touch::Write(_)) {
            return Err((Kind::Uninitialised, "nobody wrote it".to_owned()));
        }
        match touch {
            Touch::Read => _ = cell.readers.insert(own.block, own),
            Touch::Update => {
                cell.updates.insert(own.block, own);
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

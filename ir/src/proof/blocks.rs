//! Memory that blocks share, and what orders their accesses: a block that arrives at a counter sees what those did that
//! arrived there before, and so does a role of one.
//!
//! Blocks are run one after the other, which decides who is the last to arrive, and nothing else: an access is right
//! only if what it meets is ordered before it by arrivals.

use tilewright_kernel::target::WARP;
use tilewright_sorted::SortedMap;

use super::global::{Access, Actor};
use super::order::{AgentId, Order, Time, View};
use super::shared::Fault;
use super::violation::Kind;

/// Who arrives, and for whom: the threads of a block that have no roles, or those of one of its roles; the number of
/// the role from 1, or 0.
type Party = (i64, u8);

/// What an arrival releases of a party: up to when what its threads did comes before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Until {
    /// Any thread or copy.
    all: Time,
    /// Lanes of the first warp.
    warp: Time,
    /// The first thread, which arrives.
    first: Time,
    /// The number of that thread.
    number: u32,
}

impl Until {
    /// An arrival now, by the thread with a number.
    fn now(order: Order, number: u32) -> Self {
        Self { all: order.synced, warp: order.synced.max(order.synced_warp), first: order.now, number }
    }

    fn join(&mut self, other: Self) {
        let Self { all, warp, first, number } = other;
        *self = Self { all: self.all.max(all), warp: self.warp.max(warp), first: self.first.max(first), number };
    }

    fn covers(self, actor: Actor, time: Time) -> bool {
        let (first, lanes) = is_first(actor, self.number);
        time < if first {
            self.first
        } else if lanes {
            self.warp
        } else {
            self.all
        }
    }
}

/// Whether it is the thread with a number, the first one of a party, and whether it is a lane of that one's warp.
fn is_first(actor: Actor, number: u32) -> (bool, bool) {
    match actor {
        Actor::Thread(thread) => (thread == number, (number..number + WARP).contains(&thread)),
        Actor::Copy(_) => (false, false),
    }
}

/// What is known of others.
type Seen = SortedMap<Party, Until>;

fn join(seen: &mut Seen, other: &Seen) {
    other.iter().for_each(|(party, until)| seen.entry(*party).or_default().join(*until));
}

/// What the party that runs knows of others, and which of its threads do.
#[derive(Clone, Debug, Default)]
struct Knowledge {
    /// The number of its first thread.
    number: u32,
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
    /// The last update by each party since, and the last read.
    updates: SortedMap<Party, Access>,
    readers: SortedMap<Party, Access>,
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
    fn party(&self) -> Party {
        (self.block, self.by.role)
    }

    /// Takes the place of the party's accesses so far: whoever comes after this one comes after those, or nobody is
    /// named.
    fn stand_for(self, all: &mut SortedMap<Party, Access>, synced: Time) {
        let before = all.get(&self.party()).filter(|other| other.actor != self.actor && other.time >= synced);
        let actor = if before.is_some() { Actor::SEVERAL } else { self.actor };
        all.insert(self.party(), Access { actor, ..self });
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
    counters: SortedMap<(u16, i64), Counter>,
    /// Of the blocks of the cluster and their roles, and the one that runs.
    parties: SortedMap<AgentId, Knowledge>,
    now: AgentId,
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

    /// Another cluster runs.
    pub fn begin(&mut self) {
        self.parties.clear();
    }

    /// Another block of the cluster runs, or another role of one.
    pub fn select(&mut self, party: AgentId) {
        self.now = party;
    }

    /// A role of the block that runs begins, at the thread with a number: it knows what the block does.
    pub fn spawn(&mut self, role: AgentId, number: u32) {
        self.tell_all();
        let known = self.seen().clone();
        self.parties.insert(role, Knowledge { number, ..known });
    }

    /// A role of the block that runs has ended.
    pub fn gather(&mut self, role: AgentId) {
        let Some(Knowledge { all, warp, first, .. }) = self.parties.remove(&role) else { return };
        [&all, &warp, &first].into_iter().for_each(|known| join(&mut self.seen().all, known));
    }

    fn seen(&mut self) -> &mut Knowledge {
        self.parties.entry(self.now).or_default()
    }

    /// The blocks of the cluster wait for each other, or those that have a role: who, and when.
    pub fn tell_cluster(&mut self, parties: &[(AgentId, i64, Order)]) {
        let mut all = Seen::new();
        for (party, block, order) in parties {
            self.select(*party);
            self.tell_all();
            let known = self.seen();
            join(&mut all, &known.all);
            all.entry((*block, party.role)).or_default().join(Until::now(*order, known.number));
        }
        for (party, ..) in parties {
            self.parties.entry(*party).or_default().all = all.clone();
        }
    }

    /// The first thread of a block or role arrives; whether the block is the last one.
    pub fn arrive(&mut self, arrival: Arrival, order: Order) -> Result<bool, Fault> {
        let Arrival { workspace, at, blocks, block, releases, acquires } = arrival;
        self.cell(workspace, at)?;
        let counter = self.counters.entry((workspace, at)).or_default();
        let seen = self.parties.entry(self.now).or_default();
        if acquires {
            join(&mut seen.first, &counter.released);
        }
        if releases {
            [&seen.all, &seen.warp, &seen.first].into_iter().for_each(|s| join(&mut counter.released, s));
            counter.released.entry((block, self.now.role)).or_default().join(Until::now(order, seen.number));
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
        let Some(seen) = self.parties.get_mut(&self.now) else { return };
        join(&mut seen.warp, &std::mem::take(&mut seen.first));
    }

    /// All threads wait for each other.
    pub fn tell_all(&mut self) {
        self.tell_warp();
        let Some(seen) = self.parties.get_mut(&self.now) else { return };
        join(&mut seen.all, &std::mem::take(&mut seen.warp));
    }

    /// Whether an access of another block, or of another role, comes before what an agent of the block that runs does
    /// now.
    pub fn sees(&self, actor: Actor, other: &Access) -> bool {
        let by = |seen: &Seen| seen.get(&other.party()).is_some_and(|until| until.covers(other.actor, other.time));
        let Some(seen) = self.parties.get(&self.now) else { return false };
        let (first, lanes) = is_first(actor, seen.number);
        by(&seen.all) || lanes && by(&seen.warp) || first && by(&seen.first)
    }

    fn cell(&mut self, workspace: u16, at: i64) -> Result<&mut Cell, Fault> {
        let elements = self.all.get_mut(usize::from(workspace));
        let cell = elements.and_then(|e| usize::try_from(at).ok().and_then(|at| e.cells.get_mut(at)));
        cell.ok_or_else(|| (Kind::Outside, "the workspace has no such element".to_owned()))
    }

    /// An element is accessed; `view` is what the agent knows of others of its cluster.
    pub fn access(&mut self, workspace: u16, at: i64, touch: Touch, own: Access, view: View<'_>) -> Result<(), Fault> {
        let synced = view.order.synced;
        let zeroed = self.all.get(usize::from(workspace)).is_some_and(|e| e.zeroed);
        self.cell(workspace, at)?;
        let cell = &self.all[usize::from(workspace)].cells[at.unsigned_abs() as usize];
        let ordered = |other: &Access| match (other.block == own.block, other.actor) {
            (true, Actor::Thread(_)) if other.by == own.by => other.actor == own.actor || other.time < synced,
            // Roles of a block arrive as blocks do.
            (true, Actor::Thread(_)) => other.time < view.clock.of(other.by).written || self.sees(own.actor, other),
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

//! Agents: what runs one program on its own, and where it is in it.

use std::ops::Range;
use std::rc::Rc;

use super::barriers::Groups;
use super::order::{AgentId, Clock, Known, Order, View};
use super::products::Products;
use super::row::Row;
use crate::kernel_ir::{Loop, RegionId};

/// Who comes to a statement.
#[derive(Clone, Debug)]
pub(super) struct Active {
    pub lanes: Rc<[bool]>,
    pub count: usize,
    /// From the first one to the last one.
    pub range: Range<usize>,
    /// Whether it depends on data which of them do.
    pub maybe: bool,
    /// Whether it is the part of the elected thread; its lanes are those of which one is elected.
    pub elected: bool,
}

impl Active {
    pub fn of(threads: usize, comes: impl Fn(usize) -> bool, maybe: bool, elected: bool) -> Self {
        let (mut lanes, mut count, mut thread, mut range) = (vec![false; threads], 0, 0, 0..0);
        let own = &mut lanes[..];
        // No iterators, as in `row::pure`.
        while thread < own.len() {
            if comes(thread) {
                own[thread] = true;
                if count == 0 {
                    range.start = thread;
                }
                range.end = thread + 1;
                count += 1;
            }
            thread += 1;
        }
        Self { lanes: lanes.into(), count, range, maybe, elected }
    }

    pub fn threads(&self) -> impl Iterator<Item = usize> + use<> {
        let lanes = self.lanes.clone();
        (0..lanes.len()).filter(move |thread| lanes[*thread])
    }
}

/// A region that is being run.
#[derive(Clone, Debug)]
pub(super) struct Frame<'a> {
    pub region: RegionId,
    /// The next statement.
    pub at: usize,
    pub active: Active,
    /// Of the body of a loop, what comes after it.
    pub turn: Option<Turn<'a>>,
}

/// Where a loop is.
#[derive(Clone, Debug)]
pub(super) struct Turn<'a> {
    pub of: &'a Loop,
    /// How often each thread comes, and the most of them.
    pub count: Row,
    pub most: i64,
    /// The iteration.
    pub n: i64,
    /// Who came to the loop.
    pub active: Active,
}

/// What an agent waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Nothing,
    /// A phase: the barriers, which of them, and the parity.
    Phase(u32, i64, i64),
    /// The other blocks of the cluster.
    Cluster,
    /// So many roles of the block.
    Roles(u8),
}

/// An agent: all threads of a block, or those of a role.
#[derive(Clone, Debug)]
pub(super) struct Agent<'a> {
    pub id: AgentId,
    pub name: String,
    pub block: i64,
    /// Who it is: the threads, and their number.
    pub threads: Range<usize>,
    pub values: Vec<Row>,
    pub variables: Vec<Row>,
    pub order: Order,
    /// What it knows of others.
    pub clock: Clock,
    /// Whether all threads know that barriers are ready.
    pub ready: bool,
    /// Whether it comes after earlier launches.
    pub behind: bool,
    pub groups: Groups,
    /// The fetches of each thread, from the first one on.
    pub fetches: Vec<Groups>,
    pub products: Products,
    pub frames: Vec<Frame<'a>>,
    pub line: u32,
    pub waiting: Waiting,
}

impl Agent<'_> {
    pub fn view(&self) -> View<'_> {
        View { by: self.id, order: self.order, clock: &self.clock }
    }

    /// Number of its threads.
    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// Whether it is over.
    pub fn has_ended(&self) -> bool {
        self.frames.is_empty()
    }

    /// What others know who come after this: what it knows, and what it did so far, or before its last barrier.
    pub fn released(&self, all: bool) -> Clock {
        let mut clock = self.clock.clone();
        let seen = if all { self.order.now } else { self.order.synced };
        let visible = if all { self.order.published } else { self.order.visible };
        clock.learn(self.id, Known { passed: seen, seen, written: seen, visible });
        clock
    }
}

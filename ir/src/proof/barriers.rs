//! Barriers of copies and groups of copies: which phases and copies are known to be over.
//!
//! A phase ends with its arrivals and as many bytes as are expected. Copies take their time, so a phase is taken to end
//! when somebody waits for it, and what would depend on its ending earlier or later is wrong (PTX manual, mbarrier:
//! phases and `try_wait.parity`):
//!
//! - who arrives in a phase, or issues a copy that counts there, must know that the last one is over, by a wait of its
//!   own or of one that it is ordered after;
//! - all who waited for a phase must have done so before the next one has all its arrivals, or they could find that one
//!   over, too: parities are the same again;
//! - who waits must know that the phase before the one that it gets is over: with the same parity it would be told of
//!   that one.

use super::order::{AgentId, Clock, Time};
use super::shared::{CopyId, Fault};
use super::violation::Kind;

/// What a phase that is over tells those who waited for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended {
    /// What those did that arrived.
    pub clock: Clock,
    /// Copies that counted.
    pub copies: Vec<CopyId>,
}

/// One mbarrier.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    /// Arrivals that end a phase, and those that the one under way has.
    arrivals: u32,
    arrived: u32,
    /// Phases that are over.
    done: u64,
    /// Bytes of the phase under way, if somebody said so.
    expected: Option<u64>,
    /// Bytes of copies that were issued.
    issued: u64,
    /// What is known of the phase under way, and of the last one.
    open: Ended,
    last: Ended,
    /// Who waited for the last phase that is over, and for the one before.
    waits: [Vec<(AgentId, Time)>; 2],
}

impl Phase {
    /// A barrier that expects so many arrivals.
    pub fn new(arrivals: u32) -> Self {
        Self {
            arrivals,
            arrived: 0,
            done: 0,
            expected: None,
            issued: 0,
            open: Ended::default(),
            last: Ended::default(),
            waits: [Vec::new(), Vec::new()],
        }
    }

    /// Arrivals by somebody who knows so much, and releases it.
    pub fn arrive(&mut self, count: u32, clock: &Clock) -> Result<(), Fault> {
        if self.arrived == self.arrivals {
            return Err((Kind::PhaseOpen, "a phase is begun before the last one was waited for".to_owned()));
        }
        if self.arrived + count > self.arrivals {
            let (have, more) = (self.arrived, self.arrivals);
            let what = format!("{count} arrive in phase {} after {have} others, and it has {more} arrivals", self.done);
            return Err((Kind::PhaseOpen, what));
        }
        self.arrived += count;
        self.open.clock.join(clock);
        self.is_begun(clock)?;
        let early = |wait: &&(AgentId, Time)| !self.open.clock.is_past(**wait);
        if self.arrived == self.arrivals && self.waits[0].iter().any(|wait| early(&wait)) {
            let what = "a phase is begun while threads may wait for the last one still";
            return Err((Kind::PhaseOpen, what.to_owned()));
        }
        Ok(())
    }

    /// Arrivals that come when copies are over, by somebody who knows so much.
    pub fn arrive_behind(&mut self, copies: Vec<CopyId>, count: u32, clock: &Clock) -> Result<(), Fault> {
        self.open.copies.extend(copies);
        self.arrive(count, &clock.progress())
    }

    /// Bytes that the phase under way expects.
    pub fn expect(&mut self, bytes: u64) {
        *self.expected.get_or_insert(0) += bytes;
    }

    /// A copy that counts here, of somebody who knows so much.
    pub fn issue(&mut self, copy: CopyId, bytes: u64, clock: &Clock) -> Result<(), Fault> {
        self.issued += bytes;
        self.open.clock.join(&clock.progress());
        self.open.copies.push(copy);
        self.is_begun(clock)
    }

    /// Whether who knows so much knows that the phase under way has begun.
    fn is_begun(&self, clock: &Clock) -> Result<(), Fault> {
        if self.done > 0 && !self.waits[0].iter().any(|wait| clock.is_past(*wait)) {
            let what = "a phase is begun while threads may wait for the last one still";
            return Err((Kind::PhaseOpen, what.to_owned()));
        }
        Ok(())
    }

    /// A wait by all threads of an agent, and what they learn if it ends.
    pub fn wait(&mut self, parity: i64, (by, now): (AgentId, Time), clock: &Clock) -> Result<Option<&Ended>, Fault> {
        let knows = |waits: &[(AgentId, Time)]| waits.iter().any(|wait| wait.0 == by || clock.is_past(*wait));
        let late = (Kind::PhaseOpen, format!("phase {} may be over, or the one before not yet", self.done));
        if parity != (self.done % 2) as i64 {
            if self.done > 1 && !knows(&self.waits[1]) {
                return Err(late);
            }
            self.waits[0].push((by, now));
            return Ok(Some(&self.last));
        }
        if self.done > 0 && !knows(&self.waits[0]) {
            return Err(late);
        }
        let (all, expected) = (self.arrived == self.arrivals, self.expected.unwrap_or(0));
        if all && self.issued > expected {
            return Err(self.stuck());
        }
        if !all || self.issued < expected {
            return Ok(None);
        }
        self.done += 1;
        (self.arrived, self.expected, self.issued) = (0, None, 0);
        self.last = std::mem::take(&mut self.open);
        self.waits.swap(0, 1);
        self.waits[0].clear();
        self.waits[0].push((by, now));
        Ok(Some(&self.last))
    }

    /// Why the phase under way does not end.
    pub fn stuck(&self) -> Fault {
        let Self { arrivals, arrived, done, issued, .. } = self;
        match self.expected.unwrap_or(0) {
            expected if arrived == arrivals => {
                (Kind::Bytes, format!("phase {done} expects {expected} bytes, and {issued} come"))
            }
            _ if *arrived == 0 => (Kind::NeverEnds, format!("phase {done} is waited for, and nobody arrives in it")),
            _ => (Kind::NeverEnds, format!("phase {done} is waited for, and {arrived} of {arrivals} arrive in it")),
        }
    }

    /// Whether a copy may be under way.
    pub fn is_open(&self) -> bool {
        self.expected.is_some() || self.issued > 0 || !self.open.copies.is_empty()
    }
}
/// Copies as the thread that commits and awaits them counts them.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// Copies since the last commit.
    open: Vec<CopyId>,
    /// Of so many of these a barrier tells the end, too.
    released: usize,
    /// Committed groups that may be under way.
    committed: Vec<Vec<CopyId>>,
}

impl Groups {
    pub fn issue(&mut self, copy: CopyId) {
        self.open.push(copy);
    }

    /// The last copy of the group that is not committed yet.
    pub fn last(&self) -> Option<CopyId> {
        self.open[self.released..].last().copied()
    }

    pub fn commit(&mut self) {
        self.committed.push(std::mem::take(&mut self.open));
        self.released = 0;
    }

    /// The copies since the last commit of which no barrier tells the end so far.
    pub fn release(&mut self) -> Vec<CopyId> {
        let from = std::mem::replace(&mut self.released, self.open.len());
        let mut new = self.open[from..].to_vec();
        new.dedup();
        new
    }

    /// A wait for all but the last `pending` groups; the copies that have read shared memory after it.
    pub fn wait(&mut self, pending: u32) -> Vec<CopyId> {
        let over = self.committed.len().saturating_sub(pending as usize);
        self.committed.drain(..over).flatten().collect()
    }

    /// Whether a copy may be under way.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty() || self.committed.iter().any(|group| !group.is_empty())
    }
}

//! Barriers of copies and groups of copies: which copies are known to be over.
//!
//! A phase ends with its one arrival and as many bytes as are expected; the next one may only begin when the elected thread knows that it has
//! ended. So a barrier is at most one phase ahead of what threads know, and a wait for the parity of the phase under way ends with it,
//! a wait for the other parity at once (PTX manual, mbarrier: phases and `try_wait.parity`).

use super::shared::{CopyId, Fault, Time};
use super::violation::Kind;

/// One mbarrier.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    /// Phases that all threads know to be over.
    known: u64,
    /// When they waited for the last one.
    waited: Option<Time>,
    /// Bytes of the phase under way, if somebody has arrived.
    expected: Option<u64>,
    /// Bytes of copies that were issued.
    issued: u64,
    copies: Vec<CopyId>,
}

impl Phase {
    /// The arrival of a phase; `synced` is when threads met last. One that waits for the last phase still must not find that this one is over,
    /// too: parities would be the same again.
    pub fn expect(&mut self, bytes: u64, synced: Time) -> Result<(), Fault> {
        if self.waited.is_some_and(|waited| waited >= synced) {
            let what = "a phase is begun while threads may wait for the last one still";
            return Err((Kind::PhaseOpen, what.to_owned()));
        }
        match self.expected {
            Some(_) => Err((Kind::PhaseOpen, "a phase is begun before the last one was waited for".to_owned())),
            None => {
                self.expected = Some(bytes);
                Ok(())
            }
        }
    }

    /// A copy that counts here.
    pub fn issue(&mut self, copy: CopyId, bytes: u64) {
        self.issued += bytes;
        self.copies.push(copy);
    }

    /// A wait by all threads; the copies that are known to be over behind it.
    pub fn wait(&mut self, parity: i64, now: Time) -> Result<Vec<CopyId>, Fault> {
        self.waited = Some(now);
        if parity != (self.known % 2) as i64 {
            return Ok(Vec::new());
        }
        let issued = self.issued;
        match self.expected.take() {
            None => Err((Kind::NeverEnds, format!("phase {} is waited for, and nobody arrives in it", self.known))),
            Some(expected) if expected != issued => {
                Err((Kind::Bytes, format!("phase {} expects {expected} bytes, and {issued} come", self.known)))
            }
            Some(_) => {
                self.known += 1;
                self.issued = 0;
                Ok(std::mem::take(&mut self.copies))
            }
        }
    }

    /// Whether something is under way.
    pub fn is_open(&self) -> bool {
        self.expected.is_some() || self.issued > 0
    }
}

/// Copies as the thread that commits and awaits them counts them.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// Copies since the last commit.
    open: Vec<CopyId>,
    /// Committed groups that may be under way.
    committed: Vec<Vec<CopyId>>,
}

impl Groups {
    pub fn issue(&mut self, copy: CopyId) {
        self.open.push(copy);
    }

    /// The last copy of the group that is not committed yet.
    pub fn last(&self) -> Option<CopyId> {
        self.open.last().copied()
    }

    pub fn commit(&mut self) {
        self.committed.push(std::mem::take(&mut self.open));
    }

    /// A wait for all but the last `pending` groups; the copies that have read shared memory behind it.
    pub fn wait(&mut self, pending: u32) -> Vec<CopyId> {
        let over = self.committed.len().saturating_sub(pending as usize);
        self.committed.drain(..over).flatten().collect()
    }

    /// Whether a copy may be under way.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty() || self.committed.iter().any(|group| !group.is_empty())
    }
}

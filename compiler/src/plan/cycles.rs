//! How long accesses of shared memory take; `banks` counts it.

use crate::source::Span;

/// Cycles, and how many it would be without conflicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cycles {
    /// With conflicts.
    pub taken: u64,
    /// Without.
    pub least: u64,
}

impl Cycles {
    /// Whether conflicts at least double them.
    pub fn is_slow(self) -> bool {
        self.taken >= 2 * self.least.max(1)
    }
}

/// An access of a warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes of a lane.
    pub bytes: u32,
    /// For each lane the first byte in the slot; none of a lane that accesses nothing.
    pub lanes: Vec<Option<u64>>,
}

/// How long the accesses that an access of the program is take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degree {
    /// The first one: of the first warp, in the first iteration.
    pub first: Cycles,
    /// What that one asks for.
    pub request: Request,
    /// The slowest one.
    pub worst: Cycles,
    /// All that were looked at together.
    pub sum: Cycles,
    /// Whether these are all of an instance.
    pub complete: bool,
    /// Lanes that wait for each other in the slowest one, each for another word of one bank.
    pub lanes: Vec<u32>,
}

impl Degree {
    /// Whether there is something to say about it: the first access is slow, or most are.
    pub fn is_slow(&self) -> bool {
        self.first.is_slow() || self.sum.is_slow()
    }
}

/// An access of a buffer in shared memory.
#[derive(Clone, Debug)]
pub struct Use {
    /// The stage or staged copy that has the buffer.
    pub buffer: String,
    /// Whether it writes.
    pub is_write: bool,
    /// The read, or the left-hand side.
    pub span: Span,
    /// How long it takes; none where that depends on sizes.
    pub degree: Option<Degree>,
}

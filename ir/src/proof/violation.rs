//! What can be wrong, and how it is said.

use std::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The number of blocks, or the length of a workspace, has no value.
    NoLaunch,
    /// An access outside a tensor, buffer or slot.
    Outside,
    /// An address that the width of the access does not divide.
    Misaligned,
    /// A 32-bit offset that needs more bits.
    Wide,
    /// An element of an output that is written again.
    WrittenTwice,
    /// An element of an output that is never written.
    NotWritten,
    /// An element of shared memory that nobody wrote in this instance.
    Uninitialised,
    /// An element that was taken to a tensor before, and not written since.
    Stale,
    /// Accesses of two threads, or of a thread and a copy, with no barrier in between.
    Race,
    /// A copy reads what a thread wrote without a fence.
    NotPublished,
    /// Memory is reused that a copy may read still.
    StillRead,
    /// Memory is accessed that a copy may write still.
    UnderWay,
    /// A wait for a phase that does not end.
    NeverEnds,
    /// Other bytes come in a phase than are expected.
    Bytes,
    /// A barrier of copies is used before all threads know that it is ready.
    NotReady,
    /// A phase is begun before the last one is known to be over.
    PhaseOpen,
    /// Memory of another block of the cluster is accessed that may have ended.
    Exited,
    /// Something is under way when the block ends.
    Left,
    /// Threads disagree on an operand of a statement for all of them, or on what is said to be the same for them.
    Disagree,
    /// Some threads do not come to a statement for all of them.
    NotEveryThread,
    /// Memory of other launches is accessed before they are waited for.
    BeforeWait,
    /// An element of an output that is not what the algorithm says.
    Wrong,
    /// What happens depends on an index outside of what is said of it: instructions are chosen by that.
    Beyond,
    /// It depends on data.
    Data,
}

/// Something that is wrong, or cannot be decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What.
    pub kind: Kind,
    /// Source statement that the offending one serves, from 1; 0 for none.
    pub line: u32,
    /// The block; none for what concerns the launch.
    pub block: Option<i64>,
    /// A sentence with names and numbers.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(block) = self.block {
            write!(f, "block {block}, ")?;
        }
        write!(f, "statement {}: {}", self.line, self.what)
    }
}

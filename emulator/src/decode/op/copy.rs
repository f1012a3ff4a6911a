//! Asynchronous copies by threads, and mbarriers.

use super::{Address, Narrow, PredRef, PredSlot, Slot, WideSlot};

/// How many bytes `cp.async` reads; the rest of the destination becomes zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceBytes {
    /// All of them.
    All,
    /// This many.
    Some(Narrow),
    /// None where the predicate is true.
    Ignore(PredRef),
}

/// `cp.async`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadCopy {
    /// Destination in shared memory.
    pub to: Address,
    /// Source in global memory.
    pub from: Address,
    /// 4, 8 or 16.
    pub bytes: u8,
    /// What is read.
    pub source: SourceBytes,
    /// Four data slots that the words pass through.
    pub data: u32,
}

/// An operation on an mbarrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MbarrierFn {
    /// `init` with its count.
    Init(Narrow),
    /// `inval`.
    Inval,
    /// `expect_tx`, or `complete_tx`.
    Transact {
        /// Bytes.
        bytes: Narrow,
        /// `complete_tx`.
        complete: bool,
    },
    /// `arrive`, `arrive_drop`.
    Arrive {
        /// The state before.
        d: Option<WideSlot>,
        /// Arrivals, 1 if none.
        count: Option<Narrow>,
        /// Bytes expected first.
        expect: Option<Narrow>,
        /// `arrive_drop`.
        drop: bool,
        /// `.noComplete`.
        no_complete: bool,
        /// Whether it orders what the thread did before.
        release: bool,
    },
    /// `cp.async.mbarrier.arrive`.
    ArriveAfterCopies {
        /// The arrival is one of the expected ones.
        noinc: bool,
    },
    /// `test_wait`, `try_wait`.
    Wait {
        /// Whether the phase has ended.
        d: PredSlot,
        /// State, or parity if narrow.
        phase: Slot,
        /// Whether it orders what comes after.
        acquire: bool,
        /// May fail for no reason.
        spurious: bool,
    },
}

/// An instruction on an mbarrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MbarrierOp {
    /// Where the object is.
    pub address: Address,
    /// Whether the address is generic.
    pub generic: bool,
    /// Whether the object may be another CTA's.
    pub cluster: bool,
    /// What is done.
    pub f: MbarrierFn,
}

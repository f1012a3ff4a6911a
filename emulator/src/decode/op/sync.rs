//! What barriers and operations of a warp say, and the clocks.

use super::{Narrow, PredRef, PredSlot, Slot};

/// How a barrier instruction takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarrierKind {
    /// Waits.
    Sync,
    /// Does not wait.
    Arrive,
    /// Waits and returns how many threads had a true predicate.
    Popc(Narrow, PredRef),
    /// Waits and returns whether all had a true predicate.
    All(PredSlot, PredRef),
    /// Waits and returns whether any had.
    Any(PredSlot, PredRef),
}

/// A CTA barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Barrier {
    /// Its number.
    pub id: Narrow,
    /// The number, where it is a constant.
    pub known: Option<u32>,
    /// Number of threads; all of the CTA if none.
    pub threads: Option<Narrow>,
    /// Whether all lanes of the warp must come together.
    pub aligned: bool,
    /// Part taken.
    pub kind: BarrierKind,
}

/// `barrier.cluster`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClusterBarrierOp {
    /// An arrival; otherwise a wait.
    pub arrive: bool,
    /// Whether all lanes of the warp must come together.
    pub aligned: bool,
    /// Whether an arrival orders what the thread did before; a wait always orders what comes after.
    pub orders: bool,
}

/// `mapa`, or `getctarank`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapa {
    /// Result.
    pub d: Slot,
    /// Address.
    pub a: Slot,
    /// Rank of the CTA whose address is asked for; without it the address's rank is.
    pub rank: Option<Narrow>,
    /// Whether the addresses are generic.
    pub generic: bool,
}

/// `shfl.sync` mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shuffle {
    /// From a lower lane.
    Up,
    /// From a higher lane.
    Down,
    /// From the lane with some bits flipped.
    Bfly,
    /// From a lane by number.
    Idx,
}

/// `vote.sync` mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vote {
    /// All true.
    All(PredSlot),
    /// Any true.
    Any(PredSlot),
    /// All equal.
    Uni(PredSlot),
    /// The mask.
    Ballot(Narrow),
}

/// `redux.sync` operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub enum Redux {
    Add,
    MinU,
    MinS,
    MaxU,
    MaxS,
    And,
    Or,
    Xor,
}

/// An instruction for lanes of a warp that meet by member mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Collective {
    /// `shfl.sync`.
    Shfl {
        /// Mode.
        mode: Shuffle,
        /// Result.
        d: Narrow,
        /// Whether the source lane was in range.
        p: Option<PredSlot>,
        /// Value offered.
        a: Narrow,
        /// Lane or distance.
        b: Narrow,
        /// Clamp and segment mask.
        c: Narrow,
    },
    /// `vote.sync`.
    Vote(Vote, PredRef),
    /// `match.any.sync`.
    MatchAny {
        /// Result.
        d: Narrow,
        /// Value compared.
        a: Slot,
    },
    /// `match.all.sync`.
    MatchAll {
        /// Result.
        d: Option<Narrow>,
        /// Whether all are equal.
        p: Option<PredSlot>,
        /// Value compared.
        a: Slot,
    },
    /// `redux.sync`.
    Redux {
        /// Operation.
        op: Redux,
        /// Result.
        d: Narrow,
        /// Operand.
        a: Narrow,
    },
    /// `elect.sync`.
    Elect {
        /// The elected lane.
        d: Option<Narrow>,
        /// True in that lane.
        p: PredSlot,
    },
    /// `bar.warp.sync`.
    Barrier,
}

/// A source of time or of an id that changes as the kernel runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// Low 32 bits.
    Low,
    /// High 32 bits.
    High,
    /// All 64.
    Full,
}

impl Clock {
    /// What it shows at this time.
    pub fn of(self, time: u64) -> u64 {
        match self {
            Clock::Low => time & 0xffff_ffff,
            Clock::High => time >> 32,
            Clock::Full => time,
        }
    }
}

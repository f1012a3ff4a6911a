//! What the warps of the first cluster do at barriers and with copies, one after the other: for pictures.
//!
//! A traced launch runs the first cluster alone, one instruction of a warp at a time, up to a number of instructions.
//! Events have no time of their own, since warps of the emulator take turns: what they have is how many instructions
//! their warp had executed, and their order, in which nothing comes before what it depends on. Launches that are not
//! traced ask once a turn and once an instruction on barriers or copies whether they are.

use std::ops::Range;

/// A place in the shared memory of a block of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SharedPlace {
    /// Rank of the block in the cluster.
    pub rank: u32,
    /// Byte of its shared memory, as machines lay it out: without the room that the emulator leaves between variables.
    pub offset: u64,
}

/// What happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Lanes of the warp arrive at an mbarrier so many times together.
    Arrive {
        /// The mbarrier.
        at: SharedPlace,
        /// How many times.
        count: u32,
    },
    /// The warp looks whether a phase of an mbarrier has ended.
    Wait {
        /// The mbarrier.
        at: SharedPlace,
        /// Whether it has.
        ended: bool,
    },
    /// A phase of an mbarrier has ended, by what was told before.
    PhaseEnd {
        /// The mbarrier.
        at: SharedPlace,
        /// Phases that have ended, this one included.
        phases: u32,
    },
    /// The warp starts a bulk copy.
    Issue {
        /// Number of the copy.
        copy: u32,
        /// Whether it goes to global memory.
        store: bool,
        /// Rank of the block whose shared memory it is about, and bytes there.
        rank: u32,
        /// These bytes.
        bytes: Range<u64>,
    },
    /// A bulk copy is over.
    Done {
        /// Number of the copy.
        copy: u32,
        /// The mbarrier that it tells.
        at: Option<SharedPlace>,
    },
    /// The warp waits for copies of its own to global memory, or until these have read shared memory.
    WaitCopies {
        /// The numbers of the copies.
        copies: Vec<u32>,
    },
    /// The warp comes to a barrier of its block.
    Come {
        /// Number of the barrier.
        id: u32,
        /// Whether it waits there.
        waits: bool,
    },
    /// The last warp has come to a barrier of a block.
    Met {
        /// Rank of the block.
        rank: u32,
        /// Number of the barrier.
        id: u32,
    },
    /// The warp comes to the barrier of the cluster, and whether it waits for it now.
    ComeCluster {
        /// Whether it waits.
        waits: bool,
    },
    /// The last warp has come to the barrier of the cluster.
    MetCluster,
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The warp: numbered through the cluster, block by block.
    pub warp: u32,
    /// Instructions of the program that it had executed before.
    pub at: u64,
    /// What happens.
    pub step: Step,
}

/// The events of a cluster.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Trace {
    /// Warps of a block.
    pub warps: u32,
    /// The events.
    pub events: Vec<Event>,
    /// Instructions of the program that each warp has executed, waits in vain included.
    pub ran: Vec<u64>,
    /// Whether the cluster has ended; it has not where there are too many instructions, or a finding.
    pub complete: bool,
}

/// A trace that is being made.
#[derive(Debug)]
pub(crate) struct Recorder {
    trace: Trace,
    /// Instructions that may be traced.
    left: u64,
    next: u32,
    /// The mbarrier that each warp looked at in vain, if it has done nothing else since: it is told once.
    in_vain: Vec<Option<SharedPlace>>,
    /// Phases of each mbarrier that have ended.
    phases: Vec<(SharedPlace, u32)>,
}

impl Recorder {
    /// One for a cluster of so many blocks, each with so many warps.
    pub fn new(most: u64, blocks: usize, warps: usize) -> Self {
        let trace = Trace { warps: warps as u32, ran: vec![0; blocks * warps], ..Trace::default() };
        let in_vain = vec![None; blocks * warps];
        Self { trace, left: most, in_vain, next: 0, phases: Vec::new() }
    }

    /// What there is of the trace, and whether that is all.
    pub fn finish(self, complete: bool) -> Trace {
        Trace { complete, ..self.trace }
    }

    /// A warp had its turn, and executed so many instructions of the program: none is a turn for a check of registers.
    /// Whether more may be traced.
    pub fn ran(&mut self, warp: u32, turns: u64, instructions: u64) -> bool {
        self.trace.ran[warp as usize] += instructions;
        self.left = self.left.saturating_sub(turns);
        self.left > 0
    }

    /// Something happens in a warp.
    pub fn push(&mut self, warp: u32, step: Step) {
        let looked = match &step {
            Step::Wait { at, ended: false } => Some(*at),
            _ => None,
        };
        if std::mem::replace(&mut self.in_vain[warp as usize], looked) == looked && looked.is_some() {
            return;
        }
        let at = self.trace.ran[warp as usize];
        self.trace.events.push(Event { warp, at, step });
    }

    /// An mbarrier has ended so many phases since it was made.
    pub fn phase(&mut self, warp: u32, at: SharedPlace, phases: u32) {
        match self.phases.iter_mut().find(|known| known.0 == at) {
            Some(known) if known.1 == phases => return,
            Some(known) => known.1 = phases,
            None if phases == 0 => return,
            None => self.phases.push((at, phases)),
        }
        self.push(warp, Step::PhaseEnd { at, phases });
    }

    /// The number of a new copy.
    pub fn issue(&mut self, warp: u32, (store, rank, bytes): (bool, u32, Range<u64>)) -> u32 {
        let copy = self.next;
        self.next += 1;
        self.push(warp, Step::Issue { copy, store, rank, bytes });
        copy
    }
}

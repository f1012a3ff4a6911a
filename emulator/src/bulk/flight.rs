//! Copies that are under way, or over and not yet known by all warps to be so.

use std::ops::Range;

use tilewright_kernel::tensor_map::{GRANULE, Swizzle};
use tilewright_sorted::SortedMap;

use super::tile::Span;
use crate::decode::op::AtomicFn;
use crate::shadow::clock::Clocks;

/// Who issued a copy, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Issuer {
    /// Instruction.
    pub pc: u32,
    /// Warp.
    pub warp: u32,
    /// Lane.
    pub lane: u32,
}

/// A number of an agent (see [`Clocks`]): whoever knows it is ordered after the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// The agent.
    pub agent: usize,
    /// The number; [`NEVER`] while nobody can know.
    pub number: u32,
}

/// The number of a copy that is under way.
pub const NEVER: u32 = u32::MAX;

/// How far a copy is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Progress {
    /// Nothing has moved.
    Issued,
    /// The source of a store has been read.
    Read,
    /// Everything has moved.
    Done,
}

/// What moves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cargo {
    /// Start of the tile in shared memory.
    pub tile: u32,
    /// The permutation of its chunks.
    pub swizzle: Swizzle,
    /// The tile: of a load what is put where nothing is read, of a store what has been read.
    pub image: Vec<u8>,
    /// What goes to or comes from global memory.
    pub spans: Vec<Span>,
    /// Start of the source in shared memory, of a copy across.
    pub source: u32,
}

impl Default for Cargo {
    fn default() -> Self {
        Cargo { tile: 0, swizzle: Swizzle::None, image: Vec::new(), spans: Vec::new(), source: 0 }
    }
}

/// Which way a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// To shared memory, from global memory or with data of its own.
    In,
    /// From shared memory to global memory.
    Out,
    /// From shared memory to that of another CTA.
    Across,
    /// Nowhere: a product that reads shared memory.
    Product,
    /// Into an element of shared memory of this many bytes, by an operation.
    Reduce(AtomicFn, u8),
}

/// A copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flight {
    /// Who issued it.
    pub issuer: Issuer,
    /// Which way it goes.
    pub way: Way,
    /// The bytes of shared memory that it writes.
    pub writes: Range<u64>,
    /// Those that it reads.
    pub reads: Range<u64>,
    /// The 16-byte chunks that it reads, ascending, where they are not all of these bytes.
    pub chunks: Vec<u32>,
    /// CTAs of the cluster whose shared memory it needs to the end: the destination's, or a store's own, and that of
    /// the source.
    pub owners: [u32; 2],
    /// The first and one past the last of its bytes of global memory.
    pub global: Range<u64>,
    /// What it moves; the spans stay until the end.
    pub cargo: Cargo,
    /// The mbarrier of all but those out.
    pub mbarrier: u64,
    /// The group of a copy out, counted from 1.
    pub group: u32,
    /// Who knows that shared memory is its issuer's again.
    pub released: Token,
    /// Who knows that all is done.
    pub finished: Token,
    /// How far it is.
    pub progress: Progress,
    /// Its number in the trace of the launch, if there is one.
    pub number: u32,
}

impl Flight {
    /// Whether it goes to global memory.
    pub fn is_store(&self) -> bool {
        self.way == Way::Out
    }

    /// Whether an access to these bytes of shared memory, reading or writing, is in its way: with what it does there,
    /// and who is ordered after that.
    pub fn meets(&self, bytes: &Range<u64>, writes: bool) -> Option<(bool, Token)> {
        if overlap(&self.writes, bytes) {
            return Some((true, self.finished));
        }
        (writes && overlap(&self.reads, bytes) && self.reads_of(bytes)).then_some((false, self.released))
    }

    /// Whether it reads some of these bytes, which are among those between its first and its last one.
    fn reads_of(&self, bytes: &Range<u64>) -> bool {
        if self.chunks.is_empty() {
            return true;
        }
        let next = self.chunks.partition_point(|chunk| u64::from(*chunk) + GRANULE <= bytes.start);
        self.chunks.get(next).is_some_and(|chunk| u64::from(*chunk) < bytes.end)
    }

    /// Whether it touches bytes of global memory.
    pub fn touches(&self, bytes: &Range<u64>) -> bool {
        overlap(&self.global, bytes) && self.cargo.spans.iter().any(|span| overlap(&span.global(), bytes))
    }

    /// The first of these bytes that it touches, or their first.
    pub fn first_byte(&self, bytes: &Range<u64>) -> u64 {
        let hits = self.cargo.spans.iter().map(Span::global).filter(|span| overlap(span, bytes));
        hits.map(|span| span.start.max(bytes.start)).min().unwrap_or(bytes.start)
    }
}

/// Whether ranges have a byte in common.
pub fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The bulk groups of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    /// Groups closed.
    pub closed: u32,
    /// Agent that counts those whose sources have been read.
    pub read: usize,
    /// Agent that counts those that are done.
    pub done: usize,
}

/// All copies of a CTA that anybody may still have to know of.
#[derive(Debug, Default)]
pub struct Flights {
    list: Vec<Flight>,
    /// Ranges that all of them lie in, so that most accesses are seen to meet none.
    shared: Range<u64>,
    global: Range<u64>,
    /// By warp and lane.
    groups: SortedMap<(u32, u32), Groups>,
    /// Copies that are not done.
    pub under_way: usize,
    /// Accesses that met no copy since the list was last swept.
    misses: u32,
}

/// Accesses near copies, and none in their way, after which it is worth looking whether the copies are known to
/// everybody.
const MISSES: u32 = 32;

/// A range that contains nothing.
pub const NOTHING: Range<u64> = Range { start: u64::MAX, end: 0 };

impl Flights {
    /// The state at the start of a CTA.
    pub fn reset(&mut self) {
        self.list.clear();
        self.groups.clear();
        self.under_way = 0;
        self.misses = 0;
        (self.shared, self.global) = (NOTHING, NOTHING);
    }

    /// Whether a copy may touch these bytes of shared memory.
    #[inline(always)]
    pub fn near_shared(&self, start: u64, end: u64) -> bool {
        start < self.shared.end && self.shared.start < end
    }

    /// Whether a copy may touch these bytes of global memory.
    #[inline(always)]
    pub fn near_global(&self, start: u64, end: u64) -> bool {
        start < self.global.end && self.global.start < end
    }

    /// All of them, in the order of issue.
    pub fn list(&self) -> &[Flight] {
        &self.list
    }

    /// One of them.
    pub fn at(&mut self, index: usize) -> &mut Flight {
        &mut self.list[index]
    }

    /// Adds a copy.
    pub fn push(&mut self, flight: Flight) -> usize {
        self.shared = join(&join(&self.shared, &flight.writes), &flight.reads);
        self.global = join(&self.global, &flight.global);
        self.under_way += usize::from(flight.progress != Progress::Done);
        self.list.push(flight);
        self.list.len() - 1
    }

    /// Forgets copies that are done and that every warp knows to be so.
    pub fn sweep(&mut self, clocks: &Clocks) {
        self.forget(|flight| clocks.known_to(true, flight.finished.agent, flight.finished.number));
    }

    /// As [`Flights::sweep`], now and then.
    pub fn tidy(&mut self, clocks: &Clocks) {
        self.misses += 1;
        if self.misses >= MISSES {
            self.misses = 0;
            self.sweep(clocks);
        }
    }

    /// Forgets the finished copies that are chosen.
    pub fn forget(&mut self, chosen: impl Fn(&Flight) -> bool) {
        let before = self.list.len();
        self.list.retain(|flight| flight.progress != Progress::Done || !chosen(flight));
        if self.list.len() < before {
            let shared = |all, flight: &Flight| join(&join(&all, &flight.writes), &flight.reads);
            self.shared = self.list.iter().fold(NOTHING, shared);
            self.global = self.list.iter().fold(NOTHING, |all, flight| join(&all, &flight.global));
        }
    }

    /// The groups of a thread.
    pub fn groups(&mut self, clocks: &mut Clocks, thread: (u32, u32)) -> &mut Groups {
        let new = || Groups { closed: 0, read: clocks.new_agent(), done: clocks.new_agent() };
        self.groups.entry(thread).or_insert_with(new)
    }

    /// The groups of a thread that has issued a copy or closed a group.
    pub fn groups_of(&self, thread: (u32, u32)) -> Option<Groups> {
        self.groups.get(&thread).copied()
    }
}

fn join(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    if b.start >= b.end { a.clone() } else { a.start.min(b.start)..a.end.max(b.end) }
}

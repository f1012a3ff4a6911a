//! Accesses to the words of a memory, split into bytes where lanes touch parts of a word.
//!
//! A word has its last plain write and the last plain read since then, each packed into 64 bits so that a warp's row of
//! words is compared and replaced by vector code. What does not fit (reads by several warps, atomic operations, bytes
//! of their own) stands beside it.

mod probe;

pub use probe::{Flaw, worse};

use super::clock::Clocks;

/// How an access counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AccessKind {
    /// Plain read.
    Read,
    /// Plain write.
    Write,
    /// Atomic operation, or a strong write: races with plain accesses only.
    Atomic,
    /// Strong read: races with plain writes only.
    StrongRead,
}

impl AccessKind {
    /// Whether two unordered accesses of these kinds race.
    pub const fn conflicts(self, other: AccessKind) -> bool {
        use AccessKind::*;
        match (self, other) {
            (Write, _) | (_, Write) => true,
            (Read, Atomic) | (Atomic, Read) => true,
            (Read | StrongRead, Read | StrongRead) | (Atomic, Atomic | StrongRead) | (StrongRead, Atomic) => false,
        }
    }

    /// For messages.
    pub const fn name(self) -> &'static str {
        match self {
            AccessKind::Read | AccessKind::StrongRead => "read",
            AccessKind::Write => "write",
            AccessKind::Atomic => "atomic operation",
        }
    }
}

/// Who accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    /// Warp in the cluster.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u32,
    /// The warp's epoch.
    pub epoch: u32,
    /// Index of the instruction.
    pub pc: u32,
}

/// An earlier access that the present one races with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// How it accessed.
    pub kind: AccessKind,
    /// Its warp.
    pub warp: u32,
    /// Its lane (one of them, for reads).
    pub lane: u32,
    /// Its instruction.
    pub pc: u32,
}

/// Accesses of one or more lanes of a warp in one epoch. From the top: epoch, whether the two halves of the word belong
/// to two lanes, instruction, warp, a lane, another lane (the same one if there is no other). 0 is nobody.
type Entry = u64;

const EPOCH: u32 = 38;
const HALVES: Entry = 1 << 37;
const PC: u32 = 19;
/// Log2 of the most instructions of a kernel.
pub const PC_BITS: u32 = 18;
const WARP: u32 = 10;
const LANE: u32 = 5;
/// What two accesses share that one thread does in one epoch.
const IDENTITY: Entry = !(((1 << PC_BITS) - 1) << PC);
/// What two accesses share that one warp does in one epoch.
const SAME_WARP: Entry = !((1 << EPOCH) - 1) | MOST_WARP << WARP;
/// The greatest number of a warp: 16 CTAs of a cluster have 32 each.
const MOST_WARP: Entry = 511;
/// Most entries that a warp has of one kind beside the two of the word.
const MOST_OWN: usize = 8;
/// The last epoch that fits; see [`Clocks::next_epoch`].
pub const LAST_EPOCH: u32 = (1 << 25) - 1;

#[inline(always)]
fn entry(who: Who, other: u32) -> Entry {
    u64::from(who.epoch) << EPOCH
        | u64::from(who.pc) << PC
        | u64::from(who.warp) << WARP
        | u64::from(who.lane) << LANE
        | u64::from(other)
}

#[inline(always)]
fn epoch(e: Entry) -> u32 {
    (e >> EPOCH) as u32
}
#[inline(always)]
fn warp(e: Entry) -> u32 {
    (e >> WARP & MOST_WARP) as u32
}
#[inline(always)]
fn lane(e: Entry) -> u32 {
    (e >> LANE & 31) as u32
}
#[inline(always)]
fn other(e: Entry) -> u32 {
    (e & 31) as u32
}
fn pc(e: Entry) -> u32 {
    (e >> PC) as u32 & ((1 << PC_BITS) - 1)
}

/// Entries below this are ordered before what the warp does now, whoever they are of.
#[inline(always)]
fn bound(clocks: &Clocks, warp: u32) -> Entry {
    (u64::from(clocks.floor(warp as usize)) + 1) << EPOCH
}

fn ordered(e: Entry, clocks: &Clocks, who: Who) -> bool {
    e == 0
        || clocks.ordered(who.warp as usize, warp(e) as usize, epoch(e))
        || (warp(e) == who.warp
            && [lane(e), other(e)]
                .iter()
                .all(|lane| clocks.lanes_ordered(who.warp as usize, who.lane, *lane, epoch(e))))
}

fn conflict(e: Entry, kind: AccessKind, clocks: &Clocks, who: Who) -> Conflict {
    let ordered = warp(e) == who.warp && clocks.lanes_ordered(who.warp as usize, who.lane, lane(e), epoch(e));
    let named = if ordered { other(e) } else { lane(e) };
    Conflict { kind, warp: warp(e), lane: named, pc: pc(e) }
}

/// Everything about a byte, or about a word whose bytes are alike.
#[derive(Clone, Debug, Default)]
struct Cell {
    write: Entry,
    read: Entry,
    /// Further reads and atomic operations, at most one a warp and kind.
    more: Vec<(AccessKind, Entry)>,
}

impl Cell {
    /// These accesses and no others. What has been allocated is kept.
    fn set(&mut self, write: Entry, read: Entry) {
        (self.write, self.read) = (write, read);
        self.more.clear();
    }

    fn access(&mut self, clocks: &Clocks, kind: AccessKind, who: Who) -> Option<Conflict> {
        let bound = bound(clocks, who.warp);
        let check = |old: AccessKind, e: Entry| {
            (kind.conflicts(old) && e >= bound && !ordered(e, clocks, who)).then(|| conflict(e, old, clocks, who))
        };
        let found = check(AccessKind::Write, self.write)
            .or_else(|| check(AccessKind::Read, self.read))
            .or_else(|| self.more.iter().find_map(|(old, e)| check(*old, *e)));
        let new = entry(who, who.lane);
        match kind {
            AccessKind::Write => self.set(new, 0),
            AccessKind::Read if (self.read ^ new) & SAME_WARP == 0 => self.read = merged(self.read, who),
            AccessKind::Read => {
                let own = |(old, e): &&mut (AccessKind, Entry)| *old == kind && (*e ^ new) & SAME_WARP == 0;
                if let Some((_, old)) = self.more.iter_mut().find(own) {
                    *old = merged(*old, who);
                    return found;
                }
                // A read that is ordered before this one needs no memory of its own.
                if self.read != 0 && !clocks.ordered(who.warp as usize, warp(self.read) as usize, epoch(self.read)) {
                    self.add(clocks, AccessKind::Read, self.read);
                }
                self.read = new;
            }
            AccessKind::Atomic | AccessKind::StrongRead => self.add(clocks, kind, new),
        }
        found
    }

    fn add(&mut self, clocks: &Clocks, kind: AccessKind, new: Entry) {
        let own = self.more.iter().filter(|(old, e)| *old == kind && warp(*e) == warp(new)).count();
        let fits = |old: Entry| {
            // Lanes that do not know of each other keep entries of their own, up to a number.
            (old ^ new) & SAME_WARP == 0
                || clocks.ordered(warp(new) as usize, warp(old) as usize, epoch(old))
                || own >= MOST_OWN
        };
        match self.more.iter_mut().find(|(old, e)| *old == kind && warp(*e) == warp(new) && fits(*e)) {
            Some((_, old)) if (*old ^ new) & SAME_WARP == 0 => {
                let who = Who { warp: warp(new), lane: lane(new), epoch: epoch(new), pc: pc(new) };
                *old = merged(*old, who);
            }
            // What is ordered after a later epoch of a warp is ordered after its earlier ones.
            Some((_, old)) => *old = new,
            None => self.more.push((kind, new)),
        }
    }

    /// The part that concerns one half of the word.
    fn half(&self, high: bool) -> Cell {
        let part = |e: Entry| {
            if e & HALVES == 0 {
                return e;
            }
            let of = u64::from(if high { other(e) } else { lane(e) });
            e & !(HALVES | 31 << LANE | 31) | of << LANE | of
        };
        Cell { write: part(self.write), read: part(self.read), more: self.more.clone() }
    }
}

/// Adds a lane to the entry of its warp and epoch.
#[inline(always)]
fn merged(old: Entry, who: Who) -> Entry {
    let kept = if lane(old) == who.lane { other(old) } else { who.lane };
    entry(Who { lane: lane(old), ..who }, kept)
}

/// What a word has beyond its two entries.
#[derive(Debug)]
enum Detail {
    Word(Cell),
    Bytes(Box<[Cell; 4]>),
}

/// A table of words.
#[derive(Debug, Default)]
pub struct Cells {
    writes: Vec<Entry>,
    reads: Vec<Entry>,
    /// Index plus one of a detail, which then holds everything about the word, or 0.
    detail: Vec<u32>,
    details: Vec<Detail>,
    free: Vec<u32>,
}

/// Consecutive words.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The first one.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// Log2 of the bytes that a lane accesses: at least 1; at 1 the words are whole, shared by pairs of lanes.
    pub shift: u32,
}

impl Cells {
    /// Forgets everything and makes room for this many words.
    pub fn reset(&mut self, words: usize) {
        for table in [&mut self.writes, &mut self.reads] {
            table.clear();
            table.resize(words, 0);
        }
        self.detail.clear();
        self.detail.resize(words, 0);
        self.free.clear();
        self.free.extend(1..=self.details.len() as u32);
    }

    /// Adds words that nobody accessed and returns the index of the first.
    pub fn grow(&mut self, words: usize) -> usize {
        let first = self.writes.len();
        self.writes.resize(first + words, 0);
        self.reads.resize(first + words, 0);
        self.detail.resize(first + words, 0);
        first
    }

    /// Records an access of consecutive lanes, from `who.lane` on, to consecutive words, if none of them has a detail
    /// and nothing unordered stands in any; otherwise it changes nothing, and the lanes go one by one.
    #[inline(always)]
    pub fn access_words(&mut self, clocks: &Clocks, words: Words, kind: AccessKind, who: Who) -> bool {
        let Words { first, count, shift } = words;
        let end = first + count;
        if !matches!(kind, AccessKind::Read | AccessKind::Write) || count > 128 || end > self.writes.len() {
            return false;
        }
        if self.details.len() != self.free.len() && self.detail[first..end].iter().any(|detail| *detail != 0) {
            return false;
        }
        let bound = bound(clocks, who.warp);
        let base = entry(Who { lane: 0, ..who }, 0);
        let (writes, reads) = (&mut self.writes[first..end], &mut self.reads[first..end]);
        // Lanes in both fields; two lanes share a word of halves.
        macro_rules! go {
            ($new:expr) => {{
                let mut unordered = 0;
                for (k, (write, read)) in writes.iter().zip(reads.iter()).enumerate() {
                    let new: Entry = base + $new(k as u64);
                    // Entries have no top bit, and signed numbers are compared in fewer steps.
                    for old in [*write, *read] {
                        unordered |= if (old as i64) < bound as i64 { 0 } else { (old ^ new) & IDENTITY };
                    }
                }
                if unordered != 0 {
                    return false;
                }
                if kind == AccessKind::Write {
                    for (k, write) in writes.iter_mut().enumerate() {
                        *write = base + $new(k as u64);
                    }
                    reads.fill(0);
                } else {
                    for (k, read) in reads.iter_mut().enumerate() {
                        *read = base + $new(k as u64);
                    }
                }
            }};
        }
        let start = u64::from(who.lane);
        match shift {
            1 => go!(|k: u64| HALVES + (start + 2 * k) * 33 + 1),
            2 => go!(|k: u64| (start + k) * 33),
            _ => go!(|k: u64| (start + (k >> (shift - 2))) * 33),
        }
        true
    }

    /// Records an access to the bytes of `mask` (4 bits) of a word, and returns an earlier access that it races with.
    #[inline(always)]
    pub fn access(&mut self, clocks: &Clocks, word: usize, mask: u8, kind: AccessKind, who: Who) -> Option<Conflict> {
        if mask == 0xf && self.detail[word] == 0 {
            let (write, read) = (self.writes[word], self.reads[word]);
            let (new, bound) = (entry(who, who.lane), bound(clocks, who.warp));
            let fine = |old: Entry| old < bound || (old ^ new) & IDENTITY == 0;
            if kind == AccessKind::Read && fine(write) {
                if read < bound {
                    self.reads[word] = new;
                    return None;
                }
                if (read ^ new) & SAME_WARP == 0 && read & HALVES == 0 {
                    self.reads[word] = merged(read, who);
                    return None;
                }
            }
            if kind == AccessKind::Write && fine(write) && fine(read) {
                self.writes[word] = new;
                self.reads[word] = 0;
                return None;
            }
        }
        let detail = self.detail[word] as usize;
        let halves = (self.writes[word] | self.reads[word]) & HALVES != 0;
        let whole =
            mask == 0xf && if detail == 0 { !halves } else { matches!(self.details[detail - 1], Detail::Word(_)) };
        if whole {
            self.access_whole(clocks, word, kind, who)
        } else {
            self.access_bytes(clocks, word, mask, kind, who)
        }
    }

    /// A detail that is in no use.
    fn take_detail(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.details.push(Detail::Word(Cell::default()));
            self.details.len() as u32
        })
    }

    /// An access to a word whose bytes are alike.
    #[inline(never)]
    fn access_whole(&mut self, clocks: &Clocks, word: usize, kind: AccessKind, who: Who) -> Option<Conflict> {
        let mut at = self.detail[word];
        if at == 0 {
            at = self.take_detail();
            let (write, read) = (self.writes[word], self.reads[word]);
            match &mut self.details[at as usize - 1] {
                Detail::Word(cell) => cell.set(write, read),
                bytes => *bytes = Detail::Word(Cell { write, read, more: Vec::new() }),
            }
        }
        let Detail::Word(cell) = &mut self.details[at as usize - 1] else { unreachable!("the caller looked") };
        let found = cell.access(clocks, kind, who);
        (self.writes[word], self.reads[word]) = (cell.write, cell.read);
        if cell.more.is_empty() {
            self.free.push(at);
            at = 0;
        }
        self.detail[word] = at;
        found
    }

    /// An access to some bytes of a word, or to a word whose bytes differ.
    #[inline(never)]
    fn access_bytes(&mut self, clocks: &Clocks, word: usize, mask: u8, kind: AccessKind, who: Who) -> Option<Conflict> {
        let at = self.detail[word];
        let mut cells = match at {
            0 => {
                let whole = Cell { write: self.writes[word], read: self.reads[word], more: Vec::new() };
                Box::new([0, 1, 2, 3].map(|byte| whole.half(byte >= 2)))
            }
            at => match std::mem::replace(&mut self.details[at as usize - 1], Detail::Word(Cell::default())) {
                Detail::Word(cell) => Box::new([0; 4].map(|_| cell.clone())),
                Detail::Bytes(cells) => cells,
            },
        };
        let mut found = None;
        for (byte, cell) in cells.iter_mut().enumerate() {
            if mask >> byte & 1 == 1 {
                let conflict = cell.access(clocks, kind, who);
                found = found.or(conflict);
            }
        }
        if kind == AccessKind::Write && mask == 0xf {
            // A write of the whole word makes its bytes alike again.
            (self.writes[word], self.reads[word]) = (entry(who, who.lane), 0);
            if at != 0 {
                self.free.push(std::mem::take(&mut self.detail[word]));
            }
        } else {
            let at = if at == 0 { self.take_detail() } else { at };
            self.detail[word] = at;
            self.details[at as usize - 1] = Detail::Bytes(cells);
        }
        found
    }
}

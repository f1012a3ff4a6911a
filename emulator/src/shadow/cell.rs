//! Accesses to words, split into bytes where lanes touch parts of a word (every store of two-byte results does).

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
    /// Warp in the CTA.
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

/// Accesses of some lanes of a warp in one epoch.
#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: AccessKind,
    warp: u32,
    epoch: u32,
    lanes: u32,
    pc: u32,
}

const NOBODY: Entry = Entry { kind: AccessKind::Read, warp: 0, epoch: 0, lanes: 0, pc: 0 };

impl Entry {
    fn ordered(&self, clocks: &Clocks, who: Who) -> bool {
        self.epoch == 0
            || clocks.ordered(who.warp as usize, self.warp as usize, self.epoch)
            || (self.warp == who.warp && self.lanes == 1 << who.lane)
    }

    fn conflict(&self, who: Who) -> Conflict {
        let others = if self.warp == who.warp { self.lanes & !(1 << who.lane) } else { self.lanes };
        Conflict { kind: self.kind, warp: self.warp, lane: others.trailing_zeros() & 31, pc: self.pc }
    }
}

/// Accesses since, and including, the last plain write.
#[derive(Clone, Copy, Debug)]
struct Cell {
    write: Entry,
    read: Entry,
    /// Index plus one of further entries, or 0.
    more: u32,
    /// Index plus one of the four byte cells that replace this one, or 0.
    split: u32,
}

const EMPTY: Cell = Cell { write: NOBODY, read: NOBODY, more: 0, split: 0 };

/// A table of words.
#[derive(Debug, Default)]
pub struct Cells {
    cells: Vec<Cell>,
    bytes: Vec<[Cell; 4]>,
    lists: Lists,
}

/// Lists of entries beyond the first, at most one per warp and kind.
#[derive(Debug, Default)]
struct Lists {
    lists: Vec<Vec<Entry>>,
    free: Vec<u32>,
}

impl Lists {
    fn add(&mut self, at: &mut u32, entry: Entry) {
        if entry.epoch == 0 {
            return;
        }
        if *at == 0 {
            *at = self.free.pop().unwrap_or_else(|| {
                self.lists.push(Vec::new());
                self.lists.len() as u32
            });
        }
        let list = &mut self.lists[*at as usize - 1];
        match list.iter_mut().find(|e| e.warp == entry.warp && e.kind == entry.kind) {
            Some(same) if same.epoch == entry.epoch => {
                same.lanes |= entry.lanes;
                same.pc = entry.pc;
            }
            // What is ordered after a later epoch of a warp is ordered after its earlier ones.
            Some(older) => *older = entry,
            None => list.push(entry),
        }
    }

    fn drop(&mut self, at: &mut u32) {
        if *at != 0 {
            self.lists[*at as usize - 1].clear();
            self.free.push(*at);
            *at = 0;
        }
    }

    fn copy(&mut self, at: u32) -> u32 {
        let mut new = 0;
        if at != 0 {
            for entry in self.lists[at as usize - 1].clone() {
                self.add(&mut new, entry);
            }
        }
        new
    }
}

impl Cell {
    fn access(&mut self, lists: &mut Lists, clocks: &Clocks, kind: AccessKind, who: Who) -> Option<Conflict> {
        let check = |entry: &Entry| {
            (entry.epoch != 0 && kind.conflicts(entry.kind) && !entry.ordered(clocks, who)).then(|| entry.conflict(who))
        };
        let mut conflict = check(&self.write).or_else(|| check(&self.read));
        if conflict.is_none() && self.more != 0 {
            conflict = lists.lists[self.more as usize - 1].iter().find_map(check);
        }
        let entry = Entry { kind, warp: who.warp, epoch: who.epoch, lanes: 1 << who.lane, pc: who.pc };
        match kind {
            AccessKind::Write => {
                self.write = entry;
                self.read = NOBODY;
                lists.drop(&mut self.more);
            }
            AccessKind::Read => {
                let before = self.read;
                if before.warp == who.warp && before.epoch == who.epoch {
                    self.read.lanes |= entry.lanes;
                    self.read.pc = who.pc;
                } else {
                    // A read that is ordered before this one needs no memory of its own.
                    if before.epoch != 0 && !clocks.ordered(who.warp as usize, before.warp as usize, before.epoch) {
                        lists.add(&mut self.more, before);
                    }
                    self.read = entry;
                }
            }
            AccessKind::Atomic | AccessKind::StrongRead => lists.add(&mut self.more, entry),
        }
        conflict
    }
}

impl Cells {
    /// Forgets everything and makes room for this many words.
    pub fn reset(&mut self, words: usize) {
        self.cells.clear();
        self.cells.resize(words, EMPTY);
        self.bytes.clear();
        self.lists.lists.clear();
        self.lists.free.clear();
    }

    /// Adds words that nobody accessed and returns the index of the first.
    pub fn grow(&mut self, words: usize) -> usize {
        let first = self.cells.len();
        self.cells.resize(first + words, EMPTY);
        first
    }

    /// Records an access to the bytes of `mask` (4 bits) of a word, and returns an earlier access that it races with.
    #[inline]
    pub fn access(&mut self, clocks: &Clocks, word: usize, mask: u8, kind: AccessKind, who: Who) -> Option<Conflict> {
        let cell = &mut self.cells[word];
        if cell.split == 0 && mask == 0xf {
            return cell.access(&mut self.lists, clocks, kind, who);
        }
        self.access_bytes(clocks, word, mask, kind, who)
    }

    fn access_bytes(&mut self, clocks: &Clocks, word: usize, mask: u8, kind: AccessKind, who: Who) -> Option<Conflict> {
        let cell = &mut self.cells[word];
        if cell.split == 0 {
            let mut parts = [*cell; 4];
            for part in &mut parts[1..] {
                part.more = self.lists.copy(cell.more);
            }
            self.bytes.push(parts);
            *cell = Cell { split: self.bytes.len() as u32, ..EMPTY };
        }
        let parts = &mut self.bytes[cell.split as usize - 1];
        let mut conflict = None;
        for (byte, part) in parts.iter_mut().enumerate() {
            if mask >> byte & 1 == 1 {
                let found = part.access(&mut self.lists, clocks, kind, who);
                conflict = conflict.or(found);
            }
        }
        conflict
    }
}

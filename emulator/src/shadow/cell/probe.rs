//! What a bulk copy meets: the accesses to words that are not ordered before it or not visible to it. The copy itself
//! leaves no entry: what comes later is compared with the copies that are not over (`bulk::flight`).

use super::{AccessKind, Cells, Conflict, Detail, Entry, HALVES, Who, bound, epoch, lane, other, pc, warp};
use crate::shadow::clock::{Clocks, Proxied, Sight};

/// An earlier access that a bulk copy conflicts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// The access.
    pub conflict: Conflict,
    /// What stands between it and the copy.
    pub sight: Sight,
}

/// The worse of two, and of equals the first: what does not fail must not hide what does.
pub fn worse<T>(a: Option<(T, Flaw)>, b: Option<(T, Flaw)>) -> Option<(T, Flaw)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.1.sight > a.1.sight { b } else { a }),
        (a, b) => a.or(b),
    }
}

fn worst(flaws: impl Iterator<Item = Option<Flaw>>) -> Option<Flaw> {
    flaws.fold(None, |a, b| worse(a.map(|flaw| ((), flaw)), b.map(|flaw| ((), flaw))).map(|(_, flaw)| flaw))
}

impl Flaw {
    /// What stands between an access by one lane and a copy that `who` issues now, if it matters to the copy: `writes`
    /// says what that does there.
    pub fn of(
        clocks: &Clocks,
        (space, writes): (Proxied, bool),
        who: Who,
        other: Conflict,
        epoch: u32,
    ) -> Option<Flaw> {
        let reads = matches!(other.kind, AccessKind::Read | AccessKind::StrongRead);
        if reads && !writes {
            return None;
        }
        let sight = clocks.sight((who.warp as usize, who.lane), space, (other.warp as usize, other.lane), epoch);
        match sight {
            Sight::Visible => None,
            // A read leaves nothing that the other proxy might not see.
            Sight::Unfenced | Sight::FencedLate if reads => None,
            Sight::Unfenced | Sight::FencedLate | Sight::Unordered => Some(Flaw { conflict: other, sight }),
        }
    }
}

fn look(clocks: &Clocks, space: Proxied, writes: bool, who: Who, kind: AccessKind, e: Entry) -> Option<Flaw> {
    if e == 0 {
        return None;
    }
    worst([lane(e), other(e)].into_iter().map(|lane| {
        let conflict = Conflict { kind, warp: warp(e), lane, pc: pc(e) };
        Flaw::of(clocks, (space, writes), who, conflict, epoch(e))
    }))
}

impl Cells {
    /// The earlier access to bytes of `mask` (4 bits) of a word that stands most against a copy that `who` issues now.
    pub fn probe(&self, clocks: &Clocks, (word, mask): (usize, u8), to: (Proxied, bool), who: Who) -> Option<Flaw> {
        let look = |kind, e| look(clocks, to.0, to.1, who, kind, e);
        let (write, read) = (self.writes[word], self.reads[word]);
        match self.detail[word].checked_sub(1).map(|at| &self.details[at as usize]) {
            // Before anything else: nobody wrote, and whoever read is ordered.
            None if write == 0 && read < bound(clocks, who.warp) => None,
            None => worst([look(AccessKind::Write, write), look(AccessKind::Read, read)].into_iter()),
            Some(Detail::Word(cell)) => worst(cell.entries().map(|(kind, e)| look(kind, e))),
            Some(Detail::Bytes(cells)) => {
                let touched = cells.iter().enumerate().filter(|(byte, _)| mask >> byte & 1 == 1);
                worst(touched.flat_map(|(_, cell)| cell.entries()).map(|(kind, e)| look(kind, e)))
            }
        }
    }

    /// Whether a thread has written a part of a word since its accesses were forgotten.
    pub fn is_written(&self, word: usize) -> bool {
        match self.detail[word].checked_sub(1).map(|at| &self.details[at as usize]) {
            None => self.writes[word] != 0,
            Some(Detail::Word(cell)) => cell.write != 0,
            Some(Detail::Bytes(cells)) => cells.iter().any(|cell| cell.write != 0),
        }
    }

    /// Forgets all accesses to words: a write ordered after them takes their place.
    pub fn forget(&mut self, words: std::ops::Range<usize>) {
        self.writes[words.clone()].fill(0);
        self.reads[words.clone()].fill(0);
        for at in &mut self.detail[words] {
            if *at != 0 {
                self.free.push(std::mem::take(at));
            }
        }
    }
}

impl super::Cell {
    /// All entries with their kinds.
    fn entries(&self) -> impl Iterator<Item = (AccessKind, Entry)> + '_ {
        debug_assert!((self.write | self.read) & HALVES == 0, "what has a detail has no halves");
        [(AccessKind::Write, self.write), (AccessKind::Read, self.read)].into_iter().chain(self.more.iter().copied())
    }
}

//! What a bulk copy meets: the accesses to words that are not ordered before it or not visible to it. The copy itself leaves no entry: what comes
//! later is compared with the copies that are not over (`bulk::flight`).

use super::{AccessKind, Cells, Conflict, Detail, Entry, HALVES, Who, bound, epoch, lane, other, pc, warp};
use crate::shadow::clock::{Clocks, Proxied, Sight};

/// An earlier access that a bulk copy conflicts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// The access.
    pub conflict: Conflict,
    /// Whether it is ordered before the copy, and only a proxy fence is missing.
    pub unfenced: bool,
}

impl Flaw {
    /// What stands between an access by one lane and a copy that `who` issues now, if it matters to the copy: `writes` says what that does there.
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
        match clocks.sight((who.warp as usize, who.lane), space, (other.warp as usize, other.lane), epoch) {
            Sight::Visible => None,
            // A read leaves nothing that the other proxy might not see.
            Sight::Unfenced if reads => None,
            Sight::Unfenced => Some(Flaw { conflict: other, unfenced: true }),
            Sight::Unordered => Some(Flaw { conflict: other, unfenced: false }),
        }
    }
}

fn look(clocks: &Clocks, space: Proxied, writes: bool, who: Who, kind: AccessKind, e: Entry) -> Option<Flaw> {
    if e == 0 {
        return None;
    }
    [lane(e), other(e)].into_iter().find_map(|lane| {
        let conflict = Conflict { kind, warp: warp(e), lane, pc: pc(e) };
        Flaw::of(clocks, (space, writes), who, conflict, epoch(e))
    })
}

impl Cells {
    /// The first earlier access to bytes of `mask` (4 bits) of a word that stands against a copy that `who` issues now.
    pub fn probe(&self, clocks: &Clocks, (word, mask): (usize, u8), to: (Proxied, bool), who: Who) -> Option<Flaw> {
        let look = |kind, e| look(clocks, to.0, to.1, who, kind, e);
        let (write, read) = (self.writes[word], self.reads[word]);
        match self.detail[word].checked_sub(1).map(|at| &self.details[at as usize]) {
            // Before anything else: nobody wrote, and whoever read is ordered.
            None if write == 0 && read < bound(clocks, who.warp) => None,
            None => look(AccessKind::Write, write).or_else(|| look(AccessKind::Read, read)),
            Some(Detail::Word(cell)) => cell.entries().find_map(|(kind, e)| look(kind, e)),
            Some(Detail::Bytes(cells)) => {
                let touched = cells.iter().enumerate().filter(|(byte, _)| mask >> byte & 1 == 1);
                touched.flat_map(|(_, cell)| cell.entries()).find_map(|(kind, e)| look(kind, e))
            }
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

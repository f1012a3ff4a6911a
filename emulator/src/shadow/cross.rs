//! Accesses of different CTAs to global memory. A CTA's lines are merged when it ends, so the order of CTAs does not matter to whether a
//! race is found; which two threads are named may depend on it, and is made definite by a rerun on one thread.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::cell::AccessKind;
use super::line::{LINE, LineUse, Site};

const SHARDS: u64 = 64;
const LINES_PER_PAGE: u64 = 32;
const KINDS: [AccessKind; 3] = [AccessKind::Read, AccessKind::Write, AccessKind::Atomic];

/// Bytes that one CTA, and no other, accessed in one way.
#[derive(Clone, Copy, Debug)]
struct Entry {
    cta: u64,
    kind: u8,
    mask: u128,
    site: Site,
    synchronises: bool,
    next: u32,
}

/// Entries of a line, and the bytes that several CTAs read, or accessed atomically, which belong to no entry.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    head: u32,
    many: [u128; 3],
}

#[derive(Debug, Default)]
struct Shard {
    pages: BTreeMap<u64, Box<[Line; LINES_PER_PAGE as usize]>>,
    entries: Vec<Entry>,
}

/// A race between two CTAs.
#[derive(Clone, Copy, Debug)]
pub struct CrossConflict {
    /// First byte in question.
    pub address: u64,
    /// What the CTA that was merged did.
    pub kind: AccessKind,
    /// And where.
    pub site: Site,
    /// What the other one did.
    pub other: AccessKind,
    /// And where.
    pub other_site: Site,
    /// The other CTA's number; `None` when it is one of several that read the byte.
    pub other_cta: Option<u64>,
}

/// The lines that CTAs of a launch touched.
#[derive(Debug)]
pub struct Cross {
    shards: Vec<Mutex<Shard>>,
}

impl Default for Cross {
    fn default() -> Self {
        Cross { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }
}

impl Cross {
    /// Adds what a CTA did to its lines, given in the order of addresses, and returns the races with other CTAs, the first one a line.
    /// `synchronises` says that the CTA used fences or acquire/release operations beyond its own scope; two such CTAs are taken to be ordered.
    pub fn merge<'u>(
        &self,
        cta: u64,
        synchronises: bool,
        uses: impl Iterator<Item = &'u LineUse>,
    ) -> Vec<CrossConflict> {
        let mut conflicts = Vec::new();
        let mut uses = uses.peekable();
        while let Some(first) = uses.peek() {
            // Lines of one page at a time.
            let page = first.line / LINES_PER_PAGE;
            let shard = &self.shards[(page % SHARDS) as usize];
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let Shard { pages, entries } = &mut *shard;
            let lines = pages.entry(page).or_insert_with(|| Box::new([Line::default(); LINES_PER_PAGE as usize]));
            while let Some(used) = uses.next_if(|used| used.line / LINES_PER_PAGE == page) {
                let line = &mut lines[(used.line % LINES_PER_PAGE) as usize];
                if line.head != 0 {
                    let found = used.masks.iter().enumerate().find_map(|(kind, mask)| {
                        if *mask == 0 { None } else { line.check(entries, cta, synchronises, used, kind, *mask) }
                    });
                    conflicts.extend(found);
                }
                for (kind, mask) in used.masks.iter().enumerate() {
                    if *mask != 0 {
                        line.add(entries, cta, synchronises, used.sites[kind], kind, *mask);
                    }
                }
            }
        }
        conflicts
    }
}

impl Line {
    fn check(
        &self,
        entries: &[Entry],
        cta: u64,
        synchronises: bool,
        used: &LineUse,
        kind: usize,
        mask: u128,
    ) -> Option<CrossConflict> {
        let report = |overlap: u128, other: usize, other_site: Site, other_cta: Option<u64>| CrossConflict {
            address: used.line * LINE + u64::from(overlap.trailing_zeros()),
            kind: KINDS[kind],
            site: used.sites[kind],
            other: KINDS[other],
            other_site,
            other_cta,
        };
        let mut at = self.head;
        while at != 0 {
            let entry = entries[at as usize - 1];
            let overlap = entry.mask & mask;
            let races = entry.cta != cta && KINDS[kind].conflicts(KINDS[usize::from(entry.kind)]);
            if overlap != 0 && races && !(synchronises && entry.synchronises) {
                return Some(report(overlap, usize::from(entry.kind), entry.site, Some(entry.cta)));
            }
            at = entry.next;
        }
        if synchronises {
            return None;
        }
        (0..3).find_map(|other| {
            let overlap = self.many[other] & mask;
            (overlap != 0 && KINDS[kind].conflicts(KINDS[other])).then(|| report(overlap, other, Site::default(), None))
        })
    }

    fn add(&mut self, entries: &mut Vec<Entry>, cta: u64, synchronises: bool, site: Site, kind: usize, mask: u128) {
        let mut mask = mask & !self.many[kind];
        let mut at = self.head;
        while at != 0 && mask != 0 {
            let entry = &mut entries[at as usize - 1];
            at = entry.next;
            if usize::from(entry.kind) != kind {
                continue;
            }
            if entry.cta == cta {
                entry.mask |= mask;
                return;
            }
            let shared = entry.mask & mask;
            mask &= !shared;
            // Two writers are a race already; the first one stays. Readers merge.
            if KINDS[kind] != AccessKind::Write {
                entry.mask &= !shared;
                self.many[kind] |= shared;
            }
        }
        if mask != 0 {
            entries.push(Entry { cta, kind: kind as u8, mask, site, synchronises, next: self.head });
            self.head = entries.len() as u32;
        }
    }
}

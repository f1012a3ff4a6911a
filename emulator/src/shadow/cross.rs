//! Accesses of different CTAs to global memory. A CTA's lines are merged when it ends, so the order of CTAs does not
//! matter to whether a race is found; which two threads are named may depend on it, and is made definite by a rerun on
//! one thread.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::cell::AccessKind;
use super::line::{LINE, LINES_PER_PAGE, LineUse, Site};

const SHARDS: u64 = 64;
const KINDS: [AccessKind; 3] = [AccessKind::Read, AccessKind::Write, AccessKind::Atomic];
/// The place of writes in it.
const WRITE: usize = 1;

/// The CTA of bytes that several accessed in one way, which belong to none of them.
const SEVERAL: u64 = u64::MAX;

/// Bytes of a line that one CTA, and no other, accessed in one way, or that several did.
#[derive(Clone, Copy, Debug)]
struct Entry {
    mask: u128,
    cta: u64,
    site: Site,
    link: Link,
}

/// From the top: index plus one of the next entry of the line, or 0; the kind of access. Entries are many, so that they
/// are kept to 32 bytes.
#[derive(Clone, Copy, Debug)]
struct Link(u32);

impl Link {
    fn new(next: Head, kind: usize) -> Link {
        Link(next << 2 | kind as u32)
    }
    fn next(self) -> Head {
        self.0 >> 2
    }
    fn kind(self) -> usize {
        (self.0 & 3) as usize
    }
}

/// Index plus one of the first entry of a line, or 0.
type Head = u32;

#[derive(Debug, Default)]
struct Shard {
    pages: BTreeMap<u64, Box<[Head; LINES_PER_PAGE as usize]>>,
    entries: Vec<Entry>,
    /// What a CTA has left in a line of which it has written few bytes.
    values: BTreeMap<(u64, u64), u64>,
}

/// Most bytes of a line whose values are kept.
const FEW: u32 = 8;

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
    /// Whether both have written the same value.
    pub same_value: bool,
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
    /// Adds what a CTA did to its lines, given in the order of addresses, and returns the races with other CTAs, the
    /// first one a line. `byte` has what is in memory: what the CTA has left there, if no other runs at the same time.
    pub fn merge<'u>(
        &self,
        cta: u64,
        uses: impl Iterator<Item = &'u LineUse>,
        byte: impl Fn(u64) -> u8,
    ) -> Vec<CrossConflict> {
        let mut conflicts = Vec::new();
        let mut uses = uses.peekable();
        while let Some(first) = uses.peek() {
            // Lines of one page at a time.
            let page = first.line / LINES_PER_PAGE;
            let shard = &self.shards[(page % SHARDS) as usize];
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let Shard { pages, entries, values } = &mut *shard;
            let lines = pages.entry(page).or_insert_with(|| Box::new([0; LINES_PER_PAGE as usize]));
            while let Some(used) = uses.next_if(|used| used.line / LINES_PER_PAGE == page) {
                let head = &mut lines[(used.line % LINES_PER_PAGE) as usize];
                let written = used.masks[WRITE];
                let few = written != 0 && written.count_ones() <= FEW;
                let value = few.then(|| value(used.line, written, &byte));
                if *head != 0 {
                    // Whether a write of the CTA is of the value that the other one has left.
                    let same = |entry: &Entry| {
                        let left = values.get(&(used.line, entry.cta));
                        entry.mask == written && value.zip(left).is_some_and(|(own, left)| own == *left)
                    };
                    conflicts.extend(check(entries, *head, cta, used, same));
                }
                if let Some(value) = value {
                    values.insert((used.line, cta), value);
                }
                for (kind, mask) in used.masks.iter().enumerate() {
                    if *mask != 0 {
                        add(entries, head, cta, used.sites[kind], kind, *mask);
                    }
                }
            }
        }
        conflicts
    }
}

/// The bytes of a line that are in a mask, one after the other.
fn value(line: u64, mask: u128, byte: impl Fn(u64) -> u8) -> u64 {
    let (mut rest, mut value) = (mask, 0);
    while rest != 0 {
        value = value << 8 | u64::from(byte(line * LINE + u64::from(rest.trailing_zeros())));
        rest &= rest - 1;
    }
    value
}

/// The first race of a CTA's accesses with the entries of their line; one of equal values only if there is no other.
fn check(
    entries: &[Entry],
    head: Head,
    cta: u64,
    used: &LineUse,
    same: impl Fn(&Entry) -> bool,
) -> Option<CrossConflict> {
    let mut harmless = None;
    for (kind, mask) in used.masks.iter().enumerate() {
        let mut at = head;
        while at != 0 && *mask != 0 {
            let entry = entries[at as usize - 1];
            let overlap = entry.mask & mask;
            let races = entry.cta != cta && KINDS[kind].conflicts(KINDS[entry.link.kind()]);
            if overlap != 0 && races {
                let same_value = (kind, entry.link.kind()) == (WRITE, WRITE) && same(&entry);
                let conflict = CrossConflict {
                    address: used.line * LINE + u64::from(overlap.trailing_zeros()),
                    kind: KINDS[kind],
                    site: used.sites[kind],
                    other: KINDS[entry.link.kind()],
                    other_site: entry.site,
                    other_cta: (entry.cta != SEVERAL).then_some(entry.cta),
                    same_value,
                };
                if !same_value {
                    return Some(conflict);
                }
                harmless = harmless.or(Some(conflict));
            }
            at = entry.link.next();
        }
    }
    harmless
}

fn add(entries: &mut Vec<Entry>, head: &mut Head, cta: u64, site: Site, kind: usize, mask: u128) {
    let mut mask = mask;
    let mut several = 0;
    let mut at = *head;
    while at != 0 {
        let entry = &mut entries[at as usize - 1];
        at = entry.link.next();
        if entry.link.kind() != kind {
            continue;
        }
        if entry.cta == cta {
            entry.mask |= mask;
            return;
        }
        let shared = entry.mask & mask;
        mask &= !shared;
        // Two writers are a race already; the first one stays. Readers merge.
        if entry.cta != SEVERAL && KINDS[kind] != AccessKind::Write {
            entry.mask &= !shared;
            several |= shared;
        }
    }
    let mut push = |cta, mask: u128| {
        if mask != 0 {
            entries.push(Entry { mask, cta, site, link: Link::new(*head, kind) });
            *head = entries.len() as u32;
        }
    };
    push(cta, mask);
    push(SEVERAL, several);
}

//! Order between CTAs, in kernels that have fences beyond the CTA: who released what in which word, and who accessed
//! which bytes.
//!
//! Two accesses of different CTAs are ordered by causality (PTX manual 8.9): a release of the first one's CTA covers
//! it, by program order or by barriers inside the CTA; an acquire reads what the release wrote, directly or through
//! atomic operations in between; and barriers or program order lead from there to the second one. `view` has what warps
//! release and acquire, `known` the clocks. All CTAs of such a kernel run on one host thread, so that each access is
//! compared with those that came before it, as in FastTrack (Flanagan and Freund, 2009): of writes the last one to each
//! byte, of others those that no later one stands for.
//!
//! A strong write of one element is ordered, too, before what comes after a strong read of its value, directly or
//! through atomic operations in between: observation order, then base causality order (8.9.2, 8.9.5). So the block that
//! is the last one to count may write the counter plainly. This orders the write alone, not what its thread did before,
//! and holds of values that the program gets: on the old value of a `red` nothing depends.
//!
//! Approximations, all towards silence: of reads and of atomic operations of other threads at most [`MOST`] are kept a
//! line; a bulk copy counts as an access of the thread that issues it.

mod known;
mod view;

use std::collections::BTreeMap;

pub use view::View;

use super::cell::{AccessKind, Who};
use super::clock::Clocks;
use super::line::{LINE, LINES_PER_PAGE, Run};
use crate::decode::op::Fence;
use crate::lanes::{Mask, lanes};
use known::Known;
use view::Event;

/// Entries of a line that are kept of reads, and of atomic operations.
const MOST: u32 = 16;

/// Index plus one of an entry, or 0.
type Link = u32;
/// What one operation accesses: address and bytes.
pub type Element = (u64, u64);

/// Consecutive lanes of a warp that accessed consecutive elements of a line in one epoch.
#[derive(Clone, Copy, Debug)]
struct Entry {
    mask: u128,
    cta: u64,
    epoch: u32,
    pc: u32,
    /// Releases of the launch up to then.
    time: u32,
    /// Strong accesses of the launch up to then.
    strong: u32,
    next: Link,
    kind: AccessKind,
    warp: u16,
    shift: u8,
    /// Lane of the line's first byte, which may be before lane 0.
    lane: i16,
}

impl Entry {
    fn lane_of(&self, byte: u32) -> usize {
        (i32::from(self.lane) + (byte >> self.shift) as i32).clamp(0, 31) as usize
    }
    fn event(&self, byte: u32) -> Event {
        Event { cta: self.cta, warp: usize::from(self.warp), lane: self.lane_of(byte), epoch: self.epoch }
    }
    /// The element that was accessed at a byte of a line: its address and size.
    fn element(&self, line: u64, byte: u32) -> Element {
        let size = 1 << self.shift;
        (line * LINE + u64::from(byte) / size * size, size)
    }
    fn same_lanes(&self, other: &Entry) -> bool {
        self.warp == other.warp && self.lane == other.lane && self.shift == other.shift
    }
}

/// The last time that a CTA released something.
#[derive(Debug)]
struct Release {
    /// The fence.
    fence: Point,
    /// The instruction that wrote.
    write: u32,
    /// What it released.
    known: Known,
    time: u32,
}

/// A thread of a CTA at an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// Warp.
    pub warp: u32,
    /// Lane.
    pub lane: u32,
    /// Instruction.
    pub pc: u32,
}

/// What would have ordered an earlier access before a later one of another CTA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// The earlier CTA has released nothing since.
    Release,
    /// A fence between the access and the strong write: the last one is before the access.
    LaterFence {
        /// The fence.
        fence: u32,
        /// The write.
        write: u32,
    },
    /// A barrier of the earlier CTA, between the access and this fence of another thread.
    BarrierBefore(Point),
    /// The later CTA has seen nothing that was written after this instruction.
    Sight(u32),
    /// A fence of the later CTA, after this read.
    Fence(Point),
    /// A barrier of the later CTA, after this read, by which another thread has acquired it.
    BarrierBehind(Point),
}

/// A race between two CTAs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GridConflict {
    /// First byte in question.
    pub address: u64,
    /// The lane of the present access.
    pub lane: u32,
    /// What the other CTA did.
    pub kind: AccessKind,
    /// Its number.
    pub cta: u64,
    /// The thread.
    pub point: Point,
    /// Why nothing orders them.
    pub missing: Missing,
}

/// The state of a launch.
#[derive(Debug, Default)]
pub struct Grid {
    /// What the value of a word releases, by address divided by 4.
    words: BTreeMap<u64, Known>,
    /// The last release of each CTA.
    releases: BTreeMap<u64, Release>,
    /// What sequential fences have released.
    sequential: Known,
    time: u32,
    /// Strong accesses so far.
    strong: u32,
    /// Of elements that were written strongly and not by atomic operations: that number, at the last such write. A read
    /// after it tells of no earlier write.
    written: BTreeMap<Element, u32>,
    /// The place of each page's lines.
    pages: BTreeMap<u64, u32>,
    lines: Vec<[Link; LINES_PER_PAGE as usize]>,
    /// The page found last, and its place.
    last: Option<(u64, u32)>,
    entries: Vec<Entry>,
    /// The first entry that is not used, by `next` the others.
    free: Link,
    /// Counts entries that had no room.
    turn: u32,
}

/// Words of an access.
fn words(address: u64, bytes: u64) -> std::ops::Range<u64> {
    // The address may be any: it is looked at before its bounds are.
    address / 4..address.saturating_add(bytes).div_ceil(4)
}

impl Grid {
    /// A fence beyond the CTA of some lanes of a warp, `together` if these are all that live. Called before the warp's
    /// epoch ends.
    ///
    /// Sequential fences have one order, in which each synchronises with those that follow (PTX manual 8.9.3); here it
    /// is that in which they come.
    pub fn fence(
        &mut self,
        view: &mut View,
        clocks: &Clocks,
        fence: Fence,
        (warp, run, together): (usize, Mask, bool),
        pc: u32,
    ) {
        if fence.sequential {
            lanes(run).for_each(|lane| view.see(warp, lane, &self.sequential, pc));
        }
        if fence.acquires {
            view.acquire(clocks, (warp, run, together));
        }
        if fence.releases {
            let known = view.release(clocks, (warp, run, together), pc);
            if fence.sequential {
                self.sequential.join(known);
            }
        }
    }

    /// A strong access of a lane begins; if it reads, what it observes by that. To be called before the others.
    pub fn strong(&mut self, view: &mut View, element: Element, point: Point, epoch: u32, reads: bool) {
        self.strong = self.strong.saturating_add(1);
        if reads {
            let from = self.written.get(&element).copied().unwrap_or(0);
            view.observe(element, point, epoch, from..=self.strong);
        }
    }

    /// A strong read of a lane.
    pub fn read(&self, view: &mut View, (address, bytes): (u64, u64), point: Point) {
        for word in words(address, bytes) {
            if let Some(known) = self.words.get(&word) {
                view.see(point.warp as usize, point.lane as usize, known, point.pc);
            }
        }
    }

    /// A strong write of a lane of a CTA: older values release nothing any more, unless it is an atomic operation
    /// (`update`).
    pub fn write(&mut self, view: &View, cta: u64, (address, bytes): (u64, u64), point: Point, update: bool) {
        if !update {
            self.written.insert((address, bytes), self.strong);
        }
        let released = view.released(point.warp as usize, point.lane as usize);
        if let Some((known, pc)) = released {
            self.time = self.time.saturating_add(1);
            let (fence, known) = (Point { pc, ..point }, known.clone());
            self.releases.insert(cta, Release { fence, write: point.pc, known, time: self.time });
        }
        for word in words(address, bytes) {
            match (released, update) {
                (Some((known, _)), true) => self.words.entry(word).or_default().join(known),
                (Some((known, _)), false) => _ = self.words.insert(word, known.clone()),
                (None, true) => {}
                (None, false) => _ = self.words.remove(&word),
            }
        }
    }

    /// Records a run of lanes of a CTA; the first race with another CTA. `who.lane` is ignored.
    pub fn access(
        &mut self,
        view: &View,
        clocks: &Clocks,
        cta: u64,
        run: Run,
        kind: AccessKind,
        who: Who,
    ) -> Option<GridConflict> {
        let end = run.address + (u64::from(run.lanes) << run.shift);
        let mut found = None;
        let mut at = run.address;
        while at < end {
            let number = at / LINE;
            let stop = end.min((number + 1) * LINE);
            let mask = (u128::MAX >> (128 - (stop - at))) << (at % LINE);
            // Runs are aligned to their elements, so that a lane never straddles two lines.
            let lane = run.lane as i32 - ((run.address as i64 - (number * LINE) as i64) >> run.shift) as i32;
            let new = self.entry(cta, mask, kind, who, run.shift, lane);
            let conflict = self.add(view, clocks, number, new);
            found = found.or(conflict);
            at = stop;
        }
        found
    }

    /// Records that a copy which `who` issues reads or writes `bytes` bytes; the first race with another CTA.
    pub fn copy(
        &mut self,
        view: &View,
        clocks: &Clocks,
        cta: u64,
        (address, bytes): (u64, u64),
        kind: AccessKind,
        who: Who,
    ) -> Option<GridConflict> {
        let end = address + bytes;
        let mut found = None;
        let mut at = address;
        while at < end {
            let number = at / LINE;
            let stop = end.min((number + 1) * LINE);
            let mask = (u128::MAX >> (128 - (stop - at))) << (at % LINE);
            let new = self.entry(cta, mask, kind, who, LINE.trailing_zeros(), who.lane as i32);
            let conflict = self.add(view, clocks, number, new);
            found = found.or(conflict);
            at = stop;
        }
        found
    }

    fn entry(&self, cta: u64, mask: u128, kind: AccessKind, who: Who, shift: u32, lane: i32) -> Entry {
        let Who { epoch, pc, warp, .. } = who;
        let (warp, shift, lane) = (warp as u16, shift as u8, lane as i16);
        let (time, strong) = (self.time, self.strong);
        Entry { mask, cta, epoch, pc, time, strong, next: 0, kind, warp, shift, lane }
    }

    /// Where the first entry of a line is kept.
    fn head(&mut self, line: u64) -> (usize, usize) {
        let number = line / LINES_PER_PAGE;
        let page = match self.last {
            Some((last, page)) if last == number => page,
            _ => {
                let page = *self.pages.entry(number).or_insert_with(|| {
                    self.lines.push([0; LINES_PER_PAGE as usize]);
                    self.lines.len() as u32 - 1
                });
                self.last = Some((number, page));
                page
            }
        };
        (page as usize, (line % LINES_PER_PAGE) as usize)
    }

    fn add(&mut self, view: &View, clocks: &Clocks, line: u64, new: Entry) -> Option<GridConflict> {
        let (page, place) = self.head(line);
        let mut conflict = None;
        let mut merged = false;
        let mut alike = 0;
        // The entry before the present one.
        let mut before: Link = 0;
        let mut at = self.lines[page][place];
        while at != 0 {
            let mut old = self.entries[at as usize - 1];
            let overlap = old.mask & new.mask;
            let (warp, of) = (usize::from(new.warp), usize::from(old.warp));
            // Whether the new one stands for the old one: whatever is ordered after it is ordered after that.
            let replaces = new.kind == AccessKind::Write || new.kind == old.kind;
            let mut gone = 0;
            if old.cta == new.cta {
                if old.same_lanes(&new) && old.kind == new.kind && old.epoch == new.epoch {
                    old.mask |= new.mask;
                    (old.pc, old.time, old.strong) = (new.pc, new.time, new.strong);
                    merged = true;
                } else if replaces && (old.same_lanes(&new) || clocks.ordered(warp, of, old.epoch)) {
                    gone = overlap;
                }
            } else if overlap != 0 {
                let unordered = unordered(view, clocks, line, (&old, &new), overlap);
                // Two writes may be of one value, and must not hide a read.
                let tells = |known: GridConflict| known.kind == AccessKind::Write && old.kind != AccessKind::Write;
                if let (Some(byte), true, true) = (unordered, old.kind.conflicts(new.kind), conflict.is_none_or(tells))
                {
                    conflict = Some(self.conflict(view, line, &old, &new, byte));
                }
                if new.kind == AccessKind::Write || replaces && unordered.is_none() {
                    gone = overlap;
                }
            }
            old.mask &= !gone;
            self.entries[at as usize - 1] = old;
            if old.mask == 0 {
                match before {
                    0 => self.lines[page][place] = old.next,
                    before => self.entries[before as usize - 1].next = old.next,
                }
                self.entries[at as usize - 1].next = std::mem::replace(&mut self.free, at);
            } else {
                alike += u32::from(old.kind == new.kind);
                before = at;
            }
            at = old.next;
        }
        if merged {
            return conflict;
        }
        if new.kind != AccessKind::Write && alike >= MOST {
            self.displace(page, place, new);
            return conflict;
        }
        let new = Entry { next: self.lines[page][place], ..new };
        let index = match self.free {
            0 => {
                self.entries.push(new);
                self.entries.len() as u32
            }
            index => {
                self.free = std::mem::replace(&mut self.entries[index as usize - 1], new).next;
                index
            }
        };
        self.lines[page][place] = index;
        conflict
    }

    /// Puts an access in the place of one of its kind, of each in turn.
    fn displace(&mut self, page: usize, place: usize, new: Entry) {
        self.turn = (self.turn + 1) % MOST;
        let mut left = self.turn;
        let mut at = self.lines[page][place];
        while at != 0 {
            let old = &mut self.entries[at as usize - 1];
            if old.kind == new.kind {
                if left == 0 {
                    *old = Entry { next: old.next, ..new };
                    return;
                }
                left -= 1;
            }
            at = old.next;
        }
    }

    #[cold]
    fn conflict(&self, view: &View, line: u64, old: &Entry, new: &Entry, byte: u32) -> GridConflict {
        let event = old.event(byte);
        GridConflict {
            address: line * LINE + u64::from(byte),
            lane: new.lane_of(byte) as u32,
            kind: old.kind,
            cta: old.cta,
            point: Point { warp: u32::from(old.warp), lane: event.lane as u32, pc: old.pc },
            missing: self.missing(view, old, event),
        }
    }

    fn missing(&self, view: &View, old: &Entry, event: Event) -> Missing {
        let point = |warp: usize, lanes: u32, pc: u32| Point { warp: warp as u32, lane: lanes.trailing_zeros(), pc };
        if let Some((warp, import)) = view.importer(event) {
            return Missing::BarrierBehind(point(warp, import.lanes, import.pc));
        }
        if let Some((warp, seen)) = view.sighting(event) {
            return Missing::Fence(point(warp, seen.lanes, seen.pc));
        }
        let Some(release) = self.releases.get(&event.cta).filter(|release| release.time > old.time) else {
            return Missing::Release;
        };
        let part = release.known.get(event.cta);
        if part.is_some_and(|part| part.holds(event.warp, event.lane, event.epoch)) {
            return Missing::Sight(release.write);
        }
        if (release.fence.warp as usize, release.fence.lane as usize) == (event.warp, event.lane) {
            Missing::LaterFence { fence: release.fence.pc, write: release.write }
        } else {
            Missing::BarrierBefore(release.fence)
        }
    }
}

/// The first byte of `overlap` at which the new access is not ordered after the old one, of another CTA.
fn unordered(view: &View, clocks: &Clocks, line: u64, (old, new): (&Entry, &Entry), overlap: u128) -> Option<u32> {
    let first = overlap.trailing_zeros();
    let may_observe = old.kind == AccessKind::Atomic && view.observes();
    if view.is_empty() && !may_observe {
        return Some(first);
    }
    if view.knows_all(clocks, usize::from(new.warp), old.event(first)) {
        return None;
    }
    let mut rest = overlap;
    let mut known = None;
    while rest != 0 {
        let byte = rest.trailing_zeros();
        rest &= rest - 1;
        let pair = (old.lane_of(byte), new.lane_of(byte));
        if known != Some(pair) {
            let own = (usize::from(new.warp), pair.1);
            let observed = || may_observe && view.has_observed(clocks, own, old.element(line, byte), old.strong);
            if !view.knows(clocks, own, old.event(byte)) && !observed() {
                return Some(byte);
            }
            known = Some(pair);
        }
    }
    None
}

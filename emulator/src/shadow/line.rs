//! Accesses of one CTA to global memory: a few summaries per 128-byte line, each of them a run of consecutive lanes at
//! consecutive addresses, and cells for the words of a line whose accesses do not fit that pattern.

mod probe;

use std::ops::Range;

use super::cell::{AccessKind, Cells, Conflict, Who};
use super::clock::Clocks;
use crate::lanes::{LANES, Mask, lanes};

/// Bytes of a line.
pub const LINE: u64 = 128;
/// Lines of a page: they are found together.
pub const LINES_PER_PAGE: u64 = 32;
/// Summaries kept before a line gets cells.
const SUMMARIES: usize = 4;

/// Consecutive lanes that access consecutive elements.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Address of the first lane's element.
    pub address: u64,
    /// The first lane.
    pub lane: u32,
    /// Number of lanes.
    pub lanes: u32,
    /// Log2 of the bytes a lane accesses.
    pub shift: u32,
}

impl Run {
    /// Its lanes.
    pub const fn mask(&self) -> Mask {
        Mask::MAX >> (LANES as u32 - self.lanes) << self.lane
    }

    /// Its words as a range of indices, if it consists of whole words.
    #[inline(always)]
    pub const fn words(&self) -> Option<Range<usize>> {
        let end = self.address + ((self.lanes as u64) << self.shift);
        if (self.address | end) & 3 == 0 { Some(self.address as usize / 4..end as usize / 4) } else { None }
    }
}

/// 0 lanes: nothing.
#[derive(Clone, Copy, Debug)]
struct Summary {
    /// Bytes of the line.
    mask: u128,
    epoch: u32,
    pc: u32,
    kind: AccessKind,
    warp: u16,
    shift: u8,
    /// Lane of the line's first byte, which may be before lane 0.
    lane: i16,
}

const NOTHING: Summary = Summary { mask: 0, epoch: 0, pc: 0, kind: AccessKind::Read, warp: 0, shift: 0, lane: 0 };

impl Summary {
    fn lane_of(&self, byte: u32) -> u32 {
        (i32::from(self.lane) + (byte >> self.shift) as i32).clamp(0, 31) as u32
    }
    fn same_lanes(&self, other: &Summary) -> bool {
        self.lane == other.lane && self.shift == other.shift
    }
    fn same_warp(&self, other: &Summary) -> bool {
        self.warp == other.warp && self.epoch == other.epoch
    }
}

/// The last thread that accessed a line in some way. From the top: instruction, warp, lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site(u32);

impl Site {
    const NONE: Site = Site(0);

    fn new(warp: u16, lane: u32, pc: u32) -> Site {
        Site(pc << 14 | u32::from(warp) << 5 | lane)
    }
    /// Warp.
    pub fn warp(self) -> u32 {
        self.0 >> 5 & 511
    }
    /// Lane.
    pub fn lane(self) -> u32 {
        self.0 & 31
    }
    /// Instruction.
    pub fn pc(self) -> u32 {
        self.0 >> 14
    }
}

/// What a CTA did to a line, for comparison with other CTAs.
#[derive(Clone, Copy, Debug)]
pub struct LineUse {
    /// Address divided by 128.
    pub line: u64,
    /// Bytes read, written, accessed atomically.
    pub masks: [u128; 3],
    /// Who did so, one of them each.
    pub sites: [Site; 3],
    /// Bytes loaded through the read-only cache.
    pub constant: u128,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    used: LineUse,
    /// Those with a mask, in front.
    summaries: [Summary; SUMMARIES],
    /// Index plus one of the first of 32 cells.
    cells: u32,
}

impl Line {
    /// Nobody has accessed it.
    const NEW: Line = Line {
        used: LineUse { line: 0, masks: [0; 3], sites: [Site::NONE; 3], constant: 0 },
        summaries: [NOTHING; SUMMARIES],
        cells: 0,
    };
}

/// Lines that follow each other.
#[derive(Clone, Copy, Debug)]
struct Page {
    number: u64,
    /// The lines that there are, one bit each.
    present: u32,
    /// Where they are in the list of lines.
    lines: [u32; LINES_PER_PAGE as usize],
}

/// A race inside the CTA.
#[derive(Clone, Copy, Debug)]
pub struct LineConflict {
    /// The present access's lane.
    pub lane: u32,
    /// The address of the first byte in question.
    pub address: u64,
    /// The earlier access.
    pub other: Conflict,
}

/// What an access has to report.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The first race.
    pub race: Option<LineConflict>,
    /// The first address where a load through the read-only cache meets a write of this CTA.
    pub stale: Option<u64>,
}

/// The lines that a CTA touched.
#[derive(Debug, Default)]
pub struct Lines {
    /// Open addressing by the number of a page; 0 is empty, otherwise index plus one.
    slots: Vec<u32>,
    pages: Vec<Page>,
    lines: Vec<Line>,
    cells: Cells,
    /// Room for the order of pages: number and index.
    order: Vec<(u64, u32)>,
}

/// How a kind counts towards other CTAs.
fn column(kind: AccessKind) -> usize {
    match kind {
        AccessKind::Read => 0,
        AccessKind::Write => 1,
        AccessKind::Atomic | AccessKind::StrongRead => 2,
    }
}

impl Lines {
    /// Forgets everything.
    pub fn reset(&mut self) {
        // A table that grew in one CTA is cleared at the price of its size in the next; CTAs of a launch are alike.
        if !self.pages.is_empty() {
            self.slots.fill(0);
            self.pages.clear();
            self.lines.clear();
            self.cells.reset(0);
        }
    }

    /// What the CTA did, line by line in the order of addresses.
    pub fn uses(&mut self) -> impl Iterator<Item = &LineUse> {
        self.order.clear();
        self.order.extend((0..).zip(&self.pages).map(|(index, page)| (page.number, index)));
        self.order.sort_unstable();
        self.order.iter().flat_map(|(_, index)| {
            let page = &self.pages[*index as usize];
            lanes(page.present).map(|line| &self.lines[page.lines[line] as usize].used)
        })
    }

    /// The index of a line, which may be new.
    #[inline]
    fn find(&mut self, line: u64) -> usize {
        if (self.pages.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let number = line / LINES_PER_PAGE;
        let mask = self.slots.len() - 1;
        let mut at = hash(number) & mask;
        let page = loop {
            match self.slots[at] {
                0 => {
                    self.pages.push(Page { number, present: 0, lines: [0; LINES_PER_PAGE as usize] });
                    self.slots[at] = self.pages.len() as u32;
                    break self.pages.len() - 1;
                }
                index if self.pages[index as usize - 1].number == number => break index as usize - 1,
                _ => at = (at + 1) & mask,
            }
        };
        let page = &mut self.pages[page];
        let place = (line % LINES_PER_PAGE) as usize;
        if page.present >> place & 1 == 0 {
            page.present |= 1 << place;
            page.lines[place] = self.lines.len() as u32;
            self.lines.extend_from_slice(&[Line::NEW]);
            self.lines[page.lines[place] as usize].used.line = line;
        }
        page.lines[place] as usize
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        self.slots.clear();
        self.slots.resize(size, 0);
        for (index, page) in self.pages.iter().enumerate() {
            let mut at = hash(page.number) & (size - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = index as u32 + 1;
        }
    }

    /// Records a run of lanes. `who.lane` is ignored. `constant` marks loads through the read-only cache. What is found
    /// is boxed: it is rare, and nothing is returned in a register.
    pub fn access(
        &mut self,
        clocks: &Clocks,
        run: Run,
        kind: AccessKind,
        constant: bool,
        who: Who,
    ) -> Option<Box<Found>> {
        let end = run.address + (u64::from(run.lanes) << run.shift);
        let mut found: Option<Box<Found>> = None;
        let mut at = run.address;
        while at < end {
            let number = at / LINE;
            let stop = end.min((number + 1) * LINE);
            let first = (at % LINE) as u32;
            let length = (stop - at) as u32;
            let mask = (u128::MAX >> (128 - length)) << first;
            // Runs are aligned to their elements, so that a lane never straddles two lines.
            let lane = run.lane as i32 - ((run.address as i64 - (number * LINE) as i64) >> run.shift) as i32;
            let new = Summary {
                mask,
                epoch: who.epoch,
                pc: who.pc,
                kind,
                warp: who.warp as u16,
                shift: run.shift as u8,
                lane: lane as i16,
            };
            let index = self.find(number);
            let line = &mut self.lines[index];
            let used = &mut line.used;
            used.masks[column(kind)] |= mask;
            used.sites[column(kind)] = Site::new(new.warp, new.lane_of(first), who.pc);
            if constant {
                used.constant |= mask;
            }
            let met = used.constant & used.masks[1] & mask;
            if met != 0 {
                let stale = &mut found.get_or_insert_default().stale;
                *stale = stale.or(Some(number * LINE + u64::from(met.trailing_zeros())));
            }
            if line.summaries[0].mask == 0 && line.cells == 0 {
                line.summaries[0] = new;
            } else if let Some(conflict) = self.add(clocks, index, new) {
                let race = &mut found.get_or_insert_default().race;
                *race = race.or(Some(*conflict));
            }
            at = stop;
        }
        found
    }

    fn add(&mut self, clocks: &Clocks, index: usize, new: Summary) -> Option<Box<LineConflict>> {
        let line = &mut self.lines[index];
        if line.cells != 0 {
            return self.add_cells(clocks, index, new);
        }
        let [old, after, ..] = &mut line.summaries;
        let again = old.warp == new.warp && old.kind == new.kind && old.same_lanes(&new) && old.mask & !new.mask == 0;
        if again && after.mask == 0 {
            // The usual case: the same lanes do the same once more, and nobody else has been there.
            *old = new;
            return None;
        }
        let mut conflict: Option<Box<LineConflict>> = None;
        let (mut detail, mut merged) = (false, false);
        let mut at = 0;
        while at < SUMMARIES && line.summaries[at].mask != 0 {
            let old = &mut line.summaries[at];
            let overlap = old.mask & new.mask;
            let ordered = clocks.ordered(usize::from(new.warp), usize::from(old.warp), old.epoch);
            let own = old.same_warp(&new);
            if overlap != 0 && old.kind.conflicts(new.kind) && !ordered {
                // Of one warp the lanes decide.
                if old.warp == new.warp {
                    detail |= !old.same_lanes(&new);
                } else if conflict.is_none() {
                    let byte = overlap.trailing_zeros();
                    let (warp, lane) = (u32::from(old.warp), old.lane_of(byte));
                    let other = Conflict { kind: old.kind, warp, lane, pc: old.pc };
                    let address = line.used.line * LINE + u64::from(byte);
                    conflict = Some(Box::new(LineConflict { lane: new.lane_of(byte), address, other }));
                }
            }
            if own && old.kind == new.kind && old.same_lanes(&new) && !merged {
                old.mask |= new.mask;
                old.pc = new.pc;
                merged = true;
            } else if ordered && old.mask & !new.mask == 0 && (new.kind == AccessKind::Write || old.kind == new.kind) {
                // Whatever is ordered after the new access is ordered after this one.
                line.summaries.copy_within(at + 1.., at);
                line.summaries[SUMMARIES - 1] = NOTHING;
                continue;
            }
            at += 1;
        }
        if !detail {
            if merged {
                return conflict;
            }
            if at < SUMMARIES {
                line.summaries[at] = new;
                return conflict;
            }
        }
        self.detail(clocks, index);
        let found = self.add_cells(clocks, index, new);
        conflict.or(found)
    }

    /// Gives the line cells, filled from its summaries. Their own conflicts were reported when they were added.
    fn detail(&mut self, clocks: &Clocks, index: usize) {
        let first = self.cells.grow((LINE / 4) as usize);
        self.lines[index].cells = first as u32 + 1;
        let summaries = std::mem::replace(&mut self.lines[index].summaries, [NOTHING; SUMMARIES]);
        for summary in summaries.into_iter().filter(|summary| summary.mask != 0) {
            let _already_reported = self.add_cells(clocks, index, summary);
        }
    }

    fn add_cells(&mut self, clocks: &Clocks, index: usize, new: Summary) -> Option<Box<LineConflict>> {
        let first = self.lines[index].cells as usize - 1;
        let base = self.lines[index].used.line * LINE;
        let mut conflict: Option<Box<LineConflict>> = None;
        for word in 0..32u32 {
            let bits = (new.mask >> (4 * word)) as u8 & 0xf;
            let mut rest = bits;
            while rest != 0 {
                let byte = 4 * word + rest.trailing_zeros();
                let part = if new.shift >= 2 { rest } else { rest & (((1 << (1 << new.shift)) - 1) << (byte & 3)) };
                rest &= !part;
                let who = Who { warp: u32::from(new.warp), lane: new.lane_of(byte), epoch: new.epoch, pc: new.pc };
                let found = self.cells.access(clocks, first + word as usize, part, new.kind, who);
                if let (None, Some(other)) = (&conflict, found) {
                    conflict = Some(Box::new(LineConflict { lane: who.lane, address: base + u64::from(byte), other }));
                }
            }
        }
        conflict
    }
}

#[inline(always)]
fn hash(line: u64) -> usize {
    (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

//! What a bulk copy meets in global memory: see `cell::probe`. Towards other CTAs it counts as an access of the CTA.

use super::{LINE, Line, Lines, Site, column};
use crate::shadow::cell::{AccessKind, Conflict, Flaw, Who, worse};
use crate::shadow::clock::{Clocks, Proxied};

impl Lines {
    /// Records for other CTAs that a copy issued by `who` reads or writes `bytes` bytes from `address`, and returns the
    /// access of this CTA that stands most against it, with the byte.
    pub fn probe(
        &mut self,
        clocks: &Clocks,
        (address, bytes): (u64, u64),
        writes: bool,
        who: Who,
    ) -> Option<(u64, Flaw)> {
        let kind = if writes { AccessKind::Write } else { AccessKind::Read };
        let (mut at, end) = (address, address + bytes);
        let mut found = None;
        while at < end {
            let number = at / LINE;
            let stop = end.min((number + 1) * LINE);
            let length = (stop - at) as u32;
            let mask = (u128::MAX >> (128 - length)) << (at % LINE);
            let index = self.find(number);
            found = worse(found, self.meets(clocks, &self.lines[index], mask, writes, who));
            let used = &mut self.lines[index].used;
            used.masks[column(kind)] |= mask;
            used.sites[column(kind)] = Site::new(who.warp as u16, who.lane, who.pc);
            at = stop;
        }
        found
    }

    fn meets(&self, clocks: &Clocks, line: &Line, mask: u128, writes: bool, who: Who) -> Option<(u64, Flaw)> {
        let to = (Proxied::Global, writes);
        let base = line.used.line * LINE;
        if line.cells != 0 {
            let first = line.cells as usize - 1;
            return (0..32).fold(None, |found, word| {
                let part = (mask >> (4 * word)) as u8 & 0xf;
                if part == 0 {
                    return found;
                }
                let flaw = self.cells.probe(clocks, (first + word, part), to, who);
                let byte = base + 4 * word as u64 + u64::from(part.trailing_zeros());
                worse(found, flaw.map(|flaw| (byte, flaw)))
            });
        }
        let mut found = None;
        for summary in line.summaries.iter().filter(|summary| summary.mask & mask != 0) {
            let mut rest = summary.mask & mask;
            while rest != 0 {
                let byte = rest.trailing_zeros();
                let lane = summary.lane_of(byte);
                let conflict = Conflict { kind: summary.kind, warp: u32::from(summary.warp), lane, pc: summary.pc };
                let flaw = Flaw::of(clocks, to, who, conflict, summary.epoch);
                found = worse(found, flaw.map(|flaw| (base + u64::from(byte), flaw)));
                // On to the next lane.
                while rest != 0 && summary.lane_of(rest.trailing_zeros()) == lane {
                    rest &= rest - 1;
                }
            }
        }
        found
    }
}

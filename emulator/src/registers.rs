//! `setmaxnreg` (PTX manual 9.7.19.5): registers of a CTA that its warps give back and take, and the rules of a
//! warpgroup.
//!
//! A CTA gets as many registers as the launch gives each thread, times its threads; which number that is, the assembler
//! decides. Here it is what `.maxnreg` says, or what `.minnctapersm` leaves of a multiprocessor's 65536 for the threads
//! of the launch, in steps of 8, and at most 255 rounded down to 248, or 168 where 384 threads share them. Without
//! either the assembler ignores the instruction, and so does this.

use crate::lanes::Mask;
use crate::shadow::clock::Clocks;
use crate::sync::Waiter;

/// Registers of a multiprocessor (CUDA programming guide, compute capabilities).
const FILE: u32 = 65_536;
/// Registers come in steps of this.
const STEP: u32 = 8;
/// Most registers of a thread when it starts.
const MOST: u32 = 255;
/// Warps of a warpgroup.
pub const WARPGROUP: usize = 4;

/// Registers of a thread at the start, where the directives decide it: `.maxnreg`, or threads of a CTA and CTAs of a
/// multiprocessor.
pub fn at_launch(maxnreg: Option<u32>, minnctapersm: Option<u32>, threads: u32) -> Option<u32> {
    match (maxnreg, minnctapersm) {
        (Some(count), _) => Some(count),
        (None, Some(ctas)) => {
            let threads = threads.next_multiple_of(32).checked_mul(ctas.max(1))?;
            Some((FILE / threads / STEP * STEP).min(MOST / STEP * STEP))
        }
        (None, None) => None,
    }
}

/// A change of the number of registers of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Registers of a thread afterwards.
    pub count: u32,
    /// `.inc`; otherwise `.dec`.
    pub inc: bool,
    /// Instruction.
    pub pc: u32,
}

/// Why a change is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// `.inc` to less than, or `.dec` to more than the warp has.
    Direction(u32),
    /// Another warp of the warpgroup has made another change: its number, and the change.
    Differs(usize, Change),
    /// Another warp may still be before its last change.
    Unsynchronised(usize),
    /// The warpgroup has fewer than four warps.
    Partial(usize),
}

#[derive(Clone, Debug, Default)]
struct OfWarp {
    count: u32,
    /// Changes made, and the epoch of the last one.
    changes: Vec<(Change, u32)>,
}

/// What a change leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Done; these waited for registers, and go on.
    Done(Vec<Waiter>),
    /// There are not enough registers yet.
    Wait,
}

/// The registers of a CTA.
#[derive(Debug, Default)]
pub struct Registers {
    /// Registers that no warp has, by thread of a warp; none if nobody counts.
    pool: Option<u32>,
    warps: Vec<OfWarp>,
    /// Who waits, in order, and for how many.
    waiting: Vec<(Waiter, usize, u32)>,
}

impl Registers {
    /// The state at the start of a CTA.
    pub fn reset(&mut self, warps: usize, at_launch: Option<u32>) {
        self.pool = at_launch.map(|_| 0);
        self.waiting.clear();
        self.warps.clear();
        self.warps.resize(warps, OfWarp { count: at_launch.unwrap_or(0), changes: Vec::new() });
    }

    /// A change of warp `warp` of the CTA, whose number in the cluster is `first` more.
    pub fn change(
        &mut self,
        clocks: &mut Clocks,
        (warp, first): (usize, usize),
        change: Change,
        lanes: Mask,
    ) -> Result<Outcome, Misuse> {
        let group = warp / WARPGROUP * WARPGROUP;
        if group + WARPGROUP > self.warps.len() {
            return Err(Misuse::Partial(self.warps.len() - group));
        }
        let made = self.warps[warp].changes.len();
        for (other, of) in self.warps.iter().enumerate().skip(group).take(WARPGROUP).filter(|(other, _)| *other != warp)
        {
            match of.changes.get(made) {
                Some((theirs, _)) if *theirs != change => return Err(Misuse::Differs(other, *theirs)),
                _ => {}
            }
            let Some(before) = made.checked_sub(1) else { continue };
            let ordered = |epoch| clocks.ordered(first + warp, first + other, epoch);
            if !of.changes.get(before).is_some_and(|(_, epoch)| !clocks.is_tracked() || ordered(*epoch)) {
                return Err(Misuse::Unsynchronised(other));
            }
        }
        let epoch = clocks.epoch(first + warp);
        let own = &mut self.warps[warp];
        own.changes.push((change, epoch));
        // What comes after is no part of it: whoever knows it does not know the change before.
        clocks.meet(first + warp, 0);
        let Some(pool) = &mut self.pool else { return Ok(Outcome::Done(Vec::new())) };
        let count = own.count;
        if change.inc && change.count < count || !change.inc && change.count > count {
            return Err(Misuse::Direction(count));
        }
        if change.inc {
            let need = change.count - count;
            own.count = change.count;
            if need <= *pool && self.waiting.is_empty() {
                *pool -= need;
                return Ok(Outcome::Done(Vec::new()));
            }
            let waiter = Waiter { warp: (first + warp) as u32, mask: lanes, pc: change.pc, votes: false };
            self.waiting.push((waiter, warp, need));
            return Ok(Outcome::Wait);
        }
        *pool += count - change.count;
        own.count = change.count;
        let mut woken = Vec::new();
        while let Some((waiter, _, need)) = self.waiting.first().copied().filter(|(_, _, need)| *need <= *pool) {
            *pool -= need;
            woken.push(waiter);
            self.waiting.remove(0);
        }
        Ok(Outcome::Done(woken))
    }

    /// For messages: what a warp waits for.
    pub fn describe(&self, warp: usize) -> Option<String> {
        let (_, _, need) = self.waiting.iter().find(|(_, waiting, _)| *waiting == warp)?;
        let free = self.pool.unwrap_or(0);
        Some(format!(
            "waits for {need} more registers a thread, {} in all, where the block has {} left",
            need * 32,
            free * 32
        ))
    }

    /// A warp that has ended without a change that another one of its warpgroup made.
    pub fn left_out(&self) -> Option<(usize, Change)> {
        self.warps.chunks(WARPGROUP).enumerate().find_map(|(group, warps)| {
            let most = warps.iter().max_by_key(|warp| warp.changes.len())?;
            let at = warps.iter().position(|warp| warp.changes.len() < most.changes.len())?;
            Some((group * WARPGROUP + at, most.changes[warps[at].changes.len()].0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_assembler_gives() {
        // Seen with ptxas 13.0: 384 threads have 168, 256 threads twice on a multiprocessor 128.
        assert_eq!(at_launch(None, Some(1), 384), Some(168));
        assert_eq!(at_launch(None, Some(2), 256), Some(128));
        assert_eq!(at_launch(Some(96), Some(1), 384), Some(96));
        assert_eq!(at_launch(None, None, 384), None);
    }

    #[test]
    fn a_pool_of_168_feeds_two_consumers() {
        let mut clocks = Clocks::default();
        clocks.reset(12, false, false);
        let mut registers = Registers::default();
        registers.reset(12, Some(168));
        let inc = Change { count: 240, inc: true, pc: 7 };
        for warp in 4..12 {
            assert_eq!(registers.change(&mut clocks, (warp, 0), inc, u32::MAX), Ok(Outcome::Wait));
        }
        let dec = Change { count: 24, inc: false, pc: 3 };
        let mut woken = 0;
        for warp in 0..4 {
            let Ok(Outcome::Done(list)) = registers.change(&mut clocks, (warp, 0), dec, u32::MAX) else { panic!() };
            woken += list.len();
        }
        // 4 times 144 are 8 times 72: the pool balances.
        assert_eq!((woken, registers.pool), (8, Some(0)));
        assert_eq!(registers.left_out(), None);
        let more = Change { count: 232, ..inc };
        assert_eq!(registers.change(&mut clocks, (4, 0), more, u32::MAX), Err(Misuse::Direction(240)));
    }
}

//! A cluster that runs: whose turn it is, and what it takes from the budget of the launch.

use std::sync::atomic::Ordering;

use super::random::{Random, nth_one, ones};
use super::{SHORT_SLICE, SLICE, is_check};
use crate::exec::env::{Cx, Env, Facts};
use crate::exec::{Stop, Warp};
use crate::report::Kind;

/// Warps of a CTA, one bit each: there are at most 32.
#[derive(Clone, Copy, Default)]
pub(super) struct Turnout {
    /// Those that have ended.
    pub(super) done: u32,
    /// Those that may be able to run.
    pub(super) ready: u32,
}

/// A cluster that runs.
pub(super) struct Cta<'a> {
    pub(super) env: Env<'a>,
    /// Of all its CTAs, one after the other.
    pub(super) warps: Vec<Warp>,
    pub(super) turnout: Vec<Turnout>,
    random: Random,
    /// Instructions of a turn.
    pub(super) slice: u32,
    /// Instructions charged to the budget so far.
    charged: u64,
}

/// How a CTA stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CtaStop {
    Done,
    Slice,
    Halted,
}

impl<'a> Cta<'a> {
    pub(super) fn new(cx: &'a Cx<'a>) -> Self {
        let warps = cx.warps();
        Cta {
            env: Env::new(cx),
            warps: (0..warps * cx.ctas()).map(|_| Warp::default()).collect(),
            turnout: vec![Turnout::default(); cx.ctas()],
            random: Random(0),
            slice: if cx.kernel.communicates { SHORT_SLICE } else { SLICE },
            charged: 0,
        }
    }

    pub(super) fn start(&mut self, number: u64) {
        self.env.start(number);
        self.random = Random::new(self.env.cx.options.seed, number);
        self.charged = 0;
        for (index, warp) in self.warps.iter_mut().enumerate() {
            warp.start(self.env.cx.kernel, &self.env, index as u32);
        }
        let ready = u32::MAX >> (32 - self.env.cx.warps());
        self.turnout.fill(Turnout { done: 0, ready });
        self.env.counters.ctas += self.turnout.len() as u64;
        self.env.counters.warps += self.warps.len() as u64;
    }

    /// How many warps can run: those that could when they were last looked at, and those woken since. When there are
    /// none, all are looked at.
    fn runnable(&mut self) -> u32 {
        let mut sum = 0;
        for (cta, barriers) in self.turnout.iter_mut().zip(&mut self.env.barriers) {
            cta.ready = (cta.ready | std::mem::take(&mut barriers.woken)) & !cta.done;
            sum += ones(cta.ready);
        }
        if sum == 0 {
            for (cta, warps) in self.turnout.iter_mut().zip(self.warps.chunks(self.env.cx.warps())) {
                let runnable = |(index, warp): (usize, &Warp)| u32::from(warp.is_runnable()) << index;
                cta.ready = warps.iter().enumerate().map(runnable).sum::<u32>() & !cta.done;
                sum += ones(cta.ready);
            }
        }
        sum
    }

    /// The `n`-th of the warps that can run: its CTA, and its number there.
    fn nth(&self, mut n: u32) -> (usize, usize) {
        let mut rank = 0;
        loop {
            let ready = self.turnout[rank].ready;
            if self.turnout.len() == 1 {
                return (0, nth_one(ready, n));
            }
            match n.checked_sub(ones(ready)) {
                None => return (rank, nth_one(ready, n)),
                Some(rest) => (n, rank) = (rest, rank + 1),
            }
        }
    }

    /// Warps that have ended.
    fn done(&self) -> u32 {
        self.turnout.iter().map(|cta| cta.done.count_ones()).sum()
    }

    /// Runs until the CTA ends, or for `turns` turns of a warp.
    pub(super) fn run(&mut self, mut turns: u64) -> CtaStop {
        loop {
            let runnable = self.runnable();
            if runnable == 0 {
                if self.done() as usize == self.warps.len() {
                    return self.finish();
                }
                if self.resolve() {
                    continue;
                }
                return CtaStop::Halted;
            }
            if turns == 0 {
                return CtaStop::Slice;
            }
            turns -= 1;
            let chosen = if runnable > 1 { self.random.below(runnable) } else { 0 };
            let (rank, local) = self.nth(chosen);
            let index = rank * self.env.cx.warps() + local;
            let warp = &mut self.warps[index];
            self.env.select(index as u32);
            if self.env.bulk.under_way > 0 && !crate::exec::bulk::advance(&mut self.env) {
                return CtaStop::Halted;
            }
            let barriers = &mut self.env.barriers[rank];
            if barriers.take_whole(local) {
                warp.wake_whole();
            } else {
                barriers.take_wakes(local, |wake| warp.wake(self.env.cx.kernel, wake));
            }
            let before = self.env.time;
            let stop = warp.run(&mut self.env, self.slice);
            if self.env.trace.is_some() && !self.trace_turn(index, self.env.time - before) {
                return CtaStop::Halted;
            }
            if stop != Stop::Yielded {
                // Others may wait for what this warp does next.
                self.env.mbarriers.progress += 1;
            }
            match stop {
                Stop::Slice | Stop::Yielded | Stop::Blocked => {
                    if stop == Stop::Blocked {
                        self.turnout[rank].ready &= !(1 << local);
                    }
                    // Warps that wait for each other in a loop never use up a slice.
                    let due = self.env.time - self.charged >= u64::from(self.slice);
                    if due && !self.charge(index) {
                        return CtaStop::Halted;
                    }
                }
                Stop::Done => self.turnout[rank].done |= 1 << local,
                Stop::Halted => return CtaStop::Halted,
            }
            if self.env.cx.stop.load(Ordering::Relaxed) {
                return CtaStop::Halted;
            }
        }
    }

    /// Tells the trace that a warp had its turn, in which it executed so many instructions: one or none. Whether more
    /// may be traced.
    #[cold]
    fn trace_turn(&mut self, index: usize, executed: u64) -> bool {
        let warp = &self.warps[index];
        let code = &self.env.cx.kernel.code[warp.began as usize..];
        // What was forwarded is passed by who goes on after it, and by nobody who jumps.
        let step = code.first().map_or(1, |inst| inst.step);
        let passes = warp.fragments.iter().any(|fragment| fragment.pc == warp.began + step);
        let own = code.iter().take(if passes { step as usize } else { 1 });
        let own = own.filter(|inst| !is_check(&inst.op)).count() as u64;
        self.env.trace.as_mut().is_none_or(|trace| trace.ran(index as u32, executed, executed * own))
    }

    /// Takes what the CTA executed from the launch's budget.
    fn charge(&mut self, warp: usize) -> bool {
        let used = self.env.time - self.charged;
        self.charged = self.env.time;
        let left = self.env.cx.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(used));
        if left.is_ok() {
            return true;
        }
        let (pc, lane) = self.warps[warp].fragments.first().map_or((0, 0), |f| (f.pc, f.mask.trailing_zeros()));
        let detail = format!("the launch may execute {} warp instructions", self.env.cx.options.budget);
        self.env.report(Kind::Livelock, pc, Facts { lane, detail, fatal: true, ..Facts::default() });
        false
    }

    /// The CTA has ended: compares its accesses with those of other CTAs.
    fn finish(&mut self) -> CtaStop {
        if !self.charge(0) || !crate::exec::bulk::finish(&mut self.env) {
            return CtaStop::Halted;
        }
        self.env.finish_cluster();
        if let Some(cross) = &self.env.cx.cross {
            let conflicts =
                cross.merge(self.env.number, self.env.lines.uses(), |address| byte_at(self.env.cx, address));
            for conflict in conflicts {
                crate::exec::report_cross(&mut self.env, conflict);
            }
        }
        CtaStop::Done
    }
}

/// What is in a byte of global memory; 0 outside.
fn byte_at(cx: &Cx<'_>, address: u64) -> u8 {
    let Ok(index) = cx.regions.find(address, 1, false, usize::MAX) else { return 0 };
    let allocation = &cx.regions.get(index).allocation;
    let offset = (address - allocation.base) as usize;
    (allocation.load(offset / 4) >> (8 * (offset % 4))) as u8
}

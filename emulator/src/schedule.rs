//! The order in which warps and CTAs run, and what follows from it: deadlock, livelock, reruns.
//!
//! CTAs of a cluster run together: without clusters every CTA is one of its own, and "CTA" below means a cluster.
//! Inside it a warp runs until it waits, exits or has used a slice; the next one is drawn from a stream that depends on
//! the seed and the cluster's number only. CTAs of a kernel that does not communicate through global memory run in
//! parallel; a communicating kernel runs on one thread, as many CTAs at a time as a large GPU would hold. If anything
//! is found in parallel, memory is restored and the launch runs again on one thread, so that results, findings and
//! counters never depend on the number of host threads.

use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::counters::{Class, Counters};
use crate::decode::op::{Fence, Op};
use crate::error::Error;
use crate::exec::env::{Count, Cx, Env, Facts, MOST_PRINTED};
use crate::exec::{Stop, Wait, Warp};
use crate::lanes::Mask;
use crate::report::{Finding, Kind, Report, Thread};

/// Instructions a warp executes before another one gets a turn.
const SLICE: u32 = 1 << 14;
/// The same in kernels whose CTAs may wait for each other.
const SHORT_SLICE: u32 = 256;
/// Of as many seeds one lets CTAs that may wait for each other take short turns of all lengths: what comes between two
/// instructions is found by it, and launches take longer.
const FINE: u64 = 4;
/// Threads that a large GPU holds at a time: 132 multiprocessors of 2048 threads.
const RESIDENT_THREADS: u64 = 132 * 2048;
/// CTAs that one multiprocessor holds at most, times 132.
const RESIDENT_CTAS: u64 = 132 * 32;

/// A deterministic stream of numbers.
struct Random(u64);

impl Random {
    fn new(seed: u64, cta: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ cta.wrapping_mul(0xbf58_476d_1ce4_e5b9));
        random.next();
        random
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`.
    fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }
}

/// The place of a number's `n`-th one, from 0; there must be more ones than `n`.
fn nth_one(bits: u32, n: u32) -> usize {
    // By bytes and a table: what is drawn is not foreseeable, and neither would be the branches of a loop.
    let (mut n, mut rest, mut at) = (n, bits, 0);
    loop {
        let byte = rest & 0xff;
        let ones = u32::from(ONES[byte as usize]);
        if n < ones {
            return at + usize::from(NTH_ONE[byte as usize][n as usize]);
        }
        n -= ones;
        rest >>= 8;
        at += 8;
    }
}

/// How many ones a number has. Not every host counts them in one step, and mostly they are all in the lowest byte.
fn ones(bits: u32) -> u32 {
    let mut sum = u32::from(ONES[(bits & 0xff) as usize]);
    let mut rest = bits >> 8;
    while rest != 0 {
        sum += u32::from(ONES[(rest & 0xff) as usize]);
        rest >>= 8;
    }
    sum
}

/// How many ones each byte has.
const ONES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).count_ones() as u8;
        byte += 1;
    }
    table
};

/// The places of each byte's ones.
const NTH_ONE: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut place, mut n) = (0, 0);
        while place < 8 {
            if byte >> place & 1 == 1 {
                table[byte][n] = place;
                n += 1;
            }
            place += 1;
        }
        byte += 1;
    }
    table
};

/// Warps of a CTA, one bit each: there are at most 32.
#[derive(Clone, Copy, Default)]
struct Turnout {
    /// Those that have ended.
    done: u32,
    /// Those that may be able to run.
    ready: u32,
}

/// A cluster that runs.
struct Cta<'a> {
    env: Env<'a>,
    /// Of all its CTAs, one after the other.
    warps: Vec<Warp>,
    turnout: Vec<Turnout>,
    random: Random,
    /// Instructions of a turn.
    slice: u32,
    /// Instructions charged to the budget so far.
    charged: u64,
}

/// How a CTA stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CtaStop {
    Done,
    Slice,
    Halted,
}

impl<'a> Cta<'a> {
    fn new(cx: &'a Cx<'a>) -> Self {
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

    fn start(&mut self, number: u64) {
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
    fn run(&mut self, mut turns: u64) -> CtaStop {
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
            let stop = warp.run(&mut self.env, self.slice);
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
            let conflicts = cross.merge(self.env.number, self.env.lines.uses());
            for conflict in conflicts {
                crate::exec::report_cross(&mut self.env, conflict);
            }
        }
        CtaStop::Done
    }

    /// Nothing can run. Barriers that wait for threads that have exited are completed, with a finding; otherwise the
    /// CTA is stuck. Returns whether it can go on.
    fn resolve(&mut self) -> bool {
        for rank in 0..self.turnout.len() {
            let done = self.turnout[rank].done;
            let gone = done.count_ones() * 32;
            for id in 0..crate::sync::BARRIERS {
                let state = &self.env.barriers[rank].states()[id];
                let Some(waiter) = state.waiting.first().copied() else { continue };
                if !state.everyone || gone == 0 || state.arrived + gone < state.expected {
                    continue;
                }
                let exited = done.trailing_zeros();
                let detail = format!("warp {exited} has exited; barrier {id} waits for the whole block");
                let thread = self.env.thread_of(waiter.warp, waiter.mask.trailing_zeros());
                self.env.report_thread(
                    Kind::ExitBeforeBarrier,
                    waiter.pc,
                    thread,
                    Facts { detail, ..Facts::default() },
                );
                self.env.barriers[rank].complete(&mut self.env.clocks, id);
                return true;
            }
        }
        self.report_stuck();
        false
    }

    /// What a fragment waits for after its instruction.
    fn waits_for(&self, warp: usize, lanes: Mask) -> String {
        let (rank, local) = self.env.split(warp as u32);
        let barrier = self.env.barriers[rank].states().iter().enumerate().find(|(_, state)| {
            state.waiting.iter().any(|waiter| waiter.warp as usize == warp && waiter.mask & lanes != 0)
        });
        if let Some((id, state)) = barrier {
            let (arrived, expected) = (state.arrived, state.expected);
            return format!("waits at barrier {id}, where {arrived} of {expected} threads have arrived");
        }
        if let Some(text) = self.env.registers.get(rank).and_then(|registers| registers.describe(local as usize)) {
            return text;
        }
        format!("waits at {}", self.env.cluster.describe())
    }

    /// Reports why nothing can run: a barrier in divergent code if there is one, else a deadlock with everybody who
    /// waits.
    fn report_stuck(&mut self) {
        let kernel = self.env.cx.kernel;
        let mut lines = Vec::new();
        let mut divergent = None;
        let mut first = None;
        for (index, warp) in self.warps.iter().enumerate() {
            for fragment in &warp.fragments {
                let pc = if fragment.wait == Wait::Barrier { fragment.pc - 1 } else { fragment.pc };
                let place = kernel.place(pc);
                let thread = self.env.thread_of(index as u32, fragment.mask.trailing_zeros());
                first = first.or(Some((pc, thread)));
                let why = match fragment.wait {
                    Wait::None => "can run".to_owned(),
                    Wait::Barrier => self.waits_for(index, fragment.mask),
                    Wait::Warp => {
                        divergent = earlier(divergent, (pc, thread));
                        format!("waits for lanes {:#010x} of its warp", warp.live & !fragment.mask)
                    }
                    Wait::Lanes(need) => {
                        divergent = earlier(divergent, (pc, thread));
                        format!("waits for lanes {:#010x} of its warp", need & warp.live & !fragment.mask)
                    }
                };
                let who = match self.env.split(index as u32) {
                    (rank, warp) if self.turnout.len() > 1 => format!("rank {rank}, warp {warp}"),
                    (_, warp) => format!("warp {warp}"),
                };
                lines.push(format!("{who}, lanes {:#010x}, {place}: {why}", fragment.mask));
            }
        }
        let total = lines.len();
        lines.truncate(16);
        let mut detail = lines.join("\n  ");
        if total > 16 {
            detail.push_str(&format!("\n  and {} more", total - 16));
        }
        let facts = Facts { detail, fatal: true, ..Facts::default() };
        match (divergent, first) {
            (Some((pc, thread)), _) => self.env.report_thread(Kind::BarrierDivergence, pc, thread, facts),
            (None, Some((pc, thread))) => self.env.report_thread(Kind::Deadlock, pc, thread, facts),
            (None, None) => {}
        }
    }
}

/// The one at the lower instruction.
fn earlier(known: Option<(u32, Thread)>, new: (u32, Thread)) -> Option<(u32, Thread)> {
    Some(known.map_or(new, |old| if new.0 < old.0 { new } else { old }))
}

/// What a worker hands back.
#[derive(Default)]
struct Outcome {
    counters: Counters,
    counts: Vec<Count>,
    printed: Vec<u8>,
    findings: Vec<Finding>,
    dropped: u64,
}

impl Outcome {
    fn add(&mut self, other: Outcome) {
        self.counters.add(&other.counters);
        if self.counts.is_empty() {
            self.counts = other.counts;
        } else {
            for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
                sum.add(count);
            }
        }
        self.printed.extend(other.printed);
        self.printed.truncate(MOST_PRINTED);
        self.findings.extend(other.findings);
        self.dropped += other.dropped;
    }

    fn of(cta: Cta<'_>) -> Outcome {
        Outcome {
            counters: cta.env.counters,
            counts: cta.env.counts,
            printed: cta.env.printed,
            findings: cta.env.findings,
            dropped: cta.env.dropped,
        }
    }

    fn report(self, cx: &Cx<'_>) -> Report {
        let mut counters = self.counters;
        let mut branches = 0;
        let totals = Count::totals(&self.counts);
        for ((inst, origin), (warps, lanes)) in cx.kernel.code.iter().zip(&cx.kernel.origins).zip(totals) {
            // Checks of registers are not instructions of the program.
            let check = matches!(
                inst.op,
                Op::CheckInit { .. }
                    | Op::MarkInit { .. }
                    | Op::FlowInit { .. }
                    | Op::LoadedInit { .. }
                    | Op::StoredInit { .. }
                    | Op::FlowSelect { .. }
                    | Op::Fence(Fence { implied: true, .. })
            );
            if check {
                continue;
            }
            counters.warp_instructions += warps;
            counters.thread_instructions[origin.class as usize] += lanes;
            if matches!(inst.op, Op::Branch { .. } | Op::BranchTable { .. }) {
                branches += warps;
            }
        }
        debug_assert_eq!(Class::ALL.len(), counters.thread_instructions.len());
        counters.uniform_branches = branches.saturating_sub(counters.divergent_branches);
        let printed = String::from_utf8_lossy(&self.printed).into_owned();
        Report { findings: self.findings, dropped: self.dropped, counters, printed }
    }
}

/// Clusters of the launch.
fn clusters(cx: &Cx<'_>) -> u64 {
    cx.clusters().iter().map(|n| u64::from(*n)).product()
}

/// Runs all CTAs one after the other, or, if they communicate, some of them at a time.
fn serial(cx: &Cx<'_>) -> Outcome {
    let total = clusters(cx);
    let resident = if cx.kernel.communicates {
        let ctas = (RESIDENT_THREADS / u64::from(cx.threads())).clamp(1, RESIDENT_CTAS);
        (ctas / cx.ctas() as u64).clamp(1, total)
    } else {
        1
    };
    if resident == 1 {
        let mut cta = Cta::new(cx);
        for number in 0..total {
            cta.start(number);
            if cta.run(u64::MAX) == CtaStop::Halted {
                break;
            }
        }
        return Outcome::of(cta);
    }
    // A CTA gets memory when it starts and gives it to the next one when it ends; one that never waits for others ends
    // in its first turn.
    let mut outcome = Outcome::default();
    let mut running: Vec<Cta<'_>> = Vec::new();
    let mut spare: Vec<Cta<'_>> = Vec::new();
    let mut next = 0;
    let mut random = Random::new(cx.options.seed, u64::MAX);
    // Every warp gets a few turns before the next CTA does.
    let most = 4 * (cx.warps() * cx.ctas()) as u64;
    let fine = cx.options.seed % FINE == FINE - 1;
    let turn = |random: &mut Random, cta: &mut Cta<'_>| {
        if !fine {
            return cta.run(most);
        }
        cta.slice = 1 << random.below(SHORT_SLICE.trailing_zeros() + 1);
        let turns = 1 + u64::from(random.below(most as u32));
        cta.run(turns)
    };
    'launch: while next < total || !running.is_empty() {
        while next < total && (running.len() as u64) < resident {
            let mut cta = spare.pop().unwrap_or_else(|| Cta::new(cx));
            cta.start(next);
            next += 1;
            match turn(&mut random, &mut cta) {
                CtaStop::Done => spare.push(cta),
                CtaStop::Slice => running.push(cta),
                CtaStop::Halted => {
                    spare.push(cta);
                    break 'launch;
                }
            }
        }
        if running.is_empty() {
            continue;
        }
        let index = random.below(running.len() as u32) as usize;
        match turn(&mut random, &mut running[index]) {
            CtaStop::Done => spare.push(running.swap_remove(index)),
            CtaStop::Slice => {}
            CtaStop::Halted => break,
        }
    }
    for cta in running.into_iter().chain(spare) {
        outcome.add(Outcome::of(cta));
    }
    outcome
}

fn parallel(cx: &Cx<'_>) -> Outcome {
    let total = clusters(cx);
    // Chunks are small enough to share the work and large enough to reuse a worker's memory.
    let chunk = (total / 256).clamp(1, 64);
    let chunks = total.div_ceil(chunk);
    (0..chunks)
        .into_par_iter()
        .fold(
            || None,
            |worker: Option<Cta<'_>>, index| {
                let mut cta = worker.unwrap_or_else(|| Cta::new(cx));
                for number in index * chunk..total.min((index + 1) * chunk) {
                    if cx.stop.load(Ordering::Relaxed) {
                        break;
                    }
                    cta.start(number);
                    let stopped = cta.run(u64::MAX) == CtaStop::Halted;
                    if stopped || !cta.env.findings.is_empty() {
                        cx.stop.store(true, Ordering::Relaxed);
                        break;
                    }
                }
                Some(cta)
            },
        )
        .map(|worker| worker.map(Outcome::of).unwrap_or_default())
        .reduce(Outcome::default, |mut a, b| {
            a.add(b);
            a
        })
}

/// Runs a launch. `cx` makes a context, for parallel execution or not.
pub(crate) fn run<'a>(
    cx: &mut Cx<'a>,
    prepare_parallel: impl FnOnce(&mut Cx<'a>),
    reset: impl FnOnce(&mut Cx<'a>),
) -> Result<Report, Error> {
    let threads = cx.options.threads.unwrap_or_else(rayon::current_num_threads);
    if threads > 1 && clusters(cx) > 1 && !cx.kernel.communicates {
        prepare_parallel(cx);
        let outcome = match cx.options.threads {
            None => parallel(cx),
            Some(threads) => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                pool.map_err(|error| Error::Host { message: error.to_string() })?.install(|| parallel(cx))
            }
        };
        if !cx.stop.load(Ordering::Relaxed) {
            return Ok(outcome.report(cx));
        }
        if let Some(undo) = &cx.undo {
            undo.restore();
        }
        reset(cx);
    }
    Ok(serial(cx).report(cx))
}

#[cfg(test)]
mod tests {
    use super::nth_one;

    #[test]
    fn places_of_ones() {
        for bits in [1, 0xff, 0x8000_0001, 0xdead_beef, u32::MAX, 0x0001_0000] {
            let places: Vec<usize> = (0..32).filter(|place| bits >> place & 1 == 1).collect();
            let found: Vec<usize> = (0..bits.count_ones()).map(|n| nth_one(bits, n)).collect();
            assert_eq!(found, places, "{bits:#x}");
        }
    }
}

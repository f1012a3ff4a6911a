//! The order in which warps and CTAs run, and what follows from it: deadlock, livelock, reruns.
//!
//! CTAs of a cluster run together: without clusters every CTA is one of its own, and "CTA" below means a cluster.
//! Inside it a warp runs until it waits, exits or has used a slice; the next one is drawn from a stream that depends on
//! the seed and the cluster's number only. CTAs of a kernel that does not communicate through global memory run in
//! parallel; a communicating kernel runs on one thread, as many CTAs at a time as a large GPU would hold. If anything
//! is found in parallel, memory is restored and the launch runs again on one thread, so that results, findings and
//! counters never depend on the number of host threads.
//!
//! The turns of one cluster are in `cta`, the numbers that they are drawn from in `random`, and what happens when no
//! warp can run in `stuck`.

mod cta;
mod random;
mod stuck;

use std::ops::Range;
use std::sync::atomic::Ordering;

use tilewright_kernel::workers;

use crate::counters::{Class, Counters};
use crate::decode::op::{Fence, Op};
use crate::error::Error;
use crate::exec::env::{Count, Cx, FINDINGS, MOST_PRINTED};
use crate::report::{Finding, Report};
use crate::trace::Recorder;
use cta::{Cta, CtaStop};
use random::Random;

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
        self.dropped += other.dropped;
        for finding in other.findings {
            // The same one by CTAs that run at a time is one.
            if let Some(known) = self.findings.iter_mut().find(|known| known.is_like(&finding)) {
                known.count += finding.count;
                known.fatal |= finding.fatal;
            } else if self.findings.len() < FINDINGS || finding.fatal {
                self.findings.push(finding);
            } else {
                self.dropped += 1;
            }
        }
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
            if is_check(&inst.op) {
                continue;
            }
            counters.warp_instructions += warps;
            counters.thread_instructions[origin.class as usize] += lanes;
            if let Some(work) = &origin.work {
                let is_product = matches!(inst.op, Op::Mma(_) | Op::Wgmma { .. });
                counters.add_work(work, if is_product { warps } else { lanes });
            }
            if matches!(inst.op, Op::Branch { .. } | Op::BranchTable { .. }) {
                branches += warps;
            }
        }
        debug_assert_eq!(Class::ALL.len(), counters.thread_instructions.len());
        counters.uniform_branches = branches.saturating_sub(counters.divergent_branches);
        let printed = String::from_utf8_lossy(&self.printed).into_owned();
        Report { findings: self.findings, dropped: self.dropped, counters, printed, trace: None }
    }
}

/// Numbers of the clusters that run.
fn clusters(cx: &Cx<'_>) -> Range<u64> {
    let all = 0..cx.clusters().iter().map(|n| u64::from(*n)).product();
    let Some(some) = &cx.options.clusters else { return all };
    let end = some.end.min(all.end);
    some.start.min(end)..end
}

/// Whether an instruction is none of the program, but a check of registers.
fn is_check(op: &Op) -> bool {
    matches!(
        op,
        Op::CheckInit { .. }
            | Op::MarkInit { .. }
            | Op::FlowInit { .. }
            | Op::LoadedInit { .. }
            | Op::StoredInit { .. }
            | Op::FlowSelect { .. }
            | Op::MatrixTouch { .. }
            | Op::Fence(Fence { implied: true, .. })
    )
}

/// Runs all CTAs one after the other, or, if they communicate, some of them at a time.
fn serial(cx: &Cx<'_>) -> Outcome {
    let numbers = clusters(cx);
    let resident = if cx.kernel.communicates {
        let ctas = (RESIDENT_THREADS / u64::from(cx.threads())).clamp(1, RESIDENT_CTAS);
        (ctas / cx.ctas() as u64).min(numbers.end - numbers.start).max(1)
    } else {
        1
    };
    if resident == 1 {
        let mut cta = Cta::new(cx);
        for number in numbers {
            cta.start(number);
            if cta.run(u64::MAX) == CtaStop::Halted || cx.follow.load(Ordering::Relaxed) {
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
    let Range { start: mut next, end } = numbers;
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
    'launch: while next < end || !running.is_empty() {
        while next < end && (running.len() as u64) < resident {
            if cx.follow.load(Ordering::Relaxed) {
                break 'launch;
            }
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
        if cx.follow.load(Ordering::Relaxed) {
            break;
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

/// The stack of a host thread, in bytes: as much as the standard library gives, which does for one that calls itself
/// nowhere.
const STACK: usize = 2 << 20;

fn parallel(cx: &Cx<'_>, threads: usize) -> Outcome {
    let Range { start, end } = clusters(cx);
    let total = end - start;
    // Chunks are small enough to share the work and large enough to reuse a worker's memory.
    let chunk = (total / 256).clamp(1, 64);
    let parts = workers::run(threads, STACK, total.div_ceil(chunk) as usize, |queue| {
        let mut cta = None;
        while let Some(index) = queue.take() {
            let cta = cta.get_or_insert_with(|| Cta::new(cx));
            let first = start + index as u64 * chunk;
            for number in first..end.min(first + chunk) {
                if cx.stop.load(Ordering::Relaxed) {
                    break;
                }
                cta.start(number);
                let stopped = cta.run(u64::MAX) == CtaStop::Halted;
                if stopped || !cta.env.findings.is_empty() || cx.follow.load(Ordering::Relaxed) {
                    cx.stop.store(true, Ordering::Relaxed);
                }
            }
        }
        cta.map(Outcome::of).unwrap_or_default()
    });
    parts.into_iter().fold(Outcome::default(), |mut all, part| {
        all.add(part);
        all
    })
}

/// Runs the first cluster alone, and traces it: one instruction at a time, so that the order of events is one in which
/// all warps go on.
fn traced(cx: &Cx<'_>, most: u64) -> Report {
    let mut cta = Cta::new(cx);
    cta.slice = 1;
    cta.env.trace = Some(Recorder::new(most, cx.ctas(), cx.warps()));
    cta.start(0);
    let complete = cta.run(u64::MAX) == CtaStop::Done;
    let trace = cta.env.trace.take().map(|trace| trace.finish(complete));
    Report { trace, ..Outcome::of(cta).report(cx) }
}

/// Runs a launch; `None` if it has to run again with the kernel that follows what it loads: nothing has changed then.
/// `save` prepares a context for taking back what the launch does, and `reset` for another try.
pub(crate) fn run<'a>(
    cx: &mut Cx<'a>,
    save: impl Fn(&mut Cx<'a>),
    reset: impl FnOnce(&mut Cx<'a>),
) -> Result<Option<Report>, Error> {
    if let Some(most) = cx.options.trace {
        return Ok(Some(traced(cx, most)));
    }
    let threads = cx.options.threads.unwrap_or_else(workers::host_threads);
    let Range { start, end } = clusters(cx);
    if threads > 1 && end - start > 1 && !cx.kernel.communicates {
        save(cx);
        let outcome = parallel(cx, threads);
        if !cx.stop.load(Ordering::Relaxed) {
            return Ok(Some(outcome.report(cx)));
        }
        if let Some(undo) = &cx.undo {
            undo.restore();
        }
        reset(cx);
    }
    if cx.may_follow {
        save(cx);
    }
    let outcome = serial(cx);
    if !cx.follow.load(Ordering::Relaxed) {
        return Ok(Some(outcome.report(cx)));
    }
    if let Some(undo) = &cx.undo {
        undo.restore();
    }
    Ok(None)
}

//! The times of a trace, as if all warps ran at once.
//!
//! The emulator has no clock: its warps take turns. Here each warp has one of its own, which counts the instructions
//! that it executes, and waits only for what it depends on: a phase of an mbarrier ends with the last of its arrivals
//! and copies, a barrier of the block with the last warp, and a copy takes [`COPY`] instructions. So the times do not
//! depend on the emulator's order. They are no times of a machine, on which instructions take longer or shorter.

use std::collections::BTreeMap;

use tilewright_emulator::trace::{Event, SharedPlace, Step, Trace};

/// How long a copy is drawn to take, in instructions.
pub const COPY: u64 = 64;

/// A stretch of time of a warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub start: u64,
    pub end: u64,
    /// What it waits for; none while it works.
    pub waits: Option<Awaited>,
    /// The mbarrier that it has waited for last.
    pub after: Option<SharedPlace>,
}

/// What a warp waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    Mbarrier(SharedPlace),
    Copies,
    Block,
    Cluster,
}

/// A copy that a warp has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    pub warp: u32,
    pub start: u64,
    pub end: u64,
    pub store: bool,
    /// Rank of the block whose shared memory it is about, and the first byte there.
    pub to: SharedPlace,
}

/// What a warp does over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarpTimes {
    /// Without gaps, from 0 on.
    pub stretches: Vec<Stretch>,
    /// When it arrives at which mbarrier.
    pub arrivals: Vec<(u64, SharedPlace)>,
}

/// All of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// For each warp of the cluster.
    pub warps: Vec<WarpTimes>,
    pub copies: Vec<Copied>,
    /// When phases of each mbarrier end, in order.
    pub phases: BTreeMap<SharedPlace, Vec<u64>>,
}

impl Times {
    /// When the last warp ends.
    pub fn end(&self) -> u64 {
        self.warps.iter().filter_map(|warp| warp.stretches.last()).map(|s| s.end).max().unwrap_or(0)
    }

    /// Those of a trace.
    pub fn of(trace: &Trace) -> Self {
        let count = trace.ran.len();
        let mut replay = Replay {
            times: Self { warps: vec![WarpTimes::default(); count], ..Self::default() },
            clocks: vec![Clock::default(); count],
            per_block: trace.warps.max(1),
            ..Replay::default()
        };
        for event in &trace.events {
            replay.event(event);
        }
        for (warp, ran) in trace.ran.iter().enumerate() {
            replay.work(warp, *ran);
        }
        replay.times
    }
}

/// The clock of a warp.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    now: u64,
    /// Instructions executed at the last event.
    seen: u64,
    /// Whether it polls an mbarrier: what it executes is no work.
    polls: bool,
    after: Option<SharedPlace>,
}

#[derive(Default)]
struct Replay {
    times: Times,
    clocks: Vec<Clock>,
    /// The last arrival of each mbarrier's phase so far.
    pending: BTreeMap<SharedPlace, u64>,
    /// Who has come to each barrier of a block, and when the last one did.
    met: BTreeMap<(u32, u32), (Vec<usize>, u64)>,
    /// The same for the barrier of the cluster: who waits, when the last one came, and the end of the last phase.
    cluster: (Vec<usize>, u64, u64),
    per_block: u32,
}

impl Replay {
    fn stretch(&mut self, warp: usize, end: u64, waits: Option<Awaited>) {
        let clock = &mut self.clocks[warp];
        let (start, after) = (clock.now, clock.after);
        if end <= start {
            return;
        }
        clock.now = end;
        let stretches = &mut self.times.warps[warp].stretches;
        match stretches.last_mut() {
            Some(last) if last.waits == waits && last.after == after => last.end = end,
            _ => stretches.push(Stretch { start, end, waits, after }),
        }
    }

    /// The warp has executed so many instructions.
    fn work(&mut self, warp: usize, ran: u64) {
        let clock = &mut self.clocks[warp];
        let done = ran - std::mem::replace(&mut clock.seen, ran);
        if !clock.polls {
            let end = clock.now + done;
            self.stretch(warp, end, None);
        }
    }

    fn event(&mut self, event: &Event) {
        let warp = event.warp as usize;
        // What ends a phase is told of the warp that started a copy, at whatever time that is over.
        if !matches!(event.step, Step::PhaseEnd { .. } | Step::Done { .. }) {
            self.work(warp, event.at);
        }
        let now = self.clocks[warp].now;
        match &event.step {
            Step::Arrive { at, .. } => {
                self.arrive(*at, now);
                self.times.warps[warp].arrivals.push((now, *at));
            }
            Step::Wait { at, ended } => {
                self.clocks[warp].polls = !ended;
                if *ended {
                    let end = self.times.phases.get(at).and_then(|ends| ends.last()).copied().unwrap_or(now);
                    self.stretch(warp, end, Some(Awaited::Mbarrier(*at)));
                    self.clocks[warp].after = Some(*at);
                }
            }
            Step::PhaseEnd { at, .. } => {
                let end = self.pending.remove(at).unwrap_or(now);
                self.times.phases.entry(*at).or_default().push(end);
            }
            Step::Issue { store, rank, bytes, .. } => {
                let to = SharedPlace { rank: *rank, offset: bytes.start };
                self.times.copies.push(Copied { warp: event.warp, start: now, end: now + COPY, store: *store, to });
            }
            Step::Done { copy, at } => {
                let end = self.copy(*copy);
                if let (Some(at), Some(end)) = (at, end) {
                    self.arrive(*at, end);
                }
            }
            Step::WaitCopies { copies } => {
                let end = copies.iter().filter_map(|copy| self.copy(*copy)).max();
                self.stretch(warp, end.unwrap_or(now), Some(Awaited::Copies));
            }
            Step::Come { id, waits } => {
                let place = (event.warp / self.per_block, *id);
                let (waiting, last) = self.met.entry(place).or_default();
                *last = now.max(*last);
                if *waits {
                    waiting.push(warp);
                }
            }
            Step::Met { rank, id } => {
                let (waiting, last) = self.met.remove(&(*rank, *id)).unwrap_or_default();
                waiting.into_iter().for_each(|warp| self.stretch(warp, last, Some(Awaited::Block)));
            }
            Step::ComeCluster { waits: false } => self.cluster.1 = self.cluster.1.max(now),
            Step::ComeCluster { waits: true } => match self.cluster.1 {
                // The phase is over already.
                0 => self.stretch(warp, self.cluster.2, Some(Awaited::Cluster)),
                _ => self.cluster.0.push(warp),
            },
            Step::MetCluster => {
                let (waiting, last) = (std::mem::take(&mut self.cluster.0), std::mem::take(&mut self.cluster.1));
                self.cluster.2 = last;
                waiting.into_iter().for_each(|warp| self.stretch(warp, last, Some(Awaited::Cluster)));
            }
        }
    }

    fn arrive(&mut self, at: SharedPlace, time: u64) {
        let last = self.pending.entry(at).or_default();
        *last = time.max(*last);
    }

    /// When a copy is over. Copies are numbered in the order of their start.
    fn copy(&self, number: u32) -> Option<u64> {
        self.times.copies.get(number as usize).map(|copy| copy.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILLED: SharedPlace = SharedPlace { rank: 0, offset: 0 };
    const FREE: SharedPlace = SharedPlace { rank: 0, offset: 8 };

    /// One warp fills a slot twice, another one reads it: the second filling waits for the first reading.
    #[test]
    fn waits_last_until_what_they_are_for() {
        let issue = |copy| Step::Issue { copy, store: false, rank: 0, bytes: 64..128 };
        let rows = [
            (0, 10, issue(0)),
            // The reader looks before the copy is there.
            (1, 5, Step::Wait { at: FILLED, ended: false }),
            (0, 10, Step::Done { copy: 0, at: Some(FILLED) }),
            (0, 10, Step::PhaseEnd { at: FILLED, phases: 1 }),
            // What it executes in between is no work.
            (1, 45, Step::Wait { at: FILLED, ended: true }),
            (0, 12, Step::Wait { at: FREE, ended: false }),
            (1, 65, Step::Arrive { at: FREE, count: 1 }),
            (1, 65, Step::PhaseEnd { at: FREE, phases: 1 }),
            (0, 99, Step::Wait { at: FREE, ended: true }),
            (0, 100, issue(1)),
        ];
        let events = rows.into_iter().map(|(warp, at, step)| Event { warp, at, step }).collect();
        let times = Times::of(&Trace { warps: 2, events, ran: vec![103, 65], complete: true });
        let read = 10 + COPY;
        let stretch = |start, end, waits, after| Stretch { start, end, waits, after };
        assert_eq!(
            times.warps[1].stretches,
            [
                stretch(0, 5, None, None),
                stretch(5, read, Some(Awaited::Mbarrier(FILLED)), None),
                stretch(read, read + 20, None, Some(FILLED)),
            ]
        );
        assert_eq!(times.warps[1].arrivals, [(read + 20, FREE)]);
        assert_eq!(
            times.warps[0].stretches,
            [
                stretch(0, 12, None, None),
                stretch(12, read + 20, Some(Awaited::Mbarrier(FREE)), None),
                stretch(read + 20, read + 24, None, Some(FREE)),
            ]
        );
        assert_eq!(times.copies.iter().map(|c| c.start).collect::<Vec<_>>(), [10, read + 21]);
        assert_eq!(times.end(), read + 24);
    }

    #[test]
    fn warps_that_meet_go_on_together() {
        let come = |warp, at| Event { warp, at, step: Step::Come { id: 0, waits: true } };
        let met = Event { warp: 1, at: 30, step: Step::Met { rank: 0, id: 0 } };
        let events = vec![come(0, 10), come(1, 30), met];
        let times = Times::of(&Trace { warps: 2, events, ran: vec![12, 31], complete: true });
        let ends: Vec<Vec<(u64, u64, bool)>> = (times.warps.iter())
            .map(|w| w.stretches.iter().map(|s| (s.start, s.end, s.waits.is_some())).collect())
            .collect();
        assert_eq!(ends, [vec![(0, 10, false), (10, 30, true), (30, 32, false)], vec![(0, 31, false)]]);
    }
}

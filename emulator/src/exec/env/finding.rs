//! Reports of findings, with the thread and the place that they name.

use super::{Env, Halt};
use crate::report::{Finding, Kind, Location, Other, Place, Thread};
use crate::shadow::cell::Conflict;

/// Distinct findings kept.
pub(crate) const FINDINGS: usize = 64;

/// What a finding says besides kind and place.
#[derive(Default)]
pub(crate) struct Facts {
    pub lane: u32,
    pub location: Option<Location>,
    pub other: Option<(&'static str, Thread, u32)>,
    pub detail: String,
    pub fatal: bool,
}

impl Env<'_> {
    /// A lane of a warp of this cluster.
    pub fn thread_of(&self, warp: u32, lane: u32) -> Thread {
        self.thread_in(self.number, warp, lane)
    }

    /// A lane of a warp of some cluster.
    pub fn thread_in(&self, number: u64, warp: u32, lane: u32) -> Thread {
        let (rank, warp) = self.split(warp);
        Thread { cta: self.cta_at(number, rank), warp, lane }
    }

    pub fn thread(&self, lane: u32) -> Thread {
        self.thread_of(self.warp, lane)
    }

    pub fn place_of(&self, pc: u32) -> Place {
        self.cx.kernel.place(pc)
    }

    /// Records a finding; a repeated one is counted.
    #[cold]
    pub fn report(&mut self, kind: Kind, pc: u32, facts: Facts) {
        let thread = self.thread(facts.lane);
        self.report_thread(kind, pc, thread, facts);
    }

    /// A finding that stops the kernel, by an instruction and a lane.
    #[cold]
    pub fn stop<T>(&mut self, kind: Kind, (pc, lane): (u32, u32), detail: String) -> Result<T, Halt> {
        self.report(kind, pc, Facts { lane, detail, fatal: true, ..Facts::default() });
        Err(Halt)
    }

    /// As [`Env::report`], for a thread of another warp.
    #[cold]
    pub fn report_thread(&mut self, kind: Kind, pc: u32, thread: Thread, facts: Facts) {
        let key = (kind, pc, facts.other.as_ref().map_or(u32::MAX, |other| other.2));
        if let Some(at) = self.keys.iter().position(|k| *k == key) {
            self.findings[at].count += 1;
            self.findings[at].fatal |= facts.fatal;
            return;
        }
        if self.findings.len() >= FINDINGS && !facts.fatal {
            self.dropped += 1;
            return;
        }
        let other = facts.other.map(|(access, thread, pc)| Other { access, thread, place: self.place_of(pc) });
        let (place, kernel) = (self.place_of(pc), self.cx.kernel.name.clone());
        self.keys.push(key);
        self.findings.push(Finding {
            kind,
            kernel,
            place,
            thread,
            location: facts.location,
            other,
            detail: facts.detail,
            fatal: facts.fatal,
            count: 1,
        });
    }

    /// A race with an access of this CTA.
    #[cold]
    pub fn report_race(&mut self, pc: u32, lane: u32, location: Location, same_value: bool, other: Conflict) {
        let kind = if same_value { Kind::SameValueRace } else { Kind::Race };
        let thread = self.thread_of(other.warp, other.lane);
        let facts = Facts {
            lane,
            location: Some(location),
            other: Some((other.kind.name(), thread, other.pc)),
            ..Facts::default()
        };
        self.report(kind, pc, facts);
    }
}

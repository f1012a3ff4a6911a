//! What is told to a trace: see [`crate::trace`]. Nothing without one.

use std::ops::Range;

use super::Warp;
use super::env::Env;
use crate::bulk::flight::Way;
use crate::decode::op::{MbarrierFn, MbarrierOp};
use crate::lanes::{Mask, Wide, lanes};
use crate::trace::{SharedPlace, Step};

impl Env<'_> {
    fn shared_place(&self, at: u64) -> SharedPlace {
        let (rank, offset) = self.owner(at);
        SharedPlace { rank: rank as u32, offset: self.dense(offset) }
    }

    /// A byte of a block's shared memory without the room between variables before it.
    fn dense(&self, offset: u64) -> u64 {
        let spreads = &self.cx.kernel.shared_spreads;
        let behind = spreads.partition_point(|(start, _)| *start <= offset);
        offset - behind.checked_sub(1).map_or(0, |n| spreads[n].1)
    }

    /// Phases of an mbarrier may have ended.
    pub(super) fn trace_phase(&mut self, warp: u32, at: u64) {
        if self.trace.is_none() {
            return;
        }
        let place = self.shared_place(at);
        if let (Some(trace), Ok(barrier)) = (&mut self.trace, self.mbarriers.at(at)) {
            trace.phase(warp, place, barrier.phase);
        }
    }

    /// The number of a copy that a warp starts, of these bytes of the shared memory of a block.
    pub(super) fn trace_issued(&mut self, (warp, rank): (u32, u32), store: bool, bytes: &Range<u64>) -> u32 {
        if self.trace.is_none() {
            return 0;
        }
        let start = self.dense(bytes.start - u64::from(rank) * self.cx.stride());
        let bytes = start..start + (bytes.end - bytes.start);
        self.trace.as_mut().map_or(0, |trace| trace.issue(warp, (store, rank, bytes)))
    }

    /// A copy is over.
    pub(super) fn trace_copied(&mut self, index: usize) {
        if self.trace.is_none() {
            return;
        }
        let flight = self.bulk.at(index);
        let (copy, warp, mbarrier) = (flight.number, flight.issuer.warp, flight.mbarrier);
        if flight.way == Way::Product {
            return;
        }
        let at = (flight.way != Way::Out).then(|| self.shared_place(mbarrier));
        if let Some(trace) = &mut self.trace {
            trace.push(warp, Step::Done { copy, at });
        }
    }

    /// A thread waits for its groups of copies up to one.
    pub(super) fn trace_waited(&mut self, (warp, lane): (u32, u32), last: u32) {
        let Some(trace) = &mut self.trace else { return };
        let own = self.bulk.list().iter().filter(|flight| {
            flight.way == Way::Out && (flight.issuer.warp, flight.issuer.lane) == (warp, lane) && flight.group <= last
        });
        let copies: Vec<u32> = own.map(|flight| flight.number).collect();
        if !copies.is_empty() {
            trace.push(warp, Step::WaitCopies { copies });
        }
    }

    /// The warp has come to a barrier of its block.
    pub(super) fn trace_meeting(&mut self, id: usize, waits: bool) {
        let Some(trace) = &mut self.trace else { return };
        trace.push(self.warp, Step::Come { id: id as u32, waits });
        // The last arrival has begun the next phase, at which nobody has arrived.
        if self.barriers[self.rank].states()[id].expected == 0 {
            trace.push(self.warp, Step::Met { rank: self.rank as u32, id: id as u32 });
        }
    }
}

impl Warp {
    /// Lanes have executed an instruction on mbarriers; whether it is no wait that failed.
    pub(super) fn trace_mbarrier(
        &self,
        env: &mut Env<'_>,
        op: &MbarrierOp,
        (addresses, run): (&Wide, Mask),
        ended: bool,
    ) {
        let mut all: Vec<(u64, u32)> = Vec::new();
        for lane in lanes(run) {
            match all.iter_mut().find(|known| known.0 == addresses[lane]) {
                Some(known) => known.1 += 1,
                None => all.push((addresses[lane], 1)),
            }
        }
        for (address, count) in all {
            let (at, warp) = (env.shared_place(address), env.warp);
            let step = match op.f {
                MbarrierFn::Arrive { .. } | MbarrierFn::ArriveAfterCopies { .. } => Some(Step::Arrive { at, count }),
                MbarrierFn::Wait { .. } => Some(Step::Wait { at, ended }),
                MbarrierFn::Init(_) | MbarrierFn::Inval | MbarrierFn::Transact { .. } => None,
            };
            if let (Some(trace), Some(step)) = (&mut env.trace, step) {
                trace.push(warp, step);
            }
            env.trace_phase(warp, address);
        }
    }
}

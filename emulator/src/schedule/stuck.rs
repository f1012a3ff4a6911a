//! What is done when no warp can run: barriers that wait for exited threads go on, anything else is reported.

use super::cta::Cta;
use crate::exec::Wait;
use crate::exec::env::Facts;
use crate::lanes::Mask;
use crate::report::{Kind, Thread};

impl Cta<'_> {
    /// Nothing can run. Barriers that wait for threads that have exited are completed, with a finding; otherwise the
    /// CTA is stuck. Returns whether it can go on.
    pub(super) fn resolve(&mut self) -> bool {
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

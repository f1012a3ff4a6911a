//! One instruction of those that the loop of a warp does not know itself: branches, calls, memory other than loads and
//! stores, meetings of lanes, checks of registers.

use super::env::{Env, Facts, Halt};
use super::fragments::Flow;
use super::{Wait, Warp, bulk};
use crate::decode::Kernel;
use crate::decode::op::{Inst, Op, Slot};
use crate::lanes::{LANES, Mask, Wide, count, lanes, row};
use crate::report::Kind;

impl Warp {
    /// Executes one instruction, of those that the loop does not know itself, for the lanes of `run`, a non-empty part
    /// of the fragment's `mask`.
    #[inline(never)]
    pub(super) fn step(
        &mut self,
        env: &mut Env<'_>,
        inst: &Inst,
        (pc, time): (u32, u64),
        mask: Mask,
        run: Mask,
    ) -> Result<Flow, Halt> {
        match inst.op {
            Op::Branch { target, uniform } => {
                if uniform && self.parts(mask, run) {
                    let detail = format!("{} of {} lanes take it", count(run), count(mask));
                    let lane = run.trailing_zeros();
                    env.report(Kind::DivergentUniform, pc, Facts { lane, detail, ..Facts::default() });
                }
                env.counters.divergent_branches += 1;
                return Ok(Flow::Split(target, run));
            }
            Op::BranchTable { index, first, count } => {
                let which = self.narrow[index];
                if let Some(lane) = lanes(run).find(|lane| which[*lane] >= count) {
                    let detail = format!("branch table index {} of {count} targets", which[lane]);
                    env.report(Kind::Trap, pc, Facts { lane: lane as u32, detail, fatal: true, ..Facts::default() });
                    return Err(Halt);
                }
                let targets = &env.cx.kernel.targets;
                let target = |lane: usize| (targets[(first + which[lane]) as usize], 1 << lane);
                let flow = self.scattered(lanes(run).map(target), run == mask);
                env.counters.divergent_branches += u64::from(matches!(flow, Flow::Scatter));
                return Ok(flow);
            }
            Op::Call { site } => return self.call(env, pc, site, mask, run),
            Op::Alloca { d, size, align } => self.alloca(env, pc, d, size, align, run)?,
            Op::StackTop { register, restore } => self.stack_top(register, restore, run),
            Op::Return => return Ok(self.return_from(env, mask, run)),
            Op::Exit => return Ok(Flow::Exit(run)),
            Op::Trap => {
                let lane = run.trailing_zeros();
                env.report(Kind::Trap, pc, Facts { lane, fatal: true, ..Facts::default() });
                return Err(Halt);
            }
            Op::Nop => {}
            Op::AwaitGrids => self.behind |= run,
            Op::Yield => return Ok(Flow::Yield),
            Op::Atomic(atomic) => self.atomic(env, pc, &atomic, run)?,
            Op::ThreadCopy(ref copy) => self.copy_async(env, pc, copy, run)?,
            Op::CommitCopies => env.copies.commit(env.warp, run),
            Op::WaitCopies { keep } => self.wait_copies(env, run, keep)?,
            Op::Bulk { site, data, count } => self.bulk(env, pc, (site, data, count), run)?,
            Op::CommitBulk => bulk::commit(env, run),
            Op::WaitBulk { keep, read } => bulk::wait(env, run, keep, read)?,
            Op::ProxyFence { shared, global } => bulk::proxy_fence(env, shared, global, run),
            Op::Mbarrier(ref op) => return self.mbarrier(env, pc, op, run),
            Op::Mapa(ref op) => self.mapa(env, pc, op, run)?,
            Op::ClusterBarrier(op) => return self.cluster_barrier(env, pc, op, run),
            Op::SetRegisters { count, inc } => return self.set_registers(env, pc, (count, inc), run),
            Op::MatrixTouch { first, reads, writes, renames } => {
                self.touch_matrix(env, pc, (first, reads, writes), renames);
            }
            Op::Mma(_)
            | Op::MatrixAccess(_)
            | Op::MatrixTranspose { .. }
            | Op::FragmentAccess(_)
            | Op::Wgmma { .. }
            | Op::WgmmaFence
            | Op::WgmmaCommit
            | Op::WgmmaWait { .. } => {
                // All lanes of the warp, at one instruction.
                if run != self.live {
                    return Ok(Flow::Park(run, Wait::Warp));
                }
                if !self.whole_warp(env, pc) {
                    return Err(Halt);
                }
                self.matrix(env, inst, pc)?;
            }
            Op::Collective { op, members } => {
                if run == self.live {
                    self.turns.clear();
                }
                return self.collective(env, pc, op, members, run);
            }
            Op::Fence(fence) => env.fence(pc, fence, (run, mask, self.live)),
            Op::CheckInit { register } => {
                let missing = run & !self.written[register as usize];
                if missing != 0 {
                    self.used_undefined(env, pc, register, missing);
                }
            }
            Op::MarkInit { register } => self.written[register as usize] |= run,
            Op::FlowInit { register, first, count, any } => self.flow_init(env, register, (first, count), any, run),
            Op::LoadedInit { register, element } => self.loaded_init(register, element, run),
            Op::StoredInit { first, count } => self.stored_init(env, (first, count), run),
            Op::FlowSelect { register, p, a, b } => self.flow_select(register, p, (a, b), run),
            Op::Clock { d, which } => {
                let value = which.of(time);
                lanes(run).for_each(|lane| self.put(d, lane, value));
            }
            Op::Pack { d, parts, count, bits } => self.pack(env.cx.kernel, d, (parts, count, bits), run),
            Op::Unpack { a, parts, count, bits } => self.unpack(env.cx.kernel, a, (parts, count, bits), run),
            Op::Activemask { d } => crate::lanes::blend(&mut self.narrow[d], &[run; LANES], run),
            _ => unreachable!("executed by the loop"),
        }
        Ok(Flow::Next)
    }

    /// Whether all 32 lanes are there, as matrix instructions need; a finding otherwise.
    fn whole_warp(&self, env: &mut Env<'_>, pc: u32) -> bool {
        let missing = !self.live;
        if missing == 0 {
            return true;
        }
        let why = if self.exist & missing != 0 { "have exited" } else { "do not exist in this block" };
        let detail = format!("the instruction takes all 32 lanes of the warp; lanes {missing:#010x} {why}");
        let lane = self.live.trailing_zeros();
        env.report(Kind::CollectiveMisuse, pc, Facts { lane, detail, fatal: true, ..Facts::default() });
        false
    }

    fn pack(&mut self, kernel: &Kernel, d: Slot, (first, count, bits): (u32, u8, u8), mask: Mask) {
        let mut out: Wide = [0; LANES];
        for part in 0..u32::from(count) {
            let Some(slot) = kernel.data[(first + part) as usize] else { continue };
            let row = self.row(slot);
            let ones = u64::MAX >> (64 - u32::from(bits));
            for lane in 0..LANES {
                out[lane] |= (row[lane] & ones) << (part * u32::from(bits));
            }
        }
        self.set_row(d, &out, mask);
    }

    fn unpack(&mut self, kernel: &Kernel, a: Slot, (first, count, bits): (u32, u8, u8), mask: Mask) {
        let whole = self.row(a);
        for part in 0..u32::from(count) {
            let Some(slot) = kernel.data[(first + part) as usize] else { continue };
            let ones = u64::MAX >> (64 - u32::from(bits));
            let row = row!(lane => whole[lane] >> (part * u32::from(bits)) & ones);
            self.set_row(slot, &row, mask);
        }
    }
}

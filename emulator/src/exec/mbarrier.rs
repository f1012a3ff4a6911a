//! Instructions on mbarriers: addresses, order, findings. What an mbarrier is, is in `mbarrier`.

use super::Warp;
use super::access::{check_small, not_shared, space_of, window};
use super::cluster::cluster_places;
use super::env::{Env, Facts, Halt};
use super::fragments::Flow;
use super::request::{Request, Shape, Touch};
use crate::bulk::flight::Issuer;
use crate::decode::op::{MbarrierFn, MbarrierOp, Slot, Space, Strength};
use crate::lanes::{Mask, lanes};
use crate::mbarrier::{Arrival, Misuse};
use crate::report::Kind;

/// Waits of one warp that fail before the CTA counts as stuck, if no mbarrier has changed and every warp that could run
/// failed to wait, too. Warps that compute, or meet at other barriers, may need any number of instructions before they
/// arrive: what never ends there uses up the budget.
const FRUITLESS: u32 = 1 << 12;

impl Warp {
    /// An instruction on an mbarrier by the lanes of `run`.
    pub(super) fn mbarrier(&mut self, env: &mut Env<'_>, pc: u32, op: &MbarrierOp, run: Mask) -> Result<Flow, Halt> {
        let mut addresses = self.addresses(&op.address);
        if op.generic {
            for lane in lanes(run) {
                let space = space_of(addresses[lane]);
                if !matches!(space, Space::Shared | Space::Cluster) {
                    addresses[lane] = addresses[lane].wrapping_sub(window(space));
                    return not_shared(env, pc, lane as u32, space, &addresses).map(|()| Flow::Next);
                }
                addresses[lane] -= window(Space::Shared);
            }
        }
        let init = matches!(op.f, MbarrierFn::Init(_));
        let shape = Shape {
            pc,
            bytes: 8,
            count: 1,
            // Nobody looks at the bytes of an object.
            touch: if init { Touch::Store } else { Touch::Exchange },
            strength: if init { Strength::Weak } else { Strength::Strong { wide: false } },
        };
        let request = Request::new(shape, None, &addresses, run);
        if env.cx.ctas() == 1 && !op.cluster {
            check_small(env, &request, Space::Shared, u64::from(env.cx.shared_bytes))?;
        } else {
            addresses = cluster_places(env, &request, !op.cluster)?;
        }
        if let MbarrierFn::ArriveAfterCopies { .. } = op.f {
            self.wait_copies(env, run, None)?;
        }
        let mut waited = false;
        let mut released = false;
        // A `try_wait` may fail for no reason: here for all lanes of the instruction or for none. The manual promises
        // nothing of that, but Triton relies on it: it closes its loops around `try_wait` by `bra.uni`, where lanes
        // that part would be a finding.
        let in_vain = matches!(op.f, MbarrierFn::Wait { spurious: true, .. }) && env.draw() & 7 == 0;
        // Who polls is seen once: what comes later meets the record, and nothing that came before is new.
        let first = addresses[run.trailing_zeros() as usize];
        let alike = matches!(op.f, MbarrierFn::Wait { .. }) && lanes(run).all(|lane| addresses[lane] == first);
        let poll = (first, pc, run, env.clocks.epoch(env.warp as usize));
        let seen = alike && self.polled == Some(poll);
        self.polled = alike.then_some(poll);
        for lane in lanes(run) {
            let at = addresses[lane];
            // Only init writes the object; everything else is atomic. Its bytes are nobody's to read.
            if !init && written(env, at) && env.mbarriers.at(at).is_ok() {
                let detail = "an ordinary store has written over the mbarrier".to_owned();
                return env.stop(Kind::BarrierMisuse, (pc, lane as u32), detail);
            }
            if !seen {
                self.check_shared_lane(env, shape, lane, at);
            }
            hide(env, at);
            let result = self.mbarrier_lane(env, (op, pc), (lane, in_vain), at, &mut released);
            match result {
                Ok(failed) => waited |= failed,
                Err(why) => {
                    let detail = match env.mbarriers.at(at) {
                        Ok(barrier) => format!("{why} ({})", barrier.describe()),
                        Err(_) => why.to_string(),
                    };
                    return env.stop(Kind::BarrierMisuse, (pc, lane as u32), detail);
                }
            }
        }
        if env.trace.is_some() {
            self.trace_mbarrier(env, op, (&addresses, run), !waited);
        }
        if !waited {
            return Ok(Flow::Next);
        }
        let fruitless = env.mbarriers.failed(env.warp as usize);
        if super::bulk::needed(env, fruitless)? {
            return Ok(Flow::Yield);
        }
        if fruitless > FRUITLESS && !env.cx.kernel.communicates {
            let lane = run.trailing_zeros();
            let objects: Vec<String> = env
                .mbarriers
                .iter()
                .map(|(at, barrier)| format!("mbarrier at {}: {}", env.called(*at), barrier.describe()))
                .collect();
            let at = addresses[lane as usize];
            let mut detail = format!("waits for the mbarrier at {}, and nothing changes any more", env.called(at));
            for line in objects.iter().take(16) {
                detail.push_str("\n  ");
                detail.push_str(line);
            }
            env.report(Kind::Deadlock, pc, Facts { lane, detail, fatal: true, ..Facts::default() });
            return Err(Halt);
        }
        Ok(Flow::Yield)
    }

    /// One lane's part; whether it is a wait that failed, as one that is `in_vain` does.
    fn mbarrier_lane(
        &mut self,
        env: &mut Env<'_>,
        (op, pc): (&MbarrierOp, u32),
        (lane, in_vain): (usize, bool),
        at: u64,
        released: &mut bool,
    ) -> Result<bool, Misuse> {
        let narrow = |warp: &Self, slot: u32| warp.get(Slot::Narrow(slot), lane) as u32;
        match op.f {
            MbarrierFn::Init(count) => env.mbarriers.init(at, narrow(self, count))?,
            MbarrierFn::Inval => env.mbarriers.invalidate(at)?,
            MbarrierFn::Transact { bytes, complete } => {
                let bytes = i64::from(narrow(self, bytes));
                let issuer = Issuer { pc, warp: env.warp, lane: lane as u32 };
                let barrier = env.mbarriers.at(at)?;
                barrier.transact(if complete { -bytes } else { bytes })?;
                barrier.moved_by = Some(issuer);
                env.mbarriers.progress += 1;
            }
            MbarrierFn::Arrive { d, count, expect, drop, no_complete, release } => {
                let arrival = Arrival {
                    count: count.map_or(1, |slot| narrow(self, slot)),
                    bytes: expect.map_or(0, |slot| narrow(self, slot)),
                    drop,
                    no_complete,
                };
                let warp = env.warp as usize;
                if expect.is_some() {
                    env.mbarriers.at(at)?.moved_by = Some(Issuer { pc, warp: env.warp, lane: lane as u32 });
                }
                let state = env.mbarriers.at(at)?.arrive(arrival, release.then_some((&mut env.clocks, warp)))?;
                *released |= release;
                env.mbarriers.progress += 1;
                if let Some(d) = d {
                    self.put(Slot::Wide(d), lane, state);
                }
            }
            MbarrierFn::ArriveAfterCopies { noinc } => {
                let warp = env.warp as usize;
                let barrier = env.mbarriers.at(at)?;
                if !noinc {
                    // One more arrival is pending from the instruction to the end of the copies, which is now.
                    barrier.pending += 1;
                }
                let arrival = Arrival { count: 1, ..Arrival::default() };
                barrier.arrive(arrival, Some((&mut env.clocks, warp)))?;
                env.mbarriers.progress += 1;
            }
            MbarrierFn::Wait { d, phase, acquire, .. } => {
                let value = self.get(phase, lane);
                let barrier = env.mbarriers.at(at)?;
                let ended = match phase {
                    Slot::Wide(_) => barrier.ended(value)?,
                    _ => barrier.ended_for(env.warp << 5 | lane as u32, value as u32, &env.clocks)?,
                };
                // A wait that fails for no reason orders nothing.
                let ended = ended && !in_vain;
                if ended && acquire {
                    let barrier = env.mbarriers.at(at)?;
                    env.clocks.acquire(env.warp as usize, barrier.completed());
                    if let Some(agent) = barrier.agent {
                        env.clocks.learn(env.warp as usize, agent, barrier.phase);
                    }
                }
                self.put(Slot::Pred(d), lane, u64::from(ended));
                return Ok(!ended);
            }
        }
        Ok(false)
    }
}

/// Whether an ordinary store has written to the object's bytes since the last operation on it.
fn written(env: &Env<'_>, at: u64) -> bool {
    let word = at as usize / 4;
    env.shared_initialised[word] != 0 || env.shared_initialised[word + 1] != 0
}

/// The object's bytes count as uninitialised: reading them is an error.
pub(super) fn hide(env: &mut Env<'_>, at: u64) {
    let word = at as usize / 4;
    env.shared_initialised[word] = 0;
    env.shared_initialised[word + 1] = 0;
}

//! Where lanes meet: warp operations with a member mask, and the arrival at CTA barriers.

use super::Warp;
use super::env::{Env, Facts, Halt};
use super::fragments::{Flow, Wait};
use crate::decode::op::{Barrier, BarrierKind, Collective, Redux, Shuffle, Vote};
use crate::lanes::{BITS, LANES, Mask, Row, agree, blend, count, lanes};
use crate::report::Kind;
use crate::sync::{Arrival, BARRIERS, Misuse, Waiter};

impl Warp {
    /// A warp operation by the lanes of `run`.
    pub(super) fn collective(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        op: Collective,
        members: u32,
        run: Mask,
    ) -> Result<Flow, Halt> {
        let masks = &self.narrow[members];
        let need = masks[run.trailing_zeros() as usize];
        // The usual case: one mask that names the lanes that are here.
        if run & !need == 0 && need & self.live & !run == 0 && agree(masks, run) {
            self.meet(env, pc, op, run)?;
            return Ok(Flow::Next);
        }
        let masks = *masks;
        if let Some(lane) = lanes(run).find(|lane| masks[*lane] >> lane & 1 == 0) {
            let detail = format!(
                "the member mask {:#010x} does not contain the lane that executes the instruction",
                masks[lane]
            );
            env.report(
                Kind::CollectiveMisuse,
                pc,
                Facts { lane: lane as u32, detail, fatal: true, ..Facts::default() },
            );
            return Err(Halt);
        }
        // Lanes with different member masks form different groups: those that are complete go on, each of the others
        // waits for its own.
        self.scatter.clear();
        let mut rest = run;
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let need = masks[first];
            let group = lanes(rest).filter(|lane| masks[*lane] == need).fold(0, |mask, lane| mask | 1 << lane);
            if let Some(lane) = lanes(run & !group).find(|lane| masks[*lane] & need != 0) {
                let detail = format!(
                    "lanes {first} and {lane} name overlapping member masks {need:#010x} and {:#010x}",
                    masks[lane]
                );
                env.report(
                    Kind::CollectiveMisuse,
                    pc,
                    Facts { lane: lane as u32, detail, fatal: true, ..Facts::default() },
                );
                return Err(Halt);
            }
            if need & self.live & !group == 0 {
                self.meet(env, pc, op, group)?;
            } else {
                self.scatter.push((need, group));
            }
            rest &= !group;
        }
        Ok(match self.scatter[..] {
            [] => Flow::Next,
            [(need, group)] => Flow::Park(group, Wait::Lanes(need)),
            _ => Flow::ParkGroups,
        })
    }

    /// A group of lanes has come to a `bar.warp.sync`, at one instruction or several.
    pub(super) fn meet_at_barrier(&self, env: &mut Env<'_>, group: Mask) {
        let warp = env.warp as usize;
        if group == self.live { env.clocks.next_epoch(warp) } else { env.clocks.meet(warp, group) }
    }

    /// The operation, once all lanes of a group are there.
    fn meet(&mut self, env: &mut Env<'_>, pc: u32, op: Collective, group: Mask) -> Result<(), Halt> {
        let flag = |yes: bool| if yes { Mask::MAX } else { 0 };
        match op {
            Collective::Barrier => self.meet_at_barrier(env, group),
            Collective::Shfl { mode, d, p, a, b, c } => self.shuffle(env, pc, mode, (d, p), (a, b, c), group)?,
            Collective::Vote(vote, source) => {
                let trues = self.pred(source) & group;
                match vote {
                    Vote::All(d) => self.set_pred(d, flag(trues == group), group),
                    Vote::Any(d) => self.set_pred(d, flag(trues != 0), group),
                    Vote::Uni(d) => self.set_pred(d, flag(trues == group || trues == 0), group),
                    Vote::Ballot(d) => blend(&mut self.narrow[d], &[trues; LANES], group),
                }
            }
            Collective::MatchAny { d, a } => {
                // The result may be in the register of the operand.
                let mut equal: Row = [0; LANES];
                for lane in lanes(group) {
                    let value = self.get(a, lane);
                    let same = |other: &usize| self.get(a, *other) == value;
                    equal[lane] = lanes(group).filter(same).fold(0, |mask, other| mask | BITS[other]);
                }
                blend(&mut self.narrow[d], &equal, group);
            }
            Collective::MatchAll { d, p, a } => {
                let value = self.get(a, group.trailing_zeros() as usize);
                let all = lanes(group).all(|lane| self.get(a, lane) == value);
                if let Some(d) = d {
                    blend(&mut self.narrow[d], &[if all { group } else { 0 }; LANES], group);
                }
                if let Some(p) = p {
                    self.set_pred(p, flag(all), group);
                }
            }
            Collective::Redux { op, d, a } => {
                let row = self.narrow[a];
                let values = lanes(group).map(|lane| row[lane]);
                let result = values.reduce(|x, y| match op {
                    Redux::Add => x.wrapping_add(y),
                    Redux::MinU => x.min(y),
                    Redux::MinS => (x as i32).min(y as i32) as u32,
                    Redux::MaxU => x.max(y),
                    Redux::MaxS => (x as i32).max(y as i32) as u32,
                    Redux::And => x & y,
                    Redux::Or => x | y,
                    Redux::Xor => x ^ y,
                });
                blend(&mut self.narrow[d], &[result.unwrap_or(0); LANES], group);
            }
            Collective::Elect { d, p } => {
                let leader = group.trailing_zeros();
                if let Some(d) = d {
                    blend(&mut self.narrow[d], &[leader; LANES], group);
                }
                self.set_pred(p, 1 << leader, group);
            }
        }
        Ok(())
    }

    /// `shfl.sync` (PTX manual 9.7.9.6): `c` holds the clamp in bits 0–4 and the segment mask in bits 8–12.
    fn shuffle(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        mode: Shuffle,
        (d, p): (u32, Option<u32>),
        (a, b, c): (u32, u32, u32),
        group: Mask,
    ) -> Result<(), Halt> {
        let (values, amounts, controls) = (&self.narrow[a], &self.narrow[b], &self.narrow[c]);
        // The lane that each lane asks for, and whether there is one.
        let (mut from, mut valid): (Row, Row) = ([0; LANES], [0; LANES]);
        // One loop for each mode, so that it becomes vector code.
        macro_rules! go {
            (|$me:ident, $amount:ident, $least:ident, $segment:ident, $most:ident| $source:expr, $inside:ident) => {
                for lane in 0..LANES {
                    let ($me, $amount, control) = (lane as i32, (amounts[lane] & 31) as i32, controls[lane] as i32);
                    let (clamp, $segment) = (control & 31, control >> 8 & 31);
                    let $least = $me & $segment;
                    let $most = $least | (clamp & !$segment);
                    let source = $source;
                    let inside = source.$inside(&$most);
                    from[lane] = if inside { source as u32 } else { lane as u32 };
                    valid[lane] = if inside { BITS[lane] } else { 0 };
                }
            };
        }
        match mode {
            Shuffle::Up => go!(|me, amount, _least, segment, most| me - amount, ge),
            Shuffle::Down => go!(|me, amount, _least, segment, most| me + amount, le),
            Shuffle::Bfly => go!(|me, amount, _least, segment, most| me ^ amount, le),
            Shuffle::Idx => go!(|me, amount, least, segment, most| least | (amount & !segment), le),
        }
        let mut out: Row = [0; LANES];
        for lane in 0..LANES {
            out[lane] = values[from[lane] as usize & 31];
        }
        let in_range = valid.iter().fold(0, |mask, bit| mask | bit);
        if group != Mask::MAX {
            for lane in lanes(group).filter(|lane| group >> from[*lane] & 1 == 0) {
                let from = from[lane];
                let why = if self.live >> from & 1 == 1 {
                    "is not in the member mask"
                } else if self.exist >> from & 1 == 1 {
                    "has exited"
                } else {
                    "does not exist in this block"
                };
                let detail = format!("the value comes from lane {from}, which {why}");
                env.report(Kind::CollectiveMisuse, pc, Facts { lane: lane as u32, detail, ..Facts::default() });
            }
        }
        blend(&mut self.narrow[d], &out, group);
        if let Some(p) = p {
            self.set_pred(p, in_range, group);
        }
        Ok(())
    }

    /// A CTA barrier by the lanes of `run`.
    pub(super) fn barrier(&mut self, env: &mut Env<'_>, pc: u32, barrier: &Barrier, run: Mask) -> Result<Flow, Halt> {
        if barrier.aligned && run != self.live {
            return Ok(Flow::Park(run, Wait::Warp));
        }
        let lane = run.trailing_zeros();
        let misuse = |env: &mut Env<'_>, detail: String| {
            env.report(Kind::BarrierMisuse, pc, Facts { lane, detail, fatal: true, ..Facts::default() });
            Err(Halt)
        };
        let ids = &self.narrow[barrier.id];
        let id = barrier.known.unwrap_or(ids[lane as usize]);
        if barrier.known.is_none() && !agree(ids, run) {
            return misuse(env, "lanes name different barriers".to_owned());
        }
        if id as usize >= BARRIERS {
            return misuse(env, format!("there is no barrier {id}; a block has {BARRIERS}"));
        }
        let everyone = env.cx.warps() as u32 * 32;
        let expected = match barrier.threads {
            None => everyone,
            Some(slot) => {
                let counts = &self.narrow[slot];
                let count = counts[lane as usize];
                if !agree(counts, run) {
                    return misuse(env, "lanes name different thread counts".to_owned());
                }
                if count == 0 || !count.is_multiple_of(32) {
                    return misuse(
                        env,
                        format!("barrier {id} is given {count} threads, which is not a positive multiple of 32"),
                    );
                }
                count
            }
        };
        if let (None, Some(lane)) = (barrier.threads, lanes(self.exist & !self.live).next()) {
            let detail = format!(
                "lane {lane} of warp {} has exited; barrier {id} waits for the whole block",
                env.split(env.warp).1
            );
            env.report(Kind::ExitBeforeBarrier, pc, Facts { lane: lane as u32, detail, ..Facts::default() });
        }
        let (waits, trues) = match barrier.kind {
            BarrierKind::Sync => (true, None),
            BarrierKind::Arrive => (false, None),
            BarrierKind::Popc(_, p) | BarrierKind::All(_, p) | BarrierKind::Any(_, p) => (true, Some(self.pred(p))),
        };
        // A warp counts as 32 threads however many of them there are; the warp's top lane stands for those that are
        // missing.
        let gone = !self.live;
        let top = 31 - self.live.leading_zeros();
        let threads = count(run) + if run >> top & 1 == 1 { count(gone) } else { 0 };
        let waiter = Waiter { warp: env.warp, mask: run, pc, votes: trues.is_some() };
        let arrival =
            Arrival { id: id as usize, waiter, threads, expected, everyone: barrier.threads.is_none(), waits, trues };
        if waits {
            env.counters.barriers += 1;
        }
        match env.barriers[env.rank].arrive(&mut env.clocks, arrival) {
            Ok(()) => {}
            Err(Misuse::Counts(before, now)) => {
                return misuse(env, format!("barrier {id} is in use for {before} threads and named with {now}"));
            }
            Err(Misuse::TooMany(arrived, expected)) => {
                return misuse(env, format!("{arrived} threads arrive at barrier {id}, which takes {expected}"));
            }
        }
        env.trace_meeting(id as usize, waits);
        if waits { Ok(Flow::Barrier(run)) } else { Ok(Flow::Next) }
    }
}

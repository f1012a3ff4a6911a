//! Fragments: the lanes of a warp, grouped by the instruction they are at.
//!
//! The fragment with the lowest instruction runs; fragments at the same instruction merge. A fragment that waits for
//! other lanes is parked, and so is one that waits at a CTA barrier. There is no reconvergence stack: a lane that spins
//! while its peers must come first would deadlock falsely.

use super::Warp;
use super::env::Env;
use crate::decode::Kernel;
use crate::decode::op::{BarrierKind, Collective, Inst, Op};
use crate::lanes::{LANES, Mask, blend};
use crate::sync::Wake;

/// Instructions that a divergent warp executes before a fragment at a higher instruction gets a turn, so that spinning
/// lanes cannot starve the others.
pub(super) const TURN: u32 = 1024;
/// Length of such a turn in instructions.
const FAVOUR: u32 = 256;

/// What a fragment waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Nothing: it can run.
    None,
    /// All live lanes of the warp to come to its instruction.
    Warp,
    /// These lanes (those alive) to come to its instruction, or to another `bar.warp.sync`.
    Lanes(Mask),
    /// A CTA barrier; its instruction is the next one.
    Barrier,
}

/// Lanes at one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    pub pc: u32,
    pub mask: Mask,
    pub wait: Wait,
}

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flow {
    Next,
    Jump(u32),
    /// Lanes jump, the others go on.
    Split(u32, Mask),
    /// Lanes jump to the several places of the warp's list, the others go on.
    Scatter,
    /// Lanes exit.
    Exit(Mask),
    /// These lanes stay at the instruction and wait; the others go on.
    Park(Mask, Wait),
    /// The groups of lanes in the warp's list stay at the instruction, each waiting for the lanes of its own mask; the
    /// others go on.
    ParkGroups,
    /// These lanes wait after the instruction for a CTA barrier.
    Barrier(Mask),
    /// The warp gives way.
    Yield,
}

impl Warp {
    /// Whether something can run.
    pub fn is_runnable(&self) -> bool {
        self.fragments.iter().any(|f| self.ready(f))
    }

    #[inline(always)]
    pub(super) fn ready(&self, fragment: &Fragment) -> bool {
        fragment.wait == Wait::None || self.waits_no_more(fragment)
    }

    fn waits_no_more(&self, fragment: &Fragment) -> bool {
        match fragment.wait {
            Wait::None => true,
            Wait::Warp => fragment.mask == self.live,
            Wait::Lanes(need) => need & self.live & !fragment.mask == 0,
            Wait::Barrier => false,
        }
    }

    /// Goes on after a barrier at which the warp waited as a whole.
    #[inline(always)]
    pub fn wake_whole(&mut self) {
        for fragment in &mut self.fragments {
            fragment.wait = Wait::None;
        }
    }

    /// Takes up what a barrier has told the warp.
    pub fn wake(&mut self, kernel: &Kernel, wake: Wake) {
        for fragment in &mut self.fragments {
            if fragment.wait == Wait::Barrier && fragment.mask == wake.mask {
                fragment.wait = Wait::None;
            }
        }
        let Op::Barrier(barrier) = kernel.code[wake.pc as usize].op else { return };
        match barrier.kind {
            BarrierKind::Sync | BarrierKind::Arrive => {}
            BarrierKind::Popc(d, _) => blend(&mut self.narrow[d], &[wake.count; LANES], wake.mask),
            BarrierKind::All(d, _) => self.set_pred(d, if wake.all { Mask::MAX } else { 0 }, wake.mask),
            BarrierKind::Any(d, _) => self.set_pred(d, if wake.count > 0 { Mask::MAX } else { 0 }, wake.mask),
        }
    }

    /// `bar.warp.sync` at different instructions: releases fragments with one member mask that together hold its lanes
    /// (PTX manual 9.7.13.3: all its threads have executed the barrier with the same member mask).
    /// They meet there as at one instruction: what each lane did before is ordered before what all of them do next.
    fn release_warp_barriers(&mut self, env: &mut Env<'_>, code: &[Inst]) -> bool {
        let need = |f: &Fragment| match (f.wait, code[f.pc as usize].op) {
            (Wait::Lanes(need), Op::Collective { op: Collective::Barrier, .. }) => Some(need),
            _ => None,
        };
        // The lanes that wait with a mask, if they are all that it names.
        let complete = |f: &Fragment| {
            let mask = need(f)?;
            let same = self.fragments.iter().filter(|other| need(other) == Some(mask));
            let there = same.fold(0, |lanes, other| lanes | other.mask);
            (mask & self.live & !there == 0).then_some((mask, there))
        };
        let released: Vec<(usize, (Mask, Mask))> =
            (0..self.fragments.len()).filter_map(|index| Some((index, complete(&self.fragments[index])?))).collect();
        let mut met: Vec<Mask> = Vec::new();
        for (index, (mask, there)) in &released {
            self.fragments[*index].pc += 1;
            self.fragments[*index].wait = Wait::None;
            if !met.contains(mask) {
                met.push(*mask);
                self.meet_at_barrier(env, *there);
            }
        }
        !released.is_empty()
    }

    /// The fragment to run: the ready one with the lowest instruction, or after a turn, or when one has waited in vain,
    /// another one. The others take turns by instruction, so that of several that spin none keeps the rest from
    /// running.
    pub(super) fn choose(&mut self, env: &mut Env<'_>, code: &[Inst]) -> Option<usize> {
        let yielded = self.yielded.take();
        if let Some(at) = yielded.filter(|_| self.turn > 0) {
            let others = || self.fragments.iter().enumerate().filter(|(_, f)| f.pc != at && self.ready(f));
            let next = others().filter(|(_, f)| f.pc > self.favoured).min_by_key(|(_, f)| f.pc);
            if let Some((index, next)) = next.or_else(|| others().min_by_key(|(_, f)| f.pc)) {
                let Fragment { pc, mask, .. } = *next;
                self.favoured = pc;
                self.favour = FAVOUR;
                self.had_turn(mask);
                return Some(index);
            }
        }
        let mut after = None;
        if self.turn == 0 {
            // Otherwise lanes that spin would keep those from meeting that they wait for.
            self.release_warp_barriers(env, code);
            let ready = || self.fragments.iter().filter(|f| self.ready(f)).map(|f| f.pc);
            let lowest = ready().min();
            let last = lowest.map(|lowest| lowest.max(self.favoured));
            after = if ready().any(|pc| Some(pc) > last) { last } else { lowest };
            self.turn = TURN;
            self.favour = FAVOUR;
        }
        loop {
            let ready = self.fragments.iter().enumerate().filter(|(_, f)| self.ready(f));
            let lowest = ready.clone().min_by_key(|(_, f)| f.pc).map(|(i, _)| i);
            let next = after.and_then(|pc| ready.filter(|(_, f)| f.pc > pc).min_by_key(|(_, f)| f.pc).map(|(i, _)| i));
            if let Some(index) = next.or(lowest) {
                if next.is_some() {
                    self.favoured = self.fragments[index].pc;
                    self.had_turn(self.fragments[index].mask);
                }
                return Some(index);
            }
            if !self.release_warp_barriers(env, code) {
                return None;
            }
        }
    }

    /// Some lanes go on before others.
    fn had_turn(&mut self, lanes: Mask) {
        if self.turns.is_empty() {
            self.turns.push(Mask::MAX);
        }
        for at in 0..self.turns.len() {
            let (own, rest) = (self.turns[at] & lanes, self.turns[at] & !lanes);
            if own != 0 && rest != 0 {
                self.turns[at] = own;
                self.turns.push(rest);
            }
        }
    }

    /// Whether lanes that no turn has taken apart part where only those of `run` go one way.
    pub(super) fn parts(&self, mask: Mask, run: Mask) -> bool {
        let all = [Mask::MAX];
        let classes = if self.turns.is_empty() { &all[..] } else { &self.turns };
        classes.iter().any(|class| class & run != 0 && class & mask & !run != 0)
    }

    /// Merges fragments at the instruction of fragment `index` into it; returns its new index.
    pub(super) fn merge(&mut self, index: usize) -> usize {
        let Fragment { pc, mut mask, .. } = self.fragments[index];
        let mut at = index;
        let mut other = 0;
        while other < self.fragments.len() {
            let f = self.fragments[other];
            if other != at && f.pc == pc && f.wait != Wait::Barrier {
                mask |= f.mask;
                self.fragments.swap_remove(other);
                if at == self.fragments.len() {
                    at = other;
                }
            } else {
                other += 1;
            }
        }
        self.fragments[at].mask = mask;
        at
    }

    /// Where control goes when lanes go on at instructions of their own; `all` says that they are the whole fragment.
    pub(super) fn scattered(&mut self, places: impl Iterator<Item = (u32, Mask)>, all: bool) -> Flow {
        self.scatter.clear();
        for (pc, lanes) in places {
            match self.scatter.iter_mut().find(|part| part.0 == pc) {
                Some(part) => part.1 |= lanes,
                None => self.scatter.push((pc, lanes)),
            }
        }
        match self.scatter[..] {
            [(pc, _)] if all => Flow::Jump(pc),
            _ => Flow::Scatter,
        }
    }

    /// Applies a change of the fragment list.
    pub(super) fn leave(&mut self, index: usize, run: Mask, flow: Flow) {
        let Fragment { pc, mask, .. } = self.fragments[index];
        let rest = mask & !run;
        // The usual cases: all lanes of the fragment take the same way.
        match flow {
            Flow::Exit(gone) if gone == mask => {
                if self.fragments.len() == 1 {
                    self.fragments.clear();
                } else {
                    self.fragments.swap_remove(index);
                }
                self.live &= !gone;
                return;
            }
            Flow::Barrier(lanes) if lanes == mask => {
                if mask == self.live {
                    self.turns.clear();
                }
                self.fragments[index] = Fragment { pc: pc + 1, mask, wait: Wait::Barrier };
                return;
            }
            _ => {}
        }
        let mut push = |pc: u32, mask: Mask, wait: Wait| {
            if mask != 0 {
                self.fragments.push(Fragment { pc, mask, wait });
            }
        };
        match flow {
            Flow::Next | Flow::Jump(_) => unreachable!("handled in the loop"),
            Flow::Split(target, taken) => {
                push(target, taken, Wait::None);
                push(pc + 1, mask & !taken, Wait::None);
            }
            Flow::Scatter => {
                for (target, lanes) in self.scatter.drain(..) {
                    push(target, lanes, Wait::None);
                }
                push(pc + 1, rest, Wait::None);
            }
            Flow::Exit(gone) => {
                push(pc + 1, mask & !gone, Wait::None);
                self.live &= !gone;
            }
            Flow::ParkGroups => {
                let mut stay = 0;
                for (need, lanes) in self.scatter.drain(..) {
                    push(pc, lanes, Wait::Lanes(need));
                    stay |= lanes;
                }
                push(pc + 1, mask & !stay, Wait::None);
            }
            Flow::Park(lanes, wait) => {
                push(pc, lanes, wait);
                push(pc + 1, mask & !lanes, Wait::None);
            }
            Flow::Barrier(lanes) => {
                push(pc + 1, lanes, Wait::Barrier);
                push(pc + 1, mask & !lanes, Wait::None);
            }
            Flow::Yield => push(pc + 1, mask, Wait::None),
        }
        self.fragments.swap_remove(index);
        // Fragments parked at one instruction wait together.
        let mut at = 0;
        while at < self.fragments.len() {
            if matches!(self.fragments[at].wait, Wait::Warp | Wait::Lanes(_)) {
                let wait = self.fragments[at].wait;
                let same = |f: &Fragment| f.pc == self.fragments[at].pc && f.wait == wait;
                let together = self.fragments.iter().filter(|f| same(f)).fold(0, |m, f| m | f.mask);
                let pc = self.fragments[at].pc;
                if together != self.fragments[at].mask {
                    self.fragments.retain(|f| !(f.pc == pc && f.wait == wait));
                    self.fragments.push(Fragment { pc, mask: together, wait });
                    at = 0;
                    continue;
                }
            }
            at += 1;
        }
    }
}

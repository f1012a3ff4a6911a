//! Execution of a warp: its registers, and the loop over decoded instructions. What instructions compute is in `alu`,
//! requests to memory in `request` and `access`, meetings of lanes in `collective`, and what the loop leaves to one
//! function in `step`.
//!
//! A warp is a list of *fragments* (instruction, lanes): see `fragments`.
//!
//! **The loop.** It is compiled once. What computes rows and what moves them between registers and memory is compiled
//! for the host's baseline and for AVX2, and called through a table (`host`). At decode time every instruction gets
//! its number in that table, and the length of the stretch of instructions that it begins in which nothing but
//! registers changes: the loop executes a stretch without a look at guards, fragments or budget. The operations that
//! kernels execute most have functions of their own (`quick`), which see the numbers of their registers and nothing
//! else; the others share one for each part. A load or store of one word a lane by a whole warp has a function of its
//! own, too. All of these only pick cases of the functions in `lanes` and of the one path of checks, so that an
//! instruction has one meaning.
//!
//! **Rows.** A warp's registers are rows of 32 lanes. Register instructions compute whole rows in place; when some
//! lanes take no part, they get back what they had. Of a load or store the pattern is looked for first, on the
//! registers: all lanes at one address, or one after the other. Checks, counts and copies then cost the same whatever
//! the number of lanes, and only other patterns go lane by lane (`access`).

mod access;
mod alu;
mod atomic;
pub(crate) mod bulk;
mod call;
mod cluster;
mod collective;
mod copy;
mod elements;
pub(crate) mod env;
mod fragments;
mod global;
pub(crate) mod host;
mod library;
mod local;
mod matrix;
mod mbarrier;
mod print;
mod quick;
mod request;
mod shared;
mod step;
mod traced;
mod undefined;
mod wgmma;

pub(crate) use fragments::Wait;
pub(crate) use global::report_cross;

use crate::decode::Kernel;
use crate::decode::op::{Inst, Op, PredRef, Slot};
use crate::lanes::{LANES, Mask, Row, Rows, Wide, count, mask, row};
use env::{Env, Halt};
use fragments::{Flow, Fragment, TURN};
use host::Host;
use request::Touch;

/// Registers and fragments of a warp.
#[derive(Debug, Default)]
pub(crate) struct Warp {
    pub narrow: Rows<u32>,
    pub wide: Rows<u64>,
    pub preds: Vec<Mask>,
    /// See [`crate::Options::perturb`].
    perturb: Option<u64>,
    /// What the row had that an instruction for some of the lanes replaces.
    kept: (Row, Wide),
    /// Lanes that have written each tracked register.
    pub written: Vec<Mask>,
    /// What is known of the undefined ones among them.
    undefined: undefined::Undefined,
    /// The carry of `add.cc`.
    pub carry: Mask,
    /// Local memory, word by word, 32 lanes each.
    pub local: Vec<Row>,
    /// Initialised bytes of local memory, four bits a word.
    pub local_initialised: Vec<[u8; LANES]>,
    /// The matrices of the product that is computed.
    products: crate::matrix::model::Scratch,
    /// The last wait for an mbarrier, if all its lanes named one: address, instruction, lanes, epoch.
    polled: Option<(u64, u32, Mask, u32)>,
    /// Products of its warpgroup.
    under_way: crate::warpgroup::Products,
    /// Calls that have not returned.
    stacks: call::Stacks,
    /// Its number in the cluster.
    number: u32,
    /// Lanes of the warp that exist.
    pub exist: Mask,
    /// Lanes that have not exited.
    pub live: Mask,
    /// Lanes that come after earlier launches: all that need not wait for them.
    pub behind: Mask,
    pub fragments: Vec<Fragment>,
    /// Where the lanes of [`Flow::Scatter`] go, and what those of [`Flow::ParkGroups`] wait for.
    scatter: Vec<(u32, Mask)>,
    /// Whether the rows are allocated and hold the constants of the launch.
    used: bool,
    /// Instructions until another fragment gets a turn.
    turn: u32,
    /// Instructions left of such a turn.
    favour: u32,
    /// Where the fragment was that had the last such turn.
    favoured: u32,
    /// The lanes by turns that some of them had before others since the warp met the last time; none if there were
    /// none. Where such lanes merge they may be in different iterations, which those of a machine are not: it has them
    /// meet where they parted.
    turns: Vec<Mask>,
    /// The first instruction of the last slice.
    pub began: u32,
    /// Where the fragment went on that waited in vain: others come first, since it may wait for lanes of its own warp.
    yielded: Option<u32>,
}

/// Why a warp stopped running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// Its slice is used up.
    Slice,
    /// Before a wait that failed, or after an instruction that lets others run.
    Yielded,
    /// Every fragment waits.
    Blocked,
    /// Every lane has exited.
    Done,
    /// The kernel was stopped.
    Halted,
}

impl Warp {
    /// Prepares for a warp of a CTA.
    pub fn start(&mut self, kernel: &Kernel, env: &Env<'_>, warp: u32) {
        self.number = warp;
        let threads = env.cx.threads();
        let first = env.split(warp).1 * 32;
        let count = (threads - first).min(32);
        self.exist = if count == 32 { Mask::MAX } else { (1 << count) - 1 };
        self.live = self.exist;
        self.behind = if env.cx.dependent { 0 } else { Mask::MAX };
        self.fragments.clear();
        self.fragments.push(Fragment { pc: kernel.start, mask: self.exist, wait: Wait::None });
        self.turn = TURN;
        self.favour = 0;
        self.favoured = 0;
        self.turns.clear();
        self.yielded = None;
        self.polled = None;
        self.carry = 0;
        self.perturb = env.cx.options.perturb;
        let fresh = !std::mem::replace(&mut self.used, true);
        if fresh {
            self.narrow = Rows::new(kernel.narrow);
            self.wide = Rows::new(kernel.wide);
            self.preds = vec![0; kernel.preds];
            for (slot, value) in &kernel.constants {
                match slot {
                    Slot::Pred(s) => self.preds[*s as usize] = if *value != 0 { Mask::MAX } else { 0 },
                    Slot::Narrow(s) => self.narrow[*s] = [*value as u32; LANES],
                    Slot::Wide(s) => self.wide[*s] = [*value; LANES],
                }
            }
            for (slot, offset, bytes, signed) in &kernel.param_slots {
                let value = local::param(&env.cx.params, *offset as usize, *bytes, *signed, *slot);
                self.set_row(*slot, &[value; LANES], Mask::MAX);
            }
        }
        // Registers that are proved to be written first keep what an earlier warp left; the others start out the same
        // everywhere.
        if !kernel.tracked.is_empty() {
            self.written.clear();
            self.written.resize(kernel.tracked.len(), 0);
            self.undefined.reset(kernel.tracked.len());
        }
        if kernel.warpgroups {
            self.under_way.reset(kernel.matrix_registers.len());
        }
        for register in &kernel.tracked {
            match register.slot {
                Slot::Pred(s) => self.preds[s as usize] = 0,
                Slot::Narrow(s) => self.narrow[s] = [crate::memory::device::POISON & register.ones; LANES],
                Slot::Wide(s) => self.wide[s] = [u64::MAX; LANES],
            }
        }
        // Calls may have added to it.
        if kernel.local_bytes > 0 || !self.local.is_empty() {
            let words = kernel.local_bytes.div_ceil(4) as usize;
            self.local.clear();
            self.local.resize(words, [crate::memory::device::POISON; LANES]);
            self.local_initialised.clear();
            self.local_initialised.resize(words, [0; LANES]);
        }
        if kernel.stack || !kernel.functions.is_empty() {
            self.stacks.reset(kernel);
        }
        for (special, slot) in &kernel.specials {
            // Most special registers are the same in every CTA, and warps are used again with the same number.
            if fresh || Env::depends_on_cta(*special) {
                let value = |lane| env.special(*special, warp, lane);
                let row = &mut self.narrow[*slot];
                if Env::depends_on_cta(*special) {
                    *row = [value(0); LANES];
                } else {
                    *row = std::array::from_fn(|lane| value(lane as u32));
                }
            }
        }
    }

    /// The mask of a predicate operand.
    #[inline(always)]
    pub fn pred(&self, p: PredRef) -> Mask {
        let mask = self.preds[p.slot as usize];
        if p.negated { !mask } else { mask }
    }

    /// Sets lanes of a predicate.
    #[inline(always)]
    pub fn set_pred(&mut self, slot: u32, value: Mask, mask: Mask) {
        let old = &mut self.preds[slot as usize];
        *old = (*old & !mask) | (value & mask);
    }

    /// Runs until the warp waits, exits, is stopped, or has executed `slice` instructions.
    #[expect(clippy::too_many_lines, reason = "one loop, whose state stays in local variables")]
    pub fn run(&mut self, env: &mut Env<'_>, slice: u32) -> Stop {
        let cx = env.cx;
        let code = &cx.kernel.code[..];
        let once = !cx.options.baseline;
        let mut left = slice;
        // The time at which the slice is used up.
        let due = env.time + u64::from(slice);
        let stop = 'fragments: loop {
            if self.fragments.is_empty() {
                break Stop::Done;
            }
            if let ([Fragment { wait: Wait::Barrier, .. }], 1..) = (&self.fragments[..], self.turn) {
                break Stop::Blocked;
            }
            let mut index = 0;
            if self.fragments.len() > 1 || !self.ready(&self.fragments[0]) {
                let Some(chosen) = self.choose(env, code) else { break Stop::Blocked };
                index = self.merge(chosen);
            }
            self.fragments[index].wait = Wait::None;
            let Fragment { mut pc, mut mask, .. } = self.fragments[index];
            if left > 0 {
                self.began = pc;
            }
            let mut alone = self.fragments.len() == 1;
            // The first instruction since the last jump.
            let mut start = pc;
            loop {
                if left == 0 {
                    env.ran(start, pc, count(mask));
                    self.fragments[index].pc = pc;
                    break 'fragments Stop::Slice;
                }
                let inst = &code[pc as usize];
                let mut run = mask;
                if let Some(guard) = inst.guard {
                    run &= self.pred(guard);
                    env.held(pc, count(mask & !run));
                }
                if run == 0 {
                    left -= 1;
                    pc += inst.step;
                } else if let Some(part) = inst.part {
                    if inst.once && once && self.once(&inst.op, run) {
                        left -= 1;
                        pc += inst.step;
                    } else if run != Mask::MAX || !alone {
                        (cx.host.partly)(self, &cx.host, inst, part, run);
                        left -= 1;
                        pc += inst.step;
                    } else {
                        // Nothing but the end of the slice can come between these instructions.
                        let count = inst.stretch.min(left);
                        left -= count;
                        pc = self.stretch(&cx.host, code, pc, count);
                    }
                } else {
                    left -= 1;
                    let flow = match inst.op {
                        Op::Branch { target, .. } if run == mask => Ok(Flow::Jump(target)),
                        Op::Load(ref access) => cx
                            .host
                            .memory(self, env, (pc, inst.number), access, (Touch::Load, run))
                            .map(|()| Flow::Next),
                        Op::Store(ref access) => cx
                            .host
                            .memory(self, env, (pc, inst.number), access, (Touch::Store, run))
                            .map(|()| Flow::Next),
                        Op::Barrier(ref barrier) => self.barrier(env, pc, barrier, run),
                        _ => self.step(env, inst, (pc, due - u64::from(left)), mask, run),
                    };
                    match flow {
                        Ok(Flow::Next) => pc += inst.step,
                        Ok(Flow::Jump(target)) => {
                            env.ran(start, pc + 1, count(mask));
                            (pc, start) = (target, target);
                        }
                        // The usual case: all lanes that live wait.
                        Ok(Flow::Barrier(lanes)) if alone && lanes == mask && self.turn > 0 => {
                            env.ran(start, pc + 1, count(mask));
                            self.fragments[index] = Fragment { pc: pc + 1, mask, wait: Wait::Barrier };
                            break 'fragments Stop::Blocked;
                        }
                        Ok(other) => {
                            env.ran(start, pc + 1, count(mask));
                            self.fragments[index] = Fragment { pc, mask, wait: Wait::None };
                            let yields = matches!(other, Flow::Yield);
                            if let (Flow::Exit(gone), true) = (&other, env.has_peers()) {
                                env.exit(*gone, *gone == self.live);
                            }
                            self.leave(index, run, other);
                            if yields {
                                self.yielded = Some(pc + 1);
                                break 'fragments Stop::Yielded;
                            }
                            continue 'fragments;
                        }
                        Err(Halt) => {
                            env.ran(start, pc + 1, count(mask));
                            break 'fragments Stop::Halted;
                        }
                    }
                }
                if alone {
                    continue;
                }
                // In divergent code: meet the others, and let the lowest one run.
                self.fragments[index].pc = pc;
                self.turn = self.turn.saturating_sub(1);
                let meets =
                    self.fragments.iter().enumerate().any(|(i, f)| i != index && f.pc == pc && f.wait != Wait::Barrier);
                if meets {
                    env.ran(start, pc, count(mask));
                    start = pc;
                    index = self.merge(index);
                    mask = self.fragments[index].mask;
                    alone = self.fragments.len() == 1;
                }
                self.favour = self.favour.saturating_sub(1);
                let lower = self.favour == 0 && self.fragments.iter().any(|f| f.pc < pc && self.ready(f));
                if lower || self.turn == 0 {
                    env.ran(start, pc, count(mask));
                    continue 'fragments;
                }
            }
        };
        env.time = due - u64::from(left);
        stop
    }

    /// Executes `count` instructions of a stretch in all lanes, and returns where the next one is.
    #[inline(never)]
    fn stretch(&mut self, host: &Host, code: &[Inst], mut pc: u32, count: u32) -> u32 {
        for _ in 0..count {
            let inst = &code[pc as usize];
            host.op(inst.number)(self, inst, Mask::MAX);
            pc += inst.step;
        }
        pc
    }

    /// All lanes of a slot as 64-bit values.
    fn row(&self, slot: Slot) -> Wide {
        match slot {
            Slot::Pred(s) => row!(lane => u64::from(self.preds[s as usize] >> lane & 1)),
            Slot::Narrow(s) => row!(lane => u64::from(self.narrow[s][lane])),
            Slot::Wide(s) => self.wide[s],
        }
    }

    /// Sets the lanes of `mask` of a slot.
    fn set_row(&mut self, slot: Slot, row: &Wide, mask: Mask) {
        match slot {
            Slot::Pred(s) => self.set_pred(s, mask!(lane => row[lane] & 1 == 1), mask),
            Slot::Narrow(s) => crate::lanes::blend(&mut self.narrow[s], &row!(lane => row[lane] as u32), mask),
            Slot::Wide(s) => crate::lanes::blend(&mut self.wide[s], row, mask),
        }
    }

    /// A lane's value of any class.
    #[inline(always)]
    pub fn get(&self, slot: Slot, lane: usize) -> u64 {
        match slot {
            Slot::Pred(s) => u64::from(self.preds[s as usize] >> lane & 1),
            Slot::Narrow(s) => u64::from(self.narrow[s][lane]),
            Slot::Wide(s) => self.wide[s][lane],
        }
    }

    /// Sets a lane's value; narrow slots keep the low half.
    #[inline(always)]
    pub fn put(&mut self, slot: Slot, lane: usize, value: u64) {
        match slot {
            Slot::Pred(s) => self.set_pred(s, ((value & 1) as u32) << lane, 1 << lane),
            Slot::Narrow(s) => self.narrow[s][lane] = value as u32,
            Slot::Wide(s) => self.wide[s][lane] = value,
        }
    }
}

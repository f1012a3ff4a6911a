//! Execution of a warp: its registers, and the loop over decoded instructions. What instructions compute is in `alu`,
//! memory in `access`, meetings of lanes in `collective`.
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
mod shared;
mod undefined;

pub(crate) use fragments::Wait;
pub(crate) use global::report_cross;

use crate::decode::Kernel;
use crate::decode::op::{Inst, Op, PredRef, Slot};
use crate::lanes::{LANES, Mask, Row, Rows, Wide, count, lanes, mask, row};
use crate::report::Kind;
use access::Touch;
use env::{Env, Facts, Halt};
use fragments::{Flow, Fragment, TURN};
use host::Host;

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
    /// Calls that have not returned.
    stacks: call::Stacks,
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
                let Some(chosen) = self.choose(code) else { break Stop::Blocked };
                index = self.merge(chosen);
            }
            self.fragments[index].wait = Wait::None;
            let Fragment { mut pc, mut mask, .. } = self.fragments[index];
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

    /// Executes one instruction, of those that the loop does not know itself, for the lanes of `run`, a non-empty part
    /// of the fragment's `mask`.
    #[inline(never)]
    fn step(
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
            Op::Mma(_) | Op::MatrixAccess(_) | Op::MatrixTranspose { .. } | Op::FragmentAccess(_) => {
                // All lanes of the warp, at one instruction.
                if run != self.live {
                    return Ok(Flow::Park(run, Wait::Warp));
                }
                if !self.whole_warp(env, pc) {
                    return Err(Halt);
                }
                match inst.op {
                    Op::Mma(ref mma) => self.mma(env, mma),
                    Op::MatrixAccess(ref access) => self.matrix_access(env, pc, access)?,
                    Op::FragmentAccess(ref access) => self.fragment_access(env, pc, access)?,
                    Op::MatrixTranspose { d, a } => self.transpose_matrix(d, a),
                    _ => {}
                }
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
                let value = match which {
                    crate::decode::op::Clock::Low => time & 0xffff_ffff,
                    crate::decode::op::Clock::High => time >> 32,
                    crate::decode::op::Clock::Full => time,
                };
                for lane in lanes(run) {
                    self.put(d, lane, value);
                }
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

//! Calls of device functions. Every lane has a stack of its own: what to return to, and where its frames in local
//! memory are.
//!
//! Registers of a function are rows like those of the kernel, so that a call moves arguments and nothing else. A
//! function that may be called while it runs keeps the registers of the call that it interrupts on the lane's stack.

use std::sync::atomic::Ordering;

use super::Warp;
use super::env::{Env, Facts, Halt};
use super::fragments::Flow;
use crate::decode::Kernel;
use crate::decode::op::{Callee, Passed, Slot, Target};
use crate::lanes::{LANES, Mask, lanes};
use crate::memory::device::POISON;
use crate::report::Kind;

/// Most bytes of the frames and kept registers of a lane where functions call themselves.
const MOST_STACK: u64 = 128 * 1024;
/// Most bytes of local memory without recursion (PTX manual, compute capabilities).
const MOST_LOCAL: u64 = 512 * 1024;
/// Most bytes that the stacks of a launch take on the host.
const MOST_STACKS: u64 = 1 << 30;

/// A call that has not returned.
#[derive(Debug)]
struct Frame {
    site: u32,
    function: u32,
    back: u32,
    /// The lane's stack top before the call.
    top: u64,
    /// Registers of the interrupted call of the same function, and which of the checked ones were written.
    kept: Vec<u64>,
    written: Vec<bool>,
}

/// The stacks of a warp.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    frames: Vec<Vec<Frame>>,
    /// First free byte of local memory, lane by lane.
    top: Vec<u64>,
    /// Bytes of kept registers, lane by lane.
    kept: Vec<u64>,
}

impl Stacks {
    /// The state at the start of a warp of a kernel that has stacks; others leave them empty.
    pub fn reset(&mut self, kernel: &Kernel) {
        self.frames.clear();
        self.top.clear();
        self.kept.clear();
        self.frames.resize_with(LANES, Vec::new);
        self.kept.resize(LANES, 0);
        self.top.resize(LANES, u64::from(kernel.local_bytes).next_multiple_of(16));
    }
}

/// What a call of the function adds to the lane's stack besides its frame.
fn kept_bytes(callee: &Callee) -> u64 {
    8 * callee.saved.len() as u64 + 16
}

impl Warp {
    /// A call by the lanes of `run`.
    pub(super) fn call(&mut self, env: &mut Env<'_>, pc: u32, site: u32, mask: Mask, run: Mask) -> Result<Flow, Halt> {
        let kernel = env.cx.kernel;
        let call = &kernel.calls[site as usize];
        let fail = |env: &mut Env<'_>, lane: u32, kind: Kind, detail: String| {
            env.report(kind, pc, Facts { lane, detail, fatal: true, ..Facts::default() });
            Err(Halt)
        };
        let first = run.trailing_zeros();
        let mut parts: Vec<(u32, u32, Mask)> = Vec::new();
        match &call.target {
            Target::Library(library) => return self.library(env, pc, *library, call, run),
            Target::Undefined(name) => {
                let detail = format!("a call of `{name}`, which the module only declares");
                return fail(env, first, Kind::Trap, detail);
            }
            Target::Function(number) => {
                parts.push((kernel.functions[*number as usize].entry, *number, run));
            }
            Target::Address(slot) => {
                for lane in lanes(run) {
                    let address = self.get(Slot::Wide(*slot), lane);
                    let Some(number) = kernel.functions.iter().position(|f| f.address == address) else {
                        let detail = format!("{address:#x} is not the address of a function");
                        return fail(env, lane as u32, Kind::Trap, detail);
                    };
                    let number = number as u32;
                    match parts.iter_mut().find(|part| part.1 == number) {
                        Some(part) => part.2 |= 1 << lane,
                        None => parts.push((kernel.functions[number as usize].entry, number, 1 << lane)),
                    }
                }
            }
        }
        for (_, number, group) in &parts {
            let callee = &kernel.functions[*number as usize];
            let same = |ours: &[Passed], theirs: &[Passed]| {
                ours.len() == theirs.len()
                    && ours.iter().zip(theirs).all(|pair| match pair {
                        (Passed::Frame { bytes: a, .. }, Passed::Frame { bytes: b, .. }) => a == b,
                        _ => true,
                    })
            };
            if !same(&call.arguments, &callee.parameters) || !same(&call.results, &callee.results) {
                let detail = format!("the arguments or results do not match those of `{}`", callee.name);
                return fail(env, group.trailing_zeros(), Kind::Trap, detail);
            }
            for lane in lanes(*group) {
                if let Err(detail) = self.push_frame(env, callee, *number, site, pc + 1, lane) {
                    return fail(env, lane as u32, Kind::StackOverflow, detail);
                }
            }
        }
        Ok(self.scattered(parts.into_iter().map(|(entry, _, group)| (entry, group)), run == mask))
    }

    fn push_frame(
        &mut self,
        env: &mut Env<'_>,
        callee: &Callee,
        number: u32,
        site: u32,
        back: u32,
        lane: usize,
    ) -> Result<(), String> {
        let call = &env.cx.kernel.calls[site as usize];
        let top = self.stacks.top[lane];
        let base = top.next_multiple_of(u64::from(callee.align));
        let end = base + u64::from(callee.bytes).next_multiple_of(16);
        // Kept registers count, as the machine would spill them.
        let kept = self.stacks.kept[lane] + kept_bytes(callee);
        let limit = if callee.saved.is_empty() { MOST_LOCAL } else { MOST_STACK };
        if end + kept > limit {
            let depth = self.stacks.frames[lane].len() + 1;
            return Err(format!("{depth} calls deep the stack of the thread takes more than {limit} bytes"));
        }
        self.reserve(env, end)?;
        for word in base as usize / 4..end as usize / 4 {
            self.local[word][lane] = POISON;
            self.local_initialised[word][lane] = 0;
        }
        let from = call.base.map_or(0, |slot| self.get(Slot::Wide(slot), lane));
        let values: Vec<Vec<(u32, u8)>> = call.arguments.iter().map(|a| self.passed(*a, from, lane)).collect();
        let written = (callee.tracked[0]..callee.tracked[1]).map(|at| self.written[at as usize] >> lane & 1 == 1);
        let frame = Frame {
            site,
            function: number,
            back,
            top,
            kept: callee.saved.iter().map(|slot| self.get(*slot, lane)).collect(),
            written: if callee.saved.is_empty() { Vec::new() } else { written.collect() },
        };
        self.stacks.frames[lane].push(frame);
        self.stacks.kept[lane] = kept;
        self.stacks.top[lane] = end;
        for at in callee.tracked[0]..callee.tracked[1] {
            self.written[at as usize] &= !(1 << lane);
        }
        self.put(Slot::Wide(callee.base), lane, base);
        for (parameter, value) in callee.parameters.iter().zip(values) {
            self.pass(*parameter, base, lane, &value);
        }
        Ok(())
    }

    /// Return from device functions by the lanes of `run`.
    pub(super) fn return_from(&mut self, env: &mut Env<'_>, mask: Mask, run: Mask) -> Flow {
        let kernel = env.cx.kernel;
        let mut parts: Vec<(u32, Mask)> = Vec::new();
        let mut gone = 0;
        for lane in lanes(run) {
            // A lane without a call has nothing to return to.
            let Some(frame) = self.stacks.frames[lane].pop() else {
                gone |= 1 << lane;
                continue;
            };
            let (callee, call) = (&kernel.functions[frame.function as usize], &kernel.calls[frame.site as usize]);
            let base = self.get(Slot::Wide(callee.base), lane);
            let values: Vec<Vec<(u32, u8)>> = callee.results.iter().map(|r| self.passed(*r, base, lane)).collect();
            for (slot, value) in callee.saved.iter().zip(&frame.kept) {
                self.put(*slot, lane, *value);
            }
            for (at, written) in (callee.tracked[0]..).zip(&frame.written) {
                let bits = &mut self.written[at as usize];
                *bits = (*bits & !(1 << lane)) | u32::from(*written) << lane;
            }
            self.stacks.top[lane] = frame.top;
            self.stacks.kept[lane] -= kept_bytes(callee);
            let to = call.base.map_or(0, |slot| self.get(Slot::Wide(slot), lane));
            for (result, value) in call.results.iter().zip(values) {
                self.pass(*result, to, lane, &value);
            }
            parts.push((frame.back, 1 << lane));
        }
        if gone != 0 {
            return Flow::Exit(gone);
        }
        self.scattered(parts.into_iter(), run == mask)
    }

    /// `alloca` by the lanes of `run`.
    pub(super) fn alloca(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        d: Slot,
        size: Slot,
        align: u32,
        run: Mask,
    ) -> Result<(), Halt> {
        for lane in lanes(run) {
            let base = self.stacks.top[lane].next_multiple_of(u64::from(align));
            let bytes = self.get(size, lane);
            let end = base.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(16));
            let room = match end {
                Some(end) if end <= MOST_STACK.max(u64::from(env.cx.kernel.local_bytes)) => {
                    self.reserve(env, end).map(|()| end)
                }
                _ => Err(format!("{bytes} more bytes make the stack of the thread larger than {MOST_STACK}")),
            };
            match room {
                Ok(end) => {
                    for word in base as usize / 4..end as usize / 4 {
                        self.local[word][lane] = POISON;
                        self.local_initialised[word][lane] = 0;
                    }
                    self.stacks.top[lane] = end;
                    self.put(d, lane, base);
                }
                Err(detail) => {
                    let facts = Facts { lane: lane as u32, detail, fatal: true, ..Facts::default() };
                    env.report(Kind::StackOverflow, pc, facts);
                    return Err(Halt);
                }
            }
        }
        Ok(())
    }

    /// `stacksave`, `stackrestore`.
    pub(super) fn stack_top(&mut self, register: Slot, restore: bool, run: Mask) {
        for lane in lanes(run) {
            if restore {
                // Only downwards: what lies above is nobody's.
                self.stacks.top[lane] = self.stacks.top[lane].min(self.get(register, lane)).next_multiple_of(16);
            } else {
                self.put(register, lane, self.stacks.top[lane]);
            }
        }
    }

    /// Whether functions have frames in local memory.
    pub(super) fn has_frames(&self) -> bool {
        !self.stacks.top.is_empty()
    }

    /// Local memory up to `end` bytes.
    fn reserve(&mut self, env: &Env<'_>, end: u64) -> Result<(), String> {
        let words = (end / 4) as usize;
        let more = words.saturating_sub(self.local.len());
        if more == 0 {
            return Ok(());
        }
        let bytes = more as u64 * (4 + 1) * LANES as u64;
        if env.cx.stacks.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST_STACKS {
            return Err(format!("the stacks of the launch take more than {MOST_STACKS} bytes"));
        }
        self.local.resize(words, [POISON; LANES]);
        self.local_initialised.resize(words, [0; LANES]);
        Ok(())
    }

    /// The words of an argument or result with their initialised bytes.
    pub(super) fn passed(&self, passed: Passed, base: u64, lane: usize) -> Vec<(u32, u8)> {
        match passed {
            Passed::Nothing => Vec::new(),
            Passed::Register { slot, .. } => {
                let value = self.get(slot, lane);
                vec![(value as u32, 0xf), ((value >> 32) as u32, 0xf)]
            }
            Passed::Frame { offset, bytes } => {
                let first = (base as usize + offset as usize) / 4;
                let word = |at: usize| (self.local[at][lane], self.local_initialised[at][lane]);
                (first..first + bytes.div_ceil(4) as usize).map(word).collect()
            }
        }
    }

    /// Puts an argument or result where it belongs.
    pub(super) fn pass(&mut self, passed: Passed, base: u64, lane: usize, words: &[(u32, u8)]) {
        match passed {
            Passed::Nothing => {}
            Passed::Register { slot, tracked } => {
                let word = |at: usize| words.get(at).map_or(0, |word| u64::from(word.0));
                self.put(slot, lane, word(0) | word(1) << 32);
                if let Some(at) = tracked {
                    self.written[at as usize] |= 1 << lane;
                }
            }
            Passed::Frame { offset, bytes } => {
                let first = (base as usize + offset as usize) / 4;
                for (at, (value, initialised)) in (first..first + bytes.div_ceil(4) as usize).zip(words) {
                    self.local[at][lane] = *value;
                    self.local_initialised[at][lane] = *initialised;
                }
            }
        }
    }
}

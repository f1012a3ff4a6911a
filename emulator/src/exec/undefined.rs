//! Values that nobody made: registers that were never written, and what was loaded from bytes of local memory that were
//! never written. Compilers copy structures with their padding, so that such a value is no mistake until it becomes an
//! address, a condition, or data in memory that others can see. Registers whose definition is not proved are followed
//! lane by lane, see `decode::written`.

use super::Warp;
use super::env::{Env, Facts};
use crate::decode::op::PredRef;
use crate::lanes::{LANES, Mask, lanes};
use crate::report::{Kind, Location};

/// Elements of the widest access.
const ELEMENTS: usize = 8;

/// Where undefined values came from, and those on their way to or from memory.
#[derive(Debug, Default)]
pub(super) struct Undefined {
    /// Number plus one in `loads` of the load that a register's undefined lanes came from, 0 for none.
    origin: Vec<u32>,
    /// Loads that gave undefined values: instruction, lane, where from.
    loads: Vec<(u32, u32, Location)>,
    /// Undefined lanes of each element of the last load, with its number plus one in `loads`.
    loaded: [Mask; ELEMENTS],
    load: u32,
    /// Bytes that each of those lanes lacks.
    loaded_bytes: [[u8; LANES]; ELEMENTS],
    /// Bytes that the undefined lanes of each register lack: some, if the value was loaded and nothing has been
    /// computed with it.
    bytes: Vec<[u8; LANES]>,
    /// Undefined lanes of each element of the next store, and a register for each.
    stored: [(Mask, u32); ELEMENTS],
    storing: bool,
}

impl Undefined {
    /// The state at the start of a warp.
    pub fn reset(&mut self, registers: usize) {
        self.origin.clear();
        self.origin.resize(registers, 0);
        self.loads.clear();
        self.loaded = [0; ELEMENTS];
        self.bytes.clear();
        self.bytes.resize(registers, [u8::MAX; LANES]);
        self.stored = [(0, 0); ELEMENTS];
        self.storing = false;
    }

    /// Bytes that a lane of a register lacks, one bit each.
    pub fn bytes(&self, register: u32, lane: usize) -> u8 {
        self.bytes.get(register as usize).map_or(u8::MAX, |bytes| bytes[lane])
    }

    /// Before a load: all of it is defined.
    pub fn begin_load(&mut self) {
        self.loaded = [0; ELEMENTS];
    }

    /// An element of a lane was loaded from `bytes` that nobody wrote, one bit each.
    pub fn note_load(
        &mut self,
        pc: u32,
        lane: u32,
        (element, bytes): (usize, u8),
        location: impl FnOnce() -> Location,
    ) {
        let element = element.min(ELEMENTS - 1);
        self.loaded[element] |= 1 << lane;
        self.loaded_bytes[element][lane as usize] = bytes;
        let known = self.loads.iter().position(|load| load.0 == pc);
        let at = known.unwrap_or_else(|| {
            self.loads.push((pc, lane, location()));
            self.loads.len() - 1
        });
        self.load = at as u32 + 1;
    }
}

impl Warp {
    /// A register takes over what its operands lack.
    pub(super) fn flow_init(&mut self, env: &Env<'_>, register: u32, (first, count): (u32, u32), any: bool, run: Mask) {
        let sources = &env.cx.kernel.flows[first as usize..][..count as usize];
        let of = |source: &u32| self.written[*source as usize];
        let defined = match any {
            true => sources.iter().fold(0, |mask, source| mask | of(source)) & run,
            false => sources.iter().fold(run, |mask, source| mask & of(source)),
        };
        if defined != run {
            let lacks = |source: &&u32| run & !self.written[**source as usize] != 0;
            let origin = sources.iter().find(lacks).map_or(0, |source| self.undefined.origin[*source as usize]);
            self.undefined.origin[register as usize] = origin;
            self.undefined.bytes[register as usize] = [u8::MAX; LANES];
        }
        self.set_written(register, defined, run);
    }

    /// As [`Warp::flow_init`], of the operand selected.
    pub(super) fn flow_select(&mut self, register: u32, p: PredRef, (a, b): (u32, u32), run: Mask) {
        let of = |at: u32| self.written.get(at as usize).copied().unwrap_or(Mask::MAX);
        let chosen = self.pred(p);
        let defined = run & ((of(a) & chosen) | (of(b) & !chosen));
        if defined != run {
            let lacking = if run & chosen & !of(a) != 0 { a } else { b };
            self.undefined.origin[register as usize] =
                self.undefined.origin.get(lacking as usize).copied().unwrap_or(0);
            self.undefined.bytes[register as usize] = [u8::MAX; LANES];
        }
        self.set_written(register, defined, run);
    }

    /// A register takes an element of the load before.
    pub(super) fn loaded_init(&mut self, register: u32, element: u32, run: Mask) {
        let element = (element as usize).min(ELEMENTS - 1);
        let missing = self.undefined.loaded[element] & run;
        if missing != 0 {
            self.undefined.origin[register as usize] = self.undefined.load;
            for lane in lanes(missing) {
                self.undefined.bytes[register as usize][lane] = self.undefined.loaded_bytes[element][lane];
            }
        }
        self.set_written(register, run & !missing, run);
    }

    fn set_written(&mut self, register: u32, defined: Mask, run: Mask) {
        let written = &mut self.written[register as usize];
        *written = (*written & !run) | defined;
    }

    /// What the store that follows stores undefined.
    pub(super) fn stored_init(&mut self, env: &Env<'_>, (first, count): (u32, u32), run: Mask) {
        let registers = &env.cx.kernel.flows[first as usize..][..count as usize];
        self.undefined.stored = [(0, 0); ELEMENTS];
        for (to, register) in self.undefined.stored.iter_mut().zip(registers) {
            let written = self.written.get(*register as usize).copied().unwrap_or(Mask::MAX);
            *to = (run & !written, *register);
        }
        self.undefined.storing = self.undefined.stored.iter().any(|(mask, _)| *mask != 0);
    }

    /// The elements of a store to local memory that are undefined, lane by lane, with their registers; forgets them.
    pub(super) fn take_stored(&mut self) -> Option<[(Mask, u32); ELEMENTS]> {
        std::mem::take(&mut self.undefined.storing).then_some(self.undefined.stored)
    }

    /// A store to memory that others can see: what is undefined is a mistake now.
    #[inline(always)]
    pub(super) fn check_stored(&mut self, env: &mut Env<'_>, pc: u32, run: Mask) {
        if self.undefined.storing {
            self.stored_undefined(env, pc, run);
        }
    }

    #[cold]
    fn stored_undefined(&mut self, env: &mut Env<'_>, pc: u32, run: Mask) {
        self.undefined.storing = false;
        for (mask, register) in self.undefined.stored {
            if mask & run != 0 {
                self.used_undefined(env, pc, register, mask & run);
            }
        }
    }

    /// The finding about an undefined register: where it was loaded, or that it was never written.
    #[cold]
    pub(super) fn used_undefined(&mut self, env: &mut Env<'_>, pc: u32, register: u32, missing: Mask) {
        // One report a lane is enough.
        self.written[register as usize] |= missing;
        let origin = self.undefined.origin.get(register as usize).copied().unwrap_or(0);
        let lane = missing.trailing_zeros();
        if let Some((load, lane, location)) = origin.checked_sub(1).and_then(|at| self.undefined.loads.get(at as usize))
        {
            if env.cx.options.sanitizers.initialisation {
                let place = env.place_of(pc);
                let detail = format!("the value is used at line {} (`{}`)", place.line, place.instruction);
                let facts = Facts { lane: *lane, location: Some(location.clone()), detail, ..Facts::default() };
                env.report(Kind::UninitialisedRead, *load, facts);
            }
            return;
        }
        let name = &env.cx.kernel.tracked[register as usize].name;
        let detail = format!("register {name}, {} lanes", missing.count_ones());
        env.report(Kind::UninitialisedRegister, pc, Facts { lane, detail, ..Facts::default() });
    }
}

//! Values that nobody made: registers that were never written, and what was loaded from bytes of local memory, or in
//! kernels that follow it of shared memory, that were never written. Compilers copy structures with their padding, so
//! that such a value is no mistake until it becomes an address, a condition, or data in memory that others can see.
//! Registers whose definition is not proved are followed lane by lane, see `decode::written`.

use super::Warp;
use super::access::small_location;
use super::env::{Env, Facts};
use super::request::{Request, Shape, Touch};
use crate::decode::op::{PredRef, Space};
use crate::lanes::{LANES, Mask, Wide, lanes};
use crate::report::Kind;

/// Elements of the widest access.
const ELEMENTS: usize = 8;

/// Where undefined values came from, and those on their way to or from memory.
#[derive(Debug, Default)]
pub(super) struct Undefined {
    /// Number plus one in `loads` of the load that a register's undefined lanes came from, 0 for none.
    origin: Vec<u32>,
    /// Loads that gave undefined values.
    loads: Vec<Load>,
    /// The register, and the first of its bytes, that the accesses of a matrix load fill now: together they are one
    /// load.
    part: Option<(usize, u32)>,
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

/// A load that gave undefined values, and where the last one of each lane came from.
#[derive(Debug)]
struct Load {
    pc: u32,
    space: Space,
    /// Bytes of an element.
    bytes: u8,
    addresses: Wide,
}

impl Undefined {
    /// The state at the start of a warp.
    pub fn reset(&mut self, registers: usize) {
        self.origin.clear();
        self.origin.resize(registers, 0);
        self.loads.clear();
        self.part = None;
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

    /// Before a load: all of it is defined. Accesses of a matrix load are parts of one.
    pub fn begin_load(&mut self) {
        if self.part.is_none() {
            self.loaded = [0; ELEMENTS];
        }
    }

    /// Some lanes load: all of it is defined.
    fn begin_lanes(&mut self, run: Mask) {
        if self.part.is_none() {
            self.loaded.iter_mut().for_each(|lanes| *lanes &= !run);
        }
    }

    /// The next accesses fill register `n` of a matrix load from this byte on; none: the load is over.
    pub fn part(&mut self, part: Option<(usize, u32)>) {
        self.part = part;
    }

    /// An element of a lane was loaded from `bytes` that nobody wrote, one bit each.
    pub fn note_load(
        &mut self,
        pc: u32,
        lane: u32,
        (element, bytes): (usize, u8),
        (space, size, address): (Space, u8, u64),
    ) {
        let (element, first) = self.part.unwrap_or((element, 0));
        let element = element.min(ELEMENTS - 1);
        let before = if self.loaded[element] >> lane & 1 == 1 { self.loaded_bytes[element][lane as usize] } else { 0 };
        self.loaded[element] |= 1 << lane;
        self.loaded_bytes[element][lane as usize] = before | bytes.checked_shl(first).unwrap_or(0);
        let known = self.loads.iter().position(|load| load.pc == pc && load.space == space);
        let at = known.unwrap_or_else(|| {
            self.loads.push(Load { pc, space, bytes: size, addresses: [0; LANES] });
            self.loads.len() - 1
        });
        self.loads[at].addresses[lane as usize] = address;
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

    /// A request to shared memory of a kernel that follows it: notes what it loads from bytes that nobody wrote, and
    /// which bytes it stores undefined. Its addresses are places in the memory of the cluster.
    #[cold]
    pub(super) fn follow_shared(&mut self, env: &mut Env<'_>, request: &Request<'_>) {
        let shape = request.shape;
        let one = Shape { count: 1, ..shape };
        let element_at = |lane: usize, element: usize| request.address(lane) + element as u64 * u64::from(shape.bytes);
        if shape.touch == Touch::Load {
            self.undefined.begin_lanes(request.run);
            for lane in lanes(request.run) {
                for element in 0..usize::from(shape.count) {
                    let at = element_at(lane, element);
                    let (mut lacks, mut place) = (0, 0);
                    for (word, need) in one.words(at) {
                        let missing = need & !env.shared_initialised[word];
                        lacks |= (missing >> need.trailing_zeros()).checked_shl(place).unwrap_or(0);
                        place += need.count_ones();
                    }
                    if lacks != 0 {
                        let from = (Space::Shared, shape.bytes, at);
                        self.undefined.note_load(shape.pc, lane as u32, (element, lacks), from);
                    }
                }
            }
            return;
        }
        for (element, (mask, register)) in self.take_stored().into_iter().flatten().enumerate() {
            for lane in lanes(mask & request.run) {
                let mut lacks = self.undefined.bytes(register, lane);
                for (word, bytes) in one.words(element_at(lane, element)) {
                    env.shared_initialised[word] &= !((lacks << bytes.trailing_zeros()) & bytes);
                    lacks = lacks.checked_shr(bytes.count_ones()).unwrap_or(0);
                }
            }
        }
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
        if env.cx.wants_to_follow() {
            return;
        }
        let origin = self.undefined.origin.get(register as usize).copied().unwrap_or(0);
        let lane = missing.trailing_zeros();
        if let Some(load) = origin.checked_sub(1).and_then(|at| self.undefined.loads.get(at as usize)) {
            if env.cx.options.sanitizers.initialisation {
                let place = env.place_of(pc);
                let detail = format!("the value is used at line {} (`{}`)", place.line, place.instruction);
                let address = load.addresses[lane as usize];
                let location = small_location(env, load.space, address, u64::from(load.bytes));
                let facts = Facts { lane, location: Some(location), detail, ..Facts::default() };
                env.report(Kind::UninitialisedRead, load.pc, facts);
            }
            return;
        }
        let name = &env.cx.kernel.tracked[register as usize].name;
        let detail = format!("register {name}, {} lanes", missing.count_ones());
        env.report(Kind::UninitialisedRegister, pc, Facts { lane, detail, ..Facts::default() });
    }
}

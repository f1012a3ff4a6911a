//! Local memory, constants and parameters.

use super::Warp;
use super::access::{check_small, small_location};
use super::elements::{extend, get};
use super::env::{Env, Facts, Halt};
use super::request::{Request, Shape, Touch};
use crate::decode::op::{Access, Slot, Space};
use crate::lanes::{LANES, Mask, Wide, lanes};
use crate::report::Kind;

/// Bits of the offset in a generic address of local memory: above them stands whose memory it is, by the number of the
/// thread in the cluster plus one, so that an address that another thread uses is found. 0 is anybody's own.
const OFFSET_BITS: u32 = 21;
/// Distances from the start of a thread's memory that are taken for an address in or near it.
const REACH: u64 = 1 << 20;

impl Warp {
    fn base_of(&self, lane: usize) -> u64 {
        u64::from(self.number * 32 + lane as u32 + 1) << OFFSET_BITS
    }

    /// What makes an address in a lane's local memory one that says whose it is; 0 if it does.
    pub(super) fn owned(&self, lane: usize, address: u64) -> u64 {
        if address >> OFFSET_BITS == 0 { self.base_of(lane) } else { 0 }
    }

    /// The address in its own memory that a lane means, or the number of the thread whose memory it is in.
    pub(super) fn local_address(&self, lane: usize, address: u64) -> Result<u64, u64> {
        if address >> OFFSET_BITS == 0 {
            return Ok(address);
        }
        let offset = address.wrapping_sub(self.base_of(lane));
        // Before the start it wraps around.
        if offset.wrapping_add(REACH) < 2 * REACH { Ok(offset) } else { Err((address >> OFFSET_BITS) - 1) }
    }

    /// The addresses of a request in the memories of its lanes.
    pub(super) fn local_addresses(
        &self,
        env: &mut Env<'_>,
        pc: u32,
        addresses: &Wide,
        run: Mask,
    ) -> Result<Wide, Halt> {
        let mut places = *addresses;
        for lane in lanes(run) {
            match self.local_address(lane, addresses[lane]) {
                Ok(address) => places[lane] = address,
                Err(owner) if owner < 32 * (env.cx.warps() * env.cx.ctas()) as u64 => {
                    let thread = env.thread_of(owner as u32 / 32, owner as u32 % 32);
                    let detail = format!("the address is in the local memory of another thread: {thread}");
                    return env.stop(Kind::OutOfBounds, (pc, lane as u32), detail);
                }
                // An address that is nobody's is refused with its value.
                Err(_) => {}
            }
        }
        Ok(places)
    }

    /// Bytes of local memory: those of the kernel, and the frames of functions.
    fn local_size(&self, env: &Env<'_>) -> u64 {
        u64::from(env.cx.kernel.local_bytes).max(4 * self.local.len() as u64 * u64::from(self.has_frames()))
    }

    pub(super) fn access_local(&mut self, env: &mut Env<'_>, request: &Request<'_>) -> Result<(), Halt> {
        check_small(env, request, Space::Local, self.local_size(env))?;
        count_local(env, request);
        let (shape, load) = (request.shape, request.shape.touch == Touch::Load);
        for lane in lanes(request.run) {
            let mut missing = false;
            for (word, bytes) in shape.words(request.address(lane)) {
                let initialised = &mut self.local_initialised[word][lane];
                missing |= *initialised & bytes != bytes;
                if !load {
                    *initialised |= bytes;
                }
            }
            if load && missing {
                self.undefined_elements(shape, request.address(lane), lane);
            }
        }
        if !load && let Some(undefined) = self.take_stored() {
            for (element, (mask, register)) in undefined.into_iter().enumerate() {
                for lane in lanes(mask & request.run) {
                    // Of what was loaded with some of its bytes, the others are defined again.
                    let mut lacks = self.undefined.bytes(register, lane);
                    for (word, bytes) in element_words(shape, request.address(lane), element) {
                        let here = (lacks << bytes.trailing_zeros()) & bytes;
                        self.local_initialised[word][lane] &= !here;
                        lacks = lacks.checked_shr(bytes.count_ones()).unwrap_or(0);
                    }
                }
            }
        }
        let mut local = std::mem::take(&mut self.local);
        self.move_data(env.cx.kernel, request, &mut local[..], 0);
        self.local = local;
        Ok(())
    }

    /// Notes the elements of a lane's load that nobody wrote.
    #[cold]
    fn undefined_elements(&mut self, shape: Shape, address: u64, lane: usize) {
        for element in 0..usize::from(shape.count) {
            let (mut lacks, mut place) = (0, 0);
            for (word, need) in element_words(shape, address, element) {
                let missing = need & !self.local_initialised[word][lane];
                lacks |= (missing >> need.trailing_zeros()).checked_shl(place).unwrap_or(0);
                place += need.count_ones();
            }
            if lacks != 0 {
                let at = address + element as u64 * u64::from(shape.bytes);
                self.undefined.note_load(shape.pc, lane as u32, (element, lacks), (Space::Local, shape.bytes, at));
            }
        }
    }

    pub(super) fn load_constant(
        &mut self,
        env: &mut Env<'_>,
        request: &Request<'_>,
        access: &Access,
        space: Space,
    ) -> Result<(), Halt> {
        let (cx, shape) = (env.cx, request.shape);
        if shape.touch != Touch::Load {
            let location = small_location(env, space, request.pattern.least, shape.total());
            let facts =
                Facts { lane: request.pattern.first, location: Some(location), fatal: true, ..Facts::default() };
            env.report(Kind::ReadOnlyWrite, shape.pc, facts);
            return Err(Halt);
        }
        let (words, size) = match space {
            Space::Param => (&cx.params[..], u64::from(cx.kernel.param_bytes)),
            _ => (&cx.constants[..], cx.kernel.constant_bytes()),
        };
        check_small(env, request, space, size)?;
        if !request.pattern.is_uniform() {
            self.read(cx.kernel, request, words, 0);
            return Ok(());
        }
        // The same bytes for every lane.
        let first = request.pattern.least as usize;
        for n in 0..usize::from(shape.count) {
            let Some(slot) = cx.kernel.data[access.data as usize + n] else { continue };
            let value = get(words, 0, first + n * usize::from(shape.bytes), shape.bytes);
            let value = extend(value, shape.bytes, access.signed, slot);
            match slot {
                Slot::Narrow(s) => crate::lanes::blend(&mut self.narrow[s], &[value as u32; LANES], request.run),
                Slot::Wide(s) => crate::lanes::blend(&mut self.wide[s], &[value; LANES], request.run),
                Slot::Pred(_) => {}
            }
        }
        Ok(())
    }
}

/// The words of one element of an access with the bytes it touches of each.
fn element_words(shape: Shape, address: u64, element: usize) -> impl Iterator<Item = (usize, u8)> {
    let one = Shape { count: 1, ..shape };
    one.words(address + element as u64 * u64::from(shape.bytes))
}

/// A parameter's value as a register holds it.
pub(super) fn param(words: &[u32], at: usize, bytes: u8, signed: bool, slot: Slot) -> u64 {
    extend(get(words, 0, at, bytes), bytes, signed, slot)
}

fn count_local(env: &mut Env<'_>, request: &Request<'_>) {
    let local = &mut env.counters.local;
    request.count(local);
    // Hardware interleaves local memory by lane, so a warp's access at one address fills whole sectors.
    local.transactions += request.bytes().div_ceil(32);
    local.ideal_transactions += request.bytes().div_ceil(32);
}

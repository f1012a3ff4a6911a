//! Local memory, constants and parameters.

use super::Warp;
use super::access::{Request, Touch, check_small, small_location};
use super::elements::{extend, get};
use super::env::{Env, Facts, Halt};
use crate::decode::op::{Access, Slot, Space};
use crate::lanes::{LANES, lanes};
use crate::report::Kind;

impl Warp {
    /// Bytes of local memory: those of the kernel, and the frames of functions.
    fn local_size(&self, env: &Env<'_>) -> u64 {
        u64::from(env.cx.kernel.local_bytes).max(4 * self.local.len() as u64 * u64::from(self.has_frames()))
    }

    pub(super) fn access_local(&mut self, env: &mut Env<'_>, request: &Request<'_>) -> Result<(), Halt> {
        check_small(env, request, Space::Local, self.local_size(env))?;
        count_local(env, request);
        let (shape, load) = (request.shape, request.shape.touch == Touch::Load);
        if !load || env.cx.options.sanitizers.initialisation {
            for lane in lanes(request.run) {
                for (word, bytes) in shape.words(request.address(lane)) {
                    let initialised = &mut self.local_initialised[word][lane];
                    let missing = *initialised & bytes != bytes;
                    *initialised |= bytes;
                    if load && missing {
                        let location = small_location(env, Space::Local, word as u64 * 4, shape.total().min(4));
                        let facts = Facts { lane: lane as u32, location: Some(location), ..Facts::default() };
                        env.report(Kind::UninitialisedRead, shape.pc, facts);
                    }
                }
            }
        }
        let mut local = std::mem::take(&mut self.local);
        self.move_data(env.cx.kernel, request, &mut local[..], 0);
        self.local = local;
        Ok(())
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

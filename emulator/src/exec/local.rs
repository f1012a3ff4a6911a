//! Local memory, constants and parameters.

use super::Warp;
use super::access::{Shape, Touch, small_location};
use super::elements::{extend, get};
use super::env::{Env, Halt};
use crate::decode::op::{Access, Slot, Space};
use crate::lanes::{LANES, Mask, Wide, lanes};

impl Warp {
    /// Bytes of local memory: those of the kernel, and the frames of functions.
    fn local_size(&self, env: &Env<'_>) -> u64 {
        u64::from(env.cx.kernel.local_bytes).max(4 * self.local.len() as u64 * u64::from(self.has_frames()))
    }

    pub(super) fn load_local(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        self.check_small(env, shape, Space::Local, self.local_size(env), addresses, run)?;
        count_local(env, shape, run);
        for lane in lanes(run) {
            for (word, need) in shape.words(addresses[lane]) {
                if self.local_initialised[word][lane] & need != need {
                    self.undefined_elements(env, shape, addresses[lane], lane);
                    break;
                }
            }
        }
        let local = std::mem::take(&mut self.local);
        self.read(env, access, &local[..], (addresses, 0), run);
        self.local = local;
        Ok(())
    }

    pub(super) fn store_local(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        self.check_small(env, shape, Space::Local, self.local_size(env), addresses, run)?;
        count_local(env, shape, run);
        let mut local = std::mem::take(&mut self.local);
        self.write(env, access, &mut local[..], (addresses, 0), run);
        self.local = local;
        for lane in lanes(run) {
            for (word, fills) in shape.words(addresses[lane]) {
                self.local_initialised[word][lane] |= fills;
            }
        }
        if let Some(undefined) = self.take_stored() {
            for (element, mask) in undefined.into_iter().enumerate() {
                for lane in lanes(mask & run) {
                    for (word, bytes) in element_words(shape, addresses[lane], element) {
                        self.local_initialised[word][lane] &= !bytes;
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes the elements of a lane's load that nobody wrote.
    #[cold]
    fn undefined_elements(&mut self, env: &Env<'_>, shape: Shape, address: u64, lane: usize) {
        for element in 0..usize::from(shape.count) {
            for (word, need) in element_words(shape, address, element) {
                if self.local_initialised[word][lane] & need != need {
                    let at = address + element as u64 * u64::from(shape.bytes);
                    let location = || small_location(env, Space::Local, at, u64::from(shape.bytes));
                    self.undefined.note_load(shape.pc, lane as u32, element, location);
                }
            }
        }
    }

    pub(super) fn load_constant(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        space: Space,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let cx = env.cx;
        let (words, size) = match space {
            Space::Param => (&cx.params[..], u64::from(cx.kernel.param_bytes)),
            _ => (&cx.constants[..], cx.kernel.constant_bytes()),
        };
        self.check_small(env, shape, space, size, addresses, run)?;
        if access.address.base.is_some() {
            self.read(env, access, words, (addresses, 0), run);
            return Ok(());
        }
        // The same bytes for every lane.
        let first = addresses[run.trailing_zeros() as usize] as usize;
        for n in 0..usize::from(shape.count) {
            let Some(slot) = cx.kernel.data[access.data as usize + n] else { continue };
            let value = get(words, 0, first + n * usize::from(shape.bytes), shape.bytes);
            let value = extend(value, shape.bytes, access.signed, slot);
            match slot {
                Slot::Narrow(s) => crate::lanes::blend(&mut self.narrow[s as usize], &[value as u32; LANES], run),
                Slot::Wide(s) => crate::lanes::blend(&mut self.wide[s as usize], &[value; LANES], run),
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

fn count_local(env: &mut Env<'_>, shape: Shape, run: Mask) {
    let bytes = shape.total() * u64::from(run.count_ones());
    let local = &mut env.counters.local;
    if shape.touch == Touch::Load {
        local.load_requests += 1;
        local.bytes_loaded += bytes;
    } else {
        local.store_requests += 1;
        local.bytes_stored += bytes;
    }
    // Hardware interleaves local memory by lane, so a warp's access at one address fills whole sectors.
    local.transactions += bytes.div_ceil(32);
    local.ideal_transactions += bytes.div_ceil(32);
}

//! Functions that the driver has for every module: `printf`, `malloc`, `free`, a failed `assert` (CUDA programming
//! guide, C++ language extensions).

use super::access::{space_of, window};
use super::env::{Env, Facts, Halt};
use super::print::{Argument, format};
use super::{Flow, Warp};
use crate::decode::op::{CallSite, Library, Slot, Space};
use crate::lanes::{Mask, lanes};
use crate::report::Kind;

/// Most bytes of a string that is read.
const MOST_TEXT: usize = 4096;

impl Warp {
    /// A call of a library function by the lanes of `run`.
    pub(super) fn library(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        library: Library,
        call: &CallSite,
        run: Mask,
    ) -> Result<Flow, Halt> {
        for lane in lanes(run) {
            let result = match library {
                Library::Print => self.print(env, call, lane),
                Library::Allocate => {
                    let bytes = self.passed_value(call, 0, lane);
                    let (kernel, place, thread) = (&env.cx.kernel.name, env.place_of(pc), env.thread(lane as u32));
                    env.cx.heap.as_ref().map_or(0, |heap| heap.allocate(bytes, kernel, place, thread))
                }
                Library::Free => {
                    let address = self.passed_value(call, 0, lane);
                    let place = env.place_of(pc);
                    let heap = env.cx.heap.as_ref();
                    if address != 0 && !heap.is_some_and(|heap| heap.free(address, &place)) {
                        let detail = match heap.and_then(|heap| heap.freed_at(address)) {
                            Some((_, 0, at)) => format!("`free` of {address:#x}, which was freed at {at}"),
                            _ => format!("`free` of {address:#x}, where no block of the heap starts"),
                        };
                        return trap(env, pc, lane, detail);
                    }
                    0
                }
                Library::AssertFail => {
                    let detail = self.assertion(env, call, lane);
                    return trap(env, pc, lane, detail);
                }
            };
            let base = call.base.map_or(0, |slot| self.get(Slot::Wide(slot), lane));
            if let Some(to) = call.results.first() {
                self.pass(*to, base, lane, &[(result as u32, 0xf), ((result >> 32) as u32, 0xf)]);
            }
        }
        Ok(Flow::Next)
    }

    /// The value of an argument of at most 64 bits.
    fn passed_value(&self, call: &CallSite, index: usize, lane: usize) -> u64 {
        let base = call.base.map_or(0, |slot| self.get(Slot::Wide(slot), lane));
        let words = call.arguments.get(index).map(|a| self.passed(*a, base, lane)).unwrap_or_default();
        let word = |at: usize| words.get(at).map_or(0, |word: &(u32, u8)| u64::from(word.0));
        word(0) | word(1) << 32
    }

    /// `printf`: the number of arguments, or less than 0 where there is no room for the text.
    fn print(&self, env: &mut Env<'_>, call: &CallSite, lane: usize) -> u64 {
        let (text, mut next) = (self.passed_value(call, 0, lane), self.passed_value(call, 1, lane));
        let Some(text) = self.text(env, lane, text) else { return u64::MAX };
        let mut count = 0;
        let line = format(&text, |argument| {
            count += 1;
            let size: u64 = if argument == Argument::Word { 4 } else { 8 };
            next = next.next_multiple_of(size);
            let byte = |at| self.byte(env, lane, next.wrapping_add(at)).unwrap_or(0);
            let value = (0..size).fold(0, |value, at| value | u64::from(byte(at)) << (8 * at));
            next = next.wrapping_add(size);
            let text = || self.text(env, lane, value);
            (value, if argument == Argument::Text { text() } else { None })
        });
        if env.print(&line) { count } else { u64::MAX }
    }

    /// What a failed `assert` says.
    fn assertion(&self, env: &Env<'_>, call: &CallSite, lane: usize) -> String {
        let text = |index: usize| {
            let bytes = self.text(env, lane, self.passed_value(call, index, lane)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let line = self.passed_value(call, 2, lane) as u32;
        format!("assertion `{}` failed at {}:{line} in `{}`", text(0), text(1), text(3))
    }

    /// The bytes of a string up to its 0; `None` for an address outside all memory.
    fn text(&self, env: &Env<'_>, lane: usize, address: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < MOST_TEXT {
            match self.byte(env, lane, address.wrapping_add(bytes.len() as u64)) {
                Some(0) => break,
                Some(byte) => bytes.push(byte),
                None if bytes.is_empty() => return None,
                None => break,
            }
        }
        Some(bytes)
    }

    /// A byte at a generic address as one lane sees it, without any check.
    fn byte(&self, env: &Env<'_>, lane: usize, address: u64) -> Option<u8> {
        let space = space_of(address);
        let at = address.wrapping_sub(window(space)) as usize;
        let word = match space {
            Space::Local => {
                let at = self.local_address(lane, at as u64).ok()? as usize;
                return Some((self.local.get(at / 4)?[lane] >> (8 * (at % 4))) as u8);
            }
            Space::Shared => *env.shared.get((env.base_of(env.rank) as usize + at) / 4)?,
            Space::Cluster => return None,
            Space::Param => *env.cx.params.get(at / 4)?,
            _ => return env.byte(address),
        };
        Some((word >> (8 * (at % 4))) as u8)
    }
}

fn trap(env: &mut Env<'_>, pc: u32, lane: usize, detail: String) -> Result<Flow, Halt> {
    env.report(Kind::Trap, pc, Facts { lane: lane as u32, detail, fatal: true, ..Facts::default() });
    Err(Halt)
}

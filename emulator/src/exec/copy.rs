//! `cp.async`: copies by a thread that are done at some time between their instruction and the wait for their group.
//!
//! The seed decides for every instruction whether its copies happen at once or when they are waited for. Either way the
//! destination counts as uninitialised in between, so that a read that comes too early is found in both cases.

use super::Warp;
use super::env::{Env, Facts, Halt};
use super::request::{Shape, Touch};
use crate::decode::op::{Access, Address, Slot, SourceBytes, Space, Strength, ThreadCopy};
use crate::lanes::{LANES, Mask, Row, Wide, lanes};
use crate::report::Kind;

/// The copies of one instruction of a warp.
#[derive(Clone, Debug)]
pub(crate) struct PendingCopy {
    warp: u32,
    pc: u32,
    mask: Mask,
    to: Wide,
    /// The same in the memory of the cluster.
    places: Wide,
    from: Wide,
    /// Bytes read, lane by lane.
    size: Row,
    /// Group of each lane.
    group: Row,
    copy: ThreadCopy,
    /// Whether the data is there already.
    done: bool,
    /// Whether a read of the destination was reported.
    told: bool,
}

/// Copies on their way.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    pending: Vec<PendingCopy>,
    /// Groups that each lane of each warp has closed.
    closed: Vec<Row>,
}

impl Copies {
    /// The state at the start of a CTA.
    pub fn reset(&mut self, warps: usize) {
        self.pending.clear();
        self.closed.clear();
        self.closed.resize(warps, [0; LANES]);
    }

    /// Closes the current group of some lanes.
    pub fn commit(&mut self, warp: u32, run: Mask) {
        for lane in lanes(run) {
            let closed = &mut self.closed[warp as usize][lane];
            *closed = closed.saturating_add(1);
        }
    }

    /// The copy whose destination contains a byte of shared memory that is read: its instruction, warp and lane.
    pub fn covering(&mut self, at: u64) -> Option<(u32, u32, u32)> {
        self.pending.iter_mut().find_map(|copy| {
            let hit = |lane: &usize| at.wrapping_sub(copy.places[*lane]) < u64::from(copy.copy.bytes);
            let lane = lanes(copy.mask).find(hit)?;
            copy.told = true;
            Some((copy.pc, copy.warp, lane as u32))
        })
    }

    /// Takes out the parts of copies that a wait of some lanes covers: all of them, or those beyond the last `keep`
    /// closed groups.
    fn take(&mut self, warp: u32, run: Mask, keep: Option<u32>) -> Vec<PendingCopy> {
        let closed = self.closed[warp as usize];
        let mut due = Vec::new();
        for copy in self.pending.iter_mut().filter(|copy| copy.warp == warp && copy.mask & run != 0) {
            let covered = |lane: &usize| match keep {
                None => true,
                Some(keep) => u64::from(copy.group[*lane]) + u64::from(keep) < u64::from(closed[*lane]),
            };
            let mask = lanes(copy.mask & run).filter(covered).fold(0, |mask, lane| mask | 1 << lane);
            if mask != 0 {
                due.push(PendingCopy { mask, ..copy.clone() });
                copy.mask &= !mask;
            }
        }
        self.pending.retain(|copy| copy.mask != 0);
        due
    }
}

impl Warp {
    /// `cp.async` by the lanes of `run`.
    pub(super) fn copy_async(&mut self, env: &mut Env<'_>, pc: u32, copy: &ThreadCopy, run: Mask) -> Result<(), Halt> {
        self.comes_behind(env, pc, run);
        let bytes = u32::from(copy.bytes);
        let size = std::array::from_fn(|lane| match copy.source {
            SourceBytes::All => bytes,
            SourceBytes::Some(slot) => (self.get(Slot::Narrow(slot), lane) as u32).min(bytes),
            SourceBytes::Ignore(p) => {
                if self.pred(p) >> lane & 1 == 1 {
                    0
                } else {
                    bytes
                }
            }
        });
        let mut pending = PendingCopy {
            warp: env.warp,
            pc,
            mask: run,
            places: {
                let base = env.base_of(env.rank);
                self.addresses(&copy.to).map(|to| base.wrapping_add(to))
            },
            to: self.addresses(&copy.to),
            from: self.addresses(&copy.from),
            size,
            group: env.copies.closed[env.warp as usize],
            copy: *copy,
            done: env.draw() & 1 == 0,
            told: false,
        };
        // The destination is checked now, in either case.
        if pending.done {
            self.transfer(env, &pending)?;
        } else {
            self.zero(env, &pending, run)?;
        }
        hide(env, &pending);
        pending.mask = run;
        env.copies.pending.push(pending);
        Ok(())
    }

    /// Waits for copies of some lanes, see [`Copies::take`].
    pub(super) fn wait_copies(&mut self, env: &mut Env<'_>, run: Mask, keep: Option<u32>) -> Result<(), Halt> {
        for copy in env.copies.take(env.warp, run, keep) {
            if copy.done {
                self.touch(env, &copy);
            } else {
                self.transfer(env, &copy)?;
            }
        }
        Ok(())
    }

    /// Reads the source and writes the destination.
    fn transfer(&mut self, env: &mut Env<'_>, copy: &PendingCopy) -> Result<(), Halt> {
        let ThreadCopy { bytes, data, .. } = copy.copy;
        env.counters.fetched_bytes += lanes(copy.mask).map(|lane| u64::from(copy.size[lane])).sum::<u64>();
        let full =
            lanes(copy.mask).filter(|lane| copy.size[*lane] == u32::from(bytes)).fold(0, |m, lane| m | 1 << lane);
        let words = bytes / 4;
        if full != copy.mask {
            self.zero(env, copy, copy.mask & !full)?;
            for lane in lanes(copy.mask & !full) {
                // Parts of an element, byte by byte.
                for at in 0..u64::from(copy.size[lane]) {
                    let (mut from, mut to) = (copy.from, copy.to);
                    from[lane] = from[lane].wrapping_add(at);
                    to[lane] = to[lane].wrapping_add(at);
                    self.access_at(env, copy.pc, &part(Space::Global, 1, 1, data), Touch::Load, from, 1 << lane)?;
                    self.access_at(env, copy.pc, &part(Space::Shared, 1, 1, data), Touch::Store, to, 1 << lane)?;
                }
            }
        }
        if full != 0 {
            self.access_at(env, copy.pc, &part(Space::Global, 4, words, data), Touch::Load, copy.from, full)?;
            self.access_at(env, copy.pc, &part(Space::Shared, 4, words, data), Touch::Store, copy.to, full)?;
        }
        Ok(())
    }

    /// Writes zeros to the destination of some lanes.
    fn zero(&mut self, env: &mut Env<'_>, copy: &PendingCopy, run: Mask) -> Result<(), Halt> {
        let words = copy.copy.bytes / 4;
        for n in 0..usize::from(words) {
            if let Some(slot) = env.cx.kernel.data[copy.copy.data as usize + n] {
                for lane in lanes(run) {
                    self.put(slot, lane, 0);
                }
            }
        }
        self.access_at(env, copy.pc, &part(Space::Shared, 4, words, copy.copy.data), Touch::Store, copy.to, run)
    }

    /// Writes the destination again with what it holds, as the copy's end.
    fn touch(&mut self, env: &mut Env<'_>, copy: &PendingCopy) {
        let shape = Shape { pc: copy.pc, bytes: 4, count: 1, touch: Touch::Store, strength: Strength::Weak };
        for lane in lanes(copy.mask) {
            for word in 0..usize::from(copy.copy.bytes / 4) {
                let at = copy.places[lane] as usize + 4 * word;
                self.check_shared_lane(env, shape, lane, at as u64);
            }
        }
    }
}

/// The cluster has ended: reports copies that their threads have not waited for. Shared memory that they write may be
/// another block's then.
pub(super) fn finish(env: &mut Env<'_>) {
    for PendingCopy { pc, warp, mask, told, .. } in std::mem::take(&mut env.copies.pending) {
        if told || !env.cx.options.sanitizers.races {
            continue;
        }
        let lane = mask.trailing_zeros();
        let detail = "the block has ended, and the thread has not waited for the copy".to_owned();
        let thread = env.thread_of(warp, lane);
        env.report_thread(Kind::UnfinishedCopy, pc, thread, Facts { lane, detail, ..Facts::default() });
    }
}

/// The destination holds nothing until the copy is waited for.
fn hide(env: &mut Env<'_>, copy: &PendingCopy) {
    for lane in lanes(copy.mask) {
        for word in 0..usize::from(copy.copy.bytes / 4) {
            let at = copy.places[lane] as usize + 4 * word;
            if let Some(bytes) = env.shared_initialised.get_mut(at / 4) {
                *bytes = 0;
            }
        }
    }
}

fn part(space: Space, bytes: u8, count: u8, data: u32) -> Access {
    let address = Address { base: None, offset: 0 };
    Access { space, address, bytes, count, signed: false, strength: Strength::Weak, data }
}

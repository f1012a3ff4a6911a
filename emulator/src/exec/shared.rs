//! Shared memory: loads and stores with their checks, and the wavefronts they cost.

use super::Warp;
use super::access::{Shape, Touch, small_location};
use super::env::{Env, Facts, Halt};
use super::small::{get, nibble, put};
use crate::decode::op::{Access, Slot, Space};
use crate::lanes::{LANES, Mask, Wide, lanes};
use crate::report::Kind;
use crate::shadow::cell::{AccessKind, Conflict, Who};

impl Warp {
    pub(super) fn load_shared(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        self.check_small(env, shape, Space::Shared, u64::from(env.cx.shared_bytes), addresses, run)?;
        env.counters.shared.load_requests += 1;
        env.counters.shared.bytes_loaded += shape.total() * u64::from(run.count_ones());
        count_wavefronts(env, addresses, shape.total(), run);
        if let (4, 1, Some(Slot::Narrow(d))) = (shape.bytes, shape.count, env.cx.kernel.data[access.data as usize]) {
            // One word a lane, with the checks compiled for it.
            let shape = Shape { bytes: 4, count: 1, ..shape };
            for lane in lanes(run) {
                let at = addresses[lane] as usize;
                self.check_shared(env, shape, lane, at, None);
                self.narrow[d as usize][lane] = env.shared[at / 4];
            }
            return Ok(());
        }
        for lane in lanes(run) {
            for n in 0..usize::from(shape.count) {
                let at = addresses[lane] as usize + n * usize::from(shape.bytes);
                self.check_shared(env, shape, lane, at, None);
                let value = get(&env.shared, at, shape.bytes);
                self.put_loaded(env, access, n, lane, value);
            }
        }
        Ok(())
    }

    pub(super) fn store_shared(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        self.check_small(env, shape, Space::Shared, u64::from(env.cx.shared_bytes), addresses, run)?;
        env.counters.shared.store_requests += 1;
        env.counters.shared.bytes_stored += shape.total() * u64::from(run.count_ones());
        count_wavefronts(env, addresses, shape.total(), run);
        if let (4, 1, Some(Slot::Narrow(b))) = (shape.bytes, shape.count, env.cx.kernel.data[access.data as usize]) {
            let shape = Shape { bytes: 4, count: 1, ..shape };
            for lane in lanes(run) {
                let at = addresses[lane] as usize;
                let value = self.narrow[b as usize][lane];
                self.check_shared(env, shape, lane, at, Some(u64::from(value)));
                env.shared[at / 4] = value;
            }
            return Ok(());
        }
        for lane in lanes(run) {
            for n in 0..usize::from(shape.count) {
                let at = addresses[lane] as usize + n * usize::from(shape.bytes);
                let value = self.stored(env, access, n, lane);
                self.check_shared(env, shape, lane, at, Some(value));
                put(&mut env.shared, at, shape.bytes, value);
            }
        }
        Ok(())
    }

    /// Race and initialisation checks of one element of shared memory; `value` is what a store writes.
    #[inline(always)]
    pub(super) fn check_shared(&self, env: &mut Env<'_>, shape: Shape, lane: usize, at: usize, value: Option<u64>) {
        let bytes = shape.bytes;
        let need = nibble(at, bytes);
        let words = if bytes == 8 { 2 } else { 1 };
        for word in at / 4..at / 4 + words {
            if value.is_none()
                && env.cx.options.sanitizers.initialisation
                && env.shared_initialised[word] & need != need
            {
                uninitialised(env, shape, lane, at);
                // One report is enough for these bytes.
                env.shared_initialised[word] |= need;
            }
            if shape.touch != Touch::Load {
                env.shared_initialised[word] |= need;
            }
            if env.cx.options.sanitizers.races {
                let who =
                    Who { warp: env.warp, lane: lane as u32, epoch: env.clocks.epoch(env.warp as usize), pc: shape.pc };
                if let Some(conflict) = env.cells.access(&env.clocks, word, need, shape.kind(), who) {
                    race(env, shape, lane, at, value, conflict);
                }
            }
        }
    }
}

#[cold]
fn uninitialised(env: &mut Env<'_>, shape: Shape, lane: usize, at: usize) {
    let location = small_location(env, Space::Shared, at as u64, u64::from(shape.bytes));
    if let Some((pc, warp, other)) = env.copies.covering(at as u64) {
        let thread = crate::report::Thread { cta: env.cta, warp, lane: other };
        let facts = Facts {
            lane: lane as u32,
            location: Some(location),
            other: Some(("copy that was not waited for", thread, pc)),
            ..Facts::default()
        };
        env.report(Kind::InFlight, shape.pc, facts);
        return;
    }
    if let Some((object, barrier)) = env.mbarriers.covering(at as u64) {
        let detail = format!("an ordinary read of the mbarrier at {object:#x} ({})", barrier.describe());
        let facts = Facts { lane: lane as u32, location: Some(location), detail, ..Facts::default() };
        env.report(Kind::BarrierMisuse, shape.pc, facts);
        return;
    }
    let facts = Facts { lane: lane as u32, location: Some(location), ..Facts::default() };
    env.report(Kind::UninitialisedRead, shape.pc, facts);
}

#[cold]
fn race(env: &mut Env<'_>, shape: Shape, lane: usize, at: usize, value: Option<u64>, conflict: Conflict) {
    let writes = shape.kind() == AccessKind::Write && conflict.kind == AccessKind::Write;
    let same = writes && value == Some(get(&env.shared, at, shape.bytes));
    let location = small_location(env, Space::Shared, at as u64, u64::from(shape.bytes));
    env.report_race(shape.pc, lane as u32, location, same, conflict);
}

/// Wavefronts of a shared-memory request: 32 banks of 4 bytes; accesses of 8 (16) bytes go by halves (quarters) of the warp; lanes that read
/// the same word share it.
pub(super) fn count_wavefronts(env: &mut Env<'_>, addresses: &Wide, bytes: u64, run: Mask) {
    let groups = (bytes.max(4) / 4) as usize;
    let size = LANES / groups;
    let shared = &mut env.counters.shared;
    for group in 0..groups {
        let mask = run >> (group * size) & (u32::MAX >> (32 - size));
        if mask == 0 {
            continue;
        }
        shared.ideal_transactions += 1;
        shared.transactions += conflict_degree(&addresses[group * size..][..size], mask, groups);
    }
}

/// The most distinct words that one bank must deliver.
fn conflict_degree(addresses: &[u64], mask: Mask, words: usize) -> u64 {
    // First the two patterns that have no conflicts: all in one word, or all in different banks.
    let mut banks: u32 = 0;
    let mut clash = false;
    let first = addresses[mask.trailing_zeros() as usize] / 4;
    let mut same = true;
    for lane in lanes(mask) {
        let word = addresses[lane] / 4;
        same &= word == first;
        for part in 0..words as u64 {
            let bit = 1u32 << ((word + part) % 32);
            clash |= banks & bit != 0;
            banks |= bit;
        }
    }
    if same || !clash {
        return 1;
    }
    let mut distinct: Vec<u64> =
        lanes(mask).flat_map(|lane| (0..words as u64).map(move |part| addresses[lane] / 4 + part)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let mut loads = [0u64; 32];
    for word in distinct {
        loads[(word % 32) as usize] += 1;
    }
    loads.into_iter().max().unwrap_or(1)
}

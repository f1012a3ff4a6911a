//! Shared memory: loads and stores with their checks, and the wavefronts they cost.

use super::Warp;
use super::access::{Shape, small_location};
use super::elements::Pattern;
use super::env::{Env, Facts, Halt};
use crate::decode::op::{Access, Space};
use crate::lanes::{LANES, Mask, Wide, lanes};
use crate::report::Kind;
use crate::shadow::cell::{AccessKind, Conflict, Who, Words};

impl Warp {
    #[inline(always)]
    pub(super) fn load_shared(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let pattern = self.check_small(env, shape, Space::Shared, u64::from(env.cx.shared_bytes), addresses, run)?;
        env.counters.shared.load_requests += 1;
        env.counters.shared.bytes_loaded += shape.total() * u64::from(run.count_ones());
        count_wavefronts(env, addresses, &pattern, shape.total(), run);
        self.check_shared(env, shape, None, addresses, &pattern, run);
        if let (true, Some(d)) = (pattern.contiguous, Warp::one_row(env, access, run)) {
            let first = pattern.least as usize / 4;
            self.narrow[d].copy_from_slice(&env.shared[first..first + LANES]);
            return Ok(());
        }
        if let (true, Some(d)) = (pattern.is_uniform(), Warp::one_row(env, access, run)) {
            self.narrow[d] = [env.shared[pattern.least as usize / 4]; LANES];
            return Ok(());
        }
        self.read(env, access, &env.shared[..], (addresses, 0), run);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn store_shared(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let pattern = self.check_small(env, shape, Space::Shared, u64::from(env.cx.shared_bytes), addresses, run)?;
        env.counters.shared.store_requests += 1;
        env.counters.shared.bytes_stored += shape.total() * u64::from(run.count_ones());
        count_wavefronts(env, addresses, &pattern, shape.total(), run);
        self.check_shared(env, shape, Some(access), addresses, &pattern, run);
        if let (true, Some(s)) = (pattern.contiguous, Warp::one_row(env, access, run)) {
            let first = pattern.least as usize / 4;
            env.shared[first..first + LANES].copy_from_slice(&self.narrow[s]);
            return Ok(());
        }
        let mut shared = std::mem::take(&mut env.shared);
        self.write(env, access, &mut shared[..], (addresses, 0), run);
        env.shared = shared;
        Ok(())
    }

    /// Race and initialisation checks of a request to shared memory, before its data moves; `store` says where a store's values are.
    #[inline(always)]
    pub(super) fn check_shared(
        &self,
        env: &mut Env<'_>,
        shape: Shape,
        store: Option<&Access>,
        addresses: &Wide,
        pattern: &Pattern,
        run: Mask,
    ) {
        let total = shape.total();
        let (first, end) = (pattern.least as usize / 4, (pattern.end(total) as usize).div_ceil(4));
        // Whole words, one after the other.
        let words = pattern.contiguous && total >= 2 && (pattern.least | pattern.end(total)) & 3 == 0;
        let initialised = &mut env.shared_initialised[first..end];
        if words && !shape.looks() {
            initialised.fill(0xf);
        } else if !(words && initialised.iter().fold(0xf, |all, word| all & word) == 0xf) {
            let lanes = if pattern.is_uniform() { 1 << pattern.first } else { run };
            self.check_initialised(env, shape, addresses, lanes);
        }
        if !env.cx.options.sanitizers.races {
            return;
        }
        let warp = env.warp;
        let who = Who { warp, lane: pattern.first, epoch: env.clocks.epoch(warp as usize), pc: shape.pc };
        if words {
            let words = Words { first, count: end - first, shift: total.trailing_zeros() };
            if env.cells.access_words(&env.clocks, words, shape.kind(), who) {
                return;
            }
        }
        // Of many lanes that read one word, two tell it all.
        let run = if pattern.is_uniform() && shape.kind() != AccessKind::Write { ends(pattern) } else { run };
        if total == 4 && shape.bytes == 4 {
            // One word a lane, as in transposes and permutations.
            for lane in lanes(run) {
                let who = Who { lane: lane as u32, ..who };
                let word = addresses[lane] as usize / 4;
                if let Some(conflict) = env.cells.access(&env.clocks, word, 0xf, shape.kind(), who) {
                    self.shared_race(env, shape, store, addresses, (lane, word), run, conflict);
                }
            }
            return;
        }
        self.check_words(env, shape, store, addresses, run);
    }

    /// As [`Warp::check_shared`], of one lane's access.
    #[inline(never)]
    pub(super) fn check_shared_lane(&self, env: &mut Env<'_>, shape: Shape, lane: usize, address: u64) {
        let mut addresses = [0; LANES];
        addresses[lane] = address;
        let pattern = Pattern::new(&addresses, 1 << lane, shape.total());
        self.check_shared(env, shape, None, &addresses, &pattern, 1 << lane);
    }

    /// Initialised bytes of a request, lane by lane.
    #[inline(never)]
    fn check_initialised(&self, env: &mut Env<'_>, shape: Shape, addresses: &Wide, run: Mask) {
        for lane in lanes(run) {
            let mut missing = false;
            for (word, need) in shape.words(addresses[lane]) {
                let initialised = &mut env.shared_initialised[word];
                // One report is enough for these bytes.
                missing |= *initialised & need != need;
                *initialised |= need;
            }
            if missing && shape.looks() && env.cx.options.sanitizers.initialisation {
                uninitialised(env, shape, lane, addresses[lane] as usize);
            }
        }
    }

    /// Races of a request, lane by lane.
    #[inline(never)]
    fn check_words(&self, env: &mut Env<'_>, shape: Shape, store: Option<&Access>, addresses: &Wide, run: Mask) {
        let epoch = env.clocks.epoch(env.warp as usize);
        for lane in lanes(run) {
            let who = Who { warp: env.warp, lane: lane as u32, epoch, pc: shape.pc };
            for (word, bytes) in shape.words(addresses[lane]) {
                if let Some(conflict) = env.cells.access(&env.clocks, word, bytes, shape.kind(), who) {
                    self.shared_race(env, shape, store, addresses, (lane, word), run, conflict);
                }
            }
        }
    }

    #[cold]
    #[expect(clippy::too_many_arguments, reason = "both sides of a race")]
    fn shared_race(
        &self,
        env: &mut Env<'_>,
        shape: Shape,
        store: Option<&Access>,
        addresses: &Wide,
        (lane, word): (usize, usize),
        run: Mask,
        conflict: Conflict,
    ) {
        let writes = shape.kind() == AccessKind::Write && conflict.kind == AccessKind::Write;
        let same_store = conflict.warp == env.warp && conflict.pc == shape.pc && run >> conflict.lane & 1 == 1;
        let same_store = same_store.then_some(conflict.lane as usize);
        let same = writes
            && store
                .is_some_and(|access| self.same_value(env, access, &env.shared[..], (addresses, 0), lane, same_store));
        // A vector is named by the word in question.
        let (address, bytes) = if shape.total() > 4 { (word as u64 * 4, 4) } else { (addresses[lane], shape.total()) };
        let location = small_location(env, Space::Shared, address, bytes);
        env.report_race(shape.pc, lane as u32, location, same, conflict);
    }
}

/// The first and the last lane of a request.
fn ends(pattern: &Pattern) -> Mask {
    1 << pattern.first | 1 << pattern.last
}

#[cold]
fn uninitialised(env: &mut Env<'_>, shape: Shape, lane: usize, at: usize) {
    let location = small_location(env, Space::Shared, at as u64, shape.total());
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

/// Wavefronts of a shared-memory request: 32 banks of 4 bytes; accesses of 8 (16) bytes go by halves (quarters) of the warp; lanes that read
/// the same word share it.
#[inline(always)]
pub(super) fn count_wavefronts(env: &mut Env<'_>, addresses: &Wide, pattern: &Pattern, bytes: u64, run: Mask) {
    let groups = (bytes.max(4) / 4) as usize;
    let shared = &mut env.counters.shared;
    if pattern.is_uniform() || (pattern.contiguous && run == Mask::MAX && bytes >= 4) {
        let groups =
            if run == Mask::MAX { groups } else { (0..groups).filter(|g| group(run, *g, groups) != 0).count() };
        shared.ideal_transactions += groups as u64;
        shared.transactions += groups as u64;
        return;
    }
    scattered_wavefronts(env, addresses, groups, run);
}

/// The lanes of one of `groups` equal parts of a warp.
fn group(run: Mask, group: usize, groups: usize) -> Mask {
    let size = LANES / groups;
    run >> (group * size) & (u32::MAX >> (32 - size))
}

#[inline(never)]
fn scattered_wavefronts(env: &mut Env<'_>, addresses: &Wide, groups: usize, run: Mask) {
    let size = LANES / groups;
    for part in 0..groups {
        let mask = group(run, part, groups);
        if mask == 0 {
            continue;
        }
        env.counters.shared.ideal_transactions += 1;
        env.counters.shared.transactions += conflict_degree(&addresses[part * size..][..size], mask, groups);
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

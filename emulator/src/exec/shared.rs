//! Shared memory: loads and stores with their checks, and the wavefronts they cost.

use tilewright_kernel::banks;

use super::Warp;
use super::access::{check_small, small_location};
use super::env::{Env, Facts, Halt};
use super::request::{Request, Shape, Touch};
use crate::decode::op::Space;
use crate::lanes::{LANES, Mask, Wide, lanes, row};
use crate::report::Kind;
use crate::shadow::cell::{AccessKind, Conflict, Who, Words};

impl Warp {
    #[inline(always)]
    pub(super) fn access_shared(&mut self, env: &mut Env<'_>, request: &Request<'_>) -> Result<(), Halt> {
        if env.cx.ctas() > 1 {
            return self.access_cluster(env, request, true);
        }
        self.check_shared(env, request)?;
        if env.cx.kernel.follows {
            self.follow_shared(env, request);
        }
        self.move_data(env.cx.kernel, request, &mut env.shared[..], 0);
        Ok(())
    }

    /// All checks and counts of a request to shared memory, before its data moves: its addresses are places in that of
    /// the cluster.
    #[inline(always)]
    pub(super) fn check_shared(&self, env: &mut Env<'_>, request: &Request<'_>) -> Result<(), Halt> {
        check_small(env, request, Space::Shared, env.cx.all_shared())?;
        request.count(&mut env.counters.shared);
        count_wavefronts(env, request);
        self.look_at_shared(env, request);
        Ok(())
    }

    /// Race and initialisation checks of a request inside shared memory.
    #[inline(always)]
    pub(super) fn look_at_shared(&self, env: &mut Env<'_>, request: &Request<'_>) {
        let Request { shape, pattern, .. } = *request;
        let (total, end) = (shape.total(), request.end());
        let (first, last) = (pattern.least as usize / 4, (end as usize).div_ceil(4));
        // Whole words, one after the other.
        let words = pattern.contiguous && total >= 2 && (pattern.least | end) & 3 == 0;
        if !words || !whole_words(&mut env.shared_initialised[first..last], shape) {
            let lanes = if pattern.is_uniform() { 1 << pattern.first } else { request.run };
            self.check_initialised(env, &request.of(lanes));
        }
        if !env.cx.options.sanitizers.races {
            return;
        }
        if env.bulk.near_shared(pattern.least, end) {
            super::bulk::meet_shared(env, request);
        }
        let warp = env.warp;
        let who = Who { warp, lane: pattern.first, epoch: env.clocks.epoch(warp as usize), pc: shape.pc };
        if words {
            let words = Words { first, count: last - first, shift: total.trailing_zeros() };
            if !env.cells.access_words(&env.clocks, words, shape.kind(), who) {
                self.check_lanes_words(env, request, request.run);
            }
            return;
        }
        // Of many lanes that read one word, two tell it all.
        let ends = pattern.is_uniform() && shape.kind() != AccessKind::Write;
        let run = if ends { 1 << pattern.first | 1 << pattern.last } else { request.run };
        self.check_words(env, &request.of(run));
    }

    /// As [`Warp::look_at_shared`], of one lane's access.
    #[inline(never)]
    pub(super) fn check_shared_lane(&self, env: &mut Env<'_>, shape: Shape, lane: usize, address: u64) {
        self.look_at_shared(env, &Request::one(shape, None, lane, address));
    }

    /// Initialised bytes of a request, run by run, or lane by lane.
    #[inline(never)]
    fn check_initialised(&self, env: &mut Env<'_>, request: &Request<'_>) {
        for run in request.runs() {
            let words = run.words().map(|words| &mut env.shared_initialised[words]);
            if !words.is_some_and(|words| whole_words(words, request.shape)) {
                self.check_initialised_lanes(env, &request.of(run.mask()));
            }
        }
    }

    #[inline(never)]
    fn check_initialised_lanes(&self, env: &mut Env<'_>, request: &Request<'_>) {
        let shape = request.shape;
        // Then the value is looked at when it is used.
        let followed = env.cx.kernel.follows && request.access.is_some() && shape.touch == Touch::Load;
        for lane in lanes(request.run) {
            let address = request.address(lane);
            let (mut missing, mut outside) = (false, false);
            for (word, need) in shape.words(address) {
                outside |= env.in_gap(word, need);
                let initialised = &mut env.shared_initialised[word];
                missing |= *initialised & need != need;
                // One report is enough for these bytes.
                if !followed {
                    *initialised |= need;
                }
            }
            if outside {
                let location = small_location(env, Space::Shared, address, shape.total());
                let facts = Facts { lane: lane as u32, location: Some(location), ..Facts::default() };
                env.report(Kind::OutOfBounds, shape.pc, facts);
                continue;
            }
            if missing && shape.looks() && env.cx.options.sanitizers.initialisation {
                uninitialised(env, shape, lane, address as usize, followed);
            }
        }
    }

    /// Races of a request, run by run, or lane by lane.
    #[inline(never)]
    fn check_words(&self, env: &mut Env<'_>, request: &Request<'_>) {
        let shape = request.shape;
        let epoch = env.clocks.epoch(env.warp as usize);
        for run in request.runs() {
            if let (Some(words), 1..) = (run.words(), run.shift) {
                let who = Who { warp: env.warp, lane: run.lane, epoch, pc: shape.pc };
                let words = Words { first: words.start, count: words.len(), shift: run.shift };
                if env.cells.access_words(&env.clocks, words, shape.kind(), who) {
                    continue;
                }
            }
            self.check_lanes_words(env, request, run.mask());
        }
    }

    /// Races of a part of a request's lanes, word by word.
    #[inline(never)]
    fn check_lanes_words(&self, env: &mut Env<'_>, request: &Request<'_>, part: Mask) {
        let shape = request.shape;
        let epoch = env.clocks.epoch(env.warp as usize);
        for lane in lanes(part) {
            let who = Who { warp: env.warp, lane: lane as u32, epoch, pc: shape.pc };
            for (word, bytes) in shape.words(request.address(lane)) {
                if let Some(conflict) = env.cells.access(&env.clocks, word, bytes, shape.kind(), who) {
                    self.shared_race(env, request, (lane, word), conflict);
                }
            }
        }
    }

    #[cold]
    fn shared_race(&self, env: &mut Env<'_>, request: &Request<'_>, (lane, word): (usize, usize), conflict: Conflict) {
        let shape = request.shape;
        let writes = shape.kind() == AccessKind::Write && conflict.kind == AccessKind::Write;
        let same_store = conflict.warp == env.warp && conflict.pc == shape.pc && request.run >> conflict.lane & 1 == 1;
        let same_store = same_store.then_some(conflict.lane as usize);
        let same = writes && self.same_value(env, request, &env.shared[..], 0, lane, same_store);
        // A vector is named by the word in question.
        let (address, bytes) =
            if shape.total() > 4 { (word as u64 * 4, 4) } else { (request.address(lane), shape.total()) };
        let location = small_location(env, Space::Shared, address, bytes);
        env.report_race(shape.pc, lane as u32, location, same, conflict);
    }
}

/// Whether an access of whole words is fine as far as initialisation goes: what it writes is initialised now.
#[inline(always)]
fn whole_words(initialised: &mut [u8], shape: Shape) -> bool {
    if shape.looks() {
        return initialised.iter().fold(0xf, |all, word| all & word) == 0xf;
    }
    // Those with a byte between variables are looked at one by one.
    if initialised.iter().fold(0, |any, word| any | word) > 0xf {
        return false;
    }
    initialised.fill(0xf);
    true
}

#[cold]
fn uninitialised(env: &mut Env<'_>, shape: Shape, lane: usize, at: usize, followed: bool) {
    let location = small_location(env, Space::Shared, at as u64, shape.total());
    if let Some((pc, warp, other)) = env.copies.covering(at as u64) {
        let thread = env.thread_of(warp, other);
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
    if followed || env.cx.wants_to_follow() {
        return;
    }
    let facts = Facts { lane: lane as u32, location: Some(location), ..Facts::default() };
    env.report(Kind::UninitialisedRead, shape.pc, facts);
}

/// Wavefronts of a shared-memory request: 32 banks of 4 bytes; accesses of 8 (16) bytes go by halves (quarters) of the
/// warp; lanes that read the same word share it.
#[inline(always)]
fn count_wavefronts(env: &mut Env<'_>, request: &Request<'_>) {
    let Request { run, pattern, .. } = *request;
    let groups = banks::parts(request.shape.total() as u32);
    let shared = &mut env.counters.shared;
    // Words that follow each other are in different banks.
    if pattern.is_uniform() || pattern.contiguous {
        let groups =
            if run == Mask::MAX { groups } else { (0..groups).filter(|g| group(run, *g, groups) != 0).count() };
        shared.ideal_transactions += groups as u64;
        shared.transactions += groups as u64;
        return;
    }
    scattered_wavefronts(env, request, groups);
}

/// The lanes of one of `groups` equal parts of a warp.
fn group(run: Mask, group: usize, groups: usize) -> Mask {
    let size = LANES / groups;
    run >> (group * size) & (u32::MAX >> (32 - size))
}

#[inline(never)]
fn scattered_wavefronts(env: &mut Env<'_>, request: &Request<'_>, groups: usize) {
    let run = request.run;
    let addresses: Wide = row!(lane => request.address(lane));
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
    banks::cycles(lanes(mask).map(|lane| addresses[lane]), words)
}

//! Global memory: bounds by region, alignment, initialisation, races, sectors, and the data.

use super::Warp;
use super::access::{Shape, Touch};
use super::elements::{Pattern, get, put};
use super::env::{Cx, Env, Facts, Halt};
use crate::decode::op::{Access, Atomic, Strength};
use crate::lanes::{LANES, Mask, Wide, lanes};
use crate::memory::device::Allocation;
use crate::memory::region::{Denied, Region};
use crate::report::{Kind, Location, Near, Thread};
use crate::shadow::cell::{AccessKind, Who};
use crate::shadow::line::{LineConflict, Run};

impl Warp {
    #[inline(always)]
    pub(super) fn load_global(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let total = shape.total();
        let pattern = Pattern::new(addresses, run, total);
        let traffic = &mut env.counters.global;
        traffic.load_requests += 1;
        traffic.bytes_loaded += total * u64::from(run.count_ones());
        count_sectors(env, addresses, &pattern, total, run);
        let Some(region) = whole(env, shape, &pattern) else {
            self.check_lanes(env, shape, None, addresses, &pattern, run)?;
            return self.load_lanes(env, shape, access, addresses, run);
        };
        self.check_region(env, shape, region, None, addresses, &pattern, run);
        let allocation = &*region.allocation;
        if let (true, Some(d)) = (pattern.contiguous, Warp::one_row(env, access, run)) {
            let source = &allocation.words()[(pattern.least - allocation.base) as usize / 4..][..LANES];
            let row = &mut self.narrow[d];
            for lane in 0..LANES {
                row[lane] = source[lane].load(std::sync::atomic::Ordering::Relaxed);
            }
            return Ok(());
        }
        if let (true, Some(d)) = (pattern.is_uniform(), Warp::one_row(env, access, run)) {
            self.narrow[d] = [allocation.load((pattern.least - allocation.base) as usize / 4); LANES];
            return Ok(());
        }
        self.read(env, access, &allocation, (addresses, allocation.base), run);
        Ok(())
    }

    /// A load whose lanes touch several regions.
    #[inline(never)]
    fn load_lanes(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        for lane in lanes(run) {
            let region = self.region(env, shape, addresses[lane], lane)?;
            self.read(env, access, &&*region.allocation, (addresses, region.allocation.base), 1 << lane);
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn store_global(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let total = shape.total();
        let pattern = Pattern::new(addresses, run, total);
        let traffic = &mut env.counters.global;
        traffic.store_requests += 1;
        traffic.bytes_stored += total * u64::from(run.count_ones());
        count_sectors(env, addresses, &pattern, total, run);
        let Some(region) = whole(env, shape, &pattern) else {
            self.check_lanes(env, shape, Some(access), addresses, &pattern, run)?;
            return self.store_lanes(env, shape, access, addresses, run);
        };
        self.check_region(env, shape, region, Some(access), addresses, &pattern, run);
        let mut allocation = &*region.allocation;
        if pattern.contiguous {
            before_store(env, region, pattern.least, pattern.end(total) - pattern.least);
            if let Some(s) = Warp::one_row(env, access, run) {
                let target = &allocation.words()[(pattern.least - allocation.base) as usize / 4..][..LANES];
                let row = &self.narrow[s];
                for lane in 0..LANES {
                    target[lane].store(row[lane], std::sync::atomic::Ordering::Relaxed);
                }
                return Ok(());
            }
            if let (2, 1) = (shape.bytes, shape.count) {
                self.store_halves(env, access, allocation, (pattern.least - allocation.base) as usize, &pattern);
                return Ok(());
            }
        } else {
            for lane in lanes(run) {
                before_store(env, region, addresses[lane], total);
            }
        }
        self.write(env, access, &mut allocation, (addresses, region.allocation.base), run);
        Ok(())
    }

    /// A store whose lanes touch several regions.
    #[inline(never)]
    fn store_lanes(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        for lane in lanes(run) {
            let region = self.region(env, shape, addresses[lane], lane)?;
            before_store(env, region, addresses[lane], shape.total());
            let mut allocation = &*region.allocation;
            self.write(env, access, &mut allocation, (addresses, region.allocation.base), 1 << lane);
        }
        Ok(())
    }

    /// Stores of consecutive halves: two lanes fill a word, which then needs no read-modify-write.
    #[inline(never)]
    fn store_halves(
        &self,
        env: &Env<'_>,
        access: &Access,
        mut allocation: &Allocation,
        start: usize,
        pattern: &Pattern,
    ) {
        let mut lane = pattern.first as usize;
        let mut at = start;
        while lane <= pattern.last as usize {
            let value = self.stored(env, access, 0, lane);
            if at.is_multiple_of(4) && lane < pattern.last as usize {
                allocation.store(at / 4, (value | self.stored(env, access, 0, lane + 1) << 16) as u32);
                lane += 2;
                at += 4;
            } else {
                put(&mut allocation, lane, at, 2, value);
                lane += 1;
                at += 2;
            }
        }
    }

    pub(super) fn atomic_global(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        atomic: &Atomic,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let total = shape.total();
        let pattern = Pattern::new(addresses, run, total);
        let traffic = &mut env.counters.global;
        traffic.store_requests += 1;
        traffic.bytes_stored += total * u64::from(run.count_ones());
        count_sectors(env, addresses, &pattern, total, run);
        match whole(env, shape, &pattern) {
            Some(region) => self.check_region(env, shape, region, None, addresses, &pattern, run),
            None => self.check_lanes(env, shape, None, addresses, &pattern, run)?,
        }
        for lane in lanes(run) {
            let region = self.region(env, shape, addresses[lane], lane)?;
            let mut allocation = &*region.allocation;
            let start = addresses[lane] - allocation.base;
            allocation.mark(start, total);
            for n in 0..usize::from(shape.count) {
                let at = start as usize + n * usize::from(shape.bytes);
                // Kernels with global atomics run on one host thread.
                let old = get(&allocation, lane, at, shape.bytes);
                let new = self.atomic_value(env, atomic, n, lane, old);
                put(&mut allocation, lane, at, shape.bytes, new);
            }
        }
        Ok(())
    }

    /// The region of one lane's access, or the finding that it has none.
    #[inline]
    fn region<'a>(&self, env: &mut Env<'a>, shape: Shape, address: u64, lane: usize) -> Result<&'a Region, Halt> {
        let cx = env.cx;
        let total = shape.total();
        let hint = env.hints[shape.pc as usize] as usize;
        let found = cx.regions.find(address, total, shape.touch != Touch::Load, hint);
        let found = found.and_then(|index| match cx.regions.get(index).heap && !in_block(cx, address, total) {
            true => Err(Denied::Outside),
            false => Ok(index),
        });
        if let (Ok(index), true) = (found, address & (total - 1) == 0) {
            env.hints[shape.pc as usize] = index as u32;
            return Ok(cx.regions.get(index));
        }
        refuse(env, shape, address, lane, found);
        Err(Halt)
    }

    /// Initialisation and race checks of a request inside one region; `store` says where a store's values are.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a request is described by as many things")]
    fn check_region(
        &self,
        env: &mut Env<'_>,
        shape: Shape,
        region: &Region,
        store: Option<&Access>,
        addresses: &Wide,
        pattern: &Pattern,
        run: Mask,
    ) {
        let sanitizers = env.cx.options.sanitizers;
        if shape.looks() && sanitizers.initialisation && !region.allocation.is_complete() {
            self.check_written(env, shape, region, addresses, pattern, run);
        }
        if !sanitizers.races || region.constant {
            return;
        }
        let total = shape.total();
        if pattern.contiguous || pattern.is_uniform() && shape.kind() != AccessKind::Write {
            let shift = total.trailing_zeros();
            let lanes = if pattern.contiguous { run.count_ones() } else { 1 };
            let part = Run { address: pattern.least, lane: pattern.first, lanes, shift };
            let conflict = record(env, shape, part);
            if let Some(conflict) = conflict {
                self.global_race(env, shape, region, store, addresses, run, conflict);
            }
            if lanes == 1 && pattern.last != pattern.first {
                let part = Run { lane: pattern.last, ..part };
                if let Some(conflict) = record(env, shape, part) {
                    self.global_race(env, shape, region, store, addresses, run, conflict);
                }
            }
            return;
        }
        self.check_runs(env, shape, region, store, addresses, run);
    }

    #[inline(never)]
    fn check_written(
        &self,
        env: &mut Env<'_>,
        shape: Shape,
        region: &Region,
        addresses: &Wide,
        pattern: &Pattern,
        run: Mask,
    ) {
        let (allocation, total) = (&region.allocation, shape.total());
        if pattern.contiguous {
            let offset = pattern.least - allocation.base;
            if let Some(at) = allocation.first_uninitialised(offset, pattern.end(total) - pattern.least) {
                let lane = pattern.first as usize + ((at - offset) / total) as usize;
                uninitialised(env, shape, addresses[lane], lane);
            }
            return;
        }
        for lane in lanes(run) {
            if allocation.first_uninitialised(addresses[lane] - allocation.base, total).is_some() {
                uninitialised(env, shape, addresses[lane], lane);
            }
        }
    }

    /// The race checks of a request that is not contiguous, run of lanes by run of lanes.
    #[inline(never)]
    fn check_runs(
        &self,
        env: &mut Env<'_>,
        shape: Shape,
        region: &Region,
        store: Option<&Access>,
        addresses: &Wide,
        run: Mask,
    ) {
        let total = shape.total();
        let mut rest = run;
        while rest != 0 {
            let first = rest.trailing_zeros();
            let start = addresses[first as usize];
            let mut count = 1;
            while first + count < 32
                && rest >> (first + count) & 1 == 1
                && addresses[(first + count) as usize] == start.wrapping_add(u64::from(count) * total)
            {
                count += 1;
            }
            let taken = ((1u64 << count) - 1) as u32;
            rest &= !(taken << first);
            let part = Run { address: start, lane: first, lanes: count, shift: total.trailing_zeros() };
            if let Some(conflict) = record(env, shape, part) {
                self.global_race(env, shape, region, store, addresses, run, conflict);
            }
        }
    }

    /// All checks of a request that does not lie in one region, or is misaligned, lane by lane.
    #[inline(never)]
    fn check_lanes(
        &self,
        env: &mut Env<'_>,
        shape: Shape,
        store: Option<&Access>,
        addresses: &Wide,
        pattern: &Pattern,
        run: Mask,
    ) -> Result<(), Halt> {
        for lane in lanes(run) {
            self.region(env, shape, addresses[lane], lane)?;
        }
        for lane in lanes(run) {
            let region = self.region(env, shape, addresses[lane], lane)?;
            let (address, lane) = (addresses[lane], lane as u32);
            let one =
                Pattern { least: address, greatest: address, contiguous: true, first: lane, last: lane, ..*pattern };
            self.check_region(env, shape, region, store, addresses, &one, 1 << lane);
        }
        Ok(())
    }

    /// Reports a race, and whether both sides wrote the same.
    #[cold]
    #[expect(clippy::too_many_arguments, reason = "both sides of a race")]
    fn global_race(
        &self,
        env: &mut Env<'_>,
        shape: Shape,
        region: &Region,
        store: Option<&Access>,
        addresses: &Wide,
        run: Mask,
        conflict: LineConflict,
    ) {
        let other = conflict.other;
        let writes = shape.kind() == AccessKind::Write && other.kind == AccessKind::Write;
        let same_store = other.warp == env.warp && other.pc == shape.pc && run >> other.lane & 1 == 1;
        let same_store = same_store.then_some(other.lane as usize);
        let same = writes
            && store.is_some_and(|access| {
                let at = (addresses, region.allocation.base);
                self.same_value(env, access, &&*region.allocation, at, conflict.lane as usize, same_store)
            });
        let location = global_location(env, conflict.address, u64::from(shape.bytes));
        env.report_race(shape.pc, conflict.lane, location, same, other);
    }
}

/// What must happen before bytes of a region are stored: they are saved if the launch may have to be undone, and count as initialised.
#[inline(always)]
fn before_store(env: &Env<'_>, region: &Region, address: u64, bytes: u64) {
    let start = address - region.allocation.base;
    if let Some(undo) = &env.cx.undo {
        undo.before_store(region.index, start as usize / 4, (start + bytes - 1) as usize / 4);
    }
    region.allocation.mark(start, bytes);
}

/// The region that contains a whole aligned request.
#[inline(always)]
fn whole<'a>(env: &mut Env<'a>, shape: Shape, pattern: &Pattern) -> Option<&'a Region> {
    if pattern.bits & (shape.total() - 1) != 0 {
        return None;
    }
    let cx = env.cx;
    let hint = env.hints[shape.pc as usize] as usize;
    let bytes = (pattern.greatest - pattern.least).checked_add(shape.total())?;
    let index = cx.regions.find(pattern.least, bytes, shape.touch != Touch::Load, hint).ok()?;
    env.hints[shape.pc as usize] = index as u32;
    let region = cx.regions.get(index);
    if region.heap && !in_block(cx, pattern.least, bytes) {
        return None;
    }
    Some(region)
}

/// Whether a range of the heap is inside one of its blocks.
#[cold]
fn in_block(cx: &Cx<'_>, address: u64, bytes: u64) -> bool {
    cx.heap.as_ref().is_some_and(|heap| heap.contains(address, bytes))
}

/// Records a run in the shadow lines, and returns the first race.
#[inline(always)]
fn record(env: &mut Env<'_>, shape: Shape, run: Run) -> Option<LineConflict> {
    let warp = env.warp;
    let who = Who { warp, lane: run.lane, epoch: env.clocks.epoch(warp as usize), pc: shape.pc };
    let constant = shape.strength == Strength::Constant;
    let (conflict, stale) = env.lines.access(&env.clocks, run, shape.kind(), constant, who);
    if let Some(address) = stale {
        stale_read(env, shape, run, address);
    }
    conflict
}

#[cold]
fn stale_read(env: &mut Env<'_>, shape: Shape, run: Run, address: u64) {
    let location = global_location(env, address, 1);
    let lane = run.lane + ((address.saturating_sub(run.address)) >> run.shift) as u32;
    let facts = Facts { lane: lane.min(31), location: Some(location), ..Facts::default() };
    env.report(Kind::StaleRead, shape.pc, facts);
}

#[cold]
fn uninitialised(env: &mut Env<'_>, shape: Shape, address: u64, lane: usize) {
    let location = global_location(env, address, shape.total());
    env.report(
        Kind::UninitialisedRead,
        shape.pc,
        Facts { lane: lane as u32, location: Some(location), ..Facts::default() },
    );
}

#[cold]
fn refuse(env: &mut Env<'_>, shape: Shape, address: u64, lane: usize, found: Result<usize, Denied>) {
    let total = shape.total();
    let mut location = global_location(env, address, total);
    let (kind, detail) = match found {
        Ok(_) => (Kind::Misaligned, format!("the address must be a multiple of {total}")),
        Err(Denied::ReadOnly(index)) => {
            let region = env.cx.regions.get(index);
            location.near = Some(near(region, address));
            (Kind::ReadOnlyWrite, String::new())
        }
        Err(Denied::Outside) => {
            let freed =
                env.cx.memory.freed_at(address).map(|label| format!("the address is in `{label}`, which was freed"));
            (Kind::OutOfBounds, freed.unwrap_or_default())
        }
    };
    env.report(
        kind,
        shape.pc,
        Facts { lane: lane as u32, location: Some(location), detail, fatal: true, ..Facts::default() },
    );
}

fn near(region: &Region, address: u64) -> Near {
    Near {
        label: region.label.clone(),
        offset: i128::from(address) - i128::from(region.base),
        bytes: region.end - region.base,
        element: region.element,
    }
}

/// A location in global memory, relative to the region that contains it or is nearest.
pub(super) fn global_location(env: &Env<'_>, address: u64, bytes: u64) -> Location {
    let inside = env.cx.regions.find(address, bytes, false, usize::MAX).ok().map(|index| env.cx.regions.get(index));
    let region = inside.or_else(|| env.cx.regions.nearest(address, bytes).map(|(region, _)| region));
    Location { space: "global", address, bytes, near: region.map(|region| near(region, address)) }
}

/// Sectors of 32 bytes that a request touches, and the least number that could hold its bytes.
#[inline(always)]
fn count_sectors(env: &mut Env<'_>, addresses: &Wide, pattern: &Pattern, total: u64, run: Mask) {
    if pattern.contiguous || pattern.is_uniform() {
        let traffic = &mut env.counters.global;
        let end = pattern.greatest.saturating_add(total);
        traffic.transactions += (end - 1) / 32 - pattern.least / 32 + 1;
        traffic.ideal_transactions += (end - pattern.least).div_ceil(32);
        return;
    }
    scattered_sectors(env, addresses, total, run);
}

#[inline(never)]
fn scattered_sectors(env: &mut Env<'_>, addresses: &Wide, total: u64, run: Mask) {
    // Lanes that read one address need its bytes once.
    let traffic = &mut env.counters.global;
    let mut starts = [0; LANES];
    let (mut count, mut sorted) = (0, true);
    for lane in lanes(run) {
        sorted &= count == 0 || starts[count - 1] <= addresses[lane];
        starts[count] = addresses[lane];
        count += 1;
    }
    let starts = &mut starts[..count];
    if !sorted {
        starts.sort_unstable();
    }
    let distinct = |pairs: std::slice::Windows<'_, u64>, shift: u32| {
        1 + pairs.filter(|pair| pair[0] >> shift != pair[1] >> shift).count() as u64
    };
    traffic.transactions += distinct(starts.windows(2), 5);
    traffic.ideal_transactions += (distinct(starts.windows(2), 0) * total).div_ceil(32);
}

/// The finding of a race between two CTAs.
pub(crate) fn report_cross(env: &mut Env<'_>, conflict: crate::shadow::cross::CrossConflict) {
    let [x, y, _] = env.cx.grid.map(u64::from);
    let cta = |n: u64| [(n % x) as u32, (n / x % y) as u32, (n / x / y) as u32];
    let location = global_location(env, conflict.address, 1);
    let thread = Thread { cta: env.cta, warp: u32::from(conflict.site.warp), lane: u32::from(conflict.site.lane) };
    let (other, detail) = match conflict.other_cta {
        Some(number) => {
            let site = conflict.other_site;
            let thread = Thread { cta: cta(number), warp: u32::from(site.warp), lane: u32::from(site.lane) };
            (Some((conflict.other.name(), thread, site.pc)), String::new())
        }
        None => (None, format!("several other blocks access the byte: {}", conflict.other.name())),
    };
    let detail = if detail.is_empty() {
        format!("this block's {} and the other are in different blocks, which nothing orders", conflict.kind.name())
    } else {
        detail
    };
    let facts = Facts { lane: thread.lane, location: Some(location), other, detail, ..Facts::default() };
    env.report_thread(Kind::Race, conflict.site.pc, thread, facts);
}

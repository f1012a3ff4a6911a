//! Global memory: bounds by region, alignment, initialisation, races, sectors, and the data.

use super::Warp;
use super::access::{Shape, Touch};
use super::env::{Env, Facts, Halt};
use crate::decode::op::{Access, Atomic, AtomicFn, Slot, Strength};
use crate::lanes::{LANES, Mask, Wide, lanes};
use crate::memory::device::Allocation;
use crate::memory::region::{Denied, Region};
use crate::report::{Kind, Location, Near, Thread};
use crate::shadow::cell::{AccessKind, Who};
use crate::shadow::line::Run;

/// How the addresses of a request lie.
#[derive(Clone, Copy, Debug)]
struct Pattern {
    /// Least address.
    least: u64,
    /// One past the last byte.
    end: u64,
    /// Lanes from `first` to `last` are all there and their elements follow each other.
    contiguous: bool,
    first: u32,
    last: u32,
}

impl Pattern {
    #[inline(always)]
    fn new(addresses: &Wide, run: Mask, total: u64) -> Pattern {
        let first = run.trailing_zeros();
        let last = 31 - run.leading_zeros();
        let start = addresses[first as usize];
        if run == Mask::MAX {
            let mut off = 0;
            for (lane, address) in addresses.iter().enumerate() {
                off |= address ^ start.wrapping_add(lane as u64 * total);
            }
            if off == 0 && start <= u64::MAX - 32 * total {
                return Pattern { least: start, end: start + 32 * total, contiguous: true, first, last };
            }
        }
        let (mut least, mut end, mut contiguous) = (u64::MAX, 0u64, run.count_ones() == last - first + 1);
        for lane in lanes(run) {
            let address = addresses[lane];
            least = least.min(address);
            end = end.max(address.saturating_add(total));
            contiguous &= address == start.wrapping_add((lane as u64 - u64::from(first)) * total);
        }
        Pattern { least, end, contiguous, first, last }
    }
}

/// `bytes` (1, 2, 4, 8) bytes at an offset that they divide.
#[inline(always)]
fn get(allocation: &Allocation, at: usize, bytes: u8) -> u64 {
    let word = u64::from(allocation.load(at / 4));
    match bytes {
        8 => word | u64::from(allocation.load(at / 4 + 1)) << 32,
        4 => word,
        2 => word >> (8 * (at & 2)) & 0xffff,
        _ => word >> (8 * (at & 3)) & 0xff,
    }
}

#[inline(always)]
fn put(allocation: &Allocation, at: usize, bytes: u8, value: u64) {
    match bytes {
        8 => {
            allocation.store(at / 4, value as u32);
            allocation.store(at / 4 + 1, (value >> 32) as u32);
        }
        4 => allocation.store(at / 4, value as u32),
        _ => {
            let shift = 8 * (at & 3);
            allocation.store_bits(at / 4, (value as u32) << shift, (super::small::part(at, bytes)) as u32);
        }
    }
}

impl Warp {
    pub(super) fn load_global(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let cx = env.cx;
        let total = shape.total();
        let pattern = Pattern::new(addresses, run, total);
        let traffic = &mut env.counters.global;
        traffic.load_requests += 1;
        traffic.bytes_loaded += total * u64::from(run.count_ones());
        count_sectors(env, addresses, pattern, total, run);
        if let Some(region) = whole(env, shape, pattern, false) {
            self.check_span(env, shape, region, addresses, pattern, run);
            let allocation = &region.allocation;
            let start = (addresses[pattern.first as usize] - allocation.base) as usize;
            // Words in order are the usual case by far.
            let data = cx.kernel.data[access.data as usize];
            if let (true, 4, 1, Some(Slot::Narrow(d))) = (run == Mask::MAX, shape.bytes, shape.count, data) {
                let source = &allocation.words()[start / 4..][..LANES];
                let row = &mut self.narrow[d as usize];
                for lane in 0..LANES {
                    row[lane] = source[lane].load(std::sync::atomic::Ordering::Relaxed);
                }
                return Ok(());
            }
            for n in 0..usize::from(shape.count) {
                for lane in lanes(run) {
                    let at = start + (lane - pattern.first as usize) * total as usize + n * usize::from(shape.bytes);
                    let value = get(allocation, at, shape.bytes);
                    self.put_loaded(env, access, n, lane, value);
                }
            }
            return Ok(());
        }
        self.check_runs(env, shape, addresses, run, None)?;
        for lane in lanes(run) {
            let region = self.region(env, shape, addresses[lane], lane)?;
            let start = (addresses[lane] - region.allocation.base) as usize;
            for n in 0..usize::from(shape.count) {
                let value = get(&region.allocation, start + n * usize::from(shape.bytes), shape.bytes);
                self.put_loaded(env, access, n, lane, value);
            }
        }
        Ok(())
    }

    pub(super) fn store_global(
        &mut self,
        env: &mut Env<'_>,
        shape: Shape,
        access: &Access,
        addresses: &Wide,
        run: Mask,
    ) -> Result<(), Halt> {
        let cx = env.cx;
        let total = shape.total();
        let pattern = Pattern::new(addresses, run, total);
        let traffic = &mut env.counters.global;
        traffic.store_requests += 1;
        traffic.bytes_stored += total * u64::from(run.count_ones());
        count_sectors(env, addresses, pattern, total, run);
        if let Some(region) = whole(env, shape, pattern, true) {
            let allocation = &region.allocation;
            let start = (addresses[pattern.first as usize] - allocation.base) as usize;
            let span = pattern.end - pattern.least;
            if let Some(conflict) = self.check_span(env, shape, region, addresses, pattern, run) {
                let lane = conflict.lane as usize;
                let at = start + (lane - pattern.first as usize) * total as usize;
                let same = (0..usize::from(shape.count)).all(|n| {
                    get(allocation, at + n * usize::from(shape.bytes), shape.bytes) == self.stored(env, access, n, lane)
                });
                race(env, shape, conflict, same);
            }
            if let Some(undo) = &cx.undo {
                undo.before_store(region.index, start / 4, (start + span as usize - 1) / 4);
            }
            allocation.mark(start as u64, span);
            let data = cx.kernel.data[access.data as usize];
            if let (true, 4, 1, Some(Slot::Narrow(s))) = (run == Mask::MAX, shape.bytes, shape.count, data) {
                let target = &allocation.words()[start / 4..][..LANES];
                let row = &self.narrow[s as usize];
                for lane in 0..LANES {
                    target[lane].store(row[lane], std::sync::atomic::Ordering::Relaxed);
                }
                return Ok(());
            }
            if let (2, 1) = (shape.bytes, shape.count) {
                self.store_halves(env, access, allocation, start, pattern);
                return Ok(());
            }
            for n in 0..usize::from(shape.count) {
                for lane in lanes(run) {
                    let at = start + (lane - pattern.first as usize) * total as usize + n * usize::from(shape.bytes);
                    put(allocation, at, shape.bytes, self.stored(env, access, n, lane));
                }
            }
            return Ok(());
        }
        self.check_runs(env, shape, addresses, run, Some(access))?;
        for lane in lanes(run) {
            let region = self.region(env, shape, addresses[lane], lane)?;
            let start = (addresses[lane] - region.allocation.base) as usize;
            if let Some(undo) = &cx.undo {
                undo.before_store(region.index, start / 4, (start + total as usize - 1) / 4);
            }
            region.allocation.mark(start as u64, total);
            for n in 0..usize::from(shape.count) {
                put(
                    &region.allocation,
                    start + n * usize::from(shape.bytes),
                    shape.bytes,
                    self.stored(env, access, n, lane),
                );
            }
        }
        Ok(())
    }

    /// Stores of consecutive halves: two lanes fill a word, which then needs no read-modify-write.
    fn store_halves(&self, env: &Env<'_>, access: &Access, allocation: &Allocation, start: usize, pattern: Pattern) {
        let mut lane = pattern.first as usize;
        let mut at = start;
        while lane <= pattern.last as usize {
            let value = self.stored(env, access, 0, lane);
            if at.is_multiple_of(4) && lane < pattern.last as usize {
                allocation.store(at / 4, (value | self.stored(env, access, 0, lane + 1) << 16) as u32);
                lane += 2;
                at += 4;
            } else {
                put(allocation, at, 2, value);
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
        count_sectors(env, addresses, pattern, total, run);
        if atomic.op == AtomicFn::Exch {
            // An exchange may be the first write.
            for lane in lanes(run) {
                if let Ok(region) = self.region(env, shape, addresses[lane], lane) {
                    region.allocation.mark(addresses[lane] - region.allocation.base, total);
                }
            }
        }
        self.check_runs(env, shape, addresses, run, None)?;
        for lane in lanes(run) {
            let region = self.region(env, shape, addresses[lane], lane)?;
            let start = (addresses[lane] - region.allocation.base) as usize;
            region.allocation.mark(start as u64, total);
            for n in 0..usize::from(shape.count) {
                let at = start + n * usize::from(shape.bytes);
                // Kernels with global atomics run on one host thread.
                let old = get(&region.allocation, at, shape.bytes);
                let new = self.atomic_value(env, atomic, n, lane, old);
                put(&region.allocation, at, shape.bytes, new);
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
        if let (Ok(index), true) = (found, address & (total - 1) == 0) {
            env.hints[shape.pc as usize] = index as u32;
            return Ok(cx.regions.get(index));
        }
        refuse(env, shape, address, lane, found);
        Err(Halt)
    }

    /// Initialisation and race checks of a contiguous request inside one region. Returns a race for the caller to classify if it is a store's,
    /// and reports the others.
    #[inline]
    fn check_span(
        &self,
        env: &mut Env<'_>,
        shape: Shape,
        region: &Region,
        addresses: &Wide,
        pattern: Pattern,
        run: Mask,
    ) -> Option<crate::shadow::line::LineConflict> {
        let allocation = &region.allocation;
        let sanitizers = env.cx.options.sanitizers;
        let total = shape.total();
        if shape.touch == Touch::Load && sanitizers.initialisation && !allocation.is_complete() {
            let offset = pattern.least - allocation.base;
            if let Some(at) = allocation.first_uninitialised(offset, pattern.end - pattern.least) {
                let lane = pattern.first as usize + ((at - offset) / total) as usize;
                uninitialised(env, shape, addresses[lane], lane);
            }
        }
        if !sanitizers.races || region.constant {
            return None;
        }
        let lanes = run.count_ones();
        let run = Run { address: pattern.least, lane: pattern.first, lanes, shift: total.trailing_zeros() };
        record(env, shape, run)
    }

    /// The checks of a request that is not contiguous, run of lanes by run of lanes; `store` says where the values are.
    fn check_runs(
        &self,
        env: &mut Env<'_>,
        shape: Shape,
        addresses: &Wide,
        run: Mask,
        store: Option<&Access>,
    ) -> Result<(), Halt> {
        let sanitizers = env.cx.options.sanitizers;
        let total = shape.total();
        for lane in lanes(run) {
            let region = self.region(env, shape, addresses[lane], lane)?;
            if shape.touch != Touch::Store && sanitizers.initialisation {
                let offset = addresses[lane] - region.allocation.base;
                if region.allocation.first_uninitialised(offset, total).is_some() {
                    uninitialised(env, shape, addresses[lane], lane);
                }
            }
        }
        if !sanitizers.races {
            return Ok(());
        }
        let mut rest = run;
        while rest != 0 {
            let first = rest.trailing_zeros();
            let start = addresses[first as usize];
            let region = self.region(env, shape, start, first as usize)?;
            let mut count = 1;
            while first + count < 32
                && rest >> (first + count) & 1 == 1
                && addresses[(first + count) as usize] == start.wrapping_add(u64::from(count) * total)
            {
                count += 1;
            }
            let taken = ((1u64 << count) - 1) as u32;
            rest &= !(taken << first);
            if region.constant {
                continue;
            }
            let part = Run { address: start, lane: first, lanes: count, shift: total.trailing_zeros() };
            if let Some(conflict) = record(env, shape, part) {
                let lane = conflict.lane as usize;
                let same = store.is_some_and(|access| {
                    // Within one store of several lanes to one address, an earlier lane's value is not in memory yet.
                    let other = (conflict.other.warp == env.warp && conflict.other.pc == shape.pc)
                        .then_some(conflict.other.lane as usize);
                    (0..usize::from(shape.count)).all(|n| {
                        let new = self.stored(env, access, n, lane);
                        let old = match other {
                            Some(other) if addresses[other] == addresses[lane] => self.stored(env, access, n, other),
                            _ => {
                                let at =
                                    (addresses[lane] - region.allocation.base) as usize + n * usize::from(shape.bytes);
                                get(&region.allocation, at, shape.bytes)
                            }
                        };
                        old == new
                    })
                });
                race(env, shape, conflict, same);
            }
        }
        Ok(())
    }
}

/// The region that contains a whole contiguous, aligned request.
#[inline(always)]
fn whole<'a>(env: &mut Env<'a>, shape: Shape, pattern: Pattern, write: bool) -> Option<&'a Region> {
    if !pattern.contiguous || pattern.least & (shape.total() - 1) != 0 {
        return None;
    }
    let cx = env.cx;
    let hint = env.hints[shape.pc as usize] as usize;
    let index = cx.regions.find(pattern.least, pattern.end - pattern.least, write, hint).ok()?;
    env.hints[shape.pc as usize] = index as u32;
    Some(cx.regions.get(index))
}

/// Records a run in the shadow lines; a store's race is returned for classification, others are reported.
#[inline]
fn record(env: &mut Env<'_>, shape: Shape, run: Run) -> Option<crate::shadow::line::LineConflict> {
    let warp = env.warp;
    let who = Who { warp, lane: run.lane, epoch: env.clocks.epoch(warp as usize), pc: shape.pc };
    let constant = shape.strength == Strength::Constant;
    let (conflict, stale) = env.lines.access(&env.clocks, run, shape.kind(), constant, who);
    if let Some(address) = stale {
        let location = global_location(env, address, 1);
        let lane = run.lane + ((address.saturating_sub(run.address)) >> run.shift) as u32;
        env.report(
            Kind::StaleRead,
            shape.pc,
            Facts { lane: lane.min(31), location: Some(location), ..Facts::default() },
        );
    }
    let conflict = conflict?;
    if shape.touch == Touch::Store {
        return Some(conflict);
    }
    race(env, shape, conflict, false);
    None
}

#[cold]
fn race(env: &mut Env<'_>, shape: Shape, conflict: crate::shadow::line::LineConflict, same: bool) {
    let same = same && conflict.other.kind == AccessKind::Write && shape.kind() == AccessKind::Write;
    let location = global_location(env, conflict.address, u64::from(shape.bytes));
    env.report_race(shape.pc, conflict.lane, location, same, conflict.other);
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
#[inline]
fn count_sectors(env: &mut Env<'_>, addresses: &Wide, pattern: Pattern, total: u64, run: Mask) {
    let traffic = &mut env.counters.global;
    if pattern.contiguous {
        let touched = (pattern.end - 1) / 32 - pattern.least / 32 + 1;
        traffic.transactions += touched;
        traffic.ideal_transactions += (pattern.end - pattern.least).div_ceil(32);
        return;
    }
    let mut sectors = [0; LANES];
    let mut count = 0;
    for lane in lanes(run) {
        sectors[count] = addresses[lane] / 32;
        count += 1;
    }
    let sectors = &mut sectors[..count];
    sectors.sort_unstable();
    let distinct = 1 + sectors.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
    traffic.transactions += distinct;
    // Lanes that read one address need its bytes once.
    let mut starts = [0; LANES];
    let mut count = 0;
    for lane in lanes(run) {
        starts[count] = addresses[lane];
        count += 1;
    }
    let starts = &mut starts[..count];
    starts.sort_unstable();
    let different = 1 + starts.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
    traffic.ideal_transactions += (different * total).div_ceil(32);
}

/// The finding of a race between two CTAs.
pub(crate) fn report_cross(env: &mut Env<'_>, conflict: crate::shadow::cross::CrossConflict) {
    let [x, y, _] = env.cx.grid.map(u64::from);
    let cta = |n: u64| [(n % x) as u32, (n / x % y) as u32, (n / x / y) as u32];
    let location = global_location(env, conflict.address, 1);
    let thread = Thread { cta: env.cta, warp: conflict.site.warp, lane: conflict.site.lane };
    let (other, detail) = match conflict.other_cta {
        Some(number) => {
            let site = conflict.other_site;
            let thread = Thread { cta: cta(number), warp: site.warp, lane: site.lane };
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

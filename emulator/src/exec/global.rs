//! Global memory: bounds by region, alignment, initialisation, races, sectors, and the data.

use tilewright_kernel::sectors;

use super::Warp;
use super::elements::{Pattern, get, put};
use super::env::{Cx, Env, Facts, Halt};
use super::request::{Request, Shape, Touch};
use crate::decode::op::{Access, Atomic, Strength};
use crate::lanes::{LANES, Mask, lanes};
use crate::memory::device::Allocation;
use crate::memory::region::{Denied, Region};
use crate::report::{Kind, Location, Near};
use crate::shadow::cell::{AccessKind, Who};
use crate::shadow::grid::{GridConflict, Missing, Point};
use crate::shadow::line::{Found, LineConflict, Run};

impl Warp {
    /// Lanes access global memory: each has waited for earlier launches, if it had to.
    #[inline(always)]
    pub(super) fn comes_behind(&self, env: &mut Env<'_>, pc: u32, run: Mask) {
        if run & !self.behind != 0 {
            let lane = (run & !self.behind).trailing_zeros();
            let detail = "the launch is dependent, and the thread has not executed `griddepcontrol.wait`".to_owned();
            env.report(Kind::BeforeWait, pc, Facts { lane, detail, ..Facts::default() });
        }
    }

    #[inline(always)]
    pub(super) fn access_global(&mut self, env: &mut Env<'_>, request: &Request<'_>) -> Result<(), Halt> {
        count_sectors(env, request);
        self.comes_behind(env, request.shape.pc, request.run);
        let Some(region) = whole(env, request) else { return self.access_lanes(env, request) };
        self.check_region(env, request, region);
        let (allocation, pattern) = (&*region.allocation, &request.pattern);
        if request.shape.touch == Touch::Store {
            if pattern.contiguous {
                before_store(env, region, pattern.least, request.end() - pattern.least);
            } else {
                for lane in lanes(request.run) {
                    before_store(env, region, request.address(lane), request.shape.total());
                }
            }
            if let (true, 2, 1, Some(access)) =
                (pattern.contiguous, request.shape.bytes, request.shape.count, request.access)
            {
                self.store_halves(env, access, allocation, (pattern.least - allocation.base) as usize, pattern);
                return Ok(());
            }
        }
        self.move_data(env.cx.kernel, request, &mut &*allocation, allocation.base);
        Ok(())
    }

    /// A request that does not lie in one region, or is misaligned: all checks lane by lane, and then its data.
    #[inline(never)]
    fn access_lanes(&mut self, env: &mut Env<'_>, request: &Request<'_>) -> Result<(), Halt> {
        self.check_lanes(env, request)?;
        for lane in lanes(request.run) {
            let region = self.region(env, request.shape, request.address(lane), lane)?;
            if request.shape.touch == Touch::Store {
                before_store(env, region, request.address(lane), request.shape.total());
            }
            self.move_data(env.cx.kernel, &request.lane(lane), &mut &*region.allocation, region.allocation.base);
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
        request: &Request<'_>,
        atomic: &Atomic,
    ) -> Result<(), Halt> {
        count_sectors(env, request);
        self.comes_behind(env, request.shape.pc, request.run);
        match whole(env, request) {
            Some(region) => self.check_region(env, request, region),
            None => self.check_lanes(env, request)?,
        }
        let Request { shape, run, .. } = *request;
        let total = shape.total();
        let op = atomic.op.in_global_memory();
        for lane in lanes(run) {
            let region = self.region(env, shape, request.address(lane), lane)?;
            let mut allocation = &*region.allocation;
            let start = request.address(lane) - allocation.base;
            before_store(env, region, request.address(lane), total);
            for n in 0..usize::from(shape.count) {
                let at = start as usize + n * usize::from(shape.bytes);
                // Kernels with global atomics run on one host thread.
                let old = get(&allocation, lane, at, shape.bytes);
                let new = self.atomic_value(env, op, atomic, n, lane, old);
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

    /// Initialisation and race checks of a request inside one region.
    #[inline(always)]
    fn check_region(&self, env: &mut Env<'_>, request: &Request<'_>, region: &Region) {
        let Request { shape, pattern, .. } = *request;
        let sanitizers = env.cx.options.sanitizers;
        if shape.looks() && sanitizers.initialisation && !region.allocation.is_complete() {
            self.check_written(env, request, region);
        }
        if !sanitizers.races || region.constant {
            return;
        }
        let shift = shape.total().trailing_zeros();
        if pattern.contiguous {
            let lanes = request.run.count_ones();
            self.record(env, request, region, Run { address: pattern.least, lane: pattern.first, lanes, shift });
        } else if pattern.is_uniform() && shape.kind() != AccessKind::Write {
            // Of many lanes that read one element, two tell it all.
            let first = Run { address: pattern.least, lane: pattern.first, lanes: 1, shift };
            self.record(env, request, region, first);
            if pattern.last != pattern.first {
                self.record(env, request, region, Run { lane: pattern.last, ..first });
            }
        } else {
            self.check_runs(env, request, region);
        }
    }

    #[inline(never)]
    fn check_written(&self, env: &mut Env<'_>, request: &Request<'_>, region: &Region) {
        let Request { shape, pattern, .. } = *request;
        let (allocation, total) = (&region.allocation, shape.total());
        if pattern.contiguous {
            let offset = pattern.least - allocation.base;
            if let Some(at) = allocation.first_uninitialised(offset, request.end() - pattern.least) {
                let lane = pattern.first as usize + ((at - offset) / total) as usize;
                uninitialised(env, shape, request.address(lane), lane);
            }
            return;
        }
        for lane in lanes(request.run) {
            if allocation.first_uninitialised(request.address(lane) - allocation.base, total).is_some() {
                uninitialised(env, shape, request.address(lane), lane);
            }
        }
    }

    /// The race checks of a request that is not contiguous, run of lanes by run of lanes.
    #[inline(never)]
    fn check_runs(&self, env: &mut Env<'_>, request: &Request<'_>, region: &Region) {
        for run in request.runs() {
            self.record(env, request, region, run);
        }
    }

    /// All checks of a request that does not lie in one region, or is misaligned, lane by lane.
    #[inline(never)]
    fn check_lanes(&self, env: &mut Env<'_>, request: &Request<'_>) -> Result<(), Halt> {
        for lane in lanes(request.run) {
            self.region(env, request.shape, request.address(lane), lane)?;
        }
        for lane in lanes(request.run) {
            let region = self.region(env, request.shape, request.address(lane), lane)?;
            self.check_region(env, &request.lane(lane), region);
        }
        Ok(())
    }

    /// Records a run of a request in the shadow lines, and reports the first race.
    #[inline(always)]
    fn record(&self, env: &mut Env<'_>, request: &Request<'_>, region: &Region, run: Run) {
        let (warp, shape) = (env.warp, request.shape);
        let who = Who { warp, lane: run.lane, epoch: env.clocks.epoch(warp as usize), pc: shape.pc };
        let constant = shape.strength == Strength::Constant;
        let end = run.address + (u64::from(run.lanes) << run.shift);
        if env.bulk.near_global(run.address, end) {
            super::bulk::meet_global(env, shape, run);
        }
        if let Some(found) = env.lines.access(&env.clocks, run, shape.kind(), constant, who) {
            self.report_found(env, request, region, run, &found);
        }
        if let Some(conflict) = env.outside(run, shape.kind_outside(), who) {
            self.outside_race(env, request, region, conflict);
        }
    }

    /// Reports a race with another CTA, and whether both sides wrote the same.
    #[cold]
    fn outside_race(&self, env: &mut Env<'_>, request: &Request<'_>, region: &Region, conflict: GridConflict) {
        let (shape, kind) = (request.shape, request.shape.kind_outside());
        let allocation = &*region.allocation;
        let writes = (kind, conflict.kind) == (AccessKind::Write, AccessKind::Write);
        let same = writes && self.same_value(env, request, &allocation, allocation.base, conflict.lane as usize, None);
        report_outside(env, shape.pc, (kind, u64::from(shape.bytes)), conflict, same);
    }

    #[cold]
    fn report_found(&self, env: &mut Env<'_>, request: &Request<'_>, region: &Region, run: Run, found: &Found) {
        if let Some(address) = found.stale {
            stale_read(env, request.shape, run, address);
        }
        if let Some(conflict) = found.race {
            self.global_race(env, request, region, conflict);
        }
    }

    /// Reports a race, and whether both sides wrote the same.
    #[cold]
    fn global_race(&self, env: &mut Env<'_>, request: &Request<'_>, region: &Region, conflict: LineConflict) {
        let (shape, other) = (request.shape, conflict.other);
        let writes = shape.kind() == AccessKind::Write && other.kind == AccessKind::Write;
        let same_store = other.warp == env.warp && other.pc == shape.pc && request.run >> other.lane & 1 == 1;
        let same_store = same_store.then_some(other.lane as usize);
        let allocation = &*region.allocation;
        let lane = conflict.lane as usize;
        let same = writes && self.same_value(env, request, &allocation, allocation.base, lane, same_store);
        let location = global_location(env, conflict.address, u64::from(shape.bytes));
        env.report_race(shape.pc, conflict.lane, location, same, other);
    }
}

/// What must happen before bytes of a region are stored: they are saved if the launch may have to be undone, and count
/// as initialised.
#[inline(always)]
pub(super) fn before_store(env: &Env<'_>, region: &Region, address: u64, bytes: u64) {
    let start = address - region.allocation.base;
    if let Some(undo) = &env.cx.undo {
        undo.before_store(region.index, start as usize / 4, (start + bytes - 1) as usize / 4);
    }
    region.allocation.mark(start, bytes);
}

/// The region that contains a whole aligned request.
#[inline(always)]
fn whole<'a>(env: &mut Env<'a>, request: &Request<'_>) -> Option<&'a Region> {
    let Request { shape, pattern, .. } = request;
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
            let block = env.cx.heap.as_ref().and_then(|heap| heap.freed_at(address));
            let freed = match (env.cx.memory.freed_at(address), block) {
                (Some(label), _) => Some(format!("the address is in `{label}`, which was freed")),
                (None, Some((bytes, offset, place))) => Some(format!(
                    "the address is at byte {offset} of a block of {bytes} bytes of the heap, which was freed at {place}"
                )),
                (None, None) => None,
            };
            match freed {
                Some(detail) => (Kind::UseAfterFree, detail),
                None => (Kind::OutOfBounds, String::new()),
            }
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
    Location { space: "global", address, bytes, cta: None, near: region.map(|region| near(region, address)) }
}

/// Counts a request, its bytes, the sectors of 32 bytes that it touches, and the least number that could hold its
/// bytes.
#[inline(always)]
fn count_sectors(env: &mut Env<'_>, request: &Request<'_>) {
    let (pattern, total) = (&request.pattern, request.shape.total());
    let traffic = &mut env.counters.global;
    request.count(traffic);
    if pattern.contiguous || pattern.is_uniform() {
        let (touched, least) = sectors::run(pattern.least, pattern.greatest.saturating_add(total));
        traffic.transactions += touched;
        traffic.ideal_transactions += least;
        return;
    }
    scattered_sectors(env, request);
}

#[inline(never)]
fn scattered_sectors(env: &mut Env<'_>, request: &Request<'_>) {
    let total = request.shape.total();
    // Lanes that read one address need its bytes once.
    let traffic = &mut env.counters.global;
    let mut starts = [0; LANES];
    let mut count = 0;
    for lane in lanes(request.run) {
        starts[count] = request.address(lane);
        count += 1;
    }
    let (touched, least) = sectors::scattered(&starts[..count], total);
    traffic.transactions += touched;
    traffic.ideal_transactions += least;
}

/// The finding of a race between two CTAs that nothing orders.
pub(crate) fn report_cross(env: &mut Env<'_>, conflict: crate::shadow::cross::CrossConflict) {
    let bytes = u64::from(env.cx.kernel.access_bytes(conflict.site.pc()));
    let location = global_location(env, conflict.address / bytes * bytes, bytes);
    let thread = env.thread_of(conflict.site.warp(), conflict.site.lane());
    let (other, detail) = match conflict.other_cta {
        Some(number) => {
            let site = conflict.other_site;
            let thread = env.thread_in(number, site.warp(), site.lane());
            (Some((conflict.other.name(), thread, site.pc())), String::new())
        }
        None => (None, format!("several other blocks access the byte: {}", conflict.other.name())),
    };
    let detail = if detail.is_empty() {
        format!("this block's {} and the other are in different blocks, which nothing orders", conflict.kind.name())
    } else {
        detail
    };
    let facts = Facts { lane: thread.lane, location: Some(location), other, detail, ..Facts::default() };
    let kind = if conflict.same_value { Kind::SameValueRace } else { Kind::Race };
    env.report_thread(kind, conflict.site.pc(), thread, facts);
}

/// The finding of a race between two CTAs that fences could have ordered: what is missing for it.
#[cold]
pub(super) fn report_outside(
    env: &mut Env<'_>,
    pc: u32,
    (kind, bytes): (AccessKind, u64),
    conflict: GridConflict,
    same_value: bool,
) {
    let location = global_location(env, conflict.address / bytes * bytes, bytes);
    let thread = |point: Point| env.thread_in(conflict.cta, point.warp, point.lane);
    let own = |point: Point| match (env.cx.ctas(), env.split(point.warp)) {
        (1, _) => format!("warp {}, lane {}", point.warp, point.lane),
        (_, (rank, warp)) => format!("rank {rank}, warp {warp}, lane {}", point.lane),
    };
    let [x, y, z] = thread(conflict.point).cta;
    let (first, then) = (conflict.kind.name(), kind.name());
    let missing = match conflict.missing {
        Missing::Release => format!(
            "block ({x}, {y}, {z}) has released nothing since: after the {first}, a fence (`fence.acq_rel.gpu`, or `.release`) and a strong write are missing"
        ),
        Missing::LaterFence { fence, write } => format!(
            "the fence at {} is before the {first}: one after it is missing before the strong write at {}",
            env.place_of(fence),
            env.place_of(write)
        ),
        Missing::BarrierBefore(fence) => format!(
            "the fence at {} is of {}: a barrier (`bar.sync`) between the {first} and that fence is missing",
            env.place_of(fence.pc),
            own(fence)
        ),
        Missing::Sight(write) => format!(
            "block ({x}, {y}, {z}) has released it at {}: this block has not read what that wrote, by a strong read with a fence after it",
            env.place_of(write)
        ),
        Missing::Fence(read) => format!(
            "{} has seen at {} what releases it: after that, a fence (`fence.acq_rel.gpu`, or `.acquire`) is missing",
            own(read),
            env.place_of(read.pc)
        ),
        Missing::BarrierBehind(read) => format!(
            "{} has acquired it at {}: a barrier (`bar.sync`) between that and the {then} is missing",
            own(read),
            env.place_of(read.pc)
        ),
    };
    let kernel = env.cx.kernel;
    let narrow = match (kernel.is_narrow(conflict.point.pc), kernel.is_narrow(pc)) {
        (true, true) => "both accesses are strong inside their blocks only (`.cta`); ",
        (true, false) => "the other access is strong inside its block only (`.cta`); ",
        (false, true) => "this access is strong inside its block only (`.cta`); ",
        (false, false) => "",
    };
    let detail = format!("{narrow}nothing orders the two blocks' accesses: {missing}");
    let other = Some((conflict.kind.name(), thread(conflict.point), conflict.point.pc));
    let facts = Facts { lane: conflict.lane, location: Some(location), other, detail, ..Facts::default() };
    env.report(if same_value { Kind::SameValueRace } else { Kind::Race }, pc, facts);
}

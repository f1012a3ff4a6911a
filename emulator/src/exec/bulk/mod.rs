//! Bulk copies: the checks when they are issued, the bytes when they move, and what other accesses meet in between. Which bytes a tile has is in
//! `bulk::tile`; who is ordered after a copy, in `bulk::flight` and `shadow::clock`.
//!
//! Whatever can be wrong with a copy is looked at when it is issued, whenever its bytes move; accesses that come later are compared with the copies
//! that are not known to be over. So what is found does not depend on the seed's choice, except where it changes what a program does.

mod engine;

use std::ops::Range;

pub(crate) use engine::{advance, finish};
pub(super) use engine::{commit, meet_global, meet_shared, needed, proxy_fence, wait};

use tilewright_kernel::tensor_map::{ENCODED_BYTES, GRANULE, Swizzle, TensorMap};

use super::Warp;
use super::access::{Request, Shape, Touch, check_small, small_location, space_of, window};
use super::env::{Env, Facts, Halt};
use super::global::global_location;
use crate::bulk::flight::{Cargo, Flight, Issuer, NEVER, Progress, Token, overlap};
use crate::bulk::tile::{self, Span};
use crate::decode::op::{BULK_OPERANDS, BulkFn, Slot, Space, Strength};
use crate::lanes::{LANES, Mask, lanes};
use crate::memory::device::POISON;
use crate::memory::region::{Denied, Region};
use crate::report::{Kind, Thread};
use crate::shadow::cell::{Flaw, Who, worse};
use crate::shadow::clock::{Proxied, Sight};

/// Alignment of a tile in shared memory (CUDA programming guide, alignment of multi-dimensional bulk copies).
const TILE_ALIGNMENT: u64 = 128;

/// A copy by one lane, before it is under way.
struct Issue {
    issuer: Issuer,
    f: BulkFn,
    cargo: Cargo,
    /// Bytes of the tile.
    bytes: u64,
    /// What a store really needs of the tile: the rest of the last chunk of a row may be anything.
    needed: Vec<Span>,
    mbarrier: u64,
}

impl Issue {
    fn store(&self) -> bool {
        matches!(self.f, BulkFn::StoreTile | BulkFn::Store)
    }

    /// The bytes of shared memory that its image may take: spans of a swizzle are permuted whole.
    fn shared(&self) -> Range<u64> {
        let start = u64::from(self.cargo.tile);
        start..start + self.bytes.next_multiple_of(u64::from(self.cargo.swizzle.span()))
    }

    fn who(&self, env: &Env<'_>) -> Who {
        let Issuer { pc, warp, lane } = self.issuer;
        Who { warp, lane, epoch: env.clocks.epoch(warp as usize), pc }
    }
}

/// A finding that stops the kernel.
fn stop<T>(env: &mut Env<'_>, issuer: Issuer, kind: Kind, detail: String) -> Result<T, Halt> {
    env.report(kind, issuer.pc, Facts { lane: issuer.lane, detail, fatal: true, ..Facts::default() });
    Err(Halt)
}

impl Warp {
    /// A bulk copy by the lanes of `run`, each its own.
    #[inline(never)]
    pub(super) fn bulk(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        (site, data, count): (u32, u32, u8),
        run: Mask,
    ) -> Result<(), Halt> {
        let kernel = env.cx.kernel;
        let bulk = kernel.bulks[site as usize];
        let operands = &kernel.data[data as usize..][..usize::from(count)];
        for lane in lanes(run) {
            let value = |slot: Option<Slot>| slot.map_or(0, |slot| self.get(slot, lane));
            let [shared, global, mbarrier] =
                [0, 1, 2].map(|at| value(operands[at]).wrapping_add(bulk.offsets[at] as u64));
            let issuer = Issuer { pc, warp: env.warp, lane: lane as u32 };
            let start: Vec<i32> = operands[BULK_OPERANDS..].iter().map(|slot| value(*slot) as u32 as i32).collect();
            let issue = match bulk.f {
                BulkFn::LoadTile | BulkFn::StoreTile | BulkFn::PrefetchTile => {
                    let map = tensor_map(env, issuer, global)?;
                    let issue = tiled(env, issuer, bulk.f, &map, (shared, &start, mbarrier))?;
                    if bulk.f == BulkFn::PrefetchTile {
                        continue;
                    }
                    issue
                }
                BulkFn::Load | BulkFn::Store => {
                    let bytes = value(operands[BULK_OPERANDS - 1]);
                    line(env, issuer, bulk.f, (shared, global, bytes, mbarrier))?
                }
            };
            self.begin(env, issue)?;
        }
        Ok(())
    }

    /// Checks a copy against everything that is so far, and sends it on its way.
    fn begin(&self, env: &mut Env<'_>, issue: Issue) -> Result<(), Halt> {
        let issuer = issue.issuer;
        let agent = if issue.store() { 0 } else { self.signalled(env, issuer, issue.mbarrier)? };
        if issue.bytes == 0 {
            return Ok(());
        }
        check_extent(env, &issue)?;
        check_source(env, &issue);
        check_flights(env, &issue);
        check_accesses(env, &issue);
        count(env, &issue);
        let (store, shared) = (issue.store(), issue.shared());
        if !store {
            // Until the bytes come, nobody knows what is there.
            let words = shared.start as usize / 4..(shared.end as usize).div_ceil(4);
            env.shared[words.clone()].fill(POISON);
            env.shared_initialised[words].fill(0xf);
        }
        let start = issue.cargo.spans.iter().map(|span| span.address).min().unwrap_or(0);
        let end = issue.cargo.spans.iter().map(|span| span.global().end).max().unwrap_or(0);
        let (released, finished, group) = if store {
            let groups = env.bulk.groups(&mut env.clocks, (issuer.warp, issuer.lane));
            let number = groups.closed + 1;
            (Token { agent: groups.read, number }, Token { agent: groups.done, number }, number)
        } else {
            let token = Token { agent, number: NEVER };
            (token, token, 0)
        };
        let index = env.bulk.push(Flight {
            issuer,
            store,
            shared,
            global: start..end,
            cargo: issue.cargo,
            mbarrier: issue.mbarrier,
            group,
            released,
            finished,
            progress: Progress::Issued,
        });
        engine::launch(env, index)
    }

    /// Checks the mbarrier of a load as any operation on it is checked; the agent that counts its phases.
    fn signalled(&self, env: &mut Env<'_>, issuer: Issuer, at: u64) -> Result<usize, Halt> {
        let lane = issuer.lane as usize;
        let shape = Shape {
            pc: issuer.pc,
            bytes: 8,
            count: 1,
            touch: Touch::Exchange,
            strength: Strength::Strong { wide: false },
        };
        let mut addresses = [0; LANES];
        addresses[lane] = at;
        let size = u64::from(env.cx.shared_bytes);
        check_small(env, &Request::new(shape, None, &addresses, 1 << lane), Space::Shared, size)?;
        let agent = match env.mbarriers.at(at) {
            Ok(barrier) => barrier.agent,
            Err(why) => {
                let location = small_location(env, Space::Shared, at, 8);
                let facts = Facts {
                    lane: issuer.lane,
                    location: Some(location),
                    detail: why.to_string(),
                    fatal: true,
                    ..Facts::default()
                };
                env.report(Kind::BarrierMisuse, issuer.pc, facts);
                return Err(Halt);
            }
        };
        self.check_shared_lane(env, shape, lane, at);
        super::mbarrier::hide(env, at);
        Ok(agent.unwrap_or_else(|| {
            let agent = env.clocks.new_agent();
            if let Ok(barrier) = env.mbarriers.at(at) {
                barrier.agent = Some(agent);
            }
            agent
        }))
    }
}

/// The tensor map at a generic address.
fn tensor_map(env: &mut Env<'_>, issuer: Issuer, address: u64) -> Result<TensorMap, Halt> {
    let space = space_of(address);
    let at = address.wrapping_sub(window(space));
    let cx = env.cx;
    if !at.is_multiple_of(64) {
        return stop(
            env,
            issuer,
            Kind::Misaligned,
            format!("the tensor map at {address:#x} must be at a multiple of 64"),
        );
    }
    let mut bytes = [0; ENCODED_BYTES];
    let words = match space {
        Space::Param => Some((&cx.params, u64::from(cx.kernel.param_bytes))),
        Space::Const => Some((&cx.constants, cx.constants.len() as u64 * 4)),
        _ => None,
    };
    match (space, words) {
        (_, Some((words, size))) if at.checked_add(ENCODED_BYTES as u64).is_some_and(|end| end <= size) => {
            for (chunk, word) in bytes.chunks_exact_mut(4).zip(&words[at as usize / 4..]) {
                chunk.copy_from_slice(&word.to_le_bytes());
            }
        }
        (Space::Global, _) if let Ok(index) = cx.regions.find(at, ENCODED_BYTES as u64, false, usize::MAX) => {
            let allocation = &cx.regions.get(index).allocation;
            let offset = at - allocation.base;
            if allocation.first_uninitialised(offset, ENCODED_BYTES as u64).is_some() {
                let detail = "the tensor map".to_owned();
                let location = Some(global_location(env, at, ENCODED_BYTES as u64));
                let facts = Facts { lane: issuer.lane, location, detail, fatal: true, ..Facts::default() };
                env.report(Kind::UninitialisedRead, issuer.pc, facts);
                return Err(Halt);
            }
            allocation.copy_to(offset, &mut bytes);
        }
        _ => {
            let detail = format!(
                "there are no {ENCODED_BYTES} bytes of a tensor map at {address:#x}, in parameters, constants or global memory"
            );
            return stop(env, issuer, Kind::CopyMisuse, detail);
        }
    }
    match TensorMap::decode(&bytes) {
        Ok(map) => Ok(map),
        Err(why) => stop(env, issuer, Kind::CopyMisuse, format!("the tensor map at {address:#x}: {why}")),
    }
}

/// A copy of a box, checked against its map.
fn tiled(
    env: &mut Env<'_>,
    issuer: Issuer,
    f: BulkFn,
    map: &TensorMap,
    (shared, start, mbarrier): (u64, &[i32], u64),
) -> Result<Issue, Halt> {
    let rank = map.dimensions.len();
    if rank != start.len() {
        let detail = format!("{} coordinates for a tensor map of {rank} dimensions", start.len());
        return stop(env, issuer, Kind::CopyMisuse, detail);
    }
    let store = f == BulkFn::StoreTile;
    if let Some((dimension, at)) = start.iter().enumerate().find(|(_, at)| store && **at < 0) {
        let detail = format!("a store must not start at a negative coordinate: {at} in dimension {dimension}");
        return stop(env, issuer, Kind::CopyMisuse, detail);
    }
    let inner = i64::from(start[0]) * i64::from(map.format.bytes());
    if inner.rem_euclid(GRANULE as i64) != 0 {
        // PTX manual 5.5.3.1: the address of a box is a multiple of 16 bytes; Hopper stops with an illegal instruction.
        let detail = format!(
            "the box starts {inner} bytes into a row (coordinate {} of dimension 0), not at a multiple of {GRANULE}",
            start[0]
        );
        env.report(Kind::Misaligned, issuer.pc, Facts { lane: issuer.lane, detail, ..Facts::default() });
    }
    if f != BulkFn::PrefetchTile {
        aligned(env, issuer, Space::Shared, shared, TILE_ALIGNMENT)?;
    }
    Ok(Issue {
        issuer,
        f,
        cargo: Cargo {
            tile: shared as u32,
            swizzle: map.swizzle,
            image: tile::filled(map),
            spans: tile::spans(map, start, store),
        },
        bytes: map.tile_bytes(),
        needed: if store { tile::spans(map, start, false) } else { Vec::new() },
        mbarrier,
    })
}

/// A copy of consecutive bytes.
fn line(
    env: &mut Env<'_>,
    issuer: Issuer,
    f: BulkFn,
    (shared, global, bytes, mbarrier): (u64, u64, u64, u64),
) -> Result<Issue, Halt> {
    if !bytes.is_multiple_of(GRANULE) {
        return stop(env, issuer, Kind::CopyMisuse, format!("the size is {bytes} bytes, not a multiple of {GRANULE}"));
    }
    aligned(env, issuer, Space::Shared, shared, GRANULE)?;
    aligned(env, issuer, Space::Global, global, GRANULE)?;
    let spans = vec![Span { offset: 0, address: global, bytes: bytes as u32 }];
    let size = u64::from(env.cx.shared_bytes);
    if bytes > size {
        let location = Some(small_location(env, Space::Shared, shared, bytes));
        let facts = Facts { lane: issuer.lane, location, fatal: true, ..Facts::default() };
        env.report(Kind::OutOfBounds, issuer.pc, facts);
        return Err(Halt);
    }
    let cargo =
        Cargo { tile: shared as u32, swizzle: Swizzle::None, image: vec![0; bytes as usize], spans: spans.clone() };
    Ok(Issue { issuer, f, cargo, bytes, needed: spans, mbarrier })
}

/// Refuses an address that is no multiple of `align`.
fn aligned(env: &mut Env<'_>, issuer: Issuer, space: Space, address: u64, align: u64) -> Result<(), Halt> {
    if address.is_multiple_of(align) {
        return Ok(());
    }
    let location = match space {
        Space::Shared => small_location(env, space, address, 1),
        _ => global_location(env, address, 1),
    };
    let detail = format!("the address must be a multiple of {align}");
    let facts = Facts { lane: issuer.lane, location: Some(location), detail, fatal: true, ..Facts::default() };
    env.report(Kind::Misaligned, issuer.pc, facts);
    Err(Halt)
}

/// Refuses a copy whose bytes are not all in memory, or that would overwrite a live mbarrier.
fn check_extent(env: &mut Env<'_>, issue: &Issue) -> Result<(), Halt> {
    let issuer = issue.issuer;
    let lane = issuer.lane;
    let shared = issue.shared();
    if shared.end > u64::from(env.cx.shared_bytes) {
        let location = Some(small_location(env, Space::Shared, shared.start, shared.end - shared.start));
        env.report(Kind::OutOfBounds, issuer.pc, Facts { lane, location, fatal: true, ..Facts::default() });
        return Err(Halt);
    }
    let barrier = env.mbarriers.iter().find(|(at, _)| overlap(&shared, &(**at..**at + 8))).map(|(at, _)| *at);
    if let (false, Some(at)) = (issue.store(), barrier) {
        let detail = format!("the copy writes over the mbarrier at {at:#x}");
        return stop(env, issuer, Kind::BarrierMisuse, detail);
    }
    for span in &issue.cargo.spans {
        region(env, issuer, span, issue.store())?;
    }
    Ok(())
}

/// The region that bytes of global memory are in.
fn region<'a>(env: &mut Env<'a>, issuer: Issuer, span: &Span, write: bool) -> Result<&'a Region, Halt> {
    let cx = env.cx;
    let bytes = u64::from(span.bytes);
    let denied = match cx.regions.find(span.address, bytes, write, usize::MAX) {
        Ok(index) => return Ok(cx.regions.get(index)),
        Err(denied) => denied,
    };
    let kind = match denied {
        Denied::Outside => Kind::OutOfBounds,
        Denied::ReadOnly(_) => Kind::ReadOnlyWrite,
    };
    let location = Some(global_location(env, span.address, bytes));
    let detail = "bytes of the tensor that the copy moves".to_owned();
    env.report(kind, issuer.pc, Facts { lane: issuer.lane, location, detail, fatal: true, ..Facts::default() });
    Err(Halt)
}

/// Reports source bytes that nobody has written.
fn check_source(env: &mut Env<'_>, issue: &Issue) {
    if !env.cx.options.sanitizers.initialisation {
        return;
    }
    let issuer = issue.issuer;
    let location = if issue.store() {
        let Cargo { tile, swizzle, .. } = issue.cargo;
        let missing = chunks(&issue.needed).find_map(|(offset, part)| {
            let address = swizzle.apply(tile + offset) as usize;
            let missing = |at: &usize| env.shared_initialised[at / 4] >> (at % 4) & 1 == 0;
            (address + part.start..address + part.end).find(missing)
        });
        missing.map(|at| small_location(env, Space::Shared, at as u64, 1))
    } else {
        let cx = env.cx;
        let missing = issue.cargo.spans.iter().find_map(|span| {
            let index = cx.regions.find(span.address, u64::from(span.bytes), false, usize::MAX).ok()?;
            let allocation = &cx.regions.get(index).allocation;
            let at = allocation.first_uninitialised(span.address - allocation.base, u64::from(span.bytes))?;
            Some(allocation.base + at)
        });
        missing.map(|at| global_location(env, at, 1))
    };
    if location.is_some() {
        env.report(Kind::UninitialisedRead, issuer.pc, Facts { lane: issuer.lane, location, ..Facts::default() });
    }
}

/// The 16-byte chunks of spans: offset in the tile, and which bytes of it.
fn chunks(spans: &[Span]) -> impl Iterator<Item = (u32, Range<usize>)> + '_ {
    let granule = GRANULE as u32;
    spans.iter().flat_map(move |span| {
        let end = span.offset + span.bytes;
        (span.offset / granule..end.div_ceil(granule)).map(move |chunk| {
            let start = chunk * granule;
            let part = span.offset.max(start) - start..end.min(start + granule) - start;
            (start, part.start as usize..part.end as usize)
        })
    })
}

/// Reports other copies that this one is not ordered after, and forgets those that it takes the place of.
fn check_flights(env: &mut Env<'_>, issue: &Issue) {
    if !env.cx.options.sanitizers.races {
        return;
    }
    env.bulk.sweep(&env.clocks);
    let (issuer, shared) = (issue.issuer, issue.shared());
    let knows = |token: Token| env.clocks.knows(issuer.warp as usize, token.agent, token.number);
    let mut found = None;
    for flight in env.bulk.list() {
        // In shared memory two stores only read; in global memory two loads do.
        let token = if flight.store { flight.released } else { flight.finished };
        if overlap(&flight.shared, &shared) && !(issue.store() && flight.store) && !knows(token) {
            found = Some((Space::Shared, shared.start.max(flight.shared.start), flight.issuer, !flight.store));
        }
        if (issue.store() || flight.store) && !knows(flight.finished) {
            let hit = |span: &&Span| flight.touches(&span.global());
            if let Some(span) = issue.cargo.spans.iter().find(hit) {
                let at = span.address.max(flight.global.start);
                found = found.or(Some((Space::Global, at, flight.issuer, flight.store)));
            }
        }
    }
    if !issue.store() {
        let clocks = &env.clocks;
        env.bulk.forget(|old| {
            let inside = shared.start <= old.shared.start && old.shared.end <= shared.end;
            inside && !old.store && clocks.knows(issuer.warp as usize, old.finished.agent, old.finished.number)
        });
    }
    if let Some((space, at, other, writes)) = found {
        let location = match space {
            Space::Shared => small_location(env, space, at, 1),
            _ => global_location(env, at, 1),
        };
        race(env, issuer, Some(location), (if writes { "write" } else { "read" }, other));
    }
}

fn race(
    env: &mut Env<'_>,
    me: Issuer,
    location: Option<crate::report::Location>,
    (access, other): (&'static str, Issuer),
) {
    let thread = Thread { cta: env.cta, warp: other.warp, lane: other.lane };
    let facts = Facts { lane: me.lane, location, other: Some((access, thread, other.pc)), ..Facts::default() };
    env.report(Kind::Race, me.pc, facts);
}

/// Reports ordinary accesses that the copy is not ordered after, or cannot see.
fn check_accesses(env: &mut Env<'_>, issue: &Issue) {
    if !env.cx.options.sanitizers.races {
        return;
    }
    let (who, store, shared) = (issue.who(env), issue.store(), issue.shared());
    let words = shared.start as usize / 4..(shared.end as usize).div_ceil(4);
    let to = (Proxied::Shared, !store);
    let found = words.clone().fold(None, |found, word| {
        let flaw = env.cells.probe(&env.clocks, (word, 0xf), to, who);
        worse(found, flaw.map(|flaw| (word, flaw)))
    });
    if !store {
        env.cells.forget(words);
    }
    if let Some((word, flaw)) = found {
        let location = small_location(env, Space::Shared, word as u64 * 4, 4);
        report_flaw(env, issue.issuer, location, flaw);
    }
    let mut found = None;
    for span in &issue.cargo.spans {
        let met = env.lines.probe(&env.clocks, (span.address, u64::from(span.bytes)), store, who);
        found = worse(found, met);
    }
    for span in &issue.cargo.spans {
        env.copy_outside((span.address, u64::from(span.bytes)), store, who);
    }
    if let Some((address, flaw)) = found {
        let location = global_location(env, address, 1);
        report_flaw(env, issue.issuer, location, flaw);
    }
}

#[cold]
fn report_flaw(env: &mut Env<'_>, issuer: Issuer, location: crate::report::Location, flaw: Flaw) {
    let Flaw { conflict, sight } = flaw;
    let thread = Thread { cta: env.cta, warp: conflict.warp, lane: conflict.lane };
    let (kind, detail) = match sight {
        Sight::Unfenced => {
            let detail = "the write is ordered before the copy, but no `fence.proxy.async` stands between them";
            (Kind::MissingProxyFence, detail.to_owned())
        }
        Sight::FencedLate => {
            let detail = "the thread that issues the copy executes `fence.proxy.async`; the one that wrote does not";
            (Kind::LateProxyFence, detail.to_owned())
        }
        Sight::Unordered | Sight::Visible => (Kind::Race, String::new()),
    };
    let other = Some((conflict.kind.name(), thread, conflict.pc));
    env.report(
        kind,
        issuer.pc,
        Facts { lane: issuer.lane, location: Some(location), other, detail, ..Facts::default() },
    );
}

/// Counts what a copy moves: bytes and sectors of global memory, and its bytes of shared memory in rows of 128.
fn count(env: &mut Env<'_>, issue: &Issue) {
    let moved: u64 = issue.cargo.spans.iter().map(|span| u64::from(span.bytes)).sum();
    let sectors = |span: &Span| (span.address + u64::from(span.bytes)).div_ceil(32) - span.address / 32;
    let (global, shared) = (&mut env.counters.global, &mut env.counters.shared);
    global.transactions += issue.cargo.spans.iter().map(sectors).sum::<u64>();
    global.ideal_transactions += moved.div_ceil(32);
    shared.transactions += issue.bytes.div_ceil(128);
    shared.ideal_transactions += issue.bytes.div_ceil(128);
    let (from, to) = if issue.store() { (shared, global) } else { (global, shared) };
    from.load_requests += 1;
    from.bytes_loaded += moved;
    to.store_requests += 1;
    to.bytes_stored += if issue.store() { moved } else { issue.bytes };
}

//! Bulk copies: the checks when they are issued, the bytes when they move, and what other accesses meet in between.
//! Which bytes a tile has is in `bulk::tile`; who is ordered after a copy, in `bulk::flight` and `shadow::clock`. The
//! checks are in `checks`, the bytes move in `engine`, and operands are read in `operands`.
//!
//! Whatever can be wrong with a copy is looked at when it is issued, whenever its bytes move; accesses that come later
//! are compared with the copies that are not known to be over. So what is found does not depend on the seed's choice,
//! except where it changes what a program does.

mod checks;
mod engine;
mod operands;

use std::ops::Range;

pub(super) use checks::report_flaw;
pub(super) use engine::{Timing, at_once, commit, meet_global, meet_shared, needed, proxy_fence, timing, wait};
pub(crate) use engine::{advance, finish};

use checks::{check_accesses, check_extent, check_flights, check_source};
use operands::{across, line, put, target, tensor_map, tiled};

use super::Warp;
use super::access::{check_small, shared_location, small_location};
use super::env::{Env, Facts, Halt};
use super::request::{Request, Shape, Touch};
use crate::bulk::flight::{Cargo, Flight, Issuer, NEVER, NOTHING, Progress, Token, Way};
use crate::bulk::tile::Span;
use crate::decode::op::{BULK_OPERANDS, BulkFn, Slot, Space, Strength};
use crate::lanes::{LANES, Mask, lanes};
use crate::memory::device::POISON;
use crate::report::Kind;
use crate::shadow::cell::Who;

/// A copy by one lane, before it is under way.
#[derive(Clone)]
struct Issue {
    issuer: Issuer,
    f: BulkFn,
    cargo: Cargo,
    /// Bytes of the tile.
    bytes: u64,
    /// What a store really needs of the tile: the rest of the last chunk of a row may be anything.
    needed: Vec<Span>,
    mbarrier: u64,
    /// CTA whose shared memory the tile is in.
    owner: u32,
    /// Whether it is the first of the copies that one instruction makes.
    first: bool,
}

impl Issue {
    fn store(&self) -> bool {
        matches!(self.f, BulkFn::StoreTile | BulkFn::Store)
    }

    fn way(&self) -> Way {
        match self.f {
            BulkFn::StoreTile | BulkFn::Store => Way::Out,
            BulkFn::Across => Way::Across,
            BulkFn::Reduce(op, bytes) => Way::Reduce(op, bytes),
            BulkFn::LoadTile | BulkFn::PrefetchTile | BulkFn::Load | BulkFn::Put(_) => Way::In,
        }
    }

    /// Whether it sees and is seen by ordinary accesses without a proxy fence (PTX manual 9.7.9.12, 9.7.13.7:
    /// `st.async`, `red.async`).
    fn is_generic(&self) -> bool {
        matches!(self.f, BulkFn::Put(_) | BulkFn::Reduce(..))
    }

    /// Whether it reads what it writes.
    fn updates(&self) -> bool {
        matches!(self.f, BulkFn::Reduce(..))
    }

    /// The bytes of shared memory that its image may take: spans of a swizzle are permuted whole.
    fn shared(&self) -> Range<u64> {
        let start = u64::from(self.cargo.tile);
        if self.is_generic() {
            return start..start + self.bytes;
        }
        start..start + self.bytes.next_multiple_of(u64::from(self.cargo.swizzle.span()))
    }

    /// The bytes of shared memory that it writes, and those that it reads.
    fn sides(&self) -> [Range<u64>; 2] {
        let source = u64::from(self.cargo.source);
        match self.way() {
            Way::Out => [NOTHING, self.shared()],
            Way::Across => [self.shared(), source..source + self.bytes],
            Way::In | Way::Reduce(..) | Way::Product => [self.shared(), NOTHING],
        }
    }

    fn who(&self, env: &Env<'_>) -> Who {
        let Issuer { pc, warp, lane } = self.issuer;
        Who { warp, lane, epoch: env.clocks.epoch(warp as usize), pc }
    }
}

/// A finding that stops the kernel.
fn stop<T>(env: &mut Env<'_>, issuer: Issuer, kind: Kind, detail: String) -> Result<T, Halt> {
    env.stop(kind, (issuer.pc, issuer.lane), detail)
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
            if bulk.f == BulkFn::PrefetchTile {
                let map = tensor_map(env, issuer, global)?;
                tiled(env, issuer, bulk.f, &map, (0, &start, 0))?;
                continue;
            }
            if bulk.f != BulkFn::Across {
                self.comes_behind(env, pc, 1 << lane);
            }
            let to = target(env, issuer, shared, bulk.own)?;
            let place = env.base_of(to) + env.rank_of(shared).1;
            let issue = match bulk.f {
                BulkFn::LoadTile | BulkFn::StoreTile | BulkFn::PrefetchTile => {
                    let map = tensor_map(env, issuer, global)?;
                    tiled(env, issuer, bulk.f, &map, (place, &start, mbarrier))?
                }
                BulkFn::Load | BulkFn::Store => {
                    let bytes = value(operands[BULK_OPERANDS - 2]);
                    line(env, issuer, bulk.f, (place, global, bytes, mbarrier))?
                }
                BulkFn::Across => {
                    let bytes = value(operands[BULK_OPERANDS - 2]);
                    target(env, issuer, global, true)?;
                    let source = env.base_of(env.rank) + env.rank_of(global).1;
                    if to == env.rank {
                        let detail =
                            format!("the destination is in the block itself, rank {to}: it must be another one's");
                        return stop(env, issuer, Kind::CopyMisuse, detail);
                    }
                    across(env, issuer, (place, source, bytes, mbarrier))?
                }
                BulkFn::Put(size) | BulkFn::Reduce(_, size) => {
                    if env.cx.ctas() == 1 {
                        let detail = "the instruction is for clusters of more than one block".to_owned();
                        return stop(env, issuer, Kind::ClusterMisuse, detail);
                    }
                    let data = &operands[BULK_OPERANDS..];
                    let bytes = |slot: &Option<Slot>| value(*slot).to_le_bytes().into_iter().take(usize::from(size));
                    put(env, issuer, bulk.f, (place, data.iter().flat_map(bytes).collect(), mbarrier))?
                }
            };
            let issue = Issue { owner: to as u32, ..issue };
            match operands[BULK_OPERANDS - 1] {
                Some(mask) => self.multicast(env, &issue, to, self.get(mask, lane) as u32 & 0xffff)?,
                None if issue.store() => self.begin(env, issue)?,
                None => {
                    let at = target(env, issuer, mbarrier, bulk.own)?;
                    if at != to {
                        let detail = format!(
                            "the mbarrier is of the block of rank {at}, the destination of rank {to}: it must be in the same block"
                        );
                        return stop(env, issuer, Kind::CopyMisuse, detail);
                    }
                    let mbarrier = env.base_of(at) + env.rank_of(mbarrier).1;
                    self.begin(env, Issue { mbarrier, ..issue })?;
                }
            }
        }
        Ok(())
    }

    /// A copy to the same place in several CTAs, each with its own mbarrier.
    fn multicast(&self, env: &mut Env<'_>, issue: &Issue, to: usize, mask: u32) -> Result<(), Halt> {
        let (issuer, ctas) = (issue.issuer, env.cx.ctas());
        if mask == 0 || mask >> ctas != 0 {
            let detail = format!("the mask of destinations is {mask:#06x}, and the cluster has {ctas} blocks");
            return stop(env, issuer, Kind::CopyMisuse, detail);
        }
        target(env, issuer, issue.mbarrier, false)?;
        let mbarrier = env.rank_of(issue.mbarrier).1;
        let offset = u64::from(issue.cargo.tile) - env.base_of(to);
        for (number, rank) in lanes(mask).enumerate() {
            let base = env.base_of(rank);
            let cargo = Cargo { tile: (base + offset) as u32, ..issue.cargo.clone() };
            let (mbarrier, owner) = (base + mbarrier, rank as u32);
            self.begin(env, Issue { cargo, mbarrier, owner, first: number == 0, ..issue.clone() })?;
        }
        Ok(())
    }

    /// Checks a copy against everything that is so far, and sends it on its way.
    fn begin(&self, env: &mut Env<'_>, issue: Issue) -> Result<(), Halt> {
        let issuer = issue.issuer;
        if issue.owner != env.rank as u32 {
            env.needs_started((issuer.pc, issuer.lane), issue.owner);
        }
        let agent = if issue.store() { 0 } else { self.signalled(env, &issue)? };
        if issue.bytes == 0 {
            return Ok(());
        }
        check_extent(env, &issue)?;
        check_source(env, &issue);
        check_flights(env, &issue);
        check_accesses(env, &issue);
        count(env, &issue);
        let (store, [written, read]) = (issue.store(), issue.sides());
        if !store && !issue.updates() {
            // Until the bytes come, nobody knows what is there.
            let words = words_of(&written);
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
        let number = env.trace_issued((issuer.warp, issue.owner), store, if store { &read } else { &written });
        let index = env.bulk.push(Flight {
            issuer,
            way: issue.way(),
            writes: written,
            reads: read,
            chunks: Vec::new(),
            owners: [issue.owner, if issue.way() == Way::Across { env.rank as u32 } else { issue.owner }],
            global: start..end,
            cargo: issue.cargo,
            mbarrier: issue.mbarrier,
            group,
            released,
            finished,
            progress: Progress::Issued,
            number,
        });
        engine::launch(env, index)
    }

    /// Checks the mbarrier of a load as any operation on it is checked; the agent that counts its phases.
    fn signalled(&self, env: &mut Env<'_>, issue: &Issue) -> Result<usize, Halt> {
        let (issuer, at) = (issue.issuer, issue.mbarrier);
        let lane = issuer.lane as usize;
        let offset = at - env.base_of(issue.owner as usize);
        let size = u64::from(env.cx.shared_bytes);
        if env.cx.ctas() > 1 && (offset > size || size - offset < 8) {
            let location = Some(shared_location(env, issue.owner as usize, offset, 8));
            let facts = Facts { lane: issuer.lane, location, fatal: true, ..Facts::default() };
            env.report(Kind::OutOfBounds, issuer.pc, facts);
            return Err(Halt);
        }
        let shape = Shape {
            pc: issuer.pc,
            bytes: 8,
            count: 1,
            touch: Touch::Exchange,
            strength: Strength::Strong { wide: false },
        };
        let mut addresses = [0; LANES];
        addresses[lane] = at;
        let size = env.cx.all_shared();
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

/// The words that bytes of shared memory are in.
fn words_of(bytes: &Range<u64>) -> Range<usize> {
    bytes.start as usize / 4..(bytes.end as usize).div_ceil(4)
}

/// Counts what a copy moves: bytes and sectors of global memory, and its bytes of shared memory in rows of 128.
fn count(env: &mut Env<'_>, issue: &Issue) {
    // A copy to several blocks is read once.
    let spans = if issue.first { &issue.cargo.spans[..] } else { &[] };
    let moved: u64 = spans.iter().map(|span| u64::from(span.bytes)).sum();
    let bulk = match issue.f {
        BulkFn::LoadTile | BulkFn::Load => Some(&mut env.counters.bulk_loads),
        BulkFn::StoreTile | BulkFn::Store => Some(&mut env.counters.bulk_stores),
        BulkFn::PrefetchTile | BulkFn::Across | BulkFn::Put(_) | BulkFn::Reduce(..) => None,
    };
    if let Some(bulk) = bulk {
        bulk.copies += u64::from(issue.first);
        bulk.whole_bytes += if issue.first { issue.bytes } else { 0 };
        bulk.bytes += moved;
        bulk.shared_bytes += issue.bytes;
    }
    let sectors = |span: &Span| (span.address + u64::from(span.bytes)).div_ceil(32) - span.address / 32;
    let (global, shared) = (&mut env.counters.global, &mut env.counters.shared);
    global.transactions += spans.iter().map(sectors).sum::<u64>();
    global.ideal_transactions += moved.div_ceil(32);
    shared.transactions += issue.bytes.div_ceil(128);
    shared.ideal_transactions += issue.bytes.div_ceil(128);
    let (from, to) = if issue.store() { (shared, global) } else { (global, shared) };
    if issue.way() == Way::In && issue.cargo.spans.is_empty() {
        to.store_requests += 1;
        to.bytes_stored += issue.bytes;
        return;
    }
    from.load_requests += u64::from(issue.first);
    from.bytes_loaded += moved;
    to.store_requests += 1;
    to.bytes_stored += if issue.store() { moved } else { issue.bytes };
}

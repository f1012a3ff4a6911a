//! What can be wrong with a copy when it is issued: bytes outside of memory, bytes that nobody has written, other
//! copies and ordinary accesses that it is not ordered after.

use std::ops::Range;

use tilewright_kernel::tensor_map::GRANULE;

use super::{Issue, stop, words_of};
use crate::bulk::flight::{Cargo, Issuer, Token, Way, overlap};
use crate::bulk::tile::Span;
use crate::decode::op::{Op, Space};
use crate::exec::access::{shared_location, small_location};
use crate::exec::env::{Env, Facts, Halt};
use crate::exec::global::global_location;
use crate::memory::region::{Denied, Region};
use crate::report::{Kind, Location};
use crate::shadow::cell::{AccessKind, Flaw, worse};
use crate::shadow::clock::{Proxied, Sight};

/// Refuses a copy whose bytes are not all in memory, or that would overwrite a live mbarrier.
pub(super) fn check_extent(env: &mut Env<'_>, issue: &Issue) -> Result<(), Halt> {
    let issuer = issue.issuer;
    let lane = issuer.lane;
    let [written, read] = issue.sides();
    for (range, rank) in [(issue.shared(), issue.owner as usize), (read, env.rank)] {
        let offset = range.start.wrapping_sub(env.base_of(rank));
        let end = offset.saturating_add(range.end.saturating_sub(range.start));
        let outside = |end| end > u64::from(env.cx.shared_bytes);
        let gap = || env.cx.kernel.shared_gaps.iter().any(|gap| offset < gap.end && gap.start < end);
        if range.start < range.end && (outside(end) || gap()) {
            let location = Some(shared_location(env, rank, offset, range.end - range.start));
            env.report(Kind::OutOfBounds, issuer.pc, Facts { lane, location, fatal: true, ..Facts::default() });
            return Err(Halt);
        }
    }
    let barrier = env.mbarriers.iter().find(|(at, _)| overlap(&written, &(*at..*at + 8))).map(|(at, _)| *at);
    if let Some(at) = barrier {
        let detail = format!("the copy writes over the mbarrier at {}", env.called(at));
        return stop(env, issuer, Kind::BarrierMisuse, detail);
    }
    for span in &issue.cargo.spans {
        region(env, issuer, span, issue.store())?;
    }
    Ok(())
}

/// The region that bytes of global memory are in.
pub(super) fn region<'a>(env: &mut Env<'a>, issuer: Issuer, span: &Span, write: bool) -> Result<&'a Region, Halt> {
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
pub(super) fn check_source(env: &mut Env<'_>, issue: &Issue) {
    if !env.cx.options.sanitizers.initialisation {
        return;
    }
    let issuer = issue.issuer;
    let location = if issue.updates() {
        let missing = |at: &u64| env.shared_initialised[*at as usize / 4] >> (at % 4) & 1 == 0;
        issue.shared().find(missing).map(|at| small_location(env, Space::Shared, at, 1))
    } else if issue.store() || issue.way() == Way::Across {
        let Cargo { tile, swizzle, source, .. } = issue.cargo;
        let tile = if issue.store() { tile } else { source };
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
pub(super) fn check_flights(env: &mut Env<'_>, issue: &Issue) {
    if !env.cx.options.sanitizers.races {
        return;
    }
    env.bulk.sweep(&env.clocks);
    let (issuer, shared, [written, read]) = (issue.issuer, issue.shared(), issue.sides());
    let knows = |token: Token| env.clocks.knows(issuer.warp as usize, token.agent, token.number);
    let mut found = None;
    for flight in env.bulk.list() {
        // Operations on one element are atomic.
        let updates = issue.updates() && matches!(flight.way, Way::Reduce(..));
        let met = [(&written, true), (&read, false)].into_iter().find_map(|(bytes, writes)| {
            let (other_writes, token) = flight.meets(bytes, writes).filter(|(_, token)| !knows(*token))?;
            let other = if other_writes { &flight.writes } else { &flight.reads };
            Some((Space::Shared, bytes.start.max(other.start), flight.issuer, other_writes, token)).filter(|_| !updates)
        });
        if let Some((space, at, other, writes, _)) = met {
            found = Some((space, at, other, writes));
        }
        if (issue.store() || flight.is_store()) && !knows(flight.finished) {
            let hit = |span: &&Span| flight.touches(&span.global());
            if let Some(span) = issue.cargo.spans.iter().find(hit) {
                let at = span.address.max(flight.global.start);
                found = found.or(Some((Space::Global, at, flight.issuer, flight.is_store())));
            }
        }
    }
    if !issue.store() && !issue.updates() {
        let clocks = &env.clocks;
        env.bulk.forget(|old| {
            let bytes = match old.way {
                Way::In => &old.writes,
                Way::Product => &old.reads,
                _ => return false,
            };
            let inside = shared.start <= bytes.start && bytes.end <= shared.end;
            inside && clocks.knows(issuer.warp as usize, old.finished.agent, old.finished.number)
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

pub(super) fn race(env: &mut Env<'_>, me: Issuer, location: Option<Location>, (access, other): (&'static str, Issuer)) {
    let thread = env.thread_of(other.warp, other.lane);
    let facts = Facts { lane: me.lane, location, other: Some((access, thread, other.pc)), ..Facts::default() };
    env.report(Kind::Race, me.pc, facts);
}

/// Reports ordinary accesses that the copy is not ordered after, or cannot see.
pub(super) fn check_accesses(env: &mut Env<'_>, issue: &Issue) {
    if !env.cx.options.sanitizers.races {
        return;
    }
    let (who, store, [written, read]) = (issue.who(env), issue.store(), issue.sides());
    let sides = [(&written, true), (&read, false)].into_iter().filter(|(bytes, _)| bytes.start < bytes.end);
    let mut found = None;
    for (bytes, writes) in sides {
        for word in words_of(bytes) {
            let flaw = env.cells.probe(&env.clocks, (word, 0xf), (Proxied::Shared, writes), who);
            let flaw = flaw.filter(|flaw| match (issue.is_generic(), issue.updates()) {
                (false, _) => true,
                // What is ordered is seen.
                (true, false) => flaw.sight == Sight::Unordered,
                (true, true) => flaw.sight == Sight::Unordered && flaw.conflict.kind != AccessKind::Atomic,
            });
            found = worse(found, flaw.map(|flaw| (word, flaw)));
        }
    }
    if !store && !issue.updates() {
        env.cells.forget(words_of(&written));
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
    for span in issue.cargo.spans.iter().filter(|_| issue.first) {
        env.copy_outside((span.address, u64::from(span.bytes)), store, who);
    }
    if let Some((address, flaw)) = found {
        let location = global_location(env, address, 1);
        report_flaw(env, issue.issuer, location, flaw);
    }
}

#[cold]
pub(in crate::exec) fn report_flaw(env: &mut Env<'_>, issuer: Issuer, location: Location, flaw: Flaw) {
    let Flaw { conflict, sight } = flaw;
    let thread = env.thread_of(conflict.warp, conflict.lane);
    let code = &env.cx.kernel.code;
    let op = |pc: u32| &code[pc as usize].op;
    let (kind, detail) = match sight {
        Sight::Unfenced if matches!((op(issuer.pc), op(conflict.pc)), (Op::Wgmma { .. }, Op::ThreadCopy(_))) => {
            (Kind::UnfencedCopy, String::new())
        }
        Sight::Unfenced => {
            let detail = "the write is ordered before it, but no `fence.proxy.async` stands between them";
            (Kind::MissingProxyFence, detail.to_owned())
        }
        Sight::FencedLate => {
            let detail = "the thread that issues it executes `fence.proxy.async`; the one that wrote does not";
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

//! The engine: when the bytes of copies move, who waits for them, and what other accesses meet.

use tilewright_kernel::tensor_map::{GRANULE, Swizzle};

use super::checks::{race, region};
use crate::bulk::flight::{Cargo, Flight, Issuer, NEVER, Progress, Token, Way};
use crate::decode::op::Space;
use crate::exec::access::small_location;
use crate::exec::env::{Env, Facts, Halt};
use crate::exec::global::{before_store, global_location};
use crate::exec::request::{Request, Shape};
use crate::lanes::{Mask, lanes};
use crate::report::Kind;
use crate::shadow::cell::AccessKind;
use crate::shadow::clock::Proxied;
use crate::shadow::line::Run;

/// Waits of one warp that fail, with nothing changing, before the copies that are held back count as waited for. Every
/// failed wait lets another warp run.
const LATE: u32 = 16;

/// When copies happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::exec) enum Timing {
    /// When they are issued.
    Earliest,
    /// When somebody waits and nothing else changes.
    Latest,
    /// At some time in between.
    Drawn,
}

/// Every fourth seed has all copies at once, every fourth all as late as possible. In a trace all happen at once: what
/// is late waits for warps that do nothing else, and there all go on.
pub(in crate::exec) fn timing(env: &Env<'_>) -> Timing {
    match env.cx.options.seed % 4 {
        _ if env.trace.is_some() => Timing::Earliest,
        0 => Timing::Earliest,
        1 => Timing::Latest,
        _ => Timing::Drawn,
    }
}

/// Whether what is issued now happens at once.
pub(in crate::exec) fn at_once(env: &mut Env<'_>) -> bool {
    match timing(env) {
        Timing::Earliest => true,
        Timing::Latest => false,
        Timing::Drawn => env.draw() & 3 == 0,
    }
}

/// Sends a copy on its way, and moves its bytes if it is one of those that happen at once.
pub(super) fn launch(env: &mut Env<'_>, index: usize) -> Result<(), Halt> {
    if at_once(env) { move_bytes(env, index, Progress::Done) } else { Ok(()) }
}

/// Moves the bytes of a copy, as far as `to`.
fn move_bytes(env: &mut Env<'_>, index: usize, to: Progress) -> Result<(), Halt> {
    let flight = env.bulk.at(index);
    let before = flight.progress;
    if before >= to {
        return Ok(());
    }
    flight.progress = to;
    let way = flight.way;
    // The copy stays in the list while its cargo is looked at.
    let mut cargo = std::mem::take(&mut flight.cargo);
    if to == Progress::Done {
        env.bulk.under_way -= 1;
        env.trace_copied(index);
    }
    let result = match way {
        Way::Out => {
            if before == Progress::Issued {
                pick_up(env, &mut cargo.image, (cargo.tile, cargo.swizzle));
            }
            if to == Progress::Done { write(env, index, &cargo) } else { Ok(()) }
        }
        Way::In => {
            read(env, &mut cargo);
            put_down(env, &cargo);
            signal(env, index, cargo.image.len())
        }
        // Its warp reads when it multiplies.
        Way::Product => Ok(()),
        Way::Across => {
            pick_up(env, &mut cargo.image, (cargo.source, Swizzle::None));
            put_down(env, &cargo);
            signal(env, index, cargo.image.len())
        }
        Way::Reduce(op, bytes) => {
            let mut old = cargo.image.clone();
            pick_up(env, &mut old, (cargo.tile, Swizzle::None));
            let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            let new = op.apply(bytes, word(&old), word(&cargo.image));
            cargo.image.copy_from_slice(&new.to_le_bytes()[..usize::from(bytes)]);
            put_down(env, &cargo);
            signal(env, index, cargo.image.len())
        }
    };
    if to == Progress::Done {
        cargo.image = Vec::new();
    }
    env.bulk.at(index).cargo = cargo;
    result
}

/// Reads a tile from shared memory.
fn pick_up(env: &Env<'_>, image: &mut [u8], (tile, swizzle): (u32, Swizzle)) {
    for (chunk, at) in image.chunks_mut(GRANULE as usize).zip((tile..).step_by(GRANULE as usize)) {
        let words = &env.shared[swizzle.apply(at) as usize / 4..];
        for (bytes, word) in chunk.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Writes the tile of a load to shared memory.
fn put_down(env: &mut Env<'_>, cargo: &Cargo) {
    if !env.swizzles.is_empty() {
        let chunks = cargo.tile as usize / GRANULE as usize..;
        let count = cargo.image.len().div_ceil(GRANULE as usize);
        let permuted = (cargo.swizzle != Swizzle::None).then_some(cargo.swizzle);
        env.swizzles[chunks].iter_mut().take(count).for_each(|swizzle| *swizzle = permuted);
    }
    for (chunk, at) in cargo.image.chunks(GRANULE as usize).zip((cargo.tile..).step_by(GRANULE as usize)) {
        let words = &mut env.shared[cargo.swizzle.apply(at) as usize / 4..];
        for (bytes, word) in chunk.chunks_exact(4).zip(words) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
    }
}

/// Reads what a load finds in global memory; its regions were checked when it was issued.
fn read(env: &Env<'_>, cargo: &mut Cargo) {
    for span in &cargo.spans {
        if let Ok(at) = env.cx.regions.find(span.address, u64::from(span.bytes), false, usize::MAX) {
            let allocation = &env.cx.regions.get(at).allocation;
            let image = &mut cargo.image[span.offset as usize..][..span.bytes as usize];
            allocation.copy_to(span.address - allocation.base, image);
        }
    }
}

/// Writes the tile of a store to global memory.
fn write(env: &mut Env<'_>, index: usize, cargo: &Cargo) -> Result<(), Halt> {
    let issuer = env.bulk.at(index).issuer;
    for span in &cargo.spans {
        let region = region(env, issuer, span, true)?;
        let bytes = u64::from(span.bytes);
        before_store(env, region, span.address, bytes);
        let image = &cargo.image[span.offset as usize..];
        region.allocation.fill_with(span.address - region.allocation.base, bytes, |at| image[at]);
    }
    Ok(())
}

/// Tells the mbarrier of a load that its bytes have come: all of the tile, out-of-bounds part included.
fn signal(env: &mut Env<'_>, index: usize, bytes: usize) -> Result<(), Halt> {
    let flight = env.bulk.at(index);
    let (at, issuer, agent) = (flight.mbarrier, flight.issuer, flight.finished.agent);
    let told = env.mbarriers.at(at).and_then(|barrier| {
        // Whoever sees the end of this phase is ordered after the copy.
        let number = barrier.phase + 1;
        barrier.transact(-(bytes as i64))?;
        barrier.moved_by = Some(issuer);
        Ok((number, barrier.agent == Some(agent)))
    });
    env.mbarriers.progress += 1;
    env.trace_phase(issuer.warp, at);
    let detail = match told {
        Ok((number, true)) => {
            let flight = env.bulk.at(index);
            (flight.released.number, flight.finished.number) = (number, number);
            return Ok(());
        }
        Ok((_, false)) => "the mbarrier was made anew while the copy was under way".to_owned(),
        Err(why) => match env.mbarriers.at(at) {
            Ok(barrier) => format!("{why} ({})", barrier.describe()),
            Err(_) => format!("{why} any more, while the copy is under way"),
        },
    };
    let thread = env.thread_of(issuer.warp, issuer.lane);
    let facts = Facts { lane: issuer.lane, detail, fatal: true, ..Facts::default() };
    env.report_thread(Kind::BarrierMisuse, issuer.pc, thread, facts);
    Err(Halt)
}

/// Between turns of warps: some copies may happen. Whether the kernel goes on.
pub(crate) fn advance(env: &mut Env<'_>) -> bool {
    if env.bulk.under_way == 0 || timing(env) != Timing::Drawn {
        return true;
    }
    for index in 0..env.bulk.list().len() {
        if env.bulk.at(index).progress == Progress::Done {
            continue;
        }
        let to = match env.draw() & 7 {
            0 | 1 => Progress::Done,
            2 if env.bulk.at(index).is_store() => Progress::Read,
            _ => continue,
        };
        if move_bytes(env, index, to).is_err() {
            return false;
        }
    }
    true
}

/// After `fruitless` waits for mbarriers in a row: if it is time, the first load that is held back happens. Whether one
/// did.
pub(in crate::exec) fn needed(env: &mut Env<'_>, fruitless: u32) -> Result<bool, Halt> {
    if env.bulk.under_way == 0 || fruitless < LATE {
        return Ok(false);
    }
    let first = env.bulk.list().iter().position(|flight| !flight.is_store() && flight.progress != Progress::Done);
    let Some(first) = first else { return Ok(false) };
    move_bytes(env, first, Progress::Done)?;
    Ok(true)
}

/// `cp.async.bulk.commit_group`.
pub(in crate::exec) fn commit(env: &mut Env<'_>, run: Mask) {
    for lane in lanes(run) {
        let groups = env.bulk.groups(&mut env.clocks, (env.warp, lane as u32));
        groups.closed = groups.closed.saturating_add(1);
    }
}

/// `cp.async.bulk.wait_group`: all groups but the last `keep` of each lane are over, or (`read`) their sources have
/// been read.
pub(in crate::exec) fn wait(env: &mut Env<'_>, run: Mask, keep: u32, read: bool) -> Result<(), Halt> {
    let warp = env.warp;
    for lane in lanes(run) {
        // Groups are a thread's own: who has issued nothing waits for nothing.
        let Some(groups) = env.bulk.groups_of((warp, lane as u32)) else { continue };
        let last = groups.closed.saturating_sub(keep);
        let to = if read { Progress::Read } else { Progress::Done };
        env.trace_waited((warp, lane as u32), last);
        for index in 0..env.bulk.list().len() {
            let Flight { issuer, way, group, .. } = *env.bulk.at(index);
            if way == Way::Out && (issuer.warp, issuer.lane) == (warp, lane as u32) && group <= last {
                move_bytes(env, index, to)?;
            }
        }
        env.clocks.learn(warp as usize, groups.read, last);
        if !read {
            env.clocks.learn(warp as usize, groups.done, last);
        }
    }
    Ok(())
}

/// `fence.proxy.async`.
pub(in crate::exec) fn proxy_fence(env: &mut Env<'_>, shared: bool, global: bool, run: Mask) {
    let warp = env.warp as usize;
    // One epoch ends for both memories.
    env.clocks.proxy_fence(warp, [shared.then_some(Proxied::Shared), global.then_some(Proxied::Global)], run);
}

/// What became of a copy that nobody may have waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Left {
    /// No warp has waited for it.
    Open,
    /// Some warp has, but none of this CTA, whose memory it needs.
    Elsewhere(u32),
}

/// The cluster has ended: reports the copies that nobody has waited for, and moves what has not moved. Whether all went
/// well.
pub(crate) fn finish(env: &mut Env<'_>) -> bool {
    crate::exec::copy::finish(env);
    let several = env.cx.ctas() > 1;
    let tracked = env.cx.options.sanitizers.races;
    let left = |flight: &Flight| {
        let Token { agent, number } = flight.released;
        if number == NEVER || !env.clocks.known_to(false, agent, number) {
            return Some(Left::Open);
        }
        // What is in shared memory of a CTA must be over before its last warp exits.
        if !several || !tracked {
            return None;
        }
        let late = |owner: &&u32| !env.peers.outlived(**owner, env.clocks.component(agent), number);
        flight.owners.iter().find(late).map(|owner| Left::Elsewhere(*owner))
    };
    let open: Vec<(Issuer, Way, Left)> = (env.bulk.list().iter())
        .filter_map(|flight| left(flight).map(|left| (flight.issuer, flight.way, left)))
        .collect();
    for index in 0..env.bulk.list().len() {
        if move_bytes(env, index, Progress::Done).is_err() {
            return false;
        }
    }
    if !tracked {
        return true;
    }
    for (issuer, way, left) in open {
        let (kind, detail) = match (left, way) {
            (Left::Elsewhere(owner), _) => (Kind::PeerExited, env.gone(owner)),
            (Left::Open, Way::Product) => (
                Kind::UnfinishedProduct,
                "the block has ended, and the warp has not waited for the product's group".to_owned(),
            ),
            (Left::Open, Way::Out) => (
                Kind::UnfinishedCopy,
                "the block has ended, and the thread has not waited until its shared memory was read".to_owned(),
            ),
            (Left::Open, _) => (
                Kind::UnfinishedCopy,
                "the block has ended, and nobody has waited for the phase of the mbarrier that the copy completes"
                    .to_owned(),
            ),
        };
        let thread = env.thread_of(issuer.warp, issuer.lane);
        let facts = Facts { lane: issuer.lane, detail, ..Facts::default() };
        env.report_thread(kind, issuer.pc, thread, facts);
    }
    let unarmed: Vec<(u64, String, Issuer)> = (env.mbarriers.iter())
        .filter(|(_, barrier)| barrier.bytes != 0)
        .filter_map(|(at, barrier)| Some((*at, barrier.describe(), barrier.moved_by?)))
        .collect();
    for (at, state, issuer) in unarmed {
        let detail = format!("the block has ended with bytes pending at the mbarrier at {}: {state}", env.called(at));
        let thread = env.thread_of(issuer.warp, issuer.lane);
        env.report_thread(Kind::BarrierMisuse, issuer.pc, thread, Facts { detail, ..Facts::default() });
    }
    true
}

/// An ordinary access to shared memory near a copy.
#[cold]
pub(in crate::exec) fn meet_shared(env: &mut Env<'_>, request: &Request<'_>) {
    let Shape { pc, .. } = request.shape;
    let writes = writes(request.shape);
    let total = request.shape.total();
    for lane in lanes(request.run) {
        let start = request.address(lane);
        let bytes = start..start + total;
        let met = env.bulk.list().iter().find_map(|flight| {
            let (other_writes, token) = flight.meets(&bytes, writes)?;
            let known = env.clocks.knows(env.warp as usize, token.agent, token.number);
            (!known).then_some((flight.issuer, !other_writes))
        });
        let Some((other, store)) = met else { continue };
        let location = small_location(env, Space::Shared, start, total);
        let me = Issuer { pc, warp: env.warp, lane: lane as u32 };
        if store || writes {
            race(env, me, Some(location), (if store { "read" } else { "write" }, other));
        } else {
            let thread = env.thread_of(other.warp, other.lane);
            let facts = Facts {
                lane: lane as u32,
                location: Some(location),
                other: Some(("copy that was not waited for", thread, other.pc)),
                ..Facts::default()
            };
            env.report(Kind::InFlight, pc, facts);
        }
        return;
    }
    env.bulk.tidy(&env.clocks);
}

/// An ordinary access of consecutive lanes to global memory near a copy.
#[cold]
pub(in crate::exec) fn meet_global(env: &mut Env<'_>, shape: Shape, run: Run) {
    let writes = writes(shape);
    let bytes = run.address..run.address + (u64::from(run.lanes) << run.shift);
    let met = env.bulk.list().iter().find(|flight| {
        (writes || flight.is_store())
            && !env.clocks.knows(env.warp as usize, flight.finished.agent, flight.finished.number)
            && flight.touches(&bytes)
    });
    let Some(flight) = met else { return env.bulk.tidy(&env.clocks) };
    let (other, store) = (flight.issuer, flight.is_store());
    let at = flight.first_byte(&bytes);
    let lane = run.lane + ((at - run.address) >> run.shift) as u32;
    let location = global_location(env, at, 1);
    let me = Issuer { pc: shape.pc, warp: env.warp, lane };
    race(env, me, Some(location), (if store { "write" } else { "read" }, other));
}

fn writes(shape: Shape) -> bool {
    matches!(shape.kind(), AccessKind::Write | AccessKind::Atomic)
}

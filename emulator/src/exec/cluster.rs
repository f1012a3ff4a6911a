//! What reaches beyond a CTA inside its cluster: addresses in the shared memory of another CTA, the barrier of the
//! cluster, exits, and the registers that warpgroups of a CTA hand to each other.
//!
//! Shared memory of a cluster is one memory here, CTA by CTA, and so are clocks, shadow and mbarriers: what looks at an
//! access does not ask whose memory it is. An address that `mapa` makes holds the rank plus one above the offset, so
//! that it means the same in every CTA, the one that it is of included; addresses without a rank mean the CTA's own
//! memory.

use super::Warp;
use super::access::{not_shared, shared_location, space_of, window};
use super::env::{Env, Facts, Halt};
use super::fragments::{Flow, Wait};
use super::request::Request;
use crate::cluster::{Misuse, Reach};
use crate::decode::op::{ClusterBarrierOp, Mapa, Slot, Space};
use crate::lanes::{LANES, Mask, Wide, lanes};
use crate::memory::region::RANK_BITS;
use crate::registers::{self, Change, Outcome};
use crate::report::Kind;
use crate::sync::Waiter;
use crate::trace::Step;

/// The offset in an address of shared memory.
const OFFSET: u64 = (1 << RANK_BITS) - 1;

impl Env<'_> {
    /// Whether anybody asks for the barrier of the cluster, or for exits.
    #[inline(always)]
    pub(super) fn has_peers(&self) -> bool {
        self.cx.ctas() > 1 || self.cx.kernel.clusters
    }

    /// The part of [`Env::start`] that most kernels do not need.
    pub(super) fn start_cluster(&mut self) {
        let cx = self.cx;
        let (ctas, warps, threads) = (cx.ctas(), cx.warps(), cx.threads());
        if cx.kernel.reallocates {
            let at_launch = registers::at_launch(cx.kernel.maxnreg, cx.kernel.minnctapersm, threads);
            self.registers.resize_with(ctas, Default::default);
            self.registers.iter_mut().for_each(|registers| registers.reset(warps, at_launch));
        }
        if cx.kernel.warpgroups {
            self.warpgroups.resize_with(ctas, Default::default);
            self.warpgroups.iter_mut().for_each(|groups| groups.reset(warps));
            self.product_agents.clear();
            self.product_agents.resize(ctas * warps, None);
            self.swizzles.clear();
            self.swizzles.resize(self.shared.len().div_ceil(4), None);
        }
        if self.has_peers() {
            let lanes = |warp: usize| u32::MAX >> (32 - (threads - warp as u32 % warps as u32 * 32).min(32));
            self.cluster.reset((0..ctas * warps).map(lanes));
            self.peers.reset(ctas, warps);
        }
    }

    /// The rank and the offset that an address in shared memory names.
    pub(super) fn rank_of(&self, address: u64) -> (u64, u64) {
        match address >> RANK_BITS {
            0 => (self.rank as u64, address),
            above => (above - 1, address & OFFSET),
        }
    }

    /// A generic address by which all CTAs of the cluster name the same byte.
    pub(super) fn named(&self, address: u64) -> u64 {
        if self.cx.ctas() == 1 || space_of(address) != Space::Shared {
            return address;
        }
        address + ((self.rank as u64 + 1) << RANK_BITS)
    }

    /// Where in the memory of the cluster a CTA's shared memory begins.
    pub(super) fn base_of(&self, rank: usize) -> u64 {
        rank as u64 * self.cx.stride()
    }

    /// Rank and offset of a place in the memory of the cluster.
    pub(super) fn owner(&self, place: u64) -> (usize, u64) {
        if self.cx.ctas() == 1 {
            return (0, place);
        }
        ((place / self.cx.stride()) as usize, place % self.cx.stride())
    }

    /// An address in shared memory, for messages.
    pub(super) fn called(&self, place: u64) -> String {
        let (rank, offset) = self.owner(place);
        match self.cx.ctas() {
            1 => format!("{offset:#x}"),
            _ => format!("{offset:#x} of rank {rank}"),
        }
    }

    /// Where in the memory of the cluster a lane's access lies: `bytes` bytes at a multiple of `align`, in the CTA's
    /// own memory if it is `own`.
    pub(super) fn place(
        &mut self,
        (pc, lane): (u32, u32),
        address: u64,
        (bytes, align): (u64, u64),
        own: bool,
    ) -> Result<u64, Halt> {
        let ctas = self.cx.ctas() as u64;
        let (rank, offset) = self.rank_of(address);
        let refuse = |env: &mut Self, kind, location, detail: String| {
            env.report(kind, pc, Facts { lane, location, detail, fatal: true, ..Facts::default() });
            Err(Halt)
        };
        if rank >= ctas {
            let detail = format!("the address {address:#x} is of rank {rank}, and the cluster has {ctas} blocks");
            return refuse(self, Kind::OutOfBounds, None, detail);
        }
        let location = |env: &Self| Some(shared_location(env, rank as usize, offset, bytes));
        if own && rank != self.rank as u64 {
            let detail = format!(
                "the instruction takes an address of the block's own shared memory, rank {}; this one is of rank {rank}",
                self.rank
            );
            let location = location(self);
            return refuse(self, Kind::OutOfBounds, location, detail);
        }
        let size = u64::from(self.cx.shared_bytes);
        if offset > size || size - offset < bytes {
            let location = location(self);
            return refuse(self, Kind::OutOfBounds, location, String::new());
        }
        if !offset.is_multiple_of(align) {
            let location = location(self);
            return refuse(self, Kind::Misaligned, location, format!("the address must be a multiple of {align}"));
        }
        if rank != self.rank as u64 {
            self.reach((pc, lane), rank as u32);
        }
        Ok(self.base_of(rank as usize) + offset)
    }

    /// A lane touches the memory of another CTA.
    pub(super) fn reach(&mut self, (pc, lane): (u32, u32), owner: u32) {
        if !self.cx.options.sanitizers.races {
            return;
        }
        let (warp, epoch) = (self.warp, self.clocks.epoch(self.warp as usize));
        self.peers.reach(Reach { owner, warp, lane, pc, epoch });
        self.needs_started((pc, lane), owner);
    }

    /// What a lane does needs another CTA to have started.
    pub(super) fn needs_started(&mut self, (pc, lane): (u32, u32), owner: u32) {
        if self.cx.options.sanitizers.races && !self.peers.started(&self.clocks, owner, self.warp) {
            let [x, y, z] = self.cta_at(self.number, owner as usize);
            let detail = format!(
                "the memory is of block ({x}, {y}, {z}), rank {owner}, and nothing orders that block's start before: a barrier of the cluster is missing"
            );
            self.report(Kind::PeerNotStarted, pc, Facts { lane, detail, ..Facts::default() });
        }
    }

    /// Lanes of the warp that runs exit; `last` if none is left.
    #[inline(never)]
    pub(super) fn exit(&mut self, gone: Mask, last: bool) {
        let warp = self.warp as usize;
        if self.cluster.exit(warp, gone) {
            self.complete_cluster();
        }
        if last && self.cx.ctas() > 1 && self.cx.options.sanitizers.races {
            self.peers.exit(&mut self.clocks, self.rank, warp);
        }
    }

    /// The phase of the cluster's barrier ends.
    fn complete_cluster(&mut self) {
        for waiter in self.cluster.complete() {
            self.clocks.acquire(waiter.warp as usize, self.cluster.completed());
            self.peers.met(waiter.warp);
            self.wake(waiter);
        }
    }

    fn wake(&mut self, waiter: Waiter) {
        let (rank, _) = self.split(waiter.warp);
        self.barriers[rank].wake(waiter);
    }

    /// The cluster has ended: reports what may have come too late, or was left.
    pub(crate) fn finish_cluster(&mut self) {
        if self.cx.kernel.reallocates {
            for rank in 0..self.registers.len() {
                let Some((warp, change)) = self.registers[rank].left_out() else { continue };
                let thread = self.thread_of((rank * self.cx.warps() + warp) as u32, 0);
                let detail = format!(
                    "warp {warp} has ended without it: all four warps of a warpgroup execute every `setmaxnreg`"
                );
                let facts = Facts { detail, ..Facts::default() };
                self.report_thread(Kind::RegisterMisuse, change.pc, thread, facts);
            }
        }
        super::wgmma::finish(self);
        if self.cx.ctas() == 1 || !self.cx.options.sanitizers.races {
            return;
        }
        for reach in self.peers.late() {
            let thread = self.thread_of(reach.warp, reach.lane);
            let detail = self.gone(reach.owner);
            let facts = Facts { lane: reach.lane, detail, ..Facts::default() };
            self.report_thread(Kind::PeerExited, reach.pc, thread, facts);
        }
    }

    /// What is missing where memory may be gone.
    pub(super) fn gone(&self, owner: u32) -> String {
        let [x, y, z] = self.cta_at(self.number, owner as usize);
        format!(
            "the memory is of block ({x}, {y}, {z}), rank {owner}, and nothing orders this before that block's exit: a barrier of the cluster at the end, or another wait there, is missing"
        )
    }
}

impl Warp {
    /// A request whose addresses are in the shared memory of a cluster of several CTAs, or made by `mapa`.
    #[inline(never)]
    pub(super) fn access_cluster(&mut self, env: &mut Env<'_>, request: &Request<'_>, own: bool) -> Result<(), Halt> {
        let places = cluster_places(env, request, own)?;
        let request = Request::new(request.shape, request.access, &places, request.run);
        self.check_shared(env, &request)?;
        if env.cx.kernel.follows {
            self.follow_shared(env, &request);
        }
        self.move_data(env.cx.kernel, &request, &mut env.shared[..], 0);
        Ok(())
    }

    /// `mapa`, and with no rank `getctarank`.
    pub(super) fn mapa(&mut self, env: &mut Env<'_>, pc: u32, op: &Mapa, run: Mask) -> Result<(), Halt> {
        let ctas = env.cx.ctas() as u64;
        let addresses = self.row(op.a);
        for lane in lanes(run) {
            let mut address = addresses[lane];
            if op.generic {
                let space = space_of(address);
                if !matches!(space, Space::Shared | Space::Cluster) {
                    let mut inside = addresses;
                    inside[lane] = address.wrapping_sub(window(space));
                    return not_shared(env, pc, lane as u32, space, &inside);
                }
                address -= window(Space::Shared);
            }
            let (of, offset) = env.rank_of(address);
            let Some(rank) = op.rank else {
                self.put(op.d, lane, of);
                continue;
            };
            let rank = self.get(Slot::Narrow(rank), lane);
            if rank >= ctas {
                let detail = format!("the rank is {rank}, and the cluster has {ctas} blocks");
                env.report(
                    Kind::ClusterMisuse,
                    pc,
                    Facts { lane: lane as u32, detail, fatal: true, ..Facts::default() },
                );
                return Err(Halt);
            }
            let window = if op.generic { window(Space::Shared) } else { 0 };
            self.put(op.d, lane, window + ((rank + 1) << RANK_BITS | offset));
        }
        Ok(())
    }

    /// `barrier.cluster`.
    pub(super) fn cluster_barrier(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        op: ClusterBarrierOp,
        run: Mask,
    ) -> Result<Flow, Halt> {
        if op.aligned && run != self.live {
            return Ok(Flow::Park(run, Wait::Warp));
        }
        let warp = env.warp as usize;
        let Env { cluster, clocks, order, peers, warp: me, .. } = env;
        let (result, flow) = if op.arrive {
            let fenced = if op.orders { None } else { order.fenced(warp) };
            let result = cluster.arrive((warp, run), op.orders.then_some(clocks), fenced);
            (result, Flow::Next)
        } else {
            let waiter = Waiter { warp: *me, mask: run, pc, votes: false };
            match cluster.wait(waiter, Some(clocks)) {
                Ok(0) => {
                    peers.met(*me);
                    (Ok(false), Flow::Next)
                }
                Ok(early) => (Ok(false), Flow::Barrier(early)),
                Err(why) => (Err(why), Flow::Next),
            }
        };
        if let Some(trace) = &mut env.trace {
            trace.push(env.warp, Step::ComeCluster { waits: !op.arrive });
            if matches!(result, Ok(true)) {
                trace.push(env.warp, Step::MetCluster);
            }
        }
        match result {
            Ok(true) => env.complete_cluster(),
            Ok(false) => {}
            Err(why) => {
                let (mask, detail) = match why {
                    Misuse::Twice(mask) => (mask, "the thread arrives again without having waited"),
                    Misuse::Unannounced(mask) => (mask, "the thread waits without having arrived"),
                };
                let lane = mask.trailing_zeros();
                let detail = detail.to_owned();
                env.report(Kind::BarrierMisuse, pc, Facts { lane, detail, fatal: true, ..Facts::default() });
                return Err(Halt);
            }
        }
        if !op.arrive {
            env.counters.barriers += 1;
        }
        Ok(flow)
    }

    /// `setmaxnreg`.
    pub(super) fn set_registers(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        (count, inc): (u32, bool),
        run: Mask,
    ) -> Result<Flow, Halt> {
        if run != self.live {
            return Ok(Flow::Park(run, Wait::Warp));
        }
        let (rank, warp) = env.split(env.warp);
        let first = rank * env.cx.warps();
        let change = Change { count, inc, pc };
        match env.registers[rank].change(&mut env.clocks, (warp as usize, first), change, run) {
            Ok(Outcome::Wait) => Ok(Flow::Barrier(run)),
            Ok(Outcome::Done(woken)) => {
                woken.into_iter().for_each(|waiter| env.wake(waiter));
                Ok(Flow::Next)
            }
            Err(why) => {
                let detail = match why {
                    registers::Misuse::Direction(has) if inc => {
                        format!("`.inc` to {count} registers, where a thread has {has}")
                    }
                    registers::Misuse::Direction(has) => {
                        format!("`.dec` to {count} registers, where a thread has {has}")
                    }
                    registers::Misuse::Differs(other, theirs) => format!(
                        "warp {other} of the same warpgroup executes another one: `.{}` to {} registers at {}",
                        if theirs.inc { "inc" } else { "dec" },
                        theirs.count,
                        env.place_of(theirs.pc)
                    ),
                    registers::Misuse::Unsynchronised(other) => format!(
                        "the warpgroup must synchronise between two of them: warp {other} may be before its last one"
                    ),
                    registers::Misuse::Partial(warps) => {
                        format!("a warpgroup has four warps; the last one of this block has {warps}")
                    }
                };
                let lane = run.trailing_zeros();
                env.report(Kind::RegisterMisuse, pc, Facts { lane, detail, fatal: true, ..Facts::default() });
                Err(Halt)
            }
        }
    }
}

/// Places of all lanes of a request.
pub(super) fn cluster_places(env: &mut Env<'_>, request: &Request<'_>, own: bool) -> Result<Wide, Halt> {
    let total = request.shape.total();
    let mut places = [0; LANES];
    for lane in lanes(request.run) {
        places[lane] = env.place((request.shape.pc, lane as u32), request.address(lane), (total, total), own)?;
    }
    Ok(places)
}

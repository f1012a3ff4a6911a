//! Whether what comes next is ordered after what came before, statement by statement.

use super::Barrier;
use super::flow::Pass;
use crate::kernel_ir::{
    Access, AccessKind, BufferId, Effects, Engine, Memory, ParameterKind, Receivers, RegionId, Sharing, StatementKind,
    TensorPart,
};
use crate::lower::dependence::Group;
use crate::lower::pending_accesses;
use crate::lower::pending_accesses::{Accesses, InCluster, Since};
use crate::target::WARP;

/// Where a statement stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub region: RegionId,
    /// Whether the first thread alone comes there.
    pub first: bool,
    /// What it accesses of a buffer.
    pub group: Option<Group>,
}

impl<'a> Pass<'a> {
    fn is_written(&self, parameter: u16) -> bool {
        let of = self.kernel.signature.parameters.get(usize::from(parameter));
        of.is_some_and(|of| matches!(of.kind, ParameterKind::Tensor { written: true, .. }))
    }

    /// Takes in an access to memory other than shared; whether it is ordered.
    fn is_ordered_abroad(&self, access: Access, place: Place, since: &mut Since) -> bool {
        let shared = match access.memory {
            Memory::Workspace(_) => true,
            Memory::Parameter(parameter) => self.is_written(parameter),
            Memory::Buffer(_) => false,
        };
        if access.by == Engine::Tma {
            // Whoever is elected, it need not be the first thread.
            since.abroad |= shared;
            return true;
        }
        let read_only = matches!(access.memory, Memory::Workspace(_)) && access.reads();
        since.abroad |= shared && !place.first && !read_only;
        let alone = self.kernel.signature.threads == 1;
        !shared || place.first || alone || !since.arrived || !self.last.contains(&place.region)
    }

    /// Whether no other buffer that is `used` lies in the memory of this one. Those that must not, now that they are
    /// used, are noted where somebody asks ([`Pass::apart`]).
    fn is_alone(&self, buffer: BufferId, used: &[bool]) -> bool {
        let own = buffer.index();
        let others = || (0..used.len()).filter(|n| used[*n] && *n != own);
        if let Some(apart) = &mut *self.apart.borrow_mut() {
            apart.extend(others().map(|n| (own, n)));
        }
        others().all(|n| self.alias_of[n] != self.alias_of[own])
    }

    /// Whether nobody uses the memory of a buffer in any block, and all are there.
    fn is_free(&self, of: &InCluster, buffer: BufferId) -> bool {
        let is_used = of.touched[buffer.index()] || of.begun;
        !is_used && self.is_alone(buffer, &of.touched) && self.is_alone(buffer, &of.spread)
    }

    /// Whether what accessed a buffer is ordered with a later access of it.
    fn is_behind(&self, before: &Accesses, later: Group) -> bool {
        before.iter().all(|(access, among)| self.dependences.is_within(among, access, later, self.searches))
    }

    /// Takes in a statement; the barrier that is missing before it.
    pub(super) fn missing(
        &self,
        kind: &StatementKind,
        effects: &Effects<'_>,
        place: Place,
        since: &mut Since,
    ) -> Option<Barrier> {
        if !self.is_ordered_in_cluster(kind, effects, place, since) {
            return Some(Barrier::OfCluster);
        }
        let is_ordered = effects.accesses().all(|access| match access.buffer() {
            // What counts arrivals at it is no access of a thread: see below.
            _ if matches!(kind, StatementKind::LastBlockTicket { .. }) => true,
            Some(buffer) => self.is_access_ordered(access, buffer, place, since),
            None => self.is_ordered_abroad(access, place, since),
        });
        let is_ordered = is_ordered && self.is_event_ordered(kind, place, since);
        (!is_ordered).then_some(Barrier::Of(Sharing::Block))
    }

    /// Takes in what blocks of a cluster know of each other; whether it is ordered.
    fn is_ordered_in_cluster(&self, kind: &StatementKind, effects: &Effects<'_>, at: Place, since: &mut Since) -> bool {
        let of = &mut since.in_cluster;
        // Who copies to other blocks, or tells them, knows that they have begun.
        let tells = matches!(kind, StatementKind::MbarrierArrive { to: Receivers::All | Receivers::One(_), .. });
        of.told |= tells;
        let copied = effects.accesses().filter(|access| access.by == Engine::Tma && access.of_cluster);
        let is_copied = |access: Access| {
            let (Some(buffer), false) = (access.buffer(), of.begun) else { return false };
            // In a role, all blocks have said that it may be filled.
            let is_asked = access.reads() || self.roles.is_in_role(at.region);
            is_asked || effects.barrier.is_some_and(|barrier| self.is_free(of, buffer) && !of.waited[barrier.index()])
        };
        if tells && of.begun || !copied.into_iter().all(is_copied) {
            return false;
        }
        // An instance begins: what others wrote before belongs to the last one.
        let begun = match kind {
            StatementKind::LifetimeStart { buffer, .. } => Some((*buffer, false)),
            _ => None,
        };
        let by_thread = effects.accesses().filter(|access| access.by != Engine::Tma);
        let accessed = by_thread.filter_map(|a| Some((a.buffer()?, a.of_cluster && a.kind == AccessKind::Write)));
        begun.into_iter().chain(accessed).all(|(buffer, spreads)| {
            if spreads {
                let is_free = self.is_free(of, buffer);
                of.spread[buffer.index()] = true;
                return is_free;
            }
            of.touched[buffer.index()] = true;
            !of.spread[buffer.index()] && self.is_alone(buffer, &of.spread)
        })
    }

    /// Takes in an access of a buffer; whether it is ordered.
    fn is_access_ordered(
        &self,
        access: Access,
        buffer: BufferId,
        Place { region, group, .. }: Place,
        since: &mut Since,
    ) -> bool {
        let alone = self.kernel.signature.threads == 1;
        let is_handed = self.roles.only_hands(buffer, region);
        let is_own = alone || is_handed || self.kernel.buffers[buffer.index()].sharing == Sharing::Thread;
        match (access.by, access.kind, group) {
            // Each access by threads is of a group; an access of none is ordered with nothing.
            (Engine::Thread | Engine::CpAsync, _, None) => false,
            (Engine::Thread, AccessKind::Read, Some(group)) => {
                let uses = since.of(buffer);
                let is_behind = is_own || self.is_behind(&uses.written, group) && self.is_behind(&uses.landed, group);
                // What was fetched may be of any age.
                let instances = if self.fetched[buffer.index()] { uses.used.len() } else { 1 };
                since.read(buffer, pending_accesses::Access::of(group), instances);
                is_behind
            }
            (Engine::Thread, AccessKind::Write, Some(group)) => {
                let is_new = is_own || self.is_behind(&since.of(buffer).stale[0], group);
                let is_new = is_new && !since.is_multiplied(buffer);
                since.write(buffer, pending_accesses::Access::of(group));
                let is_alone = alone || self.is_alone(buffer, &since.touched);
                is_handed || is_new && !since.awaited && is_alone
            }
            (Engine::CpAsync, _, Some(group)) => {
                let is_new = is_own || self.is_behind(&since.of(buffer).stale[0], group);
                let is_new = is_new && !since.is_multiplied(buffer);
                since.fetch(buffer, pending_accesses::Access::of(group));
                is_new
            }
            (Engine::Tma, ..) if is_handed => !since.ready,
            (Engine::Tma, AccessKind::Write, _) => {
                let uses = since.of(buffer);
                !since.ready
                    && uses.used.iter().chain(&uses.stale).all(Accesses::is_empty)
                    && !since.is_multiplied(buffer)
            }
            (Engine::TensorCore, ..) => {
                let uses = since.of(buffer);
                let is_behind = !since.published && uses.written.is_empty() && uses.landed.is_empty();
                since.multiply(buffer);
                is_handed || is_behind
            }
            (Engine::Tma, AccessKind::Read, _) => !since.published && since.of(buffer).written.is_empty(),
        }
    }

    /// Takes in what a statement says or waits for; whether it is ordered.
    fn is_event_ordered(&self, kind: &StatementKind, place: Place, since: &mut Since) -> bool {
        let alone = self.kernel.signature.threads == 1;
        let is_warp = self.roles.threads(place.region).len() as u32 <= WARP;
        match kind {
            StatementKind::LifetimeStart { buffer, .. } => {
                since.renew(*buffer);
                true
            }
            StatementKind::CpAsyncWaitGroup { pending } => {
                since.land(*pending == 0);
                true
            }
            StatementKind::WgmmaWaitGroup { pending } => {
                since.products_end(*pending == 0);
                true
            }
            StatementKind::LastBlockTicket { .. } => {
                since.arrived = true;
                alone || !since.abroad
            }
            StatementKind::FenceProxyAsync => {
                since.published = true;
                true
            }
            StatementKind::BulkWaitGroupRead { .. } => {
                since.awaited = true;
                true
            }
            StatementKind::MbarrierExpectTx { barrier, .. } => {
                // Whoever starts what roles hand over has waited for an empty slot; a warp is together again then.
                let hands = |n: usize| self.roles.hands(n);
                let told = self.roles.is_in_role(place.region) && self.roles.is_of_cluster(barrier.index());
                let waits = |n: usize| n == barrier.index() || !is_warp && (told || hands(n) && hands(barrier.index()));
                !since.ready && (alone || !(0..since.waited.len()).any(|n| since.waited[n] && waits(n)))
            }
            StatementKind::MbarrierWait { barrier, .. } => {
                since.waited[barrier.index()] = true;
                since.in_cluster.waited[barrier.index()] = true;
                !since.ready
            }
            StatementKind::BulkCopy(transfer) => {
                // What tensor a tile is of is not known here.
                since.abroad |= matches!(transfer.part, TensorPart::Tile { .. });
                true
            }
            StatementKind::CpAsyncMbarrierArrive { .. } => !since.ready,
            // What these do are accesses, or it is in `flow` or of the cluster, or nobody waits for it.
            StatementKind::Load(_)
            | StatementKind::LoadMatrix(_)
            | StatementKind::StoreMatrix(_)
            | StatementKind::LoadDsmem { .. }
            | StatementKind::Store(_)
            | StatementKind::StoreDsmemAll(_)
            | StatementKind::AtomicUpdate(_)
            | StatementKind::CpAsync(_)
            | StatementKind::BarSync
            | StatementKind::BarSyncWarpgroup
            | StatementKind::BarWarpSync
            | StatementKind::BarrierCluster
            | StatementKind::BarRedOr { .. }
            | StatementKind::Elect(_)
            | StatementKind::Roles(_)
            | StatementKind::MbarrierArrive { .. }
            | StatementKind::If(_)
            | StatementKind::Loop(_)
            | StatementKind::Let(_)
            | StatementKind::Declare(..)
            | StatementKind::Set(..)
            | StatementKind::Shuffle { .. }
            | StatementKind::CpAsyncCommitGroup
            | StatementKind::GridDependencyWait
            | StatementKind::GridDependencyLaunch
            | StatementKind::Wgmma(_)
            | StatementKind::MmaSync(_)
            | StatementKind::WgmmaFence
            | StatementKind::WgmmaCommitGroup
            | StatementKind::BulkCommitGroup => true,
        }
    }
}

/// Who waits for each other at a statement.
pub(super) fn waits(kind: &StatementKind) -> Option<Barrier> {
    match kind {
        // One lane arrives for its warp: the others have come there.
        StatementKind::BarWarpSync | StatementKind::MbarrierArrive { .. } => Some(Barrier::Of(Sharing::Warp)),
        StatementKind::BarSyncWarpgroup => Some(Barrier::Of(Sharing::Warpgroup)),
        StatementKind::BarSync | StatementKind::BarRedOr { .. } => Some(Barrier::Of(Sharing::Block)),
        StatementKind::BarrierCluster => Some(Barrier::OfCluster),
        _ => None,
    }
}

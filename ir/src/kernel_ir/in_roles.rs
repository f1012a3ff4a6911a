//! Which role runs what in a kernel, and what several of them use.

use std::ops::Range;

use super::effects::Inside;
use super::{BufferId, Kernel, Mbarrier, MbarrierId, RegionId, Role, StatementKind};

/// Some of the roles of a kernel, and whether who is in no role is among them: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Users(u64);

impl Users {
    /// The bit of a role. A kernel has few; one with more than there are bits is refused.
    const fn bit(role: Option<usize>) -> u64 {
        match role {
            None => 1,
            Some(role) if role < 62 => 2 << role,
            Some(_) => 1 << 63,
        }
    }

    const fn insert(&mut self, role: Option<usize>) {
        self.0 |= Self::bit(role);
    }

    /// Whether a role is among them, or who is in none.
    pub const fn contains(self, role: Option<usize>) -> bool {
        self.0 & Self::bit(role) != 0
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// These and others.
    #[must_use]
    pub const fn union(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

/// Who runs each region, and who uses each buffer and barrier: roles by their positions in [`Kernel::roles`], none
/// outside of roles.
#[derive(Clone, Debug)]
pub struct InRoles {
    of_regions: Vec<Option<usize>>,
    /// The threads of a block, and of each role.
    threads: (Range<u32>, Vec<Range<u32>>),
    /// Who writes each buffer, and who reads it.
    of_buffers: Vec<[Users; 2]>,
    /// Who uses each barrier.
    of_barriers: Vec<Users>,
    /// What copies fill that end there.
    filled: Vec<Option<BufferId>>,
    /// Whether these are copies of several blocks.
    of_cluster: Vec<bool>,
}

impl Kernel {
    /// Gives each role that waits for others of its cluster, and has none yet, a barrier where they meet.
    pub fn declare_meetings(&mut self) {
        let meets = |role: &&Role| role.cluster_mbarrier.is_none() && self.has_cluster_barrier(role.body);
        let found: Vec<(RegionId, u32)> =
            self.roles().iter().filter(meets).map(|role| (role.body, role.warps.len() as u32)).collect();
        for (body, warps) in found {
            let next = MbarrierId(self.barriers.len() as u32);
            self.barriers.push(Mbarrier { slots: 1, arrivals: warps * self.signature.cluster });
            let roles =
                self.regions.iter_mut().flat_map(|region| &mut region.statements).filter_map(|s| match &mut s.kind {
                    StatementKind::Roles(roles) => Some(roles),
                    _ => None,
                });
            let role = roles.flatten().find(|role| role.body == body);
            role.into_iter().for_each(|role| role.cluster_mbarrier = Some(next));
        }
    }

    fn has_cluster_barrier(&self, region: RegionId) -> bool {
        self.region(region).statements.iter().any(|s| {
            s.kind == StatementKind::BarrierCluster
                || !s.kind.only_computes()
                    && s.kind.effects().inside.regions().any(|part| self.has_cluster_barrier(part))
        })
    }
}

impl InRoles {
    /// Those of a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let mut found = Self {
            of_regions: vec![None; kernel.regions.len()],
            threads: (0..kernel.signature.threads, kernel.roles().iter().map(Role::threads).collect()),
            of_buffers: vec![Default::default(); kernel.buffers.len()],
            of_barriers: vec![Users::default(); kernel.barriers.len()],
            filled: vec![None; kernel.barriers.len()],
            of_cluster: vec![false; kernel.barriers.len()],
        };
        for (n, role) in kernel.roles().iter().enumerate() {
            if let Some(barrier) = role.cluster_mbarrier {
                found.of_barriers[barrier.index()].insert(Some(n));
            }
        }
        found.region(kernel, Kernel::BODY, None);
        found
    }

    /// The threads that run a region.
    pub fn threads(&self, region: RegionId) -> Range<u32> {
        let role = self.of_regions.get(region.index()).copied().flatten();
        role.and_then(|role| self.threads.1.get(role)).unwrap_or(&self.threads.0).clone()
    }

    /// Whether a role runs a region, not all threads of the block.
    pub fn is_in_role(&self, region: RegionId) -> bool {
        self.role(region).is_some()
    }

    /// The role that runs a region.
    pub fn role(&self, region: RegionId) -> Option<usize> {
        self.of_regions.get(region.index()).copied().flatten()
    }

    /// Who writes a buffer, and who reads it; copies by the accelerator are those of who starts them.
    pub fn users(&self, buffer: BufferId) -> [Users; 2] {
        self.of_buffers[buffer.index()]
    }

    /// Whether several roles use a buffer: one hands it to others.
    pub fn is_handed(&self, buffer: BufferId) -> bool {
        let [writers, readers] = self.users(buffer);
        writers.union(readers).count() > 1
    }

    /// Whether who runs a region does nothing else with a buffer than to hand it to other roles, or to be handed it.
    pub fn only_hands(&self, buffer: BufferId, region: RegionId) -> bool {
        let role = self.of_regions[region.index()];
        self.is_handed(buffer) && !self.users(buffer).iter().all(|users| users.contains(role))
    }

    /// Whether several roles use a barrier, or what copies fill that end there: some may learn of the end from others.
    pub fn hands(&self, barrier: usize) -> bool {
        let filled = self.filled.get(barrier).copied().flatten();
        let several = self.of_barriers.get(barrier).is_some_and(|users| users.count() > 1);
        several || filled.is_some_and(|buffer| self.is_handed(buffer))
    }

    /// Whether copies of several blocks end there: who starts one tells other blocks how far it has come.
    pub fn is_of_cluster(&self, barrier: usize) -> bool {
        self.of_cluster.get(barrier).copied().unwrap_or(false)
    }

    fn region(&mut self, kernel: &Kernel, region: RegionId, role: Option<usize>) {
        self.of_regions[region.index()] = role;
        for statement in &kernel.region(region).statements {
            if statement.kind.only_computes() {
                continue;
            }
            let effects = statement.kind.effects();
            for access in effects.accesses() {
                let Some(buffer) = access.buffer() else { continue };
                self.of_buffers[buffer.index()][usize::from(access.reads())].insert(role);
                if let Some(barrier) = effects.barrier {
                    self.filled[barrier.index()] = Some(buffer);
                    self.of_cluster[barrier.index()] |= access.of_cluster;
                }
            }
            if let Some(barrier) = effects.barrier {
                self.of_barriers[barrier.index()].insert(role);
            }
            match effects.inside {
                Inside::Roles(roles) => {
                    for (n, role) in roles.iter().enumerate() {
                        self.region(kernel, role.body, Some(n));
                    }
                }
                inside => {
                    for part in inside.regions() {
                        self.region(kernel, part, role);
                    }
                }
            }
        }
    }
}

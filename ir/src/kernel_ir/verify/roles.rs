//! Roles, and where statements of all threads may stand.

use tilewright_kernel::target::{ROLE_LIMIT, WARP, WARPGROUP, register_limit};

use super::problem::Problem;
use super::{Checker, Threads};
use crate::kernel_ir::{Facts, Mbarrier, Memory, RegionId, Role, ValueId};

impl Checker<'_> {
    /// Whether warps can have these roles.
    pub(super) fn are_roles(&self, roles: &[Role]) -> bool {
        let threads = self.kernel.signature.threads;
        let warps = threads / WARP;
        let apart = |(n, role): (usize, &Role)| {
            roles[..n].iter().all(|o| o.warps.end <= role.warps.start || role.warps.end <= o.warps.start)
        };
        let group = WARPGROUP / WARP;
        let ranges = roles.iter().enumerate().all(apart)
            && roles.iter().all(|r| r.warps.start < r.warps.end && r.warps.end <= warps)
            && (1..=ROLE_LIMIT).contains(&roles.len())
            && threads.is_multiple_of(WARP);
        let usual = register_limit(threads);
        let given = |role: &Role| {
            role.registers.is_none_or(|n| {
                let whole = role.warps.start.is_multiple_of(group) && role.warps.end.is_multiple_of(group);
                whole && n.is_multiple_of(8) && (24..=240).contains(&n)
            })
        };
        let meeting = |(n, role): (usize, &Role)| {
            let Some(cluster_mbarrier) = role.cluster_mbarrier else { return true };
            let arrivals = role.warps.len() as u32 * self.kernel.signature.cluster;
            self.kernel.barriers.get(cluster_mbarrier.index()) == Some(&Mbarrier { slots: 1, arrivals })
                && roles[..n].iter().all(|other| other.cluster_mbarrier != role.cluster_mbarrier)
        };
        let taken: u32 = roles.iter().map(|r| r.warps.len() as u32 * r.registers.unwrap_or(usual)).sum();
        let rest = warps.saturating_sub(roles.iter().map(|r| r.warps.len() as u32).sum());
        ranges
            && roles.iter().all(given)
            && roles.iter().enumerate().all(meeting)
            && taken + rest * usual <= usual * warps
    }

    /// Depths grow by one, which also bounds the recursion by the number of regions.
    pub(super) fn nested(&mut self, inner: RegionId, outer: RegionId) {
        let depth = |id: RegionId| self.kernel.regions.get(id.index()).map(|r| r.depth);
        if depth(inner).is_none() || depth(inner) != depth(outer).map(|d| d + 1) {
            return self.fault(Problem::NoSuchId);
        }
        self.region(inner);
    }

    /// A region that runs as often as a value says: all threads come if they agree on it.
    pub(super) fn nested_where(&mut self, decides: ValueId, inner: RegionId, outer: RegionId) {
        let facts = self.kernel.values.get(decides.index()).map_or(Facts::NONE, |v| v.facts);
        let threads = match self.threads {
            Threads::Elected => Threads::Elected,
            Threads::Cluster if facts.uniform && !facts.cluster => Threads::All,
            threads if facts.uniform => threads,
            _ => Threads::Some,
        };
        let before = std::mem::replace(&mut self.threads, threads);
        self.nested(inner, outer);
        self.threads = before;
    }

    pub(super) fn collective(&mut self, threads: Threads) {
        let more = (self.threads, threads) == (Threads::Cluster, Threads::All);
        self.expect(self.threads == threads || more, Problem::NotCollective);
    }

    /// A statement of blocks of a cluster.
    pub(super) fn clusters(&mut self) {
        let blocks = self.kernel.signature.cluster;
        self.expect(blocks > 1, Problem::BadCluster(blocks));
    }

    /// An access of another block's memory: shared memory alone is in reach.
    pub(super) fn peers(&mut self, memory: Memory) {
        self.clusters();
        self.expect(self.threads != Threads::Elected, Problem::NotCollective);
        if let Some(other) = match self.kernel.home(memory) {
            Memory::Buffer(_) => None,
            Memory::Parameter(number) => Some(Problem::NotABuffer(number.into())),
            Memory::Workspace(number) => Some(Problem::NotABuffer(number.into())),
        } {
            self.fault(other);
        }
    }
}

//! The verifier: what every kernel that emission gets must satisfy. It proves nothing about bounds or ranges; that is
//! the `proof` room's business.
//!
//! 1. Ids refer to values, regions, variables, parameters and dimensions that exist; no region is used twice.
//! 2. Every value is bound at most once, and used only after its binding, in the region that binds it or in one nested
//!    in it. Literals are bound nowhere. The same holds for variables and their declaration.
//! 3. Operands and results have the types that the operation demands (see [`Op`]); element arithmetic only on
//!    arithmetic types.
//! 4. A literal fits its type.
//! 5. A load or store names a tensor parameter that has an address argument, an index offset, and a number of lanes
//!    that is a power of two, at most [`MAX_LANES`]; lanes have the tensor's element type. A store names a tensor that
//!    the kernel writes.
//! 6. A predicated load has one alternative a lane, of the element type; any other has none.
//! 7. A loop's count is an index integer and its index has the same type; a branch's condition is a predicate.
//! 8. A variable is set to values of its type.
//! 9. Scalars, dimensions and tensor maps that are used are passed; a block has 1 to `BLOCK_LIMIT` threads.
//! 10. Statements for all threads of a block stand where every thread comes: in no branch and no loop that threads may
//!     disagree on, and not in the part of the elected thread. Copies, what they are expected by and what waits for
//!     their reads stand in that part, which changes nothing else.
//! 11. A copy of a tile starts at one 32-bit index for each dimension of its map, one of a run at an element of a
//!     tensor, and has a multiple of 16 bytes. Its slot and its place in the slot are 32-bit indices that are known to
//!     be in the buffer, and it ends on a barrier that the kernel has for the slot.
//! 12. A shuffle is a statement for all threads, too; its result has the type of what it moves, and its mask is one of
//!     two lanes. A buffer is renewed by all threads, in a slot that it has.
//! 13. A fetch copies elements of a tensor that the kernel does not write to a buffer of their type, 4, 8 or 16 bytes
//!     of them; by threads, not in the part of the elected one. Its groups are committed, waited for and released by
//!     all threads.
//! 14. Workspaces that are used are passed, and counters are `u32` and zero at first. A block arrives with all its
//!     threads. An update has the type of its workspace, and an operation that the type has.
//! 15. A cluster has 1 to [`CLUSTER_LIMIT`] blocks. What blocks of a cluster do together stands in kernels that have
//!     clusters: accesses of others' buffers are of buffers in shared memory, and their barrier stands where every
//!     thread of every block of the cluster comes.
//! 16. Roles stand where every thread of the block comes, and not in a role. They are 1 to [`ROLE_LIMIT`] ranges of the
//!     block's warps that do not overlap. In a role, what is for all threads is for those of the role; nothing is said
//!     to other blocks through memory, and no variable from outside is set. Registers are given to whole warpgroups, no
//!     more than a multiprocessor has, and nothing but barriers of the cluster follows after such roles. A barrier has
//!     1 to [`ARRIVAL_LIMIT`] arrivals; who releases one comes in whole warps. A role that meets in all blocks of a
//!     cluster does so at a barrier of its own, with an arrival for each of its warps there.

use std::collections::BTreeSet;
use std::ops::Range;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Binary;
use tilewright_kernel::info::Argument;

use super::{
    AtomicOp, AtomicUpdate, BulkCopy, CpAsync, Facts, Kernel, Mbarrier, MbarrierId, Memory, Op, ParameterKind,
    Receivers, RegionId, Role, Sharing, Statement, StatementKind, TensorPart, Type, UnaryOp, Value, ValueId,
    VariableId, arithmetic_type,
};
use crate::target::{
    ARRIVAL_LIMIT, BLOCK_LIMIT, CLUSTER_LIMIT, FETCHED_BYTES, ROLE_LIMIT, WARP, WARPGROUP, register_limit,
};

/// The longest vector of a load or store.
pub const MAX_LANES: u32 = 128;

/// A violated property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Source statement that the offending one serves; 0 for none.
    pub line: u32,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// An id refers to nothing.
    NoSuchId,
    /// A region belongs to two statements.
    RegionUsedTwice(RegionId),
    /// A value is used where it is not bound.
    NotInScope(ValueId),
    /// A value is bound twice, or bound by a statement of the wrong kind.
    BadBinding(ValueId),
    /// A variable is used where it is not declared, or declared twice.
    VariableNotInScope(VariableId),
    /// The operation of this value does not take operands of these types, or does not have this type.
    BadTypes(ValueId),
    /// A literal does not fit its type.
    BadLiteral(ValueId),
    /// A load or store of something other than a tensor parameter with an address argument.
    NotATensor(u16),
    /// A store to a parameter that the kernel does not write.
    ReadOnly(u16),
    /// The number of lanes is no power of two or too large.
    BadLanes(u32),
    /// An offset, count, condition, lane, alternative or variable's value has the wrong type.
    BadOperand(ValueId),
    /// The number of alternatives is not that of the lanes.
    BadAlternatives(u32),
    /// No argument passes this scalar.
    ScalarNotPassed(u16),
    /// No argument passes this dimension.
    DimNotPassed(u16),
    /// A buffer in shared memory that does not exist.
    NotABuffer(u32),
    /// A barrier that does not exist.
    NotABarrier(u32),
    /// A slot that is not known to be one of a buffer, or to have a barrier.
    NotASlot(ValueId),
    /// A tensor map that does not exist or is not passed, or a start with another number of dimensions.
    NotAMap(u16),
    /// A place that is not known to be in a slot of the buffer, with all that is copied there.
    OutsideBuffer(ValueId),
    /// A run cannot have so many bytes.
    BadRun(u32),
    /// No fetch moves so many elements of this type, or it moves them to another type.
    BadFetch(u32),
    /// A fetch from a tensor that the kernel writes.
    NotConstant(u16),
    /// No two lanes differ by this mask.
    BadMask(u32),
    /// A barrier of warps or warpgroups in a block of so many threads, which has a part of one.
    PartOfUnit(u32),
    /// A workspace that does not exist, is not passed, or is no counter where one is needed.
    NotAWorkspace(u16),
    /// An update that this workspace's type does not have.
    BadUpdate(u16),
    /// A statement for all threads where some do not come, or one for the elected thread elsewhere.
    NotCollective,
    /// A block cannot have so many threads.
    BadThreads(u32),
    /// Roles that cannot be these: their warps, registers, or place.
    BadRoles,
    /// A barrier cannot have so many arrivals.
    BadArrivals(u32),
    /// A cluster cannot have so many blocks, or not for this statement.
    BadCluster(u32),
}

/// Checks the properties of this room.
///
/// # Errors
/// Every violation, in the order of the statements.
pub fn verify(kernel: &Kernel) -> Result<(), Vec<Fault>> {
    let mut checker = Checker {
        kernel,
        bound: vec![Binding::Unbound; kernel.values.len()],
        declared: vec![Binding::Unbound; kernel.variables.len()],
        used: vec![false; kernel.regions.len()],
        faults: Vec::new(),
        line: 0,
        threads: Threads::Cluster,
        role: None,
    };
    for barrier in &kernel.barriers {
        if !(1..=ARRIVAL_LIMIT).contains(&barrier.arrivals) {
            checker.fault(Problem::BadArrivals(barrier.arrivals));
        }
    }
    if !(1..=BLOCK_LIMIT).contains(&kernel.signature.threads) {
        checker.fault(Problem::BadThreads(kernel.signature.threads));
    }
    if !(1..=CLUSTER_LIMIT).contains(&kernel.signature.cluster) {
        checker.fault(Problem::BadCluster(kernel.signature.cluster));
    }
    checker.region(Kernel::BODY);
    if checker.faults.is_empty() { Ok(()) } else { Err(checker.faults) }
}

/// State of a value or variable while the kernel is walked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Binding {
    Unbound,
    InScope,
    Closed,
}

/// Who comes to a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Threads {
    /// Every thread of every block of the cluster.
    Cluster,
    /// Every thread of the block, if not of its cluster.
    All,
    /// Threads that a condition chooses.
    Some,
    /// The elected one.
    Elected,
}

struct Checker<'a> {
    kernel: &'a Kernel,
    bound: Vec<Binding>,
    declared: Vec<Binding>,
    used: Vec<bool>,
    faults: Vec<Fault>,
    line: u32,
    threads: Threads,
    role: Option<InRole>,
}

/// The role that a statement stands in.
struct InRole {
    threads: Range<u32>,
    /// Where its threads of all blocks meet.
    cluster_mbarrier: Option<MbarrierId>,
    /// The variables from outside.
    outside: BTreeSet<VariableId>,
}

impl Checker<'_> {
    fn fault(&mut self, problem: Problem) {
        self.faults.push(Fault { line: self.line, problem });
    }

    fn expect(&mut self, holds: bool, problem: Problem) {
        if !holds {
            self.fault(problem);
        }
    }

    fn region(&mut self, id: RegionId) {
        let kernel = self.kernel;
        let Some(region) = kernel.regions.get(id.index()) else { return self.fault(Problem::NoSuchId) };
        if std::mem::replace(&mut self.used[id.index()], true) {
            return self.fault(Problem::RegionUsedTwice(id));
        }
        for statement in &region.statements {
            self.line = statement.line;
            self.statement(statement, id);
        }
        // What the region bound ends with it.
        for statement in &region.statements {
            statement.kind.effects().binds().for_each(|value| self.close(value));
            if let StatementKind::Declare(variable, _) = statement.kind
                && let Some(binding) = self.declared.get_mut(variable.index())
            {
                *binding = Binding::Closed;
            }
        }
    }

    fn statement(&mut self, statement: &Statement, region: RegionId) {
        match &statement.kind {
            StatementKind::Let(value) => self.binding(*value),
            StatementKind::Declare(variable, value) => {
                match self.declared.get_mut(variable.index()) {
                    Some(binding @ Binding::Unbound) => *binding = Binding::InScope,
                    _ => self.fault(Problem::VariableNotInScope(*variable)),
                }
                self.assigned(*variable, *value);
            }
            StatementKind::Set(variable, value) => {
                self.variable(*variable);
                let outside = self.role.as_ref().is_some_and(|role| role.outside.contains(variable));
                self.expect(!outside, Problem::VariableNotInScope(*variable));
                self.assigned(*variable, *value);
            }
            StatementKind::Load(load) | StatementKind::LoadDsmem { load, .. } => {
                if let StatementKind::LoadDsmem { rank, .. } = statement.kind {
                    self.operand(rank, |ty| ty == Type::I32);
                    self.peers(load.memory);
                }
                let element = self.access(load.memory, load.offset, load.lanes, false);
                if let Some(predicate) = load.predicate {
                    self.operand(predicate, |ty| ty == Type::PRED);
                }
                let alternatives = if load.predicate.is_some() { load.lanes as usize } else { 0 };
                let given = load.otherwise.len();
                self.expect(given == alternatives, Problem::BadAlternatives(given.try_into().unwrap_or(u32::MAX)));
                for value in &load.otherwise {
                    self.operand(*value, |ty| Some(ty) == element);
                }
                if load.lanes > MAX_LANES {
                    return;
                }
                for value in load.results() {
                    let fits = self.kernel.values.get(value.index());
                    let fits = fits.is_some_and(|v| v.op == Op::Loaded && Some(v.ty) == element);
                    self.expect(fits, Problem::BadBinding(value));
                    self.open(value);
                }
            }
            StatementKind::Store(store) | StatementKind::StoreDsmemAll(store) => {
                if let StatementKind::StoreDsmemAll(_) = statement.kind {
                    self.peers(store.memory);
                }
                let lanes = u32::try_from(store.values.len()).unwrap_or(u32::MAX);
                let element = self.access(store.memory, store.offset, lanes, true);
                for value in &store.values {
                    self.operand(*value, |ty| Some(ty) == element);
                }
            }
            StatementKind::Loop(l) => {
                self.operand(l.count, Type::is_index);
                let (index, count) = (self.kernel.values.get(l.index.index()), self.kernel.values.get(l.count.index()));
                let fits = index.is_some_and(|i| i.op == Op::LoopIndex && Some(i.ty) == count.map(|c| c.ty));
                self.expect(fits, Problem::BadBinding(l.index));
                self.open(l.index);
                self.nested_where(l.count, l.body, region);
                self.close(l.index);
            }
            StatementKind::If(branch) => {
                self.operand(branch.condition, |ty| ty == Type::PRED);
                self.nested_where(branch.condition, branch.then, region);
                if let Some(otherwise) = branch.otherwise {
                    self.nested_where(branch.condition, otherwise, region);
                }
            }
            StatementKind::BarSync => self.collective(Threads::All),
            StatementKind::BarrierCluster => {
                self.collective(Threads::Cluster);
                self.clusters();
                let meets = self.role.as_ref().is_none_or(|role| role.cluster_mbarrier.is_some());
                self.expect(meets, Problem::BadRoles);
            }
            StatementKind::BarSyncWarpgroup | StatementKind::BarWarpSync => {
                self.collective(Threads::All);
                let role = self.role.as_ref().map(|role| role.threads.clone());
                let Range { start, end } = role.unwrap_or(0..self.kernel.signature.threads);
                let threads = end - start;
                let unit = if statement.kind == StatementKind::BarWarpSync { WARP } else { WARPGROUP };
                let whole = threads.is_multiple_of(unit) && start.is_multiple_of(unit);
                self.expect(whole, Problem::PartOfUnit(threads));
            }
            StatementKind::LifetimeStart { buffer, slot } => {
                // What belongs to one thread is renewed by it.
                if self.kernel.buffers.get(buffer.index()).is_none_or(|b| b.sharing != Sharing::Thread) {
                    self.collective(Threads::All);
                }
                let slots = self.kernel.buffers.get(buffer.index()).map(|b| b.slots);
                self.expect(slots.is_some(), Problem::NotABuffer(buffer.0));
                self.slot(*slot, slots.unwrap_or(0));
            }
            StatementKind::CpAsync(fetch) => self.fetch(fetch),
            StatementKind::CpAsyncCommitGroup
            | StatementKind::CpAsyncWaitGroup { .. }
            | StatementKind::GridDependencyWait
            | StatementKind::GridDependencyLaunch => self.collective(Threads::All),
            StatementKind::Shuffle { value, mask, result } => {
                self.collective(Threads::All);
                let type_of = |id: &ValueId| self.kernel.values.get(id.index()).map(|v| v.ty);
                let (given, got) = (type_of(value), type_of(result));
                let fits = self.kernel.values.get(result.index()).is_some_and(|v| v.op == Op::Shuffled);
                self.operand(*value, |_| true);
                self.expect((1..WARP).contains(mask), Problem::BadMask(*mask));
                self.expect(fits && given == got, Problem::BadBinding(*result));
                self.open(*result);
            }
            StatementKind::AtomicUpdate(AtomicUpdate { workspace, offset, op, value }) => {
                self.expect(self.role.is_none(), Problem::NotCollective);
                let ty = self.access(Memory::Workspace(*workspace), *offset, 1, true);
                self.operand(*value, |value| Some(value) == ty);
                self.expect(ty.is_some_and(|ty| updates(*op, ty)), Problem::BadUpdate(*workspace));
            }
            StatementKind::LastBlockTicket { counters, at, blocks, last, .. } => {
                self.expect(self.role.is_none(), Problem::NotCollective);
                self.collective(Threads::All);
                let ty = self.access(Memory::Workspace(*counters), *at, 1, true);
                let zeroed = self.kernel.workspaces.get(usize::from(*counters)).is_some_and(|w| w.zeroed);
                let counts = ty == Some(Type::Element(ElementType::U32)) && zeroed;
                self.expect(counts, Problem::NotAWorkspace(*counters));
                self.operand(*blocks, |ty| ty == Type::I32);
                let fits = self.kernel.values.get(last.index()).is_some_and(|v| v.op == Op::Arrived);
                self.expect(fits && self.kernel.value(*last).ty == Type::PRED, Problem::BadBinding(*last));
                self.open(*last);
            }
            StatementKind::BarRedOr { predicate, result } => {
                self.expect(self.role.is_none(), Problem::NotCollective);
                self.collective(Threads::All);
                self.operand(*predicate, |ty| ty == Type::PRED);
                let fits = self.kernel.values.get(result.index()).is_some_and(|v| v.op == Op::Agreed);
                self.expect(fits && self.kernel.value(*result).ty == Type::PRED, Problem::BadBinding(*result));
                self.open(*result);
            }
            StatementKind::Elect(part) => {
                self.collective(Threads::All);
                let outer = std::mem::replace(&mut self.threads, Threads::Elected);
                self.nested(*part, region);
                self.threads = outer;
            }
            StatementKind::MbarrierExpectTx { barrier, slot, .. } => {
                self.collective(Threads::Elected);
                self.barrier(*barrier, *slot);
            }
            StatementKind::BulkCopy(transfer) => {
                self.collective(Threads::Elected);
                self.transfer(transfer);
            }
            StatementKind::MbarrierWait { barrier, slot, parity } => {
                self.collective(Threads::All);
                self.barrier(*barrier, *slot);
                self.operand(*parity, |ty| ty == Type::I32);
            }
            StatementKind::MbarrierArrive { barrier, slot, to } => {
                self.collective(Threads::All);
                let threads = self.kernel.signature.threads;
                self.expect(threads.is_multiple_of(WARP), Problem::PartOfUnit(threads));
                self.barrier(*barrier, *slot);
                if *to != Receivers::Own {
                    self.clusters();
                }
                if let Receivers::One(rank) = to {
                    self.operand(*rank, |ty| ty == Type::I32);
                }
            }
            StatementKind::CpAsyncMbarrierArrive { barrier, slot } => {
                self.collective(Threads::All);
                self.barrier(*barrier, *slot);
            }
            StatementKind::Roles(roles) => {
                self.collective(Threads::All);
                self.expect(self.role.is_none() && self.are_roles(roles), Problem::BadRoles);
                if roles.iter().any(|role| role.registers.is_some()) {
                    let mut behind = self.kernel.region(region).statements.iter().rev();
                    let last = behind.find(|s| s.kind != StatementKind::BarrierCluster).map(|s| &s.kind);
                    self.expect(region == Kernel::BODY && last == Some(&statement.kind), Problem::BadRoles);
                }
                let declared = (0..).zip(&self.declared).filter(|(_, binding)| **binding == Binding::InScope);
                let outside: BTreeSet<VariableId> = declared.map(|(n, _)| VariableId(n)).collect();
                for role in roles {
                    let (threads, cluster_mbarrier, outside) = (role.threads(), role.cluster_mbarrier, outside.clone());
                    self.role = Some(InRole { threads, cluster_mbarrier, outside });
                    self.nested(role.body, region);
                }
                self.role = None;
            }
            StatementKind::FenceProxyAsync => self.collective(Threads::All),
            StatementKind::BulkCommitGroup | StatementKind::BulkWaitGroupRead { .. } => {
                self.collective(Threads::Elected)
            }
        }
    }

    /// Whether warps can have these roles.
    fn are_roles(&self, roles: &[Role]) -> bool {
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
    fn nested(&mut self, inner: RegionId, outer: RegionId) {
        let depth = |id: RegionId| self.kernel.regions.get(id.index()).map(|r| r.depth);
        if depth(inner).is_none() || depth(inner) != depth(outer).map(|d| d + 1) {
            return self.fault(Problem::NoSuchId);
        }
        self.region(inner);
    }

    /// A region that runs as often as a value says: all threads come if they agree on it.
    fn nested_where(&mut self, decides: ValueId, inner: RegionId, outer: RegionId) {
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

    fn collective(&mut self, threads: Threads) {
        let more = (self.threads, threads) == (Threads::Cluster, Threads::All);
        self.expect(self.threads == threads || more, Problem::NotCollective);
    }

    /// A statement of blocks of a cluster.
    fn clusters(&mut self) {
        let blocks = self.kernel.signature.cluster;
        self.expect(blocks > 1, Problem::BadCluster(blocks));
    }

    /// An access of another block's memory: shared memory alone is in reach.
    fn peers(&mut self, memory: Memory) {
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

    fn barrier(&mut self, barrier: MbarrierId, slot: ValueId) {
        let slots = self.kernel.barriers.get(barrier.index()).map(|b| b.slots);
        self.expect(slots.is_some(), Problem::NotABarrier(barrier.0));
        let is_met_at = self.kernel.roles().iter().any(|role| role.cluster_mbarrier == Some(barrier));
        self.expect(!is_met_at, Problem::BadRoles);
        self.slot(slot, slots.unwrap_or(0));
    }

    /// A slot below so many.
    fn slot(&mut self, slot: ValueId, slots: u32) {
        self.operand(slot, |ty| ty == Type::I32);
        let range = self.kernel.values.get(slot.index()).map(|v| v.facts.range);
        let known = range.is_some_and(|r| r.low >= 0 && r.high < i64::from(slots));
        self.expect(known, Problem::NotASlot(slot));
    }

    fn fetch(&mut self, fetch: &CpAsync) {
        let CpAsync { parameter, from, buffer, to, lanes, predicate } = fetch;
        self.expect(self.threads != Threads::Elected, Problem::NotCollective);
        let read = self.access(Memory::Parameter(*parameter), *from, *lanes, false);
        let written = self.access(Memory::Buffer(*buffer), *to, *lanes, true);
        let bytes = read.and_then(Type::element).map_or(0, |e| e.bytes().saturating_mul(*lanes));
        self.expect(read == written && FETCHED_BYTES.contains(&bytes), Problem::BadFetch(*lanes));
        let kind = self.kernel.signature.parameters.get(usize::from(*parameter)).map(|p| p.kind);
        let constant = matches!(kind, Some(ParameterKind::Tensor { written: false }));
        self.expect(constant, Problem::NotConstant(*parameter));
        if let Some(predicate) = predicate {
            self.operand(*predicate, |ty| ty == Type::PRED);
        }
    }

    fn transfer(&mut self, transfer: &BulkCopy) {
        let BulkCopy { part, buffer, slot, offset, barrier, evict: _, multicast } = transfer;
        if let Some(mask) = multicast {
            self.operand(*mask, |ty| ty == Type::I32);
            self.clusters();
            self.expect(barrier.is_some(), Problem::BadOperand(*mask));
        }
        let signature = &self.kernel.signature;
        let buffer_of = self.kernel.buffers.get(buffer.index());
        self.expect(buffer_of.is_some(), Problem::NotABuffer(buffer.0));
        // Of a tile, whose size is the map's, at least one element is there.
        let mut copied = 1;
        match part {
            TensorPart::Tile { map, start } => {
                let rank = signature.maps.get(usize::from(*map)).map(|m| m.rank as usize);
                let passed = signature.arguments.contains(&Argument::Map(*map));
                let fits = rank == Some(start.len()) && (1..=5).contains(&start.len());
                self.expect(passed && fits, Problem::NotAMap(*map));
                for value in start {
                    self.operand(*value, |ty| ty == Type::I32);
                }
            }
            TensorPart::Run { parameter, offset, bytes } => {
                self.access(Memory::Parameter(*parameter), *offset, 1, barrier.is_none());
                self.expect(*bytes > 0 && bytes.is_multiple_of(16), Problem::BadRun(*bytes));
                copied = i64::from(bytes / buffer_of.map_or(1, |b| b.element.bytes()));
            }
        }
        self.operand(*offset, |ty| ty == Type::I32);
        let place = self.kernel.values.get(offset.index()).map(|v| v.facts.range);
        let elements = buffer_of.map_or(0, |b| i64::from(b.elements));
        let inside = place.is_some_and(|r| r.low >= 0 && r.high.saturating_add(copied) <= elements);
        self.expect(inside, Problem::OutsideBuffer(*offset));
        self.slot(*slot, buffer_of.map_or(0, |b| b.slots));
        if let Some(barrier) = barrier {
            self.barrier(*barrier, *slot);
        }
    }

    fn open(&mut self, value: ValueId) {
        match self.bound.get_mut(value.index()) {
            Some(binding @ Binding::Unbound) => *binding = Binding::InScope,
            _ => self.fault(Problem::BadBinding(value)),
        }
    }

    fn close(&mut self, value: ValueId) {
        if let Some(binding) = self.bound.get_mut(value.index()) {
            *binding = Binding::Closed;
        }
    }

    /// A value that is in scope here and whose type satisfies the condition.
    fn operand(&mut self, id: ValueId, fits: impl FnOnce(Type) -> bool) {
        let Some(value) = self.kernel.values.get(id.index()) else { return self.fault(Problem::NoSuchId) };
        match value.op {
            Op::Literal(bits) => self.expect(literal_fits(value.ty, bits), Problem::BadLiteral(id)),
            _ => self.expect(self.bound[id.index()] == Binding::InScope, Problem::NotInScope(id)),
        }
        self.expect(fits(value.ty), Problem::BadOperand(id));
    }

    fn variable(&mut self, variable: VariableId) {
        let in_scope = self.declared.get(variable.index()) == Some(&Binding::InScope);
        self.expect(in_scope, Problem::VariableNotInScope(variable));
    }

    fn assigned(&mut self, variable: VariableId, value: ValueId) {
        let ty = self.kernel.variables.get(variable.index()).copied();
        self.operand(value, |value| Some(value) == ty);
    }

    /// Memory, offset and lanes of a load or store; the lanes' type.
    fn access(&mut self, memory: Memory, offset: ValueId, lanes: u32, write: bool) -> Option<Type> {
        self.operand(offset, Type::is_index);
        self.expect(lanes.is_power_of_two() && lanes <= MAX_LANES, Problem::BadLanes(lanes));
        let parameter = match memory {
            Memory::Parameter(parameter) => parameter,
            Memory::Buffer(buffer) => {
                let element = self.kernel.element(memory);
                self.expect(element.is_some(), Problem::NotABuffer(buffer.0));
                if let Some(workspace) = self.kernel.part(buffer) {
                    let home = self.access(Memory::Workspace(workspace), offset, lanes, write);
                    self.expect(home == element.map(Type::Element), Problem::NotAWorkspace(workspace));
                }
                return element.map(Type::Element);
            }
            Memory::Workspace(workspace) => {
                let element = self.kernel.element(memory);
                let passed = self.kernel.signature.arguments.contains(&Argument::Workspace(workspace));
                self.expect(element.is_some() && passed, Problem::NotAWorkspace(workspace));
                return element.map(Type::Element);
            }
        };
        let signature = &self.kernel.signature;
        let declared = signature.parameters.get(usize::from(parameter));
        let passed = signature.arguments.contains(&Argument::Address(parameter));
        match declared.map(|p| p.kind).filter(|_| passed) {
            Some(ParameterKind::Tensor { written }) => self.expect(written || !write, Problem::ReadOnly(parameter)),
            _ => self.fault(Problem::NotATensor(parameter)),
        }
        declared.map(|p| Type::Element(p.element))
    }

    fn binding(&mut self, id: ValueId) {
        let kernel = self.kernel;
        let Some(Value { op, ty, .. }) = kernel.values.get(id.index()).copied() else {
            return self.fault(Problem::NoSuchId);
        };
        for operand in op.operands() {
            self.operand(operand, |_| true);
        }
        let type_of = |id: ValueId| kernel.values.get(id.index()).map(|v| v.ty);
        match op {
            Op::Literal(_) | Op::LoopIndex | Op::Loaded | Op::Shuffled | Op::Arrived | Op::Agreed => {
                self.fault(Problem::BadBinding(id))
            }
            Op::Get(variable) => {
                self.variable(variable);
                self.expect(kernel.variables.get(variable.index()) == Some(&ty), Problem::BadTypes(id));
            }
            Op::Dim(dim) => {
                let passed = kernel.signature.arguments.contains(&Argument::Dim(dim));
                self.expect(passed, Problem::DimNotPassed(dim));
                self.expect(ty.is_index(), Problem::BadTypes(id));
            }
            Op::Scalar(parameter) => {
                let passed = kernel.signature.arguments.contains(&Argument::Scalar(parameter));
                self.expect(passed, Problem::ScalarNotPassed(parameter));
                let declared = kernel.signature.parameters.get(usize::from(parameter));
                let element = declared.filter(|p| p.kind == ParameterKind::Scalar).map(|p| Type::Element(p.element));
                self.expect(element == Some(ty), Problem::BadTypes(id));
            }
            _ => self.expect(types_fit(op, ty, type_of).unwrap_or(false), Problem::BadTypes(id)),
        }
        self.open(id);
    }
}

/// Whether memory has an update of this type.
fn updates(op: AtomicOp, ty: Type) -> bool {
    use ElementType::{F32, F64, U32, U64};
    match op {
        AtomicOp::Add => matches!(ty, Type::Element(F32 | F64 | U32 | U64)),
        AtomicOp::Max | AtomicOp::Or => matches!(ty, Type::Element(U32 | U64)),
    }
}

fn literal_fits(ty: Type, bits: u64) -> bool {
    match ty {
        Type::I32 => i32::try_from(bits as i64).is_ok(),
        Type::I64 => true,
        Type::Element(ElementType::Bool) => bits <= 1,
        Type::Element(element) => element.bytes() == 8 || bits >> (8 * element.bytes()) == 0,
    }
}

/// Whether a pure operation takes operands of these types and gives a value of this one; none if an operand does not
/// exist.
fn types_fit(op: Op, ty: Type, type_of: impl Fn(ValueId) -> Option<Type>) -> Option<bool> {
    use ElementType::{Bool, F32, F64, I32, I64, U32, U64};
    let arithmetic = |ty: Type| ty.element().is_some_and(|e| arithmetic_type(e) == e);
    let wide_integer = |ty: Type| matches!(ty, Type::Element(I32 | U32 | I64 | U64));
    let float = |ty: Type| matches!(ty, Type::Element(F32 | F64));
    let all = |operands: &[ValueId], wanted: Type| operands.iter().all(|id| type_of(*id) == Some(wanted));
    Some(match op {
        Op::Literal(_) | Op::LoopIndex | Op::Loaded | Op::Shuffled | Op::Arrived | Op::Agreed => false,
        Op::Get(_) | Op::Dim(_) | Op::Scalar(_) => false,
        Op::BlockIndex | Op::BlockCount | Op::ThreadIndex | Op::ClusterRank => ty == Type::I32,
        Op::Index(_, a, b) => ty.is_index() && all(&[a, b], ty),
        Op::CompareIndex(_, a, b) | Op::InRange(a, b) => {
            ty == Type::PRED && type_of(a)?.is_index() && type_of(a) == type_of(b)
        }
        Op::ConvertIndex(a) => ty.is_index() && type_of(a)?.is_index(),
        Op::Select(condition, a, b) => type_of(condition)? == Type::PRED && all(&[a, b], ty),
        Op::Unary(op, a) => {
            let domain = match op {
                UnaryOp::Neg | UnaryOp::Abs => arithmetic(ty) && ty != Type::PRED,
                UnaryOp::Not => arithmetic(ty) && !float(ty),
                UnaryOp::Floor | UnaryOp::RoundEven | UnaryOp::Sqrt | UnaryOp::Recip => float(ty),
                _ => ty == Type::Element(F32),
            };
            domain && all(&[a], ty)
        }
        Op::Binary(op, a, b) => {
            let domain = match op {
                Binary::Add | Binary::Sub | Binary::Mul | Binary::Div => float(ty) || wide_integer(ty),
                Binary::Max | Binary::Min => float(ty) || wide_integer(ty),
                Binary::MaxNum | Binary::MinNum => float(ty),
                Binary::Rem => wide_integer(ty),
                Binary::And | Binary::Or | Binary::Xor => wide_integer(ty) || ty == Type::PRED,
            };
            domain && all(&[a, b], ty)
        }
        Op::MulHigh(a, b) => wide_integer(ty) && all(&[a, b], ty),
        Op::Shift(_, a, amount) => wide_integer(ty) && all(&[a], ty) && all(&[amount], Type::Element(U32)),
        Op::Compare(_, a, b) => {
            let operand = type_of(a)?;
            ty == Type::PRED && arithmetic(operand) && operand != Type::PRED && all(&[b], operand)
        }
        Op::Fma(a, b, c) => float(ty) && all(&[a, b, c], ty),
        Op::Cast(a) => {
            let from = type_of(a)?.element()?;
            // As in Rust, nothing is cast to bool.
            ty.element().is_some_and(|to| to != Bool && to != from)
        }
        Op::Bits(a) => {
            let from = type_of(a)?.element()?;
            ty.element().is_some_and(|to| to.bytes() == from.bytes() && to != Bool && from != Bool)
        }
        Op::FromIndex(a) => type_of(a)?.is_index() && ty.element().is_some_and(|to| to != Bool),
        Op::ToIndex(a) => {
            let from = type_of(a)?.element()?;
            let narrow = from.bytes() < 4 || from == I32;
            from.is_integer() && (ty == Type::I64 || ty == Type::I32 && narrow)
        }
    })
}

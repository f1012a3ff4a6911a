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
//! 17. Products are started, committed and waited for by whole warpgroups. A product has types, columns and layouts
//!     that the machine has, and matrices in shared memory at places that are not negative.

mod copies;
mod problem;
mod products;
mod roles;
mod types;

use std::ops::Range;

use tilewright_kernel::ElementType;
use tilewright_kernel::info::Argument;
use tilewright_kernel::target::{ARRIVAL_LIMIT, BLOCK_LIMIT, CLUSTER_LIMIT, WARP, WARPGROUP};
use tilewright_sorted::SortedSet;

pub use self::problem::{Fault, Problem};
use self::types::{literal_fits, types_fit, updates};
use super::{
    AtomicUpdate, Kernel, MbarrierId, Memory, Op, ParameterKind, Receivers, RegionId, Sharing, Statement,
    StatementKind, Type, Value, ValueId, VariableId,
};

/// The longest vector of a load or store.
pub const MAX_LANES: u32 = 128;

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
    outside: SortedSet<VariableId>,
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

    #[expect(clippy::too_many_lines, reason = "one arm a statement")]
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
            StatementKind::LoadMatrix(load) => self.load_matrix(load),
            StatementKind::StoreMatrix(store) => self.store_matrix(store),
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
                let of_index = index.map(|index| index.ty);
                l.cuts.iter().for_each(|cut| self.operand(*cut, |ty| Some(ty) == of_index));
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
                let unit = if statement.kind == StatementKind::BarWarpSync { WARP } else { WARPGROUP };
                self.whole_units(unit);
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
            StatementKind::AtomicUpdate(AtomicUpdate { memory, offset, op, value }) => {
                let ty = self.access(*memory, *offset, 1, true);
                self.operand(*value, |value| Some(value) == ty);
                let of_device = !matches!(memory, Memory::Buffer(_));
                self.expect(of_device && ty.is_some_and(|ty| updates(*op, ty)), Problem::BadUpdate(*memory));
            }
            StatementKind::LastBlockTicket { counters, at, blocks, last, .. } => {
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
                let outside: SortedSet<VariableId> = declared.map(|(n, _)| VariableId(n)).collect();
                for role in roles {
                    let (threads, cluster_mbarrier, outside) = (role.threads(), role.cluster_mbarrier, outside.clone());
                    self.role = Some(InRole { threads, cluster_mbarrier, outside });
                    self.nested(role.body, region);
                }
                self.role = None;
            }
            StatementKind::FenceProxyAsync => self.collective(Threads::All),
            StatementKind::Wgmma(product) => self.product(product),
            StatementKind::MmaSync(product) => self.product_of_warp(product),
            StatementKind::WgmmaFence | StatementKind::WgmmaCommitGroup | StatementKind::WgmmaWaitGroup { .. } => {
                self.whole_warpgroups()
            }
            StatementKind::BulkCommitGroup | StatementKind::BulkWaitGroupRead { .. } => {
                self.collective(Threads::Elected)
            }
        }
    }

    /// All threads come, in whole units of so many.
    fn whole_units(&mut self, unit: u32) {
        self.collective(Threads::All);
        let role = self.role.as_ref().map(|role| role.threads.clone());
        let Range { start, end } = role.unwrap_or(0..self.kernel.signature.threads);
        let threads = end - start;
        let whole = threads.is_multiple_of(unit) && start.is_multiple_of(unit);
        self.expect(whole, Problem::PartOfUnit(threads));
    }

    fn whole_warpgroups(&mut self) {
        self.whole_units(WARPGROUP);
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

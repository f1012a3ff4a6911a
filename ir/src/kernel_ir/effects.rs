//! What statements do, in one table: the values that they use and bind, the variable that they set, the memory that
//! they access, their barrier, and the regions inside them.
//!
//! Whoever walks a kernel asks this table. The table has no row for "everything else", so that a new statement does not
//! compile before it has one, and no walker passes it over.

use super::{
    BufferId, Factor, If, Load, LoadMatrix, Loop, Matrices, Matrix, MbarrierId, Memory, Product, Receivers, RegionId,
    Role, StatementKind, Store, StoreMatrix, TensorPart, ValueId, VariableId,
};

/// Most values that a row names one by one.
const MOST: usize = 5;

/// The row of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Effects<'a> {
    few: [Option<ValueId>; MOST],
    many: &'a [ValueId],
    /// The first value that it binds, and how many: the others follow it in [`Kernel::values`](super::Kernel::values).
    bound: Option<(ValueId, u32)>,
    /// The variable that it makes or gives another value.
    pub sets: Option<VariableId>,
    /// The product whose variables it reads and gives other values.
    pub adds: Option<Product<'a>>,
    accesses: [Option<Access>; 2],
    /// The barriers of which it uses one.
    pub barrier: Option<MbarrierId>,
    /// What stands inside it.
    pub inside: Inside<'a>,
}

/// What stands inside a statement.
#[derive(Clone, Copy, Debug)]
pub enum Inside<'a> {
    /// Nothing.
    Nothing,
    /// The body of a loop.
    Loop(&'a Loop),
    /// The sides of a branch.
    If(&'a If),
    /// What the elected thread runs.
    Elect(RegionId),
    /// What roles run at one time.
    Roles(&'a [Role]),
}

/// An access of memory. Tensors that tiles of tensor maps are of are not among the memories: a map does not tell which
/// tensor it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What is accessed.
    pub memory: Memory,
    /// What is done to it.
    pub kind: AccessKind,
    /// Who does it.
    pub by: Engine,
    /// Whether it is the memory of other blocks of the cluster, too.
    pub of_cluster: bool,
    /// Which elements; none of a copy by the accelerator and of a product, which have places of their own.
    pub elements: Option<Elements>,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// It reads.
    Read,
    /// It writes, or combines what is there with a value.
    Write,
}

/// Who accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The thread itself.
    Thread,
    /// A fetch of the thread, which it goes on beside.
    CpAsync,
    /// The accelerator.
    Tma,
    /// The tensor core of a warpgroup, which goes on beside it.
    TensorCore,
}

/// Neighbouring elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements {
    /// Element offset of the first one.
    pub offset: ValueId,
    /// How many.
    pub lanes: u32,
    /// Where they are accessed, if not always.
    pub predicate: Option<ValueId>,
}

impl Access {
    /// The buffer, if it is one.
    pub const fn buffer(&self) -> Option<BufferId> {
        match self.memory {
            Memory::Buffer(buffer) => Some(buffer),
            Memory::Parameter(_) | Memory::Workspace(_) => None,
        }
    }

    /// Whether it reads.
    pub fn reads(&self) -> bool {
        self.kind == AccessKind::Read
    }

    const fn by_thread(memory: Memory, kind: AccessKind, elements: Elements) -> Self {
        Self { memory, kind, by: Engine::Thread, of_cluster: false, elements: Some(elements) }
    }

    const fn of_matrices(matrices: &Matrices, kind: AccessKind) -> Self {
        let elements = Elements { offset: matrices.offset, lanes: matrices.row, predicate: None };
        Self::by_thread(Memory::Buffer(matrices.buffer), kind, elements)
    }

    fn load(load: &Load) -> Self {
        let elements = Elements { offset: load.offset, lanes: load.lanes, predicate: load.predicate };
        Self::by_thread(load.memory, AccessKind::Read, elements)
    }

    fn store(store: &Store) -> Self {
        let elements = Elements { offset: store.offset, lanes: store.values.len() as u32, predicate: None };
        Self::by_thread(store.memory, AccessKind::Write, elements)
    }
}

/// Values named one by one.
const fn few<const N: usize>(named: [Option<ValueId>; N]) -> [Option<ValueId>; MOST] {
    let mut all = [None; MOST];
    let mut n = 0;
    while n < N {
        all[n] = named[n];
        n += 1;
    }
    all
}

impl<'a> Effects<'a> {
    const NONE: Self = Self {
        few: [None; MOST],
        many: &[],
        bound: None,
        sets: None,
        adds: None,
        accesses: [None; 2],
        barrier: None,
        inside: Inside::Nothing,
    };

    /// The values that it uses.
    pub fn operands(&self) -> Operands<'a> {
        AndMore { few: Few::new(self.few), more: self.many, of: |value| *value }
    }

    /// The values that it binds where it stands; the index of a loop is bound in its body.
    pub fn binds(&self) -> impl Iterator<Item = ValueId> + use<> {
        let (first, count) = self.bound.map_or((0, 0), |(first, count)| (first.0, count));
        (first..first + count).map(ValueId)
    }

    /// The memory that it accesses; of copies, what they read first.
    pub fn accesses(&self) -> Few<Access, 2> {
        Few::new(self.accesses)
    }
}

/// Items of which there are at most so many. The walkers of kernels ask for them at every statement, also in a macro
/// that is compiled without optimisation, where `into_iter().flatten()` is several calls an item.
#[derive(Clone, Copy, Debug)]
pub struct Few<T, const N: usize> {
    items: [Option<T>; N],
    next: usize,
}

impl<T, const N: usize> Few<T, N> {
    pub(super) const fn new(items: [Option<T>; N]) -> Self {
        Self { items, next: 0 }
    }
}

impl<T: Copy, const N: usize> Iterator for Few<T, N> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        while self.next < N {
            self.next += 1;
            if let Some(item) = self.items[self.next - 1] {
                return Some(item);
            }
        }
        None
    }
}

/// Few items, and what a list gives after them.
#[derive(Clone, Debug)]
pub struct AndMore<'a, T, M, const N: usize> {
    few: Few<T, N>,
    more: &'a [M],
    of: fn(&M) -> T,
}

/// The values that a statement uses.
pub type Operands<'a> = AndMore<'a, ValueId, ValueId, MOST>;
/// The regions inside a statement, in order.
pub type Regions<'a> = AndMore<'a, RegionId, Role, 2>;

impl<T: Copy, M, const N: usize> Iterator for AndMore<'_, T, M, N> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if let Some(item) = self.few.next() {
            return Some(item);
        }
        let (first, rest) = self.more.split_first()?;
        self.more = rest;
        Some((self.of)(first))
    }
}

impl<'a> Inside<'a> {
    /// Whether there is nothing.
    pub const fn is_nothing(self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// The regions, in order.
    pub fn regions(self) -> Regions<'a> {
        let (few, roles) = match self {
            Self::Nothing => ([None; 2], &[][..]),
            Self::Loop(l) => ([Some(l.body), None], &[][..]),
            Self::If(branch) => ([Some(branch.then), branch.otherwise], &[][..]),
            Self::Elect(part) => ([Some(part), None], &[][..]),
            Self::Roles(roles) => ([None; 2], roles),
        };
        AndMore { few: Few::new(few), more: roles, of: |role| role.body }
    }
}

impl StatementKind {
    /// What it does.
    #[expect(clippy::too_many_lines, reason = "one arm a statement")]
    pub fn effects(&self) -> Effects<'_> {
        let none = Effects::NONE;
        let slot = |barrier, few| Effects { barrier: Some(barrier), few, ..none };
        match self {
            // What it is computed from, the value itself says.
            Self::Let(value) => Effects { bound: Some((*value, 1)), ..none },
            Self::Declare(variable, value) | Self::Set(variable, value) => {
                Effects { sets: Some(*variable), few: few([Some(*value)]), ..none }
            }
            Self::Load(load) => Effects {
                few: few([Some(load.offset), load.predicate]),
                many: &load.otherwise,
                bound: Some((load.first, load.lanes)),
                accesses: [Some(Access::load(load)), None],
                ..none
            },
            Self::LoadDsmem { rank, load } => Effects {
                few: few([Some(*rank), Some(load.offset), load.predicate]),
                many: &load.otherwise,
                bound: Some((load.first, load.lanes)),
                accesses: [Some(Access { of_cluster: true, ..Access::load(load) }), None],
                ..none
            },
            Self::Store(store) => Effects {
                few: few([Some(store.offset)]),
                many: &store.values,
                accesses: [Some(Access::store(store)), None],
                ..none
            },
            Self::StoreDsmemAll(store) => Effects {
                few: few([Some(store.offset)]),
                many: &store.values,
                accesses: [Some(Access { of_cluster: true, ..Access::store(store) }), None],
                ..none
            },
            Self::Loop(l) => Effects { few: few([Some(l.count)]), many: &l.cuts, inside: Inside::Loop(l), ..none },
            Self::If(branch) => Effects { few: few([Some(branch.condition)]), inside: Inside::If(branch), ..none },
            Self::Elect(part) => Effects { inside: Inside::Elect(*part), ..none },
            Self::Roles(roles) => Effects { inside: Inside::Roles(roles), ..none },
            Self::CpAsync(fetch) => {
                // It writes zeros where its predicate does not hold.
                let [from, to] = [(fetch.from, fetch.predicate), (fetch.to, None)]
                    .map(|(offset, predicate)| Some(Elements { offset, lanes: fetch.lanes, predicate }));
                let access = |memory, kind, elements| {
                    Some(Access { memory, kind, by: Engine::CpAsync, of_cluster: false, elements })
                };
                Effects {
                    few: few([Some(fetch.from), Some(fetch.to), fetch.predicate]),
                    accesses: [
                        access(Memory::Parameter(fetch.parameter), AccessKind::Read, from),
                        access(Memory::Buffer(fetch.buffer), AccessKind::Write, to),
                    ],
                    ..none
                }
            }
            Self::BulkCopy(transfer) => {
                let fills = transfer.barrier.is_some();
                let access = |memory, writes, of_cluster| {
                    let kind = if writes { AccessKind::Write } else { AccessKind::Read };
                    Access { memory, kind, by: Engine::Tma, of_cluster, elements: None }
                };
                let buffer = access(Memory::Buffer(transfer.buffer), fills, transfer.multicast.is_some());
                let tensor = match &transfer.part {
                    TensorPart::Run { parameter, .. } => Some(access(Memory::Parameter(*parameter), !fills, false)),
                    TensorPart::Tile { .. } => None,
                };
                Effects {
                    few: few([Some(transfer.slot), Some(transfer.offset), transfer.multicast]),
                    many: transfer.part.operands(),
                    accesses: if fills { [tensor, Some(buffer)] } else { [Some(buffer), tensor] },
                    barrier: transfer.barrier,
                    ..none
                }
            }
            Self::Shuffle { value, result, .. } => {
                Effects { few: few([Some(*value)]), bound: Some((*result, 1)), ..none }
            }
            Self::BarRedOr { predicate, result } => {
                Effects { few: few([Some(*predicate)]), bound: Some((*result, 1)), ..none }
            }
            Self::AtomicUpdate(update) => {
                let elements = Elements { offset: update.offset, lanes: 1, predicate: None };
                let access = Access::by_thread(update.memory, AccessKind::Write, elements);
                Effects { few: few([Some(update.offset), Some(update.value)]), accesses: [Some(access), None], ..none }
            }
            Self::LastBlockTicket { counters, at, blocks, last, .. } => {
                let elements = Elements { offset: *at, lanes: 1, predicate: None };
                let access = Access::by_thread(Memory::Workspace(*counters), AccessKind::Write, elements);
                Effects {
                    few: few([Some(*at), Some(*blocks)]),
                    bound: Some((*last, 1)),
                    accesses: [Some(access), None],
                    ..none
                }
            }
            Self::Wgmma(product) => {
                let access = |matrix: &Matrix| {
                    let (memory, kind) = (Memory::Buffer(matrix.buffer), AccessKind::Read);
                    Some(Access { memory, kind, by: Engine::TensorCore, of_cluster: false, elements: None })
                };
                let (a, b) = (product.a.matrix(), &product.b);
                Effects {
                    few: few([a.map(|a| a.offset), a.map(|a| a.slot), Some(b.offset), Some(b.slot), product.adds]),
                    accesses: [a.and_then(access), access(b)],
                    adds: Some(Product::Wgmma(product)),
                    ..none
                }
            }
            // A lane says where a row is, and others may have its elements.
            Self::LoadMatrix(LoadMatrix { from, first }) => Effects {
                few: few([Some(from.offset)]),
                bound: Some((*first, from.values())),
                accesses: [Some(Access::of_matrices(from, AccessKind::Read)), None],
                ..none
            },
            Self::StoreMatrix(StoreMatrix { to, values }) => Effects {
                few: few([Some(to.offset)]),
                many: values,
                accesses: [Some(Access::of_matrices(to, AccessKind::Write)), None],
                ..none
            },
            Self::MmaSync(product) => Effects { adds: Some(Product::MmaSync(product)), ..none },
            Self::LifetimeStart { slot, .. } => Effects { few: few([Some(*slot)]), ..none },
            Self::MbarrierExpectTx { barrier, slot: at, .. } | Self::CpAsyncMbarrierArrive { barrier, slot: at } => {
                slot(*barrier, few([Some(*at)]))
            }
            Self::MbarrierArrive { barrier, slot: at, to } => {
                let rank = match to {
                    Receivers::One(rank) => Some(*rank),
                    Receivers::Own | Receivers::All => None,
                };
                slot(*barrier, few([Some(*at), rank]))
            }
            Self::MbarrierWait { barrier, slot: at, parity } => slot(*barrier, few([Some(*at), Some(*parity)])),
            Self::CpAsyncCommitGroup
            | Self::CpAsyncWaitGroup { .. }
            | Self::BarSync
            | Self::BarSyncWarpgroup
            | Self::BarWarpSync
            | Self::BarrierCluster
            | Self::FenceProxyAsync
            | Self::GridDependencyWait
            | Self::GridDependencyLaunch
            | Self::BulkCommitGroup
            | Self::BulkWaitGroupRead { .. }
            | Self::WgmmaFence
            | Self::WgmmaCommitGroup
            | Self::WgmmaWaitGroup { .. } => none,
        }
    }

    /// Whether it does no more than to compute: it touches values and variables of its thread, which no barrier orders.
    pub const fn only_computes(&self) -> bool {
        matches!(self, Self::Let(_) | Self::Declare(..) | Self::Set(..) | Self::Shuffle { .. })
    }

    /// The buffers that it names, to be given other numbers.
    pub fn buffers_mut(&mut self) -> impl Iterator<Item = &mut BufferId> {
        let (first, second) = match self {
            Self::Wgmma(product) => {
                let a = match &mut product.a {
                    Factor::Shared(matrix) => Some(&mut matrix.buffer),
                    Factor::Registers(_) => None,
                };
                (a, Some(&mut product.b.buffer))
            }
            kind => (kind.buffer_mut(), None),
        };
        first.into_iter().chain(second)
    }

    /// The one that it names, of a statement that names one at most.
    fn buffer_mut(&mut self) -> Option<&mut BufferId> {
        let memory = match self {
            Self::Load(load) | Self::LoadDsmem { load, .. } => &mut load.memory,
            Self::Store(store) | Self::StoreDsmemAll(store) => &mut store.memory,
            Self::CpAsync(fetch) => return Some(&mut fetch.buffer),
            Self::BulkCopy(transfer) => return Some(&mut transfer.buffer),
            Self::LifetimeStart { buffer, .. } => return Some(buffer),
            Self::LoadMatrix(load) => return Some(&mut load.from.buffer),
            Self::StoreMatrix(store) => return Some(&mut store.to.buffer),
            Self::Let(_)
            | Self::Declare(..)
            | Self::Set(..)
            | Self::Loop(_)
            | Self::If(_)
            | Self::Elect(_)
            | Self::Roles(_)
            | Self::Shuffle { .. }
            | Self::BarRedOr { .. }
            | Self::AtomicUpdate(_)
            | Self::LastBlockTicket { .. }
            | Self::MbarrierExpectTx { .. }
            | Self::CpAsyncMbarrierArrive { .. }
            | Self::MbarrierArrive { .. }
            | Self::MbarrierWait { .. }
            | Self::CpAsyncCommitGroup
            | Self::CpAsyncWaitGroup { .. }
            | Self::BarSync
            | Self::BarSyncWarpgroup
            | Self::BarWarpSync
            | Self::BarrierCluster
            | Self::FenceProxyAsync
            | Self::GridDependencyWait
            | Self::GridDependencyLaunch
            | Self::BulkCommitGroup
            | Self::BulkWaitGroupRead { .. }
            | Self::Wgmma(_)
            | Self::MmaSync(_)
            | Self::WgmmaFence
            | Self::WgmmaCommitGroup
            | Self::WgmmaWaitGroup { .. } => return None,
        };
        match memory {
            Memory::Buffer(buffer) => Some(buffer),
            Memory::Parameter(_) | Memory::Workspace(_) => None,
        }
    }
}

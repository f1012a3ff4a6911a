//! Statements, and the regions that they stand in.

use tilewright_kernel::ElementType;
use tilewright_kernel::target::WARP;

use super::{BufferId, LoadMatrix, MbarrierId, Memory, MmaSync, RegionId, StoreMatrix, ValueId, VariableId, Wgmma};

/// A sequence of statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Number of regions around it.
    pub depth: u32,
    /// The statements.
    pub statements: Vec<Statement>,
}

/// A statement, and the source statement that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Number in `KernelInfo::statements`, from 1; 0 for none.
    pub line: u32,
    /// What it does.
    pub kind: StatementKind,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Binds a value.
    Let(ValueId),
    /// Makes a variable with an initial value.
    Declare(VariableId, ValueId),
    /// Gives a variable another value.
    Set(VariableId, ValueId),
    /// Reads memory.
    Load(Load),
    /// Writes memory.
    Store(Store),
    /// Writes the same elements of a buffer in every block of the cluster.
    StoreDsmemAll(Store),
    /// Reads a buffer of another block of the cluster, or of the own one.
    LoadDsmem {
        /// Number of the block in the cluster, a `Type::I32`.
        rank: ValueId,
        /// What is read there.
        load: Load,
    },
    /// Repeats.
    Loop(Loop),
    /// Chooses.
    If(If),
    /// Starts a copy by the thread.
    CpAsync(CpAsync),
    /// The fetches that each thread started since the last one belong together.
    CpAsyncCommitGroup,
    /// Each thread waits until all its committed fetches are done but those of its last so many commits. Others see
    /// what they wrote after the next [`StatementKind::BarSync`].
    CpAsyncWaitGroup {
        /// How many commits may be under way still.
        pending: u32,
    },
    /// Each thread that comes arrives once in the phase of a barrier that is under way, when all fetches are done that
    /// it started before and has not waited for; it does not wait itself. Who waits for the phase sees what these
    /// wrote, and is told of nothing else that the threads did.
    CpAsyncMbarrierArrive {
        /// The barriers.
        barrier: MbarrierId,
        /// Which of them, a `Type::I32`.
        slot: ValueId,
    },
    /// All threads of the block wait for each other; what each wrote before, the others see after.
    BarSync,
    /// The same for the threads of each warpgroup: 128 neighbours. The block has whole warpgroups.
    BarSyncWarpgroup,
    /// The same for the lanes of each warp. The block has whole warps.
    BarWarpSync,
    /// All threads of all blocks of the cluster wait for each other; what each wrote before, the others see after. In a
    /// role, its threads in all blocks do, at the barrier [`Role::cluster_mbarrier`].
    BarrierCluster,
    /// From here on threads write a new instance of a buffer to this slot, the next one in turn: what it holds is not
    /// read again. Of a buffer whose elements are of one thread each, the threads that come here renew theirs.
    LifetimeStart {
        /// The buffer.
        buffer: BufferId,
        /// The slot, a `Type::I32`.
        slot: ValueId,
    },
    /// Every lane of a warp gets the value of the lane with the number `lane ^ mask`; its own if the block has no such
    /// thread.
    Shuffle {
        /// What each lane gives, of any type.
        value: ValueId,
        /// Which lanes change places, from 1 below the 32 lanes of a warp.
        mask: u32,
        /// What each lane gets, of the same type.
        result: ValueId,
    },
    /// Combines an element of a workspace with a value, at once with respect to other blocks and threads.
    AtomicUpdate(AtomicUpdate),
    /// The first thread of the block, or of the role, arrives at a counter for the block. After the last arrival the
    /// counter is zero again.
    LastBlockTicket {
        /// The counters: a workspace of `u32` that is zero at first.
        counters: u16,
        /// Which of them, an index integer.
        at: ValueId,
        /// How many blocks arrive there, a `Type::I32` of at least 1.
        blocks: ValueId,
        /// Whether this block is the last, a predicate that holds for the first thread alone.
        last: ValueId,
        /// Whether what is ordered before the arrival is seen by those that acquire it.
        releases: bool,
        /// Whether the first thread sees what those released that arrived before.
        acquires: bool,
    },
    /// All threads of the block, or of the role, wait for each other, and learn whether a predicate holds for any of
    /// them.
    BarRedOr {
        /// What each thread says.
        predicate: ValueId,
        /// Whether one of them said so.
        result: ValueId,
    },
    /// One thread of the block runs the region; the others do not wait for it.
    Elect(RegionId),
    /// The phase of a barrier that is under way ends when so many bytes have come, besides those of other expectations.
    MbarrierExpectTx {
        /// The barriers.
        barrier: MbarrierId,
        /// Which of them: the slot that is filled, a `Type::I32`.
        slot: ValueId,
        /// Bytes of all copies of the phase.
        bytes: u32,
    },
    /// Starts a copy by the accelerator.
    BulkCopy(BulkCopy),
    /// Each warp that comes arrives once in the phase of a barrier that is under way: its lanes wait for each other,
    /// and one of them arrives. What the warps did before is over for who waits for the phase; of what they wrote, that
    /// is said to their own block alone.
    MbarrierArrive {
        /// The barriers.
        barrier: MbarrierId,
        /// Which of them, a `Type::I32`.
        slot: ValueId,
        /// In which blocks of the cluster.
        to: Receivers,
    },
    /// Ranges of whole warps run regions of their own at one time. After it, all threads of the block have waited for
    /// each other. In a role, what is said of all threads of a block is said of those of the role.
    Roles(Vec<Role>),
    /// All threads of the block wait for the end of a barrier's phase, and see what its copies wrote.
    MbarrierWait {
        /// The barriers.
        barrier: MbarrierId,
        /// Which of them: the slot that is read, a `Type::I32`.
        slot: ValueId,
        /// Number of the phase modulo 2, a `Type::I32`.
        parity: ValueId,
    },
    /// What a thread wrote to shared memory before, copies that are started after the next [`StatementKind::BarSync`]
    /// see.
    FenceProxyAsync,
    /// Each thread waits until the launches that the own one depends on have ended: before that, it accesses no tensors
    /// and workspaces.
    GridDependencyWait,
    /// Launches that depend on the own one may begin; they wait for its end before they access memory.
    GridDependencyLaunch,
    /// The copies to tensors that the elected thread started since the last one belong together.
    BulkCommitGroup,
    /// The elected thread waits until shared memory was read by all its committed copies but those of the last so many
    /// commits.
    BulkWaitGroupRead {
        /// How many commits may be under way still.
        pending: u32,
    },
    /// Each warpgroup starts to add a product of matrices to variables of its threads.
    Wgmma(Wgmma),
    /// Each warp loads matrices whose rows lanes say.
    LoadMatrix(LoadMatrix),
    /// Each warp stores matrices to rows that lanes say.
    StoreMatrix(StoreMatrix),
    /// Each warp adds a product of matrices that its threads hold to variables of theirs.
    MmaSync(MmaSync),
    /// Products that are started after it find in variables what their threads gave these before. Between products that
    /// add to the same variables there need be none.
    WgmmaFence,
    /// The products that each warpgroup started since the last one belong together.
    WgmmaCommitGroup,
    /// Each warpgroup waits until all its committed products are done but those of its last so many commits. Before
    /// that its threads leave their variables alone.
    WgmmaWaitGroup {
        /// How many commits may be under way still.
        pending: u32,
    },
}

/// Warps of a block, and what they run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Name, for readers.
    pub name: String,
    /// Numbers of its warps in the block.
    pub warps: std::ops::Range<u32>,
    /// How many registers a thread of it has, if not as many as others: whole warpgroups, a multiple of 8 from 24
    /// to 240.
    pub registers: Option<u32>,
    /// Where its threads in all blocks of a cluster meet at a [`StatementKind::BarrierCluster`], if they do: a barrier
    /// with one slot for that alone, at which each warp of it arrives in each block. The machine's own barrier of the
    /// cluster is for all threads.
    pub cluster_mbarrier: Option<MbarrierId>,
    /// What it runs.
    pub body: RegionId,
}

impl Role {
    /// Its threads.
    pub fn threads(&self) -> std::ops::Range<u32> {
        self.warps.start * WARP..self.warps.end * WARP
    }
}

/// Blocks of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receivers {
    /// The own one.
    Own,
    /// The one with this number, a `Type::I32`.
    One(ValueId),
    /// All of them.
    All,
}

/// A copy between a tensor and shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkCopy {
    /// What it moves, on the tensor's side.
    pub part: TensorPart,
    /// The buffer.
    pub buffer: BufferId,
    /// Which of its slots, a `Type::I32`.
    pub slot: ValueId,
    /// Element offset in the slot, a `Type::I32`.
    pub offset: ValueId,
    /// What counts the bytes of a copy to shared memory: the barrier of the slot; none for a copy to the tensor.
    pub barrier: Option<MbarrierId>,
    /// How long the L2 cache should keep what is copied, if not as usual.
    pub evict: Option<Evict>,
    /// To which blocks of the cluster a copy to shared memory goes, to the same place and counted by the same barrier
    /// of each: a `Type::I32` with a bit for each; to the own one, if none.
    pub multicast: Option<ValueId>,
}

/// The part of a tensor that one copy moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorPart {
    /// A tile of a tensor map; what lies outside the tensor is zero, or not written.
    Tile {
        /// Position in `Signature::maps`.
        map: u16,
        /// Where it starts, innermost dimension first; `Type::I32`, one for each dimension of the map.
        start: Vec<ValueId>,
    },
    /// A run of neighbours in memory, all of them elements of the tensor.
    Run {
        /// Position in `Signature::parameters`.
        parameter: u16,
        /// Element offset of the first one from the tensor's base; an index integer. Its address is a multiple of 16
        /// bytes.
        offset: ValueId,
        /// Length in bytes, a multiple of 16.
        bytes: u32,
    },
}

impl TensorPart {
    /// The values that say where it is.
    pub fn operands(&self) -> &[ValueId] {
        match self {
            Self::Tile { start, .. } => start,
            Self::Run { offset, .. } => std::slice::from_ref(offset),
        }
    }
}

/// When the L2 cache gives up a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evict {
    /// Before others: it is used once.
    First,
    /// After others: it is used again.
    Last,
}

/// Reads `lanes` neighbouring elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// What is read.
    pub memory: Memory,
    /// Element offset of the first lane from the memory's base; `I32` or `I64`.
    pub offset: ValueId,
    /// Number of lanes, a power of two; the address is a multiple of the vector's size, up to 16 bytes.
    pub lanes: u32,
    /// Where nothing is read unless it holds.
    pub predicate: Option<ValueId>,
    /// What the lanes are where the predicate does not hold; empty without a predicate.
    pub otherwise: Vec<ValueId>,
    /// Value of the first lane; the others follow it in `Kernel::values`.
    pub first: ValueId,
}

impl Load {
    /// The value of each lane.
    pub fn results(&self) -> impl Iterator<Item = ValueId> + use<> {
        let first = self.first.0;
        (0..self.lanes).map(move |lane| ValueId(first + lane))
    }
}

/// Copies neighbouring elements of a tensor to a buffer, some time before the thread has waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpAsync {
    /// The tensor: position in `Signature::parameters`, one that the kernel does not write.
    pub parameter: u16,
    /// Element offset of the first lane from the tensor's base; an index integer.
    pub from: ValueId,
    /// The buffer, of the same element type.
    pub buffer: BufferId,
    /// Element offset of the first lane from the first slot of the buffer; an index integer.
    pub to: ValueId,
    /// Number of lanes: 4, 8 or 16 bytes together, and both addresses are multiples of that.
    pub lanes: u32,
    /// Where it does not hold, nothing is read and the lanes in the buffer become zero.
    pub predicate: Option<ValueId>,
}

/// Writes neighbouring elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// What is written.
    pub memory: Memory,
    /// Element offset of the first lane from the memory's base; `I32` or `I64`.
    pub offset: ValueId,
    /// The lanes; their number is a power of two, and the address a multiple of the vector's size, up to 16 bytes.
    pub values: Vec<ValueId>,
}

/// How an element is combined with a value: in any order, since threads come in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// The sum; integers wrap. Sums of `f32` take subnormal numbers for zeros (PTX manual, `red`).
    Add,
    /// The larger one; integers.
    Max,
    /// The smaller one; integers.
    Min,
    /// Bitwise or; unsigned integers.
    Or,
    /// The value takes the place of the element: where several threads do that, one of them is the last.
    Set,
}

impl AtomicOp {
    /// Whether there is an instruction that does it to elements of a type.
    pub const fn takes(self, element: ElementType) -> bool {
        use ElementType::{F32, F64, I32, I64, U32, U64};
        match self {
            Self::Add => matches!(element, F32 | F64 | I32 | I64 | U32 | U64),
            Self::Max | Self::Min => matches!(element, I32 | I64 | U32 | U64),
            Self::Or => matches!(element, U32 | U64),
            Self::Set => true,
        }
    }
}

/// Combines an element in device memory with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomicUpdate {
    /// The tensor, or the workspace.
    pub memory: Memory,
    /// Element offset; an index integer.
    pub offset: ValueId,
    /// How.
    pub op: AtomicOp,
    /// With what.
    pub value: ValueId,
}

/// Runs its body for each index from 0 below the count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The index, of the type of the count.
    pub index: ValueId,
    /// Number of iterations, an index integer; none if negative.
    pub count: ValueId,
    /// The body.
    pub body: RegionId,
    /// Whether the assembler is told to leave it a loop.
    pub rolled: bool,
    /// Iterations before which the loop is cut: there is a loop for those before the first of them, one for those from
    /// there to the second, and so on. It is the same loop; a branch that asks for the part is none in most of them.
    /// Of the type of the index, and bound outside of the loop; a part may be empty.
    pub cuts: Vec<ValueId>,
}

/// Runs one of two regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct If {
    /// A predicate.
    pub condition: ValueId,
    /// Runs where it holds.
    pub then: RegionId,
    /// Runs elsewhere.
    pub otherwise: Option<RegionId>,
}

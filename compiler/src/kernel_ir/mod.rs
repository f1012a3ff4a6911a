//! The scheduled loop program of one entry point: what lowering produces before instructions.
//!
//! A [`Kernel`] is what **one thread** runs, as a tree of [`Region`]s of [`Statement`]s over values in single
//! assignment form. Which thread it is comes in through [`Op::BlockIndex`] and [`Op::ThreadIndex`].
//!
//! **Values** have a [`Type`]. Index integers (`I32`, `I64`) are mathematical: lowering has proved that every one whose
//! value matters fits its width, so an operation on them has no wrapping to define, and division rounds down. Elements
//! obey the numeric contract of the language: each operation rounds once to its type, integers wrap. A value is either
//! bound by [`StatementKind::Let`], or is the index of a loop, a lane of a load, or what a shuffle brings; literals are
//! bound nowhere and available everywhere.
//!
//! **Arithmetic types.** Only `f64 f32 i64 i32 u64 u32 bool` have arithmetic. The others are loaded, stored, selected
//! and cast; the [`Builder`] expands `a + b` on `f16` into the `f32` operation on the cast operands, cast back (one
//! rounding), and on `i8` into the `i32` operation, cast back (which wraps).
//!
//! **Facts.** Each value carries what the builder or lowering knows of it: a range, and whether all threads of a block
//! agree on it. They choose cheaper instructions and never change the result.
//!
//! **Scope.** A value may be used after its binding, in the region that binds it and in regions nested in that one.
//!
//! **Collectives.** Statements that all threads of a block execute together ([`StatementKind::BarSync`],
//! [`StatementKind::Elect`], [`StatementKind::MbarrierWait`], [`StatementKind::Shuffle`]) stand only where every thread
//! comes: not in a branch or loop that threads may disagree on. A copy by the accelerator is issued by the elected
//! thread, always the same one. A barrier counts the bytes of copies to shared memory, and a phase of the barrier ends
//! with the last of them; copies to tensors are committed and waited for by the thread that issued them.
//!
//! **Instances.** Threads write a buffer in shared memory, and read it after a [`StatementKind::BarSync`]. What they
//! write after a [`StatementKind::LifetimeStart`] is another instance of it, whose elements may belong to other
//! threads. Instances take the slots of a buffer in turn.
//!
//! **Fetches.** A thread copies elements of tensors to a buffer while it goes on ([`StatementKind::CpAsync`]). It
//! commits them in groups, waits for its own groups in order, and what it has waited for is seen by others after the
//! next [`StatementKind::BarSync`].
//!
//! **Clusters.** The blocks of a cluster run at one time. A thread may write an element of a buffer in all of them
//! ([`StatementKind::StoreDsmemAll`]) and read one of another's ([`StatementKind::LoadDsmem`]); what orders that is
//! [`StatementKind::BarrierCluster`], where all threads of all blocks come, or those of one role of each. A block's
//! memory is there from its start to its end: each access by others stands between two `BarrierCluster`.
//!
//! **Blocks.** Blocks run in any order, and none waits for another but in its cluster. They share workspaces. The first
//! thread arrives at a counter for its block ([`StatementKind::LastBlockTicket`]). What a block's threads wrote before
//! its last barrier before that is visible to the first thread of the last block that arrives there, and to that
//! block's other threads after its next barrier ([`StatementKind::BarRedOr`] is one). A workspace that is zero when the
//! kernel begins is zero when it ends, and so are counters. [`StatementKind::AtomicUpdate`]s of an element by several
//! blocks exclude each other.
//!
//! **Roles.** Warps of a block may part ([`StatementKind::Roles`]): each range runs a region, with its own elected
//! thread and barriers. Roles change no variables from outside, and hand each other what they do by barriers with
//! phases: one of them expects copies or awaits, another awaits or releases.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `builder`, `reduction` | makes values and statements; the steps of reductions and what they start from |
//! | `effects` | what each statement does, in one table: operands, accesses, what is inside it |
//! | `facts` | ranges of index integers, agreement between threads |
//! | `register_pressure` | what a thread must hold in registers |
//! | `in_roles` | which role runs what |
//! | `shared_map` | where buffers and barriers lie |
//! | `verify` | what every kernel satisfies |
//! | `print` | text for readers |

mod builder;
mod effects;
mod facts;
mod in_roles;
mod print;
pub mod reduction;
mod register_pressure;
mod shared_map;
mod verify;

#[cfg(test)]
mod roles_tests;
#[cfg(test)]
mod tests;

use crate::target::WARP;
use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare};
use tilewright_kernel::info::Argument;

pub use builder::{Builder, Guard, Unbalanced};
pub use effects::{Access, AccessKind, Effects, Elements, Engine, Inside};
pub use facts::{Facts, Range};
pub use in_roles::InRoles;
pub use register_pressure::{Held, held};
pub(crate) use shared_map::BARRIER_BYTES;
pub use shared_map::SharedMap;
pub use verify::{Fault, MAX_LANES, Problem, verify};

macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// The id as a position in its table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// Position in [`Kernel::values`].
    ValueId
}
id! {
    /// Position in [`Kernel::regions`].
    RegionId
}
id! {
    /// Position in [`Kernel::variables`].
    VariableId
}

id! {
    /// Position in [`Kernel::buffers`].
    BufferId
}
id! {
    /// Barriers of copies, one for each slot of a buffer: position in [`Kernel::barriers`].
    MbarrierId
}

/// Memory that loads and stores reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Memory {
    /// A tensor: position in [`Signature::parameters`].
    Parameter(u16),
    /// A buffer of the block. One in a workspace ([`Kernel::parts`]) has offsets from the start of that.
    Buffer(BufferId),
    /// Memory that the blocks of a launch share: position in [`Kernel::workspaces`].
    Workspace(u16),
}

/// Device memory that the blocks of a launch share; how large it is, the launcher knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Name in the source.
    pub name: String,
    /// Element type.
    pub element: ElementType,
    /// Whether it is zero when the kernel begins, and must be when it ends.
    pub zeroed: bool,
}

/// A buffer of a block, in shared memory or in its part of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Name in the source.
    pub name: String,
    /// Element type.
    pub element: ElementType,
    /// Number of elements of a slot; 0 in a workspace, where it may depend on sizes.
    pub elements: u32,
    /// Alignment of the first element of a slot in bytes, a power of two; a slot's size is a multiple of it.
    pub alignment: u32,
    /// Slots, one after the other: more than one in a ring.
    pub slots: u32,
    /// Who accesses an element beside the thread that does.
    pub sharing: Sharing,
}

/// Who accesses the elements of a buffer that one thread accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// Nobody else.
    Thread,
    /// Lanes of its warp.
    Warp,
    /// Threads of its warpgroup, of a block that has several.
    Warpgroup,
    /// Any thread of the block, and the accelerator.
    Block,
}

impl Buffer {
    /// Bytes of all slots.
    pub fn bytes(&self) -> u64 {
        u64::from(self.elements) * u64::from(self.slots) * u64::from(self.element.bytes())
    }
}

/// Barriers, one for each slot of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mbarrier {
    /// How many.
    pub slots: u32,
    /// Arrivals that end a phase of each, once the bytes are there that it expects: one for each
    /// [`StatementKind::MbarrierExpectTx`], one for each warp at a [`StatementKind::MbarrierArrive`], and one for each
    /// thread at a [`StatementKind::CpAsyncMbarrierArrive`]; where roles meet ([`Role::cluster_mbarrier`]), one for
    /// each warp of the role in each block.
    pub arrivals: u32,
}

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// An index integer that fits 32 signed bits.
    I32,
    /// An index integer that fits 64 signed bits.
    I64,
    /// An element.
    Element(ElementType),
}

impl Type {
    /// A predicate: the same thing as an element of type `bool`.
    pub const PRED: Self = Self::Element(ElementType::Bool);

    /// Whether it is an index integer.
    pub const fn is_index(self) -> bool {
        matches!(self, Self::I32 | Self::I64)
    }

    /// The element type, if it is one.
    pub const fn element(self) -> Option<ElementType> {
        match self {
            Self::Element(element) => Some(element),
            Self::I32 | Self::I64 => None,
        }
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // Index integers print unlike the elements i32 and i64, which wrap.
            Self::I32 => f.write_str("index32"),
            Self::I64 => f.write_str("index64"),
            Self::Element(element) => element.fmt(f),
        }
    }
}

/// The type whose arithmetic serves `element`: itself, or the 32-bit type that its operations are computed in.
pub const fn arithmetic_type(element: ElementType) -> ElementType {
    use ElementType::{Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I16, I32, I64, Tf32, U8, U16, U32, U64};
    match element {
        F64 | F32 | I64 | I32 | U64 | U32 | Bool => element,
        Tf32 | F16 | Bf16 | E4m3 | E5m2 => F32,
        I16 | I8 => I32,
        U16 | U8 => U32,
    }
}

/// An operation on two index integers of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexOp {
    /// a + b
    Add,
    /// a − b
    Sub,
    /// a · b
    Mul,
    /// ⌊a / b⌋, b > 0
    Div,
    /// a − b·⌊a / b⌋, b > 0
    Mod,
    /// Smaller.
    Min,
    /// Larger.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise exclusive or.
    Xor,
}

/// An operation on one element that emission knows; the other functions of the language are built from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// Negation; integers wrap.
    Neg,
    /// Complement: logical of `bool`, bitwise of integers.
    Not,
    /// Absolute value; of the least integer, itself.
    Abs,
    /// Largest integer not above; floats.
    Floor,
    /// Nearest integer, ties to even; floats.
    RoundEven,
    /// √x, correctly rounded; floats.
    Sqrt,
    /// 1/x, correctly rounded; floats.
    Recip,
    /// The machine's 2ˣ; `f32`.
    Exp2Approx,
    /// The machine's log₂; `f32`.
    Log2Approx,
    /// The machine's sine; `f32`.
    SinApprox,
    /// The machine's cosine; `f32`.
    CosApprox,
    /// The machine's hyperbolic tangent; `f32`.
    TanhApprox,
    /// The machine's √x; `f32`.
    SqrtApprox,
    /// The machine's 1/√x; `f32`.
    RsqrtApprox,
    /// The machine's 1/x; `f32`.
    RcpApprox,
}

/// A shift of an `i32`, `u32`, `i64` or `u64` by a `u32`; amounts of at least the width shift everything out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// Towards the high bits.
    Left,
    /// Towards the low bits; fills with the sign of a signed type.
    Right,
}

/// How a value comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A constant: the bits of the element zero-extended, or the index integer's 64 bits.
    Literal(u64),
    /// Number of the block; `I32`.
    BlockIndex,
    /// Number of blocks of the launch; `I32`.
    BlockCount,
    /// Number of the thread in its block; `I32`.
    ThreadIndex,
    /// Number of the block in its cluster; `I32`. Clusters are neighbours: it is that of the block modulo the blocks of
    /// a cluster.
    ClusterRank,
    /// A dimension; as `I32` its low half, which lowering has proved to be all of it.
    Dim(u16),
    /// A scalar parameter.
    Scalar(u16),
    /// The index of a loop: defined by its [`Loop`].
    LoopIndex,
    /// A lane of a load: defined by its [`Load`].
    Loaded,
    /// A value of another lane: defined by its [`StatementKind::Shuffle`].
    Shuffled,
    /// Whether the block was the last one: defined by its [`StatementKind::LastBlockTicket`].
    Arrived,
    /// What holds for some thread: defined by its [`StatementKind::BarRedOr`].
    Agreed,
    /// A variable's value at this point.
    Get(VariableId),
    /// Two index integers of the value's type.
    Index(IndexOp, ValueId, ValueId),
    /// Comparison of two index integers of one type.
    CompareIndex(Compare, ValueId, ValueId),
    /// 0 ≤ a < b for index integers of one type.
    InRange(ValueId, ValueId),
    /// An index integer in the other width; narrowing is proved to keep the value.
    ConvertIndex(ValueId),
    /// Condition, value if true, value if false.
    Select(ValueId, ValueId, ValueId),
    /// One element of the value's type.
    Unary(UnaryOp, ValueId),
    /// Two elements of the value's type.
    Binary(Binary, ValueId, ValueId),
    /// High half of the product of two elements of the value's type, which is `i32`, `u32`, `i64` or `u64`.
    MulHigh(ValueId, ValueId),
    /// A shift.
    Shift(Shift, ValueId, ValueId),
    /// Comparison of two elements of one type.
    Compare(Compare, ValueId, ValueId),
    /// a·b + c, rounded once.
    Fma(ValueId, ValueId, ValueId),
    /// Conversion between element types as Rust's `as`; to a float with one rounding.
    Cast(ValueId),
    /// The same bits as another element type of the same width.
    Bits(ValueId),
    /// An index integer as an element: wrapped to an integer, rounded once to a float.
    FromIndex(ValueId),
    /// An integer element as an index; a `u64` of 2⁶³ and more becomes negative.
    ToIndex(ValueId),
}

impl Op {
    /// Its operands.
    pub fn operands(self) -> impl Iterator<Item = ValueId> {
        let (a, b, c) = match self {
            Self::Literal(_)
            | Self::BlockIndex
            | Self::BlockCount
            | Self::ThreadIndex
            | Self::ClusterRank
            | Self::Dim(_)
            | Self::Scalar(_)
            | Self::LoopIndex
            | Self::Loaded
            | Self::Shuffled
            | Self::Arrived
            | Self::Agreed
            | Self::Get(_) => (None, None, None),
            Self::ConvertIndex(a)
            | Self::Unary(_, a)
            | Self::Cast(a)
            | Self::Bits(a)
            | Self::FromIndex(a)
            | Self::ToIndex(a) => (Some(a), None, None),
            Self::Index(_, a, b)
            | Self::CompareIndex(_, a, b)
            | Self::InRange(a, b)
            | Self::Binary(_, a, b)
            | Self::MulHigh(a, b)
            | Self::Shift(_, a, b)
            | Self::Compare(_, a, b) => (Some(a), Some(b), None),
            Self::Select(a, b, c) | Self::Fma(a, b, c) => (Some(a), Some(b), Some(c)),
        };
        [a, b, c].into_iter().flatten()
    }
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// How it comes about.
    pub op: Op,
    /// Its type.
    pub ty: Type,
    /// Region in which it is bound; the body of the kernel for literals.
    pub region: RegionId,
    /// What is known of it.
    pub facts: Facts,
}

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
        /// Number of the block in the cluster, a [`Type::I32`].
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
        /// Which of them, a [`Type::I32`].
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
        /// The slot, a [`Type::I32`].
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
    /// The first thread of the block arrives at a counter for it. After the last arrival the counter is zero again.
    LastBlockTicket {
        /// The counters: a workspace of `u32` that is zero at first.
        counters: u16,
        /// Which of them, an index integer.
        at: ValueId,
        /// How many blocks arrive there, a [`Type::I32`] of at least 1.
        blocks: ValueId,
        /// Whether this block is the last, a predicate that holds for the first thread alone.
        last: ValueId,
        /// Whether what is ordered before the arrival is seen by those that acquire it.
        releases: bool,
        /// Whether the first thread sees what those released that arrived before.
        acquires: bool,
    },
    /// All threads of the block wait for each other, and learn whether a predicate holds for any of them.
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
        /// Which of them: the slot that is filled, a [`Type::I32`].
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
        /// Which of them, a [`Type::I32`].
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
        /// Which of them: the slot that is read, a [`Type::I32`].
        slot: ValueId,
        /// Number of the phase modulo 2, a [`Type::I32`].
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
    /// The one with this number, a [`Type::I32`].
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
    /// Which of its slots, a [`Type::I32`].
    pub slot: ValueId,
    /// Element offset in the slot, a [`Type::I32`].
    pub offset: ValueId,
    /// What counts the bytes of a copy to shared memory: the barrier of the slot; none for a copy to the tensor.
    pub barrier: Option<MbarrierId>,
    /// How long the L2 cache should keep what is copied, if not as usual.
    pub evict: Option<Evict>,
    /// To which blocks of the cluster a copy to shared memory goes, to the same place and counted by the same barrier
    /// of each: a [`Type::I32`] with a bit for each; to the own one, if none.
    pub multicast: Option<ValueId>,
}

/// The part of a tensor that one copy moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorPart {
    /// A tile of a tensor map; what lies outside the tensor is zero, or not written.
    Tile {
        /// Position in [`Signature::maps`].
        map: u16,
        /// Where it starts, innermost dimension first; [`Type::I32`], one for each dimension of the map.
        start: Vec<ValueId>,
    },
    /// A run of neighbours in memory, all of them elements of the tensor.
    Run {
        /// Position in [`Signature::parameters`].
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
    /// Value of the first lane; the others follow it in [`Kernel::values`].
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
    /// The tensor: position in [`Signature::parameters`], one that the kernel does not write.
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

/// How an element is combined with a value: in any order, since blocks come in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// The sum; integers wrap. Sums of `f32` take subnormal numbers for zeros (PTX manual, `red`).
    Add,
    /// The larger one; unsigned integers.
    Max,
    /// Bitwise or; unsigned integers.
    Or,
}

/// Combines an element of a workspace with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomicUpdate {
    /// The workspace.
    pub workspace: u16,
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

/// A parameter of the kernel, as far as code needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name in the source.
    pub name: String,
    /// Element type.
    pub element: ElementType,
    /// Scalar or tensor.
    pub kind: ParameterKind,
}

/// How a parameter is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// By value.
    Scalar,
    /// By address.
    Tensor {
        /// Whether the kernel writes it; one that it does not write is constant while it runs.
        written: bool,
    },
}

/// A dimension or stride that the launcher passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Name in the source.
    pub name: String,
    /// What it can be where this entry point runs.
    pub range: Range,
}

/// A tensor map that the launcher passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Name of the staged copy.
    pub name: String,
    /// Number of dimensions, 1 to 5.
    pub rank: u32,
}

/// What a kernel is before its statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Symbol of the entry point.
    pub name: String,
    /// Inputs and outputs.
    pub parameters: Vec<Parameter>,
    /// Dimensions and strides.
    pub dims: Vec<Dimension>,
    /// Tensor maps: what each is called, and how many dimensions it has.
    pub maps: Vec<Map>,
    /// What each `.param` receives.
    pub arguments: Vec<Argument>,
    /// Threads of a block, exactly.
    pub threads: u32,
    /// Blocks of a cluster; 1 without clusters.
    pub cluster: u32,
}

/// One entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name, parameters, launch shape.
    pub signature: Signature,
    /// Every value.
    pub values: Vec<Value>,
    /// Every region; the first is the body of the kernel. Some may be unreachable.
    pub regions: Vec<Region>,
    /// Type of each variable.
    pub variables: Vec<Type>,
    /// Which variables hold elements or accumulators of which stage, for readers.
    pub debug_names: Vec<(String, Vec<VariableId>)>,
    /// Which variables hold nothing before they are set, in order, for the checker.
    pub unset: Vec<VariableId>,
    /// Buffers of a block.
    pub buffers: Vec<Buffer>,
    /// For each the buffer whose memory it lies in: itself, or one that is at least as large and needed at other times.
    pub alias_of: Vec<BufferId>,
    /// For each the workspace in which it lies: every block has an equal part, in order, and there all slots. None in
    /// shared memory.
    pub parts: Vec<Option<u16>>,
    /// Memory that blocks share.
    pub workspaces: Vec<Workspace>,
    /// Numbers of tiles, of a launch whose blocks take them in turn.
    pub tiles: Vec<ValueId>,
    /// What each [`MbarrierId`] stands for. One thread makes barriers ready for their first phase before the body
    /// starts, which others know after the first [`StatementKind::BarSync`], and other blocks of the cluster after the
    /// first [`StatementKind::BarrierCluster`].
    pub barriers: Vec<Mbarrier>,
}

impl Kernel {
    /// The outermost region.
    pub const BODY: RegionId = RegionId(0);

    /// The roles of its blocks; none if all warps run the same.
    pub fn roles(&self) -> &[Role] {
        let found = self.region(Self::BODY).statements.iter().find_map(|statement| match &statement.kind {
            StatementKind::Roles(roles) => Some(&roles[..]),
            _ => None,
        });
        found.unwrap_or(&[])
    }

    /// The memory of an access: of a buffer in a workspace, that one.
    pub fn home(&self, memory: Memory) -> Memory {
        match memory {
            Memory::Buffer(buffer) => self.part(buffer).map_or(memory, Memory::Workspace),
            _ => memory,
        }
    }

    /// The workspace in which a buffer lies; none if it is in shared memory.
    pub fn part(&self, buffer: BufferId) -> Option<u16> {
        self.parts.get(buffer.index()).copied().flatten()
    }

    /// Where its buffers and barriers lie in shared memory.
    pub fn shared_map(&self) -> SharedMap {
        let own = |n: usize| self.alias_of[n].index() == n;
        let own = |n: usize| own(n) && self.parts[n].is_none();
        let bytes = |(n, b): (usize, &Buffer)| (if own(n) { b.bytes() } else { 0 }, u64::from(b.alignment));
        let buffers = self.buffers.iter().enumerate().map(bytes);
        let mut map = SharedMap::new(buffers, self.barriers.iter().map(|b| u64::from(b.slots)).sum());
        map.buffers = self.alias_of.iter().map(|b| map.buffers[b.index()]).collect();
        map
    }

    /// A value; `id` comes from this kernel.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// A region; `id` comes from this kernel.
    pub fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.index()]
    }

    /// Whether a variable holds nothing before it is set: what it is declared with, nobody may read.
    pub fn is_unset(&self, variable: VariableId) -> bool {
        self.unset.binary_search(&variable).is_ok()
    }

    /// Element type of a memory; none if it does not exist.
    pub fn element(&self, memory: Memory) -> Option<ElementType> {
        match memory {
            Memory::Parameter(p) => self.signature.parameters.get(usize::from(p)).map(|p| p.element),
            Memory::Buffer(b) => self.buffers.get(b.index()).map(|b| b.element),
            Memory::Workspace(w) => self.workspaces.get(usize::from(w)).map(|w| w.element),
        }
    }

    /// The constant, if the value is an index literal.
    pub fn index_literal(&self, id: ValueId) -> Option<i64> {
        match self.value(id) {
            Value { op: Op::Literal(bits), ty, .. } if ty.is_index() => Some(*bits as i64),
            _ => None,
        }
    }

    /// The constant, if the value is a literal predicate.
    pub fn pred_literal(&self, id: ValueId) -> Option<bool> {
        match self.value(id) {
            Value { op: Op::Literal(bits), ty: Type::PRED, .. } => Some(*bits != 0),
            _ => None,
        }
    }
}

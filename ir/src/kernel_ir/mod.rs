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
//! **Products.** A warpgroup starts products of matrices ([`StatementKind::Wgmma`]), which its tensor core adds to
//! variables of its threads while these go on. It commits them in groups and waits for its own groups in order; until
//! then it leaves the variables alone, and the matrices in shared memory may be read. Every warpgroup of the block, or
//! of the role, comes.
//!
//! **Clusters.** The blocks of a cluster run at one time. A thread may write an element of a buffer in all of them
//! ([`StatementKind::StoreDsmemAll`]) and read one of another's ([`StatementKind::LoadDsmem`]); what orders that is
//! [`StatementKind::BarrierCluster`], where all threads of all blocks come, or those of one role of each. A block's
//! memory is there from its start to its end: each access by others stands between two `BarrierCluster`.
//!
//! **Blocks.** Blocks run in any order, and none waits for another but in its cluster. They share workspaces. The first
//! thread arrives at a counter for its block ([`StatementKind::LastBlockTicket`]). What a block's threads wrote before
//! its last barrier before that is visible to the first thread of the last block that arrives there, and to that
//! block's other threads after its next barrier ([`StatementKind::BarRedOr`] is one). In a role that is said of its
//! threads. A workspace that is zero when the kernel begins is zero when it ends, and so are counters.
//! [`StatementKind::AtomicUpdate`]s of an element by several blocks exclude each other.
//!
//! **Roles.** Warps of a block may part ([`StatementKind::Roles`]): each range runs a region, with its own elected
//! thread and barriers. Roles change no variables from outside, and hand each other what they do by barriers with
//! phases: one of them expects copies or awaits, another awaits or releases.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `values`, `statements` | types, operations and statements |
//! | `products` | products of matrices: which thread has which element; matrices that warps load and store |
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
mod products;
pub mod reduction;
mod register_pressure;
mod shared_map;
mod statements;
mod values;
mod verify;

#[cfg(test)]
mod roles_tests;
#[cfg(test)]
mod tests;

use tilewright_kernel::ElementType;
use tilewright_kernel::info::Argument;

pub use builder::{Builder, Guard, Unbalanced};
pub use effects::{Access, AccessKind, AndMore, Effects, Elements, Engine, Few, Inside, Operands, Regions};
pub use facts::{Facts, Range};
pub use in_roles::{InRoles, Users};
pub use products::{Factor, LoadMatrix, Matrices, Matrix, MmaSync, Product, StoreMatrix, Wgmma};
pub use register_pressure::{Held, HeldIn, held};
pub use shared_map::BARRIER_BYTES;
pub use shared_map::SharedMap;
pub use statements::{
    AtomicOp, AtomicUpdate, BulkCopy, CpAsync, Evict, If, Load, Loop, Receivers, Region, Role, Statement,
    StatementKind, Store, TensorPart,
};
pub use values::{IndexOp, Op, Shift, Type, UnaryOp, Value, arithmetic_type};
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
    #[inline(always)] // of all calls in unoptimised builds, the most
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

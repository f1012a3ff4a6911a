//! Decoded instructions: what the executor matches on. Operands are register slots; immediates and special registers
//! have slots too. What families of instructions say besides their operands is in `lane`, `memory` and `sync`.

mod bulk;
mod call;
mod copy;
mod lane;
mod matrix;
mod memory;
mod sync;

use crate::lanes::int::{Int1, Int2, IntCompare, Width};
use crate::num::approx::Approx;
use crate::num::cvt::Cvt;
use crate::num::float::{Float1, Float2, FloatCompare, FloatMode, FloatType, NumberClass};

pub use bulk::{BULK_OPERANDS, Bulk, BulkFn};
pub use call::{CallSite, Callee, Library, Passed, Target};
pub use copy::{MbarrierFn, MbarrierOp, SourceBytes, ThreadCopy};
pub use lane::{FastCvt, LaneFn};
pub use matrix::{FragmentAccess, MatrixAccess, Mma};
pub use memory::{Access, Address, Atomic, AtomicFn, Fence, Space, Strength};
pub use sync::{Barrier, BarrierKind, Clock, ClusterBarrierOp, Collective, Mapa, Redux, Shuffle, Vote};

/// Index of a row of 32-bit values.
pub type Narrow = u32;
/// Index of a row of 64-bit values.
pub type WideSlot = u32;
/// Index of a predicate mask.
pub type PredSlot = u32;

/// A register slot of any class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Slot {
    /// A predicate.
    Pred(PredSlot),
    /// At most 32 bits.
    Narrow(Narrow),
    /// 64 bits.
    Wide(WideSlot),
}

/// A guard or another predicate operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PredRef {
    /// The predicate.
    pub slot: PredSlot,
    /// Whether it is negated.
    pub negated: bool,
}

/// Boolean combination of a comparison with a predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Logic {
    /// Conjunction.
    And,
    /// Disjunction.
    Or,
    /// Exclusive or.
    Xor,
}

impl Logic {
    /// On masks.
    pub fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            Logic::And => a & b,
            Logic::Or => a | b,
            Logic::Xor => a ^ b,
        }
    }
}

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Integers of at most 32 bits.
    Int(IntCompare, Width),
    /// Floats of at most 32 bits.
    Float(FloatCompare, FloatType, bool),
    /// 64-bit integers.
    WideInt(IntCompare),
    /// Doubles.
    WideFloat(FloatCompare),
}

/// A decoded operation.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "d is the result, a b c the operands, as in the manual's syntax lines")]
pub enum Op {
    /// Finding if a lane reads a register that it never wrote.
    CheckInit {
        register: u32,
    },
    /// The lane has written the register.
    MarkInit {
        register: u32,
    },

    /// The register is as defined as all of these, or as any: entries of the kernel's list of flows.
    FlowInit {
        register: u32,
        first: u32,
        count: u32,
        any: bool,
    },
    /// The register is as defined as this element of the load before.
    LoadedInit {
        register: u32,
        element: u32,
    },
    /// The elements of the store that follows are as defined as these entries of the kernel's list of flows; `u32::MAX`
    /// stands for a defined one.
    StoredInit {
        first: u32,
        count: u32,
    },
    /// The register is as defined as the one selected; `u32::MAX` stands for a defined operand.
    FlowSelect {
        register: u32,
        p: PredRef,
        a: u32,
        b: u32,
    },

    Mov {
        d: Narrow,
        a: Narrow,
    },
    MovWide {
        d: WideSlot,
        a: WideSlot,
    },
    MovPred {
        d: PredSlot,
        a: PredSlot,
    },
    /// `mov` of the clock.
    Clock {
        d: Slot,
        which: Clock,
    },
    /// Parts, lowest first, into one register.
    Pack {
        d: Slot,
        parts: u32,
        count: u8,
        bits: u8,
    },
    /// One register into parts, lowest first; absent parts are dropped.
    Unpack {
        a: Slot,
        parts: u32,
        count: u8,
        bits: u8,
    },

    Int1 {
        op: Int1,
        width: Width,
        d: Narrow,
        a: Narrow,
    },
    Int2 {
        op: Int2,
        width: Width,
        d: Narrow,
        a: Narrow,
        b: Narrow,
    },
    Int1Wide {
        op: Int1,
        d: WideSlot,
        a: WideSlot,
    },
    Int2Wide {
        op: Int2,
        d: WideSlot,
        a: WideSlot,
        b: WideSlot,
    },
    /// `popc`, `clz`, `bfind` of 64 bits.
    CountWide {
        op: Int1,
        d: Narrow,
        a: WideSlot,
    },
    /// 64-bit value, 32-bit amount.
    ShiftWide {
        op: Int2,
        d: WideSlot,
        a: WideSlot,
        b: Narrow,
    },
    Mad {
        width: Width,
        d: Narrow,
        a: Narrow,
        b: Narrow,
        c: Narrow,
    },
    MadLoWide {
        d: WideSlot,
        a: WideSlot,
        b: WideSlot,
        c: WideSlot,
    },
    /// 32 × 32 → 64, perhaps plus c.
    MulWide {
        signed: bool,
        d: WideSlot,
        a: Narrow,
        b: Narrow,
        c: Option<WideSlot>,
    },
    /// 16 × 16 → 32, perhaps plus c.
    MulWide16 {
        signed: bool,
        d: Narrow,
        a: Narrow,
        b: Narrow,
        c: Option<Narrow>,
    },
    Lop3 {
        table: u8,
        d: Narrow,
        a: Narrow,
        b: Narrow,
        c: Narrow,
    },
    /// Sum or difference with carry: `a ± b ± carry-in`, of 32 or 64 bits.
    Carry {
        subtract: bool,
        carry_in: bool,
        carry_out: bool,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// `mad.cc`, `madc`.
    MadCarry {
        high: bool,
        signed: bool,
        carry_in: bool,
        carry_out: bool,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    Lane {
        f: LaneFn,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
        e: Slot,
    },

    Float1 {
        op: Float1,
        mode: FloatMode,
        packed: bool,
        d: Narrow,
        a: Narrow,
    },
    Float2 {
        op: Float2,
        mode: FloatMode,
        packed: bool,
        d: Narrow,
        a: Narrow,
        b: Narrow,
    },
    Fma {
        mode: FloatMode,
        packed: bool,
        d: Narrow,
        a: Narrow,
        b: Narrow,
        c: Narrow,
    },
    Approx {
        op: Approx,
        mode: FloatMode,
        packed: bool,
        d: Narrow,
        a: Narrow,
    },
    Float1Wide {
        op: Float1,
        mode: FloatMode,
        d: WideSlot,
        a: WideSlot,
    },
    Float2Wide {
        op: Float2,
        mode: FloatMode,
        d: WideSlot,
        a: WideSlot,
        b: WideSlot,
    },
    FmaWide {
        mode: FloatMode,
        d: WideSlot,
        a: WideSlot,
        b: WideSlot,
        c: WideSlot,
    },
    ApproxWide {
        op: Approx,
        mode: FloatMode,
        d: WideSlot,
        a: WideSlot,
    },
    Cvt {
        cvt: Cvt,
        d: Slot,
        a: Slot,
    },
    CvtFast {
        cvt: FastCvt,
        d: u32,
        a: u32,
        b: u32,
    },

    Setp {
        test: Comparison,
        d: Option<PredSlot>,
        p: Option<PredSlot>,
        a: u32,
        b: u32,
        combine: Option<(Logic, PredRef)>,
    },
    /// `setp` of packed halves: one predicate each.
    SetpPacked {
        op: FloatCompare,
        ty: FloatType,
        ftz: bool,
        d: Option<PredSlot>,
        p: Option<PredSlot>,
        a: Narrow,
        b: Narrow,
        combine: Option<(Logic, PredRef)>,
    },
    /// `set`: `yes` where true, else 0.
    Set {
        test: Comparison,
        yes: u32,
        d: Narrow,
        a: u32,
        b: u32,
        combine: Option<(Logic, PredRef)>,
    },
    /// `set` of packed halves: `yes` in each half where true.
    SetPacked {
        op: FloatCompare,
        ty: FloatType,
        ftz: bool,
        yes: u16,
        d: Narrow,
        a: Narrow,
        b: Narrow,
        combine: Option<(Logic, PredRef)>,
    },
    Testp {
        class: NumberClass,
        ty: FloatType,
        d: PredSlot,
        a: Slot,
    },
    Selp {
        d: Narrow,
        a: Narrow,
        b: Narrow,
        c: PredRef,
    },
    SelpWide {
        d: WideSlot,
        a: WideSlot,
        b: WideSlot,
        c: PredRef,
    },
    PredLogic {
        op: Logic,
        d: PredSlot,
        a: PredRef,
        b: PredRef,
    },

    Load(Access),
    Store(Access),
    Atomic(Atomic),
    /// Generic address of an address in a window, or back.
    Cvta {
        to: bool,
        space: Space,
        d: Slot,
        a: Slot,
    },
    Isspacep {
        space: Space,
        d: PredSlot,
        a: WideSlot,
    },
    /// Orders memory.
    Fence(Fence),

    /// Makes ordinary accesses of the thread visible to bulk copies.
    ProxyFence {
        shared: bool,
        global: bool,
    },

    Activemask {
        d: Narrow,
    },
    Collective {
        op: Collective,
        members: Narrow,
    },
    Barrier(Barrier),

    /// A bulk copy: number in the kernel's list, operands in the data list.
    Bulk {
        site: u32,
        data: u32,
        count: u8,
    },
    /// Closes the bulk groups of the lanes.
    CommitBulk,
    /// Waits until at most `keep` bulk groups of the lanes are pending; `read`: until their sources have been read.
    WaitBulk {
        keep: u32,
        read: bool,
    },
    /// `cp.async`.
    ThreadCopy(ThreadCopy),
    /// `cp.async.commit_group`.
    CommitCopies,
    /// `cp.async.wait_group`, or `wait_all` without a number.
    WaitCopies {
        keep: Option<u32>,
    },
    /// An instruction on an mbarrier.
    Mbarrier(MbarrierOp),
    /// `mapa`, `getctarank`.
    Mapa(Mapa),
    /// `barrier.cluster`.
    ClusterBarrier(ClusterBarrierOp),
    /// `setmaxnreg`: registers of a thread, and whether they become more.
    SetRegisters {
        count: u32,
        inc: bool,
    },
    /// `mma`, `wmma.mma`.
    Mma(Mma),
    /// `ldmatrix`, `stmatrix`.
    MatrixAccess(MatrixAccess),
    /// `movmatrix.trans`.
    MatrixTranspose {
        d: Narrow,
        a: Narrow,
    },
    /// `wmma.load`, `wmma.store`.
    FragmentAccess(FragmentAccess),

    Branch {
        target: u32,
        /// `bra.uni`: the lanes that come have one predicate.
        uniform: bool,
    },
    /// `brx.idx`: the targets are entries of the kernel's list of data slots… by number.
    BranchTable {
        index: Narrow,
        first: u32,
        count: u32,
    },
    /// A call: number in the kernel's list.
    Call {
        site: u32,
    },
    /// `alloca`: address of fresh room in local memory.
    Alloca {
        d: Slot,
        size: Slot,
        align: u32,
    },
    /// The top of the stack into a register, or back.
    StackTop {
        register: Slot,
        restore: bool,
    },
    /// Return from a device function.
    Return,
    Exit,
    Trap,
    /// Hints: `prefetch`, `pmevent`, `nanosleep`, …
    Nop,
    /// Waits for earlier launches, which have ended.
    AwaitGrids,
    /// Lets other warps run: `nanosleep`.
    Yield,
}

/// The operations that only compute registers from registers, in every lane by itself, in parts that are compiled apart
/// from each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Integers of at most 32 bits, moves and selections.
    Narrow,
    /// Integers of 64 bits, moves, selections and addresses.
    Wide,
    /// Floats of at most 32 bits.
    Float,
    /// Floats of 64 bits.
    WideFloat,
    /// What makes predicates, or values of comparisons.
    Test,
    /// Conversions, approximations and what has carries or is computed lane by lane.
    Other,
}

impl Part {
    /// How many there are.
    pub const COUNT: usize = 6;
}

impl Op {
    /// The part that it belongs to; none for operations that do more than compute registers.
    pub fn part(&self) -> Option<Part> {
        Some(match self {
            Op::Mov { .. }
            | Op::Int1 { .. }
            | Op::Int2 { .. }
            | Op::Mad { .. }
            | Op::MulWide16 { .. }
            | Op::Lop3 { .. }
            | Op::Selp { .. } => Part::Narrow,
            Op::MovWide { .. }
            | Op::Int1Wide { .. }
            | Op::Int2Wide { .. }
            | Op::CountWide { .. }
            | Op::ShiftWide { .. }
            | Op::MadLoWide { .. }
            | Op::MulWide { .. }
            | Op::SelpWide { .. }
            | Op::Cvta { .. }
            | Op::Isspacep { .. } => Part::Wide,
            Op::Float1 { .. } | Op::Float2 { .. } | Op::Fma { .. } => Part::Float,
            Op::Float1Wide { .. } | Op::Float2Wide { .. } | Op::FmaWide { .. } | Op::ApproxWide { .. } => {
                Part::WideFloat
            }
            Op::MovPred { .. }
            | Op::Setp { .. }
            | Op::SetpPacked { .. }
            | Op::Set { .. }
            | Op::SetPacked { .. }
            | Op::Testp { .. }
            | Op::PredLogic { .. } => Part::Test,
            Op::Carry { .. }
            | Op::MadCarry { .. }
            | Op::Lane { .. }
            | Op::Approx { .. }
            | Op::Cvt { .. }
            | Op::CvtFast { .. } => Part::Other,
            Op::Pack { .. }
            | Op::Unpack { .. }
            | Op::CheckInit { .. }
            | Op::MarkInit { .. }
            | Op::FlowInit { .. }
            | Op::LoadedInit { .. }
            | Op::StoredInit { .. }
            | Op::FlowSelect { .. }
            | Op::Clock { .. }
            | Op::Load(_)
            | Op::Store(_)
            | Op::Atomic(_)
            | Op::Fence(_)
            | Op::ProxyFence { .. }
            | Op::Bulk { .. }
            | Op::CommitBulk
            | Op::WaitBulk { .. }
            | Op::Activemask { .. }
            | Op::ThreadCopy(_)
            | Op::CommitCopies
            | Op::WaitCopies { .. }
            | Op::Mbarrier(_)
            | Op::Mapa(_)
            | Op::ClusterBarrier(_)
            | Op::SetRegisters { .. }
            | Op::Mma(_)
            | Op::MatrixAccess(_)
            | Op::MatrixTranspose { .. }
            | Op::FragmentAccess(_)
            | Op::Collective { .. }
            | Op::Barrier(_)
            | Op::Branch { .. }
            | Op::BranchTable { .. }
            | Op::Call { .. }
            | Op::Return
            | Op::Alloca { .. }
            | Op::StackTop { .. }
            | Op::Exit
            | Op::Trap
            | Op::Nop
            | Op::AwaitGrids
            | Op::Yield => return None,
        })
    }

    /// The row that a register instruction computes for all lanes, whichever take part. The others write lane by lane,
    /// or predicates.
    pub fn row(&self) -> Option<Slot> {
        match *self {
            Op::Mov { d, .. }
            | Op::Int1 { d, .. }
            | Op::Int2 { d, .. }
            | Op::CountWide { d, .. }
            | Op::Mad { d, .. }
            | Op::MulWide16 { d, .. }
            | Op::Lop3 { d, .. }
            | Op::Float1 { d, .. }
            | Op::Float2 { d, .. }
            | Op::Fma { d, .. }
            | Op::Approx { d, .. }
            | Op::Set { d, .. }
            | Op::SetPacked { d, .. }
            | Op::Selp { d, .. } => Some(Slot::Narrow(d)),
            Op::MovWide { d, .. }
            | Op::Int1Wide { d, .. }
            | Op::Int2Wide { d, .. }
            | Op::ShiftWide { d, .. }
            | Op::MadLoWide { d, .. }
            | Op::MulWide { d, .. }
            | Op::Float1Wide { d, .. }
            | Op::Float2Wide { d, .. }
            | Op::FmaWide { d, .. }
            | Op::SelpWide { d, .. } => Some(Slot::Wide(d)),
            Op::Lane { d, .. } => Some(d),
            Op::CvtFast { cvt: FastCvt::ZeroExtend | FastCvt::SignExtend, d, .. } => Some(Slot::Wide(d)),
            Op::CvtFast { d, .. } => Some(Slot::Narrow(d)),
            _ => None,
        }
    }
}

/// One decoded instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Inst {
    /// The lanes it runs in, if guarded.
    pub guard: Option<PredRef>,
    /// Whether one lane may compute the result for all: see `decode::uniform`.
    pub once: bool,
    /// The row that it replaces where only some lanes take part: see [`Op::row`].
    pub row: Option<Slot>,
    /// How far ahead the next instruction is that does something: 1, or more where copies were forwarded.
    pub step: u32,
    /// Instructions that only compute registers, from this one on, which all lanes that are here execute one after the
    /// other: 0 if this one does more, 1 if it is guarded or may be executed once for all lanes.
    pub stretch: u32,
    /// The part of its operation: see [`Op::part`].
    pub part: Option<Part>,
    /// The number by which the loop executes it: see `exec::host`.
    pub number: u8,
    /// The registers of an operation with a number of its own.
    pub registers: [u32; 4],
    /// What it does.
    pub op: Op,
}

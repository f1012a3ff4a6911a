//! Decoded instructions: what the executor matches on. Operands are register slots; immediates and special registers
//! have slots too. What families of instructions say besides their operands is in `lane`, `memory` and `sync`. Which
//! operations only compute registers is in `part`.

mod bulk;
mod call;
mod copy;
mod lane;
mod matrix;
mod memory;
mod part;
mod slot;
mod sync;

use crate::lanes::int::{Int1, Int2, Width};
use crate::num::approx::Approx;
use crate::num::cvt::Cvt;
use crate::num::float::{Float1, Float2, FloatCompare, FloatMode, FloatType, NumberClass};

pub use bulk::{BULK_OPERANDS, Bulk, BulkFn};
pub use call::{CallSite, Callee, Library, Passed, Target};
pub use copy::{MbarrierFn, MbarrierOp, SourceBytes, ThreadCopy};
pub use lane::{FastCvt, LaneFn};
pub use matrix::{FragmentAccess, MatrixAccess, Mma, Wgmma};
pub use memory::{Access, Address, Atomic, AtomicFn, Fence, Space, Strength};
pub use part::Part;
pub use slot::{Comparison, Logic, Narrow, PredRef, PredSlot, Slot, WideSlot};
pub use sync::{Barrier, BarrierKind, Clock, ClusterBarrierOp, Collective, Mapa, Redux, Shuffle, Vote};

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
    /// `wgmma.mma_async`: number in the kernel's list, and its data slots: those that it writes, then the others.
    Wgmma {
        site: u32,
        data: u32,
        sums: u8,
        others: u8,
    },
    /// `wgmma.fence`.
    WgmmaFence,
    /// `wgmma.commit_group`.
    WgmmaCommit,
    /// `wgmma.wait_group`: until at most `keep` groups are pending.
    WgmmaWait {
        keep: u32,
    },
    /// The next instruction reads the first of these matrix registers and writes the rest; numbers in the list of
    /// flows. If it only moves them, it gives what is in them another name.
    MatrixTouch {
        first: u32,
        reads: u16,
        writes: u16,
        renames: bool,
    },
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

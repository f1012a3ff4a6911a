//! Decoded instructions: what the executor matches on. Operands are register slots; immediates and special registers have slots too.

use crate::lanes::int::{Int1, Int2, IntCompare, Prmt, Width};
use crate::num::approx::Approx;
use crate::num::cvt::Cvt;
use crate::num::float::{Float1, Float2, FloatCompare, FloatMode, FloatType, NumberClass};

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

/// A function of one lane for instructions that are not worth a row of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneFn {
    /// High half of the product plus the third operand.
    MadHi {
        /// Signed product.
        signed: bool,
        /// Width.
        width: Width,
        /// Clamp the signed sum.
        sat: bool,
    },
    /// 24-bit product plus the third operand.
    Mad24 {
        /// Signed operands.
        signed: bool,
        /// Bits 47..16 of the product.
        high: bool,
        /// Clamp the signed sum.
        sat: bool,
    },
    /// `c + |a - b|`.
    Sad {
        /// Signed operands.
        signed: bool,
        /// Width.
        width: Width,
    },
    /// `prmt`.
    Prmt(Prmt),
    /// `bfe` of 32 or 64 bits.
    Bfe {
        /// Sign-extend.
        signed: bool,
        /// 32 or 64.
        bits: u32,
    },
    /// `bfi` of 32 or 64 bits.
    Bfi {
        /// 32 or 64.
        bits: u32,
    },
    /// `shf`.
    Shf {
        /// Left.
        left: bool,
        /// Amount modulo 32 instead of at most 32.
        wrap: bool,
    },
    /// `dp4a`.
    Dp4a {
        /// First operand signed.
        a: bool,
        /// Second operand signed.
        b: bool,
    },
    /// `dp2a`.
    Dp2a {
        /// First operand signed.
        a: bool,
        /// Second operand signed.
        b: bool,
        /// Upper half of the second operand.
        high: bool,
    },
    /// `bmsk`.
    Bmsk {
        /// Amounts modulo 32.
        wrap: bool,
    },
    /// `szext`.
    Szext {
        /// Sign-extend.
        signed: bool,
        /// Amount modulo 32.
        wrap: bool,
    },
    /// `fns`.
    Fns,
    /// `slct`: first operand where the third is at least zero.
    SlctInt,
    /// `slct` by an f32.
    SlctFloat {
        /// Flush the third operand.
        ftz: bool,
    },
    /// Two 16-bit integers in 32 bits.
    Packed16 {
        /// The operation on each half.
        op: Int2,
        /// Negative results become 0.
        relu: bool,
    },
    /// Signed minimum or maximum with negative results made 0.
    Relu {
        /// Maximum.
        max: bool,
    },
    /// `cvt.pack` of two s32 into halves or bytes above `c`.
    CvtPack {
        /// Bits of each part: 16 or 8.
        bits: u32,
        /// Signed parts.
        signed: bool,
    },
    /// A conversion of two operands into packed halves or bytes; the first operand goes up.
    CvtTwo(Cvt),
    /// A conversion of each half (or byte) of the operand: `from_bits` and `to_bits` wide.
    CvtEach {
        /// The conversion of one element.
        cvt: Cvt,
        /// Bits of a source element.
        from_bits: u32,
        /// Bits of a result element.
        to_bits: u32,
    },
    /// `div.approx`, `div.full` of f32.
    DivApprox {
        /// Mode.
        mode: FloatMode,
        /// `div.full`.
        full: bool,
    },
    /// `mad.hi`-like product half of 64 bits and others: `fma` with `.oob`.
    FmaOob(FloatMode, bool),
}

/// A row conversion with a fast path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FastCvt {
    /// Zero-extension of 32 to 64 bits.
    ZeroExtend,
    /// Sign-extension of 32 to 64 bits.
    SignExtend,
    /// Low 32 of 64 bits.
    Truncate,
    /// s32 to the nearest f32.
    F32FromS32,
    /// u32 to the nearest f32.
    F32FromU32,
    /// Exact.
    F32FromF16,
    /// Exact.
    F32FromBf16,
    /// Nearest.
    F16FromF32,
    /// Nearest.
    Bf16FromF32,
    /// Nearest, two operands, the first one up.
    Bf16x2FromF32,
    /// Nearest, two operands, the first one up.
    F16x2FromF32,
}

/// State space of an access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Space {
    /// Device memory.
    Global,
    /// The CTA's shared memory.
    Shared,
    /// Memory of the thread.
    Local,
    /// Constants of the module.
    Const,
    /// Parameters of the kernel.
    Param,
    /// Told apart by the address.
    Generic,
}

/// An address: a base row and bytes to add.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The base, if any.
    pub base: Option<Slot>,
    /// Bytes to add.
    pub offset: i64,
}

/// How strongly an access is ordered and made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strength {
    /// Ordinary data: races count.
    Weak,
    /// Volatile, relaxed, acquire or release: races only with ordinary accesses.
    Strong,
    /// Through the read-only cache: nothing may write the data while the kernel runs.
    Constant,
}

/// A load or store of 1, 2, 4 or 8 elements a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Where.
    pub space: Space,
    /// Address.
    pub address: Address,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Elements.
    pub count: u8,
    /// Whether narrow loaded elements are sign-extended into their registers.
    pub signed: bool,
    /// Ordering.
    pub strength: Strength,
    /// First of `count` entries in the kernel's list of data slots.
    pub data: u32,
}

/// Operation of an atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicFn {
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Integer sum.
    Add,
    /// Float sum.
    AddFloat(FloatMode),
    /// Sum of two packed halves.
    AddPacked(FloatMode),
    /// Minimum.
    Min {
        /// Signed.
        signed: bool,
    },
    /// Maximum.
    Max {
        /// Signed.
        signed: bool,
    },
    /// Minimum or maximum of packed halves.
    ExtremumPacked(FloatMode, bool),
    /// Increment that wraps to 0 at the operand.
    Inc,
    /// Decrement that wraps to the operand at 0 or above it.
    Dec,
    /// Exchange.
    Exch,
    /// Compare and swap.
    Cas,
}

/// Atomic access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Atomic {
    /// Where.
    pub space: Space,
    /// Address.
    pub address: Address,
    /// Bytes of an element.
    pub bytes: u8,
    /// Elements.
    pub count: u8,
    /// Operation.
    pub op: AtomicFn,
    /// Whether the old value is returned: the data list holds results, then operands, then swap values.
    pub returns: bool,
    /// First entry in the data list.
    pub data: u32,
    /// Whether it is also a release, an acquire or both.
    pub orders: bool,
}

/// How a barrier instruction takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarrierKind {
    /// Waits.
    Sync,
    /// Does not wait.
    Arrive,
    /// Waits and returns how many threads had a true predicate.
    Popc(Narrow, PredRef),
    /// Waits and returns whether all had a true predicate.
    All(PredSlot, PredRef),
    /// Waits and returns whether any had.
    Any(PredSlot, PredRef),
}

/// A CTA barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Barrier {
    /// Its number.
    pub id: Narrow,
    /// Number of threads; all of the CTA if none.
    pub threads: Option<Narrow>,
    /// Whether all lanes of the warp must come together.
    pub aligned: bool,
    /// Part taken.
    pub kind: BarrierKind,
}

/// `shfl.sync` mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shuffle {
    /// From a lower lane.
    Up,
    /// From a higher lane.
    Down,
    /// From the lane with some bits flipped.
    Bfly,
    /// From a lane by number.
    Idx,
}

/// `vote.sync` mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vote {
    /// All true.
    All(PredSlot),
    /// Any true.
    Any(PredSlot),
    /// All equal.
    Uni(PredSlot),
    /// The mask.
    Ballot(Narrow),
}

/// `redux.sync` operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub enum Redux {
    Add,
    MinU,
    MinS,
    MaxU,
    MaxS,
    And,
    Or,
    Xor,
}

/// An instruction for lanes of a warp that meet by member mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Collective {
    /// `shfl.sync`.
    Shfl {
        /// Mode.
        mode: Shuffle,
        /// Result.
        d: Narrow,
        /// Whether the source lane was in range.
        p: Option<PredSlot>,
        /// Value offered.
        a: Narrow,
        /// Lane or distance.
        b: Narrow,
        /// Clamp and segment mask.
        c: Narrow,
    },
    /// `vote.sync`.
    Vote(Vote, PredRef),
    /// `match.any.sync`.
    MatchAny {
        /// Result.
        d: Narrow,
        /// Value compared.
        a: Slot,
    },
    /// `match.all.sync`.
    MatchAll {
        /// Result.
        d: Option<Narrow>,
        /// Whether all are equal.
        p: Option<PredSlot>,
        /// Value compared.
        a: Slot,
    },
    /// `redux.sync`.
    Redux {
        /// Operation.
        op: Redux,
        /// Result.
        d: Narrow,
        /// Operand.
        a: Narrow,
    },
    /// `elect.sync`.
    Elect {
        /// The elected lane.
        d: Option<Narrow>,
        /// True in that lane.
        p: PredSlot,
    },
    /// `bar.warp.sync`.
    Barrier,
}

/// A source of time or of an id that changes as the kernel runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// Low 32 bits.
    Low,
    /// High 32 bits.
    High,
    /// All 64.
    Full,
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
    /// Orders memory; `wide` when beyond the CTA.
    Fence {
        wide: bool,
    },

    Activemask {
        d: Narrow,
    },
    Collective {
        op: Collective,
        members: Narrow,
    },
    Barrier(Barrier),

    Branch {
        target: u32,
    },
    /// `brx.idx`: the targets are entries of the kernel's list of data slots… by number.
    BranchTable {
        index: Narrow,
        first: u32,
        count: u32,
    },
    Exit,
    Trap,
    /// Hints: `prefetch`, `pmevent`, `nanosleep`, …
    Nop,
    /// Lets other warps run: `nanosleep`.
    Yield,
}

/// One decoded instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Inst {
    /// The lanes it runs in, if guarded.
    pub guard: Option<PredRef>,
    /// What it does.
    pub op: Op,
}

//! Instruction modifiers: every dotted word after a mnemonic, as a type. Which are legal where is the table's business
//! (`isa`).

use std::fmt;

use crate::types::{ScalarType, Shape, StateSpace, spelled};

spelled! {
    /// A modifier that is neither a type, a state space nor a matrix shape. One spelling, one variant: `.lo` is the
    /// same flag in `mul.lo` and in `setp.lo`. The typed views below ([`Rounding`], [`Comparison`], …) give it its
    /// meaning.
    Flag {
        // Rounding.
        Rn = "rn", Rz = "rz", Rm = "rm", Rp = "rp", Rna = "rna", Rs = "rs",
        Rni = "rni", Rzi = "rzi", Rmi = "rmi", Rpi = "rpi",
        // Arithmetic variants.
        Approx = "approx", Full = "full", Ftz = "ftz", Noftz = "noftz", Sat = "sat", Satfinite = "satfinite", Oob = "oob",
        Relu = "relu", Nan = "NaN", XorSign = "xorsign", Abs = "abs",
        Lo = "lo", Hi = "hi", Wide = "wide", Cc = "cc", Shiftamt = "shiftamt",
        L = "l", R = "r", Clamp = "clamp", Wrap = "wrap",
        F4e = "f4e", B4e = "b4e", Rc8 = "rc8", Ecl = "ecl", Ecr = "ecr", Rc16 = "rc16",
        // Comparisons (`lo` above).
        Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge", Ls = "ls", Hs = "hs",
        Equ = "equ", Neu = "neu", Ltu = "ltu", Leu = "leu", Gtu = "gtu", Geu = "geu", Num = "num", NanTest = "nan",
        // Boolean and atomic operations.
        And = "and", Or = "or", Xor = "xor", Add = "add", Min = "min", Max = "max", Inc = "inc", Dec = "dec",
        Exch = "exch", Cas = "cas", Popc = "popc", Not = "not",
        // Number classes.
        Finite = "finite", Infinite = "infinite", Number = "number", NotANumber = "notanumber", Normal = "normal",
        Subnormal = "subnormal",
        // Memory semantics and scopes.
        Weak = "weak", Relaxed = "relaxed", Acquire = "acquire", Release = "release", AcqRel = "acq_rel", Sc = "sc",
        Volatile = "volatile", Mmio = "mmio",
        Cta = "cta", Cluster = "cluster", Gpu = "gpu", Sys = "sys", Gl = "gl",
        // Cache control.
        Ca = "ca", Cg = "cg", Cs = "cs", Lu = "lu", Cv = "cv", Wb = "wb", Wt = "wt", Nc = "nc", Unified = "unified",
        L1 = "L1", L2 = "L2",
        L1EvictNormal = "L1::evict_normal", L1EvictUnchanged = "L1::evict_unchanged", L1EvictFirst = "L1::evict_first",
        L1EvictLast = "L1::evict_last", L1NoAllocate = "L1::no_allocate",
        L2EvictNormal = "L2::evict_normal", L2EvictUnchanged = "L2::evict_unchanged", L2EvictFirst = "L2::evict_first",
        L2EvictLast = "L2::evict_last", L2CacheHint = "L2::cache_hint",
        L2Prefetch64 = "L2::64B", L2Prefetch128 = "L2::128B", L2Prefetch256 = "L2::256B",
        Fractional = "fractional", Range = "range", Cvt = "cvt", Pack = "pack",
        // Vectors and repetition.
        V2 = "v2", V4 = "v4", V8 = "v8", X1 = "x1", X2 = "x2", X4 = "x4",
        // Sub-operations that complete a mnemonic.
        Sync = "sync", Aligned = "aligned", Arrive = "arrive", Wait = "wait", Red = "red", Warp = "warp",
        All = "all", Any = "any", Uni = "uni", Ballot = "ballot", Up = "up", Down = "down", Bfly = "bfly", Idx = "idx",
        To = "to", Row = "row", Col = "col", Trans = "trans",
        Async = "async", Bulk = "bulk", CommitGroup = "commit_group", WaitGroup = "wait_group", WaitAll = "wait_all",
        Mbarrier = "mbarrier", Noinc = "noinc", Read = "read",
        Init = "init", Inval = "inval", ExpectTx = "expect_tx", CompleteTx = "complete_tx", ArriveDrop = "arrive_drop",
        TestWait = "test_wait", TryWait = "try_wait", Parity = "parity", NoComplete = "noComplete",
        PendingCount = "pending_count", MbarrierCompleteTxBytes = "mbarrier::complete_tx::bytes",
        BulkGroup = "bulk_group", MulticastCluster = "multicast::cluster",
        Tensor = "tensor", D1 = "1d", D2 = "2d", D3 = "3d", D4 = "4d", D5 = "5d", Tile = "tile", Im2col = "im2col",
        Im2colNoOffs = "im2col_no_offs", TileGather4 = "tile::gather4", TileScatter4 = "tile::scatter4", Im2colW = "im2col::w",
        Prefetch = "prefetch", Reduce = "reduce",
        Proxy = "proxy", Alias = "alias", MbarrierInit = "mbarrier_init", AsyncGeneric = "async::generic",
        TensormapGeneric = "tensormap::generic", SyncRestrictCta = "sync_restrict::shared::cta",
        SyncRestrictCluster = "sync_restrict::shared::cluster",
        Load = "load", Store = "store", Mma = "mma", MatrixA = "a", MatrixB = "b", MatrixC = "c", MatrixD = "d",
        MmaAsync = "mma_async", Fence = "fence", Sp = "sp", XorPopc = "xorpopc",
        LaunchDependents = "launch_dependents", Tensormap = "tensormap", Replace = "replace", CpFenceproxy = "cp_fenceproxy",
        GlobalAddress = "global_address", Rank = "rank", BoxDim = "box_dim", GlobalDim = "global_dim",
        GlobalStride = "global_stride", ElementStride = "element_stride", Elemtype = "elemtype",
        InterleaveLayout = "interleave_layout", SwizzleMode = "swizzle_mode", FillMode = "fill_mode",
    }
}

impl Flag {
    /// Whether the word, standing first, completes a mnemonic: `cp.async`, `mbarrier.arrive`, `mul.wide`. The assembler
    /// wants these words in their order and at their place; what follows them may come in any order.
    pub(crate) fn completes_mnemonic(self) -> bool {
        use Flag::*;
        matches!(
            self,
            Alias
                | Arrive
                | ArriveDrop
                | Async
                | AsyncGeneric
                | Bulk
                | Cluster
                | CommitGroup
                | CompleteTx
                | CpFenceproxy
                | Cta
                | Dec
                | ExpectTx
                | Fence
                | Fractional
                | Hi
                | Idx
                | Inc
                | Init
                | Inval
                | L
                | Lo
                | Load
                | MatrixA
                | MatrixB
                | MatrixC
                | MatrixD
                | Mbarrier
                | Mma
                | MmaAsync
                | Pack
                | Parity
                | PendingCount
                | Prefetch
                | Proxy
                | R
                | Range
                | Red
                | Reduce
                | Replace
                | Store
                | Tensor
                | TensormapGeneric
                | TestWait
                | Tile
                | To
                | TryWait
                | Wait
                | WaitAll
                | WaitGroup
                | Warp
                | Wide
        )
    }
}

/// One modifier of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Modifier {
    /// A type such as `.f32`.
    Type(ScalarType),
    /// A state space such as `.shared::cta`.
    Space(StateSpace),
    /// A matrix shape such as `.m16n8k16`.
    Shape(Shape),
    /// Anything else.
    Flag(Flag),
}

impl Modifier {
    /// The modifier with this spelling (without the leading dot).
    pub fn from_text(text: &str) -> Option<Modifier> {
        if let Some(flag) = Flag::from_text(text) {
            return Some(Modifier::Flag(flag));
        }
        if let Some(ty) = ScalarType::from_text(text) {
            return Some(Modifier::Type(ty));
        }
        if let Some(space) = StateSpace::from_text(text) {
            return Some(Modifier::Space(space));
        }
        Shape::from_text(text).map(Modifier::Shape)
    }
}

impl Modifier {
    /// Its spelling, if it has one of its own; a shape is written by its numbers.
    pub const fn text(self) -> Option<&'static str> {
        match self {
            Modifier::Type(ty) => Some(ty.text()),
            Modifier::Space(space) => Some(space.text()),
            Modifier::Flag(flag) => Some(flag.text()),
            Modifier::Shape(_) => None,
        }
    }
}

impl fmt::Display for Modifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Modifier::Type(ty) => ty.fmt(f),
            Modifier::Space(space) => space.fmt(f),
            Modifier::Shape(shape) => shape.fmt(f),
            Modifier::Flag(flag) => flag.fmt(f),
        }
    }
}

impl From<ScalarType> for Modifier {
    fn from(ty: ScalarType) -> Self {
        Modifier::Type(ty)
    }
}
impl From<StateSpace> for Modifier {
    fn from(space: StateSpace) -> Self {
        Modifier::Space(space)
    }
}
impl From<Shape> for Modifier {
    fn from(shape: Shape) -> Self {
        Modifier::Shape(shape)
    }
}
impl From<Flag> for Modifier {
    fn from(flag: Flag) -> Self {
        Modifier::Flag(flag)
    }
}

/// A typed reading of some flags, for [`crate::Inst::find`].
pub trait FlagView: Sized + Copy {
    /// The meaning of this flag in the view, if it has one.
    fn from_flag(flag: Flag) -> Option<Self>;
}

macro_rules! view {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        pub enum $name { $(#[doc = concat!("[`Flag::", stringify!($variant), "`]")] $(#[$vmeta])* $variant,)* }
        impl FlagView for $name {
            fn from_flag(flag: Flag) -> Option<Self> {
                match flag { $(Flag::$variant => Some($name::$variant),)* _ => None }
            }
        }
        impl From<$name> for Flag {
            fn from(view: $name) -> Flag { match view { $($name::$variant => Flag::$variant,)* } }
        }
        impl From<$name> for Modifier {
            fn from(view: $name) -> Modifier { Modifier::Flag(view.into()) }
        }
    };
}

view! {
    /// Rounding of a result (`rni` and its kin: to an integer).
    Rounding { Rn, Rz, Rm, Rp, Rna, Rs, Rni, Rzi, Rmi, Rpi }
}
view! {
    /// Comparison of `set`, `setp` (9.7.5): the `u` forms are true for unordered operands, `lo ls hi hs` are unsigned.
    Comparison { Eq, Ne, Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, NanTest }
}
view! {
    /// Combination of a comparison with a predicate.
    BoolOp { And, Or, Xor }
}
view! {
    /// Operation of `atom`, `red`, `redux`, bulk reductions.
    AtomicOp { And, Or, Xor, Add, Min, Max, Inc, Dec, Exch, Cas }
}
view! {
    /// Half of a product that an instruction returns.
    MulPart { Lo, Hi, Wide }
}
view! {
    /// Memory semantics of an access or fence (8.5).
    Semantics { Weak, Relaxed, Acquire, Release, AcqRel, Sc, Volatile, Mmio }
}
view! {
    /// Set of threads that synchronise (8.4); `gl` is `membar`'s word for `gpu`.
    Scope { Cta, Cluster, Gpu, Sys, Gl }
}
view! {
    /// Number of elements of a vector access.
    VectorWidth { V2, V4, V8 }
}
view! {
    /// Cache operator of a load or store (9.7.9.1).
    CacheOp { Ca, Cg, Cs, Lu, Cv, Wb, Wt }
}
view! {
    /// Direction of a shuffle.
    ShuffleMode { Up, Down, Bfly, Idx }
}
view! {
    /// Reduction of `vote` and `bar.red`.
    VoteMode { All, Any, Uni, Ballot, Popc, And, Or }
}
view! {
    /// Order of the elements of a matrix operand.
    MatrixOrder { Row, Col }
}
view! {
    /// Class tested by `testp`.
    NumberClass { Finite, Infinite, Number, NotANumber, Normal, Subnormal }
}
view! {
    /// Byte selection mode of `prmt`.
    PrmtMode { F4e, B4e, Rc8, Ecl, Ecr, Rc16 }
}
view! {
    /// Rank of a tensor copy.
    TensorRank { D1, D2, D3, D4, D5 }
}
view! {
    /// Number of 8×8 matrices of `ldmatrix`, `stmatrix`.
    MatrixCount { X1, X2, X4 }
}

impl VectorWidth {
    /// Number of elements.
    pub const fn elements(self) -> usize {
        match self {
            VectorWidth::V2 => 2,
            VectorWidth::V4 => 4,
            VectorWidth::V8 => 8,
        }
    }
}

impl TensorRank {
    /// Number of dimensions.
    pub const fn dimensions(self) -> usize {
        self as usize + 1
    }
}

impl MatrixCount {
    /// Number of matrices, which is the number of registers of a lane.
    pub const fn matrices(self) -> usize {
        match self {
            MatrixCount::X1 => 1,
            MatrixCount::X2 => 2,
            MatrixCount::X4 => 4,
        }
    }
}

//! Values: their types, and the operations that make them.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare};

use super::effects::Few;
use super::{Facts, RegionId, ValueId, VariableId};

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
    /// Smallest integer not below; floats.
    Ceil,
    /// The integer towards zero; floats.
    Trunc,
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
    /// The index of a loop: defined by its `Loop`.
    LoopIndex,
    /// A lane of a load: defined by its `Load`.
    Loaded,
    /// A value of another lane: defined by its `StatementKind::Shuffle`.
    Shuffled,
    /// Whether the block was the last one: defined by its `StatementKind::LastBlockTicket`.
    Arrived,
    /// What holds for some thread: defined by its `StatementKind::BarRedOr`.
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
    /// The same index integer, on which the lanes of each warp agree: then it may be in a register that they share.
    OfWarp(ValueId),
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
    pub fn operands(self) -> Few<ValueId, 3> {
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
            | Self::OfWarp(a)
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
        Few::new([a, b, c])
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

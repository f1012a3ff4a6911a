//! What a kernel computes: typed equations over indices, without a schedule.
//!
//! Nodes live in flat lists and refer to each other by position; a node refers only to earlier nodes of its own list,
//! except that an [`Index::Value`] may name any value that does not (transitively) contain it. Two kinds of expression
//! are kept apart:
//!
//! - an [`Index`] is a mathematical integer (no width, no wrapping; division rounds down);
//! - a [`Value`] has an [`ElementType`] and obeys the numeric contract: each operation rounds once to its type.
//!
//! The compiler's `program` room builds and checks this; lowering, the reference evaluator and the command line read
//! it.

mod operands;

pub use operands::is_read;

use crate::{ElementType, List, Text};

/// Position of a node in [`Algorithm::indices`].
pub type IndexId = u32;
/// Position of a node in [`Algorithm::values`].
pub type ValueId = u32;
/// Position of an axis in [`Algorithm::axes`].
pub type AxisId = u32;

/// A run of entries in one of the algorithm's pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First entry.
    pub start: u32,
    /// Number of entries.
    pub len: u32,
}

impl Run {
    /// The run as a range of positions.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// An index variable: an axis of an equation, or of a reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Name in the source.
    pub name: Text,
    /// Smallest value.
    pub lower: IndexId,
    /// One past the largest value; at most `lower` means that the axis is empty.
    pub upper: IndexId,
}

/// A mathematical integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// A literal.
    Literal(i64),
    /// A dimension of the kernel.
    Dim(u16),
    /// An index variable in scope.
    Axis(AxisId),
    /// a + b
    Add(IndexId, IndexId),
    /// a − b
    Sub(IndexId, IndexId),
    /// a · b
    Mul(IndexId, IndexId),
    /// ⌊a / b⌋, b > 0
    Div(IndexId, IndexId),
    /// a − b·⌊a / b⌋, b > 0
    Mod(IndexId, IndexId),
    /// min(a, b)
    Min(IndexId, IndexId),
    /// max(a, b)
    Max(IndexId, IndexId),
    /// An integer value used as an index (a gather).
    Value(ValueId),
}

impl Index {
    /// The two indices that it is computed from, if it is.
    pub fn sides(self) -> Option<[IndexId; 2]> {
        match self {
            Self::Add(a, b)
            | Self::Sub(a, b)
            | Self::Mul(a, b)
            | Self::Div(a, b)
            | Self::Mod(a, b)
            | Self::Min(a, b)
            | Self::Max(a, b) => Some([a, b]),
            Self::Literal(_) | Self::Dim(_) | Self::Axis(_) | Self::Value(_) => None,
        }
    }

    /// The indices that it is computed from.
    pub fn operands(self) -> impl Iterator<Item = IndexId> {
        self.sides().into_iter().flatten()
    }

    /// The same of other indices.
    #[must_use]
    pub fn of(self, mut other: impl FnMut(IndexId) -> IndexId) -> Self {
        match self {
            Self::Add(a, b) => Self::Add(other(a), other(b)),
            Self::Sub(a, b) => Self::Sub(other(a), other(b)),
            Self::Mul(a, b) => Self::Mul(other(a), other(b)),
            Self::Div(a, b) => Self::Div(other(a), other(b)),
            Self::Mod(a, b) => Self::Mod(other(a), other(b)),
            Self::Min(a, b) => Self::Min(other(a), other(b)),
            Self::Max(a, b) => Self::Max(other(a), other(b)),
            Self::Literal(_) | Self::Dim(_) | Self::Axis(_) | Self::Value(_) => self,
        }
    }

    /// Its value, given those of the two indices that it is computed from; none beyond 64 bits, by a divisor that is
    /// not positive, and of another kind of index.
    pub fn value(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Self::Add(..) => a.checked_add(b),
            Self::Sub(..) => a.checked_sub(b),
            Self::Mul(..) => a.checked_mul(b),
            // Divisors are positive, so that Euclid's division rounds down.
            Self::Div(..) => (b > 0).then(|| a.div_euclid(b)),
            Self::Mod(..) => (b > 0).then(|| a.rem_euclid(b)),
            Self::Min(..) => Some(a.min(b)),
            Self::Max(..) => Some(a.max(b)),
            Self::Literal(_) | Self::Dim(_) | Self::Axis(_) | Self::Value(_) => None,
        }
    }
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A tensor parameter: a position in [`KernelInfo::parameters`](crate::KernelInfo::parameters).
    Parameter(u16),
    /// A component of an earlier equation.
    Equation {
        /// Position in [`Algorithm::equations`].
        equation: u16,
        /// Which component of its tuple; 0 for an ordinary equation.
        component: u16,
    },
}

/// An operation with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// Negation; integers wrap.
    Neg,
    /// Logical not of a `bool`, bitwise complement of an integer.
    Not,
    /// Absolute value; of the least integer, itself.
    Abs,
    /// Largest integer not above.
    Floor,
    /// Smallest integer not below.
    Ceil,
    /// The integer towards zero.
    Trunc,
    /// Nearest integer, ties to even.
    Round,
    /// √x, correctly rounded.
    Sqrt,
    /// 1/√x
    Rsqrt,
    /// eˣ
    Exp,
    /// Natural logarithm.
    Log,
    /// Hyperbolic tangent.
    Tanh,
    /// Error function.
    Erf,
    /// Sine; radians.
    Sin,
    /// Cosine; radians.
    Cos,
    /// `approx::exp`
    ApproxExp,
    /// Two to the power of the operand, approximately.
    ApproxExp2,
    /// `approx::log`
    ApproxLog,
    /// `approx::sqrt`
    ApproxSqrt,
    /// `approx::rsqrt`
    ApproxRsqrt,
    /// `approx::tanh`
    ApproxTanh,
    /// `approx::sin`
    ApproxSin,
    /// `approx::cos`
    ApproxCos,
}

/// An operation with two operands of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// a + b
    Add,
    /// a − b
    Sub,
    /// a · b
    Mul,
    /// a / b: rounded to nearest for floats, truncated for integers (divisor proved non-zero).
    Div,
    /// Remainder of truncated division; integers only.
    Rem,
    /// Larger; NaN if either is NaN; +0 > −0.
    Max,
    /// Smaller; NaN if either is NaN; −0 < +0.
    Min,
    /// Larger; ignores a NaN operand.
    MaxNum,
    /// Smaller; ignores a NaN operand.
    MinNum,
    /// Logical or bitwise and.
    And,
    /// Logical or bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// a · 2ᵇ; see [`Self::shifted`].
    Shl,
    /// ⌊a / 2ᵇ⌋; see [`Self::shifted`].
    Shr,
}

impl Unary {
    /// The function, if it takes a float to an integer of its type. It is exact and monotone, keeps the sign of zeros,
    /// infinities and NaN, and gives −0 where a negative number comes to zero.
    pub fn rounding(self) -> Option<fn(f64) -> f64> {
        match self {
            Self::Floor => Some(f64::floor),
            Self::Ceil => Some(f64::ceil),
            Self::Trunc => Some(f64::trunc),
            Self::Round => Some(f64::round_ties_even),
            _ => None,
        }
    }
}

impl Binary {
    /// A value of an integer type shifted by `by`, before it wraps to the type; none for other operations. An amount
    /// below 0, or of at least the width of the type, shifts everything out: what is left is 0, or −1 of a negative
    /// value that is shifted right.
    pub fn shifted(self, element: ElementType, value: i128, by: i128) -> Option<i128> {
        let width = i128::from(8 * element.bytes());
        match self {
            Self::Shl if (0..width).contains(&by) => Some(value << by),
            Self::Shl => Some(0),
            Self::Shr if (0..width).contains(&by) => Some(value >> by),
            Self::Shr => Some(value >> 127),
            _ => None,
        }
    }
}

/// A comparison; false where an operand is NaN, except `Ne`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// a = b
    Eq,
    /// a ≠ b
    Ne,
    /// a < b
    Lt,
    /// a ≤ b
    Le,
    /// a > b
    Gt,
    /// a ≥ b
    Ge,
}

impl Compare {
    /// The same comparison of b with a.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            Self::Eq | Self::Ne => self,
        }
    }
}

/// A reduction's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Σ; empty: +0.
    Sum,
    /// Π; empty: 1.
    Prod,
    /// Largest; empty: least value of the type (−∞ for floats).
    Max,
    /// Smallest; empty: greatest value of the type (+∞ for floats).
    Min,
    /// Conjunction; empty: true.
    All,
    /// Disjunction; empty: false.
    Any,
    /// Index of the largest: smallest index among equals, first NaN wins; `u32`.
    ArgMax,
    /// Index of the smallest: smallest index among equals, first NaN wins; `u32`.
    ArgMin,
}

impl Reduction {
    /// The bits of a sum or an extreme without terms; none for other reductions, and for types that have none.
    pub fn empty(self, element: ElementType) -> Option<u64> {
        let bits = 8 * element.bytes();
        let ones = u64::MAX >> (64 - bits);
        let is_signed = element.is_signed_integer();
        match self {
            Self::Sum => Some(0),
            Self::Max | Self::Min if element.is_float() || element == ElementType::Bool => None,
            // The sign bit alone is the least number, all others are the greatest one.
            Self::Max => Some(if is_signed { 1 << (bits - 1) } else { 0 }),
            Self::Min => Some(if is_signed { ones >> 1 } else { ones }),
            _ => None,
        }
    }
}

/// How the terms of a `sum`, `prod` or `dot` of floats may be bracketed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Any bracketing and order, as tensor cores do it: see [`crate::dot`]. The term is the product of two factors,
    /// each of them converted from its type if that is not the type of the sum.
    Dot {
        /// The types of the factors.
        operands: [ElementType; 2],
        /// `promote n`: terms after which a short accumulator is added to the long one.
        promote: Option<u32>,
        /// `online dot`: partial sums may be rescaled, as those of [`Self::Online`].
        online: bool,
    },
    /// Any bracketing and order, the same in every run.
    Free,
    /// Terms in ascending order of the axes, one after the other.
    Ordered,
    /// Any, and it may differ from run to run.
    Unordered,
    /// Any, the same in every run, of partial sums that are rescaled: see [`crate::online`].
    Online,
}

impl Order {
    /// Whether partial sums may be rescaled: see [`crate::online`].
    pub const fn is_online(self) -> bool {
        matches!(self, Self::Online | Self::Dot { online: true, .. })
    }
}

/// A typed expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A literal: the bits of the element type, zero-extended.
    Literal(u64),
    /// A scalar parameter: a position in [`KernelInfo::parameters`](crate::KernelInfo::parameters).
    Scalar(u16),
    /// An index converted to the node's type, rounded to nearest for floats, wrapped for integers.
    FromIndex(IndexId),
    /// Comparison of two indices; `bool`.
    CompareIndex(Compare, IndexId, IndexId),
    /// One operand.
    Unary(Unary, ValueId),
    /// Two operands of the node's type.
    Binary(Binary, ValueId, ValueId),
    /// Comparison of two values of one type; `bool`.
    Compare(Compare, ValueId, ValueId),
    /// a·b + c, rounded once.
    Fma(ValueId, ValueId, ValueId),
    /// Condition, value if true, value if false. Only the chosen side is evaluated.
    Select(ValueId, ValueId, ValueId),
    /// Conversion to the node's type, as Rust's `as`: to nearest for floats, saturating from float to integer (NaN to
    /// 0), wrapping between integers.
    Cast(ValueId),
    /// An element of a tensor.
    Read {
        /// What is read.
        source: Source,
        /// Run of [`Algorithm::index_lists`], outermost dimension first.
        indices: Run,
        /// Value outside the tensor (any index outside its dimension); without it every index was proved inside.
        or: Option<ValueId>,
    },
    /// A reduction of `body` over axes.
    Reduce {
        /// The operation.
        op: Reduction,
        /// Bracketing allowed.
        order: Order,
        /// Run of [`Algorithm::axis_lists`], outermost first.
        axes: Run,
        /// The term.
        body: ValueId,
    },
    /// A general reduction with a state of one or more variables; its result is a tuple, read by [`Value::Component`].
    Fold {
        /// Run of [`Algorithm::axis_lists`], outermost first.
        axes: Run,
        /// Run of [`Algorithm::folds`]: one entry a state variable.
        states: Run,
    },
    /// A component of a fold's result.
    Component {
        /// A [`Value::Fold`].
        fold: ValueId,
        /// Which state variable.
        component: u16,
    },
    /// A variable bound by a fold: a position in the fold variables' numbering, see [`FoldState`].
    Variable(u32),
    /// A term that is combined with the element of the equation's tensor that lies at some indices, whatever else is;
    /// the whole value of a component. The element begins as what it was before the launch, or as
    /// [`KernelInfo::fill`](crate::KernelInfo::fill) says. Where an index is outside the tensor, there is no element,
    /// and nothing happens. Terms come in any order.
    Scatter {
        /// How they are combined: a sum, or an extreme. None: the term takes the place of what was there, and no two
        /// terms belong to one element, which is a promise about the data.
        op: Option<Reduction>,
        /// Run of [`Algorithm::index_lists`], outermost dimension first.
        indices: Run,
        /// The term.
        term: ValueId,
    },
}

/// One state variable of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldState {
    /// Initial value; a left and right identity of the merge.
    pub init: ValueId,
    /// Number of the variable that stands for this state in `step`.
    pub variable: u32,
    /// Next value, from the state variables and the axes.
    pub step: ValueId,
    /// Number of the variable that stands for the left part's state in `merge`.
    pub left: u32,
    /// Number of the variable that stands for the right part's state in `merge`.
    pub right: u32,
    /// The two parts combined, if the source has a `merge`.
    pub merge: Option<ValueId>,
}

/// One equation: `name[axes] = value`, or `(a, b)[axes] = fold(…)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equation {
    /// Run of [`Algorithm::components`]: one for an ordinary equation.
    pub components: Run,
    /// Run of [`Algorithm::axis_lists`], outermost first. Of a [`Value::Scatter`] those that have a term for each of
    /// their values.
    pub axes: Run,
}

/// One tensor that an equation defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Name in the source.
    pub name: Text,
    /// Its value at the equation's axes.
    pub value: ValueId,
    /// The tensor parameter that receives it; none for an intermediate.
    pub parameter: Option<u16>,
}

/// The equations of a kernel, each after those it reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithm {
    /// Index expressions.
    pub indices: List<Index>,
    /// Value expressions.
    pub values: List<Value>,
    /// Element type of each value (of a fold: of its first state variable).
    pub types: List<ElementType>,
    /// Index variables.
    pub axes: List<Axis>,
    /// Pool of index positions, for reads.
    pub index_lists: List<IndexId>,
    /// Pool of axis positions, for equations and reductions.
    pub axis_lists: List<AxisId>,
    /// Pool of fold states.
    pub folds: List<FoldState>,
    /// Pool of components.
    pub components: List<Component>,
    /// The equations, in dependency order.
    pub equations: List<Equation>,
}

//! The syntax tree of `schedule!`: one type per production of the grammar in [`super`], a span on every node.
//!
//! The tree holds what was written and nothing else: no name is resolved, no size is computed, constructs that
//! later rooms refuse are here all the same. Parentheses leave no node; the span of a parenthesised expression
//! includes them.

use super::Span;

/// A name as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The identifier; a raw identifier keeps its `r#`.
    pub text: String,
    /// Its token.
    pub span: Span,
}

/// A value with the span it was written at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub span: Span,
}

/// Everything inside one `schedule! { … }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The kernels, in source order.
    pub kernels: Vec<Kernel>,
}

/// `pub kernel NAME(inputs) -> (outputs) where facts { items }`
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Doc comments and other attributes, for the generated struct.
    pub attributes: Vec<Attribute>,
    /// The visibility (`pub`, `pub(crate)`); `None` if it is private.
    pub visibility: Option<Verbatim>,
    /// The name of the kernel.
    pub name: Name,
    /// Parameters before the arrow, `inout` ones included.
    pub inputs: Vec<Param>,
    /// Parameters after the arrow.
    pub outputs: Vec<Param>,
    /// The `where` clause.
    pub facts: Vec<Fact>,
    /// The body.
    pub items: Vec<Item>,
    /// From the visibility or the keyword `kernel` to the end of the header (before the body).
    pub header: Span,
    /// The whole kernel.
    pub span: Span,
}

/// Rust tokens that are passed through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verbatim {
    /// Their text.
    pub text: String,
    /// The tokens, for [`super::TokenBuffer::to_stream`].
    pub span: Span,
}

/// `#[name …]`; a doc comment is `#[doc = "…"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The first segment of its path.
    pub name: Name,
    /// The whole attribute as text.
    pub text: String,
    /// The text of a doc comment.
    pub doc: Option<String>,
    /// What stands between the parentheses of `#[name(…)]`, as single identifiers; other tokens are left out.
    pub words: Vec<Name>,
    /// From `#` to `]`.
    pub span: Span,
}

/// `[inout] name: type`
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Doc comments and other attributes, for the generated field.
    pub attributes: Vec<Attribute>,
    /// The keyword `inout`, if it is there.
    pub inout: Option<Span>,
    /// The name.
    pub name: Name,
    /// The type.
    pub ty: Type,
    /// The whole parameter without its attributes.
    pub span: Span,
}

/// `f32`, `f32[]`, `f32[M, N]`, `f32[M, N; ld, 1]`
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// The element type.
    pub element: Spanned<ElementType>,
    /// The shape; `None` for a scalar passed by value.
    pub shape: Option<Shape>,
    /// The whole type.
    pub span: Span,
}

/// What stands between the brackets of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Sizes, outermost first.
    pub dims: Vec<Dim>,
    /// Strides in elements, one per size; `None` means contiguous.
    pub strides: Option<Vec<Expr>>,
    /// With the brackets.
    pub span: Span,
}

/// One size of a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Dim {
    /// The size.
    pub size: Expr,
    /// The `?` of a size that may be broadcast at run time.
    pub broadcast: Option<Span>,
}

/// One fact of a `where` clause: `N % 8 == 0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Left side.
    pub lhs: Expr,
    /// The comparison; one of the six comparison operators.
    pub op: Spanned<BinaryOp>,
    /// Right side.
    pub rhs: Expr,
    /// The whole fact.
    pub span: Span,
}

/// One statement of a kernel's body.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `z[i] = …;`
    Equation(Equation),
    /// `launch …;`
    Launch(Launch),
    /// `schedule z … { … }`
    Schedule(Schedule),
    /// `stage xs[i, j] = x … { … }`
    Stage(StagedCopy),
    /// `inline b;`
    Inline(Inline),
    /// `unit pair { … }`
    Unit(Unit),
    /// `tune TILE in [64, 128];`
    Tune(Tune),
    /// `pass first { … }`
    Pass(Pass),
}

impl Item {
    /// The whole statement.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Item::Equation(item) => item.span,
            Item::Launch(item) => item.span,
            Item::Schedule(item) => item.span,
            Item::Stage(item) => item.span,
            Item::Inline(item) => item.span,
            Item::Unit(item) => item.span,
            Item::Tune(item) => item.span,
            Item::Pass(item) => item.span,
        }
    }
}

/// `z[i, j in 0..W] = value;` or `(mean, m2)[i] = value;`
#[derive(Clone, Debug, PartialEq)]
pub struct Equation {
    /// The tensors defined: one, or several for a tuple.
    pub targets: Vec<Name>,
    /// The left-hand indices.
    pub axes: Vec<AxisDecl>,
    /// The right-hand side.
    pub value: Expr,
    /// The left-hand side.
    pub head: Span,
    /// The whole equation with its semicolon.
    pub span: Span,
}

/// An index where it is introduced: `i`, or `i in 0..H`.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisDecl {
    /// Its name.
    pub name: Name,
    /// Its domain, if written.
    pub range: Option<Range>,
    /// The whole declaration.
    pub span: Span,
}

/// `start..end` or `start..=end`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// First value.
    pub start: Expr,
    /// Last value, or the one after it.
    pub end: Expr,
    /// Whether `end` itself belongs to the range.
    pub inclusive: bool,
    /// The whole range.
    pub span: Span,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where, enclosing parentheses included.
    pub span: Span,
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `4`, `0xff`, `1_000u32`
    Int(IntLiteral),
    /// `0.5`, `1e-3f32`, `0.5bf16`
    Float(FloatLiteral),
    /// `true`, `false`
    Bool(bool),
    /// `inf`, `nan`
    Constant(Constant),
    /// A size, an axis, a scalar parameter, or a name bound by `fold`.
    Name(Name),
    /// `x[i, j + 1]`, with or without `or …`
    Read(Read),
    /// `-a`, `!a`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`
    Binary(Box<Expr>, Spanned<BinaryOp>, Box<Expr>),
    /// `a as f32`
    Cast(Box<Expr>, Spanned<ElementType>),
    /// `if c { a } else { b }`
    If(Box<IfExpr>),
    /// `exp(a)`, `approx::exp(a)`, `max(a, b)`
    Call(Call),
    /// `sum(|k| …)`
    Reduction(Box<Reduction>),
    /// `fold(|j| init …, step …, merge …)`
    Fold(Box<Fold>),
    /// `(a, b)`
    Tuple(Vec<Expr>),
}

/// An integer literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntLiteral {
    /// Its value; the sign is a [`UnaryOp::Neg`] around it.
    pub value: u64,
    /// The integer type of its suffix.
    pub suffix: Option<ElementType>,
}

/// A floating-point literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatLiteral {
    /// Digits, point and exponent, as `str::parse` takes them: round it once, to the type that context gives.
    pub digits: String,
    /// The floating type of its suffix.
    pub suffix: Option<ElementType>,
}

/// The named constants; like a literal, typed by context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// `inf`
    Infinity,
    /// `nan`
    Nan,
}

/// A read of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The tensor.
    pub tensor: Name,
    /// One index per axis.
    pub indices: Vec<Expr>,
    /// The value outside the tensor: what follows `or`.
    pub otherwise: Option<Box<Expr>>,
}

/// `if condition { then } else { otherwise }`
#[derive(Clone, Debug, PartialEq)]
pub struct IfExpr {
    /// The condition.
    pub condition: Expr,
    /// Value where it holds.
    pub then: Expr,
    /// Value elsewhere; an `else if` is an [`ExprKind::If`] here.
    pub otherwise: Expr,
}

/// A call of a built-in function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// `approx` in `approx::exp`.
    pub namespace: Option<Name>,
    /// The function.
    pub function: Name,
    /// The arguments.
    pub args: Vec<Expr>,
}

/// `[ordered | unordered] sum(|k, l in 0..3| body)`
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction {
    /// The operation.
    pub kind: Spanned<ReductionKind>,
    /// `ordered` or `unordered`, if written.
    pub order: Option<Spanned<ReductionOrder>>,
    /// The axes reduced over.
    pub axes: Vec<AxisDecl>,
    /// The term.
    pub body: Expr,
    /// The promotion interval of a `dot`: `dot(|k| …, promote 128)`.
    pub promote: Option<Expr>,
}

/// `fold(|j| init a, step p => b, merge (q, r) => c)`
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// The axes folded over.
    pub axes: Vec<AxisDecl>,
    /// The first state.
    pub init: Expr,
    /// The name or names of the state in `step`.
    pub step_state: Pattern,
    /// The next state.
    pub step: Expr,
    /// The two states in `merge`, when written.
    pub merge: Option<FoldMerge>,
}

/// `merge (left, right) => value`
#[derive(Clone, Debug, PartialEq)]
pub struct FoldMerge {
    /// The state of the earlier part.
    pub left: Pattern,
    /// The state of the later part.
    pub right: Pattern,
    /// The combined state.
    pub value: Expr,
}

/// A name, or a tuple of patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `m`
    Name(Name),
    /// `(m, s)`
    Tuple(Vec<Pattern>, Span),
}

impl Pattern {
    /// Where it was written.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Pattern::Name(name) => name.span,
            Pattern::Tuple(_, span) => *span,
        }
    }
}

/// `launch cluster(2), threads(256), persistent;`
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Its items, in the order written.
    pub items: Vec<LaunchItem>,
    /// The whole statement.
    pub span: Span,
}

/// One item of `launch`.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchItem {
    /// What it says.
    pub kind: LaunchItemKind,
    /// The whole item.
    pub span: Span,
}

/// The items of `launch`.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchItemKind {
    /// `cluster(2)`: CTAs per cluster.
    Cluster(Expr),
    /// `threads(256)`: threads per CTA.
    Threads(Expr),
    /// `persistent`
    Persistent,
    /// `dependent`: programmatic dependent launch.
    Dependent,
    /// `roles { … }`
    Roles(Vec<Role>),
}

/// `math: 2 warpgroup regs(232)`
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// Its name.
    pub name: Name,
    /// How many units; one if not written.
    pub count: Option<Expr>,
    /// The unit.
    pub unit: Name,
    /// Registers per thread, if written.
    pub registers: Option<Expr>,
    /// The whole role.
    pub span: Span,
}

/// `schedule STAGE clauses { ops }`
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The stage of an equation.
    pub stage: Name,
    /// Place, attach point and the like.
    pub clauses: Clauses,
    /// The ops, in order.
    pub ops: Vec<Op>,
    /// The statement without its ops.
    pub head: Span,
    /// The whole statement.
    pub span: Span,
}

/// `stage NAME[axes] = TENSOR clauses { ops }`
#[derive(Clone, Debug, PartialEq)]
pub struct StagedCopy {
    /// The copy.
    pub name: Name,
    /// Its axes.
    pub axes: Vec<Name>,
    /// The tensor copied.
    pub source: Name,
    /// Place, attach point and the like.
    pub clauses: Clauses,
    /// The ops, in order.
    pub ops: Vec<Op>,
    /// The statement without its ops.
    pub head: Span,
    /// The whole statement.
    pub span: Span,
}

/// What stands between a stage's name and its ops; each clause at most once, in any order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clauses {
    /// `in shared`
    pub place: Option<Spanned<Place>>,
    /// `per warpgroup`: the unit that owns one instance.
    pub per: Option<Name>,
    /// `at c.ns`
    pub at: Option<AxisRef>,
    /// `ring(4)`: the number of buffers.
    pub ring: Option<Spanned<Box<Expr>>>,
    /// `via tma`
    pub via: Option<Spanned<Engine>>,
    /// `by load`: the role.
    pub by: Option<Name>,
}

/// `STAGE.AXIS`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisRef {
    /// The stage.
    pub stage: Name,
    /// Its axis.
    pub axis: Name,
    /// Both.
    pub span: Span,
}

/// `inline STAGE;`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inline {
    /// The stage.
    pub stage: Name,
    /// The whole statement.
    pub span: Span,
}

/// `unit NAME { domain: […], box: […] }`
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// Its name.
    pub name: Name,
    /// The domain over which the threads are laid out.
    pub domain: Vec<Expr>,
    /// The part of it that is one unit, as long as `domain`.
    pub shape: Vec<Expr>,
    /// The whole statement.
    pub span: Span,
}

/// `tune NAME in [64, 128];`
#[derive(Clone, Debug, PartialEq)]
pub struct Tune {
    /// The name that stands for one of the values.
    pub name: Name,
    /// The alternatives.
    pub values: Vec<Expr>,
    /// The whole statement.
    pub span: Span,
}

/// `pass NAME { items }`: one of several kernels launched in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// Its name.
    pub name: Name,
    /// Its items.
    pub items: Vec<Item>,
    /// The whole statement.
    pub span: Span,
}

/// One schedule op.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// Its keyword.
    pub keyword: Span,
    /// The whole op without its semicolon.
    pub span: Span,
}

/// The schedule ops, with their arguments in the order written.
#[derive(Clone, Debug, PartialEq)]
pub enum OpKind {
    /// `split axis by factor -> outer, inner` or `split axis into factor -> outer, inner`
    Split {
        /// The axis split.
        axis: Name,
        /// Whether the factor is the inner or the outer extent.
        side: SplitSide,
        /// The factor.
        factor: Expr,
        /// Result of lower frequency.
        outer: Name,
        /// Result of higher frequency.
        inner: Name,
    },
    /// `merge i, j -> into`
    Merge {
        /// The axes, outermost first.
        axes: Vec<Name>,
        /// The result.
        into: Name,
    },
    /// `reorder i, j, k`
    Reorder {
        /// The final loop order.
        axes: Vec<Name>,
    },
    /// `resize i by (left, right) -> into`
    Resize {
        /// The axis.
        axis: Name,
        /// Elements added before.
        left: Expr,
        /// Elements added after.
        right: Expr,
        /// The result.
        into: Name,
    },
    /// `swizzle x, y by xor -> x_into, y_into`
    Swizzle {
        /// The side that stays.
        x: Name,
        /// The side that changes.
        y: Name,
        /// `xor`.
        function: Spanned<SwizzleFunction>,
        /// Result for `x`.
        x_into: Name,
        /// Result for `y`.
        y_into: Name,
    },
    /// `bind i, j: [8] unit [2..5] [raster(i: 8)] [alternate]`
    Bind {
        /// The axes.
        axes: Vec<Name>,
        /// The factor of a scaled unit.
        scale: Option<Expr>,
        /// The unit: built in, or defined by `unit`.
        unit: Name,
        /// A range of the units.
        range: Option<Range>,
        /// Axes grouped in the order of the grid, with the size of a group.
        raster: Vec<(Name, Expr)>,
        /// The keyword `alternate`.
        alternate: Option<Span>,
    },
    /// `vectorize i`
    Vectorize {
        /// The axis.
        axis: Name,
    },
    /// `unroll i [by n]`
    Unroll {
        /// The axis.
        axis: Name,
        /// Iterations per unrolled body.
        by: Option<Expr>,
    },
    /// `reduce i, j [by warp]`
    Reduce {
        /// The bound reduction axes.
        axes: Vec<Name>,
        /// The level.
        by: Option<Spanned<ReduceBy>>,
    },
    /// `like S` or `like S.A`
    Like {
        /// The stage whose distribution is taken.
        stage: Name,
        /// The operand of it.
        operand: Option<Name>,
    },
    /// `box axis by factor -> coordinate, inner`: the boxing split.
    Box {
        /// The axis split.
        axis: Name,
        /// The box size.
        factor: Expr,
        /// The coordinate axis.
        coordinate: Name,
        /// The box axis.
        inner: Name,
    },
    /// `box (i1, i2; i3, i4)`: compositing.
    BoxRun {
        /// The coordinate axes.
        coordinates: Vec<Name>,
        /// The box axes.
        boxed: Vec<Name>,
    },
    /// `tile axis by factor -> tile, stride`: the striding split.
    Tile {
        /// The axis split.
        axis: Name,
        /// The element stride.
        factor: Expr,
        /// The tile axis.
        tile: Name,
        /// The stride axis.
        stride: Name,
    },
    /// `layout [a, b pad 8] [swizzle 128]`
    Layout {
        /// The allocation domain, outermost first.
        axes: Vec<LayoutAxis>,
        /// The swizzle span in bytes.
        swizzle: Option<Expr>,
    },
    /// `multicast S.AXIS [by i]`
    Multicast {
        /// The cluster axis.
        axis: AxisRef,
        /// The axis of which each CTA loads one slice.
        by: Option<Name>,
    },
    /// `mma (m, n, k) by engine [inflight(n)]`
    Mma {
        /// The axes of the instruction's rows, columns and contraction.
        m: Name,
        /// Columns.
        n: Name,
        /// Contraction.
        k: Name,
        /// The instruction family.
        engine: Spanned<MmaEngine>,
        /// Groups in flight.
        inflight: Option<Expr>,
    },
    /// `fill zero` or `fill any`
    Fill {
        /// The correctness model demanded.
        model: Spanned<FillModel>,
    },
    /// `l2 promote(128)`, `l2 evict_first`, `l2 evict_last`
    L2 {
        /// The hint.
        hint: L2Hint,
    },
    /// `online source -> targets over axis`
    Online {
        /// The running reduction.
        source: Name,
        /// The reductions rescaled by it.
        targets: Vec<Name>,
        /// The axis of the pass.
        axis: Name,
    },
}

/// Which result of a split has the factor as its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitSide {
    /// `by`: the inner one.
    Inner,
    /// `into`: the outer one.
    Outer,
}

/// One axis of a `layout`.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutAxis {
    /// The axis.
    pub name: Name,
    /// Elements of padding after it.
    pub pad: Option<Expr>,
}

/// A cache hint.
#[derive(Clone, Debug, PartialEq)]
pub enum L2Hint {
    /// `promote(bytes)`
    Promote(Expr),
    /// `evict_first`
    EvictFirst,
    /// `evict_last`
    EvictLast,
}

/// Declares an enum whose values are words of the language, with the table that parser, printer and suggestions read.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_meta])* $variant,)* }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// The spelling of every value, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                Self::WORDS[self as usize]
            }

            /// The value spelled so.
            #[must_use]
            pub fn from_word(word: &str) -> Option<$name> {
                let index = Self::WORDS.iter().position(|&known| known == word)?;
                Some(Self::ALL[index])
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Element types.
    ElementType {
        /// IEEE binary64.
        F64 = "f64",
        /// IEEE binary32.
        F32 = "f32",
        /// binary32 storage, 10 bits of mantissa used by tensor cores.
        Tf32 = "tf32",
        /// IEEE binary16.
        F16 = "f16",
        /// The upper half of a binary32.
        Bf16 = "bf16",
        /// 8-bit float, 4 exponent bits, no infinity.
        E4m3 = "e4m3",
        /// 8-bit float, 5 exponent bits.
        E5m2 = "e5m2",
        /// Signed 64-bit integer.
        I64 = "i64",
        /// Signed 32-bit integer.
        I32 = "i32",
        /// Signed 16-bit integer.
        I16 = "i16",
        /// Signed 8-bit integer.
        I8 = "i8",
        /// Unsigned 64-bit integer.
        U64 = "u64",
        /// Unsigned 32-bit integer.
        U32 = "u32",
        /// Unsigned 16-bit integer.
        U16 = "u16",
        /// Unsigned 8-bit integer.
        U8 = "u8",
        /// One byte, 0 or 1.
        Bool = "bool",
    }
}

impl ElementType {
    /// Whether it is a floating type.
    #[must_use]
    pub const fn is_float(self) -> bool {
        use ElementType::{Bf16, E4m3, E5m2, F16, F32, F64, Tf32};
        matches!(self, F64 | F32 | Tf32 | F16 | Bf16 | E4m3 | E5m2)
    }

    /// Whether it is an integer type; `bool` is not.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, ElementType::Bool)
    }
}

words! {
    /// Prefix operators.
    UnaryOp {
        /// Arithmetic negation.
        Neg = "-",
        /// Logical negation.
        Not = "!",
    }
}

words! {
    /// Infix operators.
    BinaryOp {
        /// Product.
        Mul = "*",
        /// Quotient: floor in an index, truncation in a value.
        Div = "/",
        /// Remainder of that quotient.
        Rem = "%",
        /// Sum.
        Add = "+",
        /// Difference.
        Sub = "-",
        /// Equality.
        Eq = "==",
        /// Inequality.
        Ne = "!=",
        /// Less.
        Lt = "<",
        /// Less or equal.
        Le = "<=",
        /// Greater.
        Gt = ">",
        /// Greater or equal.
        Ge = ">=",
        /// Logical and.
        And = "&&",
        /// Logical or.
        Or = "||",
    }
}

impl BinaryOp {
    /// Binding strength, larger is tighter; all are left associative, comparisons do not associate at all.
    #[must_use]
    pub const fn precedence(self) -> u8 {
        match self {
            BinaryOp::Or => 1,
            BinaryOp::And => 2,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => 3,
            BinaryOp::Add | BinaryOp::Sub => 4,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => 5,
        }
    }

    /// Whether it compares.
    #[must_use]
    pub const fn is_comparison(self) -> bool {
        self.precedence() == 3
    }
}

words! {
    /// The reductions.
    ReductionKind {
        /// Sum, from +0.
        Sum = "sum",
        /// Product, from 1.
        Prod = "prod",
        /// Greatest value.
        Max = "max",
        /// Least value.
        Min = "min",
        /// Logical and.
        All = "all",
        /// Logical or.
        Any = "any",
        /// Smallest index of a greatest value.
        Argmax = "argmax",
        /// Smallest index of a least value.
        Argmin = "argmin",
        /// Sum of products, open to tensor cores.
        Dot = "dot",
        /// Prefix sums.
        Scan = "scan",
    }
}

words! {
    /// How free the order of a `sum` is.
    ReductionOrder {
        /// In index order.
        Ordered = "ordered",
        /// Any, and it may differ from run to run.
        Unordered = "unordered",
    }
}

words! {
    /// Where a stage lives.
    Place {
        /// Device memory.
        Global = "global",
        /// Shared memory.
        Shared = "shared",
        /// Registers.
        Registers = "registers",
    }
}

words! {
    /// What moves a staged copy.
    Engine {
        /// The tensor memory accelerator.
        Tma = "tma",
        /// Asynchronous copies by threads.
        CpAsync = "cp_async",
    }
}

words! {
    /// The function of a `swizzle`.
    SwizzleFunction {
        /// Exclusive or.
        Xor = "xor",
    }
}

words! {
    /// The level at which a `reduce` combines.
    ReduceBy {
        /// Lanes of a warp.
        Warp = "warp",
        /// Threads of a CTA.
        Cta = "cta",
        /// CTAs of a cluster.
        Cluster = "cluster",
        /// CTAs of the grid, by workspace and ticket.
        Grid = "grid",
        /// Atomic operations on the result.
        Atomic = "atomic",
    }
}

words! {
    /// Tensor-core instruction families.
    MmaEngine {
        /// Warpgroup, asynchronous, operands in shared memory.
        Wgmma = "wgmma",
        /// Warp, operands in registers.
        MmaSync = "mma_sync",
    }
}

words! {
    /// The correctness model of a staged copy, demanded by hand.
    FillModel {
        /// Holes are zero.
        Zero = "zero",
        /// Holes may hold anything.
        Any = "any",
    }
}

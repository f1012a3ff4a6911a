//! The syntax tree of `schedule!`: one type per production of the grammar in [`crate::syntax`], a span on every node.
//!
//! The tree holds what was written and nothing else: no name is resolved, no size is computed, constructs that
//! later rooms refuse are here all the same. Parentheses leave no node; the span of a parenthesised expression
//! includes them.

mod expr;
mod op;
mod scatter;
mod words;

pub use expr::{
    AxisDecl, Call, Constant, Expr, ExprKind, FloatLiteral, Fold, FoldMerge, IfExpr, IntLiteral, Pattern, Range, Read,
    Reduction,
};
pub use op::{BlockOrder, L2Hint, LayoutAxis, Op, OpKind, SplitSide};
pub use scatter::{Scatter, Update};
pub use tilewright_kernel::ElementType;
pub use words::{
    BinaryOp, Engine, FillModel, MmaEngine, Place, ReduceBy, ReductionKind, ReductionOrder, RegionKind,
    SwizzleFunction, UnaryOp,
};
pub(crate) use words::{OPS, STATEMENTS};

use super::Span;

/// A name as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The identifier; a raw identifier keeps its `r#`.
    pub text: String,
    /// Its token.
    pub span: Span,
}

impl Name {
    /// The axis that these parts of a split are made of.
    #[must_use]
    pub fn rest(parts: &[Name]) -> Name {
        let text: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        Name { text: text.join("·"), span: parts.first().map_or(Span::UNKNOWN, |first| first.span) }
    }

    /// Whether it is such an axis.
    #[must_use]
    pub fn is_rest(&self) -> bool {
        self.text.contains('·')
    }
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
    /// The whole kernel without its attributes.
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
    /// The text of a doc comment; none where a macro of Rust has it.
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
    /// `tune TILE in [64, 128] = (64) by "…";`
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

    /// The stage that the statement schedules, and its ops.
    #[must_use]
    pub fn scheduled(&self) -> Option<(&Name, &[Op])> {
        match self {
            Item::Schedule(item) => Some((&item.stage, &item.ops)),
            Item::Stage(item) => Some((&item.name, &item.ops)),
            _ => None,
        }
    }

    /// Every number that the schedule says, once: sizes of `launch`, clauses and ops, domains of units. An expression
    /// of an equation is none.
    pub fn numbers_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        match self {
            Item::Equation(_) | Item::Inline(_) | Item::Tune(_) => {}
            Item::Launch(launch) => launch.items.iter_mut().for_each(|item| item.kind.numbers_mut(each)),
            Item::Schedule(Schedule { stage: _, clauses, ops, head: _, span: _ })
            | Item::Stage(StagedCopy { name: _, axes: _, source: _, clauses, ops, head: _, span: _ }) => {
                let Clauses { place: _, per: _, at: _, ring, via: _, by: _ } = clauses;
                ring.iter_mut().for_each(|ring| each(&mut ring.value));
                ops.iter_mut().for_each(|op| op.kind.numbers_mut(each));
            }
            Item::Unit(Unit { name: _, domain, shape, span: _ }) => domain.iter_mut().chain(shape).for_each(each),
            Item::Pass(pass) => pass.items.iter_mut().for_each(|item| item.numbers_mut(each)),
        }
    }
}

/// `z[i, j in 0..W] = value;` or `(mean, m2)[i] = value;`
#[derive(Clone, Debug, PartialEq)]
pub struct Equation {
    /// The tensors defined: one, or several for a tuple.
    pub targets: Vec<Name>,
    /// The left-hand indices; of a scatter those that are names alone.
    pub axes: Vec<AxisDecl>,
    /// What else stands on the left of a scatter.
    pub scatter: Option<Scatter>,
    /// The right-hand side.
    pub value: Expr,
    /// The left-hand side.
    pub head: Span,
    /// The whole equation with its semicolon.
    pub span: Span,
}

impl Equation {
    /// Indices on the left.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.scatter.as_ref().map_or(self.axes.len(), |scatter| scatter.indices.len())
    }

    /// The expressions in it, but for ranges: the right-hand side, and the left-hand indices of a scatter.
    pub fn parts(&self) -> impl Iterator<Item = &Expr> {
        self.scatter.iter().flat_map(|scatter| &scatter.indices).chain([&self.value])
    }

    /// The same, to be changed.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.scatter.iter_mut().flat_map(|scatter| &mut scatter.indices).chain([&mut self.value])
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

impl LaunchItemKind {
    /// See [`Item::numbers_mut`].
    fn numbers_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        match self {
            LaunchItemKind::Cluster(number) | LaunchItemKind::Threads(number) => each(number),
            LaunchItemKind::Persistent | LaunchItemKind::Dependent => {}
            LaunchItemKind::Roles(roles) => {
                for Role { name: _, count, unit: _, alternate: _, registers, span: _ } in roles {
                    count.iter_mut().chain(registers).for_each(&mut *each);
                }
            }
        }
    }

    /// The word it starts with.
    #[must_use]
    pub fn keyword(&self) -> &'static str {
        match self {
            LaunchItemKind::Cluster(_) => "cluster",
            LaunchItemKind::Threads(_) => "threads",
            LaunchItemKind::Persistent => "persistent",
            LaunchItemKind::Dependent => "dependent",
            LaunchItemKind::Roles(_) => "roles",
        }
    }
}

/// `math: 2 warpgroup alternate regs(232)`
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// Its name.
    pub name: Name,
    /// How many units; one if not written.
    pub count: Option<Expr>,
    /// The unit.
    pub unit: Name,
    /// The keyword `alternate`.
    pub alternate: Option<Span>,
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

/// `tune NAME in [64, 128], NAME in [2, 3] = (64, 3) by "…";`
#[derive(Clone, Debug, PartialEq)]
pub struct Tune {
    /// The constants of the schedule.
    pub constants: Vec<Candidates>,
    /// What was chosen, if it was written down.
    pub record: Option<TuneRecord>,
    /// The whole statement.
    pub span: Span,
}

/// `NAME in [64, 128]`
#[derive(Clone, Debug, PartialEq)]
pub struct Candidates {
    /// The name that stands for one of the values.
    pub name: Name,
    /// The values.
    pub values: Vec<Expr>,
    /// From the name to the bracket.
    pub span: Span,
}

/// `= (64, 3) by "…"`
#[derive(Clone, Debug, PartialEq)]
pub struct TuneRecord {
    /// A value of each constant.
    pub values: Vec<Expr>,
    /// The text after `by`: what chose them, and a digest.
    pub by: Spanned<String>,
    /// From `=` to the text.
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

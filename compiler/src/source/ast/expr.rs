//! The syntax tree of expressions.

use super::{BinaryOp, ElementType, Name, ReductionKind, ReductionOrder, Spanned, UnaryOp};
use crate::source::Span;

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

impl Expr {
    /// Calls `each` for this expression and everything in it, itself first.
    pub fn visit<'a>(&'a self, each: &mut dyn FnMut(&'a Expr)) {
        each(self);
        match &self.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Constant(_) | ExprKind::Name(_) => {}
            ExprKind::Read(read) => {
                read.indices.iter().chain(read.otherwise.as_deref()).for_each(|part| part.visit(each));
            }
            ExprKind::Unary(_, inner) | ExprKind::Cast(inner, _) => inner.visit(each),
            ExprKind::Binary(left, _, right) => [left, right].into_iter().for_each(|part| part.visit(each)),
            ExprKind::If(choice) => {
                [&choice.condition, &choice.then, &choice.otherwise].into_iter().for_each(|part| part.visit(each));
            }
            ExprKind::Call(call) => call.args.iter().for_each(|part| part.visit(each)),
            ExprKind::Reduction(reduction) => {
                reduction.axes.iter().flat_map(AxisDecl::ends).for_each(|end| end.visit(each));
                reduction.body.visit(each);
            }
            ExprKind::Fold(fold) => {
                fold.axes.iter().flat_map(AxisDecl::ends).for_each(|end| end.visit(each));
                [&fold.init, &fold.step].into_iter().for_each(|part| part.visit(each));
                fold.merge.iter().for_each(|merge| merge.value.visit(each));
            }
            ExprKind::Tuple(parts) => parts.iter().for_each(|part| part.visit(each)),
        }
    }

    /// Whether a tensor is read in it.
    #[must_use]
    pub fn reads_a_tensor(&self) -> bool {
        let mut found = false;
        self.visit(&mut |part| found |= matches!(part.kind, ExprKind::Read(_)));
        found
    }

    /// Every expression in this one, itself first.
    pub fn visit_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        each(self);
        let mut parts: Vec<&mut Expr> = Vec::new();
        match &mut self.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Constant(_) | ExprKind::Name(_) => {}
            ExprKind::Read(Read { tensor: _, indices, otherwise }) => {
                parts.extend(indices);
                parts.extend(otherwise.as_deref_mut());
            }
            ExprKind::Unary(_, inner) | ExprKind::Cast(inner, _) => parts.push(inner),
            ExprKind::Binary(left, _, right) => parts.extend([&mut **left, &mut **right]),
            ExprKind::If(choice) => {
                let IfExpr { condition, then, otherwise } = &mut **choice;
                parts.extend([condition, then, otherwise]);
            }
            ExprKind::Call(Call { namespace: _, function: _, args }) => parts.extend(args),
            ExprKind::Reduction(reduction) => {
                let Reduction { kind: _, order: _, axes, body, promote } = &mut **reduction;
                parts.extend(axes.iter_mut().flat_map(AxisDecl::ends_mut));
                parts.push(body);
                parts.extend(promote);
            }
            ExprKind::Fold(fold) => {
                let Fold { axes, init, step_state: _, step, merge } = &mut **fold;
                parts.extend(axes.iter_mut().flat_map(AxisDecl::ends_mut));
                parts.extend([init, step]);
                parts.extend(merge.as_mut().map(|merge| &mut merge.value));
            }
            ExprKind::Tuple(all) => parts.extend(all),
        }
        parts.into_iter().for_each(|part| part.visit_mut(each));
    }
}

impl AxisDecl {
    /// The ends of its range.
    pub fn ends(&self) -> impl Iterator<Item = &Expr> {
        self.range.iter().flat_map(|range| [&range.start, &range.end])
    }

    /// The ends of its range.
    pub fn ends_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.range.iter_mut().flat_map(|Range { start, end, inclusive: _, span: _ }| [start, end])
    }
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

/// `[ordered | unordered | online] sum(|k, l in 0..3| body)`
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction {
    /// The operation.
    pub kind: Spanned<ReductionKind>,
    /// `ordered`, `unordered` or `online`, if written.
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

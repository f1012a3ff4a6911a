//! Index expressions: mathematical integers over literals, sizes and axes with `+ - *` and floor `/ %`.
//!
//! Quasi-affine: one factor of a product, and every divisor, is a constant of the launch (literals and sizes). Anything
//! else with an integer type may stand in an index too and makes the read a gather, which needs `or`.

use tilewright_kernel::algorithm::{Index, IndexId, ValueId};

use super::Obligation;
use super::equations::{AxesOf, Context, Hint};
use super::names::{Global, Local, plain};
use crate::diag::codes::{BadIndex, IndexProblem, NotAffine, UnguardedGather};
use crate::extent::Expr;
use crate::source::{Span, ast};

/// What an expression is by its form alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Literals and arithmetic on them: typed by context.
    Literal,
    /// It has a type of its own.
    Value,
    /// It mentions a size or an axis outside a cast or a read: a mathematical integer.
    Index,
}

impl Context<'_> {
    /// What an expression is by its form.
    pub fn class(&self, expr: &ast::Expr) -> Class {
        match &expr.kind {
            ast::ExprKind::Int(literal) if literal.suffix.is_some() => Class::Value,
            ast::ExprKind::Float(literal) if literal.suffix.is_some() => Class::Value,
            ast::ExprKind::Int(_) | ast::ExprKind::Float(_) | ast::ExprKind::Constant(_) => Class::Literal,
            ast::ExprKind::Name(name) => match (self.scope.get(plain(name)), self.signature.globals.get(plain(name))) {
                (Some((Local::Axis(_), _)), _) | (None, Some(Global::Dim(_))) => Class::Index,
                _ => Class::Value,
            },
            ast::ExprKind::Unary(ast::UnaryOp::Neg, a) => self.class(a),
            ast::ExprKind::Unary(ast::UnaryOp::Not, a) => self.class(a).min(Class::Value),
            ast::ExprKind::Binary(a, op, b) if op.value.precedence() > 3 => self.class(a).max(self.class(b)),
            ast::ExprKind::If(parts) => {
                let branches = self.class(&parts.then).max(self.class(&parts.otherwise));
                branches.min(Class::Value)
            }
            ast::ExprKind::Call(call) => {
                let most = call.args.iter().map(|a| self.class(a)).max().unwrap_or(Class::Value);
                if extreme(call).is_some() { most } else { most.min(Class::Value) }
            }
            // The body's own axes are not in scope here and count as values.
            ast::ExprKind::Reduction(reduction) => match reduction.kind.value {
                ast::ReductionKind::Sum
                | ast::ReductionKind::Prod
                | ast::ReductionKind::Max
                | ast::ReductionKind::Min => self.class(&reduction.body).min(Class::Value),
                _ => Class::Value,
            },
            _ => Class::Value,
        }
    }

    /// An index expression.
    pub fn index(&mut self, expr: &ast::Expr) -> Option<IndexId> {
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Int(literal) => self.index_literal(literal, false, span),
            ast::ExprKind::Float(_) | ast::ExprKind::Bool(_) | ast::ExprKind::Constant(_) => {
                self.bad_index(IndexProblem::NotAnInteger, span)
            }
            ast::ExprKind::Name(name) => {
                let text = plain(name);
                match (self.scope.get(text), self.signature.globals.get(text)) {
                    (Some((Local::Axis(axis), _)), _) => Some(self.nodes.index(Index::Axis(axis), span)),
                    (Some((Local::Poison, _)), _) | (None, Some(Global::Poison)) => None,
                    (None, Some(&Global::Dim(dim))) => Some(self.nodes.index(Index::Dim(dim), span)),
                    (Some((Local::Variable(..), _)), _) | (None, Some(Global::Scalar(_))) => self.gather(expr),
                    (None, None) => {
                        self.unknown_name(name);
                        None
                    }
                }
            }
            ast::ExprKind::Unary(ast::UnaryOp::Neg, inner) => {
                if let ast::ExprKind::Int(literal) = &inner.kind {
                    return self.index_literal(literal, true, span);
                }
                let inner = self.index(inner)?;
                let zero = self.nodes.index(Index::Literal(0), span);
                Some(self.nodes.index(Index::Sub(zero, inner), span))
            }
            // Bits are those of a type: of values.
            ast::ExprKind::Binary(_, op, _) if op.value.is_bitwise() => match self.class(expr) {
                Class::Value => self.gather(expr),
                Class::Literal | Class::Index => self.bad_index(IndexProblem::Bits(op.value.as_str()), span),
            },
            ast::ExprKind::Binary(a, op, b) => self.index_binary(a, op.value, b, span),
            ast::ExprKind::Unary(ast::UnaryOp::Not, _) | ast::ExprKind::Tuple(_) => {
                self.bad_index(IndexProblem::NotAnInteger, span)
            }
            ast::ExprKind::Call(call) if self.class(expr) != Class::Value && extreme(call).is_some() => {
                let (node, sides) = (extreme(call)?, call.args.iter().map(|side| self.index(side)).collect::<Vec<_>>());
                let [Some(a), Some(b)] = sides[..] else { return None };
                Some(self.nodes.index(node(a, b), span))
            }
            ast::ExprKind::Read(_)
            | ast::ExprKind::Cast(..)
            | ast::ExprKind::If(_)
            | ast::ExprKind::Call(_)
            | ast::ExprKind::Reduction(_)
            | ast::ExprKind::Fold(_) => self.gather(expr),
        }
    }

    fn bad_index(&mut self, problem: IndexProblem, span: Span) -> Option<IndexId> {
        self.diags.report(BadIndex { problem, span });
        None
    }

    fn index_literal(&mut self, literal: &ast::IntLiteral, negative: bool, span: Span) -> Option<IndexId> {
        if literal.suffix.is_some() {
            return self.bad_index(IndexProblem::Suffix(literal.value), span);
        }
        let Ok(value) = i64::try_from(literal.value) else {
            return self.bad_index(IndexProblem::TooLarge(literal.value), span);
        };
        let value = if negative { -value } else { value };
        Some(self.nodes.index(Index::Literal(value), span))
    }

    /// An integer value as an index.
    fn gather(&mut self, expr: &ast::Expr) -> Option<IndexId> {
        let value = self.value(expr, Hint::None)?;
        self.index_of_value(value, expr.span)
    }

    pub fn index_of_value(&mut self, value: ValueId, span: Span) -> Option<IndexId> {
        let element = self.nodes.element(value);
        if !element.is_integer() {
            return self.bad_index(IndexProblem::NotAnIntegerValue(element), span);
        }
        Some(self.nodes.index(Index::Value(value), span))
    }

    fn index_binary(&mut self, a: &ast::Expr, op: ast::BinaryOp, b: &ast::Expr, span: Span) -> Option<IndexId> {
        if op.precedence() <= 3 {
            return self.bad_index(IndexProblem::NotAnInteger, span);
        }
        let (left, right) = (self.index(a), self.index(b));
        let (left, right) = (left?, right?);
        let varies = |cx: &Self, id: IndexId| cx.nodes.varies[id as usize];
        let node = match op {
            ast::BinaryOp::Add => Index::Add(left, right),
            ast::BinaryOp::Sub => Index::Sub(left, right),
            ast::BinaryOp::Mul => {
                if varies(self, left) && varies(self, right) {
                    self.diags.report(NotAffine { product: true, first: a.span, second: b.span, span });
                    return None;
                }
                Index::Mul(left, right)
            }
            _ => {
                if varies(self, right) {
                    self.diags.report(NotAffine { product: false, first: a.span, second: b.span, span });
                    return None;
                }
                if op == ast::BinaryOp::Div { Index::Div(left, right) } else { Index::Mod(left, right) }
            }
        };
        let id = self.nodes.index(node, span);
        if matches!(op, ast::BinaryOp::Div | ast::BinaryOp::Rem) {
            match self.nodes.indices[right as usize] {
                Index::Literal(value) if value <= 0 => return self.bad_index(IndexProblem::Divisor(value), b.span),
                Index::Literal(_) => {}
                _ => self.nodes.obligations.push(Obligation::DivisorPositive { index: id }),
            }
        }
        Some(id)
    }

    /// `index + 1`
    pub fn plus_one(&mut self, index: IndexId, span: Span) -> IndexId {
        if let Index::Literal(value) = self.nodes.indices[index as usize]
            && let Some(next) = value.checked_add(1)
        {
            return self.nodes.index(Index::Literal(next), span);
        }
        let one = self.nodes.index(Index::Literal(1), span);
        self.nodes.index(Index::Add(index, one), span)
    }

    /// A bound of a range: the sides of a minimum or maximum are indices in any case, so that one limits the other.
    pub fn bound(&mut self, expr: &ast::Expr) -> Option<IndexId> {
        let ast::ExprKind::Call(call) = &expr.kind else { return self.index(expr) };
        let Some(node) = extreme(call) else { return self.index(expr) };
        let sides: Vec<Option<IndexId>> = call.args.iter().map(|side| self.bound(side)).collect();
        let [Some(a), Some(b)] = sides[..] else { return None };
        Some(self.nodes.index(node(a, b), expr.span))
    }

    /// A bound of a range may be read from memory if it is one of terms, and has a limit that is not.
    pub fn check_bound(&mut self, axis: &str, bound: IndexId, is_end: bool, of: AxesOf) {
        if !self.nodes.gathers[bound as usize] {
            return;
        }
        let axis = axis.to_owned();
        let problem = match of {
            AxesOf::Terms if !self.nodes.farthest(bound, is_end, &|_| Expr::constant(0)).is_unknown() => return,
            AxesOf::Terms => IndexProblem::EndlessBound { axis, is_end },
            AxesOf::Equation | AxesOf::Search => {
                IndexProblem::GatheredBound { axis, is_end, is_searched: of == AxesOf::Search }
            }
        };
        self.bad_index(problem, self.nodes.index_spans[bound as usize]);
    }

    /// A read whose index is a value must say what it is outside the tensor.
    pub fn check_gathers(&mut self, tensor: &str, indices: &[IndexId], span: Span) {
        let gather = indices.iter().find(|&&id| self.nodes.gathers[id as usize]);
        if let Some(&id) = gather {
            let index = self.nodes.index_spans[id as usize];
            self.diags.report(UnguardedGather { tensor: tensor.to_owned(), index, span });
        }
    }
}

/// What a call makes of its two arguments if an index may be one: `min(a, b)` or `max(a, b)`.
fn extreme(call: &ast::Call) -> Option<fn(IndexId, IndexId) -> Index> {
    match plain(&call.function) {
        _ if call.namespace.is_some() || call.args.len() != 2 => None,
        "min" => Some(Index::Min),
        "max" => Some(Index::Max),
        _ => None,
    }
}

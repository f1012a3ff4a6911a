//! Typed expressions. Types are static and nothing is converted without `as`.
//!
//! A literal takes the type that its place needs: of the other operand, of the other branch, of the tensor that it goes
//! into. Where nothing fixes it, it needs a suffix or a cast. Sizes and axes are values only under `as`; a comparison
//! with a size or axis on one side compares mathematical integers.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare, Unary, Value, ValueId};

use super::equations::{Context, Guard, Hint};
use super::index::Class;
use super::names::{Global, Local, plain};
use super::{Obligation, function, literal};
use crate::diag::codes::{
    DivisionByZero, NameUse, StorageOnly, TupleUse, TypeMismatch, TypeMismatchAt, UntypedLiteral, WrongCast,
    WrongLiteral, WrongOperand, WrongTuple, WrongUse,
};
use crate::source::{Span, ast};

impl Context<'_> {
    /// A typed expression; `hint` decides literals only.
    pub fn value(&mut self, expr: &ast::Expr, hint: Hint) -> Option<ValueId> {
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Int(_) | ast::ExprKind::Float(_) | ast::ExprKind::Constant(_) => {
                self.literal(expr, false, hint, span)
            }
            ast::ExprKind::Bool(value) => {
                Some(self.nodes.value(Value::Literal(u64::from(*value)), ElementType::Bool, span))
            }
            ast::ExprKind::Name(name) => self.name(name, hint, span),
            ast::ExprKind::Read(read) => self.read(read, span),
            ast::ExprKind::Unary(ast::UnaryOp::Neg, inner) => self.negation(inner, hint, span),
            ast::ExprKind::Unary(ast::UnaryOp::Not, inner) => {
                let inner = self.value(inner, hint)?;
                let element = self.nodes.element(inner);
                if element != ElementType::Bool && !element.is_integer() {
                    return self.wrong_operand("!", element, "`bool` or an integer", self.nodes.value_span(inner));
                }
                Some(self.nodes.value(Value::Unary(Unary::Not, inner), element, span))
            }
            ast::ExprKind::Binary(a, op, b) => match op.value.precedence() {
                1 | 2 => self.logical(a, op.value, b, span),
                3 => self.comparison(a, op.value, b, span),
                _ if op.value.is_bitwise() => self.bitwise(a, op.value, b, hint, span),
                _ => self.arithmetic(a, op.value, b, hint, span),
            },
            ast::ExprKind::Cast(inner, to) => self.cast(inner, to.value, span),
            ast::ExprKind::If(parts) => self.select(parts, hint, span),
            ast::ExprKind::Call(call) => self.call(call, hint, span),
            ast::ExprKind::Reduction(reduction) => self.reduction(reduction, hint, span),
            ast::ExprKind::Fold(fold) => {
                let (fold, types) = self.fold(fold, &[hint], span)?;
                if types.len() != 1 {
                    self.diags.report(WrongTuple { what: TupleUse::Value, expected: 1, found: types.len(), span });
                    return None;
                }
                Some(self.nodes.value(Value::Component { fold, component: 0 }, types[0], span))
            }
            ast::ExprKind::Tuple(parts) => {
                self.diags.report(WrongTuple { what: TupleUse::Value, expected: 1, found: parts.len(), span });
                None
            }
        }
    }

    /// An expression that must have a given type; `None` as the type means that it is not known and anything goes.
    pub fn value_of_type(
        &mut self,
        expr: &ast::Expr,
        expected: Option<ElementType>,
        place: TypeMismatchAt,
    ) -> Option<ValueId> {
        let value = self.value(expr, Hint::from(expected))?;
        let found = self.nodes.element(value);
        match expected {
            Some(expected) if expected != found => {
                self.diags.report(TypeMismatch { place, expected, found, span: expr.span, literal: None });
                None
            }
            _ => Some(value),
        }
    }

    pub fn wrong_operand(&mut self, op: &str, found: ElementType, needs: &'static str, span: Span) -> Option<ValueId> {
        self.diags.report(WrongOperand { op: op.to_owned(), found, needs, span });
        None
    }

    /// Refuses arithmetic on types that are for storage and tensor cores only.
    pub fn check_arithmetic(&mut self, op: &str, element: ElementType, span: Span) -> Option<()> {
        if function::is_storage_only(element) {
            self.diags.report(StorageOnly { op: op.to_owned(), element, span });
            return None;
        }
        Some(())
    }

    /// A literal, with the sign before it.
    fn literal(&mut self, expr: &ast::Expr, negative: bool, hint: Hint, span: Span) -> Option<ValueId> {
        let suffix = match &expr.kind {
            ast::ExprKind::Int(literal) => literal.suffix,
            ast::ExprKind::Float(literal) => literal.suffix,
            _ => None,
        };
        let element = match (suffix, hint) {
            (Some(element), _) | (None, Hint::Of(element)) => element,
            (None, Hint::Poison) => return None,
            (None, Hint::None) => {
                let is_integer = matches!(expr.kind, ast::ExprKind::Int(_));
                self.diags.report(UntypedLiteral { is_integer, text: literal_text(&expr.kind, negative), span });
                return None;
            }
        };
        match literal::bits(&expr.kind, negative, element) {
            Ok(bits) => Some(self.nodes.value(Value::Literal(bits), element, span)),
            Err(problem) => {
                let text = literal_text(&expr.kind, negative);
                self.diags.report(WrongLiteral { text, element, problem, span });
                None
            }
        }
    }

    fn name(&mut self, name: &ast::Name, hint: Hint, span: Span) -> Option<ValueId> {
        let text = plain(name);
        let wanted = if let Hint::Of(element) = hint { element } else { ElementType::F32 };
        let used = match (self.scope.get(text), self.signature.globals.get(text)) {
            (Some((Local::Poison, _)), _) | (None, Some(Global::Poison)) => return None,
            (Some((Local::Variable(variable, element), _)), _) => {
                return Some(self.nodes.value(Value::Variable(variable), element, span));
            }
            (None, Some(&Global::Scalar(parameter))) => {
                if self.signature.broken[usize::from(parameter)] {
                    return None;
                }
                let element = self.signature.parameters[usize::from(parameter)].element;
                return Some(self.nodes.value(Value::Scalar(parameter), element, span));
            }
            (Some((Local::Axis(_), _)), _) => NameUse::AxisAsValue(wanted),
            (None, Some(Global::Dim(_))) => NameUse::SizeAsValue(wanted),
            (None, None) => {
                self.unknown_name(name);
                return None;
            }
        };
        self.diags.report(WrongUse { used, name: text.to_owned(), span });
        None
    }

    fn negation(&mut self, inner: &ast::Expr, hint: Hint, span: Span) -> Option<ValueId> {
        if matches!(inner.kind, ast::ExprKind::Int(_) | ast::ExprKind::Float(_) | ast::ExprKind::Constant(_)) {
            return self.literal(inner, true, hint, span);
        }
        let inner = self.value(inner, hint)?;
        let element = self.nodes.element(inner);
        let inner_span = self.nodes.value_span(inner);
        self.check_arithmetic("-", element, inner_span)?;
        if !element.is_float() && !element.is_signed_integer() {
            return self.wrong_operand("-", element, "a float or a signed integer", inner_span);
        }
        Some(self.nodes.value(Value::Unary(Unary::Neg, inner), element, span))
    }

    /// Two operands of one type: a literal one takes the type of the other.
    pub fn pair(&mut self, a: &ast::Expr, b: &ast::Expr, hint: Hint) -> (Option<ValueId>, Option<ValueId>) {
        let element = |cx: &Self, value: Option<ValueId>| Hint::from(value.map(|v| cx.nodes.element(v)));
        if self.class(a) == Class::Literal {
            let hint = if self.class(b) == Class::Literal { hint } else { Hint::None };
            let right = self.value(b, hint);
            // Two literals of which the first has an error: the second one is none.
            let left = self.value(a, element(self, right));
            return (left, right);
        }
        let left = self.value(a, hint);
        let hint = if self.class(b) == Class::Literal { element(self, left) } else { hint };
        let right = self.value(b, hint);
        (left, right)
    }

    /// Both operands of `op`, of one type.
    fn operands(&mut self, a: &ast::Expr, op: &'static str, b: &ast::Expr, hint: Hint) -> Option<(ValueId, ValueId)> {
        let (left, right) = self.pair(a, b, hint);
        let (left, right) = (left?, right?);
        let (expected, found) = (self.nodes.element(left), self.nodes.element(right));
        if expected != found {
            let place = TypeMismatchAt::Operands { op, left: a.span, right: b.span };
            // Of two with suffixes, either could be meant.
            let literal = match [bare(a, found), bare(b, expected)] {
                [Some(_), Some(_)] => None,
                [one, other] => one.or(other),
            };
            self.diags.report(TypeMismatch { place, expected, found, span: a.span.to(b.span), literal });
            return None;
        }
        Some((left, right))
    }

    fn arithmetic(
        &mut self,
        a: &ast::Expr,
        op: ast::BinaryOp,
        b: &ast::Expr,
        hint: Hint,
        span: Span,
    ) -> Option<ValueId> {
        let symbol = op.as_str();
        let (left, right) = self.operands(a, symbol, b, hint)?;
        let element = self.nodes.element(left);
        self.check_arithmetic(symbol, element, span)?;
        if element == ElementType::Bool {
            return self.wrong_operand(symbol, element, "numbers", span);
        }
        let node = match op {
            ast::BinaryOp::Mul => Binary::Mul,
            ast::BinaryOp::Div => Binary::Div,
            ast::BinaryOp::Rem => Binary::Rem,
            ast::BinaryOp::Add => Binary::Add,
            _ => Binary::Sub,
        };
        if node == Binary::Rem && element.is_float() {
            return self.wrong_operand("%", element, "integers", span);
        }
        let value = self.nodes.value(Value::Binary(node, left, right), element, span);
        if matches!(node, Binary::Div | Binary::Rem) && element.is_integer() {
            match self.nodes.values[right as usize] {
                Value::Literal(0) => {
                    self.diags.report(DivisionByZero { divisor: b.span, span });
                    return None;
                }
                Value::Literal(_) => {}
                _ => self.nodes.obligations.push(Obligation::DivisorNonZero { value }),
            }
        }
        Some(value)
    }

    /// Operations on bits, and shifts. On `bool`, `&` and `|` are `&&` and `||`.
    fn bitwise(&mut self, a: &ast::Expr, op: ast::BinaryOp, b: &ast::Expr, hint: Hint, span: Span) -> Option<ValueId> {
        let symbol = op.as_str();
        let (left, right) = self.operands(a, symbol, b, hint)?;
        let element = self.nodes.element(left);
        let (node, takes_bool) = match op {
            ast::BinaryOp::BitAnd => (Binary::And, true),
            ast::BinaryOp::BitOr => (Binary::Or, true),
            ast::BinaryOp::BitXor => (Binary::Xor, true),
            ast::BinaryOp::Shl => (Binary::Shl, false),
            _ => (Binary::Shr, false),
        };
        if !(element.is_integer() || takes_bool && element == ElementType::Bool) {
            let needs = if takes_bool { "integers or `bool`" } else { "integers" };
            return self.wrong_operand(symbol, element, needs, span);
        }
        Some(self.nodes.value(Value::Binary(node, left, right), element, span))
    }

    fn comparison(&mut self, a: &ast::Expr, op: ast::BinaryOp, b: &ast::Expr, span: Span) -> Option<ValueId> {
        let compare = match op {
            ast::BinaryOp::Eq => Compare::Eq,
            ast::BinaryOp::Ne => Compare::Ne,
            ast::BinaryOp::Lt => Compare::Lt,
            ast::BinaryOp::Le => Compare::Le,
            ast::BinaryOp::Gt => Compare::Gt,
            _ => Compare::Ge,
        };
        if self.class(a).max(self.class(b)) == Class::Index {
            let (left, right) = (self.index(a), self.index(b));
            let node = Value::CompareIndex(compare, left?, right?);
            return Some(self.nodes.value(node, ElementType::Bool, span));
        }
        let (left, right) = self.operands(a, op.as_str(), b, Hint::None)?;
        let element = self.nodes.element(left);
        self.check_arithmetic(op.as_str(), element, span)?;
        if element == ElementType::Bool && !matches!(compare, Compare::Eq | Compare::Ne) {
            return self.wrong_operand(op.as_str(), element, "numbers", span);
        }
        Some(self.nodes.value(Value::Compare(compare, left, right), ElementType::Bool, span))
    }

    fn logical(&mut self, a: &ast::Expr, op: ast::BinaryOp, b: &ast::Expr, span: Span) -> Option<ValueId> {
        let left = self.condition(a, op.as_str());
        // The right side is evaluated only where the left one does not decide.
        let outer = self.guard;
        if let Some(left) = left {
            self.enter(left, op == ast::BinaryOp::And);
        }
        let right = self.condition(b, op.as_str());
        self.guard = outer;
        let node = if op == ast::BinaryOp::And { Binary::And } else { Binary::Or };
        Some(self.nodes.value(Value::Binary(node, left?, right?), ElementType::Bool, span))
    }

    fn condition(&mut self, expr: &ast::Expr, op: &str) -> Option<ValueId> {
        let value = self.value(expr, Hint::Of(ElementType::Bool))?;
        let found = self.nodes.element(value);
        if found != ElementType::Bool {
            return self.wrong_operand(op, found, "`bool`", expr.span);
        }
        Some(value)
    }

    /// From here on, `condition` is known to hold (or to fail).
    fn enter(&mut self, condition: ValueId, holds: bool) {
        let position = u32::try_from(self.sites.guards.len()).expect("there are fewer conditions than tokens");
        self.sites.guards.push(Guard { outer: self.guard, condition, holds });
        self.guard = Some(position);
    }

    fn select(&mut self, parts: &ast::IfExpr, hint: Hint, span: Span) -> Option<ValueId> {
        let condition = self.condition(&parts.condition, "if");
        let outer = self.guard;
        let branch = |cx: &mut Self, expr: &ast::Expr, hint: Hint, holds: bool| {
            if let Some(condition) = condition {
                cx.enter(condition, holds);
            }
            let value = cx.value(expr, hint);
            cx.guard = outer;
            value
        };
        let of = |cx: &Self, value: Option<ValueId>| Hint::from(value.map(|v| cx.nodes.element(v)));
        let literal_first = self.class(&parts.then) == Class::Literal && self.class(&parts.otherwise) != Class::Literal;
        let (then, otherwise) = if literal_first {
            let otherwise = branch(self, &parts.otherwise, hint, false);
            let hint = of(self, otherwise);
            (branch(self, &parts.then, hint, true), otherwise)
        } else {
            let then = branch(self, &parts.then, hint, true);
            let hint = of(self, then);
            (then, branch(self, &parts.otherwise, hint, false))
        };
        let (then, otherwise) = (then?, otherwise?);
        let (expected, found) = (self.nodes.element(then), self.nodes.element(otherwise));
        if expected != found {
            let place = TypeMismatchAt::Branches { then: parts.then.span };
            self.diags.report(TypeMismatch { place, expected, found, span: parts.otherwise.span, literal: None });
            return None;
        }
        Some(self.nodes.value(Value::Select(condition?, then, otherwise), expected, span))
    }

    fn cast(&mut self, inner: &ast::Expr, to: ElementType, span: Span) -> Option<ValueId> {
        match self.class(inner) {
            // A literal under a cast is a literal of that type.
            Class::Literal => {
                let value = match &inner.kind {
                    // `0 as bf16`: the way to write a literal of a type that has no suffix in Rust.
                    ast::ExprKind::Int(literal) if to.is_float() => {
                        let digits = ast::FloatLiteral { digits: literal.value.to_string(), suffix: None };
                        let number = ast::Expr { kind: ast::ExprKind::Float(digits), span: inner.span };
                        self.literal(&number, false, Hint::Of(to), inner.span)?
                    }
                    _ => self.value(inner, Hint::Of(to))?,
                };
                self.nodes.value_spans[value as usize] = span;
                Some(value)
            }
            Class::Index => {
                let index = self.index(inner)?;
                if to == ElementType::Bool {
                    self.diags.report(WrongUse { used: NameUse::IndexCast, name: String::new(), span });
                    return None;
                }
                Some(self.nodes.value(Value::FromIndex(index), to, span))
            }
            Class::Value => {
                let value = self.value(inner, Hint::None)?;
                let from = self.nodes.element(value);
                if from == to {
                    // `as` to the type it has changes nothing.
                    return Some(value);
                }
                if from == ElementType::Bool && !to.is_integer() {
                    self.diags.report(WrongCast { from, to, span });
                    return None;
                }
                if to == ElementType::Bool {
                    // As in Rust: a truth value is a comparison, not a conversion.
                    self.diags.report(WrongCast { from, to, span });
                    return None;
                }
                Some(self.nodes.value(Value::Cast(value), to, span))
            }
        }
    }
}

/// A literal as it is written, without its suffix.
fn literal_text(kind: &ast::ExprKind, negative: bool) -> String {
    let text = match kind {
        ast::ExprKind::Int(literal) => literal.value.to_string(),
        ast::ExprKind::Float(literal) => literal.digits.clone(),
        ast::ExprKind::Constant(ast::Constant::Infinity) => "inf".to_owned(),
        _ => "nan".to_owned(),
    };
    if negative { format!("-{text}") } else { text }
}

/// A literal without its suffix, if it can have another type.
fn bare(literal: &ast::Expr, other: ElementType) -> Option<(Span, String)> {
    let text = match &literal.kind {
        ast::ExprKind::Float(literal) if literal.suffix.is_some() && other.is_float() => literal.digits.clone(),
        ast::ExprKind::Int(literal) if literal.suffix.is_some() && other.is_integer() => literal.value.to_string(),
        _ => return None,
    };
    Some((literal.span, text))
}

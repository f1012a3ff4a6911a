//! Reductions over axes: `sum` … `argmin`, `dot`, and `fold`.
//!
//! `dot(|k| a * b)` is the sum of `a as T * b as T`, where T is what tensor cores accumulate the operands' types in:
//! `f64` for `f64`, `f32` for every other float, `i32` for integers of at most 32 bits ([`dot::accumulator`]). Products
//! of two numbers of narrow types are exact in T.

use tilewright_kernel::algorithm::{Binary, FoldState, Order, Reduction, Value, ValueId};
use tilewright_kernel::{ElementType, dot};

use super::Obligation;
use super::equations::{AxesOf, Context, Hint};
use super::names::{Local, plain};
use crate::diag::codes::{
    BadScatter, DotShape, DotType, NotSupportedYet, OrderWithoutEffect, Promotion, PromotionProblem, ScatterProblem,
    SeveralAxes, TupleUse, TypeMismatch, TypeMismatchAt, WrongTuple,
};
use crate::source::{Span, ast};

impl Context<'_> {
    /// A reduction; its axes are visible in its body only.
    pub fn reduction(&mut self, reduction: &ast::Reduction, hint: Hint, span: Span) -> Option<ValueId> {
        let kind = reduction.kind.value;
        if kind == ast::ReductionKind::Scan {
            let instead = "a `sum` over `|j in 0..=i|` is right, and adds up the terms of each element anew";
            let (construct, instead) = ("scan".to_owned(), Some(instead.to_owned()));
            self.diags.report(NotSupportedYet { construct, span, instead });
            return None;
        }
        if kind == ast::ReductionKind::Only {
            let problem = ScatterProblem::OnlyElsewhere { at: reduction.kind.span };
            self.diags.report(BadScatter { name: String::new(), problem, span });
            return None;
        }
        let order = self.order(reduction);
        if let Some(promote) = &reduction.promote
            && kind != ast::ReductionKind::Dot
        {
            self.diags.report(Promotion { problem: PromotionProblem::NotADot(kind.as_str()), span: promote.span });
        }
        let depth = self.scope.depth();
        let is_search = matches!(kind, ast::ReductionKind::Argmax | ast::ReductionKind::Argmin);
        let axes = self.axes(&reduction.axes, if is_search { AxesOf::Search } else { AxesOf::Terms });
        let (body, operands) = if kind == ast::ReductionKind::Dot {
            self.dot_body(&reduction.body).unzip()
        } else {
            (self.term(kind, &reduction.body, hint), None)
        };
        self.scope.pop_to(depth);
        let body = body?;
        let op = match kind {
            ast::ReductionKind::Prod => Reduction::Prod,
            ast::ReductionKind::Max => Reduction::Max,
            ast::ReductionKind::Min => Reduction::Min,
            ast::ReductionKind::All => Reduction::All,
            ast::ReductionKind::Any => Reduction::Any,
            ast::ReductionKind::Argmax => Reduction::ArgMax,
            ast::ReductionKind::Argmin => Reduction::ArgMin,
            ast::ReductionKind::Sum | ast::ReductionKind::Dot | ast::ReductionKind::Scan | ast::ReductionKind::Only => {
                Reduction::Sum
            }
        };
        if is_search && axes.len() != 1 {
            let extra = reduction.axes.get(1).map_or(span, |a| a.span);
            self.diags.report(SeveralAxes { reduction: kind.as_str(), found: axes.len(), span: extra });
            return None;
        }
        let element = if is_search { ElementType::U32 } else { self.nodes.element(body) };
        let first = axes.first().copied();
        let run = self.nodes.axis_list(axes);
        let order = match operands {
            Some(operands) => {
                let online = order? == Order::Online;
                Order::Dot { operands, promote: self.promotion(reduction, operands)?, online }
            }
            None => order?,
        };
        let value = self.nodes.value(Value::Reduce { op, order, axes: run, body }, element, span);
        if let (true, Some(axis)) = (is_search, first) {
            self.nodes.obligations.push(Obligation::NonEmpty { value, axis });
        }
        Some(value)
    }

    pub(super) fn order(&mut self, reduction: &ast::Reduction) -> Option<Order> {
        let Some(order) = &reduction.order else { return Some(Order::Free) };
        let is_online = order.value == ast::ReductionOrder::Online;
        let is_dot = is_online && reduction.kind.value == ast::ReductionKind::Dot;
        if !is_dot && !matches!(reduction.kind.value, ast::ReductionKind::Sum | ast::ReductionKind::Prod)
            || is_online && reduction.kind.value == ast::ReductionKind::Prod
        {
            let (order_word, kind) = (order.value.as_str(), reduction.kind.value.as_str());
            self.diags.report(OrderWithoutEffect { order: order_word, reduction: kind, span: order.span });
            return None;
        }
        Some(match order.value {
            ast::ReductionOrder::Ordered => Order::Ordered,
            ast::ReductionOrder::Unordered => Order::Unordered,
            ast::ReductionOrder::Online => Order::Online,
        })
    }

    /// The term of any reduction but `dot`.
    pub(super) fn term(&mut self, kind: ast::ReductionKind, body: &ast::Expr, hint: Hint) -> Option<ValueId> {
        let logical = matches!(kind, ast::ReductionKind::All | ast::ReductionKind::Any);
        let search = matches!(kind, ast::ReductionKind::Argmax | ast::ReductionKind::Argmin);
        let hint = match (logical, search) {
            (true, _) => Hint::Of(ElementType::Bool),
            (_, true) => Hint::None,
            _ => hint,
        };
        let value = self.value(body, hint)?;
        let element = self.nodes.element(value);
        if logical != (element == ElementType::Bool) {
            let needs = if logical { "`bool`" } else { "numbers" };
            return self.wrong_operand(kind.as_str(), element, needs, body.span);
        }
        self.check_arithmetic(kind.as_str(), element, body.span)?;
        Some(value)
    }

    /// The product of a `dot`, in the type of the accumulator, and the types of its factors.
    fn dot_body(&mut self, body: &ast::Expr) -> Option<(ValueId, [ElementType; 2])> {
        let ast::ExprKind::Binary(a, op, b) = &body.kind else {
            self.diags.report(DotShape { span: body.span });
            self.value(body, Hint::Poison);
            return None;
        };
        if op.value != ast::BinaryOp::Mul {
            self.diags.report(DotShape { span: body.span });
            self.value(body, Hint::Poison);
            return None;
        }
        let (left, right) = self.pair(a, b, Hint::None);
        let (left, right) = (left?, right?);
        let (expected, found) = (self.nodes.element(left), self.nodes.element(right));
        let operands = [expected, found];
        let Some(accumulator) = dot::accumulator(operands) else {
            if expected == found {
                self.diags.report(DotType { element: expected, span: body.span });
            } else {
                let place = TypeMismatchAt::Operands { op: "*", left: a.span, right: b.span };
                self.diags.report(TypeMismatch { place, expected, found, span: body.span, literal: None });
            }
            return None;
        };
        let mut widen = |value: ValueId, element: ElementType, span: Span| {
            if element == accumulator { value } else { self.nodes.value(Value::Cast(value), accumulator, span) }
        };
        let (left, right) = (widen(left, expected, a.span), widen(right, found, b.span));
        Some((self.nodes.value(Value::Binary(Binary::Mul, left, right), accumulator, body.span), operands))
    }

    /// `promote n` of a `dot` of factors of these types; an error gives `None`.
    fn promotion(&mut self, reduction: &ast::Reduction, operands: [ElementType; 2]) -> Option<Option<u32>> {
        let Some(expr) = &reduction.promote else { return Some(None) };
        let problem = match &expr.kind {
            _ if !matches!(operands[0], ElementType::E4m3 | ElementType::E5m2) => PromotionProblem::NotFp8(operands[0]),
            ast::ExprKind::Int(literal) => match u32::try_from(literal.value) {
                Ok(interval) if interval > 0 && literal.suffix.is_none() => return Some(Some(interval)),
                _ => PromotionProblem::NotPositive,
            },
            _ => PromotionProblem::NotPositive,
        };
        self.diags.report(Promotion { problem, span: expr.span });
        None
    }

    /// A fold and the types of its state.
    pub fn fold(&mut self, fold: &ast::Fold, hints: &[Hint], span: Span) -> Option<(ValueId, Vec<ElementType>)> {
        let init = parts(&fold.init);
        if init.is_empty() {
            self.diags.report(WrongTuple { what: TupleUse::Value, expected: 1, found: 0, span: fold.init.span });
            return None;
        }
        let hint = |n: usize| if init.len() == hints.len() { hints[n] } else { Hint::None };
        let init: Vec<Option<ValueId>> = init.iter().enumerate().map(|(n, e)| self.value(e, hint(n))).collect();
        let types: Vec<Option<ElementType>> = init.iter().map(|v| v.map(|v| self.nodes.element(v))).collect();

        let depth = self.scope.depth();
        let axes = self.axes(&fold.axes, AxesOf::Terms);
        let variables = self.bind(&fold.step_state, &types);
        let step = self.next_state(&fold.step, &types);
        self.scope.pop_to(depth);

        // `merge` combines two states: it sees neither the axes nor the variables of `step`.
        let merge = fold.merge.as_ref().map(|merge| {
            let left = self.bind(&merge.left, &types);
            let right = self.bind(&merge.right, &types);
            let value = self.next_state(&merge.value, &types);
            self.scope.pop_to(depth);
            Some((left?, right?, value?))
        });

        let init = init.into_iter().collect::<Option<Vec<ValueId>>>()?;
        let types = types.into_iter().collect::<Option<Vec<ElementType>>>()?;
        let (variables, step) = (variables?, step?);
        let merge = match merge {
            Some(merge) => Some(merge?),
            None => None,
        };
        let mut states = Vec::with_capacity(init.len());
        for n in 0..init.len() {
            let (left, right, merge) = match &merge {
                Some((left, right, value)) => (left[n], right[n], Some(value[n])),
                None => (self.nodes.variable(), self.nodes.variable(), None),
            };
            states.push(FoldState { init: init[n], variable: variables[n], step: step[n], left, right, merge });
        }
        let states = self.nodes.fold_states(states);
        let axes = self.nodes.axis_list(axes);
        let first = *types.first()?;
        Some((self.nodes.value(Value::Fold { axes, states }, first, span), types))
    }

    /// Binds the names of a state; the numbers of their variables.
    fn bind(&mut self, pattern: &ast::Pattern, types: &[Option<ElementType>]) -> Option<Vec<u32>> {
        let names: Vec<&ast::Pattern> = match pattern {
            ast::Pattern::Name(_) => vec![pattern],
            ast::Pattern::Tuple(parts, _) => parts.iter().collect(),
        };
        if names.len() != types.len() {
            let (expected, found) = (types.len(), names.len());
            self.diags.report(WrongTuple { what: TupleUse::Pattern, expected, found, span: pattern.span() });
        }
        let mut variables = Vec::new();
        let mut nested = false;
        for (n, part) in names.iter().enumerate() {
            let variable = self.nodes.variable();
            variables.push(variable);
            match part {
                ast::Pattern::Name(name) => {
                    let element = types.get(n).copied().flatten();
                    let local = element.map_or(Local::Poison, |ty| Local::Variable(variable, ty));
                    self.declare(plain(name), local, name.span);
                }
                ast::Pattern::Tuple(parts, span) => {
                    let found = parts.len();
                    self.diags.report(WrongTuple { what: TupleUse::Pattern, expected: 1, found, span: *span });
                    nested = true;
                }
            }
        }
        (names.len() == types.len() && !nested).then_some(variables)
    }

    /// A new state: one expression for each state variable, of its type.
    fn next_state(&mut self, expr: &ast::Expr, types: &[Option<ElementType>]) -> Option<Vec<ValueId>> {
        let parts = parts(expr);
        if parts.len() != types.len() {
            let (expected, found) = (types.len(), parts.len());
            self.diags.report(WrongTuple { what: TupleUse::State, expected, found, span: expr.span });
            return None;
        }
        let mut values = Vec::new();
        for (part, &element) in parts.iter().zip(types) {
            values.push(self.value_of_type(part, element, TypeMismatchAt::State));
        }
        values.into_iter().collect()
    }
}

/// The parts of a tuple, or the expression itself.
fn parts(expr: &ast::Expr) -> Vec<&ast::Expr> {
    match &expr.kind {
        ast::ExprKind::Tuple(parts) => parts.iter().collect(),
        _ => vec![expr],
    }
}

//! Printing expressions with no more parentheses than they need.

use super::super::ast::{Constant, Expr, ExprKind, Fold, Pattern, Reduction, UnaryOp};
use super::{CAST, OPERAND, Printer, UNARY};

impl Printer {
    pub(super) fn exprs(&mut self, exprs: &[Expr]) {
        self.list(exprs, |p, expr| p.expr(expr, 0));
    }

    /// Prints an expression where only forms at least as tight as `least` may stand without parentheses.
    pub(super) fn expr(&mut self, expr: &Expr, least: u8) {
        let tightness = match &expr.kind {
            ExprKind::Binary(_, op, _) => op.value.precedence(),
            ExprKind::Cast(..) => CAST,
            ExprKind::Unary(..) => UNARY,
            // `or` ends with an operand of its own, so nothing can follow it but a looser form.
            ExprKind::Read(read) if read.otherwise.is_some() => UNARY,
            _ => OPERAND,
        };
        if tightness < least {
            self.text("(");
            self.expr(expr, 0);
            self.text(")");
            return;
        }
        match &expr.kind {
            ExprKind::Int(literal) => {
                self.text(&literal.value.to_string());
                if let Some(suffix) = literal.suffix {
                    self.text(suffix.name());
                }
            }
            ExprKind::Float(literal) => {
                self.text(&literal.digits);
                if let Some(suffix) = literal.suffix {
                    // Rust would read `0bf16` as binary digits and `2.f32` as a field.
                    let digits = literal.digits.as_str();
                    if digits.ends_with('.') {
                        self.text("0");
                    } else if !digits.contains(['.', 'e', 'E']) {
                        self.text(".0");
                    }
                    self.text(suffix.name());
                }
            }
            ExprKind::Bool(value) => self.text(if *value { "true" } else { "false" }),
            ExprKind::Constant(Constant::Infinity) => self.text("inf"),
            ExprKind::Constant(Constant::Nan) => self.text("nan"),
            ExprKind::Name(name) => self.text(&name.text),
            ExprKind::Read(read) => {
                self.text(&read.tensor.text);
                self.text("[");
                self.exprs(&read.indices);
                self.text("]");
                if let Some(otherwise) = &read.otherwise {
                    self.text(" or ");
                    self.expr(otherwise, UNARY);
                }
            }
            ExprKind::Unary(op, operand) => {
                self.text(match op {
                    UnaryOp::Neg => "-",
                    UnaryOp::Not => "!",
                });
                self.expr(operand, UNARY);
            }
            ExprKind::Binary(lhs, op, rhs) => {
                let precedence = op.value.precedence();
                let chained = op.value.is_comparison();
                self.expr(lhs, precedence + u8::from(chained));
                self.text(" ");
                self.text(op.value.as_str());
                self.text(" ");
                self.expr(rhs, precedence + 1);
            }
            ExprKind::Cast(value, ty) => {
                self.expr(value, CAST);
                self.text(" as ");
                self.text(ty.value.name());
            }
            ExprKind::If(parts) => {
                self.text("if ");
                self.expr(&parts.condition, 0);
                self.text(" { ");
                self.expr(&parts.then, 0);
                self.text(" } else ");
                if matches!(parts.otherwise.kind, ExprKind::If(_)) {
                    self.expr(&parts.otherwise, 0);
                } else {
                    self.text("{ ");
                    self.expr(&parts.otherwise, 0);
                    self.text(" }");
                }
            }
            ExprKind::Call(call) => {
                if let Some(namespace) = &call.namespace {
                    self.text(&namespace.text);
                    self.text("::");
                }
                self.text(&call.function.text);
                self.text("(");
                self.exprs(&call.args);
                self.text(")");
            }
            ExprKind::Reduction(reduction) => self.reduction(reduction),
            ExprKind::Fold(fold) => self.fold(fold),
            ExprKind::Tuple(parts) => {
                self.text("(");
                self.exprs(parts);
                self.text(if parts.len() == 1 { ",)" } else { ")" });
            }
        }
    }

    pub(super) fn reduction(&mut self, reduction: &Reduction) {
        if let Some(order) = reduction.order {
            self.text(order.value.as_str());
            self.text(" ");
        }
        self.text(reduction.kind.value.as_str());
        self.text("(|");
        self.axis_decls(&reduction.axes);
        self.text("| ");
        self.expr(&reduction.body, 0);
        if let Some(interval) = &reduction.promote {
            self.text(", promote ");
            self.expr(interval, 0);
        }
        self.text(")");
    }

    pub(super) fn fold(&mut self, fold: &Fold) {
        self.text("fold(|");
        self.axis_decls(&fold.axes);
        self.text("| init ");
        self.expr(&fold.init, 0);
        self.text(", step ");
        self.pattern(&fold.step_state);
        self.text(" => ");
        self.expr(&fold.step, 0);
        if let Some(merge) = &fold.merge {
            self.text(", merge (");
            self.pattern(&merge.left);
            self.text(", ");
            self.pattern(&merge.right);
            self.text(") => ");
            self.expr(&merge.value, 0);
        }
        self.text(")");
    }

    pub(super) fn pattern(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Name(name) => self.text(&name.text),
            Pattern::Tuple(parts, _) => {
                self.text("(");
                self.list(parts, Self::pattern);
                self.text(")");
            }
        }
    }
}

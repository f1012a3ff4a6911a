//! Calls of functions: what becomes of their arguments.

use tilewright_kernel::algorithm::{Binary, Value, ValueId};
use tilewright_kernel::format::Format;

use super::equations::{Context, Hint};
use super::function;
use super::index::Class;
use super::names::plain;
use crate::diag::codes::{TypeMismatch, TypeMismatchAt, WrongArgumentCount, WrongExponent};
use crate::source::{Span, ast};

/// The largest exponent of `pow`: what it stands for is as long as a product of so many factors.
const MAX_POWER: u64 = 64;
impl Context<'_> {
    /// A call of a function.
    pub fn call(&mut self, call: &ast::Call, hint: Hint, span: Span) -> Option<ValueId> {
        let Some(function) = function::find(call) else {
            // `x(i, j)` and `sum(k, …)`: the arguments belong to another construct and say nothing more.
            if call.namespace.is_none() && self.rank(plain(&call.function)).is_some() {
                self.unknown_name(&call.function);
                return None;
            }
            let unknown = function::unknown(call);
            let reduction = unknown.reduction;
            self.diags.report(unknown);
            if reduction {
                return None;
            }
            for arg in &call.args {
                self.value(arg, Hint::Poison);
            }
            return None;
        };
        if call.args.len() != function.arity() {
            let found = call.args.len();
            self.diags.report(WrongArgumentCount {
                function: function.name.to_owned(),
                expected: function.arity(),
                found,
                span,
            });
            for arg in &call.args {
                self.value(arg, Hint::Poison);
            }
            return None;
        }
        if function.op == function::Op::Power {
            return self.power(call, function, hint, span);
        }
        // The first argument with a type of its own types the literals.
        let leader = call.args.iter().position(|a| self.class(a) != Class::Literal);
        let first = leader.map(|position| self.value(&call.args[position], Hint::None));
        let literal_hint = match first {
            Some(value) => Hint::from(value.map(|v| self.nodes.element(v))),
            None => hint,
        };
        let mut args = Vec::new();
        for (position, arg) in call.args.iter().enumerate() {
            args.push(match first {
                Some(value) if leader == Some(position) => value,
                _ => self.value(arg, literal_hint),
            });
        }
        let args = args.into_iter().collect::<Option<Vec<ValueId>>>()?;
        let lead = leader.unwrap_or(0);
        let element = self.nodes.element(args[lead]);
        for (arg, &value) in call.args.iter().zip(&args) {
            let found = self.nodes.element(value);
            if found != element {
                let place = TypeMismatchAt::Argument { function: function.name, first: call.args[lead].span };
                self.diags.report(TypeMismatch { place, expected: element, found, span: arg.span, literal: None });
                return None;
            }
        }
        self.check_arithmetic(function.name, element, span)?;
        function.check(element, span, self.diags)?;
        let node = match (function.op, &args[..]) {
            (function::Op::Unary(op), &[a]) => Value::Unary(op, a),
            (function::Op::Binary(op), &[a, b]) => Value::Binary(op, a, b),
            (function::Op::Fma, &[a, b, c]) => Value::Fma(a, b, c),
            (function::Op::Clamp, &[x, low, high]) => {
                let raised = self.nodes.value(Value::Binary(Binary::Max, x, low), element, span);
                Value::Binary(Binary::Min, raised, high)
            }
            _ => return None,
        };
        Some(self.nodes.value(node, element, span))
    }

    /// `pow(x, n)` by a literal. Squares make x, x², x⁴, …; those of which the sum of the exponents is |n| are
    /// multiplied from the smallest one up, and below 0 the result divides 1. So each rounding is known.
    fn power(&mut self, call: &ast::Call, function: &function::Function, hint: Hint, span: Span) -> Option<ValueId> {
        let [base, exponent] = &call.args[..] else { return None };
        let base = self.value(base, hint);
        let (literal, is_negative) = match &exponent.kind {
            ast::ExprKind::Unary(ast::UnaryOp::Neg, inner) => (&inner.kind, true),
            kind => (kind, false),
        };
        let mut left = match literal {
            ast::ExprKind::Int(ast::IntLiteral { value, suffix: None }) if *value <= MAX_POWER => *value,
            _ => {
                self.diags.report(WrongExponent { most: MAX_POWER, span: exponent.span });
                return None;
            }
        };
        let base = base?;
        let element = self.nodes.element(base);
        self.check_arithmetic(function.name, element, span)?;
        function.check(element, span, self.diags)?;
        let is_inverse = is_negative && left != 0;
        if is_inverse && !element.is_float() {
            return self.wrong_operand("pow", element, "a float under a negative exponent", span);
        }
        let one = Value::Literal(Format::of(element).map_or(1, |format| format.from_f64(1.0)));
        let (mut square, mut product) = (base, None);
        while left > 0 {
            if left & 1 == 1 {
                product = Some(match product {
                    None => square,
                    Some(product) => self.nodes.value(Value::Binary(Binary::Mul, product, square), element, span),
                });
            }
            left >>= 1;
            if left > 0 {
                square = self.nodes.value(Value::Binary(Binary::Mul, square, square), element, span);
            }
        }
        let Some(product) = product else { return Some(self.nodes.value(one, element, span)) };
        if !is_inverse {
            return Some(product);
        }
        let one = self.nodes.value(one, element, span);
        Some(self.nodes.value(Value::Binary(Binary::Div, one, product), element, span))
    }
}

//! Whether a reduction takes in a term unchanged where some of its operands are holes.
//!
//! **Property.** Neutral: for all values of what is unknown, NaN and infinities included, a step leaves every
//! accumulator as it is, bit by bit (docs/theory.md, What readers demand: put the fill into the hole, leave other
//! operands unknown, evaluate the *summand*). **Formula.** Evaluation over three kinds of values: a number that the
//! kernel computes exactly, a state variable of the fold, and anything. A product of zero and anything may be NaN, so
//! that both operands of a float product must be zero; of an integer product one is enough. **Approximation.** What
//! would have to be rounded is taken for anything; so are inner reductions and approximate functions.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Compare, Index, Reduction, Source, Unary, Value, ValueId};
use tilewright_kernel::format::Format;
use tilewright_kernel::math::{self, Host};

use crate::extent::Expr;
use crate::kernel_ir::reduction;
use crate::program::expressions::Scope;
use crate::program::{INLINE_LIMIT, Program, expressions};

/// What is known of reads and indices at the points in question.
pub trait Known {
    /// Whether a read takes zero bits, if it is made: of a tensor, or of what another stage holds, the element.
    fn is_zero(&self, read: ValueId, source: Source, indices: &[Expr]) -> bool;
    /// Whether an element lies outside its tensor.
    fn is_outside(&self, parameter: u16, indices: &[Expr]) -> bool;
    /// Whether a comparison of indices holds at all of the points, or at none.
    fn compares(&self, op: Compare, a: &Expr, b: &Expr) -> Option<bool>;
}

/// A number that is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    /// Of a float type; any but NaN.
    Float(f64),
    /// Of an integer type, or a `bool`: 0 or 1.
    Int(i128),
}

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fact {
    /// It is this number.
    Is(Number),
    /// It is this variable of the fold.
    State(u32),
    /// Nothing.
    Anything,
}

/// Whether `reduction` takes in the term at the axes of `scope` unchanged; see the module.
pub fn is_neutral(program: &Program, reduction: ValueId, scope: &Scope, known: &dyn Known) -> bool {
    let algorithm = &program.algorithm;
    let mut evaluation = Evaluation { program, known, nodes: 0, never_minus_zero: Vec::new() };
    match algorithm.values[reduction as usize] {
        // The smallest index of the largest value says where a term came from.
        Value::Reduce { op: Reduction::ArgMax | Reduction::ArgMin, .. } => false,
        Value::Reduce { op, body, .. } => {
            let ty = algorithm.types[reduction as usize];
            let term = evaluation.value(body, scope);
            let identity = number(ty, reduction::identity(op, ty));
            // A sum that starts at +0 is never −0, so that both zeros are neutral.
            let zero = op == Reduction::Sum && matches!(term, Fact::Is(Number::Float(x)) if x == 0.0);
            zero || identity.is_some_and(|identity| same(term, Fact::Is(identity)))
        }
        Value::Fold { states, .. } => {
            let states = &algorithm.folds[states.range()];
            for state in states {
                // s + x is −0 only if both are.
                let sums = matches!(algorithm.values[state.step as usize], Value::Binary(Binary::Add, a, b)
                    if [a, b].iter().any(|v| algorithm.values[*v as usize] == Value::Variable(state.variable)));
                let start = evaluation.value(state.init, scope);
                let positive = matches!(start, Fact::Is(Number::Float(x)) if !is_minus_zero(x));
                if sums && positive {
                    evaluation.never_minus_zero.push(state.variable);
                }
            }
            states.iter().all(|state| evaluation.value(state.step, scope) == Fact::State(state.variable))
        }
        _ => false,
    }
}

fn is_minus_zero(x: f64) -> bool {
    x == 0.0 && x.is_sign_negative()
}

/// Equal to the bit.
fn same(a: Fact, b: Fact) -> bool {
    match (a, b) {
        (Fact::Is(Number::Float(a)), Fact::Is(Number::Float(b))) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// The number that bits of a type stand for; none for NaN.
fn number(ty: ElementType, bits: u64) -> Option<Number> {
    if let Some(format) = Format::of(ty) {
        let value = format.value(bits);
        return (!value.is_nan()).then_some(Number::Float(value));
    }
    let width = ty.bytes() * 8;
    let bits = i128::from(bits);
    let negative = ty.is_signed_integer() && bits >> (width - 1) & 1 == 1;
    Some(Number::Int(if negative { bits - (1 << width) } else { bits }))
}

/// A result of a type; nothing is known of one that the type does not have.
fn exactly(ty: ElementType, value: Number) -> Fact {
    let has = match (value, Format::of(ty)) {
        (Number::Float(x), Some(format)) => !x.is_nan() && format.value(format.from_f64(x)).to_bits() == x.to_bits(),
        (Number::Int(n), None) => {
            let width = if ty == ElementType::Bool { 1 } else { ty.bytes() * 8 };
            let signed = ty.is_signed_integer();
            let range = if signed { -(1_i128 << (width - 1))..1 << (width - 1) } else { 0..1_i128 << width };
            range.contains(&n)
        }
        _ => false,
    };
    if has { Fact::Is(value) } else { Fact::Anything }
}

/// Whether f64 arithmetic is exact near this number: far from where products lose bits below its range.
fn is_ordinary(x: f64) -> bool {
    x == 0.0 || (1e-200..1e200).contains(&x.abs())
}

struct Evaluation<'a> {
    program: &'a Program,
    known: &'a dyn Known,
    nodes: u32,
    /// Variables of the fold that are never −0.
    never_minus_zero: Vec<u32>,
}

impl Evaluation<'_> {
    fn value(&mut self, id: ValueId, scope: &Scope) -> Fact {
        self.nodes += 1;
        if self.nodes > INLINE_LIMIT {
            return Fact::Anything;
        }
        let program = self.program;
        let algorithm = &program.algorithm;
        let ty = algorithm.types[id as usize];
        let index = |i| expressions::index(program, i, scope);
        match algorithm.values[id as usize] {
            Value::Literal(bits) => number(ty, bits).map_or(Fact::Anything, Fact::Is),
            Value::FromIndex(i) => match algorithm.indices[i as usize] {
                Index::Literal(n) if ty.is_float() => exactly(ty, Number::Float(n as f64)),
                Index::Literal(n) => exactly(ty, Number::Int(i128::from(n))),
                _ => Fact::Anything,
            },
            Value::CompareIndex(op, a, b) => match self.known.compares(op, &index(a), &index(b)) {
                Some(holds) => Fact::Is(Number::Int(i128::from(holds))),
                None => Fact::Anything,
            },
            Value::Unary(op, a) => self.unary(op, ty, a, scope),
            Value::Binary(op, a, b) => {
                let (a, b) = (self.value(a, scope), self.value(b, scope));
                self.binary(op, ty, a, b)
            }
            Value::Compare(op, a, b) => match (self.value(a, scope), self.value(b, scope)) {
                (Fact::Is(Number::Float(a)), Fact::Is(Number::Float(b))) => truth(compare(op, a.partial_cmp(&b))),
                (Fact::Is(Number::Int(a)), Fact::Is(Number::Int(b))) => truth(compare(op, Some(a.cmp(&b)))),
                _ => Fact::Anything,
            },
            Value::Fma(a, b, c) => {
                // With an exact product there is one rounding, too.
                let (a, b, c) = (self.value(a, scope), self.value(b, scope), self.value(c, scope));
                match self.binary(Binary::Mul, ty, a, b) {
                    product @ Fact::Is(_) => self.binary(Binary::Add, ty, product, c),
                    _ => Fact::Anything,
                }
            }
            Value::Select(condition, then, otherwise) => {
                let condition = self.value(condition, scope);
                let (then, otherwise) = (self.value(then, scope), self.value(otherwise, scope));
                match condition {
                    Fact::Is(Number::Int(0)) => otherwise,
                    Fact::Is(_) => then,
                    _ if same(then, otherwise) => then,
                    _ => Fact::Anything,
                }
            }
            Value::Cast(a) => self.cast(algorithm.types[a as usize], ty, a, scope),
            Value::Read { source, indices, or } => {
                let list = &algorithm.index_lists[indices.range()];
                let exprs: Vec<Expr> = list.iter().map(|i| index(*i)).collect();
                match source {
                    _ if or.is_none() && self.known.is_zero(id, source, &exprs) => {
                        number(ty, 0).map_or(Fact::Anything, Fact::Is)
                    }
                    Source::Parameter(parameter) => match or {
                        Some(or) if self.known.is_outside(parameter, &exprs) => self.value(or, scope),
                        _ => Fact::Anything,
                    },
                    Source::Equation { .. } if or.is_some() => Fact::Anything,
                    Source::Equation { equation, component } => {
                        let definition = &algorithm.equations[usize::from(equation)];
                        let axes = algorithm.axis_lists[definition.axes.range()].iter().copied();
                        let inner: Scope = axes.zip(exprs).collect();
                        let component = &algorithm.components[definition.components.range()][usize::from(component)];
                        self.value(component.value, &inner)
                    }
                }
            }
            Value::Variable(v) => Fact::State(v),
            Value::Scalar(_)
            | Value::Reduce { .. }
            | Value::Fold { .. }
            | Value::Component { .. }
            | Value::Scatter { .. } => Fact::Anything,
        }
    }

    fn unary(&mut self, op: Unary, ty: ElementType, a: ValueId, scope: &Scope) -> Fact {
        let Fact::Is(a) = self.value(a, scope) else { return Fact::Anything };
        let result = match (op, a) {
            (Unary::Neg, Number::Float(x)) => Number::Float(-x),
            (Unary::Neg, Number::Int(n)) => Number::Int(-n),
            (Unary::Abs, Number::Float(x)) => Number::Float(x.abs()),
            (Unary::Abs, Number::Int(n)) => Number::Int(n.abs()),
            (Unary::Not, Number::Int(n)) if ty == ElementType::Bool => Number::Int(1 - n),
            (Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round, Number::Float(x)) => {
                Number::Float(op.rounding().map_or(x, |round| round(x)))
            }
            // The only arguments whose results have no error: those of 0, and of 1.
            (_, Number::Float(x)) if (x == 0.0 || x == 1.0) && ty != ElementType::F64 => {
                let approximate = !matches!(
                    op,
                    Unary::Sqrt
                        | Unary::Rsqrt
                        | Unary::Exp
                        | Unary::Log
                        | Unary::Tanh
                        | Unary::Erf
                        | Unary::Sin
                        | Unary::Cos
                );
                match math::apply(op, &mut Host::<f32>::default(), x as f32) {
                    Some(y) if !approximate => Number::Float(f64::from(y)),
                    _ => return Fact::Anything,
                }
            }
            (_, Number::Float(x)) if x == 0.0 || x == 1.0 => {
                match math::apply_double(op, &mut Host::<f64>::default(), x) {
                    Some(y) => Number::Float(y),
                    None => return Fact::Anything,
                }
            }
            _ => return Fact::Anything,
        };
        exactly(ty, result)
    }

    fn binary(&self, op: Binary, ty: ElementType, a: Fact, b: Fact) -> Fact {
        use Number::{Float, Int};
        match (op, a, b) {
            // What a state variable takes in unchanged.
            (Binary::Add, Fact::State(s), Fact::Is(n)) | (Binary::Add, Fact::Is(n), Fact::State(s)) => match n {
                Float(x) if is_minus_zero(x) || x == 0.0 && self.never_minus_zero.contains(&s) => Fact::State(s),
                Int(0) => Fact::State(s),
                _ => Fact::Anything,
            },
            (Binary::Sub, Fact::State(s), Fact::Is(n)) => match n {
                Float(x) if x == 0.0 && (x.is_sign_positive() || self.never_minus_zero.contains(&s)) => Fact::State(s),
                Int(0) => Fact::State(s),
                _ => Fact::Anything,
            },
            (Binary::Mul, Fact::State(s), Fact::Is(Float(1.0) | Int(1)))
            | (Binary::Mul, Fact::Is(Float(1.0) | Int(1)), Fact::State(s))
            | (Binary::Div, Fact::State(s), Fact::Is(Float(1.0) | Int(1))) => Fact::State(s),
            (Binary::Max | Binary::Min | Binary::And | Binary::Or, Fact::State(s), Fact::State(t)) if s == t => {
                Fact::State(s)
            }
            (Binary::Max | Binary::Min, Fact::State(s), Fact::Is(n))
            | (Binary::Max | Binary::Min, Fact::Is(n), Fact::State(s)) => {
                let as_reduction = if op == Binary::Max { Reduction::Max } else { Reduction::Min };
                let identity = number(ty, reduction::identity(as_reduction, ty));
                let neutral = identity.is_some_and(|identity| same(Fact::Is(identity), Fact::Is(n)));
                if neutral { Fact::State(s) } else { Fact::Anything }
            }
            (Binary::Or, Fact::State(s), Fact::Is(Int(0))) | (Binary::Or, Fact::Is(Int(0)), Fact::State(s)) => {
                Fact::State(s)
            }
            (Binary::And, Fact::State(s), Fact::Is(Int(1))) | (Binary::And, Fact::Is(Int(1)), Fact::State(s))
                if ty == ElementType::Bool =>
            {
                Fact::State(s)
            }
            // What decides a result alone: integers have no NaN.
            (Binary::Mul | Binary::And, Fact::Is(Int(0)), _) | (Binary::Mul | Binary::And, _, Fact::Is(Int(0))) => {
                Fact::Is(Int(0))
            }
            (Binary::Or, Fact::Is(Int(1)), _) | (Binary::Or, _, Fact::Is(Int(1))) if ty == ElementType::Bool => {
                Fact::Is(Int(1))
            }
            (_, Fact::Is(Float(a)), Fact::Is(Float(b))) => match floats(op, a, b) {
                Some(result) => exactly(ty, Float(result)),
                None => Fact::Anything,
            },
            (_, Fact::Is(Int(a)), Fact::Is(Int(b))) => {
                let result = match op {
                    Binary::Add => a.checked_add(b),
                    Binary::Sub => a.checked_sub(b),
                    Binary::Mul => a.checked_mul(b),
                    Binary::Div => a.checked_div(b),
                    Binary::Rem => a.checked_rem(b),
                    Binary::Max | Binary::MaxNum => Some(a.max(b)),
                    Binary::Min | Binary::MinNum => Some(a.min(b)),
                    Binary::And => Some(a & b),
                    Binary::Or => Some(a | b),
                    Binary::Xor => Some(a ^ b),
                    Binary::Shl | Binary::Shr => op.shifted(ty, a, b),
                };
                result.map_or(Fact::Anything, |n| exactly(ty, Int(n)))
            }
            _ => Fact::Anything,
        }
    }

    fn cast(&mut self, from: ElementType, to: ElementType, a: ValueId, scope: &Scope) -> Fact {
        match self.value(a, scope) {
            state @ Fact::State(_) if from == to => state,
            Fact::Is(Number::Float(x)) if to.is_float() => exactly(to, Number::Float(x)),
            Fact::Is(Number::Float(x)) if x.fract() == 0.0 && x.abs() < 1e18 => exactly(to, Number::Int(x as i128)),
            Fact::Is(Number::Int(n)) if to.is_float() && n.abs() < 1 << 53 => exactly(to, Number::Float(n as f64)),
            Fact::Is(Number::Int(n)) => exactly(to, Number::Int(n)),
            _ => Fact::Anything,
        }
    }
}

fn truth(holds: bool) -> Fact {
    Fact::Is(Number::Int(i128::from(holds)))
}

/// A comparison of numbers in this order.
fn compare(op: Compare, order: Option<std::cmp::Ordering>) -> bool {
    match op {
        Compare::Eq => order.is_some_and(std::cmp::Ordering::is_eq),
        Compare::Ne => order.is_none_or(std::cmp::Ordering::is_ne),
        Compare::Lt => order.is_some_and(std::cmp::Ordering::is_lt),
        Compare::Le => order.is_some_and(std::cmp::Ordering::is_le),
        Compare::Gt => order.is_some_and(std::cmp::Ordering::is_gt),
        Compare::Ge => order.is_some_and(std::cmp::Ordering::is_ge),
    }
}

/// An operation on two floats, if f64 computes it without an error.
fn floats(op: Binary, a: f64, b: f64) -> Option<f64> {
    match op {
        Binary::Max | Binary::MaxNum => return Some(if a.total_cmp(&b).is_ge() { a } else { b }),
        Binary::Min | Binary::MinNum => return Some(if a.total_cmp(&b).is_le() { a } else { b }),
        _ => {}
    }
    if !(is_ordinary(a) && is_ordinary(b)) {
        return None;
    }
    let (result, is_exact) = match op {
        Binary::Add | Binary::Sub => {
            let b = if op == Binary::Add { b } else { -b };
            let sum = a + b;
            // What the rounding of each operand lost (Knuth's two-sum).
            let from_b = sum - a;
            (sum, (a - (sum - from_b)) + (b - from_b) == 0.0)
        }
        Binary::Mul => (a * b, a.mul_add(b, -(a * b)) == 0.0),
        Binary::Div if b != 0.0 => (a / b, (a / b).mul_add(b, -a) == 0.0),
        _ => return None,
    };
    (is_exact && is_ordinary(result)).then_some(result)
}

#[cfg(test)]
#[path = "neutral_tests.rs"]
mod tests;

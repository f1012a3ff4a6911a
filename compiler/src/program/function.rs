//! Built-in functions: their spelling, and the types that they exist for.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Binary, Unary};

use super::names::plain;
use crate::diag::{
    Diagnostics,
    codes::{NotForF64, UnknownFunction, WrongOperand},
    suggest::closest,
};
use crate::source::ast::ReductionKind;
use crate::source::{Span, ast};

/// What a function becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Unary(Unary),
    Binary(Binary),
    Fma,
    /// `min(max(x, low), high)`
    Clamp,
    /// A product of one factor: see [`power`].
    Power,
}

/// The types that a function exists for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Types {
    /// Every float.
    Floats,
    /// Floats but `f64`.
    NarrowFloats,
    /// Floats and signed integers.
    Signed,
    /// Floats and integers.
    Numbers,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub name: &'static str,
    pub op: Op,
    types: Types,
}

const fn unary(name: &'static str, op: Unary, types: Types) -> Function {
    Function { name, op: Op::Unary(op), types }
}

const fn binary(name: &'static str, op: Binary, types: Types) -> Function {
    Function { name, op: Op::Binary(op), types }
}

const FUNCTIONS: &[Function] = &[
    unary("exp", Unary::Exp, Types::Floats),
    unary("log", Unary::Log, Types::Floats),
    unary("sqrt", Unary::Sqrt, Types::Floats),
    unary("rsqrt", Unary::Rsqrt, Types::Floats),
    unary("tanh", Unary::Tanh, Types::Floats),
    unary("erf", Unary::Erf, Types::Floats),
    unary("sin", Unary::Sin, Types::Floats),
    unary("cos", Unary::Cos, Types::Floats),
    unary("abs", Unary::Abs, Types::Signed),
    unary("floor", Unary::Floor, Types::Floats),
    unary("ceil", Unary::Ceil, Types::Floats),
    unary("trunc", Unary::Trunc, Types::Floats),
    unary("round", Unary::Round, Types::Floats),
    binary("min", Binary::Min, Types::Numbers),
    binary("max", Binary::Max, Types::Numbers),
    binary("min_num", Binary::MinNum, Types::Floats),
    binary("max_num", Binary::MaxNum, Types::Floats),
    Function { name: "fma", op: Op::Fma, types: Types::Floats },
    Function { name: "clamp", op: Op::Clamp, types: Types::Numbers },
    Function { name: "pow", op: Op::Power, types: Types::Numbers },
    unary("approx::exp", Unary::ApproxExp, Types::NarrowFloats),
    unary("approx::exp2", Unary::ApproxExp2, Types::NarrowFloats),
    unary("approx::log", Unary::ApproxLog, Types::NarrowFloats),
    unary("approx::sqrt", Unary::ApproxSqrt, Types::NarrowFloats),
    unary("approx::rsqrt", Unary::ApproxRsqrt, Types::NarrowFloats),
    unary("approx::tanh", Unary::ApproxTanh, Types::NarrowFloats),
    unary("approx::sin", Unary::ApproxSin, Types::NarrowFloats),
    unary("approx::cos", Unary::ApproxCos, Types::NarrowFloats),
];

/// Types that are stored, converted and multiplied by tensor cores, and nothing else.
pub(super) fn is_storage_only(element: ElementType) -> bool {
    matches!(element, ElementType::Tf32 | ElementType::E4m3 | ElementType::E5m2)
}

fn spelling(call: &ast::Call) -> String {
    match &call.namespace {
        Some(namespace) => format!("{}::{}", plain(namespace), plain(&call.function)),
        None => plain(&call.function).to_owned(),
    }
}

/// The function that is called.
pub(super) fn find(call: &ast::Call) -> Option<&'static Function> {
    let name = spelling(call);
    FUNCTIONS.iter().find(|f| f.name == name)
}

/// What to say about a function that does not exist.
pub(super) fn unknown(call: &ast::Call) -> UnknownFunction {
    let name = spelling(call);
    let suggestion = closest(&name, FUNCTIONS.iter().map(|f| f.name)).map(str::to_owned);
    let span = call.namespace.as_ref().map_or(call.function.span, |n| n.span.to(call.function.span));
    let reduction = ReductionKind::from_word(&name).is_some() || name == "fold";
    let known = FUNCTIONS.iter().map(|f| f.name).collect();
    UnknownFunction { name, suggestion, reduction, known, span }
}

impl Function {
    /// Number of arguments.
    pub fn arity(self) -> usize {
        match self.op {
            Op::Unary(_) => 1,
            Op::Binary(_) | Op::Power => 2,
            Op::Fma | Op::Clamp => 3,
        }
    }

    /// Reports a type that the function does not exist for.
    pub fn check(self, element: ElementType, span: Span, diags: &mut Diagnostics) -> Option<()> {
        let (accepted, needs) = match self.types {
            Types::Floats | Types::NarrowFloats => (element.is_float(), "a float"),
            Types::Signed => (element.is_float() || element.is_signed_integer(), "a float or a signed integer"),
            Types::Numbers => (element.is_float() || element.is_integer(), "numbers"),
        };
        if !accepted {
            diags.report(WrongOperand { op: self.name.to_owned(), found: element, needs, span });
            return None;
        }
        if self.types == Types::NarrowFloats && element == ElementType::F64 {
            diags.report(NotForF64 { function: self.name, span });
            return None;
        }
        Some(())
    }
}

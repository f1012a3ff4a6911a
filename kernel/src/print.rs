//! An algorithm as text: one line an equation, as the language writes it, with the ranges and types that were inferred.

use std::fmt::{Display, Formatter, Result};

use crate::algorithm::{
    Algorithm, AxisId, Binary, Compare, Component, Index, IndexId, Order, Reduction, Run, Source, Unary, Value, ValueId,
};
use crate::format::Format;
use crate::info::{Dim, Parameter};
use crate::{ElementType, KernelInfo};

/// An algorithm with the names it refers to; its [`Display`] is one line an equation.
///
/// A node that does not exist is shown as `?`.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a> {
    /// What to show.
    pub algorithm: &'a Algorithm,
    /// Names of the dimensions.
    pub dims: &'a [Dim],
    /// Names of the parameters.
    pub parameters: &'a [Parameter],
}

impl KernelInfo {
    /// The algorithm as text.
    pub fn printed_algorithm(&self) -> Printed<'_> {
        Printed { algorithm: &self.algorithm, dims: &self.dims, parameters: &self.parameters }
    }
}

impl Display for Printed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for equation in self.algorithm.equations.iter() {
            let components = self.algorithm.components.get(equation.components.range()).unwrap_or(&[]);
            let names: Vec<&str> = components.iter().map(|c| &*c.name).collect();
            let types: Vec<&str> = components.iter().map(|c| self.element(c.value)).collect();
            let tuple = |parts: &[&str]| match parts {
                [one] => (*one).to_owned(),
                _ => format!("({})", parts.join(", ")),
            };
            let value = match components {
                [one] => self.value(one.value).0,
                [first, ..] => match self.node(first.value) {
                    Some(Value::Component { fold, .. }) if self.are_of(fold, components) => self.value(fold).0,
                    _ => {
                        let values: Vec<String> = components.iter().map(|c| self.value(c.value).0).collect();
                        format!("({})", values.join(", "))
                    }
                },
                [] => "?".to_owned(),
            };
            if let [Component { name, value, .. }] = components
                && let Some(Value::Scatter { op, indices, term }) = self.node(*value)
            {
                let (ty, places, term) = (self.element(*value), self.places(indices), self.value(term).0);
                writeln!(f, "{name}[{places}]: {ty} {} {term} for {}", update(op), self.axes(equation.axes))?;
                continue;
            }
            writeln!(f, "{}[{}]: {} = {value}", tuple(&names), self.axes(equation.axes), tuple(&types))?;
        }
        Ok(())
    }
}

/// How a scatter takes its terms in, as it is written.
fn update(op: Option<Reduction>) -> &'static str {
    match op {
        None => "=",
        Some(Reduction::Max) => "max=",
        Some(Reduction::Min) => "min=",
        Some(_) => "+=",
    }
}

/// Text and how tightly its outermost operator binds.
type Piece = (String, u8);

const ATOM: u8 = 13;
const PREFIX: u8 = 12;
const CAST: u8 = 11;
const PRODUCT: u8 = 10;
const SUM: u8 = 9;
const SHIFT: u8 = 8;
const BIT_AND: u8 = 7;
const BIT_XOR: u8 = 6;
const BIT_OR: u8 = 5;
const COMPARISON: u8 = 3;
const AND: u8 = 2;
const OR: u8 = 1;

fn at_least((text, strength): Piece, least: u8) -> String {
    if strength < least { format!("({text})") } else { text }
}

fn infix(a: Piece, symbol: &str, b: Piece, strength: u8) -> Piece {
    // Comparisons do not associate; everything else associates to the left.
    let left = if strength == COMPARISON { strength + 1 } else { strength };
    (format!("{} {symbol} {}", at_least(a, left), at_least(b, strength + 1)), strength)
}

impl Printed<'_> {
    fn node(&self, id: ValueId) -> Option<Value> {
        self.algorithm.values.get(id as usize).copied()
    }

    /// Whether components are the states of one fold.
    fn are_of(&self, fold: ValueId, components: &[Component]) -> bool {
        let is_state =
            |c: &Component| matches!(self.node(c.value), Some(Value::Component { fold: of, .. }) if of == fold);
        components.iter().all(is_state)
    }

    fn element(&self, id: ValueId) -> &'static str {
        self.algorithm.types.get(id as usize).map_or("?", |t| t.name())
    }

    fn axis_name(&self, id: AxisId) -> &str {
        self.algorithm.axes.get(id as usize).map_or("?", |axis| &axis.name)
    }

    fn parameter(&self, id: u16) -> &str {
        self.parameters.get(usize::from(id)).map_or("?", |p| &p.name)
    }

    /// `i in 0..N, j in 0..M`
    pub fn axes(&self, run: Run) -> String {
        let ids = self.algorithm.axis_lists.get(run.range()).unwrap_or(&[]);
        let shown = ids.iter().map(|&id| match self.algorithm.axes.get(id as usize) {
            Some(axis) => format!(
                "{} in {}..{}",
                axis.name,
                at_least(self.index(axis.lower), ATOM),
                at_least(self.index(axis.upper), SUM)
            ),
            None => "?".to_owned(),
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    /// An index expression as text.
    pub fn index_text(&self, id: IndexId) -> String {
        self.index(id).0
    }

    /// A value expression as text.
    pub fn value_text(&self, id: ValueId) -> String {
        self.value(id).0
    }

    fn index(&self, id: IndexId) -> Piece {
        let Some(&node) = self.algorithm.indices.get(id as usize) else { return ("?".to_owned(), ATOM) };
        let binary = |a, symbol, b, strength| infix(self.index(a), symbol, self.index(b), strength);
        match node {
            Index::Literal(c) => (c.to_string(), if c < 0 { PREFIX } else { ATOM }),
            Index::Dim(d) => (self.dims.get(usize::from(d)).map_or("?", |d| &d.name).to_owned(), ATOM),
            Index::Axis(a) => (self.axis_name(a).to_owned(), ATOM),
            Index::Add(a, b) => binary(a, "+", b, SUM),
            Index::Sub(a, b) => binary(a, "-", b, SUM),
            Index::Mul(a, b) => binary(a, "*", b, PRODUCT),
            Index::Div(a, b) => binary(a, "/", b, PRODUCT),
            Index::Mod(a, b) => binary(a, "%", b, PRODUCT),
            Index::Min(a, b) => (format!("min({}, {})", self.index(a).0, self.index(b).0), ATOM),
            Index::Max(a, b) => (format!("max({}, {})", self.index(a).0, self.index(b).0), ATOM),
            Index::Value(v) => self.value(v),
        }
    }

    fn value(&self, id: ValueId) -> Piece {
        let Some(node) = self.node(id) else { return ("?".to_owned(), ATOM) };
        let element = self.algorithm.types.get(id as usize).copied();
        let call = |name: &str, args: &[ValueId]| {
            let args: Vec<String> = args.iter().map(|&a| self.value(a).0).collect();
            (format!("{name}({})", args.join(", ")), ATOM)
        };
        match node {
            Value::Literal(bits) => literal(bits, element),
            Value::Scalar(p) => (self.parameter(p).to_owned(), ATOM),
            Value::FromIndex(i) => (format!("{} as {}", at_least(self.index(i), CAST), self.element(id)), CAST),
            Value::CompareIndex(op, a, b) => infix(self.index(a), compare(op), self.index(b), COMPARISON),
            Value::Compare(op, a, b) => infix(self.value(a), compare(op), self.value(b), COMPARISON),
            Value::Unary(Unary::Neg, a) => (format!("-{}", at_least(self.value(a), PREFIX)), PREFIX),
            Value::Unary(Unary::Not, a) => (format!("!{}", at_least(self.value(a), PREFIX)), PREFIX),
            Value::Unary(op, a) => call(unary(op), &[a]),
            Value::Binary(op, a, b) => match binary(op, element) {
                (symbol, Some(strength)) => infix(self.value(a), symbol, self.value(b), strength),
                (name, None) => call(name, &[a, b]),
            },
            Value::Fma(a, b, c) => call("fma", &[a, b, c]),
            Value::Select(c, a, b) => {
                (format!("if {} {{ {} }} else {{ {} }}", self.value(c).0, self.value(a).0, self.value(b).0), ATOM)
            }
            Value::Cast(a) => (format!("{} as {}", at_least(self.value(a), CAST), self.element(id)), CAST),
            Value::Read { source, indices, or } => {
                let read = format!("{}[{}]", self.source(source), self.places(indices));
                match or {
                    None => (read, ATOM),
                    Some(or) => (format!("({read} or {})", at_least(self.value(or), PREFIX)), ATOM),
                }
            }
            Value::Reduce { order: Order::Dot { operands, promote, online }, axes, body, .. } => {
                let promote = promote.map_or_else(String::new, |interval| format!(", promote {interval}"));
                let online = if online { "online " } else { "" };
                (format!("{online}dot(|{}| {}{promote})", self.axes(axes), self.factors(operands, body)), ATOM)
            }
            Value::Reduce { op, order, axes, body } => {
                let order = match order {
                    Order::Free | Order::Dot { .. } => "",
                    Order::Ordered => "ordered ",
                    Order::Unordered => "unordered ",
                    Order::Online => "online ",
                };
                (format!("{order}{}(|{}| {})", reduction(op), self.axes(axes), self.value(body).0), ATOM)
            }
            Value::Fold { axes, states } => (self.fold(axes, states), ATOM),
            Value::Component { fold, component } => (format!("{}.{component}", self.value(fold).0), ATOM),
            Value::Variable(v) => (format!("%{v}"), ATOM),
            Value::Scatter { op, indices, term } => {
                (format!("[{}] {} {}", self.places(indices), update(op), self.value(term).0), 0)
            }
        }
    }

    /// The term of a `dot`, as it was written: its factors without their conversion.
    fn factors(&self, operands: [ElementType; 2], body: ValueId) -> String {
        let factor = |id: ValueId, of: ElementType| match self.algorithm.values.get(id as usize) {
            Some(Value::Cast(inner)) if self.element(*inner) == of.name() && self.element(body) != of.name() => {
                self.value(*inner)
            }
            _ => self.value(id),
        };
        let [left, right] = operands;
        match self.algorithm.values.get(body as usize) {
            Some(Value::Binary(Binary::Mul, a, b)) => {
                format!("{} * {}", at_least(factor(*a, left), PRODUCT), at_least(factor(*b, right), PREFIX))
            }
            _ => self.value(body).0,
        }
    }

    fn fold(&self, axes: Run, states: Run) -> String {
        let states = self.algorithm.folds.get(states.range()).unwrap_or(&[]);
        let list = |parts: Vec<String>| format!("({})", parts.join(", "));
        let values = |pick: &dyn Fn(&crate::algorithm::FoldState) -> Option<ValueId>| {
            list(states.iter().filter_map(pick).map(|v| self.value(v).0).collect())
        };
        let variables = |pick: &dyn Fn(&crate::algorithm::FoldState) -> u32| {
            list(states.iter().map(|s| format!("%{}", pick(s))).collect())
        };
        let mut text = format!("fold(|{}| init {}, ", self.axes(axes), values(&|s| Some(s.init)));
        text += &format!("step {} => {}", variables(&|s| s.variable), values(&|s| Some(s.step)));
        if states.iter().any(|s| s.merge.is_some()) {
            text +=
                &format!(", merge {}, {} => {}", variables(&|s| s.left), variables(&|s| s.right), values(&|s| s.merge));
        }
        text + ")"
    }

    /// Indices, with commas between them.
    fn places(&self, indices: Run) -> String {
        let list = self.algorithm.index_lists.get(indices.range()).unwrap_or(&[]);
        list.iter().map(|&i| self.index(i).0).collect::<Vec<_>>().join(", ")
    }

    /// The name of what is read.
    pub fn source(&self, source: Source) -> &str {
        match source {
            Source::Parameter(p) => self.parameter(p),
            Source::Equation { equation, component } => {
                let equation = self.algorithm.equations.get(usize::from(equation));
                let components = equation.and_then(|e| self.algorithm.components.get(e.components.range()));
                components.and_then(|c| c.get(usize::from(component))).map_or("?", |c| &c.name)
            }
        }
    }
}

fn compare(op: Compare) -> &'static str {
    match op {
        Compare::Eq => "==",
        Compare::Ne => "!=",
        Compare::Lt => "<",
        Compare::Le => "<=",
        Compare::Gt => ">",
        Compare::Ge => ">=",
    }
}

fn unary(op: Unary) -> &'static str {
    match op {
        Unary::Neg => "-",
        Unary::Not => "!",
        Unary::Abs => "abs",
        Unary::Floor => "floor",
        Unary::Ceil => "ceil",
        Unary::Trunc => "trunc",
        Unary::Round => "round",
        Unary::Sqrt => "sqrt",
        Unary::Rsqrt => "rsqrt",
        Unary::Exp => "exp",
        Unary::Log => "log",
        Unary::Tanh => "tanh",
        Unary::Erf => "erf",
        Unary::Sin => "sin",
        Unary::Cos => "cos",
        Unary::ApproxExp => "approx::exp",
        Unary::ApproxExp2 => "approx::exp2",
        Unary::ApproxLog => "approx::log",
        Unary::ApproxSqrt => "approx::sqrt",
        Unary::ApproxRsqrt => "approx::rsqrt",
        Unary::ApproxTanh => "approx::tanh",
        Unary::ApproxSin => "approx::sin",
        Unary::ApproxCos => "approx::cos",
    }
}

/// The spelling, and the strength of an infix operator.
fn binary(op: Binary, element: Option<ElementType>) -> (&'static str, Option<u8>) {
    let logical = element == Some(ElementType::Bool);
    match op {
        Binary::Add => ("+", Some(SUM)),
        Binary::Sub => ("-", Some(SUM)),
        Binary::Mul => ("*", Some(PRODUCT)),
        Binary::Div => ("/", Some(PRODUCT)),
        Binary::Rem => ("%", Some(PRODUCT)),
        Binary::Max => ("max", None),
        Binary::Min => ("min", None),
        Binary::MaxNum => ("max_num", None),
        Binary::MinNum => ("min_num", None),
        Binary::And if logical => ("&&", Some(AND)),
        Binary::Or if logical => ("||", Some(OR)),
        Binary::And => ("&", Some(BIT_AND)),
        Binary::Or => ("|", Some(BIT_OR)),
        Binary::Xor => ("^", Some(BIT_XOR)),
        Binary::Shl => ("<<", Some(SHIFT)),
        Binary::Shr => (">>", Some(SHIFT)),
    }
}

fn reduction(op: Reduction) -> &'static str {
    match op {
        Reduction::Sum => "sum",
        Reduction::Prod => "prod",
        Reduction::Max => "max",
        Reduction::Min => "min",
        Reduction::All => "all",
        Reduction::Any => "any",
        Reduction::ArgMax => "argmax",
        Reduction::ArgMin => "argmin",
    }
}

fn literal(bits: u64, element: Option<ElementType>) -> Piece {
    let Some(element) = element else { return (format!("{bits:#x}"), ATOM) };
    if let Some(format) = Format::of(element) {
        return float(format.value(bits), element);
    }
    let text = match element {
        ElementType::Bool => (bits != 0).to_string(),
        _ if element.is_signed_integer() => {
            let unused = 64 - 8 * element.bytes();
            // Shifting left and back repeats the sign bit.
            ((bits << unused).cast_signed() >> unused).to_string()
        }
        _ => bits.to_string(),
    };
    let strength = if text.starts_with('-') { PREFIX } else { ATOM };
    (format!("{text}{}", if element == ElementType::Bool { "" } else { element.name() }), strength)
}

fn float(value: f64, element: ElementType) -> Piece {
    let text = match value {
        v if v.is_nan() => "nan".to_owned(),
        v if v.is_infinite() => if v < 0.0 { "-inf" } else { "inf" }.to_owned(),
        // The shortest digits that give an f32 back are fewer than those of the same number as an f64.
        #[allow(clippy::cast_possible_truncation, reason = "the value came from an f32")]
        v if element == ElementType::F32 => format!("{:?}", v as f32),
        v => format!("{v:?}"),
    };
    let strength = if text.starts_with('-') { PREFIX } else { ATOM };
    // `inf` and `nan` take no suffix in the language.
    (format!("{text}{}", if value.is_finite() { element.name() } else { "" }), strength)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_written_with_their_type() {
        assert_eq!(literal(u64::from(0.1_f32.to_bits()), Some(ElementType::F32)).0, "0.1f32");
        assert_eq!(literal(0xff, Some(ElementType::I8)).0, "-1i8");
        assert_eq!(literal(0xff, Some(ElementType::U8)).0, "255u8");
    }
}

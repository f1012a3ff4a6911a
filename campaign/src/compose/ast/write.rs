//! Expressions as text.

use super::expr::{Cond, End, Expr, HALVES, Reduce, Reduction, States};
use super::{Equation, SIZES, Scatter, Type, list};

/// A number as a literal of a type, without a suffix.
fn number(n: i64, ty: Type) -> String {
    if ty == Type::Bool {
        return (ty.number(n).int() != 0).to_string();
    }
    if ty.is_integer() { n.to_string() } else { format!("{n}.0") }
}

/// The same with a suffix, so that nothing else has to say which type it is.
fn typed(n: i64, ty: Type) -> String {
    if ty == Type::Bool {
        return number(n, ty);
    }
    format!("{}{}", number(n, ty), ty.name())
}

/// The same in parentheses if it is negative.
fn operand(n: i64, ty: Type) -> String {
    if n < 0 { format!("({})", number(n, ty)) } else { number(n, ty) }
}

impl End {
    /// As the start of a range, or its end.
    fn write(&self, is_end: bool) -> String {
        let known = self.write_known();
        match &self.memory {
            Some(memory) => format!("{}({memory}, {known})", if is_end { "min" } else { "max" }),
            None => known,
        }
    }

    fn write_known(&self) -> String {
        let nothing = super::Extent::default();
        let (axis, times) = match &self.axis {
            None => return self.plus.to_string(),
            Some((axis, times)) => (axis, *times),
        };
        let product = if times.abs() == 1 { axis.clone() } else { format!("{} * {axis}", times.abs()) };
        match self.plus {
            plus if times < 0 => format!("{plus} - {product}"),
            plus if plus == nothing => product,
            plus if plus.times == [0; 3] && plus.plus < 0 => format!("{product} - {}", -plus.plus),
            plus => format!("{product} + {plus}"),
        }
    }

    /// After `..=`, if that is as short.
    fn included(&self) -> Option<String> {
        let is_next = self.axis.as_ref().is_some_and(|a| a.1 > 0) && self.plus == super::Extent::literal(1);
        let last = Self { axis: self.axis.clone(), ..Self::known(super::Extent::default()) };
        (is_next && self.memory.is_none()).then(|| last.write_known())
    }
}

impl Cond {
    fn write(&self) -> String {
        match self {
            Self::Axis(axis, op, extent) => format!("{axis} {op} {extent}"),
            Self::Indices(a, op, b) => format!("{a} {op} {b}"),
            Self::Value(ty, value, op, n) => format!("{} {op} {}", value.write(*ty), operand(*n, *ty)),
            Self::Alike(ty, a, op, b) => format!("{} {op} {}", a.write(*ty), b.write(*ty)),
            Self::And(a, b) => format!("{} && {}", a.inner(), b.inner()),
            Self::Or(a, b) => format!("{} || {}", a.inner(), b.inner()),
            Self::Not(a) => format!("!({})", a.write()),
            Self::Flag(value) => value.write(Type::Bool),
        }
    }

    fn inner(&self) -> String {
        if matches!(self, Self::And(..) | Self::Or(..)) { format!("({})", self.write()) } else { self.write() }
    }
}

impl Expr {
    /// As it is written where a type is known.
    pub(super) fn write(&self, ty: Type) -> String {
        match self {
            // The type of an `i32` is left to its context.
            Self::Literal(n) if ty == Type::I32 => number(*n, ty),
            Self::Literal(n) => typed(*n, ty),
            Self::Axis(axis) => format!("({axis} as {})", ty.name()),
            Self::Size(size) => format!("({} as {})", SIZES[*size], ty.name()),
            Self::Scalar(name) => name.clone(),
            Self::Read(tensor, indices, or) => {
                let read = format!("{tensor}[{}]", list(indices));
                match or.as_deref() {
                    None => read,
                    Some(Self::Literal(n)) => format!("({read} or {})", number(*n, ty)),
                    Some(or) => format!("({read} or ({}))", or.write(ty)),
                }
            }
            Self::Unary("exp", a) => format!("exp(1000.0 * {})", a.write(ty)),
            Self::Unary("-", a) => format!("(-{})", a.write(ty)),
            Self::Unary(function, a) => match HALVES.iter().find(|half| half.0 == *function) {
                Some((_, function)) => format!("{function}({} / 2.0)", a.write(ty)),
                None => format!("{function}({})", a.write(ty)),
            },
            Self::Binary(op, a, b) if op.starts_with('m') => format!("{op}({}, {})", a.write(ty), b.write(ty)),
            Self::Binary(op, a, b) => format!("({} {op} {})", a.write(ty), b.write(ty)),
            Self::Fma(parts) => {
                let [a, b, c] = parts.as_ref();
                format!("fma({}, {}, {})", a.write(ty), b.write(ty), c.write(ty))
            }
            Self::Cast(from, a) => format!("({} as {})", a.write(*from), ty.name()),
            Self::If(c, a, b) => format!("(if {} {{ {} }} else {{ {} }})", c.write(), a.write(ty), b.write(ty)),
            Self::Test(c) => format!("({})", c.write()),
            Self::Reduce(r) => r.write(ty),
            Self::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| part.write(ty)).collect();
                format!("({})", parts.join(", "))
            }
        }
    }
}

impl Equation {
    /// The right-hand side, if it is no scatter: of a tuple each part with the type of its tensor.
    pub(super) fn right_hand_side(&self) -> String {
        let Expr::Tuple(parts) = &self.value else { return self.value.write(self.ty) };
        let parts: Vec<String> = parts.iter().zip(self.targets()).map(|(part, of)| part.write(of.1)).collect();
        format!("({})", parts.join(", "))
    }

    /// What stands after the places of a scatter.
    pub(super) fn scattered(&self, scatter: &Scatter) -> String {
        let bound = &self.axes[self.axes.len() - scatter.bound..];
        let axes: Vec<String> = bound.iter().map(|(axis, extent)| format!("{axis} in 0..{extent}")).collect();
        let (sign, kind) = match scatter.by {
            None => ("=", "only"),
            Some(Reduction::Max) => ("max=", "max"),
            Some(Reduction::Min) => ("min=", "min"),
            Some(_) if self.ty.is_integer() => ("+=", "sum"),
            Some(_) => ("+=", "unordered sum"),
        };
        let sign = if self.in_place { sign } else { "=" };
        format!("{sign} {kind}(|{}| {})", axes.join(", "), self.value.write(self.ty))
    }
}

impl Reduce {
    fn write(&self, ty: Type) -> String {
        let axis = |(n, (a, extent)): (usize, &(String, super::Extent))| match self.ranges.get(n) {
            Some(Some((from, to))) => match to.included() {
                Some(last) => format!("{a} in {}..={last}", from.write(false)),
                None => format!("{a} in {}..{}", from.write(false), to.write(true)),
            },
            _ if self.inferred => a.clone(),
            _ => format!("{a} in 0..{extent}"),
        };
        let axes: Vec<String> = self.axes.iter().enumerate().map(axis).collect();
        let (axes, term) = (axes.join(", "), self.term.write(self.of));
        let above = format!("{term} > {}", number(0, self.of));
        let (zero, one, cast) = (typed(0, ty), typed(1, ty), ty.name());
        match self.by {
            Reduction::Sum => format!("sum(|{axes}| {term})"),
            Reduction::UnorderedSum => format!("unordered sum(|{axes}| {term})"),
            Reduction::OnlineSum => format!("online sum(|{axes}| {term})"),
            Reduction::OrderedSum => format!("ordered sum(|{axes}| {term})"),
            Reduction::Prod => format!("prod(|{axes}| {term})"),
            // The product stands by itself: it is what is accumulated.
            Reduction::Dot => {
                format!("dot(|{axes}| {})", term.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(&term))
            }
            Reduction::Max => format!("max(|{axes}| {term})"),
            Reduction::Min => format!("min(|{axes}| {term})"),
            Reduction::Argmax => format!("(argmax(|{axes}| {term}) as {cast})"),
            Reduction::Argmin => format!("(argmin(|{axes}| {term}) as {cast})"),
            Reduction::Any if ty == Type::Bool => format!("any(|{axes}| {above})"),
            Reduction::All if ty == Type::Bool => format!("all(|{axes}| {above})"),
            Reduction::Any => format!("(if any(|{axes}| {above}) {{ {one} }} else {{ {zero} }})"),
            Reduction::All => format!("(if all(|{axes}| {above}) {{ {one} }} else {{ {zero} }})"),
            Reduction::Fold => {
                format!("fold(|{axes}| init ({zero}), step (s0) => (s0 + {term}), merge ((a0), (b0)) => (a0 + b0))")
            }
            Reduction::Last => {
                format!("fold(|{axes}| init ({zero}), step (s0) => (if {above} {{ {term} }} else {{ s0 }}))")
            }
            Reduction::States(states) => {
                let second = self.second.as_ref().map(|e| e.write(self.of)).unwrap_or_default();
                let (state, merge) = several(states, self.of, &term, &second);
                format!("fold(|{axes}| {state}{merge})")
            }
        }
    }
}

/// `init` and `step`, and `merge` if there is one.
fn several(states: States, of: Type, x: &str, second: &str) -> (String, String) {
    let (zero, start) = (typed(0, of), typed(states.start(of), of));
    let above = format!("{x} > {}", number(0, of));
    let merge = |next: &str| format!(", merge ((a0, a1), (b0, b1)) => ({next})");
    match states {
        States::SumMax => (
            format!("init ({zero}, {start}), step (s0, s1) => (s0 + {x}, max(s1, {x}))"),
            merge("a0 + b0, max(a1, b1)"),
        ),
        States::MinMax => (
            format!("init ({start}, {}), step (s0, s1) => (min(s0, {x}), max(s1, {x}))", typed(0, of)),
            merge("min(a0, b0), max(a1, b1)"),
        ),
        States::CountSum => (
            format!("init (0i32, {zero}), step (s0, s1) => (if {above} {{ s0 + 1 }} else {{ s0 }}, s1 + {x})"),
            merge("a0 + b0, b1 + a1"),
        ),
        States::Best => (
            format!(
                "init ({start}, {zero}), step (s0, s1) => (max(s0, {x}), if {x} > s0 {{ {second} }} else if {x} == s0 \
                 {{ min(s1, {second}) }} else {{ s1 }})"
            ),
            merge("max(a0, b0), if b0 > a0 { b1 } else if b0 == a0 { min(a1, b1) } else { a1 }"),
        ),
        States::Three => (
            format!("init ({start}, {zero}, 0u32), step (s0, s1, s2) => (min(s0, {x}), s1 + {second}, s2 + 1)"),
            ", merge ((a0, a1, a2), (b0, b1, b2)) => (min(a0, b0), a1 + b1, a2 + b2)".to_owned(),
        ),
        States::Rises => (
            format!("init ({zero}, 0i32), step (s0, s1) => ({x}, if {x} > s0 {{ s1 + 1 }} else {{ s1 }})"),
            String::new(),
        ),
        States::Alternate => (format!("init ({zero}, {zero}), step (s0, s1) => (s1, s0 + {x})"), String::new()),
    }
}

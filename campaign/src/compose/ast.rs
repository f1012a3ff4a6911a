//! Kernels as they are drawn here: equations that can be evaluated, and schedules whose ops are text.

use std::collections::BTreeMap;
use std::fmt;

/// Names of sizes and their values.
pub type Dims = BTreeMap<&'static str, i64>;

/// The sizes that kernels have.
pub const SIZES: [&str; 3] = ["M", "N", "K"];

/// An extent: multiples of the sizes, and a constant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// How often each of [`SIZES`].
    pub times: [i64; 3],
    /// What is added.
    pub plus: i64,
}

impl Extent {
    /// A constant.
    pub fn literal(plus: i64) -> Self {
        Self { plus, ..Self::default() }
    }

    /// One of [`SIZES`].
    pub fn size(which: usize) -> Self {
        let mut times = [0; 3];
        times[which] = 1;
        Self { times, plus: 0 }
    }

    /// The smallest form that is known to be no less than either.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let times = std::array::from_fn(|n| self.times[n].max(other.times[n]));
        Self { times, plus: self.plus.max(other.plus) }
    }

    /// What an index `factor · axis + plus` needs, where the axis has this extent.
    #[must_use]
    pub fn reach(self, factor: i64, plus: i64) -> Self {
        Self { times: self.times.map(|t| t * factor), plus: self.plus * factor + plus }
    }

    /// The size that this is, if it is one.
    pub fn as_size(self) -> Option<usize> {
        (0..3).find(|n| self == Self::size(*n))
    }

    /// Its value.
    pub fn at(self, dims: &Dims) -> i64 {
        self.plus + (0..3).map(|n| self.times[n] * dims.get(SIZES[n]).copied().unwrap_or(0)).sum::<i64>()
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        for (name, times) in SIZES.iter().zip(self.times) {
            match times {
                0 => {}
                1 => parts.push((*name).to_owned()),
                _ => parts.push(format!("{times} * {name}")),
            }
        }
        if self.plus != 0 || parts.is_empty() {
            parts.push(self.plus.to_string());
        }
        f.write_str(&parts.join(" + "))
    }
}

/// Element types that are drawn. Floats hold small integers, so that no operation rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `i32`, which wraps.
    I32,
    /// `f16`: integers up to 2048.
    F16,
    /// `f32`: integers up to 2²⁴.
    F32,
}

impl Type {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::I32 => "i32",
            Self::F16 => "f16",
            Self::F32 => "f32",
        }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        if self == Self::F16 { 2 } else { 4 }
    }
}

/// An index.
#[derive(Clone, Debug, PartialEq)]
pub enum Index {
    /// `factor · axis + plus`.
    Axis(String, i64, i64),
    /// `axis / by` or `axis % by`.
    Quotient(String, i64, bool),
    /// `SIZE - 1 - axis`, of an axis with that size.
    Mirrored(String, usize),
    /// An element of a tensor of `i32`.
    Gather(String, Vec<Index>),
    /// A number.
    Literal(i64),
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Axis(axis, factor, plus) => {
                if *factor != 1 {
                    write!(f, "{factor} * ")?;
                }
                f.write_str(axis)?;
                match plus {
                    0 => Ok(()),
                    1.. => write!(f, " + {plus}"),
                    _ => write!(f, " - {}", -plus),
                }
            }
            Self::Quotient(axis, by, rest) => write!(f, "{axis} {} {by}", if *rest { '%' } else { '/' }),
            Self::Mirrored(axis, size) => write!(f, "{} - 1 - {axis}", SIZES[*size]),
            Self::Gather(tensor, indices) => write!(f, "{tensor}[{}]", list(indices)),
            Self::Literal(n) => n.fmt(f),
        }
    }
}

fn list<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// What reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Any order.
    Sum,
    /// Ascending order.
    OrderedSum,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// Where the greatest is.
    Argmax,
    /// Where the least is.
    Argmin,
    /// A `fold` with `merge` that adds.
    Fold,
    /// A `fold` without `merge`: the last term above zero.
    Last,
    /// How many terms are above zero, by `any`: one or none.
    Any,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A small integer.
    Literal(i64),
    /// An element, and what is outside.
    Read(String, Vec<Index>, Option<i64>),
    /// `+`, `-`, `*`, or a function of two arguments.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `if axis < n { } else { }`.
    If(String, i64, Box<Expr>, Box<Expr>),
    /// `if value > n { } else { }`.
    Above(Box<Expr>, i64, Box<Expr>, Box<Expr>),
    /// An axis as a value.
    Axis(String),
    /// A reduction over axes with their extents.
    Reduce(Reduction, Vec<(String, Extent)>, Box<Expr>),
}

impl Expr {
    /// The expressions directly inside.
    pub fn parts(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_) | Self::Read(..) | Self::Axis(_) => Vec::new(),
            Self::Binary(_, a, b) | Self::If(_, _, a, b) => vec![a, b],
            Self::Above(c, _, a, b) => vec![c, a, b],
            Self::Reduce(_, _, a) => vec![a],
        }
    }

    /// The same, to change them.
    pub fn parts_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Self::Literal(_) | Self::Read(..) | Self::Axis(_) => Vec::new(),
            Self::Binary(_, a, b) | Self::If(_, _, a, b) => vec![a, b],
            Self::Above(c, _, a, b) => vec![c, a, b],
            Self::Reduce(_, _, a) => vec![a],
        }
    }

    /// Calls something for this and all that is inside.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        self.parts().into_iter().for_each(|p| p.walk(visit));
    }

    /// The tensors that are read, those of gathered indices included.
    pub fn tensors(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.walk(&mut |e| {
            if let Expr::Read(name, indices, _) = e {
                found.push(name.as_str());
                let mut inside: Vec<&Index> = indices.iter().collect();
                while let Some(index) = inside.pop() {
                    if let Index::Gather(name, more) = index {
                        found.push(name);
                        inside.extend(more);
                    }
                }
            }
        });
        found
    }

    /// All reductions.
    pub fn reductions(&self) -> Vec<(Reduction, &[(String, Extent)])> {
        let mut found = Vec::new();
        self.walk(&mut |e| {
            if let Expr::Reduce(by, axes, _) = e {
                found.push((*by, axes.as_slice()));
            }
        });
        found
    }

    fn write(&self, ty: Type) -> String {
        let number = |n: i64| {
            let text = if ty == Type::I32 { n.to_string() } else { format!("{n}.0") };
            if n < 0 { format!("({text})") } else { text }
        };
        match self {
            Self::Literal(n) => format!("{}{}", number(*n).trim_matches(['(', ')']), ty.name()).replace("i32", ""),
            Self::Axis(axis) => format!("({axis} as {})", ty.name()),
            Self::Read(tensor, indices, or) => {
                let read = format!("{tensor}[{}]", list(indices));
                or.map_or(read.clone(), |n| format!("({read} or {})", number(n).trim_matches(['(', ')'])))
            }
            Self::Binary(op @ ("max" | "min"), a, b) => format!("{op}({}, {})", a.write(ty), b.write(ty)),
            Self::Binary(op, a, b) => format!("({} {op} {})", a.write(ty), b.write(ty)),
            Self::If(axis, n, a, b) => format!("(if {axis} < {n} {{ {} }} else {{ {} }})", a.write(ty), b.write(ty)),
            Self::Above(c, n, a, b) => {
                let n = number(*n);
                format!("(if {} > {n} {{ {} }} else {{ {} }})", c.write(ty), a.write(ty), b.write(ty))
            }
            Self::Reduce(by, axes, term) => {
                let axes: Vec<String> = axes.iter().map(|(a, e)| format!("{a} in 0..{e}")).collect();
                let (axes, term) = (axes.join(", "), term.write(ty));
                let (zero, cast) = (number(0), ty.name());
                match by {
                    Reduction::Sum => format!("sum(|{axes}| {term})"),
                    Reduction::OrderedSum => format!("ordered sum(|{axes}| {term})"),
                    Reduction::Max => format!("max(|{axes}| {term})"),
                    Reduction::Min => format!("min(|{axes}| {term})"),
                    Reduction::Argmax => format!("(argmax(|{axes}| {term}) as {cast})"),
                    Reduction::Argmin => format!("(argmin(|{axes}| {term}) as {cast})"),
                    Reduction::Any => {
                        format!("(if any(|{axes}| {term} > {zero}) {{ {}{cast} }} else {{ {zero}{cast} }})", number(1))
                    }
                    Reduction::Fold => {
                        format!(
                            "fold(|{axes}| init ({zero}{cast}), step (s) => (s + {term}), merge ((a), (b)) => (a + b))"
                        )
                    }
                    Reduction::Last => format!(
                        "fold(|{axes}| init ({zero}{cast}), step (s) => (if {term} > {zero} {{ {term} }} else {{ s }}))"
                    ),
                }
            }
        }
    }
}

/// An equation for one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Equation {
    /// The tensor.
    pub name: String,
    /// Its axes.
    pub axes: Vec<(String, Extent)>,
    /// What each element is.
    pub value: Expr,
    /// Whether it is an output.
    pub output: bool,
}

/// An input.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<Extent>,
    /// Whether it holds indices, and is of `i32` whatever the others are.
    pub indices: bool,
}

/// The schedule of an equation, or of a copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// What is scheduled: the name of an equation, or a name of its own for a copy.
    pub name: String,
    /// For a copy its axes, and what it copies.
    pub copy: Option<(Vec<String>, String)>,
    /// `registers per warp`, or nothing for an output.
    pub place: String,
    /// The loop it stands in.
    pub at: Option<(String, String)>,
    /// Further clauses: `ring(2)`, `via tma`, `by math`.
    pub clauses: Vec<String>,
    /// The ops, without semicolons.
    pub ops: Vec<String>,
    /// The loops that it has then, as far as the draw knows, outermost first.
    pub loops: Vec<String>,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.copy {
            Some((axes, of)) => write!(f, "stage {}[{}] = {of}", self.name, axes.join(", "))?,
            None => write!(f, "schedule {}", self.name)?,
        }
        if !self.place.is_empty() {
            write!(f, " in {}", self.place)?;
        }
        if let Some((stage, axis)) = &self.at {
            write!(f, " at {stage}.{axis}")?;
        }
        for clause in &self.clauses {
            write!(f, " {clause}")?;
        }
        f.write_str(" {")?;
        self.ops.iter().try_for_each(|op| write!(f, " {op};"))?;
        f.write_str(" }")
    }
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The type of all but indices.
    pub ty: Type,
    /// Inputs.
    pub inputs: Vec<Input>,
    /// The greatest value of each size, if a fact says so.
    pub most: [Option<i64>; 3],
    /// What divides each size; 1 is nothing.
    pub divides: [i64; 3],
    /// The least value of each size.
    pub least: [i64; 3],
    /// Outputs first; what is read comes after its readers.
    pub equations: Vec<Equation>,
    /// Items of `launch`.
    pub launch: Vec<String>,
    /// Declarations of units of its own.
    pub units: Vec<String>,
    /// Schedules, those of readers first.
    pub schedules: Vec<Schedule>,
    /// Intermediates whose reductions are repeated at each read.
    pub inlined: Vec<String>,
}

impl Kernel {
    /// The equation of a tensor.
    pub fn equation(&self, name: &str) -> Option<&Equation> {
        self.equations.iter().find(|e| e.name == name)
    }

    /// Drops what nothing reads any more; what stands in a loop that is gone stays, and is refused.
    pub fn tidy(&mut self) {
        loop {
            let read: Vec<String> = self.equations.iter().flat_map(|e| e.value.tensors()).map(str::to_owned).collect();
            let before = self.equations.len();
            self.equations.retain(|e| e.output || read.contains(&e.name));
            self.inputs.retain(|i| read.contains(&i.name) || i.name.starts_with("size"));
            if self.equations.len() == before {
                break;
            }
        }
        let (equations, inputs) = (&self.equations, &self.inputs);
        let known = |name: &str| equations.iter().any(|e| e.name == name) || inputs.iter().any(|i| i.name == name);
        self.schedules.retain(|s| known(s.copy.as_ref().map_or(&s.name, |c| &c.1)));
        self.inlined.retain(|n| equations.iter().any(|e| e.name == *n));
    }

    /// Facts, as they are written.
    fn facts(&self) -> Vec<String> {
        let used = |n: usize| {
            let shapes = self.inputs.iter().flat_map(|i| i.shape.iter().copied());
            shapes.chain(self.equations.iter().flat_map(|e| e.axes.iter().map(|a| a.1))).any(|e| e.times[n] != 0)
        };
        let mut facts = Vec::new();
        for n in (0..3).filter(|n| used(*n)) {
            if let Some(most) = self.most[n] {
                facts.push(format!("{} <= {most}", SIZES[n]));
            }
            if self.divides[n] > 1 {
                facts.push(format!("{} % {} == 0", SIZES[n], self.divides[n]));
            }
            if self.least[n] > 0 {
                facts.push(format!("{} >= {}", SIZES[n], self.least[n]));
            }
        }
        facts
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ty = self.ty.name();
        let inputs: Vec<String> = (self.inputs.iter())
            .map(|i| format!("{}: {}[{}]", i.name, if i.indices { "i32" } else { ty }, list(&i.shape)))
            .collect();
        let outputs: Vec<String> = (self.equations.iter().filter(|e| e.output))
            .map(|e| format!("{}: {ty}[{}]", e.name, list(&e.axes.iter().map(|a| a.1).collect::<Vec<_>>())))
            .collect();
        write!(f, "kernel K({}) -> ({})", inputs.join(", "), outputs.join(", "))?;
        let facts = self.facts();
        if !facts.is_empty() {
            write!(f, " where {}", facts.join(", "))?;
        }
        writeln!(f, " {{")?;
        for e in self.equations.iter().rev() {
            let axis =
                |(a, extent): &(String, Extent)| if e.output { a.clone() } else { format!("{a} in 0..{extent}") };
            let axes: Vec<String> = e.axes.iter().map(axis).collect();
            writeln!(f, "    {}[{}] = {};", e.name, axes.join(", "), e.value.write(self.ty))?;
        }
        for name in &self.inlined {
            writeln!(f, "    inline {name};")?;
        }
        self.units.iter().try_for_each(|u| writeln!(f, "    {u}"))?;
        if !self.launch.is_empty() {
            writeln!(f, "    launch {};", self.launch.join(", "))?;
        }
        self.schedules.iter().try_for_each(|s| writeln!(f, "    {s}"))?;
        writeln!(f, "}}")
    }
}

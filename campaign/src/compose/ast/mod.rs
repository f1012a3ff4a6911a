//! Kernels as they are drawn here: equations that can be evaluated, and schedules whose ops are text.

mod expr;
mod extent;
mod types;
mod write;

pub use expr::{Cond, End, Ends, Expr, HALVES, Index, Reduce, Reduction, States};
pub use extent::{Extent, Pitch, Related, Relation, Stride};
pub use types::{Number, Type};

use std::collections::BTreeMap;
use std::fmt;

/// Names of sizes and their values.
pub type Dims = BTreeMap<&'static str, i64>;

/// The sizes that kernels have.
pub const SIZES: [&str; 3] = ["M", "N", "K"];

/// What axes are called: those as long as [`SIZES`], and one as long as a number.
pub const LETTERS: [&str; 4] = ["i", "j", "k", "l"];

/// Names of strides that are told at launch.
pub const PITCHES: [&str; 6] = ["la", "lb", "lc", "ld", "le", "lf"];

fn list<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// A tensor of the signature: its name, type, shape and strides, and whether it is updated in place.
pub type Declared = (String, Type, Vec<Extent>, Vec<Stride>, bool);

/// An equation for one tensor, or for several by a fold with several states or by a tuple.
#[derive(Clone, Debug, PartialEq)]
pub struct Equation {
    /// The tensor.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Further ones with their types.
    pub also: Vec<(String, Type)>,
    /// Its strides, if it is an output that is not dense.
    pub strides: Vec<Stride>,
    /// Whether it is an output that is updated in place, and so are the further ones.
    pub in_place: bool,
    /// Its axes.
    pub axes: Vec<(String, Extent)>,
    /// Where each of them begins; nowhere but at 0 if nothing is said.
    pub lower: Vec<i64>,
    /// What each element is.
    pub value: Expr,
    /// Whether it is an output.
    pub output: bool,
    /// If its value is a term for each of its axes' values: where those go.
    pub scatter: Option<Scatter>,
}

/// Where the terms of an equation go.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    /// How they are taken in: a sum or an extreme; none: by `only`, and the places are distinct.
    pub by: Option<Reduction>,
    /// The shape of the tensor.
    pub shape: Vec<Extent>,
    /// The element of it that a term belongs to.
    pub places: Vec<Index>,
    /// How many of the axes, the last ones, are no indices of the tensor.
    pub bound: usize,
}

/// An input.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<Extent>,
    /// Its type.
    pub ty: Type,
    /// Whether it holds indices.
    pub indices: bool,
    /// Whether no two of them are the same.
    pub distinct: bool,
    /// Whether it is a scalar that is passed by value.
    pub by_value: bool,
    /// Its strides, if it is not dense.
    pub strides: Vec<Stride>,
}

impl Input {
    /// A dense tensor.
    pub fn new(name: &str, ty: Type, shape: Vec<Extent>) -> Self {
        let name = name.to_owned();
        Self { name, shape, ty, indices: false, distinct: false, by_value: false, strides: Vec::new() }
    }
}

impl Equation {
    /// An equation for one dense tensor.
    pub fn new(name: &str, ty: Type, axes: Vec<(String, Extent)>, value: Expr, output: bool) -> Self {
        let (name, also, strides, lower) = (name.to_owned(), Vec::new(), Vec::new(), Vec::new());
        Self { name, ty, also, strides, in_place: false, axes, lower, value, output, scatter: None }
    }

    /// Where an axis begins.
    pub fn first(&self, axis: usize) -> i64 {
        self.lower.get(axis).copied().unwrap_or(0)
    }

    /// The tensors that it defines, with their types.
    pub fn targets(&self) -> Vec<(&str, Type)> {
        let also = self.also.iter().map(|(name, ty)| (name.as_str(), *ty));
        std::iter::once((self.name.as_str(), self.ty)).chain(also).collect()
    }

    /// Whether it defines a tensor.
    pub fn defines(&self, name: &str) -> bool {
        self.targets().iter().any(|t| t.0 == name)
    }

    /// The tensors that it reads.
    pub fn tensors(&self) -> Vec<&str> {
        let places = self.scatter.iter().flat_map(|scatter| &scatter.places);
        self.value.tensors().into_iter().chain(places.flat_map(Index::tensors)).collect()
    }

    /// The shape of what it defines.
    pub fn shape(&self) -> Vec<Extent> {
        match &self.scatter {
            Some(scatter) => scatter.shape.clone(),
            None => self.axes.iter().map(|axis| axis.1).collect(),
        }
    }

    /// Whether it reads something that another equation defines.
    pub fn reads(&self, other: &Self) -> bool {
        self.tensors().into_iter().any(|t| other.defines(t))
    }
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
    /// The type that most is computed in.
    pub ty: Type,
    /// Inputs.
    pub inputs: Vec<Input>,
    /// Strides that are told at launch.
    pub pitches: Vec<Pitch>,
    /// The greatest value of each size, if a fact says so.
    pub most: [Option<i64>; 3],
    /// What divides each size; 1 is nothing.
    pub divides: [i64; 3],
    /// The least value of each size.
    pub least: [i64; 3],
    /// What relates two sizes, if a fact does.
    pub relation: Option<Relation>,
    /// Outputs first; what is read comes after its readers.
    pub equations: Vec<Equation>,
    /// Items of `launch`.
    pub launch: Vec<String>,
    /// Declarations of units of its own.
    pub units: Vec<String>,
    /// Schedules, those of readers first.
    pub schedules: Vec<Schedule>,
    /// Constants of `tune` with their candidates; their names stand in ops and clauses.
    pub tuned: Vec<(String, Vec<i64>)>,
    /// Intermediates whose reductions are repeated at each read.
    pub inlined: Vec<String>,
    /// The tiles of a product, if it is one: sizes are drawn beside their multiples.
    pub tile: Option<Tile>,
}

/// The tiles of a product, along rows, columns and terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Iterations.
    pub iterations: [i64; 3],
    /// What is a number, and not a size.
    pub literal: [Option<i64>; 3],
}

impl Kernel {
    /// The equation of a tensor.
    pub fn equation(&self, name: &str) -> Option<&Equation> {
        self.equations.iter().find(|e| e.defines(name))
    }

    /// The type of a tensor or scalar.
    pub fn type_of(&self, name: &str) -> Type {
        let input = self.inputs.iter().find(|i| i.name == name).map(|i| i.ty);
        let targets = self.equations.iter().flat_map(Equation::targets);
        input.or_else(|| targets.into_iter().find(|t| t.0 == name).map(|t| t.1)).unwrap_or(self.ty)
    }

    /// The outputs.
    pub fn outputs(&self) -> Vec<Declared> {
        let of = |e: &Equation| -> Vec<Declared> {
            let shape = e.shape();
            let targets = e.targets().into_iter().enumerate();
            let strides = |n: usize| if n == 0 { e.strides.clone() } else { Vec::new() };
            targets.map(|(n, t)| (t.0.to_owned(), t.1, shape.clone(), strides(n), e.in_place)).collect()
        };
        self.equations.iter().filter(|e| e.output).flat_map(of).collect()
    }

    /// Everything in memory, inputs first.
    pub fn declared(&self) -> Vec<Declared> {
        let of = |i: &Input| (i.name.clone(), i.ty, i.shape.clone(), i.strides.clone(), false);
        self.inputs.iter().filter(|i| !i.by_value).map(of).chain(self.outputs()).collect()
    }

    /// Drops what nothing reads any more; what stands in a loop that is gone stays, and is refused.
    pub fn tidy(&mut self) {
        loop {
            let read: Vec<String> = self.equations.iter().flat_map(Equation::tensors).map(str::to_owned).collect();
            let before = self.equations.len();
            self.equations.retain(|e| e.output || read.iter().any(|r| e.defines(r)));
            self.inputs.retain(|i| read.contains(&i.name) || i.name.starts_with("size"));
            if self.equations.len() == before {
                break;
            }
        }
        let (equations, inputs) = (&self.equations, &self.inputs);
        let known = |name: &str| equations.iter().any(|e| e.defines(name)) || inputs.iter().any(|i| i.name == name);
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
        if let Some(relation) = self.relation
            && (0..3).all(|n| used(n) || relation.of != n && relation.to.times[n] == 0)
        {
            facts.push(relation.to_string());
        }
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
        let strides: Vec<Stride> = self.declared().into_iter().flat_map(|d| d.3).collect();
        for (n, pitch) in self.pitches.iter().enumerate().filter(|(n, _)| strides.contains(&Stride::Pitch(*n))) {
            if pitch.divides > 1 {
                facts.push(format!("{} % {} == 0", PITCHES[n], pitch.divides));
            }
            if pitch.told && pitch.of.is_none() {
                facts.push(format!("{} >= {}", PITCHES[n], pitch.least));
            }
        }
        facts
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensor = |(name, ty, shape, strides, in_place): &Declared| {
            let word = if *in_place { "inout " } else { "" };
            let strides = if strides.is_empty() { String::new() } else { format!("; {}", list(strides)) };
            format!("{word}{name}: {}[{}{strides}]", ty.name(), list(shape))
        };
        let (in_place, outputs): (Vec<Declared>, Vec<Declared>) = self.outputs().into_iter().partition(|d| d.4);
        let input = |i: &Input| match i.by_value {
            true => format!("{}: {}", i.name, i.ty.name()),
            false => tensor(&(i.name.clone(), i.ty, i.shape.clone(), i.strides.clone(), false)),
        };
        let inputs: Vec<String> = self.inputs.iter().map(input).chain(in_place.iter().map(tensor)).collect();
        let outputs: Vec<String> = outputs.iter().map(tensor).collect();
        write!(f, "kernel K({})", inputs.join(", "))?;
        if !outputs.is_empty() {
            write!(f, " -> ({})", outputs.join(", "))?;
        }
        let facts = self.facts();
        if !facts.is_empty() {
            write!(f, " where {}", facts.join(", "))?;
        }
        writeln!(f, " {{")?;
        for e in self.equations.iter().rev() {
            let axis = |(n, (a, extent)): (usize, &(String, Extent))| match e.first(n) {
                _ if e.output => a.clone(),
                first => format!("{a} in {first}..{}", Extent { plus: extent.plus + first, ..*extent }),
            };
            let axes: Vec<String> = e.axes.iter().enumerate().map(axis).collect();
            let names: Vec<&str> = e.targets().into_iter().map(|t| t.0).collect();
            let target = if names.len() > 1 { format!("({})", names.join(", ")) } else { e.name.clone() };
            if let Some(scatter) = &e.scatter {
                writeln!(f, "    {target}[{}] {};", list(&scatter.places), e.scattered(scatter))?;
                continue;
            }
            writeln!(f, "    {target}[{}] = {};", axes.join(", "), e.right_hand_side())?;
        }
        for name in &self.inlined {
            writeln!(f, "    inline {name};")?;
        }
        self.units.iter().try_for_each(|u| writeln!(f, "    {u}"))?;
        if !self.launch.is_empty() {
            writeln!(f, "    launch {};", self.launch.join(", "))?;
        }
        if !self.tuned.is_empty() {
            let all: Vec<String> = self.tuned.iter().map(|(name, all)| format!("{name} in [{}]", list(all))).collect();
            writeln!(f, "    tune {};", all.join(", "))?;
        }
        self.schedules.iter().try_for_each(|s| writeln!(f, "    {s}"))?;
        writeln!(f, "}}")
    }
}

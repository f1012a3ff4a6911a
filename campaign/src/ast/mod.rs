//! Kernels as the campaign generates, prints, interprets and shrinks them. It shares nothing with the compiler's own
//! tree. Expressions are in `value`.

mod value;

use std::collections::BTreeMap;

use tilewright_kernel::ElementType;
use tilewright_kernel::rules::is_injective;

pub use value::{Bound, Index, Node, State, Value};

/// Values of dimensions and strides by name.
pub type Dims = BTreeMap<String, i64>;

/// A size: `⌊mul · dim · times / div⌋ + add`, or the literal `add`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// Name of the dimension.
    pub dim: Option<String>,
    /// Its factor.
    pub mul: i64,
    /// A second dimension that it is multiplied by.
    pub times: Option<String>,
    /// What the product is divided by.
    pub div: i64,
    /// What is added.
    pub add: i64,
}

impl Size {
    /// A literal.
    pub fn literal(value: i64) -> Self {
        Self { dim: None, mul: 0, times: None, div: 1, add: value }
    }

    /// A dimension.
    pub fn named(dim: &str) -> Self {
        Self { dim: Some(dim.to_owned()), mul: 1, times: None, div: 1, add: 0 }
    }

    /// The value.
    pub fn value(&self, dims: &Dims) -> i64 {
        let of = |name: &Option<String>, none| name.as_ref().map_or(none, |d| dims.get(d).copied().unwrap_or(1));
        (self.mul * of(&self.dim, 0) * of(&self.times, 1)).div_euclid(self.div) + self.add
    }

    /// The value, if it is a literal.
    pub fn as_literal(&self) -> Option<i64> {
        self.dim.is_none().then_some(self.add)
    }

    /// The names that it mentions.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.dim.iter().chain(&self.times)
    }

    /// The same as an index.
    pub fn index(&self) -> Index {
        let literal = |v| Box::new(Index::Literal(v));
        let Some(dim) = &self.dim else { return Index::Literal(self.add) };
        let mut index = Index::Dim(dim.clone());
        if self.mul != 1 {
            index = Index::Mul(literal(self.mul), Box::new(index));
        }
        if let Some(times) = &self.times {
            index = Index::Mul(Box::new(index), Box::new(Index::Dim(times.clone())));
        }
        if self.div != 1 {
            index = Index::Div(Box::new(index), literal(self.div));
        }
        match self.add {
            0 => index,
            add if add < 0 => Index::Sub(Box::new(index), literal(-add)),
            add => Index::Add(Box::new(index), literal(add)),
        }
    }
}

/// A fact of the `where` clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// `dim % by == 0`
    Multiple(String, i64),
    /// `dim <= most`
    AtMost(String, i64),
    /// `dim >= least`
    AtLeast(String, i64),
    /// `dim == value`
    Equal(String, i64),
    /// `first == factor * second`
    Times(String, i64, String),
    /// `dim % by == rest`, the rest not 0
    Residue(String, i64, i64),
    /// `dim != value`
    NotEqual(String, i64),
    /// `first <= second`
    NotMore(String, String),
}

impl Fact {
    /// The names that it mentions.
    pub fn dims(&self) -> Vec<&str> {
        match self {
            Self::Multiple(d, _) | Self::AtMost(d, _) | Self::AtLeast(d, _) | Self::Equal(d, _) => vec![d],
            Self::Residue(d, ..) | Self::NotEqual(d, _) => vec![d],
            Self::Times(a, _, b) | Self::NotMore(a, b) => vec![a, b],
        }
    }

    /// Whether it holds.
    pub fn holds(&self, dims: &Dims) -> bool {
        let of = |d: &String| dims.get(d).copied().unwrap_or(1);
        match self {
            Self::Multiple(d, by) => of(d) % by == 0,
            Self::AtMost(d, most) => of(d) <= *most,
            Self::AtLeast(d, least) => of(d) >= *least,
            Self::Equal(d, value) => of(d) == *value,
            Self::Times(a, factor, b) => of(a) == factor * of(b),
            Self::Residue(d, by, rest) => of(d) % by == *rest,
            Self::NotEqual(d, value) => of(d) != *value,
            Self::NotMore(a, b) => of(a) <= of(b),
        }
    }
}

/// A tensor or scalar parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub ty: ElementType,
    /// Sizes, outermost first; none for a scalar passed by value.
    pub shape: Option<Vec<Size>>,
    /// Strides in elements, if written.
    pub strides: Option<Vec<Size>>,
    /// What the kernel does with it.
    pub role: Role,
}

/// What a kernel does with a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads it.
    Input,
    /// Writes it.
    Output,
    /// Updates it in place.
    InOut,
}

impl Parameter {
    /// The shape for concrete dimensions; empty for a scalar.
    pub fn sizes(&self, dims: &Dims) -> Vec<i64> {
        self.shape.iter().flatten().map(|s| s.value(dims)).collect()
    }

    /// The strides for concrete dimensions, in elements.
    pub fn pitch(&self, dims: &Dims) -> Vec<i64> {
        if let Some(strides) = &self.strides {
            return strides.iter().map(|s| s.value(dims)).collect();
        }
        let sizes = self.sizes(dims);
        let mut strides = vec![1; sizes.len()];
        for d in (0..sizes.len().saturating_sub(1)).rev() {
            strides[d] = strides[d + 1] * sizes[d + 1];
        }
        strides
    }
}

/// An equation.
#[derive(Clone, Debug, PartialEq)]
pub struct Equation {
    /// The tensors that it defines: one, or as many as its fold has states.
    pub targets: Vec<String>,
    /// Its axes with their extents.
    pub axes: Vec<(String, Size)>,
    /// First value of each axis; not 0 for some intermediates.
    pub lower: Vec<i64>,
    /// Whether the domain is printed.
    pub domain_written: bool,
    /// Whether it is printed with its last values, `..=`.
    pub inclusive: bool,
    /// The right-hand side.
    pub value: Value,
    /// `inline` is printed for it.
    pub inline: bool,
}

impl Equation {
    /// Whether an index of an axis is in its domain.
    pub fn contains(&self, axis: usize, index: i64, dims: &Dims) -> bool {
        (0..self.axes[axis].1.value(dims)).contains(&(index - self.lower[axis]))
    }
}

/// An op of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// `split input by|into factor -> outer, inner`
    Split {
        /// Axis.
        input: String,
        /// `into` rather than `by`.
        into: bool,
        /// Factor.
        factor: i64,
        /// A dimension that a fact fixes to it, which is printed instead.
        named: Option<String>,
        /// Results.
        outputs: [String; 2],
    },
    /// `merge inputs -> output`
    Merge(Vec<String>, String),
    /// `reorder axes`
    Reorder(Vec<String>),
    /// `resize input by (left, right) -> output`
    Resize(String, i64, i64, String),
    /// `swizzle x, y by xor -> x2, y2`
    Swizzle([String; 2], [String; 2]),
    /// `bind axes: unit`
    Bind(Vec<String>, &'static str),
    /// `vectorize axis`
    Vectorize(String),
    /// `unroll axis [by n]`
    Unroll(String, Option<i64>),
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Parameters in order: inputs (and in-place ones) first.
    pub parameters: Vec<Parameter>,
    /// Facts.
    pub facts: Vec<Fact>,
    /// Equations.
    pub equations: Vec<Equation>,
    /// `launch threads(n)`
    pub threads: Option<i64>,
    /// Ops for the stage of an output.
    pub schedules: Vec<(String, Vec<Op>)>,
    /// A warning that is silenced before the kernel.
    pub allow: Option<&'static str>,
}

impl Kernel {
    /// Names of all dimensions and strides that parameters mention, each once, in order of appearance.
    pub fn dims(&self) -> Vec<String> {
        let mut list: Vec<String> = Vec::new();
        for p in &self.parameters {
            for size in p.shape.iter().flatten().chain(p.strides.iter().flatten()) {
                for d in size.names() {
                    if !list.contains(d) {
                        list.push(d.clone());
                    }
                }
            }
        }
        list
    }

    /// The parameter with this name.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|p| p.name == name)
    }

    /// The equation that defines a tensor.
    pub fn equation(&self, name: &str) -> Option<&Equation> {
        self.equations.iter().find(|e| e.targets.iter().any(|t| t == name))
    }

    /// The equation of a tensor that is computed where it is read: an intermediate, or an output.
    pub fn computed(&self, name: &str) -> Option<&Equation> {
        let is_computed = self.parameter(name).is_none_or(|p| p.role == Role::Output);
        self.equation(name).filter(|_| is_computed)
    }

    /// Replaces a dimension by a literal everywhere.
    pub fn fix(&mut self, dim: &str, value: i64) {
        let size = |s: &mut Size| {
            if s.times.as_deref() == Some(dim) {
                (s.mul, s.times) = (s.mul * value, None);
            }
            if s.dim.as_deref() != Some(dim) {
                return;
            }
            (s.mul, s.dim) = (s.mul * value, s.times.take());
            if s.dim.is_none() {
                *s = Size::literal((s.mul / s.div + s.add).max(1));
            }
        };
        for p in &mut self.parameters {
            p.shape.iter_mut().flatten().chain(p.strides.iter_mut().flatten()).for_each(size);
        }
        for e in &mut self.equations {
            e.axes.iter_mut().for_each(|(_, s)| size(s));
            e.value.fix(dim, value);
        }
        self.facts.retain(|f| !f.dims().contains(&dim));
    }

    /// Whether the launcher takes an output for one that overlaps itself.
    pub fn overlaps(&self, dims: &Dims) -> bool {
        (self.parameters.iter())
            .filter(|p| p.role != Role::Input && p.strides.is_some())
            .any(|p| !is_injective(&p.sizes(dims), &p.pitch(dims)))
    }

    /// Names that are nothing but strides of outputs.
    pub fn output_strides(&self) -> Vec<String> {
        let outputs = self.parameters.iter().filter(|p| p.role != Role::Input);
        let bare = |s: &Size| s.dim.clone().filter(|d| *s == Size::named(d));
        let mut list: Vec<String> = outputs.flat_map(|p| p.strides.iter().flatten().filter_map(bare)).collect();
        let is_size = |name: &String| {
            self.parameters.iter().any(|p| p.shape.iter().flatten().any(|s| s.dim.as_ref() == Some(name)))
        };
        list.retain(|name| !is_size(name));
        list
    }

    /// Whether sizes satisfy all facts.
    pub fn admits(&self, dims: &Dims) -> bool {
        self.facts.iter().all(|f| f.holds(dims))
    }
}

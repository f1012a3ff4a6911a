//! Expressions: what each element of a tensor is.
//!
//! Every expression stands where a type is known, and literals and reads are of that type; only casts change it.

use super::{Extent, SIZES, Type};

/// An index.
#[derive(Clone, Debug, PartialEq)]
pub enum Index {
    /// `factor · axis + plus`.
    Axis(String, i64, i64),
    /// `SIZE - 1 - axis`, of an axis with that size.
    Mirrored(String, usize),
    /// `axis + axis`.
    Pair(String, String),
    /// The sum of two.
    Both(Box<[Index; 2]>),
    /// An element of a tensor of integers; inside another gather it says what is outside.
    Gather(String, Vec<Index>, Option<i64>),
    /// `factor · index + plus`.
    Affine(Box<Index>, i64, i64),
    /// `index / by` or `index % by`, by a number or a size; both round down.
    Over(Box<Index>, Extent, bool),
    /// A number.
    Literal(i64),
    /// A sum of sizes.
    Extent(Extent),
}

impl Index {
    /// Whether it is read from memory, or a part of it.
    pub fn gathers(&self) -> bool {
        self.has(&|index| matches!(index, Self::Gather(..)))
    }

    /// The tensors that are read in it.
    pub fn tensors(&self) -> Vec<&str> {
        let own = if let Self::Gather(name, ..) = self { Some(name.as_str()) } else { None };
        own.into_iter().chain(self.parts().iter().flat_map(Self::tensors)).collect()
    }

    /// The indices directly inside.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::Axis(..) | Self::Mirrored(..) | Self::Pair(..) | Self::Literal(_) | Self::Extent(_) => &[],
            Self::Both(parts) => parts.as_slice(),
            Self::Gather(_, indices, _) => indices,
            Self::Affine(inner, ..) | Self::Over(inner, ..) => std::slice::from_ref(inner),
        }
    }

    /// Whether this or something inside is so.
    pub fn has(&self, is: &dyn Fn(&Self) -> bool) -> bool {
        is(self) || self.parts().iter().any(|part| part.has(is))
    }

    /// Its quotient, or the rest.
    #[must_use]
    pub fn over(self, by: Extent, rest: bool) -> Self {
        Self::Over(Box::new(self), by, rest)
    }

    /// The same plus a number.
    #[must_use]
    pub fn plus(self, more: i64) -> Self {
        match self {
            Self::Axis(axis, factor, plus) => Self::Axis(axis, factor, plus + more),
            Self::Affine(inner, factor, plus) => Self::Affine(inner, factor, plus + more),
            Self::Literal(n) => Self::Literal(n + more),
            other if more == 0 => other,
            other => Self::Affine(Box::new(other), 1, more),
        }
    }

    /// The same with `axis - by` for an axis.
    #[must_use]
    pub fn shifted(self, axis: &str, by: i64) -> Self {
        let times = |a: &str| if a == axis { by } else { 0 };
        let boxed = |inner: Self| Box::new(inner.shifted(axis, by));
        match self {
            Self::Axis(a, factor, plus) => Self::Axis(a.clone(), factor, plus - factor * times(&a)),
            Self::Mirrored(a, size) => Self::Mirrored(a.clone(), size).plus(times(&a)),
            Self::Pair(a, b) => Self::Pair(a.clone(), b.clone()).plus(-times(&a) - times(&b)),
            Self::Gather(tensor, indices, or) => {
                Self::Gather(tensor, indices.into_iter().map(|i| i.shifted(axis, by)).collect(), or)
            }
            Self::Affine(inner, factor, plus) => Self::Affine(boxed(*inner), factor, plus),
            Self::Over(inner, of, rest) => Self::Over(boxed(*inner), of, rest),
            Self::Both(parts) => Self::Both(Box::new(parts.map(|part| part.shifted(axis, by)))),
            Self::Literal(_) | Self::Extent(_) => self,
        }
    }

    /// Whether it mentions one of these axes.
    pub fn mentions(&self, axes: &[String]) -> bool {
        self.has(&|i| match i {
            Self::Axis(a, ..) | Self::Mirrored(a, _) => axes.contains(a),
            Self::Pair(a, b) => axes.contains(a) || axes.contains(b),
            _ => false,
        })
    }

    /// As an operand.
    fn operand(&self) -> String {
        let is_one = matches!(self, Self::Axis(_, 1, 0) | Self::Literal(0..) | Self::Gather(.., None));
        if is_one { self.to_string() } else { format!("({self})") }
    }
}

/// What reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Any order.
    Sum,
    /// Any order, another one each time.
    UnorderedSum,
    /// Any order, of terms that depend on an extreme: partial sums may be corrected.
    OnlineSum,
    /// Ascending order.
    OrderedSum,
    /// A product.
    Prod,
    /// A sum of products in a wider type.
    Dot,
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
    /// Whether all terms are above zero, as one or none.
    All,
    /// A `fold` with several states, which is an equation of its own.
    States(States),
}

/// Folds with several states. Those that have a `merge` give the same numbers for any deal of the terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum States {
    /// The sum, and the greatest.
    SumMax,
    /// The least, and the greatest.
    MinMax,
    /// How many are above zero, and the sum.
    CountSum,
    /// The greatest, and the least of the second terms beside it.
    Best,
    /// The least, the sum of the second terms, and how many there are.
    Three,
    /// In order: the last one, and how often one was above the one before it.
    Rises,
    /// In order: sums of every second term, which change places.
    Alternate,
}

impl States {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::SumMax, Self::MinMax, Self::CountSum, Self::Best, Self::Three, Self::Rises, Self::Alternate];

    /// Types of the states, for terms of a type.
    pub fn types(self, of: Type) -> Vec<Type> {
        match self {
            Self::SumMax | Self::MinMax | Self::Best | Self::Alternate => vec![of, of],
            Self::CountSum => vec![Type::I32, of],
            Self::Three => vec![of, of, Type::U32],
            Self::Rises => vec![of, Type::I32],
        }
    }

    /// Whether it goes in order.
    pub fn is_ordered(self) -> bool {
        matches!(self, Self::Rises | Self::Alternate)
    }

    /// Whether there is a second term.
    pub fn has_second(self) -> bool {
        matches!(self, Self::Best | Self::Three)
    }

    /// Where extremes begin: terms may be beyond it.
    pub fn start(self, of: Type) -> i64 {
        match self {
            Self::Best | Self::SumMax if of.is_signed() => -4,
            Self::MinMax | Self::Three => 3,
            _ => 0,
        }
    }
}

impl Reduction {
    /// Whether its terms stay with one thread.
    pub fn is_ordered(self) -> bool {
        match self {
            Self::OrderedSum | Self::Last => true,
            Self::States(states) => states.is_ordered(),
            _ => false,
        }
    }
}

/// One end of a range: an axis around, if any, and what is added.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// An axis around the reduction, or one of its own in front, and how often it counts.
    pub axis: Option<(String, i64)>,
    /// What is added.
    pub plus: Extent,
    /// What memory says of the end, where that leaves fewer terms.
    pub memory: Option<Index>,
}

impl End {
    /// A number that is known at the launch.
    pub fn known(plus: Extent) -> Self {
        Self { axis: None, plus, memory: None }
    }
}

/// The ends of a range; the second one is outside.
pub type Ends = (End, End);

/// A reduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    /// What it does.
    pub by: Reduction,
    /// Its axes with extents that no range exceeds.
    pub axes: Vec<(String, Extent)>,
    /// The range of each axis that does not have its whole extent; those after the last one have.
    pub ranges: Vec<Option<Ends>>,
    /// Whether ranges are left to be inferred.
    pub inferred: bool,
    /// The type of the terms.
    pub of: Type,
    /// What is reduced.
    pub term: Expr,
    /// What goes with it, in some folds.
    pub second: Option<Expr>,
}

impl Reduce {
    /// The ends of ranges that are not whole extents.
    pub fn ends(&self) -> impl Iterator<Item = &End> {
        self.ranges.iter().flatten().flat_map(|(from, to)| [from, to])
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Cond {
    /// `axis < extent`, or another comparison.
    Axis(String, &'static str, Extent),
    /// A comparison of two indices.
    Indices(Index, &'static str, Index),
    /// `value > n`, of values of a type.
    Value(Type, Box<Expr>, &'static str, i64),
    /// A comparison of two values of a type.
    Alike(Type, Box<Expr>, &'static str, Box<Expr>),
    /// Both; the right one is asked only if the left one holds.
    And(Box<Cond>, Box<Cond>),
    /// One of them; the right one is asked only if the left one does not hold.
    Or(Box<Cond>, Box<Cond>),
    /// The opposite.
    Not(Box<Cond>),
    /// A value of type `bool`.
    Flag(Box<Expr>),
}

/// Functions of a float that round its half to an integer, with the function that does so.
pub const HALVES: [(&str, &str); 4] =
    [("half", "floor"), ("half-up", "ceil"), ("half-zero", "trunc"), ("half-even", "round")];

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A small integer.
    Literal(i64),
    /// An axis as a value.
    Axis(String),
    /// One of [`SIZES`] as a value.
    Size(usize),
    /// A scalar that is passed by value.
    Scalar(String),
    /// An element, and what is outside.
    Read(String, Vec<Index>, Option<Box<Expr>>),
    /// `-`, `abs`, one of [`HALVES`], or the exponential of a thousand times something that is no integer above 0: of
    /// integers that is 1 or nothing.
    Unary(&'static str, Box<Expr>),
    /// `+`, `-`, `*`, `/`, `%`, an operation on bits, or a function of two arguments.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `fma(a, b, c)`.
    Fma(Box<[Expr; 3]>),
    /// A value of this type, by `as`.
    Cast(Type, Box<Expr>),
    /// `if condition { } else { }`.
    If(Box<Cond>, Box<Expr>, Box<Expr>),
    /// Whether a condition holds, as a `bool`.
    Test(Box<Cond>),
    /// A reduction.
    Reduce(Box<Reduce>),
    /// The values of the tensors that one equation defines: the whole of its right-hand side.
    Tuple(Vec<Expr>),
}

impl Cond {
    fn parts(&self) -> Vec<&Expr> {
        match self {
            Self::Axis(..) | Self::Indices(..) => Vec::new(),
            Self::Value(_, value, ..) | Self::Flag(value) => vec![value],
            Self::Alike(_, a, _, b) => vec![a, b],
            Self::And(a, b) | Self::Or(a, b) => [a.parts(), b.parts()].concat(),
            Self::Not(a) => a.parts(),
        }
    }

    fn parts_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Self::Axis(..) | Self::Indices(..) => Vec::new(),
            Self::Value(_, value, ..) | Self::Flag(value) => vec![value],
            Self::Alike(_, a, _, b) => vec![a, b],
            Self::And(a, b) | Self::Or(a, b) => {
                let mut parts = a.parts_mut();
                parts.extend(b.parts_mut());
                parts
            }
            Self::Not(a) => a.parts_mut(),
        }
    }
}

impl Expr {
    /// A reduction of terms of a type, over whole axes.
    pub fn reduce(by: Reduction, axes: Vec<(String, Extent)>, of: Type, term: Self) -> Self {
        Self::Reduce(Box::new(Reduce { by, axes, ranges: Vec::new(), inferred: false, of, term, second: None }))
    }

    /// The expressions directly inside.
    pub fn parts(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_) | Self::Axis(_) | Self::Size(_) | Self::Scalar(_) => Vec::new(),
            Self::Read(_, _, or) => or.iter().map(AsRef::as_ref).collect(),
            Self::Unary(_, a) | Self::Cast(_, a) => vec![a],
            Self::Binary(_, a, b) => vec![a, b],
            Self::Fma(parts) => parts.iter().collect(),
            Self::If(c, a, b) => {
                let mut parts: Vec<&Self> = vec![a, b];
                parts.extend(c.parts());
                parts
            }
            Self::Test(c) => c.parts(),
            Self::Reduce(r) => std::iter::once(&r.term).chain(&r.second).collect(),
            Self::Tuple(parts) => parts.iter().collect(),
        }
    }

    /// The same, to change them.
    pub fn parts_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Self::Literal(_) | Self::Axis(_) | Self::Size(_) | Self::Scalar(_) => Vec::new(),
            Self::Read(_, _, or) => or.iter_mut().map(AsMut::as_mut).collect(),
            Self::Unary(_, a) | Self::Cast(_, a) => vec![a],
            Self::Binary(_, a, b) => vec![a, b],
            Self::Fma(parts) => parts.iter_mut().collect(),
            Self::If(c, a, b) => {
                let mut parts: Vec<&mut Self> = vec![a, b];
                parts.extend(c.parts_mut());
                parts
            }
            Self::Test(c) => c.parts_mut(),
            Self::Reduce(r) => std::iter::once(&mut r.term).chain(&mut r.second).collect(),
            Self::Tuple(parts) => parts.iter_mut().collect(),
        }
    }

    /// Calls something for this and all that is inside.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        self.parts().into_iter().for_each(|p| p.walk(visit));
    }

    /// The same, to change it.
    pub fn walk_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        visit(self);
        self.parts_mut().into_iter().for_each(|p| p.walk_mut(visit));
    }

    /// The tensors and scalars that are read, those of gathered indices included.
    pub fn tensors(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.walk(&mut |e| {
            let mut inside: Vec<&Index> = match e {
                Expr::Read(_, indices, _) => indices.iter().collect(),
                Expr::Reduce(r) => r.ends().filter_map(|end| end.memory.as_ref()).collect(),
                _ => Vec::new(),
            };
            if let Expr::Scalar(name) | Expr::Read(name, ..) = e {
                found.push(name.as_str());
            }
            while let Some(index) = inside.pop() {
                found.extend(index.tensors());
            }
        });
        found
    }

    /// All reductions.
    pub fn reductions(&self) -> Vec<(Reduction, &[(String, Extent)])> {
        let mut found = Vec::new();
        self.walk(&mut |e| {
            if let Expr::Reduce(r) = e {
                found.push((r.by, r.axes.as_slice()));
            }
        });
        found
    }
}

/// `factor · of + plus`, as it is written.
fn affine(f: &mut std::fmt::Formatter<'_>, factor: i64, of: &str, plus: i64) -> std::fmt::Result {
    if factor != 1 {
        write!(f, "{factor} * ")?;
    }
    f.write_str(of)?;
    match plus {
        0 => Ok(()),
        1.. => write!(f, " + {plus}"),
        _ => write!(f, " - {}", -plus),
    }
}

impl std::fmt::Display for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Axis(axis, factor, plus) => affine(f, *factor, axis, *plus),
            Self::Mirrored(axis, size) => write!(f, "{} - 1 - {axis}", SIZES[*size]),
            Self::Pair(a, b) => write!(f, "{a} + {b}"),
            Self::Gather(tensor, indices, or) => {
                write!(f, "{tensor}[{}]", super::list(indices))?;
                or.map_or(Ok(()), |n| write!(f, " or {n}"))
            }
            Self::Affine(inner, factor, plus) => affine(f, *factor, &inner.operand(), *plus),
            Self::Over(inner, by, rest) => write!(f, "{} {} {by}", inner.operand(), if *rest { '%' } else { '/' }),
            Self::Both(parts) => write!(f, "{} + {}", parts[0].operand(), parts[1].operand()),
            Self::Literal(n) => n.fmt(f),
            Self::Extent(extent) => extent.fmt(f),
        }
    }
}

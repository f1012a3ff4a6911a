//! The iteration domain of a stage: IterDomains, the ops that transform them, and index propagation in both directions.
//!
//! A domain starts with root axes (the stage's own axes, then the reduction axes that its schedule may name). Each op
//! replaces axes by others; what no op has consumed is a leaf, and the leaves in order are the loop nest. Index maps
//! are those of nvFuser's IterDomain document:
//!
//! | op | leaf → root | root → leaf | extent |
//! | --- | --- | --- | --- |
//! | split a by f → o, i | a = o·f + i | o = ⌊a / f⌋, i = a mod f | o: ⌈A / f⌉ (or given), i: f |
//! | merge a, b → c | a = ⌊c / B⌋, b = c mod B | c = a·B + b | A·B |
//! | resize a by (l, r) → c | a = c − l | c = a + l | l + A + r |
//! | swizzle x, y → x2, y2 | x = x2, y = y2 xor x2 | x2 = x, y2 = y xor x | unchanged |
//!
//! The maps are written once, over an [`Arithmetic`]: concrete numbers replay witnesses, symbolic expressions feed the
//! proofs, and the lowering emits instructions with the same function.

mod alike;
mod concrete;
mod symbolic;
mod unit;

pub use alike::alike;
pub use concrete::{Concrete, Numbers};
pub use symbolic::{Leaf, Symbolic, Xor};
pub use unit::{Unit, WARP, WARPGROUP};

use crate::extent::{Expr, Facts, Family, Var};
use crate::span::Span;

/// The number of an axis in its domain.
pub type AxisId = usize;

/// What an axis iterates over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    /// Elements of the stage's tensor.
    Data,
    /// Terms of its reduction.
    Reduction,
}

/// The part of the machine that runs the iterations of a leaf axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// One after the other, in a loop.
    Serial,
    /// One after the other, written out; `Some(n)`: n at a time.
    Unroll(Option<i128>),
    /// Together, as one vector access.
    Vector,
    /// One block of the grid each, or one cluster of blocks.
    Grid,
    /// One block of the cluster each.
    Cta,
    /// One warpgroup of the block each.
    Warpgroup,
    /// One warp each, of the warpgroup if one is bound outside.
    Warp,
    /// One thread of the enclosing collective each.
    Thread,
    /// One of other units each: several side by side, those of a range, or units of one's own.
    Part(Part),
}

/// Units that are not simply all warpgroups, warps or threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Of what.
    pub of: PartOf,
    /// So many side by side are one.
    pub scale: u64,
    /// The first one, and the one after the last; all from the first one on if not given.
    pub range: Option<(u64, u64)>,
}

/// What parts consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartOf {
    /// Warpgroups.
    Warpgroup,
    /// Warps.
    Warp,
    /// Threads.
    Thread,
    /// A unit of the kernel, by its position among those of its program.
    Named(u16),
}

impl Binding {
    /// Whether blocks run the iterations side by side.
    pub fn is_of_blocks(self) -> bool {
        matches!(self, Self::Grid | Self::Cta)
    }

    /// Whether the iterations follow each other inside one thread.
    pub fn is_sequential(self) -> bool {
        matches!(self, Self::Serial | Self::Unroll(_) | Self::Vector)
    }
}

/// An IterDomain: one axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Name in the schedule.
    pub name: String,
    /// Number of iterations.
    pub extent: Expr,
    /// What it iterates over.
    pub kind: AxisKind,
    /// Who runs it; meaningful for leaves.
    pub binding: Binding,
    /// Where the name was introduced.
    pub span: Span,
    /// The op that the binding came from.
    pub binding_span: Span,
    /// An op that made it was refused: it satisfies every later check, so that one mistake gives one message.
    pub poisoned: bool,
}

/// A transformation of axes.
#[derive(Clone, Debug)]
pub enum Op {
    /// See the table of the module.
    Split {
        /// Axis consumed.
        input: AxisId,
        /// Result of lower frequency.
        outer: AxisId,
        /// Result of higher frequency.
        inner: AxisId,
        /// Extent of the inner result.
        factor: Expr,
        /// Whether outer · inner = input is proved for every admissible size.
        divisible: bool,
    },
    /// See the table of the module.
    Merge {
        /// Axis of lower frequency.
        outer: AxisId,
        /// Axis of higher frequency.
        inner: AxisId,
        /// Result.
        output: AxisId,
    },
    /// See the table of the module.
    Resize {
        /// Axis consumed.
        input: AxisId,
        /// Elements added before; negative cuts.
        left: i128,
        /// Elements added after; negative cuts.
        right: i128,
        /// Result.
        output: AxisId,
    },
    /// See the table of the module.
    Swizzle {
        /// The side that stays.
        x: AxisId,
        /// The side that changes.
        y: AxisId,
        /// Result for `x`.
        x_output: AxisId,
        /// Result for `y`.
        y_output: AxisId,
    },
}

impl Op {
    /// Axes on the root side.
    pub fn inputs(&self) -> Vec<AxisId> {
        match *self {
            Self::Split { input, .. } | Self::Resize { input, .. } => vec![input],
            Self::Merge { outer, inner, .. } => vec![outer, inner],
            Self::Swizzle { x, y, .. } => vec![x, y],
        }
    }

    /// Axes on the leaf side.
    pub fn outputs(&self) -> Vec<AxisId> {
        match *self {
            Self::Split { outer, inner, .. } => vec![outer, inner],
            Self::Merge { output, .. } | Self::Resize { output, .. } => vec![output],
            Self::Swizzle { x_output, y_output, .. } => vec![x_output, y_output],
        }
    }
}

/// The axes of a stage and how they came about.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    /// Every axis, roots first, then in order of creation.
    pub axes: Vec<Axis>,
    /// The ops, in order, with the place of each in the schedule.
    pub ops: Vec<(Op, Span)>,
    /// The root axes, outermost first.
    pub roots: Vec<AxisId>,
    /// The leaf axes: the loop nest, outermost first.
    pub leaves: Vec<AxisId>,
}

/// Name and place of an axis that an op introduces.
#[derive(Clone, Debug)]
pub struct NewAxis {
    /// The name.
    pub name: String,
    /// Where it was written.
    pub span: Span,
}

/// Arithmetic on index values, for [`Domain::toward_roots`] and [`Domain::toward_leaves`].
pub trait Arithmetic {
    /// An index value.
    type Value: Clone;
    /// The value of an expression over the dimensions.
    fn size(&mut self, e: &Expr) -> Self::Value;
    /// A number.
    fn literal(&mut self, n: i128) -> Self::Value {
        self.size(&Expr::constant(n))
    }
    /// a + b
    fn add(&mut self, a: &Self::Value, b: &Self::Value) -> Self::Value;
    /// a · b
    fn mul(&mut self, a: &Self::Value, b: &Self::Value) -> Self::Value;
    /// ⌊a / b⌋, b ≥ 1
    fn div(&mut self, a: &Self::Value, b: &Self::Value) -> Self::Value;
    /// a − b·⌊a / b⌋, b ≥ 1
    fn modulo(&mut self, a: &Self::Value, b: &Self::Value) -> Self::Value;
    /// Bitwise exclusive or of two values in [0, bound), bound a power of two.
    fn xor(&mut self, a: &Self::Value, b: &Self::Value, bound: &Expr) -> Self::Value;
}

impl Domain {
    /// The axis that a variable stands for: one of [`Family::AXIS`], or a root.
    pub fn axis_of(&self, v: Var) -> Option<AxisId> {
        Family::AXIS.number(v).or_else(|| self.roots.get(Family::ROOT.number(v)?).copied())
    }

    /// A domain whose root axes are the loop nest.
    pub fn new(roots: impl IntoIterator<Item = (NewAxis, Expr, AxisKind)>) -> Self {
        let mut domain = Self::default();
        for (axis, extent, kind) in roots {
            let id = domain.create(axis, extent, kind);
            domain.roots.push(id);
            domain.leaves.push(id);
        }
        domain
    }

    fn create(&mut self, axis: NewAxis, extent: Expr, kind: AxisKind) -> AxisId {
        self.axes.push(Axis {
            name: axis.name,
            extent,
            kind,
            binding: Binding::Serial,
            span: axis.span,
            binding_span: axis.span,
            poisoned: false,
        });
        self.axes.len() - 1
    }

    /// The leaf with this name.
    pub fn leaf(&self, name: &str) -> Option<AxisId> {
        self.leaves.iter().copied().find(|a| self.axes[*a].name == name)
    }

    /// The latest axis with this name, leaf or not.
    pub fn named(&self, name: &str) -> Option<AxisId> {
        (0..self.axes.len()).rev().find(|a| self.axes[*a].name == name)
    }

    /// The op that consumed an axis.
    pub fn consumer(&self, axis: AxisId) -> Option<&(Op, Span)> {
        self.ops.iter().find(|(op, _)| op.inputs().contains(&axis))
    }

    /// Replaces leaf `input` by the results of a split whose inner extent is `factor` and whose outer extent is
    /// `outer_extent`.
    fn push_split(
        &mut self,
        input: AxisId,
        factor: Expr,
        outer_extent: Expr,
        divisible: bool,
        names: [NewAxis; 2],
        span: Span,
    ) {
        let kind = self.axes[input].kind;
        let [outer_name, inner_name] = names;
        let outer = self.create(outer_name, outer_extent, kind);
        let inner = self.create(inner_name, factor.clone(), kind);
        self.replace_leaf(input, &[outer, inner]);
        self.ops.push((Op::Split { input, outer, inner, factor, divisible }, span));
    }

    /// `split input by factor`: the inner extent is `factor` (at least 1).
    pub fn split_by(&mut self, input: AxisId, factor: i128, facts: &Facts, names: [NewAxis; 2], span: Span) {
        let extent = self.axes[input].extent.clone();
        let divisible = facts.proves_multiple(&extent, factor);
        let factor = Expr::constant(factor);
        let outer = facts.normal(&extent.ceil_div(&factor));
        self.push_split(input, factor, outer, divisible, names, span);
    }

    /// `split input into count`: the outer extent is `count` (at least 1).
    pub fn split_into(&mut self, input: AxisId, count: i128, facts: &Facts, names: [NewAxis; 2], span: Span) {
        let extent = self.axes[input].extent.clone();
        let divisible = facts.proves_multiple(&extent, count);
        let factor = facts.normal(&extent.ceil_div(&Expr::constant(count)));
        self.push_split(input, factor, Expr::constant(count), divisible, names, span);
    }

    /// `merge outer, inner`; the result stands where `outer` stood.
    pub fn merge(&mut self, outer: AxisId, inner: AxisId, facts: &Facts, name: NewAxis, span: Span) -> AxisId {
        let extent = facts.normal(&self.merged_extent(outer, inner, facts));
        let kind = self.axes[outer].kind;
        let output = self.create(name, extent, kind);
        self.leaves.retain(|a| *a != inner);
        self.replace_leaf(outer, &[output]);
        self.ops.push((Op::Merge { outer, inner, output }, span));
        output
    }

    /// The product of two extents. A box that ends before its first element has an extent below 0, which is none:
    /// of two such extents the product would be some.
    fn merged_extent(&self, outer: AxisId, inner: AxisId, facts: &Facts) -> Expr {
        let (outer, inner) = (&self.axes[outer].extent, &self.axes[inner].extent);
        match facts.proves_nonnegative(outer) || facts.proves_nonnegative(inner) {
            true => outer.mul(inner),
            false => outer.positive().mul(inner),
        }
    }

    /// `resize input by (left, right)`.
    pub fn resize(
        &mut self,
        input: AxisId,
        left: i128,
        right: i128,
        facts: &Facts,
        name: NewAxis,
        span: Span,
    ) -> AxisId {
        let axis = &self.axes[input];
        let extent = facts.normal(&axis.extent.add(&Expr::constant(left)).add(&Expr::constant(right)));
        let output = self.create(name, extent, axis.kind);
        self.replace_leaf(input, &[output]);
        self.ops.push((Op::Resize { input, left, right, output }, span));
        output
    }

    /// `swizzle x, y by xor`; extents are equal powers of two.
    pub fn swizzle(&mut self, x: AxisId, y: AxisId, names: [NewAxis; 2], span: Span) {
        let [x_name, y_name] = names;
        let x_output = self.create(x_name, self.axes[x].extent.clone(), self.axes[x].kind);
        let y_output = self.create(y_name, self.axes[y].extent.clone(), self.axes[y].kind);
        self.replace_leaf(x, &[x_output]);
        self.replace_leaf(y, &[y_output]);
        self.ops.push((Op::Swizzle { x, y, x_output, y_output }, span));
    }

    /// Leaf `input` replaced by axes that a refused op would have made: they satisfy every later check.
    pub fn poison(&mut self, inputs: &[AxisId], names: impl IntoIterator<Item = NewAxis>) {
        let at = inputs.first().and_then(|a| self.leaves.iter().position(|l| l == a)).unwrap_or(self.leaves.len());
        let kind = inputs.first().map_or(AxisKind::Data, |a| self.axes[*a].kind);
        self.leaves.retain(|a| !inputs.contains(a));
        for (offset, name) in names.into_iter().enumerate() {
            let id = self.create(name, Expr::unknown(), kind);
            self.axes[id].poisoned = true;
            let at = (at + offset).min(self.leaves.len());
            self.leaves.insert(at, id);
        }
    }

    /// Whether a refused op left a poisoned axis.
    pub fn is_poisoned(&self) -> bool {
        self.axes.iter().any(|a| a.poisoned)
    }

    fn replace_leaf(&mut self, old: AxisId, new: &[AxisId]) {
        if let Some(at) = self.leaves.iter().position(|a| *a == old) {
            self.leaves.splice(at..=at, new.iter().copied());
        }
    }

    /// Whether the value of `axis` depends on `leaf`.
    pub fn depends_on(&self, axis: AxisId, leaf: AxisId) -> bool {
        if axis == leaf {
            return true;
        }
        match self.consumer(axis) {
            Some((Op::Swizzle { x, x_output, .. }, _)) if axis == *x => self.depends_on(*x_output, leaf),
            Some((op, _)) => op.outputs().iter().any(|a| self.depends_on(*a, leaf)),
            None => false,
        }
    }

    /// Computes the value of every axis whose leaves have values, from the leaves toward the roots. Values present
    /// stay.
    pub fn toward_roots<A: Arithmetic>(&self, arithmetic: &mut A, values: &mut [Option<A::Value>]) {
        for (op, _) in self.ops.iter().rev() {
            match op {
                Op::Split { input, outer, inner, factor, .. } => {
                    if values[*input].is_none()
                        && let (Some(o), Some(i)) = (&values[*outer], &values[*inner])
                    {
                        let f = arithmetic.size(factor);
                        let scaled = arithmetic.mul(o, &f);
                        values[*input] = Some(arithmetic.add(&scaled, i));
                    }
                }
                Op::Merge { outer, inner, output } => {
                    if values[*outer].is_none()
                        && let Some(c) = &values[*output]
                    {
                        let extent = arithmetic.size(&self.axes[*inner].extent);
                        let (a, b) = (arithmetic.div(c, &extent), arithmetic.modulo(c, &extent));
                        values[*outer] = Some(a);
                        values[*inner] = Some(b);
                    }
                }
                Op::Resize { input, left, output, .. } => {
                    if values[*input].is_none()
                        && let Some(c) = &values[*output]
                    {
                        let shift = arithmetic.size(&Expr::constant(-left));
                        values[*input] = Some(arithmetic.add(c, &shift));
                    }
                }
                Op::Swizzle { x, y, x_output, y_output } => {
                    if values[*x].is_none() {
                        let same = values[*x_output].clone();
                        values[*x] = same;
                    }
                    if values[*y].is_none()
                        && let (Some(x2), Some(y2)) = (&values[*x_output], &values[*y_output])
                    {
                        values[*y] = Some(arithmetic.xor(y2, x2, &self.axes[*y].extent));
                    }
                }
            }
        }
    }

    /// Computes the value of every axis from the roots toward the leaves.
    pub fn toward_leaves<A: Arithmetic>(&self, arithmetic: &mut A, values: &mut [Option<A::Value>]) {
        for (op, _) in &self.ops {
            match op {
                Op::Split { input, outer, inner, factor, .. } => {
                    let Some(a) = &values[*input] else { continue };
                    let f = arithmetic.size(factor);
                    let (o, i) = (arithmetic.div(a, &f), arithmetic.modulo(a, &f));
                    values[*outer] = Some(o);
                    values[*inner] = Some(i);
                }
                Op::Merge { outer, inner, output } => {
                    let (Some(a), Some(b)) = (&values[*outer], &values[*inner]) else { continue };
                    let extent = arithmetic.size(&self.axes[*inner].extent);
                    let scaled = arithmetic.mul(a, &extent);
                    values[*output] = Some(arithmetic.add(&scaled, b));
                }
                Op::Resize { input, left, output, .. } => {
                    let Some(a) = &values[*input] else { continue };
                    let shift = arithmetic.size(&Expr::constant(*left));
                    values[*output] = Some(arithmetic.add(a, &shift));
                }
                Op::Swizzle { x, y, x_output, y_output } => {
                    let (Some(a), Some(b)) = (&values[*x], &values[*y]) else { continue };
                    let y2 = arithmetic.xor(b, a, &self.axes[*y].extent);
                    values[*x_output] = Some(a.clone());
                    values[*y_output] = Some(y2);
                }
            }
        }
    }
}

//! An iteration domain for concrete sizes: ops as index maps, read off the language's table.

use std::collections::BTreeMap;

use crate::ast::{Bound, Dims, Equation, Index, Kernel, Node, Op, Value};

/// An axis anywhere in the tree of ops.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its number of iterations; not negative.
    pub extent: i64,
    /// Whether it belongs to the result rather than to the reduction.
    pub data: bool,
    /// The unit it is bound to.
    pub unit: Option<&'static str>,
}

enum Step {
    /// input = outer · inner extent + inner
    Split { input: usize, outer: usize, inner: usize },
    /// output = mixed-radix number of the inputs
    Merge { inputs: Vec<usize>, output: usize },
    /// input = output − left
    Resize { input: usize, output: usize, left: i64 },
    /// x = x2, y = y2 xor x2
    Swizzle { x: usize, y: usize, x2: usize, y2: usize },
}

/// A stage's domain with its ops applied.
pub struct Domain {
    /// The stage.
    pub stage: String,
    /// All axes.
    pub axes: Vec<Axis>,
    /// The equation's axes, then those of the reduction.
    pub roots: Vec<usize>,
    /// First value of each root.
    pub lower: Vec<i64>,
    /// The loops in order.
    pub leaves: Vec<usize>,
    steps: Vec<Step>,
    /// The vectorised leaf.
    pub vector: Option<usize>,
}

/// The value of an index over dimensions alone.
pub fn constant(index: &Index, dims: &Dims) -> Option<i64> {
    super::reads::index(index, &BTreeMap::new(), dims)
}

/// The axes of the only outermost reduction, if its bounds mention no axis and no condition decides whether it is
/// evaluated: those that a schedule may name.
pub fn reductions(value: &Value) -> Option<&[Bound]> {
    let mut found = Vec::new();
    collect(value, false, &mut found);
    let [(only, false)] = found[..] else { return None };
    let no_axis = |i: &Index| !mentions_axis(i);
    only.iter().all(|b| no_axis(&b.lower) && no_axis(&b.upper)).then_some(only)
}

/// The outermost reductions, with whether they stand on one side of a condition.
fn collect<'a>(value: &'a Value, conditional: bool, found: &mut Vec<(&'a [Bound], bool)>) {
    match &value.node {
        Node::Reduce { axes, .. } | Node::Fold { axes, .. } => found.push((axes, conditional)),
        Node::Select(condition, then, otherwise) => {
            collect(condition, conditional, found);
            collect(then, true, found);
            collect(otherwise, true, found);
        }
        Node::Infix("&&" | "||", first, second) => {
            collect(first, conditional, found);
            collect(second, true, found);
        }
        _ => value.operands().into_iter().for_each(|v| collect(v, conditional, found)),
    }
}

fn mentions_axis(index: &Index) -> bool {
    match index {
        Index::Axis(_) | Index::Gather(_) => true,
        _ => index.sides().into_iter().flatten().any(mentions_axis),
    }
}

/// All points of a box in lexicographic order, until `f` says stop.
fn count(extents: &[i64], f: &mut dyn FnMut(&[i64]) -> bool) {
    if extents.contains(&0) {
        return;
    }
    let mut at = vec![0_i64; extents.len()];
    loop {
        if !f(&at) {
            return;
        }
        let mut k = at.len();
        loop {
            if k == 0 {
                return;
            }
            k -= 1;
            at[k] += 1;
            if at[k] < extents[k] {
                break;
            }
            at[k] = 0;
        }
    }
}

impl Domain {
    /// The domain of an equation; none if an op names an axis that does not exist.
    pub fn new(kernel: &Kernel, equation: &Equation, dims: &Dims) -> Option<Self> {
        let mut domain = Self {
            stage: equation.targets[0].clone(),
            axes: Vec::new(),
            roots: Vec::new(),
            lower: Vec::new(),
            leaves: Vec::new(),
            steps: Vec::new(),
            vector: None,
        };
        for (name, size) in &equation.axes {
            domain.root(name, 0, size.value(dims), true);
        }
        for bound in reductions(&equation.value).into_iter().flatten() {
            let (lower, upper) = (constant(&bound.lower, dims)?, constant(&bound.upper, dims)?);
            domain.root(&bound.axis, lower, upper - lower, false);
        }
        domain.leaves.clone_from(&domain.roots);
        let schedule = kernel.schedules.iter().find(|(stage, _)| *stage == domain.stage);
        for op in schedule.iter().flat_map(|(_, ops)| ops) {
            domain.apply(op)?;
        }
        Some(domain)
    }

    fn root(&mut self, name: &str, lower: i64, extent: i64, data: bool) {
        let axis = self.axis(name, extent, data);
        self.roots.push(axis);
        self.lower.push(lower);
    }

    fn axis(&mut self, name: &str, extent: i64, data: bool) -> usize {
        self.axes.push(Axis { name: name.to_owned(), extent: extent.max(0), data, unit: None });
        self.axes.len() - 1
    }

    fn leaf(&self, name: &str) -> Option<usize> {
        self.leaves.iter().position(|a| self.axes[*a].name == name)
    }

    fn apply(&mut self, op: &Op) -> Option<()> {
        match op {
            Op::Split { input, into, factor, outputs: [outer, inner], .. } => {
                let at = self.leaf(input)?;
                let input = self.leaves[at];
                let Axis { extent, data, .. } = self.axes[input];
                let other = (extent + factor - 1).div_euclid(*factor);
                let (a, b) = if *into { (*factor, other) } else { (other, *factor) };
                let (outer, inner) = (self.axis(outer, a, data), self.axis(inner, b, data));
                self.leaves.splice(at..=at, [outer, inner]);
                self.steps.push(Step::Split { input, outer, inner });
            }
            Op::Merge(names, name) => {
                let inputs: Vec<usize> =
                    names.iter().map(|n| self.leaf(n).map(|at| self.leaves[at])).collect::<Option<_>>()?;
                let extent = inputs.iter().map(|a| self.axes[*a].extent).product();
                let first = inputs[0];
                let output = self.axis(name, extent, self.axes[first].data);
                let at = self.leaves.iter().position(|l| *l == first)?;
                self.leaves[at] = output;
                self.leaves.retain(|l| !inputs.contains(l));
                self.steps.push(Step::Merge { inputs, output });
            }
            Op::Reorder(names) => {
                let order: Vec<usize> =
                    names.iter().map(|n| self.leaf(n).map(|at| self.leaves[at])).collect::<Option<_>>()?;
                let mut next = order.iter();
                for slot in &mut self.leaves {
                    if order.contains(slot) {
                        *slot = *next.next()?;
                    }
                }
            }
            Op::Resize(input, left, right, name) => {
                let at = self.leaf(input)?;
                let input = self.leaves[at];
                let output = self.axis(name, left + self.axes[input].extent + right, self.axes[input].data);
                self.leaves[at] = output;
                self.steps.push(Step::Resize { input, output, left: *left });
            }
            Op::Swizzle([x, y], [x2, y2]) => {
                let (at_x, at_y) = (self.leaf(x)?, self.leaf(y)?);
                let (x, y) = (self.leaves[at_x], self.leaves[at_y]);
                let x2 = self.axis(x2, self.axes[x].extent, self.axes[x].data);
                let y2 = self.axis(y2, self.axes[y].extent, self.axes[y].data);
                self.leaves[at_x] = x2;
                self.leaves[at_y] = y2;
                self.steps.push(Step::Swizzle { x, y, x2, y2 });
            }
            Op::Bind(names, unit) => {
                for name in names {
                    let at = self.leaf(name)?;
                    self.axes[self.leaves[at]].unit = Some(unit);
                }
            }
            Op::Vectorize(name) => self.vector = Some(self.leaves[self.leaf(name)?]),
            Op::Unroll(name, _) => {
                self.leaf(name)?;
            }
        }
        Some(())
    }

    /// Number of points, holes included.
    pub fn points(&self) -> i64 {
        self.leaves.iter().fold(1_i64, |n, l| n.saturating_mul(self.axes[*l].extent))
    }

    /// All points in loop order, until `f` says stop. Values are by leaf position.
    pub fn visit(&self, mut f: impl FnMut(&[i64]) -> bool) {
        let extents: Vec<i64> = self.leaves.iter().map(|l| self.axes[*l].extent).collect();
        count(&extents, &mut f);
    }

    /// All points of the axes of the result, in loop order; those of the reduction stay at 0.
    pub fn visit_elements(&self, mut f: impl FnMut(&[i64]) -> bool) {
        let is_data = |k: usize| self.axes[self.leaves[k]].data;
        let extents: Vec<i64> =
            (0..self.leaves.len()).map(|k| if is_data(k) { self.axes[self.leaves[k]].extent } else { 1 }).collect();
        count(&extents, &mut f);
    }

    /// Whether the reduction has no terms. Its elements are written all the same.
    pub fn is_empty_reduction(&self) -> bool {
        self.roots.iter().any(|r| !self.axes[*r].data && self.axes[*r].extent == 0)
    }

    /// The element (roots from 0) that a point stands for, whatever its term; none for a hole.
    pub fn element_at(&self, leaves: &[i64]) -> Option<Vec<i64>> {
        self.roots_of(leaves, true)
    }

    /// The roots (from 0) that a point stands for; none for a hole: some axis of the tree is outside its extent there.
    pub fn roots_at(&self, leaves: &[i64]) -> Option<Vec<i64>> {
        self.roots_of(leaves, false)
    }

    fn roots_of(&self, leaves: &[i64], data_only: bool) -> Option<Vec<i64>> {
        let mut values = vec![0_i64; self.axes.len()];
        for (leaf, value) in self.leaves.iter().zip(leaves) {
            values[*leaf] = *value;
        }
        let inside = |axis: usize, value: i64| {
            let ignored = data_only && !self.axes[axis].data;
            (ignored || (0..self.axes[axis].extent).contains(&value)).then_some(value)
        };
        for step in self.steps.iter().rev() {
            match step {
                Step::Split { input, outer, inner } => {
                    values[*input] = inside(*input, values[*outer] * self.axes[*inner].extent + values[*inner])?;
                }
                Step::Merge { inputs, output } => {
                    let mut rest = values[*output];
                    for input in inputs.iter().rev() {
                        let extent = self.axes[*input].extent.max(1);
                        values[*input] = rest.rem_euclid(extent);
                        rest = rest.div_euclid(extent);
                    }
                    if rest != 0 && (self.axes[*output].data || !data_only) {
                        return None;
                    }
                }
                Step::Resize { input, output, left } => values[*input] = inside(*input, values[*output] - left)?,
                Step::Swizzle { x, y, x2, y2 } => {
                    values[*x] = inside(*x, values[*x2])?;
                    values[*y] = inside(*y, values[*y2] ^ values[*x2])?;
                }
            }
        }
        Some(self.roots.iter().map(|r| values[*r]).collect())
    }

    /// Position of a root point in row-major order; of its element only, if asked.
    pub fn linear(&self, roots: &[i64], data_only: bool) -> usize {
        let axes = self.roots.iter().zip(roots).filter(|(r, _)| !data_only || self.axes[**r].data);
        axes.fold(0, |n, (r, v)| n * self.axes[*r].extent + v) as usize
    }

    /// Block and thread that run a point.
    pub fn owner(&self, leaves: &[i64]) -> (i64, i64) {
        let number = |unit: &str| {
            (self.leaves.iter().zip(leaves))
                .filter(|(l, _)| self.axes[**l].unit == Some(unit))
                .fold(0, |n, (l, v)| n * self.axes[*l].extent + v)
        };
        (number("grid"), number("warpgroup") * 128 + number("warp") * 32 + number("thread"))
    }

    /// Iterations bound to a unit.
    pub fn count(&self, unit: &str) -> i64 {
        self.leaves.iter().filter(|l| self.axes[**l].unit == Some(unit)).map(|l| self.axes[*l].extent).product()
    }
}

//! The smallest failing case of an obligation, found by replaying the path to it on concrete sizes.
//!
//! Sizes go by their sum, then lexicographically; axes lexicographically, from the output inwards. An axis is searched
//! by halving its range and dropping halves in which the intervals of [`Scene`] show no failure, so that a failure far
//! out is found in logarithmic time; only a case in which every number is a single one counts.

use kernel::algorithm::{AxisId, Index, IndexId, Source, Value, ValueId};
use kernel::{Size, SizeOp};
use tilewright_kernel as kernel;

use super::interval::{Cell, Interval, Scene};
use super::memory::Settled;
use crate::extent::{Budget, Facts, Search};
use crate::program::Program;

/// One step on the way from an output element to an obligation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An axis takes every value of its range.
    Axis(AxisId),
    /// An axis of an entered equation takes every value of its range that memory can give to this index, in a guarded
    /// read.
    Gathered { axis: AxisId, index: IndexId },
    /// An equation is entered by this read; its axes are assigned next.
    Enter(ValueId),
    /// An axis of the entered equation is this index. A guarded read enters only inside the equation's domain.
    Assign { axis: AxisId, index: IndexId, guarded: bool },
    /// A condition holds, or fails.
    Condition { value: ValueId, holds: bool },
}

/// The extent of a dimension that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// `[0, size)`
    Size(Size),
    /// The range of an equation's axis.
    Domain(AxisId),
}

/// What must hold at the end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Every index of the read is inside its dimension.
    Inside { read: ValueId, dimensions: Vec<(IndexId, Limit)> },
    /// The axis of this `argmax` or `argmin` has a value, and none below 0.
    Search { value: ValueId, axis: AxisId },
    /// The divisor of this quotient or remainder is not 0.
    NonZero { value: ValueId, divisor: ValueId },
}

impl Goal {
    /// The node that the obligation belongs to.
    pub fn value(&self) -> ValueId {
        match self {
            Goal::Inside { read, .. } => *read,
            Goal::Search { value, .. } | Goal::NonZero { value, .. } => *value,
        }
    }
}

/// A failing case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Witness {
    /// One value a dimension.
    pub dims: Vec<i64>,
    /// The dimensions that matter.
    pub relevant: Vec<u32>,
    /// The values of the path's axes that have a range, outermost first.
    pub axes: Vec<(AxisId, i128)>,
    /// The values of the assigned axes.
    pub assigned: Vec<(AxisId, i128)>,
    /// What memory holds.
    pub memory: Vec<Cell>,
    /// The indices of the read; none for one that comes from memory.
    pub indices: Vec<Option<i128>>,
    /// The first dimension that is outside; of a search, 0 where there is nothing, 1 where there is something below 0.
    pub dimension: usize,
    /// Conditions on the path that depend on data, and whether they hold.
    pub data: Vec<(ValueId, bool)>,
}

/// Searches the smallest failing case of `goal` at the end of `path`.
pub(super) fn search(
    program: &Program,
    facts: &Facts,
    path: &[Step],
    goal: &Goal,
    budget: &mut Budget,
) -> Search<Witness> {
    let mut used = Used::new(program, path);
    let relevant_axes = used.path(path, goal);
    let relevant: Vec<u32> = (0..).zip(&used.dims).filter_map(|(d, used)| used.then_some(d)).collect();
    let mut found = facts.smallest(&relevant, budget, |dims, budget| {
        let scene = Scene::new(&program.algorithm, dims.iter().map(|d| Interval::point(i128::from(*d))).collect());
        let chosen = vec![Interval::ANYTHING; path.len()];
        let mut replay = Replay { scene, dims, path, goal, relevant: &relevant_axes, chosen };
        replay.search(budget)
    });
    if let Search::Found(witness) = &mut found {
        witness.relevant = relevant;
    }
    found
}

/// Which dimensions and axes decide something.
struct Used<'a> {
    program: &'a Program,
    dims: Vec<bool>,
    axes: Vec<bool>,
    /// Whether it matters which element of memory is read: what is in one of them is decided on the path.
    addresses: bool,
}

impl<'a> Used<'a> {
    fn new(program: &'a Program, path: &[Step]) -> Used<'a> {
        let (dims, axes) = (program.dims.len(), program.algorithm.axes.len());
        let addresses = path.iter().any(|step| matches!(step, Step::Gathered { .. }));
        Used { program, dims: vec![false; dims], axes: vec![false; axes], addresses }
    }

    /// For each step: whether it is an axis whose value matters.
    fn path(&mut self, path: &[Step], goal: &Goal) -> Vec<bool> {
        match goal {
            Goal::Inside { dimensions, .. } => {
                for (index, limit) in dimensions {
                    self.index(*index);
                    self.limit(limit);
                }
            }
            Goal::Search { axis, .. } => self.bounds(*axis),
            Goal::NonZero { divisor, .. } => self.value(*divisor),
        }
        let mut relevant = vec![false; path.len()];
        for (at, step) in path.iter().enumerate().rev() {
            match *step {
                Step::Axis(axis) => {
                    relevant[at] = self.axes[axis as usize];
                    self.bounds(axis);
                }
                Step::Gathered { axis, index } => {
                    relevant[at] = true;
                    self.bounds(axis);
                    self.index(index);
                }
                Step::Enter(_) => {}
                Step::Assign { axis, index, guarded } => {
                    if self.axes[axis as usize] || guarded {
                        self.index(index);
                    }
                    if guarded {
                        self.bounds(axis);
                    }
                }
                Step::Condition { value, .. } => self.value(value),
            }
        }
        relevant
    }

    fn limit(&mut self, limit: &Limit) {
        match limit {
            Limit::Size(size) => {
                for op in size.ops.iter() {
                    if let SizeOp::Dim(d) = op {
                        self.dim(*d);
                    }
                }
            }
            Limit::Domain(axis) => self.bounds(*axis),
        }
    }

    fn dim(&mut self, dim: u16) {
        if let Some(slot) = self.dims.get_mut(usize::from(dim)) {
            *slot = true;
        }
    }

    fn bounds(&mut self, axis: AxisId) {
        if let Some(axis) = self.program.algorithm.axes.get(axis as usize) {
            let (lower, upper) = (axis.lower, axis.upper);
            self.index(lower);
            self.index(upper);
        }
    }

    fn index(&mut self, id: IndexId) {
        match self.program.algorithm.indices.get(id as usize) {
            None => {}
            Some(Index::Dim(d)) => self.dim(*d),
            Some(Index::Axis(a)) => self.axes[*a as usize] = true,
            Some(Index::Value(v)) => self.value(*v),
            Some(index) => index.operands().for_each(|operand| self.index(operand)),
        }
    }

    fn value(&mut self, id: ValueId) {
        match self.program.algorithm.values.get(id as usize) {
            Some(Value::FromIndex(i)) => self.index(*i),
            Some(Value::CompareIndex(_, a, b)) => {
                self.index(*a);
                self.index(*b);
            }
            Some(Value::Unary(_, a) | Value::Cast(a)) => self.value(*a),
            Some(Value::Binary(_, a, b) | Value::Compare(_, a, b)) => {
                self.value(*a);
                self.value(*b);
            }
            Some(Value::Fma(a, b, c) | Value::Select(a, b, c)) => {
                [a, b, c].into_iter().for_each(|v| self.value(*v));
            }
            Some(Value::Read { indices, .. }) if self.addresses => {
                let list = self.program.algorithm.index_lists.get(indices.range()).unwrap_or(&[]);
                list.iter().for_each(|i| self.index(*i));
            }
            // What is read or reduced has no value here.
            _ => {}
        }
    }
}

/// What one run along the path with intervals says.
enum Pass {
    /// There is no failure.
    Clear,
    /// The first axis that has several values: which step, and which values.
    Open(usize, Interval),
    /// Everything is decided: a failure, unless something is not a number.
    Leaf { certain: bool, dimension: usize, data: Vec<(ValueId, bool)> },
}

struct Replay<'a> {
    scene: Scene<'a>,
    dims: &'a [i64],
    path: &'a [Step],
    goal: &'a Goal,
    relevant: &'a [bool],
    /// What each axis step is narrowed to.
    chosen: Vec<Interval>,
}

impl Replay<'_> {
    fn search(&mut self, budget: &mut Budget) -> Option<Witness> {
        if !budget.take(1 + self.path.len() as u64 / 4) {
            return None;
        }
        match self.pass() {
            Pass::Clear => None,
            Pass::Leaf { certain: true, dimension, data } => Some(self.witness(dimension, data)),
            Pass::Leaf { certain: false, .. } => {
                // Neither a failure nor none: the search as a whole must not say "none".
                budget.take(u64::MAX);
                None
            }
            Pass::Open(step, range) => {
                let before = self.chosen[step];
                let mid = range.low + (range.high - range.low) / 2;
                let halves = if self.relevant[step] {
                    vec![Interval { low: range.low, high: mid }, Interval { low: mid + 1, high: range.high }]
                } else {
                    vec![Interval::point(range.low)]
                };
                for half in halves {
                    self.chosen[step] = half;
                    let found = self.search(budget);
                    self.chosen[step] = before;
                    if found.is_some() || budget.is_exhausted() {
                        return found;
                    }
                }
                None
            }
        }
    }

    fn pass(&mut self) -> Pass {
        let mut open = None;
        let mut certain = true;
        let mut data = Vec::new();
        self.scene.memory.clear();
        for (at, step) in self.path.iter().enumerate() {
            match *step {
                Step::Axis(axis) => {
                    let range = self.scene.range(axis).intersect(self.chosen[at]);
                    if range.is_empty() {
                        return Pass::Clear;
                    }
                    if open.is_none() && range.as_point().is_none() {
                        open = Some((at, range));
                    }
                    self.scene.axes[axis as usize] = range;
                }
                Step::Gathered { axis, index } => {
                    let range = self.scene.range(axis).intersect(self.scene.index(index)).intersect(self.chosen[at]);
                    if range.is_empty() {
                        return Pass::Clear;
                    }
                    match range.as_point() {
                        None => open = open.or(Some((at, range))),
                        // Where elements are read is known once all axes around are.
                        Some(value) if open.is_none() => match self.scene.settle(index, value) {
                            Settled::Yes => {}
                            Settled::No => return Pass::Clear,
                            Settled::Unknown => certain = false,
                        },
                        Some(_) => {}
                    }
                    self.scene.axes[axis as usize] = range;
                }
                Step::Enter(_) => {}
                Step::Assign { axis, index, guarded } => {
                    let mut value = self.scene.index(index);
                    if guarded {
                        value = value.intersect(self.scene.range(axis));
                        if value.is_empty() {
                            return Pass::Clear;
                        }
                    }
                    self.scene.axes[axis as usize] = value;
                }
                Step::Condition { value, holds } => match self.scene.value(value).as_point() {
                    Some(v) if (v != 0) != holds => return Pass::Clear,
                    Some(_) => {}
                    None if self.scene.depends_on_data(value) => data.push((value, holds)),
                    None => certain = false,
                },
            }
        }
        let Some((dimension, exact)) = self.failure() else { return Pass::Clear };
        match open {
            Some((at, range)) => Pass::Open(at, range),
            // What is known of memory by now may decide what depended on it.
            None if data.iter().any(|(value, holds)| self.contradicts(*value, *holds)) => Pass::Clear,
            None => Pass::Leaf { certain: certain && exact, dimension, data },
        }
    }

    /// Whether a condition is known to be otherwise.
    fn contradicts(&self, value: ValueId, holds: bool) -> bool {
        self.scene.value(value).as_point().is_some_and(|v| (v != 0) != holds)
    }

    /// Whether the goal may fail: the first dimension in which it may, and whether that is certain.
    fn failure(&self) -> Option<(usize, bool)> {
        match self.goal {
            Goal::Inside { dimensions, .. } => {
                let mut possible = None;
                for (at, (index, limit)) in dimensions.iter().enumerate() {
                    let value = self.scene.index(*index);
                    let (lower, upper) = self.limit(limit);
                    if value.low < lower.high || value.high >= upper.low {
                        let exact = [value, lower, upper].iter().all(|i| i.as_point().is_some());
                        if exact {
                            return Some((at, true));
                        }
                        possible = possible.or(Some((at, false)));
                    }
                }
                possible
            }
            Goal::Search { axis, .. } => {
                let (lower, upper) = self.limit(&Limit::Domain(*axis));
                let parts = [upper.low <= lower.high, lower.low < 0];
                let failed = parts.into_iter().position(|fails| fails)?;
                Some((failed, lower.as_point().is_some() && upper.as_point().is_some()))
            }
            Goal::NonZero { divisor, .. } => {
                let value = self.scene.value(*divisor);
                value.contains(0).then(|| (0, value.as_point().is_some()))
            }
        }
    }

    /// First index inside and first one outside.
    fn limit(&self, limit: &Limit) -> (Interval, Interval) {
        match limit {
            Limit::Size(size) => {
                let size = size.eval(self.dims).map_or(Interval::ANYTHING, Interval::point);
                (Interval::point(0), size)
            }
            Limit::Domain(axis) => match self.scene.algorithm.axes.get(*axis as usize) {
                Some(axis) => (self.scene.index(axis.lower), self.scene.index(axis.upper)),
                None => (Interval::ANYTHING, Interval::ANYTHING),
            },
        }
    }

    fn witness(&self, dimension: usize, data: Vec<(ValueId, bool)>) -> Witness {
        let value_of = |axis: AxisId| self.scene.axes[axis as usize].as_point().map(|v| (axis, v));
        let axes = self.path.iter().filter_map(|s| if let Step::Axis(a) = s { value_of(*a) } else { None }).collect();
        let assigned = self.path.iter().filter_map(|s| match s {
            Step::Assign { axis, .. } | Step::Gathered { axis, .. } => value_of(*axis),
            _ => None,
        });
        let indices = match self.goal {
            Goal::Inside { dimensions, .. } => {
                dimensions.iter().map(|(index, _)| self.scene.index(*index).as_point()).collect()
            }
            _ => Vec::new(),
        };
        let assigned = assigned.collect();
        let memory = self.scene.memory.clone();
        let data = data.into_iter().filter(|(value, _)| self.scene.value(*value).as_point().is_none()).collect();
        Witness { dims: self.dims.to_vec(), relevant: Vec::new(), axes, assigned, memory, indices, dimension, data }
    }
}

/// What is read: the extent of each of its dimensions.
pub(super) fn limits(program: &Program, source: Source) -> Vec<Limit> {
    match source {
        Source::Parameter(parameter) => match program.parameters.get(usize::from(parameter)).map(|p| &p.kind) {
            Some(kernel::info::ParameterKind::Tensor(tensor)) => {
                tensor.shape.iter().cloned().map(Limit::Size).collect()
            }
            _ => Vec::new(),
        },
        Source::Equation { equation, .. } => {
            equation_axes(program, equation).iter().copied().map(Limit::Domain).collect()
        }
    }
}

/// The axes of an equation.
pub(super) fn equation_axes(program: &Program, equation: u16) -> &[AxisId] {
    let algorithm = &program.algorithm;
    let run = algorithm.equations.get(usize::from(equation)).map(|e| e.axes.range());
    run.and_then(|run| algorithm.axis_lists.get(run)).unwrap_or(&[])
}

/// The first failing case for these sizes.
pub(super) fn search_at(
    program: &Program,
    path: &[Step],
    goal: &Goal,
    dims: &[i64],
    budget: &mut Budget,
) -> Option<Witness> {
    let mut used = Used::new(program, path);
    let relevant_axes = used.path(path, goal);
    let scene = Scene::new(&program.algorithm, dims.iter().map(|d| Interval::point(i128::from(*d))).collect());
    let chosen = vec![Interval::ANYTHING; path.len()];
    let mut replay = Replay { scene, dims, path, goal, relevant: &relevant_axes, chosen };
    let mut witness = replay.search(budget)?;
    witness.relevant = (0..).zip(&used.dims).filter_map(|(d, used)| used.then_some(d)).collect();
    Some(witness)
}

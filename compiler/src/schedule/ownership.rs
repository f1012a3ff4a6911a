//! Which thread holds an element of a stage, in which of its registers.
//!
//! A stage's index maps take an element to its leaves; the leaves that units run are digits of the thread's number, the
//! loops tell registers apart: a [`Layout`] from leaves to [`Holder`]s. Elements are held alike by all threads that
//! differ only in digits that were reduced. `held_reads` proves that readers are among these threads.

use super::levels;
use super::{Distribution, Stage};
use crate::domain::{Axis, AxisId, AxisKind, Domain, Symbolic, Unit, alike};
use crate::extent::{Expr, Facts, Var, collapse};
use crate::layout::{self, Layout, Path};

/// The least and the largest value of a variable.
pub type Ranges<'a> = &'a dyn Fn(Var) -> Option<(i128, i128)>;

/// What tells elements of a stage apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The number of a thread: in its block, or in the unit that owns the instance.
    Thread,
    /// A register of a thread.
    Register,
}

/// A digit of a thread's number that a leaf is.
#[derive(Clone, Debug)]
pub struct Digit {
    /// The leaf.
    pub leaf: AxisId,
    /// Threads between neighbours.
    pub stride: i128,
    /// How many there are.
    pub extent: i128,
    /// Threads before the first one, of those that the digit outside leaves.
    pub low: i128,
    /// Threads that differ in it share results.
    pub reduced: bool,
    /// The unit that is given it.
    pub unit: Unit,
    /// How it follows from the number of a thread.
    pub path: Path,
    /// Whether there are threads outside of its extent, which are idle.
    pub is_partial: bool,
}

/// Which thread computes each iteration of a stage's leaves, and in which of its registers it keeps what it stores.
pub fn holders(stage: &Stage) -> Layout<AxisId, Holder> {
    let Distribution { levels, owner, block, .. } = &stage.distribution;
    let mut all = levels::digits(levels);
    if let Some(size) = owner.threads() {
        all.push(nobody(size, i128::from(*block).div_euclid(size)));
    }
    all.extend(register_digits(stage));
    Layout::new(all, vec![(Holder::Thread, (*block).into())])
}

/// The same with a thread's number in the cluster, which counts the threads of the blocks before its own.
fn holders_in_cluster(stage: &Stage) -> Layout<AxisId, Holder> {
    let Distribution { ctas, cluster, block, .. } = &stage.distribution;
    let own = holders(stage);
    if *cluster == 1 {
        return own;
    }
    let (block, cluster) = (i128::from(*block), i128::from(*cluster));
    let mut stride = block;
    let mut all: Vec<layout::Digit<AxisId, Holder>> = Vec::new();
    for (leaf, extent) in ctas.iter().rev() {
        let (source, extent) = (Some(*leaf), *extent);
        all.push(layout::Digit { source, unit: 1, extent, target: Holder::Thread, stride, low: 0 });
        stride = stride.saturating_mul(extent);
    }
    if ctas.is_empty() {
        all.push(nobody(block, cluster));
    }
    all.reverse();
    all.extend(own.digits());
    Layout::new(all, vec![(Holder::Thread, block.saturating_mul(cluster))])
}

/// A digit of a thread's number in which threads do not differ for a stage.
const fn nobody(stride: i128, extent: i128) -> layout::Digit<AxisId, Holder> {
    layout::Digit { source: None, unit: 1, extent, target: Holder::Thread, stride, low: 0 }
}

/// The digits of a thread's number that leaves are, outermost first.
pub fn digits(stage: &Stage) -> Vec<Digit> {
    told(stage, &holders(stage))
}

fn told(stage: &Stage, layout: &Layout<AxisId, Holder>) -> Vec<Digit> {
    let own = layout.digits().iter().enumerate().filter(|(_, digit)| digit.target == Holder::Thread);
    let digit = |(n, digit): (usize, &layout::Digit<AxisId, Holder>)| {
        let leaf = digit.source?;
        let axis = &stage.domain.axes[leaf];
        Some(Digit {
            leaf,
            stride: digit.stride,
            extent: digit.extent,
            low: digit.low,
            reduced: axis.kind == AxisKind::Reduction,
            unit: Unit::of(axis.binding).unwrap_or(Unit::Thread),
            path: layout.path(n),
            is_partial: layout.is_partial(n),
        })
    };
    own.filter_map(digit).collect()
}

/// The same in a thread's number in the cluster.
pub(super) fn digits_in_cluster(stage: &Stage) -> Vec<Digit> {
    told(stage, &holders_in_cluster(stage))
}

/// The loops that tell the registers of a stage apart, outermost first, with the most iterations that each has.
pub fn register_loops(stage: &Stage) -> Vec<(AxisId, i128)> {
    let axes = &stage.domain.axes;
    let own = stage.domain.leaves.iter().filter(|leaf| is_of_registers(&axes[**leaf]));
    own.map(|leaf| (*leaf, most(&axes[*leaf], &stage.facts))).collect()
}

/// Whether the iterations of an axis are registers.
fn is_of_registers(axis: &Axis) -> bool {
    axis.binding.is_sequential() && axis.kind == AxisKind::Data
}

/// The most iterations that an axis has.
fn most(axis: &Axis, facts: &Facts) -> i128 {
    let most = axis.extent.as_constant().or_else(|| facts.upper_bound(&axis.extent));
    most.unwrap_or(i128::MAX).max(1)
}

/// The same as digits of a register's number.
fn register_digits(stage: &Stage) -> Vec<layout::Digit<AxisId, Holder>> {
    let mut stride = 1_i128;
    let digit = |(leaf, extent): (AxisId, i128)| {
        let digit = layout::Digit { source: Some(leaf), unit: 1, extent, target: Holder::Register, stride, low: 0 };
        stride = stride.saturating_mul(extent);
        digit
    };
    register_loops(stage).into_iter().rev().map(digit).collect()
}

/// Registers of one thread for one component of an instance.
pub fn registers(stage: &Stage) -> i128 {
    register_loops(stage).iter().fold(1, |n: i128, l| n.saturating_mul(l.1))
}

/// Who reads, and where.
#[derive(Clone, Copy)]
pub struct Reads<'a> {
    /// The domain of the stage that reads.
    pub domain: &'a Domain,
    /// Its axes as expressions.
    pub symbolic: &'a Symbolic,
    /// What is known there.
    pub facts: &'a Facts,
    /// The least and the largest value of a variable.
    pub range: Ranges<'a>,
}

/// The leaves of a stage, in order, at the element with these indices: quotients that the ranges of the indices'
/// variables decide are decided, and leaves that the reader has alike are its own.
pub fn leaves_at(stage: &Stage, indices: &[Expr], reads: Reads<'_>) -> Vec<Expr> {
    let Reads { domain, symbolic, facts, range } = reads;
    let of = |indices: &[Expr]| -> Vec<Expr> {
        stage.coordinates.iter().map(|c| collapse(&facts.normal(&c.at(indices)), range)).collect()
    };
    let coordinates = of(indices);
    let own = alike(&stage.domain, &coordinates, domain, symbolic, facts);
    let mut values = Symbolic::leaves_of(&stage.domain, facts, &coordinates);
    for (leaf, value) in stage.domain.leaves.iter().zip(&mut values) {
        if let Some(axis) = own[*leaf] {
            value.clone_from(&symbolic.values[axis]);
        }
    }
    let axes = stage.domain.leaves.iter().map(|leaf| &stage.domain.axes[*leaf]);
    // Every element is in the instance: what is told apart by one iteration is in this one, whatever the index looks
    // like.
    let is_one = |extent: &Expr| stage.facts.upper_bound(extent).is_some_and(|most| most <= 1);
    let value = |(axis, e): (&Axis, &Expr)| match is_one(&axis.extent) {
        true => Expr::constant(0),
        false => collapse(&facts.normal(e), range),
    };
    axes.zip(&values).map(value).collect()
}

/// Where a thread reads what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// In the register with this number.
    Number(usize),
    /// Nowhere: the iteration is one past the end, or the element one outside of an `or`. Guards keep what is read
    /// there from being used.
    Outside,
    /// That is not known when the kernel is compiled: `check` has refused it.
    Unknown,
}

/// The register that holds the element at these leaves (see [`leaves_at`]), where `present` is the number that an
/// expression is in the present iterations of the loops that are written out.
///
/// `check` has seen that the leaves depend on such loops alone. Their numbers are put into these very expressions, and
/// not into the indices: where an instance begins depends on the same loops.
pub fn register(stage: &Stage, leaves: &[Expr], present: &dyn Fn(&Expr) -> Option<i128>) -> Register {
    let (mut number, mut stride, mut is_inside) = (0_i128, 1_i128, true);
    // The loops of `register_loops`, the innermost first.
    for (at, leaf) in stage.domain.leaves.iter().enumerate().rev() {
        let axis = &stage.domain.axes[*leaf];
        if !is_of_registers(axis) {
            continue;
        }
        let (extent, Some(value)) = (most(axis, &stage.facts), present(&leaves[at])) else { return Register::Unknown };
        is_inside &= 0 <= value && value < extent;
        number = number.saturating_add(value.saturating_mul(stride));
        stride = stride.saturating_mul(extent);
    }
    match usize::try_from(number) {
        Ok(number) if is_inside => Register::Number(number),
        _ => Register::Outside,
    }
}

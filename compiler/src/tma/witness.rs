//! The smallest sizes for which a copy loads elements into holes beside live slots: a replay, slot by slot, of what the
//! accelerator does.

use super::slots::{Copy, Slot, content};
use crate::domain::Symbolic;
use crate::extent::{Budget, Facts, Search};
use crate::plan::staged::{Axis, Staged};

/// Steps that a search may take.
const STEPS: u64 = 60_000;

/// A hole that holds an element, in a copy with live slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Sizes.
    pub dims: Vec<i64>,
    /// The axis along which the slot was not asked for.
    pub axis: usize,
    /// Where its box starts.
    pub start: i128,
    /// The phase of the copy.
    pub phase: i128,
    /// The slot of its tile.
    pub slot: i128,
    /// The axis's extent, and one past the last position of the box that was asked for.
    pub ends: (i128, i128),
}

/// Searches sizes by their sum, then instances, boxes and phases in order.
pub fn filled_hole(staged: &Staged, facts: &Facts, symbolic: &Symbolic) -> Option<Filled> {
    let leaves = symbolic.variables.iter().flat_map(|leaf| leaf.extent.vars());
    let own = staged.axes.iter().flat_map(|a| [a.size.vars(), a.region.start.vars()].concat());
    let mut relevant: Vec<u32> = leaves.chain(own).filter(|v| (*v as usize) < facts.dims()).collect();
    relevant.sort_unstable();
    relevant.dedup();
    let found = facts.smallest(&relevant, &mut Budget::new(STEPS), |dims, budget| {
        let mut values: Vec<i128> = dims.iter().map(|d| i128::from(*d)).collect();
        // Only the loops that move the region count.
        let moved: Vec<usize> = (0..symbolic.variables.len())
            .filter(|n| {
                let var = symbolic.variables[*n].var;
                staged.axes.iter().any(|a| a.region.start.vars().contains(&var))
            })
            .collect();
        let extents: Vec<i128> =
            moved.iter().map(|n| symbolic.variables[*n].extent.eval(&values)).collect::<Option<_>>()?;
        values.resize(facts.dims() + symbolic.variables.len(), 0);
        let mut at = vec![0i128; moved.len()];
        loop {
            if !budget.take(1) || extents.iter().any(|e| *e < 1) {
                return None;
            }
            for (n, value) in moved.iter().zip(&at) {
                values[facts.dims() + n] = *value;
            }
            if let Some(found) = instance(staged, &values, dims, budget) {
                return Some(found);
            }
            if !advance(&mut at, &extents) {
                return None;
            }
        }
    });
    match found {
        Search::Found(filled) => Some(filled),
        _ => None,
    }
}

/// The next point, the last coordinate fastest; false after the last one.
fn advance(at: &mut [i128], extents: &[i128]) -> bool {
    for (value, extent) in at.iter_mut().zip(extents).rev() {
        *value += 1;
        if *value < *extent {
            return true;
        }
        *value = 0;
    }
    false
}

/// The first filled hole of the instance at these values.
fn instance(staged: &Staged, values: &[i128], dims: &[i64], budget: &mut Budget) -> Option<Filled> {
    let boxes: Vec<i128> = staged.axes.iter().map(Axis::boxes).collect();
    let strides: Vec<i128> = staged.axes.iter().map(|a| a.boxed.element_stride).collect();
    let mut number = vec![0i128; boxes.len()];
    loop {
        let copies: Vec<Copy> = (staged.axes.iter().zip(&number))
            .map(|(a, n)| {
                let before = n * a.boxed.box_size;
                Some(Copy {
                    size: a.size.eval(values)?,
                    box_size: a.boxed.box_size,
                    element_stride: a.boxed.element_stride,
                    start: a.region.start.eval(values)? + before,
                    live: (a.region.extent - before).min(a.boxed.box_size),
                })
            })
            .collect::<Option<_>>()?;
        let mut phases = vec![0i128; strides.len()];
        loop {
            if !budget.take(1) {
                return None;
            }
            let what = content(&copies, &phases);
            if what.live && what.hole {
                return hole(&copies, &phases, dims);
            }
            if !advance(&mut phases, &strides) {
                break;
            }
        }
        if !advance(&mut number, &boxes) {
            return None;
        }
    }
}

/// The first axis with a hole that holds an element.
fn hole(copies: &[Copy], phases: &[i128], dims: &[i64]) -> Option<Filled> {
    let slot = |at: usize| copies[at].slots(phases[at]).position(|s| s == Slot::Hole);
    let (axis, slot) = (0..copies.len()).find_map(|at| Some((at, slot(at)?)))?;
    let Copy { size, start, live, .. } = copies[axis];
    let (phase, slot) = (phases[axis], slot as i128);
    Some(Filled { dims: dims.to_vec(), axis, start, phase, slot, ends: (size, start + live) })
}

//! What the written equations say: ranges, terms, what is read.

use tilewright_kernel::algorithm::{Algorithm, Axis, AxisId, Index, Source, Value, ValueId};
use tilewright_sorted::SortedSet;

use crate::extent::{Expr, Facts};
use crate::online::components;
use crate::program::{Program, expressions};

/// The ends of a range; unknown where they depend on the element, or on memory.
pub(super) fn fixed(program: &Program, axis: AxisId, facts: &Facts) -> (Expr, Expr) {
    let Axis { lower, upper, .. } = program.algorithm.axes[axis as usize];
    let end = |index| facts.normal(&expressions::index(program, index, &expressions::Scope::new()));
    (end(lower), end(upper))
}

/// The equation whose elements are the terms of an extreme, and its axis along them.
pub(super) fn scores_of(program: &Program, extreme: u16) -> Option<(u16, AxisId)> {
    let algorithm = &program.algorithm;
    let (terms, body) = reduction(algorithm, extreme);
    let Value::Read { source: Source::Equation { equation, .. }, indices, or: None } = algorithm.values[body as usize]
    else {
        return None;
    };
    let list = &algorithm.index_lists[indices.range()];
    let along = list.iter().position(|index| algorithm.indices[*index as usize] == Index::Axis(terms))?;
    Some((equation, *axes_of(algorithm, equation).get(along)?))
}

/// The axis of the terms of an equation that is a reduction, and its term.
pub(super) fn reduction(algorithm: &Algorithm, equation: u16) -> (AxisId, ValueId) {
    let value = components(algorithm, equation)[0].value;
    match algorithm.values[value as usize] {
        Value::Reduce { axes, body, .. } => (algorithm.axis_lists[axes.range()][0], body),
        _ => (0, value),
    }
}

pub(super) fn axes_of(algorithm: &Algorithm, equation: u16) -> &[AxisId] {
    &algorithm.axis_lists[algorithm.equations[usize::from(equation)].axes.range()]
}

/// Whether a value is made from an equation.
pub(super) fn reads(algorithm: &Algorithm, value: ValueId, wanted: u16) -> bool {
    let (mut open, mut seen) = (vec![value], SortedSet::new());
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        if let Value::Read { source: Source::Equation { equation, .. }, .. } = algorithm.values[value as usize] {
            if equation == wanted {
                return true;
            }
            open.extend(components(algorithm, equation).iter().map(|c| c.value));
        }
        open.extend(algorithm.operands(value));
    }
    false
}

/// All values of an equation, other than through equations that it reads.
pub(super) fn reached(algorithm: &Algorithm, equation: u16) -> Vec<ValueId> {
    let mut open: Vec<ValueId> = components(algorithm, equation).iter().map(|c| c.value).collect();
    let (mut seen, mut all) = (SortedSet::new(), Vec::new());
    while let Some(value) = open.pop() {
        if seen.insert(value) {
            all.push(value);
            open.extend(algorithm.operands(value));
        }
    }
    all
}

//! Neighbouring threads: which ops would give them neighbouring elements.

use tilewright_kernel::algorithm::{Order, Value};

use super::Stage;
use super::accesses::Access;
use super::range::is_named;
use crate::domain::{AxisId, Domain, Op, Symbolic};
use crate::program::{Program, Schedule, expressions};
use crate::source::{Span, ast};

/// The ops of a stage as far as they are written for it, and not for one that it is `like`.
pub fn written_ops<'a>(program: &'a Program, stage: &Stage) -> &'a [ast::Op] {
    let copy = stage.copy.and_then(|copy| program.stages.get(copy)).map(|copy| &copy.ast.ops[..]);
    let of_equation = |s: &&Schedule| usize::from(s.equation) == stage.equation;
    let written = program.schedules.iter().find(of_equation).map(|s| &s.ast.ops[..]);
    copy.or(written).unwrap_or_default()
}

/// The root of a stage's domain along which the elements of an access are neighbours.
pub fn along(stage: &Stage, symbolic: &Symbolic, access: &Access) -> Option<AxisId> {
    let tensor = expressions::tensor(&stage.program, access.parameter)?;
    let nearest = match &tensor.strides {
        None => tensor.shape.len().checked_sub(1)?,
        Some(strides) => strides.iter().rposition(|stride| stride.as_constant() == Some(1))?,
    };
    let index = access.indices.get(nearest)?;
    let is_it = |root: &AxisId| {
        let distance = stage.facts.normal(&index.sub(&symbolic.values[*root]));
        !distance.is_unknown() && distance.vars().iter().all(|v| (*v as usize) < stage.facts.dims())
    };
    stage.domain.roots.iter().copied().find(is_it)
}

/// Whether an axis is a part of a root that splits alone made.
pub fn stems_from(domain: &Domain, leaf: AxisId, root: AxisId) -> bool {
    let made = |axis: AxisId| {
        domain.ops.iter().find_map(|(op, _)| match op {
            Op::Split { input, outer, inner, .. } if [*outer, *inner].contains(&axis) => Some(*input),
            _ => None,
        })
    };
    std::iter::successors(Some(leaf), |axis| made(*axis)).any(|axis| axis == root)
}

/// Two splits in which a loop and the threads outside of it change places: of `split i by 4 -> io, v; split io by 256
/// -> b, t;` with `t` given to threads, `split i by 256 -> io, t; split io by 4 -> b, v;`. The axis of the loop has to
/// be a part of `along`, if that is given.
pub fn innermost(
    domain: &Domain,
    ops: &[ast::Op],
    threads: AxisId,
    along: Option<AxisId>,
) -> Option<[(Span, String); 2]> {
    let split = |made: AxisId| {
        domain.ops.iter().find_map(|(op, span)| match op {
            Op::Split { input, outer, inner, factor, .. } if *inner == made => {
                Some((*input, *outer, factor.as_constant()?, *span))
            }
            _ => None,
        })
    };
    let (between, _, threads_factor, second) = split(threads)?;
    let (input, lane, lane_factor, first) = domain.ops.iter().find_map(|(op, span)| match op {
        Op::Split { input, outer, inner, factor, .. } if *outer == between => {
            Some((*input, *inner, factor.as_constant()?, *span))
        }
        _ => None,
    })?;
    let is_loop = domain.leaves.contains(&lane) && domain.axes[lane].binding.is_sequential();
    if !is_loop || along.is_some_and(|along| !stems_from(domain, input, along)) {
        return None;
    }
    let written = |span: Span| {
        ops.iter().find(|op| op.span == span).and_then(|op| match &op.kind {
            // One of several factors has no op of its own to replace.
            ast::OpKind::Split { axis, side: ast::SplitSide::Inner, outer, inner, .. }
                if !axis.is_rest() && !inner.is_rest() =>
            {
                Some((&axis.text, &outer.text, &inner.text))
            }
            _ => None,
        })
    };
    let ((axis, outer, lane), (again, rest, threads)) = (written(first)?, written(second)?);
    // The loop has its name later than before.
    let at = |span: Span| ops.iter().position(|op| op.span == span);
    if is_named(ops.get(at(first)? + 1..at(second)?)?, lane) {
        return None;
    }
    Some([
        (first, format!("split {axis} by {threads_factor} -> {outer}, {threads}")),
        (second, format!("split {again} by {lane_factor} -> {rest}, {lane}")),
    ])
}

/// Whether the terms of a stage's reduction may be taken in any order.
pub fn reorders(stage: &Stage) -> bool {
    let Some(reduction) = stage.reduction else { return false };
    let algorithm = &stage.program.algorithm;
    match algorithm.values[reduction as usize] {
        Value::Reduce { order, .. } => order != Order::Ordered,
        Value::Fold { states, .. } => algorithm.folds[states.range()].iter().all(|state| state.merge.is_some()),
        _ => false,
    }
}

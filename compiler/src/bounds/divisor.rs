//! Whether the divisor of an integer `/` or `%` can be 0: by its interval, by its index, or by a condition around it.

use kernel::algorithm::Binary;
use kernel::algorithm::{Compare, Index, IndexId, Unary, Value, ValueId};
use tilewright_kernel as kernel;

use super::context::{Context, negated};
use super::interval::{Interval, Scene, range_of};
use super::witness::Step;
use crate::extent::{Expr, Facts};
use crate::program::Program;

/// Whether the divisor is provably not 0 here.
pub(super) fn is_not_zero(program: &Program, context: &Context, facts: &Facts, divisor: ValueId) -> bool {
    let scene = scene(program, context, facts);
    if !scene.value(divisor).contains(0) {
        return true;
    }
    if let Some(Value::FromIndex(index)) = program.algorithm.values.get(divisor as usize)
        && let Some(range) = program.algorithm.types.get(divisor as usize).and_then(|t| range_of(*t))
    {
        // It wraps to 0 at the multiples of the period only.
        let period = Expr::constant(range.high - range.low + 1);
        let (e, one) = (context.index(program, *index), Expr::constant(1));
        let proves = |e: &Expr| context.proves(facts, e);
        let span = |e: &Expr| proves(&e.sub(&one)) && proves(&period.sub(&one).sub(e));
        if span(&e) || span(&e.scale(-1)) {
            return true;
        }
    }
    context.path.iter().any(|step| match *step {
        Step::Condition { value, holds } => excludes_zero(program, &scene, value, holds, divisor),
        _ => false,
    })
}

/// Dimensions and axes as intervals.
fn scene<'a>(program: &'a Program, context: &Context, facts: &Facts) -> Scene<'a> {
    let dim = |d: usize| {
        let e = Expr::var(d as u32);
        let low = facts.lower_bound(&e).unwrap_or(0);
        Interval { low, high: facts.upper_bound(&e).unwrap_or(i128::from(i64::MAX)).min(i128::from(i64::MAX)) }
    };
    let mut scene = Scene::new(&program.algorithm, (0..program.dims.len()).map(dim).collect());
    for step in &context.path {
        match *step {
            Step::Axis(axis) => scene.axes[axis as usize] = scene.range(axis),
            Step::Gathered { axis, index } => {
                scene.axes[axis as usize] = scene.range(axis).intersect(scene.index(index));
            }
            Step::Assign { axis, index, .. } => scene.axes[axis as usize] = scene.index(index),
            Step::Enter(_) | Step::Condition { .. } => {}
        }
    }
    scene
}

/// Whether the divisor is not 0 where the condition holds, or fails.
fn excludes_zero(program: &Program, scene: &Scene<'_>, condition: ValueId, holds: bool, divisor: ValueId) -> bool {
    let part = |v| excludes_zero(program, scene, v, holds, divisor);
    match program.algorithm.values.get(condition as usize).copied() {
        Some(Value::Unary(Unary::Not, a)) => excludes_zero(program, scene, a, !holds, divisor),
        Some(Value::Binary(op @ (Binary::And | Binary::Or), a, b)) => {
            if (op == Binary::And) == holds {
                part(a) || part(b)
            } else {
                part(a) && part(b)
            }
        }
        Some(Value::Compare(op, a, b)) => {
            let op = if holds { op } else { negated(op) };
            (same_value(program, a, divisor) && leaves_zero_out(op, scene.value(b)))
                || (same_value(program, b, divisor) && leaves_zero_out(op.mirrored(), scene.value(a)))
        }
        _ => false,
    }
}

/// Whether `0 op other` is false for every value of the other side.
fn leaves_zero_out(op: Compare, other: Interval) -> bool {
    match op {
        Compare::Ne => other == Interval::point(0),
        Compare::Eq => !other.contains(0),
        Compare::Gt => other.low >= 0,
        Compare::Ge => other.low >= 1,
        Compare::Lt => other.high <= 0,
        Compare::Le => other.high <= -1,
    }
}

/// Whether two values are the same expression; reductions are compared by their place only.
fn same_value(program: &Program, a: ValueId, b: ValueId) -> bool {
    if a == b {
        return true;
    }
    let algorithm = &program.algorithm;
    if algorithm.types.get(a as usize) != algorithm.types.get(b as usize) {
        return false;
    }
    let same = |a, b| same_value(program, a, b);
    let same_index = |a, b| same_index(program, a, b);
    match (algorithm.values.get(a as usize).copied(), algorithm.values.get(b as usize).copied()) {
        (Some(Value::Literal(a)), Some(Value::Literal(b))) => a == b,
        (Some(Value::Scalar(a)), Some(Value::Scalar(b))) => a == b,
        (Some(Value::Variable(a)), Some(Value::Variable(b))) => a == b,
        (Some(Value::FromIndex(a)), Some(Value::FromIndex(b))) => same_index(a, b),
        (Some(Value::CompareIndex(p, a, b)), Some(Value::CompareIndex(q, c, d))) => {
            p == q && same_index(a, c) && same_index(b, d)
        }
        (Some(Value::Unary(p, a)), Some(Value::Unary(q, b))) => p == q && same(a, b),
        (Some(Value::Cast(a)), Some(Value::Cast(b))) => same(a, b),
        (Some(Value::Binary(p, a, b)), Some(Value::Binary(q, c, d))) => p == q && same(a, c) && same(b, d),
        (Some(Value::Compare(p, a, b)), Some(Value::Compare(q, c, d))) => p == q && same(a, c) && same(b, d),
        (Some(Value::Fma(a, b, c)), Some(Value::Fma(d, e, f))) => same(a, d) && same(b, e) && same(c, f),
        (Some(Value::Select(a, b, c)), Some(Value::Select(d, e, f))) => same(a, d) && same(b, e) && same(c, f),
        (Some(Value::Read { source: s, indices: i, or: x }), Some(Value::Read { source: t, indices: j, or: y })) => {
            let (i, j) = (&algorithm.index_lists[i.range()], &algorithm.index_lists[j.range()]);
            let same_or = match (x, y) {
                (Some(x), Some(y)) => same(x, y),
                (None, None) => true,
                _ => false,
            };
            s == t && same_or && i.len() == j.len() && i.iter().zip(j).all(|(a, b)| same_index(*a, *b))
        }
        _ => false,
    }
}

fn same_index(program: &Program, a: IndexId, b: IndexId) -> bool {
    let same = |a, b| same_index(program, a, b);
    let node = |id: IndexId| program.algorithm.indices.get(id as usize).copied();
    match (node(a), node(b)) {
        (Some(Index::Value(a)), Some(Index::Value(b))) => same_value(program, a, b),
        (Some(first), Some(second)) if first.sides().is_some() => {
            let is_alike = std::mem::discriminant(&first) == std::mem::discriminant(&second);
            is_alike && first.operands().zip(second.operands()).all(|(a, b)| same(a, b))
        }
        (a, b) => a.is_some() && a == b,
    }
}

//! What is written and never matters: reads that are always outside or never, conditions that never change, ranges that
//! are always empty. Each is right, and seldom what was meant.
//!
//! Property: a finding holds for every admissible size, 0 included, and for every element of the equation's domain,
//! which contains what readers of an intermediate ask of it. Where nothing is ever executed, nothing is found.

use tilewright_sorted::SortedMap;

use kernel::algorithm::{AxisId, Compare, IndexId, Value, ValueId};
use tilewright_kernel as kernel;

use super::context::Context;
use super::report;
use super::walk::sides;
use super::witness::{self, Limit};
use crate::diag::Diagnostics;
use crate::diag::codes::{AlwaysOutside, ConstantCondition, EmptyRange, NeedlessOr};
use crate::extent::{Expr, Facts};
use crate::program::Program;

/// What is always so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Constant {
    /// A guarded read is outside in this dimension, and below it.
    Outside { dimension: usize, below: bool },
    /// A guarded read is inside.
    Inside,
    /// A condition holds, or fails.
    Condition(bool),
    /// A reduction has no term, because of this axis.
    Empty(AxisId),
}

/// What is found at a node wherever it is met; none after two places that differ.
pub(super) type Found = SortedMap<ValueId, Option<Constant>>;

/// Notes what is the case at a node in one place.
pub(super) fn note(found: &mut Found, value: ValueId, constant: Option<Constant>) {
    match found.get_mut(&value) {
        Some(known) => *known = known.take().filter(|k| Some(k) == constant.as_ref()),
        None => drop(found.insert(value, constant)),
    }
}

/// Whether nothing is executed here.
fn is_dead(context: &Context, facts: &Facts) -> bool {
    context.proves(facts, &Expr::constant(-1))
}

/// A read with `or`; `facts` admit sizes of 0.
pub(super) fn read(
    program: &Program,
    context: &Context,
    facts: &Facts,
    dimensions: &[(IndexId, Limit)],
) -> Option<Constant> {
    let outside = dimensions.iter().enumerate().find_map(|(dimension, (index, limit))| {
        let index = context.index(program, *index);
        let (lower, upper) = context.limit(program, limit);
        let below = context.proves(facts, &lower.sub(&index).sub(&Expr::constant(1)));
        let is_outside = below || context.proves(facts, &index.sub(&upper));
        is_outside.then_some(Constant::Outside { dimension, below })
    });
    let inside = || {
        let is_inside =
            |(index, limit): &(IndexId, Limit)| sides(program, context, facts, *index, limit) == (true, true);
        dimensions.iter().all(is_inside).then_some(Constant::Inside)
    };
    outside.or_else(inside).filter(|_| !is_dead(context, facts))
}

/// A comparison of indices.
pub(super) fn condition(
    program: &Program,
    context: &Context,
    facts: &Facts,
    (op, a, b): (Compare, IndexId, IndexId),
) -> Option<Constant> {
    let (a, b) = (context.index(program, a), context.index(program, b));
    let one = Expr::constant(1);
    // How far a is above b, and b above a.
    let (more, less) = (a.sub(&b), b.sub(&a));
    let at_least = |e: &Expr| context.proves(facts, e);
    let above = |e: &Expr| context.proves(facts, &e.sub(&one));
    let (is_true, is_false) = match op {
        Compare::Eq => (at_least(&more) && at_least(&less), above(&more) || above(&less)),
        Compare::Ne => (above(&more) || above(&less), at_least(&more) && at_least(&less)),
        Compare::Lt => (above(&less), at_least(&more)),
        Compare::Le => (at_least(&less), above(&more)),
        Compare::Gt => (above(&more), at_least(&less)),
        Compare::Ge => (at_least(&more), above(&less)),
    };
    (is_true != is_false && !is_dead(context, facts)).then_some(Constant::Condition(is_true))
}

/// A reduction over these axes, which are not entered yet.
pub(super) fn reduction(program: &Program, context: &Context, facts: &Facts, axes: &[AxisId]) -> Option<Constant> {
    let mut inner = context.clone();
    for &axis in axes {
        let (lower, upper) = inner.range(program, axis);
        if inner.proves(facts, &lower.sub(&upper)) {
            return (!is_dead(&inner, facts)).then_some(Constant::Empty(axis));
        }
        inner.enter_axis(program, axis);
    }
    None
}

/// Warns of what was found.
pub(super) fn warn(program: &Program, found: &Found, diags: &mut Diagnostics) {
    let text = |value| program.printed().value_text(value);
    for (value, constant) in found {
        let span = program.value_spans[*value as usize];
        match constant {
            None => {}
            Some(Constant::Condition(holds)) => {
                diags.report(ConstantCondition { condition: text(*value), holds: *holds, span });
            }
            Some(Constant::Empty(axis)) => {
                let (lower, upper) = report::extent(program, &Limit::Domain(*axis));
                let axis = program.algorithm.axes[*axis as usize].name.to_string();
                diags.report(EmptyRange { axis, range: format!("{lower}..{upper}"), span });
            }
            Some(constant @ (Constant::Outside { .. } | Constant::Inside)) => {
                let Some(&Value::Read { source, indices, .. }) = program.algorithm.values.get(*value as usize) else {
                    continue;
                };
                let printed = program.printed();
                let list = &program.algorithm.index_lists[indices.range()];
                let written: Vec<String> = list.iter().map(|i| printed.index_text(*i)).collect();
                let tensor = printed.source(source).to_owned();
                let read = format!("{tensor}[{}]", written.join(", "));
                let Constant::Outside { dimension, below } = *constant else {
                    diags.report(NeedlessOr { read, tensor, span });
                    continue;
                };
                let Some(limit) = witness::limits(program, source).into_iter().nth(dimension) else { continue };
                let index = written.get(dimension).cloned().unwrap_or_default();
                let Some((declared, is_intermediate)) = report::declared(program, source, dimension) else { continue };
                let extent = report::extent(program, &limit);
                diags.report(AlwaysOutside {
                    read,
                    tensor,
                    dimension,
                    index,
                    extent,
                    below,
                    is_intermediate,
                    declared,
                    span,
                });
            }
        }
    }
}

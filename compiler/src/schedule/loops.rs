//! The sequential loops of one thread: what their order must satisfy.
//!
//! A loop over the result inside a loop over the terms of its reduction needs one accumulator for each of its
//! iterations, all of them registers: its extent is known, and their number small. `ordered` terms and the steps of a
//! `fold` without `merge` are taken in ascending order: the reduction axes must still be nested so that their leaves
//! count up through them.

use tilewright_kernel::algorithm::{Order, Value};

use crate::diag::Diagnostics;
use crate::diag::codes::{AccumulatorExtent, ReorderedTerms};
use crate::domain::{AxisId, AxisKind, Op};
use crate::extent::Facts;
use crate::program::Program;

use super::Stage;

/// Most accumulators of one thread: the register file has 255 per thread.
pub const ACCUMULATOR_LIMIT: i128 = 256;

/// Checks the loop order of a stage.
pub fn check_loops(program: &Program, facts: &Facts, stage: &Stage, diags: &mut Diagnostics) {
    let Some(reduction) = stage.reduction else { return };
    let domain = &stage.domain;
    let sequence: Vec<AxisId> =
        domain.leaves.iter().copied().filter(|a| domain.axes[*a].binding.is_sequential()).collect();
    let is_data = |a: &AxisId| domain.axes[*a].kind == AxisKind::Data;
    if let Some(first) = sequence.iter().position(|a| !is_data(a)) {
        let mut count = 1_i128;
        for axis in sequence[first..].iter().filter(|a| is_data(a)) {
            let extent = facts.normal(&domain.axes[*axis].extent);
            let known = extent.as_constant().or_else(|| facts.upper_bound(&extent));
            count = count.saturating_mul(known.unwrap_or(1).max(1));
            if known.is_none() || count > ACCUMULATOR_LIMIT {
                let (data, terms): (Vec<AxisId>, Vec<AxisId>) = sequence.iter().copied().partition(is_data);
                diags.report(AccumulatorExtent {
                    axis: domain.axes[*axis].name.clone(),
                    extent: extent.show(&|v| program.dim_name(v as u16).to_owned()),
                    count: known.map(|_| count),
                    limit: ACCUMULATOR_LIMIT,
                    around: domain.axes[sequence[first]].name.clone(),
                    span: domain.axes[*axis].span,
                    order: data.iter().chain(&terms).map(|a| domain.axes[*a].name.clone()).collect(),
                });
                break;
            }
        }
    }
    let (is_ordered, is_fold) = match program.algorithm.values[reduction as usize] {
        Value::Reduce { order, .. } => (order == Order::Ordered, false),
        Value::Fold { states, .. } => (program.algorithm.folds[states.range()].iter().any(|s| s.merge.is_none()), true),
        _ => (false, false),
    };
    if is_ordered {
        let terms: Vec<AxisId> = sequence.iter().copied().filter(|a| !is_data(a)).collect();
        if let Some(Descent { outer, inner, order }) = descent(stage, &terms) {
            diags.report(ReorderedTerms {
                outer: domain.axes[outer].name.clone(),
                inner: domain.axes[inner].name.clone(),
                span: domain.axes[inner].span,
                reduction: program.value_spans[reduction as usize],
                is_fold,
                order: order.map(|list| list.iter().map(|a| domain.axes[*a].name.clone()).collect()),
            });
        }
    }
}

/// Two axes that take the terms out of order.
struct Descent {
    outer: AxisId,
    inner: AxisId,
    /// All loops over terms in an order that is ascending; none if an op has mixed them.
    order: Option<Vec<AxisId>>,
}

/// Two neighbouring loops whose order makes the terms come out of order, or an op that permutes them.
fn descent(stage: &Stage, terms: &[AxisId]) -> Option<Descent> {
    // In order of significance: what is left of an axis varies more slowly. Splits and merges of neighbours keep it.
    let domain = &stage.domain;
    let mut order: Vec<AxisId> =
        domain.roots.iter().copied().filter(|a| domain.axes[*a].kind == AxisKind::Reduction).collect();
    for (op, _) in &domain.ops {
        let inputs = op.inputs();
        let Some(at) = order.iter().position(|a| *a == inputs[0]) else { continue };
        match *op {
            Op::Split { outer, inner, .. } => {
                order.splice(at..=at, [outer, inner]);
            }
            Op::Merge { outer, inner, output } => {
                if order.get(at + 1) != Some(&inner) {
                    return Some(Descent { outer, inner, order: None });
                }
                order.splice(at..=at + 1, [output]);
            }
            Op::Resize { output, .. } => order[at] = output,
            Op::Swizzle { x_output, y_output, .. } => {
                return Some(Descent { outer: x_output, inner: y_output, order: None });
            }
        }
    }
    let place = |a: AxisId| order.iter().position(|o| *o == a);
    let pair = terms.windows(2).find(|pair| place(pair[0]) > place(pair[1]))?;
    let mut ascending = terms.to_vec();
    ascending.sort_by_key(|a| place(*a));
    Some(Descent { outer: pair[0], inner: pair[1], order: Some(ascending) })
}

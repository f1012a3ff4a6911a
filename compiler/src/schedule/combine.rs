//! Which reductions units combine, and by what.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Order, Reduction, Value};

use super::{Reduced, Stage, atomic_word, digits};
use crate::diag::Diagnostics;
use crate::diag::codes::{CombineProblem, FloatAtomics, NothingToCombine, OrderedByNobody};
use crate::domain::{AxisKind, Binding, WARP};
use crate::program::Program;
use crate::source::ast;

/// Whether it combines what blocks have.
pub(super) const fn reaches_blocks(reduced: &Reduced) -> bool {
    matches!(reduced.by, ast::ReduceBy::Grid | ast::ReduceBy::Atomic)
}

/// Refuses atomic operations that the numeric contract does not admit, and warns of those whose result is another one
/// each time.
pub(super) fn check_atomics(program: &Program, stage: &Stage, diags: &mut Diagnostics) {
    let reduction = stage.reduction.map(|value| (value, program.algorithm.values[value as usize]));
    let Some((value, Value::Reduce { op: Reduction::Sum, order, .. })) = reduction else { return };
    let element = program.algorithm.types[value as usize];
    let Some(reduced) = stage.reduced.iter().find(|r| r.by == ast::ReduceBy::Atomic) else { return };
    if !element.is_float() || atomic_word(Reduction::Sum, element).is_none() {
        return;
    }
    let (span, reduction) = (reduced.word.unwrap_or(reduced.span), program.value_spans[value as usize]);
    if order == Order::Unordered {
        diags.report(FloatAtomics { stage: stage.name.clone(), element, span, reduction });
    } else {
        diags.report(OrderedByNobody { element, span, reduction: Some(reduction) });
    }
}

/// Why units cannot combine what they have along an axis.
pub(super) fn combining(program: &Program, stage: &Stage, reduced: &Reduced) -> Option<CombineProblem> {
    let axis = &stage.domain.axes[reduced.axis];
    if axis.poisoned {
        return None;
    }
    if axis.kind == AxisKind::Data {
        return Some(CombineProblem::Data);
    }
    let of_cluster = axis.binding == Binding::Cta;
    let of_blocks = axis.binding == Binding::Grid;
    if reduced.by == ast::ReduceBy::Cluster && !of_cluster {
        return Some(CombineProblem::NotOfBlocks(reduced.by));
    }
    if reaches_blocks(reduced) {
        if !of_blocks {
            return Some(CombineProblem::NotOfBlocks(reduced.by));
        }
        if stage.reduced.iter().any(|other| reaches_blocks(other) && other.by != reduced.by) {
            return Some(CombineProblem::TwoWays);
        }
    } else if of_blocks || of_cluster && reduced.by != ast::ReduceBy::Cluster {
        // That has been said.
        return None;
    } else if !of_cluster && !digits(stage).iter().any(|d| d.leaf == reduced.axis) {
        return Some(CombineProblem::Unbound);
    }
    let reduction = stage.reduction?;
    let algorithm = &program.algorithm;
    let by_atomics = reduced.by == ast::ReduceBy::Atomic;
    let not_atomic =
        |what: &'static str, element: Option<ElementType>| Some(CombineProblem::NotAtomic { what, element });
    match algorithm.values[reduction as usize] {
        Value::Reduce { order: Order::Ordered, .. } => Some(CombineProblem::Ordered),
        Value::Reduce { op, body, .. } if by_atomics => {
            let is_place = matches!(op, Reduction::ArgMax | Reduction::ArgMin);
            let element = algorithm.types[if is_place { body } else { reduction } as usize];
            let what = match op {
                Reduction::Prod => "product",
                Reduction::Sum => "sum",
                Reduction::ArgMax | Reduction::ArgMin => "place of an extreme",
                _ => "extreme",
            };
            if atomic_word(op, element).is_none() { not_atomic(what, Some(element)) } else { None }
        }
        Value::Fold { states, .. } => {
            let missing = algorithm.folds[states.range()].iter().any(|s| s.merge.is_none());
            match missing {
                true => Some(CombineProblem::NoMerge),
                false if by_atomics => not_atomic("`fold`", None),
                false => None,
            }
        }
        _ => None,
    }
}

/// Refuses what units cannot combine where they stand in the block; false if there is something.
pub(super) fn check_placed(stage: &Stage, diags: &mut Diagnostics) -> bool {
    let digits = digits(stage);
    for reduced in stage.reduced.iter().filter(|r| r.by == ast::ReduceBy::Warp) {
        let Some(digit) = digits.iter().find(|d| d.leaf == reduced.axis) else { continue };
        let threads = digit.stride.saturating_mul(digit.extent);
        // One group that starts anywhere in a warp, or several from a multiple of their threads on.
        let mut outside = digits.iter().filter(|d| d.extent > 1 && d.stride > digit.stride);
        let alone = outside.all(|d| d.stride % WARP == 0) && digit.low % WARP + threads <= WARP;
        let aligned = digit.low % threads.max(1) == 0 || alone;
        if threads > WARP || WARP % threads.max(1) != 0 || !aligned {
            let axis = stage.domain.axes[reduced.axis].name.clone();
            diags.report(NothingToCombine { axis, problem: CombineProblem::BeyondWarp, span: reduced.span });
            return false;
        }
    }
    true
}

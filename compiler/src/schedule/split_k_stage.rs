//! Stages in the loops of an output whose reduction blocks share: each block takes a part of the terms, and after the
//! arrival the last one alone goes on.
//!
//! **Property.** The output has a block for each of its own and each part; blocks that differ in the part alone are a
//! group, and come to the same places in the same order. What a place does before the arrival, all of them do, and
//! none of it is seen outside of the block; what it does after, one of them does, which has the results. The loops
//! around the place go on with all blocks of the group: another one may be the last in their next iteration, so that no
//! block keeps anything from one to the next.
//!
//! Roles, and blocks of a cluster, do not tell each other which block is the last: where they do something together,
//! they come to it alike. So all that is after an arrival is the role's that arrives, and no business of the cluster;
//! before it, in the loops of the stage, everything is as ever.

use super::attach::ancestors;
use super::loops::ACCUMULATOR_LIMIT;
use super::{Attach, Stage, chain_under};
use crate::diag::Diagnostics;
use crate::diag::codes::{ArrivalProblem, NotTheLast, Parties};
use crate::domain::{AxisId, AxisKind};
use crate::extent::Expr;

/// The stage after whose arrival the last block alone comes to what stands in the loops of the stage with position
/// `of`, inside so many of them; none if all blocks come there.
pub fn after_arrival(stages: &[&Stage], of: usize, loops: usize) -> Option<usize> {
    let stage = |n: usize| stages.get(n).copied();
    let around = || ancestors(&stage, of);
    let is_behind = |at: &usize| {
        let Some(attach) = stages[*at].attach.as_ref().filter(|_| stages[*at].arrives()) else { return false };
        if around().any(|n| n == *at) {
            return false;
        }
        let beside = around().last().and_then(|root| stages[root].beside.as_ref());
        match of == attach.stage {
            true => loops >= attach.loops,
            false => {
                chain_under(&stage, of, attach).is_some()
                    || beside.is_some_and(|beside| beside.stage == attach.stage && beside.loops >= attach.loops)
            }
        }
    };
    (0..stages.len()).find(is_behind)
}

/// Checks every stage that blocks share, and gives its output the blocks for that.
pub(super) fn place(stages: &mut [Stage], diags: &mut Diagnostics) {
    for at in 0..stages.len() {
        let Some(attach) = stages[at].attach.clone().filter(|_| stages[at].arrives()) else { continue };
        if let Some(problem) = problem(stages, at, &attach) {
            let (stage, place, span) =
                (stages[at].name.clone(), place_of(&stages[attach.stage], &attach), stages[at].span);
            diags.report(NotTheLast { stage, place, problem, span });
            continue;
        }
        let own = &stages[at];
        let parts: Vec<_> = own.distribution.grid.iter().map(|a| own.domain.axes[*a].extent.clone()).collect();
        for (n, stage) in stages.iter_mut().enumerate() {
            if n == attach.stage || stage.beside.as_ref().is_some_and(|beside| beside.stage == attach.stage) {
                stage.distribution.parts.clone_from(&parts);
            }
        }
    }
}

/// How a place is written.
pub fn place_of(host: &Stage, attach: &Attach) -> String {
    format!("{}.{}", host.name, host.domain.axes[attach.leaf].name)
}

/// Why blocks cannot share the stage with a position.
fn problem(stages: &[Stage], at: usize, attach: &Attach) -> Option<ArrivalProblem> {
    let host = &stages[attach.stage];
    let axes = &host.domain.axes;
    if !host.has_blocks() {
        let beside = host.beside.as_ref().map(|beside| stages[beside.stage].name.clone());
        return Some(ArrivalProblem::Inside { host: host.name.clone(), beside });
    }
    if let Some(axis) = host.across_blocks().next() {
        return Some(ArrivalProblem::Second { other: host.name.clone(), axis: axes[axis].name.clone() });
    }
    let root = |stage: usize| std::iter::successors(Some(stage), |n| Some(stages[*n].attach.as_ref()?.stage)).last();
    let of_output = |n: &usize| {
        let root = root(*n);
        root == Some(attach.stage)
            || root.and_then(|n| stages[n].beside.as_ref()).is_some_and(|beside| beside.stage == attach.stage)
    };
    // Of several, the first one stands for all.
    let other = (0..at).find(|n| stages[*n].arrives() && of_output(n));
    if let Some(other) = other.map(|n| &stages[n]) {
        let axis = other.across_blocks().next().map_or_else(String::new, |a| other.domain.axes[a].name.clone());
        return Some(ArrivalProblem::Second { other: other.name.clone(), axis });
    }
    if let Some(axis) = attach.around.iter().find(|a| axes[**a].kind == AxisKind::Reduction) {
        return Some(ArrivalProblem::Terms { host: host.name.clone(), axis: axes[*axis].name.clone() });
    }
    let outer = |s: &&Stage| s.beside.as_ref().is_some_and(|b| b.stage == attach.stage && b.loops < attach.loops);
    if let Some(output) = stages.iter().find(outer) {
        return Some(ArrivalProblem::Around { output: output.name.clone() });
    }
    let own = &stages[at];
    let of_sizes = |e: &Expr| e.vars().into_iter().all(|v| (v as usize) < host.facts.dims());
    if let Some(axis) = own.across_blocks().find(|a| !of_sizes(&own.facts.normal(&own.domain.axes[*a].extent))) {
        return Some(ArrivalProblem::Varying { axis: own.domain.axes[axis].name.clone() });
    }
    let all: Vec<&Stage> = stages.iter().collect();
    let behind = || (0..all.len()).filter(|n| after_arrival(&all, *n, attach.loops) == Some(at)).map(|n| all[n]);
    if let Some(other) = behind().find(|stage| stage.role != own.role) {
        return Some(ArrivalProblem::Together { what: other.name.clone(), is_copy: false, by: Parties::Roles });
    }
    if let Some(other) = behind().find(|stage| stage.across_ctas()) {
        return Some(ArrivalProblem::Together { what: other.name.clone(), is_copy: false, by: Parties::Blocks });
    }
    let results = own.sequence().into_iter().filter(|a| own.domain.axes[*a].kind == AxisKind::Data);
    let most = |a: AxisId| own.facts.upper_bound(&own.domain.axes[a].extent).unwrap_or(i128::MAX).max(1);
    let count = results.fold(1, |count: i128, a| count.saturating_mul(most(a)));
    (count > ACCUMULATOR_LIMIT).then_some(ArrivalProblem::TooMany { count, most: ACCUMULATOR_LIMIT })
}

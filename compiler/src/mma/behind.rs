//! Products that are one block behind: what a pass over blocks of terms adds to its sums is computed while the scores
//! of the next block are, and what is made of these.
//!
//! Such a product is under way together with that of the scores, the first one in the loop: it is started after it, and
//! ended before the factor that it reads from registers is computed again. The slots of its other factor are handed
//! back there, so that they have barriers of their own.

use crate::diag::codes::ProductProblem;
use crate::domain::AxisId;
use crate::plan::Analysed;
use crate::plan::product::{Behind, Factor, Product};
use crate::plan::roles::consumers;
use crate::plan::staged::Staged;
use crate::schedule::Mma;

/// How the product of the stage with a position is computed, whose groups stay under way while its left factor is
/// computed again.
pub(super) fn plan(all: &[Analysed], at: usize, mma: &Mma, product: &Product) -> Result<Behind, ProductProblem> {
    let stage = &all[at].stage;
    let rewritten = |factor: usize| ProductProblem::Rewritten(all[factor].stage.name.clone());
    let [Factor::Held(left), Factor::Shared(right)] = &product.factors else {
        return Err(ProductProblem::Alone(mma.inflight));
    };
    let mut passes = stage.program.online.iter().filter_map(|online| online.blocks.as_ref());
    let goes_on = passes.any(|blocks| usize::from(blocks.product) == stage.equation);
    let (true, Some(place)) = (goes_on && mma.is_async(), &stage.attach) else { return Err(rewritten(left.stage)) };
    let around = &all[place.stage];
    let is_beside = |other: usize| {
        let other = &all[other].stage;
        other.role == stage.role
            && other.attach.as_ref().is_some_and(|own| (own.stage, own.loops) == (place.stage, place.loops))
    };
    if !around.stage.is_rolled(place.leaf) || !is_beside(left.stage) {
        return Err(rewritten(left.stage));
    }
    let is_first = |other: &usize| {
        let stage = &all[*other].stage;
        // Its group is no part of a loop: it is started once in an iteration.
        let is_one = |mma: &Mma| {
            let serial = mma.serial();
            let is_once = |leaf: &AxisId| stage.domain.axes[*leaf].extent.as_constant() == Some(1);
            let sequence = stage.sequence();
            mma.is_async() && mma.inflight == 0 && sequence.iter().all(|leaf| serial.contains(leaf) || is_once(leaf))
        };
        *other != at && is_beside(*other) && all[*other].product.is_some() && stage.product.as_ref().is_some_and(is_one)
    };
    // Stages that stand in a loop are computed from the last one on.
    let first = (left.stage + 1..all.len()).rev().find(is_first).ok_or(ProductProblem::NoScores)?;
    let is_handed =
        |staged: &&Staged| staged.role.is_some() && staged.role != stage.role && consumers(all, staged) == [at];
    let copy = around.staged.iter().find(|staged| right.is_in(staged) && staged.attach.leaf == place.leaf);
    match copy.filter(is_handed) {
        Some(_) if stage.role.is_some() && mma.inflight > 1 => Err(ProductProblem::Blocks(mma.inflight)),
        Some(_) if stage.role.is_some() => Ok(Behind { first, factor: left.stage }),
        _ => Err(ProductProblem::NotHanded(right.copy.clone())),
    }
}

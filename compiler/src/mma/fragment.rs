//! Factors in registers that are parts of a tile in shared memory, as they lie there: they are loaded without a test,
//! and by matrices where these lie so.
//!
//! **Property.** Where a stage has a [`Fragment`], every element of its tile has a place in the slot that it reads,
//! which is written in each instance, with zeros where the element lies outside of the tensor. **Formula.** A tile that
//! threads fetch has the same number of elements everywhere, and what limits would leave out is filled with zeros.

use tilewright_kernel::algorithm::Value;

use super::matrices::{self, ROW, together};
use crate::domain::{AxisId, Symbolic};
use crate::extent::{Expr, Family, Var, collapse, interval};
use crate::kernel_ir::Sharing;
use crate::plan::Analysed;
use crate::plan::product::{Fragment, Held, Matrices};
use crate::schedule::accesses::{self, StageRead};
use crate::schedule::{self, Stage, register_loops};
use crate::source::ast::Place;

/// How the stage is loaded that holds a factor, the left or the right one.
pub(super) fn of(all: &[Analysed], factor: &Held, is_right: bool) -> Option<Fragment> {
    let at = factor.stage;
    let Analysed { stage, holes, reads, symbolic, .. } = &all[at];
    let algorithm = &stage.program.algorithm;
    let components = &algorithm.components[algorithm.equations[stage.equation].components.range()];
    let ([component], [read]) = (components, &reads[..]) else { return None };
    let is_bare = component.value == read.value
        && matches!(algorithm.values[read.value as usize], Value::Read { or: None, .. })
        && read.inner.is_empty()
        && stage.reduction.is_none();
    let stage_of = |n: usize| all.get(n).map(|a| &a.stage);
    let taken = schedule::taken(&stage_of, at, (read.source, read.value), read.in_terms)?;
    let tile = &all[taken];
    let is_whole = tile.stage.place == Place::Shared
        && tile.stage.fetches
        && tile.stage.is_tile
        && tile.holes.kept.is_empty()
        && tile.stage.members.is_empty()
        && tile.stage.layout.columns.is_none();
    let is_plain = stage.place == Place::Registers && holes.kept.is_empty() && stage.members.is_empty();
    if !(is_bare && is_whole && is_plain) {
        return None;
    }
    let range = |v: Var| symbolic.range(&stage.facts, v);
    let normal = |e: &Expr| collapse(&stage.facts.normal(e), &range);
    let inside = tile.stage.coordinates.iter().all(|c| {
        let ends = interval(&normal(&c.at(&read.indices)), &range);
        let most = c.most.as_constant();
        ends.zip(most).is_some_and(|((least, last), most)| least >= 0 && last < most)
    });
    (inside && is_zero_outside(&all[at], &tile.stage, read)).then(|| Fragment {
        read: read.value,
        source: read.source,
        matrices: matrices(stage, symbolic, &tile.stage, read, &normal).map(|matrices| match is_right {
            true => in_order_of_right(stage, matrices, factor),
            false => matrices,
        }),
    })
}

/// Whether the tile holds zeros wherever the equation of the stage has no element, as readers rely on (`tma::demand`):
/// some limit of the tile fails there. Others may read the tile, too, and have asked for more of the tensor.
fn is_zero_outside(reader: &Analysed, tile: &Stage, read: &StageRead) -> bool {
    let Analysed { stage, symbolic, .. } = reader;
    let (facts, algorithm) = (&stage.facts, &stage.program.algorithm);
    let coordinate = |v: Var| Some(tile.coordinates.get(Family::ROOT.number(v)?)?.at(&read.indices));
    let held: Vec<Expr> = tile.limits.iter().map(|e| facts.normal(&e.substitute(&coordinate))).collect();
    let mut system = facts.residue_system();
    symbolic.require_ranges(facts, &mut system, |_| true);
    held.iter().for_each(|e| system.require(&facts.with_residues(e)));
    let always = |condition: Expr| {
        let condition = facts.normal(&condition);
        let mut failing = system.clone();
        failing.require(&facts.with_residues(&condition.scale(-1).sub(&Expr::constant(1))));
        !condition.is_unknown() && (held.contains(&condition) || failing.is_infeasible())
    };
    let bound = |index| schedule::index_of_dims(algorithm, index);
    stage.indices.iter().all(|(axis, index)| {
        let own = &algorithm.axes[*axis as usize];
        let (Some(lower), Some(upper)) = (bound(own.lower), bound(own.upper)) else { return false };
        let index = accesses::of_roots(index, stage, symbolic);
        always(index.sub(&lower)) && always(upper.sub(&index).sub(&Expr::constant(1)))
    })
}

/// The matrices that a warp loads, if elements lie so.
fn matrices(
    stage: &Stage,
    symbolic: &Symbolic,
    tile: &Stage,
    read: &StageRead,
    normal: &dyn Fn(&Expr) -> Expr,
) -> Option<Matrices> {
    let bytes = stage.program.algorithm.types[read.value as usize].bytes();
    // The tiles of units follow each other in a slot.
    let is_apart = tile.owner.threads().is_none()
        || tile.layout.apart(bytes).as_constant().is_some_and(|n| (n * i128::from(bytes)) % i128::from(ROW) == 0);
    if tile.sharing < Sharing::Warp || !is_apart {
        return None;
    }
    let spot = tile.spot_in(&tile.layout, &read.indices);
    if !spot.opaque.is_empty() {
        return None;
    }
    matrices::of(stage, symbolic, (bytes, &normal(&spot.offset), register_loops(stage)), normal)
}

/// The same, with both groups of terms of a column side by side: an instruction reads them from neighbouring registers.
fn in_order_of_right(stage: &Stage, mut matrices: Matrices, factor: &Held) -> Matrices {
    let is_group = |leaf: AxisId| {
        let at = stage.domain.leaves.iter().position(|l| *l == leaf);
        let value = at.and_then(|at| factor.leaves.get(at)).and_then(Expr::as_var);
        value.is_some() && value == factor.registers[0]
    };
    if let Some(at) = matrices.loops.iter().position(|l| is_group(l.0)) {
        let group = matrices.loops.remove(at);
        matrices.loops.push(group);
        matrices.count = together(&matrices.loops);
    }
    matrices
}

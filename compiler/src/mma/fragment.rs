//! Factors in registers that are parts of a tile in shared memory, as they lie there: they are loaded without a test,
//! and by matrices where these lie so.
//!
//! **Property.** Where a stage has a [`Fragment`], every element of its tile has a place in the slot that it reads,
//! which is written in each instance, with zeros where the element lies outside of the tensor. With [`Matrices`], the
//! elements that an instruction gives to a lane are those that the stage gives it. **Formula.** A tile that threads
//! fetch has the same number of elements everywhere, and what limits would leave out is filled with zeros. Lane 4·r + q
//! has row r of a matrix, and of that its q-th four bytes: so the place is one more for each element of a lane and of
//! the lanes of four, and the rest of it is a multiple of 16 bytes, which swizzles leave together. Transposed it is one
//! more for each r. **Approximation.** Places that are no sums of the loops are loaded one by one.

use tilewright_kernel::algorithm::Value;

use crate::domain::{AxisId, Symbolic, WARP};
use crate::extent::{Expr, Family, Var, collapse, interval};
use crate::kernel_ir::{LoadMatrix, Sharing};
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
    let each = (4 / bytes).max(1);
    let row = i128::from(LoadMatrix::ROW / bytes);
    // The tiles of units follow each other in a slot.
    let is_apart = tile.owner.threads().is_none()
        || tile.layout.apart(bytes).as_constant().is_some_and(|elements| elements % row == 0);
    if bytes > 4 || tile.sharing < Sharing::Warp || !is_apart {
        return None;
    }
    // All lanes of a warp have digits of its own alone, and no warp is without.
    let digits = schedule::digits(stage);
    let own = |stride: i128, extent: i128| {
        digits.iter().find(|d| d.stride == stride && d.extent == extent && d.low == 0 && !d.is_partial).map(|d| d.leaf)
    };
    let lanes = [own(4, 8)?, own(1, 4)?];
    let others = || digits.iter().filter(|d| !lanes.contains(&d.leaf));
    let busy = others().fold(WARP, |n, d| n * d.extent);
    let threads = stage.owner.threads().unwrap_or(stage.distribution.block.into());
    if busy != threads || others().any(|d| d.stride % WARP != 0 || d.is_partial) {
        return None;
    }
    let mut registers = register_loops(stage);
    let term = (each > 1).then(|| registers.pop()).flatten();
    if each > 1 && term.is_none_or(|(_, count)| count != i128::from(each)) {
        return None;
    }
    let spot = tile.spot_in(&tile.layout, &read.indices);
    if !spot.opaque.is_empty() {
        return None;
    }
    let offset = normal(&spot.offset);
    let step = |leaf: AxisId| {
        let var = symbolic.variables.get(stage.domain.leaves.iter().position(|l| *l == leaf)?)?.var;
        let is_own = |e: &Expr| !e.vars().contains(&var);
        // Linear in the leaf, or not known.
        let at = |n: i128| offset.substitute(&|v| (v == var).then(|| Expr::constant(n)));
        let step = normal(&at(1).sub(&at(0))).as_constant()?;
        let rest = normal(&offset.sub(&Expr::var(var).scale(step)));
        is_own(&rest).then_some((var, step))
    };
    let (first, second) = (step(lanes[0])?, step(lanes[1])?);
    let third = match term {
        Some((term, _)) => Some(step(term)?),
        None => None,
    };
    let is_along = second.1 == i128::from(each) && third.is_none_or(|third| third.1 == 1);
    let is_across = first.1 == 1 && bytes == 2;
    let transposed = match (is_along, is_across) {
        (true, _) => false,
        (false, true) => true,
        (false, false) => return None,
    };
    // The rest of a row's place is a multiple of its length.
    let inner =
        if transposed { vec![first.0] } else { [Some(second), third].into_iter().flatten().map(|s| s.0).collect() };
    let rest = offset.substitute(&|v| inner.contains(&v).then(|| Expr::constant(0)));
    let is_aligned = normal(&rest).terms().iter().all(|term| term.coefficient % row == 0);
    let mut stride = i128::from(each);
    let mut loops = Vec::with_capacity(registers.len());
    for (leaf, extent) in registers.into_iter().rev() {
        loops.insert(0, (leaf, extent, stride));
        stride *= extent;
    }
    let count = together(&loops);
    let term = term.map(|t| t.0);
    is_aligned.then_some(Matrices { lanes, term, each, loops, count, transposed })
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

/// How many matrices one instruction loads.
fn together(loops: &[(AxisId, i128, i128)]) -> u32 {
    [4, 2].into_iter().find(|count| divides(loops, (*count).into())).unwrap_or(1)
}

/// Whether groups of so many iterations of all loops are those of inner loops, and of a part of one that these divide.
fn divides(loops: &[(AxisId, i128, i128)], count: i128) -> bool {
    let mut inner = 1;
    for (_, extent, _) in loops.iter().rev() {
        if inner >= count {
            return true;
        }
        let all = inner * extent;
        if count % inner != 0 || (all % count != 0 && count % all != 0) {
            return false;
        }
        inner = all;
    }
    inner >= count && inner % count == 0
}

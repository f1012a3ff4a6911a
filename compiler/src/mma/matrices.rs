//! Matrices of eight rows of 16 bytes that a warp loads from a tile in shared memory, or stores to it, together.
//!
//! **Property.** With [`Matrices`], the elements that an instruction gives to a lane, or takes from it, are those that
//! the stage gives it. **Formula.** Lane 4·r + q has row r of a matrix, and of that its q-th four bytes: so the place
//! is one more for each element of a lane, and as many more for each q; the rest of it is a multiple of 16 bytes, which
//! swizzles leave together. Transposed it is one more for each r. **Approximation.** Places that are no sums of the
//! loops are accessed one by one, and so is what only some lanes of a warp store.

use crate::domain::{AxisId, AxisKind, Binding, Symbolic, WARP};
use crate::extent::{Expr, Var, collapse};
use crate::kernel_ir;
use crate::plan::Analysed;
use crate::plan::product::Matrices;
use crate::plan::staged::{Staged, Way};
use crate::schedule::{self, Stage};
use tilewright_kernel::tensor_map::Swizzle;

/// Bytes of a row.
pub(super) const ROW: u32 = kernel_ir::Matrices::ROW;

/// The matrices that warps access in these loops of a stage, outermost first: of elements of so many bytes, with this
/// place in their slot before chunks are exchanged.
pub(super) fn of(
    stage: &Stage,
    symbolic: &Symbolic,
    (bytes, offset, mut registers): (u32, &Expr, Vec<(AxisId, i128)>),
    normal: &dyn Fn(&Expr) -> Expr,
) -> Option<Matrices> {
    let each = (4 / bytes).max(1);
    let row = i128::from(ROW / bytes);
    // All lanes of a warp have digits of its own alone, and no warp is without.
    let digits = schedule::digits(stage);
    let own = |stride: i128, extent: i128| {
        digits.iter().find(|d| d.stride == stride && d.extent == extent && d.low == 0 && !d.is_partial).map(|d| d.leaf)
    };
    let lanes = [own(4, 8)?, own(1, 4)?];
    let others = || digits.iter().filter(|d| !lanes.contains(&d.leaf));
    let busy = others().fold(WARP, |n, d| n * d.extent);
    let threads = stage.owner.threads().unwrap_or(stage.distribution.block.into());
    if bytes > 4 || busy != threads || others().any(|d| d.stride % WARP != 0 || d.is_partial) {
        return None;
    }
    let term = (each > 1).then(|| registers.pop()).flatten();
    if each > 1 && term.is_none_or(|(_, count)| count != i128::from(each)) {
        return None;
    }
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
    let inner: Vec<Var> =
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

/// How many matrices one instruction accesses.
pub(super) fn together(loops: &[(AxisId, i128, i128)]) -> u32 {
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

/// How warps store what the stage with a position makes to a tile that a copy stores, if they can do it by matrices and
/// that takes fewer instructions than each lane's words. Such a kernel has `stmatrix`: it is for compute capability 9.0
/// as it is.
pub(super) fn stored(all: &[Analysed], at: usize) -> Option<Matrices> {
    let Analysed { stage, symbolic, holes, accesses, staged, waived, .. } = &all[at];
    let mut writes = accesses.iter().filter(|access| access.is_write);
    let (Some(write), None) = (writes.next(), writes.next()) else { return None };
    let is_own = |copy: &&Staged| copy.way == Way::Store && copy.parameter == write.parameter;
    let copy = staged.iter().find(is_own).filter(|copy| copy.element.bytes() == 2)?;
    // Nothing is tested, so that all lanes come.
    let is_waived = |p: usize| waived.iter().any(|waiver| waiver.predicate == p);
    let is_whole = (0..holes.kept.len()).all(is_waived) && stage.limits.is_empty() && stage.members.is_empty();
    if stage.reduction.is_some() || stage.beside.is_some() || !is_whole || !is_filled(stage) {
        return None;
    }
    let range = |v: Var| symbolic.range(&stage.facts, v);
    let normal = |e: &Expr| collapse(&stage.facts.normal(e), &range);
    let offsets: Vec<Expr> = copy.places(&write.indices).into_iter().map(|place| normal(&place.1)).collect();
    let offset = normal(&copy.layout(Swizzle::None).expression((), &|axis: usize| offsets[axis].clone()));
    let found = of(stage, symbolic, (2, &offset, innermost(all, at)), &normal)?;
    (!offset.is_unknown() && (found.count > 1 || found.transposed)).then_some(found)
}

/// Whether units that loops are given to have an iteration each.
fn is_filled(stage: &Stage) -> bool {
    let distribution = &stage.distribution;
    let mut bound = distribution.ctas.iter().chain(distribution.levels.iter().flat_map(|level| &level.leaves));
    bound.all(|(axis, units)| stage.domain.axes[*axis].extent.as_constant() == Some(*units))
}

/// The innermost loops that are written out, with their iterations, outermost first: those in which nothing stands.
fn innermost(all: &[Analysed], at: usize) -> Vec<(AxisId, i128)> {
    let stage = &all[at].stage;
    let sequence = stage.sequence();
    let stages = || all.iter().map(|a| &a.stage);
    let inside = stages().filter_map(|s| s.attach.as_ref()).filter(|attach| attach.stage == at).map(|a| a.loops);
    let beside = stages().filter_map(|s| s.beside.as_ref()).filter(|beside| beside.stage == at).map(|b| b.loops);
    let copies = all[at].staged.iter().map(|copy| copy.attach.loops);
    let outer = inside.chain(beside).chain(copies).max().unwrap_or(0);
    let written_out = |leaf: &AxisId| {
        let axis = &stage.domain.axes[*leaf];
        let is_unrolled = matches!(axis.binding, Binding::Unroll(None) | Binding::Vector);
        let extent = axis.extent.as_constant().filter(|_| is_unrolled && axis.kind == AxisKind::Data);
        Some((*leaf, extent?))
    };
    let mut found: Vec<(AxisId, i128)> = sequence.iter().skip(outer).rev().map_while(written_out).collect();
    found.reverse();
    found
}

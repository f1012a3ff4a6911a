//! Units that have nothing to do: what is known inside the loops around a place takes for granted that the units which
//! these loops are given to have an iteration each, and some of them come there all the same.
//!
//! | who comes | why |
//! | --- | --- |
//! | all units of a block, to an instance of a block or of a part of it | they wait for each other |
//! | all threads, to what they fetch | they wait for it together |
//! | all threads, to their own instances before terms | past the end of the axis, they share the result |
//! | a block or cluster, to instances before terms that the grid divides | it is there where there are no terms at all |
//!
//! So such a stage says for itself that its unit has an iteration: that is a condition of its elements. What is then
//! not computed nobody reads: terms are there where the iteration is, and a stage that is also read outside of the
//! terms is refused, as is one that another stage may read in blocks of a cluster where this is not known.

use super::{Attach, Stage};
use crate::domain::{AxisId, AxisKind, Domain, Unit};
use crate::extent::{Expr, Facts, Family, Var};
use crate::region::Request;

/// The leaves of a stage that are given to the blocks of a cluster and to parts of them, as far as `unit`, each with
/// the variable that stands for it in what is inside.
fn bound(stage: &Stage, unit: Unit) -> impl Iterator<Item = (Var, AxisId)> {
    let Stage { domain: Domain { axes, leaves, .. }, facts, .. } = stage;
    // A reduction across the grid has one block where it has no terms.
    let has_none = |leaf: AxisId| {
        let last = axes[leaf].extent.sub(&Expr::constant(1));
        axes[leaf].kind == AxisKind::Reduction && !facts.proves_nonnegative(&last)
    };
    let is_bound = move |leaf: AxisId| {
        let of = Unit::of(axes[leaf].binding);
        of.is_some_and(|of| of >= Unit::Cta && of <= unit || of == Unit::Cluster && has_none(leaf))
    };
    let dims = facts.dims();
    leaves.iter().enumerate().filter(move |(_, leaf)| is_bound(**leaf)).map(move |(n, leaf)| ((dims + n) as Var, *leaf))
}

/// That an iteration of an axis exists: an expression that is at least 0.
fn exists(stage: &Stage, (var, leaf): (Var, AxisId), facts: &Facts) -> Expr {
    let last = stage.domain.axes[leaf].extent.sub(&Expr::constant(1));
    facts.normal(&last.sub(&Expr::var(var)))
}

/// That those units have work which come to a place whether or not they have some: expressions that are at least 0.
/// `owner` is who owns an instance there, `parent` the position of the stage whose loops are around it; inside, `facts`
/// are known.
pub(super) fn units_with_work(
    owner: Unit,
    fetches: bool,
    (parent, attach): (usize, &Attach),
    stages: &[Stage],
    facts: &Facts,
) -> Vec<Expr> {
    match owner {
        Unit::Grid => Vec::new(),
        // Whatever else keeps a thread from its terms keeps it from coming there.
        Unit::Thread if !fetches => {
            let own = without_terms(&stages[parent], attach);
            own.map(|leaf| exists(&stages[parent], leaf, facts)).collect()
        }
        Unit::Cluster | Unit::Cta | Unit::Warpgroup | Unit::Warp | Unit::Thread => around(owner, parent, stages, facts),
    }
}

/// That a unit inside `parent` is one of those that axes around it are given to. All stages with loops around say so
/// for themselves.
fn around(unit: Unit, parent: usize, stages: &[Stage], facts: &Facts) -> Vec<Expr> {
    let outwards = |(unit, at): &(Unit, usize)| {
        let stage = &stages[*at];
        // What a stage's owner shares is not around what stands inside that stage.
        Some((stage.owner.min(*unit), stage.attach.as_ref()?.stage))
    };
    let last = |(unit, at): (Unit, usize)| bound(&stages[at], unit).map(move |leaf| exists(&stages[at], leaf, facts));
    std::iter::successors(Some((unit, parent)), outwards).flat_map(last).collect()
}

/// The outermost loop over terms around a place: an instance there is gone where the loop has ended, and not there yet
/// before it.
pub(super) fn loop_of_terms(parent: &Stage, attach: &Attach) -> Option<AxisId> {
    let axes = &parent.domain.axes;
    let is_one = |leaf: &AxisId| axes[*leaf].kind == AxisKind::Reduction && axes[*leaf].binding.is_sequential();
    attach.around.iter().copied().find(is_one)
}

/// An axis of a reduction of which a unit may have no term and come to a place all the same: it may have fewer
/// iterations than units, or what is `reached` with terms only has a condition on it.
pub(super) fn lacks_terms(parent: &Stage, attach: &Attach, reached: &[Expr]) -> Option<AxisId> {
    let leaf = |v: Var| parent.domain.leaves.get((v as usize).checked_sub(parent.facts.dims())?).copied();
    let conditional = reached.iter().flat_map(Expr::vars).filter_map(leaf);
    let conditional = conditional.filter(|leaf| parent.domain.axes[*leaf].kind == AxisKind::Reduction);
    without_terms(parent, attach).map(|(_, leaf)| leaf).chain(conditional).next()
}

/// The same of any axis, for units inside a `wider` one, all of which may come to a `read`: each must have an iteration
/// there, or the read's own conditions say that it has. That a cluster divides what reads is not enough: another axis
/// of the reader may have terms in a block where this one has no iteration.
pub(super) fn lacks_work(
    wider: Unit,
    parent: &Stage,
    attach: &Attach,
    (reached, facts): (&[Expr], &Facts),
    read: &Request,
) -> Option<AxisId> {
    let one = Expr::constant(1);
    let of_axes = read.axes.iter().flat_map(|(value, extent)| [value.clone(), extent.sub(value).sub(&one)]);
    let known: Vec<Expr> = read.conditions.iter().cloned().chain(of_axes).collect();
    let is_inside = |leaf: AxisId| Unit::of(parent.domain.axes[leaf].binding) > Some(wider);
    let units: Vec<(Var, AxisId)> = bound(parent, attach.owner).filter(|(_, leaf)| is_inside(*leaf)).collect();
    // Inside, facts take for granted that units have an iteration each: they are not asked about them, nor about loops
    // of the reader, which they do not know.
    let is_asked = |v: Var| Family::is_size(v) && units.iter().all(|unit| unit.0 != v);
    let lacks = |(var, leaf): &(Var, AxisId)| {
        let said = |row: &Expr| {
            let mut rests = known.iter().map(|known| facts.normal(&row.sub(known)));
            rests.any(|rest| rest.vars().into_iter().all(is_asked) && facts.proves_nonnegative(&rest))
        };
        let last = exists(parent, (*var, *leaf), facts);
        let mut conditional = reached.iter().filter(|row| row.vars().contains(var) && **row != last);
        varies(parent, *leaf) && !said(&last) || conditional.any(|row| !said(row))
    };
    units.iter().find(|unit| lacks(unit)).map(|(_, leaf)| *leaf)
}

/// Whether an axis may have fewer iterations than there are units for it.
fn varies(stage: &Stage, leaf: AxisId) -> bool {
    stage.facts.normal(&stage.domain.axes[leaf].extent).as_constant().is_none()
}

/// Whether what stands at a place is there for a read of the stage with a position, which is in its terms or not.
pub(super) fn is_there(attach: &Attach, (at, reader): (usize, &Stage), in_terms: bool) -> bool {
    in_terms || at != attach.stage || loop_of_terms(reader, attach).is_none()
}

/// The axes of a reduction around a place before its terms that may have fewer iterations than units: those past
/// the end, and all if there is no iteration, come to the place and have no terms.
pub(super) fn without_terms(parent: &Stage, attach: &Attach) -> impl Iterator<Item = (Var, AxisId)> {
    let axes = &parent.domain.axes;
    let of_terms = |leaf: &AxisId| axes[*leaf].kind == AxisKind::Reduction;
    let inside = loop_of_terms(parent, attach).is_some();
    bound(parent, attach.owner).filter(move |(_, leaf)| !inside && of_terms(leaf) && varies(parent, *leaf))
}

//! What the ops of a stage say of its region: which one it is, and what its axes are called.

use crate::extent::{Expr, Facts};
use crate::region::{Group, NotATile, Parts, Realisation, Region};
use crate::source::{Span, ast};

/// What the ops of a stage say of its region, and the ops on its axes.
pub(super) struct Chosen<'a> {
    /// The op that says which one it is.
    pub kind: Option<(ast::RegionKind, Span)>,
    /// The name of a run.
    pub into: Option<&'a ast::Name>,
    /// The other ops.
    pub ops: &'a [ast::Op],
}

impl<'a> Chosen<'a> {
    pub fn of(ops: &'a [ast::Op]) -> Self {
        match ops {
            [ast::Op { kind: ast::OpKind::Region { kind, into }, span, .. }, rest @ ..] => {
                Self { kind: Some((kind.value, *span)), into: into.as_ref(), ops: rest }
            }
            _ => Self { kind: None, into: None, ops },
        }
    }

    /// The op, or something else without it.
    pub fn span(&self, or: Span) -> Span {
        self.kind.map_or(or, |kind| kind.1)
    }

    /// The name of the axis that merges all axes first.
    fn merges_all(&self, names: &[&str]) -> Option<&'a ast::Name> {
        match &self.ops.first()?.kind {
            ast::OpKind::Merge { axes, into } if axes.iter().map(|a| a.text.as_str()).eq(names.iter().copied()) => {
                Some(into)
            }
            _ => None,
        }
    }

    /// Whether [`laid_out`] looks for more than a box.
    pub fn may_be_run(&self, names: &[&str]) -> bool {
        match self.kind {
            Some((kind, _)) => kind == ast::RegionKind::Flat,
            None => self.ops.is_empty() || self.merges_all(names).is_some(),
        }
    }

    /// Whether it was asked for.
    pub fn is(&self, kind: ast::RegionKind) -> bool {
        self.kind.is_some_and(|k| k.0 == kind)
    }
}

/// The region of a stage with these ops: the one that is asked for; else as small as it can be where no op names an
/// axis; a run of elements where the first one merges all axes, if that is smaller; else the box that the ops are
/// about. With that, whether it is a run, whose axis then has the name that is given to it.
pub(super) fn laid_out<'a>(
    chosen: &Chosen<'a>,
    names: &[&str],
    parts: &Parts<'_>,
    facts: &Facts,
) -> Result<(Region, Option<Run<'a>>), NotATile> {
    let region = |way| parts.realise(way);
    let is_run = |region: &Region| region.groups.iter().all(|g| run_of(g).is_some());
    let is_whole = |region: &Region| region.groups.iter().all(|g| g.axes.len() == 1);
    match chosen.kind.map(|kind| kind.0) {
        Some(ast::RegionKind::Cover | ast::RegionKind::Exact) => return Ok((region(Realisation::Cover)?, None)),
        Some(ast::RegionKind::Flat) => {
            let flat = region(Realisation::Flat)?;
            let run = Run { name: chosen.into, ops: chosen.ops };
            return if is_run(&flat) { Ok((flat, Some(run))) } else { Err(NotATile::NotFlat) };
        }
        None => {}
    }
    let [_, rest @ ..] = chosen.ops else { return Ok((region(Realisation::Smallest)?, None)) };
    let cover = region(Realisation::Cover)?;
    let Some(into) = chosen.merges_all(names) else { return Ok((cover, None)) };
    let elements = |region: &Region| {
        let of = |group: &Group| {
            let bounds = group.axes.iter().map(|c| facts.upper_bound(&c.bound).map(|n| n.max(1)));
            bounds.collect::<Option<Vec<i128>>>().map(|list| list.iter().product::<i128>())
        };
        region.groups.iter().map(of).collect::<Option<Vec<_>>>().map(|list| list.iter().sum::<i128>())
    };
    match region(Realisation::Flat) {
        // The run is the merged axis already.
        Ok(flat) if names.len() > 1 && is_whole(&flat) && elements(&flat) < elements(&cover) => {
            Ok((flat, Some(Run { name: Some(into), ops: rest })))
        }
        _ => Ok((cover, None)),
    }
}

/// Which coordinate of a group is its run: the only one, or the only one with more than one element, or else the
/// innermost; none if it has several.
pub(super) fn run_of(group: &Group) -> Option<usize> {
    let one = Expr::constant(1);
    let long: Vec<usize> = (0..group.axes.len()).filter(|n| group.axes[*n].bound != one).collect();
    match long[..] {
        [] => group.axes.len().checked_sub(1),
        [only] => Some(only),
        _ => None,
    }
}

/// A run of elements, with the name of its axis, and the ops on that.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub name: Option<&'a ast::Name>,
    pub ops: &'a [ast::Op],
}

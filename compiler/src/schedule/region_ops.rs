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

    /// What is laid out.
    fn wanted(&self, names: &[&str]) -> Wanted<'a> {
        match (self.kind.map(|kind| kind.0), self.ops) {
            (Some(ast::RegionKind::Cover | ast::RegionKind::Exact), _) => Wanted::Box,
            (Some(ast::RegionKind::Flat), _) => Wanted::Run,
            (None, []) => Wanted::Smallest,
            (None, [ast::Op { kind: ast::OpKind::Merge { axes, into }, .. }, rest @ ..])
                if axes.iter().map(|a| a.text.as_str()).eq(names.iter().copied()) =>
            {
                Wanted::Smaller { into, rest }
            }
            (None, _) => Wanted::Box,
        }
    }

    /// Whether [`laid_out`] looks for more than a box.
    pub fn may_be_run(&self, names: &[&str]) -> bool {
        !matches!(self.wanted(names), Wanted::Box)
    }

    /// Whether it was asked for.
    pub fn is(&self, kind: ast::RegionKind) -> bool {
        self.kind.is_some_and(|k| k.0 == kind)
    }
}

/// What the ops want a region to be.
enum Wanted<'a> {
    /// A box.
    Box,
    /// A run of elements.
    Run,
    /// Whatever is smallest: no op names an axis.
    Smallest,
    /// A box, or a run where that is smaller: the first op merges all axes, and is the run's then.
    Smaller { into: &'a ast::Name, rest: &'a [ast::Op] },
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
    let (into, rest) = match chosen.wanted(names) {
        Wanted::Box => return Ok((region(Realisation::Cover)?, None)),
        Wanted::Smallest => return Ok((region(Realisation::Smallest)?, None)),
        Wanted::Run => {
            let flat = region(Realisation::Flat)?;
            let run = Run { name: chosen.into, ops: chosen.ops };
            return if is_run(&flat) { Ok((flat, Some(run))) } else { Err(NotATile::NotFlat) };
        }
        Wanted::Smaller { into, rest } => (into, rest),
    };
    let cover = region(Realisation::Cover)?;
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

//! What readers ask of a place, group by group.

use tilewright_kernel::algorithm::ValueId;
use tilewright_sorted::SortedSet;

use super::attach::{Needs, ancestors, chain_under};
use super::range;
use crate::diag::Diagnostics;
use crate::diag::codes::NotTheirs;
use crate::domain::{AxisId, Unit};
use crate::extent::{Expr, Var};
use crate::region::{Group, Loops, Request};
use crate::source::Span;

/// What the readers of a stage ask for.
#[derive(Default)]
pub(super) struct Asked {
    pub requests: Vec<Request>,
    pub loops: Loops,
    /// The read that each request is.
    pub reads: Vec<(ValueId, Span)>,
    /// A stage that reads it outside of its own terms: the one with the loops, or one beside that.
    pub beside_terms: Option<usize>,
    /// A stage that reads it, or in whose loops it is read, and that belongs to a wider unit, with an axis of which a
    /// unit may have no iteration there.
    pub wider: Option<(usize, AxisId)>,
}

impl Asked {
    /// Each group with the reads that it is for, where there are several; none if one read is for several.
    pub fn apart(&self, groups: Vec<Group>) -> Option<Vec<(Group, Option<Vec<ValueId>>)>> {
        if groups.len() == 1 {
            return Some(groups.into_iter().map(|g| (g, None)).collect());
        }
        let reads = |g: &Group| g.requests.iter().map(|r| self.reads[*r].0).collect::<SortedSet<ValueId>>();
        let all: usize = groups.iter().map(|g| reads(g).len()).sum();
        let distinct: SortedSet<ValueId> = groups.iter().flat_map(&reads).collect();
        (all == distinct.len()).then(|| {
            let list = groups.into_iter().map(|g| (reads(&g).into_iter().collect(), g));
            list.map(|(reads, g)| (g, Some(reads))).collect()
        })
    }
}

/// Whether loops inside decide an extent.
pub(super) fn varies(extent: &Expr, inside: &[(Var, Expr)]) -> bool {
    extent.vars().into_iter().any(|v| inside.iter().any(|(l, _)| *l == v))
}

/// Adds a loop inside to others. Where those decide its end it has the most iterations that it ever has, and what is
/// returned is at least 0.
pub(super) fn longest(inside: &mut Vec<(Var, Expr)>, var: Var, extent: Expr) -> Option<Expr> {
    if !varies(&extent, inside) {
        inside.push((var, extent));
        return None;
    }
    let of = |v: Var| inside.iter().find(|(l, _)| *l == v).map(|(_, extent)| extent);
    let most = range::extreme(&extent, true, &of).unwrap_or_else(Expr::unknown);
    inside.push((var, most));
    Some(extent.sub(&Expr::var(var)).sub(&Expr::constant(1)))
}

impl Needs<'_> {
    /// Whether the stage with position `reader` stands at the place, but belongs to a wider unit than what is there, or
    /// a stage around it does. That is said then, with the loop of that stage where it would be theirs.
    pub(super) fn not_theirs(&self, reader: usize, read: Span, diags: &mut Diagnostics) -> bool {
        let (stages, own) = (self.stages, self.attach.owner);
        let stage = |at: usize| stages.get(at);
        let chain = chain_under(&stage, reader, self.attach).unwrap_or_default();
        let Some(wide) = chain.into_iter().skip(1).rfind(|at| stages[*at].owner < own) else { return false };
        let (name, whole) = (self.name.to_owned(), &stages[wide]);
        let is_theirs = |leaf: &&AxisId| Unit::of(whole.domain.axes[**leaf].binding) == Some(own);
        let leaf = whole.domain.leaves.iter().rfind(is_theirs);
        let reads = |at: usize| self.serves.iter().any(|source| self.sources[stages[at].equation].contains(source));
        let is_inside = |at: usize| ancestors(&stage, at).any(|around| around == wide);
        diags.report(NotTheirs {
            stage: name,
            units: (own, whole.owner),
            reader: stages[reader].name.clone(),
            whole: whole.name.clone(),
            instead: leaf.map(|leaf| format!("{}.{}", whole.name, whole.domain.axes[*leaf].name)),
            is_only: (0..stages.len()).all(|at| !reads(at) || is_inside(at)),
            place: (self.place(), self.at),
            span: self.span,
            read,
        });
        true
    }
}

//! What readers ask of a place, group by group.

use tilewright_kernel::algorithm::ValueId;
use tilewright_sorted::SortedSet;

use super::range;
use crate::domain::AxisId;
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

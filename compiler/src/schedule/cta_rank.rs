//! Numbers of blocks in their clusters, where stages divide them among their axes in ways of their own.

use super::Stage;
use crate::domain::Binding;
use crate::extent::{Expr, Var};

/// The leaves of a stage that are given to the blocks of a cluster, outermost first: the variable of each, for how many
/// iterations the cluster has room, and how many blocks further its next iteration runs. None of them while an extent
/// is not bounded.
pub fn digits_of_rank(stage: &Stage) -> Vec<(Var, i128, i128)> {
    let axes = &stage.domain.axes;
    let leaves = stage.domain.leaves.iter().enumerate().filter(|(_, leaf)| axes[**leaf].binding == Binding::Cta);
    let most = |extent: &Expr| extent.as_constant().or_else(|| stage.facts.upper_bound(extent));
    let digits = leaves.map(|(n, leaf)| Some(((stage.facts.dims() + n) as Var, most(&axes[*leaf].extent)?)));
    let Some(digits) = digits.collect::<Option<Vec<_>>>() else { return Vec::new() };
    let mut stride = 1;
    let mut all: Vec<(Var, i128, i128)> = Vec::new();
    for (var, extent) in digits.into_iter().rev() {
        all.insert(0, (var, extent, stride));
        stride = stride.saturating_mul(extent.max(1));
    }
    all
}

/// The leaves of `inner` that are given to the blocks of a cluster, each with its value in the block that runs an
/// iteration of `outer`, over the variables of that one: both count the same blocks. None if one of them has no such
/// leaves.
pub fn in_block(outer: &Stage, inner: &Stage) -> Vec<(Var, Expr)> {
    let (theirs, own) = (digits_of_rank(outer), digits_of_rank(inner));
    if theirs.is_empty() {
        return Vec::new();
    }
    let rank = theirs.iter().fold(Expr::constant(0), |sum, (var, _, stride)| sum.add(&Expr::var(*var).scale(*stride)));
    let value = |(var, extent, stride): &(Var, i128, i128)| {
        let same = theirs.iter().find(|(_, e, s)| (e, s) == (extent, stride));
        let digit = || rank.floor_div(&Expr::constant(*stride)).modulo(&Expr::constant((*extent).max(1)));
        (*var, same.map_or_else(digit, |(var, ..)| Expr::var(*var)))
    };
    own.iter().map(value).collect()
}

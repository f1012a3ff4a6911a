//! Divisibility of splits: which iterations are holes, and the fewest predicates that exclude exactly those.
//!
//! Property: at every leaf point where all kept predicates hold, every axis is in bounds, so that the point stands for
//! exactly one element; and dropping any kept predicate lets in a hole for some admissible size.
//!
//! Candidates are the inputs of hole-creating ops: an indivisible split (upper side), a resize (the sides that grow). A
//! candidate is dropped only if what is *kept* implies it. "Known" means: follows from the loops' own ranges, the kept
//! predicates, and the theorems of nvFuser's *Divisibility of Split* with the premises that the published text omits,
//! each side (≥ 0, < extent) on its own:
//!
//! | theorem | from | follows |
//! | --- | --- | --- |
//! | 1 | split a → o, i: a < A and i ≥ 0 (a ≥ 0 and i < f) | o < O (o ≥ 0) |
//! | 1, converse | o, i in bounds, split divisible | a < A; o ≥ 0 and i ≥ 0 give a ≥ 0 |
//! | 2 | merge a, b → c, and b has an element | a in bounds ⟺ c in bounds, side by side; b always |
//! | 3 | resize a by (l, r) → c: a < A and r ≥ 0 (a ≥ 0 and l ≥ 0) | c < C (c ≥ 0) |
//! | 3, converse | c < C and r ≤ 0 (c ≥ 0 and l ≤ 0) | a < A (a ≥ 0) |
//! | 4 | swizzle x, y → x2, y2 | x ⟺ x2; both pairs in bounds together |
//!
//! Where b may have no element, c / B and c % B may be anything: of a merge nothing follows but from c in bounds on
//! both sides, which no point is then.
//!
//! What the theorems leave is tested for redundancy by a search for a witness (a point where it alone fails) and, when
//! sizes are literal and all points were visited, dropped if there is none. Approximated: a redundant predicate may
//! stay when neither a witness nor a proof is within reach; that costs a comparison, never correctness.

pub mod neutral;

use crate::domain::{AxisId, AxisKind, Concrete, Domain, Op, Symbolic};
use crate::extent::{Budget, Expr, Facts, Search};
use crate::source::Span;

/// Which end of an axis a predicate guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// index ≥ 0
    Lower,
    /// index < extent
    Upper,
}

/// A comparison that excludes holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// The axis whose index is compared.
    pub axis: AxisId,
    /// The end.
    pub side: Side,
    /// Position in [`Domain::ops`] of the op that creates the holes.
    pub op: usize,
}

/// Why a candidate needs no comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The theorem with this number, from what is kept.
    Theorem(u8),
    /// Every point of every admissible size was visited.
    Enumeration,
    /// Linear arithmetic over all admissible sizes.
    Arithmetic,
}

/// The result of the analysis of one domain.
#[derive(Clone, Debug, Default)]
pub struct Holes {
    /// The predicates to emit, in the order of the ops that cause them.
    pub kept: Vec<Predicate>,
    /// The candidates that need none, with the reason.
    pub dropped: Vec<(Predicate, Reason)>,
    /// Splits whose divisibility is proved: positions in [`Domain::ops`].
    pub divisible: Vec<usize>,
}

/// Steps that one redundancy search may take.
const SEARCH_STEPS: u64 = 6_000;

/// The fewest predicates that exclude exactly the holes of a domain.
pub fn analyse(domain: &Domain, facts: &Facts) -> Holes {
    let mut holes = Holes::default();
    let merged = merged_has_elements(domain, facts);
    let mut kept = candidates(domain, &mut holes.divisible);
    // Theorems, from the leaves toward the roots: what a root-side predicate implies is dropped first.
    let mut at = kept.len();
    while at > 0 {
        at -= 1;
        let candidate = kept[at];
        let others: Vec<Predicate> = kept.iter().copied().filter(|p| *p != candidate).collect();
        if let Some(reason) = Known::closure(domain, &merged, &others).reason(candidate.axis, candidate.side) {
            holes.dropped.push((candidate, reason));
            kept = others;
            at = at.min(kept.len());
        }
    }
    // What is left must be needed: look for a point where it alone fails.
    let mut at = kept.len();
    while at > 0 {
        at -= 1;
        let candidate = kept[at];
        let others: Vec<Predicate> = kept.iter().copied().filter(|p| *p != candidate).collect();
        let premises = same_points(domain, candidate, &others);
        let reason = match search_needed(domain, facts, candidate, &premises) {
            Search::Found(_) => continue,
            Search::None => Reason::Enumeration,
            Search::GaveUp if implied(domain, facts, candidate, &premises) => Reason::Arithmetic,
            Search::GaveUp => continue,
        };
        holes.dropped.push((candidate, reason));
        kept = others;
        at = at.min(kept.len());
    }
    holes.kept = kept;
    holes
}

/// The predicates that hold wherever the candidate matters. An element is written even if its reduction has no terms,
/// so that predicates on terms say nothing about predicates on elements.
fn same_points(domain: &Domain, candidate: Predicate, others: &[Predicate]) -> Vec<Predicate> {
    let is_term = |p: &Predicate| domain.axes[p.axis].kind == AxisKind::Reduction;
    others.iter().copied().filter(|p| is_term(&candidate) || !is_term(p)).collect()
}

fn candidates(domain: &Domain, divisible_splits: &mut Vec<usize>) -> Vec<Predicate> {
    let mut list: Vec<Predicate> = Vec::new();
    let mut push = |axis, side, op| {
        if !list.iter().any(|p: &Predicate| p.axis == axis && p.side == side) {
            list.push(Predicate { axis, side, op });
        }
    };
    for (at, (op, _)) in domain.ops.iter().enumerate() {
        match *op {
            Op::Split { input, divisible, .. } => {
                if divisible {
                    divisible_splits.push(at);
                } else {
                    push(input, Side::Upper, at);
                }
            }
            Op::Resize { input, left, right, .. } => {
                if left > 0 {
                    push(input, Side::Lower, at);
                }
                if right > 0 {
                    push(input, Side::Upper, at);
                }
            }
            Op::Merge { .. } | Op::Swizzle { .. } => {}
        }
    }
    list
}

/// Of each op whether what it merges from the inside has an element for all sizes; true of what is no merge.
fn merged_has_elements(domain: &Domain, facts: &Facts) -> Vec<bool> {
    let is_filled = |(op, _): &(Op, Span)| match *op {
        Op::Merge { inner, .. } => has_elements(domain, facts, inner),
        _ => true,
    };
    domain.ops.iter().map(is_filled).collect()
}

/// Whether an axis has an element for all sizes.
fn has_elements(domain: &Domain, facts: &Facts, axis: AxisId) -> bool {
    facts.proves_nonnegative(&domain.axes[axis].extent.sub(&Expr::constant(1)))
}

/// Which ends of which axes are known to hold, and by which theorem.
struct Known {
    lower: Vec<Option<u8>>,
    upper: Vec<Option<u8>>,
}

impl Known {
    /// Everything that follows from the loops' ranges and the predicates; `has_elements` is [`merged_has_elements`].
    fn closure(domain: &Domain, has_elements: &[bool], predicates: &[Predicate]) -> Self {
        let count = domain.axes.len();
        let mut known = Self { lower: vec![None; count], upper: vec![None; count] };
        for leaf in &domain.leaves {
            known.lower[*leaf] = Some(0);
            known.upper[*leaf] = Some(0);
        }
        for p in predicates {
            known.set(p.axis, p.side, 0);
        }
        loop {
            let before = known.count();
            for ((op, _), has_elements) in domain.ops.iter().zip(has_elements) {
                known.step(op, *has_elements);
            }
            if known.count() == before {
                return known;
            }
        }
    }

    fn count(&self) -> usize {
        self.lower.iter().chain(&self.upper).filter(|k| k.is_some()).count()
    }

    fn has(&self, axis: AxisId, side: Side) -> bool {
        match side {
            Side::Lower => self.lower[axis].is_some(),
            Side::Upper => self.upper[axis].is_some(),
        }
    }

    fn set(&mut self, axis: AxisId, side: Side, theorem: u8) {
        let slot = match side {
            Side::Lower => &mut self.lower[axis],
            Side::Upper => &mut self.upper[axis],
        };
        slot.get_or_insert(theorem);
    }

    fn reason(&self, axis: AxisId, side: Side) -> Option<Reason> {
        let theorem = match side {
            Side::Lower => self.lower[axis],
            Side::Upper => self.upper[axis],
        };
        theorem.map(Reason::Theorem)
    }

    /// One application of the table of the module.
    fn step(&mut self, op: &Op, has_elements: bool) {
        use Side::{Lower, Upper};
        match *op {
            Op::Merge { output, .. } if !(has_elements || self.has(output, Lower) && self.has(output, Upper)) => {}
            Op::Split { input, outer, inner, divisible, .. } => {
                if self.has(input, Upper) && self.has(inner, Lower) {
                    self.set(outer, Upper, 1);
                }
                if self.has(input, Lower) && self.has(inner, Upper) {
                    self.set(outer, Lower, 1);
                }
                if self.has(outer, Lower) && self.has(inner, Lower) {
                    self.set(input, Lower, 1);
                }
                if divisible && self.has(outer, Upper) && self.has(inner, Upper) {
                    self.set(input, Upper, 1);
                }
            }
            Op::Merge { outer, inner, output } => {
                for side in [Lower, Upper] {
                    if self.has(outer, side) {
                        self.set(output, side, 2);
                    }
                    if self.has(output, side) {
                        self.set(outer, side, 2);
                    }
                    self.set(inner, side, 2);
                }
            }
            Op::Resize { input, left, right, output } => {
                for (side, grows) in [(Lower, left), (Upper, right)] {
                    if grows >= 0 && self.has(input, side) {
                        self.set(output, side, 3);
                    }
                    if grows <= 0 && self.has(output, side) {
                        self.set(input, side, 3);
                    }
                }
            }
            Op::Swizzle { x, y, x_output, y_output } => {
                for side in [Lower, Upper] {
                    if self.has(x, side) {
                        self.set(x_output, side, 4);
                    }
                    if self.has(x_output, side) {
                        self.set(x, side, 4);
                    }
                }
                let both = |k: &Self, a, b| [Lower, Upper].iter().all(|s| k.has(a, *s) && k.has(b, *s));
                if both(self, x, y) {
                    self.set(y_output, Lower, 4);
                    self.set(y_output, Upper, 4);
                }
                if both(self, x_output, y_output) {
                    self.set(y, Lower, 4);
                    self.set(y, Upper, 4);
                }
            }
        }
    }
}

/// A point where every other predicate holds and one fails: dimensions and leaf values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// One value per dimension.
    pub dims: Vec<i64>,
    /// One value per leaf.
    pub leaves: Vec<i128>,
}

/// Whether a predicate holds at a point given by the values of all axes.
pub fn holds(concrete: &Concrete<'_>, values: &[i128], predicate: &Predicate) -> bool {
    match predicate.side {
        Side::Lower => values[predicate.axis] >= 0,
        Side::Upper => values[predicate.axis] < concrete.extents[predicate.axis],
    }
}

/// The dimensions that the extents of a domain mention.
pub fn relevant_dims(domain: &Domain, facts: &Facts) -> Vec<u32> {
    let mut dims: Vec<u32> = domain.axes.iter().flat_map(|a| facts.normal(&a.extent).vars()).collect();
    dims.sort_unstable();
    dims.dedup();
    dims
}

fn search_needed(domain: &Domain, facts: &Facts, candidate: Predicate, others: &[Predicate]) -> Search<Point> {
    // Only leaves that reach the candidate, or a predicate that shares a leaf with it, can matter; the rest stay at 0,
    // if their predicates hold there.
    let reaches = |p: &Predicate, k: usize| domain.depends_on(p.axis, domain.leaves[k]);
    let mut varying: Vec<usize> = (0..domain.leaves.len()).filter(|k| reaches(&candidate, *k)).collect();
    loop {
        let before = varying.len();
        for p in others {
            if varying.iter().any(|k| reaches(p, *k)) || p.side == Side::Lower {
                varying.extend((0..domain.leaves.len()).filter(|k| reaches(p, *k)));
                varying.sort_unstable();
                varying.dedup();
            }
        }
        if varying.len() == before {
            break;
        }
    }
    let mut exhausted = true;
    let mut budget = Budget::new(SEARCH_STEPS);
    let found = facts.smallest(&relevant_dims(domain, facts), &mut budget, |dims, budget| {
        let Some(concrete) = Concrete::new(domain, dims) else {
            exhausted = false;
            return None;
        };
        concrete.visit(&varying, |leaves| {
            if !budget.take(1) {
                exhausted = false;
                return std::ops::ControlFlow::Break(None);
            }
            let values = concrete.from_leaves(leaves);
            let alone = !holds(&concrete, &values, &candidate) && others.iter().all(|p| holds(&concrete, &values, p));
            if alone {
                std::ops::ControlFlow::Break(Some(Point { dims: dims.to_vec(), leaves: leaves.to_vec() }))
            } else {
                std::ops::ControlFlow::Continue(())
            }
        })?
    });
    // Where the result is empty, no point is visited; but loops may run there, for the sake of other results.
    let is_filled =
        |root: &AxisId| domain.axes[*root].kind == AxisKind::Reduction || has_elements(domain, facts, *root);
    match found {
        Search::None if !exhausted || !domain.roots.iter().all(is_filled) => Search::GaveUp,
        other => other,
    }
}

/// Whether a predicate holds wherever others do, by the theorems or by linear arithmetic: no answer is an honest "not
/// proved".
pub fn follows(domain: &Domain, facts: &Facts, predicate: Predicate, from: &[Predicate]) -> bool {
    let merged = merged_has_elements(domain, facts);
    Known::closure(domain, &merged, from).has(predicate.axis, predicate.side) || implied(domain, facts, predicate, from)
}

/// What is at least 0 exactly where a predicate holds, with residues (see [`Facts::with_residues`]).
pub fn slack(domain: &Domain, facts: &Facts, symbolic: &Symbolic, predicate: &Predicate) -> Expr {
    let value = &symbolic.values[predicate.axis];
    facts.with_residues(&match predicate.side {
        Side::Lower => value.clone(),
        Side::Upper => facts.normal(&domain.axes[predicate.axis].extent).sub(value).sub(&Expr::constant(1)),
    })
}

/// Whether linear arithmetic proves a candidate from the other predicates, for every admissible size.
fn implied(domain: &Domain, facts: &Facts, candidate: Predicate, others: &[Predicate]) -> bool {
    let symbolic = Symbolic::new(domain, facts);
    let one = Expr::constant(1);
    let slack = |p: &Predicate| slack(domain, facts, &symbolic, p);
    let goal = slack(&candidate);
    if goal.is_unknown() {
        return false;
    }
    let mut system = symbolic.system(facts, &goal);
    for p in others {
        system.require(&slack(p));
    }
    system.require(&goal.scale(-1).sub(&one));
    system.is_infeasible()
}

/// A root point that no leaf point stands for: a resize cut it away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncovered {
    /// One value per dimension.
    pub dims: Vec<i64>,
    /// One value per root.
    pub roots: Vec<i128>,
    /// Whether the element has terms; those of `roots` say nothing otherwise.
    pub has_terms: bool,
    /// The axis that is out of bounds there.
    pub axis: AxisId,
    /// The op that cut it.
    pub span: Span,
}

/// Whether every root point is some leaf point: every op keeps every live index.
///
/// Only a resize that cuts can lose one. Proved when each cut removes only what an earlier resize of the same axis
/// added; otherwise searched for.
pub fn uncovered(domain: &Domain, facts: &Facts) -> Search<Uncovered> {
    // (elements before 0, elements after the end) that are holes for certain, per axis.
    let mut slack: Vec<(i128, i128)> = vec![(0, 0); domain.axes.len()];
    // The roots that decide each axis.
    let mut roots_of: Vec<Vec<usize>> = vec![Vec::new(); domain.axes.len()];
    for (at, root) in domain.roots.iter().enumerate() {
        roots_of[*root].push(at);
    }
    let mut decisive: Vec<usize> = Vec::new();
    for (op, _) in &domain.ops {
        let from: Vec<usize> = op.inputs().iter().flat_map(|a| roots_of[*a].clone()).collect();
        for output in op.outputs() {
            roots_of[output].extend(&from);
        }
        if let Op::Resize { input, left, right, output } = *op {
            let (before, after) = slack[input];
            slack[output] = (before + left, after + right);
            if before + left < 0 || after + right < 0 {
                decisive.extend(&from);
            }
        }
    }
    if decisive.is_empty() {
        return Search::None;
    }
    // The other roots stay at 0, where they have a first point for certain.
    let may_be_empty = |at: &usize| !has_elements(domain, facts, domain.roots[*at]);
    decisive.extend((0..domain.roots.len()).filter(may_be_empty));
    decisive.sort_unstable();
    decisive.dedup();
    let decides = |axis: &AxisId| roots_of[*axis].iter().any(|r| decisive.contains(r));
    let axes: Vec<AxisId> = (0..domain.axes.len()).filter(decides).collect();
    let mut dims: Vec<u32> = axes.iter().flat_map(|a| facts.normal(&domain.axes[*a].extent).vars()).collect();
    dims.sort_unstable();
    dims.dedup();
    let is_term = |axis: AxisId| domain.axes[axis].kind == AxisKind::Reduction;
    let mut budget = Budget::new(4 * SEARCH_STEPS);
    let mut exhausted = true;
    let found = facts.smallest(&dims, &mut budget, |dims, budget| {
        let Some(concrete) = Concrete::new(domain, dims) else {
            exhausted = false;
            return None;
        };
        // An element is written even if its reduction has no terms.
        let has_terms = domain.roots.iter().all(|a| !is_term(*a) || concrete.extents[*a] > 0);
        let extent_of = |root: AxisId| if is_term(root) && !has_terms { 1 } else { concrete.extents[root] };
        let extents: Vec<i128> = decisive.iter().map(|at| extent_of(domain.roots[*at])).collect();
        let total = extents.iter().fold(1_i128, |n, e| n.saturating_mul(*e));
        let mut roots = vec![0; domain.roots.len()];
        for point in 0..total {
            if !budget.take(1) {
                exhausted = false;
                return None;
            }
            let mut rest = point;
            for (at, extent) in decisive.iter().zip(&extents).rev() {
                roots[*at] = rest % extent;
                rest /= extent;
            }
            let values = concrete.from_roots(&roots);
            for (op, span) in &domain.ops {
                for axis in op.outputs().into_iter().filter(|a| has_terms || !is_term(*a)) {
                    if !concrete.in_bounds(&values, axis) {
                        return Some(Uncovered { dims: dims.to_vec(), roots, has_terms, axis, span: *span });
                    }
                }
            }
        }
        None
    });
    match found {
        Search::None if !exhausted => Search::GaveUp,
        other => other,
    }
}

#[cfg(test)]
mod tests;

//! Predicates and limits: each a branch at the outermost point where it is decided, unless threads that must come along
//! would disagree.

use tilewright_kernel::algorithm::Compare;

use super::{Emit, Goal, Nest, Point};
use crate::domain::{AxisKind, Unit};
use crate::extent::Expr;
use crate::holes::{Predicate, Side};
use crate::kernel_ir::ValueId;
use crate::lower::nested_stage::{Instance, Kept};
use crate::lower::staging::Copy;
use crate::plan::staged::Way;
use crate::schedule;

/// What must hold for a point to do anything.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Condition {
    pub(super) holds: ValueId,
    /// Whether terms may be taken in where it does not (see [`crate::tma::demand`]).
    pub(super) waived: bool,
    /// Whether the element has a place in the instance where it does not, and nobody reads it.
    fills: bool,
    /// Whether it is the same for all threads of all roles, whatever their numbers.
    of_all: bool,
}

impl Condition {
    /// One that nothing waives.
    pub(super) const fn of(holds: ValueId) -> Self {
        Self { holds, waived: false, fills: false, of_all: false }
    }

    /// The same, that the number of a thread is no part of.
    pub(super) const fn of_all(holds: ValueId) -> Self {
        Self { of_all: true, ..Self::of(holds) }
    }

    pub(in crate::lower) const fn holds(self) -> ValueId {
        self.holds
    }
}

impl Nest<'_, '_> {
    /// Computes what the new values decide; the predicates among that. Inside so many loops.
    pub(super) fn decide(&mut self, point: &mut Point, loops: usize, goal: Goal) -> Vec<Condition> {
        let mut emit = Emit { b: &mut *self.b, index: self.index };
        self.stage.domain.toward_roots(&mut emit, &mut point.values);
        let in_terms = goal == Goal::Accumulate && (loops > self.split || self.is_in_terms());
        let mut conditions = Vec::new();
        for at in 0..self.holes.kept.len() {
            let predicate = self.holes.kept[at];
            // Units that share a result may have no term each.
            let of_terms = self.stage.domain.axes[predicate.axis].kind == AxisKind::Reduction;
            if point.done[at] || (of_terms && !in_terms) {
                continue;
            }
            let Some(value) = point.values[predicate.axis] else { continue };
            point.done[at] = true;
            let waived = self.waived[at];
            // Where there are no terms, a waiver is for what a copy stores (`Demand::Clipped`).
            let is_clipped = self.stage.reduction.is_none();
            if waived && (in_terms || is_clipped || self.product.is_some()) {
                continue;
            }
            // Both sides of one axis are one comparison.
            let is_twin = |p: &Predicate| p.axis == predicate.axis && p.side != predicate.side;
            let twin = self.holes.kept.iter().position(is_twin).filter(|twin| self.waived[*twin] == waived);
            let zero = self.b.index_literal(self.index, 0);
            let extent = self.stage.domain.axes[predicate.axis].extent.clone();
            let holds = match (predicate.side, twin) {
                (_, Some(twin)) => {
                    point.done[twin] = true;
                    let extent = self.size(&extent);
                    self.b.in_range(value, extent)
                }
                (Side::Lower, None) => self.b.index_compare(Compare::Ge, value, zero),
                (Side::Upper, None) => {
                    let extent = self.size(&extent);
                    self.b.index_compare(Compare::Lt, value, extent)
                }
            };
            let of_all = !self.of_threads[predicate.axis];
            conditions.push(Condition { waived, of_all, ..Condition::of(holds) });
        }
        // An instruction computes all elements of its tile.
        let is_whole = self.product.is_some() || self.analysed.fragment.is_some();
        let limits = if is_whole { &[][..] } else { &self.stage.limits };
        for (n, limit) in limits.iter().enumerate() {
            let at = self.holes.kept.len() + n;
            if point.done[at] || (!in_terms && schedule::is_of_terms(limit, &self.stage.domain)) {
                continue;
            }
            let Some(value) = self.of_roots(limit, &point.values) else { continue };
            point.done[at] = true;
            let zero = self.b.index_literal(self.index, 0);
            let holds = self.b.index_compare(Compare::Ge, value, zero);
            if !self.b.facts(holds).uniform && self.is_harmless_outside(limit, goal) {
                continue;
            }
            let of_all = self.is_of_all(limit);
            conditions.push(Condition { fills: true, of_all, ..Condition::of(holds) });
        }
        self.decide_members(point, &mut conditions);
        conditions
    }

    /// Whether the element is one that is asked for, once that is known. Lanes of a vector are computed together.
    pub(super) fn decide_members(&mut self, point: &mut Point, conditions: &mut Vec<Condition>) {
        let at = self.holes.kept.len() + self.stage.limits.len();
        let is_whole = self.vector.is_some() || self.product.is_some();
        if point.done[at] || self.stage.members.is_empty() || is_whole {
            return;
        }
        let zero = self.b.index_literal(self.index, 0);
        let mut any = self.b.bool_literal(false);
        for list in &self.stage.members {
            let mut all = self.b.bool_literal(true);
            for e in list {
                let Some(value) = self.of_roots(e, &point.values) else { return };
                let holds = self.b.index_compare(Compare::Ge, value, zero);
                all = self.b.and(all, holds);
            }
            any = self.b.or(any, all);
        }
        point.done[at] = true;
        let of_all = self.stage.members.iter().flatten().all(|e| self.is_of_all(e));
        conditions.push(Condition { fills: true, of_all, ..Condition::of(any) });
    }

    /// Whether elements may be computed where a limit leaves them out: nobody reads them there, they are made of
    /// registers alone, and have some. Threads that are kept out wait for the others, so that a test saves nothing.
    fn is_harmless_outside(&mut self, limit: &Expr, goal: Goal) -> bool {
        let is_held = |target: &Instance<'_>| target.memory.iter().all(|kept| matches!(kept, Kept::Registers(_)));
        self.target.as_ref().is_some_and(is_held)
            && !schedule::is_of_terms(limit, &self.stage.domain)
            && !limit.vars().into_iter().any(|v| self.analysed.zero_along.contains(&v))
            && self.is_of_registers(goal)
    }

    /// Whether what the stage computes here is made of registers alone. Each element asks.
    fn is_of_registers(&mut self, goal: Goal) -> bool {
        let of = (goal, self.values.instances.len());
        if let Some((_, known)) = self.of_registers.filter(|known| known.0 == of) {
            return known;
        }
        let found = self.values.is_of_registers(self.stored(), self.stage.reduction, goal == Goal::Store);
        self.of_registers = Some((of, found));
        found
    }

    /// Whether elements are written without any test.
    pub(in crate::lower) fn tests_nothing(&self) -> bool {
        self.stage.reduction.is_none()
            && self.waived.iter().all(|waived| *waived)
            && self.stage.limits.is_empty()
            && self.stage.members.is_empty()
    }

    /// Whether no predicate is tested that excludes terms.
    pub(in crate::lower) fn kept_of_terms(&self) -> bool {
        let axes = &self.stage.domain.axes;
        let is_tested = |(n, p): (usize, &Predicate)| axes[p.axis].kind == AxisKind::Reduction && !self.waived[n];
        !self.holes.kept.iter().enumerate().any(is_tested)
    }

    /// Whether the number of a thread is no part of an expression over the roots, or over other axes.
    pub(super) fn is_of_all(&self, e: &Expr) -> bool {
        let domain = &self.stage.domain;
        !e.vars().into_iter().filter_map(|v| domain.axis_of(v)).any(|axis| self.of_threads[axis])
    }

    /// Whether the loops around here are those of the terms.
    pub(super) fn is_in_terms(&self) -> bool {
        self.in_terms || !self.accumulators.is_empty()
    }

    /// Whether something for all threads of the block stands inside `loops` loops or more.
    pub(super) fn gathers(&self, loops: usize, goal: Goal) -> bool {
        let inner = |(stage, boundary): &(usize, usize)| {
            let stage = &self.around.stages[*stage].stage;
            *boundary >= loops && (stage.owner != Unit::Thread || stage.fetches)
        };
        let combines = self.combines() && goal == Goal::Accumulate && !self.is_in_terms() && loops <= self.split;
        combines
            || self.copies.iter().any(|copy| copy.staged.attach.loops >= loops)
            || self.children.iter().any(inner)
            || self.besides.iter().any(|(_, boundary)| *boundary >= loops)
    }

    /// Opens one branch for all predicates that the new values decide, and for `others`, inside so many loops. Returns
    /// what to close. What threads disagree on waits while copies for all of them are to come.
    pub(super) fn advance(&mut self, point: &mut Point, others: Vec<Condition>, loops: usize, goal: Goal) -> bool {
        let mut conditions = others;
        conditions.extend(self.decide(point, loops, goal));
        if self.stage.fetches || self.analysed.multiplied {
            // An instruction that reads nothing is cheaper than a branch, and tiles are whole: tensor cores read zeros.
            let is_tile = self.stage.is_tile;
            let fills = |c: &Condition| c.fills && (is_tile || !self.b.facts(c.holds).uniform);
            let (fills, others): (Vec<Condition>, Vec<Condition>) = conditions.into_iter().partition(fills);
            let all = point.filled.into_iter().chain(fills.into_iter().map(|c| c.holds));
            point.filled = all.reduce(|a, c| self.b.and(a, c));
            conditions = others;
        }
        // What a ring holds is copied before it is known whether its iteration has anything to do. A role that is ahead
        // knows: it is in the iteration.
        let ahead = |copy: &Copy<'_>| {
            let is_ring = copy.staged.ring > 1 && copy.staged.way == Way::Load;
            copy.staged.attach.loops == loops && is_ring && copy.pipeline.between.is_none()
        };
        let fetched = |(at, boundary): &(usize, usize)| {
            let stage = &self.around.stages[*at].stage;
            *boundary == loops && stage.ring > 1 && self.runs_ahead(*at)
        };
        let ahead = self.copies.iter().any(ahead) || self.children.iter().any(fetched);
        if self.gathers(loops, goal) {
            // What it decides is not decided for outputs beside it, nor for what stands after a stage that blocks
            // share, in its branch. What is decided among its terms is decided for what stands there, and over before
            // they arrive.
            let behind = self.stage.arrives() && !self.is_in_terms();
            let apart = self.besides.iter().any(|(_, boundary)| *boundary >= loops) || behind;
            // Where blocks of a cluster wait for each other, they must all agree.
            let shares = |copy: &Copy<'_>| copy.staged.multicast.is_some();
            let in_cluster = self.around.stages.iter().any(|s| s.stage.across_ctas())
                || self.around.copies.iter().flatten().any(shares);
            // All roles must agree without a word: on what is decided from the same values.
            let in_roles = self.around.role.is_some();
            let agreed = |c: &Condition| {
                let facts = self.b.facts(c.holds);
                let by_all = facts.uniform && (facts.cluster || !in_cluster) && (c.of_all || !in_roles);
                by_all && !ahead && !apart
            };
            let (agreed, held_back) = conditions.into_iter().partition(agreed);
            point.pending.extend::<Vec<Condition>>(held_back);
            conditions = agreed;
        }
        self.open_if(conditions)
    }

    /// Opens a branch where all conditions hold; whether there is one to close.
    pub(in crate::lower) fn open_if(&mut self, conditions: Vec<Condition>) -> bool {
        let Some(all) = conditions.into_iter().map(|c| c.holds).reduce(|a, c| self.b.and(a, c)) else { return false };
        if self.b.kernel().pred_literal(all) == Some(true) {
            return false;
        }
        self.b.begin_if(all);
        true
    }

    pub(in crate::lower) fn close(&mut self, opened: bool) {
        if opened {
            self.b.end_if();
        }
    }
}

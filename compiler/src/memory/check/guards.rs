//! Predicates that would cut a vector in two.

use std::cell::Cell;
use std::ops::ControlFlow;

use super::{Check, Cut, Question, SEARCH_STEPS, undivided};
use crate::diag::codes::SplitVector;
use crate::domain::{AxisId, AxisKind, Binding, Concrete};
use crate::extent::{Budget, Facts, Search, Var, Verdict};
use crate::holes;
use crate::holes::{Predicate, Side};
use crate::memory::finding::Finding;
use crate::memory::multiples::proposals;
use crate::schedule::neighbours::{innermost, written_ops};
use crate::schedule::vector::{Along, Vector};
use crate::source::{Span, ast};

impl Check<'_> {
    /// Every guard is uniform over the lanes.
    pub(super) fn guards(&self, vector: &Vector) -> Option<Finding> {
        let domain = &self.stage.domain;
        let uniform = |facts: &Facts, predicate: &Predicate| {
            let (value, extent) =
                undivided(facts, &self.symbolic.values[predicate.axis], &domain.axes[predicate.axis].extent);
            match vector.along(&value, self.symbolic, facts) {
                Along::Affine { base, step } => match step.as_constant() {
                    Some(0) => true,
                    Some(1) => {
                        facts.proves_multiple(&base, vector.lanes)
                            && (predicate.side == Side::Lower || facts.proves_multiple(&extent, vector.lanes))
                    }
                    _ => false,
                },
                Along::Straddles => false,
            }
        };
        let open = self.holes.kept.iter().find(|p| !uniform(self.facts, p))?;
        if self.is_never_cut(vector) {
            return None;
        }
        let (witness, predicate) = match self.cut_vector(vector) {
            Verdict::Proved => return None,
            Verdict::Refuted((dims, leaves, inside, predicate)) => {
                let leaves = (domain.leaves.iter().zip(leaves))
                    .filter(|(a, _)| **a != vector.axis)
                    .map(|(a, v)| (domain.axes[*a].name.clone(), v))
                    .collect();
                (Some((self.dims(&dims), leaves, inside)), predicate)
            }
            Verdict::Undecided => (None, *open),
        };
        let extent = self.facts.normal(&domain.axes[predicate.axis].extent);
        let all_uniform = |facts: &Facts| self.holes.kept.iter().all(|p| uniform(facts, p));
        let fact =
            proposals(self.program, std::slice::from_ref(&extent), vector.lanes, &all_uniform).into_iter().next();
        Some(Finding::Guard(SplitVector {
            axis: domain.axes[vector.axis].name.clone(),
            lanes: vector.lanes,
            guarded: (
                domain.axes[predicate.axis].name.clone(),
                domain.axes[predicate.axis].extent.show(&|v| self.dim(v)),
            ),
            divides: self.facts.proves_multiple(&extent, vector.lanes),
            span: vector.span,
            cause: domain.ops[predicate.op].1,
            witness,
            fact,
            innermost: self.innermost(),
        }))
    }

    /// The splits with which neighbouring threads have neighbouring elements without the vector, if it stands inside of
    /// what threads run.
    fn innermost(&self) -> Option<([(Span, String); 2], String)> {
        let domain = &self.stage.domain;
        let is_of_threads = |leaf: &AxisId| domain.axes[*leaf].binding == Binding::Thread;
        let threads = domain.leaves.iter().rev().copied().find(is_of_threads)?;
        let ops = written_ops(self.program, self.stage);
        let splits = innermost(domain, ops, threads, None)?;
        // The vector goes after them.
        let is_last = ops.iter().rposition(|op| matches!(op.kind, ast::OpKind::Vectorize { .. }));
        let at = |span: Span| ops.iter().position(|op| op.span == span);
        (at(splits[1].0) < is_last && at(splits[0].0) < at(splits[1].0))
            .then(|| (splits, domain.axes[threads].name.clone()))
    }

    /// Whether the predicates that tell lanes apart hold for all lanes or for none, where literals decide that: then
    /// every point of the loops concerned is visited, whatever the other sizes are.
    pub(super) fn is_never_cut(&self, vector: &Vector) -> bool {
        let domain = &self.stage.domain;
        let predicates: Vec<Predicate> =
            self.predicates(!vector.is_data).into_iter().filter(|p| domain.depends_on(p.axis, vector.axis)).collect();
        let Some(lane) = domain.leaves.iter().position(|a| *a == vector.axis) else { return false };
        let reached = |k: &usize| predicates.iter().any(|p| domain.depends_on(p.axis, domain.leaves[*k]));
        let leaves: Vec<usize> = (0..domain.leaves.len()).filter(|k| *k != lane && reached(k)).collect();
        let is_concerned = |axis: &AxisId| leaves.iter().any(|k| domain.depends_on(*axis, domain.leaves[*k]));
        let is_literal =
            |axis: AxisId| self.facts.normal(&domain.axes[axis].extent).as_constant().is_some_and(|e| e > 0);
        if !(0..domain.axes.len()).filter(is_concerned).all(is_literal) {
            return false;
        }
        let (mut budget, mut visited) = (Budget::new(SEARCH_STEPS), false);
        let any = self.facts.smallest(&[], &mut Budget::new(SEARCH_STEPS), |dims, _| Some(dims.to_vec()));
        let Search::Found(dims) = any else { return false };
        let Some(concrete) = Concrete::new(domain, &dims) else { return false };
        let cut = concrete.visit(&leaves, |point| {
            visited = true;
            if !budget.take(1 + vector.lanes as u64 / 4) {
                return ControlFlow::Break(());
            }
            let mut point = point.to_vec();
            let mut inside = 0;
            for v in 0..vector.lanes {
                point[lane] = v;
                inside += i128::from(self.inside(&concrete, &point, &predicates));
            }
            if inside == 0 || inside == vector.lanes { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        visited && cut.is_none()
    }

    /// Whether every vector has all lanes inside or none; the smallest one that does not.
    pub(super) fn cut_vector(&self, vector: &Vector) -> Verdict<Cut> {
        let domain = &self.stage.domain;
        let Some(lane) = domain.leaves.iter().position(|a| *a == vector.axis) else { return Verdict::Undecided };
        let question = Question { dims: Vec::new(), leaf: &|_| false, in_terms: !vector.is_data, before: None };
        let predicates = self.predicates(question.in_terms);
        let holds = |concrete: &Concrete<'_>, point: &[i128]| -> Vec<bool> {
            let values = concrete.from_leaves(point);
            predicates.iter().map(|p| holes::holds(concrete, &values, p)).collect()
        };
        self.search(&question, Some(lane), |concrete, dims, point, budget| {
            budget.take(vector.lanes as u64 / 4);
            let mut point = point.to_vec();
            let lanes: Vec<Vec<bool>> = (0..vector.lanes)
                .map(|v| {
                    point[lane] = v;
                    holds(concrete, &point)
                })
                .collect();
            let is_inside = |l: &&Vec<bool>| l.iter().all(|h| *h);
            let inside = lanes.iter().filter(is_inside).count() as i128;
            if inside == 0 || inside == vector.lanes {
                return None;
            }
            point[lane] = 0;
            let outside = lanes.iter().find(|l| !is_inside(l))?;
            let apart = predicates[outside.iter().position(|h| !h)?];
            Some((dims.to_vec(), point, inside, apart))
        })
    }

    /// The predicates that decide about an element, or about a term of it.
    pub(super) fn predicates(&self, in_terms: bool) -> Vec<Predicate> {
        let is_term = |p: &Predicate| self.stage.domain.axes[p.axis].kind == AxisKind::Reduction;
        self.holes.kept.iter().copied().filter(|p| in_terms || !is_term(p)).collect()
    }

    /// The first hit over admissible dimensions and the points of the leaves that matter, `fixed` at 0.
    pub(super) fn search<W>(
        &self,
        question: &Question<'_>,
        fixed: Option<usize>,
        mut test: impl FnMut(&Concrete<'_>, &[i64], &[i128], &mut Budget) -> Option<W>,
    ) -> Verdict<W> {
        let domain = &self.stage.domain;
        let mut relevant = holes::relevant_dims(domain, self.facts);
        relevant.extend(&question.dims);
        let strides = self.output_strides();
        let (varied, sizes): (Vec<Var>, Vec<Var>) = relevant.into_iter().partition(|v| strides.contains(v));
        let predicates = self.predicates(question.in_terms);
        let guarded = |k: usize| predicates.iter().any(|p| domain.depends_on(p.axis, domain.leaves[k]));
        let is_term = |k: usize| domain.axes[domain.leaves[k]].kind == AxisKind::Reduction;
        let varying: Vec<usize> = (0..domain.leaves.len())
            .filter(|k| Some(*k) != fixed)
            .filter(|k| (question.in_terms || !is_term(*k)) && (guarded(*k) || (question.leaf)(*k)))
            .collect();
        let mut budget = Budget::new(SEARCH_STEPS);
        let complete = Cell::new(true);
        let found = self.facts.smallest(&sizes, &mut budget, |dims, budget| {
            if question.before.is_some_and(|before| self.sum(dims.iter().map(|d| i128::from(*d))) >= before) {
                budget.take(u64::MAX);
                return None;
            }
            // Without strided outputs there is one layout; otherwise not all are tried.
            let layouts = if strides.is_empty() { vec![dims.to_vec()] } else { self.layouts(dims, &varied) };
            complete.set(complete.get() && strides.is_empty());
            for dims in &layouts {
                let Some(concrete) = Concrete::new(domain, dims) else {
                    complete.set(false);
                    continue;
                };
                // Where there are no terms nothing is asked of them.
                let no_terms = |k: usize| is_term(k) && concrete.extents[domain.leaves[k]] == 0;
                if question.in_terms && (0..domain.leaves.len()).any(no_terms) {
                    continue;
                }
                let hit = concrete.visit(&varying, |point| {
                    if !budget.take(1) {
                        return ControlFlow::Break(None);
                    }
                    match test(&concrete, dims, point, budget) {
                        Some(hit) => ControlFlow::Break(Some(hit)),
                        None => ControlFlow::Continue(()),
                    }
                });
                if let Some(hit) = hit {
                    return hit;
                }
            }
            None
        });
        match found {
            Search::Found(hit) => Verdict::Refuted(hit),
            Search::None if complete.get() => Verdict::Proved,
            Search::None | Search::GaveUp => Verdict::Undecided,
        }
    }
}

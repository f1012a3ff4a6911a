//! What an instance of a stage is made from: a group of the elements that its readers ask for becomes an iteration
//! domain of its own.

use super::attach::Attach;
use super::compute_at::{Inner, TOO_LONG};
use super::region_ops::{Chosen, Run, run_of};
use super::{Along, Roots, Stage, Unscheduled, buffer_layout};
use crate::diag::Diagnostics;
use crate::diag::codes::{NoSuchRegion, UnboundedBuffer};
use crate::domain::{AxisKind, Binding, NewAxis, Symbolic};
use crate::extent::{Expr, Facts, Family, System, Var, absolute};
use crate::program::Program;
use crate::region::{Coordinate, Fit, Group};
use crate::source::ast;
use crate::source::ast::Place;

/// Most terms, those under quotients included, of an expression that says where a region starts or ends: it is computed
/// in every iteration, and what stages inside read is asked in terms of it.
const WRITTEN_TERMS: usize = 64;

/// What an instance of a stage is made from.
pub(super) struct About<'a> {
    pub one: &'a Inner<'a>,
    pub attach: &'a Attach,
    pub program: &'a Program,
    pub facts: &'a Facts,
    /// At least 0 where its place is reached.
    pub reached: &'a [Expr],
    /// The range of each axis.
    pub domain: &'a [(Expr, Expr)],
    /// What the ops say of the region.
    pub chosen: &'a Chosen<'a>,
    /// The run of elements that it is.
    pub run: Option<Run<'a>>,
    /// Whether it is a tile of tensor cores.
    pub is_tile: bool,
}

impl About<'_> {
    /// A number of elements as an expression over sizes alone.
    fn of_sizes(&self, bound: &Expr) -> Option<Expr> {
        let sizes = self.one.program.dims.len();
        let bound = self.facts.normal(bound);
        let known = !is_lost(&bound) && bound.vars().iter().all(|v| (*v as usize) < sizes);
        let bound = known.then_some(bound)?;
        bound.to_size(sizes)?;
        let is_count = self.facts.proves_nonnegative(&bound);
        Some(if is_count { bound } else { self.facts.normal(&bound.positive()) })
    }

    /// The stage that holds a group.
    pub fn stage(&self, group: &Group, stages: &[Stage], diags: &mut Diagnostics) -> Option<Stage> {
        let Self { one, attach, program, facts, reached, domain, chosen, run, is_tile } = *self;
        let list = self.axes();
        let mut roots = Roots::default();
        // Without one of these more is computed than is asked for.
        let mut limits: Vec<Expr> = conditions(&group.limits, facts).into_iter().filter(|e| !is_lost(e)).collect();
        let limits_lost = limits.len() < group.limits.len();
        let mut coordinates = Vec::new();
        let mut indices: Vec<Option<Expr>> = vec![None; list.len()];
        for (number, coordinate) in group.axes.iter().enumerate() {
            let root = roots.next();
            let most = self.most(coordinate, stages, diags)?;
            // A tile has the same number of elements everywhere, whether or not all of them are asked for.
            let extent = facts.normal(if is_tile { &most } else { &coordinate.bound });
            if is_tile {
                let below = coordinate.bound.sub(&root).sub(&Expr::constant(1));
                limits.extend(below.at_least_parts().iter().map(|e| facts.normal(e)));
            }
            let distance = self.row_major(coordinate).sub(&coordinate.start);
            let (dims, start, step) = (coordinate.dims.clone(), facts.normal(&coordinate.start), coordinate.step);
            coordinates.push(Along { dims, start, step, distance, most });
            let at = coordinate.start.add(&root.scale(coordinate.step));
            for (d, index) in self.digits(coordinate, at) {
                indices[d] = Some(index);
            }
            let is_run = run_of(group) == Some(number);
            let name = self.name(coordinate, run.filter(|_| is_run).and_then(|run| run.name));
            roots.axes.push((name, extent, AxisKind::Data));
        }
        for ((axis, index), (lower, upper)) in list.iter().zip(indices).zip(domain) {
            let index = index?;
            limits.extend([index.sub(lower), upper.sub(&index).sub(&Expr::constant(1))].map(|e| facts.normal(&e)));
            roots.indices.push((*axis, index));
        }
        let known = at_roots(&roots, reached, facts);
        let is_open = |e: &Expr| {
            let mut known = known.clone();
            known.require(&facts.with_residues(e).scale(-1).sub(&Expr::constant(1)));
            !known.is_infeasible()
        };
        limits.sort();
        limits.dedup();
        limits.retain(is_open);
        limits.extend_from_slice(reached);
        limits.sort();
        limits.dedup();
        let written = roots.indices.iter().map(|(_, e)| e.clone()).chain(coordinates.iter().map(Along::position));
        if limits.iter().any(is_lost) || written.into_iter().any(|e| is_lost(&e)) {
            diags.report(one.cannot_stand(TOO_LONG, Vec::new()));
            return None;
        }
        let mut members: Vec<Vec<Expr>> = group.members.iter().map(|list| conditions(list, facts)).collect();
        let is_known = group.is_known && !limits_lost && !members.iter().flatten().any(is_lost);
        if members.iter().flatten().any(is_lost) || chosen.is(ast::RegionKind::Cover) {
            members.clear();
        }
        let ops = run.map_or(chosen.ops, |run| run.ops);
        let (name, span) = (one.name.clone(), one.head);
        let given = Unscheduled {
            program,
            facts,
            equation: one.equation,
            name,
            span,
            ops,
            others: stages,
            beside: None,
            owner: attach.owner,
        };
        let mut stage = roots.finish(given, diags)?;
        if chosen.is(ast::RegionKind::Exact)
            && let Some(problem) = not_exact(&stage, is_known, !members.is_empty())
        {
            let (stage, help) = (one.name.clone(), Some("`region cover;` computes the whole box"));
            diags.report(NoSuchRegion { stage, problem, help, span: chosen.span(one.head) });
            return None;
        }
        stage.attach = Some(attach.clone());
        stage.members = members;
        stage.copy = one.copy;
        stage.serves = one.serves.clone();
        stage.limits.extend(limits);
        stage.coordinates = coordinates;
        stage.fit = if limits_lost { Fit::Sound } else { group.fit };
        stage.needed = group.needed.as_ref().map(|e| facts.normal(e));
        stage.place = one.place;
        stage.owner = attach.owner;
        match one.place {
            Place::Shared => stage.layout = buffer_layout::of(&stage, ops, diags)?,
            Place::Registers => buffer_layout::refuse(&one.name, "registers", ops, diags),
            Place::Global => {
                buffer_layout::refuse(&one.name, "global memory", ops, diags);
                stage.layout = buffer_layout::natural(&stage);
            }
        }
        stage.fetches = one.fetches;
        stage.is_tile = is_tile;
        Some(stage)
    }

    /// The axes of the equation, by their numbers in the algorithm.
    fn axes(&self) -> &[u32] {
        let algorithm = &self.program.algorithm;
        &algorithm.axis_lists[algorithm.equations[self.one.equation].axes.range()]
    }

    /// The most elements along a coordinate: a number, or in global memory an expression over sizes.
    fn most(&self, coordinate: &Coordinate, stages: &[Stage], diags: &mut Diagnostics) -> Option<Expr> {
        let Self { one, program, facts, .. } = *self;
        let constant = facts.upper_bound(&coordinate.bound).map(|most| Expr::constant(most.max(1)));
        let is_global = one.place == Place::Global;
        let of_sizes = is_global.then(|| self.of_sizes(&coordinate.bound)).flatten();
        let all = || is_global.then(|| self.of_sizes(&around(stages, self.attach, &coordinate.bound))).flatten();
        let most = of_sizes.or(constant).or_else(all);
        if most.is_none() {
            let names = |v: u32| program.dim_name(v as u16).to_owned();
            let bare = coordinate.bound.as_var();
            diags.report(UnboundedBuffer {
                copy: one.name.clone(),
                axis: program.algorithm.axes[self.axes()[coordinate.dims[0]] as usize].name.to_string(),
                extent: coordinate.bound.show(&names),
                fact: bare.filter(|v| program.is_nameable(*v)).map(|v| format!("{} <= 4096", names(v))),
                inside: stages[self.attach.stage].loop_without_bound(self.attach.leaf),
                place: one.place,
                global: one.place != Place::Global && !one.fetches && self.of_sizes(&coordinate.bound).is_some(),
                span: one.head,
            });
        }
        most
    }

    /// The row-major number of an element in the dimensions that a coordinate counts, from its indices.
    fn row_major(&self, coordinate: &Coordinate) -> Expr {
        coordinate.dims.iter().fold(Expr::constant(0), |number, d| {
            let index = Family::PLACEHOLDER.expr(*d);
            if coordinate.dims.len() == 1 {
                return index;
            }
            let (lower, upper) = &self.domain[*d];
            number.mul(&upper.sub(lower)).add(&index.sub(lower))
        })
    }

    /// The indices of the element with a row-major number in the dimensions that a coordinate counts.
    fn digits(&self, coordinate: &Coordinate, number: Expr) -> Vec<(usize, Expr)> {
        if let [d] = coordinate.dims[..] {
            return vec![(d, number)];
        }
        // Innermost first.
        let (mut rest, mut found) = (number, Vec::new());
        for (n, d) in coordinate.dims.iter().enumerate().rev() {
            let (lower, upper) = &self.domain[*d];
            let size = upper.sub(lower);
            let digit = if n == 0 { rest.clone() } else { rest.modulo(&size) };
            if n > 0 {
                rest = rest.floor_div(&size);
            }
            found.push((*d, digit.add(lower)));
        }
        found
    }

    /// The name of a coordinate's axis: that of the run, if one was given, else those of its dimensions.
    fn name(&self, coordinate: &Coordinate, run: Option<&ast::Name>) -> NewAxis {
        let (program, list) = (self.program, self.axes());
        let names = coordinate.dims.iter().map(|d| program.algorithm.axes[list[*d] as usize].name.to_string());
        match run {
            Some(into) => NewAxis { name: into.text.clone(), span: into.span },
            None => NewAxis {
                name: names.collect::<Vec<_>>().join("·"),
                span: program.axis_spans[list[coordinate.dims[0]] as usize],
            },
        }
    }
}

/// Why a stage does not compute exactly what is asked for, if it does not.
fn not_exact(stage: &Stage, is_known: bool, has_members: bool) -> Option<&'static str> {
    let has_vector = stage.domain.leaves.iter().any(|l| stage.domain.axes[*l].binding == Binding::Vector);
    match (is_known, has_vector && has_members) {
        (false, _) => Some("which elements of the box are asked for is not known"),
        (_, true) => Some("lanes of a vector are computed together, whether or not all are asked for"),
        _ => None,
    }
}

/// A bound of a number of elements at a place, for all iterations of the loops around it.
fn around(stages: &[Stage], attach: &Attach, e: &Expr) -> Expr {
    let mut chain = vec![attach.stage];
    while let Some(attach) = chain.last().and_then(|at| stages[*at].attach.as_ref()) {
        chain.push(attach.stage);
    }
    let mut loops: Vec<(Var, Expr)> = Vec::new();
    let bound = |loops: &[(Var, Expr)], e: &Expr| {
        absolute(e, &|v| loops.iter().find(|(known, _)| *known == v).map(|(_, extent)| extent.clone()))
    };
    for at in chain.into_iter().rev() {
        let Stage { domain, facts, .. } = &stages[at];
        for (n, leaf) in Symbolic::new(domain, facts).variables.iter().enumerate() {
            let extent = bound(&loops, &facts.normal(&leaf.extent));
            loops.push(((facts.dims() + n) as Var, extent));
        }
    }
    bound(&loops, e)
}

/// Whether an expression is too long to be written down.
fn is_lost(e: &Expr) -> bool {
    e.is_unknown() || !e.has_at_most(WRITTEN_TERMS)
}

/// Conditions over coordinates as conditions of roots.
fn conditions(list: &[Expr], facts: &Facts) -> Vec<Expr> {
    let of_root = |v: Var| Family::COORDINATE.number(v).map(|n| Family::ROOT.expr(n));
    list.iter().map(|e| facts.normal(e).substitute(&of_root)).collect()
}

/// What holds at the coordinates of a stage: that they are below their bounds, and what holds where its place is
/// reached.
fn at_roots(roots: &Roots, reached: &[Expr], facts: &Facts) -> System {
    let mut system = facts.residue_system();
    for (n, (_, extent, _)) in roots.axes.iter().enumerate() {
        let var = Family::ROOT.var(n);
        system.at_least(var, 0);
        system.require(&facts.with_residues(&extent.sub(&Expr::var(var)).sub(&Expr::constant(1))));
    }
    reached.iter().for_each(|e| system.require(&facts.with_residues(e)));
    system
}

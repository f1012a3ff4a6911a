//! The stages that are computed inside the loops of others: what their clauses say, in which order they are looked at,
//! and what domain each gets.
//!
//! A stage is looked at when all that may read it has been: its region is what they ask for.

use tilewright_kernel::algorithm::Source;

use super::attach::{self, Attach, Needs};
use super::region_ops::{Chosen, Run, laid_out, run_of};
use super::{Along, Roots, Stage, Unscheduled, buffers, idle, index_of_dims, layout};
use crate::diag::Diagnostics;
use crate::diag::codes::{Internal, NoInstance, NoPlace, NoSuchRegion, NotSupportedYet, UnboundedBuffer};
use crate::domain::{AxisId, AxisKind, Binding, NewAxis, Symbolic};
use crate::extent::{Expr, Facts, Family, System, Var, absolute};
use crate::program::Program;
use crate::region::{Fit, Group, NotATile};
use crate::source::{Span, ast};
use crate::{domain::Unit, source::ast::Place};

/// Most terms, those under quotients included, of an expression that says where a region starts or ends: it is computed
/// in every iteration, and what stages inside read is asked in terms of it.
const WRITTEN_TERMS: usize = 64;

const TOO_LONG: &str = "what is read there depends on the loops around in a way that is too long to write down";

/// A stage that is still to be placed.
pub(super) struct Inner<'a> {
    program: &'a Program,
    equation: usize,
    name: String,
    /// The staged copy that it is.
    pub copy: Option<usize>,
    /// What reads take from it.
    pub serves: Vec<Source>,
    place: Place,
    fetches: bool,
    ring: Option<(&'a ast::Expr, Span)>,
    /// Who owns an instance, if that is said.
    owner: Option<Unit>,
    at: &'a ast::AxisRef,
    ops: &'a [ast::Op],
    head: Span,
}

impl Inner<'_> {
    /// That its clause names a place where it cannot stand, and where it could.
    fn cannot_stand(&self, problem: &str, known: Vec<String>) -> NoInstance {
        let problem = problem.to_owned();
        let place = Some(format!("{}.{}", self.at.stage.text, self.at.axis.text));
        NoInstance { stage: self.name.clone(), place, problem, known, instead: None, span: self.at.span }
    }

    /// That `reader` reads it for more than its terms, and that the loop over these in which it stands is not around
    /// that.
    fn ended(&self, reader: &str, axis: &str) -> NoInstance {
        let problem = format!("`{reader}` reads it outside of its terms, too: the loop `{axis}` is not around that");
        let instead = Some("compute what is read there under another name".to_owned());
        NoInstance { instead, ..self.cannot_stand(&problem, Vec::new()) }
    }

    /// That `reader` reads it for more than its terms, and that units past the end of `axis` have none of it: see
    /// [`idle`].
    fn not_in_terms(&self, reader: &str, axis: &str, owner: Unit) -> NoInstance {
        let unit = owner.name();
        let problem = format!(
            "`{reader}` reads it outside of its terms, too: there a {unit} without an iteration of `{axis}` has no instance"
        );
        let instead = match owner > Unit::Cta {
            true => format!("leave `per {unit}` out: shared memory of the block holds it for all of its threads"),
            false => "compute what is read there under another name".to_owned(),
        };
        NoInstance { instead: Some(instead), ..self.cannot_stand(&problem, Vec::new()) }
    }

    /// That `reader` belongs to a wider unit, and that units past the end of `axis` have none of it.
    fn not_in_all(&self, reader: &str, axis: &str, (owner, wider): (Unit, Unit)) -> NoInstance {
        let (unit, wider) = (owner.name(), wider.name());
        let problem = format!(
            "every {unit} of a {wider} computes `{reader}`, which reads it: a {unit} without an iteration of `{axis}` has no instance"
        );
        let per = if owner == Unit::Cta { "cta" } else { unit };
        let instead = Some(format!("write `per {per}` for `{reader}`, too"));
        NoInstance { instead, ..self.cannot_stand(&problem, Vec::new()) }
    }
}

/// The stages that clauses place inside others; without those with an error.
pub(super) fn inner<'a>(program: &'a Program, diags: &mut Diagnostics) -> Vec<Inner<'a>> {
    let mut list = Vec::new();
    for schedule in &program.schedules {
        let equation = usize::from(schedule.equation);
        let components = &program.algorithm.components[program.algorithm.equations[equation].components.range()];
        if components.iter().any(|c| c.parameter.is_some()) {
            continue;
        }
        let numbers = 0..components.len() as u16;
        let serves = numbers.map(|component| Source::Equation { equation: schedule.equation, component }).collect();
        let ast::Schedule { stage, clauses, ops, head, .. } = &schedule.ast;
        list.extend(one(program, (equation, &stage.text), None, serves, (clauses, ops, *head), diags));
    }
    for copy in &program.copies {
        let equation = usize::from(copy.equation);
        let component = program.algorithm.equations[equation].components.range().start;
        let value = program.algorithm.components[component].value;
        let tilewright_kernel::algorithm::Value::Read { source, .. } = program.algorithm.values[value as usize] else {
            continue;
        };
        let ast::StagedCopy { name, clauses, ops, head, .. } = &program.stages[copy.stage].ast;
        list.extend(one(program, (equation, &name.text), Some(copy.stage), vec![source], (clauses, ops, *head), diags));
    }
    list
}

fn one<'a>(
    program: &'a Program,
    (equation, name): (usize, &str),
    copy: Option<usize>,
    serves: Vec<Source>,
    (clauses, ops, head): (&'a ast::Clauses, &'a [ast::Op], Span),
    diags: &mut Diagnostics,
) -> Option<Inner<'a>> {
    let before = diags.found().len();
    let place = match clauses.place.map(|p| p.value) {
        Some(place @ (Place::Shared | Place::Registers)) => place,
        // Without a loop it would be complete only when all blocks have written their part.
        Some(Place::Global) if clauses.at.is_some() => Place::Global,
        other => {
            let is_global = other == Some(Place::Global);
            diags.report(NoPlace { stage: name.to_owned(), is_global, span: clauses.place.map_or(head, |p| p.span) });
            return None;
        }
    };
    let owner = match clauses.per.as_ref().map(|per| (per.text.as_str(), per.span)) {
        None => None,
        Some(("cluster", _)) if place == Place::Registers => Some(Unit::Cluster),
        Some(("cta", _)) => Some(Unit::Cta),
        Some(("thread", _)) => Some(Unit::Thread),
        Some(("warp", _)) => Some(Unit::Warp),
        Some(("warpgroup", _)) => Some(Unit::Warpgroup),
        Some((unit, span)) => {
            let instead = match unit {
                "cluster" => "an instance in memory belongs to a block, or to a part of one: `per cta`",
                _ => "`per cluster`, `per cta`, `per warpgroup`, `per warp` and `per thread` work today",
            };
            let (construct, instead) = (format!("per {unit}"), Some(instead.to_owned()));
            diags.report(NotSupportedYet { construct, span, instead });
            None
        }
    };
    let fetches = buffers::fetches(program, (name, copy), &serves, clauses, diags);
    let Some(at) = &clauses.at else {
        diags.report(NoInstance {
            stage: name.to_owned(),
            place: None,
            problem: "each iteration of that loop has an instance of its own".to_owned(),
            known: Vec::new(),
            instead: None,
            span: head,
        });
        return None;
    };
    (diags.found().len() == before).then(|| Inner {
        program,
        equation,
        name: name.to_owned(),
        copy,
        serves,
        place,
        fetches: fetches == Some(true),
        ring: clauses.ring.as_ref().map(|ring| (&*ring.value, ring.span)),
        owner,
        at,
        ops,
        head,
    })
}

/// Places every stage of `inner`, readers first.
pub(super) fn place(mut inner: Vec<Inner<'_>>, served: &[Source], stages: &mut Vec<Stage>, diags: &mut Diagnostics) {
    while !inner.is_empty() {
        let ready: Vec<usize> = (0..inner.len()).filter(|at| is_ready(&inner, *at, stages, served)).collect();
        // Reads take the innermost copy of a tensor: it comes first.
        let innermost = ready.iter().find(|at| !has_inside(&inner, **at, stages));
        let Some(at) = innermost.or(ready.first()).copied() else {
            for one in &inner {
                let exists = inner.iter().any(|o| o.name == one.at.stage.text)
                    || stages.iter().any(|s| s.name == one.at.stage.text);
                let problem = if exists {
                    "its place, its readers or its model depend on itself"
                } else {
                    "no stage of that name has loops"
                };
                diags.report(one.cannot_stand(problem, Vec::new()));
            }
            return;
        };
        let one = inner.remove(at);
        match placed(&one, served, stages, diags) {
            Some(found) => stages.extend(found),
            None => {
                if !diags.has_errors() {
                    let what = format!("`{}` could not be placed", one.name);
                    diags.report(Internal { room: "schedule", what, span: one.head });
                }
                return;
            }
        }
    }
    for reader in 0..stages.len() {
        let sees = |at: &usize| {
            let attach = stages[*at].attach.as_ref();
            *at != reader && attach.is_some_and(|attach| attach::is_under(stages, reader, attach))
        };
        stages[reader].sees = (0..stages.len()).filter(sees).collect();
    }
}

/// Whether all that a stage depends on has been placed.
fn is_ready(inner: &[Inner<'_>], at: usize, stages: &[Stage], served: &[Source]) -> bool {
    let one = &inner[at];
    let algorithm = &one.program.algorithm;
    let reads = |other: &Inner<'_>| {
        // Copies of one tensor do not take it from each other.
        let both_copies = one.copy.is_some() && other.copy.is_some() && one.serves == other.serves;
        !both_copies && attach::sources(algorithm, other.equation, served).iter().any(|s| one.serves.contains(s))
    };
    let like = one.ops.iter().filter_map(|op| match &op.kind {
        ast::OpKind::Like { stage, .. } => Some(&stage.text),
        _ => None,
    });
    let mut needed = like.chain([&one.at.stage.text]);
    stages.iter().any(|s| s.name == one.at.stage.text)
        && !inner.iter().enumerate().any(|(n, other)| n != at && reads(other))
        && needed.all(|name| !inner.iter().any(|other| other.name == *name))
}

/// Whether another copy of the tensor that a copy is of stands further inside.
fn has_inside(inner: &[Inner<'_>], at: usize, stages: &[Stage]) -> bool {
    let place = |one: &Inner<'_>| {
        let stage = stages.iter().position(|s| s.name == one.at.stage.text)?;
        Some((stage, stages[stage].domain.leaf(&one.at.axis.text)?))
    };
    let one = &inner[at];
    let Some((host, leaf)) = place(one).filter(|_| one.copy.is_some()) else { return false };
    let leaves = &stages[host].domain.leaves;
    let depth = |leaf: AxisId| leaves.iter().position(|l| *l == leaf);
    let around = Attach::new(host, &stages[host], leaf, Unit::Cta);
    let is_inside = |(other, own): (usize, AxisId)| match other == host {
        true => depth(own) > depth(leaf),
        false => attach::chain_under(&|n| stages.get(n), other, &around).is_some(),
    };
    let is_copy = |other: &&Inner<'_>| other.copy.is_some() && other.serves == one.serves;
    inner.iter().filter(is_copy).filter_map(place).any(is_inside)
}

/// Who owns an instance: if nothing is said, the collective that runs the place. That is a cluster around the axes that
/// are given to its blocks; but memory belongs to a block.
fn owner(one: &Inner<'_>, parent: &Stage, leaf: AxisId) -> Unit {
    let axes = &parent.domain.axes;
    let position = |l: AxisId| parent.domain.leaves.iter().position(|leaf| *leaf == l);
    let is_outside = |l: &AxisId| axes[*l].binding == Binding::Cta && position(*l) > position(leaf);
    let shares = one.place == Place::Registers && parent.owner < Unit::Cta;
    let default = if shares && parent.domain.leaves.iter().any(is_outside) { Unit::Cluster } else { Unit::Cta };
    one.owner.unwrap_or(default)
}

fn placed(one: &Inner<'_>, served: &[Source], stages: &[Stage], diags: &mut Diagnostics) -> Option<Vec<Stage>> {
    let parent = stages.iter().position(|s| s.name == one.at.stage.text)?;
    let no_instance = |problem: &str, stages: &[Stage], diags: &mut Diagnostics| {
        let axes = stages[parent].domain.leaves.iter().map(|l| &stages[parent].domain.axes[*l]);
        // Not the place itself.
        let axes = axes.filter(|a| a.name != one.at.axis.text);
        let known =
            axes.filter(|a| a.binding != Binding::Vector && (a.binding.is_of_blocks() || a.binding.is_sequential()));
        let known = known.map(|a| format!("{}.{}", stages[parent].name, a.name)).collect();
        diags.report(one.cannot_stand(problem, known));
    };
    let Some(leaf) = stages[parent].domain.leaf(&one.at.axis.text) else {
        no_instance("the stage has no loop of that name", stages, diags);
        return None;
    };
    let owner = owner(one, &stages[parent], leaf);
    let binding = stages[parent].domain.axes[leaf].binding;
    let of_block = owner == Unit::Cta;
    let belongs = format!("an instance belongs to {} {}", if of_block { "the" } else { "a" }, owner.name());
    let bad = match Unit::of(binding) {
        _ if binding == Binding::Vector => Some("the lanes of a vector are one access".to_owned()),
        Some(unit) if unit > owner => {
            let threads = if owner == Unit::Warp { "lanes" } else { "threads" };
            Some(format!("{belongs}, and its {threads} run that axis side by side"))
        }
        _ if stages[parent].owner > owner => {
            Some(format!("{belongs}, and each {} has loops of its own there", stages[parent].owner.name()))
        }
        _ => None,
    };
    if one.fetches && bad.is_none() && stages[parent].owner == Unit::Thread {
        let problem =
            "all threads of the block wait together for what they fetch, and each thread has loops of its own there";
        let instead = "attach it at a loop of the block, or remove `via cp_async`: the thread loads it".to_owned();
        diags.report(NoInstance { instead: Some(instead), ..one.cannot_stand(problem, Vec::new()) });
        return None;
    }
    let attach = Attach::new(parent, &stages[parent], leaf, owner);
    let is_other = stages[parent].beside.as_ref().is_some_and(|b| attach.loops < b.loops);
    let other = "that loop is the one of the output that it stands beside: name it there";
    if let Some(problem) = bad.or(is_other.then(|| other.to_owned())) {
        no_instance(&problem, stages, diags);
        return None;
    }
    if matches!(owner, Unit::Warpgroup | Unit::Warp) && !has_units(owner, &stages[parent]) {
        let unit = owner.name();
        let problem = format!("{belongs}, and no axis around it is bound to {unit}s");
        let instead = format!("leave `per {unit}` out, or bind an axis of the stage that has the loop to {unit}s");
        diags.report(NoInstance { instead: Some(instead), ..one.cannot_stand(&problem, Vec::new()) });
        return None;
    }
    let host = (&stages[parent], leaf);
    let ring = buffers::ring(one.program, &stages[parent].facts, host, (&one.name, one.place), one.ring, diags)?;
    let Some((program, facts)) = attach::within(&stages[parent], &attach) else {
        no_instance("that loop has no iteration for any size", stages, diags);
        return None;
    };
    let algorithm = &program.algorithm;
    let list = &algorithm.axis_lists[algorithm.equations[one.equation].axes.range()];
    let mut domain: Vec<(Expr, Expr)> = Vec::new();
    for axis in list {
        let axis = &algorithm.axes[*axis as usize];
        let (lower, upper) = (index_of_dims(algorithm, axis.lower)?, index_of_dims(algorithm, axis.upper)?);
        domain.push((facts.normal(&lower), facts.normal(&upper)));
    }
    // Outputs beside the one that has the loops come there where that one has nothing to do.
    let is_shared = stages.iter().filter_map(|s| s.beside.as_ref()).any(|b| b.sees(&attach, &stages[parent]));
    let reached = if is_shared { Some(Vec::new()) } else { attach::reached(&stages[parent], &attach, &facts) };
    let Some(reached) = reached else {
        no_instance(TOO_LONG, stages, diags);
        return None;
    };
    // Blocks of a cluster come where others wait for them.
    let with_work = idle::units_with_work(owner, one.fetches, (parent, &attach), stages, &facts);
    let conditions = [&reached[..], &with_work].concat();
    let needs = Needs {
        stages,
        served,
        name: &one.name,
        serves: &one.serves,
        attach: &attach,
        is_copy: one.copy.is_some(),
        facts: &facts,
        reached: &conditions,
        span: one.head,
    };
    let names: Vec<&str> = list.iter().map(|a| &*algorithm.axes[*a as usize].name).collect();
    let asked = needs.asked(diags)?;
    if let (Some(reader), Some(leaf)) = (asked.beside_terms, idle::loop_of_terms(&stages[parent], &attach)) {
        diags.report(one.ended(&stages[reader].name, &stages[parent].domain.axes[leaf].name));
        return None;
    }
    let idle = idle::lacks_terms(&stages[parent], &attach, &reached);
    if let (Some(reader), Some(axis)) = (asked.beside_terms, idle) {
        let axis = &stages[parent].domain.axes[axis].name;
        diags.report(one.not_in_terms(&stages[reader].name, axis, owner));
        return None;
    }
    if let Some(reader) = asked.wider.map(|reader| &stages[reader])
        && let Some(axis) = idle::lacks_work(reader.owner, &stages[parent], &attach, &reached)
    {
        let axis = &stages[parent].domain.axes[axis].name;
        diags.report(one.not_in_all(&reader.name, axis, (owner, reader.owner)));
        return None;
    }
    let ops = Chosen::of(one.ops);
    let layout = laid_out(&ops, &names, |way| needs.region(&asked, &domain, way), &facts);
    let (region, run) = match layout {
        Ok(found) => found,
        Err(NotATile::NotFlat) => {
            let problem = "what is asked for is no run of elements in row-major order";
            let help = Some("`region cover;` or `region exact;` keeps a box");
            diags.report(NoSuchRegion { stage: one.name.clone(), problem, help, span: ops.span(one.head) });
            return None;
        }
        Err(problem) => {
            needs.refuse(&problem, diags);
            return None;
        }
    };
    let groups = asked.apart(region.groups);
    let Some(groups) = groups else {
        no_instance("one read asks for several boxes there, which cannot be told apart", stages, diags);
        return None;
    };
    let mut placed = Vec::with_capacity(groups.len());
    for (group, reads) in groups {
        let about = About {
            one,
            attach: &attach,
            program: &program,
            facts: &facts,
            reached: &conditions,
            domain: &domain,
            chosen: &ops,
            run,
        };
        let mut stage = about.stage(&group, stages, diags)?;
        stage.reads = reads;
        stage.ring = ring;
        placed.push(stage);
    }
    Some(placed)
}

/// What an instance of a stage is made from.
struct About<'a> {
    one: &'a Inner<'a>,
    attach: &'a Attach,
    program: &'a Program,
    facts: &'a Facts,
    /// At least 0 where its place is reached.
    reached: &'a [Expr],
    /// The range of each axis.
    domain: &'a [(Expr, Expr)],
    /// What the ops say of the region.
    chosen: &'a Chosen<'a>,
    /// The run of elements that it is.
    run: Option<Run<'a>>,
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
    fn stage(&self, group: &Group, stages: &[Stage], diags: &mut Diagnostics) -> Option<Stage> {
        let Self { one, attach, program, facts, reached, domain, chosen, run } = *self;
        let algorithm = &program.algorithm;
        let list = &algorithm.axis_lists[algorithm.equations[one.equation].axes.range()];
        let mut roots = Roots::default();
        // Without one of these more is computed than is asked for.
        let mut limits: Vec<Expr> = conditions(&group.limits, facts).into_iter().filter(|e| !is_lost(e)).collect();
        let limits_lost = limits.len() < group.limits.len();
        let mut coordinates = Vec::new();
        let mut indices: Vec<Option<Expr>> = vec![None; list.len()];
        for (number, coordinate) in group.axes.iter().enumerate() {
            let root = roots.next();
            let constant = facts.upper_bound(&coordinate.bound).map(|most| Expr::constant(most.max(1)));
            let is_global = one.place == Place::Global;
            let of_sizes = is_global.then(|| self.of_sizes(&coordinate.bound)).flatten();
            let all = || is_global.then(|| self.of_sizes(&around(stages, attach, &coordinate.bound))).flatten();
            let Some(most) = of_sizes.or(constant).or_else(all) else {
                let names = |v: u32| program.dim_name(v as u16).to_owned();
                let bare = coordinate.bound.as_var();
                diags.report(UnboundedBuffer {
                    copy: one.name.clone(),
                    axis: algorithm.axes[list[coordinate.dims[0]] as usize].name.to_string(),
                    extent: coordinate.bound.show(&names),
                    fact: bare.filter(|v| program.is_nameable(*v)).map(|v| format!("{} <= 4096", names(v))),
                    place: one.place,
                    global: one.place != Place::Global && !one.fetches && self.of_sizes(&coordinate.bound).is_some(),
                    span: one.head,
                });
                return None;
            };
            // The row-major number of an element, from its indices.
            let row_major = coordinate.dims.iter().fold(Expr::constant(0), |number, d| {
                let index = Family::PLACEHOLDER.expr(*d);
                if coordinate.dims.len() == 1 {
                    return index;
                }
                let (lower, upper) = &domain[*d];
                number.mul(&upper.sub(lower)).add(&index.sub(lower))
            });
            let distance = row_major.sub(&coordinate.start);
            let (dims, start, step) = (coordinate.dims.clone(), facts.normal(&coordinate.start), coordinate.step);
            coordinates.push(Along { dims, start, step, distance, most });
            let at = coordinate.start.add(&root.scale(coordinate.step));
            // Digits in row-major order, innermost first.
            let mut rest = at;
            for (n, d) in coordinate.dims.iter().enumerate().rev() {
                let (lower, upper) = &domain[*d];
                let digit = if n == 0 {
                    rest.clone()
                } else {
                    let size = upper.sub(lower);
                    let digit = rest.modulo(&size);
                    rest = rest.floor_div(&size);
                    digit
                };
                indices[*d] = Some(if coordinate.dims.len() == 1 { digit } else { digit.add(lower) });
            }
            let names = coordinate.dims.iter().map(|d| algorithm.axes[list[*d] as usize].name.to_string());
            let into = run.filter(|_| run_of(group) == Some(number)).and_then(|run| run.name);
            let called = into.map(|into| NewAxis { name: into.text.clone(), span: into.span });
            let name = called.unwrap_or_else(|| NewAxis {
                name: names.collect::<Vec<_>>().join("·"),
                span: program.axis_spans[list[coordinate.dims[0]] as usize],
            });
            roots.axes.push((name, facts.normal(&coordinate.bound), AxisKind::Data));
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
        if chosen.is(ast::RegionKind::Exact) {
            let has_vector = stage.domain.leaves.iter().any(|l| stage.domain.axes[*l].binding == Binding::Vector);
            let problem = match (is_known, has_vector && !members.is_empty()) {
                (false, _) => Some("which elements of the box are asked for is not known"),
                (_, true) => Some("lanes of a vector are computed together, whether or not all are asked for"),
                _ => None,
            };
            if let Some(problem) = problem {
                let (stage, help) = (one.name.clone(), Some("`region cover;` computes the whole box"));
                diags.report(NoSuchRegion { stage, problem, help, span: chosen.span(one.head) });
                return None;
            }
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
            Place::Shared => stage.layout = layout::of(&stage, ops, diags)?,
            Place::Registers => layout::refuse(&one.name, "registers", ops, diags),
            Place::Global => {
                layout::refuse(&one.name, "global memory", ops, diags);
                stage.layout = layout::natural(&stage);
            }
        }
        stage.fetches = one.fetches;
        Some(stage)
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

/// Whether the loops of a stage are those of a unit: such units are given different iterations, or own instances.
fn has_units(unit: Unit, stage: &Stage) -> bool {
    let axes = &stage.domain.axes;
    let bindings = || stage.domain.leaves.iter().map(|leaf| axes[*leaf].binding);
    let bound = bindings().position(|binding| Unit::of(binding) == Some(unit));
    // Inside of other groups of threads, several units have one number.
    let is_other = |binding| matches!(binding, Binding::Part(_)) && Unit::of(binding) == Some(Unit::Thread);
    bound.is_some_and(|at| !bindings().take(at).any(is_other)) || stage.owner == unit
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

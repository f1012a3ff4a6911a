//! The stages that are computed inside the loops of others: what their clauses say, in which order they are looked at,
//! and what domain each gets.
//!
//! A stage is looked at when all that may read it has been: its region is what they ask for.

use std::borrow::Cow;

use tilewright_kernel::algorithm::{Algorithm, Source};
use tilewright_sorted::SortedSet;

use super::asked::Asked;
use super::attach::{self, Attach, Needs};
use super::fused_output::may_hold;
use super::instance::About;
use super::region_ops::{Chosen, laid_out};
use super::{Stage, buffers, idle, index_of_dims, like_sum};
use crate::diag::Diagnostics;
use crate::diag::codes::{Internal, NoInstance, NoPlace, NoSuchRegion, NotSupportedYet};
use crate::domain::{AxisId, Binding, Unit};
use crate::extent::{Expr, Facts};
use crate::program::Program;
use crate::region::NotATile;
use crate::source::ast::Place;
use crate::source::{Span, ast};

pub(super) const TOO_LONG: &str =
    "what is read there depends on the loops around in a way that is too long to write down";

/// A stage that is still to be placed.
pub(super) struct Inner<'a> {
    pub program: &'a Program,
    pub equation: usize,
    pub name: String,
    /// The staged copy that it is.
    pub copy: Option<usize>,
    /// What reads take from it.
    pub serves: Vec<Source>,
    pub place: Place,
    pub fetches: bool,
    ring: Option<(&'a ast::Expr, Span)>,
    /// Who owns an instance, if that is said.
    owner: Option<Unit>,
    at: &'a ast::AxisRef,
    ops: Cow<'a, [ast::Op]>,
    pub head: Span,
}

impl Inner<'_> {
    /// Whether an instance is a tile of tensor cores: its elements are dealt out as these have them, or they read it,
    /// or it is like another one that is, or threads fetch it for one.
    fn is_tile(&self, stages: &[Stage], sources: &[SortedSet<Source>]) -> bool {
        let is_like = |name: &ast::Name| stages.iter().any(|s| s.name == name.text && s.is_tile);
        let deals = |op: &ast::Op| {
            matches!(op.kind, ast::OpKind::Mma { .. } | ast::OpKind::Fragment { .. }) || op.model().is_some_and(is_like)
        };
        let reads = |s: &Stage| {
            let is_one = s.product.is_some() || self.fetches && s.is_tile;
            is_one && self.serves.iter().any(|own| sources[s.equation].contains(own))
        };
        self.ops.iter().any(deals) || stages.iter().any(reads)
    }

    /// That its clause names a place where it cannot stand, and where it could.
    pub fn cannot_stand(&self, problem: &str, known: Vec<String>) -> NoInstance {
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
    fn not_in_all(&self, reader: &Stage, axis: &str, owner: Unit) -> NoInstance {
        let (unit, wider, name) = (owner.name(), reader.owner.name(), &reader.name);
        let problem = format!(
            "every {unit} of a {wider} computes `{name}`, which reads it: a {unit} without an iteration of `{axis}` has no instance"
        );
        let per = if owner == Unit::Cta { "cta" } else { unit };
        let axes = &reader.domain.axes;
        let divides = |leaf: &AxisId| Unit::of(axes[*leaf].binding).is_some_and(|u| u > reader.owner && u <= owner);
        let instead = match reader.domain.leaves.iter().any(divides) {
            // It needs them all.
            true => format!("compute what `{name}` reads under another name, in a loop of `{name}`"),
            false => format!("write `per {per}` for `{name}`, too"),
        };
        NoInstance { instead: Some(instead), ..self.cannot_stand(&problem, Vec::new()) }
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
        ops: like_sum::written_out(program, (equation, clauses.per.as_ref()), ops),
        head,
    })
}

/// Places every stage of `inner`, readers first.
pub(super) fn place(mut inner: Vec<Inner<'_>>, served: &[Source], stages: &mut Vec<Stage>, diags: &mut Diagnostics) {
    let Some(algorithm) = inner.first().map(|one| &one.program.algorithm) else { return };
    let sources: Vec<SortedSet<Source>> =
        (0..algorithm.equations.len()).map(|equation| attach::sources(algorithm, equation, served)).collect();
    while !inner.is_empty() {
        let ready: Vec<usize> = (0..inner.len()).filter(|at| is_ready(&inner, *at, stages, &sources)).collect();
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
        match placed(&one, (served, &sources), stages, diags) {
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

/// Whether all that a stage depends on has been placed. `sources` is what each equation reads.
fn is_ready(inner: &[Inner<'_>], at: usize, stages: &[Stage], sources: &[SortedSet<Source>]) -> bool {
    let one = &inner[at];
    let reads = |n: usize| {
        // Copies of one tensor do not take it from each other.
        let both_copies = one.copy.is_some() && inner[n].copy.is_some() && one.serves == inner[n].serves;
        !both_copies && one.serves.iter().any(|s| sources[inner[n].equation].contains(s))
    };
    let models = one.ops.iter().filter_map(ast::Op::model).map(|stage| &stage.text);
    let mut needed = models.chain([&one.at.stage.text]);
    stages.iter().any(|s| s.name == one.at.stage.text)
        && !(0..inner.len()).any(|n| n != at && reads(n))
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

impl Inner<'_> {
    /// Reports that it cannot stand in the loop that it names, and which other loops of that stage there are.
    fn no_instance(&self, problem: &str, parent: &Stage, diags: &mut Diagnostics) {
        let axes = parent.domain.leaves.iter().map(|l| &parent.domain.axes[*l]);
        // Not the place itself.
        let axes = axes.filter(|a| a.name != self.at.axis.text);
        let known = axes.filter(|a| may_hold(a.binding));
        let known = known.map(|a| format!("{}.{}", parent.name, a.name)).collect();
        diags.report(self.cannot_stand(problem, known));
    }

    /// Its place in the loops of the stage with the position `at`; none after a report that it cannot stand there.
    fn attach(&self, at: usize, stages: &[Stage], diags: &mut Diagnostics) -> Option<Attach> {
        let parent = &stages[at];
        let Some(leaf) = parent.domain.leaf(&self.at.axis.text) else {
            self.no_instance("the stage has no loop of that name", parent, diags);
            return None;
        };
        let owner = owner(self, parent, leaf);
        let binding = parent.domain.axes[leaf].binding;
        let belongs =
            format!("an instance belongs to {} {}", if owner == Unit::Cta { "the" } else { "a" }, owner.name());
        let bad = match Unit::of(binding) {
            _ if binding == Binding::Vector => Some("the lanes of a vector are one access".to_owned()),
            Some(unit) if unit > owner => {
                let threads = if owner == Unit::Warp { "lanes" } else { "threads" };
                Some(format!("{belongs}, and its {threads} run that axis side by side"))
            }
            _ if parent.owner > owner => {
                Some(format!("{belongs}, and each {} has loops of its own there", parent.owner.name()))
            }
            _ => None,
        };
        if self.fetches && bad.is_none() && parent.owner == Unit::Thread {
            let problem = "all threads of the block wait together for what they fetch, and each thread has loops of its own there";
            let instead = "attach it at a loop of the block, or remove `via cp_async`: the thread loads it".to_owned();
            diags.report(NoInstance { instead: Some(instead), ..self.cannot_stand(problem, Vec::new()) });
            return None;
        }
        let attach = Attach::new(at, parent, leaf, owner);
        let is_other = parent.beside.as_ref().is_some_and(|b| attach.loops < b.loops);
        let other = "that loop is the one of the output that it stands beside: name it there";
        if let Some(problem) = bad.or(is_other.then(|| other.to_owned())) {
            self.no_instance(&problem, parent, diags);
            return None;
        }
        if matches!(owner, Unit::Warpgroup | Unit::Warp) && !has_units(owner, parent) {
            let unit = owner.name();
            let problem = format!("{belongs}, and no axis around it is bound to {unit}s");
            let instead = format!("leave `per {unit}` out, or bind an axis of the stage that has the loop to {unit}s");
            diags.report(NoInstance { instead: Some(instead), ..self.cannot_stand(&problem, Vec::new()) });
            return None;
        }
        Some(attach)
    }

    /// The range of each axis of its equation.
    fn domain(&self, algorithm: &Algorithm, facts: &Facts) -> Option<Vec<(Expr, Expr)>> {
        let list = &algorithm.axis_lists[algorithm.equations[self.equation].axes.range()];
        let range = |axis: &u32| {
            let axis = &algorithm.axes[*axis as usize];
            let (lower, upper) = (index_of_dims(algorithm, axis.lower)?, index_of_dims(algorithm, axis.upper)?);
            Some((facts.normal(&lower), facts.normal(&upper)))
        };
        list.iter().map(range).collect()
    }

    /// Why what its readers ask for may not be there where its place is, or where units have no work, if so.
    fn missing(&self, asked: &Asked, attach: &Attach, reached: &[Expr], stages: &[Stage]) -> Option<NoInstance> {
        let parent = &stages[attach.stage];
        let name = |leaf: AxisId| &parent.domain.axes[leaf].name;
        if let (Some(reader), Some(leaf)) = (asked.beside_terms, idle::loop_of_terms(parent, attach)) {
            return Some(self.ended(&stages[reader].name, name(leaf)));
        }
        if let (Some(reader), Some(axis)) = (asked.beside_terms, idle::lacks_terms(parent, attach, reached)) {
            return Some(self.not_in_terms(&stages[reader].name, name(axis), attach.owner));
        }
        let (reader, axis) = asked.wider?;
        let reader = &stages[reader];
        Some(self.not_in_all(reader, name(axis), attach.owner))
    }
}

fn placed(
    one: &Inner<'_>,
    (served, sources): (&[Source], &[SortedSet<Source>]),
    stages: &[Stage],
    diags: &mut Diagnostics,
) -> Option<Vec<Stage>> {
    let at = stages.iter().position(|s| s.name == one.at.stage.text)?;
    let parent = &stages[at];
    let attach = one.attach(at, stages, diags)?;
    let host = (parent, attach.leaf);
    let ring = buffers::ring(one.program, &parent.facts, host, (&one.name, one.place), one.ring, diags)?;
    let Some((program, facts)) = attach::within(parent, &attach) else {
        one.no_instance("that loop has no iteration for any size", parent, diags);
        return None;
    };
    let algorithm = &program.algorithm;
    let domain = one.domain(algorithm, &facts)?;
    // Outputs beside the one that has the loops come there where that one has nothing to do.
    let is_shared = stages.iter().filter_map(|s| s.beside.as_ref()).any(|b| b.sees(&attach, parent));
    let reached = if is_shared { Some(Vec::new()) } else { attach::reached(parent, &attach, &facts) };
    let Some(reached) = reached else {
        // Of loops that a refused op would have made, that is said already.
        if !parent.domain.is_poisoned() {
            one.no_instance(TOO_LONG, parent, diags);
        }
        return None;
    };
    // Blocks of a cluster come where others wait for them.
    let with_work = idle::units_with_work(attach.owner, one.fetches, (at, &attach), stages, &facts);
    let conditions = [&reached[..], &with_work].concat();
    let needs = Needs {
        stages,
        served,
        sources,
        name: &one.name,
        serves: &one.serves,
        attach: &attach,
        is_copy: one.copy.is_some(),
        facts: &facts,
        reached: &conditions,
        span: one.head,
        at: one.at.span,
    };
    let asked = needs.asked(diags)?;
    if let Some(missing) = one.missing(&asked, &attach, &reached, stages) {
        diags.report(missing);
        return None;
    }
    let list = &algorithm.axis_lists[algorithm.equations[one.equation].axes.range()];
    let names: Vec<&str> = list.iter().map(|a| &*algorithm.axes[*a as usize].name).collect();
    let ops = Chosen::of(&one.ops);
    let parts = needs.parts(&asked, &domain, ops.may_be_run(&names));
    let (region, run) = match parts.and_then(|parts| laid_out(&ops, &names, &parts, &facts)) {
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
    let Some(groups) = asked.apart(region.groups) else {
        one.no_instance("one read asks for several boxes there, which cannot be told apart", parent, diags);
        return None;
    };
    let about = About {
        one,
        attach: &attach,
        program: &program,
        facts: &facts,
        reached: &conditions,
        domain: &domain,
        chosen: &ops,
        run,
        is_tile: one.is_tile(stages, sources),
    };
    let mut placed = Vec::with_capacity(groups.len());
    for (group, reads) in groups {
        let stage = about.stage(&group, stages, diags)?;
        placed.push(Stage { reads, ring, ..stage });
    }
    Some(placed)
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

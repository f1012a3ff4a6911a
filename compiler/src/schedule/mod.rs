//! HOW: the schedule of each stage, applied. One [`Stage`] for each thing that is computed in a place of its own, be it
//! an output, an intermediate or a copy: its iteration domain after every op, which part of the machine runs each leaf,
//! where it stands, who owns an instance, and where its elements are.
//!
//! A refused op leaves poisoned axes that satisfy every later check, so that one mistake gives one message. What
//! the compiler does not do yet (engines, …) is answered with [`NotSupportedYet`].
//!
//! | file | what it knows |
//! | --- | --- |
//! | `stage`, `roots` | one scheduled equation; the axes that it starts from |
//! | `compute_at`, `instance` | stages inside the loops of others: what their clauses say; what an instance is made from |
//! | `attach`, `asked`, `region_ops` | where each stands, and the region that is needed there; what readers ask for; what its ops say of that |
//! | `apply`, `like`, `like_sum`, `loops` | the ops of one schedule; those of another one replayed, or of a sum of products repeated; the order of loops |
//! | `neighbours` | ops that give neighbouring elements to neighbouring threads |
//! | `online` | loops that run twice, for an extreme and for the sums that follow it |
//! | `range` | ranges that other axes decide |
//! | `fragment` | the axes of products of tensor cores |
//! | `accesses`, `vector` | every access of a stage, as expressions; which lanes of a vectorised axis are one access |
//! | `launch`, `levels`, `distribution` | what `launch` asks for; digits of a thread's number; who runs each iteration |
//! | `cta_rank`, `raster`, `roles` | blocks in clusters; their order; ranges of warps |
//! | `fused_output`, `split_k_stage` | outputs beside outputs; stages after a reduction across blocks |
//! | `combine`, `atomic` | which reductions units combine; which ones blocks combine by atomic operations |
//! | `ownership`, `held_reads` | which thread holds an element in which register; that readers hold what they read |
//! | `buffers`, `buffer_layout` | rings and owners of buffers; where elements lie in them |
//! | `idle`, `uneven` | units that have nothing to do; units that meet for a different number of times |

pub mod accesses;
mod apply;
mod asked;
mod atomic;
mod attach;
mod buffer_layout;
mod buffers;
mod combine;
mod compute_at;
pub mod cta_rank;
mod distribution;
mod fragment;
mod fused_output;
mod held_reads;
mod idle;
mod instance;
mod launch;
mod levels;
mod like;
mod like_sum;
mod loops;
pub mod neighbours;
mod online;
mod ownership;
mod range;
mod raster;
mod region_ops;
mod roles;
mod roots;
mod split_k_stage;
mod stage;
#[cfg(test)]
pub(crate) mod tests;
mod uneven;
pub mod vector;

use apply::UNITS;
pub(crate) use apply::literal;
pub use atomic::atomic_word;
pub use attach::{Attach, ancestors, chain_under, facts_within};
pub use buffer_layout::{BufferLayout, Columns, LaidOut, SLOT_ALIGNMENT, Spot};
pub use buffers::MOST_SLOTS;
use distribution::BLOCK_LIMIT;
pub use distribution::Distribution;
pub use fragment::{Mma, rows_of};
pub use fused_output::Beside;
pub use held_reads::check_reads;
pub use levels::{Level, unit_name};
pub use loops::check_loops;
pub use ownership::{Digit, Holder, Reads, Register, digits, holders, leaves_at, register, register_loops, registers};
pub use range::extreme;
pub(crate) use range::is_of_terms;
pub use raster::{Groups, Raster};
pub(crate) use roles::role_of;
pub use roles::{Role, clauses, role_name};
use roots::{Roots, Unscheduled, outermost_reductions};
pub use split_k_stage::{after_arrival, place_of};
pub use stage::{Along, Reduced, Stage};
pub use uneven::uneven;

use tilewright_kernel::Algorithm;
use tilewright_kernel::algorithm::{AxisId as AlgorithmAxis, Index, IndexId, Source, Value, ValueId};
use tilewright_sorted::SortedSet;

use crate::diag::Diagnostics;
use crate::diag::codes::{MisplacedUnit, NotSupportedYet, ReducedAgain, UnitMisfit, UnscheduledReduction};
use crate::domain::{AxisKind, Symbolic, Unit};
use crate::extent::{Expr, Facts};
use crate::program::Program;
use crate::schedule::accesses::{Accesses, StageRead};
use crate::source::ast::Place;
use crate::source::{Span, ast};

/// Every stage of a kernel and the block that runs them.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The stages, in dependency order.
    pub stages: Vec<Stage>,
    /// Threads of a block.
    pub threads: u32,
    /// The roles of the launch.
    pub roles: Vec<Role>,
}

impl Plan {
    /// The stage that a read of the stage with a position takes; the innermost, if it sees several.
    pub fn taken(&self, stage: usize, read: &StageRead) -> Option<&Stage> {
        let at = |n: usize| self.stages.get(n);
        self.stages.get(taken(&at, stage, (read.source, read.value), read.in_terms)?)
    }

    /// What the stage with a position accesses; none if inlining passes [`INLINE_LIMIT`](crate::program::INLINE_LIMIT).
    pub fn accesses(&self, stage: usize, symbolic: &Symbolic) -> Option<Accesses> {
        let (at, own) = (|n: usize| self.stages.get(n), &self.stages[stage]);
        let served = |source, read, in_terms| taken(&at, stage, (source, read), in_terms).is_some();
        accesses::collect_served(&own.program, &own.facts, own, symbolic, &served)
    }
}

/// The position of the stage that a read of the stage with a position takes; the innermost, if it sees several: a copy
/// before what it copies, and of copies the one that was placed first, which has the read in its region (`attach`).
/// `in_terms` says whether it is in the terms of the reader's reduction: what stands in a loop over these is there for
/// nothing else. `stage` gives them by position.
pub fn taken<'a>(
    stage: &dyn Fn(usize) -> Option<&'a Stage>,
    reader: usize,
    (source, read): (Source, ValueId),
    in_terms: bool,
) -> Option<usize> {
    let own = stage(reader)?;
    let is_there = |s: &Stage| s.attach.as_ref().is_none_or(|a| idle::is_there(a, (reader, own), in_terms));
    // Readers were placed before what they read: a copy comes before what it copies, and holds it nearer to the
    // reader.
    let is_other = |s: &Stage| !(s.copy.is_some() && own.copy.is_some() && s.serves == own.serves);
    let seen = own.sees.iter().filter_map(|n| Some((*n, stage(*n)?)));
    let seen = seen.filter(|(_, s)| s.is_for(source, read) && is_other(s) && is_there(s));
    seen.min_by_key(|(n, s)| s.nearness(*n)).map(|(n, _)| n)
}

/// Applies the schedules of a kernel. Stages with a refused op are left out; `diags` says so.
pub fn build(program: &Program, facts: &Facts, diags: &mut Diagnostics) -> Option<Plan> {
    let mut found = Diagnostics::new();
    unsupported(program, &mut found);
    let launch = launch::launch(program, facts, &mut found);
    let inner = compute_at::inner(program, &mut found);
    let served: Vec<Source> = inner.iter().filter(|i| i.copy.is_none()).flat_map(|i| i.serves.clone()).collect();
    let mut stages = Vec::new();
    // Outputs that stand beside others come after these.
    let place = |equation: usize| schedule_of(program, equation).and_then(|s| s.clauses.at.as_ref());
    let mut order: Vec<usize> = (0..program.algorithm.equations.len()).collect();
    order.sort_by_key(|equation| place(*equation).is_some());
    for equation in order {
        let components = &program.algorithm.components[program.algorithm.equations[equation].components.range()];
        let is_output = components.iter().any(|c| c.parameter.is_some());
        let inlined = program.inlined.iter().find(|i| usize::from(i.equation) == equation);
        if is_output {
            if let Some(inlined) = inlined {
                let construct = format!("inline {}", components[0].name);
                let instead = Some("an output is computed where it is stored; remove the statement".to_owned());
                found.report(NotSupportedYet { construct, span: inlined.span, instead });
            }
            let at = place(equation);
            let others = if at.is_some() { &stages[..] } else { &[] };
            let mut own = stage(program, facts, equation, others, &mut found);
            if let (Some(own), Some(at)) = (&mut own, at) {
                fused_output::place(own, at, &mut stages, &mut found);
            }
            stages.extend(own);
            check_outputs_read(program, equation, &served, &mut found);
        } else if inlined.is_none() {
            check_intermediate(program, equation, &mut found);
        }
    }
    if !found.has_errors() {
        compute_at::place(inner, &served, &mut stages, &mut found);
    }
    if !found.has_errors() {
        online::check(program, &stages, &mut found);
    }
    let roles = roles::roles(program, facts, launch.threads, &mut found);
    if !found.has_errors() {
        roles::assign(program, &roles, &mut stages, &mut found);
    }
    let threads = distribution::distribute(launch, &roles, &mut stages, &mut found);
    let mut plan = threads.filter(|_| !found.has_errors()).map(|threads| Plan { stages, threads, roles });
    if let Some(plan) = &mut plan {
        roles::check(plan, &mut found);
        if !found.has_errors() {
            held_reads::share(plan);
            buffers::columns(plan);
        }
    }
    let clean = !found.has_errors();
    diags.append(found);
    plan.filter(|_| clean)
}

/// Reports what the language has and this compiler does not.
fn unsupported(program: &Program, diags: &mut Diagnostics) {
    for (at, index) in program.algorithm.indices.iter().enumerate() {
        if wide_arithmetic(&program.algorithm, *index) {
            let construct = "arithmetic on a 64-bit index read from memory".to_owned();
            let instead = Some("cast it to `i32` first, or use it alone".to_owned());
            diags.report(NotSupportedYet { construct, span: program.index_spans[at], instead });
        }
    }
    for (at, unit) in program.units.iter().enumerate() {
        let first = program.units[..at].iter().find(|other| other.name.text == unit.name.text);
        let problem = match first {
            _ if UNITS.contains(&unit.name.text.as_str()) => UnitMisfit::Taken(None),
            Some(first) => UnitMisfit::Taken(Some(first.name.span)),
            None if unit.domain.len() != unit.shape.len() => {
                UnitMisfit::Lengths { domain: unit.domain.len(), shape: unit.shape.len() }
            }
            None if levels::defined(unit).is_none() => UnitMisfit::Entry,
            None => continue,
        };
        let (unit, span) = (unit.name.text.clone(), unit.span);
        let (axis, role, around, possible) = (None, None, None, None);
        diags.report(MisplacedUnit { unit, axis, problem, threads: 0, span, role, around, possible });
    }
    for schedule in &program.schedules {
        let equation = &program.algorithm.equations[usize::from(schedule.equation)];
        let is_output = program.algorithm.components[equation.components.range()].iter().any(|c| c.parameter.is_some());
        if !is_output {
            continue; // see `tree`
        }
        let clauses = &schedule.ast.clauses;
        let mut refuse = |construct: &str, span: Span| {
            diags.report(NotSupportedYet { construct: construct.to_owned(), span, instead: None });
        };
        if let Some(place) = clauses.place.filter(|p| p.value != Place::Global) {
            refuse(&format!("in {}", place.value), place.span);
        }
        if let Some(per) = &clauses.per {
            refuse("per", per.span);
        }
        if let Some(ring) = &clauses.ring {
            refuse("ring", ring.span);
        }
        if let Some(via) = clauses.via {
            refuse(&format!("via {}", via.value), via.span);
        }
    }
}

/// Whether an index does arithmetic on something read from memory that might not fit 64 bits.
fn wide_arithmetic(algorithm: &Algorithm, index: Index) -> bool {
    let (Index::Add(a, b) | Index::Sub(a, b) | Index::Mul(a, b)) = index else { return false };
    let mut read = Vec::new();
    algorithm.index_values(a, &mut read);
    algorithm.index_values(b, &mut read);
    let literal = |i: IndexId| match algorithm.indices[i as usize] {
        Index::Literal(c) => c.unsigned_abs() > 1 << 24,
        _ => false,
    };
    let wide = |v: &ValueId| algorithm.types[*v as usize].bytes() == 8;
    read.iter().any(wide) || (!read.is_empty() && (literal(a) || literal(b)))
}

/// An intermediate without a schedule is computed where it is read; a reduction would be repeated for every reader.
fn check_intermediate(program: &Program, equation: usize, diags: &mut Diagnostics) {
    let algorithm = &program.algorithm;
    let components = algorithm.equations[equation].components.range();
    if program.schedules.iter().any(|s| usize::from(s.equation) == equation) {
        return;
    }
    for component in components {
        let mut reductions = Vec::new();
        outermost_reductions(algorithm, algorithm.components[component].value, &mut reductions);
        if let Some(value) = reductions.first() {
            // The first output that reads it, at the innermost axis of its blocks, or else at its outermost one: where
            // it would be computed once for all inner ones.
            let reads = |other: &usize| computed_at_reads(algorithm, *other, &[]).contains(&component);
            let outputs = (0..algorithm.equations.len()).filter(|e| {
                algorithm.components[algorithm.equations[*e].components.range()].iter().any(|c| c.parameter.is_some())
            });
            let reader = outputs.into_iter().find(reads).and_then(|reader| {
                let equation = &algorithm.equations[reader];
                let axis = algorithm.axis_lists[equation.axes.range()].first()?;
                let name = &algorithm.components[equation.components.range().start].name;
                let axis = &algorithm.axes[*axis as usize].name;
                let written = program.schedules.iter().find(|s| usize::from(s.equation) == reader);
                Some((name.to_string(), place_for_rows(written.map_or(&[], |s| &s.ast.ops), axis)?))
            });
            diags.report(UnscheduledReduction {
                reader,
                name: algorithm.components[component].name.to_string(),
                span: program.value_spans[*value as usize],
                head: program.component_spans[component],
            });
            return;
        }
    }
}

/// Of a schedule with these ops, the axis at which a stage for each row would stand: the last one that is given to
/// blocks, or the outermost axis of the equation, where no op has replaced it.
fn place_for_rows(ops: &[ast::Op], outermost: &str) -> Option<String> {
    let of_blocks = ops.iter().rev().find_map(|op| match &op.kind {
        ast::OpKind::Bind { axes, unit, .. } if unit.text == "grid" => axes.last(),
        _ => None,
    });
    let is_replaced = |op: &ast::Op| match &op.kind {
        ast::OpKind::Split { axis, .. } | ast::OpKind::Resize { axis, .. } => axis.text == outermost,
        ast::OpKind::Merge { axes, .. } => axes.iter().any(|axis| axis.text == outermost),
        ast::OpKind::Swizzle { x, y, .. } => [x, y].iter().any(|axis| axis.text == outermost),
        _ => false,
    };
    let is_there = || !ops.iter().any(is_replaced);
    of_blocks.map(|axis| axis.text.clone()).or_else(|| is_there().then(|| outermost.to_owned()))
}

/// The component that a value reads, if it is computed by the kernel.
fn read_component(algorithm: &Algorithm, value: ValueId) -> Option<usize> {
    match algorithm.values[value as usize] {
        Value::Read { source: Source::Equation { equation, component }, .. } => {
            let components = algorithm.equations.get(usize::from(equation))?.components.range();
            components.clone().nth(usize::from(component))
        }
        _ => None,
    }
}

/// The components that a stage computes where it reads them, outputs and intermediates, in the order of its reads; also
/// those that are read through others.
pub fn computed_at_reads(algorithm: &Algorithm, equation: usize, served: &[Source]) -> Vec<usize> {
    let mut seen = Vec::new();
    let mut open: Vec<usize> = algorithm.equations[equation].components.range().collect();
    while let Some(component) = open.pop() {
        let mut values = vec![algorithm.components[component].value];
        let mut visited = SortedSet::new();
        while let Some(value) = values.pop() {
            if !visited.insert(value) {
                continue;
            }
            values.extend(algorithm.operands(value));
            let held =
                matches!(algorithm.values[value as usize], Value::Read { source, .. } if served.contains(&source));
            if let Some(source) = read_component(algorithm, value).filter(|s| !held && !seen.contains(s)) {
                seen.push(source);
                open.push(source);
            }
        }
    }
    seen
}

/// An output is computed where it is read, as intermediates are; a reduction is repeated for every element of its
/// reader.
fn check_outputs_read(program: &Program, equation: usize, served: &[Source], diags: &mut Diagnostics) {
    let algorithm = &program.algorithm;
    let reader = algorithm.equations[equation].components.range().start;
    for source in computed_at_reads(algorithm, equation, served) {
        let mut reductions = Vec::new();
        outermost_reductions(algorithm, algorithm.components[source].value, &mut reductions);
        if let (Some(_), Some(reduction)) = (algorithm.components[source].parameter, reductions.first()) {
            diags.report(ReducedAgain {
                name: algorithm.components[source].name.to_string(),
                reader: algorithm.components[reader].name.to_string(),
                span: program.value_spans[*reduction as usize],
                head: program.component_spans[reader],
            });
        }
    }
}

/// An index over dimensions alone as an expression; none if it mentions an axis or a value.
pub fn index_of_dims(algorithm: &Algorithm, index: IndexId) -> Option<Expr> {
    range::over(algorithm, index, &[])
}

/// The schedule of an equation.
fn schedule_of(program: &Program, equation: usize) -> Option<&ast::Schedule> {
    program.schedules.iter().find(|s| usize::from(s.equation) == equation).map(|s| &s.ast)
}

/// The domain of an output equation with its ops applied; `others` may be models.
pub(crate) fn stage(
    program: &Program,
    facts: &Facts,
    equation: usize,
    others: &[Stage],
    diags: &mut Diagnostics,
) -> Option<Stage> {
    let algorithm = &program.algorithm;
    let definition = &algorithm.equations[equation];
    let mut roots = Roots::default();
    for axis in &algorithm.axis_lists[definition.axes.range()] {
        roots.add(program, facts, *axis, AxisKind::Data)?;
    }
    let schedule = schedule_of(program, equation);
    let name = algorithm.components[definition.components.range()][0].name.to_string();
    let span = schedule.map_or(program.equation_spans[equation], |s| s.head);
    let ops = schedule.map_or(&[][..], |s| &s.ops);
    buffer_layout::refuse(&name, "global memory", ops, diags);
    let beside = schedule.and_then(|s| s.clauses.at.as_ref()).map(|at| at.stage.text.as_str());
    roots.finish(Unscheduled { program, facts, equation, name, span, ops, others, beside, owner: Unit::Grid }, diags)
}

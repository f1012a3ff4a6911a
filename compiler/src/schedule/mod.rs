//! HOW: the schedule of each stage, applied. One [`Stage`] for each thing that is computed in a place of its own, be it
//! an output, an intermediate or a copy: its iteration domain after every op, which part of the machine runs each leaf,
//! where it stands, who owns an instance, and where its elements are.
//!
//! A refused op leaves poisoned axes that satisfy every later check, so that one mistake gives one message. What
//! the compiler does not do yet (engines, …) is answered with [`NotSupportedYet`].
//!
//! | file | what it knows |
//! | --- | --- |
//! | `compute_at` | stages inside the loops of others: what their clauses say |
//! | `attach`, `region_ops` | where each stands, and the region that is needed there; what its ops say of that |
//! | `apply`, `like`, `loops` | the ops of one schedule; those of another one replayed; the order of loops |
//! | `range` | ranges that other axes decide |
//! | `accesses`, `vector` | every access of a stage, as expressions; which lanes of a vectorised axis are one access |
//! | `levels`, `distribution` | digits of a thread's number; who runs each iteration |
//! | `cta_rank`, `raster`, `ping_pong`, `roles` | blocks in clusters; their order; warpgroups in turn; ranges of warps |
//! | `fused_output`, `split_k_stage` | outputs beside outputs; stages after a reduction across blocks |
//! | `atomic` | which reductions blocks combine by atomic operations |
//! | `ownership` | which thread holds an element in which register |
//! | `buffers`, `layout` | rings and owners of buffers; where elements lie in them |
//! | `idle`, `uneven` | units that have nothing to do; units that meet for a different number of times |

pub mod accesses;
mod apply;
mod atomic;
mod attach;
mod buffers;
mod compute_at;
pub mod cta_rank;
mod distribution;
mod fused_output;
mod idle;
mod instance;
mod layout;
mod levels;
mod like;
mod loops;
mod ownership;
mod ping_pong;
mod range;
mod raster;
mod region_ops;
mod roles;
mod split_k_stage;
mod uneven;
pub mod vector;

use apply::UNITS;
pub(crate) use apply::literal;
pub use atomic::atomic_word;
pub use attach::{Attach, chain_under, facts_within};
pub use buffers::MOST_SLOTS;
use distribution::BLOCK_LIMIT;
pub use distribution::Distribution;
pub use fused_output::Beside;
pub use layout::{Columns, LaidOut, Layout, SLOT_ALIGNMENT, Spot};
pub use levels::{From, Level, unit_name};
pub use loops::check_loops;
pub use ownership::{Digit, Reads, Register, Step, digits, register, register_loops, registers};
pub use ping_pong::Turns;
pub use range::extreme;
pub(crate) use range::is_of_terms;
pub use raster::Raster;
pub(crate) use roles::named;
pub use roles::{Role, role_name};
pub use uneven::uneven;

use std::collections::BTreeSet;

use tilewright_kernel::Algorithm;
use tilewright_kernel::algorithm::{self, AxisId as AlgorithmAxis, Binary, Index, IndexId, Source, Value, ValueId};

use crate::diag::Diagnostics;
use crate::diag::codes::{HiddenAxis, MisplacedUnit, NotSupportedYet, ReducedAgain, UnitMisfit, UnscheduledReduction};
use crate::domain::{AxisId, AxisKind, Binding, Domain, NewAxis, Symbolic, Unit};
use crate::extent::{Expr, Facts, Family, Var};
use crate::kernel_ir::Sharing;
use crate::program::Program;
use crate::region::Fit;
use crate::schedule::accesses::{Accesses, StageRead};
use crate::source::ast::Place;
use crate::source::{Span, ast};
use range::Hull;

/// A coordinate of what an instance of a stage holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Along {
    /// The dimensions of the tensor that it runs along.
    pub dims: Vec<usize>,
    /// Where coordinate 0 lies: an index, or a row-major number if there are several dimensions.
    pub start: Expr,
    /// From one coordinate to the next.
    pub step: i128,
    /// How far an element lies after coordinate 0: over dimensions and [`Family::PLACEHOLDER`], the indices of the
    /// element.
    pub distance: Expr,
    /// Most elements that an instance has along it: a number, but in global memory, where it may depend on sizes.
    pub most: Expr,
}

/// A scheduled equation.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Position in [`Algorithm::equations`].
    pub equation: usize,
    /// Name of its first component.
    pub name: String,
    /// What it sees: to a stage inside loops of others, these are dimensions.
    pub program: Program,
    /// What is known of its dimensions.
    pub facts: Facts,
    /// Where it stands; none for an output, which has blocks of its own.
    pub attach: Option<Attach>,
    /// The output in whose loops it runs, if it is one that has a place there.
    pub beside: Option<Beside>,
    /// The staged copy that it is: a position in [`Program::stages`].
    pub copy: Option<usize>,
    /// What reads take from it, beside a tensor in device memory.
    pub serves: Vec<Source>,
    /// The stages whose results it reads: positions in [`Plan::stages`].
    pub sees: Vec<usize>,
    /// The iteration domain, ops applied.
    pub domain: Domain,
    /// Each axis of the algorithm, over dimensions and the roots of the domain: see [`Family::ROOT`].
    pub indices: Vec<(AlgorithmAxis, Expr)>,
    /// What must hold beside that axes are in bounds, where a region ends before its box does, or the range of a
    /// reduction before its hull does (`is_of_terms`): expressions as in `indices` that are at least 0.
    pub limits: Vec<Expr>,
    /// The elements that are asked for, where these are not all: at one of these lists all expressions, as in `limits`,
    /// are at least 0. Others may be computed, too.
    pub members: Vec<Vec<Expr>>,
    /// The reads that take it, if other stages hold what else is read; none if all do.
    pub reads: Option<Vec<ValueId>>,
    /// The coordinates of an instance, outermost first, which are its first roots; none of an output.
    pub coordinates: Vec<Along>,
    /// What is claimed of them: what they hold beside the elements that are asked for.
    pub fit: Fit,
    /// A bound of the elements of an instance that are asked for, if one is known.
    pub needed: Option<Expr>,
    /// The reduction whose axes are roots: a [`Value::Reduce`] or [`Value::Fold`].
    pub reduction: Option<ValueId>,
    /// The axes that are combined across units.
    pub reduced: Vec<Reduced>,
    /// In which order blocks take the iterations of the grid, if not row after row.
    pub raster: Option<Raster>,
    /// Which units take turns at its main loop.
    pub turns: Option<Turns>,
    /// Where the results live.
    pub place: Place,
    /// Buffers that its instances take in turn; 1 for stages without buffers.
    pub ring: u32,
    /// Of a stage with buffers: where elements of an instance lie in one.
    pub layout: Layout,
    /// Whether it is a copy that threads make by `cp.async`.
    pub fetches: bool,
    /// Who owns an instance.
    pub owner: Unit,
    /// The role that runs it: a position in [`Plan::roles`]; none in a launch without roles.
    pub role: Option<usize>,
    /// Of a stage with buffers: who accesses an element beside the thread that does.
    pub sharing: Sharing,
    /// Leaves bound to units.
    pub distribution: Distribution,
    /// The head of the schedule, or the equation if it has none.
    pub span: Span,
    /// Position of the equation in [`Program::statements`].
    pub statement: usize,
}

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

/// An axis of a reduction whose units combine what they have.
#[derive(Clone, Copy, Debug)]
pub struct Reduced {
    /// The leaf.
    pub axis: AxisId,
    /// How far it reaches: lanes of one warp, threads of a block, blocks of the grid.
    pub by: ast::ReduceBy,
    /// The op.
    pub span: Span,
    /// The word that says how far, if it does.
    pub word: Option<Span>,
}

/// Applies the schedules of a kernel. Stages with a refused op are left out; `diags` says so.
pub fn build(program: &Program, facts: &Facts, diags: &mut Diagnostics) -> Option<Plan> {
    let mut found = Diagnostics::new();
    unsupported(program, &mut found);
    let launch = distribution::launch(program, facts, &mut found);
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
    let roles = roles::roles(program, facts, launch.threads, &mut found);
    if !found.has_errors() {
        roles::assign(program, &roles, &mut stages, &mut found);
    }
    let threads = distribution::distribute(launch, &roles, &mut stages, &mut found);
    let mut plan = threads.filter(|_| !found.has_errors()).map(|threads| Plan { stages, threads, roles });
    if let Some(plan) = &mut plan {
        roles::check(plan, &mut found);
        if !found.has_errors() {
            ownership::check(plan, &mut found);
            ownership::share(plan);
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
            // The first output that reads it, at its outermost axis: where it would be computed once for all inner
            // ones.
            let reads = |other: &usize| computed_at_reads(algorithm, *other, &[]).contains(&component);
            let outputs = (0..algorithm.equations.len()).filter(|e| {
                algorithm.components[algorithm.equations[*e].components.range()].iter().any(|c| c.parameter.is_some())
            });
            let reader = outputs.into_iter().find(reads).and_then(|reader| {
                let equation = &algorithm.equations[reader];
                let axis = algorithm.axis_lists[equation.axes.range()].first()?;
                let name = &algorithm.components[equation.components.range().start].name;
                Some((name.to_string(), algorithm.axes[*axis as usize].name.to_string()))
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
        let mut visited = BTreeSet::new();
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

/// The reductions in a value that are not inside another one.
fn outermost_reductions(algorithm: &Algorithm, value: ValueId, found: &mut Vec<ValueId>) {
    if matches!(algorithm.values[value as usize], Value::Reduce { .. } | Value::Fold { .. }) {
        if !found.contains(&value) {
            found.push(value);
        }
        return;
    }
    for operand in algorithm.operands(value) {
        outermost_reductions(algorithm, operand, found);
    }
}

/// Whether `sought` is computed only on one side of an `if`, or of `&&` and `||`, within `value`: then its reads are
/// proved in bounds only there, and its loops must stay there.
fn is_conditional(algorithm: &Algorithm, value: ValueId, sought: ValueId, inside: bool) -> bool {
    if value == sought {
        return inside;
    }
    match algorithm.values[value as usize] {
        Value::Select(condition, then, otherwise) => {
            is_conditional(algorithm, condition, sought, inside)
                || is_conditional(algorithm, then, sought, true)
                || is_conditional(algorithm, otherwise, sought, true)
        }
        Value::Binary(Binary::And | Binary::Or, first, second) => {
            is_conditional(algorithm, first, sought, inside) || is_conditional(algorithm, second, sought, true)
        }
        _ => algorithm.operands(value).into_iter().any(|v| is_conditional(algorithm, v, sought, inside)),
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
    layout::refuse(&name, "global memory", ops, diags);
    let beside = schedule.and_then(|s| s.clauses.at.as_ref()).map(|at| at.stage.text.as_str());
    roots.finish(Unscheduled { program, facts, equation, name, span, ops, others, beside, owner: Unit::Grid }, diags)
}

/// The root axes of a domain under construction.
#[derive(Clone, Default)]
struct Roots {
    axes: Vec<(NewAxis, Expr, AxisKind)>,
    indices: Vec<(AlgorithmAxis, Expr)>,
    /// What must be at least 0 where the range of a root depends on others.
    limits: Vec<Expr>,
}

/// A stage whose ops are still to be applied.
struct Unscheduled<'a> {
    program: &'a Program,
    facts: &'a Facts,
    equation: usize,
    name: String,
    span: Span,
    ops: &'a [ast::Op],
    others: &'a [Stage],
    /// The output that it is to stand beside.
    beside: Option<&'a str>,
    owner: Unit,
}

impl Roots {
    /// The variable of the next root.
    fn next(&self) -> Expr {
        Family::ROOT.expr(self.axes.len())
    }

    /// A whole axis of the algorithm as a root.
    fn add(&mut self, program: &Program, facts: &Facts, axis: AlgorithmAxis, kind: AxisKind) -> Option<()> {
        let algorithm = &program.algorithm;
        let algorithm::Axis { name, lower, upper } = &algorithm.axes[axis as usize];
        let end = |index: IndexId| {
            // A root of one iteration is 0.
            let only = |v: Var| {
                let extent = &self.axes.get(Family::ROOT.number(v)?)?.1;
                (extent.as_constant() == Some(1)).then(|| Expr::constant(0))
            };
            Some(facts.normal(&range::over(algorithm, index, &self.indices)?.substitute(&only)))
        };
        let extents: Vec<&Expr> = self.axes.iter().map(|(_, extent, _)| extent).collect();
        let index = |lower: &Expr| self.next().add(lower);
        let Hull { lower, upper, limits } = range::hull(&end(*lower)?, &end(*upper)?, index, &extents)?;
        let (lower, upper) = (facts.normal(&lower), facts.normal(&upper));
        self.limits.extend(limits.iter().map(|e| facts.normal(e)));
        let new = NewAxis { name: name.to_string(), span: program.axis_spans[axis as usize] };
        self.indices.push((axis, self.next().add(&lower)));
        self.axes.push((new, upper.sub(&lower), kind));
        Some(())
    }

    /// Adds the axes of the reduction that a schedule may name, and applies the ops.
    fn finish(mut self, given: Unscheduled<'_>, diags: &mut Diagnostics) -> Option<Stage> {
        let Unscheduled { program, facts, equation, name, span, ops, others, beside, owner } = given;
        let algorithm = &program.algorithm;
        let definition = &algorithm.equations[equation];
        // The only outermost reduction, with bounds that no other axis decides.
        let mut reductions = Vec::new();
        for component in definition.components.range() {
            outermost_reductions(algorithm, algorithm.components[component].value, &mut reductions);
        }
        let unconditional = |value: &ValueId| {
            let components = &algorithm.components[definition.components.range()];
            !components.iter().any(|c| is_conditional(algorithm, c.value, *value, false))
        };
        let reduction = match reductions[..] {
            [only] if unconditional(&only) => {
                let (Value::Reduce { axes: run, .. } | Value::Fold { axes: run, .. }) = algorithm.values[only as usize]
                else {
                    return None;
                };
                let list = &algorithm.axis_lists[run.range()];
                let of_dims = |a: &AlgorithmAxis| {
                    let axis = &algorithm.axes[*a as usize];
                    index_of_dims(algorithm, axis.lower).is_some() && index_of_dims(algorithm, axis.upper).is_some()
                };
                // Nobody says how terms whose range depends on the element are distributed: then a loop takes just
                // these.
                let is_named = |a: &AlgorithmAxis| range::is_named(ops, &algorithm.axes[*a as usize].name);
                let mut roots = self.clone();
                let added = (list.iter().all(of_dims) || list.iter().any(is_named))
                    && list.iter().all(|axis| roots.add(program, facts, *axis, AxisKind::Reduction).is_some());
                if added {
                    self = roots;
                }
                added.then_some(only)
            }
            _ => None,
        };
        let why = match reductions[..] {
            [_] if reduction.is_none() && !unconditional(&reductions[0]) => HiddenAxis::Conditional,
            [_] => HiddenAxis::Range,
            _ => HiddenAxis::Several,
        };
        let axes_of = |value: &ValueId| match algorithm.values[*value as usize] {
            Value::Reduce { axes, .. } | Value::Fold { axes, .. } => &algorithm.axis_lists[axes.range()],
            _ => &[],
        };
        let hidden = reductions.iter().filter(|_| reduction.is_none()).flat_map(axes_of);
        let hidden: Vec<(String, HiddenAxis)> =
            hidden.map(|a| (algorithm.axes[*a as usize].name.to_string(), why.clone())).collect();
        let statement = program.statements.iter().position(|s| *s == span || *s == program.equation_spans[equation]);
        let mut domain = Domain::new(self.axes);
        let roots: Vec<(AlgorithmAxis, AxisId)> =
            self.indices.iter().filter_map(|(a, e)| Some((*a, whole_root(e, &domain)?))).collect();
        let given = apply::Given {
            program,
            facts,
            stage: &name,
            equation,
            roots: &roots,
            hidden,
            others,
            beside,
            owner,
            head: span,
        };
        let apply::Applied { reduced, raster, turns } = apply::ops(given, &mut domain, ops, diags);
        Some(Stage {
            equation,
            name,
            program: program.clone(),
            facts: facts.clone(),
            attach: None,
            beside: None,
            copy: None,
            serves: Vec::new(),
            sees: Vec::new(),
            domain,
            indices: self.indices,
            limits: self.limits,
            members: Vec::new(),
            reads: None,
            coordinates: Vec::new(),
            fit: Fit::Exact,
            needed: None,
            reduction,
            reduced,
            raster,
            turns,
            place: Place::Global,
            ring: 1,
            layout: Layout::new([]),
            fetches: false,
            owner: Unit::Grid,
            role: None,
            sharing: Sharing::Block,
            distribution: Distribution::default(),
            span,
            statement: statement.unwrap_or(0),
        })
    }
}

/// The root that an index runs along, one element a step.
fn whole_root(e: &Expr, domain: &Domain) -> Option<AxisId> {
    let vars = e.vars();
    let mut own = vars.iter().filter_map(|v| Family::ROOT.number(*v));
    let (root, None) = (own.next()?, own.next()) else { return None };
    let rest = e.sub(&Family::ROOT.expr(root));
    (!rest.vars().contains(&Family::ROOT.var(root))).then(|| domain.roots.get(root).copied()).flatten()
}

impl Stage {
    /// The axes of the algorithm that are roots.
    pub fn root_axes(&self) -> Vec<(AlgorithmAxis, AxisId)> {
        self.indices.iter().filter_map(|(a, e)| Some((*a, whole_root(e, &self.domain)?))).collect()
    }

    /// Whether it is an output with blocks of its own: it stands in no loop of another stage.
    pub fn has_blocks(&self) -> bool {
        self.attach.is_none() && self.beside.is_none()
    }

    /// Whether it holds what a read of a tensor asks for.
    pub fn is_for(&self, source: Source, read: ValueId) -> bool {
        self.serves.contains(&source) && self.reads.as_ref().is_none_or(|reads| reads.contains(&read))
    }

    /// Of stages that hold what a read asks for, at these positions, the least one is taken: see [`taken`].
    pub fn nearness(&self, at: usize) -> (bool, usize) {
        (self.copy.is_none(), at)
    }

    /// Elements between neighbours along each coordinate, in row-major order.
    pub fn strides(&self) -> Vec<Expr> {
        let mut strides = vec![Expr::constant(1); self.coordinates.len()];
        for n in (1..strides.len()).rev() {
            strides[n - 1] = strides[n].mul(&self.coordinates[n].most);
        }
        strides
    }

    /// Elements of an instance.
    pub fn elements(&self) -> Expr {
        self.coordinates.iter().fold(Expr::constant(1), |product, c| product.mul(&c.most))
    }

    /// Whether its instances lie in buffers of the block, in shared memory or in a part of global memory.
    pub fn has_buffers(&self) -> bool {
        self.place == Place::Shared || self.is_in_workspace()
    }

    /// Whether its instances lie in memory that the launch provides for each block.
    pub fn is_in_workspace(&self) -> bool {
        self.place == Place::Global && self.attach.is_some()
    }

    /// Instances in one slot of its buffers: one of each unit of the block, or of its role.
    pub fn instances(&self) -> i128 {
        self.owner.threads().map_or(1, |size| i128::from(self.distribution.block) / size)
    }

    /// The leaves that every thread runs as loops, or as the lanes of a vector: outermost first.
    pub fn sequence(&self) -> Vec<AxisId> {
        let Domain { leaves, axes, .. } = &self.domain;
        leaves.iter().copied().filter(|leaf| axes[*leaf].binding.is_sequential()).collect()
    }

    /// The axes of its reduction that blocks divide among each other, outermost first.
    pub fn across_blocks(&self) -> impl Iterator<Item = AxisId> {
        self.distribution.grid.iter().copied().filter(|a| self.domain.axes[*a].kind == AxisKind::Reduction)
    }

    /// Whether the blocks of a cluster divide its reduction among each other. One block alone has all of it, and
    /// nothing to exchange.
    pub fn across_ctas(&self) -> bool {
        let is_term = |cta: &(AxisId, i128)| self.domain.axes[cta.0].kind == AxisKind::Reduction;
        self.distribution.cluster > 1 && self.distribution.ctas.iter().any(is_term)
    }

    /// Whether it stands in the loops of another one, and blocks share its reduction: what is after it there is for
    /// the last of them alone.
    pub fn arrives(&self) -> bool {
        let axes = &self.domain.axes;
        let given = |l: &AxisId| axes[*l].kind == AxisKind::Reduction && axes[*l].binding == Binding::Grid;
        self.attach.is_some() && self.domain.leaves.iter().any(given)
    }

    /// Whether blocks combine results by atomic operations on memory.
    pub fn is_atomic(&self) -> bool {
        self.reduced.iter().any(|r| r.by == ast::ReduceBy::Atomic)
    }

    /// Whether an axis is combined across units.
    pub fn is_reduced(&self, axis: AxisId) -> bool {
        self.reduced.iter().any(|r| r.axis == axis)
    }
}

impl Along {
    /// The coordinate of the element with these indices.
    pub fn at(&self, indices: &[Expr]) -> Expr {
        self.position().substitute(&|v| indices.get(Family::PLACEHOLDER.number(v)?).cloned())
    }

    /// The same over [`Family::PLACEHOLDER`].
    pub fn position(&self) -> Expr {
        self.distance.floor_div(&Expr::constant(self.step))
    }
}

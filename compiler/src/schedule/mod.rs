//! HOW: the schedule of each stage, applied. One [`Stage`] per output equation: its iteration domain after every op, and which
//! part of the machine runs each leaf.
//!
//! A refused op leaves poisoned axes behind that satisfy every later check, so that one mistake gives one message. What later
//! issues of the language bring (places other than `global`, attach points, owners, roles, engines, …) is in [`Stage`] already
//! and answered here with "not supported yet".

mod apply;
mod distribution;
mod loops;

pub(crate) use apply::literal;
pub use distribution::{Distribution, WARP};
pub use loops::check_loops;

use std::collections::BTreeSet;

use tilewright_kernel::Algorithm;
use tilewright_kernel::algorithm::{self, AxisId as AlgorithmAxis, Binary, Index, IndexId, Source, Value, ValueId};

use crate::diag::Diagnostics;
use crate::diag::tw00xx::NotSupportedYet;
use crate::diag::tw07xx::{ReducedAgain, UnscheduledReduction};
use crate::domain::{AxisKind, Domain, NewAxis};
use crate::extent::{Expr, Facts};
use crate::program::Program;
use crate::syntax::{Span, ast};

/// Where the results of a stage live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Device memory: an output tensor.
    Global,
}

/// The collective that owns one instance of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// One instance for the whole launch.
    Grid,
}

/// Which threads of a block run a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// All of them: the only role.
    AllThreads,
}

/// A level at which the partial results of a reduction are combined, innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// In one thread, term after term.
    Serial,
}

/// A scheduled equation.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Position in [`Algorithm::equations`].
    pub equation: usize,
    /// Name of its first component.
    pub name: String,
    /// The iteration domain, ops applied.
    pub domain: Domain,
    /// The algorithm's axis and its lower bound, for each root of the domain.
    pub roots: Vec<(AlgorithmAxis, Expr)>,
    /// The reduction whose axes are roots: a [`Value::Reduce`] or [`Value::Fold`].
    pub reduction: Option<ValueId>,
    /// Levels at which its partial results are combined.
    pub combine: Vec<Combine>,
    /// Where the results live.
    pub place: Place,
    /// Who owns an instance.
    pub owner: Owner,
    /// Who runs it.
    pub executor: Executor,
    /// Leaves bound to the grid, to warps and to threads.
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
}

/// Applies the schedules of a kernel. Stages with a refused op are left out; `diags` says so.
pub fn build(program: &Program, facts: &Facts, diags: &mut Diagnostics) -> Option<Plan> {
    let mut found = Diagnostics::new();
    unsupported(program, &mut found);
    let launch_threads = distribution::launch_threads(program, facts, &mut found);
    let mut stages = Vec::new();
    for equation in 0..program.algorithm.equations.len() {
        let components = &program.algorithm.components[program.algorithm.equations[equation].components.range()];
        let is_output = components.iter().any(|c| c.parameter.is_some());
        let inlined = program.inlined.iter().find(|i| usize::from(i.equation) == equation);
        if is_output {
            if let Some(inlined) = inlined {
                let construct = format!("inline {}", components[0].name);
                let instead = Some("an output is computed where it is stored; remove the statement".to_owned());
                found.report(NotSupportedYet { construct, span: inlined.span, instead });
            }
            stages.extend(stage(program, facts, equation, &mut found));
            check_outputs_read(program, equation, &mut found);
        } else if inlined.is_none() {
            check_intermediate(program, equation, &mut found);
        }
    }
    let threads = distribution::distribute(program, facts, launch_threads, &mut stages, &mut found);
    let clean = !found.has_errors();
    diags.append(found);
    threads.filter(|_| clean).map(|threads| Plan { stages, threads })
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
    for unit in &program.units {
        diags.report(NotSupportedYet { construct: "unit".to_owned(), span: unit.span, instead: None });
    }
    for schedule in &program.schedules {
        let equation = &program.algorithm.equations[usize::from(schedule.equation)];
        let is_output = program.algorithm.components[equation.components.range()].iter().any(|c| c.parameter.is_some());
        let clauses = &schedule.ast.clauses;
        let mut refuse = |construct: &str, span: Span| {
            diags.report(NotSupportedYet { construct: construct.to_owned(), span, instead: None });
        };
        if let Some(at) = &clauses.at {
            refuse("at", at.span);
        } else if !is_output {
            let instead = Some(format!("without it, `{}` is computed where it is read", schedule.ast.stage.text));
            let construct = "schedule of an intermediate".to_owned();
            diags.report(NotSupportedYet { construct, span: schedule.ast.head, instead });
            continue;
        }
        if let Some(place) = clauses.place.filter(|p| p.value != ast::Place::Global) {
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
        if let Some(by) = &clauses.by {
            refuse("by", by.span);
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
        return; // reported as unsupported
    }
    for component in components {
        let mut reductions = Vec::new();
        outermost_reductions(algorithm, algorithm.components[component].value, &mut reductions);
        if let Some(value) = reductions.first() {
            diags.report(UnscheduledReduction {
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

/// The components that a stage computes where it reads them, outputs and intermediates, in the order of its reads; also those that are
/// read through others.
pub fn computed_at_reads(algorithm: &Algorithm, equation: usize) -> Vec<usize> {
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
            if let Some(source) = read_component(algorithm, value).filter(|s| !seen.contains(s)) {
                seen.push(source);
                open.push(source);
            }
        }
    }
    seen
}

/// An output is computed where it is read, as intermediates are; a reduction is repeated for every element of its reader.
fn check_outputs_read(program: &Program, equation: usize, diags: &mut Diagnostics) {
    let algorithm = &program.algorithm;
    let reader = algorithm.equations[equation].components.range().start;
    for source in computed_at_reads(algorithm, equation) {
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

/// Whether `sought` is computed only on one side of an `if`, or of `&&` and `||`, within `value`: then its reads are proved
/// in bounds only there, and its loops must stay there.
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
    let pair = |a, b| Some((index_of_dims(algorithm, a)?, index_of_dims(algorithm, b)?));
    Some(match algorithm.indices[index as usize] {
        Index::Literal(c) => Expr::constant(i128::from(c)),
        Index::Dim(d) => Expr::var(u32::from(d)),
        Index::Axis(_) | Index::Value(_) => return None,
        Index::Add(a, b) => pair(a, b).map(|(a, b)| a.add(&b))?,
        Index::Sub(a, b) => pair(a, b).map(|(a, b)| a.sub(&b))?,
        Index::Mul(a, b) => pair(a, b).map(|(a, b)| a.mul(&b))?,
        Index::Div(a, b) => pair(a, b).map(|(a, b)| a.floor_div(&b))?,
        Index::Mod(a, b) => pair(a, b).map(|(a, b)| a.modulo(&b))?,
    })
}

/// The domain of an output equation with its ops applied.
pub(crate) fn stage(program: &Program, facts: &Facts, equation: usize, diags: &mut Diagnostics) -> Option<Stage> {
    let algorithm = &program.algorithm;
    let definition = &algorithm.equations[equation];
    let mut roots = Vec::new();
    let mut axes = Vec::new();
    let mut add = |axis: AlgorithmAxis, kind: AxisKind| -> Option<()> {
        let algorithm::Axis { name, lower, upper } = &algorithm.axes[axis as usize];
        let lower = facts.normal(&index_of_dims(algorithm, *lower)?);
        let upper = facts.normal(&index_of_dims(algorithm, *upper)?);
        let new = NewAxis { name: name.to_string(), span: program.axis_spans[axis as usize] };
        axes.push((new, upper.sub(&lower), kind));
        roots.push((axis, lower));
        Some(())
    };
    for axis in &algorithm.axis_lists[definition.axes.range()] {
        add(*axis, AxisKind::Data)?;
    }
    // The reduction that the schedule may name: the only outermost one, with bounds that no other axis decides.
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
            if list.iter().all(of_dims) {
                for axis in list {
                    add(*axis, AxisKind::Reduction)?;
                }
                Some(only)
            } else {
                None
            }
        }
        _ => None,
    };
    let schedule = program.schedules.iter().find(|s| usize::from(s.equation) == equation);
    let name = algorithm.components[definition.components.range()][0].name.to_string();
    let span = schedule.map_or(program.equation_spans[equation], |s| s.ast.head);
    let statement = program.statements.iter().position(|s| *s == program.equation_spans[equation]).unwrap_or(0);
    let mut domain = Domain::new(axes);
    if let Some(schedule) = schedule {
        apply::ops(program, facts, &name, &mut domain, &schedule.ast, diags);
    }
    Some(Stage {
        equation,
        name,
        domain,
        roots,
        reduction,
        combine: reduction.map(|_| Combine::Serial).into_iter().collect(),
        place: Place::Global,
        owner: Owner::Grid,
        executor: Executor::AllThreads,
        distribution: Distribution::default(),
        span,
        statement,
    })
}

//! Which thread of which block runs each iteration.
//!
//! Axes bound to one unit linearise in loop order, the last one fastest. A block is one-dimensional: thread τ is lane τ mod 32 of
//! warp ⌊τ / 32⌋. Three shapes exist: threads of the block; warps, with lanes inside; neither, and then a block has one thread,
//! since several would each write the same elements. Threads that no iteration falls to are idle.

use crate::diag::Diagnostics;
use crate::diag::tw00xx::NotSupportedYet;
use crate::diag::tw02xx::{BadFactor, NotStatic};
use crate::diag::tw06xx::{BindOrder, IdleThreads, SameElement, ThreadsOfWarps, TooManyThreads, UnitInside};
use crate::diag::tw07xx::{BoundReduction, CombineProblem, NothingToCombine};
use crate::diag::tw10xx::{FloatAtomics, OrderedByNobody};
use crate::domain::{AxisId, AxisKind, Binding};
use crate::extent::Facts;
use crate::program::Program;
use crate::syntax::{Span, ast};
use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{Order, Reduction, Value};

use super::{Owner, Place, Reduced, Stage, atomic_word, digits};

/// Most threads of a block.
const BLOCK_LIMIT: i128 = tilewright_kernel::info::BLOCK_LIMIT as i128;
/// Threads of a warp.
pub const WARP: i128 = 32;

/// The leaves that units run side by side, outermost first, with the number of iterations that the block has room for.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// Leaves bound to the grid.
    pub grid: Vec<AxisId>,
    /// Leaves bound to warps, each with its extent or a bound of it.
    pub warps: Vec<(AxisId, i128)>,
    /// Leaves bound to threads, each with its extent or a bound of it.
    pub threads: Vec<(AxisId, i128)>,
    /// Whether an instance belongs to a warp, whose lanes the threads are.
    pub of_warp: bool,
}

impl Distribution {
    /// Warps that have iterations.
    pub fn warp_count(&self) -> i128 {
        self.warps.iter().map(|w| w.1).product()
    }

    /// Threads (of the block, or of a warp if warps are bound) that have iterations.
    pub fn thread_count(&self) -> i128 {
        self.threads.iter().map(|t| t.1).product()
    }

    /// Whether threads are lanes of a warp: warps are bound around them, or own the instance.
    pub fn has_lanes(&self) -> bool {
        self.of_warp || !self.warps.is_empty()
    }

    /// Threads that the block needs.
    fn needed(&self) -> i128 {
        if self.has_lanes() { self.warp_count().saturating_mul(WARP) } else { self.thread_count() }
    }
}

/// The threads that `launch` asks for.
pub(super) fn launch_threads(program: &Program, facts: &Facts, diags: &mut Diagnostics) -> Option<(i128, Span)> {
    let mut threads = None;
    for item in program.launch.iter().flat_map(|l| &l.items) {
        let (construct, expr) = match &item.kind {
            ast::LaunchItemKind::Threads(e) => ("threads", Some(e)),
            ast::LaunchItemKind::Cluster(_) => ("cluster", None),
            ast::LaunchItemKind::Persistent => ("persistent", None),
            ast::LaunchItemKind::Dependent => ("dependent", None),
            ast::LaunchItemKind::Roles(_) => ("roles", None),
        };
        let Some(expr) = expr else {
            diags.report(NotSupportedYet { construct: construct.to_owned(), span: item.span, instead: None });
            continue;
        };
        let value = match &expr.kind {
            ast::ExprKind::Int(literal) => Some(i128::from(literal.value)),
            ast::ExprKind::Name(name) => program
                .dims
                .iter()
                .position(|d| d.name == name.text)
                .and_then(|d| facts.normal(&crate::extent::Expr::var(d as u32)).as_constant()),
            _ => None,
        };
        match value.filter(|v| (1..=BLOCK_LIMIT).contains(v)) {
            Some(value) => threads = Some((value, item.span)),
            None => diags.report(BadFactor {
                what: "the number of threads of a block",
                value,
                least: 1,
                most: BLOCK_LIMIT,
                span: expr.span,
            }),
        }
    }
    threads
}

/// Fills in the distribution of every stage and decides the threads of a block; none after an error.
pub(super) fn distribute(launch: Option<(i128, Span)>, stages: &mut [Stage], diags: &mut Diagnostics) -> Option<u32> {
    // What follows from a refused op is not reported again.
    for stage in stages.iter_mut().filter(|s| !s.domain.is_poisoned()) {
        let (program, facts) = (stage.program.clone(), stage.facts.clone());
        collect(&program, &facts, stage, diags);
    }
    if diags.has_errors() || stages.iter().any(|s| s.domain.is_poisoned()) {
        return None;
    }
    let needed = stages.iter().map(|s| s.distribution.needed()).max().unwrap_or(1);
    // Without a `launch` the block has the threads that are needed, as far as a block can; `check` refuses the rest.
    // An axis without elements still leaves a thread: other stages may need it.
    let threads = launch.map_or(needed.clamp(1, BLOCK_LIMIT), |(threads, _)| threads);
    for stage in stages.iter() {
        check(stage, threads, needed, launch.map(|l| l.1), diags);
    }
    (!diags.has_errors()).then(|| u32::try_from(threads).ok()).flatten()
}

fn collect(program: &Program, facts: &Facts, stage: &mut Stage, diags: &mut Diagnostics) {
    let mut distribution = Distribution { of_warp: stage.owner == Owner::Warp, ..Distribution::default() };
    for leaf in stage.domain.leaves.clone() {
        let axis = &stage.domain.axes[leaf];
        if axis.poisoned || axis.binding.is_sequential() {
            continue;
        }
        let inside = match (axis.binding, stage.owner) {
            (Binding::Grid, Owner::Cta) => Some(("block", "block")),
            (Binding::Grid, Owner::Thread) => Some(("block", "thread")),
            (Binding::Grid, Owner::Warp) => Some(("block", "warp")),
            (Binding::Warp, Owner::Warp) => Some(("warp", "warp")),
            (Binding::Warp, Owner::Thread) => Some(("warp", "thread")),
            (Binding::Thread, Owner::Thread) => Some(("thread", "thread")),
            _ => None,
        };
        if let Some((unit, owner)) = inside {
            let reduces = axis.kind == AxisKind::Reduction;
            let (stage, axis, span) = (stage.name.clone(), axis.name.clone(), axis.binding_span);
            diags.report(UnitInside { stage, axis, unit, owner, reduces, span });
            continue;
        }
        if axis.kind == AxisKind::Reduction {
            let reduced = stage.reduced.iter().find(|r| r.axis == leaf);
            let is_grid = axis.binding == Binding::Grid;
            if reduced.is_none_or(|r| is_grid && !reaches_blocks(r)) {
                let (axis, span, op) = (axis.name.clone(), axis.binding_span, reduced.map(|r| r.span));
                diags.report(BoundReduction { axis, is_grid, span, reduced: op });
                continue;
            }
        }
        if axis.binding == Binding::Grid {
            distribution.grid.push(leaf);
            continue;
        }
        // A block has a fixed number of threads: the extent is a literal, or bounded by the facts and guarded.
        let Some(extent) = axis.extent.as_constant().or_else(|| facts.upper_bound(&axis.extent)) else {
            let names = |v: u32| program.dim_name(v as u16).to_owned();
            diags.report(NotStatic {
                axis: axis.name.clone(),
                extent: axis.extent.show(&names),
                bound: None,
                limit: BLOCK_LIMIT,
                op: "bind",
                span: axis.binding_span,
            });
            continue;
        };
        if axis.binding == Binding::Warp {
            distribution.warps.push((leaf, extent));
        } else {
            distribution.threads.push((leaf, extent));
        }
    }
    stage.distribution = distribution;
    for reduced in &stage.reduced {
        if let Some(problem) = combining(program, stage, reduced) {
            let axis = stage.domain.axes[reduced.axis].name.clone();
            diags.report(NothingToCombine { axis, problem, span: reduced.span });
            return;
        }
    }
    check_atomics(program, stage, diags);
}

/// Whether it combines what blocks have.
const fn reaches_blocks(reduced: &Reduced) -> bool {
    matches!(reduced.by, ast::ReduceBy::Grid | ast::ReduceBy::Atomic)
}

/// Refuses atomic operations that the numeric contract does not admit, and warns of those whose result is another one each time.
fn check_atomics(program: &Program, stage: &Stage, diags: &mut Diagnostics) {
    let reduction = stage.reduction.map(|value| (value, program.algorithm.values[value as usize]));
    let Some((value, Value::Reduce { op: Reduction::Sum, order, .. })) = reduction else { return };
    let element = program.algorithm.types[value as usize];
    let Some(reduced) = stage.reduced.iter().find(|r| r.by == ast::ReduceBy::Atomic) else { return };
    if !element.is_float() || atomic_word(Reduction::Sum, element).is_none() {
        return;
    }
    let (span, reduction) = (reduced.word.unwrap_or(reduced.span), program.value_spans[value as usize]);
    if order == Order::Unordered {
        diags.report(FloatAtomics { stage: stage.name.clone(), element, span, reduction });
    } else {
        diags.report(OrderedByNobody { element, span, reduction });
    }
}

/// Why units cannot combine what they have along an axis.
fn combining(program: &Program, stage: &Stage, reduced: &Reduced) -> Option<CombineProblem> {
    let axis = &stage.domain.axes[reduced.axis];
    if axis.poisoned {
        return None;
    }
    if axis.kind == AxisKind::Data {
        return Some(CombineProblem::Data);
    }
    let of_blocks = axis.binding == Binding::Grid;
    if reaches_blocks(reduced) {
        if !of_blocks {
            return Some(CombineProblem::NotOfBlocks(reduced.by));
        }
        if stage.reduced.iter().any(|other| reaches_blocks(other) && other.by != reduced.by) {
            return Some(CombineProblem::TwoWays);
        }
    } else if of_blocks {
        // That has been said.
        return None;
    } else {
        let Some(digit) = digits(stage).into_iter().find(|d| d.leaf == reduced.axis) else {
            return Some(CombineProblem::Unbound);
        };
        let threads = digit.stride.saturating_mul(digit.extent);
        if reduced.by == ast::ReduceBy::Warp && (threads > WARP || WARP % threads.max(1) != 0) {
            return Some(CombineProblem::BeyondWarp);
        }
    }
    let reduction = stage.reduction?;
    let algorithm = &program.algorithm;
    let by_atomics = reduced.by == ast::ReduceBy::Atomic;
    let not_atomic =
        |what: &'static str, element: Option<ElementType>| Some(CombineProblem::NotAtomic { what, element });
    match algorithm.values[reduction as usize] {
        Value::Reduce { order: Order::Ordered, .. } => Some(CombineProblem::Ordered),
        Value::Reduce { op, body, .. } if by_atomics => {
            let is_place = matches!(op, Reduction::ArgMax | Reduction::ArgMin);
            let element = algorithm.types[if is_place { body } else { reduction } as usize];
            let what = match op {
                Reduction::Prod => "product",
                Reduction::Sum => "sum",
                Reduction::ArgMax | Reduction::ArgMin => "place of an extreme",
                _ => "extreme",
            };
            if atomic_word(op, element).is_none() { not_atomic(what, Some(element)) } else { None }
        }
        Value::Fold { states, .. } => {
            let missing = algorithm.folds[states.range()].iter().any(|s| s.merge.is_none());
            match missing {
                true => Some(CombineProblem::NoMerge),
                false if by_atomics => not_atomic("`fold`", None),
                false => None,
            }
        }
        _ => None,
    }
}

/// Checks one stage against the block; `needed` threads suffice for all stages.
fn check(stage: &Stage, threads: i128, needed: i128, launch: Option<Span>, diags: &mut Diagnostics) {
    let d = &stage.distribution;
    let axes = &stage.domain.axes;
    let place = |axis: AxisId| stage.domain.leaves.iter().position(|l| *l == axis);
    if let (Some((warp, _)), Some((thread, _))) = (d.warps.last(), d.threads.first())
        && place(*thread) < place(*warp)
    {
        diags.report(BindOrder {
            outer: axes[*warp].name.clone(),
            inner: axes[*thread].name.clone(),
            span: axes[*thread].binding_span,
            other: axes[*warp].binding_span,
        });
        return;
    }
    if d.has_lanes() && threads % WARP != 0 {
        diags.report(ThreadsOfWarps { threads, span: launch.unwrap_or(stage.span) });
        return;
    }
    let last_span = |list: &[(AxisId, i128)]| list.last().map_or(stage.span, |(a, _)| axes[*a].binding_span);
    let names = |list: &[(AxisId, i128)]| list.iter().map(|(a, n)| (axes[*a].name.clone(), *n)).collect::<Vec<_>>();
    // Too many iterations for the units.
    let (room, list, unit) =
        if d.has_lanes() { (threads / WARP, &d.warps, "warp") } else { (threads, &d.threads, "thread") };
    let count: i128 = list.iter().map(|l| l.1).product();
    if count > room {
        diags.report(TooManyThreads {
            unit,
            axes: names(list),
            count,
            room,
            threads,
            limit: BLOCK_LIMIT,
            span: last_span(list),
            launch,
        });
        return;
    }
    if d.has_lanes() && d.thread_count() > WARP {
        let (count, room) = (d.thread_count(), WARP);
        diags.report(TooManyThreads {
            unit: "lane",
            axes: names(&d.threads),
            count,
            room,
            threads,
            limit: BLOCK_LIMIT,
            span: last_span(&d.threads),
            launch,
        });
        return;
    }
    // Threads without an index of their own would repeat the work of others; in registers each keeps what it computed, and of an output
    // beside another one the first thread does it.
    if d.threads.is_empty() && threads > 1 && stage.place != Place::Registers && stage.beside.is_none() {
        let group = if d.has_lanes() { WARP } else { threads };
        diags.report(SameElement {
            stage: stage.name.clone(),
            group,
            threads,
            warps: d.has_lanes(),
            data: stage.domain.roots.iter().any(|a| axes[*a].kind == AxisKind::Data),
            others: needed > 1,
            span: if d.warps.is_empty() { launch.unwrap_or(stage.span) } else { last_span(&d.warps) },
        });
        return;
    }
    // Where no axis tells threads apart, each of them computes the registers that it keeps; the first one an output beside another.
    let all = d.threads.is_empty() && (stage.place == Place::Registers || stage.beside.is_some());
    let busy = match (d.has_lanes(), all) {
        (false, true) => threads,
        (false, false) => d.thread_count(),
        // All warps that come there have an instance each.
        (true, _) if d.of_warp => threads,
        (true, true) => d.warp_count() * WARP,
        (true, false) => d.warp_count() * d.thread_count(),
    };
    if busy < threads && launch.is_some() {
        let (stage_name, span) = (stage.name.clone(), launch.unwrap_or(stage.span));
        diags.report(IdleThreads { stage: stage_name, busy, threads, needed, span });
    }
}

//! Which thread of which block runs each iteration.
//!
//! Axes bound to one unit linearise in loop order, the last one fastest. Blocks are neighbours in clusters of a fixed
//! number: axes of the grid count clusters, and block β of a cluster runs the iterations β of the axes that are given
//! to its blocks (`bind …: cta`), which are as many as it has blocks. A block is one-dimensional: thread τ is in
//! warpgroup ⌊τ / 128⌋ and in warp ⌊τ / 32⌋ of the block. Units nest by the order of the loops: warps inside an axis
//! that is given to warpgroups are the four of the warpgroup, threads are those of the warp or warpgroup around them.
//! Any of the three may be left out; what nothing tells apart would write the same elements. Threads that no iteration
//! falls to are idle. Whether units can be taken from the threads around, and which ones these are, is the question of
//! `collectives`, which `levels` asks.

use crate::collectives::{self, LoopFault};
use crate::diag::codes::{
    Around, BindOrder, BoundReduction, ClusterBlocks, IdleThreads, MisplacedUnit, NotStatic, NothingToCombine, OneTile,
    SameElement, ThreadsOfUnits, TooManyThreads, UnitInside, UnitMisfit,
};
use crate::diag::{Code, Diagnostics};
use crate::domain::{AxisId, AxisKind, Binding};
use crate::extent::{Expr, Facts};
use crate::program::Program;
use crate::source::{Span, ast};

use super::combine::{self, check_atomics, combining, reaches_blocks};
use super::launch::Launch;
use super::levels::{self, Finest, Level, Misfit, Misplaced, Nests};
use super::{Reduced, Role, Stage, digits, raster, role_name, split_k_stage};
use crate::target;
use crate::{
    domain::{Unit, WARP, WARPGROUP},
    source::ast::Place,
};

/// [`target::BLOCK_LIMIT`], as an extent.
pub(super) const BLOCK_LIMIT: i128 = target::BLOCK_LIMIT as i128;
/// [`target::CLUSTER_LIMIT`], as an extent.
pub(super) const CLUSTER_LIMIT: i128 = target::CLUSTER_LIMIT as i128;

/// The leaves that units run side by side, outermost first, with the number of iterations that the block has room for.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// Leaves bound to the grid.
    pub grid: Vec<AxisId>,
    /// Leaves bound to the blocks of a cluster, each with the iterations that the cluster has room for.
    pub ctas: Vec<(AxisId, i128)>,
    /// Blocks of a cluster; 1 without clusters.
    pub cluster: u32,
    /// Threads of a block, or of the stage's role, once they are known.
    pub block: u32,
    /// Of an output: the iterations of the axes that a stage in its loops gives to blocks, besides; each is at least 1.
    pub parts: Vec<Expr>,
    /// What units of a block are given, outermost first.
    pub levels: Vec<Level>,
    /// Who owns an instance: its threads are numbered from the first one of that unit.
    pub owner: Unit,
    /// Threads that nothing tells apart; none while that is all of the block, or all of the owner.
    pub finest: Option<i128>,
}

impl Distribution {
    /// Threads that run the same iterations, where nothing tells them apart; none if that is the whole block.
    pub fn finest(&self) -> Option<i128> {
        self.finest.or_else(|| self.levels.last().map(|level| level.stride)).or_else(|| self.owner.threads())
    }

    /// Whether some units have iterations and not those from the first one on.
    pub fn has_range(&self) -> bool {
        self.levels.iter().any(|level| level.low > 0)
    }

    /// What these threads are called.
    fn finest_name(&self) -> Option<String> {
        let owner = self.owner.threads().map(|_| self.owner.name().to_owned());
        self.levels.last().map(|level| level.name.clone()).or(owner)
    }

    /// Threads that the block needs.
    fn needed(&self) -> i128 {
        match self.levels.first() {
            Some(outer) if self.owner <= Unit::Cta => outer.needed(),
            _ => self.owner.threads().unwrap_or(1),
        }
    }
}

/// Threads of which the block must have whole groups, and what these are: `rounded` where there is a choice. Warpgroups
/// may be fewer than the block has room for, if no instance belongs to one.
fn whole(levels: &[Level], owner: Unit, rounded: bool) -> Option<(Unit, i128)> {
    let bound = levels.iter().map(|level| match level.whole() {
        WARPGROUP if rounded => Unit::Warpgroup,
        WARPGROUP | WARP => Unit::Warp,
        _ => Unit::Thread,
    });
    let unit = bound.chain([owner]).filter(|unit| unit.threads().is_some()).min()?;
    Some((unit, unit.threads()?))
}

/// Whether clusters have so many blocks.
fn is_cluster(blocks: i128) -> bool {
    u64::try_from(blocks).is_ok_and(collectives::is_cluster)
}

/// Decides the blocks of a cluster: as many as the axes given to them have iterations, in every stage that has such
/// axes or writes an output.
fn clusters(launch: Option<(i128, Span)>, stages: &mut [Stage], diags: &mut Diagnostics) {
    let of = |stage: &Stage| stage.distribution.ctas.iter().fold(1, |n: i128, (_, extent)| n.saturating_mul(*extent));
    let cluster = launch.map_or_else(|| stages.iter().map(of).max().unwrap_or(1).max(1), |(blocks, _)| blocks);
    for stage in stages.iter_mut() {
        stage.distribution.cluster = u32::try_from(cluster).unwrap_or(u32::MAX);
        let (blocks, ctas) = (of(stage), &stage.distribution.ctas);
        let axes = || ctas.iter().map(|(axis, extent)| (stage.domain.axes[*axis].name.clone(), *extent)).collect();
        let span = ctas.last().map(|(axis, _)| stage.domain.axes[*axis].binding_span);
        if !is_cluster(cluster)
            || blocks != cluster && (span.is_some() || stage.place != Place::Registers && stage.has_blocks())
        {
            diags.report(ClusterBlocks {
                stage: stage.name.clone(),
                axes: axes(),
                blocks,
                cluster,
                exists: (is_cluster(cluster), is_cluster(blocks)),
                span: span.unwrap_or(stage.span),
                launch: launch.map(|l| l.1),
            });
            return;
        }
    }
}

/// Fills in the distribution of every stage and decides the threads of a block; none after an error.
pub(super) fn distribute(launch: Launch, roles: &[Role], stages: &mut [Stage], diags: &mut Diagnostics) -> Option<u32> {
    // What follows from a refused op is not reported again.
    let has_blocks = |s: &&Stage| s.domain.leaves.iter().any(|l| s.domain.axes[*l].binding == Binding::Cta);
    let is_lone = launch.cluster.is_some() && stages.iter().filter(has_blocks).count() == 1;
    for stage in stages.iter_mut().filter(|s| !s.domain.is_poisoned()) {
        let (program, facts) = (stage.program.clone(), stage.facts.clone());
        collect(&program, &facts, is_lone, stage, diags);
    }
    if diags.has_errors() || stages.iter().any(|s| s.domain.is_poisoned()) {
        return None;
    }
    clusters(launch.cluster, stages, diags);
    raster::check(stages, diags);
    let has_tiles = stages.iter().any(|stage| stage.has_blocks() && !stage.distribution.grid.is_empty());
    if let Some(span) = launch.persistent.filter(|_| !has_tiles) {
        diags.report(OneTile { span });
    }
    if diags.has_errors() {
        return None;
    }
    split_k_stage::place(stages, diags);
    let threads = match roles {
        [] => among(None, launch.threads, stages, diags),
        roles => {
            for (n, role) in roles.iter().enumerate() {
                among(Some(n), Some((role.threads().into(), role.span)), stages, diags);
            }
            roles.iter().map(Role::all_threads).sum::<u32>().into()
        }
    };
    (!diags.has_errors()).then(|| u32::try_from(threads).ok()).flatten()
}

/// The same for the stages of one role, or of a block without roles; how many threads it has. `launch` is how many
/// there are, if that is said.
fn among(role: Option<usize>, launch: Option<(i128, Span)>, stages: &mut [Stage], diags: &mut Diagnostics) -> i128 {
    let own: Vec<usize> = (0..stages.len()).filter(|at| stages[*at].role == role).collect();
    let distributions = || own.iter().map(|at| &stages[*at].distribution);
    let needed = distributions().map(Distribution::needed).max().unwrap_or(1);
    let whole =
        distributions().filter_map(|d| whole(&d.levels, d.owner, true)).map(|(_, size)| size).max().unwrap_or(1);
    // Without a `launch` the block has the threads that are needed, in whole units, as far as a block can; `check`
    // refuses the rest. An axis without elements still leaves a thread: other stages may need it.
    let needed = needed.div_euclid(whole).saturating_add((needed % whole).min(1)).saturating_mul(whole);
    let threads = launch.map_or(needed.clamp(1, BLOCK_LIMIT), |(threads, _)| threads);
    for at in &own {
        stages[*at].distribution.block = u32::try_from(threads).unwrap_or(u32::MAX);
    }
    // How large a unit of the kernel's own is depends on the block.
    let is_own = own.iter().any(|at| stages[*at].distribution.levels.iter().any(Level::is_named));
    let needed = if is_own { threads } else { needed };
    let span = launch.map(|l| l.1);
    let nests = &mut Nests::default();
    let mut fit = |at: &usize| check(&mut stages[*at], (threads, nests), needed, span, diags);
    let fits: Vec<bool> = own.iter().map(&mut fit).collect();
    let stages = &*stages;
    let root = |at: usize| {
        std::iter::successors(Some(at), |at| stages[*at].attach.as_ref().map(|attach| attach.stage))
            .last()
            .unwrap_or(at)
    };
    // Threads that a stage uses: of units that own an instance each, as many as the loops around it have, if it uses
    // all of a unit.
    let used = |at: usize| {
        let d = &stages[at].distribution;
        match d.owner.threads() {
            None => d.needed(),
            Some(of_unit) if d.needed() >= of_unit => stages[root(at)].distribution.needed(),
            Some(_) => 0,
        }
    };
    for (at, _) in own.iter().zip(&fits).filter(|(_, fits)| **fits) {
        let (at, stage) = (*at, &stages[*at]);
        // Threads without work in one stage have some in another one of the same loops.
        let others = own.iter().copied().filter(|n| *n != at && root(*n) == root(at));
        let all = others.map(used).any(|n| n >= threads);
        // Stages may be given different ranges of units.
        let together = || own.iter().copied().filter(|n| root(*n) == root(at)).collect::<Vec<_>>();
        let ranges = |list: &[usize]| list.iter().any(|n| stages[*n].distribution.has_range());
        let has_work = |list: &[usize], thread: i128| list.iter().any(|n| stages[*n].has_work(thread));
        let busy = stage.busy(threads);
        let share = || Some(together()).filter(|list| ranges(list));
        let all = all || share().is_some_and(|list| (0..threads).all(|thread| has_work(&list, thread)));
        if let Some((_, span)) = launch.filter(|_| busy < threads && !all) {
            let role = role_name(&stage.program, stage.role).map(str::to_owned);
            diags.report(IdleThreads { stage: stage.name.clone(), busy, threads, needed, span, role });
        }
    }
    threads
}

/// The leaves that units run. `is_lone` says whether a cluster is asked for, and only one stage has an axis for its
/// blocks.
fn collect(program: &Program, facts: &Facts, is_lone: bool, stage: &mut Stage, diags: &mut Diagnostics) {
    let mut distribution = Distribution { owner: stage.owner, cluster: 1, ..Distribution::default() };
    // Without a word, what is combined reaches as far as what runs the axis.
    for reduced in stage.reduced.iter_mut().filter(|r| r.word.is_none()) {
        if stage.domain.axes[reduced.axis].binding == Binding::Cta {
            reduced.by = ast::ReduceBy::Cluster;
        }
    }
    for leaf in stage.domain.leaves.clone() {
        let axis = &stage.domain.axes[leaf];
        let Some(unit) = Unit::of(axis.binding).filter(|_| !axis.poisoned) else { continue };
        let reduces = axis.kind == AxisKind::Reduction;
        // Blocks may share the terms of an instance of theirs.
        let arrives = axis.binding == Binding::Grid && stage.owner == Unit::Cta && reduces;
        if unit <= stage.owner && !arrives {
            let (in_memory, is_product) = (stage.place != Place::Registers, stage.product.is_some());
            let of_cluster = (axis.binding == Binding::Cta && reduces).then_some(is_lone);
            let (owner, stage) = (stage.owner, stage.name.clone());
            let unit = unit.max(Unit::Cta);
            let (axis, span) = (axis.name.clone(), axis.binding_span);
            diags.report(UnitInside { stage, axis, unit, owner, reduces, in_memory, is_product, of_cluster, span });
            continue;
        }
        if reduces {
            let reduced = stage.reduced.iter().find(|r| r.axis == leaf);
            let (blocks, reaches): (_, fn(&Reduced) -> bool) = match axis.binding {
                Binding::Grid => (Some(ast::ReduceBy::Grid), reaches_blocks),
                Binding::Cta => (Some(ast::ReduceBy::Cluster), |r| r.by == ast::ReduceBy::Cluster),
                _ => (None, |_| true),
            };
            if !reduced.is_some_and(reaches) {
                let (axis, span, op) = (axis.name.clone(), axis.binding_span, reduced.map(|r| r.span));
                diags.report(BoundReduction { axis, blocks, span, reduced: op });
                continue;
            }
        }
        if axis.binding == Binding::Grid {
            distribution.grid.push(leaf);
            continue;
        }
        // A block has a fixed number of threads, and a cluster of blocks: the extent is a literal, or bounded by the
        // facts and guarded.
        let Some(extent) = axis.extent.as_constant().or_else(|| facts.upper_bound(&axis.extent)) else {
            let names = |v: u32| program.dim_name(v as u16).to_owned();
            diags.report(NotStatic {
                axis: axis.name.clone(),
                extent: axis.extent.show(&names),
                sizes: axis.extent.vars().into_iter().map(names).collect(),
                bound: None,
                limit: if axis.binding == Binding::Cta { CLUSTER_LIMIT } else { BLOCK_LIMIT },
                op: "bind",
                span: axis.binding_span,
            });
            continue;
        };
        // A reduction without terms has a result all the same, which a unit must store.
        let extent = if reduces { extent.max(1) } else { extent };
        if axis.binding == Binding::Cta {
            distribution.ctas.push((leaf, extent));
            continue;
        }
        let levels = &mut distribution.levels;
        let at = levels.iter().position(|level| level.binding == axis.binding).unwrap_or_else(|| {
            levels.push(Level::new(program, axis.binding, unit));
            levels.len() - 1
        });
        levels[at].leaves.push((leaf, extent));
    }
    // Binds of the three kinds that stand in another order are refused below.
    if distribution.levels.iter().all(Level::is_plain) {
        distribution.levels.sort_by_key(|level| level.unit);
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

/// Checks one stage against the block and gives its levels their numbers; `needed` threads suffice for all stages.
/// False if it does not fit.
fn check(
    stage: &mut Stage,
    (threads, nests): (i128, &mut Nests),
    needed: i128,
    launch: Option<Span>,
    diags: &mut Diagnostics,
) -> bool {
    let mut levels = std::mem::take(&mut stage.distribution.levels);
    let placed = fits(stage, &mut levels, (threads, launch), nests, diags);
    stage.distribution.levels = levels;
    let Some(finest) = placed else { return false };
    stage.distribution.finest = Some(finest.threads);
    let d = &stage.distribution;
    let axes = &stage.domain.axes;
    let last = d.levels.last().and_then(|level| level.leaves.last()).map(|leaf| leaf.0);
    let last_span = last.map_or(launch.unwrap_or(stage.span), |leaf| axes[leaf].binding_span);
    let role = role_name(&stage.program, stage.role).map(str::to_owned);
    if !combine::check_placed(stage, diags) {
        return false;
    }
    // Threads without an index of their own would repeat the work of others; in registers each keeps what it computed,
    // and of an output beside another one the first thread does it.
    let group = finest.threads;
    if group > 1 && stage.place != Place::Registers && stage.beside.is_none() {
        diags.report(SameElement {
            stage: stage.name.clone(),
            group,
            threads,
            unit: d.finest_name(),
            bound: last.map(|leaf| axes[leaf].name.clone()),
            grid: d.grid.last().map(|leaf| axes[*leaf].name.clone()),
            data: stage.domain.roots.iter().any(|a| axes[*a].kind == AxisKind::Data),
            others: needed > 1,
            span: last_span,
            role,
        });
        return false;
    }
    if group > 1 && (!finest.is_run || d.levels.iter().any(Level::is_named)) {
        let unit = d.finest_name().unwrap_or_default();
        diags.report(MisplacedUnit {
            unit,
            axis: None,
            problem: UnitMisfit::Alike { group },
            threads,
            span: last_span,
            role,
            around: None,
            possible: None,
        });
        return false;
    }
    true
}

/// Gives the levels of a stage their numbers, if they have a place in the block.
fn fits(
    stage: &Stage,
    levels: &mut [Level],
    (threads, launch): (i128, Option<Span>),
    nests: &mut Nests,
    diags: &mut Diagnostics,
) -> Option<Finest> {
    let d = &stage.distribution;
    let axes = &stage.domain.axes;
    let role = role_name(&stage.program, stage.role).map(str::to_owned);
    let place = |axis: AxisId| stage.domain.leaves.iter().position(|l| *l == axis);
    for (at, outer) in levels.iter().enumerate() {
        let Some((last, _)) = outer.leaves.last() else { continue };
        for inner in &levels[at + 1..] {
            if let Some((first, _)) = inner.leaves.iter().find(|(leaf, _)| place(*leaf) < place(*last)) {
                // Order and binds of a model are mended there.
                let (span, other) = (axes[*first].binding_span, axes[*last].binding_span);
                if span == other && diags.found().iter().any(|d| d.code == Code::TW0604) {
                    return None;
                }
                diags.report(BindOrder {
                    outer: axes[*last].name.clone(),
                    inner: axes[*first].name.clone(),
                    units: (outer.name.clone(), inner.name.clone()),
                    span,
                    other,
                });
                return None;
            }
        }
    }
    if let Some((unit, size)) = whole(levels, d.owner, false).filter(|(_, size)| threads % size != 0) {
        diags.report(ThreadsOfUnits { threads, unit, size, span: launch.unwrap_or(stage.span), role });
        return None;
    }
    let of = (d.owner.threads().unwrap_or(threads), d.cluster);
    let placed = levels::place(&stage.program, levels, of, nests);
    let Misplaced { level, misfit, around: set, narrowed_by } = match placed {
        Ok(finest) => return Some(finest),
        Err(misplaced) => *misplaced,
    };
    let last = |at: usize| levels[at].leaves.last().map(|leaf| &axes[leaf.0]);
    let own = &levels[level];
    let span = last(level).map_or(stage.span, |axis| axis.binding_span);
    // Of a whole block there is nothing to say beside its threads.
    let around = (level > 0).then(|| Around {
        threads: set,
        narrowed_by: narrowed_by.and_then(|at| {
            let axis = last(at)?;
            Some((axis.name.clone(), levels[at].name.clone(), axis.binding_span))
        }),
    });
    let unit = own.name.clone();
    let axis = last(level).map(|axis| axis.name.clone());
    let misfit = match misfit {
        Misfit::TooMany { count, room } => {
            let of = match level.checked_sub(1) {
                Some(at) => Some(levels[at].name.clone()),
                None => d.owner.threads().map(|_| d.owner.name().to_owned()),
            };
            let lanes = of.as_ref().is_some_and(|of| of == "warp") && own.binding == Binding::Thread;
            diags.report(TooManyThreads {
                unit: if lanes { "lane".to_owned() } else { unit },
                size: if own.is_named() { None } else { Some(own.stride) },
                of,
                around,
                axes: own.leaves.iter().map(|(a, n)| (axes[*a].name.clone(), *n)).collect(),
                count,
                range: levels::range(&stage.program, own.binding).filter(|(length, _)| own.count() <= *length),
                room,
                threads,
                limit: BLOCK_LIMIT,
                span,
                launch,
                role,
            });
            return None;
        }
        Misfit::Loop(fault) => UnitMisfit::Loop(fault),
        Misfit::NoForm => UnitMisfit::NoForm,
    };
    let possible = match misfit {
        UnitMisfit::Loop(LoopFault::Unit(_)) => levels::launch_with(&stage.program, own.binding, threads, d.cluster),
        _ => None,
    };
    diags.report(MisplacedUnit { unit, axis, problem: misfit, threads, span, role, around, possible });
    None
}

impl Stage {
    /// Whether a thread is one of those that iterations fall to, of an instance of a block.
    fn has_work(&self, thread: i128) -> bool {
        self.owner <= Unit::Cta && digits(self).iter().all(|digit| (0..digit.extent).contains(&digit.path.at(thread)))
    }

    /// How many of so many threads of a block have something to do.
    pub fn busy(&self, threads: i128) -> i128 {
        let d = &self.distribution;
        // All units that come there have an instance each.
        if d.owner > Unit::Cta {
            return threads;
        }
        // Where no axis tells threads apart, each of them computes the registers that it keeps; the first one an output
        // beside another.
        let all = self.place == Place::Registers || self.beside.is_some();
        let each = if all { d.finest().unwrap_or(threads) } else { 1 };
        d.levels.iter().fold(each, |count, level| count.saturating_mul(level.count()))
    }
}

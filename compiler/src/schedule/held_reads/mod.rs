//! That threads hold what they read: whose number reads an element, against whose holds it.
//!
//! **Property.** Where nothing is reported, every element that a stage reads from registers of another one is held by
//! the thread that reads it, in a register that is known when the kernel is compiled. **Formula** (docs/theory.md,
//! Ownership): the [`holders`](super::holders) of the stage have a thread for the element, and the reader's thread has
//! a number of its own, made of its own leaves; both are compared as expressions over these. **Approximation.**
//! Quotients are decided by the ranges of their parts; what is not equal for that reason is searched for a thread that
//! reads from another one, and refused as unproved if none is found.

mod search;

use std::ops::ControlFlow;

use super::neighbours::stems_from;
use super::ownership::{Digit, Ranges, Reads, digits, digits_in_cluster, leaves_at, register_loops, registers};
use super::{Along, Plan, Stage};
use tilewright_theory::side_by_side::{all, piece};

use crate::diag::Diagnostics;
use crate::diag::codes::{FactorLanes, HeldElsewhere, RegisterAtRunTime, RegisterBudget, ThreadWitness};
use crate::domain::{AxisId, AxisKind, Binding, Op, Symbolic, Unit, WARP, WARPGROUP};
use crate::extent::{Budget, Expr, Var, collapse, interval};
use crate::kernel_ir::Sharing;
use crate::schedule::accesses::StageRead;
use crate::source::ast::Place;
use crate::target::REGISTER_LIMIT;

/// Values of variables that are tried for one digit.
const VALUES: u64 = 4096;

/// The number in its cluster of the thread that runs the leaves of a stage, over these and the loops around: `free` is
/// the part of it of which no leaf tells, and the next variable is the block, where none tells of that.
fn thread_of(plan: &Plan, stage: &Stage, free: Var) -> Expr {
    let own =
        digits_in_cluster(stage).into_iter().fold(first_of_owner(plan, stage), |sum, d| sum.add(&number(stage, &d)));
    // Of threads that nothing tells apart the first one runs an output beside another one.
    let own = if stage.beside.is_some() { own } else { own.add(&Expr::var(free)) };
    if stage.distribution.cluster > 1 && stage.owner == Unit::Cluster && stage.distribution.ctas.is_empty() {
        return own.add(&Expr::var(free + 1).scale(stage.distribution.block.into()));
    }
    own
}

/// The number of threads before those that have this digit in their number.
fn number(stage: &Stage, digit: &Digit) -> Expr {
    let at = stage.domain.leaves.iter().position(|l| *l == digit.leaf).unwrap_or(0);
    Expr::var((stage.facts.dims() + at) as Var).scale(digit.stride).add(&Expr::constant(digit.low))
}

/// How many threads nothing tells apart where a stage runs: neither its own leaves nor, of what each thread has for
/// itself, those around.
fn untold(plan: &Plan, stage: &Stage) -> i128 {
    match &stage.attach {
        Some(attach) if stage.owner == Unit::Thread => untold(plan, &plan.stages[attach.stage]),
        _ if stage.beside.is_some() => 1,
        _ => stage.distribution.finest().unwrap_or(stage.distribution.block.into()),
    }
}

/// The first thread of the unit that owns an instance of a stage, over the loops around it; 0 if a cluster owns it.
fn first_of_owner(plan: &Plan, stage: &Stage) -> Expr {
    let mut first = Expr::constant(0);
    let mut at = stage;
    while let Some(attach) = at.attach.as_ref().filter(|_| at.owner > Unit::Cluster) {
        let parent = &plan.stages[attach.stage];
        let around = digits_in_cluster(parent).into_iter().filter(|d| d.unit <= at.owner);
        first = around.fold(first, |sum, d| sum.add(&number(parent, &d)));
        at = parent;
    }
    first
}

/// Whether there are units like the one that owns an instance of a stage to which no iteration falls. They come to the
/// instance as the others do, for whatever iteration their numbers look like, and nothing uses what they compute.
fn has_idle_owners(plan: &Plan, stage: &Stage) -> bool {
    let Some(size) = stage.owner.threads().filter(|_| stage.owner != Unit::Thread) else { return false };
    let (mut units, mut at) = (1, stage);
    while let Some(attach) = at.attach.as_ref().filter(|_| at.owner > Unit::Cluster) {
        let parent = &plan.stages[attach.stage];
        let around = digits(parent).into_iter().filter(|d| d.unit <= at.owner);
        units = around.fold(units, |units: i128, d| units.saturating_mul(d.extent));
        at = parent;
    }
    units.saturating_mul(size) < i128::from(stage.distribution.block)
}

/// Checks every stage in registers and its readers. What `beside` does is done at the same time; none of that after an
/// error.
pub fn check_reads<R: Send>(plan: &Plan, beside: impl FnOnce() -> R + Send, diags: &mut Diagnostics) -> Option<R> {
    let mut found = Diagnostics::new();
    for stage in plan.stages.iter().filter(|s| s.place == Place::Registers) {
        let count = registers(stage);
        if count > i128::from(REGISTER_LIMIT) {
            let unbounded = register_loops(stage).into_iter().find(|l| l.1 == i128::MAX);
            found.report(RegisterBudget {
                stage: stage.name.clone(),
                count: unbounded.is_none().then_some(count),
                axis: unbounded.map(|(leaf, _)| stage.domain.axes[leaf].name.clone()),
                limit: REGISTER_LIMIT.into(),
                is_product: stage.product.is_some(),
                span: stage.span,
            });
        }
    }
    if found.has_errors() {
        diags.append(found);
        return None;
    }
    let mut readers: Vec<Option<Diagnostics>> = plan.stages.iter().map(|_| None).collect();
    let mut other = None;
    let of = |(at, place)| piece(place, move || of_reader(plan, at));
    let of_readers = readers.iter_mut().enumerate().map(of);
    all(plan.stages.len() >= MANY, std::iter::once(piece(&mut other, beside)).chain(of_readers).collect());
    readers.into_iter().flatten().for_each(|own| found.append(own));
    let other = other.filter(|_| !found.has_errors());
    diags.append(found);
    other
}

/// Stages of which it is worth a thread to look at the reads.
const MANY: usize = 4;

/// What is wrong with the reads of a stage.
fn of_reader(plan: &Plan, at: usize) -> Diagnostics {
    let (reader, mut diags) = (&plan.stages[at], Diagnostics::new());
    let symbolic = Symbolic::new(&reader.domain, &reader.facts);
    let beside = symbolic.beside_terms(&reader.facts);
    let found = plan.accesses(at, &symbolic);
    for read in found.iter().flat_map(|found| &found.stages) {
        let Some(held) = plan.taken(at, read).filter(|s| s.place == Place::Registers) else {
            continue;
        };
        let symbolic = if read.in_terms { &symbolic } else { &beside };
        match reader.product.as_ref().filter(|_| read.in_terms) {
            // Instructions read a factor in a way of their own. What they do not read so is refused by `mma`.
            Some(mma) => {
                let columns = mma.has_columns(reader, &read.indices).filter(|right| !(*right && mma.is_async()));
                let Some(has_columns) = columns else { continue };
                let own = mma.reader_of_factor(reader, has_columns);
                let symbolic = &Symbolic::new(&own.stage.domain, &own.stage.facts);
                let (reader, factor) = (&own.stage, own.lanes(held, &read.indices));
                let read = &own.read(read);
                Reading { plan, reader, held, read, symbolic, factor }.check(&mut diags);
            }
            None => Reading { plan, reader, held, read, symbolic, factor: None }.check(&mut diags),
        }
    }
    diags
}

/// Decides for each stage with buffers who accesses an element of it: the thread that computes it, by its digits, and
/// those that read it.
pub(super) fn share(plan: &mut Plan) {
    let shared = Stage::has_buffers;
    let mut found: Vec<Sharing> =
        plan.stages.iter().map(|s| if shared(s) { Sharing::Thread } else { Sharing::Block }).collect();
    for (at, reader) in plan.stages.iter().enumerate() {
        let symbolic = Symbolic::new(&reader.domain, &reader.facts);
        let beside = symbolic.beside_terms(&reader.facts);
        let reads = plan.accesses(at, &symbolic);
        for read in reads.iter().flat_map(|found| &found.stages) {
            let Some(held) = plan.taken(at, read).filter(|s| shared(s)) else { continue };
            let Some(of) = plan.stages.iter().position(|s| std::ptr::eq(s, held)) else { continue };
            // Another role numbers its threads anew.
            let sharing = match reader.role == held.role {
                true => {
                    let symbolic = if read.in_terms { &symbolic } else { &beside };
                    Reading { plan, reader, held, read, symbolic, factor: None }.sharing()
                }
                false => Sharing::Block,
            };
            found[of] = found[of].max(sharing);
        }
    }
    for (stage, sharing) in plan.stages.iter_mut().zip(found) {
        // Threads from one on that starts no warpgroup are of two of them.
        let first = stage.role.map_or(0, |role| plan.roles[role].first);
        let is_aligned = first.is_multiple_of(WARPGROUP as u32 / crate::target::WARP);
        let split = sharing == Sharing::Warpgroup && !is_aligned;
        stage.sharing = if split { Sharing::Block } else { sharing };
    }
}

/// One read of what another stage holds.
struct Reading<'a> {
    plan: &'a Plan,
    reader: &'a Stage,
    held: &'a Stage,
    read: &'a StageRead,
    symbolic: &'a Symbolic,
    /// Of a factor of a product, how it must be dealt out.
    factor: Option<FactorLanes>,
}

impl Reading<'_> {
    /// The number of the thread that reads.
    fn reads(&self) -> Expr {
        thread_of(self.plan, self.reader, self.free())
    }

    /// Stands for the number of a thread of which no leaf tells.
    fn free(&self) -> Var {
        (self.reader.facts.dims() + self.symbolic.variables.len() + 64) as Var
    }

    fn reads_at<'b>(&'b self, range: Ranges<'b>) -> Reads<'b> {
        let Reading { reader, symbolic, .. } = self;
        Reads { domain: &reader.domain, symbolic, facts: &reader.facts, range }
    }

    fn range(&self, v: Var) -> Option<(i128, i128)> {
        if v == self.free() {
            return Some((0, untold(self.plan, self.reader) - 1));
        }
        if v == self.free() + 1 {
            return Some((0, i128::from(self.reader.distribution.cluster) - 1));
        }
        self.symbolic.range(&self.reader.facts, v)
    }

    /// Whether the loop of a variable is written out.
    fn is_written_out(&self, v: Var) -> bool {
        let stage = self.reader;
        let leaf = (v as usize).checked_sub(stage.facts.dims()).and_then(|n| stage.domain.leaves.get(n));
        let Some(leaf) = leaf else { return false };
        let axis = &stage.domain.axes[*leaf];
        let sequence = || stage.domain.leaves.iter().filter(|l| stage.domain.axes[**l].binding.is_sequential());
        let terms = sequence().position(|l| stage.domain.axes[*l].kind == AxisKind::Reduction);
        let place = sequence().position(|l| l == leaf);
        let is_data = axis.kind == AxisKind::Data;
        let inside = stage.reduction.is_some() && is_data && terms.is_some_and(|terms| place > Some(terms));
        matches!(axis.binding, Binding::Unroll(None) | Binding::Vector)
            || inside
            || (is_data && axis.binding.is_sequential() && stage.place == Place::Registers)
    }

    fn check(&self, diags: &mut Diagnostics) {
        let Self { reader, held, read, .. } = self;
        let range = |v: Var| self.range(v);
        let leaves = leaves_at(held, &read.indices, self.reads_at(&range));
        let leaf = |axis: AxisId| held.domain.leaves.iter().position(|l| *l == axis).map(|at| &leaves[at]);
        for (axis, _) in register_loops(held) {
            let value = leaf(axis).cloned().unwrap_or_else(Expr::unknown);
            let bad = value.vars().into_iter().find(|v| !self.is_written_out(*v));
            if value.is_unknown() || bad.is_some() {
                let own = bad.and_then(|v| (v as usize).checked_sub(reader.facts.dims()));
                let own = own.and_then(|n| reader.domain.leaves.get(n)).map(|l| &reader.domain.axes[*l]);
                let is_serial = own.is_some_and(|a| a.binding.is_sequential());
                if !is_serial && self.elsewhere(diags) {
                    return;
                }
                diags.report(RegisterAtRunTime {
                    stage: held.name.clone(),
                    reader: reader.name.clone(),
                    axis: own.map(|a| a.name.clone()),
                    is_serial,
                    of_threads: held.owner == Unit::Thread,
                    read: read.span,
                    span: own.map_or(reader.span, |a| a.span),
                });
                return;
            }
        }
        if held.owner == Unit::Thread {
            return;
        }
        let thread = self.reads();
        for digit in digits_in_cluster(held) {
            let own = collapse(&reader.facts.normal(&digit.path.expression(&thread)), &range);
            let ends = interval(&own, &range);
            // Threads past the last digit hold nothing.
            let last = Expr::constant(digit.extent - 1);
            let proves = |e: &Expr| self.symbolic.proves_nonnegative(&reader.facts, e);
            let exists = !digit.is_partial
                || ends.is_some_and(|(least, most)| least >= 0 && most < digit.extent)
                || (proves(&own) && proves(&last.sub(&own)));
            let same = digit.reduced
                || self.is_alike(digit.leaf)
                || leaf(digit.leaf).is_some_and(|value| {
                    let apart = reader.facts.normal(&value.sub(&own));
                    self.is_zero(&apart) || self.vanishes(&apart) || self.is_zero_in_axes(&apart)
                });
            if !(exists && same) {
                if !self.elsewhere(diags) {
                    self.report(None, diags);
                }
                return;
            }
        }
    }

    /// Whether what is read is the same at all iterations of a leaf: then each thread along it holds it.
    fn is_alike(&self, leaf: AxisId) -> bool {
        let Stage { program, domain, indices, facts, .. } = self.held;
        let alike = program.alike(self.read.source);
        if alike.is_empty() {
            return false;
        }
        let own = indices.iter().filter(|(axis, _)| alike.contains(axis)).flat_map(|(_, e)| e.vars());
        let alike: Vec<AxisId> = own.filter_map(|v| domain.axis_of(v)).collect();
        let extent = |axis: AxisId| facts.normal(&domain.axes[axis].extent).as_constant();
        // All of these threads hold an element.
        let is_whole = |root: AxisId| {
            let mut leaves = domain.leaves.iter().filter(|leaf| domain.depends_on(root, **leaf));
            leaves.try_fold(1, |all, leaf| Some(all * extent(*leaf)?)).is_some_and(|all| extent(root) == Some(all))
        };
        let mut roots = domain.roots.iter().filter(|root| domain.depends_on(**root, leaf)).peekable();
        roots.peek().is_some() && roots.all(|root| alike.contains(root) && is_whole(*root))
    }

    /// Whether an expression is 0 wherever something is read, by arithmetic: what is read has its place in the
    /// instance.
    fn is_zero(&self, e: &Expr) -> bool {
        self.is_zero_where(e, Vec::new())
    }

    /// The same, where no element is that splits have more than their axes: these are left out, but by tensor cores.
    fn is_zero_in_axes(&self, e: &Expr) -> bool {
        let Stage { domain, facts, product, .. } = self.reader;
        let longer = domain.ops.iter().filter_map(|(op, _)| match op {
            Op::Split { input, divisible: false, .. } if product.is_none() => Some(*input),
            _ => None,
        });
        let own = |axis: AxisId| within(self.symbolic.values[axis].clone(), facts.normal(&domain.axes[axis].extent));
        let longer: Vec<Expr> = longer.flat_map(own).collect();
        !longer.is_empty() && self.is_zero_where(e, longer)
    }

    fn is_zero_where(&self, e: &Expr, also: Vec<Expr>) -> bool {
        let places = self.held.coordinates.iter().map(|c| (c.at(&self.read.indices), c.most.clone()));
        let untold = (Expr::var(self.free()), Expr::constant(untold(self.plan, self.reader)));
        let premises = places.chain([untold]).flat_map(|(at, most)| within(at, most));
        let premises: Vec<Expr> = premises.chain(also).filter(|e| !e.is_unknown()).collect();
        let proves = |e: &Expr| self.symbolic.proves_nonnegative_where(&self.reader.facts, &premises, e);
        e.as_constant() == Some(0) || (!e.is_unknown() && proves(e) && proves(&e.scale(-1)))
    }

    /// Whether an expression of few variables with few values is 0 for all of these.
    fn vanishes(&self, e: &Expr) -> bool {
        let vars = e.vars();
        let ranges: Option<Vec<(i128, i128)>> = vars.iter().map(|v| self.range(*v)).collect();
        let (Some(ranges), Some(last)) = (ranges, vars.iter().max()) else { return false };
        if e.is_unknown() || *last > self.free() {
            return false;
        }
        let extents: Vec<i128> = ranges.iter().map(|(least, most)| most - least + 1).collect();
        let mut values = vec![0; *last as usize + 1];
        let mut budget = Budget::new(VALUES);
        let visit = |point: &[i128], budget: &mut Budget| {
            for ((v, at), (least, _)) in vars.iter().zip(point).zip(&ranges) {
                values[*v as usize] = least + at;
            }
            if budget.take(1) && e.eval(&values) == Some(0) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        points(&extents, &mut budget, visit).is_continue()
    }

    /// Who reads an element, seen from the thread that computes it: that one, which has the number of its leaves; of
    /// threads that share a result it is the first.
    fn sharing(&self) -> Sharing {
        let Self { reader, held, read, .. } = self;
        let range = |v: Var| self.range(v);
        let leaves = leaves_at(held, &read.indices, self.reads_at(&range));
        let digits = digits(held);
        if held.owner == Unit::Thread {
            return Sharing::Thread;
        }
        if digits.is_empty() && held.distribution.block > 1 {
            return Sharing::Block;
        }
        let computes = digits.iter().fold(Expr::constant(0), |sum, digit| {
            let sum = sum.add(&Expr::constant(digit.low));
            if digit.reduced {
                return sum;
            }
            let value = held.domain.leaves.iter().position(|l| *l == digit.leaf).map(|at| &leaves[at]);
            sum.add(&value.map_or_else(Expr::unknown, |value| value.scale(digit.stride)))
        });
        // An instance of a unit is read by its threads.
        let is_in_cluster = held.owner == Unit::Cta && held.distribution.cluster > 1;
        let within = held.owner.threads().or(is_in_cluster.then_some(held.distribution.block.into()));
        let reads = within.map_or_else(|| self.reads(), |size| self.reads().modulo(&Expr::constant(size)));
        // Units that are idle read what others have, which is nobody's harm, but not while it is written.
        let idle = has_idle_owners(self.plan, reader) && held.owner < reader.owner;
        let same = |by: i128| {
            if idle {
                return false;
            }
            let of = |e: &Expr| collapse(&reader.facts.normal(&e.floor_div(&Expr::constant(by))), &range);
            self.is_zero(&reader.facts.normal(&of(&computes).sub(&of(&reads))))
        };
        // Only of blocks that consist of several whole ones.
        let threads = i128::from(held.distribution.block);
        let among = |size: i128| threads % size == 0 && (within.is_some_and(|own| own <= size) || same(size));
        if same(1) {
            Sharing::Thread
        } else if among(WARP) {
            Sharing::Warp
        } else if threads > WARPGROUP && among(WARPGROUP) {
            Sharing::Warpgroup
        } else {
            Sharing::Block
        }
    }

    /// Looks for the smallest case in which a thread reads what another one holds, and reports it; whether there is
    /// one.
    fn elsewhere(&self, diags: &mut Diagnostics) -> bool {
        let found = self.search();
        let known = found.is_some();
        if known {
            self.report(found, diags);
        }
        known
    }

    /// Of what tensor cores leave, the op that gives it to the threads that have it: on the axes of the reader that are
    /// a tile's rows and columns, where it has such.
    fn fragment(&self) -> Option<String> {
        let Self { reader, held, read, symbolic, .. } = self;
        let engine = held.product.as_ref()?.engine;
        let domain = &reader.domain;
        let axis_of = |(along, index): (&Along, &Expr)| {
            let is_index = |root: &&AxisId| {
                let apart = reader.facts.normal(&index.sub(&symbolic.values[**root]));
                !apart.is_unknown() && apart.vars().iter().all(|v| (*v as usize) < reader.facts.dims())
            };
            let root = *domain.roots.iter().find(is_index)?;
            let most = along.most.as_constant()?;
            let is_it = |axis: &AxisId| {
                domain.axes[*axis].extent.as_constant() == Some(most) && stems_from(domain, *axis, root)
            };
            (0..domain.axes.len()).find(is_it).map(|axis| domain.axes[axis].name.as_str())
        };
        let axes: Vec<&str> =
            held.coordinates.iter().zip(&read.indices).map(|pair| axis_of(pair).unwrap_or("…")).collect();
        Some(format!("fragment ({}) by {engine}", axes.join(", ")))
    }

    fn report(&self, witness: Option<ThreadWitness>, diags: &mut Diagnostics) {
        diags.report(HeldElsewhere {
            stage: self.held.name.clone(),
            reader: self.reader.name.clone(),
            witness,
            factor: self.factor.clone(),
            fragment: self.fragment(),
            read: self.read.span,
            span: self.held.span,
        });
    }
}

/// 0 ≤ at < most, as two expressions that are at least 0.
fn within(at: Expr, most: Expr) -> [Expr; 2] {
    [most.sub(&Expr::constant(1)).sub(&at), at]
}

/// Visits every point of a box, in lexicographic order.
fn points<B>(
    extents: &[i128],
    budget: &mut Budget,
    mut visit: impl FnMut(&[i128], &mut Budget) -> ControlFlow<B>,
) -> ControlFlow<B> {
    if extents.iter().any(|e| *e <= 0) {
        return ControlFlow::Continue(());
    }
    let mut point = vec![0; extents.len()];
    loop {
        visit(&point, budget)?;
        let Some(next) = (0..point.len()).rev().find(|n| point[*n] + 1 < extents[*n]) else {
            return ControlFlow::Continue(());
        };
        point[next] += 1;
        point[next + 1..].fill(0);
    }
}

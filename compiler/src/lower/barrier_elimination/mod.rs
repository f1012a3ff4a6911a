//! Which of the block's barriers are needed.
//!
//! Lowering puts a [`StatementKind::BarSync`] wherever threads that use a buffer, or a copy and such threads, may need
//! one, each place for itself. Here those are taken out without which everything is still ordered.
//!
//! **Property.** On every path, between two of these, in this order, there is a barrier:
//!
//! | before | after |
//! | --- | --- |
//! | barriers of copies are made ready | anything that uses one |
//! | a thread reads or writes a buffer | a copy that fills it |
//! | a thread waits for a phase of a barrier | the next phase begins |
//! | a thread publishes what it wrote to a buffer | a copy from that buffer |
//! | the block begins; what stands in the first three rows | a copy that fills buffers of several blocks, after a barrier of the cluster |
//! | the block begins; a thread reads or writes a buffer | a thread writes it in all blocks, after a barrier of the cluster |
//! | a thread writes a buffer in all blocks | a thread reads it, or the block ends, after a barrier of the cluster |
//! | the block begins | it tells other blocks that a slot is free, after a barrier of the cluster |
//! | a block tells others so | it ends, after a barrier of the cluster |
//! | the elected thread has waited for reads of its copies | a thread writes to a buffer that is copied |
//! | a thread writes an instance of a buffer | a thread reads it |
//! | a thread reads or writes an instance of a buffer | another instance in its slot is written |
//! | a thread has waited for its fetches | a thread reads a buffer that threads fetch to |
//! | a thread reads or writes a buffer | a thread writes another one that lies in the same memory |
//! | a thread other than the first writes a workspace, or accesses a tensor that the kernel writes | the first thread arrives at a counter |
//! | the first thread arrives | another one accesses a workspace or such a tensor, where its block is known to be the last |
//! | a thread of a role of several warps waits for a slot that another role hands over | the next slot is filled by its own role |
//! | a thread of a role of several warps waits for any phase | its role fills slots of several blocks |
//!
//! In a role this is said of its threads. What roles hand to each other is ordered by its barriers (`role_pipeline`),
//! whose use the separate checker judges. In a block of one warp a barrier of the warp will do for all of them. What is
//! read of a workspace is not written again, so that nobody waits for readers. After an arrival, but not in the branch
//! of the last block, nothing depends on it: other blocks may not have arrived, and no barrier of this one orders what
//! they access.
//!
//! In the rows of instances and fetches a barrier is needed only if different threads access an element, and one of
//! warps or warpgroups will do if they are of one: as far as the schedule knows of the whole buffer ([`Sharing`]), or
//! as the two accesses say with the conditions, loops and iterations in which they happen (`dependence`,
//! `pending_accesses`). A barrier that is needed is weakened to one of warps where that suffices, else to one of
//! warpgroups.
//!
//! Instances take the slots of a buffer in turn, each with its renewal: n renewals after an instance came, its slot is
//! another one's. Threads read the newest instance, but of buffers that they fetch to ahead: there any of them. That a
//! thread waits for its fetches before the barrier is where it is waited for; the separate checker sees that it is
//! enough.
//!
//! Threads that write one instance of a buffer write different elements of it, so that there is nothing to order
//! between their writes; the next instance may give an element to another thread. A thread alone in its block has
//! nobody to wait for: what threads do to each other needs none, nor do phases.
//!
//! **Formula.** Forward data flow: what happened since the last barrier on some path; a loop's body starts with what
//! was before the loop or at the body's end; after it comes what was before it only if it may have no iteration.
//! Threads that branch apart are on both sides at a time. **Approximation.** To copies by the accelerator a ring's
//! slots are one buffer, and every wait for reads concerns every buffer: barriers may be kept that only some paths
//! need, never taken out where one does. Paths are told apart by conditions, and by whether loops run, where several
//! branches and loops share them or what one of them does says something of another (`guards`), while these have one
//! value and in the next iteration; others are taken both ways.

mod ordered;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tilewright_kernel::algorithm::{Binary, Compare};

use super::dependence::{Dependences, Group};
use super::guards::{Fact, Guards, Known};
use super::pending_accesses::Since;
use crate::extent::Expr;
use crate::kernel_ir::{
    BufferId, Engine, InRoles, IndexOp, Inside, Kernel, Op, RegionId, Sharing, Statement, StatementKind, ValueId,
};
use crate::target::{WARP, WARPGROUP};

/// Takes out every barrier that is not needed, those in the most loops first; none if something is not ordered as it
/// is: a defect of the compiler. `blocks` is how many blocks run the kernel, over its dimensions.
pub(super) fn minimise(kernel: Kernel, blocks: Option<&Expr>) -> Option<Kernel> {
    minimise_within(kernel, blocks, MOST_WORK).map(|(kernel, _)| kernel)
}

/// The same, with so much work before what is left stays; and how much it was.
fn minimise_within(mut kernel: Kernel, blocks: Option<&Expr>, most: u64) -> Option<(Kernel, u64)> {
    let arrives = |statement: &Statement| matches!(statement.kind, StatementKind::LastBlockTicket { .. });
    if kernel.buffers.is_empty() && !kernel.regions.iter().flat_map(|r| &r.statements).any(arrives) {
        return Some((kernel, 0));
    }
    let mut pass = Pass::new(&kernel, blocks);
    if !pass.holds() {
        return None;
    }
    let mut candidates = Vec::new();
    collect(&kernel, Kernel::BODY, 0, &mut candidates);
    // Those of the cluster first: others are there for what orders threads of a block.
    let is_of_block = |region: RegionId, at: usize| kernel.region(region).statements[at].kind == StatementKind::BarSync;
    candidates.sort_by_key(|(loops, region, at)| (is_of_block(*region, *at), std::cmp::Reverse(*loops)));
    // What is read in other blocks is not followed.
    let visits = |s: &Statement| matches!(s.kind, StatementKind::LoadDsmem { .. });
    let visits = kernel.regions.iter().flat_map(|r| &r.statements).any(visits);
    candidates.retain(|(_, region, at)| !visits || is_of_block(*region, *at));
    let in_block: BTreeSet<(RegionId, usize)> =
        candidates.iter().filter(|c| is_of_block(c.1, c.2)).map(|c| (c.1, c.2)).collect();
    let spent = |pass: &Pass<'_>| pass.work.get() > most;
    for &(_, region, at) in &candidates {
        if spent(&pass) {
            break;
        }
        pass.gone.push((region, at));
        if !pass.holds() {
            pass.gone.pop();
        }
    }
    for (_, region, at) in candidates {
        // Of blocks and roles that consist of several whole ones.
        let Range { start, end } = pass.roles.threads(region);
        let threads = end - start;
        let groups = threads > WARPGROUP && threads.is_multiple_of(WARPGROUP) && start.is_multiple_of(WARPGROUP);
        let units = [(Sharing::Warp, threads.is_multiple_of(WARP)), (Sharing::Warpgroup, groups)];
        let units: Vec<Sharing> = units.into_iter().filter(|unit| unit.1).map(|unit| unit.0).collect();
        if pass.gone.contains(&(region, at)) || !in_block.contains(&(region, at)) {
            continue;
        }
        for unit in &units {
            if spent(&pass) {
                break;
            }
            pass.weak.push((region, at, *unit));
            if pass.holds() {
                break;
            }
            pass.weak.pop();
        }
    }
    let Pass { mut gone, weak, work, .. } = pass;
    for (region, at, among) in weak {
        let weaker = if among == Sharing::Warp { StatementKind::BarWarpSync } else { StatementKind::BarSyncWarpgroup };
        kernel.regions[region.index()].statements[at].kind = weaker;
    }
    // From the back, so that positions stay right.
    gone.sort_unstable_by_key(|(region, at)| std::cmp::Reverse((region.index(), *at)));
    for (region, at) in gone {
        kernel.regions[region.index()].statements.remove(at);
    }
    Some((kernel, work.get()))
}

/// Every barrier with the loops around it.
fn collect(kernel: &Kernel, region: RegionId, loops: u32, found: &mut Vec<(u32, RegionId, usize)>) {
    for (at, statement) in kernel.region(region).statements.iter().enumerate() {
        if matches!(statement.kind, StatementKind::BarSync | StatementKind::BarrierCluster) {
            found.push((loops, region, at));
        }
        let inside = statement.kind.effects().inside;
        let loops = loops + u32::from(matches!(inside, Inside::Loop(_)));
        inside.regions().for_each(|part| collect(kernel, part, loops, found));
    }
}

/// Statements that are looked at to find needless barriers; what is left then stays.
const MOST_WORK: u64 = 1_000_000;

/// What happened on the paths to a statement, by what is known there.
type Paths = BTreeMap<Known, Since>;

/// So many kinds of paths are told apart; beyond that, all are one.
const MOST_PATHS: usize = 64;

fn add(paths: &mut Paths, known: Known, since: Since) {
    match paths.get_mut(&known) {
        Some(other) => other.join(&since),
        None => drop(paths.insert(known, since)),
    }
}

/// The property, without some of the barriers.
pub(super) struct Pass<'a> {
    kernel: &'a Kernel,
    /// For each buffer, the one in whose memory it lies.
    pub alias_of: Vec<BufferId>,
    /// Barriers that are taken out.
    gone: Vec<(RegionId, usize)>,
    /// Barriers of smaller units now.
    weak: Vec<(RegionId, usize, Sharing)>,
    /// Whether threads fetch to each buffer.
    fetched: Vec<bool>,
    /// What tells paths apart.
    guards: Guards,
    /// Who accesses what others accessed.
    dependences: Dependences<'a>,
    /// Regions that the first thread alone comes to, of the block or of a role.
    first: BTreeSet<RegionId>,
    /// Regions that only the last block to arrive comes to, as its threads agree.
    last: BTreeSet<RegionId>,
    /// Which role runs a region, and what roles hand to each other.
    roles: InRoles,
    /// Statements that were looked at so far, once for each kind of path.
    work: Cell<u64>,
}

impl<'a> Pass<'a> {
    /// That of a kernel with all of its barriers; of so many blocks, if that is known.
    pub fn new(kernel: &'a Kernel, blocks: Option<&'a Expr>) -> Self {
        // The last cluster may have more blocks than there is work for.
        let blocks = blocks.filter(|_| kernel.signature.cluster == 1);
        let mut fetched = vec![false; kernel.buffers.len()];
        for statement in kernel.regions.iter().flat_map(|region| &region.statements) {
            let fetches = statement.kind.effects().accesses().filter(|access| access.by == Engine::CpAsync);
            fetches.filter_map(|access| access.buffer()).for_each(|buffer| fetched[buffer.index()] = true);
        }
        let mut first = BTreeSet::new();
        of_first_thread(kernel, Kernel::BODY, 0, false, &mut first);
        let mut last = BTreeSet::new();
        of_last_block(kernel, Kernel::BODY, false, &mut last);
        Self {
            kernel,
            alias_of: kernel.alias_of.clone(),
            gone: Vec::new(),
            weak: Vec::new(),
            fetched,
            guards: Guards::new(kernel, blocks),
            dependences: Dependences::new(kernel, blocks),
            first,
            last,
            roles: InRoles::of(kernel),
            work: Cell::new(0),
        }
    }

    /// Whether everything is ordered.
    pub fn holds(&self) -> bool {
        let mut since = Since::nothing(self.kernel);
        since.ready = !self.kernel.barriers.is_empty();
        since.in_cluster.begun = true;
        let ends = self.flow(Kernel::BODY, 0, BTreeMap::from([(Known::default(), since)]));
        // What others write in a block, or tell it, comes before it ends.
        let is_over = |since: &Since| !since.in_cluster.spread.contains(&true) && !since.in_cluster.told;
        ends.is_some_and(|paths| paths.values().all(is_over))
    }

    /// Whether there was as much work as a kernel may take.
    pub fn is_spent(&self) -> bool {
        self.work.get() > MOST_WORK
    }

    /// What happened after a region inside so many loops; none if something in it is not ordered.
    fn flow(&self, region: RegionId, depth: usize, mut paths: Paths) -> Option<Paths> {
        for (at, statement) in self.kernel.region(region).statements.iter().enumerate() {
            self.work.set(self.work.get() + 1 + paths.len() as u64);
            match &statement.kind {
                StatementKind::Elect(part) => paths = self.flow(*part, depth, paths)?,
                StatementKind::Roles(roles) => {
                    // Each goes its own way, and at the end all wait for each other.
                    let mut ends = Vec::new();
                    for role in roles {
                        ends.extend(self.flow(role.body, depth, paths.clone())?.into_values());
                    }
                    let threads = self.kernel.signature.threads;
                    for since in paths.values_mut() {
                        ends.iter().for_each(|end| since.in_cluster.join(&end.in_cluster));
                        since.sync(self.kernel, Sharing::Block, threads);
                    }
                }
                StatementKind::If(branch) => {
                    let [then, mut otherwise] = self.sides(paths, Fact::Holds(branch.condition));
                    paths = self.forgotten(branch.then, self.flow(branch.then, depth, then)?);
                    if let Some(part) = branch.otherwise {
                        if !self.kernel.value(branch.condition).facts.uniform {
                            // Other threads are on the one side while some are on the other.
                            paths.iter().for_each(|(known, since)| add(&mut otherwise, *known, since.clone()));
                        }
                        otherwise = self.forgotten(part, self.flow(part, depth, otherwise)?);
                    }
                    otherwise.into_iter().for_each(|(known, since)| add(&mut paths, known, since));
                }
                StatementKind::Loop(l) => {
                    let mut many = false;
                    let [runs, skips] = self.sides(paths, Fact::Runs(l.count));
                    // What was before the loop is after it only where it has no iteration.
                    let always = self.kernel.value(l.count).facts.range.low >= 1;
                    let skips = if always { Paths::new() } else { skips };
                    let is_around = |group: Group| self.dependences.is_around(l.body, depth, group);
                    paths = self.iterated(l.body, self.flow(l.body, depth + 1, runs)?);
                    loop {
                        let before = paths.clone();
                        let mut again = paths.clone();
                        again.values_mut().for_each(|since| since.again(depth, &is_around));
                        let behind = self.iterated(l.body, self.flow(l.body, depth + 1, again)?);
                        behind.into_iter().for_each(|(known, since)| add(&mut paths, known, since));
                        many |= paths.len() > MOST_PATHS;
                        if many {
                            paths = as_one(paths);
                        }
                        // Nothing more can come: each turn adds something, and there is little to add.
                        if paths == before {
                            break;
                        }
                    }
                    paths.values_mut().for_each(|since| since.behind(depth));
                    paths = self.forgotten(l.body, paths);
                    skips.into_iter().for_each(|(known, since)| add(&mut paths, known, since));
                }
                StatementKind::BarSync | StatementKind::BarrierCluster if self.gone.contains(&(region, at)) => {}
                StatementKind::BarrierCluster => {
                    let threads = self.roles.threads(region).len() as u32;
                    // Where a role meets, the barrier of that must be ready in all blocks.
                    if self.roles.is_in_role(region)
                        && paths.values().any(|since| since.ready || since.in_cluster.begun)
                    {
                        return None;
                    }
                    paths.values_mut().for_each(|since| since.sync_cluster(self.kernel, threads));
                }
                kind => {
                    let first = self.first.contains(&region);
                    let place = Place { region, first, group: self.dependences.group(region, at) };
                    let effects = kind.effects();
                    if !paths.values_mut().all(|since| self.is_ordered(kind, &effects, place, since)) {
                        return None;
                    }
                    if let Some(among) = self.among(kind, region, at) {
                        let threads = self.roles.threads(region).len() as u32;
                        paths.values_mut().for_each(|since| {
                            // A role waits for its own threads, and the block made barriers ready.
                            let ready = since.ready && self.roles.is_in_role(region);
                            since.sync(self.kernel, among, threads);
                            since.ready |= ready;
                        });
                    }
                }
            }
        }
        Some(paths)
    }

    /// The paths after a region: what it binds is another value the next time.
    fn forgotten(&self, region: RegionId, paths: Paths) -> Paths {
        self.known_as(paths, |fact| (self.kernel.value(fact.value()).region != region).then_some(fact))
    }

    /// The paths after an iteration, where what it binds was so in the iteration before.
    fn iterated(&self, body: RegionId, paths: Paths) -> Paths {
        let bound = |fact: Fact| self.kernel.value(fact.value()).region == body;
        self.known_as(paths, |fact| if bound(fact) { self.guards.before(fact) } else { Some(fact) })
    }

    fn known_as(&self, paths: Paths, how: impl Fn(Fact) -> Option<Fact>) -> Paths {
        let mut behind = Paths::new();
        for (known, since) in paths {
            add(&mut behind, self.guards.known_as(known, &how), since);
        }
        if behind.len() > MOST_PATHS { as_one(behind) } else { behind }
    }

    /// The paths on which a fact holds, and those on which it does not.
    fn sides(&self, paths: Paths, fact: Fact) -> [Paths; 2] {
        let mut sides = [Paths::new(), Paths::new()];
        for (known, since) in paths {
            for (side, holds) in sides.iter_mut().zip([true, false]) {
                if !self.guards.excludes(known, fact, holds) {
                    add(side, self.guards.with(known, fact, holds), since.clone());
                }
            }
        }
        sides
    }
}

/// Where a statement stands.
#[derive(Clone, Copy)]
struct Place {
    region: RegionId,
    /// Whether the first thread alone comes there.
    first: bool,
    /// What it accesses of a buffer.
    group: Option<Group>,
}

/// The regions that nobody but the thread with a number comes to, the first one of the block or of a role, among those
/// inside one.
fn of_first_thread(kernel: &Kernel, region: RegionId, number: u32, first: bool, found: &mut BTreeSet<RegionId>) {
    if first {
        found.insert(region);
    }
    for statement in &kernel.region(region).statements {
        match statement.kind.effects().inside {
            Inside::Nothing => {}
            Inside::Loop(l) => of_first_thread(kernel, l.body, number, first, found),
            Inside::If(branch) => {
                let then = first || is_first_thread(kernel, branch.condition, number);
                of_first_thread(kernel, branch.then, number, then, found);
                branch.otherwise.iter().for_each(|otherwise| of_first_thread(kernel, *otherwise, number, first, found));
            }
            Inside::Elect(part) => of_first_thread(kernel, part, number, false, found),
            Inside::Roles(roles) => {
                roles.iter().for_each(|role| of_first_thread(kernel, role.body, role.threads().start, false, found));
            }
        }
    }
}

/// The regions that only the last block to arrive comes to, among those inside one.
fn of_last_block(kernel: &Kernel, region: RegionId, last: bool, found: &mut BTreeSet<RegionId>) {
    if last {
        found.insert(region);
    }
    for statement in &kernel.region(region).statements {
        match statement.kind.effects().inside {
            Inside::If(branch) => {
                of_last_block(kernel, branch.then, last || is_last_block(kernel, branch.condition), found);
                branch.otherwise.iter().for_each(|otherwise| of_last_block(kernel, *otherwise, last, found));
            }
            inside => inside.regions().for_each(|part| of_last_block(kernel, part, last, found)),
        }
    }
}

/// Whether a condition holds only in a block that was the last to arrive.
fn is_last_block(kernel: &Kernel, condition: ValueId) -> bool {
    match kernel.value(condition).op {
        Op::Agreed => true,
        Op::Binary(Binary::And, a, b) => is_last_block(kernel, a) || is_last_block(kernel, b),
        _ => false,
    }
}

/// Whether a condition holds for the thread with a number alone: the number of the thread in its role is 0.
fn is_first_thread(kernel: &Kernel, condition: ValueId, number: u32) -> bool {
    let op = |value: ValueId| kernel.value(value).op;
    let less = |value: ValueId| kernel.index_literal(value) == Some(-i64::from(number));
    let is_thread = |value: ValueId| match op(value) {
        Op::ThreadIndex => number == 0,
        Op::Index(IndexOp::Add, a, b) => op(a) == Op::ThreadIndex && less(b) || op(b) == Op::ThreadIndex && less(a),
        _ => false,
    };
    match op(condition) {
        Op::CompareIndex(Compare::Eq, a, b) => {
            let pair = |a: ValueId, b: ValueId| is_thread(a) && op(b) == Op::Literal(0);
            pair(a, b) || pair(b, a)
        }
        Op::Binary(Binary::And, a, b) => is_first_thread(kernel, a, number) || is_first_thread(kernel, b, number),
        // That its block was the last, the first thread says.
        Op::Arrived => true,
        _ => false,
    }
}

/// The paths, without what tells them apart.
fn as_one(paths: Paths) -> Paths {
    let mut all = Paths::new();
    paths.into_values().for_each(|since| add(&mut all, Known::default(), since));
    all
}

#[cfg(test)]
mod tests;

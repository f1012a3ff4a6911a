//! Where threads wait for each other.
//!
//! Lowering says what is done, in which order one thread does it, and what waits for copies (mbarriers, groups of
//! `cp.async`). It puts no barrier of threads anywhere. What must be ordered follows from the effects of statements
//! ([`Effects`](crate::kernel_ir::Effects)), and barriers are put here, where something is not.
//!
//! **Property.** On every path, between two of these, in this order, there is a barrier of those who take part:
//!
//! | before | after |
//! | --- | --- |
//! | *threads:* one writes an instance of a buffer | another one reads it |
//! | one reads or writes an instance | another one writes the next in its slot, or another buffer in the same memory |
//! | *copies:* a thread has waited for its `cp.async` | another one reads what they wrote |
//! | a thread reads or writes a buffer | TMA fills it |
//! | a thread writes a buffer, and a proxy fence | TMA reads it |
//! | the elected thread has waited for reads of TMA | a thread writes to a buffer |
//! | *phases:* mbarriers are made ready, or a thread waits for a phase of one | anything uses one; its next phase begins |
//! | *clusters:* the block begins; a thread accesses a buffer or waits for a phase | another block fills the buffer |
//! | the block begins | it tells other blocks something |
//! | a block writes in another one, or tells it something | that one reads it, or ends |
//! | *the grid:* a thread other than the first accesses memory that blocks share | the first one arrives at a counter |
//! | the first one arrives | another one accesses such memory, where its block is known to be the last |
//!
//! The rows of clusters ask for a barrier of the cluster, the others for one of the block. In a role this is said of
//! its threads. What roles hand to each other is ordered by its mbarriers (`role_pipeline`), whose use the separate
//! checker judges; but who of several warps fills a slot for others has waited for all of them. In a block of one warp
//! a barrier of the warp will do for all rows. What is read of a workspace is not written again, so that nobody waits
//! for readers. After an arrival, but not in the branch of the last block, nothing depends on it: other blocks may not
//! have arrived, and no barrier of this one orders what they access.
//!
//! In the rows of instances and `cp.async` a barrier is needed only if different threads access an element, and one of
//! warps or warpgroups will do if they are of one: as far as the schedule knows of the whole buffer ([`Sharing`]), or
//! as the two accesses say with the conditions, loops and iterations in which they happen (`dependence`,
//! `pending_accesses`).
//!
//! Instances take the slots of a buffer in turn, each with its [`StatementKind::LifetimeStart`]: n of these after an
//! instance came, its slot is another one's. Threads read the newest instance, but of buffers that they fetch to ahead:
//! there any of them. Threads that write one instance of a buffer write different elements of it, so that there is
//! nothing to order between their writes; the next instance may give an element to another thread. A thread alone in
//! its block has nobody to wait for: what threads do to each other needs no barrier, nor do phases.
//!
//! **Formula.** Forward data flow: what happened since the last barrier on some path; a loop's body starts with what
//! was before the loop or at the body's end; after it comes what was before it only if it may have no iteration.
//! Threads that branch apart are on both sides at a time. A loop in which nothing tells paths apart does the same on
//! all of them: it is followed once for each that happened before it. Where something is not ordered, as far as the
//! schedule knows, the flow puts a barrier right before it, or before the branches that it is in. Each barrier is then
//! left out if others, or a search, show it to be needless, taken out of loops as far as everything stays ordered,
//! moved into a branch that alone needs it, and weakened to one of warps or warpgroups. One of the cluster takes the
//! place of an earlier one of the block.
//!
//! **Approximation.** To TMA a ring's slots are one buffer, and every wait for reads concerns every buffer: barriers
//! may be put that only some paths need, never left out where one does. Paths are told apart by conditions, and by
//! whether loops run, where several branches and loops share them or what one of them does says something of another
//! (`guards`), while these have one value and in the next iteration; others are taken both ways. A barrier stands as
//! late as it can; that fewer would do if one stood earlier is not looked for.

mod flow;
mod ordered;
mod paths;
mod regions;
mod seen;

use std::cmp::Reverse;
use std::mem::{Discriminant, discriminant};
use std::ops::Range;

pub(super) use self::flow::Pass;
use self::flow::Placed;
use self::regions::{Position, branch_after, has_arrivals};
use crate::extent::Expr;
use crate::kernel_ir::{BufferId, Kernel, Region, RegionId, Sharing, Statement, StatementKind};
use crate::target::{WARP, WARPGROUP};

/// A barrier that is put before a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Barrier {
    /// Of those who share an element of such a buffer.
    Of(Sharing),
    /// Of all blocks of the cluster.
    OfCluster,
}

/// Puts barriers where something is not ordered without one; none if no barrier orders it: a defect of the compiler.
/// `blocks` is how many blocks run the kernel, over its dimensions. `earlier` is where another entry point has its
/// barriers, and becomes where this one does: what does the same needs the same. `share` may then let buffers lie in
/// the memory of others, as far as everything stays ordered.
pub(super) fn place(
    kernel: Kernel,
    blocks: Option<&Expr>,
    earlier: &mut Placement,
    share: impl FnOnce(&mut Pass<'_>),
) -> Option<Kernel> {
    if !has_accesses(&kernel) {
        return Some(kernel);
    }
    let mut pass = placed_within(&kernel, blocks, earlier, MOST_WORK)?;
    // It has as much work as the choice of places had.
    pass.work.set(0);
    share(&mut pass);
    Some(with_barriers(pass.finish(), kernel))
}

/// The same for a kernel of one entry point and any number of blocks.
#[cfg(test)]
pub(super) fn place_alone(kernel: Kernel) -> Option<Kernel> {
    place(kernel, None, &mut Placement::default(), |_| {})
}

/// Whether a kernel has something that barriers order.
fn has_accesses(kernel: &Kernel) -> bool {
    !kernel.buffers.is_empty() || has_arrivals(kernel)
}

/// The barriers, with so much work before they stay where they are.
fn placed_within<'a>(
    kernel: &'a Kernel,
    blocks: Option<&'a Expr>,
    earlier: &mut Placement,
    most: u64,
) -> Option<Pass<'a>> {
    let mut pass = Pass::new(kernel, blocks);
    let as_earlier = earlier.of(kernel).is_some_and(|placed| {
        pass.placed = placed.into();
        pass.holds()
    });
    let mut choice = Choice { pass, most };
    if !as_earlier {
        if !choice.pass.place_where_missing() {
            return None;
        }
        if choice.hoist() {
            choice.leave_out();
        }
        choice.merge();
        choice.sink();
        choice.weaken();
    }
    let pass = choice.pass;
    *earlier = Placement::new(kernel, &pass.placed.borrow());
    Some(pass)
}

/// Where the barriers of an entry point are, in the words of any other one that does the same in the same order.
/// Entry points with other types of indices compute other values, and nothing else.
#[derive(Default)]
pub(super) struct Placement {
    /// For each region, what is done there, without what computes values.
    done: Vec<Vec<Discriminant<StatementKind>>>,
    /// A region, and before which of these the barrier is.
    barriers: Vec<(RegionId, usize, Barrier)>,
}

impl Placement {
    fn new(kernel: &Kernel, placed: &Placed) -> Self {
        let nth = |(region, at): Position| kernel.region(region).statements[..at].iter().filter(|s| is_done(s)).count();
        let barriers = placed.iter().map(|(position, barrier)| (position.0, nth(*position), *barrier));
        Self { done: done(kernel), barriers: barriers.collect() }
    }

    /// The same places in a kernel; none if it does something else.
    fn of(&self, kernel: &Kernel) -> Option<Placed> {
        if self.done != done(kernel) {
            return None;
        }
        let at = |region: RegionId, nth: usize| {
            let statements = &kernel.region(region).statements;
            let mut own = statements.iter().enumerate().filter(|(_, s)| is_done(s));
            own.nth(nth).map_or(statements.len(), |(at, _)| at)
        };
        Some(self.barriers.iter().map(|(region, nth, barrier)| ((*region, at(*region, *nth)), *barrier)).collect())
    }
}

/// Whether two kernels do the same in the same order, so that one may have the barriers of the other.
pub(super) fn does_as(kernel: &Kernel, other: &Kernel) -> bool {
    done(kernel) == done(other)
}

/// Whether a statement does more than to compute a value.
const fn is_done(statement: &Statement) -> bool {
    !matches!(statement.kind, StatementKind::Let(_))
}

fn done(kernel: &Kernel) -> Vec<Vec<Discriminant<StatementKind>>> {
    let of = |region: &Region| region.statements.iter().filter(|s| is_done(s)).map(|s| discriminant(&s.kind)).collect();
    kernel.regions.iter().map(of).collect()
}

/// Statements that are looked at to find better places; what is left then stays.
const MOST_WORK: u64 = 1_000_000;

/// The search for better places of barriers, after each of whose steps everything is ordered.
struct Choice<'a> {
    pass: Pass<'a>,
    most: u64,
}

impl Choice<'_> {
    fn placed(&self) -> Vec<(Position, Barrier)> {
        self.pass.placed.borrow().iter().map(|(position, barrier)| (*position, *barrier)).collect()
    }

    /// Whether everything is ordered when a barrier is left out, or is another one at another place; then it is. Not if
    /// there was too much work.
    fn holds_with(&mut self, at: Position, instead: Option<(Position, Barrier)>) -> bool {
        if self.pass.work.get() > self.most {
            return false;
        }
        let before = self.pass.placed.get_mut().clone();
        let placed = self.pass.placed.get_mut();
        placed.remove(&at);
        if let Some((to, barrier)) = instead {
            let there = placed.entry(to).or_insert(barrier);
            *there = barrier.max(*there);
        }
        let changed = [at, instead.map_or(at, |(to, _)| to)];
        changed.iter().for_each(|position| self.pass.change(*position));
        let holds = self.pass.holds_again(&changed);
        if !holds {
            *self.pass.placed.get_mut() = before;
            changed.iter().for_each(|position| self.pass.change(*position));
        }
        holds
    }

    /// Leaves out what others make needless, and moves the rest out of loops, as far as it goes. Whether any moved.
    fn hoist(&mut self) -> bool {
        let mut any = false;
        // What is further out, or comes first, serves more.
        let mut all = self.placed();
        all.sort_by_cached_key(|(position, _)| {
            let order = self.pass.nesting.order(*position);
            (Reverse(order.len()), order)
        });
        for (mut position, mut barrier) in all {
            if self.holds_with(position, None) {
                continue;
            }
            // Where one of the cluster is further out, threads of the block may be left to wait here.
            let of_block = Barrier::Of(Sharing::Block);
            if barrier > of_block && self.holds_with(position, Some((position, of_block))) {
                barrier = of_block;
            }
            // What was searched a moment ago is known.
            self.pass.searches = false;
            loop {
                let mut outer = self.pass.nesting.before_loop(position, barrier).into_iter().rev();
                let Some(outer) = outer.find(|to| self.holds_with(position, Some((*to, barrier)))) else { break };
                (position, any) = (outer, true);
            }
            self.pass.searches = true;
        }
        any
    }

    /// Leaves out what barriers that were moved make needless, those in the most loops first. Those of the cluster
    /// before others, which are there for what orders threads of a block.
    fn leave_out(&mut self) {
        let mut all = self.placed();
        all.sort_by_key(|(position, barrier)| (Reverse(*barrier), Reverse(self.pass.nesting.loops(*position))));
        for (position, _) in all {
            self.holds_with(position, None);
        }
    }

    /// Lets barriers of the cluster take the place of earlier ones of the block.
    fn merge(&mut self) {
        for block in self.all_of(Barrier::Of(Sharing::Block)) {
            let nesting = &self.pass.nesting;
            if nesting.is_collective(block, Barrier::OfCluster) {
                let mut clusters = self.all_of(Barrier::OfCluster);
                clusters.retain(|at| nesting.loops(block) <= nesting.loops(*at));
                clusters.into_iter().any(|at| self.holds_with(at, Some((block, Barrier::OfCluster))));
            }
        }
    }

    fn all_of(&self, barrier: Barrier) -> Vec<Position> {
        self.placed().into_iter().filter(|placed| placed.1 == barrier).map(|placed| placed.0).collect()
    }

    /// Moves barriers into branches that come next: who does not take one need not wait.
    fn sink(&mut self) {
        for (mut position, barrier) in self.placed() {
            while let Some(inner) = branch_after(self.pass.kernel, position) {
                let is_collective = self.pass.nesting.is_collective(inner, barrier);
                if !is_collective || !self.holds_with(position, Some((inner, barrier))) {
                    break;
                }
                position = inner;
            }
        }
    }

    /// Lets only warps or warpgroups wait where that is enough.
    fn weaken(&mut self) {
        for position in self.all_of(Barrier::Of(Sharing::Block)) {
            // Of blocks and roles that consist of several whole ones.
            let Range { start, end } = self.pass.roles.threads(position.0);
            let threads = end - start;
            let groups = threads > WARPGROUP && threads.is_multiple_of(WARPGROUP) && start.is_multiple_of(WARPGROUP);
            // Where the larger one does not do, no smaller one does.
            let units = [(Sharing::Warpgroup, groups), (Sharing::Warp, threads.is_multiple_of(WARP))];
            for (unit, _) in units.into_iter().filter(|unit| unit.1) {
                if !self.holds_with(position, Some((position, Barrier::Of(unit)))) {
                    break;
                }
            }
        }
    }
}

/// The kernel with these barriers, and buffers in the memory of others. A role that waits for others of its cluster
/// gets a barrier to meet at.
fn with_barriers((placed, alias_of): (Placed, Vec<BufferId>), mut kernel: Kernel) -> Kernel {
    kernel.alias_of = alias_of;
    // From the back, so that positions stay right.
    for ((region, at), barrier) in placed.into_iter().rev() {
        let kind = match barrier {
            Barrier::Of(Sharing::Thread | Sharing::Warp) => StatementKind::BarWarpSync,
            Barrier::Of(Sharing::Warpgroup) => StatementKind::BarSyncWarpgroup,
            Barrier::Of(Sharing::Block) => StatementKind::BarSync,
            Barrier::OfCluster => StatementKind::BarrierCluster,
        };
        let statements = &mut kernel.regions[region.index()].statements;
        let line = statements.get(at).or(statements.last()).map_or(0, |next| next.line);
        let at = before_dependency(statements, at);
        statements.insert(at, Statement { line, kind });
    }
    kernel.declare_meetings();
    kernel
}

/// A place for a barrier before a statement. Blocks wait for each other while the launch before this one ends.
fn before_dependency(statements: &[Statement], at: usize) -> usize {
    let is_wait = |s: &Statement| matches!(s.kind, StatementKind::GridDependencyWait);
    let passes = |s: &&Statement| is_wait(s) || matches!(s.kind, StatementKind::Let(_) | StatementKind::Declare(..));
    let passed = statements[..at].iter().rev().take_while(passes);
    at - passed.enumerate().filter(|(_, s)| is_wait(s)).map(|(n, _)| n + 1).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;

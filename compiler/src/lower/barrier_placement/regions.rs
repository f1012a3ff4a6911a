//! Who comes to a region: all threads together, the first one alone, only those of the last block to arrive.

use tilewright_kernel::algorithm::{Binary, Compare};
use tilewright_sorted::SortedSet;

use super::Barrier;
use crate::kernel_ir::{IndexOp, Inside, Kernel, Op, RegionId, StatementKind, ValueId};
use crate::lower::guards::Fact;

/// Before a statement of a region, or at its end.
pub(super) type Position = (RegionId, usize);

/// Where regions stand, and which barriers may stand in them.
pub(super) struct Nesting {
    of: Vec<Of>,
}

/// Of a region.
#[derive(Clone, Copy)]
struct Of {
    /// The statement that it is a part of.
    outside: Option<Position>,
    /// Loops around it.
    loops: u32,
    /// Whether it is a side of a branch.
    is_branch: bool,
    /// Whether all threads of the block, or of the role, come to it together.
    by_all: bool,
    /// Whether those of all blocks of the cluster do.
    by_cluster: bool,
}

impl Nesting {
    /// Of all regions of a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let body = Of { outside: None, loops: 0, is_branch: false, by_all: true, by_cluster: true };
        let mut found = Self { of: vec![body; kernel.regions.len()] };
        found.inside(kernel, Kernel::BODY);
        found
    }

    fn inside(&mut self, kernel: &Kernel, region: RegionId) {
        for (at, statement) in kernel.region(region).statements.iter().enumerate() {
            if statement.kind.only_computes() {
                continue;
            }
            let inside = statement.kind.effects().inside;
            let facts = |value: ValueId| kernel.value(value).facts;
            let (uniform, cluster) = match inside {
                Inside::Loop(l) => (facts(l.count).uniform, facts(l.count).cluster),
                Inside::If(branch) => (facts(branch.condition).uniform, facts(branch.condition).cluster),
                Inside::Elect(_) => (false, false),
                Inside::Roles(_) | Inside::Nothing => (true, true),
            };
            let outer = self.of[region.index()];
            let of = Of {
                outside: Some((region, at)),
                loops: outer.loops + u32::from(matches!(inside, Inside::Loop(_))),
                is_branch: matches!(inside, Inside::If(_)),
                by_all: outer.by_all && uniform,
                by_cluster: outer.by_cluster && cluster,
            };
            for part in inside.regions() {
                self.of[part.index()] = of;
                self.inside(kernel, part);
            }
        }
    }

    /// How many loops are around a position.
    pub fn loops(&self, position: Position) -> u32 {
        self.of[position.0.index()].loops
    }

    /// Whether a position is in a branch, and in no loop inside it.
    pub fn is_of_branch(&self, position: Position) -> bool {
        self.of[position.0.index()].is_branch
    }

    /// A position and those around it before the same statement, the innermost first.
    pub fn around(&self, position: Position) -> impl Iterator<Item = Position> {
        std::iter::successors(Some(position), |(region, _)| self.of[region.index()].outside)
    }

    /// Whether those who wait at a barrier come to a position together.
    pub fn is_collective(&self, position: Position, barrier: Barrier) -> bool {
        let of = self.of[position.0.index()];
        if barrier == Barrier::OfCluster { of.by_cluster } else { of.by_all }
    }

    /// The next places for a barrier outside of the loop that a position is in: in the branches around that, the
    /// innermost first. None if it is in no loop, or its threads do not come to such a place.
    pub fn before_loop(&self, position: Position, barrier: Barrier) -> Vec<Position> {
        let is_inside = |at: &Position| self.loops(*at) >= self.loops(position);
        let mut outer = self.collective(position, barrier).skip_while(is_inside).peekable();
        let loops = outer.peek().map(|at| self.loops(*at));
        outer.take_while(|at| Some(self.loops(*at)) == loops).collect()
    }

    /// Where a barrier before a statement may stand, the innermost place first.
    pub fn collective(&self, position: Position, barrier: Barrier) -> impl Iterator<Item = Position> {
        self.around(position).filter(move |position| self.is_collective(*position, barrier))
    }

    /// The statement of the body that a position is in, or before.
    pub fn top(&self, position: Position) -> usize {
        self.around(position).last().map_or(position.1, |(_, at)| at)
    }

    /// In this order positions stand in the kernel.
    pub fn order(&self, position: Position) -> Vec<(usize, RegionId)> {
        let mut order: Vec<_> = self.around(position).map(|(region, at)| (at, region)).collect();
        order.reverse();
        order
    }
}

/// Whether blocks arrive at a counter: what orders accesses of memory that they share.
pub(super) fn has_arrivals(kernel: &Kernel) -> bool {
    let mut all = kernel.regions.iter().flat_map(|region| &region.statements);
    all.any(|statement| matches!(statement.kind, StatementKind::LastBlockTicket { .. }))
}

/// Of each region, the statements that the order of others may depend on: all but those that compute, those that access
/// what no barrier orders, and branches and loops of nothing else.
pub(super) fn acts(kernel: &Kernel) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); kernel.regions.len()];
    acts_of(kernel, Kernel::BODY, has_arrivals(kernel), &mut found);
    found
}

fn acts_of(kernel: &Kernel, region: RegionId, arrives: bool, found: &mut [Vec<usize>]) {
    for (at, statement) in kernel.region(region).statements.iter().enumerate() {
        let kind = &statement.kind;
        if kind.only_computes() {
            continue;
        }
        let inside = kind.effects().inside;
        for part in inside.regions() {
            acts_of(kernel, part, arrives, found);
        }
        let is_idle = match kind {
            StatementKind::If(_) | StatementKind::Loop(_) | StatementKind::Elect(_) => {
                inside.regions().all(|part| found[part.index()].is_empty())
            }
            // Where nothing arrives, memory that blocks share needs no order.
            StatementKind::Load(_) | StatementKind::Store(_) | StatementKind::AtomicUpdate(_) => {
                !arrives && kind.effects().accesses().all(|access| access.buffer().is_none())
            }
            _ => false,
        };
        if !is_idle {
            found[region.index()].push(at);
        }
    }
}

/// The branch that comes next after a position, but for what computes values: where it begins.
pub(super) fn branch_after(kernel: &Kernel, (region, at): Position) -> Option<Position> {
    let mut next = kernel.region(region).statements.iter().skip(at);
    let next = next.find(|s| !matches!(s.kind, StatementKind::Let(_) | StatementKind::Declare(..)))?;
    match &next.kind {
        StatementKind::If(branch) => Some((branch.then, 0)),
        _ => None,
    }
}

/// The regions that nobody but the thread with a number comes to, the first one of the block or of a role, among those
/// inside one.
pub(super) fn of_first_thread(
    kernel: &Kernel,
    region: RegionId,
    number: u32,
    first: bool,
    found: &mut SortedSet<RegionId>,
) {
    if first {
        found.insert(region);
    }
    for statement in &kernel.region(region).statements {
        if statement.kind.only_computes() {
            continue;
        }
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
pub(super) fn of_last_block(kernel: &Kernel, region: RegionId, last: bool, found: &mut SortedSet<RegionId>) {
    if last {
        found.insert(region);
    }
    for statement in &kernel.region(region).statements {
        if statement.kind.only_computes() {
            continue;
        }
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

/// Finds the bodies of loops in which no branch and no loop is a fact that is followed; whether that is so of a region.
pub(super) fn find_alike(
    kernel: &Kernel,
    region: RegionId,
    is_followed: &dyn Fn(Fact) -> bool,
    found: &mut SortedSet<RegionId>,
) -> bool {
    let mut all = true;
    for statement in kernel.region(region).statements.iter().filter(|s| !s.kind.only_computes()) {
        let inside = statement.kind.effects().inside;
        for part in inside.regions() {
            let is_alike = find_alike(kernel, part, is_followed, found);
            if is_alike && matches!(inside, Inside::Loop(_)) {
                found.insert(part);
            }
            all &= is_alike;
        }
        all &= match inside {
            Inside::Loop(l) => !is_followed(Fact::Runs(l.count)),
            Inside::If(branch) => !is_followed(Fact::Holds(branch.condition)),
            // These wait for each other in their own ways.
            Inside::Roles(_) => false,
            Inside::Elect(_) | Inside::Nothing => true,
        };
    }
    all
}

//! What statements did, remembered: with the same before it and the same barriers in it, a statement does the same
//! again. To look for a better place of one barrier is then to look at what comes after it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tilewright_sorted::SortedMap;

use super::paths::Paths;
use super::regions::{self, Position};
use crate::kernel_ir::{BufferId, Inside, Kernel, RegionId, StatementKind};
use crate::lower::pending_accesses::Since;

/// So many turns of a loop are remembered for each statement.
const MOST_TURNS: usize = 4;

/// What may happen before a loop that is remembered.
const MOST_BEFORE_LOOP: usize = 16;

/// What statements that act did, for each region and each of them.
#[derive(Default)]
pub(super) struct Seen {
    of: Vec<Vec<RefCell<Of>>>,
    /// By body, what loops did that do the same on all paths.
    loops: RefCell<SortedMap<RegionId, Vec<Turn<Rc<Since>>>>>,
    /// Where buffers lie, as it was when these were seen.
    alias_of: RefCell<Vec<BufferId>>,
    /// How often a barrier was put somewhere.
    changes: Cell<u64>,
}

/// What a statement did.
#[derive(Default)]
struct Of {
    /// Whether it is worth to be remembered, and decided by what came before it: what is known of loops is known for
    /// all of their iterations.
    is_kept: bool,
    turns: Vec<Turn<Paths>>,
}

/// What happened before and after.
struct Turn<T> {
    before: T,
    after: T,
    /// Whether searches told what is ordered.
    searched: bool,
}

fn is_one(a: &Rc<Since>, b: &Rc<Since>) -> bool {
    Rc::ptr_eq(a, b) || a == b
}

/// Whether it is the same on the same paths.
fn is_same(paths: &Paths, others: &Paths) -> bool {
    let mut all = paths.iter().zip(others.iter());
    paths.len() == others.len() && all.all(|(a, b)| a.0 == b.0 && is_one(&a.1, &b.1))
}

impl Seen {
    pub fn new(kernel: &Kernel, acts: &[Vec<usize>]) -> Self {
        let of = |(region, acts): (usize, &Vec<usize>)| {
            let one = |at: &usize| {
                let kind = &kernel.regions[region].statements[*at].kind;
                let is_kept = matches!(kind, StatementKind::If(_) | StatementKind::Elect(_)) && is_plain(kernel, kind);
                RefCell::new(Of { is_kept, turns: Vec::new() })
            };
            acts.iter().map(one).collect()
        };
        Self { of: acts.iter().enumerate().map(of).collect(), ..Self::default() }
    }

    /// Begins to look at everything, with buffers in the memory of these.
    pub fn begin(&self, alias_of: &[BufferId]) {
        if *self.alias_of.borrow() != alias_of {
            self.clear();
            self.alias_of.replace(alias_of.to_vec());
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.of.iter().flatten().for_each(|of| of.borrow_mut().turns.clear());
        self.loops.borrow_mut().clear();
    }

    /// Another barrier stands at a position, or none.
    pub fn change(&self, nesting: &regions::Nesting, acts: &[Vec<usize>], position: Position) {
        self.changes.set(self.changes.get() + 1);
        for (region, at) in nesting.around(position) {
            self.loops.borrow_mut().remove(&region);
            let n = acts[region.index()].partition_point(|own| *own < at);
            if let Some(of) = self.of[region.index()].get(n) {
                of.borrow_mut().turns.clear();
            }
        }
    }

    /// How often a barrier was put somewhere so far.
    pub fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// What the nth statement of a region that acts did, if it was seen.
    pub fn after(&self, (region, n): (RegionId, usize), paths: &Paths, searched: bool) -> Option<Paths> {
        let of = self.of[region.index()][n].borrow();
        let is_it = |turn: &&Turn<Paths>| turn.searched == searched && is_same(paths, &turn.before);
        of.turns.iter().find(is_it).map(|turn| turn.after.clone())
    }

    /// It did this, with no other barrier since.
    pub fn keep(&self, (region, n): (RegionId, usize), before: Paths, after: &Paths, searched: bool) {
        let mut of = self.of[region.index()][n].borrow_mut();
        if of.turns.len() >= MOST_TURNS {
            of.turns.remove(0);
        }
        of.turns.push(Turn { before, after: after.clone(), searched });
    }

    /// What the loop with this body did, if it was seen.
    pub fn after_loop(&self, body: RegionId, before: &Rc<Since>, searched: bool) -> Option<Rc<Since>> {
        let loops = self.loops.borrow();
        let mut turns = loops.get(&body)?.iter();
        turns.find(|turn| turn.searched == searched && is_one(before, &turn.before)).map(|turn| turn.after.clone())
    }

    /// It did this, with no other barrier since.
    pub fn keep_loop(&self, body: RegionId, before: Rc<Since>, after: Rc<Since>, searched: bool) {
        let mut loops = self.loops.borrow_mut();
        let turns = loops.entry(body).or_default();
        if turns.len() >= MOST_BEFORE_LOOP {
            turns.remove(0);
        }
        turns.push(Turn { before, after, searched });
    }

    /// Whether the nth statement of a region that acts can be remembered.
    pub fn is_kept(&self, (region, n): (RegionId, usize)) -> bool {
        self.of[region.index()][n].borrow().is_kept
    }
}

/// Whether a statement has neither loops nor roles.
fn is_plain(kernel: &Kernel, kind: &StatementKind) -> bool {
    if kind.only_computes() {
        return true;
    }
    let inside = kind.effects().inside;
    !matches!(inside, Inside::Loop(_) | Inside::Roles(_))
        && inside.regions().all(|part| kernel.region(part).statements.iter().all(|s| is_plain(kernel, &s.kind)))
}

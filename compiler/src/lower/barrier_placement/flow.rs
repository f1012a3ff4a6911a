//! The property, on every path through a kernel.

mod loops;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tilewright_sorted::{SortedMap, SortedSet};

use super::ordered::{Place, waits};
use super::paths::{InRole, Iterations, Paths, add, change};
use super::regions::{self, Nesting, Position, of_first_thread, of_last_block};
use super::{Barrier, MOST_WORK, seen::Seen};
use crate::extent::Expr;
use crate::kernel_ir::{BufferId, InRoles, Kernel, RegionId, Sharing, StatementKind};
use crate::lower::dependence::Dependences;
use crate::lower::guards::{Fact, Guards, Known};
use crate::lower::pending_accesses::Since;
use crate::work::{self, Step};

/// Barriers, each before a statement.
pub(super) type Placed = SortedMap<Position, Barrier>;

/// In a body of more statements that act, what happened before each is not remembered.
const MOST_SURE: usize = 4_000;

/// The property of a kernel with barriers.
pub(in crate::lower) struct Pass<'a> {
    pub(in crate::lower) kernel: &'a Kernel,
    /// For each buffer, the one in whose memory it lies.
    pub alias_of: Vec<BufferId>,
    /// Barriers that the kernel does not have yet.
    pub(super) placed: RefCell<Placed>,
    /// Whether barriers are put where they are missing.
    on_demand: bool,
    /// Whether a search tells which threads access an element, or only what is known of a buffer and of such pairs.
    pub(super) searches: bool,
    /// Where regions stand.
    pub(super) nesting: Nesting,
    /// Of each region, the statements that the order of others may depend on.
    acts: Vec<Vec<usize>>,
    /// Whether threads fetch to each buffer.
    pub(super) fetched: Vec<bool>,
    /// What tells paths apart.
    guards: Guards,
    /// Bodies of loops in which nothing does.
    alike: SortedSet<RegionId>,
    /// Whether such loops are followed on each path by itself all the same.
    #[cfg(test)]
    follows_all: Cell<bool>,
    /// Who accesses what others accessed.
    pub(super) dependences: Dependences<'a>,
    /// Regions that the first thread alone comes to, of the block or of a role.
    first: SortedSet<RegionId>,
    /// Regions that only the last block to arrive comes to, as its threads agree.
    pub(super) last: SortedSet<RegionId>,
    /// Which role runs a region, and what roles hand to each other.
    pub(in crate::lower) roles: InRoles,
    /// Buffers that must not lie in the same memory, where somebody asks: one that is written, and one that others may
    /// still use.
    pub(super) apart: RefCell<Option<SortedSet<(usize, usize)>>>,
    /// Statements that were looked at so far, once for each kind of path.
    pub(super) work: Cell<u64>,
    /// What had happened before each statement of the body that acts, and at its end, when everything was ordered.
    sure: RefCell<Vec<Paths>>,
    /// What happened in each role when everything was ordered.
    sure_roles: RefCell<SortedMap<usize, InRole>>,
    /// The same of roles that were looked at since.
    seen_roles: RefCell<SortedMap<usize, InRole>>,
    /// Where barriers are others now than when everything was ordered; none if nothing is known of it.
    changed: RefCell<Option<Vec<Position>>>,
    /// By body, what is known of loops since a barrier was last put: with one more, less may have happened.
    loops: RefCell<SortedMap<RegionId, Iterations>>,
    /// What statements did.
    seen: Seen,
}

impl<'a> Pass<'a> {
    /// That of a kernel as it is; of so many blocks, if that is known.
    pub fn new(kernel: &'a Kernel, blocks: Option<&'a Expr>) -> Self {
        // The last cluster may have more blocks than there is work for.
        let blocks = blocks.filter(|_| kernel.signature.cluster == 1);
        let mut fetched = vec![false; kernel.buffers.len()];
        for statement in kernel.regions.iter().flat_map(|region| &region.statements) {
            if let StatementKind::CpAsync(fetch) = &statement.kind {
                fetched[fetch.buffer.index()] = true;
            }
        }
        let acts = regions::acts(kernel);
        let guards = Guards::new(kernel, blocks);
        let mut alike = SortedSet::new();
        regions::find_alike(kernel, Kernel::BODY, &|fact| guards.is_followed(fact), &mut alike);
        let mut first = SortedSet::new();
        of_first_thread(kernel, Kernel::BODY, 0, false, &mut first);
        let mut last = SortedSet::new();
        of_last_block(kernel, Kernel::BODY, false, &mut last);
        Self {
            kernel,
            alias_of: kernel.alias_of.clone(),
            placed: RefCell::default(),
            on_demand: false,
            searches: true,
            nesting: Nesting::of(kernel),
            seen: Seen::new(kernel, &acts),
            acts,
            fetched,
            guards,
            alike,
            #[cfg(test)]
            follows_all: Cell::new(false),
            dependences: Dependences::new(kernel, blocks),
            first,
            last,
            roles: InRoles::of(kernel),
            apart: RefCell::default(),
            sure: RefCell::default(),
            sure_roles: RefCell::default(),
            seen_roles: RefCell::default(),
            changed: RefCell::default(),
            work: Cell::new(0),
            loops: RefCell::default(),
        }
    }

    /// The barriers, and for each buffer the one in whose memory it lies.
    pub(super) fn finish(self) -> (Placed, Vec<BufferId>) {
        (self.placed.into_inner(), self.alias_of)
    }

    /// The pairs of buffers that cannot share memory, as far as that is for barriers to order, where everything is
    /// ordered while none do: what happens on a path does not depend on where buffers lie. None if it is not.
    pub fn apart(&self) -> Option<SortedSet<(usize, usize)>> {
        *self.apart.borrow_mut() = Some(SortedSet::new());
        let holds = self.holds();
        self.apart.take().filter(|_| holds)
    }

    /// Whether everything is ordered.
    pub fn holds(&self) -> bool {
        self.sure.borrow_mut().clear();
        self.changed.replace(None);
        self.seen.begin(&self.alias_of);
        let mut since = Since::nothing(self.kernel);
        since.ready = !self.kernel.barriers.is_empty();
        since.in_cluster.begun = true;
        self.holds_from(0, SortedMap::from([(Known::default(), Rc::new(since))]), usize::MAX)
    }

    /// Whether everything is ordered, where it was, and barriers are others at these positions now.
    pub fn holds_again(&self, changed: &[Position]) -> bool {
        let tops = || changed.iter().map(|position| self.nesting.top(*position));
        let (Some(first), Some(last)) = (tops().min(), tops().max()) else { return true };
        let from = self.acts[Kernel::BODY.index()].partition_point(|at| *at < first);
        let before = self.sure.borrow().get(from).cloned();
        let Some(before) = before else { return self.holds() };
        self.changed.replace(Some(changed.to_vec()));
        let holds = self.holds_from(from, before, last);
        #[cfg(test)]
        assert_eq!(holds, self.holds_at_all(), "{changed:?}");
        holds
    }

    /// The same without what is known of it.
    #[cfg(test)]
    fn holds_at_all(&self) -> bool {
        let (sure, roles, work) = (self.sure.take(), self.sure_roles.borrow().clone(), self.work.get());
        self.seen.clear();
        self.follows_all.set(true);
        let holds = self.holds();
        self.follows_all.set(false);
        self.seen.clear();
        self.sure.replace(sure);
        self.sure_roles.replace(roles);
        self.work.set(work);
        holds
    }

    /// The same from the nth statement of the body on that acts, with what happened before it. Up to the statement
    /// `last` barriers are others than before: after it, where the same has happened as then, the rest is ordered.
    fn holds_from(&self, from: usize, paths: Paths, last: usize) -> bool {
        self.loops.borrow_mut().clear();
        self.seen_roles.borrow_mut().clear();
        let holds = self.holds_behind(from, paths, last);
        if holds {
            let mut sure = self.sure_roles.borrow_mut();
            self.seen_roles.take().into_iter().for_each(|(role, seen)| drop(sure.insert(role, seen)));
        }
        holds
    }

    fn holds_behind(&self, from: usize, mut paths: Paths, last: usize) -> bool {
        let acts = &self.acts[Kernel::BODY.index()];
        let remembers = acts.len() <= MOST_SURE;
        let mut sure = vec![paths.clone()];
        for (n, at) in acts.iter().enumerate().skip(from) {
            let Some(behind) = self.step(Kernel::BODY, n, 0, paths) else { return false };
            paths = behind;
            if *at >= last && self.sure.borrow().get(n + 1) == Some(&paths) {
                self.sure.borrow_mut().splice(from..=n, sure);
                return true;
            }
            sure.extend(remembers.then(|| paths.clone()));
        }
        if self.wait_at_end(Kernel::BODY, &mut paths).is_none() {
            return false;
        }
        let at_end = (Kernel::BODY, self.kernel.region(Kernel::BODY).statements.len());
        // What others write in a block, or tell it, comes before it ends.
        let is_over = |since: &Rc<Since>| !since.in_cluster.spread.contains(&true) && !since.in_cluster.told;
        let holds = paths.values().all(is_over) || self.demand(at_end, Barrier::OfCluster, &mut paths).is_some();
        if holds && remembers {
            let mut known = self.sure.borrow_mut();
            known.truncate(from);
            known.extend(sure);
        }
        holds
    }

    /// Puts barriers where they are missing, each right before what must wait, or before the part of some threads that
    /// this is in. Whether everything is ordered then.
    pub fn place_where_missing(&mut self) -> bool {
        // Those that a search shows to be needless can be left out later.
        let is_placed = self.place_on_demand(false);
        let nesting = &self.nesting;
        let is_met = self.placed.get_mut().iter().all(|(at, barrier)| nesting.is_collective(*at, *barrier));
        // Where not all threads come, it is searched first whether there is anything to wait for.
        is_placed && is_met || self.place_on_demand(true)
    }

    fn place_on_demand(&mut self, searches: bool) -> bool {
        (self.on_demand, self.searches) = (true, searches);
        self.placed.get_mut().clear();
        self.seen.clear();
        loop {
            let before = self.placed.borrow().clone();
            let holds = self.holds();
            // Each turn puts one somewhere, of which there are so many places.
            if holds || *self.placed.borrow() == before {
                (self.on_demand, self.searches) = (false, true);
                return holds;
            }
        }
    }

    /// Puts a barrier before a statement, where its threads come to, and lets them wait. None if it stands further out,
    /// where the flow has been, or cannot be put.
    fn demand(&self, position: Position, barrier: Barrier, paths: &mut Paths) -> Option<()> {
        if !self.on_demand {
            return None;
        }
        let mut placed = self.placed.borrow_mut();
        let has = |position: &Position| placed.get(position).is_some_and(|other| *other >= barrier);
        // If its threads cannot all come to one, the kernel is refused for that.
        let mut places = self.nesting.collective(position, barrier).chain([position]).filter(|at| !has(at));
        let mut place = places.next()?;
        // What comes after a branch may ask for the same.
        while self.nesting.is_of_branch(place) {
            let Some(outer) = self.nesting.collective(place, barrier).nth(1).filter(|at| !has(at)) else { break };
            place = outer;
        }
        placed.insert(place, barrier);
        drop(placed);
        self.change(place);
        self.loops.borrow_mut().clear();
        if place == position { self.wait(place, barrier, paths) } else { None }
    }

    /// Whether there was as much work as a kernel may take.
    pub fn is_spent(&self) -> bool {
        self.work.get() > MOST_WORK
    }

    /// Threads wait at a barrier; none if it is not there yet.
    fn wait(&self, position: Position, barrier: Barrier, paths: &mut Paths) -> Option<()> {
        let is_in_role = self.roles.is_in_role(position.0);
        let threads = self.roles.threads(position.0).len() as u32;
        match barrier {
            Barrier::OfCluster => {
                // Where a role meets, the barrier of that must be ready in all blocks.
                if is_in_role && paths.values().any(|since| since.ready || since.in_cluster.begun) {
                    return self.demand(position, Barrier::OfCluster, paths);
                }
                change(paths, |since| since.sync_cluster(self.kernel, threads));
            }
            Barrier::Of(among) => change(paths, |since| {
                // A role waits for its own threads, and the block made barriers ready.
                let ready = since.ready && is_in_role;
                since.sync(self.kernel, among, threads);
                since.ready |= ready;
            }),
        }
        Some(())
    }

    /// What happened after a region inside so many loops; none if something in it is not ordered.
    fn flow(&self, region: RegionId, depth: usize, mut paths: Paths) -> Option<Paths> {
        for n in 0..self.acts[region.index()].len() {
            paths = self.step(region, n, depth, paths)?;
        }
        self.wait_at_end(region, &mut paths)?;
        Some(paths)
    }

    /// Threads wait at the barriers after the last statement of a region that acts.
    fn wait_at_end(&self, region: RegionId, paths: &mut Paths) -> Option<()> {
        let from = self.acts[region.index()].last().map_or(0, |at| at + 1);
        self.wait_where_placed((region, from), self.kernel.region(region).statements.len(), paths)
    }

    /// The same after the nth statement that acts, with the barriers before it.
    fn step(&self, region: RegionId, n: usize, depth: usize, paths: Paths) -> Option<Paths> {
        // Who asks which buffers are used beside each other asks every statement.
        if !self.seen.is_kept((region, n)) || self.apart.borrow().is_some() {
            return self.looked_at(region, n, depth, paths);
        }
        let changes = self.seen.changes();
        if let Some(after) = self.seen.after((region, n), &paths, self.searches) {
            return Some(after);
        }
        let after = self.looked_at(region, n, depth, paths.clone())?;
        if self.seen.changes() == changes {
            self.seen.keep((region, n), paths, &after, self.searches);
        }
        Some(after)
    }

    /// Another barrier stands at a position, or none.
    pub(super) fn change(&self, position: Position) {
        self.seen.change(&self.nesting, &self.acts, position);
    }

    /// What happened after a step, whether it was seen before or not.
    fn looked_at(&self, region: RegionId, n: usize, depth: usize, mut paths: Paths) -> Option<Paths> {
        let acts = &self.acts[region.index()];
        let at = acts[n];
        let position = (region, at);
        let from = n.checked_sub(1).map_or(0, |n| acts[n] + 1);
        self.wait_where_placed((region, from), at, &mut paths)?;
        let has_parts = || !self.kernel.region(region).statements[at].kind.effects().inside.is_nothing();
        let mut before = (self.on_demand && has_parts()).then(|| paths.clone());
        loop {
            let had = self.placed_at(position);
            match self.statement(position, depth, paths) {
                Some(after) => return Some(after),
                None => {
                    // What was missing in it has been put before it.
                    self.placed_at(position).filter(|_| self.placed_at(position) != had)?;
                    let before = before.as_mut()?;
                    self.wait_where_placed(position, at, before)?;
                    paths = before.clone();
                }
            }
        }
    }

    /// What happened after a statement.
    fn statement(&self, position: Position, depth: usize, mut paths: Paths) -> Option<Paths> {
        let (region, at) = position;
        let steps = 1 + paths.len() as u64;
        work::count(Step::Ordering, steps);
        self.work.set(self.work.get() + steps);
        match &self.kernel.region(region).statements[at].kind {
            StatementKind::Elect(part) => paths = self.flow(*part, depth, paths)?,
            StatementKind::Roles(roles) => {
                // Each goes its own way, and at the end all wait for each other.
                let mut ends = Vec::new();
                for (n, role) in roles.iter().enumerate() {
                    ends.extend(self.in_role((n, role.body), depth, &paths)?.into_values());
                }
                let threads = self.kernel.signature.threads;
                for since in paths.values_mut().map(Rc::make_mut) {
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
            StatementKind::Loop(l) => paths = self.iterations(l, depth, paths)?,
            // Most of a kernel computes values, which waits for nothing.
            StatementKind::Let(_) | StatementKind::Declare(..) | StatementKind::Set(..) => {}
            kind => {
                let first = self.first.contains(&region);
                let place = Place { region, first, group: self.dependences.group(region, at) };
                let effects = kind.effects();
                let missing = |paths: &mut Paths| {
                    paths.values_mut().find_map(|since| self.missing(kind, &effects, place, Rc::make_mut(since)))
                };
                // More than one kind of barrier may be missing.
                while let Some(barrier) = missing(&mut paths) {
                    self.demand(position, barrier, &mut paths)?;
                }
                if let Some(barrier) = waits(kind) {
                    self.wait(position, barrier, &mut paths)?;
                }
            }
        }
        Some(paths)
    }

    /// What happened at the end of a role: as before, if its barriers are the same and the same came before it.
    fn in_role(&self, (role, body): (usize, RegionId), depth: usize, paths: &Paths) -> Option<Paths> {
        let is_of_it = |position: &Position| self.roles.role(position.0) == Some(role);
        let changed = self.changed.borrow();
        if changed.as_ref().is_some_and(|changed| !changed.iter().any(is_of_it))
            && let Some(known) = self.sure_roles.borrow().get(&role).filter(|known| known.before == *paths)
        {
            return Some(known.after.clone());
        }
        drop(changed);
        let after = self.flow(body, depth, paths.clone())?;
        if self.kernel.roles().len() > 1 {
            self.seen_roles.borrow_mut().insert(role, InRole { before: paths.clone(), after: after.clone() });
        }
        Some(after)
    }

    fn placed_at(&self, position: Position) -> Option<Barrier> {
        self.placed.borrow().get(&position).copied()
    }

    /// Threads wait at the barriers before statements from a position up to another one in its region.
    fn wait_where_placed(&self, mut from: Position, to: usize, paths: &mut Paths) -> Option<()> {
        while from.1 <= to {
            let next = self.placed.borrow().range(from..=(from.0, to)).next().map(|(at, barrier)| (*at, *barrier));
            let Some((at, barrier)) = next else { break };
            self.wait(at, barrier, paths)?;
            from.1 = at.1 + 1;
        }
        Some(())
    }
}

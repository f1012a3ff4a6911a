//! Which of the block's barriers are needed.
//!
//! Lowering puts a [`StatementKind::Sync`] wherever threads that use a buffer, or a copy and such threads, may need one, each place for
//! itself. Here those are taken out without which everything is still ordered.
//!
//! **Property.** On every path, between two of these, in this order, there is a barrier:
//!
//! | before | behind |
//! | --- | --- |
//! | barriers of copies are made ready | anything that uses one |
//! | a thread reads or writes a buffer | a copy that fills it |
//! | a thread waits for a phase of a barrier | the next phase begins |
//! | a thread publishes what it wrote to a buffer | a copy from that buffer |
//! | the elected thread has waited for reads of its copies | a thread writes to a buffer that is copied |
//! | a thread writes an instance of a buffer | a thread reads it |
//! | a thread reads or writes an instance of a buffer | another instance in its slot is written |
//! | a thread has waited for its fetches | a thread reads a buffer that threads fetch to |
//! | a thread reads or writes a buffer | a thread writes another one that lies in the same memory |
//! | a thread other than the first writes a workspace, or accesses a tensor that the kernel writes | the first thread arrives at a counter |
//! | the first thread arrives | another one accesses a workspace or such a tensor |
//!
//! In a block of one warp a barrier of the warp will do for all of them. What is read of a workspace is not written again, so that nobody waits for
//! readers.
//!
//! In the three rows before the last three a barrier of warps will do for a buffer whose elements are of one warp each, one of warpgroups if they are of one
//! warpgroup each, and none is needed if they are of one thread ([`Sharing`]). A barrier that is needed is weakened to one of warps where that
//! suffices, else to one of warpgroups.
//!
//! Instances take the slots of a buffer in turn, each with its renewal: n renewals after an instance came, its slot is another one's.
//! Threads read the newest instance, but of buffers that they fetch to ahead: there any of them.
//! That a thread waits for its fetches before the barrier is where it is waited for; the separate checker sees that it is enough.
//!
//! Threads that write one instance of a buffer write different elements of it, so that there is nothing to order between their writes; the
//! next instance may give an element to another thread. A thread alone in its block has nobody to wait for: the last six rows and that of phases are void.
//!
//! **Formula.** Forward data flow: what happened since the last barrier on some path; a loop's body starts with what was before the loop
//! or at the body's end; behind it comes what was before it only if it may have no iteration. **Approximation.** To copies by the accelerator a ring's slots are one buffer, and every wait for reads concerns every buffer: barriers may
//! be kept that only some paths need, never taken out where one does. Paths are told apart by conditions, and by whether loops run, where several
//! branches and loops share them or what one of them does says something of another (`guards`), while these have one value; others are taken both ways.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use tilewright_kernel::algorithm::{Binary, Compare};

use super::guards::{Fact, Guards, Known};
use crate::kernel_ir::{
    BufferId, Kernel, Memory, Op, ParameterKind, RegionId, Sharing, Statement, StatementKind, TensorPart, ValueId,
    WARP, WARPGROUP,
};

/// What happened since the last barrier, on some path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Since {
    /// Barriers of copies were made ready.
    ready: bool,
    /// Instances of buffers that a thread read or wrote: of each buffer the newest first, as many as it has slots.
    used: Vec<Vec<bool>>,
    /// Whether one that had the slot of such an instance before was.
    stale: Vec<Vec<bool>>,
    /// Buffers of which a thread wrote the newest instance.
    written: Vec<bool>,
    /// Barriers of which threads waited for a phase: one that comes late must not find that another one has ended since.
    waited: Vec<bool>,
    /// Buffers that a thread read or wrote, whatever barriers of warps there were.
    touched: Vec<bool>,
    /// Who sees what a thread has waited for of its fetches.
    seen: Sharing,
    /// A thread published.
    published: bool,
    /// The elected thread waited for reads.
    awaited: bool,
    /// A thread other than the first accessed memory that blocks share.
    abroad: bool,
    /// The first thread arrived.
    arrived: bool,
}

impl Since {
    fn nothing(kernel: &Kernel) -> Self {
        Self {
            ready: false,
            used: kernel.buffers.iter().map(|b| vec![false; b.slots.max(1) as usize]).collect(),
            stale: kernel.buffers.iter().map(|b| vec![false; b.slots.max(1) as usize]).collect(),
            written: vec![false; kernel.buffers.len()],
            waited: vec![false; kernel.barriers.len()],
            touched: vec![false; kernel.buffers.len()],
            seen: Sharing::Block,
            published: false,
            awaited: false,
            abroad: false,
            arrived: false,
        }
    }

    /// Whether a thread may have accessed another buffer in the same memory.
    fn is_elsewhere(&self, kernel: &Kernel, buffer: BufferId) -> bool {
        let place = kernel.lies_in[buffer.index()];
        let mut others = (0..kernel.buffers.len()).filter(|n| *n != buffer.index() && kernel.lies_in[*n] == place);
        kernel.signature.threads > 1 && others.any(|n| self.touched[n])
    }

    /// Behind a barrier of those who share an element of such a buffer.
    fn sync(&mut self, kernel: &Kernel, among: Sharing) {
        if among == Sharing::Block || among == Sharing::Warp && kernel.signature.threads <= WARP {
            *self = Self::nothing(kernel);
        }
        for (n, _) in kernel.buffers.iter().enumerate().filter(|(_, b)| b.sharing <= among) {
            self.used[n].fill(false);
            self.stale[n].fill(false);
            self.written[n] = false;
        }
        self.seen = self.seen.max(among);
    }

    fn join(&mut self, other: &Self) {
        let or = |a: &mut Vec<bool>, b: &[bool]| a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
        self.ready |= other.ready;
        self.used.iter_mut().zip(&other.used).for_each(|(a, b)| or(a, b));
        self.stale.iter_mut().zip(&other.stale).for_each(|(a, b)| or(a, b));
        or(&mut self.waited, &other.waited);
        or(&mut self.touched, &other.touched);
        self.seen = self.seen.min(other.seen);
        or(&mut self.written, &other.written);
        self.published |= other.published;
        self.awaited |= other.awaited;
        self.abroad |= other.abroad;
        self.arrived |= other.arrived;
    }
}

/// Takes out every barrier that is not needed, those in the most loops first; none if something is not ordered as it is: a defect of
/// the compiler.
pub(super) fn minimise(mut kernel: Kernel) -> Option<Kernel> {
    let arrives = |statement: &Statement| matches!(statement.kind, StatementKind::Arrive { .. });
    if kernel.buffers.is_empty() && !kernel.regions.iter().flat_map(|r| &r.statements).any(arrives) {
        return Some(kernel);
    }
    let mut pass = Pass::new(&kernel);
    if !pass.holds() {
        return None;
    }
    let mut candidates = Vec::new();
    collect(&kernel, Kernel::BODY, 0, &mut candidates);
    candidates.sort_by_key(|(loops, ..)| std::cmp::Reverse(*loops));
    let spent = |pass: &Pass<'_>| pass.work.get() > MOST_WORK;
    for &(_, region, at) in &candidates {
        if spent(&pass) {
            break;
        }
        pass.gone.push((region, at));
        if !pass.holds() {
            pass.gone.pop();
        }
    }
    // Of blocks that consist of several whole ones.
    let threads = kernel.signature.threads;
    let units = [(Sharing::Warp, threads.is_multiple_of(WARP))];
    let units =
        units.into_iter().chain([(Sharing::Warpgroup, threads > WARPGROUP && threads.is_multiple_of(WARPGROUP))]);
    let units: Vec<Sharing> = units.filter(|unit| unit.1).map(|unit| unit.0).collect();
    for (_, region, at) in candidates {
        if pass.gone.contains(&(region, at)) {
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
    let Pass { mut gone, weak, .. } = pass;
    for (region, at, among) in weak {
        let weaker = if among == Sharing::Warp { StatementKind::SyncWarp } else { StatementKind::SyncWarpgroup };
        kernel.regions[region.index()].statements[at].kind = weaker;
    }
    // From the back, so that positions stay right.
    gone.sort_unstable_by_key(|(region, at)| std::cmp::Reverse((region.index(), *at)));
    for (region, at) in gone {
        kernel.regions[region.index()].statements.remove(at);
    }
    Some(kernel)
}

/// Whether everything is ordered.
pub(super) fn hold(kernel: &Kernel) -> bool {
    Pass::new(kernel).holds()
}

/// Every barrier with the loops around it.
fn collect(kernel: &Kernel, region: RegionId, loops: u32, found: &mut Vec<(u32, RegionId, usize)>) {
    for (at, statement) in kernel.region(region).statements.iter().enumerate() {
        match &statement.kind {
            StatementKind::Sync => found.push((loops, region, at)),
            StatementKind::Loop(l) => collect(kernel, l.body, loops + 1, found),
            StatementKind::If(branch) => {
                collect(kernel, branch.then, loops, found);
                branch.otherwise.iter().for_each(|otherwise| collect(kernel, *otherwise, loops, found));
            }
            _ => {}
        }
    }
}

/// Statements that are looked at to find needless barriers; what is left then stays.
const MOST_WORK: u64 = 4_000_000;

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
struct Pass<'a> {
    kernel: &'a Kernel,
    /// Barriers that are taken out.
    gone: Vec<(RegionId, usize)>,
    /// Barriers of smaller units now.
    weak: Vec<(RegionId, usize, Sharing)>,
    /// Whether threads fetch to each buffer.
    fetched: Vec<bool>,
    /// What tells paths apart.
    guards: Guards,
    /// Regions that the first thread alone comes to.
    first: BTreeSet<RegionId>,
    /// Statements that were looked at so far, once for each kind of path.
    work: Cell<u64>,
}

impl<'a> Pass<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        let mut fetched = vec![false; kernel.buffers.len()];
        for statement in kernel.regions.iter().flat_map(|region| &region.statements) {
            if let StatementKind::Fetch(fetch) = &statement.kind {
                fetched[fetch.buffer.index()] = true;
            }
        }
        let mut first = BTreeSet::new();
        of_first_thread(kernel, Kernel::BODY, false, &mut first);
        Self {
            kernel,
            gone: Vec::new(),
            weak: Vec::new(),
            fetched,
            guards: Guards::new(kernel),
            first,
            work: Cell::new(0),
        }
    }

    fn holds(&self) -> bool {
        let mut since = Since::nothing(self.kernel);
        since.ready = !self.kernel.barriers.is_empty();
        self.flow(Kernel::BODY, BTreeMap::from([(Known::new(), since)])).is_some()
    }

    /// What happened behind a region; none if something in it is not ordered.
    fn flow(&self, region: RegionId, mut paths: Paths) -> Option<Paths> {
        for (at, statement) in self.kernel.region(region).statements.iter().enumerate() {
            self.work.set(self.work.get() + 1 + paths.len() as u64);
            match &statement.kind {
                StatementKind::Elect(part) => paths = self.flow(*part, paths)?,
                StatementKind::If(branch) => {
                    let [then, otherwise] = self.sides(paths, Fact::Holds(branch.condition));
                    paths = self.flow(branch.then, then)?;
                    let otherwise = match branch.otherwise {
                        Some(part) => self.flow(part, otherwise)?,
                        None => otherwise,
                    };
                    otherwise.into_iter().for_each(|(known, since)| add(&mut paths, known, since));
                }
                StatementKind::Loop(l) => {
                    let mut many = false;
                    let [runs, skips] = self.sides(paths, Fact::Runs(l.count));
                    // What was before the loop is behind it only where it has no iteration.
                    let always = self.kernel.value(l.count).facts.range.low >= 1;
                    let skips = if always { Paths::new() } else { skips };
                    paths = self.flow(l.body, runs)?;
                    loop {
                        let before = paths.clone();
                        let behind = self.flow(l.body, paths.clone())?;
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
                    skips.into_iter().for_each(|(known, since)| add(&mut paths, known, since));
                }
                StatementKind::Sync if self.gone.contains(&(region, at)) => {}
                kind => match self.among(kind, region, at) {
                    Some(among) => paths.values_mut().for_each(|since| since.sync(self.kernel, among)),
                    None => {
                        let first = self.first.contains(&region);
                        if !paths.values_mut().all(|since| self.is_ordered(kind, first, since)) {
                            return None;
                        }
                    }
                },
            }
        }
        // What the region binds is another value the next time.
        let mut behind = Paths::new();
        for (mut known, since) in paths {
            known.retain(|fact, _| self.kernel.value(fact.value()).region != region);
            add(&mut behind, known, since);
        }
        Some(if behind.len() > MOST_PATHS { as_one(behind) } else { behind })
    }

    /// The paths on which a fact holds, and those on which it does not.
    fn sides(&self, paths: Paths, fact: Fact) -> [Paths; 2] {
        let mut sides = [Paths::new(), Paths::new()];
        for (known, since) in paths {
            for (side, holds) in sides.iter_mut().zip([true, false]) {
                if self.guards.excludes(&known, fact, holds) {
                    continue;
                }
                let mut known = known.clone();
                if self.guards.follows(fact) {
                    known.insert(fact, holds);
                }
                add(side, known, since.clone());
            }
        }
        sides
    }

    fn is_written(&self, parameter: u16) -> bool {
        let of = self.kernel.signature.parameters.get(usize::from(parameter));
        of.is_some_and(|of| matches!(of.kind, ParameterKind::Tensor { written: true, .. }))
    }

    /// Takes in an access to memory other than shared; whether it is ordered.
    fn is_ordered_abroad(&self, memory: Memory, writes: bool, first: bool, since: &mut Since) -> bool {
        let shared = match memory {
            Memory::Workspace(_) => true,
            Memory::Parameter(parameter) => self.is_written(parameter),
            Memory::Buffer(_) => false,
        };
        let read_only = matches!(memory, Memory::Workspace(_)) && !writes;
        since.abroad |= shared && !first && !read_only;
        !shared || first || self.kernel.signature.threads == 1 || !since.arrived
    }

    /// Who waits for each other at a statement.
    fn among(&self, kind: &StatementKind, region: RegionId, at: usize) -> Option<Sharing> {
        let weaker = self.weak.iter().find(|weak| (weak.0, weak.1) == (region, at)).map(|weak| weak.2);
        match kind {
            StatementKind::SyncWarp => Some(Sharing::Warp),
            StatementKind::SyncWarpgroup => Some(Sharing::Warpgroup),
            StatementKind::SyncCluster => Some(Sharing::Block),
            StatementKind::Sync | StatementKind::Agree { .. } => Some(weaker.unwrap_or(Sharing::Block)),
            _ => None,
        }
    }

    /// Takes in a statement; whether it is ordered.
    fn is_ordered(&self, kind: &StatementKind, first: bool, since: &mut Since) -> bool {
        let alone = self.kernel.signature.threads == 1;
        let sharing = |buffer: BufferId| self.kernel.buffers[buffer.index()].sharing;
        let is_own = |buffer: BufferId| alone || sharing(buffer) == Sharing::Thread;
        match kind {
            StatementKind::Load(load) | StatementKind::LoadPeer { load, .. } => match load.memory {
                Memory::Buffer(buffer) => {
                    // What was fetched may be of any age.
                    let (used, fetched) = (&mut since.used[buffer.index()], self.fetched[buffer.index()]);
                    let count = if fetched { used.len() } else { 1 };
                    used[..count].fill(true);
                    since.touched[buffer.index()] = true;
                    let unseen = since.written[buffer.index()] || fetched && since.seen < sharing(buffer);
                    is_own(buffer) || !unseen
                }
                memory => self.is_ordered_abroad(memory, false, first, since),
            },
            StatementKind::Renew { buffer, .. } => {
                let (used, stale) = (&mut since.used[buffer.index()], &mut since.stale[buffer.index()]);
                used.rotate_right(1);
                stale.rotate_right(1);
                since.written[buffer.index()] = false;
                stale[0] |= std::mem::replace(&mut used[0], false);
                true
            }
            StatementKind::Fetch(fetch) => is_own(fetch.buffer) || !since.stale[fetch.buffer.index()][0],
            StatementKind::AwaitFetches { .. } => {
                since.seen = Sharing::Thread;
                true
            }
            StatementKind::Store(store) | StatementKind::Spread(store) => match store.memory {
                Memory::Buffer(buffer) => {
                    since.used[buffer.index()][0] = true;
                    since.written[buffer.index()] = true;
                    since.touched[buffer.index()] = true;
                    let is_new = is_own(buffer) || !since.stale[buffer.index()][0];
                    is_new && !since.awaited && !since.is_elsewhere(self.kernel, buffer)
                }
                memory => self.is_ordered_abroad(memory, true, first, since),
            },
            StatementKind::Update(update) => {
                self.is_ordered_abroad(Memory::Workspace(update.workspace), true, first, since)
            }
            StatementKind::Arrive { .. } => {
                since.arrived = true;
                alone || !since.abroad
            }
            StatementKind::Publish => {
                since.published = true;
                true
            }
            StatementKind::AwaitReads { .. } => {
                since.awaited = true;
                true
            }
            StatementKind::Expect { barrier, .. } => !since.ready && (alone || !since.waited[barrier.index()]),
            StatementKind::Await { barrier, .. } => {
                since.waited[barrier.index()] = true;
                !since.ready
            }
            StatementKind::Transfer(transfer) => {
                // Whoever is elected, it need not be the first thread. What tensor a tile is of is not known here.
                since.abroad |= match &transfer.part {
                    TensorPart::Run { parameter, .. } => self.is_written(*parameter),
                    TensorPart::Tile { .. } => true,
                };
                match transfer.barrier {
                    Some(_) => {
                        let of = transfer.buffer.index();
                        !since.ready && !since.used[of].iter().chain(&since.stale[of]).any(|used| *used)
                    }
                    None => !since.published && !since.written[transfer.buffer.index()],
                }
            }
            StatementKind::Sync
            | StatementKind::SyncWarpgroup
            | StatementKind::SyncWarp
            | StatementKind::SyncCluster
            | StatementKind::Agree { .. }
            | StatementKind::Elect(_)
            | StatementKind::Roles(_)
            | StatementKind::Release { .. }
            | StatementKind::If(_)
            | StatementKind::Loop(_)
            | StatementKind::Let(_)
            | StatementKind::Declare(..)
            | StatementKind::Set(..)
            | StatementKind::Shuffle { .. }
            | StatementKind::CommitFetches
            | StatementKind::Commit => true,
        }
    }
}

/// The regions that nobody but the thread with number 0 comes to, among those inside one.
fn of_first_thread(kernel: &Kernel, region: RegionId, first: bool, found: &mut BTreeSet<RegionId>) {
    if first {
        found.insert(region);
    }
    for statement in &kernel.region(region).statements {
        match &statement.kind {
            StatementKind::Loop(l) => of_first_thread(kernel, l.body, first, found),
            StatementKind::If(branch) => {
                of_first_thread(kernel, branch.then, first || is_first_thread(kernel, branch.condition), found);
                branch.otherwise.iter().for_each(|otherwise| of_first_thread(kernel, *otherwise, first, found));
            }
            StatementKind::Elect(part) => of_first_thread(kernel, *part, false, found),
            _ => {}
        }
    }
}

/// Whether a condition holds for the thread with number 0 alone.
fn is_first_thread(kernel: &Kernel, condition: ValueId) -> bool {
    let op = |value: ValueId| kernel.value(value).op;
    match op(condition) {
        Op::CompareIndex(Compare::Eq, a, b) => {
            let pair = |a: ValueId, b: ValueId| op(a) == Op::ThreadIndex && op(b) == Op::Literal(0);
            pair(a, b) || pair(b, a)
        }
        Op::Binary(Binary::And, a, b) => is_first_thread(kernel, a) || is_first_thread(kernel, b),
        // That its block was the last, the first thread says.
        Op::Arrived => true,
        _ => false,
    }
}

/// The paths, without what tells them apart.
fn as_one(paths: Paths) -> Paths {
    let mut all = Paths::new();
    paths.into_values().for_each(|since| add(&mut all, Known::new(), since));
    all
}

#[cfg(test)]
#[path = "syncs_tests.rs"]
mod tests;

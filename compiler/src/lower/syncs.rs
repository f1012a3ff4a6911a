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
//! | a thread reads or writes an instance of a buffer | its slot is renewed |
//! | a thread has waited for its fetches | a thread reads a buffer that threads fetch to |
//! | a thread reads or writes a buffer | a thread writes another one that lies in the same memory |
//! | a thread other than the first writes a workspace, or accesses a tensor that the kernel writes | the first thread arrives at a counter |
//! | the first thread arrives | another one accesses a workspace or such a tensor |
//!
//! In a block of one warp a barrier of the warp will do for the last two rows. What is read of a workspace is not written again, so that nobody waits for
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
//! be kept that only some paths need, never taken out where one does. Paths are told apart by the conditions that several branches share, while
//! these have one value; others are taken both ways.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_kernel::algorithm::{Binary, Compare};

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
        if among == Sharing::Block {
            *self = Self::nothing(kernel);
        }
        for (n, _) in kernel.buffers.iter().enumerate().filter(|(_, b)| b.sharing <= among) {
            self.used[n].fill(false);
            self.written[n] = false;
        }
        self.seen = self.seen.max(among);
        if among == Sharing::Warp && kernel.signature.threads <= WARP {
            (self.abroad, self.arrived) = (false, false);
        }
    }

    fn join(&mut self, other: &Self) {
        let or = |a: &mut Vec<bool>, b: &[bool]| a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
        self.ready |= other.ready;
        self.used.iter_mut().zip(&other.used).for_each(|(a, b)| or(a, b));
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
    for &(_, region, at) in &candidates {
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

/// What is known of conditions on a path, by their values.
type Known = BTreeMap<ValueId, bool>;

/// What happened on the paths to a statement, by what is known there.
type Paths = BTreeMap<Known, Since>;

/// So many kinds of paths are told apart; beyond that, all are one.
const MOST_PATHS: usize = 16;

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
    /// Conditions that several branches share, on which all threads agree.
    shared: BTreeSet<ValueId>,
    /// Regions that the first thread alone comes to.
    first: BTreeSet<RegionId>,
}

impl<'a> Pass<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        let mut fetched = vec![false; kernel.buffers.len()];
        let (mut seen, mut shared) = (BTreeSet::new(), BTreeSet::new());
        for statement in kernel.regions.iter().flat_map(|region| &region.statements) {
            match &statement.kind {
                StatementKind::Fetch(fetch) => fetched[fetch.buffer.index()] = true,
                StatementKind::If(branch)
                    if kernel.value(branch.condition).facts.uniform && !seen.insert(branch.condition) =>
                {
                    shared.insert(branch.condition);
                }
                _ => {}
            }
        }
        let mut first = BTreeSet::new();
        of_first_thread(kernel, Kernel::BODY, false, &mut first);
        Self { kernel, gone: Vec::new(), weak: Vec::new(), fetched, shared, first }
    }

    fn holds(&self) -> bool {
        let mut since = Since::nothing(self.kernel);
        since.ready = !self.kernel.barriers.is_empty();
        self.flow(Kernel::BODY, BTreeMap::from([(Known::new(), since)])).is_some()
    }

    /// What happened behind a region; none if something in it is not ordered.
    fn flow(&self, region: RegionId, mut paths: Paths) -> Option<Paths> {
        for (at, statement) in self.kernel.region(region).statements.iter().enumerate() {
            match &statement.kind {
                StatementKind::Elect(part) => paths = self.flow(*part, paths)?,
                StatementKind::If(branch) => {
                    let [mut then, mut otherwise] = [Paths::new(), Paths::new()];
                    for (known, since) in paths {
                        let taken = known.get(&branch.condition).copied();
                        for (side, holds) in [(&mut then, true), (&mut otherwise, false)] {
                            let mut known = known.clone();
                            if taken == Some(!holds) {
                                continue;
                            }
                            if self.shared.contains(&branch.condition) {
                                known.insert(branch.condition, holds);
                            }
                            add(side, known, since.clone());
                        }
                    }
                    paths = self.flow(branch.then, then)?;
                    let otherwise = match branch.otherwise {
                        Some(part) => self.flow(part, otherwise)?,
                        None => otherwise,
                    };
                    otherwise.into_iter().for_each(|(known, since)| add(&mut paths, known, since));
                }
                StatementKind::Loop(l) => {
                    let mut many = false;
                    if self.kernel.value(l.count).facts.range.low >= 1 {
                        paths = self.flow(l.body, paths)?;
                    }
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
            known.retain(|value, _| self.kernel.value(*value).region != region);
            add(&mut behind, known, since);
        }
        Some(if behind.len() > MOST_PATHS { as_one(behind) } else { behind })
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
            Memory::Shared(_) => false,
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
            StatementKind::Load(load) => match load.memory {
                Memory::Shared(buffer) => {
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
                let used = &mut since.used[buffer.index()];
                used.rotate_right(1);
                since.written[buffer.index()] = false;
                let was_used = std::mem::replace(&mut used[0], false);
                is_own(*buffer) || !was_used
            }
            StatementKind::AwaitFetches { .. } => {
                since.seen = Sharing::Thread;
                true
            }
            StatementKind::Store(store) => match store.memory {
                Memory::Shared(buffer) => {
                    since.used[buffer.index()][0] = true;
                    since.written[buffer.index()] = true;
                    since.touched[buffer.index()] = true;
                    !since.awaited && !since.is_elsewhere(self.kernel, buffer)
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
                    Some(_) => !since.ready && !since.used[transfer.buffer.index()].contains(&true),
                    None => !since.published && !since.written[transfer.buffer.index()],
                }
            }
            StatementKind::Sync
            | StatementKind::SyncWarpgroup
            | StatementKind::SyncWarp
            | StatementKind::Agree { .. }
            | StatementKind::Elect(_)
            | StatementKind::If(_)
            | StatementKind::Loop(_)
            | StatementKind::Let(_)
            | StatementKind::Declare(..)
            | StatementKind::Set(..)
            | StatementKind::Shuffle { .. }
            | StatementKind::Fetch(_)
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
mod tests {
    use tilewright_kernel::ElementType;
    use tilewright_kernel::algorithm::Compare;

    use super::*;
    use crate::kernel_ir::{BarrierId, Buffer, Builder, Fetch, Signature, TensorPart, Transfer, Type, Workspace};

    fn builder() -> (Builder, BufferId, ValueId) {
        block_of(64)
    }

    fn block_of(threads: u32) -> (Builder, BufferId, ValueId) {
        let mut b = Builder::new(Signature {
            name: "k".to_owned(),
            parameters: Vec::new(),
            dims: Vec::new(),
            maps: Vec::new(),
            arguments: Vec::new(),
            threads,
        });
        let buffer = buffer_of(&mut b, 1);
        let zero = b.index_literal(Type::I32, 0);
        (b, buffer, zero)
    }

    fn buffer_of(b: &mut Builder, slots: u32) -> BufferId {
        let (name, element) = ("s".to_owned(), ElementType::F32);
        b.buffer(Buffer { name, element, elements: 64, alignment: 128, slots, sharing: Sharing::Block })
    }

    /// An instance is written and read, with every barrier that it may need.
    fn instance(b: &mut Builder, buffer: BufferId) {
        let (zero, one) = (b.index_literal(Type::I32, 0), b.literal(ElementType::F32, 0));
        b.sync();
        b.renew(buffer, zero);
        b.store(Memory::Shared(buffer), zero, &[one]);
        b.sync();
        b.load(Memory::Shared(buffer), zero, 1, None);
    }

    fn copy(b: &mut Builder, buffer: BufferId, barrier: Option<BarrierId>) {
        let zero = b.index_literal(Type::I32, 0);
        b.begin_elect();
        if let Some(barrier) = barrier {
            b.expect(barrier, zero, 16);
        }
        let part = TensorPart::Tile { map: 0, start: vec![zero] };
        b.transfer(Transfer { part, buffer, slot: zero, offset: zero, barrier, evict: None });
        b.end_elect();
    }

    /// The kernel's text behind the pass, one word for each statement that matters.
    fn minimal(b: Builder) -> Option<String> {
        let kernel = minimise(b.finish().unwrap())?;
        let words = ["sync", "for", "copy", "await", "publish", "renew", "= s[", "s[0] ="];
        let text = kernel.to_string();
        let found = text.lines().filter_map(|line| words.iter().find(|word| line.contains(**word)));
        Some(found.copied().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn one_barrier_serves_what_comes_before_it() {
        let (mut b, buffer, zero) = builder();
        let barrier = b.barrier(1);
        b.sync();
        b.sync();
        copy(&mut b, buffer, Some(barrier));
        b.await_phase(barrier, zero, zero);
        b.load(Memory::Shared(buffer), zero, 1, None);
        b.sync();
        b.sync();
        copy(&mut b, buffer, Some(barrier));
        b.sync();
        assert_eq!(minimal(b).as_deref(), Some("sync copy await = s[ sync copy"));
    }

    /// In a loop, the barrier in front of the loop goes, if the loop has one at its head anyway.
    #[test]
    fn a_loop_keeps_its_own() {
        let (mut b, buffer, zero) = builder();
        let barrier = b.barrier(1);
        b.sync();
        let n = b.block_index();
        b.begin_loop(n);
        b.sync();
        copy(&mut b, buffer, Some(barrier));
        b.await_phase(barrier, zero, zero);
        b.load(Memory::Shared(buffer), zero, 1, None);
        b.end_loop();
        assert_eq!(minimal(b).as_deref(), Some("for sync copy await = s["));
    }

    #[test]
    fn stores_keep_both_sides() {
        let (mut b, buffer, zero) = builder();
        let one = b.literal(ElementType::F32, 0);
        let n = b.block_index();
        b.begin_loop(n);
        b.store(Memory::Shared(buffer), zero, &[one]);
        b.publish();
        b.sync();
        copy(&mut b, buffer, None);
        b.begin_elect();
        b.await_reads(0);
        b.end_elect();
        b.sync();
        b.end_loop();
        let text = minimal(b).unwrap();
        assert_eq!(text.matches("sync").count(), 2, "{text}");
    }

    /// There is a barrier for each reason. One serves two buffers, and all of them a loop.
    #[test]
    fn one_barrier_serves_several_buffers() {
        let (mut b, first, zero) = builder();
        let other = buffer_of(&mut b, 1);
        let n = b.block_index();
        b.begin_loop(n);
        let one = b.literal(ElementType::F32, 0);
        for buffer in [first, other] {
            b.sync();
            b.renew(buffer, zero);
            b.store(Memory::Shared(buffer), zero, &[one]);
            b.sync();
        }
        for buffer in [first, other] {
            b.sync();
            b.load(Memory::Shared(buffer), zero, 1, None);
        }
        b.end_loop();
        assert_eq!(minimal(b).as_deref(), Some("for renew s[0] = sync renew s[0] = = s[ sync = s["));
    }

    /// The barriers of a loop that always runs serve what is around it.
    #[test]
    fn a_loop_that_always_runs() {
        let barriers = |always: bool| {
            let (mut b, outer, _) = builder();
            let inner = buffer_of(&mut b, 1);
            let n = b.block_index();
            let count = if always { b.index_literal(Type::I32, 3) } else { n };
            b.begin_loop(n);
            for buffer in [outer, inner] {
                if buffer == inner {
                    b.begin_loop(count);
                }
                instance(&mut b, buffer);
            }
            b.end_loop();
            b.end_loop();
            minimal(b).expect("ordered").matches("sync").count()
        };
        assert_eq!((barriers(true), barriers(false)), (3, 4));
    }

    /// What other threads wrote is there before the first one arrives, and nobody reads before it has.
    #[test]
    fn arrivals_are_between_barriers() {
        let arrival = |syncs: [bool; 2], alone: bool, reads: bool| {
            let (mut b, _, zero) = builder();
            for (name, element, zeroed) in [("counters", ElementType::U32, true), ("parts", ElementType::F32, false)] {
                b.workspace(Workspace { name: name.to_owned(), element, zeroed });
            }
            let (thread, one, n) = (b.thread_index(), b.literal(ElementType::F32, 0), b.index_literal(Type::I32, 4));
            let first = b.index_compare(Compare::Eq, thread, zero);
            if alone {
                b.begin_if(first);
            }
            b.store(Memory::Workspace(1), zero, &[one]);
            if alone {
                b.end_if();
            }
            let last = b.arrive(0, zero, n);
            if reads {
                b.begin_if(last);
                b.load(Memory::Workspace(1), zero, 1, None);
                b.end_if();
            }
            let mut kernel = b.finish().unwrap();
            let statements = &mut kernel.regions[0].statements;
            let keeps = |kind: &StatementKind| match kind {
                StatementKind::Sync => syncs[0],
                StatementKind::Agree { .. } => syncs[1],
                _ => true,
            };
            statements.retain(|statement| keeps(&statement.kind));
            let count =
                |kernel: Kernel| kernel.regions[0].statements.iter().filter(|s| s.kind == StatementKind::Sync).count();
            minimise(kernel).map(count)
        };
        assert_eq!(arrival([true, true], false, true), Some(1));
        assert_eq!(arrival([false, true], false, true), None);
        assert_eq!(arrival([true, false], false, true), None);
        assert_eq!(arrival([true, true], true, true), Some(0));
        assert_eq!(arrival([false, true], true, true), Some(0));
    }

    /// Two buffers in turn: what orders the reads of one with its next instance is the barrier between writes and reads of the other.
    #[test]
    fn buffers_in_turn_need_one_barrier_each() {
        let (mut b, first, _) = builder();
        let other = buffer_of(&mut b, 1);
        let n = b.block_index();
        b.begin_loop(n);
        for buffer in [first, other] {
            instance(&mut b, buffer);
        }
        b.end_loop();
        assert_eq!(minimal(b).as_deref(), Some("for renew s[0] = sync = s[ renew s[0] = sync = s["));
    }

    #[test]
    fn a_thread_alone_waits_for_nobody() {
        let (mut b, buffer, _) = block_of(1);
        let n = b.block_index();
        b.begin_loop(n);
        instance(&mut b, buffer);
        b.end_loop();
        assert_eq!(minimal(b).as_deref(), Some("for renew s[0] = = s["));
        // A copy is another agent.
        let (mut b, buffer, zero) = block_of(1);
        let one = b.literal(ElementType::F32, 0);
        b.store(Memory::Shared(buffer), zero, &[one]);
        b.publish();
        copy(&mut b, buffer, None);
        assert_eq!(minimal(b), None);
    }

    /// Straight on, and around a loop: writes and reads of an instance, reads and writes of the next, writes of both that nobody reads.
    #[test]
    fn instances_are_apart() {
        let parts = |loops: bool, parts: &[&str]| {
            let (mut b, buffer, zero) = builder();
            let one = b.literal(ElementType::F32, 0);
            let n = b.block_index();
            if loops {
                b.begin_loop(n);
            }
            for part in parts {
                match *part {
                    "sync" => b.sync(),
                    "renew" => b.renew(buffer, zero),
                    "store" => b.store(Memory::Shared(buffer), zero, &[one]),
                    _ => drop(b.load(Memory::Shared(buffer), zero, 1, None)),
                }
            }
            if loops {
                b.end_loop();
            }
            minimal(b).is_some()
        };
        assert!(parts(false, &["renew", "store", "store", "sync", "load", "load"]));
        assert!(!parts(false, &["renew", "store", "load"]));
        assert!(parts(false, &["store", "sync", "load", "sync", "renew", "store"]));
        assert!(!parts(false, &["store", "sync", "load", "renew", "store"]));
        assert!(!parts(false, &["store", "renew", "store"]));
        assert!(parts(false, &["store", "sync", "renew", "store"]));
        assert!(!parts(true, &["renew", "store", "sync", "load"]));
        assert!(parts(true, &["renew", "store", "sync", "load", "sync"]));
        assert!(!parts(true, &["renew", "store"]));
        // An instance that stays what it is.
        assert!(parts(true, &["store"]) && !parts(true, &["load", "store"]) && parts(true, &["load", "store", "sync"]));
    }

    /// One instance after the other in so many slots: with two, the barrier between writes and reads orders the slots, too.
    #[test]
    fn slots_in_turn_need_one_barrier() {
        let ring = |slots: u32, syncs: [bool; 2]| {
            let (mut b, _, zero) = builder();
            let ring = buffer_of(&mut b, slots);
            let one = b.literal(ElementType::F32, 0);
            let n = b.block_index();
            b.begin_loop(n);
            if syncs[0] {
                b.sync();
            }
            b.renew(ring, zero);
            b.store(Memory::Shared(ring), zero, &[one]);
            if syncs[1] {
                b.sync();
            }
            b.load(Memory::Shared(ring), zero, 1, None);
            b.end_loop();
            minimal(b)
        };
        assert_eq!(ring(1, [true, true]).as_deref(), Some("for sync renew s[0] = sync = s["));
        for slots in 2..5 {
            assert_eq!(ring(slots, [true, true]).as_deref(), Some("for renew s[0] = sync = s["));
            assert_eq!(ring(slots, [true, false]), None);
        }
        assert_eq!(ring(1, [false, true]), None);
    }

    /// What others fetched is seen behind a barrier behind the wait; one barrier orders the next copies to a slot, too.
    #[test]
    fn fetches_need_a_barrier_behind_their_wait() {
        let ring = |syncs: [bool; 3]| {
            let (mut b, buffer, zero) = builder();
            let n = b.block_index();
            b.begin_loop(n);
            if syncs[0] {
                b.sync();
            }
            b.await_fetches(1);
            if syncs[1] {
                b.sync();
            }
            b.renew(buffer, zero);
            b.fetch(Fetch { parameter: 0, from: zero, buffer, to: zero, lanes: 1, predicate: None });
            b.commit_fetches();
            if syncs[2] {
                b.sync();
            }
            b.load(Memory::Shared(buffer), zero, 1, None);
            b.end_loop();
            let ordered = b.finish().map(minimise).expect("balanced");
            let statements = |kernel: Kernel| kernel.regions.into_iter().flat_map(|region| region.statements);
            ordered.map(|kernel| statements(kernel).filter(|s| s.kind == StatementKind::Sync).count())
        };
        assert_eq!(ring([true; 3]), Some(1));
        assert_eq!(ring([false, true, false]), Some(1));
        assert_eq!(ring([true, false, false]), None);
        assert_eq!(ring([false, false, true]), None);
    }

    /// A barrier of as few threads as share an element, in blocks of several warpgroups.
    #[test]
    fn units_wait_for_themselves() {
        let kept = |threads: u32, sharing: &[Sharing]| {
            let (mut b, _, zero) = block_of(threads);
            let one = b.literal(ElementType::F32, 0);
            let buffers: Vec<BufferId> = (sharing.iter())
                .map(|sharing| {
                    let (name, element, sharing) = ("s".to_owned(), ElementType::F32, *sharing);
                    b.buffer(Buffer { name, element, elements: 64, alignment: 128, slots: 1, sharing })
                })
                .collect();
            buffers.iter().for_each(|buffer| b.store(Memory::Shared(*buffer), zero, &[one]));
            b.sync();
            buffers.iter().for_each(|buffer| drop(b.load(Memory::Shared(*buffer), zero, 1, None)));
            let text = b.finish().map(minimise).expect("balanced").expect("ordered").to_string();
            let found = text.lines().map(str::trim).filter(|line| line.starts_with("sync"));
            found.map(str::to_owned).collect::<Vec<_>>().join(", ")
        };
        use Sharing::{Block, Thread, Warp, Warpgroup};
        assert_eq!(kept(256, &[Thread]), "");
        assert_eq!(kept(256, &[Warp, Thread]), "sync warp");
        assert_eq!(kept(256, &[Warp, Warpgroup]), "sync warpgroup");
        assert_eq!(kept(256, &[Warpgroup, Block]), "sync");
        // No several whole ones.
        assert_eq!(kept(128, &[Warpgroup]), "sync");
        assert_eq!(kept(192, &[Warpgroup]), "sync");
        assert_eq!(kept(192, &[Warp]), "sync warp");
    }

    /// Stages that one condition guards: where it does not hold, there is nothing to order, and where it does, each of them has its barrier.
    #[test]
    fn branches_with_one_condition_are_one_path() {
        let shared = |same: bool| {
            let (mut b, first, _) = builder();
            let other = buffer_of(&mut b, 1);
            let n = b.block_index();
            let turn = b.begin_loop(n);
            for (buffer, limit) in [(first, 3), (other, if same { 3 } else { 4 })] {
                let limit = b.index_literal(Type::I32, limit);
                let holds = b.index_compare(Compare::Lt, turn, limit);
                b.begin_if(holds);
                instance(&mut b, buffer);
                b.end_if();
            }
            b.end_loop();
            minimal(b).expect("ordered").matches("sync").count()
        };
        assert_eq!(shared(true), 2);
        // Either may come alone.
        assert_eq!(shared(false), 4);
    }

    #[test]
    fn what_is_not_ordered_is_a_defect() {
        let (mut b, buffer, _) = builder();
        let barrier = b.barrier(1);
        copy(&mut b, buffer, Some(barrier));
        assert_eq!(minimal(b), None);
        let (mut b, buffer, zero) = builder();
        let one = b.literal(ElementType::F32, 0);
        b.store(Memory::Shared(buffer), zero, &[one]);
        b.sync();
        b.publish();
        copy(&mut b, buffer, None);
        assert_eq!(minimal(b), None);
    }
}

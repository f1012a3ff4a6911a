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
//! | a thread publishes what it wrote to a buffer | a copy from that buffer |
//! | the elected thread has waited for reads of its copies | a thread writes to a buffer that is copied |
//! | a thread writes an instance of a buffer | a thread reads it |
//! | a thread reads or writes an instance of a buffer | its slot is renewed |
//! | a thread has waited for its fetches | a thread reads a buffer that threads fetch to |
//! | a thread reads or writes a buffer | a thread writes another one that lies in the same memory |
//!
//! In the three rows before the last a barrier of warps will do for a buffer whose elements are of one warp each, and none is needed if they are of one
//! thread ([`Sharing`]). A barrier that is needed is weakened to one of warps where that suffices.
//!
//! Instances take the slots of a buffer in turn, each with its renewal: n renewals after an instance came, its slot is another one's.
//! That a thread waits for its fetches before the barrier is where it is waited for; the separate checker sees that it is enough.
//!
//! Threads that write one instance of a buffer write different elements of it, so that there is nothing to order between their writes; the
//! next instance may give an element to another thread. A thread alone in its block has nobody to wait for: the last four rows are void.
//!
//! **Formula.** Forward data flow: what happened since the last barrier on some path; a loop's body starts with what was before the loop
//! or at the body's end. **Approximation.** To copies by the accelerator a ring's slots are one buffer, and every wait for reads concerns every buffer: barriers may
//! be kept that only some paths need, never taken out where one does.

use crate::kernel_ir::{BufferId, Kernel, Memory, RegionId, Sharing, StatementKind, WARP};

/// What happened since the last barrier, on some path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Since {
    /// Barriers of copies were made ready.
    ready: bool,
    /// Instances of buffers that a thread read or wrote: of each buffer the newest first, as many as it has slots.
    used: Vec<Vec<bool>>,
    /// Buffers of which a thread wrote the newest instance.
    written: Vec<bool>,
    /// Buffers that a thread read or wrote, whatever barriers of warps there were.
    touched: Vec<bool>,
    /// Threads waited for their fetches, since a barrier of the block, and since one of either kind.
    fetched: bool,
    fetched_by_lanes: bool,
    /// A thread published.
    published: bool,
    /// The elected thread waited for reads.
    awaited: bool,
}

impl Since {
    fn nothing(kernel: &Kernel) -> Self {
        Self {
            ready: false,
            used: kernel.buffers.iter().map(|b| vec![false; b.slots.max(1) as usize]).collect(),
            written: vec![false; kernel.buffers.len()],
            touched: vec![false; kernel.buffers.len()],
            fetched: false,
            fetched_by_lanes: false,
            published: false,
            awaited: false,
        }
    }

    /// Whether a thread may have accessed another buffer in the same memory.
    fn is_elsewhere(&self, kernel: &Kernel, buffer: BufferId) -> bool {
        let place = kernel.lies_in[buffer.index()];
        let others = (0..kernel.buffers.len()).filter(|n| *n != buffer.index() && kernel.lies_in[*n] == place);
        kernel.signature.threads > 1 && others.into_iter().any(|n| self.touched[n])
    }

    /// Behind a barrier of warps.
    fn sync_warps(&mut self, kernel: &Kernel) {
        for (n, _) in kernel.buffers.iter().enumerate().filter(|(_, b)| b.sharing != Sharing::Block) {
            self.used[n].fill(false);
            self.written[n] = false;
        }
        self.fetched_by_lanes = false;
    }

    fn join(&mut self, other: &Self) {
        let or = |a: &mut Vec<bool>, b: &[bool]| a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
        self.ready |= other.ready;
        self.used.iter_mut().zip(&other.used).for_each(|(a, b)| or(a, b));
        self.fetched |= other.fetched;
        self.fetched_by_lanes |= other.fetched_by_lanes;
        or(&mut self.written, &other.written);
        or(&mut self.touched, &other.touched);
        self.published |= other.published;
        self.awaited |= other.awaited;
    }
}

/// Takes out every barrier that is not needed, those in the most loops first; none if something is not ordered as it is: a defect of
/// the compiler.
pub(super) fn minimise(mut kernel: Kernel) -> Option<Kernel> {
    if kernel.buffers.is_empty() {
        return Some(kernel);
    }
    let mut without = Without::default();
    if !holds(&kernel, &without) {
        return None;
    }
    let mut candidates = Vec::new();
    collect(&kernel, Kernel::BODY, 0, &mut candidates);
    candidates.sort_by_key(|(loops, ..)| std::cmp::Reverse(*loops));
    for &(_, region, at) in &candidates {
        without.gone.push((region, at));
        if !holds(&kernel, &without) {
            without.gone.pop();
        }
    }
    for (_, region, at) in candidates {
        if has_warps(&kernel) && !without.gone.contains(&(region, at)) {
            without.weak.push((region, at));
            if !holds(&kernel, &without) {
                without.weak.pop();
            }
        }
    }
    let Without { mut gone, weak } = without;
    for (region, at) in weak {
        kernel.regions[region.index()].statements[at].kind = StatementKind::SyncWarp;
    }
    // From the back, so that positions stay right.
    gone.sort_unstable_by_key(|(region, at)| std::cmp::Reverse((region.index(), *at)));
    for (region, at) in gone {
        kernel.regions[region.index()].statements.remove(at);
    }
    Some(kernel)
}

/// The barriers of a kernel that are not what they were.
#[derive(Default)]
struct Without {
    /// Taken out.
    gone: Vec<(RegionId, usize)>,
    /// Barriers of warps now.
    weak: Vec<(RegionId, usize)>,
}

/// Whether a block consists of whole warps, and of more than one thread.
fn has_warps(kernel: &Kernel) -> bool {
    kernel.signature.threads.is_multiple_of(WARP)
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

/// Whether each element of a buffer is accessed by one thread.
fn is_own(kernel: &Kernel, buffer: BufferId) -> bool {
    kernel.signature.threads == 1 || kernel.buffers[buffer.index()].sharing == Sharing::Thread
}

/// Whether threads fetch to a buffer.
fn is_fetched(kernel: &Kernel, buffer: BufferId) -> bool {
    let statements = kernel.regions.iter().flat_map(|region| &region.statements);
    let mut fetches =
        statements.filter_map(|s| if let StatementKind::Fetch(fetch) = &s.kind { Some(fetch) } else { None });
    fetches.any(|fetch| fetch.buffer == buffer)
}

/// Whether everything is ordered.
pub(super) fn hold(kernel: &Kernel) -> bool {
    holds(kernel, &Without::default())
}

/// Whether the property holds without some of the barriers.
fn holds(kernel: &Kernel, without: &Without) -> bool {
    let mut since = Since::nothing(kernel);
    since.ready = !kernel.barriers.is_empty();
    flow(kernel, Kernel::BODY, without, &mut since)
}

/// Takes a region in; whether it is ordered.
fn flow(kernel: &Kernel, region: RegionId, without: &Without, since: &mut Since) -> bool {
    for (at, statement) in kernel.region(region).statements.iter().enumerate() {
        let ordered = match &statement.kind {
            StatementKind::Sync => {
                if without.weak.contains(&(region, at)) {
                    since.sync_warps(kernel);
                } else if !without.gone.contains(&(region, at)) {
                    *since = Since::nothing(kernel);
                }
                true
            }
            StatementKind::SyncWarp => {
                since.sync_warps(kernel);
                true
            }
            StatementKind::Load(load) => match load.memory {
                Memory::Shared(buffer) => {
                    since.used[buffer.index()][0] = true;
                    since.touched[buffer.index()] = true;
                    let fetched = match kernel.buffers[buffer.index()].sharing {
                        Sharing::Block => since.fetched,
                        _ => since.fetched_by_lanes,
                    };
                    let unseen = since.written[buffer.index()] || fetched && is_fetched(kernel, buffer);
                    is_own(kernel, buffer) || !unseen
                }
                Memory::Parameter(_) => true,
            },
            StatementKind::Renew { buffer, .. } => {
                let used = &mut since.used[buffer.index()];
                used.rotate_right(1);
                since.written[buffer.index()] = false;
                let was_used = std::mem::replace(&mut used[0], false);
                is_own(kernel, *buffer) || !was_used
            }
            StatementKind::AwaitFetches { .. } => {
                (since.fetched, since.fetched_by_lanes) = (true, true);
                true
            }
            StatementKind::Store(store) => match store.memory {
                Memory::Shared(buffer) => {
                    since.used[buffer.index()][0] = true;
                    since.written[buffer.index()] = true;
                    since.touched[buffer.index()] = true;
                    !since.awaited && !since.is_elsewhere(kernel, buffer)
                }
                Memory::Parameter(_) => true,
            },
            StatementKind::Publish => {
                since.published = true;
                true
            }
            StatementKind::AwaitReads { .. } => {
                since.awaited = true;
                true
            }
            StatementKind::Expect { .. } | StatementKind::Await { .. } => !since.ready,
            StatementKind::Transfer(transfer) => match transfer.barrier {
                Some(_) => !since.ready && !since.used[transfer.buffer.index()].contains(&true),
                None => !since.published && !since.written[transfer.buffer.index()],
            },
            StatementKind::Elect(part) => flow(kernel, *part, without, since),
            StatementKind::If(branch) => {
                let mut other = since.clone();
                let then = flow(kernel, branch.then, without, since);
                let otherwise = branch.otherwise.is_none_or(|part| flow(kernel, part, without, &mut other));
                since.join(&other);
                then && otherwise
            }
            StatementKind::Loop(l) => loop {
                let before = since.clone();
                let mut behind = since.clone();
                if !flow(kernel, l.body, without, &mut behind) {
                    break false;
                }
                since.join(&behind);
                // Nothing more can come: each turn adds something, and there is little to add.
                if *since == before {
                    break true;
                }
            },
            StatementKind::Let(_)
            | StatementKind::Declare(..)
            | StatementKind::Set(..)
            | StatementKind::Shuffle { .. }
            | StatementKind::Fetch(_)
            | StatementKind::CommitFetches
            | StatementKind::Commit => true,
        };
        if !ordered {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use tilewright_kernel::ElementType;

    use super::*;
    use crate::kernel_ir::{BarrierId, Buffer, BufferId, Builder, Signature, TensorPart, Transfer, Type, ValueId};

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
        let element = ElementType::F32;
        let buffer = b.buffer(Buffer {
            name: "s".to_owned(),
            element,
            elements: 64,
            alignment: 128,
            slots: 1,
            sharing: Sharing::Block,
        });
        let zero = b.index_literal(Type::I32, 0);
        (b, buffer, zero)
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
        let element = ElementType::F32;
        let other = b.buffer(Buffer {
            name: "s".to_owned(),
            element,
            elements: 64,
            alignment: 128,
            slots: 1,
            sharing: Sharing::Block,
        });
        let n = b.block_index();
        b.begin_loop(n);
        let one = b.literal(ElementType::F32, 0);
        for buffer in [first, other] {
            b.sync();
            b.renew(buffer);
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

    /// Two buffers in turn: what orders the reads of one with its next instance is the barrier between writes and reads of the other.
    #[test]
    fn buffers_in_turn_need_one_barrier_each() {
        let (mut b, first, zero) = builder();
        let element = ElementType::F32;
        let other = b.buffer(Buffer {
            name: "s".to_owned(),
            element,
            elements: 64,
            alignment: 128,
            slots: 1,
            sharing: Sharing::Block,
        });
        let n = b.block_index();
        b.begin_loop(n);
        let one = b.literal(ElementType::F32, 0);
        for buffer in [first, other] {
            b.sync();
            b.renew(buffer);
            b.store(Memory::Shared(buffer), zero, &[one]);
            b.sync();
            b.load(Memory::Shared(buffer), zero, 1, None);
        }
        b.end_loop();
        assert_eq!(minimal(b).as_deref(), Some("for renew s[0] = sync = s[ renew s[0] = sync = s["));
    }

    #[test]
    fn a_thread_alone_waits_for_nobody() {
        let (mut b, buffer, zero) = block_of(1);
        let one = b.literal(ElementType::F32, 0);
        let n = b.block_index();
        b.begin_loop(n);
        b.sync();
        b.renew(buffer);
        b.store(Memory::Shared(buffer), zero, &[one]);
        b.sync();
        b.load(Memory::Shared(buffer), zero, 1, None);
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
                    "renew" => b.renew(buffer),
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

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
//! | a thread writes a buffer | a thread reads it |
//! | a thread reads or writes a buffer | it is renewed |
//!
//! Threads that write one instance of a buffer write different elements of it, so that there is nothing to order between their writes; the
//! next instance may give an element to another thread. A thread alone in its block has nobody to wait for: the last two rows are void.
//!
//! **Formula.** Forward data flow: what happened since the last barrier on some path; a loop's body starts with what was before the loop
//! or at the body's end. **Approximation.** A ring's slots are one buffer, and every wait for reads concerns every buffer: barriers may
//! be kept that only some paths need, never taken out where one does.

use crate::kernel_ir::{Kernel, Memory, RegionId, StatementKind};

/// What happened since the last barrier, on some path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Since {
    /// Barriers of copies were made ready.
    ready: bool,
    /// Buffers that a thread read or wrote.
    used: Vec<bool>,
    /// Buffers that a thread wrote.
    written: Vec<bool>,
    /// A thread published.
    published: bool,
    /// The elected thread waited for reads.
    awaited: bool,
}

impl Since {
    fn nothing(buffers: usize) -> Self {
        Self {
            ready: false,
            used: vec![false; buffers],
            written: vec![false; buffers],
            published: false,
            awaited: false,
        }
    }

    fn join(&mut self, other: &Self) {
        let or = |a: &mut Vec<bool>, b: &[bool]| a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
        self.ready |= other.ready;
        or(&mut self.used, &other.used);
        or(&mut self.written, &other.written);
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
    let mut gone: Vec<(RegionId, usize)> = Vec::new();
    if !holds(&kernel, &gone) {
        return None;
    }
    let mut candidates = Vec::new();
    collect(&kernel, Kernel::BODY, 0, &mut candidates);
    candidates.sort_by_key(|(loops, ..)| std::cmp::Reverse(*loops));
    for (_, region, at) in candidates {
        gone.push((region, at));
        if !holds(&kernel, &gone) {
            gone.pop();
        }
    }
    // From the back, so that positions stay right.
    gone.sort_unstable_by_key(|(region, at)| std::cmp::Reverse((region.index(), *at)));
    for (region, at) in gone {
        kernel.regions[region.index()].statements.remove(at);
    }
    Some(kernel)
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

/// Whether a block has one thread.
fn alone(kernel: &Kernel) -> bool {
    kernel.signature.threads == 1
}

/// Whether the property holds without the barriers in `gone`.
fn holds(kernel: &Kernel, gone: &[(RegionId, usize)]) -> bool {
    let mut since = Since::nothing(kernel.buffers.len());
    since.ready = !kernel.barriers.is_empty();
    flow(kernel, Kernel::BODY, gone, &mut since)
}

/// Takes a region in; whether it is ordered.
fn flow(kernel: &Kernel, region: RegionId, gone: &[(RegionId, usize)], since: &mut Since) -> bool {
    for (at, statement) in kernel.region(region).statements.iter().enumerate() {
        let ordered = match &statement.kind {
            StatementKind::Sync => {
                if !gone.contains(&(region, at)) {
                    *since = Since::nothing(kernel.buffers.len());
                }
                true
            }
            // It is a barrier, too.
            StatementKind::Arrive { .. } => {
                *since = Since::nothing(kernel.buffers.len());
                true
            }
            StatementKind::Load(load) => match load.memory {
                Memory::Shared(buffer) => {
                    since.used[buffer.index()] = true;
                    alone(kernel) || !since.written[buffer.index()]
                }
                Memory::Parameter(_) | Memory::Workspace(_) => true,
            },
            StatementKind::Renew(buffer) => alone(kernel) || !since.used[buffer.index()],
            StatementKind::Store(store) => match store.memory {
                Memory::Shared(buffer) => {
                    since.used[buffer.index()] = true;
                    since.written[buffer.index()] = true;
                    !since.awaited
                }
                Memory::Parameter(_) | Memory::Workspace(_) => true,
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
                Some(_) => !since.ready && !since.used[transfer.buffer.index()],
                None => !since.published && !since.written[transfer.buffer.index()],
            },
            StatementKind::Elect(part) => flow(kernel, *part, gone, since),
            StatementKind::If(branch) => {
                let mut other = since.clone();
                let then = flow(kernel, branch.then, gone, since);
                let otherwise = branch.otherwise.is_none_or(|part| flow(kernel, part, gone, &mut other));
                since.join(&other);
                then && otherwise
            }
            StatementKind::Loop(l) => loop {
                let before = since.clone();
                let mut behind = since.clone();
                if !flow(kernel, l.body, gone, &mut behind) {
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
            | StatementKind::Update(_)
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
        let buffer = b.buffer(Buffer { name: "s".to_owned(), element, elements: 64, alignment: 128, slots: 1 });
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
        let other = b.buffer(Buffer { name: "s".to_owned(), element, elements: 64, alignment: 128, slots: 1 });
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
        let other = b.buffer(Buffer { name: "s".to_owned(), element, elements: 64, alignment: 128, slots: 1 });
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

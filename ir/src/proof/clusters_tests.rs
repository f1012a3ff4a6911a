//! Clusters: exchanges between their blocks that hold, and mistakes planted in them.

use tilewright_kernel::ElementType::F32;
use tilewright_kernel::algorithm::Compare;

use super::tests::{THREADS, X, Z, builder_of, int, launch};
use super::*;
use crate::kernel_ir::{Buffer, BufferId, Builder, Memory, Sharing, StatementKind, Type, ValueId};

const BLOCKS: u32 = 2;

/// A buffer with an element for each thread of each block.
fn buffer(b: &mut Builder) -> BufferId {
    let elements = THREADS * BLOCKS;
    let (name, sharing) = ("s".to_owned(), Sharing::Block);
    b.buffer(Buffer { name, element: F32, elements, alignment: 128, slots: 1, sharing })
}

/// What is wrong with a kernel of clusters, if something is.
fn verdict(blocks: i64, build: impl FnOnce(&mut Builder)) -> Option<Kind> {
    let mut b = builder_of(THREADS, BLOCKS);
    b.line(3);
    build(&mut b);
    let kernel = b.finish().expect("balanced");
    match check(&kernel, &launch(1, blocks * i64::from(THREADS), blocks), 1_000_000) {
        Verdict::Holds => None,
        Verdict::Violated(v) | Verdict::Undecided(v) => {
            assert!(v.line == 3 || v.block.is_none(), "{v}");
            Some(v.kind)
        }
        Verdict::Exhausted => panic!("{kernel}"),
    }
}

/// Number of the element of a buffer that a thread of the block with a number has.
fn element(b: &mut Builder, rank: ValueId) -> ValueId {
    let (thread, threads) = (b.thread_index(), int(b, THREADS.into()));
    let first = b.index_mul(rank, threads);
    b.index_add(first, thread)
}

/// Every block sends `rounds` times what it has to all, and takes what the other one sent; the barriers with these
/// numbers, from 0, are left out.
fn exchange(rounds: i64, without: &'static [usize], shift: i64) -> impl Fn(&mut Builder) {
    move |b| {
        let mut number = 0;
        let mut sync = |b: &mut Builder| {
            if !without.contains(&number) {
                b.barrier_cluster();
            }
            number += 1;
        };
        let (s, rank, block, one) = (buffer(b), b.cluster_rank(), b.block_index(), int(b, 1));
        let global = element(b, block);
        let x = b.load(X, global, 1, None);
        let other = b.index_sub(one, rank);
        let (own, theirs) = (element(b, rank), element(b, other));
        let far = int(b, shift);
        let own = b.index_add(own, far);
        let zero = b.literal(F32, 0);
        let got = b.variable(zero);
        // The other block has begun.
        sync(b);
        let count = int(b, rounds);
        b.begin_loop(count);
        b.store_dsmem_all(s, own, &x);
        sync(b);
        let y = b.load(Memory::Buffer(s), theirs, 1, None)[0];
        b.set(got, y);
        // The other block has read before this one writes again, or ends.
        sync(b);
        b.end_loop();
        let y = b.get(got);
        b.store(Z, global, &[y]);
    }
}

#[test]
fn blocks_send_to_each_other() {
    assert_eq!(verdict(4, exchange(1, &[], 0)), None);
    assert_eq!(verdict(4, exchange(3, &[], 0)), None);
    // Without the first one, nobody knows that the other block has begun.
    assert_eq!(verdict(4, exchange(1, &[0], 0)), Some(Kind::NotReady));
    // Without the one between write and read.
    assert!(matches!(verdict(4, exchange(1, &[1], 0)), Some(Kind::Race | Kind::Uninitialised)));
    // Without the one between a read and the next write of another block: nothing if there is no next one.
    assert_eq!(verdict(4, exchange(3, &[2], 0)), Some(Kind::Race));
    assert_eq!(verdict(4, exchange(1, &[2], 0)), None);
    assert_eq!(verdict(4, exchange(1, &[], 1)), Some(Kind::Outside));
    assert_eq!(verdict(3, exchange(1, &[], 0)), Some(Kind::Outside));
}

#[test]
fn a_barrier_of_the_block_is_none_of_the_cluster() {
    let mut b = builder_of(THREADS, BLOCKS);
    b.line(3);
    exchange(2, &[], 0)(&mut b);
    let kernel = b.finish().expect("balanced");
    let all = kernel.regions.iter().flat_map(|r| &r.statements).filter(|s| s.kind == StatementKind::BarrierCluster);
    for n in 0..all.count() {
        let mut weaker = kernel.clone();
        let mut barriers = weaker.regions.iter_mut().flat_map(|r| &mut r.statements);
        let found =
            barriers.by_ref().filter(|s| s.kind == StatementKind::BarrierCluster).nth(n).expect("there are more");
        found.kind = StatementKind::BarSync;
        let verdict = check(&weaker, &launch(1, 128, 2), 1_000_000);
        assert!(matches!(verdict, Verdict::Violated(_)), "{verdict:?}\n{weaker}");
    }
}

/// Reads of another block's memory: it is not written, and does not end, before they are over.
#[test]
fn blocks_read_from_each_other() {
    let read = |last: bool, again: bool| {
        verdict(2, move |b| {
            let (s, rank, block, one) = (buffer(b), b.cluster_rank(), b.block_index(), int(b, 1));
            let (global, thread, peer) = (element(b, block), b.thread_index(), b.index_sub(one, rank));
            let x = b.load(X, global, 1, None);
            b.store(Memory::Buffer(s), thread, &x);
            b.barrier_cluster();
            let y = b.load_dsmem(peer, s, thread, 1);
            if again {
                b.store(Memory::Buffer(s), thread, &x);
            }
            if last {
                b.barrier_cluster();
            }
            b.store(Z, global, &y);
        })
    };
    assert_eq!(read(true, false), None);
    assert_eq!(read(false, false), Some(Kind::Exited));
    assert_eq!(read(true, true), Some(Kind::Race));
    let none = verdict(2, |b| {
        let (s, two, thread) = (buffer(b), int(b, 2), b.thread_index());
        b.barrier_cluster();
        let _ = b.load_dsmem(two, s, thread, 1);
        b.barrier_cluster();
    });
    assert_eq!(none, Some(Kind::Outside));
}

#[test]
fn all_threads_of_all_blocks_meet() {
    let parted = |of_block: bool| {
        verdict(2, move |b| {
            let (rank, thread, zero) = (b.cluster_rank(), b.thread_index(), int(b, 0));
            let first = b.index_compare(Compare::Eq, if of_block { rank } else { thread }, zero);
            b.begin_if(first);
            b.barrier_cluster();
            b.end_if();
            let block = b.block_index();
            let global = element(b, block);
            let x = b.load(X, global, 1, None);
            b.store(Z, global, &x);
        })
    };
    assert_eq!(parted(true), Some(Kind::NeverEnds));
    assert_eq!(parted(false), Some(Kind::NotEveryThread));
    let ty = |b: &mut Builder| b.dim(0, Type::I32);
    let agreed = verdict(2, |b| {
        let n = ty(b);
        b.begin_loop(n);
        b.barrier_cluster();
        b.end_loop();
        let block = b.block_index();
        let global = element(b, block);
        let x = b.load(X, global, 1, None);
        b.store(Z, global, &x);
    });
    assert_eq!(agreed, None);
}

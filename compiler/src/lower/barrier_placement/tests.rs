//! Tests of which barriers are needed: kernels of a few statements, and what is left of them.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Compare;

use super::*;
use crate::kernel_ir::{
    Buffer, BufferId, Builder, BulkCopy, CpAsync, MbarrierId, Memory, Problem, Signature, TensorPart, Type, ValueId,
    Workspace, verify,
};

/// A kernel with its barriers, found within so much work; and how much it was.
fn within(kernel: Kernel, earlier: &mut Placement, most: u64) -> Option<(Kernel, u64)> {
    let pass = placed_within(&kernel, None, earlier, most)?;
    let work = pass.work.get();
    Some((with_barriers(pass.finish(), kernel), work))
}

fn builder() -> (Builder, BufferId, ValueId) {
    block_of(64)
}

fn block_of(threads: u32) -> (Builder, BufferId, ValueId) {
    block_in(1, threads)
}

fn block_in(cluster: u32, threads: u32) -> (Builder, BufferId, ValueId) {
    let mut b = Builder::new(Signature {
        name: "k".to_owned(),
        parameters: Vec::new(),
        dims: Vec::new(),
        maps: Vec::new(),
        arguments: Vec::new(),
        threads,
        cluster,
    });
    let buffer = buffer_of(&mut b, 1);
    let zero = b.index_literal(Type::I32, 0);
    (b, buffer, zero)
}

fn buffer_of(b: &mut Builder, slots: u32) -> BufferId {
    let (name, element) = ("s".to_owned(), ElementType::F32);
    b.buffer(Buffer { name, element, elements: 64, alignment: 128, slots, sharing: Sharing::Block })
}

/// An instance is written and read.
fn instance(b: &mut Builder, buffer: BufferId) {
    let (zero, one) = (b.index_literal(Type::I32, 0), b.literal(ElementType::F32, 0));
    b.lifetime_start(buffer, zero);
    b.store(Memory::Buffer(buffer), zero, &[one]);
    b.load(Memory::Buffer(buffer), zero, 1, None);
}

fn copy(b: &mut Builder, buffer: BufferId, barrier: Option<MbarrierId>) {
    copy_to(b, buffer, barrier, None);
}

/// To the blocks of a cluster with these bits.
fn copy_to(b: &mut Builder, buffer: BufferId, barrier: Option<MbarrierId>, blocks: Option<i64>) {
    let multicast = blocks.map(|blocks| b.index_literal(Type::I32, blocks));
    let zero = b.index_literal(Type::I32, 0);
    b.begin_elect();
    if let Some(barrier) = barrier {
        b.mbarrier_expect_tx(barrier, zero, 16);
    }
    let part = TensorPart::Tile { map: 0, start: vec![zero] };
    b.bulk_copy(BulkCopy { part, buffer, slot: zero, offset: zero, barrier, evict: None, multicast });
    b.end_elect();
}

/// Whether a kernel is ordered as it is.
fn holds(b: Builder) -> bool {
    Pass::new(&b.finish().unwrap(), None).holds()
}

/// The kernel's text with barriers, one word for each statement that matters.
fn minimal(b: Builder) -> Option<String> {
    let kernel = place_alone(b.finish().unwrap())?;
    assert!(Pass::new(&kernel, None).holds(), "{kernel}");
    let words = ["sync cluster", "sync", "for", "copy", "await", "publish", "renew", "= s[", "s[0] ="];
    let text = kernel.to_string();
    let found = text.lines().filter_map(|line| words.iter().find(|word| line.contains(**word)));
    Some(found.copied().collect::<Vec<_>>().join(" "))
}

#[test]
fn one_barrier_serves_what_comes_before_it() {
    let (mut b, buffer, zero) = builder();
    let barrier = b.mbarrier(1);
    copy(&mut b, buffer, Some(barrier));
    b.mbarrier_wait(barrier, zero, zero);
    b.load(Memory::Buffer(buffer), zero, 1, None);
    copy(&mut b, buffer, Some(barrier));
    assert_eq!(minimal(b).as_deref(), Some("sync copy await = s[ sync copy"));
}

/// A barrier at the head of a loop serves what comes before the loop.
#[test]
fn a_loop_has_its_own() {
    let (mut b, buffer, zero) = builder();
    let barrier = b.mbarrier(1);
    let n = b.block_index();
    b.begin_loop(n);
    copy(&mut b, buffer, Some(barrier));
    b.mbarrier_wait(barrier, zero, zero);
    b.load(Memory::Buffer(buffer), zero, 1, None);
    b.end_loop();
    assert_eq!(minimal(b).as_deref(), Some("for sync copy await = s["));
}

#[test]
fn stores_keep_both_sides() {
    let (mut b, buffer, zero) = builder();
    let one = b.literal(ElementType::F32, 0);
    let n = b.block_index();
    b.begin_loop(n);
    b.store(Memory::Buffer(buffer), zero, &[one]);
    b.fence_proxy_async();
    copy(&mut b, buffer, None);
    b.begin_elect();
    b.bulk_wait_group_read(0);
    b.end_elect();
    b.end_loop();
    let text = minimal(b).unwrap();
    assert_eq!(text.matches("sync").count(), 2, "{text}");
}

/// One barrier serves two buffers, and two serve a loop.
#[test]
fn one_barrier_serves_several_buffers() {
    let (mut b, first, zero) = builder();
    let other = buffer_of(&mut b, 1);
    let n = b.block_index();
    b.begin_loop(n);
    let one = b.literal(ElementType::F32, 0);
    for buffer in [first, other] {
        b.lifetime_start(buffer, zero);
        b.store(Memory::Buffer(buffer), zero, &[one]);
    }
    for buffer in [first, other] {
        b.load(Memory::Buffer(buffer), zero, 1, None);
    }
    b.end_loop();
    assert_eq!(minimal(b).as_deref(), Some("for renew sync s[0] = renew s[0] = sync = s[ = s["));
}

/// The barriers of a loop that always runs serve what is around it.
#[test]
fn a_loop_that_always_runs() {
    let barriers = |inside: &str| {
        let (mut b, outer, _) = builder();
        let inner = buffer_of(&mut b, 1);
        let (n, one) = (b.block_index(), b.index_literal(Type::I32, 1));
        let count = match inside {
            "three" => b.index_literal(Type::I32, 3),
            "one more" => b.index_add(n, one),
            "as many" => n,
            _ => b.index_sub(n, one),
        };
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
    // Where the outer loop runs, the inner one does, or may not.
    assert_eq!(["three", "one more", "as many", "one less"].map(barriers), [3, 3, 3, 4]);
}

/// What other threads wrote is there before the first one arrives, and nobody reads before it has.
#[test]
fn arrivals_are_between_barriers() {
    // What there are of barriers before the arrival and after it, and how many are placed.
    let arrival = |syncs: [bool; 2], alone: bool| {
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
        if syncs[0] {
            b.bar_sync();
        }
        let last = b.last_block_ticket(0, zero, n);
        b.begin_if(last);
        b.load(Memory::Workspace(1), zero, 1, None);
        b.end_if();
        let mut kernel = b.finish().unwrap();
        let statements = &mut kernel.regions[0].statements;
        statements.retain(|s| syncs[1] || !matches!(s.kind, StatementKind::BarRedOr { .. }));
        let holds = Pass::new(&kernel, None).holds();
        let is_sync = |s: &&Statement| s.kind == StatementKind::BarSync;
        let count = |kernel: Kernel| kernel.regions.iter().flat_map(|r| &r.statements).filter(is_sync).count();
        (holds, place_alone(kernel).map(count))
    };
    assert_eq!(arrival([true, true], false), (true, Some(1)));
    assert_eq!(arrival([false, true], false), (false, Some(1)));
    assert_eq!(arrival([true, false], false), (false, Some(2)));
    assert_eq!(arrival([false, false], false), (false, Some(2)));
    assert_eq!(arrival([false, true], true), (true, Some(0)));
}

/// What is not for the last block waits for nobody after an arrival that others are not told of.
#[test]
fn an_arrival_that_is_not_told_keeps_nobody() {
    let (mut b, _, zero) = builder();
    b.workspace(Workspace { name: "counters".to_owned(), element: ElementType::U32, zeroed: true });
    b.workspace(Workspace { name: "parts".to_owned(), element: ElementType::F32, zeroed: false });
    let (one, n) = (b.literal(ElementType::F32, 0), b.index_literal(Type::I32, 4));
    let last = b.last_block_ticket_untold(0, zero, n);
    b.begin_if(last);
    b.load(Memory::Workspace(1), zero, 1, None);
    b.end_if();
    b.store(Memory::Workspace(1), zero, &[one]);
    let kernel = place_alone(b.finish().unwrap()).expect("an order");
    let is_sync = |s: &&Statement| s.kind == StatementKind::BarSync;
    assert_eq!(kernel.regions[0].statements.iter().filter(is_sync).count(), 0);
}

/// Two buffers in turn: what orders the reads of one with its next instance is the barrier between writes and reads of
/// the other.
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
    b.store(Memory::Buffer(buffer), zero, &[one]);
    b.fence_proxy_async();
    copy(&mut b, buffer, None);
    assert_eq!(minimal(b).as_deref(), Some("s[0] = publish sync copy"));
}

/// Straight on, and around a loop: writes and reads of an instance, reads and writes of the next, writes of both that
/// nobody reads.
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
                "sync" => b.bar_sync(),
                "renew" => b.lifetime_start(buffer, zero),
                "store" => b.store(Memory::Buffer(buffer), zero, &[one]),
                _ => drop(b.load(Memory::Buffer(buffer), zero, 1, None)),
            }
        }
        if loops {
            b.end_loop();
        }
        holds(b)
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
    let ring = |slots: u32| {
        let (mut b, _, zero) = builder();
        let ring = buffer_of(&mut b, slots);
        let one = b.literal(ElementType::F32, 0);
        let n = b.block_index();
        b.begin_loop(n);
        b.lifetime_start(ring, zero);
        b.store(Memory::Buffer(ring), zero, &[one]);
        b.load(Memory::Buffer(ring), zero, 1, None);
        b.end_loop();
        minimal(b)
    };
    assert_eq!(ring(1).as_deref(), Some("for renew sync s[0] = sync = s["));
    for slots in 2..5 {
        assert_eq!(ring(slots).as_deref(), Some("for renew s[0] = sync = s["));
    }
}

/// What others fetched is seen after a barrier after the wait; one barrier orders the next copies to a slot, too.
#[test]
fn fetches_need_a_barrier_behind_their_wait() {
    let ring = |syncs: [bool; 3]| {
        let (mut b, buffer, zero) = builder();
        let n = b.block_index();
        b.begin_loop(n);
        if syncs[0] {
            b.bar_sync();
        }
        b.cp_async_wait_group(1);
        if syncs[1] {
            b.bar_sync();
        }
        b.lifetime_start(buffer, zero);
        b.cp_async(CpAsync { parameter: 0, from: zero, buffer, to: zero, lanes: 1, predicate: None });
        b.cp_async_commit_group();
        if syncs[2] {
            b.bar_sync();
        }
        b.load(Memory::Buffer(buffer), zero, 1, None);
        b.end_loop();
        let kernel = b.finish().expect("balanced");
        let holds = Pass::new(&kernel, None).holds();
        let is_sync = |s: &Statement| s.kind == StatementKind::BarSync;
        let count = |kernel: Kernel| kernel.regions.iter().flat_map(|r| &r.statements).filter(|s| is_sync(s)).count();
        (holds, place_alone(kernel).map(count))
    };
    assert_eq!(ring([false, true, false]), (true, Some(1)));
    assert_eq!(ring([true, false, false]), (false, Some(2)));
    assert_eq!(ring([false, false, true]), (false, Some(2)));
    assert_eq!(ring([false; 3]), (false, Some(1)));
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
        buffers.iter().for_each(|buffer| b.store(Memory::Buffer(*buffer), zero, &[one]));
        buffers.iter().for_each(|buffer| drop(b.load(Memory::Buffer(*buffer), zero, 1, None)));
        let text = b.finish().map(place_alone).expect("balanced").expect("ordered").to_string();
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

/// Stages that conditions guard: where none of them holds, there is nothing to order, and where both do, each stage has
/// its barrier.
#[test]
fn branches_whose_conditions_go_together_are_one_path() {
    let shared = |second: &dyn Fn(&mut Builder, ValueId) -> ValueId| {
        let (mut b, first, _) = builder();
        let other = buffer_of(&mut b, 1);
        let n = b.block_index();
        let turn = b.begin_loop(n);
        for (buffer, is_first) in [(first, true), (other, false)] {
            let three = b.index_literal(Type::I32, 3);
            let holds = if is_first { b.index_compare(Compare::Lt, turn, three) } else { second(&mut b, turn) };
            b.begin_if(holds);
            instance(&mut b, buffer);
            b.end_if();
        }
        b.end_loop();
        minimal(b).expect("ordered").matches("sync").count()
    };
    let compare = |b: &mut Builder, how: Compare, a: ValueId, limit: i64| {
        let limit = b.index_literal(Type::I32, limit);
        b.index_compare(how, a, limit)
    };
    assert_eq!(shared(&|b: &mut Builder, turn: ValueId| compare(b, Compare::Lt, turn, 3)), 2);
    // The same, and written otherwise.
    assert_eq!(shared(&|b: &mut Builder, turn: ValueId| compare(b, Compare::Le, turn, 2)), 2);
    let half = |b: &mut Builder, turn: ValueId| {
        let two = b.index_literal(Type::I32, 2);
        let turn = b.index_add(turn, two);
        let turn = b.index_add(turn, turn);
        let three = b.index_literal(Type::I32, 3);
        let turn = b.index_div(turn, three);
        compare(b, Compare::Lt, turn, 3)
    };
    // ⌊2·(turn + 2) / 3⌋ < 3: turn < 2.5.
    assert_eq!(shared(&half), 2);
    // The second one comes alone in the last turn; after that, and never with the first one.
    assert_eq!(shared(&|b: &mut Builder, turn: ValueId| compare(b, Compare::Lt, turn, 4)), 3);
    assert_eq!(shared(&|b: &mut Builder, turn: ValueId| compare(b, Compare::Ge, turn, 3)), 3);
    // Either may come alone.
    let other = |b: &mut Builder, _: ValueId, limit: i64| {
        let block = b.block_index();
        compare(b, Compare::Lt, block, limit)
    };
    assert_eq!(shared(&|b: &mut Builder, turn: ValueId| other(b, turn, 40)), 3);
    // There are as many turns as the number of the block says: of few, the first one comes in each.
    assert_eq!(shared(&|b: &mut Builder, turn: ValueId| other(b, turn, 4)), 3);
}

/// An instance that begins long before it is written: what is in between orders its readers before.
#[test]
fn an_instance_is_new_where_it_is_written() {
    let kept = |between: bool| {
        let (mut b, sums, zero) = builder();
        let parts = buffer_of(&mut b, 1);
        let (n, three, one) = (b.block_index(), b.index_literal(Type::I32, 3), b.literal(ElementType::F32, 0));
        b.begin_loop(n);
        b.lifetime_start(sums, zero);
        b.begin_loop(three);
        if between {
            instance(&mut b, parts);
        }
        b.store(Memory::Buffer(sums), zero, &[one]);
        b.end_loop();
        b.load(Memory::Buffer(sums), zero, 1, None);
        b.end_loop();
        minimal(b).expect("ordered")
    };
    assert_eq!(kept(true), "for renew for renew sync s[0] = sync = s[ s[0] = sync = s[");
    assert_eq!(kept(false), "for renew sync for s[0] = sync = s[");
}

/// A barrier that not all threads come to is where it is missing, and the verifier refuses the kernel.
#[test]
fn a_barrier_that_some_threads_miss_is_refused() {
    let (mut b, buffer, zero) = builder();
    let (thread, one) = (b.thread_index(), b.literal(ElementType::F32, 0));
    let some = b.index_literal(Type::I32, 3);
    let some = b.index_compare(Compare::Lt, thread, some);
    b.begin_if(some);
    b.store(Memory::Buffer(buffer), thread, &[one]);
    b.load(Memory::Buffer(buffer), zero, 1, None);
    b.end_if();
    let kernel = place_alone(b.finish().unwrap()).expect("a barrier");
    let faults = verify(&kernel).expect_err("not all threads come there");
    assert!(faults.iter().all(|fault| fault.problem == Problem::NotCollective), "{faults:?}");
}

/// With too little work barriers stay where they were put first, and the kernel is right all the same.
#[test]
fn barriers_stay_beyond_the_limit_of_work() {
    let kernel = || {
        let (mut b, first, zero) = builder();
        let one = b.literal(ElementType::F32, 0);
        let n = b.block_index();
        // Outside of the loops, what each of them reads.
        b.store(Memory::Buffer(first), zero, &[one]);
        for _ in 0..40 {
            let own = buffer_of(&mut b, 1);
            b.store(Memory::Buffer(own), zero, &[one]);
            b.begin_loop(n);
            b.load(Memory::Buffer(own), zero, 1, None);
            b.end_loop();
        }
        b.finish().unwrap()
    };
    let kept = |most: u64| {
        let (kernel, work) = within(kernel(), &mut Placement::default(), most).expect("ordered");
        assert!(Pass::new(&kernel, None).holds());
        let in_loops = kernel.regions[1..].iter().flat_map(|r| &r.statements);
        (in_loops.filter(|s| s.kind == StatementKind::BarSync).count(), work)
    };
    let once = kept(0).1;
    assert_eq!(kept(0).0, 40);
    let limits = [once * 5, once * 15, once * 1000];
    let found = limits.map(kept);
    assert!(found.iter().zip(limits).all(|((_, work), most)| *work <= most + once), "{found:?}");
    assert!(found[0].0 < 40 && found[0].0 > found[1].0 && found[1].0 > found[2].0, "{found:?}");
    assert_eq!(found[2].0, 0);
}

/// A copy to several blocks stands after a barrier of the cluster: their barriers are ready, and their readers done.
#[test]
fn copies_to_several_blocks_wait_for_all() {
    // An instance, alone or in a loop, that waits for readers by barriers of the cluster or of the block, if at all.
    let run = |in_loop: bool, first: Option<bool>, inside: Option<bool>| {
        let (mut b, buffer, zero) = block_in(2, 64);
        let barrier = b.mbarrier(1);
        let sync = |b: &mut Builder, cluster: Option<bool>| match cluster {
            Some(true) => b.barrier_cluster(),
            Some(false) => b.bar_sync(),
            None => {}
        };
        sync(&mut b, first);
        let n = b.block_index();
        let clusters = b.index_literal(Type::I32, 2);
        let n = b.index_div(n, clusters);
        if in_loop {
            b.begin_loop(n);
        }
        sync(&mut b, inside);
        copy_to(&mut b, buffer, Some(barrier), Some(3));
        b.mbarrier_wait(barrier, zero, zero);
        b.load(Memory::Buffer(buffer), zero, 1, None);
        if in_loop {
            b.end_loop();
        }
        b
    };
    let (cluster, block) = (Some(true), Some(false));
    // One instance needs one of them, wherever it is.
    assert!(holds(run(false, cluster, None)) && holds(run(false, None, cluster)));
    assert!(!holds(run(false, block, block)) && !holds(run(false, None, None)));
    assert_eq!(minimal(run(false, None, None)).as_deref(), Some("sync cluster copy await = s["));
    // In a loop, the one in it is for the readers, too.
    assert!(holds(run(true, None, cluster)) && !holds(run(true, cluster, block)));
    assert_eq!(minimal(run(true, None, None)).as_deref(), Some("for sync cluster copy await = s["));
}

/// What a thread writes in all blocks it writes between two barriers of the cluster.
#[test]
fn what_is_written_in_all_blocks_stands_between_barriers() {
    let run = |before: bool, behind: bool| {
        let (mut b, buffer, zero) = block_in(2, 64);
        let one = b.literal(ElementType::F32, 0);
        b.lifetime_start(buffer, zero);
        if before {
            b.barrier_cluster();
        }
        b.store_dsmem_all(buffer, zero, &[one]);
        if behind {
            b.barrier_cluster();
        }
        b.load(Memory::Buffer(buffer), zero, 1, None);
        b
    };
    assert!(holds(run(true, true)) && !holds(run(true, false)) && !holds(run(false, true)));
    assert_eq!(minimal(run(false, false)).as_deref(), Some("renew sync cluster sync cluster = s["));
}

/// A role meets in all blocks of its cluster at a barrier of its own, which all blocks have made ready before.
#[test]
fn a_role_meets_where_it_must() {
    let (mut b, buffer, zero) = block_in(2, 64);
    let one = b.literal(ElementType::F32, 0);
    b.begin_roles();
    for (role, warps) in [("a", 0..1), ("b", 1..2)] {
        b.begin_role(role, warps, None);
        if role == "a" {
            b.store_dsmem_all(buffer, zero, &[one]);
            b.load(Memory::Buffer(buffer), zero, 1, None);
        }
        b.end_role();
    }
    b.end_roles();
    let kernel = place_alone(b.finish().unwrap()).expect("ordered");
    let meets: Vec<bool> = kernel.roles().iter().map(|role| role.cluster_mbarrier.is_some()).collect();
    assert_eq!((meets, kernel.barriers.len()), (vec![true, false], 1));
    let first = &kernel.region(Kernel::BODY).statements[0];
    assert_eq!(first.kind, StatementKind::BarrierCluster, "{kernel}");
}

/// A barrier before a branch that alone needs it is in the branch; one for what comes after, too, is not.
#[test]
fn a_barrier_of_a_branch_is_in_it() {
    let text = |after: bool| {
        let (mut b, buffer, zero) = builder();
        let one = b.literal(ElementType::F32, 0);
        b.store(Memory::Buffer(buffer), zero, &[one]);
        let block = b.block_index();
        let holds = b.index_compare(Compare::Lt, zero, block);
        b.begin_if(holds);
        b.load(Memory::Buffer(buffer), zero, 1, None);
        b.end_if();
        if after {
            b.load(Memory::Buffer(buffer), zero, 1, None);
        }
        place_alone(b.finish().unwrap()).expect("ordered")
    };
    let in_body = |kernel: &Kernel| kernel.regions[0].statements.iter().any(|s| s.kind == StatementKind::BarSync);
    assert!(in_body(&text(true)) && !in_body(&text(false)));
}

/// A kernel that does the same with other indices takes the barriers of the first one, at less work. One that does
/// something else, or needs more, gets its own.
#[test]
fn entry_points_take_barriers_from_each_other() {
    // Each thread writes an element, and reads the one so many further in iterations of a loop.
    let rows = |ty: Type, further: i64, loops: usize| {
        let (mut b, buffer, _) = builder();
        let (one, n) = (b.literal(ElementType::F32, 0), b.block_index());
        let [zero, by, most] = [0, further, 63].map(|n| b.index_literal(ty, n));
        let thread = b.thread_index();
        let thread = b.index_convert(thread, ty);
        let next = b.index_add(thread, by);
        for _ in 0..loops {
            b.begin_loop(n);
            b.lifetime_start(buffer, zero);
            b.store(Memory::Buffer(buffer), thread, &[one]);
            let holds = b.index_compare(Compare::Le, next, most);
            b.begin_if(holds);
            b.load(Memory::Buffer(buffer), next, 1, None);
            b.end_if();
            b.end_loop();
        }
        b.finish().unwrap()
    };
    let count = |kernel: &Kernel| {
        let all = kernel.regions.iter().flat_map(|r| &r.statements);
        all.filter(|s| matches!(s.kind, StatementKind::BarSync)).count()
    };
    let mut earlier = Placement::default();
    let mut with = |kernel: Kernel| {
        let (own, alone) = within(kernel.clone(), &mut Placement::default(), MOST_WORK).expect("ordered");
        let (kernel, work) = within(kernel, &mut earlier, MOST_WORK).expect("ordered");
        assert!(Pass::new(&kernel, None).holds());
        assert_eq!(kernel.to_string(), own.to_string());
        (count(&kernel), work < alone)
    };
    assert_eq!(with(rows(Type::I32, 1, 2)), (4, false));
    assert_eq!(with(rows(Type::I64, 1, 2)), (4, true));
    // Another loop.
    assert_eq!(with(rows(Type::I64, 1, 3)), (6, false));
    // Each reads what it wrote; then others do, which takes more than that had.
    assert_eq!(with(rows(Type::I32, 0, 2)), (0, false));
    assert_eq!(with(rows(Type::I64, 1, 2)), (4, false));
}

/// A barrier that stands elsewhere is judged by what comes between, as by the whole kernel.
#[test]
fn a_change_is_judged_as_the_whole_kernel() {
    let (mut b, first, _) = builder();
    let others = [0; 2].map(|_| buffer_of(&mut b, 1));
    [&[first][..], &others].concat().into_iter().for_each(|buffer| instance(&mut b, buffer));
    let kernel = b.finish().unwrap();
    let mut pass = Pass::new(&kernel, None);
    assert!(pass.place_where_missing());
    let placed = pass.placed.borrow().clone();
    let all: Vec<Position> = placed.iter().map(|(at, _)| *at).collect();
    assert_eq!(all.len(), 3);
    let mut found = [0; 2];
    for at in all {
        for n in 0..=kernel.region(Kernel::BODY).statements.len() {
            let to = (Kernel::BODY, n);
            let mut moved = placed.clone();
            moved.remove(&at);
            moved.insert(to, Barrier::Of(Sharing::Block));
            // What is remembered is of where all barriers stood.
            pass.placed.replace(placed.clone());
            assert!(pass.holds());
            pass.placed.replace(moved.clone());
            let holds = pass.holds_again(&[at, to]);
            let whole = Pass::new(&kernel, None);
            whole.placed.replace(moved);
            assert_eq!(holds, whole.holds(), "{at:?} to {to:?}");
            found[usize::from(holds)] += 1;
        }
    }
    assert!(found.iter().all(|n| *n > 0), "{found:?}");
}

//! Mistakes of every kind, planted in kernels that hold.

use tilewright_kernel::ElementType::{self, F32, I32};
use tilewright_kernel::algorithm::{Binary, Compare};
use tilewright_kernel::info::Argument;
use tilewright_kernel::tensor_map::{Dimension, Fill, Format, Promotion, Swizzle, TensorMap};

use super::*;
use crate::kernel_ir::{
    self, Buffer, BufferId, Builder, BulkCopy, CpAsync, Guard, Memory, Parameter, ParameterKind, Range, Sharing,
    Signature, TensorPart, Type, ValueId,
};

pub(super) const THREADS: u32 = 64;
pub(super) const X: Memory = Memory::Parameter(0);
pub(super) const Z: Memory = Memory::Parameter(1);
const BUDGET: u64 = 1_000_000;

/// Reads x, writes z; N is their size, or that of a loop; the map is of x, by 64.
fn builder() -> Builder {
    builder_of(THREADS, 1)
}

pub(super) fn builder_of(threads: u32, cluster: u32) -> Builder {
    let tensor = |name: &str, written| Parameter {
        name: name.to_owned(),
        element: F32,
        kind: ParameterKind::Tensor { written },
    };
    Builder::new(Signature {
        name: "k".to_owned(),
        parameters: vec![tensor("x", false), tensor("z", true)],
        dims: vec![kernel_ir::Dimension { name: "N".to_owned(), range: Range::new(0, 1 << 20) }],
        maps: vec![kernel_ir::Map { name: "xs".to_owned(), rank: 1 }],
        arguments: vec![Argument::Address(0), Argument::Address(1), Argument::Dim(0), Argument::Map(0)],
        threads,
        cluster,
    })
}

/// A launch over tensors of so many elements.
pub(super) fn launch(n: i64, elements: i64, blocks: i64) -> Launch {
    let tensor = |written| Some(Tensor { shape: vec![elements], strides: vec![1], alignment: 16, written });
    let dimension = Dimension { size: elements as u64, stride: 4, box_size: 64, element_stride: 1 };
    let map = TensorMap {
        format: Format::of(F32),
        address: 0,
        dimensions: vec![dimension],
        swizzle: Swizzle::None,
        fill: Fill::Zero,
        promotion: Promotion::None,
    };
    Launch {
        blocks,
        parts: blocks,
        dependent: false,
        dims: vec![n],
        tensors: vec![tensor(false), tensor(true)],
        maps: vec![Tiles { parameter: 0, map }],
        workspaces: Vec::new(),
    }
}

/// What is wrong with a kernel, if something is.
fn verdict(launch: &Launch, build: impl FnOnce(&mut Builder)) -> Option<Kind> {
    verdict_of(THREADS, launch, build)
}

fn verdict_of(threads: u32, launch: &Launch, build: impl FnOnce(&mut Builder)) -> Option<Kind> {
    let mut b = builder_of(threads, 1);
    b.line(3);
    build(&mut b);
    let kernel = b.finish().expect("balanced");
    match check(&kernel, launch, BUDGET) {
        Verdict::Holds => None,
        Verdict::Violated(Violation { kind, line, .. }) | Verdict::Undecided(Violation { kind, line, .. }) => {
            assert!(line == 3 || matches!(kind, Kind::NotWritten), "{kind:?} at {line}");
            Some(kind)
        }
        Verdict::Exhausted => panic!("{kernel}"),
    }
}

/// 64 threads, one block, tensors of 64 elements.
fn one_block(build: impl FnOnce(&mut Builder)) -> Option<Kind> {
    verdict(&launch(1, 64, 1), build)
}

pub(super) fn int(b: &mut Builder, n: i64) -> ValueId {
    b.index_literal(Type::I32, n)
}

/// An element for each thread in every slot.
fn buffer(b: &mut Builder, slots: u32) -> BufferId {
    b.buffer(Buffer {
        name: "s".to_owned(),
        element: F32,
        elements: b.kernel().signature.threads,
        alignment: 128,
        slots,
        sharing: Sharing::Block,
    })
}

/// z[thread] = x[thread], for who has `z` to fill in a test of something else.
fn copy(b: &mut Builder) {
    let thread = b.thread_index();
    let x = b.load(X, thread, 1, None);
    b.store(Z, thread, &x);
}

#[test]
fn tensors() {
    assert_eq!(one_block(copy), None);
    let shifted = |by: i64| {
        one_block(|b| {
            let (thread, by) = (b.thread_index(), int(b, by));
            let at = b.index_add(thread, by);
            let x = b.load(X, at, 1, None);
            b.store(Z, thread, &x);
        })
    };
    assert_eq!([-1, 0, 1].map(shifted), [Some(Kind::Outside), None, Some(Kind::Outside)]);
    // Every second element, by pairs and by one of each pair.
    let lanes = |lanes: u32, pitch: i64| {
        one_block(|b| {
            let (thread, n, pitch) = (b.thread_index(), int(b, 64 / i64::from(lanes)), int(b, pitch));
            let inside = b.index_compare(Compare::Lt, thread, n);
            b.begin_if(inside);
            let at = b.index_mul(thread, pitch);
            let x = b.load(X, at, lanes, None);
            b.store(Z, at, &x);
            b.end_if();
        })
    };
    assert_eq!(lanes(4, 4), None);
    assert_eq!(lanes(4, 3), Some(Kind::Misaligned));
    assert_eq!(lanes(1, 2), Some(Kind::Outside));
    assert_eq!(lanes(2, 1), Some(Kind::Misaligned));
    // Two blocks write the same, or nobody writes the last.
    assert_eq!(verdict(&launch(1, 64, 2), copy), Some(Kind::WrittenTwice));
    assert_eq!(verdict(&launch(1, 65, 1), copy), Some(Kind::NotWritten));
    assert_eq!(verdict(&launch(1, 0, 0), copy), None);
    // An offset that 32 bits do not hold.
    let wide = |ty: Type| {
        one_block(|b| {
            let (thread, big) = (b.thread_index(), b.index_literal(ty, 1 << 29));
            let at = b.index_convert(thread, ty);
            let at = b.index_mul(at, big);
            let x = b.load(X, at, 1, None);
            b.store(Z, thread, &x);
        })
    };
    assert_eq!([wide(Type::I32), wide(Type::I64)], [Some(Kind::Outside); 2]);
    let mut views = launch(1, 64, 1);
    views.tensors[0] = Some(Tensor { shape: vec![32, 2], strides: vec![4, 1], alignment: 16, written: false });
    assert_eq!(verdict(&views, copy), Some(Kind::Outside));
}

#[test]
fn offsets_of_32_bits_hold_what_they_say() {
    let mut b = builder();
    let (thread, big, more) = (b.thread_index(), int(&mut b, 1 << 26), int(&mut b, 32));
    let at = b.index_add(thread, more);
    let at = b.index_mul(at, big);
    let n = b.dim(0, Type::I32);
    let (predicate, zero) = (b.index_compare(Compare::Lt, thread, n), b.f32_literal(0.0));
    let x = b.load(X, at, 1, Some(Guard { predicate, otherwise: &[zero] }));
    b.store(Z, thread, &x);
    let kernel = b.finish().expect("balanced");
    assert_eq!(check(&kernel, &launch(0, 64, 1), BUDGET), Verdict::Holds);
    let found = check(&kernel, &launch(1, 64, 1), BUDGET);
    assert!(matches!(found, Verdict::Violated(Violation { kind: Kind::Wide, .. })), "{found:?}");
}

/// Steps on one buffer by all threads: each reads or writes at its place or its neighbour's.
fn steps(words: &str, turns: i64) -> Option<Kind> {
    steps_of(THREADS, words, turns)
}

fn steps_of(threads: u32, words: &str, turns: i64) -> Option<Kind> {
    verdict_of(threads, &launch(turns, i64::from(threads), 1), |b| {
        copy(b);
        let (buffer, thread, n) = (buffer(b, 1), b.thread_index(), b.dim(0, Type::I32));
        let (one, zero) = (int(b, 1), b.f32_literal(0.0));
        let (other, slot) = (b.index_xor(thread, one), int(b, 0));
        let warp = int(b, 32);
        let far = b.index_xor(thread, warp);
        let group = int(b, 128);
        let farther = b.index_xor(thread, group);
        b.begin_loop(n);
        for word in words.split(' ') {
            match word {
                "sync" => b.bar_sync(),
                "lanes" => b.bar_warp_sync(),
                "group" => b.bar_sync_warpgroup(),
                "farther" => drop(b.load(Memory::Buffer(buffer), farther, 1, None)),
                "far" => drop(b.load(Memory::Buffer(buffer), far, 1, None)),
                "renew" => b.lifetime_start(buffer, slot),
                "fetch" | "fetch+" => {
                    let to = if word == "fetch" { thread } else { other };
                    b.cp_async(CpAsync { parameter: 0, from: thread, buffer, to, lanes: 1, predicate: None });
                }
                "commit" => b.cp_async_commit_group(),
                "await" => b.cp_async_wait_group(0),
                "await1" => b.cp_async_wait_group(1),
                "write" => b.store(Memory::Buffer(buffer), thread, &[zero]),
                "cross" => b.store(Memory::Buffer(buffer), other, &[zero]),
                "own" => drop(b.load(Memory::Buffer(buffer), thread, 1, None)),
                "read" => drop(b.load(Memory::Buffer(buffer), other, 1, None)),
                _ => panic!("{word}"),
            }
        }
        b.end_loop();
    })
}

#[test]
fn threads_share_memory() {
    assert_eq!(steps("renew write sync read sync", 3), None);
    assert_eq!(steps("write own", 3), None);
    assert_eq!(steps("write read", 1), Some(Kind::Race));
    assert_eq!(steps("read", 1), Some(Kind::Uninitialised));
    assert_eq!(steps("write sync renew read", 1), Some(Kind::Uninitialised));
    assert_eq!(steps("write cross", 1), Some(Kind::Race));
    assert_eq!(steps("write sync read write", 1), Some(Kind::Race));
    assert_eq!(steps("write sync own write", 1), None);
    // The barrier on the back edge.
    assert_eq!(steps("renew write sync read", 1), None);
    assert_eq!(steps("renew write sync read", 2), Some(Kind::Race));
    assert_eq!(steps("sync renew write sync read", 5), None);
    // Two writers in turn.
    assert_eq!(steps("write sync cross sync", 2), None);
    assert_eq!(steps("write sync cross", 2), Some(Kind::Race));
}

#[test]
fn lanes_wait_for_lanes() {
    assert_eq!(steps("renew write lanes read lanes", 3), None);
    assert_eq!(steps("renew write lanes read", 2), Some(Kind::Race));
    assert_eq!(steps("write read lanes", 1), Some(Kind::Race));
    // Another warp's element.
    assert_eq!(steps("write lanes far", 1), Some(Kind::Race));
    assert_eq!(steps("write sync far lanes cross", 1), Some(Kind::Race));
    assert_eq!(steps("write sync far sync cross", 1), None);
    assert_eq!(steps("write sync read lanes cross", 1), None);
    // Two lanes have read what one of them writes.
    assert_eq!(steps("write sync own read write", 1), Some(Kind::Race));
    assert_eq!(steps("write sync own read lanes write", 1), None);
    assert_eq!(steps("write sync own read far lanes write", 1), Some(Kind::Race));
    assert_eq!(steps("fetch commit await lanes read", 1), None);
    assert_eq!(steps("fetch commit await lanes far", 1), Some(Kind::Race));
}

#[test]
fn warpgroups_wait_for_themselves() {
    let steps = |words, turns| steps_of(256, words, turns);
    assert_eq!(steps("renew write group far group", 3), None);
    assert_eq!(steps("renew write group far", 2), Some(Kind::Race));
    assert_eq!(steps("renew write group far lanes", 2), Some(Kind::Race));
    assert_eq!(steps("renew write group read lanes", 2), None);
    // Another warpgroup's element.
    assert_eq!(steps("write group farther", 1), Some(Kind::Race));
    assert_eq!(steps("write sync farther group cross", 1), Some(Kind::Race));
    assert_eq!(steps("write sync farther sync cross", 1), None);
    // Several warps of it have read what one of them writes; one of another has.
    assert_eq!(steps("write sync own far read write", 1), Some(Kind::Race));
    assert_eq!(steps("write sync own far read group write", 1), None);
    assert_eq!(steps("write sync own far farther group write", 1), Some(Kind::Race));
    assert_eq!(steps("fetch commit await group far", 1), None);
    assert_eq!(steps("fetch commit await group farther", 1), Some(Kind::Race));
    // A part of the block comes in between.
    assert_eq!(steps("write lanes read group cross", 1), None);
    assert_eq!(steps("write group far lanes cross", 1), Some(Kind::Race));
}

#[test]
fn threads_fetch_to_shared_memory() {
    assert_eq!(steps("renew fetch commit await sync read sync", 3), None);
    assert_eq!(steps("fetch commit await own", 3), None);
    assert_eq!(steps("fetch commit own await", 1), Some(Kind::UnderWay));
    assert_eq!(steps("fetch commit await read", 1), Some(Kind::Race));
    // A barrier before the wait says nothing of what comes after it.
    assert_eq!(steps("fetch commit sync await read", 1), Some(Kind::Race));
    assert_eq!(steps("fetch commit sync read await", 1), Some(Kind::UnderWay));
    // What is not committed is not waited for; nor are the last groups.
    assert_eq!(steps("fetch await sync read", 1), Some(Kind::UnderWay));
    assert_eq!(steps("fetch commit await1 sync read", 1), Some(Kind::UnderWay));
    assert_eq!(steps("fetch commit commit await1 sync read", 1), None);
    // Nothing is left at the end, and nobody writes after a copy that is under way.
    assert_eq!(steps("fetch commit", 1), Some(Kind::Left));
    assert_eq!(steps("fetch commit write await", 1), Some(Kind::UnderWay));
    assert_eq!(steps("fetch commit await cross", 1), Some(Kind::Race));
    assert_eq!(steps("fetch commit fetch+ commit await", 1), Some(Kind::UnderWay));
    assert_eq!(steps("fetch commit await fetch+ commit await", 1), Some(Kind::Race));
    // The readers of the last instance, by others and by the thread itself.
    assert_eq!(steps("renew fetch commit await sync read", 2), Some(Kind::Race));
    assert_eq!(steps("renew fetch commit await sync own", 2), None);
}

/// N times: a tile of x through a buffer to threads, through another one to z; without one part, or with another.
fn pipeline(b: &mut Builder, mistake: &str) {
    let is = |part: &str| mistake == part;
    let (n, thread, zero) = (b.dim(0, Type::I32), b.thread_index(), int(b, 0));
    let (from, to, barrier) = (buffer(b, 1), buffer(b, 1), b.mbarrier(1));
    let (tile, one) = (int(b, 64), int(b, 1));
    let parity = b.variable(zero);
    if !is("no first barrier") {
        b.bar_sync();
    }
    let turn = b.begin_loop(n);
    let start = b.index_mul(turn, tile);
    b.begin_elect();
    if !is("no expectation") {
        b.mbarrier_expect_tx(barrier, zero, if is("too many bytes") { 272 } else { 256 });
    }
    if is("two expectations") {
        b.mbarrier_expect_tx(barrier, zero, 256);
    }
    if !is("no copy") {
        let part = TensorPart::Tile { map: 0, start: vec![start] };
        let offset = if is("a copy past the end") { one } else { zero };
        b.bulk_copy(BulkCopy {
            part,
            buffer: from,
            slot: zero,
            offset,
            barrier: Some(barrier),
            evict: None,
            multicast: None,
        });
    }
    b.end_elect();
    let phase = b.get(parity);
    if !is("no wait") {
        let phase = if is("a parity that stays") { zero } else { phase };
        b.mbarrier_wait(barrier, zero, phase);
    }
    let next = b.index_xor(phase, one);
    b.set(parity, next);
    let value = b.load(Memory::Buffer(from), thread, 1, None);
    if is("fence before the write") {
        b.fence_proxy_async();
    }
    if !is("threads that do not write") {
        b.store(Memory::Buffer(to), thread, &value);
    }
    if !is("no fence") && !is("fence before the write") && !is("fence after the barrier") {
        b.fence_proxy_async();
    }
    if !is("no barrier before the copy") {
        b.bar_sync();
    }
    if is("fence after the barrier") {
        b.fence_proxy_async();
    }
    b.begin_elect();
    for _ in 0..if is("two copies of one element") { 2 } else { 1 } {
        let offset = if is("another place in the tensor") { b.index_add(start, one) } else { start };
        let part = TensorPart::Run { parameter: 1, offset, bytes: if is("a shorter run") { 240 } else { 256 } };
        b.bulk_copy(BulkCopy {
            part,
            buffer: to,
            slot: zero,
            offset: zero,
            barrier: None,
            evict: None,
            multicast: None,
        });
    }
    if !is("no commit") {
        b.bulk_commit_group();
    }
    if !is("no wait for reads") {
        b.bulk_wait_group_read(u32::from(is("one group too many pending")));
    }
    b.end_elect();
    if !is("no barrier after the copy") {
        b.bar_sync();
    }
    b.end_loop();
}

#[test]
fn copies() {
    let found =
        |mistake: &str, turns: i64| verdict(&launch(turns, 64 * turns, i64::from(turns > 0)), |b| pipeline(b, mistake));
    for turns in 0..5 {
        assert_eq!(found("", turns), None);
    }
    let mistakes = [
        ("no first barrier", Kind::NotReady),
        ("no expectation", Kind::NeverEnds),
        ("two expectations", Kind::PhaseOpen),
        ("too many bytes", Kind::Bytes),
        ("no copy", Kind::Bytes),
        ("a copy past the end", Kind::Outside),
        ("no wait", Kind::UnderWay),
        ("a parity that stays", Kind::UnderWay),
        ("fence before the write", Kind::NotPublished),
        ("no fence", Kind::NotPublished),
        ("fence after the barrier", Kind::NotPublished),
        ("threads that do not write", Kind::Uninitialised),
        ("no barrier before the copy", Kind::Race),
        ("two copies of one element", Kind::Stale),
        ("another place in the tensor", Kind::Misaligned),
        ("a shorter run", Kind::NotWritten),
        ("no commit", Kind::StillRead),
        ("no wait for reads", Kind::StillRead),
        ("one group too many pending", Kind::StillRead),
        ("no barrier after the copy", Kind::StillRead),
    ];
    for (mistake, kind) in mistakes {
        assert_eq!(found(mistake, 3), Some(kind), "{mistake}");
    }
    // With one turn nothing is used again, but nothing may be under way at the end.
    for (mistake, kind) in [("no commit", Some(Kind::Left)), ("no wait for reads", Some(Kind::Left))] {
        assert_eq!(found(mistake, 1), kind, "{mistake}");
    }
    assert_eq!(found("no barrier after the copy", 1), None);
}

/// Tiles of the outer loop over a ring of two slots, filled ahead; N trips of each tile.
fn ring(b: &mut Builder, mistake: &str) {
    let is = |part: &str| mistake == part;
    let (n, thread, zero) = (b.dim(0, Type::I32), b.thread_index(), int(b, 0));
    let (ring, barrier) = (buffer(b, 2), b.mbarrier(2));
    let (two, one, size) = (int(b, 2), int(b, 1), int(b, 64));
    let tiles = int(b, 2);
    let trips = b.variable(zero);
    b.bar_sync();
    let tile = b.begin_loop(tiles);
    let fill = |b: &mut Builder, slot: ValueId| {
        b.begin_elect();
        b.mbarrier_expect_tx(barrier, slot, 256);
        let part = TensorPart::Tile { map: 0, start: vec![zero] };
        b.bulk_copy(BulkCopy {
            part,
            buffer: ring,
            slot,
            offset: zero,
            barrier: Some(barrier),
            evict: None,
            multicast: None,
        });
        b.end_elect();
    };
    if is("a counter that starts again") {
        b.set(trips, zero);
    }
    let base = b.get(trips);
    for ahead in [zero, one] {
        let exists = b.index_compare(Compare::Lt, ahead, n);
        let number = b.index_add(base, ahead);
        let slot = b.index_mod(number, two);
        if !is("fills that nobody waits for") {
            b.begin_if(exists);
        }
        fill(b, slot);
        if !is("fills that nobody waits for") {
            b.end_if();
        }
    }
    let trip = b.begin_loop(n);
    let number = b.index_add(base, trip);
    let (slot, use_number) = (b.index_mod(number, two), b.index_div(number, two));
    let parity = b.index_mod(use_number, two);
    b.mbarrier_wait(barrier, slot, parity);
    let at = b.index_mul(slot, size);
    let at = b.index_add(at, thread);
    b.load(Memory::Buffer(ring), at, 1, None);
    let next = b.index_add(trip, two);
    let more = b.index_compare(Compare::Lt, next, n);
    b.begin_if(more);
    if !is("refilled too early") {
        b.bar_sync();
    }
    fill(b, slot);
    b.end_if();
    b.end_loop();
    let behind = b.index_add(base, n);
    b.set(trips, behind);
    if !is("tiles that run into each other") {
        b.bar_sync();
    }
    let first = b.index_compare(Compare::Eq, tile, zero);
    b.begin_if(first);
    copy(b);
    b.end_if();
    b.end_loop();
}

/// Trip counts from none to twice the ring and one, and a second tile.
#[test]
fn rings() {
    let found = |mistake: &str, trips: i64| verdict(&launch(trips, 64, 1), |b| ring(b, mistake));
    for trips in 0..6 {
        assert_eq!(found("", trips), None, "{trips}");
        assert_eq!(found("refilled too early", trips), (trips > 2).then_some(Kind::PhaseOpen), "{trips}");
        // Of one trip, tiles have one slot each.
        let early = (trips > 1).then_some(Kind::PhaseOpen);
        assert_eq!(found("tiles that run into each other", trips), early, "{trips}");
    }
    // Right again where the trips of a tile are whole rounds of both parities.
    let again = [1, 2, 3, 4].map(|trips| found("a counter that starts again", trips));
    assert!(again[..3].iter().all(Option::is_some) && again[3].is_none(), "{again:?}");
    assert_eq!(found("fills that nobody waits for", 0), Some(Kind::PhaseOpen));
}

#[test]
fn threads_come_together() {
    let divided = |what: fn(&mut Builder)| {
        one_block(move |b| {
            copy(b);
            let (thread, half) = (b.thread_index(), int(b, 32));
            let first = b.index_compare(Compare::Lt, thread, half);
            b.begin_if(first);
            what(b);
            b.end_if();
        })
    };
    assert_eq!(divided(Builder::bar_sync), Some(Kind::NotEveryThread));
    assert_eq!(divided(Builder::fence_proxy_async), Some(Kind::NotEveryThread));
    let shuffled = divided(|b| {
        let thread = b.thread_index();
        let x = b.shuffle(thread, 1);
        b.variable(x);
    });
    assert_eq!(shuffled, Some(Kind::NotEveryThread));
    let disagreed = one_block(|b| {
        copy(b);
        let (thread, barrier, two) = (b.thread_index(), b.mbarrier(2), int(b, 2));
        let (zero, slot) = (int(b, 0), b.index_mod(thread, two));
        b.bar_sync();
        b.mbarrier_wait(barrier, slot, zero);
    });
    assert_eq!(disagreed, Some(Kind::Disagree));
    // Threads that a loop sends round so often as their number says do not come to a barrier together.
    let looping = one_block(|b| {
        copy(b);
        let thread = b.thread_index();
        b.begin_loop(thread);
        b.bar_sync();
        b.end_loop();
    });
    assert_eq!(looping, Some(Kind::NotEveryThread));
}

#[test]
fn indices_come_through_lanes_and_variables() {
    // The neighbour's number by an exchange, then by a sum of as many ones.
    let found = one_block(|b| {
        let (thread, zero, one) = (b.thread_index(), int(b, 0), int(b, 1));
        let other = b.shuffle(thread, 1);
        let x = b.load(X, other, 1, None);
        let count = b.variable(zero);
        b.begin_loop(other);
        let so_far = b.get(count);
        let next = b.index_add(so_far, one);
        b.set(count, next);
        b.end_loop();
        let to = b.get(count);
        b.store(Z, to, &x);
    });
    assert_eq!(found, None);
}

#[test]
fn what_depends_on_data_is_undecided() {
    let mut gathers = launch(64, 64, 1);
    gathers.tensors[0] = Some(Tensor { shape: vec![64], strides: vec![1], alignment: 16, written: false });
    let found = verdict(&gathers, |b| {
        let thread = b.thread_index();
        let x = b.load(X, thread, 1, None)[0];
        let bits = b.bits(x, I32);
        let at = b.to_index(bits, Type::I32);
        let y = b.load(X, at, 1, None);
        b.store(Z, thread, &y);
    });
    assert_eq!(found, Some(Kind::Data));
    let conditional = |both: bool| {
        one_block(|b| {
            let (thread, zero) = (b.thread_index(), b.f32_literal(0.0));
            let x = b.load(X, thread, 1, None);
            let positive = b.compare(Compare::Lt, zero, x[0]);
            // What is read is there in any case.
            b.begin_if(positive);
            b.load(X, thread, 1, None);
            b.end_if();
            if both {
                b.begin_if(positive);
            }
            b.store(Z, thread, &x);
            if both {
                b.end_if();
            }
        })
    };
    assert_eq!([conditional(false), conditional(true)], [None, Some(Kind::Data)]);
}

#[test]
fn work_is_bounded() {
    let mut b = builder();
    let n = b.dim(0, Type::I32);
    b.begin_loop(n);
    b.bar_sync();
    b.end_loop();
    copy(&mut b);
    let kernel = b.finish().expect("balanced");
    assert_eq!(check(&kernel, &launch(1 << 40, 64, 1), BUDGET), Verdict::Exhausted);
    assert_eq!(check(&kernel, &launch(5, 1 << 40, 1), BUDGET), Verdict::Exhausted);
    assert_eq!(check(&kernel, &launch(5, 64, 1), BUDGET), Verdict::Holds);
}

/// Elements of different widths beside each other.
#[test]
fn narrow_and_wide_buffers() {
    let element: ElementType = F32;
    let mut b = builder();
    let thread = b.thread_index();
    let small = b.buffer(Buffer {
        name: "a".to_owned(),
        element: ElementType::I8,
        elements: 64,
        alignment: 16,
        slots: 1,
        sharing: Sharing::Block,
    });
    let wide = b.buffer(Buffer {
        name: "b".to_owned(),
        element,
        elements: 64,
        alignment: 16,
        slots: 1,
        sharing: Sharing::Block,
    });
    let (byte, zero) = (b.literal(ElementType::I8, 0), b.f32_literal(0.0));
    b.store(Memory::Buffer(small), thread, &[byte]);
    b.store(Memory::Buffer(wide), thread, &[zero]);
    b.bar_sync();
    let reversed = int(&mut b, 63);
    let at = b.index_sub(reversed, thread);
    b.load(Memory::Buffer(small), at, 1, None);
    b.load(Memory::Buffer(wide), at, 1, None);
    copy(&mut b);
    let kernel = b.finish().expect("balanced");
    assert_eq!(check(&kernel, &launch(1, 64, 1), BUDGET), Verdict::Holds);
}

/// Every thread reads what another one then writes, over the distance that a barrier of warps or of warpgroups reaches,
/// or further.
#[test]
fn reads_in_front_of_a_write_in_place() {
    let exchange = |distance: i64, sync: fn(&mut Builder)| {
        verdict_of(256, &launch(1, 256, 1), |b| {
            let (thread, distance) = (b.thread_index(), int(b, distance));
            let other = b.index_xor(thread, distance);
            // Both are read, so that several threads have read an element.
            let (near, far) = (b.load(Z, thread, 1, None), b.load(Z, other, 1, None));
            let sum = b.binary(Binary::Add, near[0], far[0]);
            sync(b);
            b.store(Z, thread, &[sum]);
        })
    };
    for distance in [1, 16] {
        assert_eq!(exchange(distance, |_| {}), Some(Kind::Race));
        assert_eq!(exchange(distance, |b| b.bar_warp_sync()), None);
    }
    assert_eq!(exchange(32, |b| b.bar_warp_sync()), Some(Kind::Race));
    for distance in [32, 64] {
        assert_eq!(exchange(distance, |b| b.bar_sync_warpgroup()), None);
    }
    assert_eq!(exchange(128, |b| b.bar_sync_warpgroup()), Some(Kind::Race));
    assert_eq!(exchange(128, |b| b.bar_sync()), None);
}

//! A ring between a producer, which copies tiles, and consumers, over several persistent tiles: protocols that hold for
//! every number of trips, and mistakes planted in them.

use tilewright_kernel::ElementType::F32;
use tilewright_kernel::algorithm::Compare;
use tilewright_kernel::info::Argument;
use tilewright_kernel::tensor_map::{Dimension, Fill, Format, Promotion, Swizzle, TensorMap};

use super::*;
use crate::kernel_ir::{
    self, Buffer, Builder, BulkCopy, Kernel, MbarrierId, Memory, Parameter, ParameterKind, Range, Receivers, Sharing,
    Signature, TensorPart, Type, ValueId, verify,
};

/// Elements of a slot: as many as threads of a consumer.
const ELEMENTS: u32 = 64;
const SLOTS: u32 = 3;
/// Consumers, of two warps each.
const CONSUMERS: u32 = 2;

/// What is done otherwise than right.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mistakes {
    /// The producer waits for empty slots with the parity of full ones.
    parity: bool,
    /// The consumers count from the start in every tile.
    reset: bool,
    /// Consumers release a slot before they have read it.
    early: bool,
    /// A block does not expect what others copy to it.
    unarmed: bool,
    /// Nobody waits until all blocks have begun; until all are done.
    unbegun: bool,
    unfinished: bool,
    /// Arrivals that an empty slot needs, less than there are, or more.
    arrivals: i32,
    /// Bytes more than come.
    bytes: i32,
    /// Copies go to other blocks than they should.
    mask: Option<i64>,
    /// Slots are released to the own block alone.
    own: bool,
    /// The producer waits for no slot.
    unchecked: bool,
    /// The consumers do not wait for the copies.
    unawaited: bool,
}

fn int(b: &mut Builder, n: i64) -> ValueId {
    b.index_literal(Type::I32, n)
}

/// Slot and parity of the n-th use of a ring.
fn turn(b: &mut Builder, n: ValueId) -> (ValueId, ValueId) {
    let (slots, two) = (int(b, SLOTS.into()), int(b, 2));
    let round = b.index_div(n, slots);
    (b.index_mod(n, slots), b.index_mod(round, two))
}

/// z[cluster · tiles · threads …] = the sum of the tiles of x, tile after tile; each block of a cluster copies its
/// share of a slot to all.
pub(crate) fn ring(cluster: u32, trips: i64, tiles: i64, m: Mistakes) -> (Kernel, Launch) {
    let threads = (1 + 2 * CONSUMERS) * 32;
    let tensor = |name: &str, written| Parameter {
        name: name.to_owned(),
        element: F32,
        kind: ParameterKind::Tensor { written },
    };
    let mut b = Builder::new(Signature {
        name: "k".to_owned(),
        parameters: vec![tensor("x", false), tensor("z", true)],
        dims: vec![kernel_ir::Dimension { name: "T".to_owned(), range: Range::new(0, 1 << 10) }],
        maps: vec![kernel_ir::Map { name: "xs".to_owned(), rank: 1 }],
        arguments: vec![Argument::Address(0), Argument::Address(1), Argument::Dim(0), Argument::Map(0)],
        threads,
        cluster,
    });
    b.line(3);
    let (name, sharing) = ("s".to_owned(), Sharing::Block);
    let buffer = b.buffer(Buffer { name, element: F32, elements: ELEMENTS, alignment: 128, slots: SLOTS, sharing });
    let full = b.mbarrier(SLOTS);
    let releases = 2 * CONSUMERS * if m.own { 1 } else { cluster };
    let empty = b.mbarrier_of(SLOTS, releases.saturating_add_signed(m.arrivals));
    let trips_value = b.dim(0, Type::I32);
    let tiles_value = int(&mut b, tiles);
    if cluster > 1 && !m.unbegun {
        b.barrier_cluster();
    } else {
        b.bar_sync();
    }
    let number = |b: &mut Builder, tile, k| {
        let first = b.index_mul(tile, trips_value);
        b.index_add(first, k)
    };
    b.begin_roles();
    b.begin_role("producer", 0..1, None);
    producer(&mut b, (cluster, m), (full, empty), buffer, (tiles_value, trips_value));
    b.end_role();
    for consumer in 0..CONSUMERS {
        let first = 1 + 2 * consumer;
        b.begin_role(&format!("consumer{consumer}"), first..first + 2, None);
        let (thread, block) = (b.thread_index(), b.block_index());
        let start = int(&mut b, i64::from(first) * 32);
        let lane = b.index_sub(thread, start);
        b.assume(lane, Range::new(0, 63));
        let tile = b.begin_loop(tiles_value);
        let zero = b.literal(F32, 0);
        let last = b.variable(zero);
        let k = b.begin_loop(trips_value);
        let n = if m.reset { k } else { number(&mut b, tile, k) };
        let (slot, parity) = turn(&mut b, n);
        if !m.unawaited {
            b.mbarrier_wait(full, slot, parity);
        }
        let to = if cluster > 1 && !m.own { Receivers::All } else { Receivers::Own };
        if m.early {
            b.mbarrier_arrive(empty, slot, to);
        }
        let size = int(&mut b, ELEMENTS.into());
        let before = b.index_mul(slot, size);
        let at = b.index_add(before, lane);
        let x = b.load(Memory::Buffer(buffer), at, 1, None)[0];
        b.set(last, x);
        if !m.early {
            b.mbarrier_arrive(empty, slot, to);
        }
        b.end_loop();
        // Every tile and consumer has elements of its own.
        let (all, rest) = (int(&mut b, tiles * i64::from(CONSUMERS)), int(&mut b, CONSUMERS.into()));
        let (of_block, of_tile) = (b.index_mul(block, all), b.index_mul(tile, rest));
        let group = b.index_add(of_block, of_tile);
        let consumer = int(&mut b, consumer.into());
        let group = b.index_add(group, consumer);
        let first = b.index_mul(group, size);
        let at = b.index_add(first, lane);
        let y = b.get(last);
        b.store(Memory::Parameter(1), at, &[y]);
        b.end_loop();
        b.end_role();
    }
    b.end_roles();
    if cluster > 1 && !m.unfinished {
        b.barrier_cluster();
    }
    let kernel = b.finish().expect("balanced");
    (kernel, launch(cluster, trips, tiles))
}

/// The producer: waits for an empty slot, and copies its share of the tile to it.
fn producer(
    b: &mut Builder,
    (cluster, m): (u32, Mistakes),
    (full, empty): (MbarrierId, MbarrierId),
    buffer: kernel_ir::BufferId,
    (tiles, trips): (ValueId, ValueId),
) {
    let share = i64::from(ELEMENTS / cluster);
    let (rank, share_value, one) = (b.cluster_rank(), int(b, share), int(b, 1));
    let tile = b.begin_loop(tiles);
    let k = b.begin_loop(trips);
    let first = b.index_mul(tile, trips);
    let n = b.index_add(first, k);
    let (slot, parity) = turn(b, n);
    // The first round finds slots empty.
    let other = b.index_sub(one, parity);
    if !m.unchecked {
        b.mbarrier_wait(empty, slot, if m.parity { parity } else { other });
    }
    b.begin_elect();
    let bytes = (ELEMENTS * 4).saturating_add_signed(m.bytes);
    if m.unarmed {
        // The first block alone says what it expects.
        let zero = int(b, 0);
        let armed = b.index_compare(Compare::Eq, rank, zero);
        b.begin_if(armed);
        b.mbarrier_expect_tx(full, slot, bytes);
        b.end_if();
    } else {
        b.mbarrier_expect_tx(full, slot, bytes);
    }
    let offset = b.index_mul(rank, share_value);
    let size = int(b, ELEMENTS.into());
    let before = b.index_mul(k, size);
    let start = b.index_add(before, offset);
    let multicast = (cluster > 1).then(|| int(b, m.mask.unwrap_or((1 << cluster) - 1)));
    let part = TensorPart::Tile { map: 0, start: vec![start] };
    b.bulk_copy(BulkCopy { part, buffer, slot, offset, barrier: Some(full), evict: None, multicast });
    b.end_elect();
    b.end_loop();
    b.end_loop();
}

fn launch(cluster: u32, trips: i64, tiles: i64) -> Launch {
    let blocks = 2 * i64::from(cluster);
    let tensor = |elements, written| Some(Tensor { shape: vec![elements], strides: vec![1], alignment: 16, written });
    let inputs = (trips * i64::from(ELEMENTS)).max(1);
    let dimension = Dimension { size: inputs as u64, stride: 4, box_size: ELEMENTS / cluster, element_stride: 1 };
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
        dims: vec![trips],
        tensors: vec![tensor(inputs, false), tensor(blocks * tiles * i64::from(CONSUMERS) * i64::from(ELEMENTS), true)],
        maps: vec![Tiles { parameter: 0, map }],
        workspaces: Vec::new(),
    }
}

/// What is wrong, if something is.
fn verdict(cluster: u32, trips: i64, tiles: i64, mistakes: Mistakes) -> Option<Kind> {
    let (kernel, launch) = ring(cluster, trips, tiles, mistakes);
    assert_eq!(verify(&kernel), Ok(()), "{mistakes:?}\n{kernel}");
    match check(&kernel, &launch, 10_000_000) {
        Verdict::Holds => None,
        Verdict::Violated(violation) => Some(violation.kind),
        other => panic!("{mistakes:?}: {other:?}\n{kernel}"),
    }
}

#[test]
fn rings_hold_for_every_number_of_trips() {
    for cluster in [1, 2] {
        for tiles in 1..=3 {
            for trips in 0..=2 * i64::from(SLOTS) + 2 {
                let (kernel, launch) = ring(cluster, trips, tiles, Mistakes::default());
                assert_eq!(verify(&kernel), Ok(()), "{kernel}");
                let found = check(&kernel, &launch, 10_000_000);
                assert_eq!(found, Verdict::Holds, "clusters of {cluster}, {trips} trips, {tiles} tiles\n{kernel}");
            }
        }
    }
}

/// Every mistake is found for some small number of trips and tiles; which ones, it says.
#[test]
fn mistakes_are_found() {
    let none = Mistakes::default();
    let all: Vec<(&str, u32, Mistakes, &[Kind])> = vec![
        ("parity", 1, Mistakes { parity: true, ..none }, &[Kind::NeverEnds]),
        ("reset", 1, Mistakes { reset: true, ..none }, &[Kind::PhaseOpen, Kind::NeverEnds, Kind::UnderWay]),
        ("early release", 1, Mistakes { early: true, ..none }, &[Kind::Race]),
        ("fewer arrivals than come", 1, Mistakes { arrivals: -1, ..none }, &[Kind::PhaseOpen]),
        ("fewer arrivals than are expected", 1, Mistakes { arrivals: 1, ..none }, &[Kind::NeverEnds, Kind::PhaseOpen]),
        ("half the arrivals", 1, Mistakes { arrivals: -2, ..none }, &[Kind::PhaseOpen, Kind::Race]),
        ("too many bytes", 1, Mistakes { bytes: 16, ..none }, &[Kind::Bytes]),
        ("too few bytes", 1, Mistakes { bytes: -16, ..none }, &[Kind::Bytes]),
        ("no wait for slots", 1, Mistakes { unchecked: true, ..none }, &[Kind::PhaseOpen, Kind::Race]),
        ("no wait for copies", 1, Mistakes { unawaited: true, ..none }, &[Kind::UnderWay, Kind::Uninitialised]),
        ("early release to all", 2, Mistakes { early: true, ..none }, &[Kind::Race]),
        ("an unarmed receiver", 2, Mistakes { unarmed: true, ..none }, &[Kind::NeverEnds]),
        ("no barrier at first", 2, Mistakes { unbegun: true, ..none }, &[Kind::NotReady]),
        ("no barrier at last", 2, Mistakes { unfinished: true, ..none }, &[Kind::Exited]),
        ("bytes of the own share", 2, Mistakes { bytes: -128, ..none }, &[Kind::Bytes, Kind::Uninitialised]),
        ("copies to the first block", 2, Mistakes { mask: Some(1), ..none }, &[Kind::Bytes]),
        ("copies to a block that is not there", 2, Mistakes { mask: Some(7), ..none }, &[Kind::Outside]),
        (
            "released to the own block",
            2,
            Mistakes { own: true, ..none },
            &[Kind::Race, Kind::PhaseOpen, Kind::UnderWay],
        ),
        ("parity in clusters", 2, Mistakes { parity: true, ..none }, &[Kind::NeverEnds]),
        ("reset in clusters", 2, Mistakes { reset: true, ..none }, &[Kind::PhaseOpen, Kind::NeverEnds, Kind::UnderWay]),
    ];
    let mut wrong = Vec::new();
    for (what, cluster, mistakes, kinds) in all {
        let sizes = (1..=3).flat_map(|tiles| (0..=2 * i64::from(SLOTS) + 2).map(move |trips| (tiles, trips)));
        let found = sizes.clone().find_map(|(tiles, trips)| verdict(cluster, trips, tiles, mistakes));
        if !found.is_some_and(|kind| kinds.contains(&kind)) {
            wrong.push((what, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// A writer of two warps fills the one slot of a ring again and again, every thread another element than before; it may
/// wait until a reader hands the slot back. Whether that reads it is another question.
fn refilled(waits: bool, reads: bool) -> (Kernel, Launch) {
    let tensor = Parameter { name: "z".to_owned(), element: F32, kind: ParameterKind::Tensor { written: true } };
    let mut b = Builder::new(Signature {
        name: "k".to_owned(),
        parameters: vec![tensor],
        dims: Vec::new(),
        maps: Vec::new(),
        arguments: vec![Argument::Address(0)],
        threads: 128,
        cluster: 1,
    });
    b.line(3);
    let (name, sharing) = ("s".to_owned(), Sharing::Block);
    let buffer = b.buffer(Buffer { name, element: F32, elements: ELEMENTS, alignment: 128, slots: 1, sharing });
    let (full, empty) = (b.mbarrier_of(1, 2), b.mbarrier_of(1, 2));
    b.bar_sync();
    let trips = int(&mut b, 3);
    let parity_of = |b: &mut Builder, n| {
        let two = int(b, 2);
        b.index_mod(n, two)
    };
    b.begin_roles();
    b.begin_role("writer", 0..2, None);
    let (thread, zero, one) = (b.thread_index(), int(&mut b, 0), int(&mut b, 1));
    b.assume(thread, Range::new(0, 63));
    let n = b.begin_loop(trips);
    let parity = parity_of(&mut b, n);
    let other = b.index_sub(one, parity);
    if waits {
        b.mbarrier_wait(empty, zero, other);
    }
    let (by, size) = (int(&mut b, 32), int(&mut b, ELEMENTS.into()));
    let shift = b.index_mul(n, by);
    let moved = b.index_add(thread, shift);
    let at = b.index_mod(moved, size);
    let value = b.literal(F32, 7);
    b.store(Memory::Buffer(buffer), at, &[value]);
    b.mbarrier_arrive(full, zero, Receivers::Own);
    b.end_loop();
    b.end_role();
    b.begin_role("reader", 2..4, None);
    let (thread, zero, first) = (b.thread_index(), int(&mut b, 0), int(&mut b, 64));
    let lane = b.index_sub(thread, first);
    b.assume(lane, Range::new(0, 63));
    let nothing = b.literal(F32, 0);
    let last = b.variable(nothing);
    let n = b.begin_loop(trips);
    let parity = parity_of(&mut b, n);
    b.mbarrier_wait(full, zero, parity);
    if reads {
        let x = b.load(Memory::Buffer(buffer), lane, 1, None)[0];
        b.set(last, x);
    }
    b.mbarrier_arrive(empty, zero, Receivers::Own);
    b.end_loop();
    let y = b.get(last);
    b.store(Memory::Parameter(0), lane, &[y]);
    b.end_role();
    b.end_roles();
    let elements = i64::from(ELEMENTS);
    let tensor = Tensor { shape: vec![elements], strides: vec![1], alignment: 16, written: true };
    let (tensors, dims, maps, workspaces) = (vec![Some(tensor)], Vec::new(), Vec::new(), Vec::new());
    let launch = Launch { blocks: 1, parts: 1, dependent: false, dims, tensors, maps, workspaces };
    (b.finish().expect("balanced"), launch)
}

/// Threads of one role are ordered through another one, without a barrier of their own, if they wait for it.
#[test]
fn threads_of_a_role_are_ordered_through_another_role() {
    for (waits, reads) in [(true, true), (true, false), (false, true), (false, false)] {
        let (kernel, launch) = refilled(waits, reads);
        assert_eq!(verify(&kernel), Ok(()), "{kernel}");
        let found = match check(&kernel, &launch, 10_000_000) {
            Verdict::Violated(violation) => Some(violation.kind),
            verdict => (verdict != Verdict::Holds).then(|| panic!("{verdict:?}\n{kernel}")),
        };
        assert_eq!(found, (!waits).then_some(Kind::Race), "{kernel}");
    }
}

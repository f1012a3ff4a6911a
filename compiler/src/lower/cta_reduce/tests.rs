//! Tests of merging across threads: kernels that merge intervals, whose ends say which threads were merged and in which
//! order, on the emulator against the host.

use tilewright_kernel::ElementType::{self, Bool, F32, I32, I64, U8};
use tilewright_kernel::algorithm::{Binary, Compare};
use tilewright_kernel::info::Argument;

use super::*;
use crate::kernel_ir::{Dimension, Kernel, Memory, Parameter, Range, Signature, Statement, StatementKind};
use crate::launched::{from_bytes, launch, printed, tensor, text, to_bytes};
use crate::lower::barrier_placement;
use crate::proof::{self, Launch, Tensor, Verdict};

const fn reduced(stride: i128, extent: i128) -> Digit {
    digit(Counted::Members, stride, extent, 0)
}

const fn kept(stride: i128, extent: i128) -> Digit {
    digit(Counted::Groups, stride, extent, 0)
}

fn builder(threads: u32, parameters: Vec<Parameter>) -> Builder {
    let arguments = (0..parameters.len() as u16).map(Argument::Address).chain([Argument::Dim(0)]).collect();
    let dims = vec![Dimension { name: "N".to_owned(), range: Range::new(0, 1000) }];
    Builder::new(Signature { name: "k".to_owned(), parameters, dims, maps: Vec::new(), arguments, threads, cluster: 1 })
}

/// The number of a thread's group and its place in the group; none of an idle one.
type Member = Option<(u32, u32)>;

/// What each thread is, by definition, digit by digit.
fn members(threads: u32, digits: &[Digit]) -> Vec<Member> {
    let of = |thread: u32| {
        let (mut rest, mut group, mut place) = (thread, 0, 0);
        for digit in digits {
            let [low, stride, extent] = [digit.low, digit.stride, digit.extent].map(|n| n as u32);
            rest = rest.checked_sub(low)?;
            let value = rest / stride;
            rest %= stride;
            if value >= extent {
                return None;
            }
            let count = if digit.source == Some(Counted::Members) { &mut place } else { &mut group };
            *count = *count * extent + value;
        }
        let inner = digits.last().map_or(1, |digit| digit.stride as u32);
        Some((group * inner + rest, place))
    };
    (0..threads).map(of).collect()
}

/// What a test merges.
#[derive(Clone, Copy, Debug)]
struct Merged<'a> {
    threads: u32,
    digits: &'a [Digit],
    accumulators: usize,
    trip_bytes: u64,
    /// Whether a merge forgets which came first.
    commutes: bool,
}

/// One accumulator.
const fn one(threads: u32, digits: &[Digit]) -> Merged<'_> {
    Merged { threads, digits, accumulators: 1, trip_bytes: 0, commutes: false }
}

/// From one accumulator to the next.
const APART: i64 = 10_000_000;

/// N times, the merges of `(first, last, contiguous, sum)` across threads: an interval, whether it was put together in
/// order, and a sum of bytes. The ends are an index and an element of 64 bits.
fn intervals(of: Merged<'_>) -> Kernel {
    let (input, output) = (|n, e| tensor(n, e, false), |n, e| tensor(n, e, true));
    let parameters = vec![
        input("at", I32),
        input("busy", Bool),
        output("first", I32),
        output("last", I64),
        output("contiguous", Bool),
        output("sum", U8),
    ];
    let Merged { threads, digits, accumulators, trip_bytes, commutes } = of;
    let mut b = builder(threads, parameters);
    let (n, thread) = (b.dim(0, Type::I32), b.thread_index());
    let turn = b.begin_loop(n);
    let load = |b: &mut Builder, p| b.load(Memory::Parameter(p), thread, 1, None)[0];
    let (at, busy) = (load(&mut b, 0), load(&mut b, 1));
    let index = b.to_index(at, Type::I32);
    let index = b.index_add(index, turn);
    let byte = b.cast(at, U8);
    let mut merge = |b: &mut Builder, left: &[ValueId], right: &[ValueId]| {
        let (end, one) = (b.to_index(left[1], Type::I64), b.index_literal(Type::I64, 1));
        let (next, start) = (b.index_add(end, one), b.index_convert(right[0], Type::I64));
        let follows = b.index_compare(Compare::Eq, next, start);
        let both = b.and(left[2], right[2]);
        let sum = b.binary(Binary::Add, left[3], right[3]);
        if commutes {
            return vec![b.index_min(left[0], right[0]), b.binary(Binary::Max, left[1], right[1]), both, sum];
        }
        vec![left[0], right[1], b.and(both, follows), sum]
    };
    let states: Vec<Vec<ValueId>> = (0..accumulators)
        .map(|number| {
            let (apart, own) = (b.index_literal(Type::I32, number as i64 * APART), b.literal(U8, number as u64));
            let first = b.index_add(index, apart);
            vec![first, b.from_index(first, I64), busy, b.binary(Binary::Add, byte, own)]
        })
        .collect();
    let team = Team { threads, digits, trip_bytes, overwrites: false, commutes };
    let found = across_threads(&mut b, "partials", team, &states, &mut merge);
    for (number, found) in found.iter().enumerate() {
        let (all, number) =
            (b.index_literal(Type::I32, accumulators as i64), b.index_literal(Type::I32, number as i64));
        let row = b.index_mul(turn, all);
        let row = b.index_add(row, number);
        let pitch = b.index_literal(Type::I32, i64::from(threads));
        let row = b.index_mul(row, pitch);
        let to = b.index_add(row, thread);
        let first = b.from_index(found[0], I32);
        for (p, value) in [(2, first), (3, found[1]), (4, found[2]), (5, found[3])] {
            b.store(Memory::Parameter(p), to, &[value]);
        }
    }
    b.end_loop();
    barrier_placement::place_alone(b.finish().expect("balanced")).expect("ordered")
}

const TURNS: usize = 2;

fn inputs(of: Merged<'_>) -> (Vec<Member>, Vec<Vec<u8>>) {
    let members = members(of.threads, of.digits);
    let at: Vec<u64> = members.iter().map(|m| m.map_or(77, |(group, place)| u64::from(group * 2000 + place))).collect();
    let busy: Vec<u64> = members.iter().map(|m| u64::from(m.is_some())).collect();
    let mut buffers = vec![to_bytes(I32, &at), to_bytes(Bool, &busy)];
    let count = TURNS * of.accumulators * members.len();
    buffers.extend([I32, I64, Bool, U8].map(|e| vec![0; count * e.bytes() as usize]));
    (members, buffers)
}

fn check(of: Merged<'_>, seeds: std::ops::Range<u64>) {
    let kernel = intervals(of);
    let text = if seeds.end > 1 { text(&kernel) } else { printed(&kernel) };
    assert!(!is_violated(&kernel, of), "{of:?}\n{kernel}");
    let (members, buffers) = inputs(of);
    let counted = of.digits.iter().filter(|d| d.source == Some(Counted::Members));
    let size = counted.map(|d| d.extent).product::<i128>() as u32;
    for seed in seeds {
        let (report, found) = launch(&kernel, &text, TURNS as i64, 1, &buffers, true, seed);
        assert!(report.is_clean(), "{of:?} {report}\n{kernel}");
        let columns: Vec<Vec<u64>> = (found[2..].iter().zip([I32, I64, Bool, U8]))
            .map(|(bytes, element): (_, ElementType)| from_bytes(element, bytes))
            .collect();
        for row in 0..TURNS * of.accumulators {
            let (turn, number) = (row / of.accumulators, row % of.accumulators);
            for (thread, member) in members.iter().enumerate() {
                let Some((group, _)) = member else { continue };
                let at = row * members.len() + thread;
                let first = u64::from(group * 2000) + turn as u64 + number as u64 * APART as u64;
                let sum =
                    (0..size).fold(0u8, |sum, place| sum.wrapping_add((group * 2000 + place + number as u32) as u8));
                let expected = [first, first + u64::from(size) - 1, 1, u64::from(sum)];
                let found = [columns[0][at], columns[1][at], columns[2][at], columns[3][at]];
                assert_eq!(found, expected, "thread {thread}, turn {turn}, {number} of {of:?}\n{kernel}");
            }
        }
    }
}

/// Blocks with what a schedule makes of rows, columns, warps and tiles.
const LAYOUTS: [(u32, &[Digit]); 24] = [
    (1, &[reduced(1, 1)]),
    (32, &[reduced(1, 32)]),
    (32, &[reduced(1, 20)]),
    (20, &[reduced(1, 20)]),
    (64, &[kept(32, 2), reduced(1, 20)]),
    (96, &[reduced(1, 70)]),
    (100, &[reduced(1, 100)]),
    (512, &[reduced(1, 512)]),
    (1024, &[reduced(1, 1024)]),
    (1024, &[reduced(1, 1000)]),
    (1003, &[reduced(1, 1003)]),
    (1024, &[reduced(3, 341), kept(1, 3)]),
    (1024, &[kept(341, 3), reduced(1, 341)]),
    (1023, &[reduced(341, 3), kept(1, 341)]),
    (512, &[reduced(32, 16), kept(1, 32)]),
    (512, &[kept(32, 16), reduced(1, 32)]),
    (256, &[reduced(64, 4), kept(16, 4), reduced(1, 16)]),
    (256, &[kept(64, 4), reduced(8, 8), kept(1, 8)]),
    (240, &[reduced(60, 4), kept(20, 3), reduced(1, 20)]),
    (256, &[reduced(32, 8)]),
    (256, &[kept(64, 3), reduced(32, 2), kept(1, 24)]),
    (160, &[kept(40, 4), reduced(8, 5), reduced(1, 6)]),
    (128, &[reduced(64, 2), kept(3, 20), reduced(1, 3)]),
    (128, &[kept(4, 32), reduced(1, 4)]),
];

#[test]
fn layouts_of_schedules() {
    for (threads, digits) in LAYOUTS {
        check(one(threads, digits), 0..3);
    }
}

/// What commutes is merged as well without asking which lane is first, and no lane chooses.
#[test]
fn merges_that_commute() {
    for (threads, digits) in LAYOUTS {
        check(Merged { commutes: true, ..one(threads, digits) }, 0..2);
    }
    let selects = |commutes| {
        text(&intervals(Merged { commutes, ..one(128, &[kept(4, 32), reduced(1, 4)]) })).matches("selp").count()
    };
    // Two exchanges, of three states that are no predicates.
    assert_eq!(selects(false) - selects(true), 2 * 2 * 3);
}

/// Several accumulators in one trip, in several, and each in its own.
#[test]
fn accumulators_take_trips_together() {
    let trips = |of: Merged<'_>| intervals(of).buffers.len() / 4;
    let mut tried = 0;
    for (n, (threads, digits)) in LAYOUTS.into_iter().enumerate() {
        let of = |trip_bytes| Merged { accumulators: [2, 3, 4, 7][n % 4], trip_bytes, ..one(threads, digits) };
        let counts = [0, 20_000, u64::MAX].map(|bytes| trips(of(bytes)));
        // What is static.
        let few =
            [u64::MAX, 20_000, 0].map(of).into_iter().find(|of| intervals(*of).shared_map().dynamic_bytes().is_none());
        few.into_iter().for_each(|of| check(of, 0..1));
        tried += usize::from(few.is_some());
        if Plan::new(threads, digits).is_done {
            assert_eq!(counts, [0; 3], "{digits:?}");
        } else {
            assert!(counts[0] == of(0).accumulators && (1..=counts[0]).contains(&counts[1]), "{counts:?} {digits:?}");
            assert_eq!(counts[2], 1, "{digits:?}");
        }
    }
    assert!(tried >= 20, "{tried}");
    // 14 bytes of each accumulator of 512 threads.
    let columns =
        |trip_bytes| trips(Merged { accumulators: 5, trip_bytes, ..one(512, &[reduced(32, 16), kept(1, 32)]) });
    assert_eq!([7_167, 7_168, 21_503, 21_504, 35_840].map(columns), [5, 5, 3, 2, 1]);
}

/// Sums of four columns in a thread: one barrier, and what an instruction moves are four sums.
#[test]
fn four_columns_take_one_trip() {
    let mut b = builder(256, vec![tensor("x", F32, false), tensor("z", F32, true)]);
    let thread = b.thread_index();
    let four = b.index_literal(Type::I32, 4);
    let at = b.index_mul(thread, four);
    let x = b.load(Memory::Parameter(0), at, 4, None);
    let mut add = |b: &mut Builder, a: &[ValueId], c: &[ValueId]| vec![b.binary(Binary::Add, a[0], c[0])];
    let team = Team {
        threads: 256,
        digits: &[reduced(32, 8), kept(1, 32)],
        trip_bytes: 4096,
        overwrites: false,
        commutes: false,
    };
    let states: Vec<Vec<ValueId>> = x.iter().map(|x| vec![*x]).collect();
    let sums = across_threads(&mut b, "sums", team, &states, &mut add).concat();
    b.store(Memory::Parameter(1), at, &sums);
    let kernel = barrier_placement::place_alone(b.finish().expect("balanced")).expect("ordered");
    let text = text(&kernel);
    let counts = ["bar.sync", "st.shared", "st.shared.v4", "ld.shared", "ld.shared.v4"];
    assert_eq!(counts.map(|word| text.matches(word).count()), [1, 1, 1, 8, 8], "{text}");
    let x: Vec<u64> = (0..1024u64).map(|n| u64::from((n as f32).to_bits())).collect();
    let bytes = to_bytes(F32, &x);
    let (report, found) = launch(&kernel, &text, 0, 1, &[bytes.clone(), bytes], true, 1);
    assert!(report.is_clean() && report.counters.bank_conflicts() == 0, "{report}");
    let sum = |n: u64| (0..8).map(|w| (w * 128 + n % 128) as f32).sum::<f32>();
    assert_eq!(from_bytes(F32, &found[1]), (0..1024).map(|n| u64::from(sum(n).to_bits())).collect::<Vec<_>>());
}

/// Whether the separate checker finds a mistake.
fn is_violated(kernel: &Kernel, of: Merged<'_>) -> bool {
    let (threads, rows) = (i64::from(of.threads), (TURNS * of.accumulators) as i64);
    let tensor = |n: usize| {
        let shape = if n < 2 { vec![threads] } else { vec![rows, threads] };
        let strides = if n < 2 { vec![1] } else { vec![threads, 1] };
        Some(Tensor { shape, strides, alignment: 16, written: n >= 2 })
    };
    let tensors = (0..kernel.signature.parameters.len()).map(tensor).collect();
    let launch = Launch {
        blocks: 1,
        parts: 1,
        dependent: false,
        dims: vec![TURNS as i64],
        tensors,
        maps: Vec::new(),
        workspaces: Vec::new(),
    };
    match proof::check(kernel, &launch, 10_000_000 * of.accumulators as u64) {
        Verdict::Holds => false,
        Verdict::Violated(_) => true,
        other => panic!("{of:?}: {other:?}\n{kernel}"),
    }
}

#[test]
fn random_layouts() {
    let mut state = 5u64;
    let mut next = |most: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % most
    };
    let (mut tried, mut through_lanes, mut ranges) = (0, 0, 0);
    while tried < 160 {
        // From the innermost digit outwards.
        let mut digits = Vec::new();
        let mut stride = if next(4) == 0 { 1 + next(4) } else { 1 };
        for _ in 0..1 + next(4) {
            let extent = if next(2) == 0 { 1 << next(6) } else { 1 + next(12) };
            // Some begin after the first thread, at a unit or in between.
            let low = [0, 0, 0, stride * next(3), next(7)][next(5) as usize];
            let of = if next(3) > 0 { Counted::Members } else { Counted::Groups };
            digits.insert(0, digit(of, stride.into(), extent.into(), low.into()));
            stride = low + stride * extent;
            if next(4) == 0 {
                stride = if next(2) == 0 { stride.next_power_of_two() } else { stride + next(5) };
            }
        }
        let last = digits.iter().map(|d| d.low + (d.extent - 1) * d.stride).sum::<i128>() as u32;
        let threads = last + digits[digits.len() - 1].stride as u32 + [0, next(40), 31 - last % 32][next(3) as usize];
        if threads > 300 {
            continue;
        }
        tried += 1;
        ranges += u32::from(digits.iter().any(|digit| digit.low > 0));
        through_lanes += u32::from(Plan::new(threads, &digits).is_done);
        let accumulators = if next(2) == 0 { 1 } else { 1 + next(6) as usize };
        let trip_bytes = u64::from(next(16)) * 1024;
        check(Merged { accumulators, trip_bytes, ..one(threads, &digits) }, 0..1);
    }
    assert!((20..120).contains(&through_lanes) && ranges > 40, "{through_lanes} {ranges}");
}

/// Nothing needs more than one cycle of the banks for what it reads and writes: rows, columns, tiles, and rows of odd
/// length.
#[test]
fn banks_do_not_conflict() {
    let layouts: [(u32, &[Digit]); 8] = [
        (512, &[reduced(1, 512)]),
        (1024, &[reduced(1, 1000)]),
        (512, &[reduced(32, 16), kept(1, 32)]),
        (1024, &[reduced(16, 64), kept(1, 16)]),
        (256, &[kept(64, 4), reduced(8, 8), kept(1, 8)]),
        (240, &[kept(20, 12), reduced(1, 20)]),
        (192, &[kept(3, 64), reduced(1, 3)]),
        (960, &[reduced(320, 3), kept(1, 320)]),
    ];
    for (threads, digits) in layouts {
        for accumulators in [1, 3, 4] {
            let of = Merged { accumulators, trip_bytes: u64::MAX, ..one(threads, digits) };
            let kernel = intervals(of);
            let (_, buffers) = inputs(of);
            let (report, _) = launch(&kernel, &printed(&kernel), TURNS as i64, 1, &buffers, true, 0);
            assert_eq!(report.counters.bank_conflicts(), 0, "{of:?}\n{kernel}");
        }
    }
}

/// One value of a block of 512 threads: five exchanges, one barrier, and all partials at once.
#[test]
fn a_row_of_512_takes_one_trip() {
    let mut b = builder(512, vec![tensor("x", F32, false), tensor("z", F32, true)]);
    let thread = b.thread_index();
    let x = b.load(Memory::Parameter(0), thread, 1, None);
    let mut add = |b: &mut Builder, a: &[ValueId], c: &[ValueId]| vec![b.binary(Binary::Add, a[0], c[0])];
    let team = Team { threads: 512, digits: &[reduced(1, 512)], trip_bytes: 0, overwrites: false, commutes: false };
    let sum = across_threads(&mut b, "sums", team, &[x], &mut add);
    b.store(Memory::Parameter(1), thread, &sum[0]);
    let kernel = barrier_placement::place_alone(b.finish().expect("balanced")).expect("ordered");
    let text = text(&kernel);
    let counts = ["shfl.sync", "bar.sync", "st.shared", "ld.shared.v4"].map(|word| text.matches(word).count());
    assert_eq!(counts, [5, 1, 1, 4], "{text}");
    // The order of the sum is that of a balanced tree over neighbours.
    let x: Vec<f32> = (0..512).map(|n| ((n * 37 % 101) as f32 - 50.0) / 7.0).collect();
    let mut tree = x.clone();
    while tree.len() > 1 {
        tree = tree.chunks(2).map(|two| two[0] + two[1]).collect();
    }
    let bytes = to_bytes(F32, &x.iter().map(|x| u64::from(x.to_bits())).collect::<Vec<_>>());
    let (report, found) = launch(&kernel, &text, 0, 1, &[bytes.clone(), bytes], true, 1);
    assert!(report.is_clean(), "{report}");
    assert_eq!(from_bytes(F32, &found[1]), vec![u64::from(tree[0].to_bits()); 512]);
}

/// Every barrier that is left is needed: without it, the emulator sees a race, and so does the separate checker.
#[test]
fn each_barrier_is_missed() {
    let layouts: [(u32, &[Digit]); 7] = [
        (512, &[reduced(1, 512)]),
        (96, &[reduced(32, 3), kept(1, 32)]),
        // Warpgroups for themselves, whole and by their warps, and a part of each.
        (512, &[kept(128, 4), reduced(1, 128)]),
        (256, &[kept(128, 2), reduced(32, 4), kept(1, 32)]),
        (384, &[kept(128, 2), reduced(1, 100)]),
        (240, &[kept(20, 12), reduced(1, 20)]),
        (1024, &[reduced(3, 341), kept(1, 3)]),
    ];
    for (threads, digits) in layouts {
        let of = Merged { accumulators: 3, trip_bytes: u64::MAX, ..one(threads, digits) };
        let kernel = intervals(of);
        let (_, buffers) = inputs(of);
        let is_sync = |statement: &Statement| {
            matches!(
                statement.kind,
                StatementKind::BarSync | StatementKind::BarSyncWarpgroup | StatementKind::BarWarpSync
            )
        };
        let mut dropped = 0;
        for region in 0..kernel.regions.len() {
            for at in 0..kernel.regions[region].statements.len() {
                if !is_sync(&kernel.regions[region].statements[at]) {
                    continue;
                }
                let mut mutant = kernel.clone();
                mutant.regions[region].statements.remove(at);
                let text = printed(&mutant);
                let notices = |seed| !launch(&mutant, &text, TURNS as i64, 1, &buffers, true, seed).0.is_clean();
                assert!((0..4).any(notices), "{threads} {digits:?}\n{mutant}");
                assert!(is_violated(&mutant, of), "{threads} {digits:?}\n{mutant}");
                dropped += 1;
            }
        }
        assert_eq!(dropped, 2, "{kernel}");
    }
}

//! Tests of who accesses an element: random kernels, whose minimal barriers the separate checker judges for every small
//! size.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Compare;
use tilewright_kernel::info::Argument;

use super::*;
use crate::kernel_ir::{Buffer, Builder, Dimension, Memory, Range, Signature, Type};
use crate::lower::barrier_placement;
use crate::proof::{Launch, Verdict, check};

/// The largest N.
const MOST: i64 = 9;

fn builder(threads: u32) -> Builder {
    let dims = vec![Dimension { name: "N".to_owned(), range: Range::new(0, MOST) }];
    let (name, arguments) = ("k".to_owned(), vec![Argument::Dim(0)]);
    Builder::new(Signature { name, parameters: Vec::new(), dims, maps: Vec::new(), arguments, threads, cluster: 1 })
}

fn buffer(b: &mut Builder, elements: u32) -> BufferId {
    let (name, element, sharing) = ("s".to_owned(), ElementType::F32, Sharing::Block);
    b.buffer(Buffer { name, element, elements, alignment: 128, slots: 1, sharing })
}

fn int(b: &mut Builder, n: i64) -> ValueId {
    b.index_literal(Type::I32, n)
}

fn launch(n: i64) -> Launch {
    Launch {
        blocks: 1,
        parts: 1,
        dependent: false,
        dims: vec![n],
        tensors: Vec::new(),
        maps: Vec::new(),
        workspaces: Vec::new(),
    }
}

/// Every element of `threads · turns` to a thread and an iteration, in one of several ways.
fn element(b: &mut Builder, how: usize, threads: i64, turns: i64, turn: ValueId) -> ValueId {
    let thread = b.thread_index();
    let [threads, turns] = [threads, turns].map(|n| int(b, n));
    let place = match how {
        // A run for each thread.
        0 => {
            let first = b.index_mul(thread, turns);
            return b.index_add(first, turn);
        }
        1 => thread,
        // Pairs of lanes turned, and all threads.
        2 => {
            let one = int(b, 1);
            b.index_xor(thread, one)
        }
        3 => {
            let (two, one) = (int(b, 2), int(b, 1));
            let (pair, own) = (b.index_div(thread, two), b.index_mod(thread, two));
            let (pair, own) = (b.index_mul(pair, two), b.index_sub(one, own));
            b.index_add(pair, own)
        }
        _ => {
            let one = int(b, 1);
            let last = b.index_sub(threads, one);
            b.index_sub(last, thread)
        }
    };
    let first = b.index_mul(turn, threads);
    b.index_add(first, place)
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n) as usize
    }
}

/// Instances that threads write and read in loops, each access in a way of its own.
fn random(draw: &mut Draw) -> Kernel {
    let threads = [34, 64, 64, 96][draw.below(4)];
    let turns = 1 + draw.below(3) as i64;
    let mut b = builder(threads);
    let s = buffer(&mut b, threads * turns as u32);
    let (zero, one) = (int(&mut b, 0), b.literal(ElementType::F32, 0));
    let n = b.dim(0, Type::I32);
    let rounds = [int(&mut b, 1), int(&mut b, 2), n][draw.below(3)];
    b.begin_loop(rounds);
    // So many elements there are.
    let each = int(&mut b, [1, 4, 30, 400][draw.below(4)]);
    let count = b.index_mul(n, each);
    let ways = [draw.below(5), draw.below(5)];
    let fewer = draw.below(2) == 0;
    b.lifetime_start(s, zero);
    for (side, how) in ways.into_iter().enumerate() {
        let most = int(&mut b, turns);
        let turn = b.begin_loop(most);
        let at = element(&mut b, how, threads.into(), turns, turn);
        let whole = int(&mut b, i64::from(threads) * turns);
        let mut holds = b.index_compare(Compare::Lt, at, count);
        let exists = b.index_compare(Compare::Lt, at, whole);
        holds = b.and(holds, exists);
        if side == 1 && fewer {
            let half = int(&mut b, 20);
            let first = b.index_compare(Compare::Lt, at, half);
            holds = b.and(holds, first);
        }
        b.begin_if(holds);
        if side == 0 {
            b.store(Memory::Buffer(s), at, &[one]);
        } else {
            b.load(Memory::Buffer(s), at, 1, None);
        }
        b.end_if();
        b.end_loop();
    }
    b.end_loop();
    b.finish().expect("balanced")
}

fn is_right(kernel: &Kernel) -> bool {
    (0..=MOST).all(|n| match check(kernel, &launch(n), 10_000_000) {
        Verdict::Holds => true,
        Verdict::Violated(_) => false,
        other => panic!("{other:?}\n{kernel}"),
    })
}

/// Every barrier, with the statement.
fn barriers(kernel: &Kernel) -> Vec<(usize, usize)> {
    let is_barrier = |kind: &StatementKind| {
        matches!(kind, StatementKind::BarSync | StatementKind::BarWarpSync | StatementKind::BarSyncWarpgroup)
    };
    let of = |r: usize| (0..kernel.regions[r].statements.len()).map(move |at| (r, at));
    let all = (0..kernel.regions.len()).flat_map(of);
    all.filter(|(r, at)| is_barrier(&kernel.regions[*r].statements[*at].kind)).collect()
}

#[test]
fn what_is_placed_is_right_and_needed() {
    let (mut placed, mut weaker, mut none, mut needless) = (0, 0, 0, Vec::new());
    for seed in 0..80 {
        let mut draw = Draw(seed * 7919 + 1);
        draw.below(2);
        let kernel = random(&mut draw);
        let minimal = barrier_placement::place_alone(kernel).expect("ordered");
        assert!(is_right(&minimal), "seed {seed}:\n{minimal}");
        none += usize::from(barriers(&minimal).is_empty());
        for (region, at) in barriers(&minimal) {
            placed += 1;
            weaker += usize::from(minimal.regions[region].statements[at].kind != StatementKind::BarSync);
            let mut mutant = minimal.clone();
            mutant.regions[region].statements.remove(at);
            // Of exclusive ors nothing is known.
            if is_right(&mutant) && !minimal.to_string().contains(" ^ ") {
                needless.push(format!("{seed}: statement {at} of region {region} of\n{minimal}"));
            }
        }
    }
    println!("{placed} barriers, {weaker} of fewer threads, {none} kernels without, {} needless", needless.len());
    assert!(placed > 60 && weaker > 5 && none > 5, "{placed}, {weaker}, {none}");
    assert!(needless.len() * 100 <= placed, "{} of {placed}:\n{}", needless.len(), needless.concat());
}

/// Who says where a row of a matrix is does not have its elements: lanes wait for each other, though each of them
/// accesses the row that it said.
#[test]
fn rows_of_matrices_are_those_of_warps() {
    for stores in [true, false] {
        let mut b = builder(64);
        let (name, element, sharing) = ("s".to_owned(), ElementType::F16, Sharing::Block);
        let s = b.buffer(Buffer { name, element, elements: 512, alignment: 128, slots: 1, sharing });
        let (thread, eight, zero) = (b.thread_index(), int(&mut b, 8), b.literal(element, 0));
        let at = b.index_mul(thread, eight);
        if stores {
            b.store_matrix(s, at, (4, false), vec![zero; 8]);
            b.load(Memory::Buffer(s), at, 8, None);
        } else {
            b.store(Memory::Buffer(s), at, &[zero; 8]);
            b.load_matrix(s, at, 4, false);
        }
        let kernel = barrier_placement::place_alone(b.finish().expect("balanced")).expect("ordered");
        let found: Vec<_> =
            barriers(&kernel).into_iter().map(|(r, at)| &kernel.regions[r].statements[at].kind).collect();
        assert_eq!(found, [&StatementKind::BarWarpSync], "{kernel}");
    }
}

/// Beyond the limits only what is known of the buffer is left.
#[test]
fn work_is_bounded() {
    let kernel = |groups: usize| {
        let mut b = builder(64);
        let s = buffer(&mut b, 64);
        let one = b.literal(ElementType::F32, 0);
        let thread = b.thread_index();
        for _ in 0..groups {
            b.store(Memory::Buffer(s), thread, &[one]);
            b.bar_sync();
        }
        b.load(Memory::Buffer(s), thread, 1, None);
        b.finish().unwrap()
    };
    let small = kernel(1);
    let is_own = |dependences: &Dependences<'_>, group: Group, load: Group, searches: bool| {
        dependences.is_within(Sharing::Thread, Access::of(group), load, searches)
    };
    let dependences = Dependences::new(&small, None);
    // What was searched is known, for larger units as well.
    assert_eq!([false, true, false].map(|searches| is_own(&dependences, 0, 1, searches)), [false, true, true]);
    assert!(dependences.is_within(Sharing::Warp, Access::of(0), 1, false));
    let spent = Dependences { work: RefCell::new(Budget::new(0)), ..Dependences::new(&small, None) };
    assert!(!is_own(&spent, 0, 1, true));
    // Groups that are told apart, one for the rest of them, and the load.
    let many = kernel(3 * MOST_GROUPS);
    let dependences = Dependences::new(&many, None);
    assert_eq!(dependences.sites.len(), MOST_GROUPS + 2);
    let load = MOST_GROUPS as Group + 1;
    let last = MOST_GROUPS as Group;
    assert_eq!([0, last].map(|group| is_own(&dependences, group, load, true)), [true, false]);
    assert!(barrier_placement::place_alone(many).is_some());
}

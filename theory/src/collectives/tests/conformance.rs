//! The table of nests, units and verdicts.

use super::super::{
    Bind, Difference, Fix, LoopFault, Nest, Refusal, Shape, ThreadSet, Tiling, UnitFault, UnitProblem, check, place,
};
use super::{Selected, binds, nest, unit};

/// An accepted nest: the threads of each iteration are, along the iterators, these distances apart, and runs of
/// neighbours.
struct Accepted {
    id: &'static str,
    shape: (u64, u64),
    nest: &'static str,
    iterations: usize,
    /// One distance for each loop.
    pitches: &'static [u64],
    /// Of the first iteration: the first thread of each run, and its length.
    runs: &'static [(u64, u64)],
    last: &'static str,
    idle: u64,
    here: &'static [&'static str],
    not_here: &'static [&'static str],
}

#[rustfmt::skip]
const ACCEPTED: &[Accepted] = &[
    Accepted { id: "A01", shape: (1, 256), nest: "", iterations: 1, pitches: &[], runs: &[(0, 256)], last: "0-255", idle: 0,
        here: &["cta", "cluster", "2 warpgroup", "8 warp", "256 thread"], not_here: &["warpgroup", "warp", "thread", "quadpair"] },
    Accepted { id: "A02", shape: (1, 256), nest: "2 x warpgroup", iterations: 2, pitches: &[128], runs: &[(0, 128)], last: "128-255", idle: 0,
        here: &["warpgroup", "4 warp", "128 thread"], not_here: &["cta", "warp", "2 warpgroup"] },
    Accepted { id: "A04", shape: (1, 256), nest: "2 x warpgroup > 4 x warp", iterations: 8, pitches: &[128, 32], runs: &[(0, 32)], last: "224-255", idle: 0,
        here: &["warp"], not_here: &["warpgroup", "16 thread"] },
    Accepted { id: "A05", shape: (1, 256), nest: "2 x warpgroup > 4 x warp > 4 x 8 thread", iterations: 32, pitches: &[128, 32, 8], runs: &[(0, 8)], last: "248-255", idle: 0,
        here: &["8 thread"], not_here: &["warp", "quadpair", "thread"] },
    Accepted { id: "A07", shape: (1, 256), nest: "256 x thread", iterations: 256, pitches: &[1], runs: &[(0, 1)], last: "255", idle: 0,
        here: &["thread"], not_here: &["warp"] },
    Accepted { id: "A08", shape: (1, 256), nest: "200 x thread", iterations: 200, pitches: &[1], runs: &[(0, 1)], last: "199", idle: 56,
        here: &["thread"], not_here: &["warp"] },
    Accepted { id: "A10", shape: (1, 256), nest: "1 x warpgroup", iterations: 1, pitches: &[0], runs: &[(0, 128)], last: "0-127", idle: 128,
        here: &["warpgroup"], not_here: &["cta"] },
    Accepted { id: "A11", shape: (1, 256), nest: "W 2..5", iterations: 1, pitches: &[0], runs: &[(64, 96)], last: "64-159", idle: 160,
        here: &[], not_here: &["3 warp", "warp", "warpgroup", "cta"] },
    Accepted { id: "A13", shape: (1, 256), nest: "W 1..5 > 4 x warp", iterations: 4, pitches: &[0, 32], runs: &[(32, 32)], last: "128-159", idle: 128,
        here: &["warp"], not_here: &["warpgroup"] },
    Accepted { id: "A14", shape: (1, 256), nest: "W 1..5 > 1 x warpgroup", iterations: 1, pitches: &[0, 0], runs: &[(32, 128)], last: "32-159", idle: 128,
        here: &[], not_here: &["warpgroup", "warp"] },
    Accepted { id: "A16", shape: (1, 256), nest: "32 x 8 threads_strided(1, 32) > 8 x warp", iterations: 256, pitches: &[1, 32], runs: &[(0, 1)], last: "255", idle: 0,
        here: &["thread"], not_here: &["warp"] },
    Accepted { id: "A17", shape: (1, 256), nest: "W 0..4 > 32 x 8 threads_strided(1, 32)", iterations: 32, pitches: &[0, 1], runs: &[(0, 1), (32, 1), (64, 1), (96, 1)], last: "31,63,95,127", idle: 128,
        here: &["4 threads_strided(1, 32)"], not_here: &["8 threads_strided(1, 32)", "4 thread"] },
    Accepted { id: "A19", shape: (1, 256), nest: "10 x 23 thread", iterations: 10, pitches: &[23], runs: &[(0, 23)], last: "207-229", idle: 26,
        here: &[], not_here: &["23 thread", "warp"] },
    Accepted { id: "A20", shape: (2, 384), nest: "", iterations: 1, pitches: &[], runs: &[(0, 768)], last: "0-767", idle: 0,
        here: &["cluster", "2 cta"], not_here: &["cta", "warpgroup"] },
    Accepted { id: "A22", shape: (2, 384), nest: "2 x cta > 3 x warpgroup", iterations: 6, pitches: &[384, 128], runs: &[(0, 128)], last: "640-767", idle: 0,
        here: &["warpgroup"], not_here: &["cta", "warp"] },
    Accepted { id: "A23", shape: (2, 384), nest: "2 x cta > W 0..1", iterations: 2, pitches: &[384, 0], runs: &[(0, 32)], last: "384-415", idle: 704,
        here: &["warp"], not_here: &["2 warp_strided(1)", "cta"] },
    Accepted { id: "A25", shape: (2, 384), nest: "W 4..12 > 2 x warpgroup", iterations: 2, pitches: &[0, 128], runs: &[(128, 128), (512, 128)], last: "256-383,640-767", idle: 256,
        here: &[], not_here: &["warpgroup", "2 warpgroup"] },
    Accepted { id: "A26", shape: (2, 384), nest: "W 4..12 > 2 x warpgroup > 2 x cta", iterations: 4, pitches: &[0, 128, 384], runs: &[(128, 128)], last: "640-767", idle: 256,
        here: &["warpgroup"], not_here: &["cta"] },
    Accepted { id: "A28", shape: (2, 384), nest: "2 x cta > 4 x 3 warp", iterations: 8, pitches: &[384, 96], runs: &[(0, 96)], last: "672-767", idle: 0,
        here: &["3 warp"], not_here: &["warp", "warpgroup"] },
    Accepted { id: "A29", shape: (2, 384), nest: "2 x cta > 3 x warpgroup > 4 x warp > 4 x 8 thread", iterations: 96, pitches: &[384, 128, 32, 8], runs: &[(0, 8)], last: "760-767", idle: 0,
        here: &["8 thread"], not_here: &["warp", "quadpair"] },
    Accepted { id: "A31", shape: (2, 384), nest: "2 x cta > 32 x 12 threads_strided(1, 32)", iterations: 64, pitches: &[384, 1],
        runs: &[(0, 1), (32, 1), (64, 1), (96, 1), (128, 1), (160, 1), (192, 1), (224, 1), (256, 1), (288, 1), (320, 1), (352, 1)], last: "12x[415-415] step 32", idle: 0,
        here: &["12 threads_strided(1, 32)"], not_here: &["warp", "cta"] },
    Accepted { id: "A32", shape: (2, 384), nest: "2 x cta > 76 x 5 thread", iterations: 152, pitches: &[384, 5], runs: &[(0, 5)], last: "759-763", idle: 8,
        here: &[], not_here: &["5 thread", "thread"] },
    Accepted { id: "A34", shape: (4, 128), nest: "4 x cta", iterations: 4, pitches: &[128], runs: &[(0, 128)], last: "384-511", idle: 0,
        here: &["cta", "warpgroup", "4 warp"], not_here: &["cluster", "2 cta"] },
    Accepted { id: "A35", shape: (4, 128), nest: "3 x cta", iterations: 3, pitches: &[128], runs: &[(0, 128)], last: "256-383", idle: 128,
        here: &["cta", "warpgroup"], not_here: &[] },
    Accepted { id: "A37", shape: (4, 128), nest: "2 x 2 cta > 2 x cta", iterations: 4, pitches: &[256, 128], runs: &[(0, 128)], last: "384-511", idle: 0,
        here: &["cta"], not_here: &["2 cta"] },
    Accepted { id: "A38", shape: (4, 128), nest: "2 x 2 cta_strided(2)", iterations: 2, pitches: &[128], runs: &[(0, 128), (256, 128)], last: "128-255,384-511", idle: 0,
        here: &["2 cta_strided(2)"], not_here: &["2 cta", "cta"] },
    Accepted { id: "A40", shape: (4, 128), nest: "2 x 2 cta_strided(2) > 2 x cta", iterations: 4, pitches: &[128, 256], runs: &[(0, 128)], last: "384-511", idle: 0,
        here: &["cta", "warpgroup"], not_here: &["2 cta_strided(2)"] },
    Accepted { id: "A41", shape: (4, 128), nest: "2 x 2 cta_strided(2) > 4 x warp", iterations: 8, pitches: &[128, 32], runs: &[(0, 32), (256, 32)], last: "224-255,480-511", idle: 0,
        here: &["2 warp_strided(2)"], not_here: &["warp", "2 warp_strided(1)"] },
    Accepted { id: "A43", shape: (4, 128), nest: "4 x warp", iterations: 4, pitches: &[32], runs: &[(0, 32), (128, 32), (256, 32), (384, 32)], last: "96-127,224-255,352-383,480-511", idle: 0,
        here: &["4 warp_strided(1)"], not_here: &["warp", "4 warp"] },
    Accepted { id: "A44", shape: (4, 128), nest: "128 x thread", iterations: 128, pitches: &[1], runs: &[(0, 1), (128, 1), (256, 1), (384, 1)], last: "127,255,383,511", idle: 0,
        here: &[], not_here: &["thread", "4 thread"] },
    Accepted { id: "A46", shape: (4, 128), nest: "4 x cta > 4 x warp > 4 x 8 thread > 8 x thread", iterations: 512, pitches: &[128, 32, 8, 1], runs: &[(0, 1)], last: "511", idle: 0,
        here: &["thread"], not_here: &["warp"] },
    Accepted { id: "A47", shape: (4, 128), nest: "8 x mod8 > 4 x warp", iterations: 32, pitches: &[1, 32],
        runs: &[(0, 1), (8, 1), (16, 1), (24, 1), (128, 1), (136, 1), (144, 1), (152, 1), (256, 1), (264, 1), (272, 1), (280, 1), (384, 1), (392, 1), (400, 1), (408, 1)],
        last: "103,111,119,127,231,239,247,255,359,367,375,383,487,495,503,511", idle: 0,
        here: &[], not_here: &["warp", "thread"] },
    Accepted { id: "A49", shape: (1, 384), nest: "8 x mod8 > 3 x 128 thread > 16 x oct", iterations: 384, pitches: &[1, 128, 8], runs: &[(0, 1)], last: "383", idle: 0,
        here: &["thread"], not_here: &[] },
    Accepted { id: "A50", shape: (1, 512), nest: "4 x warpgroup > W 2..4 > W 1..2", iterations: 4, pitches: &[128, 0, 0], runs: &[(96, 32)], last: "480-511", idle: 384,
        here: &["warp"], not_here: &["warpgroup"] },
];

/// A set in the notation of the table.
pub(super) fn set(text: &str) -> ThreadSet {
    let run = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        (first.parse::<u64>().unwrap(), last.parse::<u64>().unwrap())
    };
    if let Some((count, rest)) = text.split_once("x[") {
        let (first, step) = rest.split_once("] step ").unwrap();
        let ((low, high), step) = (run(first), step.parse::<u64>().unwrap());
        return ThreadSet::ascending((0..count.parse().unwrap()).flat_map(|k| low + k * step..=high + k * step));
    }
    ThreadSet::ascending(text.split(',').map(run).flat_map(|(low, high)| low..=high))
}

/// What a row says of a nest: the threads of the first iteration, from where all others are moved by the distances.
pub(super) struct Expected<'a> {
    pub id: &'a str,
    pub shape: (u64, u64),
    pub nest: &'a str,
    pub iterations: usize,
    pub pitches: &'a [u64],
    pub first: ThreadSet,
    pub last: &'a str,
    pub idle: u64,
    pub here: &'a [&'a str],
    pub not_here: &'a [&'a str],
}

impl Expected<'_> {
    pub fn holds(&self) {
        let id = self.id;
        let nest = nest(self.shape.0, self.shape.1, self.nest);
        let found: Vec<u64> = nest.steps().iter().map(|s| s.pitch).collect();
        assert_eq!((found.as_slice(), nest.instances().len()), (self.pitches, self.iterations), "{id}");
        for instance in nest.instances() {
            let moved: u64 = instance.values.iter().zip(self.pitches).map(|(v, p)| v * p).sum();
            let threads = ThreadSet::ascending(self.first.iter().map(|t| t + moved));
            assert_eq!(instance.threads, threads, "{id} at {:?}", instance.values);
        }
        let last = &nest.instances().last().unwrap().threads;
        assert_eq!(*last, set(self.last), "{id}");
        assert_eq!(nest.idle().count(), self.idle, "{id}");
        for name in self.here {
            assert_eq!(check(&nest, &unit(name)), Ok(()), "{id}: {name}");
        }
        for name in self.not_here {
            assert!(check(&nest, &unit(name)).is_err(), "{id}: {name}");
        }
        // The closed form exists for all of them, and its guards select the sets.
        let selected = Selected::new(&Tiling::of(&nest).unwrap());
        for thread in 0..nest.shape().threads() {
            let runs = nest.instances().iter().find(|i| i.threads.contains(thread)).map(|i| i.values.clone());
            assert_eq!(selected.by(thread), runs, "{id}: thread {thread}");
        }
    }
}

#[test]
fn accepted_nests_have_the_sets_of_the_table() {
    for Accepted { id, shape, nest, iterations, pitches, runs, last, idle, here, not_here } in ACCEPTED {
        let runs = runs.iter().map(|(first, count)| ThreadSet::run(*first, *count)).collect::<Vec<_>>();
        let (first, iterations, idle) = (ThreadSet::union(&runs), *iterations, *idle);
        Expected { id, shape: *shape, nest, iterations, pitches, first, last, idle, here, not_here }.holds();
    }
}

/// How a row is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    TooMany {
        most: u64,
    },
    Already,
    Ambiguous,
    Empty,
    UnitBox,
    /// The unit is none of the launch for another reason.
    NoUnit,
    Pitches,
    NotABox,
    Count {
        threads: u64,
        wanted: u64,
    },
    Alignment,
    Arrangement,
}

/// The row's name, cluster and block, nest, needed unit if the nest stands, class, and the position of the loop to
/// change, if one is enough.
pub(super) type Refused = (&'static str, (u64, u64), &'static str, &'static str, Class, Option<usize>);

#[rustfmt::skip]
const REFUSED: &[Refused] = &[
    ("R01", (1, 256), "9 x warp", "", Class::TooMany { most: 8 }, None),
    ("R02", (1, 256), "3 x warpgroup", "", Class::TooMany { most: 2 }, None),
    ("R04", (1, 256), "8 x warp > 2 x warp", "", Class::Already, Some(0)),
    ("R05", (1, 256), "256 x thread > 2 x thread", "", Class::Already, Some(0)),
    ("R07", (1, 256), "8 x warp > 1 x 2 warp", "", Class::TooMany { most: 0 }, Some(0)),
    ("R08", (1, 256), "2 x warpgroup > 4 x quadpair", "", Class::Ambiguous, None),
    ("R10", (1, 256), "8 x warp > W 2..4", "", Class::Already, Some(0)),
    ("R11", (1, 256), "W 3..3", "", Class::Empty, None),
    ("R13", (1, 256), "", "warp", Class::Count { threads: 256, wanted: 32 }, None),
    ("R14", (1, 256), "W 1..5", "warpgroup", Class::Alignment, Some(0)),
    ("R16", (1, 256), "8 x warp", "warpgroup", Class::Count { threads: 32, wanted: 128 }, Some(0)),
    ("R17", (1, 256), "2 x warpgroup", "warp", Class::Count { threads: 128, wanted: 32 }, Some(0)),
    ("R19", (1, 1024), "32 x 32 threads_strided(1, 32)", "warp", Class::Arrangement, Some(0)),
    ("R20", (1, 256), "8 x warp > 4 x 8 thread", "quadpair", Class::Arrangement, Some(1)),
    ("R22", (1, 32), "32 x thread", "2 threads_strided(1, 16)", Class::Count { threads: 1, wanted: 2 }, Some(0)),
    ("R23", (4, 128), "4 x cta > W 0..1", "2 warp_strided(2)", Class::Count { threads: 32, wanted: 64 }, Some(0)),
    ("R25", (1, 256), "256 x thread", "8 threads_strided(1, 32)", Class::Count { threads: 1, wanted: 8 }, Some(0)),
    ("R26", (2, 384), "W 0..1", "warp", Class::Count { threads: 64, wanted: 32 }, None),
    ("R28", (2, 384), "2 x cta", "cluster", Class::Count { threads: 384, wanted: 768 }, Some(0)),
    ("R29", (2, 384), "2 x cta > 3 x warpgroup", "cta", Class::Count { threads: 128, wanted: 384 }, Some(1)),
    ("R31", (2, 384), "3 x cta", "", Class::TooMany { most: 2 }, None),
    ("R32", (2, 384), "1 x 2 cta_strided(2)", "", Class::UnitBox, None),
    ("R34", (2, 384), "W 4..12 > 3 x warpgroup", "", Class::TooMany { most: 2 }, Some(0)),
    ("R35", (4, 128), "2 x 2 cta_strided(2)", "2 cta", Class::Arrangement, Some(0)),
    ("R37", (4, 128), "2 x 2 cta_strided(2)", "cta", Class::Count { threads: 256, wanted: 128 }, Some(0)),
    ("R38", (4, 128), "5 x cta", "", Class::TooMany { most: 4 }, None),
    ("R40", (4, 128), "128 x thread", "thread", Class::Count { threads: 4, wanted: 1 }, None),
    ("R41", (1, 384), "3 x mod3 > 2 x mod2", "", Class::Pitches, Some(0)),
    ("R43", (1, 256), "36 x 7 thread > 8 x thread", "", Class::TooMany { most: 7 }, Some(0)),
    ("R44", (4, 128), "", "cta", Class::Count { threads: 512, wanted: 128 }, None),
    ("R46", (4, 128), "4 x cta > 129 x thread", "", Class::TooMany { most: 128 }, None),
    ("R47", (1, 256), "4 x 3 thread > 3 x mod8", "", Class::NotABox, Some(0)),
];

fn class_of_unit(fault: &UnitFault) -> Class {
    if matches!(fault.problem, UnitProblem::Box { .. }) { Class::UnitBox } else { Class::NoUnit }
}

fn class_of_loop(fault: &LoopFault) -> Class {
    match fault {
        LoopFault::Range { .. } => Class::Empty,
        LoopFault::Unit(fault) => class_of_unit(fault),
        LoopFault::Pitches { .. } | LoopFault::Uneven { .. } => Class::Pitches,
        LoopFault::NotABox { .. } => Class::NotABox,
        LoopFault::TooMany { most, .. } => Class::TooMany { most: *most },
        LoopFault::Already { .. } => Class::Already,
        LoopFault::Ambiguous { .. } => Class::Ambiguous,
    }
}

/// Every row is refused for its reason, and what is proposed makes it go away; nothing is proposed for units that no
/// launch of the shape has.
pub(super) fn are_refused(rows: &[Refused]) {
    for (id, shape, text, needed, class, culprit) in rows {
        let shape = Shape::new(shape.0, shape.1).unwrap();
        let binds = binds(text);
        let (found, narrowed_by, fix) = match place(shape, &binds) {
            Err(refused) => {
                assert!(needed.is_empty(), "{id}: the nest stands: {refused:?}");
                (class_of_loop(&refused.fault), refused.narrowed_by, refused.fix)
            }
            Ok(nest) => match check(&nest, &unit(needed)) {
                Err(Refusal::Mismatch(found)) => {
                    let class = match found.difference {
                        Difference::Count => {
                            Class::Count { threads: found.threads.count(), wanted: found.wanted.unwrap() }
                        }
                        Difference::Alignment => Class::Alignment,
                        Difference::Arrangement => Class::Arrangement,
                    };
                    (class, found.narrowed_by, found.fix)
                }
                Err(Refusal::Unit(fault)) => (class_of_unit(&fault), None, None),
                Ok(()) => panic!("{id} is accepted"),
            },
        };
        assert_eq!((found, narrowed_by), (*class, *culprit), "{id}: {fix:?}");
        if let Some(fix) = fix {
            let fixed = Nest::of(shape, &fix.applied(&binds)).unwrap();
            assert!(needed.is_empty() || check(&fixed, &unit(needed)).is_ok(), "{id}: {fix:?}");
        } else {
            let is_out = matches!(class, Class::Empty | Class::UnitBox | Class::NoUnit);
            assert!(is_out, "{id}: no way out");
        }
    }
}

#[test]
fn refused_nests_are_refused_for_the_reason_of_the_table() {
    are_refused(REFUSED);
}

#[test]
fn what_the_published_rule_refuses_and_the_definition_does_not_is_accepted() {
    for (id, block, text, needed) in [
        ("F01", 256, "8 x warp", "threads_strided(32, 64)"),
        ("F02", 128, "5 x thread", "mod8"),
        ("F04", 256, "W 1..5 > 4 x warp", "threads_strided(32, 128)"),
    ] {
        assert_eq!(check(&nest(1, block, text), &unit(needed)), Ok(()), "{id}");
    }
}

#[test]
fn the_way_out_is_the_one_that_the_message_names() {
    let fix = |cluster, block, text: &str, needed: &str| match check(&nest(cluster, block, text), &unit(needed)) {
        Err(Refusal::Mismatch(found)) => found.fix,
        other => panic!("{other:?}"),
    };
    let each = |n, name| Bind::each(n, unit(name));
    let replace = |step, bind| Some(Fix::Replace { step, bind });
    let insert = |step, binds| Some(Fix::Insert { step, binds });
    // A loop over warps where a warpgroup is needed, and a range that starts in between.
    assert_eq!(fix(1, 256, "8 x warp", "warpgroup"), replace(0, each(2, "warpgroup")));
    assert_eq!(fix(1, 256, "W 1..5", "warpgroup"), replace(0, Bind::range(0, 4, unit("warp"))));
    assert_eq!(fix(1, 512, "W 3..7", "warpgroup"), replace(0, Bind::range(4, 8, unit("warp"))));
    // A cluster without a loop over its blocks.
    assert_eq!(fix(2, 384, "W 0..1", "warp"), insert(1, vec![each(2, "cta")]));
    assert_eq!(fix(4, 128, "", "cta"), insert(0, vec![each(4, "cta")]));
    assert_eq!(fix(2, 384, "", "warp"), insert(0, vec![each(2, "cta"), each(12, "warp")]));
    // A unit in the wrong blocks.
    assert_eq!(fix(4, 128, "2 x 2 cta_strided(2)", "2 cta"), replace(0, each(2, "2 cta")));
}

//! Random units and nests against the oracle: no wrong accept, no wrong refusal; guards select the sets.

use std::time::{Duration, Instant};

use super::super::{Bind, Nest, NoClosedForm, Shape, Size, Tiling, Unit, uniform};
use super::Random;
use super::oracle::{self, Loop};

/// A unit of ours, with extents and boxes as plain numbers; a box of 0 is any.
struct Both {
    unit: Unit,
    domain: Vec<u64>,
    boxes: Vec<u64>,
}

impl Both {
    fn over(&self, shape: Shape, free: bool) -> Option<oracle::Plain> {
        oracle::over(&self.domain, &self.boxes, shape.threads(), free)
    }
}

/// A named unit with the numbers of its definition, or one of random extents.
fn any_unit(random: &mut Random, c: u64, b: u64) -> Both {
    let n = random.of(&[1, 1, 1, 2, 3, 4, 5, 8, 16]);
    let s = random.of(&[1u64, 2, 4, 8, 16, 32, 64]);
    let k = random.of(&[1u64, 2, 8]).min(s);
    let scaled = |unit: Unit| unit.scaled(n).unwrap();
    let number = |x: u64| Some(Size::of(x));
    let raw = |domain: &[u64], boxes: &[u64]| {
        let domain_of = domain.iter().map(|d| Size::of(*d)).collect::<Vec<_>>();
        let boxes_of = boxes.iter().map(|x| if *x == 0 { None } else { number(*x) }).collect::<Vec<_>>();
        let unit = Unit::raw("raw", &domain_of, &boxes_of).unwrap();
        Both { unit, domain: domain.to_vec(), boxes: boxes.to_vec() }
    };
    let both =
        |unit: Unit, domain: &[u64], boxes: &[u64]| Both { unit, domain: domain.to_vec(), boxes: boxes.to_vec() };
    // Divisions that are not exact have no numbers: no unit.
    let over = |x: u64, y: u64| if x.is_multiple_of(y) { x / y } else { 0 };
    match random.below(16) {
        0 | 1 => both(scaled(Unit::thread()), &[b], &[n]),
        2 | 3 => both(scaled(Unit::warp()), &[b], &[32 * n]),
        4 => both(scaled(Unit::warpgroup()), &[b], &[128 * n]),
        5 => both(Unit::quadpair(), &[over(b, 16), 16], &[2, 4]),
        6 | 7 => both(scaled(Unit::threads_strided(k, s).unwrap()), &[over(b, s), s], &[n, k]),
        8 => both(scaled(Unit::cta()), &[c * b], &[b * n]),
        9 => both(Unit::cluster(), &[c * b], &[c * b]),
        10 => both(scaled(Unit::cta_strided(s).unwrap()), &[over(c, s), s, b], &[n, 1, b]),
        11 => both(scaled(Unit::warp_strided(s).unwrap()), &[over(c, s), s, b], &[n, 1, 32]),
        12 => both(scaled(Unit::warp_in_cluster()), &[c, b], &[n, 32]),
        13 => both(Unit::agnostic_sub_cta(), &[c, b], &[1, 0]),
        14 => both(Unit::agnostic_intact_cta(), &[c, b], &[0, b]),
        _ => {
            let mut domain = Vec::new();
            let mut boxes = Vec::new();
            for _ in 0..=random.below(3) {
                let d = random.of(&[1u64, 2, 3, 4, 6, 8, 12, 16, 32]);
                domain.push(d);
                boxes.push(if random.below(6) == 0 { 0 } else { 1 + random.below(d as usize) as u64 });
            }
            raw(&domain, &boxes)
        }
    }
}

#[derive(Default)]
struct Tally {
    stands: u32,
    refused: u32,
    matches: u32,
    differs: u32,
    /// Nests that stand and have no closed form.
    inexact: u32,
}

/// One random nest, loop by loop.
fn one(random: &mut Random, shape: Shape, tally: &mut Tally) {
    let (c, b) = (shape.cluster(), shape.block());
    let mut ours = Nest::top(shape);
    let mut loops: Vec<Loop> = Vec::new();
    let mut sets = oracle::nest(c, b, &loops).unwrap();
    for _ in 0..1 + random.below(4) {
        let both = any_unit(random, c, b);
        let low = if random.below(4) == 0 { random.below(4) as u64 } else { 0 };
        let high = low + random.of(&[1, 1, 2, 2, 3, 4, 5, 8, 16, 32, 64]);
        let tiles = if random.below(4) == 0 { 1 } else { high - low };
        let bind = Bind { unit: both.unit.clone(), low, high, tiles };
        let next = ours.inside(&bind);
        let plain = both.over(shape, true);
        let theirs = plain.and_then(|unit| {
            loops.push(Loop { unit, low, high, tiles });
            let found = oracle::nest(c, b, &loops);
            if found.is_none() {
                loops.pop();
            }
            found
        });
        assert_eq!(next.is_ok(), theirs.is_some(), "{c} {b} {bind:?}\n{:?}\n{:?}", ours.steps(), next.err());
        let (Ok(next), Some(theirs)) = (next, theirs) else {
            tally.refused += 1;
            continue;
        };
        tally.stands += 1;
        (ours, sets) = (next, theirs);
        assert_eq!(ours.instances().len(), sets.len());
        for (instance, (values, set)) in ours.instances().iter().zip(&sets) {
            let flags: Vec<bool> = (0..shape.threads()).map(|t| instance.threads.contains(t)).collect();
            assert_eq!((&instance.values, &flags), (values, set), "{:?}", ours.steps());
        }
        guards(&ours, tally);
    }
    for _ in 0..8 {
        let both = any_unit(random, c, b);
        let plain = both.over(shape, false);
        let theirs = plain.is_some_and(|unit| sets.iter().all(|(_, set)| oracle::is_unit(&unit, set)));
        let matches = ours.matches(&both.unit) == Ok(true);
        assert_eq!(matches, theirs, "{c} {b} {:?} {:?}", both.unit, ours.steps());
        *(if matches { &mut tally.matches } else { &mut tally.differs }) += 1;
    }
    control(random, &ours, &sets);
}

/// Where there is a closed form, its guards select exactly the sets.
fn guards(nest: &Nest, tally: &mut Tally) {
    let tiling = match Tiling::of(nest) {
        Ok(tiling) => tiling,
        Err(NoClosedForm::Inexact(..)) => {
            tally.inexact += 1;
            return;
        }
        Err(other) => panic!("the loop stands: {other:?} {:?}", nest.steps()),
    };
    let mut selected: Vec<(Vec<u64>, u64)> = Vec::new();
    for thread in 0..nest.shape().threads() {
        selected.extend(tiling.select(thread).map(|values| (values, thread)));
    }
    let mut members: Vec<(Vec<u64>, u64)> = Vec::new();
    for instance in nest.instances() {
        assert_eq!(tiling.threads(&instance.values), instance.threads, "{:?}", nest.steps());
        members.extend(instance.threads.iter().map(|t| (instance.values.clone(), t)));
    }
    members.sort_by_key(|m| m.1);
    assert_eq!(selected, members, "{:?}", nest.steps());
}

/// Uniform control by its words: in each collective of the outer loops all threads pass, or none.
fn control(random: &mut Random, nest: &Nest, sets: &[(Vec<u64>, Vec<bool>)]) {
    let depth = random.below(nest.steps().len() + 1);
    let (at, bound) = (random.below(nest.steps().len() + 1), random.below(5) as u64);
    let holds = |values: &[u64]| values.get(at).is_none_or(|v| *v < bound);
    let mut groups: Vec<(Vec<u64>, Vec<bool>)> = Vec::new();
    // The sets of the outer loops: their own iterations, whoever runs the inner ones.
    let outer = Nest::of(nest.shape(), nest.steps()[..depth].iter().map(|s| &s.bind)).unwrap();
    for instance in outer.instances() {
        let passes = |t: u64| {
            sets.iter().any(|(values, set)| values.starts_with(&instance.values) && set[t as usize] && holds(values))
        };
        groups.push((instance.values.clone(), instance.threads.iter().map(passes).collect()));
    }
    let theirs = groups.iter().all(|(_, passing)| passing.iter().all(|p| *p) || passing.iter().all(|p| !*p));
    assert_eq!(uniform(nest, depth, &holds).is_ok(), theirs, "{:?} {depth} {at} {bound}", nest.steps());
}

#[test]
fn random_nests_agree_with_the_oracle() {
    let mut random = Random(7);
    let mut tally = Tally::default();
    let shapes: &[(u64, u64)] = &[
        (1, 1),
        (1, 32),
        (1, 96),
        (1, 100),
        (1, 128),
        (1, 256),
        (1, 416),
        (2, 32),
        (2, 96),
        (2, 128),
        (4, 64),
        (4, 128),
        (8, 32),
        (2, 384),
    ];
    for _ in 0..6000 {
        let (c, b) = random.of(shapes);
        one(&mut random, Shape::new(c, b).unwrap(), &mut tally);
    }
    // Each verdict is met often enough to mean something.
    assert!(tally.stands > 2500 && tally.refused > 3000, "{} {}", tally.stands, tally.refused);
    assert!(tally.matches > 1000 && tally.differs > 10_000, "{} {}", tally.matches, tally.differs);
    assert!(tally.inexact > 3, "{}", tally.inexact);
}

#[test]
fn large_launches_agree_with_the_oracle() {
    let mut random = Random(11);
    let mut tally = Tally::default();
    for _ in 0..80 {
        let (c, b) = random.of(&[(2, 1024), (4, 512), (8, 256), (1, 1024), (2, 768)]);
        one(&mut random, Shape::new(c, b).unwrap(), &mut tally);
    }
    assert!(tally.stands > 40 && tally.refused > 40, "{} {}", tally.stands, tally.refused);
}

#[test]
fn a_nest_of_all_threads_is_computed_in_milliseconds() {
    let start = Instant::now();
    let nest = super::nest(8, 256, "8 x cta > 2 x warpgroup > 4 x warp > 4 x 8 thread > 8 x thread");
    assert_eq!(nest.matches(&Unit::thread()), Ok(true));
    assert_eq!(nest.instances().len(), 2048);
    // Generous: a debug build on a busy machine.
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
}

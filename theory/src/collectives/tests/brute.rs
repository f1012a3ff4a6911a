//! Random units and nests against the oracle: no wrong accept, no wrong refusal, and what a refusal says is so; guards
//! select the sets; needs of operations; who holds arrays. Launches have up to 2,048 threads.
//! `TILEWRIGHT_COLLECTIVES=SEED,COUNT` runs other nests than CI does.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::{
    Array, BLOCK_LIMIT, Bind, HoldingFault, LoopFault, Nest, NoClosedForm, Operation, Shape, Size, Tiling, Unit,
    most_of, uniform,
};
use super::Selected;
use super::oracle::{self, Loop, State};
use crate::domain::Numbers;
use crate::random::Random;

/// Threads of the largest launches.
const THREADS: u64 = 2048;

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

/// A division that is not exact has no number: no unit.
const fn over(x: u64, y: u64) -> u64 {
    if x.is_multiple_of(y) { x / y } else { 0 }
}

/// A named unit with the numbers of its definition, or one of the kernel's own.
fn any_unit(random: &mut Random, c: u64, b: u64) -> Both {
    let n = random.of(&[1, 1, 1, 2, 3, 4, 5, 8, 16]);
    let s = random.of(&[1u64, 2, 4, 8, 16, 32, 64]);
    let k = random.of(&[1u64, 2, 8]).min(s);
    let scaled = |unit: Unit| unit.scaled(n).unwrap();
    let both =
        |unit: Unit, domain: &[u64], boxes: &[u64]| Both { unit, domain: domain.to_vec(), boxes: boxes.to_vec() };
    match random.below(22) {
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
        15 => both(Unit::agnostic_warps(), &[c, over(b, 32), 32], &[1, 0, 32]),
        16 => both(Unit::standalone_thread().scaled(n).unwrap(), &[1], &[n]),
        17 | 18 => small_unit(random),
        _ => own_unit(random, c, b),
    }
}

/// A dimension: the extent and the box, each as it is written and as a number.
type Dim = ((Size, u64), (Option<Size>, u64));

fn raw(dims: &[Dim]) -> Both {
    let (domain, boxes): (Vec<_>, Vec<_>) = dims.iter().copied().unzip();
    let unit = Unit::raw(
        "raw",
        &domain.iter().map(|d| d.0).collect::<Vec<_>>(),
        &boxes.iter().map(|b| b.0).collect::<Vec<_>>(),
    );
    Both {
        unit: unit.unwrap(),
        domain: domain.iter().map(|d| d.1).collect(),
        boxes: boxes.iter().map(|b| b.1).collect(),
    }
}

/// A unit of numbers alone, a part of the launch.
fn small_unit(random: &mut Random) -> Both {
    let dims = (0..=random.below(3)).map(|_| {
        let d = random.of(&[1u64, 2, 3, 4, 6, 8, 12, 16, 32]);
        let part = if random.below(6) == 0 { 0 } else { 1 + random.below(d as usize) as u64 };
        ((Size::of(d), d), ((part > 0).then(|| Size::of(part)), part))
    });
    raw(&dims.collect::<Vec<_>>())
}

/// A unit over `cluster`, `block` and parts of both, in any order, with boxes of every kind.
fn own_unit(random: &mut Random, c: u64, b: u64) -> Both {
    let number = |x: u64| (Size::of(x), x);
    let mut domain = Vec::new();
    let k = random.of(&[2u64, 3, 4, 8, 16, 32]);
    match random.below(4) {
        0 => domain.push((Size::BLOCK, b)),
        1 => domain.extend([(Size::BLOCK.over(k).unwrap(), over(b, k)), number(k)]),
        2 => domain.extend([number(k), (Size::BLOCK.over(k).unwrap(), over(b, k))]),
        _ => domain.push((Size::BLOCK.over(k).unwrap(), over(b, k))),
    }
    match random.below(4) {
        0 => domain.insert(0, (Size::CLUSTER, c)),
        1 => domain.push((Size::CLUSTER, c)),
        2 => domain.splice(0..0, [(Size::CLUSTER.over(2).unwrap(), over(c, 2)), number(2)]).for_each(drop),
        _ => {}
    }
    let mut dims = Vec::new();
    for (extent, value) in domain {
        let size = |part: u64| (Some(Size::of(part)), part);
        dims.push((
            (extent, value),
            match random.below(8) {
                0 | 1 => (Some(extent), value),
                2 | 3 => size(1),
                4 => (None, 0),
                5 => size(1 + random.below(value.max(1) as usize) as u64),
                6 => size(random.of(&[1, 2, 4, 8, 16, 32])),
                _ => (extent.over(2), over(value, 2)),
            },
        ));
    }
    // A box without a value is no unit, and not one of any amount.
    let broken = dims.iter().any(|(_, (size, value))| size.is_some() && *value == 0);
    let mut both = raw(&dims);
    if broken {
        both.domain = vec![0];
        both.boxes = vec![0];
    }
    both
}

/// An operation with its unit by the numbers of the machine.
fn any_operation(random: &mut Random, c: u64, b: u64) -> (Operation, Vec<u64>, Vec<u64>) {
    let (blocks, stride) = (random.of(&[1u64, 2, 4]), random.of(&[1u64, 2, 4]));
    let distance = random.of(&[1u64, 2, 4, 8, 16]);
    let warp = (vec![b], vec![32]);
    let (operation, (domain, boxes)) = match random.below(16) {
        0 => (Operation::Store, (vec![b], vec![1])),
        1 => (Operation::CopyAsync, (vec![b], vec![1])),
        2 => (Operation::LoadTile, warp),
        3 | 4 => {
            (Operation::LoadTileMulticast { blocks, stride }, (vec![over(c, stride), stride, b], vec![blocks, 1, 32]))
        }
        5 => (Operation::LoadMatrix, warp),
        6 => (Operation::Wgmma, (vec![b], vec![128])),
        7 => (Operation::SetRegisters, (vec![b], vec![128])),
        8 => (Operation::Shuffle, warp),
        9 | 10 => (Operation::ShuffleXor { distance }, (vec![over(b, distance), distance], vec![2, 1])),
        11 => (Operation::SyncWarpgroup, (vec![b], vec![128])),
        12 => (Operation::SyncBlock, (vec![c, b], vec![1, b])),
        13 => (Operation::SyncCluster, (vec![c, b], vec![c, b])),
        14 => (Operation::WaitBarrier, (vec![c, b], vec![1, 0])),
        _ => (Operation::SyncWarps, (vec![c, over(b, 32), 32], vec![1, 0, 32])),
    };
    (operation, domain, boxes)
}

#[derive(Default)]
struct Tally {
    stands: u32,
    refused: BTreeMap<&'static str, u32>,
    /// Nests of the largest launches, and those of more than one loop.
    large: (u32, u32),
    matches: u32,
    differs: u32,
    operations: (u32, u32),
    /// Nests that stand and have no closed form.
    inexact: u32,
    held: u32,
    not_held: BTreeMap<&'static str, u32>,
}

/// What a refused loop says of itself, by trying it.
fn refusal(nest: &Nest, bind: &Bind, fault: &LoopFault) -> &'static str {
    let stands = |low, high, tiles| nest.inside(&Bind { low, high, tiles, ..bind.clone() }).is_ok();
    match fault {
        LoopFault::Range { .. } => "range",
        LoopFault::Unit(_) => "unit",
        LoopFault::Pitches { large, small } => {
            assert!(large > small && large % small != 0, "{bind:?}");
            "pitches"
        }
        LoopFault::Uneven { part, pitch } => {
            assert!(part > pitch && part % pitch != 0, "{bind:?}");
            "uneven"
        }
        LoopFault::NotABox { threads, extents, .. } => {
            assert!(super::super::types::coordinates(extents, threads).is_none(), "{bind:?}");
            assert!(!stands(0, 1, 1), "{bind:?}");
            "no box"
        }
        LoopFault::TooMany { asked, most } => {
            assert_eq!(*asked, bind.high);
            assert!(*most < *asked && !stands(0, most + 1, most + 1), "{bind:?}");
            assert!(*most == 0 || stands(0, *most, *most), "{bind:?}");
            "too many"
        }
        LoopFault::Already { .. } => {
            assert!(stands(0, 1, 1) && !stands(0, 2, 2) && !stands(1, 2, 1), "{bind:?}");
            "already"
        }
        LoopFault::Ambiguous { pitches, .. } => {
            assert!(pitches.len() > 1 && !stands(0, 1, 1), "{bind:?}");
            "ambiguous"
        }
    }
}

/// One random nest, loop by loop.
fn one(random: &mut Random, shape: Shape, tally: &mut Tally) {
    let (c, b) = (shape.cluster(), shape.block());
    let mut ours = Nest::top(shape);
    let mut theirs = State::top(c, b);
    for _ in 0..1 + random.below(6) {
        let exists = |both: &Both| both.over(shape, true).is_some();
        let mut both = any_unit(random, c, b);
        // Some of those that no such launch has, and mostly others.
        while !exists(&both) && random.below(12) > 0 {
            both = any_unit(random, c, b);
        }
        let low = if random.below(4) == 0 { random.below(4) as u64 } else { 0 };
        let mut high = low + random.of(&[1, 1, 2, 2, 3, 4, 5, 8, 16, 32, 64]);
        if random.below(2) == 0 {
            // As many as there are, or one more, so that loops of large launches are not all refused or short.
            let binds: Vec<Bind> = ours.steps().iter().map(|s| s.bind.clone()).collect();
            let most = most_of(shape, &binds, &both.unit).map_or(1, |bind| bind.high);
            high = (most + u64::from(random.below(8) == 0)).max(low + 1);
        }
        let length = high - low;
        let tiles = match random.below(6) {
            0 => 1,
            1 => (1..=length).rev().find(|n| length.is_multiple_of(*n) && *n <= length / 2).unwrap_or(1),
            2 if random.below(2) == 0 => random.of(&[1, 2, 3, 4]),
            _ => length,
        };
        let bind = Bind { unit: both.unit.clone(), low, high, tiles };
        let next = ours.inside(&bind);
        let plain = both.over(shape, true);
        let found = plain.and_then(|unit| theirs.inside(&Loop { unit, low, high, tiles }));
        assert_eq!(next.is_ok(), found.is_some(), "{c} {b} {bind:?}\n{:?}\n{:?}", ours.steps(), next.err());
        let (next, found) = match (next, found) {
            (Ok(next), Some(found)) => (next, found),
            (Err(fault), _) => {
                *tally.refused.entry(refusal(&ours, &bind, &fault)).or_default() += 1;
                continue;
            }
            _ => unreachable!(),
        };
        tally.stands += 1;
        (ours, theirs) = (next, found);
        assert_eq!(ours.instances().len(), theirs.sets.len());
        for (instance, (values, set)) in ours.instances().iter().zip(&theirs.sets) {
            let threads: Vec<u64> = instance.threads.iter().collect();
            assert_eq!((&instance.values, &threads), (values, set), "{:?}", ours.steps());
        }
        partition(&ours);
        guards(&ours, tally);
    }
    let is_large = shape.threads() == THREADS && !ours.steps().is_empty();
    tally.large.0 += u32::from(is_large);
    tally.large.1 += u32::from(is_large && ours.steps().len() > 1);
    for _ in 0..6 {
        let both = any_unit(random, c, b);
        let theirs = needs(&theirs, both.over(shape, false));
        let matches = ours.matches(&both.unit) == Ok(true);
        assert_eq!(matches, theirs, "{c} {b} {:?} {:?}", both.unit, ours.steps());
        *(if matches { &mut tally.matches } else { &mut tally.differs }) += 1;
    }
    for _ in 0..4 {
        let (operation, domain, boxes) = any_operation(random, c, b);
        let theirs = needs(&theirs, oracle::over(&domain, &boxes, shape.threads(), false));
        let matches = operation.demand().unit.is_some_and(|unit| ours.matches(&unit) == Ok(true));
        assert_eq!(matches, theirs, "{c} {b} {operation:?} {:?}", ours.steps());
        *(if matches { &mut tally.operations.0 } else { &mut tally.operations.1 }) += 1;
    }
    control(random, &ours);
    holding(random, &ours, &theirs, tally);
}

/// Whether every iteration is what is needed: by the definition, and, where amounts are not free, by a list of all sets
/// that are.
fn needs(place: &State, unit: Option<oracle::Plain>) -> bool {
    let Some(unit) = unit else { return false };
    let by_definition = place.sets.iter().all(|(_, set)| oracle::is_unit(&unit, set));
    if let Some(all) = oracle::units(&unit) {
        let one_of = place.sets.iter().all(|(_, set)| oracle::is_one_of(&all, set));
        assert_eq!(by_definition, one_of, "{unit:?}");
    }
    by_definition
}

/// Iterations share no thread, are as many threads each, and as far apart as the loop says; what is idle is the rest.
fn partition(nest: &Nest) {
    let step = nest.steps().last().expect("a loop");
    let mut runs = vec![0u32; nest.shape().threads() as usize];
    for instance in nest.instances() {
        assert_eq!(instance.threads.count(), nest.first().count(), "{:?}", nest.steps());
        instance.threads.iter().for_each(|t| runs[t as usize] += 1);
    }
    assert!(runs.iter().all(|n| *n <= 1), "{:?}", nest.steps());
    assert_eq!(nest.idle().count(), runs.iter().filter(|n| **n == 0).count() as u64);
    for two in nest.instances().windows(2) {
        if two[0].values[..two[0].values.len() - 1] == two[1].values[..two[1].values.len() - 1] {
            let apart = two[1].threads.first().unwrap() - two[0].threads.first().unwrap();
            assert_eq!(apart, step.pitch, "{:?}", nest.steps());
        }
    }
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
    let guards = Selected::new(&tiling);
    for thread in 0..nest.shape().threads() {
        selected.extend(guards.by(thread).map(|values| (values, thread)));
    }
    let mut members: Vec<(Vec<u64>, u64)> = Vec::new();
    for instance in nest.instances() {
        let value = |step: usize| i128::from(instance.values[step]);
        let first = tiling.layout().place(&mut Numbers(&[]), (), &value);
        assert_eq!(Some(first), instance.threads.first().map(i128::from), "{:?}", nest.steps());
        members.extend(instance.threads.iter().map(|t| (instance.values.clone(), t)));
    }
    members.sort_by_key(|m| m.1);
    assert_eq!(selected, members, "{:?}", nest.steps());
}

/// Uniform control by its words: in each collective of the outer loops all threads pass, or none.
fn control(random: &mut Random, nest: &Nest) {
    let depth = random.below(nest.steps().len() + 1);
    let (at, bound) = (random.below(nest.steps().len() + 1), random.below(5) as u64);
    let holds = |values: &[u64]| values.get(at).is_none_or(|v| *v < bound);
    // Which threads come there and pass.
    let mut passes = vec![false; nest.shape().threads() as usize];
    for instance in nest.instances().iter().filter(|i| holds(&i.values)) {
        instance.threads.iter().for_each(|t| passes[t as usize] = true);
    }
    let outer = Nest::of(nest.shape(), nest.steps()[..depth].iter().map(|s| &s.bind)).unwrap();
    let theirs = outer.instances().iter().all(|instance| {
        let passing = instance.threads.iter().filter(|t| passes[*t as usize]).count() as u64;
        passing == 0 || passing == instance.threads.count()
    });
    assert_eq!(uniform(nest, depth, &holds).is_ok(), theirs, "{:?} {depth} {at} {bound}", nest.steps());
}

/// Arrays whose elements threads, warps or blocks hold, by listing all of these units.
#[expect(clippy::too_many_lines, reason = "one draw, listed and compared in steps")]
fn holding(random: &mut Random, nest: &Nest, place: &State, tally: &mut Tally) {
    let shape = nest.shape();
    let (c, b) = (shape.cluster(), shape.block());
    let mut natives = [
        (Unit::thread(), vec![b], vec![1]),
        (Unit::warp(), vec![b], vec![32]),
        (Unit::thread().scaled(8).unwrap(), vec![b], vec![8]),
        (Unit::quadpair(), vec![over(b, 16), 16], vec![2, 4]),
        (Unit::cta(), vec![c * b], vec![b]),
    ];
    let drawn = random.below(natives.len());
    natives.rotate_left(drawn);
    // Mostly one that the place is inside of.
    let listed = |native: &(Unit, Vec<u64>, Vec<u64>)| {
        let plain = oracle::over(&native.1, &native.2, shape.threads(), false)?;
        oracle::units(&plain).map(|units| (plain, units))
    };
    let is_inside = |native: &&(Unit, Vec<u64>, Vec<u64>)| {
        let single = |set| listed(native).is_some_and(|(plain, units)| oracle::whole_and_single(&plain, &units, set).1);
        place.sets.iter().take(2).all(|(_, set)| single(set))
    };
    let chosen = natives.iter().find(is_inside).filter(|_| random.below(6) > 0).unwrap_or(&natives[0]);
    let native = chosen.0.clone();
    let depth = random.below(nest.steps().len() + 1);
    let declared = Nest::of(shape, nest.steps()[..depth].iter().map(|s| &s.bind)).unwrap();
    let Some((plain, units)) = listed(chosen) else {
        let array = Array { declared: &declared, native: &native, extents: &[] };
        assert!(matches!(array.used(nest, &[]), Err(HoldingFault::Unit(_))), "{native:?} {shape:?}");
        return;
    };
    // Loops some of whose iterations are in other units, all other loops being where they are.
    let unit_of: BTreeMap<&[u64], u64> =
        place.sets.iter().map(|(values, set)| (&values[..], units[set[0] as usize])).collect();
    let differs = |step: &usize| {
        unit_of.iter().any(|(values, unit)| {
            let mut other = values.to_vec();
            other[*step] = 0;
            unit_of[&other[..]] != *unit
        })
    };
    let loops: Vec<usize> = (depth..nest.steps().len()).filter(differs).collect();
    let mut indices: Vec<Option<usize>> = loops.iter().copied().map(Some).collect();
    let mut extents: Vec<u64> = loops.iter().map(|step| nest.steps()[*step].bind.tiles).collect();
    let spoiled = match random.below(8) {
        0 if !indices.is_empty() => indices.pop().is_some(),
        1 if indices.len() > 1 => {
            indices.swap(0, 1);
            true
        }
        2 if !extents.is_empty() => {
            extents[0] += 1;
            true
        }
        3 => {
            // What is not distributed comes after.
            indices.push(None);
            extents.push(4);
            false
        }
        _ => false,
    };
    let array = Array { declared: &declared, native: &native, extents: &extents };
    let found = array.used(nest, &indices);
    let members =
        |nest: &Nest| nest.instances().iter().map(|i| i.threads.iter().collect::<Vec<_>>()).collect::<Vec<_>>();
    let kind = if members(&declared).iter().any(|set| !oracle::whole_and_single(&plain, &units, set).0) {
        "missing threads"
    } else if place.sets.iter().any(|(_, set)| !oracle::whole_and_single(&plain, &units, set).1) {
        "missing subdivision"
    } else if spoiled {
        "indices"
    } else {
        // One unit for each element, and one element for each unit; the next one as far as the loop says.
        let mut of: BTreeMap<(Vec<u64>, Vec<u64>), u64> = BTreeMap::new();
        let first = |unit: u64| units.iter().position(|u| *u == unit).unwrap() as u64;
        let mut even = true;
        for (values, unit) in &unit_of {
            let at: Vec<u64> = loops.iter().map(|step| values[*step]).collect();
            let others = (0..values.len()).filter(|n| !loops.contains(n)).map(|n| values[n]).collect::<Vec<_>>();
            of.insert((others, at), first(*unit));
        }
        for ((others, at), unit) in &of {
            let origin = of[&(others.clone(), vec![0; at.len()])];
            let moved: u64 = loops.iter().zip(at).map(|(step, v)| nest.steps()[*step].pitch * v).sum();
            even &= *unit == origin + moved;
        }
        if even { "held" } else { "uneven" }
    };
    let ours = match &found {
        Ok(_) => "held",
        Err(HoldingFault::MissingThreads { .. }) => "missing threads",
        Err(HoldingFault::MissingSubdivision { .. }) => "missing subdivision",
        Err(HoldingFault::Indices { .. } | HoldingFault::Extent { .. }) => "indices",
        Err(HoldingFault::Uneven { .. }) => "uneven",
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(ours, kind, "{shape:?} {native:?} {depth} {indices:?} {extents:?}\n{:?}\n{found:?}", nest.steps());
    if let Ok(held) = found {
        // No two elements are in one unit.
        let unit = units[place.sets[0].1[0] as usize];
        let all: Vec<u64> = (0..shape.threads()).filter(|t| units[*t as usize] == unit).collect();
        assert_eq!(held.first.iter().collect::<Vec<_>>(), all);
        let mut seen = BTreeMap::new();
        for (values, unit) in &unit_of {
            let at: Vec<u64> = loops.iter().map(|step| values[*step]).collect();
            let other = seen.entry((&values[..depth], *unit)).or_insert_with(|| at.clone());
            assert_eq!(*other, at, "{native:?} {:?}", nest.steps());
        }
        tally.held += 1;
    } else {
        *tally.not_held.entry(kind).or_default() += 1;
    }
}

/// A launch: half of them as large as they get.
fn any_shape(random: &mut Random) -> Shape {
    let c = random.of(&[1u64, 1, 2, 2, 4, 8]);
    let most = (THREADS / c).min(BLOCK_LIMIT);
    let b = match random.below(8) {
        0..=2 => most,
        3 => 32 * (1 + random.below((most / 32) as usize) as u64),
        4 => 1 + random.below(most as usize) as u64,
        _ => random.of(&[32, 64, 96, 128, 128, 256]).min(most),
    };
    Shape::new(c, b).unwrap()
}

fn campaign(seed: u64, count: u32) -> Tally {
    let mut random = Random(seed);
    let mut tally = Tally::default();
    for _ in 0..count {
        let shape = any_shape(&mut random);
        one(&mut random, shape, &mut tally);
    }
    tally
}

#[test]
fn random_nests_agree_with_the_oracle() {
    let ours = std::env::var("TILEWRIGHT_COLLECTIVES").ok();
    let number = |text: &str| text.trim().parse().ok();
    let other = ours.as_deref().and_then(|text| text.split_once(',')).and_then(|(a, b)| Some((number(a)?, number(b)?)));
    let (seed, count) = other.unwrap_or((7, 2500));
    let tally = campaign(seed, count as u32);
    // Each verdict is met often enough to mean something.
    let Tally { stands, refused, large, matches, differs, operations, inexact, held, not_held } = tally;
    let report =
        format!("{stands} {refused:?} {large:?} {matches} {differs} {operations:?} {inexact} {held} {not_held:?}");
    println!("{report}");
    let count = count as u32;
    assert!(stands > count && refused.len() == 8 && refused.values().all(|n| *n > count / 200), "{report}");
    assert!(large.0 > count / 5 && large.1 > count / 10, "{report}");
    assert!(matches > count / 2 && differs > 2 * count && operations.0 > count / 4, "{report}");
    assert!(inexact > count / 1000 && held > count / 20 && not_held.len() == 4, "{report}");
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

//! Random launches with roles: which there are, by the rules one after another on a list of warps; and who runs a place
//! in a role, as a range of thread numbers.

use std::collections::BTreeSet;

use super::super::{Bind, Launch, LaunchFault, LaunchRequest, LoopFault, Place, RoleFault, RoleRequest, Unit};
use crate::random::Random;

fn any_request(random: &mut Random) -> LaunchRequest {
    let registers = |random: &mut Random| match random.below(4) {
        0 => Some(random.of(&[24, 32, 40, 56, 96, 128, 168, 232, 240])),
        1 if random.below(6) == 0 => Some(random.below(270) as u64),
        _ => None,
    };
    // Some launches give registers to warpgroups, as they must be.
    let aligned = random.below(2) == 0;
    let roles = (0..random.below(6)).map(|n| RoleRequest {
        name: format!("r{}", if random.below(20) == 0 { 0 } else { n }),
        warps: if aligned { random.of(&[4, 4, 8, 12]) } else { random.below(10) as u64 },
        registers: registers(random),
    });
    let roles: Vec<RoleRequest> = roles.collect();
    LaunchRequest {
        cluster: (random.below(2) == 0).then(|| random.of(&[1, 2, 3, 4, 8, 16])),
        threads: (random.below(20) < if roles.is_empty() { 16 } else { 1 })
            .then(|| random.of(&[0, 32, 100, 128, 1000, 1024, 1056])),
        roles,
        blocks_per_multiprocessor: (random.below(4) == 0).then(|| random.of(&[1, 2, 3])),
    }
}

/// Whether there is such a launch, and the first thread and length of each role.
fn roles_of(request: &LaunchRequest) -> Option<Vec<(u64, u64)>> {
    let names: Vec<&String> = request.roles.iter().map(|r| &r.name).collect();
    let twice = (0..names.len()).any(|n| names[..n].contains(&names[n]));
    let mut warps: Vec<usize> = Vec::new();
    for (n, role) in request.roles.iter().enumerate() {
        warps.extend(std::iter::repeat_n(n, role.warps as usize));
    }
    let threads = match request.threads {
        Some(threads) if request.roles.is_empty() => threads,
        Some(_) => return None,
        None if request.roles.is_empty() => return None,
        None => warps.len() as u64 * 32,
    };
    let cluster = request.cluster.unwrap_or(1);
    let fits = (32..=1024).contains(&threads) && threads.is_multiple_of(32) && [1, 2, 4, 8].contains(&cluster);
    if !fits || twice || request.roles.iter().any(|r| r.warps == 0) {
        return None;
    }
    if request.roles.iter().any(|r| r.registers.is_some()) {
        // 64 Ki registers for so many blocks, 256 a thread at most, in steps of 8; each warpgroup changes them as one.
        let share = 65_536 / (threads * request.blocks_per_multiprocessor.unwrap_or(1));
        let at_launch = (share - share % 8).min(256);
        let has: Vec<u64> = warps.iter().map(|n| request.roles[*n].registers.unwrap_or(at_launch)).collect();
        let named = request.roles.iter().filter_map(|r| r.registers);
        let possible = named.clone().all(|n| (24..=240).contains(&n) && n.is_multiple_of(8));
        let as_one = warps.len().is_multiple_of(4) && has.chunks(4).all(|four| four.iter().all(|n| *n == four[0]));
        if !possible || !as_one || 32 * has.iter().sum::<u64>() > threads * at_launch {
            return None;
        }
    }
    let first = |n: usize| warps.iter().position(|w| *w == n).unwrap_or(0) as u64 * 32;
    Some(request.roles.iter().enumerate().map(|(n, role)| (first(n), role.warps * 32)).collect())
}

#[test]
fn random_launches_are_those_that_the_rules_admit() {
    let mut random = Random(5);
    let (mut stand, mut kinds) = (0, BTreeSet::new());
    for _ in 0..20_000 {
        let request = any_request(&mut random);
        let (ours, theirs) = (Launch::new(&request), roles_of(&request));
        assert_eq!(ours.is_ok(), theirs.is_some(), "{request:?}\n{ours:?}");
        match (ours, theirs) {
            (Ok(launch), Some(roles)) => {
                stand += 1;
                let found: Vec<(u64, u64)> = launch.roles.iter().map(|r| (r.first * 32, r.warps * 32)).collect();
                assert_eq!(found, roles);
            }
            (Err(fault), _) => {
                kinds.insert(format!("{fault:?}").split([' ', '{']).next().unwrap().to_owned());
                assert!(!matches!(fault, LaunchFault::Pool { asked, pool, .. } if asked <= pool));
            }
            _ => unreachable!(),
        }
    }
    assert!(stand > 3000, "{stand}");
    // Each fault occurs.
    assert_eq!(kinds.len(), 11);
}

/// Threads of a place: in each of these blocks, from one on, so many.
fn threads(blocks: &[u64], block: u64, first: u64, count: u64) -> Vec<u64> {
    blocks.iter().flat_map(|c| c * block + first..c * block + first + count).collect()
}

#[test]
fn random_roles_are_run_by_ranges_of_threads() {
    let mut random = Random(6);
    let (mut stand, mut refused) = (0, 0);
    for _ in 0..6000 {
        let roles: Vec<RoleRequest> = (0..1 + random.below(4))
            .map(|n| RoleRequest { name: format!("r{n}"), warps: 1 + random.below(8) as u64, registers: None })
            .collect();
        let cluster = random.of(&[1u64, 2, 4]);
        let request = LaunchRequest { cluster: Some(cluster), roles: roles.clone(), ..LaunchRequest::default() };
        let launch = Launch::new(&request).unwrap();
        let block = launch.shape.block();
        let mut place = Place::top(&launch);
        // The first iteration of a loop over blocks is the first block.
        let mut blocks: Vec<u64> = (0..cluster).collect();
        if random.below(2) == 0 {
            place = place.inside(&Bind::each(cluster, Unit::cta())).unwrap();
            blocks.truncate(1);
        }
        let at = random.below(roles.len());
        let (name, own) = (format!("r{at}"), roles[at].warps);
        let first: u64 = roles[..at].iter().map(|r| r.warps).sum();
        let range = (random.below(2) == 0).then(|| (random.below(8) as u64, random.below(10) as u64));
        let (low, high) = range.unwrap_or((0, own));
        let found = place.in_role(&name, range);
        assert_eq!(found.is_ok(), low < high && high <= own, "{roles:?} {name} {range:?} {found:?}");
        let Ok(place) = found else {
            refused += 1;
            continue;
        };
        let is_run = |place: &Place<'_>, first: u64, count: u64| {
            let expected = threads(&blocks, block, first * 32, count * 32);
            assert_eq!(place.nest().first().iter().collect::<Vec<_>>(), expected, "{roles:?} {name} {range:?}");
        };
        is_run(&place, first + low, high - low);
        // Ranges inside count from the first warp of the one around.
        let (a, b) = (random.below(5) as u64, random.below(7) as u64);
        let width = high - low;
        let fits = a < b && b <= width && (width > 1 || (a, b) == (0, 1));
        match place.warps(a, b) {
            Ok(inner) => {
                assert!(fits, "{width} {a} {b}");
                is_run(&inner, first + low + a, b - a);
            }
            Err(fault) => {
                assert!(!fits && matches!(fault, RoleFault::Loop(_)), "{width} {a} {b} {fault:?}");
                refused += 1;
            }
        }
        // As many whole units as there are, wherever the role starts; one more is refused.
        let (unit, size) =
            random.of(&[(Unit::warp(), 1), (Unit::warpgroup(), 4), (Unit::warp().scaled(2).unwrap(), 2)]);
        let most = width / size;
        if block / 32 < size || width == size || most == 0 {
            continue;
        }
        let each = |n| place.inside(&Bind::each(n, unit.clone()));
        is_run(&each(most).unwrap(), first + low, size);
        assert!(matches!(each(most + 1), Err(LoopFault::TooMany { most: found, .. }) if found == most));
        stand += 1;
    }
    assert!(stand > 1000 && refused > 1000, "{stand} {refused}");
}

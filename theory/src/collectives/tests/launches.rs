//! Launches, roles and registers; the cases that were put to a whole compiler.

use tilewright_kernel::target::registers_at_launch;

use super::super::{
    Bind, Difference, Fix, Launch, LaunchFault, LaunchRequest, LoopFault, Operation, Place, Refusal, RoleFault,
    RoleRequest, Unit, barrier, check,
};
use super::{nest, unit};

fn role(name: &str, warps: u64, registers: Option<u64>) -> RoleRequest {
    RoleRequest { name: name.to_owned(), warps, registers }
}

fn of_roles(cluster: u64, roles: &[RoleRequest]) -> Result<Launch, LaunchFault> {
    Launch::new(&LaunchRequest { cluster: Some(cluster), roles: roles.to_vec(), ..LaunchRequest::default() })
}

fn of_threads(cluster: u64, threads: u64) -> Result<Launch, LaunchFault> {
    Launch::new(&LaunchRequest { cluster: Some(cluster), threads: Some(threads), ..LaunchRequest::default() })
}

/// Producer, spare and consumer: 384 threads, of which 128 to 383 consume.
fn three_roles(cluster: u64) -> Launch {
    of_roles(cluster, &[role("producer", 1, None), role("spare", 3, None), role("consumer", 8, None)]).unwrap()
}

fn each(tiles: u64, name: &str) -> Bind {
    Bind::each(tiles, unit(name))
}

#[test]
fn roles_are_ranges_of_warps() {
    let launch = three_roles(1);
    let top = Place::top(&launch);
    let consumer = top.in_role("consumer", None).unwrap();
    assert_eq!(consumer.nest().first().to_string(), "128-383");
    // N01, N02.
    let group = consumer.inside(&each(2, "warpgroup")).unwrap();
    assert_eq!(check(group.nest(), &unit("warpgroup")), Ok(()));
    assert_eq!(check(top.in_role("producer", None).unwrap().nest(), &unit("warp")), Ok(()));
    // N04: 192 to 319.
    let between = top.in_role("consumer", Some((2, 6))).unwrap();
    assert_eq!(between.nest().first().to_string(), "192-319");
    assert!(check(between.nest(), &unit("warpgroup")).is_err());
    // N05: the same in clusters.
    let launch = three_roles(2);
    let both = Place::top(&launch).inside(&each(2, "cta")).unwrap();
    let group = both.in_role("consumer", None).unwrap().inside(&each(2, "warpgroup")).unwrap();
    assert_eq!(check(group.nest(), &unit("warpgroup")), Ok(()));
}

#[test]
fn roles_stand_where_blocks_are_whole() {
    let launch = three_roles(1);
    let top = Place::top(&launch);
    let inside = |place: Result<Place<'_>, RoleFault>| place.map(|p| p.nest().first().to_string());
    // N07, N08, N10, N11.
    let group = top.inside(&each(3, "warpgroup")).unwrap();
    let threads = group.nest().first().clone();
    assert_eq!(inside(group.in_role("producer", None)), Err(RoleFault::Subdivided { threads }));
    let beyond = RoleFault::TooMany { role: 2, low: 0, asked: 9, warps: 8 };
    assert_eq!(inside(top.in_role("consumer", Some((0, 9)))), Err(beyond));
    assert_eq!(inside(top.warps(0, 4)), Err(RoleFault::Unnamed));
    let consumer = top.in_role("consumer", None).unwrap();
    assert_eq!(inside(consumer.in_role("producer", None)), Err(RoleFault::Inside { around: 2, role: 0 }));
    assert_eq!(inside(top.in_role("other", None)), Err(RoleFault::Unknown { name: "other".to_owned() }));
    // Ranges inside a role count from its first warp.
    assert_eq!(inside(consumer.warps(2, 4)), Ok("192-255".to_owned()));
    // N25: a range of warps inside warpgroups.
    let launch = of_threads(1, 256).unwrap();
    let groups = Place::top(&launch).inside(&each(2, "warpgroup")).unwrap();
    assert_eq!(groups.warps(1, 2).unwrap().nest().show(&["g", "w"]), "128g+[32,64)");
}

#[test]
fn neighbours_of_the_roles() {
    let launch = three_roles(1);
    let top = Place::top(&launch);
    // One warp is no warpgroup, and three are none either.
    for name in ["producer", "spare"] {
        let place = top.in_role(name, None).unwrap();
        assert!(check(place.nest(), &unit("warpgroup")).is_err(), "{name}");
        assert!(matches!(place.inside(&each(1, "warpgroup")), Err(LoopFault::TooMany { most: 0, .. })), "{name}");
    }
    let Err(Refusal::Mismatch(found)) = check(top.in_role("spare", None).unwrap().nest(), &unit("3 warp")) else {
        panic!("they start at warp 1")
    };
    assert_eq!((found.difference, found.threads.to_string()), (Difference::Alignment, "32-127".to_owned()));
    let spare = top.in_role("spare", None).unwrap().inside(&each(3, "warp")).unwrap();
    assert_eq!(spare.nest().show(&["r", "s", "w"]), "32w+[32,64)");
    // All of a role by its numbers is the role.
    let (all, whole) = (top.in_role("consumer", Some((0, 8))).unwrap(), top.in_role("consumer", None).unwrap());
    assert_eq!(all.nest().instances(), whole.nest().instances());
    let one = top.in_role("producer", Some((0, 1))).unwrap();
    assert_eq!(one.nest().first().to_string(), "0-31");
    for (low, high) in [(3, 3), (5, 2)] {
        let fault = top.in_role("consumer", Some((low, high))).map(|_| ()).unwrap_err();
        assert!(matches!(fault, RoleFault::Loop(LoopFault::Range { .. })), "{fault:?}");
    }
    // Ranges nest, and count from the one around; the name does not change.
    let inner = top.in_role("consumer", Some((4, 8))).unwrap();
    assert_eq!(inner.nest().first().to_string(), "256-383");
    assert_eq!(check(inner.nest(), &unit("warpgroup")), Ok(()));
    assert_eq!(inner.warps(1, 3).unwrap().nest().first().to_string(), "288-351");
    assert!(matches!(inner.warps(0, 5), Err(RoleFault::Loop(LoopFault::TooMany { asked: 5, most: 4 }))));
    assert!(matches!(inner.in_role("consumer", None), Err(RoleFault::Inside { around: 2, role: 2 })));
    // In a cluster without a loop over its blocks, the role runs in all of them.
    let launch = three_roles(2);
    let both = Place::top(&launch).in_role("consumer", None).unwrap().inside(&each(2, "warpgroup")).unwrap();
    let Err(Refusal::Mismatch(found)) = check(both.nest(), &unit("warpgroup")) else { panic!("it is refused") };
    assert_eq!(
        (found.threads.to_string(), found.fix),
        ("128-255,512-639".to_owned(), Some(Fix::Insert { step: 3, binds: vec![each(2, "cta")] }))
    );
    // A loop over single blocks may stand around it, and one that takes every second block.
    let launch = three_roles(2);
    let cta = Place::top(&launch).inside(&each(2, "cta")).unwrap();
    assert!(cta.in_role("producer", None).is_ok());
    assert!(matches!(
        cta.inside(&each(12, "warp")).unwrap().in_role("producer", None),
        Err(RoleFault::Subdivided { .. })
    ));
    // With one role, or none, ranges need no name.
    let launch = of_roles(1, &[role("all", 8, None)]).unwrap();
    assert_eq!(Place::top(&launch).warps(2, 5).unwrap().nest().first().to_string(), "64-159");
    let launch = of_threads(1, 256).unwrap();
    let warp = Place::top(&launch).inside(&each(8, "warp")).unwrap();
    assert!(matches!(warp.warps(0, 2), Err(RoleFault::Loop(LoopFault::Already { asked: 2, .. }))));
}

#[test]
fn a_role_may_start_inside_a_warpgroup() {
    // N13: the second role starts at thread 224.
    let launch = of_roles(1, &[role("first", 7, None), role("second", 9, None)]).unwrap();
    let group = Place::top(&launch).in_role("second", None).unwrap().inside(&each(2, "warpgroup")).unwrap();
    assert_eq!(group.nest().first().to_string(), "224-351");
    assert!(check(group.nest(), &unit("warpgroup")).is_err());
}

#[test]
fn limits_of_launches() {
    // N14 to N17, N34, N35, and what the machine has no room for.
    assert_eq!(of_threads(1, 100), Err(LaunchFault::PartOfWarp { threads: 100 }));
    assert_eq!(of_threads(3, 128), Err(LaunchFault::Cluster { blocks: 3 }));
    let both = LaunchRequest { threads: Some(128), roles: vec![role("a", 4, None)], ..LaunchRequest::default() };
    assert_eq!(Launch::new(&both), Err(LaunchFault::ThreadsAndRoles { threads: 128, of_roles: 128 }));
    let twice = [role("a", 4, None), role("b", 4, None), role("a", 4, None)];
    assert_eq!(of_roles(1, &twice), Err(LaunchFault::SameName { first: 0, second: 2 }));
    assert_eq!(of_threads(32, 128), Err(LaunchFault::Cluster { blocks: 32 }));
    assert_eq!(of_threads(16, 128), Err(LaunchFault::Cluster { blocks: 16 }));
    assert_eq!(of_threads(1, 2048), Err(LaunchFault::Block { threads: 2048 }));
    assert_eq!(of_threads(1, 0), Err(LaunchFault::Block { threads: 0 }));
    assert_eq!(of_threads(0, 32), Err(LaunchFault::Cluster { blocks: 0 }));
    assert_eq!(Launch::new(&LaunchRequest::default()), Err(LaunchFault::NoThreads));
    assert_eq!(of_roles(1, &[role("a", 0, None)]), Err(LaunchFault::EmptyRole { role: 0 }));
    let huge = of_roles(1, &[role("a", u64::MAX, None), role("b", u64::MAX, None)]);
    assert!(matches!(huge, Err(LaunchFault::Block { .. })));
    assert!(of_threads(8, 1024).is_ok());
}

#[test]
fn registers_that_each_thread_has_at_the_launch() {
    // What the assembler was seen to give, in whole steps.
    for (threads, blocks, registers) in [(128, 1, 256), (128, 4, 128), (256, 1, 256), (256, 2, 128), (384, 1, 168)] {
        assert_eq!(registers_at_launch(threads, blocks), registers);
    }
    assert_eq!(of_threads(1, 128).unwrap().registers, 255);
    assert_eq!(registers_at_launch(1024, 1), 64);
}

#[test]
fn roles_share_the_registers_of_the_launch() {
    let two = |a, b| of_roles(1, &[role("load", 4, a), role("math", 8, b)]);
    // N20: 128 · 40 + 256 · 232 = 64512 = 384 · 168; the pool is used up.
    assert!(two(Some(40), Some(232)).is_ok());
    assert!(two(Some(24), Some(240)).is_ok());
    // N36: one step more for either.
    let beyond = |asked| Err(LaunchFault::Pool { asked, pool: 64_512, at_launch: 168 });
    assert_eq!(two(Some(48), Some(232)), beyond(128 * 48 + 256 * 232));
    assert_eq!(two(Some(40), Some(240)), beyond(128 * 40 + 256 * 240));
    // Who gives nothing back leaves nothing to take.
    assert_eq!(two(None, Some(176)), beyond(128 * 168 + 256 * 176));
    assert!(two(Some(40), None).is_ok());
    for asked in [0, 16, 20, 23, 41, 248, 256, 264] {
        assert_eq!(two(Some(asked), None), Err(LaunchFault::Registers { role: 0, asked }));
    }
    // Registers change for four warps together.
    let mixed = of_roles(1, &[role("load", 1, Some(40)), role("idle", 3, None), role("math", 8, Some(232))]);
    assert_eq!(mixed, Err(LaunchFault::MixedWarpgroup { group: 0, roles: (0, 1) }));
    assert!(of_roles(1, &[role("load", 1, Some(40)), role("idle", 3, Some(40)), role("math", 8, Some(232))]).is_ok());
    let part = of_roles(1, &[role("load", 1, Some(40)), role("math", 4, Some(40))]);
    assert_eq!(part, Err(LaunchFault::PartOfWarpgroup { threads: 160 }));
    // Two blocks on a multiprocessor have 128 each at 256 threads: 128 · 24 + 128 · 240 is more than that.
    let request = LaunchRequest {
        roles: vec![role("load", 4, Some(24)), role("math", 4, Some(240))],
        blocks_per_multiprocessor: Some(2),
        ..LaunchRequest::default()
    };
    assert_eq!(Launch::new(&request), Err(LaunchFault::Pool { asked: 33_792, pool: 32_768, at_launch: 128 }));
}

#[test]
fn barriers_of_places() {
    // N28, N30, N32; N29, which has a barrier of its own here; N33.
    assert_eq!(barrier(&nest(1, 256, "")), Some(Operation::SyncBlock));
    assert_eq!(barrier(&nest(1, 256, "8 x warp")), Some(Operation::SyncWarp));
    assert_eq!(barrier(&nest(2, 128, "")), Some(Operation::SyncCluster));
    assert_eq!(barrier(&nest(1, 256, "2 x warpgroup")), Some(Operation::SyncWarpgroup));
    assert_eq!(barrier(&nest(4, 128, "2 x 2 cta")), None);
    assert_eq!(barrier(&nest(1, 256, "W 1..5")), Some(Operation::SyncWarps));
    assert_eq!(barrier(&nest(2, 256, "2 x cta > W 1..5")), Some(Operation::SyncWarps));
    assert_eq!(barrier(&nest(2, 256, "W 1..5")), None);
    assert_eq!(barrier(&nest(1, 256, "8 x 24 thread")), None);
    assert_eq!(barrier(&nest(1, 256, "256 x thread")), None);
}

#[test]
fn trivial_loops_and_loops_without_iterations() {
    // N26, N27, N31.
    let one = nest(1, 256, "8 x warp > 1 x cta");
    assert!(check(&one, &unit("cta")).is_err());
    assert_eq!(check(&one, &unit("warp")), Ok(()));
    let launch = of_threads(1, 256).unwrap();
    assert!(Place::top(&launch).inside(&Bind::each(0, Unit::warp())).is_err());
}

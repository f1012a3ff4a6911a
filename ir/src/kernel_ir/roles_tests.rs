//! Roles in builder, printer and verifier: each rule of the verifier, broken once.

use expect_test::expect;
use tilewright_kernel::ElementType::F32;
use tilewright_kernel::algorithm::Compare;
use tilewright_kernel::info::Argument;
use tilewright_kernel::target::ARRIVAL_LIMIT;

use super::*;

/// A kernel of so many threads, in clusters of so many blocks, and what is wrong with it.
fn faults_of(threads: u32, cluster: u32, build: impl FnOnce(&mut Builder)) -> Result<Kernel, Vec<Problem>> {
    let tensor = |name: &str, written| Parameter {
        name: name.to_owned(),
        element: F32,
        kind: ParameterKind::Tensor { written },
    };
    let mut b = Builder::new(Signature {
        name: "k".to_owned(),
        parameters: vec![tensor("x", false), tensor("z", true)],
        dims: vec![Dimension { name: "N".to_owned(), range: Range::new(0, 1 << 20) }],
        maps: vec![Map { name: "m".to_owned(), rank: 1 }],
        arguments: vec![Argument::Address(0), Argument::Address(1), Argument::Dim(0), Argument::Map(0)],
        threads,
        cluster,
    });
    build(&mut b);
    let kernel = b.finish().expect("balanced");
    match verify(&kernel) {
        Ok(()) => Ok(kernel),
        Err(faults) => Err(faults.into_iter().map(|fault| fault.problem).collect()),
    }
}

fn tile() -> Buffer {
    let sharing = Sharing::Block;
    Buffer { name: "s".to_owned(), element: F32, elements: 64, alignment: 128, slots: 1, sharing }
}

fn zero(b: &mut Builder) -> ValueId {
    b.index_literal(Type::I32, 0)
}

/// The warps of a role, from one up to before another, and its registers.
type Warps = (u32, u32, Option<u32>);

/// Roles of these warps that do the same.
fn roles(b: &mut Builder, list: &[Warps], each: impl Fn(&mut Builder)) {
    b.begin_roles();
    for (n, (start, end, registers)) in list.iter().enumerate() {
        b.begin_role(&format!("r{n}"), *start..*end, *registers);
        each(b);
        b.end_role();
    }
    b.end_roles();
}

#[test]
fn roles_are_printed() {
    let kernel = faults_of(256, 2, |b| {
        let (buffer, zero, full) = (b.buffer(tile()), zero(b), b.mbarrier(1));
        let empty = b.mbarrier_of(1, 8);
        b.barrier_cluster();
        b.begin_roles();
        b.begin_role("load", 0..4, Some(40));
        b.mbarrier_wait(empty, zero, zero);
        b.bar_sync();
        b.begin_elect();
        b.mbarrier_expect_tx(full, zero, 256);
        let part = TensorPart::Tile { map: 0, start: vec![zero] };
        b.bulk_copy(BulkCopy {
            part,
            buffer,
            slot: zero,
            offset: zero,
            barrier: Some(full),
            evict: None,
            multicast: None,
        });
        b.end_elect();
        b.end_role();
        b.begin_role("math", 4..8, Some(200));
        b.mbarrier_wait(full, zero, zero);
        let x = b.load(Memory::Buffer(buffer), zero, 1, None);
        b.store(Memory::Parameter(1), zero, &x);
        let rank = b.cluster_rank();
        b.mbarrier_arrive(empty, zero, Receivers::Own);
        b.mbarrier_arrive(empty, zero, Receivers::All);
        b.mbarrier_arrive(empty, zero, Receivers::One(rank));
        b.end_role();
        b.end_roles();
        b.barrier_cluster();
    });
    expect![[r#"
        kernel k(x: f32[], mut z: f32[]; N) threads 256 clusters of 2 {
            shared s: f32[64] aligned 128
            sync cluster
            %0: index32 = rank
            role load, warps 0..4 with 40 registers {
                await barrier1 phase 0
                sync
                elect {
                    barrier0 expects 256 bytes
                    copy map m at 0 to s[0], barrier0
                }
            }
            role math, warps 4..8 with 200 registers {
                await barrier0 phase 0
                %1: f32 = s[0]
                z[0] = %1
                each warp arrives at barrier1
                each warp arrives at barrier1 of all blocks of the cluster
                each warp arrives at barrier1 of block %0 of the cluster
            }
            sync cluster
        }
    "#]]
    .assert_eq(&kernel.expect("verified").to_string());
}

/// Warps and registers that roles can have, and cannot.
#[test]
fn roles_are_whole_warps_that_do_not_overlap() {
    let one = |start, end| vec![(start, end, None)];
    let eight = (0..8).map(|n| (n, n + 1, None)).collect::<Vec<_>>();
    let cases: Vec<(&str, u32, Vec<Warps>, bool)> = vec![
        ("one", 256, one(0, 8), true),
        ("a part of the block", 256, one(2, 3), true),
        ("warps in any order", 256, vec![(4, 8, None), (0, 4, None)], true),
        ("no warp", 256, one(2, 2), false),
        ("warps that are not there", 256, one(7, 9), false),
        ("warps of two roles", 256, vec![(0, 5, None), (4, 8, None)], false),
        ("a role inside another", 256, vec![(0, 8, None), (2, 3, None)], false),
        ("a block of a part of a warp", 250, one(0, 7), false),
        ("no role", 256, Vec::new(), false),
        ("as many as there are barriers for", 256, eight[..7].to_vec(), true),
        ("more than there are barriers for", 256, eight.clone(), false),
        ("registers", 256, vec![(0, 4, Some(24)), (4, 8, Some(232))], true),
        (
            "registers of a part of a warpgroup",
            256,
            one(0, 3).into_iter().map(|r| (r.0, r.1, Some(24))).collect(),
            false,
        ),
        ("registers of parts of two warpgroups", 256, vec![(2, 6, Some(24))], false),
        ("registers that are no multiple of 8", 256, vec![(0, 4, Some(28))], false),
        ("too few registers", 256, vec![(0, 4, Some(16))], false),
        ("too many registers", 256, vec![(0, 4, Some(24)), (4, 8, Some(248))], false),
        ("more registers than the block has", 512, vec![(0, 4, Some(136))], false),
        ("as many registers as the block has", 512, vec![(0, 4, Some(136)), (4, 8, Some(120))], true),
    ];
    for (name, threads, list, holds) in cases {
        let found = faults_of(threads, 1, |b| roles(b, &list, Builder::bar_sync));
        match holds {
            true => assert!(found.is_ok(), "{name}: {found:?}"),
            false => assert_eq!(found.err(), Some(vec![Problem::BadRoles]), "{name}"),
        }
    }
}

#[test]
fn each_rule_of_roles_is_missed() {
    let two = [(0, 4, None), (4, 8, None)];
    // What one role may do.
    let inside = |cluster: u32, what: &dyn Fn(&mut Builder)| {
        let found = faults_of(256, cluster, |b| roles(b, &two[..1], what));
        found.err().map(|faults| faults[0])
    };
    assert_eq!(inside(1, &Builder::bar_sync), None);
    assert_eq!(inside(1, &Builder::bar_sync_warpgroup), None);
    assert_eq!(
        inside(1, &|b| roles(b, &[(0, 1, None)], Builder::bar_sync)),
        Some(Problem::BadRoles),
        "a role in a role"
    );
    let alone = (inside(1, &Builder::barrier_cluster), inside(2, &Builder::barrier_cluster));
    assert_eq!(alone, (Some(Problem::BadCluster(1)), None), "the cluster in a role");
    let barrier = |b: &mut Builder, arrivals| (b.mbarrier_of(1, arrivals), zero(b));
    assert_eq!(
        inside(1, &|b| {
            let (barrier, slot) = barrier(b, 4);
            b.mbarrier_arrive(barrier, slot, Receivers::Own);
        }),
        None
    );
    let told = |b: &mut Builder| {
        let (barrier, slot) = barrier(b, 4);
        b.mbarrier_arrive(barrier, slot, Receivers::All);
    };
    assert_eq!([inside(1, &told), inside(2, &told)], [Some(Problem::BadCluster(1)), None], "blocks that are not there");
    assert_eq!(
        inside(1, &|b| {
            let (barrier, slot) = barrier(b, 4);
            let (thread, n) = (b.thread_index(), b.dim(0, Type::I32));
            let first = b.index_compare(Compare::Lt, thread, n);
            b.begin_if(first);
            b.mbarrier_arrive(barrier, slot, Receivers::Own);
            b.end_if();
        }),
        Some(Problem::NotCollective),
        "a release by some threads"
    );
    assert_eq!(
        inside(1, &|b| {
            let (barrier, slot) = barrier(b, 4);
            b.begin_elect();
            b.mbarrier_arrive(barrier, slot, Receivers::Own);
            b.end_elect();
        }),
        Some(Problem::NotCollective),
        "a release by the elected thread"
    );
    assert_eq!(
        inside(1, &|b| {
            let (barrier, slot) = barrier(b, 1);
            b.mbarrier_expect_tx(barrier, slot, 16);
        }),
        Some(Problem::NotCollective),
        "an expectation of all"
    );
    // A block of parts of warps cannot release.
    let part = faults_of(250, 1, |b| {
        let (barrier, slot) = barrier(b, 4);
        b.mbarrier_arrive(barrier, slot, Receivers::Own);
    });
    assert_eq!(part.err(), Some(vec![Problem::PartOfUnit(250)]));
    // Arrivals.
    for (arrivals, holds) in [(0, false), (1, true), (ARRIVAL_LIMIT, true), (ARRIVAL_LIMIT + 1, false)] {
        let found = faults_of(256, 1, |b| {
            let (barrier, slot) = barrier(b, arrivals);
            b.mbarrier_arrive(barrier, slot, Receivers::Own);
        });
        assert_eq!(found.err(), (!holds).then(|| vec![Problem::BadArrivals(arrivals)]));
    }
}

#[test]
fn roles_stand_where_all_threads_come() {
    let found = |build: &dyn Fn(&mut Builder)| faults_of(256, 1, build).err().map(|faults| faults[0]);
    let all = [(0, 8, None)];
    assert_eq!(
        found(&|b| {
            let (thread, n) = (b.thread_index(), b.dim(0, Type::I32));
            let some = b.index_compare(Compare::Lt, thread, n);
            b.begin_if(some);
            roles(b, &all, Builder::bar_sync);
            b.end_if();
        }),
        Some(Problem::NotCollective)
    );
    // Those that give registers are the last thing that threads do, and do it once.
    let given = [(0, 4, Some(24)), (4, 8, Some(232))];
    let looped = |b: &mut Builder, list: &[Warps]| {
        let n = b.dim(0, Type::I32);
        b.begin_loop(n);
        roles(b, list, Builder::bar_sync);
        b.end_loop();
    };
    assert_eq!([found(&|b| looped(b, &all)), found(&|b| looped(b, &given))], [None, Some(Problem::BadRoles)]);
    let followed = |b: &mut Builder, list: &[Warps]| {
        roles(b, list, Builder::bar_sync);
        b.bar_sync();
    };
    assert_eq!([found(&|b| followed(b, &all)), found(&|b| followed(b, &given))], [None, Some(Problem::BadRoles)]);
}

#[test]
fn roles_change_no_variable_from_outside() {
    let found = |outside: bool| {
        let mut set = None;
        let found = faults_of(256, 1, |b| {
            let zero = zero(b);
            let before = b.variable(zero);
            roles(b, &[(0, 8, None)], |b| {
                let own = b.variable(zero);
                b.set(if outside { before } else { own }, zero);
                let value = b.get(own);
                let more = b.get(before);
                let at = b.index_add(value, more);
                let x = b.load(Memory::Parameter(0), at, 1, None);
                b.store(Memory::Parameter(1), at, &x);
            });
            set = Some(before);
        });
        (found.err(), set.map(Problem::VariableNotInScope))
    };
    assert_eq!(found(false).0, None);
    let (faults, expected) = found(true);
    assert_eq!(faults, expected.map(|problem| vec![problem]));
}

/// A role that meets in all blocks of a cluster has a barrier of its own for that.
#[test]
fn roles_meet_at_their_own_barriers() {
    let kernel = |change: &dyn Fn(&mut Kernel)| {
        let mut kernel =
            faults_of(256, 2, |b| roles(b, &[(0, 4, None), (4, 8, None)], Builder::barrier_cluster)).expect("valid");
        change(&mut kernel);
        verify(&kernel).err().map(|faults| faults.into_iter().map(|fault| fault.problem).collect::<Vec<_>>())
    };
    fn of(kernel: &mut Kernel) -> &mut Vec<Role> {
        kernel.regions[0]
            .statements
            .iter_mut()
            .find_map(|statement| match &mut statement.kind {
                StatementKind::Roles(roles) => Some(roles),
                _ => None,
            })
            .expect("roles")
    }
    assert_eq!(kernel(&|_| {}), None);
    let bad = Some(vec![Problem::BadRoles]);
    // None, another one's, one that does not exist, one with other arrivals or slots.
    assert_eq!(kernel(&|k| of(k)[0].cluster_mbarrier = None), bad);
    assert_eq!(kernel(&|k| of(k)[0].cluster_mbarrier = Some(MbarrierId(1))), bad);
    assert_eq!(kernel(&|k| of(k)[0].cluster_mbarrier = Some(MbarrierId(2))), bad);
    assert_eq!(kernel(&|k| k.barriers[0].arrivals = 4), bad);
    assert_eq!(kernel(&|k| k.barriers[1].slots = 2), bad);
    // Nothing else happens there.
    let released = faults_of(256, 2, |b| {
        let zero = zero(b);
        roles(b, &[(0, 8, None)], |b| {
            b.barrier_cluster();
            b.mbarrier_arrive(MbarrierId(0), zero, Receivers::Own);
        });
    });
    assert_eq!(released.err(), Some(vec![Problem::BadRoles]));
    // All threads of the role come, in all blocks.
    let some = |by_rank: bool| {
        let found = faults_of(256, 2, |b| {
            let (thread, rank, zero) = (b.thread_index(), b.cluster_rank(), zero(b));
            roles(b, &[(0, 8, None)], |b| {
                let comes = b.index_compare(Compare::Eq, if by_rank { rank } else { thread }, zero);
                b.begin_if(comes);
                b.barrier_cluster();
                b.end_if();
            });
        });
        found.err()
    };
    assert_eq!([some(true), some(false)], [Some(vec![Problem::NotCollective]), Some(vec![Problem::NotCollective])]);
}

//! Ordinary accesses to the shared memory of other blocks: what orders them, and what their addresses are.

use super::{Mutation, broken, right};
use crate::common::{Bench, module, only};
use tilewright_emulator::{Kind, Sanitizers};

/// Each block writes a word a thread, and reads those of the next block of its cluster.
const BODY: &str = "\
.shared .align 16 .b8 own[256];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %cluster_ctarank;
mov.u32 %r2, %cluster_nctarank;
ld.param.u64 %rd0, [y];
mov.u32 %r3, %ctaid.x;
mad.lo.u32 %r4, %r3, 64, %r0;
mov.u32 %r5, own;
mad.lo.u32 %r6, %r0, 4, %r5;
st.shared.u32 [%r6], %r4;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
add.u32 %r7, %r1, 1;
rem.u32 %r7, %r7, %r2;
mapa.shared::cluster.u32 %r8, %r6, %r7;
ld.shared::cluster.u32 %r9, [%r8];
getctarank.shared::cluster.u32 %r10, %r8;
mad.lo.u32 %r9, %r10, 1000, %r9;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mad.lo.u32 %r4, %r3, 64, %r0;
mul.wide.u32 %rd1, %r4, 4;
add.u64 %rd1, %rd0, %rd1;
st.global.u32 [%rd1], %r9;
ret;";

fn bench(blocks: u32, cluster: [u32; 3]) -> (Bench, u64) {
    let mut bench = Bench::new(blocks, 64);
    bench.cluster = Some(cluster);
    let y = bench.empty("y", 64 * blocks as usize);
    (bench, y)
}

fn expected(blocks: u32, cluster: u32) -> Vec<u32> {
    let word = |i: u32| {
        let (block, thread) = (i / 64, i % 64);
        let rank = (block % cluster + 1) % cluster;
        rank * 1000 + (block / cluster * cluster + rank) * 64 + thread
    };
    (0..blocks * 64).map(word).collect()
}

#[test]
fn blocks_of_all_sizes_read_their_neighbours() {
    let text = module(".param .u64 y", BODY);
    for (blocks, cluster) in [(4, 2), (3, 3), (16, 16), (8, 8), (2, 1)] {
        right(|| bench(blocks, [cluster, 1, 1]), &text, &expected(blocks, cluster));
    }
}

#[test]
fn generic_addresses_mean_the_same() {
    let body = BODY
        .replace(
            "mapa.shared::cluster.u32 %r8, %r6, %r7;\n",
            "cvt.u64.u32 %rd2, %r6;\ncvta.shared.u64 %rd2, %rd2;\nmapa.u64 %rd3, %rd2, %r7;\nisspacep.shared::cluster %p1, %rd3;\nisspacep.shared::cta %p2, %rd3;\n",
        )
        .replace("ld.shared::cluster.u32 %r9, [%r8];", "@%p1 ld.u32 %r9, [%rd3];\n@%p2 mov.u32 %r9, 7;")
        .replace("getctarank.shared::cluster.u32 %r10, %r8;", "getctarank.u64 %r10, %rd3;");
    right(|| bench(4, [2, 1, 1]), &module(".param .u64 y", &body), &expected(4, 2));
}

fn mutant(mutation: &Mutation<'_>) {
    broken(|| bench(4, [2, 1, 1]).0, &module(".param .u64 y", BODY), mutation);
}

#[test]
fn what_nothing_orders() {
    let first = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";
    mutant(&Mutation {
        edits: &[(first, "bar.sync 0;\n")],
        kinds: &[Kind::PeerNotStarted, Kind::Race, Kind::UninitialisedRead],
        says: "a barrier of the cluster is missing",
    });
    // The barrier meets, and orders nothing.
    mutant(&Mutation {
        edits: &[("barrier.cluster.arrive.release.aligned;", "barrier.cluster.arrive.relaxed.aligned;")],
        kinds: &[Kind::Race],
        says: "by block (",
    });
    // The write is after the barrier.
    mutant(&Mutation {
        edits: &[
            ("st.shared.u32 [%r6], %r4;\n", ""),
            ("add.u32 %r7, %r1, 1;", "st.shared.u32 [%r6], %r4;\nadd.u32 %r7, %r1, 1;"),
        ],
        kinds: &[Kind::Race, Kind::UninitialisedRead],
        says: "",
    });
    // The reader may still read when the owner is gone.
    let last = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nmad";
    mutant(&Mutation { edits: &[(last, "mad")], kinds: &[Kind::PeerExited], says: "before that block's exit" });
    // One of the blocks does not wait.
    mutant(&Mutation {
        edits: &[(
            last,
            "barrier.cluster.arrive.aligned;\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 barrier.cluster.wait.aligned;\nmad",
        )],
        kinds: &[Kind::PeerExited],
        says: "rank 1",
    });
    // Overwritten after the loads, without another barrier.
    mutant(&Mutation {
        edits: &[("mad.lo.u32 %r9, %r10, 1000, %r9;", "mad.lo.u32 %r9, %r10, 1000, %r9;\nst.shared.u32 [%r6], 0;")],
        kinds: &[Kind::Race],
        says: "by block (",
    });
}

#[test]
fn addresses_and_spaces() {
    mutant(&Mutation {
        edits: &[("ld.shared::cluster.u32 %r9, [%r8];", "ld.shared::cta.u32 %r9, [%r8];")],
        kinds: &[Kind::OutOfBounds],
        says: "takes an address of the block's own shared memory",
    });
    mutant(&Mutation {
        edits: &[("ld.shared::cluster.u32 %r9, [%r8];", "ld.shared::cluster.u32 %r9, [%r8+2];")],
        kinds: &[Kind::Misaligned],
        says: "must be a multiple of 4",
    });
    mutant(&Mutation {
        edits: &[("ld.shared::cluster.u32 %r9, [%r8];", "ld.shared::cluster.u32 %r9, [%r8+256];")],
        kinds: &[Kind::OutOfBounds],
        says: "past the end of `own` of 256 bytes",
    });
    mutant(&Mutation {
        edits: &[("add.u32 %r7, %r1, 1;\nrem.u32 %r7, %r7, %r2;", "add.u32 %r7, %r1, 1;")],
        kinds: &[Kind::ClusterMisuse],
        says: "the rank is 2, and the cluster has 2 blocks",
    });
    // The block's own rank is a rank as well.
    let own = BODY
        .replace("add.u32 %r7, %r1, 1;", "add.u32 %r7, %r1, 0;")
        .replace("shared::cluster.u32 %r9,", "shared::cta.u32 %r9,");
    bench(2, [2, 1, 1]).0.clean(&module(".param .u64 y", &own));
}

#[test]
fn a_barrier_that_some_do_not_reach() {
    let last = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nmad";
    mutant(&Mutation {
        edits: &[(
            last,
            "setp.lt.u32 %p0, %r0, 16;\n@%p0 bra SKIP;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nSKIP:\nbar.warp.sync -1;\nmad",
        )],
        kinds: &[Kind::BarrierDivergence],
        says: "waits for lanes",
    });
    // A block that waits for itself at a barrier of its own, while the other one waits at the cluster's.
    mutant(&Mutation {
        edits: &[(
            last,
            "setp.eq.u32 %p0, %r1, 0;\n@%p0 bra OTHER;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nbra DONE;\nOTHER:\nbarrier.sync 1, 96;\nDONE:\nmad",
        )],
        kinds: &[Kind::Deadlock],
        says: "waits at the barrier of the cluster in phase 1, where 64 of 128 threads have arrived",
    });
    // Threads that have exited are not waited for.
    let early = BODY.replace(last, "setp.ge.u32 %p0, %r0, 32;\n@%p0 bra OUT;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nOUT:\nmad");
    bench(2, [2, 1, 1])
        .0
        .clean(&module(".param .u64 y", &early.replace("add.u32 %r7, %r1, 1;", "add.u32 %r7, %r1, 0;")));
}

#[test]
fn operations_on_a_word_of_the_first_block() {
    let body = "\
.shared .align 8 .b8 sum[8];
mov.u32 %r0, %tid.x;
ld.param.u64 %rd0, [y];
mov.u32 %r1, sum;
st.shared.u32 [sum], 0;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mapa.shared::cluster.u32 %r2, %r1, 0;
red.relaxed.cluster.shared::cluster.add.u32 [%r2], 1;
atom.relaxed.cluster.shared::cluster.max.u32 %r3, [%r2], 3;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ld.shared::cluster.u32 %r4, [%r2];
mov.u32 %r5, %ctaid.x;
mul.wide.u32 %rd1, %r5, 4;
add.u64 %rd1, %rd0, %rd1;
setp.eq.u32 %p0, %r0, 0;
@%p0 st.global.u32 [%rd1], %r4;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;";
    let bench = || {
        let mut bench = Bench::new(4, 32);
        bench.cluster = Some([4, 1, 1]);
        let y = bench.empty("y", 4);
        (bench, y)
    };
    // Every thread of a block writes the same zero.
    let one = body.replace("st.shared.u32 [sum], 0;", "setp.eq.u32 %p0, %r0, 0;\n@%p0 st.shared.u32 [sum], 0;");
    right(bench, &module(".param .u64 y", &one), &[128; 4]);
    let plain = Mutation {
        edits: &[("red.relaxed.cluster.shared::cluster.add.u32 [%r2], 1;", "st.shared::cluster.u32 [%r2], %r0;")],
        kinds: &[Kind::Race, Kind::SameValueRace],
        says: "",
    };
    broken(|| bench().0, &module(".param .u64 y", &one), &plain);
}

#[test]
fn shapes_of_clusters() {
    let message = |grid: u32, cluster: [u32; 3]| {
        let (bench, _) = bench(grid, cluster);
        bench.try_run(&module(".param .u64 y", BODY)).unwrap_err().to_string()
    };
    assert_eq!(message(5, [2, 1, 1]), "the grid has 5 blocks in x, which is not a multiple of the cluster's 2");
    assert_eq!(message(32, [32, 1, 1]), "a cluster of 32 blocks; the limit is 16, and 8 on every device");
    assert_eq!(message(4, [2, 0, 1]), "the cluster is [2, 0, 1]; every extent must be at least 1");
    let directive =
        |text: &str, directive: &str| text.replace(".param .u64 y) {", &format!(".param .u64 y) {directive} {{"));
    let text = module(".param .u64 y", BODY);
    let (mut bench, y) = bench(4, [2, 1, 1]);
    let error = |bench: &Bench, text: &str| bench.try_run(text).unwrap_err().to_string();
    let required = directive(&text, ".reqnctapercluster 4, 1, 1");
    assert_eq!(error(&bench, &required), "the cluster is [2, 1, 1]; kernel `k` requires [4, 1, 1]");
    let most = directive(&text, ".explicitcluster .maxclusterrank 1");
    assert_eq!(error(&bench, &most), "the cluster has 2 blocks; kernel `k` allows 1 (`.maxclusterrank`)");
    bench.cluster = None;
    assert!(error(&bench, &directive(&text, ".explicitcluster")).contains("requires a launch that names a cluster"));
    // The kernel names it.
    bench.clean(&required);
    assert_eq!(bench.words(y, 256), expected(4, 4));
}

#[test]
fn special_registers_of_two_dimensions() {
    let body = "\
mov.u32 %r0, %cluster_ctaid.x; mov.u32 %r1, %cluster_ctaid.y; mov.u32 %r2, %clusterid.x; mov.u32 %r3, %clusterid.y;
mov.u32 %r4, %cluster_ctarank; mov.u32 %r5, %cluster_nctarank; mov.u32 %r6, %nclusterid.x; mov.u32 %r7, %cluster_nctaid.y;
mov.v4.u32 {%r20, %r21, %r22, %r23}, %cluster_ctaid;
mov.pred %p0, %is_explicit_cluster;
selp.u32 %r8, 1, 0, %p0;
mad.lo.u32 %r9, %r0, 10, %r1; mad.lo.u32 %r9, %r9, 10, %r2; mad.lo.u32 %r9, %r9, 10, %r3; mad.lo.u32 %r9, %r9, 10, %r4;
mad.lo.u32 %r9, %r9, 10, %r5; mad.lo.u32 %r9, %r9, 10, %r6; mad.lo.u32 %r9, %r9, 10, %r7; mad.lo.u32 %r9, %r9, 10, %r8;
mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ctaid.y; mov.u32 %r12, %nctaid.x; mad.lo.u32 %r10, %r11, %r12, %r10;
ld.param.u64 %rd0, [y]; mul.wide.u32 %rd1, %r10, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r9; ret;";
    let body = body.replace("mov.v4.u32 {%r20, %r21, %r22, %r23}, %cluster_ctaid;\n", "");
    let mut bench = Bench::new(1, 1);
    let y = bench.empty("y", 16);
    let mut launch = bench.launch();
    (launch.grid, launch.cluster) = ([4, 4, 1], Some([2, 2, 1]));
    let program = tilewright_emulator::Program::parse(&module(".param .u64 y", &body)).unwrap();
    let report = program.launch(&launch, &bench.memory, &bench.options).unwrap();
    assert!(report.findings.is_empty(), "{report}");
    let expected: Vec<u32> = (0..16)
        .map(|i| {
            let (x, y) = (i % 4, i / 4);
            [x % 2, y % 2, x / 2, y / 2, y % 2 * 2 + x % 2, 4, 2, 2, 1].iter().fold(0, |n, digit| n * 10 + digit)
        })
        .collect();
    assert_eq!(bench.words(y, 16), expected);
}

#[test]
fn a_cluster_of_one_needs_no_launch_that_names_it() {
    let mut bench = Bench::new(2, 64);
    let y = bench.empty("y", 128);
    bench.clean(&module(".param .u64 y", BODY));
    assert_eq!(bench.words(y, 128), expected(2, 1));
    // And rank 1 is none of it.
    let report = bench.run(&module(".param .u64 y", &BODY.replace("rem.u32 %r7, %r7, %r2;\n", "")));
    only(&report, Kind::ClusterMisuse, 18);
}

#[test]
fn without_checks_nothing_is_kept() {
    let (mut bench, y) = bench(4, [2, 1, 1]);
    bench.options.sanitizers = Sanitizers::NONE;
    bench.clean(&module(".param .u64 y", BODY));
    assert_eq!(bench.words(y, 256), expected(4, 2));
}

#[test]
fn global_memory_between_blocks_of_a_cluster() {
    // Each block writes its word, and reads the other one's after a barrier of the cluster.
    let body = "\
ld.param.u64 %rd0, [y];
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %tid.x;
setp.eq.u32 %p0, %r1, 0;
mul.wide.u32 %rd1, %r0, 4;
add.u64 %rd1, %rd0, %rd1;
@%p0 st.global.u32 [%rd1], %r0;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
xor.b32 %r2, %r0, 1;
mul.wide.u32 %rd2, %r2, 4;
add.u64 %rd2, %rd0, %rd2;
ld.global.u32 %r3, [%rd2];
add.u32 %r3, %r3, 10;
@%p0 st.global.u32 [%rd1+64], %r3;
ret;";
    let bench = || {
        let mut bench = Bench::new(4, 32);
        bench.cluster = Some([2, 1, 1]);
        let y = bench.empty("y", 32);
        (bench, y)
    };
    right(bench, &module(".param .u64 y", body), &[0, 1, 2, 3]);
    let mutation = Mutation {
        edits: &[("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n", "")],
        kinds: &[Kind::Race, Kind::UninitialisedRead],
        says: "",
    };
    broken(|| bench().0, &module(".param .u64 y", body), &mutation);
    // What is in the other cluster is not ordered by it.
    let mutation = Mutation {
        edits: &[("xor.b32 %r2, %r0, 1;", "xor.b32 %r2, %r0, 2;")],
        kinds: &[Kind::Race, Kind::UninitialisedRead],
        says: "",
    };
    broken(|| bench().0, &module(".param .u64 y", body), &mutation);
}

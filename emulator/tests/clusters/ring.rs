//! A persistent kernel whose blocks load halves of each step for both of their cluster, through a ring of slots.

use super::{Mutation, broken, right};
use crate::common::{Bench, module};
use tilewright_emulator::Kind;

/// What one test runs: slots of the ring, steps of a tile, tiles, blocks.
#[derive(Clone, Copy)]
struct Shape {
    slots: u32,
    trips: u32,
    tiles: u32,
    blocks: u32,
}

const USUAL: Shape = Shape { slots: 3, trips: 5, tiles: 5, blocks: 4 };

/// The kernel: warp 0 has the producer, warp 1 is the consumer.
#[expect(clippy::too_many_lines, reason = "the text of one kernel")]
fn text(slots: u32) -> String {
    let init: String = (0..slots)
        .map(|i| {
            format!(
                "mbarrier.init.shared::cta.b64 [full+{}], 1;\nmbarrier.init.shared::cta.b64 [empty+{}], 2;\n",
                8 * i,
                8 * i
            )
        })
        .collect();
    let next = |label: &str| {
        format!(
            "add.u32 %r6, %r6, 1;\nsetp.ne.u32 %p2, %r6, {slots};\n@%p2 bra {label};\nmov.u32 %r6, 0;\nxor.b32 %r7, %r7, 1;\n{label}:\n"
        )
    };
    let body = format!(
        "\
.shared .align 128 .b8 ring[{}];
.shared .align 8 .b8 full[{}];
.shared .align 8 .b8 empty[{}];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %cluster_ctarank;
mov.u32 %r2, %clusterid.x;
mov.u32 %r3, %nclusterid.x;
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
ld.param.u32 %r4, [tiles];
ld.param.u32 %r5, [trips];
mov.u32 %r20, ring;
mov.u32 %r21, full;
mov.u32 %r22, empty;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra READY;
{init}fence.mbarrier_init.release.cluster;
READY:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 %r6, 0;
mov.u32 %r8, %r2;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra CONSUMER;
@%p0 bra END;
mov.u32 %r7, 1;
PTILE:
setp.ge.u32 %p2, %r8, %r4;
@%p2 bra END;
mov.u32 %r9, 0;
PSTEP:
setp.ge.u32 %p2, %r9, %r5;
@%p2 bra PNEXT;
mad.lo.u32 %r10, %r6, 8, %r22;
mad.lo.u32 %r11, %r6, 8, %r21;
PWAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r10], %r7;
@!%p3 bra PWAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r11], 256;
mad.lo.u32 %r12, %r6, 256, %r20;
mad.lo.u32 %r12, %r1, 128, %r12;
mad.lo.u32 %r13, %r8, %r5, %r9;
mad.lo.u32 %r13, %r13, 2, %r1;
mad.wide.u32 %rd2, %r13, 128, %rd0;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r12], [%rd2], 128, [%r11], 3;
{}add.u32 %r9, %r9, 1;
bra PSTEP;
PNEXT:
add.u32 %r8, %r8, %r3;
bra PTILE;
CONSUMER:
mov.u32 %r7, 0;
sub.u32 %r14, %r0, 32;
setp.ne.u32 %p4, %r14, 0;
CTILE:
setp.ge.u32 %p2, %r8, %r4;
@%p2 bra END;
mov.u32 %r9, 0;
mov.u32 %r15, 0;
CSTEP:
setp.ge.u32 %p2, %r9, %r5;
@%p2 bra CNEXT;
mad.lo.u32 %r11, %r6, 8, %r21;
CWAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r11], %r7;
@!%p3 bra CWAIT;
mad.lo.u32 %r12, %r6, 256, %r20;
mad.lo.u32 %r12, %r14, 4, %r12;
ld.shared.u32 %r16, [%r12];
ld.shared.u32 %r17, [%r12+128];
mad.lo.u32 %r15, %r15, 3, %r16;
mad.lo.u32 %r15, %r17, 7, %r15;
bar.warp.sync -1;
@%p4 bra RELEASED;
mad.lo.u32 %r10, %r6, 8, %r22;
mapa.shared::cluster.u32 %r18, %r10, 0;
mapa.shared::cluster.u32 %r19, %r10, 1;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r18];
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r19];
RELEASED:
{}add.u32 %r9, %r9, 1;
bra CSTEP;
CNEXT:
mad.lo.u32 %r13, %r8, 2, %r1;
mad.lo.u32 %r13, %r13, 32, %r14;
mad.wide.u32 %rd2, %r13, 4, %rd1;
st.global.u32 [%rd2], %r15;
add.u32 %r8, %r8, %r3;
bra CTILE;
END:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;",
        slots * 256,
        slots * 8,
        slots * 8,
        next("P1"),
        next("C1"),
    );
    module(".param .u64 x, .param .u64 y, .param .u32 tiles, .param .u32 trips", &body)
}

fn bench(shape: Shape) -> (Bench, u64) {
    let mut bench = Bench::new(shape.blocks, 64);
    bench.cluster = Some([2, 1, 1]);
    let words: Vec<u32> = (0..shape.tiles * shape.trips * 64).map(|i| i.wrapping_mul(0x9e37_79b9) >> 7).collect();
    bench.buffer("x", if words.is_empty() { &[0] } else { &words });
    let y = bench.empty("y", (shape.tiles * 64).max(1) as usize);
    bench.args.extend([shape.tiles.into(), shape.trips.into()]);
    (bench, y)
}

/// What the kernel computes, block by block of a tile.
fn expected(shape: Shape) -> Vec<u32> {
    let at = |step: u32, place: u32| (step * 64 + place).wrapping_mul(0x9e37_79b9) >> 7;
    let lane = |tile: u32, lane: u32| {
        (0..shape.trips).fold(0_u32, |sum, k| {
            let step = tile * shape.trips + k;
            let sum = sum.wrapping_mul(3).wrapping_add(at(step, lane));
            sum.wrapping_add(at(step, 32 + lane).wrapping_mul(7))
        })
    };
    (0..shape.tiles).flat_map(|tile| (0..64).map(move |i| lane(tile, i % 32))).collect()
}

#[test]
fn every_length_is_right_under_every_seed() {
    // No trips, fewer than slots, as many, one more; more and fewer tiles than clusters.
    for trips in [0, 1, 2, 3, 4, 7] {
        for (tiles, blocks) in [(5, 4), (1, 4), (0, 2)] {
            let shape = Shape { trips, tiles, blocks, ..USUAL };
            right(|| bench(shape), &text(3), &expected(shape));
        }
    }
    right(|| bench(Shape { slots: 1, ..USUAL }), &text(1), &expected(USUAL));
}

fn mutant(mutation: &Mutation<'_>) {
    broken(|| bench(USUAL).0, &text(USUAL.slots), mutation);
}

const ARRIVE: &str = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r18];\n";
const ARRIVE_PEER: &str = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r19];\n";
const FIRST: &str = "READY:\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
const LAST: &str = "END:\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

#[test]
fn a_counter_that_begins_anew_with_each_tile() {
    // The consumer's slot does, the producer's goes on.
    mutant(&Mutation {
        edits: &[(
            "mov.u32 %r9, 0;\nmov.u32 %r15, 0;",
            "mov.u32 %r9, 0;\nmov.u32 %r15, 0;\nmov.u32 %r6, 0;\nmov.u32 %r7, 0;",
        )],
        kinds: &[Kind::Deadlock, Kind::Race, Kind::InFlight, Kind::BarrierMisuse],
        says: "",
    });
}

#[test]
fn a_slot_released_before_it_is_read() {
    let early = format!(
        "mad.lo.u32 %r12, %r6, 256, %r20;\nmad.lo.u32 %r12, %r14, 4, %r12;\nbar.warp.sync -1;\n@%p4 bra EARLY;\nmad.lo.u32 %r10, %r6, 8, %r22;\nmapa.shared::cluster.u32 %r18, %r10, 0;\nmapa.shared::cluster.u32 %r19, %r10, 1;\n{ARRIVE}{ARRIVE_PEER}EARLY:\n"
    );
    mutant(&Mutation {
        edits: &[
            ("mad.lo.u32 %r12, %r6, 256, %r20;\nmad.lo.u32 %r12, %r14, 4, %r12;\n", &early),
            (&format!("mapa.shared::cluster.u32 %r19, %r10, 1;\n{ARRIVE}{ARRIVE_PEER}RELEASED:"), "RELEASED:"),
        ],
        kinds: &[Kind::Race, Kind::InFlight],
        says: "",
    });
}

#[test]
fn a_slot_released_by_one_block_only() {
    // Each producer waits for its own consumer, and overwrites the slot of the other's.
    mutant(&Mutation {
        edits: &[
            ("mapa.shared::cluster.u32 %r18, %r10, 0;", "mapa.shared::cluster.u32 %r18, %r10, %r1;"),
            (ARRIVE_PEER, ""),
            ("[empty+0], 2;", "[empty+0], 1;"),
            ("[empty+8], 2;", "[empty+8], 1;"),
            ("[empty+16], 2;", "[empty+16], 1;"),
        ],
        kinds: &[Kind::Race, Kind::InFlight],
        says: "",
    });
    // The counts are as they were: nobody gets the slot.
    mutant(&Mutation { edits: &[(ARRIVE_PEER, "")], kinds: &[Kind::Deadlock], says: "pending" });
}

#[test]
fn a_receiver_that_is_not_armed() {
    let arm = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r11], 256;\n";
    let unarmed = format!("setp.eq.u32 %p5, %r1, 0;\n@%p5 {arm}@!%p5 mbarrier.arrive.shared::cta.b64 _, [%r11];\n");
    mutant(&Mutation {
        edits: &[(arm, &unarmed)],
        kinds: &[Kind::Deadlock, Kind::InFlight, Kind::Race, Kind::UninitialisedRead],
        says: "",
    });
}

#[test]
fn wrong_bytes_and_masks() {
    // Half of what comes: the phase ends early, or never.
    mutant(&Mutation {
        edits: &[("[%r11], 256;", "[%r11], 128;")],
        kinds: &[Kind::Deadlock, Kind::InFlight, Kind::Race, Kind::UninitialisedRead],
        says: "",
    });
    mutant(&Mutation { edits: &[("[%r11], 256;", "[%r11], 512;")], kinds: &[Kind::Deadlock], says: "bytes" });
    mutant(&Mutation { edits: &[("128, [%r11], 3;", "128, [%r11], 1;")], kinds: &[Kind::Deadlock], says: "bytes" });
    mutant(&Mutation {
        edits: &[("128, [%r11], 3;", "128, [%r11], 5;")],
        kinds: &[Kind::CopyMisuse],
        says: "0x0005, and the cluster has 2 blocks",
    });
    mutant(&Mutation { edits: &[("128, [%r11], 3;", "128, [%r11], 0;")], kinds: &[Kind::CopyMisuse], says: "0x0000" });
}

#[test]
fn wrong_parities() {
    mutant(&Mutation {
        edits: &[("@%p0 bra END;\nmov.u32 %r7, 1;", "@%p0 bra END;\nmov.u32 %r7, 0;")],
        kinds: &[Kind::Deadlock],
        says: "",
    });
    mutant(&Mutation {
        edits: &[("CONSUMER:\nmov.u32 %r7, 0;", "CONSUMER:\nmov.u32 %r7, 1;")],
        kinds: &[Kind::Deadlock, Kind::InFlight, Kind::Race, Kind::UninitialisedRead],
        says: "",
    });
}

#[test]
fn barriers_of_the_cluster_that_are_missing() {
    let kinds = &[Kind::PeerNotStarted, Kind::BarrierMisuse, Kind::Race];
    mutant(&Mutation { edits: &[(FIRST, "READY:\nbar.sync 0;\n")], kinds, says: "" });
    mutant(&Mutation {
        edits: &[
            ("READY:\nbarrier.cluster.arrive.aligned;", "READY:\nbarrier.cluster.arrive.relaxed.aligned;"),
            ("fence.mbarrier_init.release.cluster;\n", ""),
        ],
        kinds,
        says: "",
    });
    mutant(&Mutation { edits: &[(LAST, "END:\n")], kinds: &[Kind::PeerExited], says: "before that block's exit" });
    // Arrived, and not waited.
    mutant(&Mutation {
        edits: &[(LAST, "END:\nbarrier.cluster.arrive.aligned;\n")],
        kinds: &[Kind::PeerExited],
        says: "before that block's exit",
    });
    mutant(&Mutation {
        edits: &[(LAST, "END:\nbarrier.cluster.wait.aligned;\n")],
        kinds: &[Kind::BarrierMisuse],
        says: "waits without having arrived",
    });
    mutant(&Mutation {
        edits: &[(
            LAST,
            "END:\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n",
        )],
        kinds: &[Kind::BarrierMisuse],
        says: "arrives again without having waited",
    });
}

#[test]
fn a_relaxed_arrival_behind_a_fence_is_right() {
    // What CUTLASS does: only the barriers' initialisation is to be seen.
    let relaxed =
        text(3).replace("READY:\nbarrier.cluster.arrive.aligned;", "READY:\nbarrier.cluster.arrive.relaxed.aligned;");
    right(|| bench(USUAL), &relaxed, &expected(USUAL));
}

#[test]
fn divergence_at_an_aligned_barrier() {
    mutant(&Mutation {
        edits: &[("END:\nbarrier.cluster.arrive.aligned;", "END:\n@%p0 barrier.cluster.arrive.aligned;")],
        kinds: &[Kind::BarrierDivergence],
        says: "waits for lanes",
    });
}

#[test]
fn addresses_that_mapa_should_not_make() {
    mutant(&Mutation {
        edits: &[("mapa.shared::cluster.u32 %r19, %r10, 1;", "mapa.shared::cluster.u32 %r19, %r10, 2;")],
        kinds: &[Kind::ClusterMisuse],
        says: "the rank is 2, and the cluster has 2 blocks",
    });
    mutant(&Mutation {
        edits: &[(
            "mapa.shared::cluster.u32 %r19, %r10, 1;",
            "mapa.shared::cluster.u32 %r19, %r10, 1;\nadd.u32 %r19, %r19, 4;",
        )],
        kinds: &[Kind::Misaligned],
        says: "multiple of 8",
    });
    mutant(&Mutation {
        edits: &[(
            "mapa.shared::cluster.u32 %r19, %r10, 1;",
            "mapa.shared::cluster.u32 %r19, %r20, 1;\nadd.u32 %r19, %r19, 4096;",
        )],
        kinds: &[Kind::OutOfBounds],
        says: "of block (",
    });
}

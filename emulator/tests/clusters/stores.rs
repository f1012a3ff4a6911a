//! What completes at an mbarrier of another block: `st.async`, `red.async`, copies from shared memory to shared memory.

use super::{Mutation, broken, right};
use crate::common::{Bench, module};
use tilewright_emulator::Kind;

/// Each thread sends 8 bytes to the other block, which waits for all of them.
const PUT: &str = "\
.shared .align 16 .b8 box[512];
.shared .align 8 .b8 full[8];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %cluster_ctarank;
mov.u32 %r2, %ctaid.x;
ld.param.u64 %rd0, [y];
setp.eq.u32 %p0, %r0, 0;
@%p0 mbarrier.init.shared::cta.b64 [full], 1;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 512;
@%p0 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
xor.b32 %r3, %r1, 1;
mov.u32 %r4, box;
mov.u32 %r5, full;
mad.lo.u32 %r6, %r0, 8, %r4;
mapa.shared::cluster.u32 %r7, %r6, %r3;
mapa.shared::cluster.u32 %r8, %r5, %r3;
mad.lo.u32 %r9, %r2, 1000, %r0;
add.u32 %r10, %r9, 500;
st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r7], {%r9, %r10}, [%r8];
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [full], 0;
@!%p1 bra WAIT;
ld.shared.v2.u32 {%r11, %r12}, [%r6];
mad.lo.u32 %r13, %r2, 64, %r0;
mul.wide.u32 %rd1, %r13, 8;
add.u64 %rd1, %rd0, %rd1;
st.global.v2.u32 [%rd1], {%r11, %r12};
ret;";

fn bench(words: usize) -> (Bench, u64) {
    let mut bench = Bench::new(4, 64);
    bench.cluster = Some([2, 1, 1]);
    let y = bench.empty("y", words);
    (bench, y)
}

#[test]
fn words_sent_to_the_other_block() {
    let expected: Vec<u32> = (0..512).map(|i| ((i / 128) ^ 1) * 1000 + i % 128 / 2 + i % 2 * 500).collect();
    // The wait for what comes is the last thing that a block's memory is for: no barrier is needed at the end.
    right(|| bench(512), &module(".param .u64 y", PUT), &expected);
}

#[test]
fn mistakes_with_st_async() {
    let mutant = |mutation: &Mutation<'_>| broken(|| bench(512).0, &module(".param .u64 y", PUT), mutation);
    mutant(&Mutation {
        edits: &[(
            "WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [full], 0;\n@!%p1 bra WAIT;\n",
            "",
        )],
        kinds: &[Kind::InFlight, Kind::Race, Kind::UninitialisedRead],
        says: "",
    });
    // After a barrier of the cluster they are still not there.
    mutant(&Mutation {
        edits: &[(
            "WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [full], 0;\n@!%p1 bra WAIT;\n",
            "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n",
        )],
        kinds: &[Kind::InFlight, Kind::Race, Kind::UninitialisedRead],
        says: "",
    });
    mutant(&Mutation {
        edits: &[(
            "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 512;",
            "@%p0 mbarrier.arrive.shared::cta.b64 _, [full];",
        )],
        kinds: &[Kind::InFlight, Kind::BarrierMisuse, Kind::Deadlock, Kind::UninitialisedRead],
        says: "",
    });
    mutant(&Mutation {
        edits: &[("[full], 512;", "[full], 520;")],
        kinds: &[Kind::Deadlock],
        says: "520 bytes expected, 512 arrived",
    });
    mutant(&Mutation {
        edits: &[("mapa.shared::cluster.u32 %r8, %r5, %r3;", "mapa.shared::cluster.u32 %r8, %r5, %r1;")],
        kinds: &[Kind::CopyMisuse],
        says: "it must be in the same block",
    });
    mutant(&Mutation {
        edits: &[("mad.lo.u32 %r6, %r0, 8, %r4;", "mad.lo.u32 %r6, %r0, 8, %r4;\nadd.u32 %r6, %r6, 4;")],
        kinds: &[Kind::Misaligned],
        says: "multiple of 8",
    });
    // Two threads to one place.
    mutant(&Mutation {
        edits: &[("mapa.shared::cluster.u32 %r7, %r6, %r3;", "mapa.shared::cluster.u32 %r7, %r4, %r3;")],
        kinds: &[Kind::Race],
        says: "",
    });
    // The owner has read the old contents without order.
    mutant(&Mutation {
        edits: &[("xor.b32 %r3, %r1, 1;", "xor.b32 %r3, %r1, 1;\nst.shared.u32 [box+4], 3;")],
        kinds: &[Kind::Race, Kind::SameValueRace],
        says: "",
    });
    mutant(&Mutation {
        edits: &[("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n", "bar.sync 0;\n")],
        kinds: &[Kind::PeerNotStarted, Kind::BarrierMisuse],
        says: "",
    });
    // Only one block waits for what it gets.
    mutant(&Mutation {
        edits: &[("WAIT:\n", "setp.eq.u32 %p2, %r1, 1;\n@%p2 ret;\nWAIT:\n")],
        kinds: &[Kind::UnfinishedCopy],
        says: "",
    });
}

/// Each block copies 256 bytes of its own to the other one.
const ACROSS: &str = "\
.shared .align 16 .b8 from[256];
.shared .align 16 .b8 to[256];
.shared .align 8 .b8 full[8];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %cluster_ctarank;
mov.u32 %r2, %ctaid.x;
ld.param.u64 %rd0, [y];
setp.eq.u32 %p0, %r0, 0;
mov.u32 %r4, from;
mov.u32 %r5, to;
mov.u32 %r6, full;
mad.lo.u32 %r9, %r2, 1000, %r0;
mad.lo.u32 %r10, %r0, 4, %r4;
mad.lo.u32 %r11, %r0, 4, %r5;
st.shared.u32 [%r10], %r9;
fence.proxy.async.shared::cta;
@%p0 mbarrier.init.shared::cta.b64 [full], 1;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
@%p0 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
xor.b32 %r3, %r1, 1;
mapa.shared::cluster.u32 %r7, %r5, %r3;
mapa.shared::cluster.u32 %r8, %r6, %r3;
@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%r4], 256, [%r8];
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [full], 0;
@!%p1 bra WAIT;
ld.shared.u32 %r12, [%r11];
mad.lo.u32 %r13, %r2, 64, %r0;
mul.wide.u32 %rd1, %r13, 4;
add.u64 %rd1, %rd0, %rd1;
st.global.u32 [%rd1], %r12;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;";

#[test]
fn copies_from_shared_to_shared_memory() {
    let expected: Vec<u32> = (0..256).map(|i| ((i / 64) ^ 1) * 1000 + i % 64).collect();
    right(|| bench(256), &module(".param .u64 y", ACROSS), &expected);
    let mutant = |mutation: &Mutation<'_>| broken(|| bench(256).0, &module(".param .u64 y", ACROSS), mutation);
    mutant(&Mutation {
        edits: &[("fence.proxy.async.shared::cta;\n", "")],
        kinds: &[Kind::MissingProxyFence],
        says: "",
    });
    // The source is the copy's until the other block says that it is over.
    mutant(&Mutation {
        edits: &[("ld.shared.u32 %r12, [%r11];", "st.shared.u32 [%r10], 0;\nld.shared.u32 %r12, [%r11];")],
        kinds: &[Kind::Race],
        says: "",
    });
    mutant(&Mutation {
        edits: &[("mapa.shared::cluster.u32 %r7, %r5, %r3;", "mapa.shared::cluster.u32 %r7, %r5, %r1;")],
        kinds: &[Kind::CopyMisuse],
        says: "it must be another one's",
    });
    mutant(&Mutation {
        edits: &[
            ("[%r4], 256, [%r8]", "[%r4], %r14, [%r8]"),
            ("xor.b32 %r3, %r1, 1;", "xor.b32 %r3, %r1, 1;\nmov.u32 %r14, 264;"),
        ],
        kinds: &[Kind::CopyMisuse],
        says: "264 bytes, not a multiple of 16",
    });
    mutant(&Mutation {
        edits: &[(
            "st.global.u32 [%rd1], %r12;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n",
            "st.global.u32 [%rd1], %r12;\n",
        )],
        kinds: &[Kind::PeerExited],
        says: "",
    });
}

#[test]
fn sums_in_the_other_block() {
    let body = PUT
        .replace("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r7], {%r9, %r10}, [%r8];", "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r7], %r0, [%r8];\nred.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u32 [%r7+4], %r0, [%r8];")
        .replace("mad.lo.u32 %r6, %r0, 8, %r4;", "mov.u32 %r6, %r4;")
        .replace("@%p0 mbarrier.init", "@%p0 st.shared.v2.u32 [box], {%r2, %r2};\n@%p0 mbarrier.init");
    let expected: Vec<u32> = (0..512).map(|i| if i % 2 == 0 { i / 128 + 63 * 32 } else { 63 }).collect();
    right(|| bench(512), &module(".param .u64 y", &body), &expected);
    let mutation = Mutation {
        edits: &[("@%p0 st.shared.v2.u32 [box], {%r2, %r2};\n", "")],
        kinds: &[Kind::UninitialisedRead],
        says: "",
    };
    broken(|| bench(512).0, &module(".param .u64 y", &body), &mutation);
    let mutation = Mutation {
        edits: &[(
            "WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [full], 0;\n@!%p1 bra WAIT;\n",
            "",
        )],
        kinds: &[Kind::InFlight, Kind::Race, Kind::UninitialisedRead],
        says: "",
    };
    broken(|| bench(512).0, &module(".param .u64 y", &body), &mutation);
}

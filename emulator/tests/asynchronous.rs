//! Asynchronous copies and mbarriers: right programs in which nothing is found under any seed, and wrong ones next to
//! them.

use crate::common::{Bench, module, only};
use tilewright_emulator::{Kind, Options, Report};

const XY: &str = ".param .u64 x, .param .u64 y";

/// `%r0` thread, `%rd2` and `%rd3` its 16 bytes of x and y, `%r1` its 16 bytes of shared memory. 9 lines, the first of
/// them line 5.
const PROLOGUE: &str = "\
.shared .align 16 .b8 tile[1024]; .shared .align 8 .b64 bar;
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd4, %r0, 16;
add.u64 %rd2, %rd0, %rd4;
add.u64 %rd3, %rd1, %rd4;
mov.u32 %r2, tile;
mad.lo.u32 %r1, %r0, 16, %r2;
";
/// Line of the first instruction after the prologue.
const BODY: u32 = 14;

fn kernel(body: &str) -> String {
    module(XY, &format!("{PROLOGUE}{body}\nret;"))
}

fn bench(block: u32, seed: u64) -> (Bench, u64) {
    let mut bench = Bench::new(1, block);
    bench.options = Options { seed, budget: 1 << 24, ..bench.options };
    bench.buffer("x", &(0..block * 4).collect::<Vec<_>>());
    let y = bench.empty("y", (block * 4) as usize);
    (bench, y)
}

fn run(block: u32, seed: u64, body: &str) -> Report {
    bench(block, seed).0.run(&kernel(body))
}

const COPY: &str = "cp.async.cg.shared.global [%r1], [%rd2], 16;\n";
const READ: &str = "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1];\nst.global.v4.u32 [%rd3], {%r4, %r5, %r6, %r7};\n";

#[test]
fn a_copy_arrives_when_it_is_waited_for() {
    for seed in 0..8 {
        for wait in ["cp.async.wait_all;\n", "cp.async.commit_group;\ncp.async.wait_group 0;\n"] {
            let (bench, y) = bench(32, seed);
            bench.clean(&kernel(&format!("{COPY}{wait}{READ}")));
            assert_eq!(bench.words(y, 128), (0..128).collect::<Vec<_>>());
        }
        // Nothing waits, or only for closed groups, or for all groups but the last.
        for wait in ["", "cp.async.wait_group 0;\n", "cp.async.commit_group;\ncp.async.wait_group 1;\n"] {
            let report = run(32, seed, &format!("{COPY}{wait}{READ}"));
            let line = BODY + 1 + wait.lines().count() as u32;
            let finding = only(&report, Kind::InFlight, line);
            assert_eq!(finding.other.as_ref().map(|other| other.place.line), Some(BODY), "{report}");
        }
    }
}

#[test]
fn groups_arrive_in_order() {
    // Two groups; the first is waited for.
    let body = "cp.async.ca.shared.global [%r1], [%rd2], 8;\ncp.async.commit_group;\n\
        cp.async.ca.shared.global [%r1+8], [%rd2+8], 8;\ncp.async.commit_group;\ncp.async.wait_group 1;\n\
        ld.shared.v2.u32 {%r4, %r5}, [%r1];\nst.global.v2.u32 [%rd3], {%r4, %r5};\ncp.async.wait_all;\n";
    for seed in 0..8 {
        assert!(run(32, seed, body).findings.is_empty());
        let report = run(32, seed, &body.replace("[%r1];", "[%r1+8];"));
        only(&report, Kind::InFlight, BODY + 5);
    }
}

#[test]
fn other_threads_need_a_barrier() {
    // Every thread reads what its neighbour copied.
    let neighbour = "xor.b32 %r3, %r1, 512;\n";
    let read = READ.replace("[%r1]", "[%r3]");
    for seed in 0..8 {
        let good = format!("{COPY}cp.async.wait_all;\nbar.sync 0;\n{neighbour}{read}");
        let (bench, y) = bench(64, seed);
        bench.clean(&kernel(&good));
        assert_eq!(bench.words(y, 4), [128, 129, 130, 131]);
        let report = run(64, seed, &good.replace("bar.sync 0;\n", ""));
        assert!(report.findings.iter().any(|f| f.kind == Kind::Race || f.kind == Kind::UninitialisedRead), "{report}");
        // The barrier before the wait does not help.
        let report = run(64, seed, &format!("{COPY}bar.sync 0;\ncp.async.wait_all;\n{neighbour}{read}"));
        assert!(!report.is_clean(), "{report}");
    }
}

#[test]
fn short_sources_are_filled_with_zeros() {
    for seed in 0..4 {
        let (bench, y) = bench(32, seed);
        let body = format!(
            "and.b32 %r8, %r0, 15;\ncp.async.cg.shared.global [%r1], [%rd2], 16, %r8;\ncp.async.wait_all;\n{READ}"
        );
        bench.clean(&kernel(&body));
        let words = bench.words(y, 128);
        for thread in 0..32u32 {
            let mut bytes: Vec<u8> = (0..4).flat_map(|i| (thread * 4 + i).to_le_bytes()).collect();
            bytes[(thread % 16) as usize..].fill(0);
            let want: Vec<u32> = bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
            assert_eq!(words[thread as usize * 4..][..4], want, "thread {thread}");
        }
        let body = format!(
            "setp.lt.u32 %p1, %r0, 7;\ncp.async.ca.shared.global [%r1], [%rd2], 16, %p1;\ncp.async.wait_all;\n{READ}"
        );
        bench.clean(&kernel(&body));
        assert_eq!(bench.words(y, 128)[24..32], [0, 0, 0, 0, 28, 29, 30, 31]);
    }
    // Bytes that are not read may lie outside; bytes that are may not.
    let past = "add.u64 %rd2, %rd2, 8;\nmov.u32 %r8, 8;\ncp.async.cg.shared.global [%r1], [%rd2+504], 16, %r8;\ncp.async.wait_all;";
    let report = run(1, 0, &past.replace("+504", ""));
    assert!(report.findings.is_empty(), "{report}");
    let report = run(1, 0, past);
    only(&report, Kind::OutOfBounds, BODY + 2);
    let report = run(32, 0, "cp.async.ca.shared.global [%r1+4], [%rd2], 16;\ncp.async.wait_all;");
    only(&report, Kind::Misaligned, BODY);
}

/// Thread 0 makes an mbarrier for all threads, and everybody sees it.
const INIT: &str =
    "mov.u32 %r9, %ntid.x;\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared.b64 [bar], %r9;\nbar.sync 0;\n";
const ARRIVE_AND_WAIT: &str = "mbarrier.arrive.shared.b64 %rd5, [bar];\nWAIT:\nmbarrier.test_wait.shared.b64 %p2, [bar], %rd5;\n@!%p2 bra WAIT;\n";

#[test]
fn an_mbarrier_orders_what_came_before_the_arrivals() {
    let write = "st.shared.u32 [%r1], %r0;\n";
    let read = "xor.b32 %r3, %r1, 512;\nld.shared.u32 %r4, [%r3];\nst.global.u32 [%rd3], %r4;\n";
    for seed in 0..8 {
        let (bench, y) = bench(64, seed);
        bench.clean(&kernel(&format!("{INIT}{write}{ARRIVE_AND_WAIT}{read}")));
        assert_eq!(bench.words(y, 1), [32]);
        // Arriving alone does not order.
        let arrive = "mbarrier.arrive.shared.b64 %rd5, [bar];\n";
        let report = run(64, seed, &format!("{INIT}{write}{arrive}{read}"));
        assert!(!report.is_clean(), "{report}");
        // Neither does a write after the arrival.
        let report = run(64, seed, &format!("{INIT}{ARRIVE_AND_WAIT}{write}{read}"));
        assert!(!report.is_clean(), "{report}");
    }
}

#[test]
fn phases_by_parity_and_many_rounds() {
    let body = format!(
        "{INIT}mov.u32 %r3, 0;\nLOOP:\nmbarrier.arrive.shared.b64 _, [bar];\nand.b32 %r4, %r3, 1;\n\
         WAIT:\nmbarrier.test_wait.parity.shared.b64 %p2, [bar], %r4;\n@!%p2 bra WAIT;\n\
         add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p3, %r3, 9;\n@%p3 bra LOOP;\nst.global.u32 [%rd3], %r3;\n"
    );
    for seed in 0..4 {
        let (bench, y) = bench(96, seed);
        bench.clean(&kernel(&body));
        assert_eq!(bench.words(y, 1), [9]);
    }
}

/// One lane arrives after a long way, and the others of its warp wait for that before it or after it: nobody is
/// stuck.
#[test]
fn lanes_wait_for_one_of_their_own_warp() {
    let work = "mov.u32 %r3, 0;\nWORK:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p3, %r3, 400000;\n@%p3 bra WORK;\n\
        mbarrier.arrive.shared.b64 _, [bar];\n";
    let wait = "WAIT:\nmbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\n";
    let init = "setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared.b64 [bar], 1;\nbar.sync 0;\n";
    let store = "st.global.u32 [%rd3], 7;\n";
    for body in [
        format!("{init}@!%p1 bra WAIT;\n{work}{wait}{store}"),
        format!("{init}@%p1 bra OWN;\n{wait}bra.uni END;\nOWN:\n{work}END:\n{store}"),
    ] {
        for seed in 0..4 {
            let (bench, y) = bench(32, seed);
            bench.clean(&kernel(&body));
            assert_eq!(bench.words(y, 1), [7]);
        }
    }
}

#[test]
fn others_may_meet_often_before_they_arrive() {
    // Warp 0 waits while warps 1 and 2 meet at a barrier of their own, each time after a few instructions.
    let body = "setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared.b64 [bar], 64;\nbar.sync 0;\n\
        setp.lt.u32 %p2, %r0, 32;\n@%p2 bra WAIT;\nmov.u32 %r3, 0;\nWORK:\nbar.sync 1, 64;\nadd.u32 %r3, %r3, 1;\n\
        setp.lt.u32 %p3, %r3, 20000;\n@%p3 bra WORK;\nmbarrier.arrive.shared.b64 _, [bar];\nWAIT:\n\
        mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\nst.global.u32 [%rd3], 7;\n";
    for seed in 0..4 {
        let (bench, y) = bench(96, seed);
        bench.clean(&kernel(body));
        assert_eq!(bench.words(y, 1), [7]);
        // One arrival too few is a deadlock after all that.
        let report = run(96, seed, &body.replace("[bar], 64;", "[bar], 65;"));
        assert_eq!(report.trap().expect("a deadlock").kind, Kind::Deadlock, "{report}");
    }
}

#[test]
fn transactions_hold_a_phase_back() {
    // Thread 0 expects 16 bytes, thread 32 brings them.
    let body = "mov.u32 %r9, 1;\nsetp.eq.u32 %p1, %r0, 0;\nsetp.eq.u32 %p3, %r0, 32;\n@%p1 mbarrier.init.shared.b64 [bar], 1;\nbar.sync 0;\n\
        @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n@%p3 mbarrier.complete_tx.shared.b64 [bar], 16;\n\
        mov.u32 %r4, 0;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], %r4;\n@!%p2 bra WAIT;\n";
    for seed in 0..6 {
        let report = run(64, seed, body);
        assert!(report.findings.is_empty(), "{report}");
        // Without them nobody goes on, and the report says what is missing.
        let report = run(64, seed, &body.replace("@%p3 mbarrier.complete_tx.shared.b64 [bar], 16;\n", ""));
        let finding = report.trap().expect("a deadlock");
        assert_eq!(finding.kind, Kind::Deadlock, "{report}");
        assert!(finding.detail.contains("phase 0, 0 of 1 arrivals and 16 bytes pending"), "{report}");
    }
}

#[test]
fn misuse_of_mbarriers_is_found() {
    let cases = [
        ("mbarrier.arrive.shared.b64 %rd5, [bar];", 0, "no initialised mbarrier"),
        ("mbarrier.init.shared.b64 [bar], 1;\nmbarrier.init.shared.b64 [bar], 1;", 1, "is live"),
        (
            "mbarrier.init.shared.b64 [bar], 1;\nmbarrier.inval.shared.b64 [bar];\nmbarrier.inval.shared.b64 [bar];",
            2,
            "no initialised",
        ),
        ("mov.u32 %r3, 0;\nmbarrier.init.shared.b64 [bar], %r3;", 1, "the count is 0"),
        (
            "mbarrier.init.shared.b64 [bar], 1;\nmbarrier.arrive.noComplete.shared.b64 %rd5, [bar], 1;",
            1,
            "would complete the phase (phase 0, 1 of 1 arrivals",
        ),
        (
            "mbarrier.init.shared.b64 [bar], 2;\nmov.u32 %r3, 3;\nmbarrier.arrive.shared.b64 _, [bar], %r3;",
            2,
            "3 arrivals where the phase waits for 2 more",
        ),
        (
            "mbarrier.init.shared.b64 [bar], 1;\nmbarrier.arrive.shared.b64 %rd5, [bar];\nmbarrier.arrive.shared.b64 _, [bar];\n\
             mbarrier.test_wait.shared.b64 %p2, [bar], %rd5;",
            3,
            "the state is of phase 0; the mbarrier is in phase 2",
        ),
        (
            "mbarrier.init.shared.b64 [bar], 1;\nst.shared.u32 [bar], 7;\nmbarrier.arrive.shared.b64 _, [bar];",
            2,
            "an ordinary store has written over the mbarrier",
        ),
        (
            "mbarrier.init.shared.b64 [bar], 1;\nld.shared.u32 %r3, [bar];\nst.global.u32 [%rd3], %r3;",
            1,
            "ordinary read of the mbarrier",
        ),
        ("mbarrier.init.shared.b64 [bar], 1;\nmbarrier.expect_tx.shared.b64 [bar], 2000000;", 1, "beyond"),
    ];
    for (body, line, why) in cases {
        let report = run(1, 0, body);
        let finding = only(&report, Kind::BarrierMisuse, BODY + line);
        assert!(finding.detail.contains(why), "{report}");
    }
    // Not in shared memory.
    let report = run(1, 0, "mbarrier.init.b64 [%rd2], 1;");
    only(&report, Kind::OutOfBounds, BODY);
    // Initialised by one thread and used by another warp without a barrier between.
    let body =
        "setp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared.b64 [bar], 64;\nmbarrier.arrive.shared.b64 _, [bar];";
    for seed in 0..4 {
        assert!(!run(64, seed, body).is_clean());
    }
}

#[test]
fn pending_counts_and_dropped_threads() {
    let body = "mbarrier.init.shared.b64 [bar], 5;\nmov.u32 %r3, 2;\nmbarrier.arrive.noComplete.shared.b64 %rd5, [bar], %r3;\n\
        mbarrier.pending_count.b64 %r4, %rd5;\nmbarrier.arrive_drop.shared.b64 %rd6, [bar], %r3;\nmbarrier.pending_count.b64 %r5, %rd6;\n\
        mbarrier.arrive.shared.b64 _, [bar];\nmbarrier.arrive.noComplete.shared.b64 %rd5, [bar], %r3;\nmbarrier.pending_count.b64 %r6, %rd5;\n\
        mov.u32 %r7, 0;\nst.global.v4.u32 [%rd3], {%r4, %r5, %r6, %r7};";
    let (bench, y) = bench(1, 0);
    bench.clean(&kernel(body));
    // Two have dropped out of five, so that the second phase waits for three.
    assert_eq!(bench.words(y, 3), [5, 3, 3]);
}

#[test]
fn a_copy_ends_before_its_block() {
    for (wait, waits) in [
        ("", false),
        ("cp.async.wait_group 0;\n", false),
        ("cp.async.commit_group;\ncp.async.wait_group 1;\n", false),
        ("cp.async.commit_group;\ncp.async.wait_group 0;\n", true),
        ("cp.async.wait_all;\n", true),
    ] {
        for seed in 0..4 {
            let report = run(64, seed, &format!("{COPY}{wait}"));
            match waits {
                true => assert!(report.is_clean(), "{report}"),
                false => drop(only(&report, Kind::UnfinishedCopy, BODY)),
            }
        }
    }
}

#[test]
fn copies_arrive_at_mbarriers() {
    for arrive in [
        "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n",
        "cp.async.mbarrier.arrive.shared.b64 [bar];\nmbarrier.arrive.shared.b64 _, [bar];\n",
    ] {
        let wait = "mov.u32 %r8, 0;\nWAIT:\nmbarrier.test_wait.parity.shared.b64 %p2, [bar], %r8;\n@!%p2 bra WAIT;\n";
        for seed in 0..4 {
            let (bench, y) = bench(64, seed);
            let read = READ.replace("[%r1]", "[%r3]");
            bench.clean(&kernel(&format!("{INIT}{COPY}{arrive}{wait}xor.b32 %r3, %r1, 512;\n{read}")));
            assert_eq!(bench.words(y, 2), [128, 129]);
        }
    }
}

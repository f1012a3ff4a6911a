//! Order by fences and strong accesses between warps of a block: what is released and acquired is ordered, the same
//! program without one of its fences races at the line of the access.

use crate::common::{Bench, module, only};
use tilewright_emulator::{Kind, Options};

/// Runs with several seeds; the findings of each.
fn outcomes(body: &str) -> Vec<Option<(Kind, u32)>> {
    let shared = ".shared .align 4 .b8 s[64];";
    let text = module(".param .u64 a", &format!("{shared}\n{body}"));
    let mut all = Vec::new();
    for seed in 0..12 {
        let mut bench = Bench::new(1, 64);
        bench.options = Options { seed, ..bench.options };
        bench.empty("a", 64);
        let report = bench.run(&text);
        all.push(report.findings.first().map(|finding| (finding.kind, finding.place.line)));
    }
    all
}

/// Warp 1 waits for a flag in shared memory and reads what warp 0 wrote before it.
fn message(release: &str, acquire: &str) -> String {
    format!(
        "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 32; @%p1 st.shared.u32 [s+4], 0; bar.sync 0;\n\
         @%p1 st.shared.u32 [s], 77;\n\
         {release}\n\
         @!%p2 bra DONE;\n\
         WAIT: {acquire} setp.eq.u32 %p3, %r2, 0; @%p3 bra WAIT;\n\
         ld.shared.u32 %r3, [s];\n\
         st.global.u32 [%rd1], %r3;\n\
         DONE: ret;"
    )
}

#[test]
fn messages_are_ordered_by_release_and_acquire() {
    let release = "@%p1 st.release.cta.shared.u32 [s+4], 1;";
    let acquire = "ld.acquire.cta.shared.u32 %r2, [s+4];";
    let fenced = "@%p1 fence.acq_rel.cta; @%p1 st.relaxed.cta.shared.u32 [s+4], 1;";
    let exchanged = "@%p1 fence.acq_rel.cta; @%p1 atom.shared.exch.b32 %r4, [s+4], 1;";
    let looking = "ld.volatile.shared.u32 %r2, [s+4]; fence.acq_rel.cta;";
    for (release, acquire) in [(release, acquire), (fenced, looking), (exchanged, looking), (release, looking)] {
        assert!(outcomes(&message(release, acquire)).iter().all(Option::is_none), "{release} {acquire}");
    }
}

#[test]
fn a_missing_fence_is_a_race_at_the_read() {
    let acquire = "ld.acquire.cta.shared.u32 %r2, [s+4];";
    let relaxed = "@%p1 st.relaxed.cta.shared.u32 [s+4], 1;";
    let release = "@%p1 st.release.cta.shared.u32 [s+4], 1;";
    let looking = "ld.relaxed.cta.shared.u32 %r2, [s+4];";
    // A fence after the flag orders nothing.
    let late = "@%p1 st.relaxed.cta.shared.u32 [s+4], 1; @%p1 fence.acq_rel.cta;";
    for (release, acquire) in [(relaxed, acquire), (release, looking), (late, acquire)] {
        for found in outcomes(&message(release, acquire)) {
            assert_eq!(found, Some((Kind::Race, 11)), "{release} {acquire}");
        }
    }
}

/// Both warps add to a word under a lock.
fn lock(acquire: &str, release: &str) -> String {
    format!(
        "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; and.b32 %r5, %r1, 31; setp.eq.u32 %p1, %r1, 0;\n\
         @%p1 st.shared.u32 [s], 0; @%p1 st.shared.u32 [s+4], 0; bar.sync 0; setp.ne.u32 %p2, %r5, 0; @%p2 bra DONE;\n\
         AGAIN: {acquire} setp.ne.u32 %p3, %r2, 0; @%p3 bra AGAIN;\n\
         ld.shared.u32 %r3, [s]; add.u32 %r3, %r3, 1;\n\
         st.shared.u32 [s], %r3;\n\
         {release}\n\
         DONE: bar.sync 0; @!%p1 bra OUT; ld.shared.u32 %r3, [s]; st.global.u32 [%rd1], %r3; OUT: ret;"
    )
}

#[test]
fn locks_order_what_they_protect() {
    let (take, give) =
        ("atom.acquire.cta.shared.cas.b32 %r2, [s+4], 0, 1;", "atom.release.cta.shared.exch.b32 %r4, [s+4], 0;");
    let (fenced, after) = (
        "atom.shared.cas.b32 %r2, [s+4], 0, 1; fence.acq_rel.cta;",
        "fence.acq_rel.cta; st.volatile.shared.u32 [s+4], 0;",
    );
    for (acquire, release) in [(take, give), (fenced, after), (take, after)] {
        assert!(outcomes(&lock(acquire, release)).iter().all(Option::is_none), "{acquire} {release}");
    }
    let bare = "atom.shared.cas.b32 %r2, [s+4], 0, 1;";
    let open = "atom.shared.exch.b32 %r4, [s+4], 0;";
    for (acquire, release) in [(bare, give), (take, open)] {
        for found in outcomes(&lock(acquire, release)) {
            assert!(matches!(found, Some((Kind::Race, 9 | 10))), "{found:?}: {acquire} {release}");
        }
    }
}

/// A sum by compare-and-swap with a plain guess; and one that trusts the plain value.
#[test]
fn a_guess_before_compare_and_swap_is_no_race() {
    let sum = |end: &str| {
        format!(
            "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 0; bar.sync 0;\n\
             ld.shared.u32 %r2, [s];\n\
             AGAIN: add.u32 %r3, %r2, 1; mov.u32 %r6, %r2;\n\
             {end} ret;"
        )
    };
    let swap = "atom.shared.cas.b32 %r4, [s], %r6, %r3; setp.ne.u32 %p2, %r4, %r2; mov.u32 %r2, %r4; @%p2 bra AGAIN;";
    assert!(outcomes(&sum(swap)).iter().all(Option::is_none));
    for found in outcomes(&sum("atom.shared.add.u32 %r4, [s], 1;")) {
        assert!(matches!(found, Some((Kind::Race, _))), "{found:?}");
    }
}

/// The flag is left by a difference's carry, not by its borrow: what the assembler does, and CUDA's 128-bit division
/// relies on.
#[test]
fn sums_read_the_carry_of_differences() {
    let mut bench = Bench::new(1, 1);
    let out = bench.empty("a", 6);
    let body = "ld.param.u64 %rd1, [a]; mov.u32 %r0, 0; mov.u32 %r1, 5; mov.u32 %r2, 9;\n\
        sub.cc.u32 %r3, %r1, %r2; addc.u32 %r4, %r0, %r0; st.global.u32 [%rd1], %r4;\n\
        sub.cc.u32 %r3, %r2, %r1; addc.u32 %r4, %r0, %r0; st.global.u32 [%rd1+4], %r4;\n\
        sub.cc.u32 %r3, %r1, %r2; subc.u32 %r4, %r0, %r0; st.global.u32 [%rd1+8], %r4;\n\
        sub.cc.u32 %r3, %r2, %r1; subc.u32 %r4, %r0, %r0; st.global.u32 [%rd1+12], %r4;\n\
        add.cc.u32 %r3, %r2, %r1; subc.u32 %r4, %r2, %r1; st.global.u32 [%rd1+16], %r4;\n\
        add.cc.u32 %r3, %r2, -1; subc.u32 %r4, %r2, %r1; st.global.u32 [%rd1+20], %r4; ret;";
    bench.clean(&module(".param .u64 a", body));
    assert_eq!(bench.words(out, 6), [0, 1, u32::MAX, 0, 3, 4]);
    let report = bench
        .run(&module(".param .u64 a", "add.u32 %r2, %r1, 1;\nld.param.u64 %rd1, [a]; st.global.u32 [%rd1], %r2; ret;"));
    only(&report, Kind::UninitialisedRegister, 6);
}

/// Lanes of one warp: lane 0 writes, others read, with a meeting of `members` in between in which both take part.
fn lanes(members: u32, reader: u32) -> String {
    format!(
        "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, {reader}; shl.b32 %r2, 1, %r1; and.b32 %r2, %r2, {members};\n\
         setp.ne.u32 %p3, %r2, 0; mov.u32 %r4, 0;\n\
         @%p1 st.shared.u32 [s], 77;\n\
         @%p3 bar.warp.sync {members};\n\
         @%p2 ld.shared.u32 %r4, [s];\n\
         @%p2 st.global.u32 [%rd1], %r4; ret;"
    )
}

#[test]
fn a_meeting_of_some_lanes_orders_those() {
    for (members, reader) in [(0b11, 1), (0xff, 7), (u32::MAX, 31)] {
        assert!(outcomes(&lanes(members, reader)).iter().all(Option::is_none), "{members:#x} {reader}");
    }
    // The reader is not among those who met, or the writer is not.
    for (members, reader) in [(0b11, 2), (0xff, 31), (0b1110, 1)] {
        for found in outcomes(&lanes(members, reader)) {
            assert_eq!(found, Some((Kind::Race, 10)), "{members:#x} {reader}");
        }
    }
}

#[test]
fn meetings_pass_on_what_they_know() {
    // Lane 0 meets lane 1, lane 1 meets lane 2: lane 2 reads what lane 0 wrote.
    let chain = |second: &str| {
        format!(
            "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 2; mov.u32 %r4, 0;\n\
             @%p1 st.shared.u32 [s], 77;\n\
             setp.lt.u32 %p3, %r1, 2; @%p3 bar.warp.sync 3;\n\
             add.u32 %r2, %r1, -1; setp.lt.u32 %p3, %r2, 2; {second}\n\
             @%p2 ld.shared.u32 %r4, [s];\n\
             @%p2 st.global.u32 [%rd1], %r4; ret;"
        )
    };
    assert!(outcomes(&chain("@%p3 bar.warp.sync 6;")).iter().all(Option::is_none));
    for found in outcomes(&chain("")) {
        assert_eq!(found, Some((Kind::Race, 10)));
    }
    // A fence or a release by a lane is no meeting.
    for found in outcomes(&chain("@%p3 bra OVER; st.release.cta.shared.u32 [s+8], 1; OVER:")) {
        assert_eq!(found.map(|found| found.0), Some(Kind::Race));
    }
}

/// A consumer that skips phases takes an older one for the newer.
#[test]
fn a_wait_two_phases_late_is_found() {
    let body = |rounds: u32| {
        format!(
            "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [s], 1; bar.sync 0;\n\
             @!%p1 bra DONE;\n\
             mbarrier.arrive.shared.b64 %rd2, [s]; mbarrier.test_wait.parity.shared.b64 %p2, [s], 0;\n\
             mov.u32 %r3, 0;\n\
             AGAIN: mbarrier.arrive.shared.b64 %rd2, [s]; add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, {rounds}; @%p3 bra AGAIN;\n\
             mbarrier.test_wait.parity.shared.b64 %p2, [s], 1;\n\
             DONE: ret;"
        )
    };
    assert!(outcomes(&body(1)).iter().all(Option::is_none));
    for rounds in [2, 3] {
        for found in outcomes(&body(rounds)) {
            assert_eq!(found, Some((Kind::BarrierMisuse, 11)), "{rounds}");
        }
    }
}

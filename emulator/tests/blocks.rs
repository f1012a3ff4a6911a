//! Order between blocks: messages, tickets and locks in global memory are ordered by a release and an acquire that
//! barriers lead to and from; the same program without one of them races, and the finding names both accesses and what
//! is missing.

use crate::common::{Bench, module};
use tilewright_emulator::{Finding, Kind, Options, Report};

const SEEDS: u64 = 24;

/// Line of the first instruction of a body.
const BODY: u32 = 10;

/// The data in `%rd0`, a flag in `%rd1`, results in `%rd2`; thread and block in `%r0`, `%r1`.
fn kernel(body: &str) -> String {
    let params = ".param .u64 x, .param .u64 flag, .param .u64 y";
    let prologue = "ld.param.u64 %rd0, [x];\nld.param.u64 %rd1, [flag];\nld.param.u64 %rd2, [y];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;";
    module(params, &format!("{prologue}\n{body}\nret;"))
}

/// What several seeds find.
fn reports(grid: u32, block: u32, body: &str) -> Vec<Report> {
    let text = kernel(body);
    let run = |seed| {
        let mut bench = Bench::new(grid, block);
        bench.options = Options { seed, ..bench.options };
        bench.buffer("x", &vec![0; 64 * grid as usize]);
        bench.buffer("flag", &[0; 64]);
        bench.empty("y", 64 * grid as usize);
        bench.run(&text)
    };
    (0..SEEDS).map(run).collect()
}

fn clean(grid: u32, block: u32, body: &str) {
    for report in reports(grid, block, body) {
        assert!(report.findings.is_empty(), "{report}\n{}", kernel(body));
    }
}

/// Every seed that finds anything finds races, at least `least` seeds do, and the first of some seed says what is
/// missing.
fn racy(grid: u32, block: u32, body: &str, least: usize, missing: &str) -> Finding {
    let mut found = Vec::new();
    for report in reports(grid, block, body) {
        assert!(report.findings.iter().all(|finding| finding.kind == Kind::Race), "{report}\n{}", kernel(body));
        found.extend(report.findings.first().cloned());
    }
    assert!(found.len() >= least, "{} of {SEEDS} seeds\n{}", found.len(), kernel(body));
    let said = found.iter().find(|finding| finding.detail.contains(missing));
    said.unwrap_or_else(|| panic!("`{missing}` is not said:\n{}\n{}", found[0], kernel(body))).clone()
}

/// Block 0 writes a word and raises the flag, block 1 waits for the flag and reads the word; one thread each.
fn message(release: &str, acquire: &str) -> String {
    format!(
        "setp.ne.u32 %p0, %r1, 0;\n@%p0 bra READ;\nst.global.u32 [%rd0], 7;\n{release}\nret;\nREAD:\n\
         WAIT: {acquire}\nsetp.eq.u32 %p1, %r2, 0; @%p1 bra WAIT;\nld.global.u32 %r3, [%rd0];\nst.global.u32 [%rd2], %r3;"
    )
}

const RELEASES: [&str; 5] = [
    "st.release.gpu.global.u32 [%rd1], 1;",
    "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd1], 1;",
    "membar.gl; st.volatile.global.u32 [%rd1], 1;",
    "fence.sc.sys; red.relaxed.gpu.global.add.u32 [%rd1], 1;",
    "atom.acq_rel.gpu.global.exch.b32 %r4, [%rd1], 1;",
];
const ACQUIRES: [&str; 4] = [
    "ld.acquire.gpu.global.u32 %r2, [%rd1];",
    "ld.relaxed.gpu.global.u32 %r2, [%rd1]; fence.acq_rel.gpu;",
    "ld.volatile.global.u32 %r2, [%rd1]; membar.gl;",
    "atom.acquire.gpu.global.add.u32 %r2, [%rd1], 0;",
];

#[test]
fn messages_between_blocks() {
    for release in RELEASES {
        for acquire in ACQUIRES {
            clean(2, 1, &message(release, acquire));
        }
    }
}

#[test]
fn a_message_without_a_fence_is_a_race() {
    let bare = [
        "st.relaxed.gpu.global.u32 [%rd1], 1;",
        "red.global.add.u32 [%rd1], 1;",
        // Too narrow, and too late.
        "fence.acq_rel.cta; st.relaxed.gpu.global.u32 [%rd1], 1;",
        "st.relaxed.gpu.global.u32 [%rd1], 1; fence.acq_rel.gpu;",
    ];
    for release in bare {
        let found = racy(2, 1, &message(release, ACQUIRES[0]), SEEDS as usize, "block (0, 0, 0) has released nothing");
        assert_eq!(found.place.line, BODY + 8, "{found}");
        assert_eq!(found.thread.cta, [1, 0, 0], "{found}");
        let other = found.other.unwrap();
        assert_eq!((other.place.line, other.thread.cta), (BODY + 2, [0, 0, 0]));
    }
    for acquire in [
        "ld.relaxed.gpu.global.u32 %r2, [%rd1];",
        "ld.relaxed.gpu.global.u32 %r2, [%rd1]; fence.acq_rel.cta;",
        "fence.acq_rel.gpu; ld.relaxed.gpu.global.u32 %r2, [%rd1];",
    ] {
        // A fence before the next try is after the one before.
        let said = "is missing";
        let found = racy(2, 1, &message(RELEASES[0], acquire), SEEDS as usize, said);
        assert_eq!(found.place.line, BODY + 8, "{found}");
    }
    let found =
        racy(2, 1, &message(RELEASES[0], "ld.relaxed.gpu.global.u32 %r2, [%rd1];"), 1, "warp 0, lane 0 has seen");
    assert!(found.detail.contains(&format!("line {}", BODY + 6)), "{found}");
    // A flag that only its block may look at.
    let narrow = "fence.acq_rel.gpu; st.relaxed.cta.global.u32 [%rd1], 1;";
    racy(2, 1, &message(narrow, ACQUIRES[0]), 1, "block (0, 0, 0) has released nothing");
    // A fence before what it should release.
    let early = message("", ACQUIRES[0]).replace(
        "st.global.u32 [%rd0], 7;\n",
        "fence.acq_rel.gpu; st.global.u32 [%rd0], 7; st.relaxed.gpu.global.u32 [%rd1], 1;\n",
    );
    let found = racy(2, 1, &early, 1, "one after it is missing");
    assert!(found.detail.contains("`fence.acq_rel.gpu`"), "{found}");
}

#[test]
fn a_value_that_was_overwritten_releases_nothing() {
    // A relaxed store replaces the released value; an atomic operation hands it on.
    let chain = |second: &str| {
        format!(
            "setp.eq.u32 %p0, %r1, 0;\n@%p0 st.global.u32 [%rd0], 7;\n@%p0 st.release.gpu.global.u32 [%rd1], 1;\n\
             setp.ne.u32 %p1, %r1, 1;\n@%p1 bra LAST;\nA: ld.relaxed.gpu.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p2, %r2, 0; @%p2 bra A;\n{second}\n\
             LAST: setp.ne.u32 %p1, %r1, 2;\n@%p1 bra DONE;\nB: ld.acquire.gpu.global.u32 %r2, [%rd1];\nsetp.lt.u32 %p2, %r2, 2; @%p2 bra B;\n\
             ld.global.u32 %r3, [%rd0];\nst.global.u32 [%rd2], %r3;\nDONE:"
        )
    };
    clean(3, 1, &chain("red.relaxed.gpu.global.add.u32 [%rd1], 1;"));
    racy(3, 1, &chain("st.relaxed.gpu.global.u32 [%rd1], 2;"), 1, "has not read what that wrote");
}

#[test]
fn order_is_handed_on_from_block_to_block() {
    // Block 0 tells block 1 by one flag, block 1 tells block 2 by another one (PTX manual 8.9.5, cumulativity).
    let chain = |first: &str, second: &str| {
        format!(
            "setp.eq.u32 %p0, %r1, 0;\n@%p0 st.global.u32 [%rd0], 7;\n@%p0 st.release.gpu.global.u32 [%rd1], 1;\n\
             setp.ne.u32 %p1, %r1, 1;\n@%p1 bra LAST;\nA: {first}\nsetp.eq.u32 %p2, %r2, 0; @%p2 bra A;\n{second}\n\
             LAST: setp.ne.u32 %p1, %r1, 2;\n@%p1 bra DONE;\nB: ld.acquire.gpu.global.u32 %r2, [%rd1+64];\nsetp.eq.u32 %p2, %r2, 0; @%p2 bra B;\n\
             ld.global.u32 %r3, [%rd0];\nst.global.u32 [%rd2], %r3;\nDONE:"
        )
    };
    let (acquire, release) = ("ld.acquire.gpu.global.u32 %r2, [%rd1];", "st.release.gpu.global.u32 [%rd1+64], 1;");
    clean(3, 1, &chain(acquire, release));
    let (look, tell) = ("ld.relaxed.gpu.global.u32 %r2, [%rd1];", "st.relaxed.gpu.global.u32 [%rd1+64], 1;");
    for (first, second) in [(look, tell), (acquire, tell)] {
        racy(3, 1, &chain(first, second), SEEDS as usize, "has not read what that wrote");
    }
    // One fence does for both, but the one of a release does not acquire.
    clean(3, 1, &chain(look, &format!("fence.acq_rel.gpu; {tell}")));
    racy(3, 1, &chain(look, release), SEEDS as usize, "has not read what that wrote");
}

/// Every thread writes its word; the first one of each block arrives at a counter; the threads of the last block read
/// all words.
fn tickets(in_front: &str, arrival: &str, behind: &str) -> String {
    format!(
        ".shared .align 4 .b8 s[4];\n\
         mad.lo.u32 %r2, %r1, 64, %r0; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd3, %rd0;\nst.global.u32 [%rd3], %r2;\n{in_front}\n\
         setp.eq.u32 %p0, %r0, 0; mov.u32 %r3, 0;\n{arrival}\n@%p0 st.shared.u32 [s], %r3;\n{behind}\n\
         ld.shared.u32 %r3, [s]; setp.ne.u32 %p1, %r3, 3;\n@%p1 bra DONE;\n\
         mov.u32 %r5, 0; mul.wide.u32 %rd3, %r0, 4; add.u64 %rd3, %rd3, %rd0;\n\
         L: ld.global.u32 %r4, [%rd3];\nadd.u64 %rd3, %rd3, 256; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 4; @%p1 bra L;\nDONE:"
    )
}
const TICKET: &str = "@%p0 atom.acq_rel.gpu.global.add.u32 %r3, [%rd1], 1;";
const FENCED_TICKET: &str =
    "@%p0 fence.acq_rel.gpu; @%p0 atom.relaxed.gpu.global.add.u32 %r3, [%rd1], 1; @%p0 fence.acq_rel.gpu;";
/// As CUDA's sample of threadfence reductions: each thread fences for itself.
const ALL_FENCE: &str = "membar.gl; bar.sync 0;\n@%p0 atom.global.add.u32 %r3, [%rd1], 1;";

#[test]
fn the_last_block_reads_what_all_have_written() {
    for arrival in [TICKET, FENCED_TICKET] {
        clean(4, 64, &tickets("bar.sync 0;", arrival, "bar.sync 0;"));
    }
    clean(4, 64, &tickets("", ALL_FENCE, "bar.sync 0; membar.gl;"));
    // Fences have one order if they are sequential; others do nothing for what another thread writes after the
    // barrier.
    let acquire_release = ALL_FENCE.replace("membar.gl", "fence.acq_rel.gpu");
    racy(
        4,
        64,
        &tickets("", &acquire_release, "bar.sync 0; fence.acq_rel.gpu;"),
        SEEDS as usize,
        "between the write and that fence",
    );
}

#[test]
fn a_barrier_in_front_of_the_arrival_is_missed() {
    // The barrier after is the one that shared memory needs.
    for arrival in [TICKET, FENCED_TICKET] {
        let found = racy(
            4,
            64,
            &tickets("", arrival, "bar.sync 0;"),
            SEEDS as usize,
            "a barrier (`bar.sync`) between the write and that fence",
        );
        assert_eq!(found.place.line, BODY + 11, "{found}");
        assert_eq!(found.other.as_ref().unwrap().place.line, BODY + 2, "{found}");
        assert_ne!(found.other.as_ref().unwrap().thread.cta, found.thread.cta);
    }
    // One warp, of which one lane arrives: the others wrote, too.
    racy(
        4,
        32,
        &tickets("", TICKET, "bar.sync 0;"),
        SEEDS as usize,
        "a barrier (`bar.sync`) between the write and that fence",
    );
    clean(4, 32, &tickets("bar.warp.sync 0xffffffff;", TICKET, "bar.warp.sync 0xffffffff;"));
}

#[test]
fn a_barrier_behind_the_decision_is_missed() {
    // The threads learn the number by strong accesses, so that none of those of shared memory race.
    let body = |barrier: &str| {
        tickets("@%p0 st.volatile.shared.u32 [s], 0; bar.sync 0;", TICKET, "")
            .replace("setp.eq.u32 %p0, %r0, 0; mov.u32 %r3, 0;", "mov.u32 %r3, 0;")
            .replace("mad.lo", "setp.eq.u32 %p0, %r0, 0; mad.lo")
            .replace("@%p0 st.shared.u32 [s], %r3;", "@%p0 add.u32 %r3, %r3, 1; @%p0 st.volatile.shared.u32 [s], %r3;")
            .replace(
                "ld.shared.u32 %r3, [s];",
                &format!("W: ld.volatile.shared.u32 %r3, [s]; setp.eq.u32 %p1, %r3, 0; @%p1 bra W; {barrier}"),
            )
            .replace("%r3, 3;", "%r3, 4;")
    };
    clean(4, 64, &body("bar.sync 0;"));
    let found = racy(4, 64, &body(""), 1, "between that and the read is missing");
    assert!(found.detail.contains("has acquired it at"), "{found}");
    let found = racy(4, 32, &body(""), 1, "between that and the read is missing");
    assert_ne!(found.thread.lane, 0, "lane 0 has acquired: {found}");
    clean(4, 32, &body("bar.warp.sync 0xffffffff;"));
}

#[test]
fn atomics_that_publish_nothing() {
    let relaxed = "@%p0 atom.relaxed.gpu.global.add.u32 %r3, [%rd1], 1;";
    racy(
        4,
        64,
        &tickets("bar.sync 0;", relaxed, "bar.sync 0; fence.acq_rel.gpu;"),
        SEEDS as usize,
        "has released nothing",
    );
    let release = "@%p0 atom.release.gpu.global.add.u32 %r3, [%rd1], 1;";
    racy(4, 64, &tickets("bar.sync 0;", release, "bar.sync 0;"), SEEDS as usize, "is missing");
    // Atomic operations themselves race with nobody but plain accesses.
    clean(4, 64, "red.relaxed.gpu.global.add.u32 [%rd0], 1; fence.acq_rel.gpu; atom.global.add.u32 %r3, [%rd0], 1;");
    racy(4, 1, "fence.acq_rel.gpu; red.global.add.u32 [%rd0], 1; ld.global.u32 %r2, [%rd0];", SEEDS as usize, "");
    // Of the block's scope they race with those of other blocks.
    racy(4, 1, "fence.acq_rel.gpu; red.relaxed.cta.global.add.u32 [%rd0], 1;", SEEDS as usize, "has released nothing");
}

#[test]
fn a_block_that_is_not_the_last_reads_too_much() {
    let any =
        tickets("bar.sync 0;", TICKET, "bar.sync 0;").replace("setp.ne.u32 %p1, %r3, 3;", "setp.lt.u32 %p1, %r3, 1;");
    racy(4, 64, &any, SEEDS as usize, "");
}

#[test]
fn a_lock_orders_what_it_protects() {
    let lock = |take: &str, give: &str| {
        format!(
            "AGAIN: {take}\nsetp.ne.u32 %p1, %r2, 0; @%p1 bra AGAIN;\nld.global.u32 %r3, [%rd0]; add.u32 %r3, %r3, 1;\nst.global.u32 [%rd0], %r3;\n{give}"
        )
    };
    let (take, give) =
        ("atom.acquire.gpu.global.cas.b32 %r2, [%rd1], 0, 1;", "atom.release.gpu.global.exch.b32 %r4, [%rd1], 0;");
    clean(8, 1, &lock(take, give));
    clean(8, 1, &lock(take, "membar.gl; st.volatile.global.u32 [%rd1], 0;"));
    racy(8, 1, &lock("atom.relaxed.gpu.global.cas.b32 %r2, [%rd1], 0, 1;", give), SEEDS as usize, "is missing");
    racy(8, 1, &lock(take, "atom.relaxed.gpu.global.exch.b32 %r4, [%rd1], 0;"), SEEDS as usize, "has released nothing");
}

#[test]
fn blocks_that_meet_again_and_again() {
    // A barrier of the grid in each round: reads of the last round are over before the next one's writes.
    let rounds = |fence: &str| {
        format!(
            "mov.u32 %r9, 0;\nmad.wide.u32 %rd3, %r1, 4, %rd0;\nadd.u32 %r5, %r1, 1; rem.u32 %r5, %r5, 6; mad.wide.u32 %rd4, %r5, 4, %rd0;\n\
             ROUND: st.global.u32 [%rd3], %r9;\n{meet}\nld.global.u32 %r6, [%rd4]; setp.ne.u32 %p2, %r6, %r9; @%p2 trap;\n{fence}\n\
             add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 5; @%p1 bra ROUND;",
            meet = meet("A", 0)
        )
    };
    fn meet(label: &str, at: u32) -> String {
        format!(
            "red.release.gpu.global.add.u32 [%rd1+{at}], 1; mad.lo.u32 %r7, %r9, 6, 6;\n\
             {label}: ld.acquire.gpu.global.u32 %r8, [%rd1+{at}]; setp.lt.u32 %p1, %r8, %r7; @%p1 bra {label};"
        )
    }
    clean(6, 1, &rounds(&meet("B", 64)));
    let found = reports(6, 1, &rounds(""));
    assert!(found.iter().any(|report| report.findings.iter().any(|f| f.kind == Kind::Race)), "one barrier is too few");
}

/// Memory that many blocks only read stays small, and a write that comes before them is found.
#[test]
fn many_readers_of_a_line() {
    let body = "setp.ne.u32 %p0, %r1, 200;\nld.global.u32 %r2, [%rd0];\nfence.acq_rel.gpu; red.global.add.u32 [%rd1], 1;\n@!%p0 st.global.u32 [%rd0+4], 1;\n@!%p0 st.global.u32 [%rd0], 1;";
    let found = racy(201, 1, body, 1, "");
    assert_eq!(found.location.as_ref().unwrap().near.as_ref().unwrap().offset, 0, "{found}");
}

//! The same seed gives the same memory, findings and counters for any number of host threads, whether or not something
//! goes wrong.

use crate::common::{Bench, module};
use tilewright_emulator::{Options, Report};

const PARAMS: &str = ".param .u64 x, .param .u64 y";

const PROLOGUE: &str = "\
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
mov.u32 %r0, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mad.lo.u32 %r1, %r2, %r3, %r0;
mul.wide.u32 %rd4, %r1, 4;
add.u64 %rd2, %rd0, %rd4;
add.u64 %rd3, %rd1, %rd4;
";

const GRID: u32 = 37;
const BLOCK: u32 = 96;

fn run(body: &str, seed: u64, threads: usize) -> (Report, Vec<u32>, Vec<bool>) {
    let mut bench = Bench::new(GRID, BLOCK);
    let words = (GRID * BLOCK) as usize;
    bench.buffer("x", &(0..words as u32).collect::<Vec<_>>());
    let y = bench.empty("y", words);
    bench.options = Options { seed, threads: Some(threads), budget: 1 << 22, ..Options::default() };
    let report = bench.run(&module(PARAMS, &format!("{PROLOGUE}{body}\nret;")));
    let initialised = (0..words as u64).map(|i| bench.memory.is_initialised(y + 4 * i, 4).unwrap()).collect();
    (report, bench.words(y, words), initialised)
}

fn same_for_all_threads(body: &str, clean: bool) {
    for seed in [0, 1, 99] {
        let one = run(body, seed, 1);
        assert_eq!(one.0.findings.is_empty(), clean, "{}", one.0);
        for threads in [2, 3, 8] {
            let many = run(body, seed, threads);
            assert_eq!(one.0, many.0, "seed {seed}, {threads} threads");
            assert!(one.1 == many.1 && one.2 == many.2, "seed {seed}, {threads} threads: memory differs");
        }
    }
}

/// A register that nothing writes may be offered to other lanes, and be the lane that is asked for.
#[test]
fn unwritten_registers_do_not_keep_what_ran_before() {
    let body = "add.u32 %r4, %r0, 5;\nst.global.u32 [%rd3], %r4;\nmul.lo.u32 %r6, %r4, %r4;\nst.global.u32 [%rd3], %r6;\n\
        shfl.sync.idx.b32 %r5, %r7, 3, 31, 0xffffffff;\nst.global.u32 [%rd3], %r5;";
    same_for_all_threads(body, true);
    same_for_all_threads(&body.replace("%r7, 3", "%r7, %r7"), false);
}

#[test]
fn clean_kernels() {
    same_for_all_threads("ld.global.u32 %r6, [%rd2];\nadd.u32 %r6, %r6, 7;\nst.global.u32 [%rd3], %r6;", true);
    // Halves of words that neighbouring blocks share.
    let body = "add.u32 %r6, %r1, 1;\nmul.wide.u32 %rd5, %r6, 2;\nadd.u64 %rd5, %rd1, %rd5;\ncvt.u16.u32 %h0, %r1;\nst.global.u16 [%rd5], %h0;";
    same_for_all_threads(body, true);
}

#[test]
fn a_block_that_runs_out_of_bounds() {
    // Block 20 stores far outside; blocks after it must look as if they had never run.
    let body = "setp.eq.u32 %p0, %r2, 20;\nst.global.u32 [%rd3], %r1;\n@%p0 add.u64 %rd3, %rd3, 1000000;\nst.global.u32 [%rd3], %r1;";
    same_for_all_threads(body, false);
    let (report, words, _) = run(body, 0, 8);
    assert_eq!(report.trap().unwrap().thread.cta, [20, 0, 0]);
    assert_eq!(words[20 * BLOCK as usize - 1], 20 * BLOCK - 1);
    assert_eq!(words[21 * BLOCK as usize], u32::MAX, "uninitialised memory reads as ones");
}

#[test]
fn races_between_blocks() {
    let body =
        "and.b32 %r6, %r1, 63;\nmul.wide.u32 %rd5, %r6, 4;\nadd.u64 %rd5, %rd1, %rd5;\nst.global.u32 [%rd5], %r1;";
    same_for_all_threads(body, false);
}

#[test]
fn uninitialised_reads() {
    same_for_all_threads("ld.global.u32 %r6, [%rd3];\nadd.u32 %r6, %r6, %r1;\nst.global.u32 [%rd3], %r6;", false);
}

#[test]
fn atomics_in_an_order_of_their_own() {
    // The order of warps decides who gets which number: the same for the same seed, another for another.
    let body = "setp.ge.u32 %p0, %r1, 1;\n@!%p0 st.global.u32 [%rd1], 0;\nbar.sync 0;\natom.global.add.u32 %r6, [%rd0], 1;\nsetp.eq.u32 %p1, %r1, 0;\n@!%p1 st.global.u32 [%rd3], %r6;";
    same_for_all_threads(body, true);
    assert_ne!(run(body, 0, 1).1, run(body, 5, 1).1, "seeds change the order of warps");
}

#[test]
fn the_budget() {
    let mut findings = Vec::new();
    for threads in [1, 4] {
        let mut bench = Bench::new(64, 32);
        bench.buffer("x", &[0]);
        bench.empty("y", 1);
        bench.options = Options { threads: Some(threads), budget: 200_000, ..Options::default() };
        findings.push(bench.run(&module(PARAMS, "L: bra L;")).findings);
    }
    assert_eq!(findings[0], findings[1]);
    assert_eq!(findings[0].len(), 1);
}

//! Planted bugs, each found at its line, and the correct kernels next to them, in which nothing is found.

use crate::common::{Bench, module, only};
use tilewright_emulator::{Extent, Kind, Options, Program, Sanitizers};

const XY: &str = ".param .u64 x, .param .u64 y";

/// `%r0` thread in block, `%r1` thread in grid, `%rd0` and `%rd1` addresses of x and y, `%rd2` and `%rd3` of their
/// elements. 11 lines.
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
shl.b32 %r4, %r0, 2;
mov.u32 %r5, 0;
";
/// Line of the first instruction after the prologue.
const BODY: u32 = 16;

fn kernel(body: &str) -> String {
    module(XY, &format!("{PROLOGUE}{body}\nret;"))
}

fn bench(grid: u32, block: u32) -> Bench {
    let mut bench = Bench::new(grid, block);
    bench.buffer("x", &vec![3; (grid * block) as usize]);
    bench.empty("y", (grid * block) as usize);
    bench
}

#[test]
fn out_of_bounds_global() {
    let bench = bench(1, 40);
    let report = bench.run(&kernel("ld.global.u32 %r6, [%rd2+8];"));
    let finding = only(&report, Kind::OutOfBounds, BODY);
    assert!(finding.fatal);
    assert_eq!((finding.thread.warp, finding.thread.lane), (1, 6));
    let text = finding.to_string();
    assert!(text.contains("4 bytes past the end of `x` of 160 bytes"), "{text}");
    let report = bench.run(&kernel("ld.global.u32 %r6, [%rd0+-12];"));
    let text = only(&report, Kind::OutOfBounds, BODY).to_string();
    assert!(text.contains("12 bytes before `x`"), "{text}");
}

#[test]
fn views_are_checked_as_views() {
    let bench = bench(1, 32);
    let mut launch = bench.launch();
    let [x, y] = [0, 1].map(|i| u64::from_le_bytes(bench.args[i].0[..].try_into().unwrap()));
    let extent =
        |base, bytes, label: &str, read_only| Extent { base, bytes, label: label.into(), element: 4, read_only };
    launch.extents = vec![extent(x, 64, "x[..16]", true), extent(y, 128, "y", false)];
    let run =
        |body: &str| Program::parse(&kernel(body)).unwrap().launch(&launch, &bench.memory, &bench.options).unwrap();
    let report = run("ld.global.u32 %r6, [%rd2];\nst.global.u32 [%rd3], %r6;");
    let finding = only(&report, Kind::OutOfBounds, BODY);
    assert_eq!(finding.thread.lane, 16);
    assert!(finding.to_string().contains("`x[..16]`"), "{finding}");
    let report = run("st.global.u32 [%rd0], 1;");
    assert!(only(&report, Kind::ReadOnlyWrite, BODY).to_string().contains("`x[..16]` at byte 0"));
}

#[test]
fn views_of_one_tensor_race() {
    // The same memory as a read-only and as a writable view: reads of the one race with writes to the other.
    let bench = bench(1, 64);
    let mut launch = bench.launch();
    let x = u64::from_le_bytes(bench.args[0].0[..].try_into().unwrap());
    let extent = |label: &str, read_only| Extent { base: x, bytes: 256, label: label.into(), element: 4, read_only };
    launch.args[1] = x.into();
    let body = "xor.b32 %r6, %r0, 32;\nmul.wide.u32 %rd5, %r6, 4;\nadd.u64 %rd5, %rd0, %rd5;\nld.global.u32 %r7, [%rd5];\nst.global.u32 [%rd3], %r7;";
    launch.extents = vec![extent("in", true), extent("out", false)];
    let report = Program::parse(&kernel(body)).unwrap().launch(&launch, &bench.memory, &bench.options).unwrap();
    assert!(report.findings.iter().any(|f| f.kind == Kind::Race), "{report}");
}

#[test]
fn freed_memory() {
    let mut bench = bench(1, 32);
    let gone = bench.memory.alloc(64, "gone").unwrap();
    bench.args[1] = gone.into();
    bench.memory.free(gone).unwrap();
    let report = bench.run(&kernel("ld.global.u32 %r6, [%rd1];"));
    assert!(only(&report, Kind::UseAfterFree, BODY).detail.contains("`gone`, which was freed"));
}

#[test]
fn misaligned() {
    let report = bench(1, 32).run(&kernel("ld.global.v2.u32 {%r6, %r7}, [%rd2];"));
    let finding = only(&report, Kind::Misaligned, BODY);
    assert_eq!(finding.thread.lane, 1);
    assert!(finding.detail.contains("multiple of 8"), "{finding}");
}

#[test]
fn uninitialised_global() {
    let bench = bench(1, 64);
    let report = bench.run(&kernel("ld.global.u32 %r6, [%rd3];"));
    let finding = only(&report, Kind::UninitialisedRead, BODY);
    assert_eq!(finding.count, 2, "once a warp");
    // Written by the kernel first, by the same thread.
    bench.clean(&kernel("st.global.u32 [%rd3], %r0;\nld.global.u32 %r6, [%rd3];"));
}

#[test]
fn uninitialised_register() {
    let bench = bench(1, 32);
    let body = "setp.lt.u32 %p0, %r0, 5;\n@%p0 mov.u32 %r6, 1;\nst.global.u32 [%rd3], %r6;";
    let report = bench.run(&kernel(body));
    let finding = only(&report, Kind::UninitialisedRegister, BODY + 2);
    assert_eq!(finding.thread.lane, 5);
    assert!(finding.detail.contains("%r6, 27 lanes"), "{finding}");
    // Complementary guards write every lane.
    bench.clean(&kernel(
        "setp.lt.u32 %p0, %r0, 5;\n@%p0 mov.u32 %r6, 1;\n@!%p0 mov.u32 %r6, 2;\nst.global.u32 [%rd3], %r6;",
    ));
    // Both arms of a branch do, too, and need no check at all.
    let body = "setp.lt.u32 %p0, %r0, 5;\n@%p0 bra A;\nmov.u32 %r6, 1;\nbra B;\nA: mov.u32 %r6, 2;\nB: st.global.u32 [%rd3], %r6;";
    bench.clean(&kernel(body));
}

const SHARED: &str = ".shared .align 16 .b8 buf[512];\nmov.u32 %r6, buf;\nadd.u32 %r6, %r6, %r4;\n";

#[test]
fn shared_memory_bounds_and_initialisation() {
    let bench = bench(1, 64);
    let report = bench.run(&kernel(&format!("{SHARED}st.shared.u32 [%r6], 1;\nst.shared.u32 [%r6+384], 1;")));
    let finding = only(&report, Kind::OutOfBounds, BODY + 4);
    assert!(finding.to_string().contains("`buf` of 512 bytes"), "{finding}");
    let report = bench.run(&kernel(&format!(
        "{SHARED}st.shared.u16 [%r6], 1;\nld.shared.u32 %r7, [%r6];\nst.global.u32 [%rd3], %r7;"
    )));
    only(&report, Kind::UninitialisedRead, BODY + 4);
}

#[test]
fn shared_memory_races() {
    let bench = bench(1, 64);
    // A neighbour's word, without and with a barrier.
    let exchange = |sync: &str| {
        kernel(&format!(
            "{SHARED}st.shared.u32 [%r6], %r0;\n{sync}xor.b32 %r7, %r4, 128;\nmov.u32 %r8, buf;\nadd.u32 %r7, %r7, %r8;\nld.shared.u32 %r9, [%r7];\nst.global.u32 [%rd3], %r9;"
        ))
    };
    let report = bench.run(&exchange(""));
    let races: Vec<_> = report.findings.iter().filter(|f| f.kind == Kind::Race).collect();
    assert!(!races.is_empty(), "{report}");
    for race in races {
        let other = race.other.as_ref().unwrap();
        let lines = [race.place.line, other.place.line];
        assert!(lines == [BODY + 3, BODY + 7] || lines == [BODY + 7, BODY + 3], "{race}");
    }
    bench.clean(&exchange("bar.sync 0;\n"));
    bench.clean(&exchange("barrier.cta.sync 0;\n"));
    bench.clean(&exchange("bar.sync 3, 64;\n"));
    // A barrier of the warp does not order different warps.
    assert!(!bench.run(&exchange("bar.warp.sync 0xffffffff;\n")).is_clean());
}

#[test]
fn warp_synchronous_exchange() {
    let bench = bench(1, 32);
    let exchange = |sync: &str| {
        kernel(&format!(
            "{SHARED}st.shared.u32 [%r6], %r0;\n{sync}xor.b32 %r7, %r4, 64;\nmov.u32 %r8, buf;\nadd.u32 %r7, %r7, %r8;\nld.shared.u32 %r9, [%r7];\nst.global.u32 [%rd3], %r9;"
        ))
    };
    bench.clean(&exchange("bar.warp.sync 0xffffffff;\n"));
    // Shuffles and votes order no memory.
    let report = bench.run(&exchange("shfl.sync.bfly.b32 %r10, %r0, 1, 31, 0xffffffff;\n"));
    only(&report, Kind::Race, BODY + 8);
}

#[test]
fn halves_of_a_word_are_no_race() {
    let bench = bench(2, 64);
    let body = format!(
        "{SHARED}shr.u32 %r7, %r4, 1;\nmov.u32 %r8, buf;\nadd.u32 %r7, %r7, %r8;\ncvt.u16.u32 %h0, %r0;\nst.shared.u16 [%r7], %h0;\nld.shared.u16 %h1, [%r7];\nshr.u32 %r9, %r1, 0;\nmul.wide.u32 %rd5, %r9, 2;\nadd.u64 %rd5, %rd1, %rd5;\nst.global.u16 [%rd5], %h1;"
    );
    bench.clean(&kernel(&body));
    // The same halves through a whole word are one.
    let body = format!(
        "{SHARED}shr.u32 %r7, %r4, 1;\nmov.u32 %r8, buf;\nadd.u32 %r7, %r7, %r8;\ncvt.u16.u32 %h0, %r0;\nst.shared.u16 [%r7], %h0;\nbar.warp.sync 0xffffffff;\nand.b32 %r7, %r7, 0xfffffffc;\nst.shared.u32 [%r7], %r0;"
    );
    let report = bench.run(&kernel(&body));
    only(&report, Kind::Race, BODY + 10);
}

#[test]
fn write_after_read() {
    let bench = bench(1, 64);
    // Everybody reads word 0, then thread 40 overwrites it.
    let body = |sync: &str| {
        kernel(&format!(
            ".shared .align 4 .b8 buf[512];\nmov.u32 %r6, buf;\nsetp.eq.u32 %p0, %r0, 40;\n@%p0 st.shared.u32 [%r6], 7;\nbar.sync 0;\nld.shared.u32 %r7, [%r6];\n{sync}@%p0 st.shared.u32 [%r6], %r7;"
        ))
    };
    let report = bench.run(&body(""));
    let finding = report.findings.iter().find(|f| f.kind == Kind::Race).unwrap_or_else(|| panic!("{report}"));
    let other = finding.other.as_ref().unwrap();
    assert_eq!(finding.place.line.max(other.place.line), BODY + 6, "{report}");
    bench.clean(&body("bar.sync 0;\n"));
}

#[test]
fn equal_values_are_their_own_class() {
    let bench = bench(1, 64);
    let report = bench.run(&kernel(".shared .align 4 .b8 buf[4];\nst.shared.u32 [buf], 7;"));
    assert!(report.findings.iter().all(|f| f.kind == Kind::SameValueRace) && !report.findings.is_empty(), "{report}");
    assert!(report.is_clean());
    let report = bench.run(&kernel(".shared .align 4 .b8 buf[4];\nst.shared.u32 [buf], %r0;"));
    assert!(report.findings.iter().any(|f| f.kind == Kind::Race), "{report}");
    let report = bench.run(&kernel("st.global.u32 [%rd1], 7;"));
    assert!(report.findings.iter().all(|f| f.kind == Kind::SameValueRace) && !report.findings.is_empty(), "{report}");
}

#[test]
fn atomics_race_with_plain_accesses_only() {
    let bench = bench(1, 64);
    let clean = ".shared .align 4 .b8 buf[4];\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 st.shared.u32 [buf], 0;\nbar.sync 0;\natom.shared.add.u32 %r7, [buf], 1;\nred.shared.add.u32 [buf], 1;\nbar.sync 0;\nld.shared.u32 %r8, [buf];\nst.global.u32 [%rd3], %r8;";
    bench.clean(&kernel(clean));
    let base = u64::from_le_bytes(bench.args[1].0[..].try_into().unwrap());
    assert_eq!(bench.words(base, 64), vec![128; 64]);
    let racy = ".shared .align 4 .b8 buf[4];\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 st.shared.u32 [buf], 0;\nbar.sync 0;\natom.shared.add.u32 %r7, [buf], 1;\nld.shared.u32 %r8, [buf];";
    let report = bench.run(&kernel(racy));
    assert!(
        report
            .findings
            .iter()
            .any(|f| f.kind == Kind::Race && f.place.line.max(f.other.as_ref().unwrap().place.line) == BODY + 5),
        "{report}"
    );
}

#[test]
fn global_races_inside_a_block() {
    let bench = bench(1, 64);
    let exchange = |sync: &str| {
        kernel(&format!(
            "st.global.u32 [%rd3], %r0;\n{sync}xor.b32 %r6, %r0, 32;\nmul.wide.u32 %rd5, %r6, 4;\nadd.u64 %rd5, %rd5, %rd1;\nld.global.u32 %r7, [%rd5];"
        ))
    };
    let report = bench.run(&exchange(""));
    assert!(report.findings.iter().any(|f| f.kind == Kind::Race), "{report}");
    bench.clean(&exchange("bar.sync 0;\n"));
    // Lanes of one warp, which no barrier orders either.
    let swap = |sync: &str| {
        kernel(&format!(
            "st.global.u32 [%rd3], %r0;\n{sync}xor.b32 %r6, %r0, 1;\nmul.wide.u32 %rd5, %r6, 4;\nadd.u64 %rd5, %rd5, %rd1;\nld.global.u32 %r7, [%rd5];"
        ))
    };
    let report = bench.run(&swap(""));
    only(&report, Kind::Race, BODY + 4);
    bench.clean(&swap("bar.warp.sync 0xffffffff;\n"));
}

#[test]
fn races_between_blocks() {
    // Every block stores its number to the same words.
    let report =
        bench(8, 32).run(&kernel("mul.wide.u32 %rd5, %r0, 4;\nadd.u64 %rd5, %rd5, %rd1;\nst.global.u32 [%rd5], %r2;"));
    let finding = only(&report, Kind::Race, BODY + 2);
    let other = finding.other.as_ref().unwrap();
    assert_eq!((finding.thread.cta, other.thread.cta, other.place.line), ([1, 0, 0], [0, 0, 0], BODY + 2));
    // A block reads its neighbour's output.
    let body = "st.global.u32 [%rd3], %r0;\nxor.b32 %r6, %r1, 32;\nmul.wide.u32 %rd5, %r6, 4;\nadd.u64 %rd5, %rd5, %rd1;\nld.global.u32 %r7, [%rd5];";
    let report = bench(2, 32).run(&kernel(body));
    assert!(report.findings.iter().any(|f| f.kind == Kind::Race && f.thread.cta == [1, 0, 0]), "{report}");
    // Everybody reads the same input.
    bench(8, 32).clean(&kernel("ld.global.u32 %r7, [%rd0];\nst.global.u32 [%rd3], %r7;"));
}

#[test]
fn last_block_reduction_is_no_race() {
    // Every block adds to a counter after a fence; the last one reads what the others stored.
    let mut bench = Bench::new(16, 32);
    bench.buffer("x", &[0]);
    let y = bench.empty("y", 16 * 32);
    let out = bench.memory.alloc(4, "out").unwrap();
    bench.args.push(out.into());
    let body = format!(
        "{PROLOGUE}ld.param.u64 %rd7, [z];
st.global.u32 [%rd3], %r1;
membar.gl;
mov.u32 %r8, 0;
setp.eq.u32 %p0, %r0, 0;
@%p0 atom.global.add.u32 %r8, [%rd0], 1;
shfl.sync.idx.b32 %r8, %r8, 0, 31, 0xffffffff;
setp.ne.u32 %p1, %r8, 15;
@%p1 bra DONE;
membar.gl;
mov.u32 %r9, 0;
mov.u32 %r10, %r0;
L:
mul.wide.u32 %rd5, %r10, 4;
add.u64 %rd5, %rd5, %rd1;
ld.global.u32 %r11, [%rd5];
add.u32 %r9, %r9, %r11;
add.u32 %r10, %r10, 32;
setp.lt.u32 %p2, %r10, 512;
@%p2 bra L;
redux.sync.add.u32 %r9, %r9, 0xffffffff;
@%p0 st.global.u32 [%rd7], %r9;
DONE:
ret;"
    );
    bench.clean(&module(".param .u64 x, .param .u64 y, .param .u64 z", &body));
    assert_eq!(bench.words(out, 1), vec![511 * 512 / 2]);
    assert_eq!(bench.words(y, 3), vec![0, 1, 2]);
}

#[test]
fn read_only_loads_of_written_data() {
    let report = bench(1, 32).run(&kernel("st.global.u32 [%rd3], %r0;\nbar.sync 0;\nld.global.nc.u32 %r6, [%rd3];"));
    only(&report, Kind::StaleRead, BODY + 2);
    bench(1, 32).clean(&kernel("ld.global.nc.u32 %r6, [%rd2];\nst.global.u32 [%rd3], %r6;"));
}

#[test]
fn barrier_in_divergent_code() {
    let bench = bench(1, 64);
    let report = bench.run(&kernel("setp.lt.u32 %p0, %r0, 40;\n@%p0 bar.sync 0;\nbar.sync 1;"));
    let finding = only(&report, Kind::BarrierDivergence, BODY + 1);
    assert!(finding.fatal && finding.thread.warp == 1, "{finding}");
    // A whole warp may skip a barrier with a count of its own.
    bench.clean(&kernel("setp.lt.u32 %p0, %r0, 32;\n@%p0 bar.sync 1, 32;\nbar.sync 0;"));
}

#[test]
fn exits_before_a_barrier() {
    let bench = bench(1, 96);
    let report = bench.run(&kernel("setp.ge.u32 %p0, %r0, 64;\n@%p0 bra DONE;\nbar.sync 0;\nDONE:"));
    let finding = only(&report, Kind::ExitBeforeBarrier, BODY + 2);
    assert!(finding.detail.contains("warp 2 has exited"), "{finding}");
    // A part of a warp.
    let report = bench.run(&kernel("setp.ge.u32 %p0, %r0, 80;\n@%p0 exit;\nbar.sync 0;"));
    only(&report, Kind::ExitBeforeBarrier, BODY + 2);
}

#[test]
fn lanes_that_part_at_a_uniform_branch() {
    let branch = |uni: &str| format!("setp.ge.u32 %p0, %r0, 40;\n@%p0 bra{uni} DONE;\nDONE:");
    let report = bench(1, 64).run(&kernel(&branch(".uni")));
    let finding = only(&report, Kind::DivergentUniform, BODY + 1);
    assert!(finding.detail.contains("24 of 32 lanes") && finding.count == 1, "{finding}");
    assert!(report.findings[0].kind.is_failure());
    bench(1, 64).clean(&kernel(&branch("")));
    // Of another warp, all or none take it.
    bench(1, 64).clean(&kernel("setp.ge.u32 %p0, %r0, 32;\n@%p0 bra.uni DONE;\nDONE:"));
}

/// Lanes that wait long for others have a turn before them, and meet them in another iteration of a loop that all
/// go through together on a machine; whoever has come together must not part all the same.
#[test]
fn lanes_that_are_ahead_at_a_uniform_branch() {
    let body = |uniform: &str| {
        format!(
            "mov.u32 %r6, 0;\nsetp.ge.u32 %p0, %r0, 1;\n@%p0 bra BEHIND;\nLONG:\nadd.u32 %r6, %r6, 1;\n\
             setp.lt.u32 %p0, %r6, 700;\n@%p0 bra LONG;\nBEHIND:\nmov.u32 %r6, 0;\nLOOP:\nadd.u32 %r6, %r6, 1;\n\
             setp.lt.u32 %p0, %r6, {uniform};\n@%p0 bra.uni LOOP;\nDONE:"
        )
    };
    bench(1, 32).clean(&kernel(&body("400")));
    let report = bench(1, 32).run(&kernel(&body("%r0")));
    assert!(report.findings.iter().any(|f| f.kind == Kind::DivergentUniform), "{report}");
}

#[test]
fn barrier_misuse() {
    let report = bench(1, 64).run(&kernel("mov.u32 %r6, 48;\nbar.sync 0, %r6;"));
    assert!(only(&report, Kind::BarrierMisuse, BODY + 1).detail.contains("48 threads"));
    let report = bench(1, 64).run(&kernel("mov.u32 %r6, 16;\nbar.sync %r6;"));
    assert!(only(&report, Kind::BarrierMisuse, BODY + 1).detail.contains("no barrier 16"));
    let report =
        bench(1, 96).run(&kernel("shr.u32 %r6, %r0, 5;\nadd.u32 %r6, %r6, 2;\nshl.b32 %r6, %r6, 5;\nbar.sync 1, %r6;"));
    assert_eq!(report.findings[0].kind, Kind::BarrierMisuse, "{report}");
}

#[test]
fn deadlock() {
    // Warp 0 waits at barrier 1, warp 1 at barrier 2.
    let report = bench(1, 64).run(&kernel("shr.u32 %r6, %r0, 5;\nadd.u32 %r6, %r6, 1;\nbar.sync %r6, 64;"));
    let finding = only(&report, Kind::Deadlock, BODY + 2);
    assert!(finding.detail.contains("waits at barrier 1, where 32 of 64 threads have arrived"), "{finding}");
    assert!(finding.detail.contains("waits at barrier 2"), "{finding}");
}

#[test]
fn livelock() {
    let mut bench = bench(1, 64);
    bench.options.budget = 100_000;
    let report = bench.run(&kernel("L: bra L;"));
    let finding = only(&report, Kind::Livelock, BODY);
    assert!(finding.detail.contains("100000 warp instructions"), "{finding}");
}

#[test]
fn spinning_lanes_do_not_starve_the_others() {
    // A lock taken by one lane at a time: the lanes that spin are at a lower instruction than the one that holds the
    // lock.
    let mut bench = Bench::new(1, 64);
    bench.buffer("x", &[0, 0]);
    bench.empty("y", 1);
    let body = "L:\natom.global.cas.b32 %r6, [%rd0], 0, 1;\nsetp.ne.u32 %p0, %r6, 0;\n@%p0 bra L;\nld.volatile.global.u32 %r7, [%rd0+4];\nadd.u32 %r7, %r7, 1;\nst.volatile.global.u32 [%rd0+4], %r7;\nmembar.gl;\natom.global.exch.b32 %r8, [%rd0], 0;";
    bench.clean(&kernel(body));
    let base = u64::from_le_bytes(bench.args[0].0[..].try_into().unwrap());
    assert_eq!(bench.words(base, 2), vec![0, 64]);
}

#[test]
fn blocks_that_wait_for_each_other() {
    // A grid barrier on an atomic counter.
    let mut bench = Bench::new(40, 32);
    bench.buffer("x", &[0]);
    bench.empty("y", 40 * 32);
    let body = "st.global.u32 [%rd3], %r2;\nmembar.gl;\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 bra W;\nred.global.add.u32 [%rd0], 1;\nW:\nld.acquire.gpu.global.u32 %r6, [%rd0];\nsetp.lt.u32 %p1, %r6, 40;\n@%p1 bra W;\nxor.b32 %r7, %r1, 32;\nmul.wide.u32 %rd5, %r7, 4;\nadd.u64 %rd5, %rd5, %rd1;\nld.global.u32 %r8, [%rd5];\nxor.b32 %r9, %r2, 1;\nsetp.ne.u32 %p2, %r8, %r9;\n@%p2 trap;";
    bench.clean(&kernel(body));
}

#[test]
fn shuffles_from_missing_lanes() {
    let shuffle = "shfl.sync.bfly.b32 %r6, %r0, 16, 31, 0xffffffff;";
    bench(1, 64).clean(&kernel(shuffle));
    let report = bench(1, 52).run(&kernel(shuffle));
    let finding = only(&report, Kind::CollectiveMisuse, BODY);
    assert!(finding.detail.contains("lane 20, which does not exist"), "{finding}");
    let report = bench(1, 32)
        .run(&kernel("setp.ge.u32 %p0, %r0, 16;\n@%p0 exit;\nshfl.sync.bfly.b32 %r6, %r0, 16, 31, 0xffffffff;"));
    assert!(only(&report, Kind::CollectiveMisuse, BODY + 2).detail.contains("lane 16, which has exited"));
    let report = bench(1, 32).run(&kernel("vote.sync.any.pred %p1, %p7, 0xffff;"));
    assert!(report.findings.iter().any(|f| f.kind == Kind::CollectiveMisuse), "{report}");
}

#[test]
fn lanes_that_never_meet() {
    let report = bench(1, 32).run(&kernel("setp.lt.u32 %p0, %r0, 4;\n@%p0 bra A;\nshfl.sync.idx.b32 %r6, %r0, 0, 31, 0xffffffff;\nbra B;\nA: shfl.sync.down.b32 %r6, %r0, 1, 31, 0xffffffff;\nB:"));
    assert_eq!(report.findings[0].kind, Kind::BarrierDivergence, "{report}");
    assert!(report.findings[0].fatal);
}

#[test]
fn trap_and_source_lines() {
    let text = ".version 8.3\n.target sm_90a\n.address_size 64\n.file 1 \"softmax.rs\"\n.visible .entry k(.param .u64 x, .param .u64 y)\n{\n.loc 1 42 9\ntrap;\nret;\n}\n";
    let report = bench(1, 32).run(text);
    let finding = only(&report, Kind::Trap, 8);
    assert_eq!(finding.place.source, Some(("softmax.rs".to_owned(), 42, 9)));
    assert!(finding.to_string().contains("line 8 (`trap`, softmax.rs:42:9)"), "{finding}");
}

#[test]
fn checks_can_be_left_out() {
    let mut bench = bench(1, 64);
    bench.options = Options { sanitizers: Sanitizers::NONE, ..bench.options };
    bench.clean(&kernel("ld.global.u32 %r6, [%rd3];\nst.global.u32 [%rd1], %r0;"));
    assert!(bench.run(&kernel("ld.global.u32 %r6, [%rd3+256];")).trap().is_some(), "bounds are always checked");
}

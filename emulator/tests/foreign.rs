//! What compilers and programmers of CUDA write, and the language of schedules does not: each idiom runs without a
//! finding if the memory model allows it, and its broken twin has one.

use tilewright_emulator::{Error, Kind, Launch, Memory, Options, Program};

use crate::common::{Bench, module, only, replaced};

/// Shared memory of 32 words, the lane in `%r0`, its word at `%r1`, its neighbour's at `%r2`.
const EXCHANGE: &str = "
    .shared .align 4 .b32 s[32];
    mov.u32 %r0, %tid.x; mov.u32 %r9, s; mad.lo.u32 %r1, %r0, 4, %r9;
    xor.b32 %r8, %r0, 16; mad.lo.u32 %r2, %r8, 4, %r9;
    ld.param.u64 %rd0, [y]; mad.wide.u32 %rd0, %r0, 4, %rd0;
    setp.lt.u32 %p0, %r0, 16;
    @%p0 bra LOW;
    st.shared.u32 [%r1], %r0;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r3, [%r2];
    bra DONE;
LOW:
    st.shared.u32 [%r1], %r0;
    bar.warp.sync -1;
    ld.shared.u32 %r3, [%r2];
DONE:
    st.global.u32 [%rd0], %r3;
    ret;";

#[test]
fn halves_of_a_warp_meet_at_barriers_of_their_own() {
    let text = module(".param .u64 y", EXCHANGE);
    let mut bench = Bench::new(1, 32);
    let y = bench.empty("y", 32);
    for seed in 0..8 {
        bench.options.seed = seed;
        bench.clean(&text);
        assert_eq!(bench.words(y, 32), (0..32).map(|lane| lane ^ 16).collect::<Vec<_>>());
    }
    // Masks of the halves alone order nothing between them.
    let apart = replaced(&replaced(&text, "sync 0xffffffff", "sync 0xffff0000"), "sync -1", "sync 0x0000ffff");
    let report = bench.run(&apart);
    assert!(report.findings.iter().any(|finding| finding.kind == Kind::Race), "{report}");
}

#[test]
fn a_mistake_in_one_kernel_does_not_stop_another() {
    let good = module(".param .u64 y", "ld.param.u64 %rd0, [y]; st.global.u32 [%rd0], 7; ret;");
    let others = "
.func helper() { .reg .f32 %f<8>; .reg .b64 %rd; tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd, {%f0}]; ret; }
.visible .entry calls() { call helper; ret; }
.visible .entry texture(.param .u64 t) {
 .reg .f32 %f<8>; .reg .b32 %r<8>; .reg .b64 %rd<2>;
 ld.weak.global.u32 %r0, [%rd0];
 { tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd0, {%r0, %r1}]; }
 ret; }
.visible .entry sparse() { .reg .b32 %r<4>; mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 %r0; }
.visible .entry untyped() { .reg .b32 %r<4>; .reg .b64 %rd; add.u32 %r0, %r1, %rd; ret; }
.visible .entry last(.param .u64 y) { .reg .b64 %rd; ld.param.u64 %rd, [y]; st.global.u32 [%rd], 8; ret; }
";
    let program = Program::parse(&format!("{good}{others}")).unwrap();
    assert_eq!(program.entries().collect::<Vec<_>>(), ["k", "last"]);
    let memory = Memory::new(1 << 20);
    let launch = |entry: &str| Launch { entry: entry.into(), grid: [1; 3], block: [32, 1, 1], ..Launch::default() };
    for (entry, wanted) in [
        ("texture", "`tex.2d.v4.f32.s32` is not supported (PTX manual 9.7.10.2, textures)"),
        ("calls", "`tex.1d.v4.f32.s32` is not supported"),
        ("sparse", "is not supported (PTX manual 9.7.14.6, sparse matrices)"),
        ("untyped", "a .b64 register where the instruction takes .u32"),
    ] {
        let error = program.launch(&launch(entry), &memory, &Options::default()).unwrap_err();
        assert!(matches!(error, Error::Parse { .. }) && error.to_string().contains(wanted), "{entry}: {error}");
    }
    let mut bench = Bench::new(1, 1);
    let y = bench.buffer("y", &[0]);
    bench.clean(&format!("{good}{others}"));
    assert_eq!(bench.words(y, 1), [7]);
    // Alone, it is the text that has the mistake.
    let alone = ".version 8.3\n.target sm_90a\n.address_size 64\n.func f() { tex; ret; }\n";
    assert!(Program::parse(alone).is_err());
}

/// Thread 0 writes the first 32 words of shared memory, and all of 32 threads read `s[t + %r7]` ahead of its use.
const AHEAD: &str = "
    .shared .align 16 .b32 s[128];
    mov.u32 %r0, %tid.x; mov.u32 %r9, s; mad.lo.u32 %r1, %r0, 4, %r9;
    ld.param.u64 %rd0, [y]; mov.u32 %r6, %ctaid.x; mad.lo.u32 %r6, %r6, 32, %r0; mad.wide.u32 %rd1, %r6, 4, %rd0;
    st.shared.u32 [%r1], %r0;
    bar.sync 0;
    ld.shared.u32 %r3, [%r1];
    ld.shared.u32 %r4, [%r1+128];
    setp.eq.u32 %p0, %r0, 99;
    @%p0 mov.u32 %r3, %r4;
    st.global.u32 [%rd1], %r3;
    ld.param.u64 %rd2, [n];
    red.global.add.u32 [%rd2], 1;
    ret;";

#[test]
fn shared_memory_may_be_read_ahead_of_what_was_written() {
    let text = module(".param .u64 y, .param .u64 n", AHEAD);
    for threads in [1, 4] {
        let mut bench = Bench::new(16, 32);
        bench.options.threads = Some(threads);
        let (y, n) = (bench.empty("y", 512), bench.buffer("n", &[0]));
        for seed in 0..4 {
            bench.options.seed = seed;
            bench.clean(&text);
            assert_eq!(bench.words(y, 512), (0..512).map(|at| at % 32).collect::<Vec<_>>());
        }
        // What a launch did before it ran again is taken back.
        assert_eq!(bench.words(n, 1), [4 * 512]);
        // One thread uses what it read.
        let used = replaced(&text, "%r0, 99", "%r0, 9");
        let report = bench.run(&used);
        let line = used.lines().position(|line| line.contains("%r1+128")).unwrap() as u32 + 1;
        let finding = only(&report, Kind::UninitialisedRead, line);
        assert_eq!((finding.thread.lane, finding.count), (9, 16), "{report}");
        assert!(
            finding.detail.contains("the value is used at line") && finding.detail.contains("st.global"),
            "{report}"
        );
        assert_eq!(bench.words(n, 1), [5 * 512]);
    }
}

#[test]
fn undefined_registers_may_go_through_shared_memory() {
    // The last threads have no element to load, and store what they have.
    let body = "
    .shared .align 4 .b32 s[32];
    mov.u32 %r0, %tid.x; mov.u32 %r9, s; mad.lo.u32 %r1, %r0, 4, %r9;
    ld.param.u64 %rd0, [y]; mad.wide.u32 %rd1, %r0, 4, %rd0;
    setp.lt.u32 %p0, %r0, 20;
    @%p0 ld.global.u32 %r2, [%rd1];
    st.shared.u32 [%r1], %r2;
    bar.sync 0;
    xor.b32 %r3, %r0, 1; mad.lo.u32 %r3, %r3, 4, %r9;
    ld.shared.u32 %r4, [%r3];
    setp.lt.u32 %p1, %r0, 20;
    @%p1 st.global.u32 [%rd1], %r4;
    ret;";
    let text = module(".param .u64 y", body);
    let mut bench = Bench::new(1, 32);
    let y = bench.buffer("y", &(0..32).collect::<Vec<_>>());
    bench.clean(&text);
    assert_eq!(bench.words(y, 20), (0..20).map(|at| at ^ 1).collect::<Vec<_>>());
    let report = bench.run(&replaced(&text, "%p1, %r0, 20", "%p1, %r0, 21"));
    let [finding] = &report.findings[..] else { panic!("{report}") };
    assert_eq!((finding.kind, finding.thread.lane), (Kind::UninitialisedRead, 20), "{report}");
    assert_eq!(finding.place.instruction, "ld.shared.u32", "{report}");
}

/// Two stages of matrices, of which the second was never written and is loaded ahead.
const MATRICES: &str = "
    .shared .align 16 .b8 s[1024];
    .reg .b32 %a<4>, %b<4>;
    mov.u32 %r0, %tid.x; mov.u32 %r9, s; mad.lo.u32 %r1, %r0, 16, %r9;
    st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0};
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0, %a1, %a2, %a3}, [%r1];
    ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%b0, %b1, %b2, %b3}, [%r1+512];
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, %a3}, {%a0, %a1}, {%f8, %f8, %f8, %f8};
    ld.param.u64 %rd0, [y]; mad.wide.u32 %rd1, %r0, 4, %rd0;
    st.global.f32 [%rd1], %f0;
    ret;";

#[test]
fn matrices_may_be_read_ahead_of_what_was_written() {
    let text = replaced(&module(".param .u64 y", MATRICES), "bar.sync 0;", "bar.sync 0; mov.f32 %f8, 0f00000000;");
    let mut bench = Bench::new(1, 32);
    bench.empty("y", 32);
    bench.clean(&text);
    let used = replaced(&text, "{%a0, %a1}, {%f8", "{%b2, %b3}, {%f8");
    let report = bench.run(&used);
    let line = used.lines().position(|line| line.contains("%r1+512")).unwrap() as u32 + 1;
    let finding = only(&report, Kind::UninitialisedRead, line);
    assert!(finding.detail.contains("mma.sync"), "{report}");
    // Fragments of `wmma`.
    let fragments = "
    .shared .align 16 .b8 s[1024];
    mov.u32 %r0, %tid.x; mov.u32 %r9, s; mad.lo.u32 %r1, %r0, 16, %r9;
    st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0};
    bar.sync 0;
    wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, [%r9+512];
    ld.param.u64 %rd0, [y]; mad.wide.u32 %rd1, %r0, 4, %rd0;
    st.global.u32 [%rd1], %r0;
    ret;";
    let text = module(".param .u64 y", fragments);
    bench.clean(&text);
    let report = bench.run(&replaced(&text, "[%rd1], %r0", "[%rd1], %r13"));
    let line = text.lines().position(|line| line.contains("wmma.load")).unwrap() as u32 + 1;
    only(&report, Kind::UninitialisedRead, line);
}

#[test]
fn what_is_read_and_changed_in_one_step_is_used() {
    let body = "
    .shared .align 16 .b32 s[32];
    mov.u32 %r9, s;
    atom.shared.add.u32 %r1, [%r9], 1;
    ret;";
    let report = Bench::new(1, 1).run(&module("", body));
    only(&report, Kind::UninitialisedRead, 8);
}

/// Blocks that leave a sum each, and the last one to count adds them up and resets the counter plainly.
const LAST_BLOCK: &str = "
    .shared .align 4 .b32 last;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x;
    ld.param.u64 %rd0, [sums]; ld.param.u64 %rd1, [count]; ld.param.u64 %rd2, [out];
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra MEET;
    mad.wide.u32 %rd3, %r1, 4, %rd0;
    st.global.u32 [%rd3], %r1;
    membar.gl;
    atom.global.add.u32 %r3, [%rd1], 1;
    add.u32 %r4, %r3, 1;
    setp.eq.u32 %p1, %r4, %r2;
    selp.u32 %r5, 1, 0, %p1;
    st.shared.u32 [last], %r5;
MEET:
    bar.sync 0;
    ld.shared.u32 %r6, [last];
    setp.eq.u32 %p2, %r6, 0;
    @%p2 bra END;
    membar.gl;
    setp.ge.u32 %p3, %r0, %r2;
    @%p3 bra END;
    mad.wide.u32 %rd4, %r0, 4, %rd0;
    ld.global.u32 %r7, [%rd4];
    mad.wide.u32 %rd5, %r0, 4, %rd2;
    st.global.u32 [%rd5], %r7;
    setp.ne.u32 %p4, %r0, 1;
    @%p4 bra END;
    st.global.u32 [%rd1], 0;
END:
    ret;";

#[test]
fn the_last_block_may_reset_its_counter_plainly() {
    let text = module(".param .u64 sums, .param .u64 count, .param .u64 out", LAST_BLOCK);
    let mut bench = Bench::new(12, 64);
    bench.empty("sums", 12);
    let count = bench.buffer("count", &[0]);
    let out = bench.empty("out", 12);
    for seed in 0..8 {
        bench.options.seed = seed;
        bench.clean(&text);
        assert_eq!(bench.words(count, 1), [0]);
        assert_eq!(bench.words(out, 12), (0..12).collect::<Vec<_>>());
        let race = |text: &str| {
            let report = bench.run(text);
            let races = report.findings.iter().filter(|finding| finding.kind == Kind::Race);
            let lines: Vec<u32> = races.map(|finding| finding.place.line).collect();
            bench.memory.write(count, &[0; 4]).unwrap();
            (lines, report)
        };
        // Every block resets it: nothing tells the first of the others.
        let (lines, report) = race(&replaced(&text, "@%p2 bra END;", ""));
        let reset = text.lines().position(|line| line.contains("[%rd1], 0")).unwrap() as u32 + 1;
        assert!(lines.contains(&reset) || lines.contains(&(reset - 19)), "{report}");
        // The value of the counter is seen, and what came before is not without a fence.
        let (lines, report) = race(&replaced(&text, "    membar.gl;\n    atom", "    atom"));
        let load = text.lines().position(|line| line.contains("[%rd4]")).unwrap() as u32;
        assert_eq!(lines, [load], "{report}");
        // The thread that resets it does not know of the one that counted.
        let (lines, report) = race(&replaced(&text, "bar.sync 0;\n    ld.shared", "ld.volatile.shared"));
        assert!(!lines.is_empty(), "{report}");
    }
}

/// Block 0 counts and sets a flag; block 1 sees the flag, writes the counter strongly, reads it and writes it plainly.
const BROKEN_CHAIN: &str = "
    ld.param.u64 %rd0, [count]; ld.param.u64 %rd1, [flag];
    membar.gl;
    mov.u32 %r0, %ctaid.x;
    setp.eq.u32 %p0, %r0, 1;
    @%p0 bra WAIT;
    atom.global.add.u32 %r1, [%rd0], 1;
    st.relaxed.gpu.global.u32 [%rd1], 1;
    ret;
WAIT:
    ld.relaxed.gpu.global.u32 %r2, [%rd1];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra WAIT;
    st.relaxed.gpu.global.u32 [%rd0], 5;
    ld.relaxed.gpu.global.u32 %r3, [%rd0];
    st.global.u32 [%rd0], 0;
    ret;";

#[test]
fn what_is_read_tells_of_no_write_before_a_plain_strong_one() {
    let text = module(".param .u64 count, .param .u64 flag", BROKEN_CHAIN);
    let mut bench = Bench::new(2, 1);
    bench.buffer("count", &[0]);
    let flag = bench.buffer("flag", &[0]);
    let store = text.lines().position(|line| line.contains("[%rd0], 0;")).unwrap() as u32 + 1;
    only(&bench.run(&text), Kind::Race, store);
    // An atomic operation in the place of the strong write reads what the other one has left.
    bench.memory.write(flag, &[0; 4]).unwrap();
    bench.clean(&replaced(&text, "st.relaxed.gpu.global.u32 [%rd0], 5;", "atom.global.exch.b32 %r4, [%rd0], 5;"));
    // One whose old value nobody gets tells of nothing.
    let red = replaced(&text, "st.relaxed.gpu.global.u32 [%rd0], 5;", "red.global.add.u32 [%rd0], 5;");
    bench.memory.write(flag, &[0; 4]).unwrap();
    only(&bench.run(&replaced(&red, "ld.relaxed.gpu.global.u32 %r3, [%rd0];", "")), Kind::Race, store);
}

/// A barrier of the grid by hand: the last block to arrive resets the counter and lets the others go.
const GRID_BARRIER: &str = "
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x;
    ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [count]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd6, [flag];
    mov.u32 %r10, 0;
ROUND:
    setp.ne.u32 %p0, %r0, 0;
    mad.wide.u32 %rd3, %r1, 4, %rd0;
    add.u32 %r11, %r1, %r10;
    @!%p0 st.global.u32 [%rd3], %r11;
    bar.sync 0;
    @%p0 bra MEET;
    membar.gl;
    atom.global.add.u32 %r3, [%rd1], 1;
    add.u32 %r4, %r3, 1;
    add.u32 %r12, %r10, 1;
    setp.ne.u32 %p1, %r4, %r2;
    @%p1 bra WAIT;
    st.global.u32 [%rd1], 0;
    membar.gl;
    st.volatile.global.u32 [%rd6], %r12;
WAIT:
    ld.volatile.global.u32 %r5, [%rd6];
    setp.lt.u32 %p2, %r5, %r12;
    @%p2 bra WAIT;
    membar.gl;
MEET:
    bar.sync 0;
    add.u32 %r6, %r1, 1;
    rem.u32 %r6, %r6, %r2;
    mad.wide.u32 %rd4, %r6, 4, %rd0;
    ld.global.u32 %r7, [%rd4];
    mad.lo.u32 %r8, %r1, 32, %r0;
    mad.wide.u32 %rd5, %r8, 4, %rd2;
    st.global.u32 [%rd5], %r7;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p3, %r10, 1;
    @%p3 bra ROUND;
    ret;";

#[test]
fn a_barrier_of_the_grid_made_by_hand() {
    let text = module(".param .u64 data, .param .u64 count, .param .u64 out, .param .u64 flag", GRID_BARRIER);
    let mut bench = Bench::new(6, 32);
    bench.empty("data", 6);
    let count = bench.buffer("count", &[0]);
    let out = bench.empty("out", 192);
    let flag = bench.buffer("flag", &[0]);
    for seed in 0..8 {
        bench.options.seed = seed;
        bench.memory.write(flag, &[0; 4]).unwrap();
        bench.clean(&text);
        assert_eq!(bench.words(count, 1), [0]);
        assert_eq!(bench.words(out, 192), (0..192).map(|at| (at / 32 + 1) % 6).collect::<Vec<_>>());
        // Without the fence behind the wait, or the one before the flag, nothing of the others is visible.
        for without in ["    membar.gl;\nMEET:", "    membar.gl;\n    atom"] {
            let broken = replaced(&text, without, &without.replace("membar.gl;", ""));
            bench.memory.write(flag, &[0; 4]).unwrap();
            let report = bench.run(&broken);
            assert!(report.findings.iter().any(|finding| finding.kind == Kind::Race), "{without}: {report}");
            bench.memory.write(count, &[0; 4]).unwrap();
        }
    }
}

#[test]
fn blocks_may_write_one_value_without_an_order() {
    // `if (data[i] changes) *changed = 1`, by every block.
    let body = "ld.param.u64 %rd0, [changed]; mov.u32 %r0, %ctaid.x;\nst.global.u32 [%rd0], 1;\nret;";
    let text = module(".param .u64 changed", body);
    // With fences, blocks are compared as they go.
    let fenced = replaced(&text, "\nret;", "\nmembar.gl; atom.global.add.u32 %r1, [%rd0+4], 1;\nret;");
    for threads in [1, 2] {
        let mut bench = Bench::new(8, 1);
        bench.options.threads = Some(threads);
        bench.buffer("changed", &[0, 0]);
        for text in [&text, &fenced] {
            let report = bench.run(text);
            assert!(report.is_clean(), "{report}");
            assert!(report.findings.iter().all(|finding| finding.kind == Kind::SameValueRace), "{report}");
            let between =
                report.findings.iter().find(|f| f.other.as_ref().is_some_and(|o| o.thread.cta != f.thread.cta));
            let location = between.unwrap().location.as_ref().unwrap();
            assert_eq!(location.bytes, 4, "{report}");
            // Other values, and a read that nothing orders, are failures.
            let other = replaced(text, "[%rd0], 1;", "[%rd0], %r0;");
            assert!(bench.run(&other).findings.iter().any(|finding| finding.kind == Kind::Race));
            let read =
                replaced(text, "st.global.u32 [%rd0], 1;", "ld.global.u32 %r2, [%rd0]; st.global.u32 [%rd0], 1;");
            assert!(bench.run(&read).findings.iter().any(|finding| finding.kind == Kind::Race));
        }
    }
}

#[test]
fn equal_values_do_not_hide_a_read() {
    // Block 0 reads the word, the others write the same at instructions of their own.
    let body = "
    ld.param.u64 %rd0, [w]; mov.u32 %r0, %ctaid.x;
    setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 1; setp.eq.u32 %p2, %r0, 2;
    @%p0 ld.global.u32 %r1, [%rd0];
    @%p1 st.global.u32 [%rd0], 1;
    @%p2 st.global.u32 [%rd0], 1;
    ret;";
    let mut bench = Bench::new(3, 1);
    bench.buffer("w", &[0]);
    let report = bench.run(&module(".param .u64 w", body));
    let races = report.findings.iter().filter(|finding| finding.kind == Kind::Race);
    assert_eq!(races.map(|finding| finding.place.line).collect::<Vec<_>>(), [9, 10], "{report}");
}

#[test]
fn warps_that_have_exited_are_not_waited_for() {
    let body = "mov.u32 %r0, %tid.x;\nsetp.ge.u32 %p0, %r0, 40;\n@%p0 ret;\nbar.sync 0;\nret;";
    let report = Bench::new(1, 128).run(&module("", body));
    // Told, since the manual of PTX does not say so, but no failure.
    assert!(report.is_clean() && report.findings[0].kind == Kind::ExitBeforeBarrier, "{report}");
}

#[test]
fn arrays_in_shared_memory_have_room_between_them() {
    let body = "
    .shared .align 4 .b32 first[32];
    .shared .align 16 .b8 second[64];
    .shared .align 4 .b32 third[32];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, first; mad.lo.u32 %r1, %r0, 4, %r1;
    mov.u32 %r2, second; mad.lo.u32 %r2, %r0, 2, %r2;
    mov.u32 %r3, third; mad.lo.u32 %r3, %r0, 4, %r3;
    st.shared.u32 [%r1], %r0; st.shared.u16 [%r2], 1; st.shared.u32 [%r3], %r0;
    mov.u32 %r4, %total_smem_size;
    ld.param.u64 %rd0, [y]; mad.wide.u32 %rd0, %r0, 4, %rd0; st.global.u32 [%rd0], %r4;
    ret;";
    let text = module(".param .u64 y", body);
    let mut bench = Bench::new(2, 32);
    let y = bench.empty("y", 32);
    bench.block = 32;
    bench.grid = 1;
    bench.clean(&text);
    assert_eq!(bench.words(y, 1), [320]);
    assert_eq!(Program::parse(&text).unwrap().static_shared("k").unwrap(), 320);
    for (old, new, what) in [
        ("[%r1], %r0;", "[%r1+4], %r0;", "4 bytes past the end of `first` of 128 bytes"),
        ("[%r2], 1;", "[%r2+2], 1;", "2 bytes past the end of `second` of 64 bytes"),
        (
            "st.shared.u32 [%r3], %r0;",
            "st.shared.u32 [%r3], %r0; ld.shared.u32 %r6, [%r3+-128];",
            "4 bytes past the end of `second`",
        ),
        ("st.shared.u32 [%r3], %r0;", "atom.shared.exch.b32 %r6, [%r1+4], %r0;", "4 bytes past the end of `first`"),
    ] {
        let report = bench.run(&replaced(&text, old, new));
        // What reaches into the room meets its neighbours, too.
        let finding = &report.findings[0];
        assert_eq!(finding.kind, Kind::OutOfBounds, "{what}: {report}");
        assert!(finding.to_string().contains(what), "{what}: {report}");
    }
    // The room does not count: all that a block can have is there.
    let large =
        ".shared .b8 a[116224];\n.shared .b8 b[116224];\nmov.u32 %r0, a; mov.u32 %r1, b; st.shared.u8 [%r1], 1; ret;";
    Bench::new(1, 1).clean(&module("", large));
}

#[test]
fn atomic_operations_of_a_block_are_none_to_another() {
    let body = "ld.param.u64 %rd0, [n];\natom.cta.global.add.u32 %r0, [%rd0], 1;\nret;";
    let text = module(".param .u64 n", body);
    let mut bench = Bench::new(4, 32);
    bench.buffer("n", &[0]);
    let report = bench.run(&text);
    assert!(only(&report, Kind::Race, 6).detail.contains("strong inside their blocks only (`.cta`)"), "{report}");
    bench.grid = 1;
    bench.clean(&text);
    bench.grid = 4;
    bench.clean(&replaced(&text, ".cta", ".gpu"));
}

#[test]
fn blocks_of_the_heap() {
    let externs = ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n";
    let body = "
    { .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call (r), malloc, (n); ld.param.b64 %rd0, [r]; }
    st.u32 [%rd0+8], 1;
    { .param .b64 p; st.param.b64 [p], %rd0; call free, (p); }
    ret;";
    let text = module("", body).replace(".visible .entry", &format!("{externs}.visible .entry"));
    let bench = Bench::new(1, 1);
    bench.clean(&text);
    assert_eq!(bench.memory.heap_blocks(), []);
    let free = "    { .param .b64 p; st.param.b64 [p], %rd0; call free, (p); }\n";
    let report = bench.run(&replaced(&text, "    ret;", "    ld.u32 %r0, [%rd0+8];\n    ret;"));
    let [finding] = &report.findings[..] else { panic!("{report}") };
    assert_eq!(finding.kind, Kind::UseAfterFree, "{report}");
    assert!(
        finding.detail.contains("at byte 8 of a block of 24 bytes of the heap, which was freed at line 10"),
        "{report}"
    );
    let report = bench.run(&replaced(&text, "    ret;", &format!("{free}    ret;")));
    assert!(report.trap().unwrap().detail.contains("which was freed at line 10"), "{report}");
    bench.clean(&replaced(&text, free, ""));
    let [block] = &bench.memory.heap_blocks()[..] else { panic!("one block is left") };
    assert_eq!((block.bytes, block.place.line, block.kernel.as_str()), (24, 8, "k"));
}

#[test]
fn places_have_the_calls_that_were_inlined() {
    let body = "
    .loc 1 30 5
    ld.param.u64 %rd0, [x];
    .loc 2 7 3, function_name $L__info_string0, inlined_at 1 30 5
    add.u64 %rd0, %rd0, 64;
    .loc 3 11 9, function_name $L__info_string0+12, inlined_at 2 7 3
    st.global.u32 [%rd0], 1;
    ret;";
    let strings: String =
        "_Z5outerPi\0\0_Z5innerPi\0".bytes().map(|byte| format!(".b8 {byte}\n")).collect::<Vec<_>>().concat();
    let text = module(".param .u64 x", body)
        + ".file 1 \"k.cu\"\n.file 2 \"outer.cuh\"\n.file 3 \"inner.cuh\"\n"
        + &format!(".section .debug_str {{\n$L__info_string0:\n{strings}}}\n");
    let mut bench = Bench::new(1, 1);
    bench.buffer("x", &[0]);
    let report = bench.run(&text);
    let place = &report.trap().unwrap().place;
    let stack: Vec<(&str, u32)> = place.stack().map(|(file, line, _)| (file.as_str(), *line)).collect();
    assert_eq!(stack, [("inner.cuh", 11), ("outer.cuh", 7), ("k.cu", 30)]);
    let functions: Vec<&str> = place.inlined.iter().map(|inlined| inlined.function.as_str()).collect();
    assert_eq!(functions, ["_Z5innerPi", "_Z5outerPi"]);
    assert!(report.to_string().contains("inner.cuh:11:9, inlined at outer.cuh:7:3, inlined at k.cu:30:5"), "{report}");
}

#[test]
fn addresses_of_local_variables_are_their_threads_own() {
    // Thread 0 leaves the address of a variable in shared memory, and all read it.
    let body = "
    .local .align 4 .b32 mine[4];
    .shared .align 8 .b64 where;
    ld.param.u64 %rd0, [y]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 4, %rd0;
    mov.u64 %rd1, mine; cvta.local.u64 %rd2, %rd1;
    st.u32 [%rd2+4], %r0;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 st.shared.u64 [where], %rd2;
    bar.sync 0;
    @%p0 ld.shared.u64 %rd2, [where];
    cvta.to.local.u64 %rd3, %rd2; cvta.local.u64 %rd2, %rd3;
    ld.u32 %r1, [%rd2+4];
    ld.local.u32 %r2, [%rd3+4];
    add.u32 %r1, %r1, %r2; st.global.u32 [%rd0], %r1;
    ret;";
    let text = module(".param .u64 y", body);
    let mut bench = Bench::new(1, 64);
    let y = bench.empty("y", 64);
    bench.clean(&text);
    assert_eq!(bench.words(y, 64), (0..64).map(|thread| 2 * thread).collect::<Vec<_>>());
    let report = bench.run(&replaced(&text, "@%p0 ld.shared.u64", "ld.shared.u64"));
    let finding = report.trap().unwrap();
    let wanted = "the address is in the local memory of another thread: block (0, 0, 0), warp 0, lane 0";
    assert_eq!((finding.kind, finding.detail.as_str()), (Kind::OutOfBounds, wanted), "{report}");
    // Past its end and before its start it is what it was.
    for (offset, what) in [("+16", "4 bytes past the end of `mine`"), ("+-4", "")] {
        let report = bench.run(&replaced(&text, "ld.u32 %r1, [%rd2+4]", &format!("ld.u32 %r1, [%rd2{offset}]")));
        assert!(report.trap().unwrap().to_string().contains(what), "{report}");
        assert_eq!(report.trap().unwrap().kind, Kind::OutOfBounds, "{report}");
    }
}

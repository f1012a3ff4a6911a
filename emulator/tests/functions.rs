//! Device functions, variables of modules, and values that were never computed.

use crate::common::Bench;
use tilewright_emulator::{Error, Kind, Launch, Memory, Options, Program, Report};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// A kernel `k(y)` with `%r0` thread and `%rd1` its word of y, after some module-level text.
fn text(module: &str, body: &str) -> String {
    format!(
        "{HEAD}{module}\n.visible .entry k(.param .u64 y) {{\n.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<5>;\n\
         ld.param.u64 %rd0, [y];\nmov.u32 %r0, %tid.x;\nmad.wide.u32 %rd1, %r0, 4, %rd0;\n{body}\nret;\n}}\n"
    )
}

fn run(module: &str, body: &str) -> (Report, Vec<u32>) {
    let mut bench = Bench::new(1, 32);
    let y = bench.empty("y", 32);
    let report = bench.run(&text(module, body));
    (report, bench.words(y, 32))
}

fn clean(module: &str, body: &str) -> Vec<u32> {
    let (report, words) = run(module, body);
    assert!(report.findings.is_empty(), "{report}");
    words
}

const TRIANGLE: &str = "
.func (.reg .b32 %sum) triangle(.reg .b32 %n) {
    .reg .pred %p; .reg .b32 %t<3>;
    mov.u32 %sum, 0;
    setp.eq.u32 %p, %n, 0;
    @%p ret;
    sub.u32 %t0, %n, 1;
    call (%t1), triangle, (%t0);
    add.u32 %sum, %n, %t1;
    ret;
}";

#[test]
fn parameters_in_registers_and_recursion() {
    // Every thread goes to its own depth.
    let words = clean(TRIANGLE, "call (%r1), triangle, (%r0);\nst.global.u32 [%rd1], %r1;");
    assert_eq!(words, (0..32).map(|n| n * (n + 1) / 2).collect::<Vec<u32>>());
    // Registers of the caller are its own.
    let words = clean(
        TRIANGLE,
        "mov.u32 %r2, 7;\ncall (%r1), triangle, (3);\nadd.u32 %r1, %r1, %r2;\nst.global.u32 [%rd1], %r1;",
    );
    assert_eq!(words[5], 13);
}

#[test]
fn structs_in_param_space() {
    let module = "
.func (.param .align 8 .b8 out[16]) swap(.param .align 8 .b8 in[16]) {
    .reg .b64 %a<2>;
    ld.param.u64 %a0, [in];
    ld.param.u64 %a1, [in+8];
    st.param.u64 [out], %a1;
    st.param.u64 [out+8], %a0;
    ret;
}";
    let body = "{ .param .align 8 .b8 given[16]; .param .align 8 .b8 back[16];
cvt.u64.u32 %rd2, %r0; st.param.u64 [given], %rd2; mul.lo.u64 %rd2, %rd2, 10; st.param.u64 [given+8], %rd2;
call.uni (back), swap, (given);
ld.param.u32 %r1, [back]; }
st.global.u32 [%rd1], %r1;";
    assert_eq!(clean(module, body), (0..32).map(|n| n * 10).collect::<Vec<u32>>());
    // A half that was never given is undefined in the function.
    let (report, _) = run(module, &body.replace("st.param.u64 [given+8], %rd2;", ""));
    assert_eq!(report.findings[0].kind, Kind::UninitialisedRead, "{report}");
}

#[test]
fn indirect_calls_diverge_and_meet_again() {
    let module = "
.func (.param .b32 r) one(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, 1; st.param.b32 [r], %x; ret; }
.func (.param .b32 r) two(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, 2; st.param.b32 [r], %x; ret; }
.global .align 8 .u64 table[2] = {one, two};";
    let body = "{ .param .b32 a0; .param .b32 r0; .reg .b64 %f;
and.b32 %r1, %r0, 1; mul.wide.u32 %rd2, %r1, 8; mov.u64 %rd3, table; add.u64 %rd2, %rd2, %rd3; ld.global.u64 %f, [%rd2];
st.param.b32 [a0], %r0;
proto: .callprototype (.param .b32 _) _ (.param .b32 _);
call (r0), %f, (a0), proto;
ld.param.b32 %r2, [r0]; }
vote.sync.ballot.b32 %r3, 1, 0xffffffff;
add.u32 %r2, %r2, %r3;
st.global.u32 [%rd1], %r2;";
    let words = clean(module, body);
    assert_eq!(words, (0..32).map(|n: u32| n + n % 2).collect::<Vec<u32>>(), "everybody votes: ballot is -1");
    // An address that is none.
    let (report, _) = run(module, &body.replace("ld.global.u64 %f, [%rd2]", "mov.u64 %f, 64"));
    let trap = report.trap().unwrap();
    assert!(trap.kind == Kind::Trap && trap.detail.contains("0x40 is not the address of a function"), "{report}");
}

#[test]
fn calls_that_cannot_be_made() {
    let (report, _) = run(
        ".extern .func (.param .b64 r) elsewhere(.param .b64 n);",
        "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 8; call (r), elsewhere, (n); }",
    );
    assert!(report.trap().unwrap().detail.contains("`elsewhere`, which the module only declares"), "{report}");
    let endless = ".func f() { call f; ret; }";
    let (report, _) = run(endless, "call f;");
    assert_eq!(report.trap().unwrap().kind, Kind::StackOverflow, "{report}");
}

#[test]
fn a_program_runs_although_another_kernel_of_it_cannot() {
    let text = format!(
        "{}\n.visible .entry other() {{ .reg .b64 %rd0; .reg .b32 %r0; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [%r0], 16; ret; }}\n",
        text("", "st.global.u32 [%rd1], %r0;").replace("sm_80", "sm_90a")
    );
    let program = Program::parse(&text).unwrap();
    assert_eq!(program.entries().collect::<Vec<_>>(), ["k"]);
    let launch = Launch { entry: "other".into(), grid: [1; 3], block: [32, 1, 1], ..Launch::default() };
    let error = program.launch(&launch, &Memory::new(1 << 20), &Options::default()).unwrap_err();
    assert!(matches!(&error, Error::Unsupported { what, .. } if what.contains("cp.reduce.async.bulk")), "{error}");
}

#[test]
fn variables_of_modules_live_as_long_as_the_device() {
    let module = ".global .align 4 .u32 count = 5;\n.const .align 4 .u32 step[2] = {1, 100};\n.global .u32 zeros[4];";
    let text = text(
        module,
        "ld.const.u32 %r1, [step+4];\natom.global.add.u32 %r2, [count], %r1;\nld.global.u32 %r3, [zeros+12];\nadd.u32 %r2, %r2, %r3;\nst.global.u32 [%rd1], %r2;",
    );
    let program = Program::parse(&text).unwrap();
    let memory = Memory::new(1 << 20);
    let y = memory.alloc(128, "y").unwrap();
    let launch =
        Launch { entry: "k".into(), grid: [1; 3], block: [1, 1, 1], args: vec![y.into()], ..Launch::default() };
    let word = |address| {
        let mut bytes = [0; 4];
        memory.read(address, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    };
    for expected in [5, 105] {
        let report = program.launch(&launch, &memory, &Options::default()).unwrap();
        assert!(report.findings.is_empty(), "{report}");
        assert_eq!(word(y), expected);
    }
    program.write_symbol(&memory, "step", &[1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
    program.write_symbol(&memory, "count", &[9, 0, 0, 0]).unwrap();
    program.launch(&launch, &memory, &Options::default()).unwrap();
    let mut count = [0; 4];
    program.read_symbol(&memory, "count", &mut count).unwrap();
    assert_eq!((word(y), u32::from_le_bytes(count)), (9, 11));
    assert!(matches!(program.write_symbol(&memory, "none", &[]), Err(Error::NoSymbol { .. })));
    assert!(matches!(program.write_symbol(&memory, "count", &[0; 5]), Err(Error::BadAddress { .. })));
    // Another device has variables of its own.
    let other = Memory::new(1 << 20);
    program.read_symbol(&other, "count", &mut count).unwrap();
    assert_eq!(u32::from_le_bytes(count), 5);
}

#[test]
fn initial_values_of_every_form() {
    let module = "
.const .align 2 .b8 bytes[4] = {1, 2, 255};
.global .align 8 .f64 numbers[2][2] = {{1.0, 0d4000000000000000}, {3.5}};
.global .align 8 .u64 pointers[2] = {generic(bytes)+1, numbers};
.global .align 16 .v4 .f32 vector = {0f3f800000, 0f40000000, 0f40400000, 0f40800000};";
    let body = ".reg .b64 %a<4>; .reg .f64 %d; .reg .f32 %f;
ld.global.u64 %a0, [pointers]; ld.u8 %r1, [%a0+1];
ld.global.u64 %a1, [pointers+8]; ld.global.f64 %d, [%a1+16]; cvt.rzi.u32.f64 %r2, %d;
ld.global.f32 %f, [vector+8]; cvt.rzi.u32.f32 %r3, %f;
ld.const.u8 %r4, [bytes+3];
mad.lo.u32 %r1, %r1, 100, %r2; mad.lo.u32 %r1, %r1, 10, %r3; add.u32 %r1, %r1, %r4;
st.global.u32 [%rd1], %r1;";
    assert_eq!(clean(module, body)[0], (255 * 100 + 3) * 10 + 3);
    let (report, _) = run(module, "ld.global.u32 %r1, [vector+16];\nst.global.u32 [%rd1], %r1;");
    let trap = report.trap().unwrap();
    assert!(trap.kind == Kind::OutOfBounds && trap.to_string().contains("`vector` of 16 bytes"), "{report}");
}

#[test]
fn undefined_values_may_be_moved_but_not_used() {
    // Half of the lanes load; all of them shuffle and add; those that loaded store.
    let body = "setp.lt.u32 %p0, %r0, 16;\n@%p0 mov.u32 %r1, %r0;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xffffffff;\nadd.u32 %r3, %r1, %r2;\n\
        selp.u32 %r4, %r3, 0, %p0;\nst.global.u32 [%rd1], %r4;";
    let words = clean("", body);
    assert_eq!((words[2], words[20]), (5, 0));
    for (from, to) in [
        ("%r4;", "%r3;"),
        ("[%rd1], %r4", "[%rd1], %r1"),
        ("selp.u32 %r4, %r3, 0, %p0", "setp.eq.u32 %p1, %r3, 0;\n@%p1 mov.u32 %r4, 1"),
    ] {
        let (report, _) = run("", &body.replace(from, to));
        assert_eq!(report.findings.first().map(|f| f.kind), Some(Kind::UninitialisedRegister), "{to}\n{report}");
    }
}

#[test]
fn room_on_the_stack() {
    // Every thread takes as many words as it has a number, writes them and adds them up; twice, from the same place.
    let body = "mov.u32 %r5, 0;\nmov.u32 %r4, 0;\nAGAIN:\nstacksave.u64 %rd4;\nshl.b32 %r1, %r0, 2;\ncvt.u64.u32 %rd2, %r1;\n\
        alloca.u64 %rd3, %rd2, 16;\nmov.u32 %r2, 0;\nWRITE:\nsetp.ge.u32 %p0, %r2, %r0;\n@%p0 bra WRITTEN;\n\
        st.local.u32 [%rd3], %r2;\nld.local.u32 %r3, [%rd3];\nadd.u32 %r4, %r4, %r3;\nadd.u64 %rd3, %rd3, 4;\nadd.u32 %r2, %r2, 1;\nbra WRITE;\n\
        WRITTEN:\nstackrestore.u64 %rd4;\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 2;\n@%p1 bra AGAIN;\nst.global.u32 [%rd1], %r4;";
    assert_eq!(clean("", body), (0..32).map(|n: u32| n * n.saturating_sub(1)).collect::<Vec<_>>());
    let (report, _) = run("", "alloca.u64 %rd3, 32;\nld.local.u32 %r1, [%rd3];\nst.global.u32 [%rd1], %r1;");
    assert_eq!(report.findings[0].kind, Kind::UninitialisedRead, "{report}");
    let (report, _) = run("", "mov.u64 %rd2, -1;\nalloca.u64 %rd3, %rd2;");
    assert_eq!(report.trap().unwrap().kind, Kind::StackOverflow, "{report}");
}

#[test]
fn grids_meet_in_their_workspace() {
    // What `cooperative_groups::this_grid().sync()` does: block 0 adds 2^31 - (blocks - 1), the others 1, until the top
    // bit turns.
    let body = "mov.u32 %r1, %envreg1;\nmov.u32 %r2, %envreg2;\nmov.b64 %rd2, {%r2, %r1};\nmov.u32 %r3, %ctaid.x;\n\
        mad.wide.u32 %rd3, %r3, 4, %rd0;\nst.global.u32 [%rd3], %r3;\nmov.u32 %r4, %nctaid.x;\nmov.u32 %r5, -2147483647;\n\
        sub.u32 %r5, %r5, %r4;\nsetp.eq.u32 %p0, %r3, 0;\nselp.b32 %r5, %r5, 1, %p0;\nfence.acq_rel.gpu;\n\
        atom.add.release.gpu.u32 %r6, [%rd2+4], %r5;\nSPIN:\nld.acquire.gpu.u32 %r7, [%rd2+4];\nxor.b32 %r7, %r7, %r6;\n\
        setp.ge.s32 %p1, %r7, 0;\n@%p1 bra SPIN;\nadd.u32 %r3, %r3, 1;\nrem.u32 %r3, %r3, %r4;\n\
        mad.wide.u32 %rd4, %r3, 4, %rd0;\nld.global.u32 %r8, [%rd4];\nst.global.u32 [%rd3+32], %r8;";
    let program = Program::parse(&text("", body)).unwrap();
    let memory = Memory::new(1 << 20);
    let y = memory.alloc(64, "y").unwrap();
    let launch =
        Launch { entry: "k".into(), grid: [8, 1, 1], block: [1, 1, 1], args: vec![y.into()], ..Launch::default() };
    for _ in 0..2 {
        let report = program.launch(&launch, &memory, &Options { budget: 1 << 20, ..Options::default() }).unwrap();
        assert!(report.findings.is_empty(), "{report}");
        let mut bytes = [0; 64];
        memory.read(y, &mut bytes).unwrap();
        let words: Vec<u8> = bytes[32..].iter().step_by(4).copied().collect();
        assert_eq!(words, [1, 2, 3, 4, 5, 6, 7, 0]);
    }
}

#[test]
fn copies_of_structures_keep_which_bytes_are_written() {
    // As unoptimised code copies a structure of a byte and a word: eight bytes at a time.
    let copy = "mov.u64 %rd4, room;\ncvta.local.u64 %rd4, %rd4;\nst.u8 [%rd4], %r0;\nst.u32 [%rd4+4], 7;\nld.u64 %rd3, [%rd4];\n\
        st.u64 [%rd4+8], %rd3;\n";
    let room = ".local .align 8 .b8 room[32];\n";
    let words = clean(
        "",
        &format!(
            "{room}{copy}ld.u32 %r1, [%rd4+12];\nld.u8 %r2, [%rd4+8];\nadd.u32 %r1, %r1, %r2;\nst.global.u32 [%rd1], %r1;"
        ),
    );
    assert_eq!(words, (7..39).collect::<Vec<_>>());
    let (report, _) = run("", &format!("{room}{copy}ld.u8 %r1, [%rd4+9];\nst.global.u32 [%rd1], %r1;"));
    assert_eq!(report.findings.first().map(|f| f.kind), Some(Kind::UninitialisedRead), "{report}");
    // A field of some bits is set in a word that nobody wrote; nothing is set by what is cut off.
    let set = |how: &str| {
        format!(
            "{room}ld.local.u32 %r1, [room];\n{how}\nst.local.u32 [room], %r1;\nld.local.u32 %r1, [room];\nst.global.u32 [%rd1], %r1;"
        )
    };
    clean("", &set("or.b32 %r1, %r1, 1;"));
    let (report, _) = run("", &set("and.b32 %r1, %r1, 1;"));
    assert_eq!(report.findings.first().map(|f| f.kind), Some(Kind::UninitialisedRead), "{report}");
}

/// As the CUDA programming guide adds in double precision, compiled without optimisation: the guess goes by way of the
/// stack, the swap is in a function.
#[test]
fn guesses_are_followed_through_memory() {
    let swap = ".func (.param .b32 was) swap(.param .b64 at, .param .b32 old, .param .b32 new) {\n.reg .b32 %r<4>; .reg .b64 %rd<2>;\n\
        ld.param.u64 %rd1, [at];\nld.param.u32 %r1, [old];\nld.param.u32 %r2, [new];\natom.cas.b32 %r3, [%rd1], %r1, %r2;\n\
        st.param.b32 [was], %r3;\nret;\n}";
    let body = "setp.eq.u32 %p0, %r0, 0;\n@%p0 st.global.u32 [%rd0], 0;\nbar.sync 0;\n.local .align 4 .b8 room[8];\nld.u32 %r1, [%rd0];\nst.local.u32 [room], %r1;\n\
        AGAIN:\nld.local.u32 %r2, [room];\nadd.u32 %r3, %r2, 1;\n{ .param .b64 at; .param .b32 old; .param .b32 new; .param .b32 was;\n\
        st.param.b64 [at], %rd0;\nst.param.b32 [old], %r2;\nst.param.b32 [new], %r3;\ncall (was), swap, (at, old, new);\nld.param.b32 %r4, [was]; }\n\
        st.local.u32 [room], %r4;\nsetp.ne.u32 %p1, %r4, %r2;\n@%p1 bra AGAIN;";
    let two_warps = |body: &str| {
        let mut bench = Bench::new(1, 64);
        let y = bench.empty("y", 64);
        (bench.run(&text(swap, body)), bench.words(y, 1)[0])
    };
    for (instruction, races) in [("ld.u32 %r1, [%rd0]", false), ("mov.u32 %r1, 0;\nld.u32 %r5, [%rd0]", true)] {
        let (report, word) = two_warps(&body.replace("ld.u32 %r1, [%rd0]", instruction));
        assert_eq!((report.findings.iter().any(|f| f.kind == Kind::Race), word), (races, 64), "{report}");
    }
}

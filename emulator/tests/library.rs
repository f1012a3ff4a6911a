//! What the driver gives to every module: `printf`, `malloc` and `free`; and registers of 128 bits.

use crate::common::{Bench, only};
use tilewright_emulator::{Kind, Options};

/// Declarations of the functions, then a kernel `k` whose body starts in line 8.
fn module(body: &str) -> String {
    format!(
        ".version 8.3\n.target sm_80\n.address_size 64\n\
         .extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a); .extern .func (.param .b64 r) malloc (.param .b64 n); .extern .func free (.param .b64 p);\n\
         .global .align 1 .b8 fmt[12] = {{37, 100, 32, 37, 46, 49, 102, 59, 10, 0, 0, 0}};\n\
         .visible .entry k(.param .u64 out) {{ .local .align 8 .b8 list[16]; .param .b64 p0; .param .b64 p1; .param .b32 q; .param .b64 m;\n\
         .reg .b32 %r<8>; .reg .b64 %a<8>; .reg .b128 %q<3>; .reg .f64 %d; .reg .pred %p; ld.param.u64 %a0, [out]; mov.u32 %r0, %tid.x;\n\
         {body}\n}}\n"
    )
}

const MALLOC: &str = "mov.u64 %a1, 8; st.param.b64 [p0], %a1;\ncall.uni (m), malloc, (p0);\nld.param.b64 %a2, [m];";

#[test]
fn printf_is_told_in_the_report() {
    let text = module(
        "st.local.u32 [list], %r0; cvt.rn.f64.u32 %d, %r0; st.local.f64 [list+8], %d; mov.u64 %a1, fmt; st.param.b64 [p0], %a1;\n\
         mov.u64 %a2, list; cvta.local.u64 %a2, %a2; st.param.b64 [p1], %a2;\ncall.uni (q), vprintf, (p0, p1);\n\
         ld.param.b32 %r1, [q]; mad.wide.u32 %a3, %r0, 4, %a0; st.global.u32 [%a3], %r1; ret;",
    );
    let mut bench = Bench::new(2, 3);
    let out = bench.empty("out", 3);
    let one = bench.run(&text);
    assert_eq!(one.printed, "0 0.0;\n1 1.0;\n2 2.0;\n".repeat(2));
    assert_eq!(bench.words(out, 3), [2; 3]);
    // Blocks on several host threads print in the same order.
    bench.grid = 100;
    bench.options = Options { threads: Some(3), ..bench.options };
    assert_eq!(bench.run(&text).printed, "0 0.0;\n1 1.0;\n2 2.0;\n".repeat(100));
}

#[test]
fn the_heap_knows_its_blocks() {
    let mut bench = Bench::new(1, 2);
    let out = bench.empty("out", 2);
    let ok = format!(
        "{MALLOC}\nst.u32 [%a2+4], %r0; ld.u32 %r1, [%a2+4]; mad.wide.u32 %a3, %r0, 4, %a0; st.global.u32 [%a3], %r1;\n\
         st.param.b64 [p0], %a2;\ncall.uni free, (p0);\nret;"
    );
    bench.clean(&module(&ok));
    assert_eq!(bench.words(out, 2), [0, 1]);
    // One word past the block, which starts in line 11.
    let past = bench.run(&module(&format!("{MALLOC}\nst.u32 [%a2+8], %r0; ret;")));
    only(&past, Kind::OutOfBounds, 11);
    let after = format!(
        "{MALLOC}\nst.u32 [%a2], %r0; st.param.b64 [p0], %a2;\ncall.uni free, (p0);\nld.u32 %r1, [%a2]; st.global.u32 [%a0], %r1; ret;"
    );
    only(&bench.run(&module(&after)), Kind::UseAfterFree, 13);
    let twice = format!("{MALLOC}\nst.param.b64 [p0], %a2; call.uni free, (p0);\ncall.uni free, (p0); ret;");
    only(&bench.run(&module(&twice)), Kind::Trap, 12);
    let unwritten = format!("{MALLOC}\nld.u32 %r1, [%a2]; st.global.u32 [%a0], %r1; ret;");
    assert_eq!(bench.run(&module(&unwritten)).findings[0].kind, Kind::UninitialisedRead);
    // No room: the address is 0.
    let huge = "mov.u64 %a1, 0x4000000; st.param.b64 [p0], %a1; call.uni (m), malloc, (p0); ld.param.b64 %a2, [m];\n\
                setp.eq.u64 %p, %a2, 0; selp.u32 %r1, 1, 2, %p; mad.wide.u32 %a3, %r0, 4, %a0; st.global.u32 [%a3], %r1; ret;";
    bench.clean(&module(huge));
    assert_eq!(bench.words(out, 2), [1, 1]);
}

#[test]
fn registers_of_128_bits_move_whole() {
    let mut bench = Bench::new(1, 1);
    let out = bench.buffer("out", &[1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    bench.clean(&module(
        "ld.global.b128 %q0, [%a0]; mov.b128 {%a1, %a2}, %q0; mov.b128 %q1, {%a2, %a1}; mov.b128 %q2, %q1; st.global.b128 [%a0+16], %q2;\n\
         mov.b128 {%r1, %r2, %r3, %r4}, %q2; mov.b128 %q1, {%r4, %r3, %r2, %r1}; st.global.b128 [%a0+32], %q1; ret;",
    ));
    assert_eq!(bench.words(out, 12), [1, 2, 3, 4, 3, 4, 1, 2, 2, 1, 4, 3]);
    // 16 bytes need an address divisible by 16.
    let report = bench.run(&module("ld.global.b128 %q0, [%a0+8]; ret;"));
    only(&report, Kind::Misaligned, 8);
}

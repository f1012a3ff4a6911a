//! Instructions through the whole path: text, decoding, execution. Each line computes `%r0` (or `%rd0`) of one thread;
//! expected values are worked out by hand or by Rust's own arithmetic.

use crate::common::{Bench, module};

/// Runs a body that leaves its result in `%r0`, `%f0` or `%h0` moved there by the caller.
fn result(body: &str) -> u32 {
    let mut bench = Bench::new(1, 1);
    let out = bench.empty("out", 2);
    bench.clean(&module(
        ".param .u64 out",
        &format!("{body}\nld.param.u64 %rd15, [out];\nst.global.u32 [%rd15], %r0;\nret;"),
    ));
    bench.words(out, 1)[0]
}

fn wide(body: &str) -> u64 {
    let mut bench = Bench::new(1, 1);
    let out = bench.empty("out", 2);
    bench.clean(&module(
        ".param .u64 out",
        &format!("{body}\nld.param.u64 %rd15, [out];\nst.global.u64 [%rd15], %rd0;\nret;"),
    ));
    let words = bench.words(out, 2);
    u64::from(words[0]) | u64::from(words[1]) << 32
}

fn float(body: &str) -> f32 {
    f32::from_bits(result(&format!("{body}\nmov.b32 %r0, %f0;")))
}

fn double(body: &str) -> f64 {
    f64::from_bits(wide(&format!("{body}\nmov.b64 %rd0, %d0;")))
}

fn half(body: &str) -> u32 {
    result(&format!("{body}\ncvt.u32.u16 %r0, %h0;"))
}

#[track_caller]
fn check(body: &str, expected: u32) {
    let ours = result(body);
    assert_eq!(ours, expected, "{body}: {ours:#x}, expected {expected:#x}");
}

#[test]
fn integers() {
    check("add.u32 %r0, 4000000000, 400000000;", 105_032_704);
    check("sub.s32 %r0, 3, 5;", -2i32 as u32);
    check("add.sat.s32 %r0, 2000000000, 2000000000;", i32::MAX as u32);
    check("mul.lo.s32 %r0, -7, 6;", -42i32 as u32);
    check("mul.hi.u32 %r0, 0x80000000, 6;", 3);
    check("mul.hi.s32 %r0, -2147483648, 6;", -3i32 as u32);
    check("mul24.lo.s32 %r0, 0xffffff, 5;", -5i32 as u32);
    check("mad.lo.u32 %r0, 3, 4, 5;", 17);
    check("mad.hi.u32 %r0, 0x80000000, 6, 5;", 8);
    check("mad24.lo.u32 %r0, 0x1000002, 3, 1;", 7);
    check("div.s32 %r0, -7, 2;", -3i32 as u32);
    check("rem.s32 %r0, -7, 2;", -1i32 as u32);
    check("div.u32 %r0, 7, 2;", 3);
    check("abs.s32 %r0, -7;", 7);
    check("neg.s32 %r0, 7;", -7i32 as u32);
    check("min.s32 %r0, -7, 2;", -7i32 as u32);
    check("max.u32 %r0, -7, 2;", -7i32 as u32);
    check("sad.s32 %r0, -7, 2, 100;", 109);
    check("sad.u32 %r0, 7, 2, 100;", 105);
    check("mov.b32 %r1, 0x80010002; mov.b32 %r2, 0x00017fff; add.s16x2 %r0, %r1, %r2;", 0x8002_8001);
    check("mov.b32 %r1, 0x80010002; mov.b32 %r2, 0x00017fff; max.s16x2 %r0, %r1, %r2;", 0x0001_7fff);
    check("min.relu.s32 %r0, -7, 2;", 0);
    check("add.cc.u32 %r1, 0xffffffff, 2; addc.u32 %r0, 5, 6;", 12);
    check("sub.cc.u32 %r1, 1, 2; subc.u32 %r0, 5, 1;", 3);
    check("mad.lo.cc.u32 %r1, 0xffffffff, 1, 1; madc.hi.u32 %r0, 0, 0, 7;", 8);
    check("mov.u16 %h1, 40000; mov.u16 %h2, 3; mul.wide.u16 %r0, %h1, %h2;", 120_000);
    check("mov.s16 %h1, -4; mov.s16 %h2, 3; mad.wide.s16 %r0, %h1, %h2, 2;", -10i32 as u32);
    check("mov.u32 %r1, 0x01020304; dp4a.u32.u32 %r0, %r1, %r1, 1;", 31);
    assert_eq!(half("mov.u16 %h1, 65535; add.u16 %h0, %h1, 3;"), 2);
    assert_eq!(half("mov.s16 %h1, -9; shr.s16 %h0, %h1, 1;"), 0xfffb);
    assert_eq!(wide("mov.u32 %r1, 4000000000; mul.wide.u32 %rd0, %r1, 5;"), 20_000_000_000);
    assert_eq!(wide("mov.u32 %r1, -4; mad.wide.s32 %rd0, %r1, 5, 7;"), -13i64 as u64);
    assert_eq!(wide("mov.u64 %rd1, 0x123456789abcdef0; mul.hi.u64 %rd0, %rd1, 16;"), 1);
    assert_eq!(wide("mov.u64 %rd1, 7; mad.lo.s64 %rd0, %rd1, -3, 1;"), -20i64 as u64);
    assert_eq!(wide("mov.u64 %rd1, -8; shr.s64 %rd0, %rd1, 1;"), -4i64 as u64);
    assert_eq!(wide("mov.u64 %rd1, 0x8000000000000000; rem.u64 %rd0, %rd1, 10;"), 0x8000_0000_0000_0000 % 10);
}

#[test]
fn bits() {
    check("and.b32 %r0, 0xf0f0, 0xff00;", 0xf000);
    check("or.b32 %r0, 0xf0f0, 0xff00;", 0xfff0);
    check("xor.b32 %r0, 0xf0f0, 0xff00;", 0x0ff0);
    check("not.b32 %r0, 0xf0f0;", 0xffff_0f0f);
    check("cnot.b32 %r0, 0;", 1);
    check("shl.b32 %r0, 1, 31;", 1 << 31);
    check("shl.b32 %r0, 1, 32;", 0);
    check("shr.s32 %r0, -5, 40;", u32::MAX);
    check("shf.l.wrap.b32 %r0, 0x80000000, 1, 1;", 3);
    check("lop3.b32 %r0, 12, 10, 6, 0x96;", 0);
    check("lop3.b32 %r0, 12, 10, 6, 0xe8;", 14);
    check("prmt.b32 %r0, 0x03020100, 0x07060504, 0x7531;", 0x0705_0301);
    check("bfe.u32 %r0, 0xabcd1234, 8, 8;", 0x12);
    check("bfe.s32 %r0, 0xabcd9234, 8, 8;", 0xffff_ff92);
    check("bfi.b32 %r0, 0xff, 0, 4, 4;", 0xf0);
    check("popc.b32 %r0, 0xff00ff;", 16);
    check("clz.b32 %r0, 0xff;", 24);
    check("mov.u64 %rd1, 1; clz.b64 %r0, %rd1;", 63);
    check("brev.b32 %r0, 1;", 1 << 31);
    check("bfind.u32 %r0, 0x100;", 8);
    check("bfind.shiftamt.u32 %r0, 0x100;", 23);
    check("bfind.s32 %r0, -1;", u32::MAX);
    check("bmsk.clamp.b32 %r0, 4, 8;", 0xff0);
    check("szext.clamp.s32 %r0, 0x80, 8;", 0xffff_ff80);
    check("setp.lt.s32 %p0|%p1, -1, 1; selp.b32 %r1, 1, 0, %p0; selp.b32 %r2, 2, 0, %p1; or.b32 %r0, %r1, %r2;", 1);
    check("setp.lt.u32 %p1, 1, 2; setp.hi.and.u32 %p0, -1, 1, !%p1; selp.b32 %r0, 5, 6, %p0;", 6);
    check("setp.eq.s32 %p1, 1, 2; not.pred %p2, %p1; xor.pred %p3, %p1, %p2; selp.b32 %r0, 5, 6, %p3;", 5);
    check("set.lt.u32.s32 %r0, -1, 1;", u32::MAX);
    check("set.gt.f32.s32 %r0, 2, 1;", 1f32.to_bits());
    check("slct.b32.s32 %r0, 5, 6, -1;", 6);
    check("mov.f32 %f1, 0f80000000; slct.b32.f32 %r0, 5, 6, %f1;", 5);
    check("testp.infinite.f32 %p0, 0f7F800000; selp.b32 %r0, 5, 6, %p0;", 5);
    check("mov.u64 %rd1, 0x1122334455667788; mov.b64 {%r1, %r0}, %rd1;", 0x1122_3344);
    check(
        "mov.u64 %rd1, 0x1122334455667788; mov.b64 {%h0, %h1, %h2, %h3}, %rd1; mov.b32 %r0, {%h2, %h0};",
        0x7788_3344,
    );
    assert_eq!(
        wide(
            "mov.b64 %rd0, {1, 2};"
                .replace("{1, 2}", "{%r1, %r2}")
                .replacen("mov", "mov.u32 %r1, 1; mov.u32 %r2, 2; mov", 1)
                .as_str()
        ),
        1 | 2 << 32
    );
}

#[test]
fn floats() {
    assert_eq!(float("mov.f32 %f1, 0f3DCCCCCD; add.f32 %f0, %f1, %f1;"), 0.2);
    let third = 1.0f32 / 3.0;
    assert_eq!(float("mov.f32 %f1, 1.0; div.rn.f32 %f0, %f1, 3.0;"), third);
    assert_eq!(float("mov.f32 %f1, 1.0; div.rp.f32 %f0, %f1, 3.0;"), third);
    assert_eq!(float("mov.f32 %f1, 1.0; div.rz.f32 %f0, %f1, 3.0;"), f32::from_bits(third.to_bits() - 1));
    assert_eq!(float("mov.f32 %f1, 3.0; fma.rn.f32 %f0, %f1, %f1, 1.0;"), 10.0);
    assert_eq!(float("mov.f32 %f1, 2.0; sqrt.rn.f32 %f0, %f1;"), 2f32.sqrt());
    assert_eq!(float("mov.f32 %f1, -3.0; abs.f32 %f0, %f1;"), 3.0);
    assert_eq!(float("mov.f32 %f1, 0f7FC00000; max.f32 %f0, %f1, 1.0;"), 1.0);
    assert!(float("mov.f32 %f1, 0f7FC00000; max.NaN.f32 %f0, %f1, 1.0;").is_nan());
    assert_eq!(float("mov.f32 %f1, 3.0; ex2.approx.f32 %f0, %f1;"), 8.0);
    assert_eq!(float("mov.f32 %f1, 8.0; lg2.approx.f32 %f0, %f1;"), 3.0);
    assert_eq!(float("mov.f32 %f1, 4.0; rsqrt.approx.f32 %f0, %f1;"), 0.5);
    assert_eq!(float("mov.f32 %f1, 1.5; add.sat.f32 %f0, %f1, %f1;"), 1.0);
    assert_eq!(float("mov.f32 %f1, 6.0; div.full.f32 %f0, %f1, 3.0;"), 2.0);
    assert_eq!(float("mov.f32 %f1, -6.0; copysign.f32 %f0, %f1, 3.0;"), -3.0);
    assert_eq!(double("mov.f64 %d1, 0.1; add.f64 %d0, %d1, 0.2;"), 0.1 + 0.2);
    assert_eq!(double("mov.f64 %d1, 0.1; fma.rn.f64 %d0, %d1, %d1, 0.2;"), 0.1f64.mul_add(0.1, 0.2));
    assert_eq!(double("mov.f64 %d1, 1.0; div.rn.f64 %d0, %d1, 3.0;"), 1.0 / 3.0);
    assert_eq!(
        result("mov.b32 %r1, 0x3f803f80; mov.b32 %r2, 0x40004040; fma.rn.bf16x2 %r0, %r1, %r2, %r1;"),
        0x4040_4080
    );
    assert_eq!(result("mov.b32 %r1, 0x3c003c00; mov.b32 %r2, 0x40004200; add.f16x2 %r0, %r1, %r2;"), 0x4200_4400);
    assert_eq!(half("mov.b16 %h1, 0x3c00; neg.f16 %h0, %h1;"), 0xbc00);
    check(
        "mov.b32 %r1, 0x3c004400; mov.b32 %r2, 0x40004000; setp.lt.f16x2 %p0|%p1, %r1, %r2; selp.b32 %r3, 1, 0, %p0; selp.b32 %r4, 2, 0, %p1; or.b32 %r0, %r3, %r4;",
        2,
    );
}

#[test]
fn conversions() {
    check("mov.f32 %f1, 2.5; cvt.rni.s32.f32 %r0, %f1;", 2);
    check("mov.f32 %f1, -2.5; cvt.rmi.s32.f32 %r0, %f1;", -3i32 as u32);
    check("mov.f32 %f1, 3e9; cvt.rzi.s32.f32 %r0, %f1;", i32::MAX as u32);
    check("mov.u32 %r1, 300; cvt.u8.u32 %r0, %r1;", 44);
    check("mov.u32 %r1, 200; cvt.s8.u32 %r0, %r1;", -56i32 as u32);
    check("mov.u32 %r1, 300; cvt.sat.s8.s32 %r0, %r1;", 127);
    assert_eq!(wide("mov.u32 %r1, -5; cvt.s64.s32 %rd0, %r1;"), -5i64 as u64);
    assert_eq!(wide("mov.u32 %r1, -5; cvt.u64.u32 %rd0, %r1;"), 0xffff_fffb);
    assert_eq!(float("mov.u32 %r1, -5; cvt.rn.f32.s32 %f0, %r1;"), -5.0);
    assert_eq!(float("mov.f64 %d1, 0.1; cvt.rn.f32.f64 %f0, %d1;"), 0.1);
    assert_eq!(double("mov.f32 %f1, 0.1; cvt.f64.f32 %d0, %f1;"), f64::from(0.1f32));
    assert_eq!(half("mov.f32 %f1, 1.5; cvt.rn.f16.f32 %h0, %f1;"), 0x3e00);
    assert_eq!(float("mov.b16 %h1, 0x3e00; cvt.f32.f16 %f0, %h1;"), 1.5);
    assert_eq!(half("mov.f32 %f1, 1.5; cvt.rn.bf16.f32 %h0, %f1;"), 0x3fc0);
    check("mov.f32 %f1, 1.0; mov.f32 %f2, 2.0; cvt.rn.bf16x2.f32 %r0, %f1, %f2;", 0x3f80_4000);
    check("mov.f32 %f1, -1.0; mov.f32 %f2, 2.0; cvt.rn.relu.f16x2.f32 %r0, %f1, %f2;", 0x4000);
    assert_eq!(half("mov.f32 %f1, 500.0; mov.f32 %f2, 1.0; cvt.rn.satfinite.e4m3x2.f32 %h0, %f1, %f2;"), 0x7e38);
    check("mov.b16 %h1, 0x7e38; cvt.rn.f16x2.e4m3x2 %r0, %h1;", 0x5f00_3c00);
    check("mov.f32 %f1, 0f3F801000; cvt.rna.tf32.f32 %r0, %f1;", 0x3f80_2000);
    check("cvt.pack.sat.u8.s32.b32 %r0, 300, -5, 0x1234;", 0x1234_ff00);
    assert_eq!(float("mov.f32 %f1, -2.5; cvt.rni.f32.f32 %f0, %f1;"), -2.0);
}

#[test]
fn addresses_and_small_memories() {
    // Generic addresses of shared memory, local memory, constants and parameters.
    let text = ".version 8.3\n.target sm_90a\n.address_size 64\n.const .align 4 .b32 table[4] = {10, 20, 30, 40};\n.extern .shared .align 16 .b8 dynamic[];\n.visible .entry k(.param .u64 out, .param .align 8 .b8 pair[8]) {\n\
        .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .pred %p; .shared .align 4 .b8 fixed[20]; .local .align 8 .b8 spill[16];\n\
        ld.param.u64 %rd15, [out];\n\
        mov.u32 %r1, dynamic; st.shared.u32 [%r1+4], 7; ld.shared.u32 %r2, [dynamic+4]; st.global.u32 [%rd15], %r2;\n\
        st.global.u32 [%rd15+4], %r1;\n\
        mov.u64 %rd1, fixed; cvta.shared.u64 %rd2, %rd1; st.u32 [%rd2+8], 9; ld.shared.u32 %r3, [fixed+8]; st.u32 [%rd15+8], %r3;\n\
        isspacep.shared %p, %rd2; selp.u32 %r4, 1, 0, %p; st.global.u32 [%rd15+12], %r4;\n\
        mov.u64 %rd3, spill; cvta.local.u64 %rd4, %rd3; mov.u64 %rd5, 0x1122334455667788; st.local.u64 [spill+8], %rd5; ld.u8 %r5, [%rd4+9]; st.global.u32 [%rd15+16], %r5;\n\
        ld.const.u32 %r6, [table+8]; st.global.u32 [%rd15+20], %r6;\n\
        mov.u64 %rd6, table; cvta.const.u64 %rd7, %rd6; ld.u32 %r7, [%rd7+4]; st.global.u32 [%rd15+24], %r7;\n\
        ld.param.v2.u32 {%r8, %r9}, [pair]; st.global.u32 [%rd15+28], %r9;\n\
        ret;\n}\n";
    let mut bench = Bench::new(1, 1);
    let out = bench.empty("out", 8);
    bench.args.push(tilewright_emulator::Arg(vec![1, 0, 0, 0, 2, 0, 0, 0]));
    bench.dynamic_shared = 64;
    bench.clean(text);
    // The dynamic memory is behind `fixed` and some room.
    assert_eq!(bench.words(out, 8), [7, 160, 9, 1, 0x77, 30, 20, 2]);
}

#[test]
fn loads_extend() {
    let mut bench = Bench::new(1, 1);
    let x = bench.buffer("x", &[0x8081_ff7f, 0, 0, 0]);
    bench.clean(&module(".param .u64 x", "ld.param.u64 %rd1, [x];\nld.global.s8 %r1, [%rd1+1]; st.global.u32 [%rd1+4], %r1;\nld.global.u8 %r1, [%rd1+1]; st.global.u32 [%rd1+8], %r1;\nld.global.s16 %rd2, [%rd1+2]; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r2, %rd2; st.global.u32 [%rd1+12], %r2;\nret;"));
    assert_eq!(bench.words(x + 4, 3), [u32::MAX, 0xff, u32::MAX]);
}

#[test]
fn vectors_and_halves() {
    let mut bench = Bench::new(1, 64);
    let x = bench.buffer("x", &(0..256).collect::<Vec<_>>());
    let y = bench.empty("y", 256);
    let report = bench.clean(&module(".param .u64 x, .param .u64 y", "ld.param.u64 %rd0, [x];\nld.param.u64 %rd1, [y];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %rd2, %r0, 16;\nadd.u64 %rd0, %rd0, %rd2;\nadd.u64 %rd1, %rd1, %rd2;\nld.global.v4.u32 {%r1, %r2, %r3, _}, [%rd0];\nadd.u32 %r1, %r1, 1000;\nst.global.v2.u32 [%rd1], {%r1, %r2};\nst.global.v2.u32 [%rd1+8], {%r3, %r0};\nret;"));
    let words = bench.words(y, 256);
    assert!(
        (0..64).all(|t| words[t * 4..][..4] == [4 * t as u32 + 1000, 4 * t as u32 + 1, 4 * t as u32 + 2, t as u32])
    );
    assert_eq!(report.counters.global.bytes_loaded, 1024);
    assert_eq!(report.counters.global.transactions, 32 + 2 * 2 * 16);
    assert_eq!(bench.words(x, 2), [0, 1]);
}

#[test]
fn warp_operations() {
    let mut bench = Bench::new(1, 32);
    let out = bench.empty("out", 32 * 8);
    let body = "ld.param.u64 %rd1, [out];\nmov.u32 %r0, %laneid;\nmul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd1, %rd1, %rd2;
shfl.sync.up.b32 %r1|%p0, %r0, 3, 0, 0xffffffff; @!%p0 mov.u32 %r1, 99; st.global.u32 [%rd1], %r1;
shfl.sync.down.b32 %r2, %r0, 5, 0x181f, 0xffffffff; st.global.u32 [%rd1+128], %r2;
shfl.sync.idx.b32 %r3, %r0, 2, 0x181f, 0xffffffff; st.global.u32 [%rd1+256], %r3;
setp.lt.u32 %p1, %r0, 9; vote.sync.ballot.b32 %r4, %p1, 0xffffffff; st.global.u32 [%rd1+384], %r4;
and.b32 %r5, %r0, 3; match.any.sync.b32 %r6, %r5, 0xffffffff; st.global.u32 [%rd1+512], %r6;
redux.sync.max.u32 %r7, %r0, 0xffffffff; st.global.u32 [%rd1+640], %r7;
elect.sync %r8|%p2, 0xffffffff; selp.u32 %r9, 7, %r8, %p2; st.global.u32 [%rd1+768], %r9;
mov.u32 %r10, 0; @%p1 activemask.b32 %r10; st.global.u32 [%rd1+896], %r10;
ret;";
    bench.clean(&module(".param .u64 out", body));
    let words = bench.words(out, 256);
    for lane in 0..32u32 {
        let at = |row: usize| words[row * 32 + lane as usize];
        assert_eq!(at(0), if lane < 3 { 99 } else { lane - 3 });
        assert_eq!(at(1), if lane % 8 + 5 < 8 { lane + 5 } else { lane });
        assert_eq!(at(2), lane / 8 * 8 + 2);
        assert_eq!(at(3), 0x1ff);
        assert_eq!(at(4), 0x1111_1111 << (lane % 4));
        assert_eq!(at(5), 31);
        assert_eq!(at(6), if lane == 0 { 7 } else { 0 });
        assert_eq!(at(7), if lane < 9 { 0x1ff } else { 0 });
    }
}

#[test]
fn divergence_reconverges() {
    // A loop whose trip count depends on the lane, and a shuffle after it that needs all lanes.
    let mut bench = Bench::new(1, 64);
    let out = bench.empty("out", 64);
    let body = "ld.param.u64 %rd1, [out];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd1, %rd1, %rd2;\nmov.u32 %r1, 0;\nmov.u32 %r2, 0;
L: setp.ge.u32 %p0, %r2, %r0; @%p0 bra E; add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1; bra L;
E: shfl.sync.bfly.b32 %r3, %r1, 1, 31, 0xffffffff; st.global.u32 [%rd1], %r3;\nret;";
    let report = bench.clean(&module(".param .u64 out", body));
    let expected: Vec<u32> = (0..64u32)
        .map(|t| {
            let t = t ^ 1;
            t * t.saturating_sub(1) / 2
        })
        .collect();
    assert_eq!(bench.words(out, 64), expected);
    assert_eq!(report.counters.divergent_branches, 62);
}

#[test]
fn branch_tables() {
    let mut bench = Bench::new(1, 32);
    let out = bench.empty("out", 32);
    let body = "ld.param.u64 %rd1, [out];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd1, %rd1, %rd2;\nand.b32 %r1, %r0, 3;
ts: .branchtargets A, B, A, C;\nbrx.idx %r1, ts;
A: mov.u32 %r2, 10; bra E;\nB: mov.u32 %r2, 20; bra E;\nC: mov.u32 %r2, 30;\nE: st.global.u32 [%rd1], %r2;\nret;";
    bench.clean(&module(".param .u64 out", body));
    let expected: Vec<u32> = (0..32).map(|t| [10, 20, 10, 30][t % 4]).collect();
    assert_eq!(bench.words(out, 32), expected);
}

#[test]
fn block_reductions() {
    let mut bench = Bench::new(1, 96);
    let out = bench.empty("out", 3);
    let body = "ld.param.u64 %rd1, [out];\nmov.u32 %r0, %tid.x;\nsetp.lt.u32 %p0, %r0, 70;\nbar.red.popc.u32 %r1, 0, %p0;\nbar.red.and.pred %p1, 1, %p0;\nbar.red.or.pred %p2, 2, !%p0;\nselp.u32 %r2, 1, 0, %p1;\nselp.u32 %r3, 1, 0, %p2;\nsetp.ne.u32 %p3, %r0, 0;\n@%p3 bra E;\nst.global.u32 [%rd1], %r1;\nst.global.u32 [%rd1+4], %r2;\nst.global.u32 [%rd1+8], %r3;\nE: ret;";
    bench.clean(&module(".param .u64 out", body));
    assert_eq!(bench.words(out, 3), [70, 0, 1]);
}

#[test]
fn producers_arrive_and_consumers_wait() {
    // Warp 0 fills a buffer and arrives; warp 1 waits; then the other way round.
    let mut bench = Bench::new(1, 64);
    let out = bench.empty("out", 32);
    let body = ".shared .align 4 .b8 buf[128];\nld.param.u64 %rd1, [out];\nmov.u32 %r0, %tid.x;\nand.b32 %r1, %r0, 31;\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, buf;\nadd.u32 %r3, %r3, %r2;\ncvt.u64.u32 %rd2, %r2;\nadd.u64 %rd1, %rd1, %rd2;\nmov.u32 %r4, 0;\nmov.u32 %r6, 0;\nsetp.ge.u32 %p0, %r0, 32;\n@%p0 bra C;
P: mad.lo.u32 %r5, %r4, 100, %r1; st.shared.u32 [%r3], %r5; bar.arrive 1, 64; bar.sync 2, 64; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 5; @%p1 bra P; ret;
C: bar.sync 1, 64; ld.shared.u32 %r5, [%r3]; add.u32 %r6, %r6, %r5; bar.arrive 2, 64; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 5; @%p1 bra C;
st.global.u32 [%rd1], %r6; ret;";
    for seed in 0..6 {
        bench.options.seed = seed;
        bench.clean(&module(".param .u64 out", body));
        assert_eq!(bench.words(out, 32), (0..32).map(|i| 1000 + 5 * i).collect::<Vec<u32>>());
    }
}

#[test]
fn atomics() {
    let mut bench = Bench::new(2, 64);
    let x = bench.buffer("x", &[0, 5, 0, 0, 0xffff_ffff, 0x3f80_3f80, 100, 0]);
    let body = "ld.param.u64 %rd0, [x];\nmov.u32 %r0, %tid.x;\nmov.u32 %r9, %ctaid.x;\nred.global.add.u32 [%rd0], 1;\nred.global.max.s32 [%rd0+4], %r0;\nmov.f32 %f1, 0.5;\nred.global.add.f32 [%rd0+8], %f1;\natom.global.inc.u32 %r1, [%rd0+12], 9;\nred.global.and.b32 [%rd0+16], 0xfffffff0;\nmov.b32 %r2, 0x3f800000;\nred.global.add.noftz.bf16x2 [%rd0+20], %r2;\nred.global.min.u32 [%rd0+24], %r0;\nret;";
    bench.clean(&module(".param .u64 x", body));
    // 128 threads; bf16 counts 1 + 128 up to 129.
    assert_eq!(bench.words(x, 7), [128, 63, 64f32.to_bits(), 128 % 10, 0xffff_fff0, 0x4301_3f80, 0]);
}

#[test]
fn refusals_name_line_and_section() {
    let bench = Bench::new(1, 32);
    for (body, what, why) in [
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [%r0], 16;",
            "cp.reduce.async.bulk",
            "reductions",
        ),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd0], [%r0], 128;",
            "tensormap.cp_fenceproxy",
            "edited",
        ),
    ] {
        let error = bench.try_run(&module("", body)).unwrap_err().to_string();
        let line = 4 + body.lines().count();
        assert!(error.starts_with(&format!("line {line}: ")) && error.contains(what) && error.contains(why), "{error}");
        assert!(error.contains("PTX manual 9.7."), "{error}");
    }
}

#[test]
fn bad_launches() {
    let mut bench = Bench::new(1, 32);
    bench.buffer("x", &[0]);
    let text = module(".param .u64 x", "ret;");
    let message = |bench: &Bench, text: &str| bench.try_run(text).unwrap_err().to_string();
    bench.grid = 0;
    assert_eq!(message(&bench, &text), "the grid has 0 blocks in x; it must have 1 to 2147483647");
    bench.grid = 1;
    bench.block = 1025;
    assert_eq!(message(&bench, &text), "the block has 1025 threads in x; it must have 1 to 1024");
    bench.block = 32;
    let required = text.replace("{ .reg", "\n.reqntid 64 {\n.reg");
    assert!(message(&bench, &required).contains("requires [64, 1, 1]"), "{}", message(&bench, &required));
    bench.dynamic_shared = 1 << 20;
    assert!(message(&bench, &text).contains("1048576 bytes of shared memory"));
    bench.dynamic_shared = 0;
    bench.args.push(1u32.into());
    assert_eq!(message(&bench, &text), "the kernel has 1 parameters, and 2 arguments were given");
    bench.args.remove(0);
    assert_eq!(message(&bench, &text), "parameter `x` has 8 bytes, and its argument has 4");
    let entry = tilewright_emulator::Launch { entry: "other".into(), ..bench.launch() };
    let program = tilewright_emulator::Program::parse(&text).unwrap();
    let error = program.launch(&entry, &bench.memory, &bench.options).unwrap_err();
    assert_eq!(error.to_string(), "there is no kernel `other` in the program; it has `k`");
}

#[test]
fn special_registers() {
    let mut bench = Bench::new(1, 1);
    let out = bench.empty("out", 64 * 6);
    let body = "ld.param.u64 %rd1, [out];\nmov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %ntid.x; mov.u32 %r4, %ntid.y;
mad.lo.u32 %r5, %r2, %r4, %r1; mad.lo.u32 %r5, %r5, %r3, %r0; mul.wide.u32 %rd2, %r5, 4; add.u64 %rd1, %rd1, %rd2;
mad.lo.u32 %r6, %r1, 100, %r0; mad.lo.u32 %r6, %r2, 10000, %r6; st.global.u32 [%rd1], %r6;
mov.u32 %r7, %warpid; mov.u32 %r8, %lanemask_lt; popc.b32 %r8, %r8; mad.lo.u32 %r8, %r7, 32, %r8; st.global.u32 [%rd1+256], %r8;
mov.u32 %r9, %ctaid.y; st.global.u32 [%rd1+512], %r9; ret;";
    let mut launch = bench.launch();
    launch.block = [4, 8, 2];
    launch.grid = [1, 1, 1];
    let program = tilewright_emulator::Program::parse(&module(".param .u64 out", body)).unwrap();
    let report = program.launch(&launch, &bench.memory, &bench.options).unwrap();
    assert!(report.findings.is_empty(), "{report}");
    let words = bench.words(out, 192);
    for t in 0..64u32 {
        assert_eq!(words[t as usize], t % 4 + t / 4 % 8 * 100 + t / 32 * 10000);
        assert_eq!((words[64 + t as usize], words[128 + t as usize]), (t, 0));
    }
}

#[test]
fn bank_conflicts_and_sectors() {
    // Wavefronts of a load with a stride of so many words, and of vectors.
    let run = |stride: u32, vector: &str, bytes: u32| {
        let mut bench = Bench::new(1, 32);
        bench.buffer("x", &[0; 2048]);
        let zero = (0..64).map(|i| format!("st.shared.u32 [%r2+{}], 0;", i * 128)).collect::<String>();
        let load = format!("mul.lo.u32 %r3, %r1, {}; add.u32 %r3, %r3, %r5; ld.shared{vector} [%r3];", stride * bytes);
        let body = format!(
            ".shared .align 16 .b8 buf[8192];\nld.param.u64 %rd0, [x];\nmov.u32 %r1, %tid.x;\nmov.u32 %r5, buf;\nmad.lo.u32 %r2, %r1, 4, %r5;\n{zero}\nbar.warp.sync 0xffffffff;\n{load}\nmul.wide.u32 %rd1, %r1, {};\nadd.u64 %rd1, %rd0, %rd1;\nld.global.u32 %r9, [%rd1];\nret;",
            stride * 4
        );
        let report = bench.clean(&module(".param .u64 x", &body));
        (
            report.counters.shared.transactions - 64,
            report.counters.bank_conflicts(),
            report.counters.global.transactions,
        )
    };
    assert_eq!(run(1, ".u32 %r4,", 4), (1, 0, 4));
    assert_eq!(run(0, ".u32 %r4,", 4), (1, 0, 1));
    assert_eq!(run(2, ".u32 %r4,", 4), (2, 1, 8));
    assert_eq!(run(32, ".u32 %r4,", 4), (32, 31, 32));
    assert_eq!(run(33, ".u32 %r4,", 4), (1, 0, 32));
    assert_eq!(run(1, ".v4.u32 {%r4, %r6, %r7, %r8},", 16), (4, 0, 4));
    assert_eq!(run(1, ".v2.u32 {%r4, %r6},", 8), (2, 0, 4));
}

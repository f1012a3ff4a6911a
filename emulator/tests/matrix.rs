//! Matrix instructions as programs: fragments, loads, misuse. The models are tested where they are.

use crate::common::{Bench, module, only};
use tilewright_emulator::{Kind, MatrixModel, Options, Report};

const XY: &str = ".param .u64 x, .param .u64 y";

/// `%r0` lane, `%rd2` and `%rd3` its 16 bytes of x and y; x is in shared memory at `tile`. 13 lines, the first of them
/// line 5.
const PROLOGUE: &str = "\
.shared .align 16 .b8 tile[512];
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd4, %r0, 16;
add.u64 %rd2, %rd0, %rd4;
add.u64 %rd3, %rd1, %rd4;
mov.u32 %r2, tile;
mad.lo.u32 %r1, %r0, 16, %r2;
ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd2];
st.shared.v4.u32 [%r1], {%r4, %r5, %r6, %r7};
bar.warp.sync 0xffffffff;
mov.u32 %r8, 0;
";
const BODY: u32 = 18;

fn kernel(body: &str) -> String {
    module(XY, &format!("{PROLOGUE}{body}\nret;"))
}

fn run(options: Options, x: &[u32], body: &str) -> (Report, Vec<u32>) {
    let mut bench = Bench::new(1, 32);
    bench.options = Options { threads: Some(1), budget: 1 << 20, ..options };
    bench.buffer("x", x);
    let y = bench.empty("y", 128);
    let report = bench.run(&kernel(body));
    (report, bench.words(y, 128))
}

fn clean(x: &[u32], body: &str) -> Vec<u32> {
    let (report, words) = run(Options::default(), x, body);
    assert!(report.findings.is_empty(), "{report}");
    words
}

/// Four 8 × 8 matrices of halves: element (r, c) of matrix q is 100q + 8r + c.
fn halves() -> Vec<u32> {
    let value = |i: u32| 100 * (i / 64) + i % 64;
    (0..128).map(|i| value(2 * i) | value(2 * i + 1) << 16).collect()
}

const STORE: &str = "st.global.v4.u32 [%rd3], {%r4, %r5, %r6, %r7};";

#[test]
fn ldmatrix_gives_rows_or_columns() {
    let words =
        clean(&halves(), &format!("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r4, %r5, %r6, %r7}}, [%r1];\n{STORE}"));
    let turned = clean(
        &halves(),
        &format!("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{%r4, %r5, %r6, %r7}}, [%r1];\n{STORE}"),
    );
    for lane in 0..32u32 {
        for q in 0..4u32 {
            let (row, col) = (lane / 4, lane % 4 * 2);
            let element = |r: u32, c: u32| 100 * q + 8 * r + c;
            let at = (lane * 4 + q) as usize;
            assert_eq!(words[at], element(row, col) | element(row, col + 1) << 16);
            assert_eq!(turned[at], element(col, row) | element(col + 1, row) << 16);
        }
    }
    // Two ways round are no way: stmatrix undoes ldmatrix, movmatrix undoes `.trans`.
    let there = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r4, %r5, %r6, %r7}, [%r1];\nbar.warp.sync 0xffffffff;\n\
        stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r1], {%r4, %r5, %r6, %r7};\nbar.warp.sync 0xffffffff;\n\
        ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1];\n";
    assert_eq!(clean(&halves(), &format!("{there}{STORE}")), halves());
    let moved = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r1];\nmovmatrix.sync.aligned.m8n8.trans.b16 %r4, %r4;\n";
    let moved = clean(&halves(), &format!("{moved}{STORE}"));
    assert!((0..32).all(|lane| moved[4 * lane] == turned[4 * lane] && moved[4 * lane + 1] == words[4 * lane + 1]));
}

#[test]
fn matrix_instructions_take_whole_warps_and_aligned_rows() {
    let load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r1+8];";
    only(&run(Options::default(), &halves(), load).0, Kind::Misaligned, BODY);
    let far = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r1+16];";
    only(&run(Options::default(), &halves(), far).0, Kind::OutOfBounds, BODY);
    // Lanes whose addresses are not used may point anywhere.
    let one =
        "setp.ge.u32 %p0, %r0, 8;\n@%p0 mov.u32 %r1, 77777;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r1];\n";
    clean(&halves(), one);
    let half = "setp.lt.u32 %p0, %r0, 16;\n@%p0 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r1];";
    only(&run(Options::default(), &halves(), half).0, Kind::CollectiveMisuse, BODY + 1);
    let gone = "setp.lt.u32 %p0, %r0, 16;\n@%p0 exit;\nmovmatrix.sync.aligned.m8n8.trans.b16 %r4, %r4;";
    only(&run(Options::default(), &halves(), gone).0, Kind::CollectiveMisuse, BODY + 2);
}

#[test]
fn what_ldmatrix_reads_must_be_ordered_after_its_writes() {
    let body = format!(
        "st.shared.u32 [%r1], %r8;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r4, %r5, %r6, %r7}}, [%r1];\n{STORE}"
    );
    only(&run(Options::default(), &halves(), &body).0, Kind::Race, BODY + 1);
    clean(&halves(), &body.replace("ldmatrix", "bar.warp.sync 0xffffffff;\nldmatrix"));
}

/// A = I (by rows of 16), so that D = B + C: which register holds what, for every type.
#[test]
fn products_with_the_identity() {
    // m16n8k16, f16: A's registers hold ones where row = column.
    let identity = "shr.u32 %r10, %r0, 2;\nand.b32 %r11, %r0, 3;\nshl.b32 %r11, %r11, 1;\n\
        setp.eq.u32 %p0, %r10, %r11;\nselp.u32 %r12, 0x00003c00, 0, %p0;\nadd.u32 %r13, %r11, 1;\nsetp.eq.u32 %p1, %r10, %r13;\n\
        selp.u32 %r12, 0x3c000000, %r12, %p1;\n";
    let body = format!(
        "{identity}cvt.rn.f16.u32 %h0, %r0;\nmov.b32 %r14, {{%h0, %h0}};\nmov.f32 %f0, 0f00000000;\n\
         mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f1, %f2, %f3, %f4}}, {{%r12, %r8, %r8, %r12}}, {{%r14, %r14}}, {{%f0, %f0, %f0, %f0}};\n\
         mov.b32 %r4, %f1;\nmov.b32 %r5, %f2;\nmov.b32 %r6, %f3;\nmov.b32 %r7, %f4;\n{STORE}"
    );
    let words = clean(&halves(), &body);
    for lane in 0..32u32 {
        for j in 0..4u32 {
            let (row, col) = (lane / 4 + 8 * (j / 2), lane % 4 * 2 + j % 2);
            // B (k, n) is held by lane 4n + (k mod 8) / 2, and says its number.
            let holder = 4 * col + row % 8 / 2;
            assert_eq!(f32::from_bits(words[(4 * lane + j) as usize]), holder as f32, "({row}, {col})");
        }
    }
}

#[test]
fn integers_of_four_bits_and_single_bits() {
    // Every element is -3 · 5, 64 of them; every pair of words differs in 16 bits, 4 words.
    let body = format!(
        "mov.u32 %r10, 0xdddddddd;\nmov.u32 %r11, 0x55555555;\nmov.u32 %r12, 1;\n\
         mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {{%r4, %r5, %r6, %r7}}, {{%r10, %r10, %r10, %r10}}, {{%r11, %r11}}, {{%r12, %r12, %r12, %r12}};\n\
         mov.u32 %r13, 0xffff0000;\n\
         mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc {{%r5, %r6, %r7, %r9}}, {{%r13, %r13}}, {{%r8}}, {{%r8, %r8, %r8, %r8}};\n\
         mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {{%r6, %r7}}, {{%r13}}, {{%r11}}, {{%r12, %r12}};\n{STORE}"
    );
    let words = clean(&halves(), &body);
    let want = [1 - 15 * 64, 64, 4 * 8 + 1, 4 * 8 + 1].map(|v: i32| v as u32);
    assert!(words.chunks(4).all(|lane| lane == want), "{words:?}");
    let clamped = format!(
        "mov.u32 %r10, 0x7f7f7f7f;\nmov.u32 %r12, 0x7fffffff;\n\
         mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {{%r4, %r5, %r6, %r7}}, {{%r10, %r10, %r10, %r10}}, {{%r10, %r10}}, {{%r12, %r12, %r12, %r12}};\n{STORE}"
    );
    assert!(clean(&halves(), &clamped).iter().all(|word| *word == 0x7fff_ffff));
}

#[test]
fn models_differ_where_hardware_does() {
    // 1 + 16 products of 2^-24 each: lost one by one, kept in a block of 16 whose sum is exact to 25 bits, cut to f32
    // at the end.
    let body = format!(
        "mov.u32 %r10, 0x0c000c00;\nmov.f32 %f0, 0f3f800000;\n\
         mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f1, %f2, %f3, %f4}}, {{%r10, %r10, %r10, %r10}}, {{%r10, %r10}}, {{%f0, %f0, %f0, %f0}};\n\
         mov.b32 %r4, %f1;\nmov.b32 %r5, %f2;\nmov.b32 %r6, %f3;\nmov.b32 %r7, %f4;\n{STORE}"
    );
    let value = |matrix| f32::from_bits(run(Options { matrix, ..Options::default() }, &halves(), &body).1[0]);
    assert_eq!(value(MatrixModel::Fast), 1.0);
    let unit = 2f32.powi(-23);
    assert_eq!((value(MatrixModel::Ampere), value(MatrixModel::Hopper)), (1.0 + 8.0 * unit, 1.0 + 8.0 * unit));
}

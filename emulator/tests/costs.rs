//! What is counted of units of arithmetic and of copies, and parts of a launch.

use tilewright_emulator::{Arithmetic, Factor, MatrixModel};

use crate::common::{Bench, module};

fn arithmetic(instructions: u64, operations: u64) -> Arithmetic {
    Arithmetic { instructions, operations }
}

/// By hand: 64 threads, of which a guard lets 10 add once more.
#[test]
fn operations_are_counted_by_unit() {
    let body = "mov.u32 %r0, %tid.x; cvt.rn.f32.u32 %f0, %r0;\n\
        add.f32 %f1, %f0, %f0; sub.f32 %f1, %f1, 0f3F800000; mul.f32 %f2, %f1, %f0; fma.rn.f32 %f3, %f2, %f1, %f0;\n\
        setp.lt.u32 %p0, %r0, 10;\n@%p0 add.f32 %f3, %f3, %f3;\n\
        max.f32 %f4, %f3, %f0; neg.f32 %f4, %f4; setp.lt.f32 %p1, %f4, %f0;\n\
        ex2.approx.f32 %f5, %f0; rcp.rn.f32 %f6, %f0; div.rn.f32 %f7, %f0, %f5; sqrt.approx.f32 %f7, %f7;\n\
        mov.b32 %r1, 0; fma.rn.f16x2 %r2, %r1, %r1, %r1; add.f16x2 %r2, %r2, %r1; mov.b16 %h0, 0; fma.rn.bf16 %h1, %h0, %h0, %h0;\n\
        mov.f64 %d0, 0d3FF0000000000000; fma.rn.f64 %d1, %d0, %d0, %d0; add.f64 %d1, %d1, %d0;\n\
        add.u32 %r3, %r0, %r0; mad.lo.u32 %r3, %r0, %r0, %r0;\nret;";
    let report = Bench::new(2, 32).clean(&module("", body));
    let work = report.counters.work;
    assert_eq!(work.f32, arithmetic(4 * 64 + 2 * 10, 5 * 64 + 2 * 10), "both blocks have ten such threads");
    assert_eq!(work.half, arithmetic(3 * 64, (4 + 2 + 2) * 64));
    assert_eq!(work.f64, arithmetic(2 * 64, 3 * 64));
    assert_eq!((work.special, work.tensor), (4 * 64, [0; 6]));
    assert_eq!(work.operations(), 5 * 64 + 20 + 8 * 64 + 3 * 64 + 4 * 64);
}

const PRODUCTS: &str = "mov.b32 %r0, 0x3C003C00; mov.f32 %f0, 0f40000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n\
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f4, %f5, %f6, %f7}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%f0, %f1, %f2, %f3};\n\
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f8, %f9, %f10, %f11}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%f0, %f1, %f2, %f3};\n\
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd0, %r1, 4; ld.param.u64 %rd1, [out]; add.u64 %rd1, %rd1, %rd0;\n\
    st.global.f32 [%rd1], %f4;\nret;";

#[test]
fn products_are_counted_by_factor_and_may_be_left_out() {
    let run = |model: MatrixModel| {
        let mut bench = Bench::new(1, 32);
        let out = bench.empty("out", 32);
        bench.options.matrix = model;
        let report = bench.clean(&module(".param .u64 out", PRODUCTS));
        (report.counters, f32::from_bits(bench.words(out, 1)[0]))
    };
    let (all, sum) = run(MatrixModel::Fast);
    assert_eq!(sum, 2.0 + 16.0);
    assert_eq!((all.work.of(Factor::Half), all.work.of(Factor::Tf32)), (2 * 16 * 8 * 16, 2 * 16 * 8 * 8));
    let (none, sum) = run(MatrixModel::Nothing);
    assert_eq!(sum, 2.0, "the sum that was there");
    assert_eq!(none, all);
}

/// Each block stores its number, and adds as often.
const NUMBERED: &str = "mov.u32 %r0, %ctaid.x; mov.u32 %r1, 0; mov.f32 %f0, 0f3F800000;\n\
    LOOP: setp.ge.u32 %p0, %r1, %r0; @%p0 bra END; add.f32 %f0, %f0, %f0; add.u32 %r1, %r1, 1; bra LOOP;\n\
    END: mul.wide.u32 %rd0, %r0, 4; ld.param.u64 %rd1, [out]; add.u64 %rd1, %rd1, %rd0; st.global.u32 [%rd1], %r0;\nret;";

#[test]
fn clusters_that_are_not_asked_for_do_not_run() {
    for (threads, cluster) in [(1, None), (2, None), (1, Some([2, 1, 1])), (2, Some([2, 1, 1]))] {
        let mut bench = Bench::new(8, 1);
        let out = bench.buffer("out", &[99; 8]);
        (bench.cluster, bench.options.threads) = (cluster, Some(threads));
        let each = cluster.map_or(1, |[x, ..]| u64::from(x));
        let mut sum = tilewright_emulator::Counters::default();
        for (part, numbers) in [(0..1, 0..1), (1..3, 1..3), (3..100, 3..8 / each)] {
            bench.options.clusters = Some(part.clone());
            let counters = bench.clean(&module(".param .u64 out", NUMBERED)).counters;
            let blocks = numbers.start * each..numbers.end * each;
            assert_eq!(counters.ctas, blocks.end - blocks.start);
            assert_eq!(counters.work.f32.operations, blocks.clone().sum::<u64>());
            let written = bench.words(out, 8);
            assert_eq!(
                written[blocks.start as usize..],
                [(blocks.start as u32..blocks.end as u32).collect(), vec![99; 8 - blocks.end as usize]].concat()
            );
            sum.add(&counters);
        }
        bench.options.clusters = None;
        assert_eq!(bench.clean(&module(".param .u64 out", NUMBERED)).counters, sum);
        // Nothing is there, and a range that ends before it starts.
        for none in [8..9, 5..5, std::ops::Range { start: 3, end: 1 }] {
            bench.options.clusters = Some(none);
            assert_eq!(
                bench.clean(&module(".param .u64 out", NUMBERED)).counters,
                tilewright_emulator::Counters::default()
            );
        }
    }
}

#[test]
fn counters_are_scaled_number_by_number() {
    let report = Bench::new(3, 32).clean(&module("", "mov.f32 %f0, 0f3F800000; add.f32 %f0, %f0, %f0;\nret;"));
    let three = report.counters;
    let seven = Bench::new(7, 32).clean(&module("", "mov.f32 %f0, 0f3F800000; add.f32 %f0, %f0, %f0;\nret;")).counters;
    assert_eq!(three.scaled(7, 3), seven);
    assert_eq!(three.scaled(1, 2).ctas, 2, "1.5 is rounded up");
    assert_eq!(three.scaled(u64::MAX, 1).ctas, u64::MAX);
    assert_eq!(three.scaled(0, 0), tilewright_emulator::Counters::default());
}

/// 16 bytes a lane, of which every second lane asks for 4 only; and what is never waited for was never asked for.
#[test]
fn bytes_of_fetches_are_counted() {
    let body = "mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 16; ld.param.u64 %rd1, [x]; add.u64 %rd1, %rd1, %rd0;\n\
        and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0; selp.u32 %r2, 16, 4, %p0;\n\
        mov.u32 %r3, buffer; shl.b32 %r4, %r0, 4; add.u32 %r3, %r3, %r4;\n\
        cp.async.cg.shared.global [%r3], [%rd1], 16, %r2;\ncp.async.wait_all;\nret;";
    for seed in 0..4 {
        let mut bench = Bench::new(1, 32);
        bench.buffer("x", &[7; 128]);
        bench.options.seed = seed;
        let text = module(".param .u64 x", body).replace(".visible", ".shared .align 16 .b8 buffer[512];\n.visible");
        let counters = bench.clean(&text).counters;
        assert_eq!((counters.fetched_bytes, counters.global.bytes_loaded), (16 * 16 + 16 * 4, 16 * 16 + 16 * 4));
    }
}

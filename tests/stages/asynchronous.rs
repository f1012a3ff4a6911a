//! Stages that read what a copy brings on its own time: staged copies by the accelerator, read by the stages that stand
//! in loops inside their place. Every kernel runs for awkward sizes and gives what `reference()` does, under several
//! seeds.

use crate::support::{each_barrier_is_missed, finished, runs};
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::Code;

/// Compiles, and runs as [`run`] does; the separate checker also misses each barrier that is left out.
fn check(source: &str, sizes: &[&[i64]]) -> String {
    let kernel = compile(source);
    each_barrier_is_missed(&kernel, sizes);
    run(source, &kernel, sizes)
}

fn compile(source: &str) -> Compiled {
    finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"))
}

/// Runs with each list of sizes under several seeds, and through the separate checker; the explanation.
fn run(source: &str, kernel: &Compiled, sizes: &[&[i64]]) -> String {
    runs(source, kernel, sizes, 4);
    kernel.info.as_ref().expect("no error").explanation.to_string()
}

/// Rows by the accelerator, several of them for each block; every stage reads them from shared memory.
fn softmax(ring: &str, stages: &str) -> String {
    format!(
        "kernel Softmax(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0, N <= 512 {{
            m[i] = max(|j| x[i, j]);
            e[i, j] = exp(x[i, j] - m[i]);
            s[i] = sum(|j| e[i, j]);
            y[i, j] = e[i, j] / s[i];
            launch threads(64);
            schedule y {{
                split i by 4 -> b, k; bind b: grid;
                split j by 64 -> r, t; bind t: thread; unroll r;
            }}
            stage xs[i, j] = x in shared at y.k {ring} via tma {{ box j by 256 -> jc, jb; }}
            schedule e in registers at y.k {{ split j by 64 -> r, t; bind t: thread; }}
            schedule m in registers at y.k {{ split j by 64 -> r, t; bind t: thread; unroll r; reduce t; }}
            schedule s in registers at y.k {{ split j by 64 -> r, t; bind t: thread; unroll r; reduce t; }}
            {stages}
        }}"
    )
}

#[test]
fn rows_are_read_by_every_stage() {
    for ring in ["", "ring(2)", "ring(3)", "ring(5)"] {
        let source = softmax(ring, "");
        // Longer rings are refilled after rows that exist, only, which the pass does not know.
        let kernel = compile(&source);
        let sizes: &[&[i64]] = &[&[1, 4], &[4, 36], &[7, 256], &[9, 260], &[3, 512]];
        if matches!(ring, "" | "ring(2)") {
            each_barrier_is_missed(&kernel, sizes);
        }
        let explanation = run(&source, &kernel, sizes);
        assert!(explanation.contains("copy xs of x"), "{explanation}");
    }
    // By registers that hold what shared memory does.
    let by_registers = "stage xr[i, j] = x in registers at y.k { split j by 64 -> r, t; bind t: thread; }";
    check(&softmax("ring(2)", by_registers), &[&[1, 4], &[7, 260]]);
}

#[test]
fn a_stencil_reads_a_halo_of_a_tile() {
    let source = "kernel Blur(x: f32[H, W]) -> (y: f32[H - 2, W - 2]) where H >= 3, W >= 3, W % 4 == 0 {
        bx[i, j] = (x[i, j] + x[i, j + 1] + x[i, j + 2]) / 3.0;
        y[i, j] = (bx[i, j] + bx[i + 1, j] + bx[i + 2, j]) / 3.0;
        launch threads(64);
        schedule y {
            split i by 6 -> io, ii; split j by 32 -> jo, ji;
            reorder io, jo, ii, ji;
            bind io: grid;
            merge ii, ji -> p; split p by 64 -> pr, t; bind t: thread;
        }
        stage xs[i, j] = x in shared at y.jo RING via tma { box j by 36 -> jc, jb; }
        schedule bx in shared at y.jo { merge i, j -> p; split p by 64 -> pr, t; bind t: thread; }
    }";
    for ring in ["", "ring(2)", "ring(4)"] {
        let explanation =
            check(&source.replace("RING", ring), &[&[3, 4], &[7, 32], &[8, 36], &[9, 68], &[33, 132], &[5, 200]]);
        assert!(explanation.contains("boxes 8 of i × 36 of j"), "{explanation}");
    }
}

/// The readers stand in loops inside the place of the copy: one stage in another, and one that each thread has of its
/// own.
#[test]
fn readers_stand_further_inside() {
    let source = "kernel Chain(x: f32[H, 64]) -> (y: f32[H - 4, 64]) where H >= 5 {
        a[i, j] = x[i, j] * 2.0 + x[i + 2, j];
        b[i, j] = a[i, j] + a[i + 2, 63 - j];
        y[i, j] = b[i, j] * x[i + 1, j];
        launch threads(64);
        schedule y {
            split i by 12 -> io, ii; split ii by 4 -> is, iq;
            bind io: grid; bind j: thread;
        }
        stage xs[i, j] = x in shared at y.io via tma { }
        schedule b in shared at y.is { bind j: thread; }
        schedule a in shared at AT { bind j: thread; }
    }";
    for at in ["y.is", "b.i", "y.io"] {
        let source = source.replace("AT", at);
        // Whether there is anything to do at `b.i` is a condition, after which the pass does not look.
        let explanation = run(&source, &compile(&source), &[&[5], &[7], &[16], &[17], &[31], &[33]]);
        assert!(explanation.contains("boxes 16 of i"), "{explanation}");
    }
    let source = "kernel Own(x: f32[M, 64], w: f32[64]) -> (y: f32[M, 64]) {
        p[i, j] = x[i, j] * x[i, 63 - j];
        y[i, j] = p[i, j] + p[i, j] * w[j];
        launch threads(64);
        schedule y { split i by 8 -> io, ii; split ii by 2 -> is, iq; bind io: grid; reorder io, is, j, iq; bind j: thread; }
        stage xs[i, j] = x in shared at y.is ring(2) via tma { }
        schedule p in registers per thread at y.iq { }
    }";
    check(source, &[&[1], &[7], &[8], &[31], &[33]]);
}

/// A copy in a loop of a stage that stands in a loop itself: it is refilled wherever the loops come again.
#[test]
fn copies_stand_in_loops_of_inner_stages() {
    let source = "kernel Inner(x: f32[M, K]) -> (y: f32[M, 32]) where K % 4 == 0, K <= 64 {
        s[i] = sum(|k| x[i, k]);
        y[i, j] = s[i] * s[i] + (j as f32);
        launch threads(32);
        schedule y { split i by 8 -> io, ii; split ii by 4 -> ir, is; bind io: grid; bind j: thread; }
        schedule s in shared at y.ir { bind i: thread; split k by 4 -> ko, ki; }
        stage xs[i, k] = x in shared at s.ko RING via tma { }
    }";
    for ring in ["", "ring(2)", "ring(3)", "ring(16)"] {
        let source = source.replace("RING", ring);
        // The pass does not know that there is a term.
        run(&source, &compile(&source), &[&[1, 4], &[7, 8], &[8, 12], &[9, 16], &[31, 64]]);
    }
}

/// Depths of rings: none, less than, as many as and more than the loops have iterations.
const RINGS: [&str; 5] = ["", "ring(2)", "ring(3)", "ring(4)", "ring(7)"];

/// Rows of a matrix, some at a time, by vectors of 16 bytes.
const COLUMNS: &str = "kernel Columns(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
    y[m] = sum(|k| x[k, m]);
    launch threads(64);
    schedule y {
        split m by 64 -> mo, mi; split k by 4 -> ko, ki;
        reorder mo, ko, mi, ki; bind mo: grid; bind mi: thread;
    }
    stage xs[k, m] = x in shared at y.ko RING via cp_async {
        split m by 4 -> mq, v; merge k, mq -> p; bind p: thread; vectorize v;
    }
}";

#[test]
fn threads_fetch_ahead_of_a_loop() {
    // Iterations: 0, 1, 1, 2, 3, 4, 9.
    let sizes: &[&[i64]] = &[&[0, 4], &[1, 4], &[4, 64], &[7, 68], &[12, 32], &[16, 128], &[33, 100]];
    for ring in RINGS {
        let source = COLUMNS.replace("RING", ring);
        let kernel = compile(&source);
        let ptx = &kernel.info.as_ref().expect("no error").ptx.text;
        assert!(ptx.contains("cp.async.cg.shared.global") && !ptx.contains("bulk"), "{ptx}");
        let entry = kernel.entries[0].kernel.to_string();
        let barriers = entry.lines().filter(|line| line.trim() == "sync").count();
        assert_eq!(barriers, if ring.is_empty() { 2 } else { 1 }, "{entry}");
        each_barrier_is_missed(&kernel, sizes);
        run(&source, &kernel, sizes);
    }
}

/// A ring in a loop that is entered again, and rings of other lengths beside it, and before it.
#[test]
fn rings_go_on_where_they_stopped() {
    let source =
        "kernel Product(a: f32[M, K], b: f32[K, N], w: f32[K]) -> (c: f32[M, N]) where N % 4 == 0, K % 4 == 0 {
        c[i, j] = sum(|k| a[i, k] * b[k, j] * w[k]);
        launch threads(32);
        schedule c {
            split i by 8 -> io, ii; split ii by 2 -> is, iq; split j by 16 -> jo, ji; split k by 8 -> ko, ki;
            reorder io, jo, is, ko, iq, ji, ki; bind io, jo: grid; bind iq, ji: thread;
        }
        stage as1[i, k] = a in shared at c.ko ring(3) via cp_async { merge i, k -> p; bind p: thread; }
        stage bs[k, j] = b in shared at c.ko ring(2) via cp_async {
            split j by 4 -> jq, v; merge k, jq -> p; bind p: thread; vectorize v;
        }
        stage ws[k] = w in shared at c.AT via cp_async { split k by 4 -> kq, v; bind kq: thread; vectorize v; }
    }";
    for at in ["ko", "is"] {
        let source = source.replace("AT", at);
        let source = if at == "is" { source.replace("K % 4 == 0", "K % 4 == 0, K <= 64") } else { source };
        let sizes: &[&[i64]] = &[&[1, 4, 4], &[7, 8, 16], &[8, 20, 20], &[9, 64, 36], &[2, 0, 4]];
        run(&source, &compile(&source), sizes);
    }
}

/// Elements of every width, by as many as 4, 8 and 16 bytes are.
#[test]
fn elements_of_every_width_are_fetched() {
    let kernel = |ty: &str, lanes: u32| {
        let (split, merged, vectorize) = match lanes {
            1 => (String::new(), "j", ""),
            _ => (format!("split j by {lanes} -> jq, v;"), "jq", "vectorize v;"),
        };
        format!(
            "kernel Wide(x: {ty}[M, N]) -> (y: {ty}[M, N]) where N % 16 == 0 {{
                y[i, j] = x[i, j];
                launch threads(64);
                schedule y {{
                    split i by 4 -> io, is; split j by 64 -> jo, ji;
                    reorder io, jo, is, ji; bind io, jo: grid; bind ji: thread;
                }}
                stage xs[i, j] = x in shared at y.is ring(3) via cp_async {{ {split} bind {merged}: thread; {vectorize} }}
            }}"
        )
    };
    let cases = [
        ("f32", 1, "ca", 4),
        ("f32", 2, "ca", 8),
        ("f32", 4, "cg", 16),
        ("f32", 8, "cg", 16),
        ("f64", 1, "ca", 8),
        ("f64", 2, "cg", 16),
        ("f64", 8, "cg", 16),
        ("bf16", 2, "ca", 4),
        ("bf16", 4, "ca", 8),
        ("f16", 8, "cg", 16),
        ("i8", 4, "ca", 4),
        ("u8", 16, "cg", 16),
        ("i64", 1, "ca", 8),
        ("e4m3", 8, "ca", 8),
    ];
    for (ty, lanes, cache, bytes) in cases {
        let source = kernel(ty, lanes);
        let compiled = compile(&source);
        let ptx = compiled.info.as_ref().expect("no error").ptx.text.to_string();
        let found: Vec<&str> =
            ptx.lines().filter(|line| line.contains("cp.async.ca.") || line.contains("cp.async.cg.")).collect();
        let is_right = |line: &&str| line.contains(&format!(".{cache}.")) && line.contains(&format!(", {bytes}"));
        assert!(!found.is_empty() && found.iter().all(is_right), "{ty} by {lanes}: {found:#?}");
        run(&source, &compiled, &[&[1, 16], &[5, 64], &[7, 80]]);
    }
    for (ty, lanes) in [("f16", 1), ("i8", 2), ("u8", 1), ("bf16", 1), ("i16", 1)] {
        let (codes, report) = finished(&kernel(ty, lanes)).expect_err(ty);
        assert!(codes.contains(&Code::TW0318), "{report}");
    }
}

/// A halo, of which a part lies outside the tensor: what is not there is not read.
const CONVOLUTION: &str = "kernel Convolution(x: f32[H, W], w: f32[3, 3]) -> (y: f32[H, W]) {
    y[i, j] = sum(|r in 0..3, s in 0..3| (x[i + r - 1, j + s - 1] or 0.0) * w[r, s]);
    launch threads(64);
    schedule y {
        split i by 4 -> io, ii; split j by 16 -> jo, ji; split jo by 4 -> jg, js;
        reorder io, jg, js, ii, ji; bind io, jg: grid; bind ii, ji: thread;
    }
    stage xs[i, j] = x in shared at y.js RING VIA { merge i, j -> p; split p by 64 -> pr, t; bind t: thread; }
}";

#[test]
fn halos_are_fetched() {
    let sizes: &[&[i64]] = &[&[1, 1], &[3, 7], &[4, 16], &[5, 31], &[7, 33], &[9, 64], &[8, 70], &[2, 130]];
    for ring in RINGS {
        for via in ["via cp_async", ""] {
            let source = CONVOLUTION.replace("RING", ring).replace("VIA", via);
            let kernel = compile(&source);
            each_barrier_is_missed(&kernel, sizes);
            run(&source, &kernel, sizes);
        }
    }
}

/// Stages that threads compute take buffers in turn: one barrier an iteration orders writes and reads, and the readers
/// of the slot before.
#[test]
fn computed_stages_have_rings() {
    let source = "kernel Blur(x: f32[H, W]) -> (y: f32[H - 2, W - 2]) where H >= 3, W >= 3 {
        bx[i, j] = (x[i, j] + x[i, j + 1] + x[i, j + 2]) / 3.0;
        y[i, j] = (bx[i, j] + bx[i + 1, j] + bx[i + 2, j]) / 3.0;
        launch threads(64);
        schedule y {
            split i by 4 -> io, ii; split j by 16 -> jo, ji;
            reorder io, jo, ii, ji; bind io: grid; bind ii, ji: thread;
        }
        COPY
        schedule bx in shared at y.jo RING { merge i, j -> p; split p by 64 -> pr, t; bind t: thread; }
    }";
    let sizes: &[&[i64]] = &[&[3, 3], &[7, 9], &[6, 18], &[5, 34], &[4, 50], &[9, 130]];
    let fetched = "stage xs[i, j] = x in shared at y.jo ring(3) via cp_async { merge i, j -> p; split p by 64 -> pr, t; bind t: thread; }";
    for copy in ["", fetched] {
        for ring in RINGS {
            let source = source.replace("RING", ring).replace("COPY", copy);
            let kernel = compile(&source);
            let entry = kernel.entries[0].kernel.to_string();
            let barriers = entry.lines().filter(|line| line.trim() == "sync").count();
            let needed = if ring.is_empty() && copy.is_empty() { 2 } else { 1 + usize::from(!copy.is_empty()) };
            assert_eq!(barriers, needed, "{ring} {copy}\n{entry}");
            each_barrier_is_missed(&kernel, sizes);
            run(&source, &kernel, sizes);
        }
    }
}

/// Ranges that other axes decide, of axes that no op names: a buffer has one size, that of the longest range of its
/// instances.
#[test]
fn ranges_that_other_axes_decide_are_copied_whole() {
    let rows = |sum: &str, stage: &str| {
        format!(
            "kernel K(x: f32[M, N], w: f32[L]) -> (y: f32[M]) where M <= 64, N == 64, L == 128 {{
                y[i] = {sum};
                launch threads(32);
                schedule y {{ split i by 32 -> b, t; bind b: grid; bind t: thread; }}
                {stage}
            }}"
        )
    };
    let of_x = "stage xs[i, j] = x in shared at y.b via tma { }";
    let of_w = "stage ws[j] = w in shared at y.b via tma { }";
    for (sum, stage) in [
        ("sum(|j in 0..=i| x[i, j])", of_x),
        ("sum(|j in i..N| x[i, j])", of_x),
        ("max(|j in i..=i + 4| w[j])", of_w),
        ("sum(|j in 0..5, k in 0..=j| w[i + k] * 0.5)", of_w),
        ("sum(|j in i / 4 * 4..i / 4 * 4 + 8| w[j])", of_w),
    ] {
        check(&rows(sum, stage), &[&[1, 64, 128], &[7, 64, 128], &[33, 64, 128], &[64, 64, 128]]);
    }
    let source =
        rows("sum(|j in 0..=i| w[j])", of_w).replace(", L == 128", "").replace("M <= 64, N == 64", "M <= L, N == 64");
    let (codes, report) = finished(&source).unwrap_err();
    assert!(codes.contains(&Code::TW0501), "{report}");
    assert!(report.contains("`j` has 32 * ceil(M / 32) iterations"), "{report}");
}

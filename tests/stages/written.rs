//! Stages inside the loops of others: regions, places, owners, reductions across threads. Every kernel runs for awkward
//! sizes and gives what `reference()` does.

use crate::support::{finished, tried, turned};
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::diag::Code;

/// Compiles and tries it; the explanation.
fn check(source: &str, sizes: &[&[i64]]) -> String {
    tried(source, sizes, 1).info.expect("no error").explanation.to_string()
}

fn fused(factor: u32, more: &str) -> String {
    format!(
        "kernel Fused(a: f32[4, 4]) -> (c: f32[4, 4]) {{
            b[i, j] = a[i, j] + 2.0;
            c[i, j] = b[i, j] * 3.0;
            launch threads(1);
            schedule c {{ merge i, j -> f; split f by {factor} -> fo, fi; }}
            schedule b in shared at c.fo {{ {more} }}
        }}"
    )
}

#[test]
fn a_fused_axis_is_split() {
    for factor in 1..=17 {
        check(&fused(factor, ""), &[&[]]);
    }
}

const BLUR: &str = "kernel Blur(x: f32[H, W]) -> (y: f32[H - 2, W - 2]) where H >= 3, W >= 3 {
    bx[i, j] = (x[i, j] + x[i, j + 1] + x[i, j + 2]) / 3.0;
    y[i, j] = (bx[i, j] + bx[i + 1, j] + bx[i + 2, j]) / 3.0;
    launch threads(256);
    schedule y {
        split i by 30 -> io, ii; split j by 64 -> jo, ji;
        reorder io, jo, ii, ji;
        bind io, jo: grid;
        merge ii, ji -> p; split p by 256 -> pr, t; bind t: thread;
    }
    schedule bx in shared at y.jo { merge i, j -> p; split p by 256 -> pr, t; bind t: thread; }
}";

#[test]
fn a_stencil_has_its_halo() {
    let explanation = check(BLUR, &[&[3, 3], &[7, 9], &[33, 67], &[65, 130]]);
    assert!(explanation.contains("region 32 x 64, 8192 bytes"), "{explanation}");
}

const SOFTMAX: &str = "kernel Softmax(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0, N <= 16384 {
    m[i] = max(|j| x[i, j]);
    e[i, j] = exp(x[i, j] - m[i]);
    s[i] = sum(|j| e[i, j]);
    y[i, j] = e[i, j] / s[i];
    launch threads(512);
    schedule y {
        bind i: grid;
        split j by 4 -> jo, v; split jo by 512 -> r, t;
        bind t: thread; vectorize v; unroll r;
    }
    stage xr[i, j] = x in registers at y.i { like y; }
    schedule e in registers at y.i { like y; }
    schedule m in registers at y.i { like y; reduce t; }
    schedule s in registers at y.i { like y; reduce t; }
}";

#[test]
fn softmax_reads_each_element_once() {
    check(SOFTMAX, &[&[1, 4], &[3, 36], &[2, 2048], &[1, 2052], &[2, 16384]]);
}

#[test]
fn sums_of_rows_and_columns() {
    let rows = "kernel Rows(x: f32[M, N]) -> (y: f32[M]) where M >= 1 {
        y[i] = sum(|j| x[i, j]);
        launch threads(256);
        schedule y {
            split i by 4 -> io, ii; split j by 64 -> jo, t;
            reorder io, ii, t, jo;
            bind io: grid; bind ii, t: thread; reduce t;
        }
    }";
    check(rows, &[&[1, 1], &[7, 31], &[5, 33], &[9, 1000]]);
    let columns = "kernel Columns(x: f32[M, N]) -> (y: f32[N]) {
        y[j] = sum(|i| x[i, j]);
        launch threads(256);
        schedule y {
            split j by 32 -> jo, t; split i by 8 -> io, w;
            reorder jo, w, t, io;
            bind jo: grid; bind w, t: thread; reduce w;
        }
    }";
    check(columns, &[&[1, 1], &[7, 31], &[100, 33], &[9, 100]]);
}

#[test]
fn argmax_across_threads() {
    let source = "kernel Best(x: f32[M, N]) -> (y: u32[M]) where N >= 1 {
        y[i] = argmax(|j| x[i, j]);
        launch threads(96);
        schedule y { split j by 96 -> jo, t; reorder i, t, jo; bind i: grid; bind t: thread; reduce t; }
    }";
    check(source, &[&[1, 1], &[3, 31], &[5, 200]]);
}

/// The flat run is what remains of a fused axis that is split by a factor that does not divide the rows.
#[test]
fn fused_regions_waste_nothing() {
    for (factor, region) in
        [(1, "1 x 1"), (2, "1 x 2"), (3, "3"), (4, "1 x 4"), (5, "5"), (8, "2 x 4"), (10, "10"), (16, "4 x 4")]
    {
        let explanation = check(&fused(factor, ""), &[&[]]);
        assert!(explanation.contains(&format!("region {region}, ")), "{factor}: {explanation}");
        let explanation = check(&fused(factor, "merge i, j -> p; split p by 2 -> a, b;"), &[&[]]);
        assert!(explanation.contains("axis a: "), "{explanation}");
    }
}

/// Softmax and the logarithm of its sum.
const LOG_SUM: &str = "m[i] = max(|j| x[i, j]);
    s[i] = sum(|j| exp(x[i, j] - m[i]));
    lse[i] = m[i] + log(s[i]);
    y[i, j] = exp(x[i, j] - m[i]) / s[i];";

/// Outputs that share what stands in one loop: statistics of rows beside the rows.
#[test]
fn outputs_stand_beside_each_other() {
    let sizes: &[&[i64]] = &[&[1, 4], &[7, 36], &[33, 128], &[9, 1000]];
    let log_sum = |place: &str| {
        format!(
            "kernel Softmax(x: f32[M, N]) -> (lse: f32[M], y: f32[M, N]) where N % 4 == 0 {{
                {LOG_SUM}
                launch threads(128);
                schedule lse at y.k {{ like y; }}
                schedule y {{
                    split i by 8 -> b, r; split r by 4 -> k, w; reorder b, k, w, j;
                    bind b: grid; bind w: warp; split j by 32 -> q, t; bind t: thread;
                }}
                schedule m in {place} at y.k {{ like y; reduce t; }}
                schedule s in {place} at y.k {{ like y; reduce t; }}
            }}"
        )
    };
    check(&log_sum("registers"), sizes);
    check(&log_sum("shared"), sizes);
    // One element for each block, which its first thread writes.
    check(
        "kernel Scale(x: f32[M, N]) -> (top: f32[M], y: f32[M, N]) {
            m[i] = max(|j| abs(x[i, j]));
            top[i] = m[i];
            y[i, j] = x[i, j] / m[i];
            launch threads(128);
            schedule top at y.i { like y; }
            schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
            schedule m in registers at y.i { like y; reduce t; }
        }",
        sizes,
    );
    // Both reduce what a copy holds; one of them has a stage of its own inside.
    check(
        "kernel Moments(x: f32[M, N]) -> (y: f32[M, N], z: f32[M]) where M % 8 == 0, N <= 1024 {
            m[i] = sum(|j| x[i, j]);
            d[i, j] = x[i, j] - m[i];
            z[i] = sum(|j| d[i, j] * d[i, j]);
            y[i, j] = x[i, j] / (1.0 + abs(m[i]));
            launch threads(128);
            schedule y { split i by 8 -> b, k; bind b: grid; split j by 128 -> q, t; bind t: thread; }
            schedule z at y.k { split i by 8 -> b, k; bind b: grid; split j by 128 -> q, t; bind t: thread; reduce t; }
            stage xs[i, j] = x in shared at y.k { split j by 128 -> q, t; bind t: thread; }
            schedule m in registers at y.k { like y; reduce t; }
            schedule d in shared at z.k { split j by 128 -> q, t; bind t: thread; }
        }",
        &[&[8, 0], &[8, 4], &[16, 36], &[24, 128], &[8, 1000]],
    );
    // An image and its gradient from one tile of smoothed rows.
    check(
        "kernel Edges(x: f32[H, W]) -> (g: f32[H - 2, W - 2], y: f32[H - 2, W - 2]) where H >= 3, W >= 3 {
            bx[i, j] = (x[i, j] + x[i, j + 1] + x[i, j + 2]) / 3.0;
            g[i, j] = bx[i + 2, j] - bx[i, j];
            y[i, j] = (bx[i, j] + bx[i + 1, j] + bx[i + 2, j]) / 3.0;
            launch threads(64);
            schedule g at y.jo {
                split i by 6 -> io, ii; split j by 32 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid;
                merge ji, ii -> p; split p by 64 -> pr, t; bind t: thread;
            }
            schedule y {
                split i by 6 -> io, ii; split j by 32 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid;
                merge ii, ji -> p; split p by 64 -> pr, t; bind t: thread;
            }
            schedule bx in shared at y.jo { merge i, j -> p; split p by 64 -> pr, t; bind t: thread; }
        }",
        &[&[3, 3], &[7, 9], &[33, 67]],
    );
}

/// Rows of warps, with everything in shared memory: lanes wait for lanes of their warp only, and for nobody where each
/// reads what it wrote.
#[test]
fn warps_wait_for_themselves() {
    let rows = "split i into 4 -> w, k; bind w: warp; split j by 32 -> q, t; bind t: thread;";
    let source = format!(
        "kernel Softmax(x: f32[M, N]) -> (lse: f32[M], y: f32[M, N]) where N <= 1024 {{
            {LOG_SUM}
            launch threads(128);
            schedule lse at y.k {{ like y; }}
            schedule y {{
                split i by 8 -> b, r; split r by 4 -> k, w; reorder b, k, w, j;
                bind b: grid; bind w: warp; split j by 32 -> q, t; bind t: thread;
            }}
            stage xs[i, j] = x in shared at y.k {{ {rows} }}
            schedule m in shared at y.k {{ {rows} reduce t; }}
            schedule s in shared at y.k {{ {rows} reduce t; }}
        }}"
    );
    check(&source, &[&[1, 4], &[7, 36], &[33, 128], &[9, 1000]]);
    let kernel = finished(&source).unwrap_or_else(|(_, report)| panic!("{report}"));
    let text = kernel.entries[0].kernel.to_string();
    let count = |what: &str| text.lines().filter(|line| line.trim() == what).count();
    // Before the maxima, after them, after the sums: none for the copy.
    assert_eq!((count("sync warp"), count("sync")), (3, 0), "{text}");
}

/// Buffers that are needed one after the other lie in the same memory.
#[test]
fn buffers_share_memory() {
    let source = "kernel Chain(x: f32[M, 256]) -> (y: f32[M, 256]) {
        a[i, j] = x[i, j] + x[i, 255 - j];
        b[i, j] = a[i, j] * a[i, 255 - j];
        c[i, j] = b[i, j] - b[i, 255 - j];
        y[i, j] = c[i, j] + c[i, 255 - j];
        launch threads(256);
        schedule y { bind i: grid; bind j: thread; }
        schedule c in shared at y.i { bind j: thread; }
        schedule b in shared at y.i { bind j: thread; }
        schedule a in shared at y.i { bind j: thread; }
    }";
    check(source, &[&[1], &[7]]);
    let kernel = finished(source).unwrap_or_else(|(_, report)| panic!("{report}"));
    // The third one takes the memory of the first: everybody is after the barrier that shows the second.
    assert_eq!(kernel.entries[0].kernel.shared_map().bytes, 2 * 256 * 4, "{}", kernel.entries[0].kernel);
}

/// What belongs to a thread is computed where the output that has the loops gives it work: not for outputs beside it.
#[test]
fn what_belongs_to_a_thread_is_not_beside() {
    let source = |owner: &str| {
        format!(
            "kernel Both(x: f32[M, N]) -> (y: f32[M, N], z: f32[M]) where N >= 1, N <= 256 {{
                h[i] = x[i, 0] * 2.0;
                y[i, j] = x[i, j] + h[i];
                z[i] = h[i];
                schedule y {{ bind i: grid; split j by 96 -> q, t; bind t: thread; }}
                schedule z at y.i {{ bind i: grid; }}
                schedule h in registers {owner} at y.i {{ }}
            }}"
        )
    };
    check(&source("per cta"), &[&[1, 4], &[7, 100]]);
    let Err((codes, report)) = finished(&source("per thread")) else { panic!("accepted") };
    assert_eq!(codes, [Code::TW0704], "{report}");
}

/// Nor for a stage of the block in the same loop, whose threads may be others.
#[test]
fn what_belongs_to_a_thread_or_warp_is_not_for_the_block() {
    let source = |owner: &str, bound: &str| {
        format!(
            "kernel Both(x: f32[M, N]) -> (y: f32[M, N]) where N >= 1, N <= 256 {{
                h[i] = x[i, 0] * 2.0;
                s[i, j] = x[i, j] + h[i];
                y[i, j] = s[i, N - 1 - j] + h[i];
                launch threads(128);
                schedule y {{ {bound} }}
                schedule s in shared at y.b {{ split j by 128 -> q, t; bind t: thread; }}
                schedule h in registers {owner} at y.b {{ }}
            }}"
        )
    };
    let threads = "split i by 1 -> b, r; bind b: grid; split j by 96 -> q, t; bind t: thread;";
    let warps = "split i by 3 -> b, w; bind b: grid; bind w: warp; split j by 32 -> q, t; bind t: thread;";
    check(&source("per cta", threads), &[&[1, 4], &[7, 100]]);
    for (owner, bound) in [("per thread", threads), ("per warp", warps)] {
        let Err((codes, report)) = finished(&source(owner, bound)) else { panic!("accepted: {owner}") };
        assert_eq!(codes, [Code::TW0704], "{report}");
    }
}

/// An instance for each warp, in registers and in shared memory, beside warps without work.
#[test]
fn warps_have_instances() {
    let source = |place: &str, xs: &str| {
        format!(
            "kernel Softmax(x: f32[M, N]) -> (lse: f32[M], y: f32[M, N]) where N <= 1024 {{
                {LOG_SUM}
                launch threads(128);
                schedule lse at y.k {{ like y; }}
                schedule y {{
                    split i by 6 -> b, r; split r by 3 -> k, w; reorder b, k, w, j;
                    bind b: grid; bind w: warp; split j by 32 -> q, t; bind t: thread;
                }}
                stage xs[i, j] = x in shared per warp at y.k {xs} {{ split j by 32 -> q, t; bind t: thread; }}
                schedule m in registers per warp at y.k {{ split j by 32 -> q, t; bind t: thread; reduce t; }}
                schedule s in {place} per warp at y.k {{ split j by 32 -> q, t; bind t: thread; reduce t by warp; }}
            }}"
        )
    };
    let sizes: &[&[i64]] = &[&[1, 4], &[7, 36], &[33, 128], &[9, 1000]];
    check(&source("shared", ""), sizes);
    check(&source("registers", ""), sizes);
    check(&source("shared", "ring(2)"), sizes);
    check(&source("registers", "ring(3) via cp_async"), sizes);
    // At the axis that warps are given, and a model whose warps are one iteration.
    check(&turned(("warp", 32), "split j by 32 -> q, t; bind t: thread;", 64), sizes_up_to(sizes, 256));
    check(
        &turned(("warp", 32), "merge i, j -> f; split f by 32 -> q, t; bind t: thread;", 96),
        sizes_up_to(sizes, 256),
    );
    check(&turned(("warp", 32), "like y;", 64), sizes_up_to(sizes, 256));
}

/// Sizes whose second one is no larger.
fn sizes_up_to<'a>(sizes: &'a [&'a [i64]], most: i64) -> &'a [&'a [i64]] {
    let count = sizes.iter().take_while(|dims| dims[1] <= most).count();
    &sizes[..count]
}

/// What the schedule says of a region: a box, what is asked for of it, a run; whichever is smaller.
#[test]
fn regions_are_chosen() {
    for factor in [1, 3, 5, 6, 8, 10, 16] {
        for (choice, found) in [
            ("region cover;", None),
            ("region cover; merge i, j -> p; split p by 3 -> a, b;", None),
            ("region exact; split j by 2 -> a, b;", None),
            ("region flat;", Some(factor)),
            ("region flat -> p; split p by 3 -> a, b;", Some(factor)),
        ] {
            let explanation = check(&fused(factor, choice), &[&[]]);
            if let Some(found) = found {
                // A run inside a row is a box of one row.
                let found = [format!("region {found}, {} bytes", 4 * found), format!("x {found}, {} bytes", 4 * found)];
                assert!(found.iter().any(|f| explanation.contains(f)), "{choice} {factor}: {explanation}");
            } else {
                assert!(explanation.contains(" x "), "{choice} {factor}: {explanation}");
            }
        }
    }
    // All of the box is computed, or what is asked for.
    let computed = |choice: &str| {
        let kernel = finished(&fused(5, choice)).unwrap_or_else(|(_, report)| panic!("{report}"));
        let info = kernel.info.as_ref().unwrap();
        let device = Device::emulator(EmulatorOptions::default());
        let trial = Trial::new(info, &[], 1, &device).unwrap();
        let outcome = trial.run(&device);
        assert!(outcome.is_good(), "{outcome:#?}");
        kernel.entries[0].kernel.to_string()
    };
    assert_ne!(computed("region cover;"), computed("region exact;"));
    assert!(computed("region cover;").len() < computed("region exact;").len());
}

/// A region that is asked for stays one where sizes are known at launch only.
#[test]
fn regions_of_symbolic_rows_are_chosen() {
    for choice in
        ["region cover; bind j: thread;", "region exact; bind j: thread;", "region flat -> p; bind p: thread;"]
    {
        let source = format!(
            "kernel Fused(x: f32[M, N]) -> (y: f32[M, N]) where N <= 100 {{
                e[i, j] = exp(x[i, j]);
                y[i, j] = e[i, j] * 2.0;
                launch threads(128);
                schedule y {{ merge i, j -> f; split f by 96 -> fo, t; bind fo: grid; bind t: thread; }}
                schedule e in shared at y.fo {{ {choice} }}
            }}"
        );
        check(&source, &[&[1, 1], &[7, 31], &[31, 33], &[3, 100]]);
    }
}

/// Two sweeps of a five-point stencil: what is read above, below and beside is one box, for rows of 66 and of 68 as
/// well, which threads compute as one fused axis that does not divide.
#[test]
fn boxes_of_shifted_reads_are_one() {
    let source = "kernel Jacobi(x: f32[H, W]) -> (y: f32[H, W]) {
        a[i, j] = 0.25 * ((x[i - 1, j] or 0.0) + (x[i + 1, j] or 0.0) + (x[i, j - 1] or 0.0) + (x[i, j + 1] or 0.0));
        y[i, j] = 0.25 * ((a[i - 1, j] or 0.0) + (a[i + 1, j] or 0.0) + (a[i, j - 1] or 0.0) + (a[i, j + 1] or 0.0));
        launch threads(256);
        schedule y {
            split i by 16 -> io, ii; split j by 64 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid;
            merge ii, ji -> p; split p by 256 -> pr, t; bind t: thread;
        }
        schedule a in shared at y.jo { merge i, j -> p; split p by 256 -> pr, t; bind t: thread; }
        stage xs[i, j] = x in shared at y.jo { merge i, j -> p; split p by 256 -> pr, t; bind t: thread; }
    }";
    let explanation = check(source, &[&[1, 1], &[1, 5], &[5, 1], &[2, 2], &[17, 65], &[33, 130]]);
    assert!(explanation.contains("region 18 x 66, "), "{explanation}");
    assert!(explanation.contains("region 20 x 68, "), "{explanation}");
    assert_eq!(explanation.matches("region starts").count(), 2, "{explanation}");
}

/// Statistics of groups of channels, which a channel finds by rounding down.
#[test]
fn groups_of_channels() {
    let source = "kernel GroupNorm(x: f32[B, C, S], g: f32[C]) -> (y: f32[B, C, S]) where C % 8 == 0, S >= 1 {
        m[b, c] = sum(|q in 0..8, s| x[b, c / 8 * 8 + q, s]) / (8 * S) as f32;
        y[b, c, s] = (x[b, c, s] - m[b, c]) * g[c];
        launch threads(128);
        schedule y { split c by 8 -> cg, ci; merge b, cg -> r; bind r: grid; split s by 128 -> so, t; bind t: thread; }
        schedule m in registers at y.ci { split s by 128 -> so, t; bind t: thread; reduce t; }
    }";
    check(source, &[&[1, 8, 1], &[2, 16, 7], &[1, 24, 130]]);
}

/// A range that other axes decide: the axis is as long as the longest, or as long as the loops around say.
#[test]
fn triangular_ranges_are_distributed() {
    let sizes: [&[i64]; 6] = [&[1], &[2], &[7], &[31], &[33], &[130]];
    let causal = "kernel Causal(q: f32[N, N]) -> (p: f32[N, N]) where N >= 1, N <= 2048 {
        m[i] = max(|j in 0..=i| q[i, j]);
        s[i] = sum(|j in 0..=i| exp(q[i, j] - m[i]));
        p[i, j] = if j <= i { exp(q[i, j] - m[i]) / s[i] } else { 0.0 };
        launch threads(128);
        schedule p { bind i: grid; split j by 128 -> r, t; bind t: thread; unroll r; }
        schedule m in registers at p.i { split j by 128 -> r, t; bind t: thread; reduce t; }
        schedule s in registers at p.i { split j by 128 -> r, t; bind t: thread; reduce t; }
    }";
    check(causal, &sizes);
    let head = "kernel K(x: f32[N], w: f32[N]) -> (y: f32[N]) where N >= 1, N <= 4000";
    let rows = "split i by 4 -> b, k; bind b: grid; bind k: warp; split j by 32 -> q, t; bind t: thread; reduce t;";
    for (equations, schedules) in [
        // What stands outside the sum is read where the sum has no term, too.
        ("y[i] = w[i] + sum(|j in 0..=i| x[j] * w[i - j]);", format!("schedule y {{ {rows} }}")),
        ("y[i] = w[i] * 2.0 + sum(|j in i + 2..N| x[j] * w[j - i]);", format!("schedule y {{ {rows} }}")),
        (
            "t[i in 0..N] = x[i] * 2.0; u[i in 0..N] = w[i] * 0.5;
             y[i] = u[i] + sum(|j in i + 2..N| t[j]);",
            format!(
                "schedule y {{ {rows} }}
                 schedule t in shared at y.b {{ split i by 128 -> a, l; bind l: thread; }}
                 schedule u in shared at y.b {{ split i by 128 -> a, l; bind l: thread; }}"
            ),
        ),
        (
            "t[i in 0..N] = x[i] * 2.0;
             y[i] = w[i] * 2.0 + sum(|j in i / 2..=i, k in 0..j| t[j] * w[k]);",
            "schedule y {
                split i by 8 -> b, e; bind b: grid;
                split j by 2 -> jo, ji; split e by 2 -> k0, k1;
                reorder k0, k1, ji, jo; bind k0: warp; bind ji: thread; reduce ji;
             }
             schedule t in shared at y.b { split i by 128 -> q, l; bind l: thread; }"
                .to_owned(),
        ),
    ] {
        check(&format!("{head} {{ {equations} launch threads(128); {schedules} }}"), &sizes);
    }
    let total = "kernel Total(x: f32[N], w: f32[N]) -> (y: f32[1]) where N >= 1 {
        y[z] = sum(|i in 0..N, j in 0..=i| x[j] * w[i]);
        launch threads(128);
        schedule y {
            split i by 16 -> b, k; bind z, b: grid; split j by 128 -> jo, ji; bind ji: thread;
            reduce ji; reduce b by grid;
        }
    }";
    check(total, &sizes);
}

/// Of the readers of a stage one has nothing to do at small sizes, and so has a sum: what the others read does not
/// depend on that.
#[test]
fn readers_without_elements_decide_nothing() {
    let head = "kernel K(x: f32[N]) -> (y: f32[N]) where N >= 1, N <= 4000";
    let copy = "split i by 32 -> a, l; bind l: thread;";
    for (equations, schedules) in [
        (
            "e[i in 0..N - 2] = u[i] + u[i + 2]; y[i] = u[i] + (e[i] or 0.0);",
            "schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; } schedule e in shared at y.b",
        ),
        (
            "e[i in 0..N] = x[i] * 3.0; y[i] = u[i] + sum(|j in 2..N| e[j]);",
            "schedule y {
                split i by 4 -> b, k; split k by 1 -> w, k1; bind b: grid; bind w: thread;
             }
             schedule e in shared at y.b",
        ),
    ] {
        let source = format!(
            "{head} {{
                u[i in 0..N] = x[i] * 0.5;
                {equations}
                launch threads(32);
                {schedules} {{ {copy} }}
                schedule u in shared at y.b {{ {copy} }}
            }}"
        );
        check(&source, &[&[1], &[2], &[3], &[7], &[33]]);
    }
}

/// Loops of a reader that decide the ends of others: what an instance holds is what the longest of them ask for.
#[test]
fn loops_inside_decide_each_others_ends() {
    let head = "kernel K(x: f32[N], w: f32[N]) -> (y: f32[N]) where N <= 100";
    let copy = "split j by 32 -> q, l; bind l: thread;";
    for body in [
        "s[i in 0..N] = sum(|j in i..N, k in 0..=j| w[k]); y[i] = s[i] + x[i];
         schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
         schedule s in registers per thread at y.t { split j by 4 -> jq, ji; }",
        "s[i in 0..N] = sum(|j in i..N, k in 0..=j| w[j - i] + (x[N - 1 - j] or 0.0) + w[k]);
         y[i] = s[i] + (s[i + 1] or 0.0);
         schedule y { split i by 32 -> b, r; split r by 32 -> rq, t; bind b: grid; bind t: thread; }
         schedule s in registers per thread at y.b { split j by 4 -> jq, ji; }",
        "y[i] = x[i] + sum(|j in i..N| w[j]);
         schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }",
    ] {
        let source = format!("{head} {{ {body} launch threads(32); stage c[j] = w in shared at y.b {{ {copy} }} }}");
        check(&source, &[&[1], &[3], &[7], &[33], &[100]]);
    }
}

/// Of an instance with one element a reader takes that one, however it writes the index: here `c / 4` where `c` is a
/// quotient by a size.
#[test]
fn statistics_of_groups_of_channels() {
    let source = "kernel GroupNorm(x: f32[B, 32, S], w: f32[32], b: f32[32], eps: f32) -> (y: f32[B, 32, S])
        where S % 4 == 0, S <= 4096, S >= 4
    {
        mu[n, g] = sum(|c in 0..4, s in 0..S| x[n, 4 * g + c, s]) / ((4 * S) as f32);
        va[n, g] = sum(|c in 0..4, s in 0..S| (x[n, 4 * g + c, s] - mu[n, g]) * (x[n, 4 * g + c, s] - mu[n, g]));
        y[n, c, s] = (x[n, c, s] - mu[n, c / 4]) * rsqrt(va[n, c / 4] / ((4 * S) as f32) + eps) * w[c] + b[c];
        launch threads(256);
        schedule y {
            split c by 4 -> g, ci; bind n, g: grid;
            merge ci, s -> p; split p by 4 -> q, v; split q by 256 -> r, t; bind t: thread; vectorize v; unroll r;
        }
        schedule mu in registers at y.g { merge c, s -> p; split p by 256 -> r, t; bind t: thread; reduce t; }
        schedule va in registers at y.g { merge c, s -> p; split p by 256 -> r, t; bind t: thread; reduce t; }
    }";
    check(source, &[&[1, 4], &[2, 36], &[1, 1000]]);
}

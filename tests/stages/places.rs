//! Intermediates in columns of a buffer, one for each thread, and in memory that the launch provides for each block.

use crate::support::{compiled, finished, tried};
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::diag::Code;

/// Compiles it, tries it under several orders of warps; the explanation.
fn check(source: &str, sizes: &[&[i64]]) -> String {
    tried(source, sizes, 4).info.expect("no error").explanation.to_string()
}

fn refused(source: &str, code: Code) -> String {
    let (codes, report) = compiled(source).map(|_| source).expect_err(source);
    assert_eq!(codes, [code], "{source}\n{report}");
    report
}

/// Wavefronts of shared memory beyond those without bank conflicts, and sectors of global memory beyond those that the
/// bytes fill.
fn excess(source: &str, dims: &[i64]) -> (u64, u64) {
    let kernel = finished(source).unwrap_or_else(|(_, report)| panic!("{report}"));
    let device = Device::emulator(EmulatorOptions::default());
    let trial = Trial::new(kernel.info.as_ref().expect("no error"), dims, 1, &device).unwrap_or_else(|e| panic!("{e}"));
    let outcome = trial.run(&device);
    assert!(outcome.is_good(), "{outcome:#?}");
    let counters = outcome.report.expect("the emulator ran").counters;
    let [shared, global] = [&counters.shared, &counters.global].map(|c| c.transactions - c.ideal_transactions);
    (shared, global)
}

/// Element of a row at a place that depends on data: registers have none such.
fn permuted(element: &str, threads: u32, place: &str, ops: &str) -> String {
    format!(
        "kernel Permuted(x: {element}[40, N], p: i32[40]) -> (y: {element}[40, N]) {{
            h[i, k] = x[k, i] + x[k, i];
            y[k, i] = h[i, p[k]] or x[k, i];
            launch threads({threads});
            schedule y {{ reorder i, k; split i by {threads} -> b, t; bind b: grid; bind t: thread; }}
            schedule h in {place} per thread at y.t {{ {ops} }}
        }}"
    )
}

#[test]
fn columns_have_run_time_indices_and_no_conflicts() {
    for (element, threads) in [("f32", 64), ("f64", 64), ("f16", 64), ("u8", 128), ("f32", 33), ("f32", 1)] {
        let source = permuted(element, threads, "shared", "");
        let explanation = check(&source, &[&[1], &[7], &[31], &[33], &[1000]]);
        assert!(!explanation.contains("barriers:"), "{explanation}");
        assert!(explanation.contains("each element stays with one thread"), "{explanation}");
        assert_eq!(excess(&source, &[1000]).0, 0, "{source}");
        check(&permuted(element, threads, "global", ""), &[&[1], &[7], &[33], &[200]]);
    }
    // Neighbours of a column are far apart, neighbouring threads side by side: whole sectors.
    assert_eq!(excess(&permuted("f32", 64, "global", ""), &[1024]).1, 0);
}

/// What is written as a vector stays together, and the columns are as wide; readers take vectors as long as that.
#[test]
fn vectors_stay_together_in_a_column() {
    for (element, lanes) in [("f32", 4), ("f32", 2), ("f64", 2), ("f16", 8)] {
        for place in ["shared", "global"] {
            let source = format!(
                "kernel Rows(x: {element}[N, 48]) -> (y: {element}[N, 48]) {{
                    h[i, k] = x[i, k] + x[i, k];
                    y[i, k] = h[i, k] + x[i, k];
                    launch threads(96);
                    schedule y {{
                        split i by 96 -> b, t; split k by {lanes} -> q, v;
                        bind b: grid; bind t: thread; vectorize v;
                    }}
                    schedule h in {place} per thread at y.t {{ split k by {lanes} -> q, v; vectorize v; }}
                }}"
            );
            check(&source, &[&[1], &[95], &[97], &[300]]);
            assert_eq!(excess(&source, &[300]).0, 0, "{source}");
            let ptx = finished(&source).ok().and_then(|k| k.info).expect("accepted").ptx.text.to_string();
            let (space, words) =
                (if place == "shared" { "st.shared" } else { "st.global" }, if lanes == 2 { "v2" } else { "v4" });
            if element != "f64" || lanes == 2 {
                assert!(ptx.contains(&format!("{space}.{words}")), "{ptx}");
            }
        }
    }
    // A reader by elements waits, and is told.
    let source = permuted("f32", 64, "shared", "split k by 4 -> q, v; vectorize v;")
        .replace("x: f32[40, N]", "x: f32[40, N; 1, 40]");
    let found = finished(&source).unwrap_or_else(|(_, report)| panic!("{report}"));
    assert!(found.info.is_some());
}

/// Rings of columns, in loops that are different for threads, and copies that run ahead.
#[test]
fn columns_in_loops() {
    for clauses in ["", " ring(3)", " via cp_async", " ring(4) via cp_async", " ring(2) via cp_async"] {
        let source = format!(
            "kernel Loop(x: f32[N, 40], p: i32[N]) -> (y: f32[N]) {{
                y[i] = sum(|k in 0..40| x[i, k] * x[i, 39 - k]);
                launch threads(64);
                schedule y {{ split i by 48 -> b, t; split k by 5 -> ko, ki; bind b: grid; bind t: thread; }}
                stage xs[i, k] = x in shared per thread at y.ko{clauses} {{ }}
            }}"
        );
        check(&source, &[&[1], &[7], &[47], &[49], &[200]]);
    }
    // A stage inside a thread's own.
    check(
        "kernel Inner(x: f32[N, 40]) -> (y: f32[N]) {
            g[i, k] = x[i, k] + 1.0;
            h[i, k] = g[i, k] * g[i, 39 - k];
            y[i] = sum(|k in 0..40| h[i, k]);
            launch threads(64);
            schedule y { split i by 64 -> b, t; split k by 7 -> ko, ki; bind b: grid; bind t: thread; }
            schedule h in shared per thread at y.ko { split k by 3 -> ko, ki; }
            schedule g in shared per thread at h.ko { }
        }",
        &[&[1], &[63], &[100]],
    );
}

const ROWS: &str = "kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) {
    h[i, j] = exp(x[i, j]);
    s[i] = sum(|j in 0..N| h[i, N - 1 - j]);
    y[i, j] = h[i, N - 1 - j] / s[i];
    launch threads(96);
    schedule y { split j by 96 -> jo, t; bind i: grid; bind t: thread; }
    schedule s in registers at y.i { split j by 96 -> jo, t; bind t: thread; reduce t; }
    schedule h in global at y.i { split j by 96 -> jo, t; bind t: thread; }
}";

/// A row that is computed once, however long it is.
#[test]
fn rows_of_any_length_are_kept() {
    let explanation = check(ROWS, &[&[1, 1], &[3, 7], &[2, 95], &[5, 97], &[2, 1000], &[0, 5], &[5, 0]]);
    assert!(explanation.contains("region 1 x N, 4 * N bytes"), "{explanation}");
    assert!(
        explanation.contains("workspace h: M * max(4 * ceil(N / 4), 0) of f32, an equal part for each block"),
        "{explanation}"
    );
    assert!(explanation.contains("shared memory: 16 bytes"), "{explanation}");
}

/// Several rows of an instance, in slots that instances take again, with vectors, of units of a block.
#[test]
fn parts_of_blocks() {
    let source = |place: &str, y: &str, h: &str| {
        format!(
            "kernel Parts(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {{
                h[i, j] = x[i, j] * 2.0;
                y[i, j] = h[i, N - 1 - j] + h[i, j];
                launch threads(128);
                schedule y {{ {y} }}
                schedule h in global {place} {{ {h} }}
            }}"
        )
    };
    let sizes: [&[i64]; 5] = [&[1, 4], &[5, 36], &[9, 132], &[4, 1000], &[13, 8]];
    let by_threads = "split j by 128 -> jo, t; bind t: thread;";
    let vectors = "split j by 4 -> q, v; split q by 128 -> jo, t; bind t: thread; vectorize v;";
    let block = format!("split i by 3 -> b, r; bind b: grid; {by_threads}");
    for (place, h) in [
        ("at y.b", by_threads),
        ("at y.r", by_threads),
        ("at y.r ring(3)", by_threads),
        ("at y.b", vectors),
        ("at y.r ring(2)", vectors),
    ] {
        check(&source(place, &block, h), &sizes);
    }
    let warps = "split i by 4 -> b, w; bind b: grid; bind w: warp; split j by 32 -> jo, t; bind t: thread;";
    let lanes = "split j by 32 -> jo, t; bind t: thread;";
    let explanation = check(&source("per warp at y.b", warps, lanes), &sizes);
    assert!(explanation.contains("0 of the block"), "{explanation}");
    check(&source("per thread at y.t", "split i by 128 -> b, t; bind b: grid; bind t: thread;", ""), &sizes);
    // No block at all but one.
    check(&source("at y.i", by_threads, by_threads), &sizes);
}

/// Beside memory that blocks share: each has its own.
#[test]
fn parts_beside_partials() {
    let source = "kernel Columns(x: f32[M, N]) -> (y: f32[N]) {
        h[i, j] = x[i, j] * 2.0;
        y[j] = sum(|i| h[i, j] * h[i, N - 1 - j]);
        launch threads(64);
        schedule y {
            split j by 64 -> jo, t; split i by 16 -> io, ii; reorder jo, t, io, ii;
            bind jo, io: grid; bind t: thread; reduce io by grid;
        }
        schedule h in global at y.io { split j by 64 -> jr, t; bind t: thread; }
    }";
    let explanation = check(source, &[&[1, 1], &[33, 7], &[40, 100], &[16, 64], &[0, 5]]);
    assert!(explanation.contains("workspace h:") && explanation.contains("workspace y_parts:"), "{explanation}");
}

/// Where what is asked for differs from iteration to iteration, there is room for the most.
#[test]
fn triangles_have_room_for_the_longest_row() {
    let source = "kernel Triangle(x: f32[N, N]) -> (y: f32[N]) {
        h[i, j] = x[i, j] * 2.0;
        y[i] = sum(|j in 0..=i| h[i, i - j] * x[i, j]);
        launch threads(32);
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
        schedule h in global per thread at y.t { }
    }";
    check(source, &[&[1], &[7], &[33], &[70]]);
}

/// Terms of a sum that are all in registers, and end where the element says.
#[test]
fn sums_of_registers_end_where_the_range_does() {
    let source = "kernel Triangle(x: f32[M, 8]) -> (y: f32[M, 8]) {
        h[i, j] = x[i, j] * 2.0;
        s[i, j] = sum(|k in 0..=j| h[i, k]);
        y[i, j] = s[i, j];
        launch threads(32);
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; unroll j; }
        schedule s in registers per thread at y.t { split k by 8 -> ko, ki; unroll ki; }
        schedule h in registers per thread at y.t { }
    }";
    check(source, &[&[1], &[33]]);
}

/// Without one of its barriers the emulator sees a race in global memory, too.
#[test]
fn barriers_of_workspaces_are_needed() {
    let source = "kernel Shift(x: f32[M, N]) -> (y: f32[M, N]) {
        h[i, j] = x[i, j] * 2.0;
        y[i, j] = h[i, N - 1 - j];
        launch threads(64);
        schedule y { split i by 4 -> b, r; bind b: grid; split j by 64 -> jo, t; bind t: thread; }
        schedule h in global at y.r { split j by 64 -> jo, t; bind t: thread; }
    }";
    let kernel = tried(source, &[&[9, 130]], 3);
    crate::support::each_barrier_is_missed(&kernel, &[&[9, 130]]);
    let info = kernel.info.expect("no error");
    let barriers: Vec<usize> = info.ptx.text.match_indices("bar.sync").map(|found| found.0).collect();
    assert!(barriers.len() >= 2, "{}", info.ptx.text);
    // Each statement ends after its number of threads.
    let dropped = |at: usize| {
        let mut text = info.ptx.text.to_string();
        let end = at + text[at..].find(';').expect("a statement");
        text.replace_range(at..=end, "");
        text
    };
    // Of both entry points; the first one runs.
    for at in &barriers[..2] {
        let mut info = info.clone();
        info.ptx.text = dropped(*at).into();
        let found = (0..8).any(|seed| {
            let device = Device::emulator(EmulatorOptions::default().seed(seed));
            let trial = Trial::new(&info, &[9, 130], 1, &device).unwrap_or_else(|e| panic!("{e}"));
            !trial.run(&device).is_good()
        });
        assert!(found, "{at}: {}", info.ptx.text);
    }
}

#[test]
fn refusals() {
    let rows = |h: &str| {
        format!(
            "kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) {{
                h[i, j] = x[i, j] * 2.0;
                y[i, j] = h[i, N - 1 - j];
                launch threads(64);
                schedule y {{ split i by 4 -> b, r; bind b: grid; split j by 64 -> jo, t; bind t: thread; }}
                {h}
            }}"
        )
    };
    let report = refused(&rows("schedule h in global { }"), Code::TW0709);
    assert!(report.contains("would be read by blocks that did not write it"), "{report}");
    refused(&rows("schedule h in shared per thread at y.r { }"), Code::TW0501);
    refused(&rows("schedule h in global per thread at y.b { bind j: thread; }"), Code::TW0605);
    refused(
        &rows("stage xs[i, j] = x in global at y.b via cp_async { split j by 64 -> jo, t; bind t: thread; }"),
        Code::TW0318,
    );
    refused(
        &rows("schedule h in global at y.b { split j by 64 -> jo, t; bind t: thread; layout [j, i]; }"),
        Code::TW0411,
    );
    let column = permuted("f32", 64, "shared", "layout [i, k] swizzle 128;");
    assert!(refused(&column, Code::TW0411).contains("columns of a buffer"), "{column}");
    check(&permuted("f32", 64, "shared", "layout [k, i pad 1];"), &[&[65]]);
}

/// Of copies of one tensor a read takes the innermost, whichever is written first, and what is known of a copy is known
/// from those that read it: registers that are told apart at run time are refused, and others' elements of shared
/// memory are waited for.
#[test]
fn reads_take_the_innermost_copy_of_a_tensor() {
    let beside = |inner: &str, unroll: &str, order: [usize; 2]| {
        let stages = [
            format!("stage x0[i, j] = x in {inner} at y.j1 {{ }}"),
            "stage x1[i, j] = x in shared at y.i { }".to_owned(),
        ];
        let stages = order.map(|n| stages[n].clone()).join(" ");
        format!(
            "kernel Copies(x: i32[M, N]) -> (y: i32[M, N], z: i32[M, N]) where N <= 48 {{
                y[i, j] = x[i, j];
                z[i, j] = x[i, j] + 1;
                schedule y {{ split j by 2 -> j1, j2; bind i: grid; {unroll} }}
                schedule z at y.i {{ bind i: grid; }}
                {stages}
            }}"
        )
    };
    for order in [[0, 1], [1, 0]] {
        let explanation = check(&beside("shared", "", order), &[&[1, 1], &[3, 33]]);
        assert!(explanation.contains("read of x0 in shared memory"), "{explanation}");
        refused(&beside("registers per thread", "", order), Code::TW0711);
        check(&beside("registers per thread", "unroll j2;", order), &[&[1, 1], &[3, 33]]);
    }
    // Threads read what others wrote to the inner copy; what they wrote to the outer one is for a stage of its own.
    let source = "kernel Shared(x: i64[M, N]) -> (y: i64[M, N]) where M <= 40, N <= 40 {
        s[i] = sum(|j in 0..N| x[i, j]);
        y[i, j] = x[i, j] + s[i];
        schedule y { split i into 1 -> b, r; split r into 7 -> t, q; bind b: grid; bind t: thread; }
        schedule s in shared at y.b { bind i: thread; }
        stage x0[i, j] = x in shared at y.q { merge i, j -> p; split p by 7 -> pr, t; bind t: thread; }
        stage x1[i, j] = x in shared at y.b { bind j: thread; }
    }";
    check(
        &source
            .replace("bind i: thread;", "split i by 7 -> ir, t; bind t: thread;")
            .replace("bind j: thread;", "split j by 7 -> jr, t; bind t: thread;"),
        &[&[1, 1], &[3, 3], &[7, 33], &[40, 40]],
    );
}

/// A launch may need no memory in an instance that it has.
#[test]
fn instances_may_have_no_elements() {
    let source = "kernel Empty(x: i64[M, N]) -> (y: i64[N]) where M <= 9 {
        s[i, j] = x[i, j] + 1;
        y[j] = max(|i| s[i, j]);
        schedule y { split i into 3 -> io, ii; }
        schedule s in global at y.io { }
    }";
    check(source, &[&[0, 5], &[1, 1], &[9, 33]]);
}

//! Stages that read what a copy brings on its own time: staged copies by the accelerator, read by the stages that stand in loops inside their
//! place. Every kernel runs for awkward sizes and gives what `reference()` does, under several seeds.

mod support;

use support::{each_barrier_is_missed, finished, prove};
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::Compiled;

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
    let info = kernel.info.as_ref().expect("no error");
    for (dims, seed) in sizes.iter().flat_map(|dims| (0..4).map(move |seed| (dims, seed))) {
        let device = Device::emulator(EmulatorOptions::default().seed(seed));
        let trial = Trial::new(info, dims, seed, &device).unwrap_or_else(|e| panic!("{source}\n{dims:?}: {e}"));
        prove(kernel, dims);
        let outcome = trial.run(&device);
        assert!(outcome.is_good(), "{source}\nat {dims:?}: {outcome:#?}\n{}\n{}", info.explanation, info.ptx.text);
    }
    info.explanation.to_string()
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
        let explanation = run(&source, &compile(&source), &[&[1, 4], &[4, 36], &[7, 256], &[9, 260], &[3, 512]]);
        assert!(explanation.contains("copy xs of x"), "{explanation}");
    }
    // By registers that hold what shared memory does.
    let by_registers = "stage xr[i, j] = x in registers at y.k { split j by 64 -> r, t; bind t: thread; }";
    let source = softmax("ring(2)", by_registers);
    run(&source, &compile(&source), &[&[1, 4], &[7, 260]]);
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

/// The readers stand in loops inside the place of the copy: one stage in another, and one that each thread has of its own.
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
        // Whether there is anything to do at `b.i` is a condition, behind which the pass does not look.
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

//! Stages in registers around which loops are written out: each copy of the loop's body reads the registers of its own
//! iteration, which are counted from where the instance begins there. And every entry point at small sizes, where a
//! launch would take the first one.

use crate::support::{by_entry, prove, runs, tried};
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;

const SIZES: [&[i64]; 4] = [&[1, 1], &[5, 4], &[8, 37], &[7, 65]];

/// An output whose rows are computed two at a time, of a stage that holds the rows that they read.
fn rows(body: &str, ops: &str) -> String {
    format!(
        "kernel Rows(x: f32[N + 1, M]) -> (y: f32[N, M]) {{
            t[i in 0..N + 1, j in 0..M] = x[i, j];
            {body}
            schedule y {{ split i by 2 -> io, ii; unroll ii; }}
            {ops}
        }}"
    )
}

#[test]
fn registers_of_written_out_rows() {
    let held = "schedule t in registers per thread at y.j { like y; }";
    for body in [
        "y[i, j] = t[i + 1, j] + t[i, j];",
        "y[i, j] = t[i + 1, j] - t[i, j] * t[i + 1, j];",
        "y[i, j] = if i % 2 == 0 { t[i, j] } else { t[i + 1, j] * 2.0 };",
        "y[i, j] = t[i + 1, j] + (t[i + 2, j] or 0.5);",
    ] {
        tried(&rows(body, held), &SIZES, 1);
    }
    // Another stage in the same loop, which reads the first one.
    let second = "u[i in 0..N + 1, j in 0..M] = t[i, j] * 2.0; y[i, j] = u[i, j] - u[i + 1, j];";
    let both = "schedule u in registers at y.j { like y; } schedule t in registers at y.j { like y; }";
    tried(&rows(second, both), &SIZES, 1);
}

#[test]
fn registers_of_reductions_in_written_out_loops() {
    for (ty, reduction) in [("f32", "sum"), ("f32", "max"), ("u32", "argmin")] {
        let source = format!(
            "kernel Reduced(x: f32[N + 1, M]) -> (y: {ty}[N]) where M >= 1 {{
                t[i in 0..N + 1, j in 0..M] = x[i, j];
                y[i] = {reduction}(|j| t[i, j] - t[i + 1, j]);
                schedule y {{ split i by 2 -> io, ii; unroll ii; }}
                schedule t in registers at y.j {{ unroll i; }}
            }}"
        );
        tried(&source, &SIZES, 1);
    }
}

#[test]
fn registers_of_threads_in_written_out_rows() {
    let source = "kernel Halo(x: f32[N + 1, M]) -> (y: f32[N, M]) {
        t[i in 0..N + 1, j in 0..M] = x[i, j];
        u[i in 0..N + 1, j in 0..M] = t[i, j] * 2.0;
        y[i, j] = u[i, j] + u[i + 1, j];
        launch threads(32);
        schedule y { split i by 2 -> io, ii; split j by 32 -> jo, t; bind io: grid; unroll ii; bind t: thread; }
        schedule u in registers at y.jo { like y; }
        schedule t in registers at y.jo { like y; }
    }";
    tried(source, &SIZES, 2);
    // A copy without an equation, of which a thread holds several neighbours.
    let copy = "kernel Neighbours(x: f32[N, M]) -> (y: f32[N, M]) {
        y[i, j] = x[i, j] + (x[i, j + 1] or 0.0);
        launch threads(4);
        schedule y {
            split j by 8 -> jo, ji; split jo by 2 -> jp, ju; split i by 8 -> io, ii; split ii by 4 -> i2, t;
            reorder io, jp, ju, i2, t, ji; bind io: grid; bind t: thread; unroll ji; unroll ju;
        }
        stage xr[i, j] = x in registers at y.i2 { like y; }
    }";
    tried(copy, &SIZES, 2);
}

/// Offsets in shared memory whose parts are negative: registers that hold addresses must be addresses, in 64-bit entry
/// points, too.
#[test]
fn addresses_in_shared_memory_stay_in_32_bits() {
    let source = "kernel Resized(x: i32[6, M + 2]) -> (y: i32[5, M]) {
        t[i in 0..6, j in 0..M + 2] = x[i, j] * 1i32;
        y[i, j] = t[i + 1, j] + t[i + 1, j + 2];
        launch threads(1);
        schedule y { resize j by (2, 1) -> z2; resize z2 by (2, 1) -> z3; bind i, z3: grid; }
        schedule t in shared at y.z3 { resize i by (0, 0) -> z4; }
    }";
    let kernel = crate::support::finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    for dims in [[1], [2], [7]] {
        prove(&kernel, &dims);
        let all = by_entry(info, &dims);
        assert_eq!(all.len(), 2, "a 64-bit entry point, too");
        for one in all {
            let device = Device::emulator(EmulatorOptions::default());
            let outcome = Trial::new(&one, &dims, 1, &device).expect("small").run(&device);
            assert!(outcome.is_good(), "{}: {outcome:#?}", one.entries[0].name);
        }
    }
    runs(source, &kernel, &[&[3]], 2);
}

/// Regions are found for sizes of at least 1; where an output does not vanish with a size, and needs what is left out
/// without it, the launcher refuses 0.
#[test]
fn a_size_that_must_not_be_zero_is_required() {
    let required = |source: &str, sizes: &[&[i64]]| -> Vec<String> {
        let kernel =
            crate::support::finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
        runs(source, &kernel, sizes, 2);
        let info = kernel.info.as_ref().expect("no error");
        if info.requirements.is_empty() {
            runs(source, &kernel, &[&[3, 0]], 2);
        }
        info.requirements.iter().map(|r| r.text.to_string()).collect()
    };
    // At N = 0 the terms ask for no elements between 2 and N + 2, and `x[i, 2]` is read all the same.
    let hull = |place: &str| {
        format!(
            "kernel Hull(x: f32[M, 2 * N + 4], s: f32[N]) -> (y: f32[M]) where N <= 64 {{
                y[i] = x[i, 2] + sum(|j in 0..N| x[i, j + 2]);
                schedule y {{ split i by 2 -> i1, i2; bind i1: grid; }}
                {place}
            }}"
        )
    };
    let sizes: &[&[i64]] = &[&[3, 4], &[2, 1]];
    assert!(required(&hull("stage xa[i, j] = x in shared at y.i1 { }"), sizes).is_empty());
    assert!(required(&hull(""), sizes).is_empty());
    // Vectors of 8 are whole for 8 columns, not for 4.
    let vectors = |ops: &str| {
        format!(
            "kernel Vectors(x: f32[M, N + 4], s: f32[N]) -> (y: f32[M, N + 4]) where N <= 4, N % 4 == 0 {{
                y[i, j] = x[i, j] + (s[j] or 0.0);
                schedule y {{ bind i: grid; {ops} }}
            }}"
        )
    };
    assert!(required(&vectors(""), &[&[3, 4]]).is_empty());
    assert_eq!(required(&vectors("split j by 8 -> a, v; vectorize v;"), &[&[3, 4]]), ["N >= 1"]);
}

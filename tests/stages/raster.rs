//! Blocks in groups along an axis of the grid. Every kernel runs for numbers of rows that groups divide and that they
//! do not, and gives what `reference()` does; the order itself is compared with one that is enumerated.

use crate::support::{finished, tried};
use tilewright_compiler::kernel_ir::StatementKind;
use tilewright_compiler::proof::{Launch, Verdict, check};

/// Sizes of `M` and `N` with fewer rows than a group has, as many, a clipped group, and none at all.
const SIZES: &[&[i64]] = &[&[1, 1], &[2, 70], &[3, 33], &[4, 130], &[5, 65], &[7, 200], &[0, 5], &[2, 0]];

#[test]
fn elements() {
    for group in [1_i64, 2, 3, 64, 1 << 31] {
        let source = format!(
            "kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {{
                z[i, j] = x[i, j] + y[i, j];
                schedule z {{ split j by 32 -> b, t; bind i, b: grid raster(i: {group}); bind t: thread; }}
            }}"
        );
        let kernel = tried(&source, SIZES, 2);
        let info = kernel.info.as_ref().expect("no error");
        let said = format!("axis i: M, grid, in groups of {group}");
        assert!(info.explanation.contains(&said), "{}", info.explanation);
    }
}

/// The entry with 64-bit indices has the same order: each checked element is written once.
#[test]
fn every_entry_point_writes_every_element_once() {
    let source = "kernel Three(x: f32[L, M, N]) -> (z: f32[L, M, N]) {
        z[h, i, j] = x[h, i, j] * 2.0;
        schedule z { split j by 2 -> b, t; bind h: grid; bind i, b: grid raster(i: 3); bind t: thread; }
    }";
    let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    assert_eq!(kernel.entries.len(), 2, "a wide entry point, too");
    for (l, m, n) in (1..4).flat_map(|l| (1..9).flat_map(move |m| (1..8).map(move |n| (l, m, n)))) {
        let launch = Launch::new(info, &[l, m, n]).expect("a launch");
        for entry in &kernel.entries {
            assert_eq!(check(&entry.kernel, &launch, 10_000_000), Verdict::Holds, "{l} x {m} x {n}");
        }
    }
}

#[test]
fn tiles_of_the_accelerator_in_groups() {
    let source = "kernel Tiles(x: f32[M, N]) -> (z: f32[M, N]) where N % 4 == 0 {
        z[i, j] = x[i, j] * 2.0;
        launch threads(32);
        stage xs[i, j] = x in shared at z.jb via tma { box i by 4 -> ic, ii; box j by 32 -> jc, jj; }
        schedule z {
            split i by 4 -> ib, ii; split j by 32 -> jb, t; reorder ib, jb, ii, t;
            bind ib, jb: grid raster(ib: 2); bind t: thread;
        }
    }";
    tried(source, &[&[1, 4], &[9, 68], &[20, 32], &[13, 200], &[24, 64]], 2);
}

/// Sums of rows by clusters.
fn sums(raster: &str) -> String {
    format!(
        "kernel Sums(x: f32[L, M, N]) -> (y: f32[L, M]) {{
            y[h, i] = sum(|j| x[h, i, j]);
            launch cluster(2), threads(32);
            schedule y {{
                bind h, i: grid raster({raster}); split j into 2 -> c, jc; bind c: cta;
                split jc by 32 -> r, t; bind t: thread; reduce t; reduce c;
            }}
        }}"
    )
}

/// Sums of columns by blocks.
fn columns(raster: &str, by: &str) -> String {
    format!(
        "kernel Columns(x: u32[M, N]) -> (y: u32[N]) {{
            y[j] = sum(|i| x[i, j]);
            launch threads(32);
            schedule y {{
                split i by 4 -> ib, ii; split j by 32 -> jb, t; reorder jb, ib, t, ii;
                bind jb, ib: grid raster({raster}); bind t: thread; reduce ib by {by};
            }}
        }}"
    )
}

#[test]
fn clusters_are_taken_in_groups() {
    tried(&sums("h: 2"), &[&[1, 1, 3], &[3, 4, 70], &[5, 3, 33], &[4, 1, 100]], 2);
}

/// Reductions across blocks are by coordinates, whatever the order of the blocks.
#[test]
fn reductions_across_blocks() {
    for by in ["grid", "atomic"] {
        tried(&columns("jb: 2", by), &[&[1, 1], &[9, 40], &[30, 100], &[0, 7], &[5, 200]], 2);
    }
    let shared = "kernel Both(x: f32[L, M, N]) -> (y: f32[L, N]) where M >= 1, N <= 64 {
        mu[h, j] = sum(|i| x[h, i, j]);
        y[h, j] = mu[h, j] * 2.0;
        launch threads(32);
        schedule y { split j by 32 -> jb, t; bind h, jb: grid raster(h: 2); bind t: thread; }
        schedule mu in registers at y.jb { like y; split i by 4 -> ib, ii; bind ib: grid; reduce ib by grid; }
    }";
    tried(shared, &[&[1, 1, 1], &[3, 9, 40], &[5, 13, 64]], 2);
}

/// From the last iteration on, along any axes of the grid: alone, in groups, in clusters, persistent, beside an output
/// with fewer blocks, and along an axis that blocks reduce.
#[test]
fn descending() {
    let add = |launch: &str, raster: &str| {
        format!(
            "kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {{
                z[i, j] = x[i, j] + y[i, j];
                {launch}
                schedule z {{ split j by 32 -> b, t; bind i, b: grid raster({raster}); bind t: thread; }}
            }}"
        )
    };
    for raster in
        ["i: descending", "b: descending", "i: 2, b: descending", "i: descending, i: 3", "b: descending, i: descending"]
    {
        for launch in ["", "launch persistent;"] {
            tried(&add(launch, raster), SIZES, 2);
        }
    }
    let kernel =
        finished(&add("", "i: 2, i: descending")).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    let said = &kernel.info.as_ref().expect("no error").explanation;
    assert!(said.contains("axis i: M, grid, in groups of 2, descending\n"), "{said}");
    tried(&sums("h: 2, i: descending"), &[&[1, 1, 3], &[3, 4, 70], &[5, 3, 33]], 2);
    for by in ["grid", "atomic"] {
        tried(&columns("jb: descending, ib: descending", by), &[&[1, 1], &[9, 40], &[30, 100], &[0, 7], &[5, 200]], 2);
    }
    let several = "kernel Two(x: f32[M, N]) -> (z: f32[M, N], y: f32[M]) {
        z[i, j] = x[i, j] * 2.0;
        y[i] = sum(|j| x[i, j]);
        launch threads(32);
        schedule z { split j by 32 -> b, t; bind i, b: grid raster(b: descending); bind t: thread; }
        schedule y { split i by 4 -> io, r; bind io: grid raster(io: descending); split j by 32 -> jo, t; bind t: thread; reduce t; }
    }";
    tried(several, &[&[1, 1], &[9, 70], &[33, 5], &[4, 0]], 2);
}

/// The last block has what comes last: without it, that is missing.
#[test]
fn the_order_is_as_said() {
    for (raster, group, falls) in [
        ("", 1, [false; 2]),
        (" raster(i: descending)", 1, [true, false]),
        (" raster(b: descending)", 1, [false, true]),
        (" raster(i: 2, b: descending)", 2, [false, true]),
        (" raster(i: 3, i: descending)", 3, [true, false]),
    ] {
        let source = format!(
            "kernel Copy(x: f32[M, N]) -> (z: f32[M, N]) {{ z[i, j] = x[i, j]; schedule z {{ bind i, j: grid{raster}; }} }}"
        );
        let source = source.replace("(b:", "(j:").replace(", b:", ", j:");
        let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
        let info = kernel.info.as_ref().expect("no error");
        for (m, n) in (1..8).flat_map(|m| (1..5).map(move |n| (m, n))) {
            let mut order = Vec::new();
            for first in (0..m).step_by(group) {
                let end = m.min(first + group as i64);
                order.extend((0..n).flat_map(|j| (first..end).map(move |i| [i, j])));
            }
            let turned =
                |[i, j]: [i64; 2]| [if falls[0] { m - 1 - i } else { i }, if falls[1] { n - 1 - j } else { j }];
            for blocks in 0..m * n {
                let mut launch = Launch::new(info, &[m, n]).expect("a launch");
                launch.blocks = blocks;
                let missing = order[blocks as usize..].iter().map(|at| turned(*at)).min().expect("one is left");
                let Verdict::Violated(found) = check(&kernel.entries[0].kernel, &launch, 10_000_000) else {
                    panic!("{blocks} blocks of {m} x {n} are not all: {source}")
                };
                let expected = format!("element {} of `z` is never written", missing[0] * n + missing[1]);
                assert!(found.to_string().ends_with(&expected), "{source} {m} x {n}, {blocks} blocks: {found}");
            }
        }
    }
}

/// Without the clipping of the last group, blocks would miss rows and take others twice: the checker sees that.
#[test]
fn a_group_that_is_not_clipped_is_noticed() {
    use tilewright_compiler::kernel_ir::{IndexOp, Op};
    let source = "kernel Copy(x: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j];
        schedule z { bind i, j: grid raster(i: 3); }
    }";
    let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    let own = &kernel.entries[0].kernel;
    // The smaller one of what a group has and what is left.
    let height =
        own.values.iter().rposition(|value| matches!(value.op, Op::Index(IndexOp::Min, ..))).expect("a height");
    let Op::Index(_, whole, left) = own.values[height].op else { unreachable!("found as such") };
    for other in [whole, left] {
        let mut mutant = own.clone();
        mutant.values[height].op = Op::Index(IndexOp::Max, other, other);
        let noticed = [[5, 4], [1, 3], [3, 3], [7, 2]].iter().any(|dims| {
            let launch = Launch::new(info, dims).expect("a launch");
            matches!(check(&mutant, &launch, 10_000_000), Verdict::Violated(_))
        });
        assert!(noticed, "{mutant}");
    }
    assert!(!own.regions.iter().flat_map(|r| &r.statements).any(|s| s.kind == StatementKind::BarSync));
}

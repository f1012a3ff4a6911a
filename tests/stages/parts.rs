//! Units that are not simply all warpgroups, warps or threads of a block: several as one, those of a range, units of
//! the kernel's own, and blocks with a part of a warpgroup. Every kernel runs for awkward sizes and gives what
//! `reference()` does.

use crate::support::{finished, tried};
use tilewright_compiler::diag::Code;

const SIZES: &[&[i64]] = &[&[1, 4], &[7, 36], &[33, 128], &[9, 300]];

/// Rows of a matrix by the units of `ops`, after `more` statements.
fn rows(threads: u32, more: &str, ops: &str) -> String {
    format!(
        "kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) {{
            y[i, j] = x[i, j] * 2.0;
            launch threads({threads});
            {more}
            schedule y {{ {ops} }}
        }}"
    )
}

fn sums(threads: u32, ops: &str) -> String {
    format!(
        "kernel Sums(x: f32[M, N]) -> (y: f32[M]) {{
            y[i] = sum(|j| x[i, j]);
            launch threads({threads});
            schedule y {{ {ops} }}
        }}"
    )
}

fn refused(source: &str, code: Code) -> String {
    match finished(source) {
        Ok(_) => panic!("accepted:\n{source}"),
        Err((found, report)) => {
            let errors: Vec<Code> = found.into_iter().filter(|c| *c != Code::TW0690).collect();
            assert_eq!(errors, [code], "{source}\n{report}");
            report
        }
    }
}

/// Groups of threads and of warps, also of numbers that divide nothing.
#[test]
fn several_units_are_one() {
    let eight = "split i by 16 -> b, r; bind b: grid; bind r: 8 thread; split j by 8 -> q, t; bind t: thread;";
    let five = "split i by 12 -> b, r; bind b: grid; bind r: 5 thread; split j by 5 -> q, t; bind t: thread;";
    let in_warps = "split i by 12 -> b, p; split p by 6 -> w, r; bind b: grid; bind w: warp; bind r: 5 thread;
        split j by 5 -> q, t; bind t: thread;";
    let warps = "split i by 2 -> b, r; bind b: grid; bind r: 2 warp; split j by 64 -> q, t; bind t: thread;";
    let lanes = "split i by 4 -> b, p; split p by 2 -> r, w; bind b: grid; bind r: 2 warp; bind w: warp;
        split j by 20 -> q, t; bind t: thread;";
    for (threads, ops) in [(128, eight), (64, five), (64, in_warps), (128, warps), (160, warps), (128, lanes)] {
        tried(&rows(threads, "", ops), SIZES, 1);
    }
    // Without a word about threads the block has as many as they need.
    let kernel = tried(&rows(64, "", five).replace("launch threads(64);", ""), &[&[7, 36]], 1);
    assert_eq!(kernel.info.expect("no error").launch.threads, 60);
}

/// A group merges what its threads have, and no other.
#[test]
fn groups_reduce() {
    let of = |units: &str, n: u32| format!("{units} split j by {n} -> q, t; reorder t, q; bind t: thread; reduce t;");
    let eight = of("split i by 16 -> b, r; bind b: grid; bind r: 8 thread;", 8);
    let five = of("split i by 12 -> b, r; bind b: grid; bind r: 5 thread;", 5);
    let in_warps = of("split i by 12 -> b, p; split p by 6 -> w, r; bind b: grid; bind w: warp; bind r: 5 thread;", 5);
    let warps = of("split i by 2 -> b, r; bind b: grid; bind r: 2 warp;", 64);
    for (threads, ops) in [(128, eight), (64, five), (64, in_warps), (128, warps)] {
        tried(&sums(threads, &ops), SIZES, 1);
    }
}

/// Units of a range merge what they have, through lanes or through memory, wherever the range begins; each of several
/// units has a group of its own.
#[test]
fn ranges_reduce() {
    let warps = "split i by 3 -> b, w; bind b: grid; bind w: warp 2..5; split j by 32 -> q, t; reorder t, q; bind t: thread; reduce t;";
    let along = "bind i: grid; split j by 96 -> q, r; split r by 32 -> w, t; reorder w, t, q; bind w: warp 2..5; bind t: thread; reduce w, t;";
    let odd = "bind i: grid; split j by 17 -> q, t; reorder t, q; bind t: thread 3..20; reduce t;";
    let four = "bind i: grid; split j by 4 -> q, t; reorder t, q; bind t: thread 6..10; reduce t by warp;";
    let groups = "split i by 3 -> b, r; bind b: grid; bind r: 8 thread 2..5; split j by 8 -> q, t; reorder t, q; bind t: thread; reduce t;";
    let fives = "split i by 4 -> b, r; bind b: grid; bind r: 5 thread 1..5; split j by 5 -> q, t; reorder t, q; bind t: thread; reduce t;";
    let scaled = "split i by 2 -> b, r; bind b: grid; bind r: 2 warp 1..3; split j by 64 -> q, t; reorder t, q; bind t: thread; reduce t;";
    let second = "split i by 1 -> b, g; bind b: grid; bind g: warpgroup 1..2; split j by 128 -> q, t; reorder t, q; bind t: thread; reduce t;";
    let nested = "split i by 2 -> b, g; bind b: grid; bind g: warpgroup; split j by 64 -> q, p; split p by 32 -> w, t;
        reorder w, t, q; bind w: warp 1..3; bind t: thread; reduce w, t;";
    let inner = "split i by 4 -> b, p; split p by 2 -> v, w; bind b: grid; bind v, w: warp 3..7; split j by 20 -> q, t;
        reorder t, q; bind t: thread 7..27; reduce t;";
    let twice = "split i by 2 -> b, v; bind b: grid; split j by 96 -> q, r; split r by 32 -> w, t; reorder v, w, t, q;
        bind v, w: warp 1..7; bind t: thread; reduce w, t;";
    let fewer = "split i by 2 -> b, w; bind b: grid; bind w: warp 2..5; split j by 19 -> q, t; reorder t, q; bind t: thread; reduce t;";
    for ops in [warps, along, odd, four, groups, fives, scaled, second, nested, inner, twice, fewer] {
        tried(&sums(256, ops), SIZES, 2);
        // The first of several largest, and a fold, whose merge has no neutral state: the order and who has a value
        // count.
        let first = sums(256, ops).replace("(y: f32[M])", "(y: u32[M]) where N >= 1").replace("sum(", "argmax(");
        tried(&first, SIZES, 2);
    }
    let report = refused(&sums(256, &four.replace("6..10", "30..34")), Code::TW0708);
    assert!(report.contains("warp"), "{report}");
}

/// Blocks merge what the ranges of each have: the first thread of a block has no part in it.
#[test]
fn ranges_of_several_blocks_reduce() {
    let parts = "split r by 96 -> q, p; split p by 32 -> w, t; reorder w, t, q; bind w: warp 2..5; bind t: thread; reduce w, t;";
    let source = |split: &str| {
        format!(
            "kernel Total(x: u32[N]) -> (y: u32[1]) {{
                y[o] = sum(|j| x[j]);
                launch threads(256);
                schedule y {{ split j {split}; {parts} }}
            }}"
        )
    };
    let sizes: &[&[i64]] = &[&[1], &[500], &[3000]];
    for split in ["by 200 -> c, r; bind c: grid; reduce c by grid", "by 200 -> c, r; bind c: grid; reduce c by atomic"]
    {
        tried(&source(split), sizes, 2);
    }
    let clusters = source("into 4 -> c, r; bind c: cta; reduce c by cluster").replace("launch ", "launch cluster(4), ");
    tried(&clusters, sizes, 2);
}

/// Every barrier of what a range merges through memory is missed.
#[test]
fn barriers_of_ranges_are_needed() {
    let along = "bind i: grid; split j by 96 -> q, r; split r by 32 -> w, t; reorder w, t, q; bind w: warp 2..5; bind t: thread; reduce w, t;";
    let odd = "bind i: grid; split j by 17 -> q, t; reorder t, q; bind t: thread 3..20; reduce t;";
    for ops in [along, odd] {
        let kernel = tried(&sums(256, ops), SIZES, 1);
        let (all, needless) = crate::support::needless(&kernel, SIZES);
        assert!(!all.is_empty() && needless.is_empty(), "{} of {}: {needless:#?}", needless.len(), all.len());
    }
}

/// Groups of units inside others whose numbers do not divide theirs.
#[test]
fn lanes_of_groups_inside_warps() {
    for (units, of) in [(20, 19), (20, 17), (12, 11), (28, 27)] {
        let ops = format!(
            "split i by 8 -> b, p; split p by 1 -> w, r; bind b: grid; bind w: warp; bind r: {units} thread; split j by {of} -> q, t;
            reorder t, q; bind t: thread; reduce t;"
        );
        let source = sums(256, &ops);
        tried(&source, SIZES, 1);
        let first = source.replace("(y: f32[M])", "(y: u32[M]) where N >= 1").replace("sum(", "argmax(");
        tried(&first, SIZES, 1);
    }
}

/// Warps of a range run the iterations; the others are idle.
#[test]
fn ranges_of_units() {
    let warps = "split i by 3 -> b, w; bind b: grid; bind w: warp 2..5; split j by 32 -> q, t; bind t: thread;";
    let inclusive = "split i by 4 -> b, w; bind b: grid; bind w: warp 1..=4; split j by 20 -> q, t; bind t: thread;";
    let fewer = "split i by 2 -> b, w; bind b: grid; bind w: warp 2..5; split j by 32 -> q, t; bind t: thread;";
    let groups = "split i by 1 -> b, g; bind b: grid; bind g: warpgroup 1..2; split j by 128 -> q, t; bind t: thread;";
    let threads = "bind i: grid; split j by 17 -> q, t; bind t: thread 3..20;";
    let nested = "split i by 2 -> b, g; bind b: grid; bind g: warpgroup; split j by 64 -> q, p; split p by 32 -> w, t;
        bind w: warp 1..3; bind t: thread;";
    let scaled = "split i by 2 -> b, r; bind b: grid; bind r: 2 warp 1..3; split j by 64 -> q, t; bind t: thread;";
    let two = "split i by 6 -> b, p; split p by 2 -> v, w; bind b: grid; bind v, w: warp 1..7; split j by 32 -> q, t; bind t: thread;";
    for ops in [warps, inclusive, fewer, groups, threads, nested, scaled, two] {
        tried(&rows(256, "", ops), SIZES, 1);
    }
    // A block that is made for them ends with them.
    let kernel = tried(&rows(0, "", warps).replace("launch threads(0);", ""), &[&[7, 36]], 1);
    assert_eq!(kernel.info.expect("no error").launch.threads, 160);
}

/// Different warps compute a stage and read it.
#[test]
fn stages_of_different_warps() {
    let source = |place: &str, of_stage: &str, of_output: &str| {
        format!(
            "kernel Mirror(x: f32[M, 64]) -> (y: f32[M, 64]) {{
                h[i, j] = x[i, j] + 1.0;
                y[i, j] = h[i, j] * 2.0;
                launch threads(128);
                schedule y {{ bind i: grid; split j by 32 -> w, t; bind w: {of_output}; bind t: thread; }}
                schedule h in {place} at y.i {{ split j by 32 -> w, t; bind w: {of_stage}; bind t: thread; }}
            }}"
        )
    };
    let sizes: &[&[i64]] = &[&[1], &[5]];
    tried(&source("shared", "warp 0..2", "warp 2..4"), sizes, 2);
    tried(&source("shared", "warp 1..3", "warp 1..3"), sizes, 2);
    tried(&source("registers", "warp 1..3", "warp 1..3"), sizes, 2);
    refused(&source("registers", "warp 0..2", "warp 2..4"), Code::TW0707);
    refused(&source("registers", "warp 1..3", "warp"), Code::TW0707);
}

/// Each thread has what it needs, whichever threads they are.
#[test]
fn threads_of_parts_have_instances() {
    let source = |place: &str, ops: &str| {
        format!(
            "kernel Smooth(x: f32[M, N]) -> (y: f32[M, N - 2]) where N >= 3 {{
                h[i, j] = exp(x[i, j]);
                y[i, j] = h[i, j] + h[i, j + 2];
                launch threads(128);
                schedule y {{ {ops} }}
                schedule h in {place} per thread at y.q {{ }}
            }}"
        )
    };
    let range = "split i by 2 -> b, w; bind b: grid; bind w: warp 1..3; split j by 32 -> q, t; bind t: thread;";
    let group = "split i by 16 -> b, r; bind b: grid; bind r: 8 thread; split j by 8 -> q, t; bind t: thread;";
    for ops in [range, group] {
        for place in ["registers", "shared"] {
            tried(&source(place, ops), &[&[1, 4], &[7, 36], &[18, 100]], 1);
        }
    }
}

/// Each warp of a range has an instance of its own.
#[test]
fn instances_of_warps_of_a_range() {
    let source = |range: &str, place: &str| {
        format!(
            "kernel Centred(x: f32[M, N]) -> (y: f32[M, N]) {{
                s[i] = sum(|j| x[i, j]);
                y[i, j] = x[i, j] - s[i];
                launch threads(256);
                schedule y {{
                    split i by 6 -> b, p; split p by 3 -> k, w; split j by 32 -> q, t;
                    reorder b, w, k, q, t;
                    bind b: grid; bind w: warp{range}; bind t: thread;
                }}
                schedule s in {place} per warp at y.k {{ split j by 32 -> q, t; reorder t, q; bind t: thread; reduce t; }}
            }}"
        )
    };
    for range in ["", " 0..4", " 2..5", " 4..8"] {
        for place in ["registers", "shared"] {
            tried(&source(range, place), &[&[1, 4], &[7, 36], &[13, 100]], 2);
        }
    }
}

/// One lane of each warp, half warps, and what is inside them.
#[test]
fn units_of_the_kernels_own() {
    let column = "unit column { domain: [block / 32, 32], box: [block / 32, 1] }";
    let half = "unit half { domain: [block / 16, 16], box: [1, 16] }";
    let even = "unit every { domain: [block / 4, 4], box: [block / 4, 1] }";
    let lanes =
        "split i by 8 -> b, w; split j by 32 -> q, l; reorder b, q, l, w; bind b: grid; bind l: column; bind w: warp;";
    let some = "split i by 5 -> b, w; split j by 20 -> q, l; reorder b, q, l, w; bind b: grid; bind l: column; bind w: warp 1..6;";
    let halves = "split i by 12 -> b, h; bind b: grid; bind h: half; split j by 16 -> q, t; bind t: thread;";
    let inner = "split i by 4 -> b, e; bind b: grid; bind e: every; split j by 60 -> q, r; bind r: 4 thread;";
    let range = "split i by 2 -> b, e; bind b: grid; bind e: every 1..3; split j by 64 -> q, r; bind r: 4 thread;";
    for (unit, ops) in [(column, lanes), (column, some), (half, halves), (even, inner), (even, range)] {
        tried(&rows(256, unit, ops), SIZES, 1);
    }
    // Registers of the threads that hold them.
    let source = "kernel Twice(x: f32[M, N]) -> (y: f32[M, N]) {
        h[i, j] = x[i, j] + 1.0;
        y[i, j] = h[i, j] * h[i, j];
        launch threads(64);
        unit column { domain: [block / 32, 32], box: [block / 32, 1] }
        schedule y { split i by 2 -> b, w; split j by 32 -> q, l; reorder b, q, l, w; bind b: grid; bind l: column; bind w: warp; }
        schedule h in registers at y.q { like y; }
    }";
    tried(source, SIZES, 1);
}

/// Units of the kernel's own share results, near to each other or far apart.
#[test]
fn units_of_the_kernels_own_reduce() {
    let column = "unit column { domain: [block / 32, 32], box: [block / 32, 1] }";
    let half = "unit half { domain: [block / 16, 16], box: [1, 16] }";
    let even = "unit every { domain: [block / 4, 4], box: [block / 4, 1] }";
    let fold = "(y, p)[j] = fold(|i in 0..M| init (0i32, -1000i32), step (s, m) => (s + x[i, j], max(m, x[i, j])),
        merge ((s, m), (t, n)) => (s + t, max(m, n)));";
    let sizes: &[&[i64]] = &[&[1, 1], &[7, 36], &[300, 65], &[0, 3]];
    for (outputs, equation, sizes) in [
        ("(y: i32[N])", "y[j] = sum(|i in 0..M| x[i, j]);", sizes),
        ("(y: i32[N])", "y[j] = max(|i in 0..M| x[i, j]);", sizes),
        // Nothing has no place.
        ("(y: u32[N]) where M >= 1", "y[j] = argmax(|i in 0..M| x[i, j]);", &sizes[..3]),
        ("(y: i32[N], p: i32[N])", fold, sizes),
    ] {
        let source = |unit: &str, ops: &str| {
            format!(
                "kernel Columns(x: i32[M, N]) -> {outputs} {{
                    {equation}
                    launch threads(256);
                    {unit}
                    schedule y {{ {ops} }}
                }}"
            )
        };
        for (unit, ops) in [
            // The lanes of all warps: of each, the warps.
            (
                column,
                "split j by 32 -> b, l; bind b: grid; bind l: column; split i by 8 -> q, w; bind w: warp; reduce w;",
            ),
            (
                column,
                "split j by 32 -> b, l; bind b: grid; bind l: column; split i by 3 -> q, w; bind w: warp 2..5; reduce w;",
            ),
            // Halves of warps, and their threads.
            (
                half,
                "bind j: grid; split i by 256 -> q, r; split r by 16 -> h, t; bind h: half; bind t: thread; reduce h, t;",
            ),
            (
                half,
                "split j by 16 -> b, t; bind b: grid; split i by 16 -> q, h; reorder b, h, t, q; bind h: half; bind t: thread; reduce h;",
            ),
            // Of two, the outer one is the nearer one.
            (
                column,
                "bind j: grid; split i by 256 -> q, r; split r by 8 -> l, w; bind l: column; bind w: warp; reduce l, w;",
            ),
            // Every fourth thread.
            (
                even,
                "split j by 4 -> b, e; bind b: grid; bind e: every; split i by 64 -> q, r; bind r: 4 thread; reduce r;",
            ),
            (
                even,
                "split j by 60 -> b, r; bind b: grid; split i by 4 -> q, e; reorder b, e, r, q; bind e: every; bind r: 4 thread; reduce e;",
            ),
        ] {
            tried(&source(unit, ops), sizes, 1);
        }
        // Eight warps of one column are in eight warps.
        let by_warp = "split j by 32 -> b, l; bind b: grid; bind l: column; split i by 8 -> q, w; bind w: warp; reduce w by warp;";
        refused(&source(column, by_warp), Code::TW0708);
    }
}

/// Whole warpgroups where the block has a part of another one, which is idle.
#[test]
fn a_part_of_a_warpgroup_is_idle() {
    let groups = |n: u32| {
        format!("split i by {n} -> b, g; bind b: grid; bind g: warpgroup; split j by 128 -> q, t; bind t: thread;")
    };
    let warps = "split i by 4 -> b, p; split p by 4 -> g, w; bind b: grid; bind g: warpgroup; bind w: warp; split j by 32 -> q, t; bind t: thread;";
    for (threads, ops) in [(192, groups(1)), (416, groups(3)), (352, groups(2)), (160, warps.to_owned())] {
        tried(&rows(threads, "", &ops), SIZES, 1);
    }
    // Sums along the warpgroups that there are.
    let along = "bind i: grid; split j by 256 -> q, r; split r by 128 -> g, t; reorder g, t, q; bind g: warpgroup; bind t: thread; reduce g, t;";
    tried(&sums(320, along), SIZES, 1);
    let report = refused(&rows(192, "", &groups(2)), Code::TW0602);
    assert!(report.contains("2 warpgroups are needed, and the block has 1"), "{report}");
    refused(&rows(100, "", &groups(1)), Code::TW0603);
}

#[test]
fn more_iterations_than_units() {
    let of = |ops: &str| rows(256, "", &format!("{ops} split j by 32 -> q, t; bind t: thread;"));
    let report = refused(&of("split i by 4 -> b, w; bind b: grid; bind w: warp 2..5;"), Code::TW0602);
    assert!(report.contains("4 of `warp 2..5` are needed, and the block has 3"), "{report}");
    let report = refused(&of("split i by 4 -> b, w; bind b: grid; bind w: warp 6..10;"), Code::TW0602);
    assert!(report.contains("`warp 6..10` ends at 10, and the block has 8"), "{report}");
    assert!(report.contains("the last 4 that there are: `warp 4..8`"), "{report}");
    tried(&of("split i by 4 -> b, w; bind b: grid; bind w: warp 4..8;"), SIZES, 1);
    let report = refused(&of("split i by 5 -> b, w; bind b: grid; bind w: 2 warp;"), Code::TW0602);
    assert!(report.contains("5 of `2 warp` are needed, and the block has 4"), "{report}");
    let inner = "split i by 8 -> b, w; bind b: grid; bind w: warp; split j by 20 -> q, t; bind t: 2 thread;";
    refused(&rows(256, "", inner), Code::TW0602);
}

#[test]
fn units_that_are_not_there() {
    let quads = "unit quad { domain: [block / 16, 16], box: [2, 4] }";
    let bind = "split i by 8 -> b, p; bind b: grid; bind p: quad;";
    let report = refused(&rows(256, quads, bind), Code::TW0606);
    assert!(report.contains("narrows the threads around in 2 directions"), "{report}");
    let thirds = "unit third { domain: [3], box: [1] } unit half { domain: [2], box: [1] }";
    let bind = "split i by 3 -> b, p; bind b: grid; bind p: third; split j by 2 -> q, h; bind h: half;";
    let report = refused(&rows(384, thirds, bind), Code::TW0606);
    assert!(report.contains("groups of 3 and groups of 2 threads do not nest"), "{report}");
    let report = refused(&rows(256, thirds, bind), Code::TW0606);
    assert!(report.contains("extents of 3 threads do not divide 256"), "{report}");
    for definition in [
        "unit odd { domain: [block, 2], box: [1] }",
        "unit odd { domain: [block - 1], box: [1] }",
        "unit warp { domain: [block], box: [32] }",
        "unit odd { domain: [block], box: [1] } unit odd { domain: [block], box: [2] }",
    ] {
        refused(&rows(64, definition, "bind i: grid; split j by 64 -> q, t; bind t: thread;"), Code::TW0606);
    }
}

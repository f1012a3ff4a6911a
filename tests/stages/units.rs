//! Units of a block: axes that warpgroups, warps and threads are given, instances that they own, and reductions along
//! them. Every kernel runs for awkward sizes and gives what `reference()` does.

use crate::support::{finished, tried, turned};
use tilewright_cli::source::SourceFile;
use tilewright_compiler::diag::Code;

/// Compiles and tries it; the text of its first entry point.
fn check(source: &str, sizes: &[&[i64]]) -> String {
    tried(source, sizes, 1).entries[0].kernel.to_string()
}

/// That a kernel is refused with these codes.
fn refused(source: &str, codes: &[Code]) -> String {
    match finished(source) {
        Ok(_) => panic!("accepted:\n{source}"),
        Err((found, report)) => {
            assert_eq!(found, codes, "{source}\n{report}");
            report
        }
    }
}

fn count(text: &str, what: &str) -> usize {
    text.lines().filter(|line| line.trim() == what).count()
}

const SIZES: &[&[i64]] = &[&[1, 4], &[7, 36], &[33, 128], &[9, 1000]];

/// Rows of warpgroups: by their threads, by their warps, by some of their warps, by blocks with more of them.
#[test]
fn axes_are_given_to_warpgroups() {
    let rows = |threads: u32, ops: &str| {
        format!(
            "kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) {{
                y[i, j] = x[i, j] * 2.0;
                launch threads({threads});
                schedule y {{ {ops} }}
            }}"
        )
    };
    let by_threads = "split i by 3 -> b, g; bind b: grid; bind g: warpgroup; split j by 128 -> q, t; bind t: thread;";
    let by_warps = "split i by 6 -> b, r; split r by 3 -> g, w; bind b: grid; bind g: warpgroup; bind w: warp;
        split j by 32 -> q, t; bind t: thread;";
    let two = "split i by 4 -> b, r; split r by 2 -> g, h; bind b: grid; bind g, h: warpgroup; split j by 100 -> q, t; bind t: thread;";
    for (threads, ops) in [(384, by_threads), (512, by_threads), (256, by_warps), (512, by_warps), (512, two)] {
        check(&rows(threads, ops), SIZES);
    }
    // The threads of a warpgroup are one number for vectors, too.
    check(
        "kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
            y[i, j] = x[i, j] * 2.0;
            schedule y {
                split i by 2 -> b, g; bind b: grid; bind g: warpgroup;
                split j by 4 -> jq, v; split jq by 128 -> q, t; bind t: thread; vectorize v;
            }
        }",
        SIZES,
    );
}

/// The block has whole warpgroups without a word, whatever other stages need.
#[test]
fn blocks_have_whole_units() {
    let source = "kernel Two(x: f32[M, N]) -> (y: f32[M, N]) where N <= 150 {
        h[i, j] = x[i, j] + 1.0;
        y[i, j] = h[i, j] + h[i, N - 1 - j];
        schedule y { split i by 1 -> b, g; bind b: grid; split j by 150 -> q, t; bind t: thread; }
        schedule h in shared at y.b { bind i: warpgroup; split j by 100 -> q, t; bind t: thread; }
    }";
    let kernel = tried(source, &[&[1, 1], &[3, 100], &[2, 150]], 2);
    assert_eq!(kernel.info.expect("no error").launch.threads, 256);
}

/// What lanes have that no axis tells apart, all of them must have.
#[test]
fn lanes_that_nothing_tells_apart() {
    let source = |place: &str| {
        format!(
            "kernel First(x: f32[M, 32]) -> (y: f32[M, 32]) {{
                h[i, j] = x[i, j] * 2.0;
                g[i] = h[i, 0];
                y[i, j] = h[i, j] + g[i];
                launch threads(64);
                schedule y {{ split i by 2 -> b, w; bind b: grid; bind w: warp; bind j: thread; }}
                schedule g in registers at y.b {{ like y; }}
                schedule h in {place} at y.b {{ like y; }}
            }}"
        )
    };
    let report = refused(&source("registers"), &[Code::TW0707]);
    assert!(report.contains("thread 31 reads"), "{report}");
    // A thread's own stage stands in its loops.
    let own = |read: &str| {
        format!(
            "kernel Own(x: f32[M, 64]) -> (y: f32[M, 64]) {{
                h[i, j] = x[i, j] * 2.0;
                g[i, j] = {read};
                y[i, j] = h[i, j] + g[i, j];
                launch threads(64);
                schedule y {{ bind i: grid; bind j: thread; }}
                schedule g in registers per thread at y.j {{ }}
                schedule h in registers at y.i {{ like y; }}
            }}"
        )
    };
    check(&own("h[i, j] * 3.0"), &[&[1], &[5]]);
    refused(&own("h[i, 63 - j]"), &[Code::TW0707]);
    // Outside of `x` an `or` stands for what nobody holds: that is no case.
    let report = refused(
        "kernel Outside(x: i32[N]) -> (y: i32[2, N]) where N <= 32, N >= 1 {
            y[k, i] = x[i] + (x[i + N] or 4);
            schedule y { bind i: thread; }
            stage xs[i] = x in registers at y.k { bind i: thread; }
        }",
        &[Code::TW0990, Code::TW0707],
    );
    assert!(!report.contains("counterexample"), "{report}");
}

/// Instances inside instances of units: those that have no work come to none, however far outside that is decided. They
/// would read past the end of what the block holds.
#[test]
fn idle_units_have_no_instances_inside_instances() {
    let warps = "split i by 2 -> io, u; split j by 32 -> jo, t; reorder io, u, jo, t; bind u: warp; bind t: thread; bind io: grid;";
    let groups = "split i by 2 -> io, g; split j by 32 -> jo, t; reorder io, g, jo, t; bind g: warpgroup; bind t: thread; bind io: grid;";
    let both = "split i by 4 -> io, p; split p by 2 -> g, u; split j by 32 -> jo, t; reorder io, g, u, jo, t;
        bind g: warpgroup; bind u: warp; bind t: thread; bind io: grid;";
    let part = "split j by 64 -> jo, r; split r by 32 -> v, t; bind v: warp; bind t: thread;";
    let line = "split j by 32 -> jo, t; bind t: thread;";
    let rows = format!("bind i: warp; {line}");
    let range = warps.replace("u: warp", "u: warp 1..3");
    for (threads, output, (outer, of_outer), (inner, of_inner)) in [
        (96, warps, ("warp", line), ("warp", line)),
        (96, warps, ("warp", line), ("thread", "")),
        (160, &range, ("warp", line), ("warp", line)),
        (384, groups, ("warpgroup", line), ("warpgroup", line)),
        (384, groups, ("warpgroup", part), ("warp", line)),
        (384, both, ("warpgroup", &rows), ("warp", line)),
        (384, both, ("warp", line), ("warp", line)),
    ] {
        for place in ["registers", "shared"] {
            let source = format!(
                "kernel Mirror(x: f32[M, N]) -> (y: f32[M, N]) where N >= 1, N <= 64 {{
                    g[i, j] = x[i, j] * 2.0;
                    h[i, j] = g[i, j] + 1.0;
                    y[i, j] = h[i, j] + h[i, N - 1 - j];
                    launch threads({threads});
                    schedule y {{ {output} }}
                    schedule h in shared per {outer} at y.io {{ {of_outer} }}
                    schedule g in {place} per {inner} at h.jo {{ {of_inner} }}
                    stage xs[i, j] = x in shared at y.io {{ merge i, j -> p; split p by 64 -> q, t; bind t: thread; }}
                }}"
            );
            check(&source, &[&[1, 4], &[7, 36], &[9, 64]]);
        }
    }
    // Two outputs share the place, and what is between the stages is read by both.
    let rows = "split i by 10 -> io, ir; split ir by 2 -> ii, u; split j by 32 -> jo, t; reorder io, ii, u, jo, t;
        bind u: warp; bind t: thread; bind io: grid;";
    let source = format!(
        "kernel Beside(x: f32[H, W]) -> (y: f32[H - 8, W - 8], z: f32[H - 8, W - 8]) where H >= 9, W >= 9, W <= 48 {{
            a[i, j] = x[i + 2, j + 1] * 2.0 + x[i + 2, j];
            b[i, j] = a[i, j] * 0.5;
            c[i, j] = b[i + 1, j + 1] * 0.5;
            y[i, j] = a[i + 1, j + 1] + c[i, j + 1];
            z[i, j] = c[i, j + 1] - a[i + 1, j + 1];
            launch threads(96);
            schedule y {{ {rows} }}
            schedule z at y.io {{ {rows} }}
            schedule c in shared per warp at y.io {{ {line} }}
            schedule b in shared per warp at c.jo {{ {line} }}
            stage xs[i, j] = x in shared at y.io {{ merge i, j -> p; split p by 64 -> q, t; bind t: thread; }}
        }}"
    );
    check(&source, &[&[9, 9], &[35, 35], &[20, 48]]);
}

/// Sums and places along warpgroups, with what is inside them, in order.
#[test]
fn reductions_along_warpgroups() {
    let sizes: &[&[i64]] = &[&[1, 1], &[3, 31], &[2, 700], &[1, 2100]];
    let best = |ops: &str| {
        format!(
            "kernel Best(x: f32[M, N]) -> (y: u32[M]) where N >= 1 {{
                y[i] = argmax(|j| x[i, j]);
                launch threads(512);
                schedule y {{ bind i: grid; {ops} }}
            }}"
        )
    };
    check(
        &best(
            "split j by 512 -> q, r; split r by 128 -> g, t; reorder g, t, q; bind g: warpgroup; bind t: thread; reduce g, t;",
        ),
        sizes,
    );
    check(
        &best(
            "split j by 288 -> q, r; split r by 96 -> g, s; split s by 32 -> w, t; reorder g, w, t, q; bind g: warpgroup; bind w: warp; bind t: thread; reduce g, w, t;",
        ),
        sizes,
    );
    // Columns of threads, rows of warpgroups.
    check(
        "kernel Columns(x: f32[M, N]) -> (y: f32[N]) {
            y[j] = sum(|i| x[i, j]);
            launch threads(512);
            schedule y {
                split j by 128 -> b, t; split i by 4 -> r, g; reorder b, g, t, r;
                bind b: grid; bind g: warpgroup; bind t: thread; reduce g;
            }
        }",
        &[&[1, 1], &[7, 130], &[30, 257]],
    );
    // Each warpgroup for itself: they do not wait for each other.
    let rows = |threads: u32| {
        let groups = threads / 128;
        let source = format!(
            "kernel Softmax(x: f32[M, N]) -> (y: f32[M, N]) where N <= 2048 {{
                m[i] = max(|j| x[i, j]);
                e[i, j] = exp(x[i, j] - m[i]);
                s[i] = sum(|j| e[i, j]);
                y[i, j] = e[i, j] / s[i];
                launch threads({threads});
                schedule y {{
                    split i by {groups} -> b, g; bind b: grid; bind g: warpgroup; split j by 128 -> q, t; bind t: thread; unroll q;
                }}
                stage xr[i, j] = x in registers at y.b {{ like y; }}
                schedule e in registers at y.b {{ like y; }}
                schedule m in registers at y.b {{ like y; reduce t; }}
                schedule s in registers at y.b {{ like y; reduce t; }}
            }}"
        );
        let text = check(&source, SIZES);
        (count(&text, "sync warpgroup"), count(&text, "sync"))
    };
    assert_eq!(rows(384), (2, 0));
    // Of one warpgroup the barrier of the block is the one.
    assert_eq!(rows(128), (0, 2));
}

/// An instance for each warpgroup, in registers and in shared memory, beside warpgroups without work.
#[test]
fn warpgroups_have_instances() {
    let source = |place: &str, xs: &str| {
        format!(
            "kernel Softmax(x: f32[M, N]) -> (lse: f32[M], y: f32[M, N]) where N <= 1024 {{
                m[i] = max(|j| x[i, j]);
                s[i] = sum(|j| exp(x[i, j] - m[i]));
                lse[i] = m[i] + log(s[i]);
                y[i, j] = exp(x[i, j] - m[i]) / s[i];
                launch threads(512);
                schedule lse at y.k {{ like y; }}
                schedule y {{
                    split i by 6 -> b, r; split r by 3 -> k, g; reorder b, k, g, j;
                    bind b: grid; bind g: warpgroup; split j by 128 -> q, t; bind t: thread;
                }}
                stage xs[i, j] = x in shared per warpgroup at y.k {xs} {{ split j by 128 -> q, t; bind t: thread; }}
                schedule m in registers per warpgroup at y.k {{ split j by 128 -> q, t; bind t: thread; reduce t; }}
                schedule s in {place} per warpgroup at y.k {{
                    split j by 128 -> q, p; split p by 32 -> w, t; bind w: warp; bind t: thread; reduce w, t;
                }}
            }}"
        )
    };
    let text = check(&source("shared", ""), SIZES);
    assert!(count(&text, "sync warpgroup") > 0 && count(&text, "sync") == 0, "{text}");
    check(&source("registers", ""), SIZES);
    check(&source("shared", "ring(2)"), SIZES);
    check(&source("registers", "ring(3) via cp_async"), SIZES);
    // At the axis that warpgroups are given; a model whose warpgroups are one iteration; more warpgroups than work.
    let sizes: &[&[i64]] = &[&[1, 4], &[7, 36], &[33, 129]];
    for place in [
        "split j by 128 -> q, t; bind t: thread;",
        "merge i, j -> f; split f by 128 -> q, t; bind t: thread;",
        "split j by 96 -> q, r; split r by 32 -> w, t; bind w: warp; bind t: thread;",
        "like y;",
    ] {
        for threads in [256, 384] {
            check(&turned(("warpgroup", 128), place, threads), sizes);
        }
    }
}

/// Instances of warps and threads inside those of warpgroups, with readers of each.
#[test]
fn units_own_instances_inside_each_other() {
    let source = |r: &str, q: &str, p: &str| {
        format!(
            "kernel Nest(x: f32[M, N]) -> (y: f32[M, N]) where N <= 300 {{
                h[i, j] = x[i, j] * 2.0;
                r[i] = max(|j| h[i, j]);
                p[i, j] = h[i, j] - r[i];
                y[i, j] = p[i, j] + p[i, N - 1 - j];
                launch threads(256);
                schedule y {{
                    split i by 16 -> b, a; split a by 8 -> k, c; split c by 4 -> g, w; reorder b, k, g, w, j;
                    bind b: grid; bind g: warpgroup; bind w: warp; split j by 32 -> q, t; bind t: thread;
                }}
                schedule p in {p} at y.k {{ split j by 32 -> q, t; bind t: thread; }}
                schedule r in {r} at y.k {{ split j by 32 -> q, t; bind t: thread; reduce t; }}
                schedule h in {q} at y.k {{ split i by 1 -> w, l; bind w: warp; split j by 32 -> q, t; bind t: thread; }}
            }}"
        )
    };
    let sizes: &[&[i64]] = &[&[1, 1], &[7, 36], &[33, 129]];
    check(&source("registers per warp", "shared per warpgroup", "shared per warp"), sizes);
    check(&source("shared per warp", "shared", "shared per warp"), sizes);
    check(
        "kernel Inside(x: f32[M, N]) -> (y: f32[M, N]) where N <= 300 {
        h[i, j] = x[i, j] * 2.0;
        g[i, j] = h[i, j] + h[i, N - 1 - j];
        d[i, j] = g[i, j] * g[i, j];
        y[i, j] = d[i, j] + g[i, N - 1 - j];
        launch threads(384);
        schedule y {
            split i by 8 -> b, a; split a by 4 -> u, k; reorder b, k, u, j;
            bind b: grid; bind u: warpgroup; split j by 128 -> q, t; bind t: thread;
        }
        schedule d in registers per thread at y.q { }
        schedule g in shared per warpgroup at y.k { split j by 128 -> q, p; split p by 32 -> w, t; bind w: warp; bind t: thread; }
        schedule h in shared per warpgroup at y.k { split j by 100 -> q, t; bind t: thread; }
    }",
        sizes,
    );
}

/// Stages that divide the threads in different ways agree on who has an element, or do not.
#[test]
fn threads_of_warpgroups_are_threads_of_the_block() {
    let source = |ops: &str, index: &str| {
        format!(
            "kernel Maps(x: f32[M, 256]) -> (y: f32[M, 256]) {{
                h[i, j] = x[i, j] * 2.0;
                y[i, j] = h[i, {index}] + 1.0;
                launch threads(256);
                schedule y {{ bind i: grid; bind j: thread; }}
                schedule h in registers at y.i {{ {ops} }}
            }}"
        )
    };
    let sizes: &[&[i64]] = &[&[1], &[3]];
    for ops in [
        "split j by 128 -> g, t; bind g: warpgroup; bind t: thread;",
        "split j by 128 -> g, r; split r by 32 -> w, t; bind g: warpgroup; bind w: warp; bind t: thread;",
        "split j by 32 -> w, t; bind w: warp; bind t: thread;",
    ] {
        check(&source(ops, "j"), sizes);
        refused(&source(ops, "255 - j"), &[Code::TW0707]);
    }
    // The other way around, and with warps of the warpgroup in another order.
    refused(&source("split j by 128 -> t, g; reorder g, t; bind g: warpgroup; bind t: thread;", "j"), &[Code::TW0602]);
    let other = "split j by 64 -> w, r; split r by 2 -> t, g; reorder g, w, t; bind g: warpgroup; bind w: warp; bind t: thread;";
    refused(&source(other, "j"), &[Code::TW0707]);
}

/// Text of a kernel, and what it makes of one of 256 numbers.
type Map = (&'static str, fn(i64) -> i64);

/// Ways to give 256 elements to the threads of a block: the thread that has an element.
const DIVISIONS: [Map; 9] = [
    ("bind j: thread;", |j| j),
    ("split j by 128 -> g, t; bind g: warpgroup; bind t: thread;", |j| j),
    ("split j by 128 -> g, r; split r by 32 -> w, t; bind g: warpgroup; bind w: warp; bind t: thread;", |j| j),
    ("split j by 32 -> w, t; bind w: warp; bind t: thread;", |j| j),
    ("split j by 2 -> t, g; reorder g, t; bind g: warpgroup; bind t: thread;", |j| j % 2 * 128 + j / 2),
    (
        "split j by 64 -> w, r; split r by 2 -> t, g; reorder g, w, t; bind g: warpgroup; bind w: warp; bind t: thread;",
        |j| j % 2 * 128 + j / 64 * 32 + j % 64 / 2,
    ),
    ("split j by 64 -> w, r; split r by 2 -> t, g; reorder g, t, w; bind g: warpgroup; bind w, t: thread;", |j| {
        j % 2 * 128 + j % 64 / 2 * 4 + j / 64
    }),
    ("split j by 8 -> t, w; reorder w, t; bind w: warp; bind t: thread;", |j| j % 8 * 32 + j / 8),
    ("split j by 16 -> u, v; reorder v, u; bind u, v: thread;", |j| j % 16 * 16 + j / 16),
];

/// Every division as the reader of every other one, at all elements in several orders: accepted are those where each
/// thread holds what it reads.
#[test]
fn divisions_agree_or_do_not() {
    let indices: [Map; 5] = [
        ("j", |j| j),
        ("255 - j", |j| 255 - j),
        ("(j + 128) % 256", |j| (j + 128) % 256),
        ("j % 8 * 32 + j / 8", |j| j % 8 * 32 + j / 8),
        ("j % 2 * 128 + j / 2", |j| j % 2 * 128 + j / 2),
    ];
    let mut same = 0;
    for (held, of_held) in DIVISIONS {
        for (reads, of_reader) in DIVISIONS {
            for (index, at) in indices {
                let source = format!(
                    "kernel Divided(x: f32[M, 256]) -> (y: f32[M, 256]) {{
                        h[i, j] = x[i, j] * 2.0;
                        y[i, j] = h[i, {index}] + 1.0;
                        launch threads(256);
                        schedule y {{ bind i: grid; {reads} }}
                        schedule h in registers at y.i {{ {held} }}
                    }}"
                );
                if (0..256).all(|j| of_reader(j) == of_held(at(j))) {
                    same += 1;
                    check(&source, &[&[2]]);
                } else {
                    refused(&source, &[Code::TW0707]);
                }
            }
        }
    }
    assert!(same >= 4 * 4 + 2 * 2 + 3, "four divisions are one, and so are two others");
}

#[test]
fn refusals() {
    let source = |threads: &str, ops: &str| {
        format!(
            "kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) {{
                y[i, j] = x[i, j] * 2.0;
                {threads}
                schedule y {{ {ops} }}
            }}"
        )
    };
    let units = "split i by 2 -> b, g; bind b: grid; bind g: warpgroup;";
    let launch = "launch threads(256);";
    refused(&source(launch, units), &[Code::TW0601]);
    refused(&source(launch, &format!("{units} split j by 4 -> q, w; bind w: warp;")), &[Code::TW0601]);
    let lanes = "split j by 32 -> q, t; bind t: thread;";
    refused(&source("launch threads(200);", &format!("{units} {lanes}")), &[Code::TW0603]);
    refused(&source("launch threads(192);", &format!("{units} {lanes}")), &[Code::TW0602]);
    refused(&source("launch threads(128);", &format!("{units} {lanes}")), &[Code::TW0602]);
    refused(&source(launch, &format!("{units} split j by 129 -> q, t; bind t: thread;")), &[Code::TW0602]);
    let warps = "split j by 160 -> q, p; split p by 32 -> w, t; bind w: warp; bind t: thread;";
    refused(&source(launch, &format!("{units} {warps}")), &[Code::TW0602]);
    refused(
        &source(
            launch,
            "split i by 2 -> b, g; split j by 32 -> q, t; bind b: grid; reorder b, q, t, g; bind g: warpgroup; bind t: thread;",
        ),
        &[Code::TW0604],
    );
    refused(
        &source(
            launch,
            "split i by 4 -> b, r; split r by 2 -> w, g; bind b: grid; bind g: warpgroup; bind w: warp; split j by 32 -> q, t; bind t: thread;",
        ),
        &[Code::TW0604],
    );
    refused(
        &source("", "split i by 9 -> b, g; bind b: grid; bind g: warpgroup; split j by 32 -> q, t; bind t: thread;"),
        &[Code::TW0602],
    );
    let inner = |at: &str, ops: &str, outer: &str| {
        format!(
            "kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) where N <= 128 {{
                h[i, j] = x[i, j] * 2.0;
                y[i, j] = h[i, N - 1 - j];
                launch threads(256);
                schedule y {{ {outer} }}
                schedule h in shared per warpgroup at {at} {{ {ops} }}
            }}"
        )
    };
    let outer = format!("{units} {lanes}");
    // One instance for each, and nobody else has a part of it.
    refused(&inner("y.b", "bind i: warpgroup; bind j: thread;", &outer), &[Code::TW0605]);
    refused(&inner("y.t", "bind j: thread;", &outer), &[Code::TW0706]);
    let of_warps = "split i by 2 -> b, w; bind b: grid; bind w: warp; split j by 32 -> q, t; bind t: thread;";
    let report = refused(&inner("y.b", "bind j: thread;", of_warps), &[Code::TW0706]);
    assert!(report.contains("no axis around it is bound to warpgroups"), "{report}");
}

/// What a warp has in common goes to one of its lanes, as TW0601 says; threads that are idle there have work in the
/// stages that it reads.
#[test]
fn an_element_is_left_to_one_lane() {
    let source = |bound: &str, place: &str| {
        format!(
            "kernel Lse(x: f32[M, N]) -> (y: f32[M]) where N >= 1 {{
                m[i] = max(|j| x[i, j]);
                s[i] = sum(|j| exp(x[i, j] - m[i]));
                y[i] = m[i] + log(s[i]);
                launch threads(128);
                schedule y {{ split i by 4 -> b, w; bind b: grid; {bound} }}
                schedule m in registers per warp at {place} {{ split j by 32 -> q, t; bind t: thread; reduce t; }}
                schedule s in registers per warp at {place} {{ split j by 32 -> q, t; bind t: thread; reduce t; }}
            }}"
        )
    };
    let report = refused(&source("bind w: warp;", "y.w"), &[Code::TW0601]);
    let edit = "split w by 1 -> u, t; bind u: warp; bind t: thread;";
    assert!(report.contains(edit), "{report}");
    let source = source(edit, "y.u");
    check(&source, &[&[1, 1], &[7, 31], &[33, 100]]);
    let file = SourceFile::parse("k.rs", &format!("tilewright::schedule! {{ {source} }}")).unwrap();
    let findings = file.findings();
    assert_eq!((findings.errors, findings.warnings), (0, 0), "{}", findings.text);
    // Nobody uses the other half of these.
    let idle = source.replace("threads(128)", "threads(256)");
    let file = SourceFile::parse("k.rs", &format!("tilewright::schedule! {{ {idle} }}")).unwrap();
    assert!(file.findings().text.contains("TW0690"), "{}", file.findings().text);
}

/// Units past the end of an axis of the reduction have no terms, and come to instances before these all the same:
/// what they hold there is not computed.
#[test]
fn units_without_terms_have_no_instances() {
    let sizes: &[&[i64]] = &[&[1, 1], &[3, 3], &[2, 31], &[5, 32], &[4, 0]];
    for place in ["registers per thread", "shared per thread", "global per thread"] {
        let source = format!(
            "kernel K(x: f32[M, N]) -> (y: f32[M]) where N <= 32 {{
                e[i, j] = exp(x[i, j]);
                y[i] = sum(|j| e[i, j]);
                schedule y {{ bind j: thread; reduce j; }}
                schedule e in {place} at y.i {{ }}
            }}"
        );
        check(&source, sizes);
    }
    // Blocks of a cluster, and a stage in the loops of another one.
    check(
        "kernel K(x: f32[M, N]) -> (y: f32[M]) where N <= 4 {
            y[i] = sum(|j in 0..N| x[i, j]);
            launch cluster(4);
            schedule y { bind i: grid; split j by 1 -> c, u; bind c: cta; bind u: thread; reduce c; reduce u; }
            stage xr[i, j] = x in registers per thread at y.i { }
        }",
        &[&[1, 1], &[3, 3], &[2, 4], &[4, 0]],
    );
    // Outside of the terms these units have a part in the result: there they would read what nobody computed.
    let result = |value: &str, stage: &str| {
        format!(
            "kernel K(x: f32[M, N + 1], v: f32[N]) -> (y: f32[M, 128]) where N <= 4 {{
                m[i] = sum(|j in 0..N| x[i, j] * v[j]){value};
                y[i, q] = m[i];
                schedule y {{ bind i: grid; bind q: thread; }}
                schedule m in registers at y.i {{ bind j: warp; reduce j; }}
                stage xs[i, j] = x in {stage}
            }}"
        )
    };
    let sizes: &[&[i64]] = &[&[1, 1], &[3, 3], &[2, 4], &[4, 0]];
    check(&result("", "shared per warp at m.i { bind j: thread; }"), sizes);
    check(&result(" * x[i, N]", "shared at m.i { bind j: thread; }"), sizes);
    let report = refused(&result(" * x[i, N]", "shared per warp at m.i { bind j: thread; }"), &[Code::TW0706]);
    assert!(report.contains("a warp without an iteration of `j` has no instance"), "{report}");
    assert!(report.contains("leave `per warp` out"), "{report}");
    refused(&result(" * x[i, N]", "registers per thread at m.i { }"), &[Code::TW0706]);
}

/// What is wrong with a model is said of the model; its edit mends both.
#[test]
fn an_order_of_binds_is_mended_where_it_is() {
    let source = |more: &str| {
        format!(
            "kernel K(x: f32[M, N]) -> (y: f32[M, N]) {{
                y[i, j] = x[i, j] * 2.0;
                schedule y {{
                    split i by 4 -> io, ii; split j by 32 -> jo, ji; reorder io, jo, ji, ii;
                    bind io: grid; bind ii: warp; bind ji: thread; {more}
                }}
                stage xr[i, j] = x in registers at y.jo {{ like y; }}
            }}"
        )
    };
    let report = refused(&source(""), &[Code::TW0604]);
    assert!(report.contains("bind ji: thread"), "{report}");
    check(&source("reorder ii, ji;"), &[&[5, 40]]);
}

/// A place that is refused is not proposed, and a stage of several boxes is no other reader.
#[test]
fn refused_places_are_not_proposed() {
    let source = |at: &str| {
        format!(
            "kernel K(x: f32[M]) -> (y: f32[M]) {{
                u[i] = x[i] + 1.0;
                h[i] = u[i] * 2.0;
                y[i] = h[i] + h[M - 1 - i];
                schedule y {{ split i by 32 -> b, t; bind b: grid; bind t: thread; }}
                schedule h in shared at y.b {{ split i by 32 -> r, t; bind t: thread; }}
                schedule u in shared {at} {{ }}
            }}"
        )
    };
    let report = refused(&source("at h.r"), &[Code::TW0706]);
    assert!(report.contains("`h` keeps several boxes"), "{report}");
    let report = refused(&source("at y.b"), &[Code::TW0706]);
    assert!(!report.contains("`at y.b`"), "{report}");
}

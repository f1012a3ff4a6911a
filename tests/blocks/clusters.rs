//! Clusters: axes that are given to the blocks of one, and what these combine. Every kernel runs for awkward sizes and
//! gives what `reference()` does, under several seeds.

use crate::support::{compiled, finished, outer, tried};
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::StatementKind;
use tilewright_compiler::proof::{Launch, Verdict, check};

/// Rows divided among the blocks of a cluster, by those among threads.
fn rows(sum: &str, cluster: u32, threads: u32, more: &str) -> String {
    format!(
        "kernel K(x: f32[M, N]) -> (y: f32[M]) {{
            y[i] = {sum};
            launch cluster({cluster}), threads({threads});
            schedule y {{
                bind i: grid; split j into {cluster} -> c, jc; bind c: cta;
                split jc by {threads} -> r, t; bind t: thread; reduce t; {more}
            }}
        }}"
    )
}

const SIZES: &[&[i64]] = &[&[1, 1], &[2, 7], &[3, 33], &[2, 1000], &[0, 5], &[2, 0]];

#[test]
fn blocks_of_a_cluster_divide_elements() {
    let source = "kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j] + y[i, j];
        launch threads(64);
        schedule z { bind i: grid; split j into 4 -> c, r; bind c: cta; split r by 64 -> q, t; bind t: thread; }
    }";
    let kernel = tried(source, SIZES, 3);
    let info = kernel.info.as_ref().expect("no error");
    assert_eq!(info.launch.cluster, 4);
    assert!(info.ptx.text.contains(".reqnctapercluster 4, 1, 1"), "{}", info.ptx.text);
}

#[test]
fn blocks_of_a_cluster_combine_reductions() {
    for (sum, cluster, threads) in [
        ("sum(|j| x[i, j])", 2, 32),
        ("max(|j| abs(x[i, j]))", 4, 64),
        ("sum(|j| x[i, j] * x[i, j])", 8, 96),
        ("sum(|j in 0..N| if j % 3 == 1 { x[i, j] } else { 0.0 })", 4, 1),
    ] {
        tried(&rows(sum, cluster, threads, "reduce c by cluster;"), SIZES, 3);
    }
    // `reduce c` alone reaches as far as what runs `c`.
    let (short, long) =
        (rows("sum(|j| x[i, j])", 2, 32, "reduce c;"), rows("sum(|j| x[i, j])", 2, 32, "reduce c by cluster;"));
    assert_eq!(compiled(&short).map(|k| k.ptx.text.clone()).ok(), compiled(&long).map(|k| k.ptx.text.clone()).ok());
}

#[test]
fn states_of_several_values_are_combined() {
    let source = "kernel Moments(x: f32[M, N]) -> (mean: f32[M], m2: f32[M], n: f32[M]) {
        (mean, m2, n)[i] = fold(|j| init (0.0f32, 0.0f32, 0.0f32),
            step (m, s, c) => (m + (x[i, j] - m) / (c + 1.0f32), s + (x[i, j] - m) * (x[i, j] - m) * (c / (c + 1.0f32)), c + 1.0f32),
            merge ((m, s, c), (p, q, d)) => (
                if c + d > 0.0f32 { m + (p - m) * (d / (c + d)) } else { 0.0f32 },
                if c + d > 0.0f32 { s + q + (p - m) * (p - m) * (c * d / (c + d)) } else { 0.0f32 },
                c + d));
        launch cluster(2), threads(64);
        schedule mean { bind i: grid; split j into 2 -> c, r; bind c: cta; split r by 64 -> q, t; bind t: thread; reduce t; reduce c; }
    }";
    tried(source, &[&[1, 1], &[2, 7], &[3, 33], &[2, 1000]], 3);
    let argmax = "kernel Best(x: f32[M, N]) -> (y: u32[M]) where N >= 1 {
        y[i] = argmax(|j| x[i, j]);
        launch cluster(4), threads(32);
        schedule y { bind i: grid; split j into 4 -> c, r; bind c: cta; split r by 32 -> q, t; bind t: thread; reduce t; reduce c; }
    }";
    tried(argmax, &[&[1, 1], &[2, 7], &[3, 33], &[2, 1000]], 3);
}

#[test]
fn stages_of_a_cluster_are_read_in_every_block() {
    let norm = |inner: &str| {
        format!(
            "kernel Norm(x: f32[M, N], w: f32[N]) -> (y: f32[M, N]) where N <= 2048 {{
                s[i] = sum(|j| x[i, j] * x[i, j]);
                y[i, j] = x[i, j] * rsqrt(s[i] / (N as f32) + 1e-5) * w[j];
                launch cluster(4), threads(64);
                schedule y {{ bind i: grid; split j into 4 -> c, jc; bind c: cta; split jc by 64 -> r, t; bind t: thread; unroll r; }}
                {inner}
            }}"
        )
    };
    let sum = "schedule s in registers at y.i { like y; reduce t; reduce c; }";
    tried(&norm(sum), SIZES, 3);
    // What a block reads stays in its registers, or in its memory.
    let (registers, shared) = (
        "stage xr[i, j] = x in registers at y.i { like y; }",
        "stage xs[i, j] = x in shared at y.i { split j by 64 -> r, t; bind t: thread; }",
    );
    tried(&norm(&format!("{sum} {registers}")), SIZES, 3);
    tried(&norm(&format!("{sum} {shared}")), SIZES, 3);
}

#[test]
fn several_rows_and_reductions_follow_each_other() {
    let softmax = "kernel Softmax(x: f32[M, N]) -> (y: f32[M, N]) where N <= 1024 {
        m[i] = max(|j| x[i, j]);
        e[i, j] = exp(x[i, j] - m[i]);
        s[i] = sum(|j| e[i, j]);
        y[i, j] = e[i, j] / s[i];
        launch cluster(2), threads(64);
        schedule y { split i by 3 -> b, k; bind b: grid; split j into 2 -> c, jc; bind c: cta; split jc by 64 -> r, t; bind t: thread; unroll r; }
        schedule m in registers at y.k { like y; reduce t; reduce c; }
        schedule e in registers at y.k { like y; }
        schedule s in registers at y.k { like y; reduce t; reduce c; }
    }";
    tried(softmax, &[&[1, 1], &[4, 7], &[7, 33], &[2, 1000], &[3, 0]], 3);
}

#[test]
fn results_and_terms_are_divided_by_the_blocks_of_one_cluster() {
    let source = "kernel Columns(x: f32[M, N]) -> (y: f32[N]) {
        y[j] = sum(|i| x[i, j]);
        launch cluster(4), threads(64);
        schedule y {
            split j by 64 -> b, t; split b into 2 -> c, g; bind g: grid; bind c: cta; bind t: thread;
            split i into 2 -> d, r; bind d: cta; reduce d;
        }
    }";
    tried(source, &[&[1, 1], &[7, 65], &[33, 300], &[0, 5]], 3);
}

/// Clusters divide a reduction among each other, and the blocks of one the results, the rest of the reduction, or
/// both: blocks with one number in their clusters arrive together. Under another count of blocks some are idle.
#[test]
fn clusters_divide_reductions_among_each_other() {
    let sizes: &[&[i64]] = &[&[1, 1], &[2, 7], &[3, 33], &[9, 1000], &[0, 5], &[2, 0]];
    let product = |launch: &str, by: &str, copies: &str| {
        format!(
            "kernel K(a: i32[M, K], b: i32[K, 16]) -> (c: i32[M, 16]) where K % 4 == 0 {{
                c[i, j] = sum(|k| a[i, k] * b[k, j]);
                launch cluster(2), {launch}threads(64);
                schedule c {{
                    split i by 8 -> io, i1; split i1 by 4 -> ic, ii; split k by 64 -> ks, k1; split k1 by 8 -> ko, kk;
                    reorder io, ks, ic, ko, ii, j, kk; bind io, ks: grid; bind ic: cta; bind ii, j: thread;
                    reduce ks by {by};
                }}
                {copies}
            }}"
        )
    };
    let taken = "stage at[i, k] = a in shared at c.ko ring(2) via tma { }
        stage bt[k, j] = b in shared at c.ko ring(2) via tma { multicast c.ic; }";
    for (launch, by, copies) in [
        ("", "grid", ""),
        ("", "grid", taken),
        ("persistent, ", "grid", ""),
        ("persistent, ", "grid", taken),
        ("", "atomic", ""),
        ("persistent, ", "atomic", taken),
    ] {
        let sizes: &[&[i64]] = &[&[1, 4], &[8, 36], &[13, 132], &[20, 260], &[0, 4]];
        let kernel = tried(&product(launch, by, copies), sizes, 3);
        let info = kernel.info.as_ref().expect("no error");
        assert_eq!(info.launch.cluster, 2);
        let counters = info.workspace.iter().find(|w| w.zeroed).expect("counters");
        assert_eq!(counters.elements.eval(&[17, 260]), Ok(3 * 2), "one for each row of tiles and place in a cluster");
    }
    // A part of the reduction belongs to the blocks of a cluster: they combine first.
    let both = |op: &str, by: &str| {
        format!(
            "kernel K(x: f32[M, N]) -> (y: f32[M]) {{
                y[i] = {op}(|j| x[i, j]);
                launch cluster(4), threads(32);
                schedule y {{
                    bind i: grid; split j by 256 -> js, j1; split j1 by 64 -> c, jc; split jc by 32 -> r, t;
                    bind js: grid; bind c: cta; bind t: thread; reduce t; reduce c; reduce js by {by};
                }}
            }}"
        )
    };
    for (op, by) in [("sum", "grid"), ("max", "grid"), ("argmax", "grid"), ("max", "atomic"), ("argmin", "atomic")] {
        let source = match op.starts_with("arg") {
            true => both(op, by).replace("(y: f32[M])", "(y: u32[M]) where N >= 1"),
            false => both(op, by),
        };
        let sizes = if op.starts_with("arg") { &sizes[..4] } else { sizes };
        tried(&source, sizes, 3);
    }
    // Columns of a cluster, of which the last ones may have no block that is at work.
    let idle = "kernel K(x: f32[M, N]) -> (y: f32[N]) where N <= 128 {
        y[j] = sum(|i| x[i, j]);
        launch cluster(4), threads(32);
        schedule y {
            split i by 5 -> is, ii; split j by 32 -> c, t; bind is: grid; bind c: cta; bind t: thread; reduce is by grid;
        }
    }";
    tried(idle, &[&[1, 1], &[6, 33], &[17, 64], &[4, 96], &[0, 5]], 3);
    // What stands in a loop goes on in the last blocks, which need not be of one cluster.
    let inside = "kernel K(x: f32[M, N]) -> (y: f32[M, N]) {
        s[i] = sum(|j| x[i, j]);
        y[i, j] = x[i, j] - s[i];
        launch cluster(2), threads(32);
        schedule y { split i by 2 -> b, c; bind b: grid; bind c: cta; split j by 32 -> r, t; bind t: thread; }
        schedule s in registers at y.c {
            split j by 128 -> js, j1; split j1 by 32 -> r, t; bind js: grid; bind t: thread; reduce t; reduce js by grid;
        }
    }";
    tried(inside, &[&[1, 1], &[5, 300], &[4, 128], &[3, 0], &[0, 5]], 3);
}

#[test]
fn what_does_not_fit_is_refused() {
    for (source, code) in [
        (rows("sum(|j| x[i, j])", 2, 32, ""), Code::TW0703),
        (rows("sum(|j| x[i, j])", 2, 32, "reduce c by grid;"), Code::TW0708),
        (rows("sum(|j| x[i, j])", 2, 32, "reduce c by cta;"), Code::TW0703),
        (rows("ordered sum(|j| x[i, j])", 2, 1, "reduce c;").replace("reduce t;", ""), Code::TW0708),
        (rows("sum(|j| x[i, j])", 2, 32, "reduce c;").replace("launch cluster(2)", "launch cluster(9)"), Code::TW0202),
        (rows("sum(|j| x[i, j])", 2, 32, "reduce c;").replace("launch cluster(2)", "launch cluster(4)"), Code::TW0610),
        (rows("sum(|j| x[i, j])", 3, 32, "reduce c;"), Code::TW0610),
    ] {
        let (codes, report) = compiled(&source).unwrap_err();
        assert!(codes.contains(&code), "{source}\n{report}");
    }
}

/// Copies by the accelerator, outputs beside outputs and warps, each in blocks of clusters.
#[test]
fn what_blocks_do_they_do_in_clusters() {
    let ring = "kernel Ring(x: f32[M, N]) -> (y: f32[M]) where N % 4 == 0 {
        y[i] = sum(|j| x[i, j] * x[i, j]);
        launch cluster(2), threads(64);
        schedule y {
            bind i: grid; split j by 128 -> k, q; split k into 2 -> c, kk; bind c: cta;
            split q by 64 -> r, t; bind t: thread; reduce c; reduce t;
        }
        stage xs[i, j] = x in shared at y.kk ring(3) via tma { }
    }";
    tried(ring, &[&[1, 4], &[3, 36], &[2, 1000]], 3);
    let softmax = "kernel Lse(x: f32[M, N]) -> (y: f32[M, N], l: f32[M]) where N <= 4096 {
        m[i] = max(|j| x[i, j]);
        s[i] = sum(|j| exp(x[i, j] - m[i]));
        y[i, j] = exp(x[i, j] - m[i]) / s[i];
        l[i] = m[i] + log(s[i]);
        launch cluster(2), threads(64);
        schedule y { bind i: grid; split j into 2 -> c, jj; bind c: cta; split jj by 64 -> r, t; bind t: thread; }
        schedule m in registers at y.i { like y; reduce c, t; }
        schedule s in registers at y.i { like y; reduce c, t; }
        schedule l at y.i { split i by 1 -> g, o; split o into 2 -> c, p; bind g: grid; bind c: cta; bind p: thread; }
    }";
    tried(softmax, &[&[1, 1], &[3, 33], &[2, 1000]], 3);
    let warps = "kernel Warps(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch cluster(4), threads(96);
        schedule y {
            split i by 3 -> g, w; bind g: grid; bind w: warp; split j into 4 -> c, jj; bind c: cta;
            split jj by 32 -> r, t; bind t: thread; reduce t by warp; reduce c;
        }
    }";
    tried(warps, &[&[1, 1], &[7, 33], &[5, 1000]], 3);
}

/// Without a barrier of the cluster, or with one of each block in its place, the separate checker finds something
/// wrong: before the states that blocks write to each other, and after them.
#[test]
fn each_barrier_of_a_cluster_is_missed() {
    // Of two exchanges in a loop, each has one barrier, which is the one before the other; blocks begin after one
    // more.
    let looped = "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N <= 256 {
        m[i] = max(|j| x[i, j]);
        s[i] = sum(|j| x[i, j] - m[i]);
        y[i, j] = x[i, j] * s[i];
        launch cluster(2), threads(64);
        schedule y {
            split i by 5 -> io, r; bind io: grid; split j by 128 -> c, jc; bind c: cta; split jc by 64 -> n, t; bind t: thread;
        }
        schedule m in registers at y.r { like y; reduce t; reduce c; }
        schedule s in registers at y.r { like y; reduce t; reduce c; }
    }";
    let single = |cluster| rows("sum(|j| x[i, j])", cluster, 32, "reduce c;");
    for (source, expected) in [(single(2), 2), (single(4), 2), (looped.to_owned(), 3)] {
        let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
        let launch = Launch::new(kernel.info.as_ref().expect("no error"), &[7, 100]).expect("a launch");
        let lowered = &kernel.entries[0].kernel;
        assert_eq!(check(lowered, &launch, 1_000_000), Verdict::Holds);
        let mut barriers = 0;
        for (region, of) in lowered.regions.iter().enumerate() {
            for at in (0..of.statements.len()).filter(|at| of.statements[*at].kind == StatementKind::BarrierCluster) {
                barriers += 1;
                let (mut without, mut weaker) = (lowered.clone(), lowered.clone());
                without.regions[region].statements.remove(at);
                weaker.regions[region].statements[at].kind = StatementKind::BarSync;
                for mutant in [without, weaker] {
                    let verdict = check(&mutant, &launch, 1_000_000);
                    assert!(matches!(verdict, Verdict::Violated(_)), "barrier {barriers}: {verdict:?}\n{mutant}");
                }
            }
        }
        assert_eq!(barriers, expected);
    }
}

/// RMS normalisation by clusters of 4 blocks: how `x` is distributed, and how it comes to shared memory.
fn norm(split: &str, ops: &str, facts: &str, stage: &str) -> String {
    format!(
        "kernel Norm(x: f32[M, N], w: f32[N]) -> (y: f32[M, N]) where {facts} {{
            s[i] = sum(|j| x[i, j] * x[i, j]);
            y[i, j] = x[i, j] * rsqrt(s[i] / (N as f32) + 1e-5) * w[j];
            launch cluster(4), threads(64);
            schedule y {{ bind i: grid; {split}; bind c: cta; {ops} }}
            schedule s in registers at y.i {{ like y; reduce t; reduce c; }}
            {stage}
        }}"
    )
}

/// Copies of a block in its shared memory, read by stages of the cluster: each block holds the part of the row that it
/// reads.
#[test]
fn blocks_hold_the_part_that_they_read() {
    let scalar = "split jc by 64 -> r, t; bind t: thread;";
    let vector = "split q by 64 -> r, t; bind t: thread; vectorize v;";
    let threads = "stage xs[i, j] = x in shared at y.c { split j by 64 -> r, t; bind t: thread; }";
    let fetched = "stage xs[i, j] = x in shared at y.c via cp_async { split j by 64 -> r, t; bind t: thread; }";
    let tiled = "stage xs[i, j] = x in shared at y.c via tma { box j by 64 -> jc, jb; }";
    let whole = "stage xs[i, j] = x in shared at y.i via tma { }";
    for (split, ops, facts, stage, elements) in [
        ("split j into 4 -> c, jc", scalar, "N <= 1024", threads, 256),
        ("split j into 4 -> c, jc", scalar, "N <= 1000", fetched, 250),
        // Chunks of one length: some blocks have a part of one, or nothing.
        ("split j by 256 -> c, jc", scalar, "N <= 1024", threads, 256),
        ("split j by 256 -> c, jc", scalar, "N <= 1024, N % 4 == 0", tiled, 256),
        ("split j by 256 -> c, jc; split jc by 4 -> q, v", vector, "N <= 1024, N % 4 == 0", tiled, 256),
        ("split j by 256 -> c, jc; split jc by 4 -> q, v", vector, "N <= 1024, N % 4 == 0", whole, 256),
    ] {
        let source = norm(split, ops, facts, stage);
        let sizes: Vec<&[i64]> = match facts.contains('%') {
            false => vec![&[1, 1], &[2, 7], &[3, 257], &[2, 1000], &[0, 5], &[2, 0]],
            true => vec![&[1, 4], &[2, 8], &[3, 260], &[2, 1000], &[2, 1024]],
        };
        let kernel = tried(&source, &sizes, 2);
        let buffers = &kernel.entries[0].kernel.buffers;
        let held = buffers.iter().find(|b| b.name == "xs").map(|b| b.elements);
        // Slots are whole vectors.
        let whole = held.is_some_and(|held| (elements..elements + 4).contains(&held));
        assert!(whole, "{held:?}: {source}\n{}", kernel.info.as_ref().expect("no error").explanation);
    }
}

/// Stages that divide the blocks of a cluster in other ways than the one around: a block reads the part that its number
/// stands for.
#[test]
fn stages_may_divide_the_blocks_in_other_ways() {
    for (ops, held) in [
        ("split j into 8 -> c, r; bind c: cta; split r by 32 -> q, t; bind t: thread; reduce c, t;", 128),
        // In turn: a part that each block reads in a row, and one of every eighth element.
        ("split j by 8 -> r, c; bind c: cta; split r by 32 -> q, t; bind t: thread; reduce c, t;", 2 * 128),
        (
            "split j into 2 -> d, j4; split j4 into 4 -> c, r; reorder d, c, r; bind d, c: cta;
            split r by 32 -> q, t; bind t: thread; reduce d, c, t;",
            128,
        ),
    ] {
        let source = format!(
            "kernel K(x: f32[M, N]) -> (y: f32[M, N]) where N == 1024 {{
                s[i] = sum(|j| x[i, j]);
                y[i, j] = x[i, j] * s[i];
                launch cluster(8), threads(32);
                schedule y {{
                    split j into 2 -> e, j4; split j4 into 4 -> f, r; bind i: grid; bind e, f: cta;
                    split r by 32 -> q, t; bind t: thread;
                }}
                schedule s in registers at y.i {{ {ops} }}
                stage xs[i, j] = x in shared at y.f {{ split j by 32 -> q, t; bind t: thread; }}
            }}"
        );
        let kernel = tried(&source, &[&[1, 1024], &[3, 1024]], 2);
        let of = kernel.entries[0].kernel.buffers.iter().filter(|b| b.name == "xs").map(|b| b.elements);
        assert_eq!(of.sum::<u32>(), held, "{source}");
    }
}

/// A cluster of one block has nothing to exchange: what is written for clusters compiles to what a block does alone.
#[test]
fn clusters_of_one_block() {
    let alone = |source: &str, sizes: &[&[i64]]| {
        let kernel = tried(source, sizes, 3);
        let info = kernel.info.as_ref().expect("no error");
        assert_eq!(info.launch.cluster, 1, "{source}");
        for word in ["barrier.cluster", "reqnctapercluster", "ctarank", "mapa", "multicast"] {
            assert!(!info.ptx.text.contains(word), "{source}\n{}", info.ptx.text);
        }
    };
    // The extent says how many blocks there are, or `launch` does.
    for launch in ["", "launch cluster(1), threads(32);"] {
        let source = format!(
            "kernel E(x: f32[M, N]) -> (y: f32[M, N]) where N <= 2048 {{
                s[i] = sum(|j| x[i, j]);
                y[i, j] = x[i, j] + s[i];
                {launch}
                schedule y {{ bind i: grid; split j into 1 -> c, jc; bind c: cta; split jc by 32 -> r, t; bind t: thread; }}
                schedule s in registers at y.i {{ like y; reduce t; reduce c by cluster; }}
            }}"
        );
        alone(&source, SIZES);
        // Beside a copy in registers, and as a stage that belongs to the cluster by its own word.
        let more = "stage xr[i, j] = x in registers at y.i { like y; } }";
        let unrolled = source
            .replace("split jc by 32 -> r, t; bind t: thread;", "split jc by 32 -> r, t; bind t: thread; unroll r;");
        alone(&format!("{}{more}", unrolled.trim_end().trim_end_matches('}')), SIZES);
        let own = source.replace("in registers at y.i { like y;", "in registers at y.i per cluster { like y;");
        alone(&own, SIZES);
    }
    alone(&rows("sum(|j| x[i, j])", 1, 64, "reduce c by cluster;"), SIZES);
    alone(&rows("max(|j| abs(x[i, j]))", 1, 32, "reduce c;"), SIZES);
    for stage in [
        "",
        "stage xs[i, j] = x in shared at y.c { split j by 64 -> r, t; bind t: thread; }",
        "stage xs[i, j] = x in shared at y.i via cp_async { split j by 64 -> r, t; bind t: thread; }",
    ] {
        let ops = "split jc by 64 -> r, t; bind t: thread;";
        let source = norm("split j into 1 -> c, jc", ops, "N <= 1024", stage).replace("cluster(4)", "cluster(1)");
        alone(&source, SIZES);
    }
    // One block fetches what it alone reads: all of it, whoever would take it together.
    for (ring, ops) in [("", "multicast c.ic;"), ("ring(3)", "box j by 128 -> jb, jj; multicast c.ic by jb;")] {
        alone(&outer("", 1, ring, ops), &[&[1, 4], &[3, 132], &[4, 512]]);
        alone(&outer(", persistent", 1, ring, ops), &[&[1, 4], &[3, 132], &[4, 512]]);
    }
    // Of two axes of a cluster one has one block, beside one that has more.
    let product = "kernel Two(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y {
            split i by 4 -> g, k; bind g: grid; split k into 2 -> ka, kb; bind ka: cta;
            split j into 1 -> c, jc; bind c: cta; split jc by 32 -> r, t; bind t: thread; reduce t; reduce c by cluster;
        }
    }";
    let kernel = tried(product, SIZES, 3);
    assert_eq!(kernel.info.as_ref().expect("no error").launch.cluster, 2);
}

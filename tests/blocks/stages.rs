//! Stages in the loops of an output whose reduction blocks share: the last of them to arrive goes on. Every kernel runs
//! for awkward sizes, under seeds that let blocks and warps come in other orders, and gives what `reference()` does;
//! the separate checker and the emulator notice what is left out.

use crate::support::{
    Draw, Refusals, each_order_is_noticed, each_part_of_an_arrival_is_missed, finished, launched_on, runs,
};
use tilewright::{Device, EmulatorOptions, Tensor, schedule};
use tilewright_cli::trial::Trial;
use tilewright_compiler::diag::Code;

/// Sizes of kernels of one dimension, and of two.
const LENGTHS: &[&[i64]] = &[&[0], &[1], &[7], &[31], &[33], &[1000]];
const TABLES: &[&[i64]] = &[&[1, 0], &[0, 3], &[1, 1], &[7, 31], &[31, 33], &[33, 7], &[3, 1000], &[130, 5]];

/// A vector by its length, which blocks share and the last of them divides by.
const NORMALISED: &str = "kernel Normalised(x: f32[N]) -> (y: f32[N]) {
    s[] = sum(|k| x[k] * x[k]);
    y[i] = x[i] / sqrt(s[]);
    schedule y { split i into 1 -> all, r; split r by 64 -> io, t; bind all: grid; bind t: thread; }
    schedule s in registers at y.all {
        split k by 128 -> kb, ki; split ki by 64 -> q, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid;
    }
}";

/// Several components, two outputs in one place, and threads that have a result of their own.
const STATISTICS: &str = "kernel Statistics(x: f32[M, N]) -> (mean: f32[N], var: f32[N]) {
    (mu, m2, n)[j] = fold(|i| init (0.0f32, 0.0f32, 0.0f32),
        step (a, s, c) => (
            a + (x[i, j] - a) / (c + 1.0),
            s + (x[i, j] - a) * (x[i, j] - (a + (x[i, j] - a) / (c + 1.0))),
            c + 1.0),
        merge ((ma, sa, ca), (mb, sb, cb)) => (
            ma + (mb - ma) * (cb / max(ca + cb, 1.0)),
            sa + sb + (mb - ma) * (mb - ma) * (ca * (cb / max(ca + cb, 1.0))),
            ca + cb));
    mean[j] = mu[j];
    var[j] = m2[j] / max(n[j], 1.0);
    schedule mean { split j by 32 -> jo, t; bind jo: grid; bind t: thread; }
    schedule var at mean.jo { like mean; }
    schedule mu in registers at mean.jo { like mean; split i by 8 -> io, ii; bind io: grid; reduce io by grid; }
}";

/// A loop around the place goes on with all blocks, and each iteration has an arrival.
const ROWS: &str = "kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) {
    s[i] = sum(|k| x[i, k]);
    y[i, j] = x[i, j] - s[i] * 0.5;
    schedule y { split j by 64 -> jo, t; bind t: thread; }
    schedule s in shared at y.i {
        split k by 128 -> kb, ki; split ki by 64 -> q, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid;
    }
}";

/// Threads that nothing tells apart have the result, too; blocks along both axes of the reduction.
const ALIKE: &str = "kernel Alike(x: f32[M, N]) -> (y: f32[M, N]) {
    s[i] = sum(|k, l| x[i, k] * x[k, l] or 0.0);
    y[i, j] = x[i, j] - s[i];
    schedule y { split j by 96 -> jo, t; bind i: grid; bind t: thread; }
    schedule s in registers at y.i { split k by 16 -> kb, ki; split l by 300 -> lb, li; bind lb, kb: grid; reduce kb, lb by grid; }
}";

/// Several results of a thread, in the order in which axes come: one arrival for all of them. Warps that have the same,
/// with terms of their own.
const SEVERAL: &str = "kernel Several(x: f32[M, N]) -> (y: f32[N]) {
    s[j] = sum(|i| x[i, j]);
    y[j] = s[j] * 2.0;
    schedule y { split j by 128 -> jo, q; split q by 4 -> t, v; bind jo: grid; bind t: thread; unroll v; }
    schedule s in registers at y.jo {
        like y; split i by 6 -> ib, ii; split ii by 3 -> iq, w; reorder w, t;
        bind ib: grid; bind w: warp; reduce w; reduce ib by grid;
    }
}";

/// Stages before the arrival, after it and inside it; a copy that runs ahead of the loops over terms.
const AMONG_OTHERS: &str = "kernel Among(x: f32[M, N], w: f32[N]) -> (y: f32[M, N], z: f32[M]) where N <= 2048 {
    e[i, j] = exp(x[i, j]) * w[j];
    s[i] = sum(|k| e[i, k]);
    h[i, j] = x[i, j] / s[i];
    y[i, j] = h[i, j] + w[j];
    z[i] = s[i];
    schedule y { split j by 64 -> jo, t; bind i: grid; bind t: thread; }
    schedule z at y.i { bind i: grid; }
    schedule h in shared at y.jo { bind j: thread; }
    schedule s in registers at y.i {
        split k by 256 -> kb, ki; split ki by 64 -> q, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid;
    }
    schedule e in shared at s.q { bind j: thread; }
    stage ws[j] = w in shared at s.q ring(2) via cp_async { bind j: thread; }
}";

/// Copies by the accelerator that run ahead of the loop around the place, and before the arrival.
const STAGED: &str = "kernel Staged(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0, N >= 4, N <= 256 {
    s[i] = sum(|k| x[i, k]);
    y[i, j] = x[i, j] - s[i];
    schedule y { split i by 4 -> b, r; split j by 64 -> jo, t; bind b: grid; bind t: thread; }
    schedule s in registers at y.r { split k by 64 -> kb, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid; }
    stage xs[i, j] = x in shared at y.r ring(2) via tma { box j by 64 -> jc, jb; }
}";

/// What the last block writes goes to the tensor by the accelerator.
const STORED: &str = "kernel Stored(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
    s[j] = max(|i| x[i, j]);
    y[i, j] = x[i, j] - s[j];
    launch threads(64);
    schedule y { split j by 64 -> jo, t; reorder jo, i, t; split i by 8 -> io, ii; bind jo: grid; bind t: thread; }
    schedule s in registers at y.jo { split j by 64 -> jo, t; bind t: thread; split i by 5 -> ib, iq; bind ib: grid; reduce ib by grid; }
    stage ys[i, j] = y in shared at y.io via tma { box i by 8 -> ic, bb; box j by 64 -> jc, jj; }
}";

/// Words that blocks combine, which several threads then need: in registers, in shared memory, and of threads that
/// nothing tells apart.
const WORDS: &str = "kernel Words(x: f32[M, N]) -> (y: f32[M, N]) {
    s[i] = min(|k| x[i, k]);
    y[i, j] = x[i, j] - s[i];
    schedule y { split j by 64 -> jo, t; bind i: grid; bind t: thread; }
    schedule s in registers at y.i {
        split k by 128 -> kb, ki; split ki by 64 -> q, t; bind kb: grid; bind t: thread; reduce t; reduce kb by atomic;
    }
}";
const PLACES: &str = "kernel Places(x: f32[M, N]) -> (y: f32[M, N]) where N >= 1 {
    p[i] = argmin(|k| x[i, k]);
    y[i, j] = x[i, j] * (p[i] as f32);
    schedule y { split j by 64 -> jo, t; bind t: thread; }
    schedule p in shared at y.i {
        split k by 128 -> kb, ki; split ki by 64 -> q, t; bind kb: grid; bind t: thread; reduce t; reduce kb by atomic;
    }
}";
const WORDS_ALIKE: &str = "kernel WordsAlike(x: u8[M, N]) -> (y: u8[N]) {
    s[j] = sum(|i| x[i, j]);
    y[j] = s[j] * 3;
    launch threads(64);
    schedule y { split j by 64 -> jo, t; bind jo: grid; bind t: thread; }
    schedule s in shared at y.jo { like y; split i by 7 -> ib, ii; bind ib: grid; reduce ib by atomic; }
}";

/// A launch with another output, which has fewer or more blocks.
const TWO_LAUNCHES: &str = "kernel Two(x: f32[N], w: f32[M]) -> (y: f32[N], z: f32[M]) {
    s[] = sum(|k| x[k]);
    y[i] = x[i] - s[];
    z[i] = w[i] * 2.0;
    schedule y { split i into 1 -> all, r; split r by 64 -> io, t; bind all: grid; bind t: thread; }
    schedule z { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    schedule s in registers at y.all { split k by 64 -> kb, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid; }
}";

#[test]
fn awkward_sizes_under_many_seeds() {
    let whole: &[&[i64]] = &[&[1, 4], &[7, 32], &[31, 36], &[5, 132], &[9, 256]];
    let cases = [
        (NORMALISED, LENGTHS),
        (STATISTICS, TABLES),
        (ROWS, TABLES),
        (ALIKE, &TABLES[..6]),
        (SEVERAL, TABLES),
        (AMONG_OTHERS, TABLES),
        (STAGED, whole),
        (STORED, whole),
        (WORDS, TABLES),
        (PLACES, &TABLES[2..]),
        (WORDS_ALIKE, TABLES),
        (TWO_LAUNCHES, TABLES),
    ];
    for (source, sizes) in cases {
        let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
        runs(source, &kernel, sizes, 3);
    }
}

/// Every barrier, the order of the arrival, partials and words: the separate checker misses each.
#[test]
fn nothing_is_left_out() {
    let mut tried = 0;
    let cases: [(&str, &[i64]); 8] = [
        (NORMALISED, &[300]),
        (STATISTICS, &[20, 40]),
        (ROWS, &[3, 300]),
        (ALIKE, &[2, 40]),
        (SEVERAL, &[20, 140]),
        (WORDS, &[3, 300]),
        (PLACES, &[3, 300]),
        (TWO_LAUNCHES, &[100, 200]),
    ];
    for (source, dims) in cases {
        let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
        tried += each_part_of_an_arrival_is_missed(&kernel, dims);
    }
    assert!(tried >= 55, "{tried}");
}

#[test]
fn the_emulator_notices_what_orders_nothing() {
    for (source, dims) in [(NORMALISED, &[3000][..]), (STATISTICS, &[40, 70]), (WORDS, &[3, 1000])] {
        let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
        each_order_is_noticed(kernel.info.as_ref().unwrap(), dims);
    }
}

#[test]
fn what_was_derived() {
    let kernel = finished(STATISTICS).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    let info = kernel.info.as_ref().unwrap();
    assert_eq!(info.launch.blocks.eval(&[20, 70]).unwrap(), 3 * 3);
    assert_eq!(info.launch.blocks.eval(&[0, 70]).unwrap(), 3);
    assert_eq!(info.launch.blocks.eval(&[20, 0]).unwrap(), 0);
    let sizes: Vec<_> = info.workspace.iter().map(|w| w.elements.eval(&[20, 70]).unwrap()).collect();
    assert_eq!(sizes, [3, 3 * 3 * 32, 3 * 3 * 32, 3 * 3 * 32]);
    let said = &info.explanation;
    assert!(
        said.contains("blocks that differ in io share results: the last to arrive merges their partials"),
        "{said}"
    );
    assert!(said.contains("after it, what stands in mean.jo is for that block alone"), "{said}");
}

schedule! {
    /// A sum of everything, which all elements need.
    kernel Centred(x: f32[N]) -> (y: f32[N]) {
        s[] = sum(|k| x[k]);
        y[i] = x[i] - s[] / (N as f32);
        schedule y { split i into 1 -> all, r; split r by 256 -> io, t; bind all: grid; bind t: thread; }
        schedule s in registers at y.all {
            split k by 4096 -> kb, ki; split ki by 256 -> q, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid;
        }
    }
}

#[test]
fn a_million_elements() {
    let device = Device::emulator(EmulatorOptions::default());
    let outcome = Trial::new(Centred::KERNEL, &[1_000_003], 1, &device).unwrap().run(&device);
    assert!(outcome.is_good(), "{outcome:#?}");
}

/// Whichever block is the last, and however often the launch runs.
#[test]
fn the_same_bits_every_time() {
    let n = 20_000;
    let mut found: Vec<Vec<f32>> = Vec::new();
    for seed in 0..8 {
        let device = Device::emulator(EmulatorOptions::default().seed(seed));
        let x = crate::support::data(&device, [n], |k| ((k * 7919) % 1009) as f32 / 7.0 - 60.0);
        let mut y = Tensor::zeros(&device, [n]).unwrap();
        let prepared = Centred { x: &x, y: &mut y }.prepare(&device).unwrap();
        for _ in 0..2 {
            prepared.run().unwrap();
            found.push(y.to_vec().unwrap());
        }
    }
    assert!(found.iter().all(|values| *values == found[0]));
}

/// A kernel of rows with stages that blocks share.
fn refused(body: &str) -> (Vec<Code>, String) {
    let source = format!("kernel K(x: f32[M, N]) -> (y: f32[M, N], z: f32[M]) {{ {body} }}");
    finished(&source).map(|_| ()).expect_err(body)
}

#[test]
fn where_the_last_block_cannot_go_on_alone() {
    const SHARED: &str = "split k by 64 -> kb, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid;";
    let rows = "split j by 64 -> jo, t; bind i: grid; bind t: thread;";
    let halves = "split i by 8 -> b, ii; split j by 64 -> jo, t; bind b: grid; bind t: thread;";
    let z = "z[i] = x[i, N - 1] or 0.0; schedule z { split i by 64 -> b, t; bind b: grid; bind t: thread; }";
    let cases = [
        // A second arrival after the first.
        (
            format!(
                "m[i] = max(|k| x[i, k]); s[i] = sum(|k| exp(x[i, k] - m[i])); y[i, j] = exp(x[i, j] - m[i]) / s[i]; {z}
                schedule y {{ {rows} }} schedule m in registers at y.i {{ {SHARED} }} schedule s in registers at y.i {{ {SHARED} }}"
            ),
            "blocks share the reduction of `s`, too, along `kb`",
        ),
        // As many blocks as the loop around says.
        (
            format!(
                "m[i] = max(|k in i..N| x[i, k]); y[i, j] = x[i, j] - m[i]; {z}
                schedule y {{ {rows} }} schedule m in registers at y.i {{ {SHARED} }}"
            ),
            "decide how many iterations `kb` has",
        ),
        // Inside a stage.
        (
            format!(
                "m[i] = max(|k| x[i, k]); h[i, j] = x[i, j] - m[i]; y[i, j] = h[i, j] + 1.0; {z}
                schedule y {{ {rows} }} schedule h in shared at y.jo {{ bind j: thread; }} schedule m in registers at h.i {{ {SHARED} }}"
            ),
            "`h` is a stage itself",
        ),
        // An output further out.
        (
            format!(
                "m[i] = max(|k| x[i, k]); y[i, j] = x[i, j] - m[i]; z[i] = x[i, N - 1] or 0.0;
                schedule y {{ {halves} }} schedule z at y.b {{ split i by 8 -> b, t; bind b: grid; bind t: thread; }}
                schedule m in registers at y.ii {{ {SHARED} }}"
            ),
            "write `schedule z at y.ii`",
        ),
        // In a loop of an output beside another one.
        (
            format!(
                "m[i] = max(|k| x[i, k]); y[i, j] = x[i, j] * 2.0; z[i] = m[i];
                schedule y {{ {halves} }} schedule z at y.b {{ split i by 8 -> b, ii; bind b: grid; }}
                schedule m in registers at z.ii {{ {SHARED} }}"
            ),
            "`z` stands beside `y`",
        ),
        // More results than a thread has room for.
        (
            format!(
                "m[j] = max(|i| x[i, j]); y[i, j] = x[i, j] - m[j]; {z}
                schedule y {{ split j by 512 -> jo, jj; reorder jo, i; bind jo: grid; split jj by 2 -> q, t; bind t: thread; }}
                schedule m in shared at y.jo {{ split j by 1 -> q, t; bind t: thread; bind i: grid; reduce i by grid; }}"
            ),
            "a thread keeps 512 of them",
        ),
    ];
    for (body, said) in cases {
        let (codes, report) = refused(&body);
        assert_eq!(codes, [Code::TW0714], "{body}\n{report}");
        assert!(report.replace("\n    ", " ").contains(said), "{report}");
    }
    let terms = "kernel K(x: f32[M, N]) -> (y: f32[N]) {
        m[i] = max(|k| x[i, k]);
        y[j] = sum(|i| x[i, j] - m[i]);
        schedule y { split j by 64 -> jo, t; reorder jo, i, t; bind jo: grid; bind t: thread; }
        schedule m in registers at y.i { split k by 64 -> kb, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid; }
    }";
    let (codes, report) = finished(terms).map(|_| ()).expect_err(terms);
    assert_eq!(codes, [Code::TW0714], "{report}");
    assert!(report.contains("`i` is a loop over terms of `y`"), "{report}");
    // A copy to the tensor further out than the arrival, or in its loop.
    for place in ["y.b", "y.ii"] {
        let body = format!(
            "m[i] = max(|k| x[i, k]); y[i, j] = x[i, j] - m[i]; {z} schedule y {{ {halves} }} schedule m in registers at y.ii {{ {SHARED} }}
            stage ys[i, j] = y in shared at {place} via tma {{ box j by 64 -> jc, jj; }}"
        );
        let body = body.replace(" or 0.0", "");
        let source = format!("kernel K(x: f32[M, N]) -> (y: f32[M, N], z: f32[M]) where N == 64 {{ {body} }}");
        let (codes, report) = finished(&source).map(|_| ()).expect_err(&body);
        assert_eq!(codes, [Code::TW0005], "{report}");
    }
    // Of a warp.
    let body = format!(
        "m[i] = max(|k| x[i, k]); y[i, j] = x[i, j] - m[i]; {z}
        schedule y {{ split i by 2 -> b, w; split j by 32 -> jo, t; bind b: grid; bind w: warp; bind t: thread; }}
        schedule m in registers per warp at y.w {{ split k by 64 -> kb, t; bind kb: grid; reduce kb by grid; }}"
    );
    let (codes, report) = refused(&body);
    assert_eq!(codes, [Code::TW0605], "{report}");
    assert!(report.contains("leave `per warp` out"), "{report}");
}

/// A random kernel whose blocks share a stage: what is reduced and how blocks combine it, where it stands and in what
/// memory, who takes which terms and results, and what else stands there.
fn random_kernel(draw: &mut Draw) -> String {
    let (element, operation) = *draw.pick(&crate::support::REDUCTIONS);
    let is_atomic = operation != "prod" && (operation, element) != ("sum", "f32");
    let by = if is_atomic && draw.chance(50) { "atomic" } else { "grid" };
    // Rows that an element reads.
    let rows = if draw.chance(30) { &["i", "i + 1"][..] } else { &["i"] };
    let read = |row: &&str| format!("(s[{row}] as {element})");
    let read = rows.iter().map(read).collect::<Vec<_>>().join(" * ");
    let mut equations = format!("s[i] = {operation}(|k| x[i, k]);\n");
    let middle = draw.chance(30);
    if middle {
        equations += &format!("h[i, j] = x[i, j] + {read};\ny[i, j] = h[i, j] * x[i, j];\n");
    } else {
        equations += &format!("y[i, j] = x[i, j] + {read};\n");
    }
    let (of_rows, of_columns) = (*draw.pick(&[1, 2, 3, 8]), *draw.pick(&[1, 4, 32, 33, 64]));
    let mut order = ["ib", "ii", "jo"];
    for last in (1..order.len()).rev() {
        order.swap(last, draw.below(last + 1));
    }
    let mut ops =
        format!("split i by {of_rows} -> ib, ii; split j by {of_columns} -> jo, t; reorder {}, t; ", order.join(", "));
    for axis in ["ib", "jo"] {
        if draw.chance(50) {
            ops += &format!("bind {axis}: grid; ");
        }
    }
    ops += "bind t: thread; ";
    let at = *draw.pick(&order);
    let mut schedules = format!("schedule y {{ {ops}}}\n");
    let beside = draw.chance(30);
    if beside {
        equations += &format!("z[i, j] = x[i, j] - {read};\n");
        schedules += &format!("schedule z at y.{} {{ {ops}}}\n", draw.pick(&[at, at, order[0], order[2]]));
    }
    let (terms, threads) = (*draw.pick(&[1, 3, 8, 40, 64]), *draw.pick(&[1, 2, 5, 8, 32]));
    let (per_thread, lanes) = (*draw.pick(&[1, 2]), *draw.pick(&[1, 2, 4]));
    let mut ops = format!("split k by {terms} -> kb, ki; split ki by {threads} -> ks, kt; ");
    ops += &format!("split i by {} -> rb, ri; split ri by {lanes} -> rs, rt; ", per_thread * lanes);
    let mut order = ["kb", "ks", "kt", "rb", "rs", "rt"];
    for last in (1..order.len()).rev() {
        order.swap(last, draw.below(last + 1));
    }
    ops += &format!("reorder {}; bind kb: grid; ", order.join(", "));
    let (of_results, of_terms) = (draw.chance(40), draw.chance(70));
    if of_results {
        ops += "bind rt: thread; ";
    }
    if of_terms {
        ops += "bind kt: thread; reduce kt; ";
    }
    let place = if (of_results || of_terms) && draw.chance(60) { "shared" } else { "registers" };
    schedules += &format!("schedule s in {place} at y.{at} {{ {ops}reduce kb by {by}; }}\n");
    if middle {
        schedules +=
            &format!("schedule h in shared at y.{at} {{ split j by {of_columns} -> jo, t; bind t: thread; }}\n");
    }
    if draw.chance(30) {
        let (via, ring) = (draw.chance(50) && element == "f32", *draw.pick(&["", " ring(2)", " ring(3)"]));
        let via = if via { " via cp_async" } else { "" };
        let ops = format!("split j by {of_columns} -> jo, t; bind t: thread;");
        schedules += &format!("stage xs[i, j] = x in shared at y.{at}{ring}{via} {{ {ops} }}\n");
    }
    let rows = if rows.len() > 1 { "M - 1" } else { "M" };
    let z = if beside { format!(", z: {element}[{rows}, N]") } else { String::new() };
    format!(
        "kernel Random(x: {element}[M, N]) -> (y: {element}[{rows}, N]{z}) where M >= 2, N >= 1, N <= 100 {{\n{equations}{schedules}}}"
    )
}

/// `TILEWRIGHT_GRID_STAGES=SEED,COUNT` runs others than CI does.
#[test]
fn random_kernels_equal_the_reference() {
    random_kernels_are_right(0);
}

#[test]
fn other_random_kernels_equal_the_reference() {
    random_kernels_are_right(1);
}

/// One half of the random kernels: they are one test's work, and two run beside each other.
fn random_kernels_are_right(half: u64) {
    let (seed, count) = crate::support::campaign("TILEWRIGHT_GRID_STAGES", (1, 120));
    let (mut accepted, mut refusals) = (0, Refusals::default());
    let drawn = (0..count).filter(|n| n % 2 == half);
    let count = drawn.clone().count();
    for n in drawn {
        let mut draw = Draw::new(seed, n);
        let source = random_kernel(&mut draw);
        let Some(kernel) = refusals.compiled(n, &source) else { continue };
        accepted += 1;
        let info = kernel.info.as_ref().unwrap();
        for turn in 0..3 {
            let mut dims = [*draw.pick(&[2_i64, 3, 7, 13]), *draw.pick(&[1_i64, 2, 7, 31, 33, 70, 100])];
            // A block for each pair of an element and a term: 33 of both are more than a warp has lanes, as 100 are.
            if ["split j by 1 -> ", "split k by 1 -> "].iter().all(|ops| source.contains(ops)) {
                dims[1] = dims[1].min(33);
            }
            crate::support::prove(&kernel, &dims);
            let device = Device::emulator(EmulatorOptions::default().seed(n * 8 + turn));
            for _ in 0..2 {
                let outcome = launched_on(info, &dims, n, &device);
                assert!(outcome.is_good(), "case {n}, {dims:?}: {outcome:#?}\n{source}\n{}", info.explanation);
            }
        }
    }
    println!("{accepted} of {count} accepted");
    if std::env::var("TILEWRIGHT_GRID_STAGES").is_ok() {
        refusals.tell();
    }
    assert!(count == 0 || accepted * 5 > count, "{accepted} of {count}");
}

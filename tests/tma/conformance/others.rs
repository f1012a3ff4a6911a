//! Copies of one dimension, tutorials and pipelines.

use super::{Case, computed, copy};
use tilewright_compiler::diag::Code;

pub fn cases() -> Vec<Case> {
    [lines(), tutorials(), pipelines()].into_iter().flatten().collect()
}

/// Instructions without a map, which copy runs of any length, are chosen where nothing can end outside the tensor;
/// elsewhere a map of one dimension is, with boxes of at most 256, which cuts what ends outside, so that nothing has to
/// divide.
#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn lines() -> Vec<Case> {
    let twice = |test, variant: &str, outer: &str, ring: &str, boxes: i64, runs: &[[i64; 2]]| {
        let source = computed(
            "x: f32[M, N]",
            "f32[M, N]",
            "",
            "y[i, j] = x[i, j] + x[i, j];",
            &format!("merge i, j -> m; split m by 512 -> c, b; {outer} split b by 128 -> r, t; bind t: thread;"),
            &format!(
                "stage s[i, j] = x in shared at y.{ring} via tma {{ merge i, j -> m; box m by {boxes} -> k, z; }}"
            ),
        );
        let bytes = 4 * boxes as u64;
        Case::accepted(test, variant, source, &["⟨523776, 4, 256, 1⟩"], &[bytes]).at(&[1023, 512]).runs(runs)
    };
    let serial = "split c by 4 -> co, ci; bind co: grid;";
    let rows = |unroll: bool, ring: bool| {
        let split = if unroll { "split r by 2 -> p, u; unroll u;" } else { "split r by 1 -> p, u;" };
        let ring = if ring { "po ring(2)" } else { "po" };
        let source = computed(
            "x: f32[R, C]",
            "f32[R, C]",
            "C % 4 == 0, C <= 128",
            "y[r, c] = x[r, c] + x[r, c];",
            &format!(
                "{split} split p by 3 -> po, sm; reorder sm, po, u, c; bind sm: grid; split c by 128 -> co, t; bind t: thread;"
            ),
            &format!(
                "stage s[r, c] = x in shared at y.{ring} via tma {{ box r by 1 -> rc, rb; box c by 128 -> cc, cb; }}"
            ),
        );
        let variant = format!("unroll {unroll}, {ring}");
        Case::accepted(
            "TMA1dPredicateTest.testUnrollCircularBuffer",
            &variant,
            source,
            &["⟨128, 4, 128, 1⟩ ⟨16, 512, 1, 1⟩"],
            &[512],
        )
        .at(&[16, 128])
        .runs(&[[16, 128], [8, 128], [7, 4]])
    };
    let sum = |box_size: i64, divisor: i64| {
        let copy = |name: &str, tensor: &str| {
            format!(
                "stage {name}[i, j] = {tensor} in shared at y.c via tma {{ merge i, j -> m; box m by {box_size} -> k, z; }}\n"
            )
        };
        computed(
            "v: f32[M, N], w: f32[M, N]",
            "f32[M, N]",
            &format!("N % {divisor} == 0"),
            "y[i, j] = v[i, j] + w[i, j];",
            "merge i, j -> m; split m by 512 -> c, t; bind c: grid; bind t: thread;",
            &[copy("vs", "v"), copy("ws", "w"), copy("ys", "y")].concat(),
        )
    };
    vec![
        Case::accepted("TMATest.CpAsyncBulk1D", "cut", sum(256, 4), &["⟨268435456, 4, 256, 1⟩"; 3], &[1024; 3])
            .at(&[16_384, 16_384])
            .by_map(3)
            .runs(&[[4, 256], [3, 340], [1, 4]]),
        Case::accepted("TMATest.CpAsyncBulk1D", "", sum(512, 512), &["⟨268435456, 4, 512, 1⟩"; 3], &[2048; 3])
            .at(&[16_384, 16_384])
            .by_map(0)
            .runs(&[[4, 512], [3, 1536], [1, 512]])
            .launch_refuses(&[[4, 256]]),
        Case::refused("TMATest.CpAsyncBulk1D", "cut, one box", sum(512, 4), Code::TW0304),
        twice("TMATest.CpAsyncBulk1dNonDivisibleSplit", "", "bind c: grid;", "c", 256, &[[2, 1023], [1, 1]]),
        twice("TMATest.CpAsyncBulk1dPipplined", "", serial, "ci ring(2)", 256, &[[11, 512], [2, 1023]]),
        twice("TMATest.CpAsyncBulk1dNonCircularBuffer", "", serial, "ci", 256, &[[11, 512], [3, 512]]),
        rows(false, false),
        rows(false, true),
        rows(true, false),
        rows(true, true),
        // One warp, and nothing but the two copies between the tensors but what its lanes hold.
        Case::accepted(
            "TmaTest.TmaLocalCopy",
            "",
            computed(
                "x: i32[256]",
                "i32[256]",
                "",
                "y[i] = x[i];",
                "split i by 256 -> o, r; split r by 32 -> q, t; bind o: grid; bind t: thread;",
                "stage xs[i] = x in shared at y.o via tma { } stage ys[i] = y in shared at y.o via tma { }",
            ),
            &["⟨256, 4, 256, 1⟩"; 2],
            &[1024; 2],
        )
        .by_map(0)
        .runs_unchanged(),
        Case::refused(
            "TMATest.CpAsyncBulk1dIllegalSize",
            "",
            computed(
                "x: f32[33]",
                "f32[33]",
                "",
                "y[i] = x[i] + x[i];",
                "split i by 33 -> o, t; bind o: grid; bind t: thread;",
                "stage s[i] = x in shared at y.o via tma { }",
            ),
            Code::TW0304,
        ),
    ]
}

fn tutorials() -> Vec<Case> {
    let cube = "f32[A, B, C]";
    let merged = |schedule: &str, facts: &str, tensor: &str, at: &str| {
        copy(
            cube,
            cube,
            facts,
            "a, b, c",
            &format!("merge a, b, c -> m; {schedule}"),
            &format!(
                "stage s[a, b, c] = {tensor} in shared at y.{at} via tma {{ merge a, b, c -> m; box m by 256 -> k, z; }}"
            ),
        )
    };
    let example = |variant, source| {
        Case::accepted("Tutorial.BasicTMA", variant, source, &["⟨27000000, 4, 256, 1⟩"], &[1024])
            .at(&[300, 300, 300])
            .runs(&[[4, 16, 20], [1, 1, 4], [2, 3, 36]])
    };
    let one = "split m by 256 -> c0, b0; bind c0: grid; bind b0: thread;";
    let four = "split m by 1024 -> c0, b0; bind c0: grid; split b0 by 256 -> r, t; bind t: thread;";
    let tiles = "split c by 64 -> c4, cr; split cr by 32 -> c3, cb; split b by 64 -> b4, br; split br by 32 -> b3, bb;
        reorder a, b4, c4, b3, c3, bb, cb; bind a, b4, c4: grid; bind cb: thread;";
    let blocks = "split j by 256 -> jo, ji; split i by 4 -> io, ii; split ji by 2 -> jt, v; reorder jo, io, ii, jt, v;
        split io by 132 -> iq, ir; reorder jo, ir, iq, ii, jt, v; bind jo, ir: grid; bind jt: thread; vectorize v;";
    // The box of 256 as pairs, as it is there, which changes nothing.
    let both = |name: &str, tensor: &str| {
        format!(
            "stage {name}[i, j] = {tensor} in shared at y.iq via tma {{
                box i by 4 -> ic, ib; box j by 256 -> jc, jb; split jb by 2 -> jt, v; layout [ic, jc, ib, jt, v]; }}\n"
        )
    };
    vec![
        example("1", merged(one, "", "x", "c0")),
        // Serial or by several threads there: copies of one instance here.
        example("2 and 3", merged(four, "", "x", "c0")),
        example("4", merged(four, "C % 4 == 0", "y", "c0")),
        Case::accepted(
            "Tutorial.BasicTMA",
            "5",
            copy(
                cube,
                cube,
                "C % 4 == 0",
                "a, b, c",
                tiles,
                "stage s[a, b, c] = x in shared at y.c4 via tma {
                    box a by 1 -> ak, az; box b by 32 -> bk, bz; box c by 32 -> ck, cz; layout [bk, ck, bz, cz]; }",
            ),
            &["⟨300, 4, 32, 1⟩ ⟨300, 1200, 32, 1⟩ ⟨300, 360000, 1, 1⟩"],
            &[4096],
        )
        .at(&[300, 300, 300])
        .runs(&[[2, 65, 36], [1, 33, 100]]),
        Case::accepted(
            "Tutorial.VectorizeStorePointwiseTMA",
            "",
            computed(
                "p: f32[M, N], q: f32[M, N]",
                "f32[M, N]",
                "N % 4 == 0",
                "y[i, j] = p[i, j] + q[i, j];",
                blocks,
                &[both("ps", "p"), both("qs", "q")].concat(),
            ),
            &["⟨16384, 4, 256, 1⟩ ⟨16384, 65536, 4, 1⟩"; 2],
            &[4096; 2],
        )
        .at(&[16_384, 16_384])
        .runs(&[[8, 260], [530, 8], [3, 4]]),
        Case::accepted(
            "Tutorial.TMABankConflictFreeTranspose",
            "",
            transposed(32, 32, "layout [ib, jb] swizzle 128;", Some("")),
            &["⟨10000, 4, 32, 1⟩ ⟨10000, 40000, 32, 1⟩"; 2],
            &[4096; 2],
        )
        .at(&[10_000, 10_000])
        .xor(true)
        .runs(&[[32, 64], [36, 100], [4, 4]]),
        // Rows and chunks exchanged by ops, and 32 columns as what they are.
        Case::accepted(
            "Tutorial.TMABankConflictFreeTranspose",
            "as ops",
            transposed(
                32,
                32,
                "split ib by 8 -> r4, r8; split jb by 4 -> c8, c4; swizzle r8, c8 by xor -> rx, cx; layout [r4, rx, cx, c4];",
                Some("layout [jb, ib];"),
            ),
            &["⟨10000, 4, 32, 1⟩ ⟨10000, 40000, 32, 1⟩"; 2],
            &[4096; 2],
        )
        .at(&[10_000, 10_000])
        .xor(true)
        .runs(&[[32, 64], [36, 100], [4, 4]]),
    ]
}

/// A transpose by tiles of `rows` × 32 of the input, with a layout of the load, and of the store if there is one.
pub fn transposed(rows: i64, box_size: i64, load: &str, store: Option<&str>) -> String {
    let store = store.map(|layout| {
        format!("stage ys[j, i] = y in shared at y.io via tma {{ box j by 32 -> jc, jb; box i by {box_size} -> ic, ib; {layout} }}")
    });
    let facts = if store.is_some() { "N % 4 == 0, M % 4 == 0" } else { "N % 4 == 0" };
    computed(
        "x: f32[M, N]",
        "f32[N, M]",
        facts,
        "y[j, i] = x[i, j];",
        &format!(
            "split j by 32 -> jo, ji; split i by {rows} -> io, ii; reorder jo, io, ji, ii; bind jo, io: grid;
            merge ji, ii -> m; split m by 256 -> r, t; bind t: thread;"
        ),
        &format!(
            "stage xs[i, j] = x in shared at y.io via tma {{ box i by {rows} -> ic, ib; box j by 32 -> jc, jb; {load} }}\n{}",
            store.unwrap_or_default()
        ),
    )
}

/// The dimensions of what [`normalised`] copies.
const ROWS: &str = "⟨64, 4, 64, 1⟩ ⟨500, 256, 1, 1⟩";

/// Rows of 64 elements less their mean, by their deviation, with a copy of whole rows each way.
fn normalised(schedule: &str, load: &str, store: &str) -> String {
    computed(
        "x: f32[M, 64]",
        "f32[M, 64]",
        "",
        "mean[i] = sum(|k| x[i, k]) / 64.0; inline mean;
        variance[i] = sum(|k| (x[i, k] - mean[i]) * (x[i, k] - mean[i])) / 64.0; inline variance;
        y[i, j] = (x[i, j] - mean[i]) * rsqrt(variance[i] + 0.00001);",
        schedule,
        &format!(
            "stage xs[i, j] = x in shared at y.{load} via tma {{ }} stage ys[i, j] = y in shared at y.{store} via tma {{ }}"
        ),
    )
}

/// Loads run ahead by as many buffers as the ring has: how far is not chosen. Loops may be shorter than the ring.
#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn pipelines() -> Vec<Case> {
    let mut cases = Vec::new();
    let sizes = [[3, 1024], [5, 260], [1, 4]];
    for stages in [2, 4] {
        let variant = format!("{stages} stages");
        let mut line = |test, schedule: &str| {
            let source = copy(
                "f32[N]",
                "f32[N]",
                "",
                "i",
                schedule,
                &format!("stage s[i] = x in shared at y.ci ring({stages}) via tma {{ box i by 256 -> k, z; }}"),
            );
            let runs = [[1024], [5000], [2500], [1]];
            cases.push(Case::accepted(test, &variant, source, &["⟨1024, 4, 256, 1⟩"], &[1024]).at(&[1024]).runs(&runs));
        };
        let serial = "split i by 256 -> c, t; split c by 4 -> co, ci; bind co: grid; bind t: thread;";
        line("TmaCircularBufferingTest.SingleDim", serial);
        let unrolled = "split i by 256 -> c, b; split c by 8 -> co, ci; bind co: grid; split b by 64 -> r, t; unroll r by 4; bind t: thread;";
        line("TmaCircularBufferingTest.SingleDimUnroll", unrolled);
        let whole = "split i by 1024 -> c, b; split c by 2 -> co, ci; bind co: grid; split b by 256 -> r, t; unroll r; bind t: thread;";
        line("TmaCircularBufferingTest.SingleDimUnswitch", whole);
        let tiles =
            "split i by 4 -> io, ii; split j by 256 -> jo, t; reorder io, jo, ii, t; bind io: grid; bind t: thread;";
        let load = |tensor: &str, box_i: i64, box_j: i64, at: &str| {
            format!(
                "stage {tensor}s[i, j] = {tensor} in shared at y.{at} ring({stages}) via tma {{ box i by {box_i} -> ik, iz; box j by {box_j} -> jk, jz; }}\n"
            )
        };
        let map = "⟨1024, 4, 256, 1⟩ ⟨500, 4096, 4, 1⟩";
        let source = copy("f32[M, N]", "f32[M, N]", "N % 4 == 0", "i, j", tiles, &load("x", 4, 256, "jo"));
        let test = "TmaCircularBufferingTest.MultiDim";
        cases.push(Case::accepted(test, &variant, source, &[map], &[4096]).at(&[500, 1024]).runs(&sizes));
        let source = computed(
            "x: f32[M, N], w: f32[M, N]",
            "f32[M, N]",
            "N % 4 == 0",
            "y[i, j] = x[i, j] + w[i, j];",
            tiles,
            &[load("x", 4, 256, "jo"), load("w", 4, 256, "jo")].concat(),
        );
        let test = "TmaCircularBufferingTest.Pointwise";
        cases.push(Case::accepted(test, &variant, source, &[map; 2], &[4096; 2]).at(&[500, 1024]).runs(&sizes));
        let source = computed(
            "x: f32[M, N]",
            "f32[M]",
            "N % 4 == 0",
            "y[i] = sum(|j| x[i, j]);",
            "split i by 32 -> io, t; split j by 64 -> jo, ji; reorder io, jo, t, ji; bind io: grid; bind t: thread;",
            &load("x", 32, 64, "jo"),
        );
        let test = "TmaCircularBufferingTest.InnerReduction";
        let rows = "⟨1024, 4, 64, 1⟩ ⟨500, 4096, 32, 1⟩";
        cases.push(Case::accepted(test, &variant, source, &[rows], &[8192]).at(&[500, 1024]).runs(&sizes));
        let source = computed(
            "x: f32[M, N]",
            "f32[N]",
            "N % 4 == 0",
            "y[j] = sum(|i| x[i, j]);",
            "split j by 256 -> jo, t; split i by 4 -> io, ii; reorder jo, io, t, ii; bind jo: grid; bind t: thread;",
            &load("x", 4, 256, "io"),
        );
        let test = "TmaCircularBufferingTest.OuterReduction";
        let runs = [[23, 260], [8, 256], [1, 4]];
        cases.push(Case::accepted(test, &variant, source, &[map], &[4096]).at(&[500, 1024]).runs(&runs));
        let product = computed(
            "a: f32[M, K], b: f32[K, N]",
            "f32[M, N]",
            "K % 4 == 0, N % 4 == 0",
            "y[i, j] = sum(|k| a[i, k] * b[k, j]);",
            "split i by 8 -> io, ii; split j by 32 -> jo, ji; split k by 16 -> ko, ki; reorder io, jo, ko, ii, ji, ki;
            bind io, jo: grid; merge ii, ji -> t; bind t: thread;",
            &format!(
                "stage sa[i, k] = a in shared at y.ko ring({stages}) via tma {{ box i by 8 -> ik, iz; box k by 16 -> kk, kz; }}
                stage sb[k, j] = b in shared at y.ko ring({stages}) via tma {{ box k by 16 -> kk, kz; box j by 32 -> jk, jz; }}"
            ),
        );
        let maps = ["⟨1024, 4, 16, 1⟩ ⟨500, 4096, 8, 1⟩", "⟨2048, 4, 32, 1⟩ ⟨1024, 8192, 16, 1⟩"];
        let test = "TmaCircularBufferingTest.Matmul";
        let runs = [[8, 64, 32], [13, 20, 36], [1, 4, 4]];
        cases.push(Case::accepted(test, &variant, product, &maps, &[512, 2048]).at(&[500, 1024, 2048]).runs(&runs));
        // Dimensions of one element, which the view merges with their neighbours, and a store.
        let product = computed(
            "a: f32[M, K, 1], b: f32[1, K, N]",
            "f32[M, N]",
            "K % 4 == 0, N % 4 == 0",
            "y[i, j] = sum(|k| a[i, k, 0] * b[0, k, j]);",
            "split i by 8 -> io, ii; split j by 32 -> jo, ji; split k by 16 -> ko, ki; reorder io, jo, ko, ii, ji, ki;
            bind io, jo: grid; merge ii, ji -> t; bind t: thread;",
            &format!(
                "stage sa[i, k, u] = a in shared at y.ko ring({stages}) via tma {{
                    merge k, u -> ku; box i by 8 -> ik, iz; box ku by 16 -> kk, kz; }}
                stage sb[u, k, j] = b in shared at y.ko ring({stages}) via tma {{
                    merge u, k -> uk; box uk by 16 -> kk, kz; box j by 32 -> jk, jz; }}
                stage sy[i, j] = y in shared at y.jo via tma {{ box i by 8 -> ik, iz; box j by 32 -> jk, jz; }}"
            ),
        );
        let maps = [maps[0], maps[1], "⟨2048, 4, 32, 1⟩ ⟨500, 8192, 8, 1⟩"];
        let test = "TmaCircularBufferingTest.MatmulWithBroadcastedInput";
        let case = Case::accepted(test, &variant, product, &maps, &[512, 2048, 1024]);
        cases.push(case.at(&[500, 1024, 2048]).runs(&runs));
        // Rows that are copied once and read three times. What is known of a row is computed again for each element of
        // it, so that rows are short here.
        let rows = "split i by 4 -> io, ii; bind io: grid; bind j: thread;";
        let source = normalised(rows, &format!("ii ring({stages})"), "ii ring(2)");
        let case = Case::accepted("TmaCircularBufferingTest.Persistent", &variant, source, &[ROWS; 2], &[256; 2]);
        cases.push(case.at(&[500]).runs(&[[8], [5], [1]]));
    }
    // One row for a block.
    let source = normalised("bind i: grid; bind j: thread;", "i", "i");
    let case = Case::accepted("TmaPersistent", "", source, &[ROWS; 2], &[256; 2]);
    cases.push(case.at(&[500]).by_map(0).runs(&[[8], [5], [1]]));
    // A copy belongs to the block: it cannot stand in a loop of threads.
    let threads = copy(
        "f32[A, B, C]",
        "f32[A, B, C]",
        "",
        "a, b, c",
        "merge a, b, c -> m; split m by 256 -> c1, z; split c1 by 4 -> c2, t; split c2 by 2 -> co, ci;
        reorder co, ci, t, z; bind co: grid; bind t: thread;",
        "stage s[a, b, c] = x in shared at y.t ring(2) via tma { merge a, b, c -> m; box m by 256 -> k, q; }",
    );
    cases.push(Case::refused("NVFuserTest.ElectSyncCompatibility", "", threads, Code::TW0310));
    cases
}

//! Copies of one dimension, tutorials, pipelines, and what the suite's schedulers make.

use super::{Case, computed, copy};
use tilewright_compiler::diag::Code;

pub fn cases() -> Vec<Case> {
    [lines(), tutorials(), pipelines(), schedulers()].into_iter().flatten().collect()
}

/// Instructions without a map, which copy runs of any length, are chosen where nothing can end outside the tensor; elsewhere a map of one
/// dimension is, with boxes of at most 256, which cuts what ends outside, so that nothing has to divide.
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
fn transposed(rows: i64, box_size: i64, load: &str, store: Option<&str>) -> String {
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

/// Loads run ahead by as many buffers as the ring has: how far is not chosen. Loops may be shorter than the ring.
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
    }
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

fn schedulers() -> Vec<Case> {
    let mut cases = Vec::new();
    let swizzled = "layout [ic, jc, ib, jb] swizzle 128;";
    let output = "layout [ic, jb, ib] swizzle 128;";
    let input = "⟨32768, 4, 32, 1⟩ ⟨16384, 131072, 64, 1⟩";
    let as_ops = |counts: &str, row: &str, column: &str| {
        format!(
            "split {row} by 8 -> r, r8; split {column} by 4 -> c, c4; swizzle r8, c by xor -> rx, cx; layout [{counts}r, rx, cx, c4];"
        )
    };
    let output_ops = as_ops("ic, ", "jb", "ib");
    for (variant, store) in [
        ("", None),
        ("store", Some("")),
        ("swizzled store", Some(output)),
        ("swizzled store as ops", Some(output_ops.as_str())),
    ] {
        let is_swizzled = store.is_some_and(|s| !s.is_empty());
        let box_size = if is_swizzled { 32 } else { 64 };
        let input_ops = as_ops("ic, jc, ", "ib", "jb");
        let swizzled = if variant.ends_with("ops") { &*input_ops } else { swizzled };
        let mut maps = vec![input.to_owned()];
        maps.extend(store.map(|_| format!("⟨16384, 4, {box_size}, 1⟩ ⟨32768, 65536, 32, 1⟩")));
        let tiles: Vec<u64> = [8192].into_iter().chain(store.map(|_| 128 * box_size as u64)).collect();
        let maps: Vec<&str> = maps.iter().map(String::as_str).collect();
        let source = transposed(64, box_size, swizzled, store);
        let runs = [[64, 64], [68, 36], [4, 4]];
        let case = Case::accepted("TransposeTMA.TransposeInputSmem", variant, source, &maps, &tiles);
        cases.push(case.at(&[16_384, 32_768]).xor(true).runs(&runs));
    }
    let source = transposed(64, 32, "", Some(output));
    let maps = [input, "⟨16384, 4, 32, 1⟩ ⟨32768, 65536, 32, 1⟩"];
    let case = Case::accepted("TransposeTMA.TransposeOutputSmem", "", source, &maps, &[8192, 4096]);
    cases.push(case.at(&[16_384, 32_768]).xor(true).runs(&[[64, 32], [68, 36]]));
    // Flattened, and seen as rows of 512.
    for (rank, sizes, names, runs) in [
        (1, "N", "a", [vec![512], vec![3072]]),
        (2, "M, N", "a, b", [vec![4, 512], vec![1, 1024]]),
        (3, "L, M, N", "a, b, c", [vec![2, 1, 512], vec![1, 3, 512]]),
    ] {
        for store in [false, true] {
            let merge = if rank == 1 { String::new() } else { format!("merge {names} -> m; ") };
            let m = if rank == 1 { "a" } else { "m" };
            let ops = format!("{merge}split {m} by 512 -> o, r; box o by 2 -> oc, ob; box r by 256 -> rc, rb;");
            let mut copies = format!("stage xs[{names}] = x in shared at y.o2 via tma {{ {ops} }}\n");
            if store {
                copies += &format!("stage ys[{names}] = y in shared at y.o2 via tma {{ {ops} }}\n");
            }
            let source = computed(
                &format!("x: f32[{sizes}]"),
                &format!("f32[{sizes}]"),
                "N % 512 == 0",
                &format!("y[{names}] = x[{names}] * 2.0;"),
                &format!(
                    "{merge}split {m} by 1024 -> o2, r2; bind o2: grid; split r2 by 256 -> s2, t2; bind t2: thread;"
                ),
                &copies,
            );
            let mut at = vec![1; rank];
            at[rank - 1] = 1 << 20;
            let count = 1 + usize::from(store);
            let maps = vec!["⟨512, 4, 256, 1⟩ ⟨2048, 2048, 2, 1⟩"; count];
            let case = Case::accepted(
                "TmaPointwiseTest.NoBroadcast",
                &format!("{rank} {store}"),
                source,
                &maps,
                &vec![2048; count],
            );
            cases.push(case.at(&at).with(|a| a.runs = runs.to_vec()));
        }
    }
    // Rows, columns, or both, of which each element meets many.
    let tiles =
        "split i by 8 -> io, ii; split j by 256 -> jo, t; reorder io, jo, ii, t; bind io, jo: grid; bind t: thread;";
    let tile = |tensor: &str| {
        format!(
            "stage {tensor}s[i, j] = {tensor} in shared at y.jo via tma {{ box i by 8 -> ik, iz; box j by 256 -> jk, jz; }}\n"
        )
    };
    let whole = &*tile("x");
    let row = "stage rs[j] = r in shared at y.jo via tma { box j by 256 -> jk, jz; }\n";
    let column = "stage cs[i] = c in shared at y.jo via tma { box i by 8 -> ik, iz; }\n";
    let map = "⟨2048, 4, 256, 1⟩ ⟨1024, 8192, 8, 1⟩";
    let (row_map, column_map) = ("⟨2048, 4, 256, 1⟩", "⟨1024, 4, 8, 1⟩");
    for (variant, inputs, terms, copies, maps, tiles_of) in [
        ("row", "r: f32[N]", "r[j]", vec![row], vec![row_map], vec![1024]),
        ("column", "c: f32[M]", "c[i]", vec![column], vec![column_map], vec![32]),
        ("both", "r: f32[N], c: f32[M]", "r[j] + c[i]", vec![row, column], vec![row_map, column_map], vec![1024, 32]),
    ] {
        let source = computed(
            &format!("x: f32[M, N], {inputs}"),
            "f32[M, N]",
            "N % 4 == 0",
            &format!("y[i, j] = x[i, j] + {terms};"),
            tiles,
            &[vec![whole], copies].concat().concat(),
        );
        let maps = [vec![map], maps].concat();
        let case = Case::accepted(
            "TmaPointwiseBcastTest.InnerOuterBcast",
            variant,
            source,
            &maps,
            &[vec![8192], tiles_of].concat(),
        );
        cases.push(case.at(&[1024, 2048]).runs(&[[16, 256], [9, 260], [1, 4]]));
    }
    // Rows that are no multiples of 16 bytes: refused, where a scheduler would do without.
    let ragged = |ty: &str, columns: i64| {
        let tensor = format!("{ty}[M, {columns}]");
        copy(&tensor, &tensor, "", "i, j", tiles, whole)
    };
    cases.push(Case::refused("TmaPointwiseBcastTest.TmaDomainBroadcastIllegal", "", ragged("f32", 8191), Code::TW0306));
    cases.push(Case::refused("CombinedSchedulerTest.IllegalSizeToUseTMA", "", ragged("bf16", 1023), Code::TW0306));
    let source = computed(
        "x: f32[M, N], w: f32[M, N], v: f32[M, N]",
        "f32[M, N]",
        "N % 4 == 0",
        "y[i, j] = x[i, j] * w[i, j] + v[i, j];",
        tiles,
        &["x", "w", "v"].map(tile).concat(),
    );
    let case = Case::accepted("TmaPointwiseBcastTest.MultipleInputs", "", source, &[map; 3], &[8192; 3]);
    cases.push(case.at(&[1024, 2048]).runs(&[[16, 256], [9, 260], [1, 4]]));
    // Columns of a matrix in tiles of 128 × 128, and rows.
    let source = computed(
        "x: f32[M, N]",
        "f32[N]",
        "N % 4 == 0",
        "y[j] = sum(|i| x[i, j]);",
        "split j by 128 -> jo, t; split i by 128 -> io, ii; reorder jo, io, t, ii; bind jo: grid; bind t: thread;",
        "stage s[i, j] = x in shared at y.io via tma { box i by 128 -> ik, iz; box j by 128 -> jk, jz; }",
    );
    let case = Case::accepted(
        "ReductionTest.TmaOuterReductionManualTest",
        "",
        source,
        &["⟨2048, 4, 128, 1⟩ ⟨1024, 8192, 128, 1⟩"],
        &[65_536],
    );
    cases.push(case.at(&[1024, 2048]).runs(&[[128, 128], [131, 132], [1, 4]]));
    let source = computed(
        "x: f32[M, N]",
        "f32[M]",
        "N % 4 == 0",
        "y[i] = sum(|j| x[i, j]);",
        "split i by 32 -> io, t; split j by 256 -> jo, ji; reorder io, jo, t, ji; bind io: grid; bind t: thread;",
        "stage s[i, j] = x in shared at y.jo via tma { box i by 32 -> ik, iz; box j by 256 -> jk, jz; }",
    );
    let case = Case::accepted(
        "ReductionTest.TmaInnerReductionManualTest",
        "",
        source,
        &["⟨2048, 4, 256, 1⟩ ⟨1024, 8192, 32, 1⟩"],
        &[32_768],
    );
    cases.push(case.at(&[1024, 2048]).runs(&[[32, 256], [35, 260], [1, 4]]));
    // The middle dimension is the outermost one in memory.
    let permuted = |schedule: &str, at: &str| {
        copy(
            "f32[2, 12, 16; 16, 32, 1]",
            "f32[2, 12, 16]",
            "",
            "a, b, c",
            schedule,
            &format!("stage s[a, b, c] = x in shared at y.{at} via tma {{ }}"),
        )
    };
    let map = "⟨16, 4, 16, 1⟩ ⟨12, 128, 1, 1⟩ ⟨2, 64, 1, 1⟩";
    for (test, schedule, at) in [
        (
            "AllocationDomainTest.buildAllocationDomainFromLoopIdsSplit",
            "split b by 4 -> bo, bi; reorder bo, bi, a, c; bind bo: grid; bind c: thread;",
            "a",
        ),
        (
            "AllocationDomainTest.buildAllocationDomainFromLoopIdsMerge",
            "merge a, b -> m; bind m: grid; bind c: thread;",
            "m",
        ),
    ] {
        cases.push(Case::accepted(test, "", permuted(schedule, at), &[map], &[64]).runs_unchanged());
    }
    cases
}

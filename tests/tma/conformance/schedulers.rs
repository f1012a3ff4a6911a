//! What the suite's schedulers make, written by hand.
//!
//! Where a scheduler of the suite does without the accelerator, and a copy is right nevertheless, both are here: a
//! kernel that has no copy, and one that has.
//!
//! The sizes of the suite, up to 2³⁰ elements, are those at which dimensions are compared. Runs are smaller: by as many
//! elements that the same boxes, vectors and splits divide them and leave as much, and by some that they do not divide.

use super::others::transposed;
use super::{Case, computed, copy};
use tilewright_compiler::diag::Code;

pub fn cases() -> Vec<Case> {
    [manual(), broadcasts(), grids(), ones(), reductions()].into_iter().flatten().collect()
}

/// One input by tiles, and others read by each thread.
fn broadcasts() -> Vec<Case> {
    let tile = |rows: i64, columns: i64| {
        format!(
            "stage xs[i, j] = x in shared at y.jo via tma {{ box i by {rows} -> ik, iz; box j by {columns} -> jk, jz; }}"
        )
    };
    let column = computed(
        "x: f32[M, N], c: f32[M]",
        "f32[M, N]",
        "N % 4 == 0",
        "y[i, j] = x[i, j] + c[i];",
        "split i by 8 -> io, ii; split j by 64 -> jo, t; reorder io, jo, ii, t; bind io, jo: grid; bind t: thread;",
        &tile(8, 32),
    );
    let mixed = computed(
        "x: f32[M, N], c: f32[M], d: bf16[M]",
        "f32[M, N]",
        "N % 4 == 0",
        "y[i, j] = x[i, j] + c[i] + d[i] as f32;",
        "split i by 8 -> io, ii; split j by 256 -> jo, ji; split ji by 4 -> t, v; reorder io, jo, ii, t, v;
        bind io, jo: grid; bind t: thread; vectorize v;",
        &tile(8, 256),
    );
    // The half-precision input is what a scheduler there refuses for both: its bytes are no multiple of 32. A map of
    // one dimension asks nothing of its size.
    let halves = |copies: &str| {
        computed(
            "x: bf16[16392], w: f32[16392]",
            "f32[16392]",
            "",
            "y[i] = x[i] as f32 + w[i];",
            "split i by 256 -> o, t; bind o: grid; bind t: thread;",
            copies,
        )
    };
    let both = "stage xs[i] = x in shared at y.o via tma { } stage ws[i] = w in shared at y.o via tma { }";
    let maps = ["⟨16392, 2, 256, 1⟩", "⟨16392, 4, 256, 1⟩"];
    let test = "TmaPointwiseBcastTest.MixedPrecisionIllegalTma";
    vec![
        Case::accepted(
            "TmaPointwiseBcastTest.TmaDomainBroadcast",
            "",
            column,
            &["⟨64, 4, 32, 1⟩ ⟨1024, 256, 8, 1⟩"],
            &[1024],
        )
        .at(&[1024, 64])
        .by_map(1)
        .runs(&[[128, 64], [9, 36], [1, 4]]),
        Case::accepted(
            "TmaPointwiseBcastTest.MixedPrecisionBroadcast",
            "",
            mixed,
            &["⟨16384, 4, 256, 1⟩ ⟨16384, 65536, 8, 1⟩"],
            &[8192],
        )
        .at(&[16_384, 16_384])
        .by_map(1)
        .runs(&[[16, 512], [9, 260], [1, 4]]),
        Case::accepted(test, "without copies", halves(""), &[], &[]).runs_unchanged(),
        Case::accepted(test, "with copies", halves(both), &maps, &[512, 1024]).runs_unchanged(),
    ]
}

/// More blocks than a dimension of a grid has there, as two axes: by 3 and 5 here, for 65535.
fn grids() -> Vec<Case> {
    let line = computed(
        "x: f32[M, N]",
        "f32[M, N]",
        "N % 512 == 0",
        "y[i, j] = x[i, j] + x[i, j];",
        "merge i, j -> m; split m by 1024 -> o, r; split o by 3 -> oz, oy; bind oz, oy: grid;
        split r by 256 -> q, t; bind t: thread;",
        "stage xs[i, j] = x in shared at y.oy via tma {
            merge i, j -> m; split m by 512 -> o, r; box o by 2 -> oc, ob; box r by 256 -> rc, rb; }",
    );
    let rows = computed(
        "x: bf16[M, 16], r: bf16[16], c: bf16[M]",
        "bf16[M, 16]",
        "",
        "y[i, j] = (x[i, j] as f32 + r[j] as f32 + c[i] as f32) as bf16;",
        "split i by 8 -> io, ii; split io by 5 -> iz, iy; bind iz, iy: grid; merge ii, j -> t; bind t: thread;",
        "stage xs[i, j] = x in shared at y.iy via tma { box i by 8 -> ik, ib; box j by 8 -> jk, jz; }",
    );
    vec![
        Case::accepted(
            "TmaPointwiseBcastTest.SplitGridDim1D",
            "",
            line,
            &["⟨512, 4, 256, 1⟩ ⟨2097152, 2048, 2, 1⟩"],
            &[2048],
        )
        .at(&[32_768, 32_768])
        .by_map(1)
        .runs(&[[6, 1024], [4, 1024], [5, 512]]),
        Case::accepted(
            "TmaPointwiseBcastTest.SplitGridDim2D",
            "",
            rows,
            &["⟨16, 2, 8, 1⟩ ⟨1310700, 32, 8, 1⟩"],
            &[128],
        )
        .at(&[1_310_700])
        .by_map(1)
        .runs(&[[100], [83], [1]]),
    ]
}

/// Dimensions of one element, which a scheduler there takes for broadcasts and does not copy. They are no dimensions of
/// a map.
fn ones() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut pair = |test, tensor: &str, facts: &str, axes: &str, schedule: &str, ops: &str, map: &str, bytes: u64| {
        let stages = |name: &str| {
            let at = if axes.starts_with('a') { "co" } else { "o" };
            format!("stage {name}s[{axes}] = {name} in shared at y.{at} via tma {{ {ops} }}\n")
        };
        for (variant, copies) in [("without copies", String::new()), ("with copies", stages("x") + &stages("w"))] {
            let equation = format!("y[{axes}] = x[{axes}] + w[{axes}];");
            let source = computed(&format!("x: {tensor}, w: {tensor}"), tensor, facts, &equation, schedule, &copies);
            let count = if copies.is_empty() { 0 } else { 2 };
            let case = Case::accepted(test, variant, source, &vec![map; count], &vec![bytes; count]);
            cases.push(if facts.is_empty() {
                case.runs_unchanged()
            } else {
                case.at(&[8192, 1024]).runs(&[[16, 256], [9, 260], [1, 4]])
            });
        }
    };
    let line = ["⟨8192, 4, 256, 1⟩", "box j by 256 -> jc, jb;", "box i by 256 -> ic, ib;"];
    pair(
        "TmaPointwiseBcastTest.OuterDimOne",
        "f32[1, 8192]",
        "",
        "i, j",
        "split j by 256 -> o, t; bind i, o: grid; bind t: thread;",
        line[1],
        line[0],
        1024,
    );
    pair(
        "TmaPointwiseBcastTest.InnerDimOne",
        "f32[8192, 1]",
        "",
        "i, j",
        "split i by 256 -> o, t; reorder o, j, t; bind o, j: grid; bind t: thread;",
        line[2],
        line[0],
        1024,
    );
    let rows = "split a by 8 -> ao, ai; split c by 256 -> co, t; reorder ao, b, co, ai, t; bind ao, b, co: grid; bind t: thread;";
    pair(
        "TmaPointwiseBcastTest.MiddleDimOne",
        "f32[A, 1, C]",
        "C % 4 == 0",
        "a, b, c",
        rows,
        "box a by 8 -> ac, az; box c by 256 -> cc, cz;",
        "⟨1024, 4, 256, 1⟩ ⟨8192, 4096, 8, 1⟩",
        8192,
    );
    // One input is read again for each row of the other: that one is copied.
    let source = computed(
        "v: f32[A, 1, C], w: f32[A, 2, C]",
        "f32[A, 2, C]",
        "C % 4 == 0",
        "y[a, b, c] = v[a, 0, c] + w[a, b, c];",
        rows,
        "stage ws[a, b, c] = w in shared at y.co via tma {
            box a by 8 -> ac, az; box b by 1 -> bc, bz; box c by 256 -> cc, cz; }",
    );
    let map = "⟨1024, 4, 256, 1⟩ ⟨2, 4096, 1, 1⟩ ⟨8192, 8192, 8, 1⟩";
    let case = Case::accepted("TmaPointwiseBcastTest.OneBcastOneNonBcast", "", source, &[map], &[8192]);
    cases.push(case.at(&[8192, 1024]).by_map(1).runs(&[[16, 256], [9, 260], [1, 4]]));
    cases
}

/// Parts of a row of 16384 bytes and more, and tiles of 128 × 128 elements. Threads that sum together are planned: each
/// sums a row or a column here.
fn reductions() -> Vec<Case> {
    let rows = |facts: &str, ops: &str| {
        computed(
            "x: f32[M, N]",
            "f32[M]",
            facts,
            "y[i] = sum(|j| x[i, j]);",
            "split i by 4 -> io, t; split j by 4096 -> jo, ji; reorder io, jo, t, ji; bind io: grid; bind t: thread;",
            &format!("stage s[i, j] = x in shared at y.jo via tma {{ {ops} }}"),
        )
    };
    let inner = "ReductionTest.TmaInnerReductionTest";
    let outer = "ReductionTest.TmaOuterReductionTest";
    // Rows in as many parts as there are blocks for a column of tiles, up to 8 there; without the sum of the parts,
    // which is a launch of the kernel for one.
    let parts = computed(
        "x: f32[G, R, N]",
        "f32[G, N]",
        "N % 4 == 0",
        "y[g, j] = sum(|r| x[g, r, j]);",
        "split j by 128 -> jo, t; split r by 128 -> ro, ri; reorder g, jo, ro, t, ri; bind g, jo: grid; bind t: thread;",
        "stage s[g, r, j] = x in shared at y.ro via tma {
            box g by 1 -> gk, gz; box r by 128 -> ik, iz; box j by 128 -> jk, jz; }",
    );
    let columns = |facts: &str| {
        computed(
            "x: f32[M, N]",
            "f32[N]",
            facts,
            "y[j] = sum(|i| x[i, j]);",
            "split j by 128 -> jo, t; split i by 128 -> io, ii; reorder jo, io, t, ii; bind jo: grid; bind t: thread;",
            "stage s[i, j] = x in shared at y.io via tma { box i by 128 -> ik, iz; box j by 128 -> jk, jz; }",
        )
    };
    let by_row = "box i by 1 -> ik, iz;";
    vec![
        Case::accepted(
            inner,
            "",
            rows("N % 4096 == 0, M % 4 == 0", by_row),
            &["⟨8192, 4, 4096, 1⟩ ⟨1024, 32768, 1, 1⟩"],
            &[16_384],
        )
        .at(&[1024, 8192])
        .by_map(0)
        .runs(&[[4, 4096], [8, 8192]])
        .launch_refuses(&[[4, 4100]]),
        Case::accepted(
            inner,
            "cut",
            rows("N % 4 == 0", "box i by 4 -> ik, iz; box j by 256 -> jk, jz;"),
            &["⟨8192, 4, 256, 1⟩ ⟨1024, 32768, 4, 1⟩"],
            &[4096],
        )
        .at(&[1024, 8192])
        .by_map(1)
        .runs(&[[4, 4096], [5, 4100], [1, 4]]),
        // No vectors of 16 bytes.
        Case::refused(inner, "any row", rows("", "box i by 4 -> ik, iz; box j by 256 -> jk, jz;"), Code::TW0306),
        Case::accepted(outer, "one part", columns("N % 4 == 0"), &["⟨2048, 4, 128, 1⟩ ⟨256, 8192, 128, 1⟩"], &[65_536])
            .at(&[256, 2048])
            .by_map(1)
            .runs(&[[256, 128], [131, 132], [1, 4]]),
        Case::accepted(outer, "parts", parts, &["⟨2048, 4, 128, 1⟩ ⟨128, 8192, 128, 1⟩ ⟨8, 1048576, 1, 1⟩"], &[65_536])
            .at(&[8, 128, 2048])
            .by_map(1)
            .runs(&[[2, 128, 128], [3, 131, 36], [1, 1, 4]]),
        Case::refused(outer, "any row", columns(""), Code::TW0306),
    ]
}

#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn manual() -> Vec<Case> {
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

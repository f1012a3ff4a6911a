//! Views, boxes and tiles of every kind, single tests, and what is refused.

use super::{Case, copy};
use tilewright_compiler::diag::Code;

pub fn cases() -> Vec<Case> {
    [views(), single(), refused()].into_iter().flatten().collect()
}

#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn views() -> Vec<Case> {
    let rotation = |facts: &str| {
        copy(
            "f32[N]",
            "f32[N]",
            facts,
            "i",
            "split i by 32 -> io, ii; bind io: grid; bind ii: thread;",
            "stage s[i] = x in shared at y.io via tma {
                split i by 8 -> a, q; box a by 4 -> c, b; tile b by 2 -> t, p; box q by 8 -> qc, qb; }",
        )
    };
    // A tensor whose rows lie along its second dimension.
    let columns = |layout: &str| {
        let source = copy(
            "f32[A, B, C; B, 1, A * B]",
            "f32[A, B, C]",
            "B % 4 == 0",
            "a, b, c",
            "merge a, b -> m; split m by 8 -> mc, mb; split c by 128 -> cc, cb; reorder cc, mc, cb, mb;
            bind cc, mc: grid; merge cb, mb -> r; split r by 256 -> ro, t; bind t: thread;",
            &format!(
                "stage s[a, b, c] = x in shared at y.mc via tma {{
                    merge a, b -> m; box m by 8 -> mk, mx; box c by 128 -> ck, cx; {layout} }}"
            ),
        );
        let map = "⟨131072, 4, 8, 1⟩ ⟨128, 524288, 128, 1⟩";
        Case::accepted("TMAIndexingTest.NonTrivialGmemAllocationDomain1", layout, source, &[map], &[4096])
            .at(&[128, 1024, 128])
            .xor(true)
            .runs(&[[2, 12, 3], [1, 4, 130]])
    };
    vec![
        Case::accepted(
            "TMAIndexingTest.Load2DTensorWith1DTMA",
            "",
            copy(
                "f32[M, N]",
                "f32[M, N]",
                "",
                "i, j",
                "merge i, j -> m; split m by 32 -> c, b; bind c: grid; bind b: thread;",
                "stage s[i, j] = x in shared at y.c via tma { merge i, j -> m; box m by 32 -> mc, mb; }",
            ),
            &["⟨1048576, 4, 32, 1⟩"],
            &[128],
        )
        .at(&[1024, 1024])
        .runs(&[[4, 16], [3, 7], [1, 1]]),
        Case::accepted(
            "TMAIndexingTest.Load1DTensorWith2DTMA",
            "",
            copy(
                "f32[N]",
                "f32[N]",
                "N % 1024 == 0",
                "i",
                "split i by 1024 -> o, n; split n by 32 -> nc, nb; split o by 4 -> oc, ob; reorder oc, nc, ob, nb;
                bind oc, nc: grid; bind nb: thread;",
                "stage s[i] = x in shared at y.nc via tma {
                    split i by 1024 -> o, n; box o by 4 -> oc, ob; box n by 32 -> nc, nb; }",
            ),
            &["⟨1024, 4, 32, 1⟩ ⟨1024, 4096, 4, 1⟩"],
            &[512],
        )
        .at(&[1_048_576])
        .runs(&[[1024], [5120]])
        .launch_refuses(&[[1000]]),
        Case::accepted(
            "TMAIndexingTest.NonOneElementStride",
            "",
            copy(
                "f32[M, N]",
                "f32[M, N]",
                "N % 4 == 0",
                "i, j",
                "split j by 32 -> jc, jb; split i by 32 -> ic, ib; split ib by 2 -> it, is;
                reorder ic, jc, it, is, jb; bind ic, jc: grid; bind jb: thread;",
                "stage s[i, j] = x in shared at y.jc via tma {
                    box i by 32 -> ic, ib; tile ib by 2 -> it, p; box j by 32 -> jc, jb; }",
            ),
            &["⟨1024, 4, 32, 1⟩ ⟨1024, 4096, 32, 2⟩"],
            &[2048],
        )
        .at(&[1024, 1024])
        .runs(&[[32, 32], [33, 36], [7, 4]]),
        // The third and the fifth dimension have gaps after them; what is contiguous is merged by name.
        Case::accepted(
            "TMAIndexingTest.DefineBoxByCompositing1",
            "",
            copy(
                "f32[A, B, C, D, E, F, G, H; B * C * sc, C * sc, sc, E * se, se, G * H, H, 1]",
                "f32[A, B, C, D, E, F, G, H]",
                "H % 4 == 0, se % 4 == 0, sc % 4 == 0",
                "a, b, c, d, e, f, g, h",
                "merge g, h -> gh; split gh by 32 -> e0, e1; merge a, b, c, d, e, f, e0 -> o; bind o: grid;
                bind e1: thread;",
                "stage s[a, b, c, d, e, f, g, h] = x in shared at y.o via tma {
                    merge a, b, c -> p; merge d, e -> q; merge g, h -> r; box r by 32 -> rc, rb; }",
            ),
            &["⟨256, 4, 32, 1⟩ ⟨8, 1024, 1, 1⟩ ⟨64, 8192, 1, 1⟩ ⟨256, 524288, 1, 1⟩"],
            &[128],
        )
        .at(&[4, 8, 8, 8, 8, 8, 16, 16, 131_072, 2048])
        .runs(&[[2, 1, 2, 2, 1, 2, 3, 12, 300, 80]]),
        Case::accepted(
            "TMAIndexingTest.DefineBoxByCompositingShouldNotMerge",
            "",
            copy(
                "f32[2, 256, 2, 32]",
                "f32[2, 256, 2, 32]",
                "",
                "i, j, k, l",
                "split i by 2 -> io, ii; reorder io, ii, j, k, l; bind io: grid; bind l: thread;",
                "stage s[i, j, k, l] = x in shared at y.io via tma { layout [i, j, k, l] swizzle 128; }",
            ),
            &["⟨32, 4, 32, 1⟩ ⟨2, 128, 2, 1⟩ ⟨256, 256, 256, 1⟩ ⟨2, 65536, 2, 1⟩"],
            &[131_072],
        )
        .xor(true)
        .runs_unchanged(),
        // As it is written there: rows of all three outer axes, and chunks of 4.
        Case::accepted(
            "TMAIndexingTest.DefineBoxByCompositingShouldNotMerge",
            "as ops",
            copy(
                "f32[2, 256, 2, 32]",
                "f32[2, 256, 2, 32]",
                "",
                "i, j, k, l",
                "split i by 2 -> io, ii; reorder io, ii, j, k, l; bind io: grid; bind l: thread;",
                "stage s[i, j, k, l] = x in shared at y.io via tma {
                    box (; i); box (; j); box (; k); box (; l); merge i, j, k -> r; split l by 4 -> p, q;
                    split r by 8 -> r0, r1; swizzle r1, p by xor -> r2, p2; layout [r0, r2, p2, q]; }",
            ),
            &["⟨32, 4, 32, 1⟩ ⟨2, 128, 2, 1⟩ ⟨256, 256, 256, 1⟩ ⟨2, 65536, 2, 1⟩"],
            &[131_072],
        )
        .xor(true)
        .runs_unchanged(),
        Case::accepted(
            "TMAIndexingTest.DefineBoxByRotation2",
            "both runs",
            rotation("N % 8 == 0"),
            &["⟨8, 4, 8, 1⟩ ⟨997, 32, 4, 2⟩"],
            &[64],
        )
        .at(&[7976])
        .runs(&[[7976], [40], [8]])
        .launch_refuses(&[[997]]),
        // What upstream finds at launch is a missing fact here.
        Case::refused("TMAIndexingTest.DefineBoxByRotation2", "without the fact", rotation(""), Code::TW0302),
        columns("layout [cx, mx] swizzle 32;"),
        columns(
            "split cx by 8 -> r, r8; split r8 by 4 -> ra, rb; split mx by 4 -> na, nb; swizzle ra, na by xor -> rx, nx;
            layout [r, rx, rb, nx, nb];",
        ),
        // Merged first, as there: the same rows of 8.
        columns(
            "merge cx, mx -> w; split w by 8 -> wr, n; split wr by 8 -> r, r8; split r8 by 4 -> ra, rb;
            split n by 4 -> na, nb; swizzle ra, na by xor -> rx, nx; layout [r, rx, rb, nx, nb];",
        ),
    ]
}

fn single() -> Vec<Case> {
    let both = |name: &str, schedule: &str, load: &str, store: &str, maps: usize| {
        Case::accepted(
            "TMAMiscTest.StoreSyncInsertion",
            name,
            copy(
                "f32[N]",
                "f32[N]",
                "N % 4 == 0",
                "i",
                schedule,
                &format!(
                    "stage xs[i] = x in shared at y.{load} via tma {{ box i by 128 -> c, b; }}
                    stage ys[i] = y in shared at y.{store} via tma {{ box i by 128 -> c, b; }}"
                ),
            ),
            &vec!["⟨8192, 4, 128, 1⟩"; maps],
            &vec![512; maps],
        )
        .at(&[8192])
        .runs(&[[8192], [1000], [4]])
    };
    let serial = "split i by 128 -> c, b; split c by 4 -> co, ci; bind co: grid; bind b: thread;";
    vec![
        // Four copies, all by the elected thread.
        Case::accepted(
            "TMAMiscTest.AdvancedThreadParallelizationLoad",
            "",
            copy(
                "f32[N]",
                "f32[N]",
                "",
                "i",
                "split i by 512 -> co, t; bind co: grid; bind t: thread;",
                "stage s[i] = x in shared at y.co via tma { box i by 128 -> c, b; }",
            ),
            &["⟨100000, 4, 128, 1⟩"],
            &[512],
        )
        .at(&[100_000])
        .runs(&[[100_000], [512], [130], [1]]),
        // Indices are never hoisted out of the kernel's parameters: a map is one of them.
        Case::accepted(
            "TMAMiscTest.DisableIndexHoisting",
            "",
            copy(
                "f32[32]",
                "f32[32]",
                "",
                "i",
                "split i by 32 -> c, b; bind c: grid;",
                "stage s[i] = y in shared at y.c via tma { box i by 32 -> k, x; }",
            ),
            &["⟨32, 4, 32, 1⟩"],
            &[128],
        )
        .runs_unchanged(),
        // The raw buffer cannot be read, and has no slots for the holes of the last split: what is there is what was
        // asked for.
        Case::accepted(
            "TMAMiscTest.LoadStrongCorrectness",
            "",
            copy(
                "f64[32]",
                "f64[32]",
                "",
                "i",
                "split i by 16 -> o, b; split o by 1 -> o1, u; split u by 2 -> u1, u2; bind o1: grid;",
                "stage s[i] = x in shared at y.o1 via tma { box i by 16 -> c, z; fill zero; }",
            ),
            &["⟨32, 8, 16, 1⟩"],
            &[128],
        )
        .runs_unchanged(),
        // The data pass through registers from one buffer to the other; the second copy of the output is left out, it
        // would be computed from the input.
        both("not inlined", "split i by 512 -> co, t; bind co: grid; bind t: thread;", "co", "co", 2),
        both("inlined", serial, "ci", "ci", 2),
        both("ring", serial, "ci ring(10)", "ci ring(5)", 2),
    ]
}

#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn refused() -> Vec<Case> {
    let line = |size: &str, facts: &str, ops: &str| {
        copy(
            &format!("f32[{size}]"),
            &format!("f32[{}]", size.split(';').next().unwrap_or(size)),
            facts,
            "i",
            "split i by 32 -> c, b; bind c: grid; bind b: thread;",
            &format!("stage s[i] = x in shared at y.c via tma {{ {ops} }}"),
        )
    };
    let rows = |facts: &str| {
        copy(
            "f32[M, N; ld, 1]",
            "f32[M, N]",
            facts,
            "i, j",
            "split i by 128 -> ic, ib; split j by 128 -> jc, jb; reorder ic, jc, ib, jb; bind ic, jc: grid;
            bind jb: thread;",
            "stage s[i, j] = x in shared at y.jc via tma { box i by 128 -> ik, ix; box j by 128 -> jk, jx; }",
        )
    };
    let merged = |tensor: &str, facts: &str, view: &str| {
        copy(
            tensor,
            &format!("{}]", tensor.split(';').next().unwrap_or(tensor)),
            facts,
            "i, j",
            "merge i, j -> m; split m by 16 -> c, b; bind c: grid; bind b: thread;",
            &format!("stage s[i, j] = x in shared at y.c via tma {{ {view} }}"),
        )
    };
    vec![
        // Nothing is bound to the accelerator but by a copy.
        Case::refused(
            "TMACompileTimeInvalidTest.BulkNotInTMA",
            "",
            copy("f32[N]", "f32[N]", "", "i", "bind i: bulk;", ""),
            Code::TW0101,
        ),
        // There: a broadcast axis is no axis to copy. Here: one element is no granule.
        Case::refused(
            "TMACompileTimeInvalidTest.BulkBroadcast",
            "",
            copy("f32[1]", "f32[1]", "", "i", "bind i: grid;", "stage s[i] = x in shared at y.i via tma { }"),
            Code::TW0304,
        ),
        Case::refused("TMACompileTimeInvalidTest.InvalidParallelType", "", line("8", "", "vectorize i;"), Code::TW0005),
        Case::refused(
            "TMACompileTimeInvalidTest.SizeOfTransfer",
            "",
            line("128", "", "box i by 2 -> k, x;"),
            Code::TW0304,
        ),
        // Boxes are literals. With a box of 4, four threads are enough: the block has a whole warp's worth of lanes to
        // elect from.
        Case::refused(
            "TMARuntimeInvalidTest.SizeOfTransfer",
            "a size as the box",
            line("N", "", "box i by N -> k, x;"),
            Code::TW0202,
        ),
        Case::refused("TMARuntimeInvalidTest.SizeOfTransfer", "2", line("N", "", "box i by 2 -> k, x;"), Code::TW0304),
        Case::accepted(
            "TMARuntimeInvalidTest.SizeOfTransfer",
            "4",
            copy(
                "f32[N]",
                "f32[N]",
                "",
                "i",
                "split i by 4 -> c, b; bind c: grid; bind b: thread;",
                "stage s[i] = x in shared at y.c via tma { box i by 4 -> k, x; }",
            ),
            &["⟨128, 4, 4, 1⟩"],
            &[16],
        )
        .at(&[128])
        .runs(&[[128], [3]]),
        Case::accepted(
            "TMARuntimeInvalidTest.MisalignedGlobalStride",
            "with the fact",
            rows("ld % 4 == 0"),
            &["⟨128, 4, 128, 1⟩ ⟨128, 528, 128, 1⟩"],
            &[65_536],
        )
        .at(&[128, 128, 132])
        .runs(&[[128, 128, 132], [3, 5, 8]])
        .launch_refuses(&[[128, 128, 130]]),
        Case::refused("TMARuntimeInvalidTest.MisalignedGlobalStride", "without", rows("ld >= N"), Code::TW0306),
        Case::refused(
            "TMACompileTimeInvalidTest.InnermostDiscontiguous",
            "",
            line("128; d", "d >= 1", "box i by 32 -> k, x;"),
            Code::TW0305,
        ),
        Case::refused(
            "TMACompileTimeInvalidTest.MergeDiscontiguous",
            "",
            merged("f32[M, N; ld, 1]", "ld % 4 == 0", "merge i, j -> m; box m by 16 -> k, x;"),
            Code::TW0303,
        ),
        // Legal, since boxes of 16 stay inside rows of 64: two axes, of which one is one element.
        Case::accepted(
            "TMACompileTimeInvalidTest.MergeDiscontiguous",
            "rows of whole boxes",
            merged("f32[M, 64; ld, 1]", "ld % 4 == 0", "box i by 1 -> ik, ix; box j by 16 -> k, x;"),
            &["⟨64, 4, 16, 1⟩ ⟨8, 272, 1, 1⟩"],
            &[64],
        )
        .at(&[8, 68])
        .runs(&[[8, 68], [1, 64]]),
        Case::refused(
            "TMACompileTimeInvalidTest.InnermostElementStrideNotOne",
            "",
            line("128", "", "box i by 32 -> k, x; tile x by 2 -> t, p;"),
            Code::TW0304,
        ),
    ]
}

//! Copies of the accelerator whose place memory tells: rows and pages of a table, matrices of experts. Kernels run for
//! awkward sizes under several seeds, and with numbers at the limits of their types; what is outside of the tensor is
//! zero.

use super::data_ranges::integers;
use super::online::tensor;
use super::products::refused;
use crate::support::{finished, runs, tried};
use tilewright::__private::{Arg, launch, reference};
use tilewright::kernel::ElementType;
use tilewright::{Device, EmulatorOptions};
use tilewright_compiler::diag::Code;

/// Rows of a table at the places that `index` says, of `more` inputs.
fn of_rows(more: &str, index: &str, ring: &str) -> String {
    format!(
        "kernel Rows(x: f32[E, K]{more}) -> (y: f32[B, K]) where K % 4 == 0 {{
            y[i, k] = x[{index}, k] or 0.0;
            launch threads(64);
            schedule y {{ bind i: grid; split k by 64 -> ko, t; bind t: thread; }}
            stage xs[e, k] = x in shared at y.ko {ring} via tma {{ }}
        }}"
    )
}

const SIZES: &[&[i64]] = &[&[1, 4, 1], &[5, 268, 7], &[3, 64, 20], &[0, 8, 2], &[7, 8, 0]];

#[test]
fn rows_lie_where_memory_says() {
    let indices = [
        (", p: i32[B]", "p[i]"),
        (", p: u8[B], q: i32[B]", "p[i] + 2 * q[i] - 1"),
        (", p: i32[B]", "p[B - 1 - i] + p[i]"),
        (", p: i16[B]", "i - p[i]"),
        (", p: i32[B]", "p[i / 2]"),
        (", p: i32[B, K]", "p[i, k / 64]"),
        (", p: i32[B]", "(p[i + 1] or 2)"),
        (", p: i32[B]", "(p[2 * i - 3] or -1) + 1"),
    ];
    for (more, index) in indices {
        for ring in ["", "ring(3)"] {
            tried(&of_rows(more, index, ring), SIZES, 2);
        }
    }
}

/// Iterations of a loop that is written out have places of their own.
#[test]
fn loops_around_are_written_out() {
    for unroll in ["unroll ii;", "unroll ii by 2;"] {
        for index in ["p[i]", "p[i + 1] - p[i]", "p[i / 2] + k / 64"] {
            let source = format!(
                "kernel Unrolled(x: f32[E, K], p: i32[P]) -> (y: f32[B, K]) where K % 64 == 0, B % 4 == 0, P >= B + 1 {{
                    y[i, k] = x[{index}, k] or 0.0;
                    launch threads(64);
                    schedule y {{
                        split i by 4 -> io, ii; split k by 64 -> ko, t; reorder io, ii, ko, t;
                        bind io: grid; {unroll} bind t: thread;
                    }}
                    stage xs[e, k] = x in shared at y.ko ring(2) via tma {{ }}
                }}"
            );
            tried(&source, &[&[5, 192, 9, 8], &[3, 64, 5, 4], &[0, 64, 1, 0]], 2);
        }
    }
}

/// Along the innermost axis, and along two axes at a time.
#[test]
fn other_axes_lie_where_memory_says() {
    let columns = "kernel Columns(x: f32[K, E], p: i32[B]) -> (y: f32[B, K]) where E % 4 == 0 {
        y[i, k] = x[k, 4 * p[i]] or 0.0;
        launch threads(64);
        schedule y { bind i: grid; split k by 64 -> ko, t; bind t: thread; }
        stage xs[k, e] = x in shared at y.ko ring(2) via tma { box e by 4 -> eb, e1; }
    }";
    tried(columns, &[&[9, 8, 3], &[200, 20, 5], &[64, 4, 1]], 2);
    let both = "kernel Both(x: f32[D, E, K], p: i32[B], q: i32[B]) -> (y: f32[B, K]) where K % 4 == 0 {
        y[i, k] = (x[p[i], q[i] + 1, k] or 0.0) + (x[p[i], q[i] - 1, k] or 0.0);
        launch threads(64);
        schedule y { bind i: grid; split k by 64 -> ko, t; bind t: thread; }
        stage xs[d, e, k] = x in shared at y.ko ring(2) via tma { }
    }";
    tried(both, &[&[4, 5, 8, 6], &[2, 3, 196, 9], &[1, 1, 4, 3]], 2);
    // A window that starts where memory says.
    let window = "kernel Window(x: f32[N], p: i32[B]) -> (y: f32[B, 64]) {
        y[i, j] = x[4 * p[i] + j] or 0.0;
        launch threads(64);
        schedule y { bind i: grid; bind j: thread; }
        stage xs[n] = x in shared at y.i via tma { }
    }";
    tried(window, &[&[100, 5], &[3, 9], &[0, 2]], 3);
}

/// In both widths of indices.
#[test]
fn numbers_may_be_as_large_as_their_types() {
    let numbers: [(&str, ElementType, &[i128]); 4] = [
        ("i64", ElementType::I64, &[i64::MIN as i128, i64::MAX as i128, -1, 0, 2, 4, 5, 1 << 32, -(1 << 32) + 1]),
        ("u64", ElementType::U64, &[0, u64::MAX as i128, 1, 2, 4, 5, 1 << 32, (1 << 63) + 1]),
        ("i32", ElementType::I32, &[i32::MIN as i128, i32::MAX as i128, -1, 0, 2, 4, 5]),
        ("u32", ElementType::U32, &[0, u32::MAX as i128, 1 << 31, 2, 4, 5]),
    ];
    for (name, element, values) in numbers {
        // Nothing is added to an index of 64 bits (TW0005).
        let all = ["p[i]", "3 * p[i] + 1", "p[i] - 1", "2 - p[i]"];
        for index in &all[..if element.bytes() == 8 { 1 } else { 4 }] {
            let source = of_rows(&format!(", p: {name}[B]"), index, "ring(2)");
            let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
            let info = kernel.info.as_ref().expect("no error");
            let (rows, n, of) = (values.len(), 68, 5);
            let device = Device::emulator(EmulatorOptions::default());
            let x: Vec<f64> = (0..of * n).map(|at| (at % 7) as f64 + 1.0).collect();
            let x = tensor(&device, ElementType::F32, &[of, n], &x);
            let p = integers(&device, element, values);
            for info in crate::support::by_entry(info, &[of as i64, n as i64, rows as i64]) {
                let y = tensor(&device, ElementType::F32, &[rows, n], &vec![7.0; rows * n]);
                let arguments = [(&x, false), (&p, false), (&y, true)];
                let arguments = arguments.map(|(tensor, is_output)| Arg::dynamic(tensor, is_output));
                let admissible = reference(&info, &arguments).unwrap_or_else(|e| panic!("{e}"));
                launch(&info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{source}\n{e}"));
                let output = admissible.outputs().next().expect("one");
                output.check_raw(&y.read().expect("written")).unwrap_or_else(|e| panic!("{source}\n{e}"));
            }
        }
    }
}

/// A product with the matrix of an expert for each tile of rows, as `launch` and the ops of copies say.
fn experts(launch: &str, by: [&str; 2], out: &str, ops: [&str; 2]) -> String {
    let ([load, math], [of_x, of_w]) = (by, ops);
    format!(
        "kernel Experts(x: bf16[M, K], w: bf16[E, N, K], e: i32[T]) -> (y: f32[M, N]) where 64 * T >= M, K % 8 == 0 {{
            s[m, n] = dot(|k| x[m, k] * (w[e[m / 64], n, k] or 0.0));
            y[m, n] = s[m, n];
            {launch}
            schedule y {math} {{ split m by 64 -> mt, m1; split n by 32 -> nt, n1; {out} fragment (m1, n1) by wgmma; unroll n1_p; }}
            schedule s in registers at y.nt {math} {{ split k by 32 -> ko, k1; mma (m, n, k1) by wgmma; }}
            stage xs[m, k] = x in shared at s.ko ring(3) {load} via tma {{ {of_x} layout [m, k] swizzle 64; }}
            stage ws[e, n, k] = w in shared at s.ko ring(3) {load} via tma {{ {of_w} layout [e, n, k] swizzle 64; }}
        }}"
    )
}

#[test]
fn experts_multiply_tiles_of_rows() {
    let sizes: &[&[i64]] = &[&[130, 168, 3, 33, 3], &[64, 64, 1, 8, 1], &[70, 8, 2, 65, 2]];
    let roles = "launch roles { math: warpgroup, load: warp };";
    let grid = "bind mt, nt: grid;";
    let plain = experts("", ["", ""], grid, ["", ""]);
    tried(&plain, sizes, 2);
    tried(&experts(roles, ["by load", "by math"], grid, ["", ""]), sizes, 2);
    let persistent = "launch persistent, roles { math: warpgroup, load: warp };";
    tried(&experts(persistent, ["by load", "by math"], grid, ["", ""]), sizes, 1);
    // Two blocks have the rows of an expert in common, or the columns of different ones.
    let clusters = "launch cluster(2), roles { math: warpgroup, load: warp };";
    let by_columns = "split nt by 2 -> nc, c; bind mt, nc: grid; bind c: cta;";
    let shared = experts(clusters, ["by load", "by math"], by_columns, ["multicast y.c;", ""]);
    tried(&shared.replace("at y.nt", "at y.c"), sizes, 1);
    let by_rows = "split mt by 2 -> mc, c; reorder mc, nt, c, m1, n1; bind mc, nt: grid; bind c: cta;";
    let apart = experts(clusters, ["by load", "by math"], by_rows, ["", "multicast y.c;"]);
    refused(&apart.replace("at y.nt", "at y.c"), Code::TW0319, &["`ws`"]);
}

/// Rows of an instance at places of their own: pages that are smaller than a block.
#[test]
fn memory_lists_the_places_of_an_instance() {
    let listed = |x: &str, value: &str, (rows, ops): (u32, &str)| {
        format!(
            "kernel Pages({x}, p: i32[P]) -> (y: f32[B, K]) where K % 4 == 0, 3 * P >= B + 3 {{
                y[i, k] = {value};
                launch threads(64);
                schedule y {{
                    split i by {rows} -> io, ii; split k by 64 -> ko, t; reorder io, ko, ii, t;
                    bind io: grid; bind t: thread;
                }}
                {ops}
            }}"
        )
    };
    let rows = "stage xs[e, k] = x in shared at y.ko ring(2) via tma { }";
    let pages = "stage xs[e, f, k] = x in shared at y.ko ring(3) via tma { }";
    let merged = "stage xs[e, f, k] = x in shared at y.ko ring(2) via tma { merge e, f -> ef; box ef by 1 -> eb, e1; }";
    let kernels = [
        listed("x: f32[E, K]", "x[p[i / 3], k] or 0.0", (6, rows)),
        listed("x: f32[E, K]", "x[p[i / 3 + 1] - 1, k] or 0.5", (12, rows)),
        listed("x: f32[E, K]", "x[p[(B - 1 - i) / 3], k] or 0.0", (9, rows)),
        listed("x: f32[E, K]", "(x[p[i / 3] or 1, k] or 0.0) + 2.0 * (x[p[i / 3] or 1, k] or 1.0)", (48, rows)),
        listed("x: f32[E, 3, K]", "x[p[i / 3], i % 3, k] or 0.0", (6, pages)),
        listed("x: f32[E, 3, K]", "(x[p[i / 3], i % 3, k] or 0.0) - (x[p[i / 3], 2 - i % 3, k] or 0.0)", (24, pages)),
        // What lists places along one dimension is no single place along another one (below); another input is.
        listed("x: f32[E, E, K], q: i32[P]", "x[p[i / 3], q[i / 6] + i % 3, k] or 0.0", (6, pages)),
        // What memory says is taken away from itself.
        listed("x: f32[E, K]", "x[p[i / 3] - p[i / 3] + (i / 3) % 2, k] or 0.5", (6, rows)),
        // In any order, and with places that nothing asks for.
        listed("x: f32[E, K]", "x[p[4 * (i / 12) + 3 - (i / 3) % 4] or 1, k] or 0.5", (12, rows)),
        listed("x: f32[E, K]", "x[p[i / 3 * 2 % 3] or 0, k] or 0.5", (6, rows)),
        // Merged with an axis of one element.
        listed("x: f32[E, 1, K]", "x[p[i / 3], 0, k] or 0.5", (6, merged)),
        // Boxes of a page in other orders.
        listed(
            "x: f32[E, 3, K]",
            "x[p[i / 3], i % 3, k] or 0.0",
            (
                12,
                "stage xs[e, f, k] = x in shared at y.ko ring(2) via tma {
                box e by 1 -> eb, e1; box k by 16 -> kb, k1; layout [kb, eb, f, e1, k1];
            }",
            ),
        ),
    ];
    for source in kernels {
        tried(&source, &SIZES_OF_PAGES[..], 2);
    }
    let refuse = |value: &str, rows_of: u32, words: &str| {
        refused(&listed("x: f32[E, K]", value, (rows_of, rows)), Code::TW0312, &[words]);
    };
    let both = listed("x: f32[E, E, K]", "x[p[i / 3], p[i / 6] + i % 3, k] or 0.0", (6, pages));
    refused(&both, Code::TW0312, &["`p` says"]);
    // Numbers of boxes cancel here, and what memory says does not: of two elements of one list, and where the index of
    // an axis that is merged counts the other way.
    refuse(
        "x[(p[i / 3] or 1) - (p[2 * (i / 6) + 1 - (i / 3) % 2] or 1) + 1, k] or 0.0",
        6,
        "along `e` is not a tile: where it lies, `p` says",
    );
    let backwards = listed("x: f32[E, 1, K]", "x[p[i / 3], 2 * (1 - (i / 3) % 2), k] or 0.0", (6, merged));
    refused(&backwards, Code::TW0312, &["along `ef` is not a tile: where it lies, `p` says"]);
    refuse("x[p[i / 3], k] or 0.0", 51, "`p` lists 17 places for an instance, and 16 is the most");
    refuse("x[2 * p[i / 3], k] or 0.0", 6, "not just added");
    refuse("x[p[i / 3] - i, k] or 0.0", 6, "`p` says");
    refuse("x[p[i / 3] + i % 3, k] or 0.0", 6, "`p` says");
    refuse("(x[p[i / 3], k] or 0.0) + (x[p[i / 3 + 1], k] or 0.0)", 6, "two reads start at");
}

const SIZES_OF_PAGES: [&[i64]; 4] = [&[5, 196, 7, 12], &[3, 64, 10, 25], &[1, 8, 2, 1], &[9, 196, 21, 53]];

/// Attention of keys in pages, as large as a block of terms, half of it, and a quarter; lengths that memory says, too.
#[test]
fn keys_lie_in_pages() {
    let attention = |page: u32, ends: &str, more: &str| {
        format!(
            "kernel Paged(q: bf16[M, 16], k: bf16[P, {page}, 16], v: bf16[P, {page}, 8], page: i32[L]{more})
                -> (y: f32[M, 8]) where {page} * L % 64 == 0
            {{
                s[i, j in 0..{page} * L] = dot(|d| q[i, d] * (k[page[j / {page}], j % {page}, d] or 0.0));
                m[i] = max(|j in 0..{ends}| s[i, j]);
                p[i, j in 0..{page} * L] = approx::exp2(fma(0.25, s[i, j], -0.25 * m[i]));
                pb[i, j in 0..{page} * L] = p[i, j] as bf16;
                l[i] = online sum(|j in 0..{ends}| p[i, j]);
                a[i, e] = online dot(|j in 0..{ends}| pb[i, j] * (v[page[j / {page}], j % {page}, e] or 0.0));
                y[i, e] = a[i, e] / l[i];
                launch roles {{ math: warpgroup, load: warp }};
                schedule y by math {{ split i by 64 -> it, i1; bind it: grid; fragment (i1, e) by wgmma; unroll e_p; }}
                schedule m in registers at y.it by math {{
                    split j by 64 -> jo, j1; reorder jo, i, j1; fragment (i, j1) by wgmma; online m -> l, a over jo;
                }}
                schedule a in registers at m.jo by math {{ mma (i, e, j) by wgmma inflight(1); }}
                schedule pb in registers at m.jo by math {{ fragment (i, j) by wgmma; }}
                schedule p in registers at m.jo by math {{ fragment (i, j) by wgmma; }}
                schedule s in registers at m.jo by math {{ mma (i, j, d) by wgmma; }}
                stage sq[i, d] = q in shared at y.it via tma by load {{ layout [i, d] swizzle 32; }}
                stage sk[r, j, d] = k in shared at m.jo ring(2) via tma by load {{ layout [r, j, d] swizzle 32; }}
                stage sv[r, j, e] = v in shared at m.jo ring(3) via tma by load {{ layout [r, j, e]; }}
            }}"
        )
    };
    // Sizes are M, P, L.
    for (page, sizes) in [
        (64, [&[70, 5, 4][..], &[1, 3, 1], &[5, 2, 0]]),
        (32, [&[70, 5, 6], &[1, 3, 2], &[64, 1, 2]]),
        (8, [&[70, 5, 24], &[1, 3, 8], &[64, 1, 8]]),
    ] {
        let all = format!("{page} * L");
        tried(&attention(page, &all, ""), &sizes, 1);
        tried(&attention(page, &format!("min(9 * len[i / 64], {all})"), ", len: i32[M]"), &sizes, 1);
        tried(&attention(page, &format!("min(i + 1, {all})"), ""), &sizes, 1);
    }
}

/// What is no single place for an instance.
#[test]
fn one_instance_has_one_place() {
    let computed = |index: &str| {
        format!(
            "kernel P(x: f32[E, 64], p: i32[B], q: i32[64]) -> (y: f32[B, 64]) {{
                y[i, k] = x[{index}, k] or 0.0;
                launch threads(64);
                schedule y {{ bind i: grid; bind k: thread; }}
                stage xs[e, k] = x in shared at y.i via tma {{ }}
            }}"
        )
    };
    runs(&computed("p[i]"), &finished(&computed("p[i]")).unwrap_or_else(|(_, e)| panic!("{e}")), &[&[3, 5]], 1);
    for (index, words) in [
        ("p[i] / 2", "not just added"),
        ("p[i] * B", "not just added"),
        ("p[i] % 3", "not just added"),
        ("q[k]", "`q` lists 64 places"),
        ("(q[p[i]] or 0)", "read from memory"),
        ("min(p[i], 3)", "read from memory"),
    ] {
        refused(&computed(index), Code::TW0312, &[words]);
    }
}

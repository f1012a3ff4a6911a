//! Ranges that memory decides: terms are those of the range, whatever memory says, and loops have the iterations with
//! terms alone. Kernels run for awkward sizes under several seeds, and with ends at the limits of their types.

use super::attention::over;
use super::online::tensor;
use crate::support::{finished, runs};
use tilewright::__private::{Arg, DynamicTensor, launch, reference};
use tilewright::kernel::ElementType;
use tilewright::{Device, EmulatorOptions};
use tilewright_compiler::diag::Code;

fn right(source: &str, sizes: &[&[i64]], seeds: u64) {
    let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    runs(source, &kernel, sizes, seeds);
}

/// A reduction of rows of `x` over a range, with `more` parameters, and a schedule of it.
fn of_rows(more: &str, value: &str, schedule: &str) -> String {
    format!(
        "kernel Rows(x: f32[M, N]{more}) -> (y: f32[M]) {{
            y[i] = {value};
            launch threads(64);
            {schedule}
        }}"
    )
}

const BY_THREAD: &str = "schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; }";
const BY_WARP: &str = "schedule y {
    split i by 2 -> b, w; bind b: grid; split j by 32 -> jo, l; bind w, l: thread; reduce l by warp;
    reorder b, w, l, jo;
}";
const BY_BLOCK: &str = "schedule y {
    bind i: grid; split j by 64 -> jo, t; bind t: thread; reduce t by cta; reorder i, t, jo;
}";
const SIZES: &[&[i64]] = &[&[1, 1], &[3, 33], &[70, 9], &[5, 0], &[2, 200], &[0, 4]];

#[test]
fn reductions_have_the_terms_that_memory_says() {
    let ranges = [
        (", n: i32[M]", "0..min(9 * n[i], N)"),
        (", n: i32[M], k: i32[M], q: i64[M]", "max(3 * n[i], max(q[i], 0))..min(9 * k[i] + 5, N)"),
        (", n: u32[M]", "min(5 * n[i], N)..N"),
        (", n: u8[M], c: i32", "0..min(n[i] + 7 * c, N)"),
        (", n: i16[M]", "0..n[i] % (N + 1)"),
        (", n: i32[M]", "max(0, 5 * n[M - 1 - i] - 3)..=min(11 * n[i], N - 1)"),
    ];
    for (more, range) in ranges {
        for schedule in [BY_THREAD, BY_WARP, BY_BLOCK] {
            right(&of_rows(more, &format!("sum(|j in {range}| x[i, j])"), schedule), SIZES, 2);
        }
    }
    let values = [
        "max(|j in @| x[i, j])",
        "prod(|j in @| x[i, j])",
        "if any(|j in @| x[i, j] > 0.5) { 1.0 } else { 2.0 }",
        "if all(|j in @| x[i, j] > 0.5) { 1.0 } else { 2.0 }",
        "fold(|j in @| init 1.0, step s => 0.5 * s + x[i, j])",
        "fold(|j in @| init 0.0, step s => max(s, x[i, j]), merge (a, b) => max(a, b))",
        "sum(|j in @| x[i, j]) + max(|j in 0..min(3 * n[i], N)| x[i, j])",
    ];
    for value in values {
        let source = of_rows(", n: i32[M]", &value.replace('@', "max(n[i], 0)..min(9 * n[i], N)"), BY_THREAD);
        right(&source, &[&[3, 33], &[70, 9], &[5, 0]], 2);
    }
}

/// Schedules that cut, share, stage and unroll such terms.
#[test]
fn schedules_of_them_are_like_others() {
    let sum = |range: &str| format!("sum(|j in {range}| x[i, j])");
    let ranges = ["0..min(9 * n[i], N)", "max(5 * n[i], 0)..N", "max(0, 3 * n[i] - 7)..min(N, 9 * n[i])"];
    let schedules = [
        // Vectors of terms, loops that are written out in part, accumulators that are written out.
        "schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; split j by 4 -> jo, v; vectorize v; }",
        "schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; split j by 8 -> jo, v; unroll v; }",
        "schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; unroll j by 4; }",
        "schedule y { split i by 128 -> b, r; split r by 64 -> u, t; bind b: grid; bind t: thread; unroll u; reorder b, t, j, u; }",
        // Several loops of terms.
        "schedule y {
            bind i: grid; split j by 256 -> jo, ji; split ji by 64 -> jm, t; bind t: thread; reduce t by cta; reorder i, t, jo, jm;
        }",
        "schedule y { bind i: grid; split j into 64 -> t, jo; bind t: thread; reduce t by cta; reorder i, t, jo; }",
        // Blocks share them.
        "schedule y {
            split j into 3 -> g, jo; split jo by 64 -> jp, t; bind i, g: grid; bind t: thread;
            reduce g by grid; reduce t by cta; reorder i, g, t, jp;
        }",
        // Staged copies, in rings.
        "schedule y { bind i: grid; split j by 64 -> jo, t; bind t: thread; reduce t by cta; reorder i, t, jo; }
         stage xs[i, j] = x in shared at y.jo via tma { }",
        "schedule y { bind i: grid; split j by 64 -> jo, t; bind t: thread; reduce t by cta; reorder i, t, jo; }
         stage xs[i, j] = x in shared at y.jo ring(3) via tma { }",
        "schedule y { bind i: grid; split j by 64 -> jo, t; bind t: thread; reduce t by cta; reorder i, t, jo; }
         stage xs[i, j] = x in shared at y.jo ring(2) via cp_async { split j by 64 -> c, t; bind t: thread; }",
    ];
    for schedule in schedules {
        for range in ranges {
            let mut source = of_rows(", n: i32[M]", &sum(range), schedule);
            if schedule.contains("via tma") || schedule.contains("vectorize") {
                source = source.replace("{\n            y[i] =", "where N % 4 == 0 {\n            y[i] =");
            }
            let sizes: &[&[i64]] = &[&[1, 4], &[3, 136], &[70, 12], &[5, 0], &[2, 900]];
            right(&source, sizes, 2);
        }
    }
}

/// Parts of the terms that whole iterations divide: no predicate keeps out what belongs to the next part, so that a
/// loop has to end where its part does.
#[test]
fn parts_end_where_the_next_ones_begin() {
    let schedules = [
        "split j into 3 -> g, jo; split jo by 64 -> jp, t; bind i, g: grid; bind t: thread; reduce g by grid;
         reduce t by cta; reorder i, g, t, jp;",
        "split j into 3 -> jg, jo; split jo by 64 -> jp, t; bind i: grid; bind t: thread; reduce t by cta;
         reorder i, t, jg, jp;",
    ];
    for ops in schedules {
        for range in ["0..min(60 * n[i], N)", "max(50 * n[i], 0)..N", "max(0, 40 * n[i])..min(90 * n[i], N)"] {
            let source =
                of_rows(", n: i32[M]", &format!("sum(|j in {range}| x[i, j])"), &format!("schedule y {{ {ops} }}"));
            let source = source.replace("-> (y: f32[M]) {", "-> (y: f32[M]) where N % 192 == 0 {");
            right(&source, &[&[5, 192], &[9, 576]], 2);
        }
    }
}

/// Ends that other equations, other terms and scalars decide; reductions that are computed where they are read; terms
/// of what a kernel updates in place.
#[test]
fn ends_may_be_made_of_anything() {
    let sources = [
        "kernel Ends(x: f32[M, N], n: i32[M], c: i32) -> (y: f32[M]) {
            e[i] = n[i] + c;
            y[i] = sum(|j in 0..min(9 * e[i], N)| x[i, j]);
            schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        }",
        "kernel Held(x: f32[M, N], n: i32[M], c: i32) -> (y: f32[M]) {
            e[i] = n[i] + c;
            y[i] = sum(|j in 0..min(9 * e[i], N)| x[i, j]);
            launch threads(64);
            schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; }
            schedule e in shared at y.b { bind i: thread; }
        }",
        "kernel Jagged(x: f32[P, N], n: i32[M], w: i32[P]) -> (y: f32[M]) {
            y[i] = sum(|p in 0..min(n[i], P), j in max(0, w[p])..min(9 * w[p], N)| x[p, j]);
            schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        }",
        "kernel Searched(x: f32[M, N], n: i32[M]) -> (y: f32[M]) {
            y[i] = sum(|j in 0..min(sum(|k| n[k]) + 5 * n[i], N)| x[i, j]);
            schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        }",
        "kernel Inlined(x: f32[M, N], n: i32[M]) -> (y: f32[M, N]) {
            y[i, k] = x[i, k] / (1.5 + sum(|j in max(n[i], 0)..min(9 * n[i], k + 1)| abs(x[i, j])));
            schedule y { split k by 64 -> b, t; bind i, b: grid; bind t: thread; }
        }",
        "kernel Masked(x: f32[M, N], n: i32[M]) -> (y: f32[M]) {
            y[i] = if i % 2 == 0 { sum(|j in 0..min(9 * n[i], N)| x[i, j]) } else { 1.0 };
            schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        }",
        "kernel Own(x: f32[M, N], inout n: i32[M]) {
            n[i] = sum(|j in 0..min(9 * n[i], N)| if x[i, j] > 0.0 { 1i32 } else { 2i32 });
            schedule n { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        }",
    ];
    for source in sources {
        let sizes: &[&[i64]] = match source.contains("f32[P, N]") {
            true => &[&[4, 30, 3], &[1, 1, 1], &[70, 9, 66]],
            false => &[&[1, 1], &[3, 33], &[70, 9], &[5, 0]],
        };
        right(source, sizes, 2);
    }
}

/// Ends at the limits of their types, in both widths of indices.
#[test]
fn ends_may_be_as_large_as_their_types() {
    let schedules = [BY_THREAD, BY_WARP, BY_BLOCK];
    let staged =
        "schedule y { bind i: grid; split j by 64 -> jo, t; bind t: thread; reduce t by cta; reorder i, t, jo; }
         stage xs[i, j] = x in shared at y.jo ring(3) via tma { }";
    let ends: [(&str, ElementType, &[i128]); 4] = [
        ("i64", ElementType::I64, &[i64::MIN as i128, i64::MAX as i128, -1, 0, 40, 99, 100, 101]),
        ("u64", ElementType::U64, &[0, u64::MAX as i128, 1, 64, 40, 99, 100, 1 << 32]),
        ("i32", ElementType::I32, &[i32::MIN as i128, i32::MAX as i128, -1, 0, 40, 99, 100, 101]),
        ("u32", ElementType::U32, &[0, u32::MAX as i128, 1 << 31, 64, 40, 99, 100, 101]),
    ];
    for (name, element, values) in ends {
        for schedule in schedules.into_iter().chain([staged]) {
            let more = format!(", from: {name}[M], to: {name}[M]");
            let source = of_rows(&more, "sum(|j in max(0, from[i])..min(to[i], N)| x[i, j])", schedule);
            let source = source.replace("{\n            y[i] =", "where N % 4 == 0 {\n            y[i] =");
            let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
            let info = kernel.info.as_ref().expect("no error");
            let (rows, n) = (values.len() * values.len(), 100);
            let device = Device::emulator(EmulatorOptions::default());
            let x: Vec<f64> = (0..rows * n).map(|at| (at % 7) as f64 - 3.0).collect();
            let x = tensor(&device, ElementType::F32, &[rows, n], &x);
            let [from, to] = [true, false].map(|is_first| {
                let of = |row: usize| values[if is_first { row / values.len() } else { row % values.len() }];
                let all: Vec<i128> = (0..rows).map(of).collect();
                integers(&device, element, &all)
            });
            for info in crate::support::by_entry(info, &[rows as i64, n as i64]) {
                let y = tensor(&device, ElementType::F32, &[rows], &vec![0.0; rows]);
                let arguments = [(&x, false), (&from, false), (&to, false), (&y, true)];
                let arguments = arguments.map(|(tensor, is_output)| Arg::dynamic(tensor, is_output));
                let admissible = reference(&info, &arguments).unwrap_or_else(|e| panic!("{e}"));
                launch(&info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{source}\n{e}"));
                let output = admissible.outputs().next().expect("one");
                output.check_raw(&y.read().expect("written")).unwrap_or_else(|e| panic!("{source}\n{e}"));
            }
        }
    }
}

pub(super) fn integers(device: &Device, element: ElementType, values: &[i128]) -> DynamicTensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()[..element.bytes() as usize].to_vec()).collect();
    DynamicTensor::new(device, element, (&[values.len()], &[1]), &bytes, 0).expect("it fits")
}

/// The terms of an instance are copied where they are terms, and those of no range are not even copied.
#[test]
fn blocks_beside_a_range_are_left_out() {
    let source = of_rows(
        ", from: i32[M], to: i32[M]",
        "sum(|j in max(0, from[i])..min(to[i], N)| x[i, j])",
        "schedule y { bind i: grid; split j by 64 -> jo, t; bind t: thread; reduce t by cta; reorder i, t, jo; }
         stage xs[i, j] = x in shared at y.jo ring(2) via tma { }",
    );
    let source = source.replace("{\n            y[i] =", "where N % 4 == 0 {\n            y[i] =");
    let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    let device = Device::emulator(EmulatorOptions::default());
    for (from, to, copies) in
        [(0, 640, 10), (0, 1, 1), (0, 0, 0), (64, 128, 1), (63, 129, 3), (70, 3, 0), (-9, 900, 10)]
    {
        let x = tensor(&device, ElementType::F32, &[1, 640], &[1.0; 640]);
        let [from, to] = [from, to].map(|end| integers(&device, ElementType::I32, &[end]));
        let y = tensor(&device, ElementType::F32, &[1], &[0.0]);
        let arguments = [(&x, false), (&from, false), (&to, false), (&y, true)];
        let arguments = arguments.map(|(tensor, is_output)| Arg::dynamic(tensor, is_output));
        launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
        let report = device.emulator_report().expect("it ran");
        assert_eq!(report.counters.bulk_loads.copies, copies, "{from:?} {to:?}");
    }
}

/// Blocks of a cluster that take a copy together go through the same iterations, be they as many as memory says of all
/// of them, or all where it says something else of each.
#[test]
fn clusters_wait_for_each_other_in_such_loops() {
    for (more, index, facts) in [("n: i32[1]", "0", ""), ("n: i32[M]", "i", ""), ("n: i32[K]", "i / 2", ", M <= 2 * K")]
    {
        let source = format!(
            "kernel Shared(x: f32[M, N], w: f32[N], {more}) -> (y: f32[M]) where N % 4 == 0{facts} {{
                y[i] = sum(|j in 0..min(40 * n[{index}] + 100, N)| x[i, j] * w[j]);
                launch cluster(2), threads(64);
                schedule y {{
                    split i by 2 -> io, ic; bind io: grid; bind ic: cta;
                    split j by 64 -> jo, t; bind t: thread; reduce t by cta; reorder io, ic, t, jo;
                }}
                stage ws[j] = w in shared at y.jo ring(2) via tma {{ multicast y.ic; }}
            }}"
        );
        let sizes: &[&[i64]] = if facts.is_empty() { &[&[6, 500], &[1, 64]] } else { &[&[6, 500, 4], &[1, 64, 1]] };
        right(&source, sizes, 3);
    }
}

/// Attention over such ranges: one for all rows, for each tile of rows, and for each row; at one end or both, and
/// together with what the row itself says.
#[test]
fn attention_has_the_keys_that_memory_says() {
    let with = |more: &str, range: &str, sizes: &str| {
        over(range, sizes).replace("v: bf16[N, 8]", &format!("v: bf16[N, 8], {more}"))
    };
    let of_all = [
        ("n: i32[1]", "0..min(9 * n[0], N)", ""),
        ("n: u8[2]", "min(n[0], N)..min(n[1] * 5, N)", ""),
        ("n: i32[1]", "max(0, 5 * n[0])..N", "where N % 16 == 0"),
        ("n: i32[1]", "max(3, 5 * n[0])..min(N, 40 - n[0])", "where N >= 3"),
        ("n: i32[1]", "max(0, max(n[0], i - 20))..min(9 * n[0], min(i + 20, N))", ""),
        ("n: i32[1]", "0..min(9 * n[0], i + 1)", "where M <= N"),
    ];
    for (more, range, sizes) in of_all {
        right(&with(more, range, sizes), &[&[70, 80], &[17, 32], &[1, 16]], 4);
    }
    // Of each tile of 64 rows.
    let tiles = "from: i32[T], to: i32[T]";
    let range = "max(0, 5 * from[i / 64])..min(9 * to[i / 64], N)";
    right(&with(tiles, range, "where M <= 64 * T"), &[&[130, 80, 3], &[17, 45, 2], &[200, 96, 4]], 4);
    // A size that says less: the tile's last row may have no entry, as far as the compiler sees, but it exists.
    let exact = "where T == (M + 63) / 64";
    right(&with(tiles, range, exact), &[&[130, 80, 3], &[17, 45, 1]], 2);
    // Of each row, whose scores are masked in all blocks.
    let rows = "from: i32[M], to: i32[M]";
    right(&with(rows, "max(0, 5 * from[i])..min(9 * to[i], N)", ""), &[&[70, 80], &[17, 32]], 4);
    right(&with("to: i32[M]", "0..min(9 * to[i], i + 1)", "where M <= N"), &[&[70, 80], &[17, 32]], 2);
    // And tiles that do not begin where the range of a row does: the hull of its rows beside the rows' own ends.
    let both = "max(max(0, 5 * from[i / 64]), 3 * first[i])..min(min(9 * to[i / 64], 7 * last[i]), N)";
    let more = "from: i32[T], to: i32[T], first: i32[M], last: i32[M]";
    right(&with(more, both, "where M <= 64 * T"), &[&[130, 80, 3], &[17, 45, 2]], 4);
}

/// The variants of attention that are examples, over some keys of each head: few queries whose keys blocks share, and
/// products of warps.
#[test]
fn variants_of_attention_have_lengths() {
    let text = include_str!("../../examples/attention_variants.rs");
    let kernel = |name: &str| {
        let start = text.find(&format!("kernel {name}(")).expect("an example");
        let end = text[start..].find("\n    }\n").expect("its end");
        format!("{}\n    }}", &text[start..start + end])
    };
    for (name, heads, at, terms) in [("Decode", "H", "h", "T"), ("ByWarps", "1", "0", "N")] {
        let source = kernel(name)
            .replace(&format!("kernel {name}("), &format!("kernel {name}(n: i32[{heads}], "))
            .replace("(|j|", &format!("(|j in 0..min(40 * n[{at}], {terms})|"));
        let sizes: &[&[i64]] = if name == "Decode" { &[&[2, 3, 600], &[1, 1, 64]] } else { &[&[70, 150], &[3, 32]] };
        right(&source, sizes, 2);
    }
    // Few queries that are the last ones of as many keys, or stand where memory says: each sees the keys up to its own.
    for (more, range, sizes) in
        [("", "0..=i + (T - S)", "where S <= T"), ("first: i32[H], ", "0..min(20 * first[h] + i + 1, T)", "")]
    {
        let source = kernel("Decode")
            .replace("kernel Decode(", &format!("kernel Decode({more}"))
            .replace("(|j|", &format!("(|j in {range}|"))
            .replace("-> (o: bf16[H, S, 64]) {", &format!("-> (o: bf16[H, S, 64]) {sizes} {{"));
        right(&source, &[&[1, 3, 130], &[2, 1, 5]], 1);
    }
}

/// A tile of tensor cores has all terms of its factors, whatever memory says.
#[test]
fn tensor_cores_take_no_such_sums() {
    let source = |range: &str| {
        format!(
            "kernel Product(a: bf16[M, K], b: bf16[N, K], n: i32[M]) -> (c: f32[M, N]) where N % 2 == 0, K % 8 == 0 {{
                acc[i, j] = dot(|k in {range}| a[i, k] * b[j, k]);
                c[i, j] = acc[i, j] + (n[i] as f32);
                schedule c {{
                    split i by 64 -> it, i1; split j by 64 -> jt, j1; bind it, jt: grid; reorder it, jt, i1, j1;
                    fragment (i1, j1) by wgmma; vectorize j1_p;
                }}
                schedule acc in registers at c.jt {{
                    split k by 64 -> ko, k1; reorder ko, i, j, k1; mma (i, j, k1) by wgmma;
                }}
                stage sa[i, k] = a in shared at acc.ko ring(2) via tma {{ layout [i, k] swizzle 128; }}
                stage sb[j, k] = b in shared at acc.ko ring(2) via tma {{ layout [j, k] swizzle 128; }}
            }}"
        )
    };
    right(&source("0..K"), &[&[3, 64, 2]], 1);
    for range in ["0..min(n[0], K)", "0..min(n[i], K)", "max(n[0], 0)..K"] {
        let Err((codes, report)) = finished(&source(range)) else { panic!("accepted: {range}") };
        assert_eq!(codes, [Code::TW0804], "{report}");
    }
}

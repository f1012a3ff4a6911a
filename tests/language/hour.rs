//! Slips of a second hour, mended as the messages say: `ui-tests/cases/second_hour.rs` has the kernels. What each
//! message proposes is done, round after round, until nothing is said any more; the kernel is then right.

use tilewright_compiler::diag::Code;

use super::helps::{case, compiled, edited, findings};
use super::support::{finished, runs};

/// One message and what is done about it: its code, words of a help, and the text that another one replaces.
type Round<'a> = (Code, &'a str, &'a [(&'a str, &'a str)]);

/// The rounds lead from the kernel to one of which nothing is said, and which is right at these sizes.
fn leads_to(kernel: &str, rounds: &[Round<'_>], sizes: &[&[i64]]) {
    let mut source = case("cases/second_hour", kernel);
    for (code, words, edits) in rounds {
        let found = findings(&source, *code);
        let has_words = found.iter().any(|d| d.help.iter().any(|help| help.text.contains(words)));
        assert!(has_words, "{kernel}: no help has {words}\n{found:#?}");
        source = edited(&source, edits);
    }
    assert_eq!(compiled(&source), [], "{kernel} is still\n{source}");
    let finished = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    runs(&source, &finished, sizes, 2);
}

const ROWS: &[&[i64]] = &[&[0, 3], &[1, 1], &[9, 77], &[16, 256]];
const ONE: &[&[i64]] = &[&[0], &[1], &[257], &[1000]];
/// Sizes of products: M, K, N.
const PRODUCT: &[&[i64]] = &[&[0, 8, 1], &[1, 8, 1], &[65, 72, 70]];

#[test]
fn slips_of_equations() {
    let stencil = [("x[i - 2]", "(x[i - 2] or 0.0)"), ("x[i + 2]", "(x[i + 2] or 0.0)")];
    leads_to("Halo", &[(Code::TW0901, "say what is read outside: `x[i - 2] or 0.0`", &stencil)], ONE);
    let narrower: &[Round<'_>] = &[
        (Code::TW0901, "so that `i - 2 >= 0` holds", &[("if i >= 1 &&", "if i - 2 >= 0 &&")]),
        (Code::TW0901, "so that `i + 2 < N` holds", &[("i < N - 1 {", "i + 2 < N {")]),
    ];
    leads_to("Halo", narrower, ONE);
    let apart = [
        ("y[i, j] = exp(x[i, j]);", "z[i, j] = exp(x[i, j]);"),
        ("sum(|j| y[i, j])", "sum(|j| z[i, j])"),
        ("= y[i, j] / s[i]", "= z[i, j] / s[i]"),
    ];
    let kept = [("bind t: thread; }", "bind t: thread; } schedule s in registers at y.i { like y; reduce t; }")];
    let assigned: &[Round<'_>] = &[
        (Code::TW0108, "give the second one another name", &apart),
        (Code::TW0702, "`schedule s in registers at y.i { … }`", &kept),
    ];
    leads_to("Assigned", assigned, ROWS);
    let heads = [("= x[b, h, s, d]", "= x[b, s, h, d]")];
    let sizes: &[&[i64]] = &[&[0, 1, 1, 1], &[1, 2, 3, 1], &[2, 3, 2, 130]];
    leads_to("Heads", &[(Code::TW0901, "`x[b, s, h, d]`", &heads)], sizes);
    leads_to("Signs", &[(Code::TW0119, "convert the right one: `… as i32`", &[("- o[i]", "- o[i] as i32")])], ONE);
    let outputs = [
        ("inout x: f32[N])", "x: f32[N]) -> (out: f32[N])"),
        ("x[i] = 0.5", "out[i] = 0.5"),
        ("schedule x", "schedule out"),
    ];
    leads_to("Relax", &[(Code::TW0124, "write to another tensor: `-> (out: …)`", &outputs)], ONE);
    let wider = [("(x[i] * 300) >> 8", "((x[i] as i32 * 300) >> 8) as u8")];
    leads_to("Bytes", &[(Code::TW0122, "`i32` has it: compute with `… as i32`, and convert the result", &wider)], ONE);
    let power = [("pow(x[i], g)", "exp(g * log(x[i]))")];
    leads_to("Gamma", &[(Code::TW0123, "`exp(y * log(x))`", &power)], ONE);
    let place = [("argmax(|j| x[i, j])", "argmax(|j| x[i, j]) as i32")];
    leads_to("Where", &[(Code::TW0119, "convert it: `… as i32`", &place)], &[&[0, 1], &[1, 1], &[9, 77]]);
    // The row is there for all lanes of the vector, or for none.
    let lookup: &[Round<'_>] = &[(Code::TW0117, "`table[…] or 0.0`", &[("table[id[t], d]", "table[id[t], d] or 0.0")])];
    leads_to("Lookup", lookup, &[&[0, 1, 8], &[1, 1, 8], &[5, 7, 136]]);
}

#[test]
fn slips_of_left_sides() {
    let from = "say of each element where it comes from: `y[i] = ";
    let reversed = [
        ("y[N - 1 - i] = x[i]", "y[i] = x[N - i - 1]"),
        ("w[i + 0] + (i as f32)", "w[(N - i - 1) + 0] + ((N - i - 1) as f32)"),
    ];
    leads_to("Reversed", &[(Code::TW0009, from, &reversed)], ONE);
    let odd = [("y[2 * i + 1] = x[i]", "y[i] = if (i - 1) % 2 == 0 { x[(i - 1) / 2] or y[i] } else { y[i] }")];
    leads_to("Odd", &[(Code::TW0009, from, &odd)], &[&[0, 0], &[7, 3], &[600, 300], &[1000, 20], &[20, 1000]]);
    let pooled = [("y[i / 2] = x[i]", "y[i] = sum(|k in 0..2| x[2 * i + k])")];
    leads_to("Pooled", &[(Code::TW0009, "a reduction over them", &pooled)], ONE);
}

#[test]
fn slips_of_threads() {
    let lanes = [("split j by 64 -> r, t;", "split j by 64 -> r, j1; split j1 by 32 -> h, t;")];
    leads_to("Lanes", &[(Code::TW0602, "split the axis by 32 and bind the inner part", &lanes)], ROWS);
    let blocks = [("reduce t;", "reduce t; reduce b by grid;")];
    leads_to("Blocks", &[(Code::TW0703, "`reduce b by grid;`", &blocks)], ONE);
    leads_to("Atomic", &[(Code::TW1009, "combine them in a fixed order: `by grid`", &[("by atomic", "by grid")])], ONE);
    let one_number = [("threads(32, 8)", "threads(256)")];
    leads_to("Dimensions", &[(Code::TW0009, "write `threads(256)`", &one_number)], ROWS);
    // Without numbers there is no product to write.
    let named = edited(
        &case("cases/second_hour", "Dimensions"),
        &[("launch threads(32, 8)", "tune W in [4, 8]; launch threads(32, W)")],
    );
    assert!(findings(&named, Code::TW0009)[0].help[0].text.contains("write the product: `threads(…)`"));
    let names = [("blockIdx", "grid"), ("threadIdx", "thread")];
    leads_to("CudaNames", &[(Code::TW0101, "did you mean `grid`?", &names)], ONE);
    let inner =
        [("bind t: thread; reduce t; unroll r;", "split r by 4 -> ro, ri; bind t: thread; reduce t; unroll ri;")];
    leads_to("Unrolled", &[(Code::TW0207, "split `r` by a literal and `unroll` the inner part", &inner)], ROWS);
    let units = [("load: 32, math: 128", "load: warp, math: 4 warp")];
    leads_to("Roles", &[(Code::TW0001, "`4 warp`", &units)], &[&[0, 4], &[1, 4], &[5, 132]]);
    // Neither the vector nor the threads: the axis of the blocks.
    let blocks = [("schedule z at y.t", "schedule z at y.b")];
    leads_to("Beside", &[(Code::TW0706, "serial loop: `at y.b`", &blocks)], &[&[0], &[4], &[1004]]);
}

#[test]
fn slips_of_places() {
    let inside = [("a in shared at c.jo", "a in shared at c.ko")];
    leads_to(
        "WrongLoop",
        &[(Code::TW0501, "attach `as_` further inside, `at c.ko`", &inside)],
        &[&[0, 1, 1], &[1, 0, 1], &[17, 33, 18]],
    );
    // A copy by the accelerator is told the same.
    let by_boxes = [
        ("(c: f32[M, N]) {", "(c: f32[M, N]) where K % 4 == 0 {"),
        ("c.jo { bind i, k: thread; }", "c.jo via tma { box i by 16 -> ic, ib; box k by 16 -> kc, kb; }"),
    ];
    let source = edited(&case("cases/second_hour", "WrongLoop"), &by_boxes);
    assert!(findings(&source, Code::TW0501)[0].help[0].text.contains("attach `as_` further inside, `at c.ko`"));
    assert_eq!(compiled(&edited(&source, &inside)), []);
    let kept = [("reduce t; }", "reduce t; }\nschedule s in registers at y.i { like y; reduce t; }")];
    leads_to("Softmax", &[(Code::TW0702, "`schedule s in registers at y.i { … }`", &kept)], ROWS);
    let dimensions = "name an axis for each of the 3 dimensions of `x`";
    let batch: &[Round<'_>] = &[(Code::TW0106, dimensions, &[("stage xs[i, j]", "stage xs[b, i, j]")])];
    leads_to("Batches", batch, &[&[0, 1, 4], &[1, 1, 4], &[2, 9, 36]]);
    leads_to("ByThreads", batch, &[&[0, 1, 4], &[1, 1, 4], &[2, 9, 33]]);
    // What no op has replaced, or is given to blocks: here the place of the block.
    let place = [("schedule label {", "inline d; schedule label {")];
    let nearest = findings(&case("cases/second_hour", "Nearest"), Code::TW0702);
    assert!(nearest[0].help[0].text.contains("at label.b"), "{nearest:#?}");
    let inlined = edited(&case("cases/second_hour", "Nearest"), &place);
    let finished = finished(&inlined).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    runs(&inlined, &finished, &[&[0, 1, 1], &[1, 0, 1], &[130, 5, 33]], 2);
}

#[test]
fn slips_of_vectors_and_layouts() {
    let rows = [
        ("split j by 4 -> jo, v; merge i, jo -> p;", "split i by 4 -> io, v; merge j, io -> p;"),
        ("N % 4 == 0", "M % 4 == 0"),
    ];
    let column: &[Round<'_>] = &[
        (Code::TW0404, "vectorise an axis that is made of `i`: along it `y` is contiguous", &rows),
        (Code::TW0401, "state the fact: `where ld % 4 == 0`", &[("M % 4 == 0", "M % 4 == 0, ld % 4 == 0")]),
    ];
    leads_to("ColumnMajor", column, &[&[4, 1, 4], &[8, 3, 12], &[260, 5, 264]]);
    let narrow = [("swizzle 128", "swizzle 32")];
    let source = edited(&case("cases/second_hour", "Narrow"), &narrow);
    let found = findings(&case("cases/second_hour", "Narrow"), Code::TW0407);
    assert!(found[0].help[0].text.contains("write `swizzle 32`"), "{found:#?}");
    let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    runs(&source, &kernel, &[&[0, 4], &[1, 4], &[33, 40]], 2);
    // Twelve bytes are three words.
    let colours =
        [("merge j, c -> k; vectorize k;", "merge j, c -> k; split k by 4 -> ko, kv; vectorize kv; unroll ko;")];
    let found = findings(&case("cases/second_hour", "Colours"), Code::TW0403);
    assert!(found[0].help[0].text.contains("split `k` by 4, which divides it"), "{found:#?}");
    let source = edited(&case("cases/second_hour", "Colours"), &colours);
    let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    runs(&source, &kernel, &[&[0, 4], &[1, 4], &[3, 36]], 2);
    // That an order of threads would do is not said where rows are shorter than a warp.
    let found = findings(&source, Code::TW0491);
    assert!(found[0].help[0].text.contains("`c` has 3 elements: merge it with the axis before it"), "{found:#?}");
}

#[test]
fn slips_of_tensor_cores() {
    let dot: &[Round<'_>] = &[
        (Code::TW0801, "write `dot(|k| …)` for the sum", &[("= sum(|k|", "= dot(|k|")]),
        (Code::TW0119, "convert it: `… as f16`", &[("= acc[m, n];", "= acc[m, n] as f16;")]),
    ];
    leads_to("Accumulator", dot, PRODUCT);
    leads_to("Rows", &[(Code::TW0801, "let it have 64", &[("split m by 32", "split m by 64")])], PRODUCT);
    let layout = [("via tma { }", "via tma { layout [m, k] swizzle 128; }")];
    leads_to("NoSwizzle", &[(Code::TW0803, "write `layout [m, k] swizzle 128;` for `sa`", &layout)], PRODUCT);
    // The reader is dealt out as the tensor cores leave the sum, or goes through shared memory.
    let sizes: &[&[i64]] = &[&[0, 8, 8], &[1, 8, 8], &[65, 72, 72]];
    let own = [
        ("split ni by 8 -> nq, v;", ""),
        ("reorder mt, nt, mi, nq, v;", "reorder mt, nt, mi, ni;"),
        ("merge mi, nq -> p; split p by 128 -> r, t;", "fragment (mi, ni) by wgmma;"),
        ("bind t: thread; vectorize v; unroll r;", "vectorize ni_p;"),
    ];
    leads_to("Epilogue", &[(Code::TW0707, "`fragment (mi, ni) by wgmma` in its schedule", &own)], sizes);
    let through = [
        ("c[m, n] = (acc[m, n]", "t[m, n] = acc[m, n]; c[m, n] = (t[m, n]"),
        ("schedule acc in", "schedule t in shared at c.nt { fragment (m, n) by wgmma; unroll n_p; }\nschedule acc in"),
    ];
    let source = case("cases/second_hour", "Epilogue");
    let found = findings(&source, Code::TW0707);
    assert!(found[0].help[1].text.contains("`schedule t in shared`, with a `fragment` of its axes"), "{found:#?}");
    let source = edited(&source, &through);
    let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    runs(&source, &kernel, sizes, 2);
}

/// A layout is said to have no conflicts where none is left, and otherwise by how much it is faster; an order of axes
/// without conflicts is found where padding and swizzles of the other one are not.
#[test]
fn layouts_are_as_good_as_is_said() {
    let padded = |layout: &str| {
        format!(
            "kernel PadTranspose(x: f16[M, N]) -> (y: f16[N, P]) where P % 8 == 0, P >= M {{
                y[j, i] = x[i, j] or 0.0;
                launch threads(256);
                schedule y {{
                    split j by 32 -> jo, j1; split i by 64 -> io, i1; split i1 by 8 -> iq, v;
                    reorder jo, io, j1, iq, v; bind jo, io: grid; bind j1, iq: thread; vectorize v;
                }}
                stage xs[i, j] = x in shared at y.io {{
                    split i by 8 -> ir, w; bind w: warp; bind j: thread; layout {layout};
                }}
            }}"
        )
    };
    for layout in ["[i, j]", "[i, j pad 2]", "[i, j] swizzle 64", "[j, i]"] {
        let found = findings(&padded(layout), Code::TW0490);
        let text = &found[0].help[0].text;
        let proposed = text.strip_prefix("write `layout ").and_then(|text| text.split_once('`')).expect(text);
        assert_eq!(proposed.1, ": then no access of `xs` waits so", "{layout}");
        let source = padded(proposed.0);
        assert_eq!(compiled(&source), [], "{layout}");
        let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
        let explained = &kernel.info.as_ref().expect("no error").explanation;
        for access in ["read", "write"] {
            let line = format!("{access} of xs in shared memory: 1 cycle for a warp, no bank conflicts\n");
            assert!(explained.contains(&line), "{layout}: {explained}");
        }
        runs(&source, &kernel, &[&[37, 35, 40], &[1, 1, 8]], 2);
    }
    // With what tensor cores leave, each store waits in any layout that is tried: what is better is told in numbers.
    let through = "kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0, N % 4 == 0 {
            acc[m, n] = dot(|k| a[m, k] * b[n, k]);
            t[m, n] = acc[m, n];
            c[m, n] = 2.0 * t[m, n];
            launch threads(128);
            schedule c {
                split m by 64 -> mt, mi; split n by 64 -> nt, ni; split ni by 4 -> nq, v; reorder mt, nt, mi, nq, v;
                bind mt, nt: grid; merge mi, nq -> p; split p by 128 -> r, t; bind t: thread; vectorize v;
            }
            schedule t in shared at c.nt { fragment (m, n) by wgmma; unroll n_p; }
            schedule acc in registers at c.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
            stage sa[m, k] = a in shared at acc.ko ring(4) via tma { layout [m, k] swizzle 128; }
            stage sb[n, k] = b in shared at acc.ko ring(4) via tma { layout [n, k] swizzle 128; }
        }";
    let found = findings(through, Code::TW0490);
    let words = "with `layout [m, n pad 4]` the accesses of `t` that were counted take 384 cycles instead of 1152";
    assert_eq!(found[0].help[0].text, words);
}

/// A stage in a block whose elements end where the tensor does may split them as the block does.
#[test]
fn a_stage_splits_as_its_block() {
    let source = "kernel Sums(x: f32[N, D], c: f32[K, D]) -> (y: f32[N]) where D <= 64 {
            d[i, k] = sum(|e| (x[i, e] - c[k, e]) * (x[i, e] - c[k, e]));
            least[i] = min(|k| d[i, k]);
            y[i] = least[i];
            launch threads(128);
            schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
            schedule least in registers at y.b { like y; split k by 8 -> ko, k1; reorder ko, t, k1; unroll k1; }
            schedule d in registers at least.ko {
                split i by 128 -> b, t; bind t: thread; reorder b, t, e, k; unroll k; unroll b;
            }
            stage xs[i, e] = x in shared at y.b {
                merge i, e -> q; split q by 128 -> r, t; bind t: thread; layout [i, e pad 1];
            }
            stage cs[k, e] = c in shared at least.ko { merge k, e -> q; split q by 128 -> r, t; bind t: thread; }
        }";
    let kernel = finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{report}"));
    runs(source, &kernel, &[&[0, 1, 1], &[1, 3, 1], &[131, 33, 19], &[256, 64, 8]], 2);
}

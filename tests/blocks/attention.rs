//! Products that follow an extreme block by block of terms: attention. Kernels run for awkward sizes under several
//! seeds, through the separate checker at all their entry points, and give what `reference()` does; with scores of all
//! kinds they do, too.

use super::online::{read, rows, tensor};
use crate::support::{finished, runs, tried};
use tilewright::__private::{Arg, DynamicTensor, launch, reference};
use tilewright::kernel::ElementType;
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;
use tilewright_compiler::diag::Code;

/// One warpgroup, blocks of 16 terms: parameters, scores from those of q and k, other sums, and who does what.
fn attention(parameters: &str, scores: &str, y: &str, ops: &str, more: &str) -> String {
    format!(
        "kernel Attention(q: bf16[M, 16], k: bf16[N, 16], v: bf16[N, 8]{parameters}) -> (y: f32[M, 8])
        where N % 16 == 0 {{
            s[i, j] = dot(|d| q[i, d] * k[j, d]);
            {scores}
            m[i] = max(|j| x[i, j]);
            p[i, j] = approx::exp2(x[i, j] - m[i]);
            l[i] = online sum(|j| p[i, j]);
            pb[i, j] = p[i, j] as bf16;
            a[i, e] = online dot(|j| pb[i, j] * v[j, e]);
            {y}
            schedule y {{
                split i by 64 -> it, i1; bind it: grid; reorder it, i1, e;
                fragment (i1, e) by wgmma; vectorize e_p;
            }}
            schedule m in registers at y.it {{ split j by 16 -> jo, j1; {ops} online m -> l, a over jo; }}
            schedule a in registers at m.jo {{ mma (i, e, j) by wgmma; }}
            schedule pb in registers at m.jo {{ fragment (i, j) by wgmma; }}
            schedule s in registers at m.jo {{ mma (i, j, d) by wgmma; }}
            stage sq[i, d] = q in shared at y.it via tma {{ layout [i, d] swizzle 32; }}
            stage sk[j, d] = k in shared at m.jo ring(2) via tma {{ layout [j, d] swizzle 32; }}
            stage sv[j, e] = v in shared at m.jo ring(2) via tma {{ layout [j, e]; }}
            {more}
        }}"
    )
}

const SCORES: &str = "x[i, j] = 0.125 * s[i, j];";
const Y: &str = "y[i, e] = a[i, e] / l[i];";
const OPS: &str = "fragment (i, j1) by wgmma;";
const HELD: &str = "schedule p in registers at m.jo { fragment (i, j) by wgmma; }
    schedule x in registers at m.jo { fragment (i, j) by wgmma; }";

/// Sizes are M, N.
const SIZES: &[&[i64]] = &[&[1, 16], &[64, 48], &[70, 32], &[3, 0], &[0, 16]];

#[test]
fn products_follow_an_extreme() {
    tried(&attention("", SCORES, Y, OPS, HELD), SIZES, 2);
    // Everything between is computed where it is read; the sums are read alone.
    tried(&attention("", SCORES, "y[i, e] = a[i, e] + (l[i] + m[i]);", OPS, ""), SIZES, 1);
}

/// The last block lacks terms: its scores are masked, and the factor has zeros there.
#[test]
fn last_blocks_may_lack_terms() {
    let ragged = |source: String| source.replace("where N % 16 == 0", "");
    let sizes: &[&[i64]] = &[&[1, 5], &[64, 50], &[70, 33], &[2, 16], &[3, 0], &[1, 1]];
    tried(&ragged(attention("", SCORES, Y, OPS, HELD)), sizes, 2);
    tried(&ragged(attention("", SCORES, "y[i, e] = a[i, e] + (l[i] + m[i]);", OPS, "")), &[&[66, 35], &[3, 0]], 1);
    // The product masks its scores, in a loop that begins with the first block that lacks a term: one, or all but one.
    tried(&direct(OPS), LACKING, 1);
    // Terms that begin later.
    let late = ragged(attention("", SCORES, Y, OPS, HELD))
        .replace("(|j|", "(|j in 3..N|")
        .replace("f32[M, 8])", "f32[M, 8]) where N >= 3");
    tried(&late, &[&[5, 3], &[2, 20], &[65, 36]], 1);
}

/// Scores are those of the product, and blocks need not divide the terms.
fn direct(ops: &str) -> String {
    attention("", "", Y, ops, "").replace("x[i, j]", "s[i, j]").replace("where N % 16 == 0", "")
}

/// Sizes of which the last block lacks one term, all but one, or none.
const LACKING: &[&[i64]] = &[&[2, 31], &[66, 47], &[1, 15], &[3, 32], &[2, 1], &[65, 17], &[1, 0]];

/// Blocks take parts of the terms, and the last one merges what they have: in parts that the blocks of terms divide,
/// and in as many parts as are said.
#[test]
fn blocks_share_the_terms() {
    let shared = |split: &str, more: &str| {
        attention("", SCORES, Y, &format!("{split} bind jg: grid; reduce jg by grid; {OPS}"), more)
            .replace("over jo;", "over ji;")
            .replace("m.jo", "m.ji")
    };
    let [by_two, into_three] = ["split jo by 2 -> jg, ji;", "split jo into 3 -> jg, ji;"];
    let ragged = |source: String| source.replace("where N % 16 == 0", "");
    tried(&ragged(shared("split jo by 4 -> jg, ji;", HELD)), &[&[1, 5], &[66, 100], &[64, 64], &[66, 20], &[3, 0]], 1);
    tried(&shared(into_three, HELD), &[&[70, 16], &[2, 160]], 1);
    tried(&shared(by_two, HELD).replace("N % 16", "N % 32"), &[&[5, 96]], 1);
    // Terms up to the row.
    let causal = ragged(shared(into_three, "")).replace("M, 16]", "N, 16]").replace("M, 8]", "N, 8]");
    let of = |source: String, of: &str| source.replace(&format!("{of}(|j|"), &format!("{of}(|j in 0..=i|"));
    let causal = ["max", "online sum", "online dot"].into_iter().fold(causal, of);
    tried(&causal, &[&[150], &[70], &[1]], 1);
}

/// What each row has once, written by the first lane of it: the logarithm of the sum.
#[test]
fn rows_are_written_once() {
    let source = attention("", SCORES, "y[i, e] = a[i, e] / l[i]; z[i] = m[i] + log(l[i]);", OPS, HELD)
        .replace("(y: f32[M, 8])", "(y: f32[M, 8], z: f32[M])")
        .replace(
            "schedule m in",
            "schedule z at y.it { split i by 64 -> it, i1; bind it: grid; fragment (i1) by wgmma; }\nschedule m in",
        );
    tried(&source, &[&[1, 16], &[70, 48], &[66, 32], &[3, 0]], 1);
    // Of the product's elements in a row the lane that writes has the first.
    let with = |column: &str| source.replace("+ log(l[i])", &format!("+ a[i, {column}]"));
    tried(&with("0"), &[&[1, 16], &[70, 48], &[66, 32]], 1);
    let Err((codes, report)) = finished(&with("3")) else { panic!("accepted") };
    assert_eq!(codes, [Code::TW0707], "{report}");
}

/// Four heads of queries have the keys and values of one.
#[test]
fn heads_share_keys() {
    let source =
        "kernel Grouped(q: bf16[4 * G, S, 16], k: bf16[G, T, 16], v: bf16[G, T, 16]) -> (y: f32[4 * G, S, 16]) {
            s[h, i, j] = dot(|d| q[h, i, d] * k[h / 4, j, d]);
            m[h, i] = max(|j| s[h, i, j]);
            p[h, i, j] = approx::exp(0.25 * (s[h, i, j] - m[h, i]));
            l[h, i] = online sum(|j| p[h, i, j]);
            pb[h, i, j] = p[h, i, j] as bf16;
            a[h, i, e] = online dot(|j| pb[h, i, j] * v[h / 4, j, e]);
            y[h, i, e] = a[h, i, e] / l[h, i];
            launch persistent, roles { math: 2 warpgroup alternate, load: warp };
            schedule y by math {
                split i by 64 -> it, i1; bind h, it: grid; reorder h, it, i1, e;
                fragment (i1, e) by wgmma; vectorize e_p;
            }
            schedule m in registers at y.it by math {
                split j by 32 -> jo, j1; fragment (i, j1) by wgmma; online m -> a, l over jo;
            }
            schedule a in registers at m.jo by math { mma (i, e, j) by wgmma; }
            schedule pb in registers at m.jo by math { fragment (i, j) by wgmma; }
            schedule s in registers at m.jo by math { mma (i, j, d) by wgmma; }
            stage sq[h, i, d] = q in shared at y.it ring(2) via tma by load { layout [h, i, d] swizzle 32; }
            stage sk[g, j, d] = k in shared at m.jo ring(2) via tma by load { layout [g, j, d] swizzle 32; }
            stage sv[g, j, e] = v in shared at m.jo ring(2) via tma by load { layout [g, j, e] swizzle 32; }
        }";
    tried(source, &[&[1, 70, 33], &[2, 1, 5]], 1);
    // Those that take tiles in turn are a block behind, each in its own.
    let behind = source.replace("mma (i, e, j) by wgmma", "mma (i, e, j) by wgmma inflight(1)");
    tried(&behind, &[&[1, 70, 33], &[2, 1, 5]], 2);
}

/// The same with roles: two warpgroups multiply, another warp copies; `items` of the launch.
fn with_roles(source: &str, items: &str) -> String {
    source
        .replace(
            "schedule y {",
            &format!("launch {items}roles {{ math: 2 warpgroup, load: warp }};\nschedule y by math {{"),
        )
        .replace(
            "split i by 64 -> it, i1; bind it: grid; reorder it, i1, e;",
            "split i by 128 -> it, i2; split i2 by 64 -> w, i1; bind w: warpgroup; bind it: grid; reorder it, w, i1, e;",
        )
        .replace("at y.it {", "at y.it by math { split i by 64 -> w, i1; bind w: warpgroup;")
        .replace("at m.jo {", "at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup;")
        .replace("mma (i,", "mma (i1,")
        .replace("fragment (i,", "fragment (i1,")
        .replace("via tma", "via tma by load")
}

/// How a row runs in one of these.
const OPS_WITH_ROLES: &str = "reorder jo, w, i1, j1; fragment (i1, j1) by wgmma;";

/// Roles, two warpgroups, and tiles that blocks take in turn.
#[test]
fn roles_hand_blocks_over() {
    let roles = |items: &str| with_roles(&attention("", SCORES, Y, OPS_WITH_ROLES, HELD), items);
    tried(&roles(""), &[&[130, 48], &[66, 32], &[1, 16]], 2);
    tried(&roles("persistent, "), &[&[300, 48], &[130, 16], &[7, 0]], 2);
}

/// The product of a block is under way while the next one's scores are computed.
#[test]
fn a_product_is_a_block_behind() {
    let behind = |source: &str, items: &str| {
        with_roles(source, items).replace("mma (i1, e, j) by wgmma", "mma (i1, e, j) by wgmma inflight(1)")
    };
    let plain = |more: &str| attention("", SCORES, Y, OPS_WITH_ROLES, more);
    let ragged = |source: String| source.replace("where N % 16 == 0", "");
    let sizes: &[&[i64]] = &[&[130, 48], &[1, 16], &[3, 0], &[64, 32]];
    let compiled = tried(&behind(&plain(HELD), ""), sizes, 2);
    // Scores are awaited alone, but in the first iteration; what is behind, before its factor is computed again and
    // after the last block.
    let text = compiled.entries[0].kernel.to_string();
    let awaited = |pending: u32| text.matches(&format!("await all but {pending} commits of products")).count();
    assert_eq!((awaited(1), awaited(0)), (2, 3), "{text}");
    // What is between is computed where it is read: then all of it is after the wait.
    tried(&behind(&ragged(plain("")), ""), &[&[66, 35], &[2, 16], &[3, 0], &[1, 1], &[65, 17]], 1);
    tried(&behind(&ragged(plain(HELD)), "persistent, "), &[&[300, 50], &[7, 1], &[300, 5]], 2);
    tried(&behind(&direct(OPS_WITH_ROLES), ""), LACKING, 1);
    // Rings of one slot and of three.
    let rings = plain(HELD).replace("k in shared at m.jo ring(2)", "k in shared at m.jo ring(3)");
    let rings = rings.replace("v in shared at m.jo ring(2)", "v in shared at m.jo");
    tried(&behind(&rings, ""), &[&[130, 96], &[66, 32], &[1, 16]], 2);
    // Terms up to the row: tiles have different numbers of blocks, and rows of a tile end in different ones.
    let causal = attention("", "x[i, j] = s[i, j];", Y, OPS_WITH_ROLES, "").replace("x[i, j]", "s[i, j]");
    let causal = ragged(causal).replace("s[i, j] = s[i, j];", "").replace("M, 16]", "N, 16]").replace("M, 8]", "N, 8]");
    let of = |source: String, of: &str| source.replace(&format!("{of}(|j|"), &format!("{of}(|j in 0..=i|"));
    let causal = ["max", "online sum", "online dot"].into_iter().fold(causal, of);
    tried(&behind(&causal, ""), &[&[150], &[1], &[33]], 2);
    tried(&behind(&causal, "persistent, "), &[&[300], &[70]], 1);
}

/// What stands in the way of a product that is a block behind.
#[test]
fn products_behind_are_refused_where_they_cannot_be() {
    let source = with_roles(&attention("", SCORES, Y, OPS_WITH_ROLES, HELD), "");
    let source = source.replace("mma (i1, e, j) by wgmma", "mma (i1, e, j) by wgmma inflight(1)");
    let refused = |source: &str, word: &str| {
        let Err((codes, report)) = finished(source) else { panic!("accepted:\n{source}") };
        assert_eq!(codes, [Code::TW0801], "{source}\n{report}");
        assert!(report.contains(word), "{word}:\n{report}");
    };
    // The copy is the role's own, another reader's as well, or stands around the loop.
    refused(
        &source.replace(
            "stage sv[j, e] = v in shared at m.jo ring(2) via tma by load",
            "stage sv[j, e] = v in shared at m.jo ring(2) via tma by math",
        ),
        "another role",
    );
    refused(
        &source.replace("x[i, j] = 0.125 * s[i, j];", "x[i, j] = 0.125 * s[i, j] + v[j, 3] as f32;"),
        "another role",
    );
    // There is nothing to be under way with.
    refused(
        &source.replace(
            "mma (i1, j, d) by wgmma;",
            "split d by 8 -> do, di; reorder do, w, i1, j, di; mma (i1, j, di) by wgmma;",
        ),
        "",
    );
    refused(
        &source
            .replace("online m ->", "unroll jo; online m ->")
            .replace("N % 16 == 0", "N == 64")
            .replace(" ring(2)", ""),
        "computed anew",
    );
}

/// One product has the rows of heads, with 16-bit floats.
#[test]
fn heads_and_halves() {
    let source = "kernel Heads(q: f16[H, S, 32], k: f16[H, S, 32], v: f16[H, S, 32]) -> (y: f16[H, S, 32])
        where S % 32 == 0 {
            s[h, i, j] = dot(|d| q[h, i, d] * k[h, j, d]);
            m[h, i] = max(|j| s[h, i, j]);
            p[h, i, j] = approx::exp(0.125 * (s[h, i, j] - m[h, i]));
            l[h, i] = online sum(|j| p[h, i, j]);
            pb[h, i, j] = p[h, i, j] as f16;
            a[h, i, e] = online dot(|j| pb[h, i, j] * v[h, j, e]);
            y[h, i, e] = (a[h, i, e] / l[h, i]) as f16;
            schedule y {
                split i by 64 -> it, i1; bind h, it: grid; reorder h, it, i1, e;
                fragment (i1, e) by wgmma; vectorize e_p;
            }
            schedule m in registers at y.it {
                split j by 32 -> jo, j1; fragment (i, j1) by wgmma; online m -> a, l over jo;
            }
            schedule a in registers at m.jo { mma (i, e, j) by wgmma; }
            schedule pb in registers at m.jo { fragment (i, j) by wgmma; }
            schedule p in registers at m.jo { fragment (i, j) by wgmma; }
            schedule s in registers at m.jo { mma (i, j, d) by wgmma; }
            stage sq[h, i, d] = q in shared at y.it via tma { layout [h, i, d] swizzle 64; }
            stage sk[h, j, d] = k in shared at m.jo ring(2) via tma { layout [h, j, d] swizzle 64; }
            stage sv[h, j, e] = v in shared at m.jo ring(2) via tma { layout [h, j, e] swizzle 64; }
        }";
    tried(source, &[&[2, 96], &[1, 32]], 2);
}

/// Terms up to the row: blocks past the end are left out, and scores of the last are masked.
#[test]
fn terms_end_where_the_range_does() {
    let source = attention("", "x[i, j] = s[i, j];", Y, OPS, "").replace("x[i, j]", "s[i, j]");
    let source = source.replace("s[i, j] = s[i, j];", "").replace("M, 16]", "N, 16]").replace("M, 8]", "N, 8]");
    let of = |source: String, of: &str| source.replace(&format!("{of}(|j|"), &format!("{of}(|j in 0..=i|"));
    let source = ["max", "online sum", "online dot"].into_iter().fold(source, of);
    tried(&source, &[&[16], &[32], &[96], &[144]], 2);
    tried(&source.replace("where N % 16 == 0", ""), &[&[1], &[17], &[75]], 1);
    // What is beside the terms of a block is multiplied by 0: that may be NaN, and need not be.
    let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    let device = Device::emulator(EmulatorOptions::default());
    let [q, k] = [1.0, 2.0].map(|x| halves(&device, [96, 16], &|at| (at % 3) as f32 * x));
    let v = halves(&device, [96, 8], &|at| if at / 8 == 90 { f32::INFINITY } else { (at % 7) as f32 });
    let y = tensor(&device, ElementType::F32, &[96, 8], &vec![0.0; 96 * 8]);
    let tensors = [(&q, false), (&k, false), (&v, false), (&y, true)];
    let arguments = tensors.map(|(tensor, is_output)| Arg::dynamic(tensor, is_output));
    let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
    launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
    let output = admissible.outputs().next().expect("one");
    output.check_raw(&y.read().expect("written")).unwrap_or_else(|e| panic!("{e}"));
    let found = read(ElementType::F32, &y);
    assert!(found[..8 * 64].iter().all(|y| y.is_finite()) && found[8 * 64..8 * 90].iter().all(|y| y.is_nan()));
}

/// Ranges end before the factor does: up to the row or before it, with fewer rows than terms. What is beside a range in
/// its last block is multiplied by 0, in elements that no range has, too.
#[test]
fn rows_may_be_fewer_than_terms() {
    let source = attention("", "x[i, j] = s[i, j];", Y, OPS, "").replace("x[i, j]", "s[i, j]");
    let source = source.replace("s[i, j] = s[i, j];", "").replace("where N % 16 == 0", "where M <= N");
    let of = |range: &str| {
        let of = |source: String, of: &str| source.replace(&format!("{of}(|j|"), &format!("{of}(|j in {range}|"));
        ["max", "online sum", "online dot"].into_iter().fold(source.clone(), of)
    };
    tried(&of("0..=i"), &[&[70, 100], &[1, 1], &[20, 40], &[64, 64]], 1);
    tried(&of("0..i"), &[&[70, 71], &[1, 5], &[20, 40], &[66, 200]], 1);
    let source = of("0..=i");
    let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    let device = Device::emulator(EmulatorOptions::default());
    let [q, k] = [70, 96].map(|rows| halves(&device, [rows, 16], &|at| (at % 3) as f32));
    let v = halves(&device, [96, 8], &|at| if at / 8 == 75 { f32::INFINITY } else { (at % 7) as f32 });
    let y = tensor(&device, ElementType::F32, &[70, 8], &vec![0.0; 70 * 8]);
    let tensors = [(&q, false), (&k, false), (&v, false), (&y, true)];
    let arguments = tensors.map(|(tensor, is_output)| Arg::dynamic(tensor, is_output));
    let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
    launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
    let output = admissible.outputs().next().expect("one");
    output.check_raw(&y.read().expect("written")).unwrap_or_else(|e| panic!("{e}"));
    let found = read(ElementType::F32, &y);
    assert!(found[..8 * 64].iter().all(|y| y.is_finite()) && found[8 * 64..].iter().all(|y| y.is_nan()));
}

/// The scores of [`attention`] with no equation between them and the extreme, over a range that depends on the element.
pub(super) fn over(range: &str, sizes: &str) -> String {
    let source = attention("", "x[i, j] = s[i, j];", Y, OPS, "").replace("x[i, j]", "s[i, j]");
    let source = source.replace("s[i, j] = s[i, j];", "").replace("where N % 16 == 0", sizes);
    let of = |source: String, of: &str| source.replace(&format!("{of}(|j|"), &format!("{of}(|j in {range}|"));
    ["max", "online sum", "online dot"].into_iter().fold(source, of)
}

/// Terms from one that depends on the row: blocks before all starts of a tile are left out, and scores before the start
/// are masked in the blocks that have some.
#[test]
fn terms_start_where_the_range_does() {
    // Windows that are shorter than a block, as long as one and no multiple of one, than a tile, and longer.
    for (window, sizes) in [
        (1, [[17, 17], [40, 40], [80, 96]]),
        (16, [[1, 1], [40, 40], [130, 130]]),
        (40, [[3, 64], [66, 70], [150, 160]]),
    ] {
        let source = over(&format!("max(0, i - {})..=i", window - 1), "where M <= N");
        tried(&source, &sizes.each_ref().map(|s| &s[..]), 1);
    }
    tried(&over("max(0, i - 99)..=i", "where M <= N, N % 16 == 0"), &[&[256, 256], &[112, 112]], 1);
    // Both ends are apart from the row, and some rows have no terms.
    tried(&over("max(0, i - 20)..min(i + 20, N)", ""), &[&[70, 70], &[70, 40], &[33, 80]], 1);
    tried(&over("i..N", ""), &[&[70, 70], &[20, 100], &[100, 20]], 1);
    tried(&over("max(3, i - 7)..max(3, N - 5)", "where N >= 3"), &[&[70, 70], &[9, 4], &[5, 40]], 1);
}

/// Blocks of 16 terms that no row of a tile of 64 has are not even copied: of 256 rows and terms. A tile has a copy of
/// its rows, a block one of each factor.
#[test]
fn blocks_beside_the_ranges_are_left_out() {
    let all = [("0..=i", 4 + 8 + 12 + 16), ("max(0, i - 15)..=i", 4 + 5 + 5 + 5), ("i..N", 16 + 12 + 8 + 4)];
    for (range, blocks) in all {
        let source = over(range, if range == "i..N" { "" } else { "where M <= N" });
        let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
        let device = Device::emulator(EmulatorOptions::default());
        let trial = Trial::new(kernel.info.as_ref().expect("no error"), &[256, 256], 1, &device).expect("a trial");
        assert!(trial.run(&device).is_good(), "{source}");
        let report = device.emulator_report().expect("it ran");
        assert_eq!(report.counters.bulk_loads.copies, 4 + 2 * blocks, "{range}");
    }
}

/// Queries and keys of 8 bits with a scale for each row, which is a number of the launch for all of them as well.
#[test]
fn scores_of_8_bit_floats_have_scales() {
    let source = attention(
        ", of_q: f32[M], of_k: f32[N], c: f32",
        "x[i, j] = s[i, j] * (c * of_q[i] * of_k[j]);",
        Y,
        OPS,
        "schedule x in registers at m.jo { fragment (i, j) by wgmma; }",
    );
    let source = source.replace("q: bf16[M, 16], k: bf16[N, 16]", "q: e4m3[M, 32], k: e4m3[N, 32]");
    tried(&source.replace("where N % 16 == 0", ""), &[&[1, 16], &[70, 45], &[66, 20], &[64, 0]], 1);
}

/// What takes part is data: a length for each row, sequences one behind the other that do not see each other, both with
/// rows that have no terms.
#[test]
fn lengths_and_sequences_are_data() {
    let masked = |parameters: &str, condition: &str| {
        attention(
            parameters,
            &format!("x[i, j] = if {condition} {{ s[i, j] }} else {{ -inf }};"),
            Y,
            OPS,
            "schedule x in registers at m.jo { fragment (i, j) by wgmma; }",
        )
    };
    let sizes: &[&[i64]] = &[&[1, 16], &[70, 45], &[66, 20], &[64, 0]];
    for (parameters, condition) in
        [(", lengths: i32[M]", "(j as i32) < 5 * lengths[i]"), (", of_q: i32[M], of_k: i32[N]", "of_q[i] == of_k[j]")]
    {
        tried(&masked(parameters, condition).replace("where N % 16 == 0", ""), sizes, 2);
    }
}

/// By warps, for compute capability 8.0: factors loaded by `ldmatrix`, copies by `cp.async`.
#[test]
fn warps_multiply() {
    let source = "kernel Warps(q: bf16[M, 32], k: bf16[N, 32], v: bf16[N, 32]) -> (o: f32[M, 32]) where N % 32 == 0 {
            fq[i, d] = q[i, d];
            fk[j, d] = k[j, d];
            fv[e, j] = v[j, e];
            s[i, j] = dot(|d| fq[i, d] * fk[j, d]);
            m[i] = max(|j| s[i, j]);
            p[i, j] = approx::exp2(0.18 * (s[i, j] - m[i]));
            l[i] = online sum(|j| p[i, j]);
            pb[i, j] = p[i, j] as bf16;
            a[i, e] = online dot(|j| pb[i, j] * fv[e, j]);
            o[i, e] = a[i, e] / l[i];
            schedule o {
                split i by 64 -> it, i1; split i1 by 16 -> w, i2; bind it: grid; bind w: warp; reorder it, w, i2, e;
                fragment (i2, e) by mma_sync; vectorize e_p;
            }
            schedule m in registers at o.it {
                split i by 16 -> w, i1; bind w: warp; split j by 32 -> jo, j1; reorder jo, w, i1, j1;
                fragment (i1, j1) by mma_sync; online m -> l, a over jo;
            }
            schedule a in registers at m.jo {
                split i by 16 -> w, i1; split j by 16 -> jk, ji; bind w: warp; reorder jk, w, i1, e, ji; unroll jk;
                mma (i1, e, ji) by mma_sync;
            }
            schedule pb in registers at m.jo { split i by 16 -> w, i1; bind w: warp; fragment (i1, j) by mma_sync; }
            schedule p in registers at m.jo { split i by 16 -> w, i1; bind w: warp; fragment (i1, j) by mma_sync; }
            schedule s in registers at m.jo {
                split i by 16 -> w, i1; split d by 16 -> dk, di; bind w: warp; reorder dk, w, i1, j, di; unroll dk;
                mma (i1, j, di) by mma_sync;
            }
            schedule fq in registers per warp at s.dk { fragment (i, d) by mma_sync; }
            schedule fk in registers per warp at s.dk { fragment (j, d) by mma_sync; }
            schedule fv in registers per warp at a.jk { fragment (e, j) by mma_sync; }
            stage sq[i, d] = q in shared at o.it via cp_async {
                split i by 32 -> ih, ir; split d by 8 -> dc, dv; reorder ir, dc, ih, dv; bind ir, dc: thread;
                unroll ih; vectorize dv; layout [i, d] swizzle 64;
            }
            stage sk[j, d] = k in shared at m.jo ring(2) via cp_async {
                split d by 8 -> dc, dv; bind j, dc: thread; vectorize dv; layout [j, d] swizzle 64;
            }
            stage sv[j, e] = v in shared at m.jo ring(2) via cp_async {
                split e by 8 -> ec, ev; bind j, ec: thread; vectorize ev; layout [j, e] swizzle 64;
            }
        }";
    tried(source, &[&[64, 64], &[70, 96], &[3, 0]], 1);
    tried(&source.replace("where N % 32 == 0", ""), &[&[17, 5], &[64, 33], &[3, 0]], 1);
    let causal = source.replace("M, 32]", "N, 32]");
    let causal = ["max", "online sum", "online dot"]
        .iter()
        .fold(causal, |causal, of| causal.replace(&format!("{of}(|j|"), &format!("{of}(|j in 0..=i|")));
    let kernel = finished(&causal).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{causal}\n{report}"));
    runs(&causal, &kernel, &[&[96], &[32]], 1);
}

/// A tensor of `bf16`.
fn halves(device: &Device, shape: [usize; 2], of: &dyn Fn(usize) -> f32) -> DynamicTensor {
    let count = shape[0] * shape[1];
    let bytes: Vec<u8> = (0..count).flat_map(|at| tilewright::bf16::from_f32(of(at)).to_bits().to_le_bytes()).collect();
    DynamicTensor::new(device, ElementType::Bf16, (&shape, &[shape[1], 1]), &bytes, 0).expect("it fits")
}

/// A value is infinite whose exponential is 0 in the end, and was 1 when it was added.
#[test]
fn values_that_are_infinite_promise_nothing() {
    let source = attention(", b: f32[M, N]", "x[i, j] = s[i, j] + b[i, j];", "y[i, e] = a[i, e] / l[i];", OPS, HELD);
    let kernel = finished(&source.replace("bf16", "f16"));
    let kernel = kernel.unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    let device = Device::emulator(EmulatorOptions::default());
    let f16 = |shape: [usize; 2], of: &dyn Fn(usize) -> f32| {
        let bytes = |at| tilewright::f16::from_f32(of(at)).to_bits().to_le_bytes();
        let bytes: Vec<u8> = (0..shape[0] * shape[1]).flat_map(bytes).collect();
        DynamicTensor::new(&device, ElementType::F16, (&shape, &[shape[1], 1]), &bytes, 0).expect("it fits")
    };
    let (q, k) = (f16([2, 16], &|_| 0.0), f16([32, 16], &|_| 0.0));
    let v = f16([32, 8], &|at| if at == 0 { f32::NEG_INFINITY } else { 1.0 });
    // 2⁻⁴⁰ is a number of f32, and none of f16. The second row has no number at all.
    let b: Vec<f64> = (0..64)
        .map(|at| {
            if at >= 32 {
                f64::NAN
            } else if at % 32 == 31 {
                40.0
            } else {
                0.0
            }
        })
        .collect();
    let b = tensor(&device, ElementType::F32, &[2, 32], &b);
    let y = tensor(&device, ElementType::F32, &[2, 8], &[0.0; 16]);
    let tensors = [(&q, false), (&k, false), (&v, false), (&b, false), (&y, true)];
    let arguments = tensors.map(|(tensor, is_output)| Arg::dynamic(tensor, is_output));
    let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
    launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
    let output = admissible.outputs().next().expect("one");
    output.check_raw(&y.read().expect("written")).unwrap_or_else(|e| panic!("{e}"));
    let found = read(ElementType::F32, &y);
    assert!(found[0] == f64::NEG_INFINITY && found[1..8].iter().all(|y| y.is_finite()), "{found:?}");
    // What is NaN in any order must be.
    let of = |y: &[f64]| tensor(&device, ElementType::F32, &[2, 8], y).read().expect("written");
    assert!(output.check_raw(&of(&[&found[..8], &[0.0; 8]].concat())).is_err());
}

#[test]
fn scores_of_all_kinds_are_what_the_equations_say() {
    let source =
        attention(", b: f32[M, N]", "x[i, j] = s[i, j] + b[i, j];", Y, OPS, HELD).replace("where N % 16 == 0", "");
    let kernel = finished(&source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"));
    let info = kernel.info.as_ref().expect("no error");
    for n in [16, 125, 304] {
        for is_mirrored in [false, true] {
            let mut rows: Vec<Vec<f64>> = rows(n).into_iter().map(|(_, row)| row).collect();
            if is_mirrored {
                rows.iter_mut().for_each(|row| row.reverse());
            }
            let device = Device::emulator(EmulatorOptions::default());
            let m = rows.len();
            let q = halves(&device, [m, 16], &|_| 0.0);
            let k = halves(&device, [n, 16], &|at| (at % 5) as f32);
            let v = halves(&device, [n, 8], &|at| (at % 7) as f32 - 2.5);
            let b = tensor(&device, ElementType::F32, &[m, n], &rows.concat());
            let y = tensor(&device, ElementType::F32, &[m, 8], &vec![0.0; 8 * m]);
            let tensors = [(&q, false), (&k, false), (&v, false), (&b, false), (&y, true)];
            let arguments = tensors.map(|(tensor, is_output)| Arg::dynamic(tensor, is_output));
            let admissible = reference(info, &arguments).unwrap_or_else(|e| panic!("{e}"));
            launch(info, &arguments, device.as_ref()).unwrap_or_else(|e| panic!("{e}"));
            let output = admissible.outputs().next().expect("one");
            output.check_raw(&y.read().expect("written")).unwrap_or_else(|e| panic!("{n}: {e}"));
            for (row, found) in rows.iter().zip(read(ElementType::F32, &y).chunks(8)) {
                let least = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let has_nan = row.iter().any(|x| x.is_nan()) || !least.is_finite();
                assert!(found.iter().all(|y| y.is_nan() == has_nan), "{row:?}: {found:?}");
            }
            // One that is off by a little more than the contract says is none.
            let wrong: Vec<f64> = read(ElementType::F32, &y).iter().map(|y| y * 1.03 + 0.03).collect();
            let wrong = tensor(&device, ElementType::F32, &[m, 8], &wrong).read().expect("written");
            assert!(output.check_raw(&wrong).is_err(), "{n}: the interval is too wide");
        }
    }
}

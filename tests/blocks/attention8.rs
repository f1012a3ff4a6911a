//! Attention whose second product has factors of 8 bits: columns of the scores are the even terms of a block, and then
//! the odd ones, so that lanes have four neighbouring terms of the factor.

use crate::support::{finished, runs, tried};
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::{Factor, Kernel, Region, RegionId, StatementKind};
use tilewright_compiler::proof::{Launch, Verdict, check_values};

/// One warpgroup, blocks of 32 terms: the type, and the multiple of the exponentials that is rounded to it.
fn attention(ty: &str, multiple: &str) -> String {
    format!(
        "kernel Attention(q: {ty}[M, 32], k: {ty}[N, 32], v: {ty}[8, N]) -> (y: f32[M, 8]) where N % 16 == 0 {{
            s[i, j] = dot(|d| q[i, d] * k[j, d]);
            m[i] = max(|j| s[i, j]);
            p[i, j] = approx::exp2(fma(0.25, s[i, j], -0.25 * m[i]));
            l[i] = online sum(|j| p[i, j]);
            p8[i, j] = ({multiple}) as {ty};
            a[i, e] = online dot(|j| p8[i, j] * v[e, j]);
            y[i, e] = a[i, e] / l[i];
            schedule y {{
                split i by 64 -> it, i1; bind it: grid; reorder it, i1, e; fragment (i1, e) by wgmma; vectorize e_p;
            }}
            schedule m in registers at y.it {{
                split j by 32 -> jo, j1; split j1 by 2 -> jc, jb; reorder jo, jb, i, jc; unroll jb;
                fragment (i, jc) by wgmma; online m -> l, a over jo;
            }}
            schedule a in registers at m.jo {{ mma (i, e, j) by wgmma; }}
            schedule p8 in registers at m.jo {{ split j by 2 -> jc, jb; fragment (i, jc) by wgmma; }}
            schedule p in registers at m.jo {{ like p8; }}
            schedule s in registers at m.jo {{
                split j by 2 -> jc, jb; reorder i, jb, jc, d; merge jb, jc -> jn; mma (i, jn, d) by wgmma;
            }}
            stage sq[i, d] = q in shared at y.it via tma {{ layout [i, d] swizzle 32; }}
            stage sk[j, d] = k in shared at m.jo ring(2) via tma {{
                box j by 32 -> jx, jy; tile jy by 2 -> jc, jb; layout [jx, jb, jc, d] swizzle 32;
            }}
            stage sv[e, j] = v in shared at m.jo ring(2) via tma {{ layout [e, j] swizzle 32; }}
        }}"
    )
}

/// Sizes are M, N.
const SIZES: &[&[i64]] = &[&[1, 16], &[70, 80], &[70, 16], &[64, 32], &[3, 0]];

#[test]
fn factors_of_8_bits_follow_an_extreme() {
    for (ty, multiple) in [("e4m3", "p[i, j]"), ("e4m3", "256.0 * p[i, j]"), ("e5m2", "-16384.0 * p[i, j]")] {
        let compiled = tried(&attention(ty, multiple), SIZES, 2);
        let text = &compiled.info.as_ref().expect("no error").ptx.text;
        assert!(text.contains(&format!("m64n8k32.f32.{ty}.{ty}")), "{text}");
        // Kernels with warpgroups' products have the instruction; without, others may have to run them.
        assert!(text.contains(&format!("cvt.rn.satfinite.{ty}x2.f32")), "{text}");
    }
}

/// Roles, two warpgroups, tiles that blocks take in turn, and a product that is a block behind.
fn with_roles(source: &str, items: &str) -> String {
    source
        .replace(
            "schedule y {",
            &format!("launch {items}roles {{ math: 2 warpgroup, load: warp }};\nschedule y by math {{"),
        )
        .replace("split i by 64 -> it, i1; bind it: grid; reorder it, i1, e;", ROWS)
        .replace("at y.it {", "at y.it by math { split i by 64 -> w, i1; bind w: warpgroup;")
        .replace("at m.jo {", "at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup;")
        .replace("reorder jo, jb, i, jc;", "reorder jo, w, jb, i1, jc;")
        .replace("reorder i, jb, jc, d;", "reorder w, i1, jb, jc, d;")
        .replace("split i by 64 -> w, i1; bind w: warpgroup; like p8;", "like p8;")
        .replace("mma (i,", "mma (i1,")
        .replace("fragment (i,", "fragment (i1,")
        .replace("via tma", "via tma by load")
        .replace("mma (i1, e, j) by wgmma", "mma (i1, e, j) by wgmma inflight(1)")
}

const ROWS: &str =
    "split i by 128 -> it, i2; split i2 by 64 -> w, i1; bind w: warpgroup; bind it: grid; reorder it, w, i1, e;";

#[test]
fn roles_have_them_a_block_behind() {
    let source = attention("e4m3", "256.0 * p[i, j]");
    tried(&with_roles(&source, ""), &[&[130, 80], &[70, 16], &[1, 16], &[3, 0]], 2);
    tried(&with_roles(&source, "persistent, "), &[&[300, 48], &[70, 16]], 1);
}

/// Terms up to the row: scores of the even and of the odd terms are masked where these are.
#[test]
fn ranges_end_between_even_and_odd_terms() {
    let source = attention("e4m3", "256.0 * p[i, j]").replace("M, 32]", "N, 32]").replace("M, 8]", "N, 8]");
    let of = |source: String, of: &str| source.replace(&format!("{of}(|j|"), &format!("{of}(|j in 0..=i|"));
    let source = ["max", "online sum", "online dot"].into_iter().fold(source, of);
    let kernel = tried(&source, &[&[16], &[80], &[144]], 1);
    // Two blocks of terms, which the entry point without tensor cores has, too.
    runs(&source, &kernel, &[&[48]], 1);
}

/// Values, by the separate checker: a factor in other registers is another one.
#[test]
fn other_registers_have_other_terms() {
    let kernel = finished(&attention("e4m3", "256.0 * p[i, j]")).unwrap_or_else(|(_, report)| panic!("{report}"));
    let info = kernel.info.as_ref().expect("no error");
    let own = &kernel.entries[0].kernel;
    let launch = Launch::new(info, &[64, 32]).expect("a launch");
    let values = |kernel: &Kernel| check_values(kernel, &launch, &info.algorithm, 3, 50_000_000);
    assert_eq!(values(own), Verdict::Holds);
    let mut tried = 0;
    for (region, at) in held_factors(&kernel) {
        for other in [1, 2, 3, 4, 8] {
            let mut mutant = own.clone();
            let StatementKind::Wgmma(product) = &mut mutant.regions[region.index()].statements[at].kind else {
                continue;
            };
            let Factor::Registers(variables) = &mut product.a else { continue };
            variables.swap(0, other);
            assert!(matches!(values(&mutant), Verdict::Violated(_)), "register {other}");
            tried += 1;
        }
    }
    assert_eq!(tried, 5);
}

/// Products with a left factor in registers.
fn held_factors(kernel: &Compiled) -> Vec<(RegionId, usize)> {
    let regions = (0..).map(RegionId).zip(&kernel.entries[0].kernel.regions);
    let is_held = |kind: &StatementKind| matches!(kind, StatementKind::Wgmma(p) if !p.a.variables().is_empty());
    let of = |(region, own): (RegionId, &Region)| {
        let held = own.statements.iter().enumerate().filter(|s| is_held(&s.1.kind));
        held.map(|(at, _)| (region, at)).collect::<Vec<_>>()
    };
    regions.flat_map(of).collect()
}

/// What is dealt out or stored otherwise is refused, with what has to change.
#[test]
fn other_orders_are_refused() {
    let source = attention("e4m3", "p[i, j]").split_whitespace().collect::<Vec<_>>().join(" ");
    let refused = |from: &str, to: &str, code: Code, word: &str| {
        assert!(source.contains(from), "{from}");
        let Err((codes, report)) = finished(&source.replace(from, to)) else { panic!("accepted: {to}") };
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(codes.contains(&code) && report.contains(word), "{codes:?}\n{report}");
    };
    let edit = "split j by 2 -> j_c, j_b; fragment (i, j_c) by wgmma";
    refused("split j by 2 -> jc, jb; fragment (i, jc) by wgmma", "fragment (i, j) by wgmma", Code::TW0707, edit);
    let alike = "with the ops that the schedule with `online` has for the terms of `l`";
    let halves = "split j1 by 2 -> jc, jb; reorder jo, jb, i, jc; unroll jb; fragment (i, jc) by wgmma";
    refused(halves, "fragment (i, j1) by wgmma", Code::TW0707, alike);
    let tile = "box j by 32 -> jx, jy; tile jy by 2 -> jc, jb; layout [jx, jb, jc, d] swizzle 32;";
    refused(tile, "layout [j, d] swizzle 32;", Code::TW0803, "let the copy bring one row of every 2 together: `tile`");
    let across = source.replace("[8, N]", "[N, 32]").replace("[M, 8]", "[M, 32]").replace("[e, j]", "[j, e]");
    let Err((codes, report)) = finished(&across) else { panic!("accepted") };
    assert!(codes == [Code::TW0803] && report.contains("let terms be the last axis"), "{report}");
}

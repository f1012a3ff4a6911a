//! Factors of products that are not elements of a copy in the loop over terms: what threads hold in registers (results
//! of another product, or what they make of other types), and copies that stand around that loop.

use crate::products::{accepted, all_is_noticed, has, positions, refused};
use crate::support::runs;
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::{Factor, Kernel, StatementKind, Wgmma};
use tilewright_compiler::proof::{Launch, Verdict, check_values};

/// A product of a product: `between` is done to the first one's elements. Copies of `q` and `k` stand in the loop over
/// the first one's terms.
fn chain(element: &str, between: &str) -> String {
    format!(
        "kernel Chain(q: {element}[M, D], k: {element}[N, D], v: {element}[N, E]) -> (o: f32[M, E])
        where D % 8 == 0, E % 8 == 0 {{
            s[i, j] = dot(|d| q[i, d] * k[j, d]);
            p[i, j] = ({between}) as {element};
            acc[i, e] = dot(|j| p[i, j] * v[j, e]);
            o[i, e] = acc[i, e];
            schedule o {{
                split i by 64 -> it, ii; split e by 64 -> et, ei;
                bind it, et: grid; fragment (ii, ei) by wgmma; unroll ei_p;
            }}
            schedule acc in registers at o.et {{ split j by 64 -> jo, ji; mma (i, e, ji) by wgmma; }}
            schedule p in registers at acc.jo {{ fragment (i, j) by wgmma; }}
            schedule s in registers at acc.jo {{ split d by 64 -> do, di; mma (i, j, di) by wgmma; }}
            stage sq[i, d] = q in shared at s.do ring(2) via tma {{ layout [i, d] swizzle 128; }}
            stage sk[j, d] = k in shared at s.do ring(2) via tma {{ layout [j, d] swizzle 128; }}
            stage sv[j, e] = v in shared at acc.jo ring(2) via tma {{ layout [j, e] swizzle 128; }}
        }}"
    )
}

/// The same for two warpgroups and one that copies: `q` stays, and all terms of a block of `k` are one copy.
const WITH_ROLES: &str = "kernel Chain(q: bf16[M, 128], k: bf16[N, 128], v: bf16[N, 64]) -> (o: f32[M, 64]) {
        s[i, j] = dot(|d| q[i, d] * k[j, d]);
        p[i, j] = s[i, j] as bf16;
        acc[i, e] = dot(|j| p[i, j] * v[j, e]);
        o[i, e] = acc[i, e];
        launch persistent, roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule o by math {
            split i by 128 -> it, i1; split i1 by 64 -> iw, ii; reorder it, iw, ii, e;
            bind it: grid; bind iw: warpgroup; fragment (ii, e) by wgmma; unroll e_p;
        }
        schedule acc in registers at o.it by math {
            split j by 64 -> jo, ji; split i by 64 -> iw, ii; reorder jo, iw, ii, e, ji;
            bind iw: warpgroup; mma (ii, e, ji) by wgmma;
        }
        schedule p in registers at acc.jo by math {
            split i by 64 -> iw, ii; bind iw: warpgroup; fragment (ii, j) by wgmma;
        }
        schedule s in registers at acc.jo by math {
            split i by 64 -> iw, ii; reorder iw, ii, j, d; bind iw: warpgroup; mma (ii, j, d) by wgmma;
        }
        stage sq[i, d] = q in shared at o.it via tma by load { box d by 64 -> dc, db; layout [dc, i, db] swizzle 128; }
        stage sk[j, d] = k in shared at acc.jo ring(2) via tma by load {
            box d by 64 -> dc, db; layout [dc, j, db] swizzle 128;
        }
        stage sv[j, e] = v in shared at acc.jo ring(2) via tma by load { layout [j, e] swizzle 128; }
    }";

/// A product of factors of two types: the left one is converted in registers, which `ops` deals out.
fn mixed(types: [&str; 3], made: &str, tile: u32, ops: &str) -> String {
    let [a, b, c] = types;
    format!(
        "kernel Mixed(w: {a}[M, K], s: f32[M], x: {b}[N, K]) -> (c: {c}[M, N]) where K % 16 == 0 {{
            f[m, k] = ({made}) as {b};
            acc[m, n] = dot(|k| f[m, k] * x[n, k]);
            c[m, n] = acc[m, n];
            schedule c {{
                split m by 64 -> mt, mi; split n by 32 -> nt, ni;
                bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
            }}
            schedule acc in registers at c.nt {{ split k by {tile} -> ko, ki; mma (m, n, ki) by wgmma; }}
            schedule f in registers at acc.ko {{ {ops} }}
            stage sx[n, k] = x in shared at acc.ko ring(2) via tma {{ layout [n, k] swizzle 128; }}
        }}"
    )
}

const FRAGMENT: &str = "fragment (m, k) by wgmma;";

/// A fragment of a left factor by hand: `each` terms share a register.
fn by_hand(each: u32) -> String {
    format!(
        "split m by 16 -> mw, m1; split m1 by 8 -> mh, mr; split k by {} -> kg, k1; split k1 by {each} -> kq, kp;
        reorder mw, mr, kq, kg, mh, kp; bind mw: warp; bind mr: thread; bind kq: thread;",
        4 * each
    )
}

/// Sizes are M, D, N, E: the terms of the second product end inside of a tile.
const SIZES: &[&[i64]] = &[&[64, 64, 64, 64], &[70, 72, 100, 72], &[1, 8, 1, 8], &[3, 0, 5, 8], &[5, 8, 0, 8]];

#[test]
fn products_of_products() {
    for (element, between) in [("bf16", "s[i, j]"), ("f16", "s[i, j] + 1.0"), ("bf16", "max(s[i, j], 0.0)")] {
        let source = chain(element, between);
        let kernel = accepted(&source);
        let explanation = &kernel.info.as_ref().expect("no error").explanation;
        assert!(explanation.contains("A is p, in registers"), "{explanation}");
        runs(&source, &kernel, SIZES, 2);
    }
}

#[test]
fn copies_around_the_terms_stay_for_all_of_them() {
    runs(WITH_ROLES, &accepted(WITH_ROLES), &[&[128, 64], &[130, 150], &[1, 1], &[7, 0]], 2);
    // With a loop over terms, whose other factor follows.
    let followed = WITH_ROLES.replace("reorder iw, ii, j, d;", "split d by 64 -> do, di; reorder do, iw, ii, j, di;");
    let followed = followed.replace("mma (ii, j, d) by wgmma", "mma (ii, j, di) by wgmma inflight(1)");
    let followed = followed.replace("k in shared at acc.jo ring(2)", "k in shared at s.do ring(3)");
    let followed =
        followed.replace("box d by 64 -> dc, db; layout [dc, j, db] swizzle 128;", "layout [j, d] swizzle 128;");
    runs(&followed, &accepted(&followed), &[&[128, 64], &[130, 150], &[1, 1]], 2);
    // Without one, there is nothing that a group stays under way for.
    let alone = WITH_ROLES.replace("mma (ii, j, d) by wgmma", "mma (ii, j, d) by wgmma inflight(1)");
    refused(&alone, Code::TW0801, &["no group of products of `s`"]);
    let whole = "kernel P(a: bf16[M, 64], b: bf16[N, 64]) -> (c: f32[M, N]) {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, mi; split n by 64 -> nt, ni;
            bind mt: grid; reorder mt, nt, mi, ni; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { mma (m, n, k) by wgmma; }
        stage sa[m, k] = a in shared at c.mt via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at c.nt via tma { layout [n, k] swizzle 128; }
    }";
    runs(whole, &accepted(whole), &[&[64, 64], &[70, 130], &[1, 1]], 2);
}

/// Tiles of rows that have all of their terms in one instruction: sums of all tiles are there at once.
#[test]
fn terms_of_one_instruction() {
    let source = "kernel P(a: bf16[M, 16], b: bf16[N, 16]) -> (c: f32[M, N]) {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 192 -> mt, mi; split n by 24 -> nt, ni;
            bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { mma (m, n, k) by wgmma; }
        stage sa[m, k] = a in shared at c.nt via tma { layout [m, k] swizzle 32; }
        stage sb[n, k] = b in shared at c.nt via tma { layout [n, k] swizzle 32; }
    }";
    // Sizes are M, N.
    runs(source, &accepted(source), &[&[192, 24], &[200, 30], &[1, 1]], 2);
}

/// A factor that is held for all terms: the entry points without tensor cores read what it is made of.
#[test]
fn factors_around_all_terms() {
    let source = mixed(["i8", "i8", "i32"], "w[m, k]", 64, &by_hand(4))
        .replace("[M, K]", "[M, 64]")
        .replace("[N, K]", "[N, 64]");
    let source =
        source.replace("where K % 16 == 0", "").replace("split k by 64 -> ko, ki; mma (m, n, ki)", "mma (m, n, k)");
    let source = source.replace("at acc.ko ring(2)", "at c.nt").replace("at acc.ko", "at c.nt").replace("128", "64");
    // Sizes are M, N.
    runs(&source, &accepted(&source), &[&[64, 32], &[70, 33], &[1, 1], &[0, 3]], 2);
}

/// What threads make of other types: loads from memory, and other layouts of registers.
#[test]
fn factors_that_threads_make() {
    let scaled = "w[m, k] as f32 * s[m]";
    let cases = [
        (mixed(["i8", "bf16", "f32"], "w[m, k]", 64, FRAGMENT), "m64n32k16.f32.bf16.bf16"),
        (mixed(["e4m3", "f16", "f32"], scaled, 64, FRAGMENT), "m64n32k16.f32.f16.f16"),
        (mixed(["f16", "bf16", "f32"], scaled, 32, &by_hand(2)).replace("128", "64"), "m64n32k16.f32.bf16.bf16"),
        (mixed(["f16", "e4m3", "f32"], scaled, 128, &by_hand(4)), "m64n32k32.f32.e4m3.e4m3"),
        (mixed(["f16", "tf32", "f32"], scaled, 32, &by_hand(1)), "m64n32k8.f32.tf32.tf32"),
        (mixed(["i8", "i8", "i32"], "w[m, k]", 128, &by_hand(4)), "m64n32k32.s32.s8.s8"),
    ];
    for (source, instruction) in cases {
        let kernel = accepted(&source);
        assert!(has(&kernel, instruction), "{instruction}");
        runs(&source, &kernel, &[&[64, 128, 32], &[70, 144, 33], &[1, 16, 1], &[2, 0, 3]], 2);
    }
}

/// A factor that would be NaN past the end of its terms is 0 there, although nothing of it is read from memory.
#[test]
fn factors_past_their_end_are_zero() {
    let source = chain("bf16", "s[i, j] * log((N - j) as f32)");
    // Sizes are M, D, N, E.
    runs(&source, &accepted(&source), &[&[70, 16, 33, 8], &[1, 8, 1, 8], &[64, 8, 128, 16]], 2);
}

#[test]
fn what_stands_between_chained_products_is_missed() {
    let tried = all_is_noticed(&accepted(&chain("bf16", "s[i, j]")), &[&[64, 136, 130, 64]]);
    assert!(tried >= 9, "{tried}");
    let tried = all_is_noticed(&accepted(WITH_ROLES), &[&[300, 200]]);
    assert!(tried >= 12, "{tried}");
}

/// Values, by the separate checker: other registers hold other terms.
#[test]
fn other_registers_are_other_factors() {
    let kernel = accepted(&mixed(["f16", "tf32", "f32"], "w[m, k]", 32, &by_hand(1)));
    let info = kernel.info.as_ref().expect("no error");
    let of = &kernel.entries[0].kernel;
    let launch = Launch::new(info, &[64, 32, 17]).expect("a launch");
    let values = |kernel: &Kernel| check_values(kernel, &launch, &info.algorithm, 3, 50_000_000);
    assert_eq!(values(of), Verdict::Holds);
    let mut tried = 0;
    for (region, at) in positions(of) {
        let StatementKind::Wgmma(product) = &of.region(region).statements[at].kind else { continue };
        let variables = product.a.variables().to_vec();
        for other in 1..variables.len() {
            let mut swapped = variables.clone();
            swapped.swap(0, other);
            let mut mutant = of.clone();
            let product = Wgmma { a: Factor::Registers(swapped), ..product.clone() };
            mutant.regions[region.index()].statements[at].kind = StatementKind::Wgmma(product);
            let verdict = values(&mutant);
            assert!(matches!(verdict, Verdict::Violated(_)), "{verdict:?}\n{mutant}");
            tried += 1;
        }
    }
    assert_eq!(tried, 12);
}

#[test]
fn factors_in_other_places_are_refused() {
    let source = chain("bf16", "s[i, j]");
    let with = |from: &str, to: &str| {
        assert!(source.contains(from), "{from}");
        source.replace(from, to)
    };
    // Registers of an instruction hold other elements.
    let narrow = mixed(["i8", "i8", "i32"], "w[m, k]", 128, FRAGMENT);
    refused(&narrow, Code::TW0707, &["`f`", "`acc`", "4 terms"]);
    let swapped = mixed(["i8", "bf16", "f32"], "w[m, k]", 64, &by_hand(2))
        .replace("bind mr: thread; bind kq", "bind kq: thread; bind mr");
    refused(&swapped.replace("reorder mw, mr, kq", "reorder mw, kq, mr"), Code::TW0707, &["fragment (m, k) by wgmma"]);
    // The one with the columns.
    let right = with("p[i, j] * v[j, e]", "v[j, e] * p[i, j]").replace("mma (i, e, ji)", "mma (e, i, ji)");
    let right = right.replace("fragment (ii, ei)", "fragment (ei, ii)").replace("unroll ei_p", "unroll ii_p");
    refused(&right, Code::TW0802, &["registers hold `p`", "swap the first two axes"]);
    // Memory that products do not read, and a layout that they do not read in memory that they do.
    let global = with("schedule p in registers at acc.jo {", "schedule p in global at acc.jo {");
    let global = global.replace("fragment (i, j) by wgmma;", "fragment (i, j) by wgmma; unroll j_p;");
    refused(&global, Code::TW0802, &["`p` is in memory", "in registers at acc.jo"]);
    let stored = global.replace("in global", "in shared");
    refused(&stored, Code::TW0803, &["`p`", "write `layout [i, j] swizzle 128;`"]);
    let stored = stored.replace("unroll j_p;", "unroll j_p; layout [i, j] swizzle 128;");
    runs(&stored, &accepted(&stored), &[&[70, 40, 136, 72], &[1, 8, 1, 8]], 2);
    // A group that reads registers is awaited before these are given other values.
    refused(
        &with("mma (i, e, ji) by wgmma;", "mma (i, e, ji) by wgmma inflight(1);"),
        Code::TW0801,
        &["`p` is computed anew"],
    );
    // A copy for another product.
    let other = with(", v: bf16[N, E]", "")
        .replace("stage sv[j, e] = v in shared at acc.jo ring(2) via tma { layout [j, e] swizzle 128; }", "");
    let other = other.replace("* v[j, e]", "* k[j, e]").replace("[M, E]", "[M, D]").replace(", E % 8 == 0", "");
    refused(&other, Code::TW0802, &["the copy of `k` is not around the product of `acc`", "at acc.jo"]);
}

/// A copy that holds several tiles has each of them begin with a pattern of its swizzle, or they have copies of their
/// own. Rows of a tile follow each other.
#[test]
fn tiles_begin_where_patterns_do() {
    let source = "kernel P(a: bf16[M + 2, K], b: bf16[3, N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, n] = dot(|k, r| a[m + r, k] * b[r, n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, mi; split n by 32 -> nt, ni; reorder mt, nt, mi, ni; bind mt, nt: grid;
            fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { split k by 64 -> ko, ki; reorder ko, r, m, n, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }
        stage sb[r, n, k] = b in shared at acc.ko ring(2) via tma { layout [r, n, k] swizzle 128; }
    }";
    refused(source, Code::TW0802, &["a tile of `a` begins in row 2", "not confirmed", "`at acc.r`"]);
    let apart = source.replace("a in shared at acc.ko", "a in shared at acc.r");
    // Sizes are M, K, N.
    runs(&apart, &accepted(&apart), &[&[70, 72, 33], &[1, 8, 1]], 1);
    // Tiles that are whole patterns apart.
    let eights = source.replace("M + 2", "M + 16").replace("m + r", "m + 8 * r");
    runs(&eights, &accepted(&eights), &[&[70, 72, 33], &[1, 8, 1]], 1);
    let every_other = apart.replace("M + 2", "2 * M + 2").replace("m + r", "2 * m + r");
    refused(&every_other, Code::TW0803, &["do not follow each other", "by an equation of its own"]);
}

/// A factor is read past the ends of its tensor, where the copy has zeros: before its first row, and around an image.
#[test]
fn factors_are_zero_outside() {
    let shifted = "kernel Shifted(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, n] = dot(|k| (a[m - 1, k] or 0.0) * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, mi; split n by 64 -> nt, ni; reorder mt, nt, mi, ni; bind mt, nt: grid;
            fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 128; }
    }";
    // Sizes are M, K, N.
    runs(shifted, &accepted(shifted), &[&[70, 72, 5], &[1, 8, 1]], 1);
    let any = shifted
        .replace("a in shared at acc.ko ring(2) via tma { ", "a in shared at acc.ko ring(2) via tma { fill any; ");
    refused(&any, Code::TW0802, &["may hold more than zeros"]);
    refused(&shifted.replace("or 0.0", "or 1.0"), Code::TW0802, &["with `or 0`"]);
    let image = "kernel Conv(x: bf16[B, H, W, C], f: bf16[3, 3, K, C]) -> (y: f32[B, H, W, K]) where C % 8 == 0 {
        acc[b, h, w, k] = dot(|r, s, c| (x[b, h + r - 1, w + s - 1, c] or 0.0) * f[r, s, k, c]);
        y[b, h, w, k] = acc[b, h, w, k];
        schedule y {
            split w by 64 -> wt, w1; split k by 8 -> kt, k1; reorder b, h, wt, kt, w1, k1; bind b, h, wt, kt: grid;
            fragment (w1, k1) by wgmma; unroll k1_p;
        }
        schedule acc in registers at y.kt {
            split c by 16 -> co, ci; reorder r, s, co, w, k, ci; mma (w, k, ci) by wgmma;
        }
        stage sx[b, h, w, c] = x in shared at acc.co ring(3) via tma { layout [b, h, w, c] swizzle 32; }
        stage sf[r, s, k, c] = f in shared at acc.co ring(3) via tma { layout [r, s, k, c] swizzle 32; }
    }";
    // Sizes are B, H, W, C, K.
    runs(image, &accepted(image), &[&[1, 3, 66, 24, 9], &[2, 1, 1, 8, 1]], 1);
}

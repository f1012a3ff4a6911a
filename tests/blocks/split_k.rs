//! Products whose terms blocks share (split-K): each takes a part of them to its workspace, and the last one of a tile
//! adds the parts up and goes on. Every kernel runs for awkward sizes under several seeds, through the separate checker
//! at all its entry points, and gives what `reference()` does; small integers to the bit. Without any one of the things
//! that order it, something is wrong.

use crate::support::{each_part_of_an_arrival_is_missed, finished, is_wrong, runs, tried};
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::{Code, Level};
use tilewright_compiler::kernel_ir::{Kernel, StatementKind};
use tilewright_compiler::proof::{Launch, Verdict, check};

fn accepted(source: &str) -> Compiled {
    finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"))
}

fn refused(source: &str, code: Code, words: &[&str]) {
    let Err((codes, report)) = finished(source).map(drop) else { panic!("accepted:\n{source}") };
    let errors: Vec<Code> = codes.into_iter().filter(|code| code.row().level == Level::Error).collect();
    assert_eq!(errors, [code], "{report}");
    let line = report.split_whitespace().collect::<Vec<&str>>().join(" ");
    words.iter().for_each(|word| assert!(line.contains(word), "{word}:\n{report}"));
}

fn has(kernel: &Compiled, word: &str) -> bool {
    kernel.info.as_ref().is_some_and(|info| info.ptx.text.contains(word))
}

/// Parts of 128 terms, as many as there are.
const BY: &str = "split k by 128 -> ks, k1; split k1 by 64 -> ko, ki;";
/// Three parts, some of which may have no terms.
const INTO: &str = "split k by 64 -> kt, ki; split kt into 3 -> ks, ko;";

/// A product in one warpgroup: the type of the factors and of the sum, tile, and how the terms are divided.
fn plain([ab, c]: [&str; 2], granule: u32, [m, n]: [u32; 2], split: &str, by: &str) -> String {
    format!(
        "kernel P(a: {ab}[M, K], b: {ab}[N, K]) -> (c: {c}[M, N]) where K % {granule} == 0 {{
            acc[m, n] = dot(|k| a[m, k] * b[n, k]);
            c[m, n] = acc[m, n];
            schedule c {{
                split m by {m} -> mt, mi; split n by {n} -> nt, ni;
                bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
            }}
            schedule acc in registers at c.nt {{
                {split} bind ks: grid; mma (m, n, ki) by wgmma; reduce ks by {by};
            }}
            stage sa[m, k] = a in shared at acc.ko ring(2) via tma {{ layout [m, k] swizzle 128; }}
            stage sb[n, k] = b in shared at acc.ko ring(2) via tma {{ layout [n, k] swizzle 128; }}
        }}"
    )
}

const BF16: [&str; 2] = ["bf16", "f32"];

/// Sizes are M, K, N.
#[test]
fn parts_of_every_length() {
    let bytes = |split: &str| split.replace("128", "256").replace("by 64", "by 128");
    let cases = [
        (plain(BF16, 8, [64, 64], BY, "grid"), 8),
        (plain(BF16, 8, [64, 24], INTO, "grid"), 8),
        (plain(["f16", "f32"], 8, [128, 40], BY, "grid"), 8),
        (plain(["tf32", "f32"], 4, [64, 8], &BY.replace("by 64", "by 32"), "grid"), 4),
        (plain(["e4m3", "f32"], 16, [64, 16], &bytes(INTO), "grid"), 16),
        (plain(["i8", "i32"], 16, [64, 48], &bytes(BY), "grid"), 16),
        // Integers in any order: one word for each element.
        (plain(["i8", "i32"], 16, [64, 16], &bytes(INTO), "atomic"), 16),
    ];
    for (source, k) in cases {
        let kernel = accepted(&source);
        // One term group, one part, a part and a bit, many parts; no rows, no terms.
        let sizes: &[&[i64]] =
            &[&[1, k, 1], &[70, 9 * k, 50], &[64, 128, 64], &[3, 128 + k, 9], &[65, 704, 66], &[0, k, 3], &[5, 0, 3]];
        runs(&source, &kernel, sizes, 2);
        assert!(has(&kernel, "wgmma.mma_async"));
        if !source.contains("by atomic") {
            let vectors = if source.contains("i32") { "v4.b32" } else { "v4.f32" };
            assert!(has(&kernel, &format!("st.global.{vectors}")) && has(&kernel, &format!("ld.global.{vectors}")));
        }
    }
}

/// Roles, clusters, tiles in turn, a group under way, a store by the accelerator.
fn gemm(launch: &str, split: &str, inflight: &str, store: &str) -> String {
    let (load, math) = if launch.contains("roles") { ("by load", "by math") } else { ("", "") };
    let multicast = if launch.contains("cluster") { "multicast c.mc by nh;" } else { "" };
    let cta = if launch.contains("cluster") { "bind mc: cta;" } else { "" };
    format!(
        "kernel P(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N]) where K % 8 == 0, N % 8 == 0 {{
            acc[m, n] = dot(|k| a[m, k] * b[n, k]);
            c[m, n] = acc[m, n] as bf16;
            launch {launch};
            schedule c {math} {{
                split m by 256 -> mt, m1; split m1 by 128 -> mc, m2; split m2 by 64 -> mw, m3;
                split n by 64 -> nt, n1; split n1 by 32 -> ns, n2;
                reorder mt, nt, mc, ns, mw, m3, n2;
                bind mt, nt: grid; {cta} unroll ns; bind mw: warpgroup;
                fragment (m3, n2) by wgmma; vectorize n2_p;
            }}
            {store}
            schedule acc in registers at c.mc {math} {{
                {split} split m by 64 -> mw, m3; reorder ks, ko, mw, m3, n, ki;
                bind ks: grid; bind mw: warpgroup;
                mma (m3, n, ki) by wgmma {inflight}; reduce ks by grid;
            }}
            stage sa[m, k] = a in shared at acc.ko ring(2) via tma {load} {{ layout [m, k] swizzle 128; }}
            stage sb[n, k] = b in shared at acc.ko ring(2) via tma {load} {{
                box n by 32 -> nh, nb; layout [nh, nb, k] swizzle 128; {multicast}
            }}
        }}"
    )
}

const ROLES: &str = "roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) }";
const STORE: &str = "stage cs[m, n] = c in shared at c.ns ring(2) via tma by math { layout [m, n] swizzle 64; }";

#[test]
fn roles_clusters_and_tiles_in_turn() {
    let of_roles = |items: &str| format!("{items}{ROLES}");
    let cases = [
        ("persistent".to_owned(), BY, "", ""),
        ("cluster(2)".to_owned(), INTO, "", ""),
        ("cluster(2), persistent".to_owned(), BY, "", ""),
        (of_roles(""), BY, "inflight(1)", ""),
        (of_roles("persistent, "), INTO, "", STORE),
        (of_roles("cluster(2), "), BY, "", STORE),
        (of_roles("cluster(2), persistent, "), BY, "inflight(1)", STORE),
        (of_roles("cluster(2), persistent, "), INTO, "inflight(1)", ""),
        (of_roles("persistent, "), BY, "inflight(2)", STORE),
    ];
    for (launch, split, inflight, store) in cases {
        // A slot beside those of the groups.
        let ring = if inflight == "inflight(2)" { "ring(3)" } else { "ring(2)" };
        let source = gemm(&launch, split, inflight, store).replace("acc.ko ring(2)", &format!("acc.ko {ring}"));
        let sizes: &[&[i64]] =
            &[&[1, 8, 8], &[300, 264, 72], &[256, 128, 64], &[130, 136, 200], &[0, 8, 8], &[3, 0, 8]];
        runs(&source, &accepted(&source), sizes, 2);
    }
}

/// Launches without elements take the entry point with 64-bit indices, unless that is not there for all sizes: as many
/// parts as the terms ask for may need more memory than 64 bits address.
#[test]
fn launches_of_nothing_have_an_entry_point() {
    for (split, expected) in [(BY, &["P", "P_plain", "P_64"][..]), (INTO, &["P", "P_64"])] {
        let kernel = accepted(&gemm("persistent", split, "", ""));
        let names: Vec<&str> = kernel.entries.iter().map(|entry| entry.kernel.signature.name.as_str()).collect();
        assert_eq!(names, expected);
        let last = kernel.entries.last().expect("an entry point");
        assert_eq!(last.conditions.is_empty(), expected.len() == 2, "{:?}", last.conditions);
    }
}

/// What is made of the sums after the arrival: another stage, an output beside, copies of the same role.
#[test]
fn what_comes_after() {
    let of_roles = gemm(&format!("persistent, {ROLES}"), BY, "inflight(1)", "");
    let residual = of_roles
        .replace("b: bf16[N, K])", "b: bf16[N, K], r: f32[M, N], d: f32[N])")
        .replace("acc[m, n] as", "(acc[m, n] * r[m, n] + d[n]) as")
        .replace(
            "stage sa",
            "stage ds[n] = d in shared at c.mc by math { split n by 32 -> no, t; bind t: thread; }
            stage rs[m, n] = r in shared at c.ns via tma by math { layout [m, n]; }
            stage sa",
        );
    runs(&residual, &accepted(&residual), &[&[1, 8, 8], &[300, 264, 72]], 2);
    let beside = of_roles
        .replace("(c: bf16[M, N])", "(c: bf16[M, N], e: f32[M, N])")
        .replace("launch", "x[m, n] = acc[m, n] + 1.0; e[m, n] = x[m, n] * x[m, n]; launch")
        .replace(
            "schedule acc",
            "schedule e at c.mc by math { like c; }
            schedule x in registers at c.mc by math {
                split m by 64 -> mw, m3; reorder mw, m3, n; bind mw: warpgroup; fragment (m3, n) by wgmma; unroll n_p;
            }
            schedule acc",
        );
    runs(&beside, &accepted(&beside), &[&[1, 8, 8], &[300, 264, 72]], 2);
    let dependent = gemm(&format!("dependent, {ROLES}"), INTO, "", STORE);
    runs(&dependent, &accepted(&dependent), &[&[1, 8, 8], &[300, 264, 72]], 2);
}

/// Another role, or other blocks of the cluster, would wait for what only the last block does.
#[test]
fn what_others_take_part_in_is_refused() {
    let launch = format!("cluster(2), persistent, {ROLES}");
    let source = gemm(&launch, BY, "", STORE);
    accepted(&source);
    let bias = source
        .replace("b: bf16[N, K])", "b: bf16[N, K], r: f32[M, N])")
        .replace("acc[m, n] as", "(acc[m, n] * r[m, n]) as");
    let staged = |copy: &str| bias.replace("stage sa", &format!("{copy} stage sa"));
    for place in ["c.ns", "c.mc"] {
        let by_load = staged(&format!("stage rs[m, n] = r in shared at {place} via tma by load {{ layout [m, n]; }}"));
        refused(&by_load, Code::TW0714, &["another role runs `rs`", "let the role of `acc` make `rs`"]);
    }
    refused(
        &source.replace("ring(2) via tma by math", "ring(2) via tma by load"),
        Code::TW0714,
        &["another role runs `cs`"],
    );
    let column =
        source.replace("b: bf16[N, K])", "b: bf16[N, K], d: f32[N])").replace("acc[m, n] as", "(acc[m, n] + d[n]) as");
    let together = column.replace(
        "stage sa",
        "stage ds[n] = d in shared at c.ns via tma by math { box n by 16 -> nh, nb; multicast c.mc by nh; } stage sa",
    );
    refused(&together, Code::TW0714, &["blocks of a cluster make `ds` together", "leave `multicast` of `ds` out"]);
    let by_threads =
        column.replace("stage sa", "stage ds[n] = d in shared at c.mc by load { bind n: thread; } stage sa");
    refused(&by_threads, Code::TW0714, &["another role runs `ds`", "let one role run `acc`"]);
}

#[test]
fn what_is_no_split_is_refused() {
    let source = plain(BF16, 8, [64, 64], BY, "grid");
    let with = |from: &str, to: &str| {
        assert!(source.contains(from), "{from}");
        source.replace(from, to)
    };
    refused(&with("reduce ks by grid;", ""), Code::TW0703, &["each block would hold only a part"]);
    refused(&with("by grid", "by atomic"), Code::TW1009, &["other bits each time"]);
    // Parts that end inside a box would have terms of the next part.
    let uneven = with("split k by 128 -> ks, k1;", "split k by 96 -> ks, k1;");
    refused(&uneven, Code::TW0804, &["may not be zero"]);
    // All that a thread has must fit its registers.
    refused(
        &with("split m by 64", "split m by 256").replace("split n by 64", "split n by 256"),
        Code::TW0714,
        &["512"],
    );
}

/// Each barrier is missed, and each order of a ticket, by the separate checker; each line of it by the emulator.
#[test]
fn what_orders_the_parts_is_missed() {
    let kernel = tried(&plain(BF16, 8, [64, 8], BY, "grid"), &[&[1, 136, 3]], 2);
    // A store, three barriers, and what may be wrong with a ticket.
    assert!(each_part_of_an_arrival_is_missed(&kernel, &[1, 136, 3]) >= 7);
    let kernel = accepted(&gemm(&format!("persistent, {ROLES}"), BY, "", ""));
    let info = kernel.info.as_ref().expect("no error");
    let (of, dims) = (&kernel.entries[0].kernel, [100, 264, 8]);
    let launch = Launch::new(info, &dims).expect("a launch").by(2);
    let holds = |kernel: &Kernel| check(kernel, &launch, 20_000_000) == Verdict::Holds;
    assert!(holds(of));
    let mut tickets = 0;
    for region in 0..of.regions.len() {
        for at in 0..of.regions[region].statements.len() {
            for change in [0, 1] {
                let mut mutant = of.clone();
                let kind = &mut mutant.regions[region].statements[at].kind;
                let StatementKind::LastBlockTicket { releases, acquires, .. } = kind else { continue };
                *(if change == 0 { releases } else { acquires }) = false;
                tickets += 1;
                assert!(!holds(&mutant), "{mutant}");
            }
        }
    }
    assert_eq!(tickets, 2);
    assert!(!is_wrong(info, &dims, info.ptx.text.to_string()));
    for (from, to) in [("atom.acq_rel", "atom.relaxed"), ("st.global.v4.f32", "// ")] {
        assert!(info.ptx.text.contains(from), "{from}");
        assert!(is_wrong(info, &dims, info.ptx.text.replacen(from, to, 1)), "{from}");
    }
}

/// The same of any reduction with several results a thread, in vectors of as many as divide them.
#[test]
fn results_of_a_thread_are_vectors() {
    let of = |body: &str, ty: &str, results: u32| {
        format!(
            "kernel K(x: {ty}[M, N]) -> (y: f32[N]) {{
                {body}
                schedule y {{ split j by {} -> jb, j1; bind jb: grid; split j1 by {results} -> t, jj; bind t: thread; unroll jj; }}
                schedule s in registers at y.jb {{
                    split i by 5 -> is, ii; split j by {results} -> t, jj; reorder ii, t, jj;
                    bind is: grid; bind t: thread; reduce is by grid;
                }}
            }}",
            32 * results
        )
    };
    let sum = "s[j] = sum(|i| x[i, j]); y[j] = s[j] as f32;";
    let any = "s[j] = any(|i| x[i, j] > 0.0); y[j] = if s[j] { 1.0 } else { 0.0 };";
    let place = "s[j] = argmax(|i in 0..M + 1| x[i, j] or 0.0); y[j] = s[j] as f32;";
    let pair = "(s, q)[j] = fold(|i| init (0.0f64, 0.0f32), step (a, b) => (a + (x[i, j] as f64), b + x[i, j]),
        merge ((a, b), (c, d)) => (a + c, b + d)); y[j] = (s[j] as f32) + q[j];";
    let cases = [
        (sum, "f32", 8, "v4.f32"),
        (sum, "f32", 6, "v2.f32"),
        (sum, "f32", 3, "global.f32"),
        (sum, "f64", 4, "v2.f64"),
        (sum, "i16", 12, "global"),
        (any, "f32", 16, "global"),
        (place, "f32", 4, "v4.f32"),
        (pair, "f32", 4, "v2.f64"),
    ];
    for (body, ty, results, vector) in cases {
        let source = of(body, ty, results);
        let kernel = tried(&source, &[&[0, 3], &[1, 1], &[7, 40], &[23, 97]], 2);
        assert!(has(&kernel, vector), "{vector}\n{source}");
    }
}

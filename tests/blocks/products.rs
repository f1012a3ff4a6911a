//! Products by tensor cores: every type and layout, roles, clusters, stores by the accelerator. Every kernel runs for
//! awkward sizes under several seeds and gives what `reference()` does: small integers to the bit, real numbers within
//! the contract of `dot`. Without any one of the things that stand between products, the separate checker or the
//! emulator finds something wrong.

use crate::support::{Refusal, finished, is_wrong, runs, tried};
use tilewright::kernel::tensor_map::Swizzle;
use tilewright_compiler::Compiled;
use tilewright_compiler::diag::{Code, Level};
use tilewright_compiler::kernel_ir::{Factor, Kernel, Matrix, RegionId, Statement, StatementKind, Wgmma};
use tilewright_compiler::proof::{Launch, Verdict, check, check_values};

/// A product of matrices along k, in one warpgroup: types, tile, terms of an iteration, and the layouts of the factors.
struct Product {
    types: [&'static str; 3],
    /// Terms of a multiple of 16 bytes.
    granule: u32,
    tile: [u32; 3],
    layouts: [&'static str; 2],
}

impl Product {
    fn source(&self) -> String {
        let Self { types: [a, b, c], granule, tile: [m, n, k], layouts: [left, right] } = self;
        format!(
            "kernel P(a: {a}[M, K], b: {b}[N, K]) -> (c: {c}[M, N]) where K % {granule} == 0 {{
                acc[m, n] = dot(|k| a[m, k] * b[n, k]);
                c[m, n] = acc[m, n];
                schedule c {{
                    split m by {m} -> mt, mi; split n by {n} -> nt, ni;
                    bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
                }}
                schedule acc in registers at c.nt {{ split k by {k} -> ko, ki; mma (m, n, ki) by wgmma; }}
                stage sa[m, k] = a in shared at acc.ko ring(2) via tma {{ {left} }}
                stage sb[n, k] = b in shared at acc.ko ring(2) via tma {{ {right} }}
            }}"
        )
    }
}

const BF16: [&str; 3] = ["bf16", "bf16", "f32"];
/// Rows of terms, one after the other.
const B32: [&str; 2] = ["layout [m, k] swizzle 32;", "layout [n, k] swizzle 32;"];
const B64: [&str; 2] = ["layout [m, k] swizzle 64;", "layout [n, k] swizzle 64;"];
const B128: [&str; 2] = ["layout [m, k] swizzle 128;", "layout [n, k] swizzle 128;"];

fn product(types: [&'static str; 3], granule: u32, tile: [u32; 3], layouts: [&'static str; 2]) -> Product {
    Product { types, granule, tile, layouts }
}

pub fn accepted(source: &str) -> Compiled {
    finished(source).unwrap_or_else(|(codes, report)| panic!("{codes:?}\n{source}\n{report}"))
}

pub fn refused(source: &str, code: Code, words: &[&str]) {
    let Err((codes, report)) = finished(source).map(drop) else { panic!("accepted:\n{source}") };
    let errors: Vec<Code> = codes.into_iter().filter(|code| code.row().level == Level::Error).collect();
    assert_eq!(errors, [code], "{report}");
    words.iter().for_each(|word| assert!(report.contains(word), "{word}:\n{report}"));
}

/// Instructions of a kernel's first entry point, by a part of their names.
pub fn has(kernel: &Compiled, word: &str) -> bool {
    kernel.info.as_ref().is_some_and(|info| info.ptx.text.contains(word))
}

/// `like` a sum is to have the elements of its fragment: with units, tiles and names as the sum has them, in another
/// stage that reads it, and in one that reads that.
#[test]
fn readers_that_are_like_a_sum() {
    let source = "kernel P(a: bf16[M, K], b: bf16[N, K], bias: f32[N]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        x[i, j] = max(acc[i, j] + bias[j], 0.0);
        z[m, n] = 2.0 * x[m, n];
        c[m, n] = z[m, n] - acc[m, n];
        schedule c {
            split m by 256 -> mt, m1; split m1 by 128 -> mw, mi; split n by 16 -> nt, ni; reorder mt, nt, mw, mi, ni;
            bind mt, nt: grid; bind mw: warpgroup; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt {
            split k by 32 -> ko, ki; split m by 128 -> w, m2; reorder ko, w, m2, n, ki;
            bind w: warpgroup; mma (m2, n, ki) by wgmma;
        }
        schedule x in registers at c.nt { like acc; }
        schedule z in registers at c.nt { like x; unroll n_p; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 64; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 64; }
    }";
    let kernel = accepted(source);
    runs(source, &kernel, &[&[256, 32, 16], &[5, 40, 17], &[300, 8, 3], &[1, 0, 1]], 2);
    // It is dealt out no otherwise than by what `like` stands for.
    let written = source
        .replace(
            "like acc;",
            "split i by 128 -> w, m2; reorder w, m2, j; bind w: warpgroup; fragment (m2, j) by wgmma;",
        )
        .replace("like x;", "split m by 128 -> w, m2; reorder w, m2, n; bind w: warpgroup; fragment (m2, n) by wgmma;");
    let ptx = |kernel: &Compiled| kernel.info.as_ref().map(|info| info.ptx.text.to_string());
    assert_eq!(ptx(&accepted(&written)), ptx(&kernel));
}

/// What is made of sums along rows, whose four lanes `fragment` knows, and along columns, whose eight lanes and four
/// warps are named by hand.
#[test]
fn statistics_of_rows_and_columns() {
    let rows = "kernel P(a: bf16[M, K], b: bf16[40, K]) -> (c: bf16[M, 40], most: f32[M], squares: f32[M])
    where K % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        most[m] = max(|n| acc[m, n]);
        squares[m] = sum(|n| acc[m, n] * acc[m, n]);
        c[m, n] = acc[m, n] as bf16;
        schedule c {
            split m by 64 -> mt, mi; bind mt: grid; reorder mt, mi, n; fragment (mi, n) by wgmma; vectorize n_p;
        }
        schedule most at c.mt { split m by 64 -> mt, mi; bind mt: grid; fragment (mi, n) by wgmma; }
        schedule squares at c.mt { split m by 64 -> mt, mi; bind mt: grid; fragment (mi, n) by wgmma; }
        schedule acc in registers at c.mt { split k by 32 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 64; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 64; }
    }";
    // Sizes are M, K.
    let kernel = accepted(rows);
    runs(rows, &kernel, &[&[1, 8], &[70, 40], &[66, 136], &[5, 0]], 2);
    assert!(has(&kernel, "shfl.sync.bfly"));
    let columns = "kernel P(a: bf16[M, K], b: bf16[N, K]) -> (squares: f32[N]) where K % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        squares[n] = sum(|m| acc[m, n] * acc[m, n]);
        schedule squares {
            split n by 32, 8, 2 -> nt, nj, nq, np; split m by 64, 16, 8 -> mt, mw, mh, mr;
            reorder nt, mt, mw, mr, nq, nj, np, mh;
            bind nt: grid; bind mw: warp; bind mr: thread; bind nq: thread; unroll nj; unroll np; unroll mh;
            reduce mw; reduce mr;
        }
        schedule acc in registers at squares.mt { split k by 32 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 64; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 64; }
    }";
    // Sizes are M, K, N.
    let sizes: &[&[i64]] = &[&[1, 8, 1], &[70, 40, 33], &[130, 136, 64], &[5, 0, 4], &[0, 8, 3]];
    let kernel = accepted(columns);
    runs(columns, &kernel, sizes, 2);
    assert!(has(&kernel, "shfl.sync.bfly"));
    // `fragment` of rows that are terms knows these, too: of one tile of rows, and of two in the loop.
    let by_hand = columns.split_once("schedule squares {").and_then(|(_, rest)| rest.split_once("}\n")).expect("ops").0;
    for rows in [64, 128] {
        let ops = format!(
            " split n by 32 -> nt, ni; split m by {rows} -> mt, mi; reorder nt, mt, mi, ni; bind nt: grid;
            fragment (mi, ni) by wgmma; unroll ni_p;\n"
        );
        let source = columns.replace(by_hand, &ops);
        let kernel = accepted(&source);
        runs(&source, &kernel, sizes, 2);
        assert!(has(&kernel, "shfl.sync.bfly"));
    }
}

/// Statistics of what rows have once: the lanes and warps of a tile combine it, of a tile of rows and of two.
#[test]
fn fragments_of_rows_that_are_terms() {
    for (rows, op) in [(64, "sum"), (128, "max")] {
        let source = format!(
            "kernel P(a: bf16[T, {rows}, K], b: bf16[40, K]) -> (total: f32[T]) where K % 8 == 0 {{
                acc[t, m, n] = dot(|k| a[t, m, k] * b[n, k]);
                squares[t, m] = sum(|n| acc[t, m, n] * acc[t, m, n]);
                total[t] = {op}(|m| squares[t, m]);
                schedule total {{ bind t: grid; fragment (m) by wgmma; }}
                schedule squares in registers at total.t {{ fragment (m, n) by wgmma; }}
                schedule acc in registers at total.t {{ split k by 32 -> ko, ki; mma (m, n, ki) by wgmma; }}
                stage sa[t, m, k] = a in shared at acc.ko ring(2) via tma {{ layout [m, k] swizzle 64; }}
                stage sb[n, k] = b in shared at acc.ko ring(2) via tma {{ layout [n, k] swizzle 64; }}
            }}"
        );
        let kernel = accepted(&source);
        // Sizes are T, K.
        runs(&source, &kernel, &[&[1, 8], &[3, 40], &[2, 136], &[2, 0], &[0, 8]], 2);
        assert!(has(&kernel, "shfl.sync.bfly"));
    }
}

/// Rows as terms in all other places: of products of warps, of several warpgroups beside an output, the largest in the
/// place of the sum, and rows and columns both.
#[test]
fn fragments_whose_rows_are_terms() {
    let [of_rows, of_all] = ["most[n] = max(|m| abs(acc[m, n]));", "all[u] = sum(|m in 0..M, n in 0..N| acc[m, n]);"];
    let wgmma = |equation: &str, output: &str, ops: &str, sum: &str| {
        format!(
            "kernel P(a: bf16[M, K], b: bf16[N, K]) -> ({output}) where K % 8 == 0 {{
                acc[m, n] = dot(|k| a[m, k] * b[n, k]);
                {equation}
                schedule {ops}
                schedule acc in registers at {sum} by wgmma; }}
                stage sa[m, k] = a in shared at acc.ko ring(2) via tma {{ layout [m, k] swizzle 64; }}
                stage sb[n, k] = b in shared at acc.ko ring(2) via tma {{ layout [n, k] swizzle 64; }}
            }}"
        )
    };
    let warpgroups = wgmma(
        of_rows,
        "most: f32[N]",
        "most {
            split n by 24 -> nt, ni; split m by 128, 64 -> mt, mw, mi; reorder nt, mt, mw, mi, ni;
            bind nt: grid; bind mw: warpgroup; fragment (mi, ni) by wgmma; reduce mw; unroll ni_p;
        }",
        "most.mt { split k by 32 -> ko, ki; split m by 64 -> mw, mi; reorder ko, mw, mi, n, ki; bind mw: warpgroup;
            mma (mi, n, ki)",
    );
    let both = wgmma(
        of_all,
        "all: f32[U]",
        "all {
            split n by 24 -> nt, ni; split m by 64 -> mt, mi; reorder u, mt, nt, mi, ni;
            bind u: grid; fragment (mi, ni) by wgmma;
        }",
        "all.nt { split k by 32 -> ko, ki; mma (m, n, ki)",
    );
    let warps = "kernel P(a: bf16[M, K], b: bf16[N, K]) -> (squares: f32[N]) where K % 16 == 0 {
        fa[m, k] = a[m, k];
        fb[n, k] = b[n, k];
        acc[m, n] = dot(|k| fa[m, k] * fb[n, k]);
        squares[n] = sum(|m| acc[m, n] * acc[m, n]);
        schedule squares {
            split n by 64, 16 -> nt, nw, ni; split m by 32 -> mt, mi; reorder nt, mt, nw, mi, ni;
            bind nt: grid; bind nw: warp; fragment (mi, ni) by mma_sync; unroll ni_p;
        }
        schedule acc in registers at squares.mt {
            split k by 32 -> ko, ki; split n by 16 -> nw, ni; reorder ko, nw, m, ni, ki; bind nw: warp;
            mma (m, ni, ki) by mma_sync;
        }
        schedule fa in registers per warp at acc.nw { fragment (m, k) by mma_sync; }
        schedule fb in registers per warp at acc.nw { fragment (n, k) by mma_sync; }
    }";
    // Sizes are M, K, N; and U last, which only one of them has.
    let sizes: &[&[i64]] = &[&[1, 16, 1], &[70, 48, 33], &[130, 144, 64], &[5, 0, 4], &[0, 16, 3]];
    for source in [&*warpgroups, warps] {
        runs(source, &accepted(source), sizes, 2);
    }
    let with_one: Vec<Vec<i64>> = sizes.iter().map(|dims| [dims, &[2][..]].concat()).collect();
    let with_one: Vec<&[i64]> = with_one.iter().map(Vec::as_slice).collect();
    runs(&both, &accepted(&both), &with_one, 2);
}

/// Tensors that the accelerator accesses alone may have more elements than 32 bits count: their offsets are computed
/// nowhere. What threads store, they address.
#[test]
fn large_tensors_go_by_coordinates() {
    let source = product(BF16, 8, [64, 64, 64], B128).source();
    let stored =
        source.replace("stage sa[", "stage cs[m, n] = c in shared at c.nt via tma { layout [m, n]; } stage sa[");
    let stored = stored.replace("K % 8 == 0", "K % 8 == 0, N % 4 == 0");
    // M, K, N: factors of 2³³ elements, and a result of as many.
    let [factors, result] = [[1 << 20, 1 << 13, 64], [1 << 17, 64, 1 << 16]];
    for (source, dims, is_first) in
        [(&source, factors, true), (&source, result, false), (&stored, factors, true), (&stored, result, true)]
    {
        let kernel = accepted(source);
        let info = kernel.info.as_ref().expect("no error");
        let fits = info.entries[0].conditions.iter().all(|condition| condition.holds(&dims) == Ok(true));
        assert_eq!(fits, is_first, "{dims:?}\n{source}");
    }
}

#[test]
fn every_type_in_tiles_that_do_not_divide() {
    let cases = [
        (product(BF16, 8, [64, 64, 64], B128), "m64n64k16.f32.bf16.bf16"),
        (product(["f16", "f16", "f32"], 8, [64, 40, 32], B64), "m64n40k16.f32.f16.f16"),
        (product(["tf32", "tf32", "f32"], 4, [64, 8, 32], B128), "m64n8k8.f32.tf32.tf32"),
        (product(["e5m2", "e5m2", "f32"], 16, [64, 24, 128], B128), "m64n24k32.f32.e5m2.e5m2"),
        (product(["i8", "i8", "i32"], 16, [64, 48, 64], B64), "m64n48k32.s32.s8.s8"),
        (product(["u8", "u8", "i32"], 16, [64, 32, 32], B32), "m64n32k32.s32.u8.u8"),
        // Of integers there are these two beside multiples of 16.
        (product(["u8", "i8", "i32"], 16, [64, 24, 32], B32), "m64n24k32.s32.u8.s8"),
        (product(["i8", "i8", "i32"], 16, [128, 8, 64], B64), "m64n8k32.s32.s8.s8"),
        // Both kinds of 8-bit factors, in either order.
        (product(["e4m3", "e5m2", "f32"], 16, [64, 40, 64], B64), "m64n40k32.f32.e4m3.e5m2"),
        (product(["e5m2", "e4m3", "f32"], 16, [128, 8, 128], B128), "m64n8k32.f32.e5m2.e4m3"),
        (product(["i8", "u8", "i32"], 16, [64, 16, 128], B128), "m64n16k32.s32.s8.u8"),
    ];
    for (product, instruction) in cases {
        let source = product.source();
        let kernel = accepted(&source);
        assert!(has(&kernel, instruction), "{instruction}");
        let k = i64::from(product.granule);
        // Sizes are M, K, N.
        runs(&source, &kernel, &[&[1, k, 1], &[70, 9 * k, 50], &[64, 16 * k, 64], &[0, k, 3], &[5, 0, 3]], 2);
    }
}

/// Each layout is read by the descriptor that was found for it.
#[test]
fn layouts_that_descriptors_describe() {
    let cases = [
        // Without a swizzle, groups of eight rows of 16 bytes.
        ("box k by 8 -> kc, kb; layout [kc, m, kb];", "box k by 8 -> kc, kb; layout [kc, n, kb];"),
        // Several boxes along the terms, of rows that are shorter than an iteration.
        (
            "box k by 32 -> kc, kb; layout [kc, m, kb] swizzle 64;",
            "box k by 64 -> kc, kb; layout [kc, n, kb] swizzle 128;",
        ),
        // Several boxes along rows and columns.
        (
            "box m by 32 -> mc, mb; box k by 64 -> kc, kb; layout [kc, mc, mb, kb] swizzle 128;",
            "box n by 16 -> nc, nb; box k by 16 -> kc, kb; layout [kc, nc, nb, kb] swizzle 32;",
        ),
        // The boxes of terms follow those of columns: an instruction has the columns of one box.
        (
            "box k by 64 -> kc, kb; layout [kc, m, kb] swizzle 128;",
            "box n by 32 -> nc, nb; box k by 64 -> kc, kb; layout [nc, kc, nb, kb] swizzle 128;",
        ),
    ];
    for (left, right) in cases {
        let source = product(BF16, 8, [64, 96, 128], [left, right]).source();
        runs(&source, &accepted(&source), &[&[70, 136, 100], &[3, 8, 97]], 2);
    }
}

/// Rows and columns that are neighbours in memory; a factor that is written first; more columns and rows than an
/// instruction has.
#[test]
fn tiles_of_several_instructions_and_transposed_factors() {
    let transposed = "kernel P(a: f16[K, M], b: f16[K, N]) -> (c: f32[M, N]) where M % 8 == 0, N % 8 == 0 {
            acc[m, n] = dot(|k| b[k, n] * a[k, m]);
            c[m, n] = acc[m, n];
            schedule c {
                split m by 128 -> mt, mi; split n by 320 -> nt, ni;
                bind mt, nt: grid; fragment (mi, ni) by wgmma; vectorize ni_p;
            }
            schedule acc in registers at c.nt { split k by 32 -> ko, ki; mma (m, n, ki) by wgmma; }
            stage sa[k, m] = a in shared at acc.ko via tma { box m by 64 -> mc, mb; layout [mc, k, mb] swizzle 128; }
            stage sb[k, n] = b in shared at acc.ko via tma { box n by 32 -> nc, nb; layout [nc, k, nb] swizzle 64; }
        }";
    refused(transposed, Code::TW0504, &["acc"]);
    let fewer = transposed.replace("split n by 320", "split n by 160");
    let kernel = tried(&fewer, &[&[8, 8, 8], &[65, 136, 168], &[1, 128, 160]], 2);
    assert!(has(&kernel, "m64n160k16"));
    let wide = transposed.replace("split m by 128", "split m by 64");
    let kernel = tried(&wide, &[&[33, 72, 328]], 2);
    assert!(has(&kernel, "m64n160k16"));
    // A batch of products, one tile each.
    let batched = "kernel P(a: bf16[B, M, K], b: bf16[B, N, K]) -> (c: f32[B, M, N]) where K % 8 == 0 {
            acc[z, m, n] = dot(|k| a[z, m, k] * b[z, n, k]);
            c[z, m, n] = acc[z, m, n];
            schedule c {
                split m by 64 -> mt, mi; split n by 32 -> nt, ni;
                bind z, mt, nt: grid; reorder z, mt, nt, mi, ni; fragment (mi, ni) by wgmma; unroll ni_p;
            }
            schedule acc in registers at c.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
            stage sa[z, m, k] = a in shared at acc.ko via tma { layout [m, k] swizzle 128; }
            stage sb[z, n, k] = b in shared at acc.ko via tma { layout [n, k] swizzle 128; }
        }";
    tried(batched, &[&[3, 70, 72, 40], &[1, 1, 8, 1]], 2);
}

/// The flagship: roles, clusters that share a factor, tiles in turn, a store by the accelerator.
pub fn gemm(inflight: &str, ring: u32, store: &str) -> String {
    format!(
        "kernel P(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N]) where K % 8 == 0, N % 8 == 0 {{
            acc[m, n] = dot(|k| a[m, k] * b[n, k]);
            c[m, n] = acc[m, n] as bf16;
            launch cluster(2), persistent, roles {{ load: warpgroup regs(40), math: 2 warpgroup regs(232) }};
            schedule c by math {{
                split m by 256 -> mt, m1; split m1 by 128 -> mc, m2; split m2 by 64 -> mw, m3;
                split n by 64 -> nt, n1; split n1 by 32 -> ns, n2;
                reorder mt, nt, mc, ns, mw, m3, n2;
                bind mt, nt: grid raster(mt: 2); bind mc: cta; unroll ns; bind mw: warpgroup;
                fragment (m3, n2) by wgmma; vectorize n2_p;
            }}
            {store}
            schedule acc in registers at c.mc by math {{
                split k by 64 -> ko, ki; split m by 64 -> mw, m3; reorder ko, mw, m3, n, ki;
                bind mw: warpgroup;
                mma (m3, n, ki) by wgmma {inflight};
            }}
            stage sa[m, k] = a in shared at acc.ko ring({ring}) via tma by load {{ layout [m, k] swizzle 128; }}
            stage sb[n, k] = b in shared at acc.ko ring({ring}) via tma by load {{
                box n by 32 -> nh, nb; layout [nh, nb, k] swizzle 128; multicast c.mc by nh;
            }}
        }}"
    )
}

const STORE: &str = "stage cs[m, n] = c in shared at c.ns via tma by math { layout [m, n] swizzle 64; }";
/// In slots that are known, since the loop is written out and has two iterations, and in slots that are not.
pub const STORE_BY_TWO: &str =
    "stage cs[m, n] = c in shared at c.ns ring(2) via tma by math { layout [m, n] swizzle 64; }";
const STORE_BY_THREE: &str =
    "stage cs[m, n] = c in shared at c.ns ring(3) via tma by math { layout [m, n] swizzle 64; }";

/// Elements that a copy stores are written without tests where it leaves out what lies outside: not where a tensor is
/// read beside them, whose bounds the test keeps.
#[test]
fn what_a_store_leaves_out_is_not_tested() {
    let clipped = |what: &str| format!("predicate {what}, waived in the staged entry: such elements are not stored");
    let plain = gemm("inflight(1)", 2, STORE_BY_TWO);
    let kernel = accepted(&plain);
    let text = &kernel.info.as_ref().expect("no error").explanation;
    assert!(text.contains(&clipped("m < M")) && text.contains(&clipped("n < N")), "{text}");
    let bias =
        plain.replace("b: bf16[N, K])", "b: bf16[N, K], d: f32[N])").replace("acc[m, n] as", "(acc[m, n] + d[n]) as");
    let kernel = accepted(&bias);
    let text = &kernel.info.as_ref().expect("no error").explanation;
    assert!(text.contains(&clipped("m < M")) && text.contains("predicate n < N\n"), "{text}");
    runs(&bias, &kernel, &[&[1, 8, 8], &[300, 200, 72], &[600, 40, 136]], 2);
    // A stage that threads make holds nothing where they do not come.
    let between =
        plain.replace("c[m, n] = acc[m, n] as bf16;", "x[m, n] = acc[m, n] + 1.0; c[m, n] = x[m, n] as bf16;");
    let between = between.replace(
        "schedule acc in",
        "schedule x in registers at c.mc by math {
            split m by 64 -> mw, m3; bind mw: warpgroup; fragment (m3, n) by wgmma; unroll n_p;
        }
        schedule acc in",
    );
    let kernel = accepted(&between);
    let text = &kernel.info.as_ref().expect("no error").explanation;
    assert!(!text.contains("such elements are not stored") && text.contains("predicate n < N\n"), "{text}");
    runs(&between, &kernel, &[&[1, 8, 8], &[300, 200, 72]], 2);
    // Rows beyond a tile of 12 are those of the next one, and have no slot: then every test stays.
    let tiles = "kernel P(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
        y[i, j] = 2.0 * x[i, j];
        launch threads(32);
        schedule y {
            split i by 12 -> it, ib; split ib by 8 -> ic, id; split j by 32 -> jt, jb;
            reorder it, jt, ic, id, jb; bind it, jt: grid; bind jb: thread;
        }
        stage xs[i, j] = x in shared at y.jt via tma { }
        stage ys[i, j] = y in shared at y.jt via tma { }
    }";
    let kernel = accepted(tiles);
    let text = &kernel.info.as_ref().expect("no error").explanation;
    assert!(text.contains("predicate ib < 12\n") && text.contains("predicate i < M\n"), "{text}");
    runs(tiles, &kernel, &[&[1, 4], &[30, 36], &[12, 64]], 2);
    let direct = accepted(&gemm("inflight(1)", 2, ""));
    let text = &direct.info.as_ref().expect("no error").explanation;
    assert!(text.contains("predicate m < M\n") && text.contains("predicate n < N\n"), "{text}");
}

#[test]
fn roles_clusters_and_stores_by_the_accelerator() {
    let stores = [("", 1, ""), ("inflight(1)", 2, ""), ("inflight(1)", 3, STORE), ("", 4, STORE)];
    let [two, three] = [STORE_BY_TWO, STORE_BY_THREE].map(|store| ("inflight(1)", 2, store));
    for (inflight, ring, store) in stores.into_iter().chain([two, three]) {
        let source = gemm(inflight, ring, store);
        let kernel = accepted(&source);
        runs(&source, &kernel, &[&[1, 8, 8], &[300, 200, 72], &[256, 256, 64], &[600, 64, 136], &[0, 8, 8]], 2);
        assert!(has(&kernel, ".multicast::cluster") && has(&kernel, "redux.sync.or"), "{inflight} {ring}");
        assert_eq!(has(&kernel, "wgmma.wait_group.sync.aligned 1;"), !inflight.is_empty());
    }
}

/// The copies of one place have slots and barriers together: one wait an iteration for both, one phase of both's bytes.
#[test]
fn copies_of_one_place_share_barriers() {
    let kernel = accepted(&gemm("inflight(1)", 4, ""));
    let barriers = &kernel.entries[0].kernel.barriers;
    assert_eq!(barriers.iter().filter(|b| b.slots == 4).count(), 2, "{barriers:?}");
}

/// Every statement of products and phases is taken out, one at a time; and each wait is told to leave one more group.
#[test]
fn what_stands_between_products_is_missed() {
    for store in [STORE, STORE_BY_TWO, STORE_BY_THREE] {
        all_is_missed(store);
    }
}

fn all_is_missed(store: &str) {
    let kernel = accepted(&gemm("inflight(1)", 2, store));
    let tried = all_is_noticed(&kernel, &[&[300, 264, 72], &[256, 64, 64]]);
    assert!(tried >= 15, "{tried}");
}

/// Several groups stay under way: with a slot beside theirs and with two, loops of fewer iterations than groups, of as
/// many, and of more; one tile after the other, so that the ring goes on where it stopped.
#[test]
fn several_groups_under_way() {
    for (groups, ring) in [(2, 3), (2, 4), (3, 4), (4, 5), (7, 8)] {
        // Tiles of 32 terms: eight slots of 64 would be too large.
        let source = gemm(&format!("inflight({groups})"), ring, "").replace("split k by 64", "split k by 32");
        let source = source.replace("swizzle 128", "swizzle 64");
        let kernel = accepted(&source);
        assert!(has(&kernel, &format!("wgmma.wait_group.sync.aligned {groups};")), "{groups}");
        let sizes: [&[i64]; 6] =
            [&[1, 8, 8], &[300, 200, 64], &[256, 64, 96], &[600, 64, 136], &[300, 40, 392], &[0, 8, 8]];
        runs(&source, &kernel, &sizes, 2);
    }
}

/// Several groups read one slot: in a loop over terms inside that of the slots, and for two factors with which one is
/// multiplied. A slot comes back when the last group that reads it is over.
#[test]
fn several_groups_of_one_slot() {
    for (groups, ring) in [(1, 2), (2, 2), (3, 3), (4, 3), (7, 5)] {
        for source in [by_halves(groups, ring), of_two(groups, ring)] {
            let kernel = accepted(&source);
            assert!(has(&kernel, &format!("wgmma.wait_group.sync.aligned {groups};")), "{groups}");
            let sizes: [&[i64]; 5] = [&[1, 8, 8], &[300, 72, 64], &[64, 200, 64], &[130, 456, 40], &[0, 8, 8]];
            runs(&source, &kernel, &sizes, 2);
        }
    }
    for source in [by_halves(3, 2), of_two(3, 2)] {
        refused(&source, Code::TW0801, &["`sa` has 2 slots", "`ring(3)` or more"]);
    }
}

/// The last slot has terms for one group, and the others for two: nobody knows when theirs are over by counting groups.
#[test]
fn slots_of_more_and_fewer_groups_are_not_handed_back_late() {
    let of = |range: &str| {
        let source = by_halves(1, 3).replace("[M, K]", "[4, M, K]").replace("[N, K]", "[4, N, K]");
        let source =
            source.replace("dot(|k| a[m, k] * b[n, k])", &format!("dot(|r in {range}, k| a[r, m, k] * b[r, n, k])"));
        let source =
            source.replace("split k by 64, 32 -> ko, k1, ki", "split r by 2 -> ro, r1; split k by 64 -> ko, ki");
        let source = source.replace("reorder ko, k1, m", "reorder ko, ro, r1, m").replace("at acc.ko", "at acc.ro");
        source
            .replace("sa[m, k]", "sa[r, m, k]")
            .replace("layout [m, k]", "layout [r, m, k]")
            .replace("sb[n, k]", "sb[r, n, k]")
            .replace("layout [n, k]", "layout [r, n, k]")
    };
    refused(&of("0..3"), Code::TW0801, &["not the same in each iteration of `ro`"]);
    let even = of("0..4");
    runs(&even, &accepted(&even), &[&[70, 72, 40], &[1, 8, 8]], 1);
    // What is refused is right if each group is awaited.
    let waits = of("0..3").replace(" inflight(1)", "");
    runs(&waits, &accepted(&waits), &[&[70, 72, 40]], 1);
}

/// Two groups for each slot: a slot that is handed back one iteration too early is noticed.
#[test]
fn what_stands_between_groups_of_one_slot_is_missed() {
    for (groups, ring) in [(2, 2), (4, 3)] {
        let tried = all_is_noticed(&accepted(&by_halves(groups, ring)), &[&[128, 392, 64], &[64, 64, 64]]);
        assert!(tried >= 10, "{tried}");
    }
}

/// A product in roles whose slots have terms for two groups.
fn by_halves(groups: u32, ring: u32) -> String {
    format!(
        "kernel P(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {{
            acc[m, n] = dot(|k| a[m, k] * b[n, k]);
            c[m, n] = acc[m, n];
            launch persistent, roles {{ load: warpgroup, math: warpgroup }};
            schedule c by math {{
                split m by 64 -> mt, mi; split n by 32 -> nt, ni; bind mt, nt: grid; fragment (mi, ni) by wgmma;
                unroll ni_p;
            }}
            schedule acc in registers at c.nt by math {{
                split k by 64, 32 -> ko, k1, ki; reorder ko, k1, m, n, ki; mma (m, n, ki) by wgmma inflight({groups});
            }}
            stage sa[m, k] = a in shared at acc.ko ring({ring}) via tma by load {{ layout [m, k] swizzle 128; }}
            stage sb[n, k] = b in shared at acc.ko ring({ring}) via tma by load {{ layout [n, k] swizzle 128; }}
        }}"
    )
}

/// One factor times two others, as in a gated layer: the sums of both are in the loop over terms.
fn of_two(groups: u32, ring: u32) -> String {
    format!(
        "kernel P(a: bf16[M, K], b: bf16[2, N, K]) -> (c: f32[M, N]) where K % 8 == 0 {{
            acc[m, h, n] = dot(|k| a[m, k] * b[h, n, k]);
            c[m, n] = max(acc[m, 0, n], 0.0) * acc[m, 1, n];
            launch persistent, roles {{ load: warpgroup, math: warpgroup }};
            schedule c by math {{
                split m by 64 -> mt, mi; split n by 32 -> nt, ni; bind mt, nt: grid; fragment (mi, ni) by wgmma;
                unroll ni_p;
            }}
            schedule acc in registers at c.nt by math {{
                split k by 64 -> ko, ki; reorder ko, h, m, n, ki; unroll h;
                mma (m, n, ki) by wgmma inflight({groups});
            }}
            stage sa[m, k] = a in shared at acc.ko ring({ring}) via tma by load {{ layout [m, k] swizzle 128; }}
            stage sb[h, n, k] = b in shared at acc.ko ring({ring}) via tma by load {{ layout [h, n, k] swizzle 128; }}
        }}"
    )
}

/// What hands slots back, and what waits for groups, in loops that come around in their rings and in short ones; a wait
/// that leaves one group more hands back a slot that is still read.
#[test]
fn what_stands_between_several_groups_is_missed() {
    for (groups, ring, sizes) in [
        (2, 3, [&[300, 264, 392], &[256, 64, 64]]),
        (3, 4, [&[300, 264, 392], &[256, 64, 128]]),
        (2, 4, [&[300, 264, 456], &[256, 64, 64]]),
    ] {
        let kernel = accepted(&gemm(&format!("inflight({groups})"), ring, STORE));
        let tried = all_is_noticed(&kernel, &sizes.map(|dims| &dims[..]));
        assert!(tried >= 15, "{tried}");
    }
}

/// Takes out every statement of products and phases, one at a time, and tells each wait to leave one more group: the
/// separate checker notices all of it at some of these sizes. How many changes that were.
pub fn all_is_noticed(kernel: &Compiled, sizes: &[&[i64]]) -> usize {
    let info = kernel.info.as_ref().expect("no error");
    let of = &kernel.entries[0].kernel;
    let blocks = i64::from(of.signature.cluster.max(2));
    // Most changes show at small sizes, and no larger ones are looked at then.
    let mut sizes = sizes.to_vec();
    sizes.sort_by_key(|dims| dims.iter().product::<i64>());
    let launches: Vec<Launch> =
        sizes.iter().filter_map(|dims| Some(Launch::new(info, dims).ok()?.by(blocks))).collect();
    let checked = |launch: &Launch, kernel: &Kernel| check(kernel, launch, 40_000_000);
    let holds = |kernel: &Kernel| launches.iter().all(|launch| checked(launch, kernel) == Verdict::Holds);
    launches.iter().for_each(|launch| assert_eq!(checked(launch, of), Verdict::Holds));
    let (mut tried, mut unnoticed) = (0, Vec::new());
    for (region, at) in positions(of) {
        for (name, change) in changes(&of.region(region).statements[at]) {
            tried += 1;
            let mut mutant = of.clone();
            let statements = &mut mutant.regions[region.index()].statements;
            match change {
                Some(kind) => statements[at].kind = kind,
                None => drop(statements.remove(at)),
            }
            if holds(&mutant) {
                unnoticed.push(format!("{name}, statement {at} of region {}", region.index()));
            }
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:#?}\n{of}");
    tried
}

pub fn positions(kernel: &Kernel) -> Vec<(RegionId, usize)> {
    let all = (0..kernel.regions.len() as u32).map(RegionId);
    all.flat_map(|r| (0..kernel.region(r).statements.len()).map(move |at| (r, at))).collect()
}

/// What may be done to a statement that orders something, each with a name.
pub fn changes(statement: &Statement) -> Vec<(&'static str, Option<StatementKind>)> {
    match &statement.kind {
        StatementKind::WgmmaFence => vec![("fence", None)],
        StatementKind::WgmmaCommitGroup => vec![("commit", None)],
        StatementKind::WgmmaWaitGroup { pending } => {
            let later = StatementKind::WgmmaWaitGroup { pending: pending + 1 };
            vec![("wait", None), ("one more group", Some(later))]
        }
        StatementKind::MbarrierWait { .. } => vec![("phase", None)],
        StatementKind::MbarrierArrive { .. } => vec![("release", None)],
        StatementKind::MbarrierExpectTx { .. } => vec![("expectation", None)],
        StatementKind::FenceProxyAsync => vec![("proxy fence", None)],
        StatementKind::BulkWaitGroupRead { .. } => vec![("wait for reads", None)],
        _ => Vec::new(),
    }
}

/// The same in the text, by the emulator, which knows nothing of the compiler.
#[test]
fn the_emulator_misses_it_too() {
    let kernel = accepted(&gemm("inflight(1)", 2, ""));
    let info = kernel.info.as_ref().expect("no error");
    // Six tiles, which one cluster takes in turn; some of each kind reach past an end.
    let dims = [260, 136, 72];
    assert!(!is_wrong(info, &dims, info.ptx.text.to_string()));
    for line in ["wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"] {
        assert!(info.ptx.text.contains(line), "{line}");
        assert!(is_wrong(info, &dims, info.ptx.text.replace(line, "")), "{line}");
    }
    let later = info.ptx.text.replace("wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;");
    assert!(is_wrong(info, &dims, later), "one more group");
    // One of two waits for everything.
    let last = info.ptx.text.replacen("wgmma.wait_group.sync.aligned 0;", "", 1);
    assert!(is_wrong(info, &dims, last));
    let kernel = accepted(&gemm("inflight(2)", 3, ""));
    let info = kernel.info.as_ref().expect("no error");
    let dims = [260, 136, 392];
    assert!(!is_wrong(info, &dims, info.ptx.text.to_string()));
    let later = info.ptx.text.replace("wgmma.wait_group.sync.aligned 2;", "wgmma.wait_group.sync.aligned 3;");
    assert!(is_wrong(info, &dims, later), "one more group of two");
}

/// Values, by the separate checker: another step, row, pattern or factor, or sums that begin elsewhere, are not what
/// the algorithm says.
#[test]
fn other_places_are_other_products() {
    let kernel = accepted(&product(BF16, 8, [64, 16, 32], B64).source());
    let info = kernel.info.as_ref().expect("no error");
    let of = &kernel.entries[0].kernel;
    let launch = Launch::new(info, &[66, 72, 17]).expect("a launch");
    let values = |kernel: &Kernel| check_values(kernel, &launch, &info.algorithm, 3, 50_000_000);
    assert_eq!(values(of), Verdict::Holds);
    let products: Vec<_> = positions(of)
        .into_iter()
        .filter_map(|(region, at)| match &of.region(region).statements[at].kind {
            StatementKind::Wgmma(product) => Some((region, at, product.clone())),
            _ => None,
        })
        .collect();
    let [(.., first), (.., second)] = &products[..] else { panic!("two steps: {products:?}") };
    // Of the first step, what was in the sums before is not added; of the second one, all of it is.
    assert!(first.adds.is_some() && second.adds.is_none());
    for (region, at, product) in &products {
        let other = if product == first { second } else { first };
        let left = |product: &Wgmma| *product.a.matrix().expect("it is in shared memory");
        let a = &left(product);
        let with = |a: Matrix| Wgmma { a: Factor::Shared(a), ..product.clone() };
        let changed = [
            with(Matrix { across: !a.across, ..*a }),
            with(Matrix { stride: a.stride + 16, ..*a }),
            with(Matrix { swizzle: Swizzle::None, ..*a }),
            with(Matrix { offset: left(other).offset, ..*a }),
            Wgmma { b: Matrix { stride: product.b.stride * 2, ..product.b }, ..product.clone() },
            Wgmma { b: Matrix { buffer: a.buffer, ..product.b }, ..product.clone() },
            Wgmma { adds: other.adds, ..product.clone() },
        ];
        for product in changed {
            let mut mutant = of.clone();
            mutant.regions[region.index()].statements[*at].kind = StatementKind::Wgmma(product);
            let verdict = values(&mutant);
            assert!(matches!(verdict, Verdict::Violated(_)), "{verdict:?}\n{mutant}");
        }
    }
}

#[test]
fn what_no_instruction_computes_is_refused() -> Result<(), Refusal> {
    let source = product(BF16, 8, [64, 64, 64], B128).source();
    let with = |from: &str, to: &str| {
        assert!(source.contains(from), "{from}");
        source.replace(from, to)
    };
    finished(&source)?;
    // Axes.
    refused(&with("split m by 64", "split m by 96"), Code::TW0801, &["96 iterations", "multiples of 64"]);
    refused(&with("split n by 64", "split n by 36"), Code::TW0801, &["36 iterations", "multiples of 8"]);
    refused(&with("split k by 64", "split k by 24"), Code::TW0801, &["multiples of 16"]);
    let integers = product(["i8", "i8", "i32"], 16, [64, 40, 64], B64).source();
    refused(&integers, Code::TW0801, &["40 iterations", "multiples of 16", "8 and 24", "let it have 48"]);
    refused(&with("mma (m, n, ki)", "mma (m, ki, n)"), Code::TW0801, &["axis of terms"]);
    refused(&with("mma (m, n, ki)", "mma (ki, n, m)"), Code::TW0801, &["axis of terms"]);
    refused(&with("split k by 64 -> ko, ki;", "split k by 64 -> ko, ki; unroll ki;"), Code::TW0801, &["bound"]);
    refused(
        &with("mma (m, n, ki) by wgmma;", "mma (m, n, ki) by wgmma; mma (m, n, ki) by wgmma;"),
        Code::TW0801,
        &["already"],
    );
    refused(&with("mma (m, n, ki) by wgmma;", "mma (m, n, ki) by wgmma inflight(1);"), Code::TW0801, &["another role"]);
    refused(&with("mma (m, n, ki) by wgmma;", "mma (m, n, ki) by wgmma inflight(8);"), Code::TW0801, &["8 groups"]);
    let short = ["2 groups of products of `acc`", "`sa` has 2 slots, `sb` has 2 slots", "ring(3)"];
    refused(&gemm("inflight(2)", 2, ""), Code::TW0801, &short);
    refused(
        &with("mma (m, n, ki) by wgmma;", "mma (m, n, ki) by wgmma; reorder n_j, ki_i;"),
        Code::TW0801,
        &["no longer its innermost"],
    );
    refused(
        &with("dot(|k|", "sum(|k|").replace("a[m, k] * b[n, k]", "a[m, k] as f32 * b[n, k] as f32"),
        Code::TW0801,
        &["single `dot`"],
    );
    refused(&with("a: bf16", "a: f32").replace("b: bf16", "b: f32"), Code::TW0801, &["do not multiply `f32`"]);
    refused(&with("a: bf16", "a: f16"), Code::TW0119, &["are `f16` and `bf16`"]);
    refused(&with("a: bf16", "a: i8").replace("b: bf16", "b: e4m3"), Code::TW0119, &["are `i8` and `e4m3`"]);
    refused(
        &with("= dot(|k| a[m, k] * b[n, k]);", "= 2.0 * dot(|k| a[m, k] * b[n, k]);"),
        Code::TW0801,
        &["more than"],
    );
    let promoted = with("dot(|k| a[m, k] * b[n, k])", "dot(|k| a[m, k] * b[n, k], promote 64)");
    let promoted = promoted.replace("bf16", "e4m3").replace("% 8", "% 16").replace("split k by 64", "split k by 128");
    refused(&promoted, Code::TW0801, &["promote 64"]);
    // Factors.
    refused(
        &with("stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 128; }", ""),
        Code::TW0802,
        &["`b` is not in shared memory"],
    );
    refused(&with("b[n, k]);", "b[n, k] or 1.0);"), Code::TW0802, &["no element"]);
    // Layouts.
    refused(&with("layout [n, k] swizzle 128", "layout [n, k]"), Code::TW0803, &["swizzle 128"]);
    // Holes.
    let fewer = with("dot(|k| a", "dot(|k in 0..K - 8| a").replace("== 0 {", "== 0, K >= 16 {");
    refused(&fewer, Code::TW0804, &["may not be zero"]);
    // Threads.
    refused(&with("schedule c {", "launch threads(256); schedule c {"), Code::TW0805, &["256 threads", "128 have"]);
    Ok(())
}

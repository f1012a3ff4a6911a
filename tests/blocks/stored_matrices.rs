//! What warps have of a product goes to the tile that a copy stores by matrices (`stmatrix`), where all lanes come, and
//! rows of 16 bytes are along the columns of the product or along its rows.

use crate::products::{STORE_BY_TWO, accepted, all_is_noticed, gemm, has, positions};
use crate::support::{is_wrong, runs};
use tilewright_compiler::kernel_ir::{Kernel, Matrices, StatementKind, StoreMatrix};
use tilewright_compiler::proof::{Launch, Verdict, check_values};

/// A product of one warpgroup whose tile is stored by the accelerator: the result's shape, its tile's columns, and the
/// stage that it is stored from.
fn product(result: &str, element: &str, columns: u32, order: &str, lanes: &str, tile: &str) -> String {
    format!(
        "kernel P(a: bf16[M, K], b: bf16[N, K]) -> (c: {result}) where K % 8 == 0, N % 8 == 0, M % 8 == 0 {{
            acc[m, n] = dot(|k| a[m, k] * b[n, k]);
            c[{order}] = acc[m, n] as {element};
            schedule c {{
                split m by 64 -> mt, mi; split n by {columns} -> nt, ni; reorder mt, nt, mi, ni;
                bind mt, nt: grid; fragment (mi, ni) by wgmma; {lanes}
            }}
            stage cs[{order}] = c in shared at c.nt via tma {{ {tile} }}
            schedule acc in registers at c.nt {{ split k by 32 -> ko, ki; mma (m, n, ki) by wgmma; }}
            stage sa[m, k] = a in shared at acc.ko ring(2) via tma {{ layout [m, k] swizzle 64; }}
            stage sb[n, k] = b in shared at acc.ko ring(2) via tma {{ layout [n, k] swizzle 64; }}
        }}"
    )
}

const SIZES: &[&[i64]] = &[&[64, 64, 64], &[72, 40, 136], &[8, 8, 8], &[0, 8, 8], &[8, 0, 16]];

fn explained(source: &str, words: &str) -> bool {
    accepted(source).info.is_some_and(|info| info.explanation.contains(words))
}

/// In every layout that keeps 16 bytes together, four or two matrices at a time.
#[test]
fn tiles_of_every_layout_are_stored_by_matrices() {
    let along = |columns, tile| product("bf16[M, N]", "bf16", columns, "m, n", "vectorize ni_p;", tile);
    let across = |tile| product("f16[N, M]", "f16", 32, "n, m", "unroll ni_p;", tile);
    let cases = [
        (along(64, "layout [m, n] swizzle 128;"), "4 matrices at a time\n", "m8n8.x4.shared.b16"),
        (along(32, "layout [m, n] swizzle 64;"), "4 matrices at a time\n", "m8n8.x4.shared.b16"),
        (along(8, ""), "2 matrices at a time\n", "m8n8.x2.shared.b16"),
        (along(64, "box n by 8 -> nc, nb; layout [nc, m, nb];"), "4 matrices at a time\n", "m8n8.x4.shared.b16"),
        (
            along(64, "box n by 32 -> nc, nb; layout [nc, m, nb] swizzle 64;"),
            "4 matrices at a time\n",
            "m8n8.x4.shared.b16",
        ),
        (across("layout [n, m] swizzle 128;"), "4 matrices at a time, transposed\n", "m8n8.x4.trans.shared.b16"),
        (
            across("box m by 32 -> mc, mb; layout [mc, n, mb] swizzle 64;"),
            "4 matrices at a time, transposed\n",
            "m8n8.x4.trans.shared.b16",
        ),
    ];
    for (source, words, form) in cases {
        let kernel = accepted(&source);
        let text = &kernel.info.as_ref().expect("no error").explanation;
        assert!(text.contains(&format!("stored by stmatrix, {words}")), "{source}\n{text}");
        assert!(has(&kernel, &format!("stmatrix.sync.aligned.{form}")) && !has(&kernel, "st.shared.b"), "{source}");
        runs(&source, &kernel, SIZES, 2);
    }
}

/// With roles, clusters and rings; and by the warps of `mma_sync`.
#[test]
fn so_are_those_of_roles_and_of_warps() {
    let source = gemm("inflight(1)", 2, STORE_BY_TWO);
    let kernel = accepted(&source);
    assert!(has(&kernel, "stmatrix.sync.aligned.m8n8.x4.shared.b16"));
    runs(&source, &kernel, &[&[300, 264, 72], &[1, 8, 8]], 2);
    let warps = "kernel P(a: f16[M, K], b: f16[N, K]) -> (c: f16[M, N]) where K % 16 == 0, N % 8 == 0 {
        fa[m, k] = a[m, k];
        fb[n, k] = b[n, k];
        acc[m, n] = dot(|k| fa[m, k] * fb[n, k]);
        c[m, n] = acc[m, n] as f16;
        schedule c {
            split m by 64 -> mt, m1; split m1 by 32 -> mw, m2; split n by 32 -> nt, n1; split n1 by 16 -> nw, n2;
            reorder mt, nt, mw, nw, m2, n2;
            bind mt, nt: grid; bind mw, nw: warp; fragment (m2, n2) by mma_sync; vectorize n2_p;
        }
        stage cs[m, n] = c in shared at c.nt via tma { layout [m, n] swizzle 64; }
        schedule acc in registers at c.nt {
            split k by 32 -> ko, k1; split k1 by 16 -> kk, ki; split m by 32 -> mw, m2; split n by 16 -> nw, n2;
            reorder ko, kk, mw, nw, m2, n2, ki; bind mw, nw: warp; mma (m2, n2, ki) by mma_sync;
        }
        schedule fa in registers per warp at acc.kk { fragment (m, k) by mma_sync; }
        schedule fb in registers per warp at acc.kk { fragment (n, k) by mma_sync; }
    }";
    let kernel = accepted(warps);
    assert!(has(&kernel, "stmatrix.sync.aligned.m8n8.x4.shared.b16"));
    runs(warps, &kernel, &[&[64, 64, 32], &[70, 80, 40], &[1, 16, 8]], 2);
}

/// The tile of 256 × 128 that Hopper's fastest products have, in clusters whose blocks share rows, and columns too: one
/// multicast along each axis of the cluster.
#[test]
fn wide_tiles_with_both_multicasts() {
    for [rows, columns] in [[1, 2], [2, 2]] {
        let (of_rows, of_columns) = (256 * rows, 128 * columns);
        let (ctas, shared) = match rows {
            1 => ("nc", "layout [n, k] swizzle 128;"),
            _ => ("mc, nc", "box n by 64 -> nh, nb; layout [nh, nb, k] swizzle 128; multicast c.mc by nh;"),
        };
        let source = format!(
            "kernel P(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N]) where K % 8 == 0, N % 8 == 0 {{
                acc[m, n] = dot(|k| a[m, k] * b[n, k]);
                c[m, n] = acc[m, n] as bf16;
                launch cluster({}), persistent, roles {{ load: warpgroup regs(40), math: 2 warpgroup regs(232) }};
                schedule c by math {{
                    split m by {of_rows} -> mt, m1; split m1 by 256 -> mc, m2; split m2 by 128 -> mw, m3;
                    split n by {of_columns} -> nt, n1; split n1 by 128 -> nc, n2; split n2 by 64 -> ns, n3;
                    reorder mt, nt, mc, nc, ns, mw, m3, n3;
                    bind mt, nt: grid; bind {ctas}: cta; unroll ns; bind mw: warpgroup;
                    fragment (m3, n3) by wgmma; vectorize n3_p;
                }}
                stage cs[m, n] = c in shared at c.ns ring(2) via tma by math {{ layout [m, n] swizzle 128; }}
                schedule acc in registers at c.nc by math {{
                    split k by 64 -> ko, ki; split m by 128 -> mw, m3; reorder ko, mw, m3, n, ki;
                    bind mw: warpgroup; mma (m3, n, ki) by wgmma inflight(1);
                }}
                stage sa[m, k] = a in shared at acc.ko ring(3) via tma by load {{
                    box m by 128 -> mh, mb; layout [mh, mb, k] swizzle 128; multicast c.nc by mh;
                }}
                stage sb[n, k] = b in shared at acc.ko ring(3) via tma by load {{ {shared} }}
            }}",
            rows * columns
        );
        // With one block along an axis there is nothing to bind.
        let source = if rows == 1 {
            source
                .replace("split m1 by 256 -> mc, m2; split m2", "split m1")
                .replace("reorder mt, nt, mc,", "reorder mt, nt,")
        } else {
            source
        };
        let kernel = accepted(&source);
        assert!(has(&kernel, "multicast::cluster") && has(&kernel, "stmatrix") && has(&kernel, "m64n128k16"));
        runs(&source, &kernel, &[&[1, 8, 8], &[600, 72, 136], &[520, 200, 264]], 1);
        let changes = all_is_noticed(&kernel, &[&[520, 264, 136]]);
        assert!(changes >= 15, "{changes}");
    }
}

/// Lanes store their own words where some do not come, where words are no 16 bits, and where that takes as many
/// instructions.
#[test]
fn other_tiles_are_stored_by_lanes() {
    let wide = product("f32[M, N]", "f32", 32, "m, n", "vectorize ni_p;", "layout [m, n] swizzle 128;");
    let plain = product("bf16[M, N]", "bf16", 32, "m, n", "vectorize ni_p;", "layout [m, n] swizzle 64;");
    let tested =
        plain.replace("b: bf16[N, K])", "b: bf16[N, K], d: f32[N])").replace("acc[m, n] as", "(acc[m, n] + d[n]) as");
    // Pairs of columns are not what is written out last.
    let other = plain.replace("vectorize ni_p;", "unroll ni_p; reorder ni_p, mi_h;");
    for source in [wide, tested, other] {
        let kernel = accepted(&source);
        assert!(!has(&kernel, "stmatrix") && !explained(&source, "stmatrix"), "{source}");
        runs(&source, &kernel, &[&[64, 32, 64], &[72, 40, 40]], 1);
    }
}

/// Other rows, other elements and the other way round are other tiles: to the separate checker, and to the emulator,
/// which finds rows that are not aligned, too.
#[test]
fn other_matrices_are_noticed() {
    let source = product("bf16[M, N]", "bf16", 64, "m, n", "vectorize ni_p;", "layout [m, n] swizzle 128;");
    let kernel = accepted(&source);
    let info = kernel.info.as_ref().expect("no error");
    let of = &kernel.entries[0].kernel;
    // Sizes are M, K, N.
    let dims = [72, 40, 136];
    let launch = Launch::new(info, &dims).expect("a launch");
    let values = |kernel: &Kernel| check_values(kernel, &launch, &info.algorithm, 3, 50_000_000);
    assert_eq!(values(of), Verdict::Holds);
    let stores: Vec<_> = positions(of)
        .into_iter()
        .filter_map(|(region, at)| match &of.region(region).statements[at].kind {
            StatementKind::StoreMatrix(store) => Some((region, at, store.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(stores.len(), 4, "{of}");
    for (n, (region, at, store)) in stores.iter().enumerate() {
        let swapped = |other: usize| {
            let mut values = store.values.clone();
            values.swap(0, other);
            StoreMatrix { values, ..store.clone() }
        };
        let other = stores[(n + 1) % 4].2.to;
        let mut changed: Vec<StoreMatrix> = (1..store.values.len()).map(swapped).collect();
        changed.push(StoreMatrix { to: Matrices { transposed: true, ..store.to }, ..store.clone() });
        changed.push(StoreMatrix { to: other, ..store.clone() });
        let half = Matrices { count: 2, ..store.to };
        changed.push(StoreMatrix { to: half, values: store.values[..4].to_vec() });
        for store in changed {
            let mut mutant = of.clone();
            mutant.regions[region.index()].statements[*at].kind = StatementKind::StoreMatrix(store);
            let verdict = values(&mutant);
            assert!(matches!(verdict, Verdict::Violated(_)), "{verdict:?}\n{mutant}");
        }
    }
    let text = info.ptx.text.to_string();
    let line = text.lines().find(|line| line.contains("stmatrix")).expect("a store of matrices");
    let address = &line[line.find('[').expect("an address")..=line.find(']').expect("an address")];
    let inner = &address[1..address.len() - 1];
    let tries = [
        line.replace(".x4.", ".x4.trans."),
        line.replace(address, &format!("[{inner}+8]")),
        line.replace(address, &format!("[{inner}+16]")),
        String::new(),
    ];
    assert!(!is_wrong(info, &dims, text.clone()));
    for other in tries {
        assert!(is_wrong(info, &dims, text.replacen(line, &other, 1)), "{other}");
    }
}

//! Factors of products that threads write to shared memory, from where tensor cores read them: with zeros past the ends
//! of the tensors, published to the proxy that products read in, handed over by roles or by barriers. Without any one
//! of the things that order that, the separate checker or the emulator finds something wrong.

use crate::products::{accepted, all_is_noticed, has, refused};
use crate::support::{is_wrong, runs};
use tilewright_compiler::diag::Code;

/// A product of one warpgroup: the equations of its factors, what `dot` multiplies, and the stages that hold both.
fn product(inputs: &str, equations: &str, factors: [&str; 2], stages: &str) -> String {
    let [left, right] = factors;
    format!(
        "kernel P({inputs}) -> (c: f32[M, N]) where K % 8 == 0, M % 8 == 0 {{
            {equations}
            acc[m, n] = dot(|k| {left} * {right});
            c[m, n] = acc[m, n];
            schedule c {{
                split m by 64 -> mt, mi; split n by 32 -> nt, ni; reorder mt, nt, mi, ni;
                bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
            }}
            schedule acc in registers at c.nt {{ split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }}
            {stages}
        }}"
    )
}

const INPUTS: &str = "a: f32[M, K], s: f32[M], b: bf16[N, K]";
const SCALED: &str = "fa[m, k] = (a[m, k] * s[m]) as bf16;";
const COPY: &str = "stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 128; }";

/// Threads that write rows of terms, 16 bytes each.
fn by_rows(clause: &str, x: &str, layout: &str) -> String {
    format!(
        "{clause} {{
            split k by 8 -> kc, kv; merge {x}, kc -> p; split p by 128 -> pr, t; bind t: thread; vectorize kv;
            {layout}
        }}"
    )
}

fn scaled(ring: &str, layout: &str) -> String {
    let stage = by_rows(&format!("schedule fa in shared at acc.ko {ring}"), "m", layout);
    product(INPUTS, SCALED, ["fa[m, k]", "b[n, k]"], &format!("{stage} {COPY}"))
}

// Sizes are M, K, N, or as they come in the signature.
const SIZES: &[&[i64]] = &[&[64, 64, 32], &[72, 200, 41], &[8, 8, 1], &[0, 8, 3], &[8, 0, 5]];

/// The left factor, the right one, and both, in rings of one and two slots.
#[test]
fn factors_that_threads_write() {
    let swizzled = "layout [m, k] swizzle 128;";
    let right = by_rows("schedule fb in shared at acc.ko ring(2)", "n", "layout [n, k] swizzle 128;");
    let left = by_rows("schedule fa in shared at acc.ko ring(2)", "m", swizzled);
    let copied = by_rows("stage sa[m, k] = a in shared at acc.ko ring(2)", "m", swizzled);
    let both = [SCALED, "fb[n, k] = (b[n, k] as f32 * 0.5) as bf16;"].concat();
    let across = "schedule fa in shared at acc.ko {
        split m by 8 -> mc, mv; reorder k, mc, mv; merge k, mc -> p; split p by 128 -> pr, t; bind t: thread;
        vectorize mv; layout [k, m] swizzle 128;
    }";
    let cases = [
        scaled("", swizzled),
        scaled("ring(2)", swizzled),
        product(
            "a: bf16[M, K], b: bf16[N, K]",
            "fb[n, k] = (b[n, k] as f32 * 0.5) as bf16;",
            ["a[m, k]", "fb[n, k]"],
            &format!("stage sa[m, k] = a in shared at acc.ko ring(2) via tma {{ layout [m, k] swizzle 128; }} {right}"),
        ),
        product(INPUTS, &both, ["fa[m, k]", "fb[n, k]"], &format!("{left} {right}")),
        // Groups of eight rows of 16 bytes, and loops that are written out.
        scaled("ring(2)", "unroll pr; layout [kc, m, kv];"),
        // One element at a time.
        scaled("", swizzled)
            .replace("merge m, kc -> p; split p by 128", "merge m, kc, kv -> p; split p by 128")
            .replace("vectorize kv;", ""),
        // For all of the terms, and read by what computes these without tensor cores, too.
        product(
            "a: f32[M, 128], s: f32[M], b: bf16[N, 128]",
            SCALED,
            ["fa[m, k]", "b[n, k]"],
            &format!("{} {COPY}", by_rows("schedule fa in shared at c.nt", "m", "layout [kc, m, kv];")),
        )
        .replace("K % 8 == 0, ", ""),
        // As they are in memory, by ordinary loads and stores.
        product("a: bf16[M, K], b: bf16[N, K]", "", ["a[m, k]", "b[n, k]"], &format!("{copied} {COPY}")),
        // Rows are neighbours in memory, of a tensor that is transposed.
        product(
            "a: f32[K, M], b: bf16[N, K]",
            "fa[m, k] = (a[k, m] + 1.0) as bf16;",
            ["fa[m, k]", "b[n, k]"],
            &format!("{across} {COPY}"),
        ),
    ];
    for source in cases {
        let kernel = accepted(&source);
        assert!(has(&kernel, "wgmma.mma_async") && has(&kernel, "fence.proxy.async.shared::cta"), "{source}");
        let sizes: Vec<Vec<i64>> = SIZES.iter().map(|sizes| in_order(&source, sizes)).collect();
        let sizes: Vec<&[i64]> = sizes.iter().map(|sizes| &sizes[..]).collect();
        runs(&source, &kernel, &sizes, 2);
    }
}

/// Words of a factor in registers are packed before the fence of the products that read them, whatever barrier what
/// threads write needs behind it.
#[test]
fn a_factor_in_registers_beside_one_that_threads_write() {
    for (ty, vector) in [("e4m3", 4), ("bf16", 2)] {
        let source = format!(
            "kernel P(a: {ty}[M, K], b: {ty}[N, K]) -> (c: f32[M, N]) {{
                fa[m, k] = a[m, k];
                fb[n, k] = b[n, k];
                acc[m, n] = dot(|k| fa[m, k] * fb[n, k]);
                c[m, n] = acc[m, n];
                schedule c {{
                    split m by 64 -> mt, mi; split n by 16 -> nt, ni; reorder mt, nt, mi, ni;
                    bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
                }}
                schedule acc in registers at c.nt {{ split k by 32 -> ko, ki; mma (m, n, ki) by wgmma; }}
                schedule fa in registers at acc.ko {{
                    split m by 16 -> mw, m1; split m1 by 8 -> mh, mr; split k by {} -> kg, k1; split k1 by {vector} -> kq, kp;
                    reorder mr, kq, kg, mh, kp; bind mw: warp; bind mr, kq: thread;
                }}
                schedule fb in shared at acc.ko {{
                    split k by {} -> kc, kv; merge n, kc -> p; split p by 128 -> pr, t; bind t: thread;
                    layout [kc, n, kv];
                }}
            }}",
            4 * vector,
            4 * vector,
        );
        let kernel = accepted(&source);
        runs(&source, &kernel, &[&[64, 64, 16], &[3, 200, 41], &[0, 8, 2], &[8, 0, 6]], 2);
    }
}

/// Where terms are computed without tensor cores, neighbouring columns are read at once only if the base address of
/// what is read is known to be such a multiple: what threads read one by one for tensor cores need not be.
#[test]
fn columns_of_a_vector_without_tensor_cores() {
    let right = "schedule fb in shared at acc.ko {
        split k by 8 -> kc, kv; merge n, kc -> p; split p by 128 -> pr, t; bind t: thread; layout [kc, n, kv];
    }";
    let copy = "stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }";
    let equation = "fb[n, k] = s[n] as bf16;";
    let source = product("a: bf16[M, K], s: f32[N]", equation, ["a[m, k]", "fb[n, k]"], &format!("{right} {copy}"))
        .replace("M % 8 == 0", "N % 2 == 0")
        .replace("unroll ni_p", "vectorize ni_p");
    let kernel = accepted(&source);
    runs(&source, &kernel, &[&[64, 64, 32], &[3, 200, 42], &[0, 8, 2], &[8, 0, 6]], 2);
}

/// Sizes M, K, N in the order in which a kernel names them.
fn in_order(source: &str, sizes: &[i64]) -> Vec<i64> {
    let [m, k, n] = sizes[..] else { panic!("three sizes") };
    if source.contains("a: f32[M, 128]") {
        return vec![m, n];
    }
    if source.contains("a: f32[K, M]") { vec![k, m, n] } else { vec![m, k, n] }
}

/// One role makes the factor, another one copies, and a third multiplies, with a group of products under way.
fn with_roles(inflight: &str, ring: u32) -> String {
    let stage =
        by_rows(&format!("schedule fa in shared at acc.ko ring({ring}) by make"), "m", "layout [m, k] swizzle 128;");
    let copy =
        format!("stage sb[n, k] = b in shared at acc.ko ring({ring}) via tma by load {{ layout [n, k] swizzle 128; }}");
    product(INPUTS, SCALED, ["fa[m, k]", "b[n, k]"], &format!("{stage} {copy}"))
        .replace(
            "schedule c {",
            "launch persistent, roles { load: warpgroup, make: warpgroup, math: warpgroup }; schedule c by math {",
        )
        .replace("registers at c.nt {", "registers at c.nt by math {")
        .replace("mma (m, n, ki) by wgmma;", &format!("mma (m, n, ki) by wgmma {inflight};"))
}

#[test]
fn roles_hand_factors_over() {
    for (groups, ring) in [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 5)] {
        let inflight = if groups > 0 { format!("inflight({groups})") } else { String::new() };
        let source = with_roles(&inflight, ring);
        let kernel = accepted(&source);
        assert!(has(&kernel, &format!("wgmma.wait_group.sync.aligned {groups};")));
        runs(&source, &kernel, SIZES, 2);
        let changes = all_is_noticed(&kernel, &[&[136, 328, 41]]);
        assert!(changes >= 10, "{changes}");
    }
    // The role that multiplies makes the factor, too.
    let own = with_roles("", 2).replace("by make {", "by math {").replace("make: warpgroup, ", "");
    runs(&own, &accepted(&own), SIZES, 2);
}

/// The fence between what threads write and what products read, each barrier and each wait.
#[test]
fn what_orders_writes_and_products_is_missed() {
    for ring in ["", "ring(2)"] {
        let source = scaled(ring, "layout [m, k] swizzle 128;");
        let kernel = accepted(&source);
        let changes = all_is_noticed(&kernel, &[&[72, 328, 32]]);
        assert!(changes >= 5, "{changes}");
        let info = kernel.info.as_ref().expect("no error");
        let fence = "fence.proxy.async.shared::cta;";
        let dims = [72, 200, 41];
        assert!(info.ptx.text.contains(fence) && !is_wrong(info, &dims, info.ptx.text.to_string()));
        assert!(is_wrong(info, &dims, info.ptx.text.replace(fence, "")), "{ring}");
    }
}

#[test]
fn what_products_cannot_read_is_refused() {
    refused(&scaled("", "layout [m, k];"), Code::TW0803, &["`fa`", "layout [m, k] swizzle 128"]);
    refused(&scaled("", "layout [m, k pad 8];"), Code::TW0803, &["`fa`"]);
    refused(&scaled("", "layout [k, m];"), Code::TW0803, &["`fa`"]);
    // What belongs to a warpgroup is handed over by no barrier that products wait for.
    let two = scaled("", "layout [m, k] swizzle 128;")
        .replace("split m by 64 -> mt, mi;", "split m by 128 -> mt, m1; split m1 by 64 -> mw, mi;")
        .replace("reorder mt, nt, mi, ni;", "reorder mt, nt, mw, mi, ni;")
        .replace("fragment (mi, ni)", "bind mw: warpgroup; fragment (mi, ni)")
        .replace(
            "mma (m, n, ki)",
            "split m by 64 -> mw, mi; reorder mw, ko, mi, n, ki; bind mw: warpgroup; mma (mi, n, ki)",
        )
        .replace("fa in shared at", "fa in shared per warpgroup at");
    refused(&two, Code::TW0802, &["`fa`"]);
    let global = scaled("", "").replace("fa in shared at", "fa in global at");
    refused(&global, Code::TW0802, &["`fa`"]);
    let inflight = scaled("ring(2)", "layout [m, k] swizzle 128;")
        .replace("mma (m, n, ki) by wgmma;", "mma (m, n, ki) by wgmma inflight(1);");
    refused(&inflight, Code::TW0801, &["another role"]);
}

//! Products by the tensor cores of warps (`mma_sync`), whose lanes hold both factors: every type, factors from memory,
//! from rings that threads fetch, and computed. What no instruction computes, or no lane holds so, is refused.

use crate::products::{accepted, has, positions, refused};
use crate::support::runs;
use tilewright_compiler::diag::Code;
use tilewright_compiler::kernel_ir::{Kernel, MmaSync, StatementKind};
use tilewright_compiler::proof::{Launch, Verdict, check_values};

/// A product of four warps, each of which has 32 rows and 16 columns: the type of the factors, and how `stages` hold
/// these, of `terms` terms.
fn product(types: [&str; 3], terms: u32, ops: &str, stages: &str) -> String {
    let [left, right, sum] = types;
    format!(
        "kernel P(a: {left}[M, K], b: {right}[N, K]) -> (c: {sum}[M, N]) where K % 16 == 0 {{
            fa[m, k] = a[m, k];
            fb[n, k] = b[n, k];
            acc[m, n] = dot(|k| fa[m, k] * fb[n, k]);
            c[m, n] = acc[m, n];
            schedule c {{
                split m by 64 -> mt, m1; split m1 by 32 -> mw, m2; split n by 32 -> nt, n1; split n1 by 16 -> nw, n2;
                reorder mt, nt, mw, nw, m2, n2;
                bind mt, nt: grid; bind mw, nw: warp; fragment (m2, n2) by mma_sync; unroll n2_p;
            }}
            schedule acc in registers at c.nt {{
                split k by {} -> ko, k1; split k1 by {terms} -> kk, ki;
                split m by 32 -> mw, m2; split n by 16 -> nw, n2;
                reorder ko, kk, mw, nw, m2, n2, ki; bind mw, nw: warp; mma (m2, n2, ki) by mma_sync;
            }}
            schedule fa in registers per warp at acc.kk {{ {} }}
            schedule fb in registers per warp at acc.kk {{ {ops} }}
            {stages}
        }}",
        2 * terms,
        ops.replace("(n, k)", "(m, k)")
            .replace("n ", "m ")
            .replace("n1", "m1")
            .replace(" nh", " mh")
            .replace("nr", "mr"),
    )
}

const FRAGMENT: &str = "fragment (n, k) by mma_sync;";

/// The same by hand: `each` terms share a register.
fn by_hand(each: u32) -> String {
    format!(
        "split n by 8 -> nh, nr; split k by {} -> kg, k1; split k1 by {each} -> kq, kp;
        reorder nr, kq, kg, nh, kp; bind nr: thread; bind kq: thread;",
        4 * each
    )
}

/// Copies of both factors in a ring that threads fetch, 16 bytes each.
fn fetched(layout: &str, bytes: u32) -> String {
    let (each, row) = (16 / bytes, 64 / bytes);
    let one = |name: &str, of: &str, x: &str| {
        format!(
            "stage {name}[{x}, k] = {of} in shared at acc.ko ring(3) via cp_async {{
                split {x} by 32 -> xo, xi; split k by {each} -> kc, kv; reorder xi, kc, xo, kv;
                bind xi, kc: thread; vectorize kv; layout [{x}, k] {layout};
            }}"
        )
    };
    assert_eq!(row / each, 4);
    [one("sa", "a", "m"), one("sb", "b", "n")].concat()
}

#[test]
fn every_type() {
    let bf16 = ["bf16", "bf16", "f32"];
    let cases = [
        (product(bf16, 16, FRAGMENT, ""), "m16n8k16.row.col.f32.bf16.bf16.f32"),
        (product(["f16", "f16", "f32"], 32, FRAGMENT, ""), "m16n8k16.row.col.f32.f16.f16.f32"),
        (product(["tf32", "tf32", "f32"], 16, &by_hand(1), ""), "m16n8k8.row.col.f32.tf32.tf32.f32"),
        (product(["i8", "i8", "i32"], 32, &by_hand(4), ""), "m16n8k32.row.col.s32.s8.s8.s32"),
        (product(["u8", "u8", "i32"], 32, &by_hand(4), ""), "m16n8k32.row.col.s32.u8.u8.s32"),
        (product(["i8", "u8", "i32"], 64, &by_hand(4), ""), "m16n8k32.row.col.s32.s8.u8.s32"),
        (product(["e4m3", "e4m3", "f32"], 32, &by_hand(4), ""), "m16n8k32.row.col.f32.e4m3.e4m3.f32"),
        (product(["e5m2", "e4m3", "f32"], 32, &by_hand(4), ""), "m16n8k32.row.col.f32.e5m2.e4m3.f32"),
        // The left factor is the one with the rows, wherever it is written.
        (
            product(["e4m3", "e5m2", "f32"], 64, &by_hand(4), "").replace("fa[m, k] * fb[n, k]", "fb[n, k] * fa[m, k]"),
            "m16n8k32.row.col.f32.e4m3.e5m2.f32",
        ),
    ];
    for (source, instruction) in cases {
        let kernel = accepted(&source);
        // Floats of 8 bits came later.
        let (target, capability) =
            if instruction.contains(".f32.e") { (".target sm_89", (8, 9)) } else { (".target sm_80", (8, 0)) };
        assert!(has(&kernel, instruction) && has(&kernel, target), "{instruction}");
        assert_eq!(kernel.info.as_ref().map(|info| info.ptx.capability), Some(capability), "{instruction}");
        // Sizes are M, K, N.
        runs(&source, &kernel, &[&[64, 64, 32], &[70, 80, 41], &[1, 16, 1], &[0, 16, 3], &[3, 0, 5]], 2);
    }
}

#[test]
fn factors_from_rings_that_threads_fetch() {
    for layout in ["swizzle 64", ""] {
        let source = product(["bf16", "bf16", "f32"], 16, FRAGMENT, &fetched(layout, 2));
        let kernel = accepted(&source);
        assert!(has(&kernel, "cp.async.cg.shared.global") && has(&kernel, "mma.sync"));
        runs(&source, &kernel, &[&[64, 128, 32], &[70, 80, 41], &[1, 16, 1], &[3, 0, 5]], 2);
    }
}

/// Lanes load what they multiply by matrices, of tiles that their own threads fetch or those of another role, for the
/// block or for each warp.
#[test]
fn tiles_are_loaded_by_matrices() {
    let whole = product(["bf16", "bf16", "f32"], 16, FRAGMENT, &fetched("swizzle 64", 2));
    let others = [("schedule c {", "launch roles { load: 4 warp, math: 4 warp }; schedule c by math {")]
        .into_iter()
        .chain([("registers at c.nt {", "registers at c.nt by math {"), ("at acc.kk {", "at acc.kk by math {")])
        .chain([("via cp_async {", "via cp_async by load {")]);
    let with_roles = others.fold(whole.clone(), |source, (from, to)| source.replace(from, to));
    let of_warps = whole
        .replace("stage sa[m, k] = a in shared at", "stage sa[m, k] = a in shared per warp at")
        .replace("split m by 32 -> xo, xi; split k by 8 -> kc, kv;", "split m by 8 -> xo, xi; split k by 8 -> kc, kv;");
    let across = product(["f16", "f16", "f32"], 16, FRAGMENT, "")
        .replace("b: f16[N, K]", "b: f16[K, N]")
        .replace("where K % 16 == 0", "where K % 16 == 0, N % 8 == 0")
        .replace("fb[n, k] = b[n, k];", "fb[n, k] = b[k, n];");
    let last = across.rfind('}').expect("a kernel");
    let stage = "stage sb[k, n] = b in shared at acc.ko ring(2) via cp_async {
            split n by 8 -> nc, nv; bind k, nc: thread; vectorize nv; layout [k, n] swizzle 64;
        } }";
    let across = format!("{}{stage}", &across[..last]);
    for (source, word) in
        [(whole, ".x4.shared"), (with_roles, ".x4.shared"), (of_warps, ".x4.shared"), (across, ".trans")]
    {
        let kernel = accepted(&source);
        assert!(has(&kernel, "ldmatrix.sync.aligned.m8n8") && has(&kernel, word), "{source}");
        let sizes: &[&[i64]] = &[&[64, 128, 32], &[70, 80, 40], &[1, 16, 8], &[3, 0, 8]];
        runs(&source, &kernel, sizes, 2);
    }
}

/// Columns that are neighbours in memory, a bias and an activation in the epilogue, and a left factor that is computed.
#[test]
fn computed_factors_and_epilogues() {
    let source = product(["i8", "f16", "f16"], 16, FRAGMENT, "")
        .replace("fa[m, k] = a[m, k];", "fa[m, k] = (a[m, k] as f32 * s[m]) as f16;")
        .replace("b: f16[N, K]", "s: f32[M], b: f16[K, N]")
        .replace("fb[n, k] = b[n, k];", "fb[n, k] = b[k, n];")
        .replace("c[m, n] = acc[m, n];", "c[m, n] = max(acc[m, n] + s[m], 0.0) as f16;");
    let kernel = accepted(&source);
    runs(&source, &kernel, &[&[64, 64, 32], &[70, 80, 41], &[1, 16, 1], &[3, 0, 5]], 2);
}

/// Values, by the separate checker: other registers hold other terms.
#[test]
fn other_registers_are_other_factors() {
    let kernel = accepted(&product(["bf16", "bf16", "f32"], 16, FRAGMENT, ""));
    let info = kernel.info.as_ref().expect("no error");
    let of = &kernel.entries[0].kernel;
    let launch = Launch::new(info, &[64, 16, 32]).expect("a launch");
    let values = |kernel: &Kernel| check_values(kernel, &launch, &info.algorithm, 3, 50_000_000);
    assert_eq!(values(of), Verdict::Holds);
    let mut tried = 0;
    for (region, at) in positions(of) {
        let StatementKind::MmaSync(product) = &of.region(region).statements[at].kind else { continue };
        let MmaSync { sums, a, b } = product;
        let swapped = |list: &[_], other: usize| {
            let mut list = list.to_vec();
            list.swap(0, other);
            list
        };
        let mut changed: Vec<MmaSync> = (1..a.len()).map(|n| MmaSync { a: swapped(a, n), ..product.clone() }).collect();
        changed.extend((1..b.len()).map(|n| MmaSync { b: swapped(b, n), ..product.clone() }));
        let first = tilewright_compiler::kernel_ir::VariableId(sums.0 ^ MmaSync::SUMS);
        changed.push(MmaSync { sums: first, ..product.clone() });
        for product in changed {
            let mut mutant = of.clone();
            mutant.regions[region.index()].statements[at].kind = StatementKind::MmaSync(product);
            let verdict = values(&mutant);
            assert!(matches!(verdict, Verdict::Violated(_)), "{verdict:?}\n{mutant}");
            tried += 1;
        }
    }
    assert_eq!(tried, 4 * 11);
}

#[test]
fn what_warps_do_not_multiply_is_refused() {
    let source = product(["bf16", "bf16", "f32"], 16, FRAGMENT, "");
    let with = |from: &str, to: &str| {
        assert!(source.contains(from), "{from}");
        source.replace(from, to)
    };
    refused(
        &product(["f32", "f32", "f32"], 8, &by_hand(1), ""),
        Code::TW0801,
        &["do not multiply `f32`", "they multiply `f16`"],
    );
    refused(
        &with("mma (m2, n2, ki) by mma_sync;", "mma (m2, n2, ki) by mma_sync inflight(1);"),
        Code::TW0801,
        &["do not stay under way"],
    );
    refused(&with("split m1 by 32", "split m1 by 8"), Code::TW0801, &["8 iterations", "multiples of 16"]);
    let schedule = format!("schedule fa in registers per warp at acc.kk {{ {} }}", FRAGMENT.replace("(n", "(m"));
    let words = ["no registers hold `fa`", "`schedule fa in registers at acc.kk {"];
    refused(&with(&schedule, ""), Code::TW0802, &words);
    let read = with(&schedule, "").replace("fa[m, k] = a[m, k];", "").replace("fa[m, k] *", "a[m, k] *");
    refused(&read, Code::TW0802, &["no registers hold `a`", "`fa[…] = a[…];`"]);
    // Rows of a factor that other lanes hold.
    let other = by_hand(2)
        .replace("reorder nr, kq", "reorder kq, nr")
        .replace("bind nr: thread; bind kq", "bind kq: thread; bind nr");
    let source = product(["bf16", "bf16", "f32"], 16, &other, "");
    let Err((found, report)) = crate::support::finished(&source).map(drop) else { panic!("accepted:\n{source}") };
    assert!(found.iter().all(|code| *code == Code::TW0707), "{report}");
    assert!(report.contains("fragment (n, k) by mma_sync"), "{report}");
    // Warps without a tile.
    refused(
        &with("schedule c {", "launch threads(256); schedule c {"),
        Code::TW0805,
        &["256 threads", "128 have", "whole warps"],
    );
}

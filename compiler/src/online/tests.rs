//! Which reductions become one pass, what the separate checker says of it, and which are refused.

use tilewright_kernel::ElementType::F32;
use tilewright_kernel::algorithm::Binary;
use tilewright_kernel::online::{self, At};

use crate::diag::{Code, Level};
use crate::kernel_ir::{Kernel, Op};
use crate::proof::{Launch, Verdict, check, check_values};
use crate::source::TokenBuffer;
use crate::{Compiled, compile};

/// The compiled kernel, or the codes and what is said.
fn compiled(source: &str) -> Result<Compiled, (Vec<Code>, String)> {
    let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
    let mut outcome = compile(&tokens);
    if outcome.diagnostics.has_errors() {
        let errors = outcome.diagnostics.found().iter().filter(|found| found.level == Level::Error);
        let codes = errors.clone().map(|found| found.code).collect();
        let said: Vec<String> = errors.map(|found| format!("{found:#?}")).collect();
        return Err((codes, said.join("\n")));
    }
    Ok(outcome.kernels.remove(0))
}

/// Log-sum-exp of rows with other terms, ops and copies.
fn log_sum_exp(extreme: &str, term: &str, ops: &str, more: &str) -> String {
    format!(
        "kernel K(x: f32[M, N], w: f32[M, N]) -> (y: f32[M]) {{
            m[i] = {extreme};
            l[i] = online sum(|j| {term});
            y[i] = m[i] + l[i];
            launch threads(128);
            schedule y {{ split i by 4 -> b, t; bind b: grid; bind t: thread; }}
            schedule m in shared at y.b {{ {ops} online m -> l over jo; }}
            {more}
        }}"
    )
}

const MAX: &str = "max(|j| x[i, j])";
const MEAN: &str = "sum(|j| x[i, j]) / (N as f32)";
const SQUARE: &str = "(x[i, j] - m[i]) * (x[i, j] - m[i])";
const WEIGHTED: &str = "sum(|j| abs(w[i, j]) * x[i, j]) / sum(|j| abs(w[i, j]))";
const WEIGHTED_SQUARE: &str = "abs(w[i, j]) * ((x[i, j] - m[i]) * (x[i, j] - m[i]))";
const TERM: &str = "exp(x[i, j] - m[i])";
/// A row to a warp; four terms of a lane in each iteration.
const WARPS: &str =
    "split j by 128 -> jo, j1; split j1 by 32 -> v, t; bind i: warp; bind t: thread; reduce t; unroll v;";
/// The rows of a block one after the other, each by all threads.
const BLOCK: &str = "split j by 128 -> jo, t; bind t: thread; reduce t;";

#[expect(clippy::too_many_lines, reason = "a list")]
fn accepted() -> Vec<String> {
    let of = |extreme, term, ops| log_sum_exp(extreme, term, ops, "");
    let alike = |first: &str, term: &str| {
        log_sum_exp(first, term, WARPS, "")
            .replace("online sum(|j|", "online sum(|j in 0..N|")
            .replace("y[i] = m", "y[i] = x[i, 0] + m")
            .replace("-> (y: f32[M]) {", "-> (y: f32[M]) where N >= 1 {")
    };
    vec![
        of(MAX, TERM, WARPS),
        of(MAX, TERM, BLOCK),
        of(MAX, "exp(x[i, j] - m[i]) * w[i, j]", WARPS),
        of(MAX, "w[i, j] * -exp(-(m[i] - x[i, j])) / 3.0", BLOCK),
        of(MAX, "exp(0.5 * (x[i, j] - m[i]))", WARPS),
        of(MAX, "exp(x[i, j] * 0.5 - 0.5 * m[i])", WARPS),
        of(MAX, "exp(fma(0.5, x[i, j], -0.5 * m[i]))", WARPS),
        of(MAX, "w[i, j] * exp(-fma(-3.0, x[i, j], m[i] * 3.0))", BLOCK),
        of("min(|j| x[i, j])", "exp(fma(x[i, j], -0.25, -(-0.25 * m[i])))", WARPS),
        of(MAX, "approx::exp(x[i, j] - m[i])", WARPS),
        of("min(|j| x[i, j])", "exp(m[i] - x[i, j])", WARPS),
        of("max(|j| x[i, j] * w[i, j])", "exp(w[i, j] * x[i, j] - m[i])", WARPS),
        of("max(|k| x[i, k])", TERM, &WARPS.replace("split j ", "split k ")),
        of(
            "max(|j| if (j + i) % 3 == 0 { -inf } else { x[i, j] })",
            "exp((if (j + i) % 3 == 0 { -inf } else { x[i, j] }) - m[i])",
            WARPS,
        ),
        // Squares about a mean, quotients by the largest magnitude.
        of(MEAN, SQUARE, WARPS),
        of(MEAN, "pow(m[i] - x[i, j], 2)", BLOCK),
        of("sum(|j in 3..N| x[i, j]) / ((N - 3) as f32)", "(x[i, j] - m[i]) * (x[i, j] - m[i])", BLOCK)
            .replace("sum(|j| (x", "sum(|j in 3..N| (x")
            .replace("-> (y: f32[M]) {", "-> (y: f32[M]) where N >= 4 {"),
        of("max(|j| abs(x[i, j]))", "x[i, j] / m[i] * (abs(x[i, j]) / m[i]) * w[i, j]", WARPS),
        of("max(|j| abs(x[i, j]))", "pow(abs(x[i, j] / m[i]), 3)", WARPS),
        of(MAX, "abs(exp(x[i, j] - m[i]) * w[i, j])", WARPS),
        // Terms that are all the same.
        alike("sum(|j in 0..N| w[i, 0] or 1.0) / (N as f32)", "((w[i, 0] or 1.0) - m[i]) * ((w[i, 0] or 1.0) - m[i])"),
        alike("max(|j in 0..N| w[i, 0] or 1.0)", "exp((w[i, 0] or 1.0) - m[i]) * x[i, j]"),
        alike("max(|j in 0..N| abs(w[i, 0] or 1.0))", "(w[i, 0] or 1.0) / m[i] * x[i, j]"),
        of(WEIGHTED, WEIGHTED_SQUARE, WARPS),
        of(WEIGHTED, "(m[i] - x[i, j]) * abs(w[i, j]) * (x[i, j] - m[i])", BLOCK)
            .replace("(m[i] - x[i, j])", "(x[i, j] - m[i])"),
        of(
            "sum(|j| x[i, j] * pow(w[i, j], 2)) / sum(|k| w[i, k] * w[i, k])",
            "pow(m[i] - x[i, j], 2) * (w[i, j] * w[i, j])",
            WARPS,
        ),
        of("sum(|j| abs(w[i, j]) * x[i, j]) / q[i]", WEIGHTED_SQUARE, WARPS)
            .replace("m[i] =", "q[i] = sum(|j| abs(w[i, j])); m[i] =")
            .replace("+ l[i]", "+ l[i] + q[i]"),
        // What is where the extreme is, beside a sum.
        of(MAX, TERM, WARPS)
            .replace("m[i] + l[i]", "m[i] + l[i] + (best[i] as f32) + ties[i]")
            .replace(
                "y[i] =",
                "best[i] = argmax(|k| x[i, k]);
            ties[i] = sum(|j| if x[i, j] == m[i] { w[i, j] } else { 0.0 });
            y[i] =",
            )
            .replace("m -> l", "m -> best, l, ties")
            .replace("-> (y: f32[M]) {", "-> (y: f32[M]) where N >= 1 {"),
        // One thread a row: a vector of terms at a time.
        log_sum_exp(MAX, TERM, "split j by 4 -> jo, v; bind i: thread; vectorize v;", "")
            .replace("-> (y: f32[M]) {", "-> (y: f32[M]) where N % 4 == 0 {"),
        // A copy in the loop, by threads and ahead of them.
        log_sum_exp(
            MAX,
            "exp(x[i, j] - m[i]) * w[i, j]",
            BLOCK,
            "stage xs[i, j] = x in registers at m.jo { bind j: thread; }",
        ),
        log_sum_exp(MAX, TERM, BLOCK, "stage xs[i, j] = x in shared at m.jo ring(3) via cp_async { bind j: thread; }"),
        // What terms are made of has equations of its own; two sums.
        "kernel K(x: f32[M, N], w: f32[M, N]) -> (y: f32[M]) {
            s[i, j] = 2.0 * x[i, j];
            m[i] = max(|j| s[i, j]);
            p[i, j] = exp(s[i, j] - m[i]);
            l[i] = online sum(|j| p[i, j]);
            a[i] = online sum(|j| p[i, j] * w[i, j]);
            y[i] = a[i] / l[i];
            schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
            schedule m in registers per thread at y.t { online m -> l, a over j; }
        }"
        .to_owned(),
        // The exponentials are needed again.
        "kernel K(x: f32[M, N]) -> (y: f32[M, N]) {
            m[i] = max(|j| x[i, j]);
            p[i, j] = exp(x[i, j] - m[i]);
            l[i] = online sum(|j| p[i, j]);
            y[i, j] = p[i, j] / l[i];
            schedule y { bind i: grid; split j by 128 -> jo, t; bind t: thread; }
            schedule m in registers at y.i { like y; reduce t; online m -> l over jo; }
        }"
        .to_owned(),
        // Rows as long as their number says.
        "kernel K(x: f32[N, N]) -> (y: f32[N]) {
            m[i] = max(|j in 0..=i| x[i, j]);
            l[i] = online sum(|j in 0..=i| exp(x[i, j] - m[i]));
            y[i] = m[i] + log(l[i]);
            launch threads(32);
            schedule y { split i by 4 -> b, t; bind b: grid; bind t: thread; }
            schedule m in shared at y.b { split j by 64 -> jo, j1; split j1 by 32 -> v, t; bind t: thread; reduce t;
                online m -> l over jo; }
        }"
        .to_owned(),
        // Blocks take parts of the terms.
        "kernel K(x: f32[M, N]) -> (y: f32[M]) {
            m[i] = max(|j| x[i, j]);
            l[i] = online sum(|j| exp(x[i, j] - m[i]));
            y[i] = m[i] + log(l[i]);
            launch threads(32);
            schedule y { split i by 2 -> b, t; bind b: grid; bind t: thread; }
            schedule m in shared at y.b { split j by 64 -> jb, j1; split j1 by 32 -> jo, t; reorder jb, i, jo, t;
                bind jb: grid; bind t: thread; reduce t; reduce jb by grid; online m -> l over jo; }
        }"
        .to_owned(),
        // The weight is a reduction of its own, in an equation after the extreme.
        "kernel K(x: f32[M, N], w: f32[M, N]) -> (y: f32[M]) {
            m[i] = max(|j| x[i, j]);
            l[i] = online sum(|j| exp(x[i, j] - m[i]) * c[i]);
            c[i] = sum(|k| w[i, k]) / 2.0;
            y[i] = l[i] + c[i];
            schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
            schedule m in registers per thread at y.t { split j by 4 -> jo, ji; unroll ji; online m -> l over jo; }
            schedule c in registers per thread at y.t { }
        }"
        .to_owned(),
        // The sum is held in a place of its own.
        "kernel K(x: f32[M, N]) -> (y: f32[M, N]) {
            m[i] = max(|j| x[i, j]);
            l[i] = online sum(|j| exp(x[i, j] - m[i]));
            y[i, j] = x[i, j] * l[i];
            launch threads(32);
            schedule y { bind i: grid; split j by 32 -> jo, t; bind t: thread; }
            schedule l in shared at y.i { bind i: thread; }
            schedule m in registers at y.i { like y; reduce t; online m -> l over jo; }
        }"
        .to_owned(),
        // Two chains, of which the second takes the sum of the first.
        "kernel K(x: f32[M, N], w: f32[M, N]) -> (y: f32[M]) {
            m[i] = max(|j| x[i, j]);
            l[i] = online sum(|j| exp(x[i, j] - m[i]));
            n[i] = min(|j| w[i, j] * l[i]);
            a[i] = online sum(|j| exp(n[i] - w[i, j] * l[i]) * x[i, j]);
            y[i] = a[i] / l[i];
            schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
            schedule m in registers per thread at y.t { online m -> l over j; }
            schedule n in registers per thread at y.t { online n -> a over j; }
        }"
        .to_owned(),
        // Several rows of a thread.
        "kernel K(x: f64[M, N]) -> (y: f64[M]) {
            m[i] = max(|j| x[i, j]);
            l[i] = online sum(|j| exp(x[i, j] - m[i]));
            y[i] = m[i] + log(l[i]);
            launch threads(32);
            schedule y { split i by 4 -> b, t; bind b: grid; bind t: thread; }
            schedule m in shared at y.b { split j by 64 -> jo, j1; split j1 by 32 -> v, t; reorder jo, i, v, t;
                bind t: thread; reduce t; online m -> l over jo; }
        }"
        .to_owned(),
    ]
}

/// Attention of one warpgroup: blocks of 16 terms, 16 scores of each and 8 columns.
fn attention(equations: &str, ops: &str, more: &str) -> String {
    format!(
        "kernel K(q: bf16[M, 16], k: bf16[N, 16], v: bf16[N, 8]) -> (y: f32[M, 8]) where N % 16 == 0 {{
            s[i, j] = dot(|d| q[i, d] * k[j, d]);
            {equations}
            schedule y {{ split i by 64 -> it, i1; bind it: grid; reorder it, i1, e; fragment (i1, e) by wgmma; unroll e_p; }}
            schedule m in registers at y.it {{ {ops} }}
            schedule a in registers at m.jo {{ mma (i, e, j) by wgmma; }}
            schedule pb in registers at m.jo {{ fragment (i, j) by wgmma; }}
            schedule s in registers at m.jo {{ mma (i, j, d) by wgmma; }}
            stage sq[i, d] = q in shared at y.it via tma {{ layout [i, d] swizzle 32; }}
            stage sk[j, d] = k in shared at m.jo via tma {{ layout [j, d] swizzle 32; }}
            stage sv[j, e] = v in shared at m.jo via tma {{ layout [j, e]; }}
            {more}
        }}"
    )
}

const EQUATIONS: &str = "m[i] = max(|j| s[i, j]);
    p[i, j] = approx::exp2(0.25 * (s[i, j] - m[i]));
    l[i] = online sum(|j| p[i, j]);
    pb[i, j] = p[i, j] as bf16;
    a[i, e] = online dot(|j| pb[i, j] * v[j, e]);
    y[i, e] = a[i, e] / l[i];";
const OPS: &str = "split j by 16 -> jo, j1; reorder jo, i, j1; fragment (i, j1) by wgmma; online m -> l, a over jo;";
const HELD: &str = "schedule p in registers at m.jo { fragment (i, j) by wgmma; }";

/// The same with a row for each term, and terms up to the row.
fn causal(source: &str) -> String {
    let source = source.replace("q: bf16[M, 16]", "q: bf16[N, 16]").replace("y: f32[M, 8]", "y: f32[N, 8]");
    ["max", "online sum", "online dot"]
        .iter()
        .fold(source, |source, of| source.replace(&format!("{of}(|j|"), &format!("{of}(|j in 0..=i|")))
}

/// Kernels in which a product follows an extreme, with sizes.
fn products() -> Vec<(String, [i64; 2])> {
    vec![
        (attention(EQUATIONS, OPS, HELD), [64, 48]),
        // The exponentials are computed where they are read; rows past the end.
        (attention(EQUATIONS, OPS, ""), [70, 32]),
        // Two sums beside the product, in another order; a ring; scores with an equation of their own.
        (
            attention(
                "x[i, j] = s[i, j] * 0.5;
                m[i] = max(|j| x[i, j]);
                p[i, j] = exp(x[i, j] - m[i]);
                n[i] = online sum(|j| p[i, j] * 2.0);
                l[i] = online sum(|j| p[i, j]);
                pb[i, j] = p[i, j] as bf16;
                a[i, e] = online dot(|j| pb[i, j] * v[j, e]);
                y[i, e] = a[i, e] / l[i] + n[i] + m[i];",
                "split j by 16 -> jo, j1; fragment (i, j1) by wgmma; online m -> a, l, n over jo;",
                HELD,
            )
            .replace(
                "stage sk[j, d] = k in shared at m.jo via tma",
                "stage sk[j, d] = k in shared at m.jo ring(2) via tma",
            ),
            [64, 48],
        ),
        // The smallest; the same size of rows and terms.
        (
            attention(&EQUATIONS.replace("max(", "min(").replace("(s[i, j] - m[i])", "(m[i] - s[i, j])"), OPS, HELD)
                .replace(
                    "K(q: bf16[M, 16], k: bf16[N, 16], v: bf16[N, 8]) -> (y: f32[M, 8])",
                    "K(q: bf16[N, 16], k: bf16[N, 16], v: bf16[N, 8]) -> (y: f32[N, 8])",
                ),
            [64, 64],
        ),
        // Terms up to the row: scores of the last block are masked where they are computed, or where they are read.
        (causal(&attention(EQUATIONS, OPS, HELD)), [80, 80]),
        (
            causal(&attention(&EQUATIONS.replace("s[i, j]", "x[i, j]"), OPS, ""))
                .replace("m[i] =", "x[i, j] = 0.5 * s[i, j]; m[i] ="),
            [80, 80],
        ),
        // The last block lacks terms, and where rows end, too.
        (attention(EQUATIONS, OPS, HELD).replace("where N % 16 == 0", ""), [66, 37]),
        (causal(&attention(EQUATIONS, OPS, "")).replace("where N % 16 == 0", ""), [70, 70]),
        // Roles, and two warpgroups.
        (
            attention(EQUATIONS, OPS, HELD)
                .replace(
                    "schedule y { split i by 64 -> it, i1;",
                    "launch roles { math: 2 warpgroup, load: warp };
                    schedule y by math { split i by 128 -> it, i2; split i2 by 64 -> w, i1; bind w: warpgroup;",
                )
                .replace("reorder it, i1, e", "reorder it, w, i1, e")
                .replace("at y.it {", "at y.it by math { split i by 64 -> w, i1; bind w: warpgroup;")
                .replace("at m.jo {", "at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup;")
                .replace("reorder jo, i, j1", "reorder jo, w, i1, j1")
                .replace("mma (i,", "mma (i1,")
                .replace("fragment (i,", "fragment (i1,")
                .replace("via tma", "ring(2) via tma by load")
                .replace("at y.it ring(2)", "at y.it"),
            [128, 48],
        ),
    ]
}

#[test]
fn products_follow_block_by_block() {
    for (source, dims) in products() {
        let kernel = compiled(&source).unwrap_or_else(|(codes, said)| panic!("{codes:?}\n{source}\n{said}"));
        let info = kernel.info.as_ref().expect("no error");
        let launch = Launch::new(info, &dims[2 - info.dims.len()..]).expect("sizes");
        for entry in kernel.entries.iter().filter(|entry| entry.staged) {
            let found = check_values(&entry.kernel, &launch, &info.algorithm, 7, 400_000_000);
            assert_eq!(found, Verdict::Holds, "{dims:?}\n{source}\n{}", entry.kernel);
            assert_eq!(check(&entry.kernel, &launch, 400_000_000), Verdict::Holds, "{dims:?}\n{source}");
        }
    }
}

/// Some of the operations with which products are corrected, with operands in other places or left out.
#[test]
fn wrong_corrections_of_products_are_noticed() {
    let source = attention(EQUATIONS, OPS, HELD);
    let kernel = compiled(&source).unwrap_or_else(|(codes, said)| panic!("{codes:?}\n{said}"));
    let info = kernel.info.as_ref().expect("no error");
    let entry = &kernel.entries[0].kernel;
    let launch = Launch::new(info, &[64, 48]).expect("sizes");
    let mut mutants: Vec<(usize, Op)> = Vec::new();
    for (n, value) in entry.values.iter().enumerate().filter(|(_, value)| value.ty.element() == Some(F32)) {
        match value.op {
            Op::Binary(Binary::Sub, a, b) => mutants.push((n, Op::Binary(Binary::Sub, b, a))),
            // What the extreme is does not matter over the reals, as long as all take the same.
            Op::Binary(Binary::Mul, a, b) => mutants.push((n, Op::Binary(Binary::Add, a, b))),
            _ => {}
        }
    }
    let before = entry.to_string();
    let every = mutants.len().div_ceil(24);
    let (mut tried, mut missed) = (0, Vec::new());
    for (n, op) in mutants.into_iter().step_by(every) {
        let mut mutant = entry.clone();
        mutant.values[n].op = op;
        let after = mutant.to_string();
        // Values that nothing takes are in no statement.
        if after == before {
            continue;
        }
        tried += 1;
        if check_values(&mutant, &launch, &info.algorithm, 7, 400_000_000) == Verdict::Holds {
            missed.extend(before.lines().zip(after.lines()).find(|(a, b)| a != b).map(|(_, b)| b.to_owned()));
        }
    }
    assert!(tried > 12, "{tried}\n{entry}");
    assert!(missed.is_empty(), "{missed:#?}\n{entry}");
}

#[test]
fn blocks_that_cannot_be_made_are_refused() {
    let of = |from: &str, to: &str| {
        let source = attention(EQUATIONS, OPS, HELD);
        assert!(source.contains(from), "{from}");
        source.replace(from, to)
    };
    let lacking = |from: &str, to: &str, word: &str| {
        refused(&of(from, to).replace("where N % 16 == 0", ""), Code::TW0720, "may lack terms");
        refused(&of(from, to).replace("where N % 16 == 0", ""), Code::TW0720, word);
    };
    let terms = [
        "s[i, j]);\n    p[i, j] = approx::exp2(0.25 * (s[i, j]",
        "s[i, j] * 2.0);\n    p[i, j] = approx::exp2(0.25 * (s[i, j] * 2.0",
    ];
    lacking(terms[0], terms[1], "no elements of an equation");
    let short = of("(|j|", "(|j in 0..N - 1|").replace("where N % 16 == 0", "where N >= 1");
    refused(&short, Code::TW0720, "does not end with them");
    lacking("online sum(|j| p[i, j])", "online sum(|j| p[i, j] * s[i, j])", "multiply by its scores");
    let weighted = of("online sum(|j| p[i, j])", "online sum(|j| p[i, j] * w[j])").replace("v: ", "w: f32[N], v: ");
    refused(&weighted.replace("where N % 16 == 0", ""), Code::TW0720, "no factor of a product");
    let ragged =
        causal(&of("s[i, j]);\n    p", "s[i, j] * 2.0);\n    p").replace("(s[i, j] - m[i])", "(s[i, j] * 2.0 - m[i])"));
    refused(&ragged, Code::TW0720, "no elements of an equation");
    let weighted = causal(&of("l[i] = online sum(|j| p[i, j])", "l[i] = online sum(|j| p[i, j] * t[i, j])"))
        .replace("m[i] =", "t[i, j] = s[i, j] + 1.0; m[i] =");
    refused(&weighted, Code::TW0720, "multiply by its scores");
    refused(&of("over jo;", "over j1_j;"), Code::TW0720, "not of the outer one of a split");
    refused(
        &of("split j by 16 -> jo, j1;", "split j into 16 -> jo, j1;"),
        Code::TW0720,
        "not of the outer one of a split",
    );
    refused(&of("a in registers at m.jo", "a in registers at y.it"), Code::TW0720, "must stand in it");
    refused(&of("mma (i, e, j) by wgmma;", "bind i: thread;"), Code::TW0720, "tensor cores must compute");
    refused(&of("online dot(", "dot("), Code::TW0720, "is not an `online dot`");
    refused(&of("online m -> l, a", "online m -> a"), Code::TW0702, "has no schedule");
    let wide = of("p[i, j] as bf16", "(p[i, j] * p[i, j]) as bf16");
    refused(&wide, Code::TW1011, "no product with one exponential");
}

/// A multiple of an exponential is a factor if the multiple is exact where it is rounded, and saturates nowhere.
#[test]
fn multiples_of_exponentials_are_rounded() {
    let of = |by: &str| attention(&EQUATIONS.replace("p[i, j] as bf16", &format!("({by}) as bf16")), OPS, "");
    for by in ["256.0 * p[i, j]", "-(p[i, j] / 8.0)", "3.0 * (p[i, j] * 0.5)", "p[i, j] * 1e38"] {
        let by = by.replace("1e38", "85070591730234615865843651857942052864.0");
        compiled(&of(&by)).unwrap_or_else(|(_, report)| panic!("{by}: {report}"));
    }
    // No number of the type; past its largest one where an exponential is a little more than 1; not a literal.
    for by in ["0.3 * p[i, j]", "p[i, j] * 255211775190703847597530955573826158592.0", "p[i, j] * (0.5 * s[i, j])"] {
        refused(&of(by), Code::TW1011, "together a number of that type");
    }
}

#[test]
fn chains_become_one_pass() {
    for source in accepted() {
        let kernel = compiled(&source).unwrap_or_else(|(codes, said)| panic!("{codes:?}\n{source}\n{said}"));
        let info = kernel.info.as_ref().expect("no error");
        for entry in &kernel.entries {
            for dims in [[1, 4], [2, 36], [5, 132], [3, 260]] {
                let dims = &dims[..info.dims.len()];
                let launch = Launch::new(info, dims).expect("sizes");
                let found = check_values(&entry.kernel, &launch, &info.algorithm, 7, 4_000_000);
                assert_eq!(found, Verdict::Holds, "{dims:?}\n{source}\n{}", entry.kernel);
                assert_eq!(check(&entry.kernel, &launch, 4_000_000), Verdict::Holds, "{dims:?}\n{source}");
            }
        }
    }
}

/// Operands that change places, and operations that are left out, where terms and corrections are computed.
#[test]
fn wrong_corrections_are_noticed() {
    wrong(&log_sum_exp(MAX, "exp(x[i, j] - m[i]) * w[i, j]", WARPS, ""), 100);
    wrong(&log_sum_exp(MEAN, SQUARE, WARPS, ""), 60);
    wrong(&log_sum_exp("max(|j| abs(x[i, j]))", "x[i, j] / m[i] * w[i, j]", WARPS, ""), 60);
    wrong(&log_sum_exp(WEIGHTED, WEIGHTED_SQUARE, WARPS, ""), 60);
}

/// At least so many mutants of a kernel, all of which are noticed.
fn wrong(source: &str, least: usize) {
    let kernel = compiled(source).unwrap_or_else(|(codes, said)| panic!("{codes:?}\n{said}"));
    let info = kernel.info.as_ref().expect("no error");
    let entry = &kernel.entries[0].kernel;
    // Of squares, a difference may change its sign.
    let is_square = source.contains(SQUARE) || source.contains(WEIGHTED_SQUARE);
    // Rows with their extremes in all kinds of places.
    let launch = Launch::new(info, &[8, 300]).expect("sizes");
    let holds = |kernel: &Kernel| {
        (3..5).all(|seed| check_values(kernel, &launch, &info.algorithm, seed, 8_000_000) == Verdict::Holds)
    };
    assert!(holds(entry));
    let (mut tried, mut missed) = (0, Vec::<String>::new());
    for n in 0..entry.values.len() {
        if entry.values[n].ty.element() != Some(F32) {
            continue;
        }
        let changes: Vec<Op> = match entry.values[n].op {
            Op::Binary(Binary::Sub, a, b) if is_square => vec![Op::Binary(Binary::Add, a, b)],
            Op::Binary(Binary::Sub, a, b) => vec![Op::Binary(Binary::Sub, b, a), Op::Binary(Binary::Add, a, b)],
            Op::Binary(Binary::Max, a, b) => vec![Op::Binary(Binary::Min, a, b)],
            Op::Binary(Binary::Mul, a, b) => vec![Op::Binary(Binary::Add, a, b)],
            Op::Binary(Binary::Div, a, b) => vec![Op::Binary(Binary::Mul, a, b)],
            Op::Binary(Binary::Add, a, b) => vec![Op::Binary(Binary::Mul, a, b)],
            Op::Select(c, a, b) => vec![Op::Select(c, b, a)],
            _ => continue,
        };
        for op in changes {
            let mut mutant = entry.clone();
            mutant.values[n].op = op;
            // Values that nothing takes are in no statement.
            if mutant.to_string() == entry.to_string() {
                continue;
            }
            tried += 1;
            if holds(&mutant) {
                let (was, is) = (entry.to_string(), mutant.to_string());
                missed.extend(was.lines().zip(is.lines()).filter(|(a, b)| a != b).map(|(_, b)| b.to_owned()));
            }
        }
    }
    assert!(tried > least, "{tried}\n{entry}");
    assert!(missed.is_empty(), "{missed:?}\n{entry}");
}

fn refused(source: &str, code: Code, word: &str) {
    let Err((codes, said)) = compiled(source).map(drop) else { panic!("accepted:\n{source}") };
    assert_eq!(codes, [code], "{source}\n{said}");
    assert!(said.contains(word), "{word}:\n{said}");
}

/// In numbers, where a term has no factor; there are none of a term that has one.
#[test]
fn no_factor_has_a_counterexample() {
    let first = "with `x[i, j] = 0` in one term and `x[i, j] = 1` in another, `m` is 1, and they are";
    for (term, said) in [
        (
            "(x[i, j] - m[i]) * (x[i, j] - m[i])",
            format!("{first} 1 and 0; a further term makes `m` 2, and they are 4 and 1"),
        ),
        (
            "exp(x[i, j] - m[i]) + 1.0",
            format!("{first} 1.3679 and 2; a further term makes `m` 2, and they are 1.1353 and 1.3679"),
        ),
        ("exp(x[i, j] * m[i])", format!("{first} 1 and 2.7183; a further term makes `m` 2, and they are 1 and 7.3891")),
        // Both read a number, and one of them alone decides.
        (
            "if x[i, j] > m[i] - 1.0 { 1.0f32 } else { 0.0 }",
            "`m` is 0.5, and they are 1 and 1; a further term".to_owned(),
        ),
        ("w[i, j] * (x[i, j] - m[i])", "with `x[i, j] = 0`, `w[i, j] = 1` in one term".to_owned()),
    ] {
        refused(&log_sum_exp(MAX, term, BLOCK, ""), Code::TW1011, &said);
    }
    let smallest = log_sum_exp("min(|j| x[i, j])", "tanh(m[i] - x[i, j])", BLOCK, "");
    refused(&smallest, Code::TW1011, "`m` is 0, and they are");
    // Of means two lists are.
    for (term, said) in [
        ("w[i, j] * (x[i, j] - m[i]) * (x[i, j] - m[i])", "and these sums are"),
        ("abs(x[i, j] - m[i])", "the terms `x[i, j] = "),
        ("(x[i, j] - m[i]) * (x[i, j] - m[i]) * x[i, j]", "of both, `m` is 0, and the sum 0"),
    ] {
        refused(&log_sum_exp(MEAN, term, BLOCK, ""), Code::TW1011, said);
    }
    // Weights that are not the mean's: no numbers have the same weights, mean and squares, and other ones later.
    for term in [SQUARE, "abs(w[i, j]) * WEIGHTED"] {
        let term = term.replace("WEIGHTED", WEIGHTED_SQUARE);
        let source = log_sum_exp(WEIGHTED, &term, BLOCK, "");
        refused(&source, Code::TW1011, "`w[i, j] = ");
        refused(&source, Code::TW1011, "and these sums are");
    }
    for source in accepted() {
        let found = compiled(&source).unwrap_or_else(|(codes, said)| panic!("{codes:?}\n{source}\n{said}"));
        let algorithm = &found.info.as_ref().expect("no error").algorithm;
        let equations = algorithm.equations.len() as u16;
        let mut sums = 0;
        for later in 0..equations {
            for earlier in online::earlier_ones(algorithm, later) {
                if online::chain(&mut algorithm.clone(), earlier, later, At::Later).is_ok() {
                    assert_eq!(online::refuted(algorithm, earlier, later), None, "{source}");
                    assert_eq!(online::moved(algorithm, earlier, later), None, "{source}");
                    sums += 1;
                }
            }
        }
        assert!(sums > 0, "{source}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list")]
fn what_is_no_chain_is_refused() {
    let of = |extreme, term| log_sum_exp(extreme, term, WARPS, "");
    let sums: &[(&str, &str, &str)] = &[
        (MAX, "exp(x[i, j])", "reads no"),
        (MAX, "exp(x[i, j]) - m[i]", "changes by the same number"),
        (MAX, "exp(exp(x[i, j] - m[i]))", "exponential of what is not linear"),
        (MAX, "exp(w[i, j] * (x[i, j] - m[i]))", "differs from term to term"),
        (MAX, "(x[i, j] - m[i]) * (x[i, j] - m[i])", "by a sum"),
        (MAX, "if x[i, j] < m[i] { 1.0f32 } else { 0.0f32 }", "decided"),
        (MAX, "log(x[i, j] - m[i])", "neither linear"),
        (MAX, "log(x[i, j] * m[i])", "may have no logarithm"),
        (MAX, "2.0 * log(abs(x[i, j] / m[i]) * w[i, j]) - m[i]", "may have no logarithm"),
        (MAX, "w[i, j] * log(x[i, j] * m[i])", "differs from term to term"),
        (MAX, "log(exp(x[i, j] - m[i]) * w[i, j])", "changes by the same number"),
        (MAX, "approx::exp2(x[i, j] - m[i]) + exp(x[i, j] - m[i])", "by different factors"),
        (MAX, "x[i, j] / m[i]", "no product with one exponential"),
        (MAX, "x[i, j] - m[i]", "changes by the same number"),
        (MAX, "exp(x[i, j] - m[i]) + exp(x[i, j] - m[i]) * w[i, j]", "no product with one exponential"),
        (MAX, "exp(w[i, j] - m[i])", "could be infinite"),
        (MAX, "exp(x[i, j] - m[i] + 1.0)", "scaled by literals"),
        (MAX, "exp(m[i] - x[i, j])", "may overflow"),
        // What is taken off must be rounded, and the whole of it.
        (MAX, "exp(fma(-0.5, m[i], 0.5 * x[i, j]))", "scaled by literals"),
        (MAX, "exp(fma(0.5, x[i, j], 0.5 * m[i]))", "scaled by literals"),
        (MAX, "exp(fma(0.5, x[i, j], -0.25 * m[i]))", "scaled by literals"),
        (MAX, "exp(fma(0.5, m[i], -0.5 * x[i, j]))", "scaled by literals"),
        (MAX, "exp(fma(-0.5, x[i, j], 0.5 * m[i]))", "may overflow"),
        ("min(|j| x[i, j])", TERM, "may overflow"),
        ("max(|j in 1..N| x[i, j])", TERM, "the same range"),
        ("sum(|j| x[i, j])", TERM, "not of a kind that is computed"),
        ("max(|j| abs(x[i, j]))", "w[i, j] / m[i]", "could be infinite"),
        ("max(|j| abs(x[i, j]))", "abs(w[i, j] / m[i])", "could be infinite"),
        (MAX, "pow(abs(x[i, j] / m[i]), 3)", "no product with one exponential"),
        ("max(|j| abs(x[i, j]))", "m[i] / x[i, j]", "no product with one exponential"),
        ("min(|j| abs(x[i, j]))", "x[i, j] / m[i]", "no product with one exponential"),
        (MEAN, "x[i, j] - m[i]", "changes by the same number"),
        (MEAN, "pow(x[i, j] - m[i], 3)", "not of a kind that is computed"),
        (MEAN, "2.0 * (x[i, j] - m[i]) * (x[i, j] - m[i])", "not of a kind that is computed"),
        (MEAN, "x[i, j] * x[i, j] - 2.0 * x[i, j] * m[i] + m[i] * m[i]", "not of a kind that is computed"),
        (MEAN, "exp(x[i, j] - m[i])", "not of a kind that is computed"),
        (MEAN, "x[i, j] * x[i, j] - m[i] * m[i]", "no polynomial of the difference"),
        (MEAN, "(w[i, j] - m[i]) * (w[i, j] - m[i])", "not what it is the mean of"),
        (MEAN, "w[i, j] * (x[i, j] - m[i]) * (x[i, j] - m[i])", "not what it is the mean of"),
        (MEAN, "abs(x[i, j] - m[i])", "no polynomial in it"),
        (MEAN, "if x[i, j] < m[i] { 1.0f32 } else { 0.0f32 }", "decided"),
        (WEIGHTED, SQUARE, "by the weight of the mean, once"),
        (WEIGHTED, "w[i, j] * ((x[i, j] - m[i]) * (x[i, j] - m[i]))", "not what it is the mean of"),
        (WEIGHTED, "abs(w[i, j]) * (x[i, j] - m[i])", "not of a kind that is computed"),
        (
            "sum(|j| w[i, j] * x[i, j]) / sum(|j| w[i, j])",
            "w[i, j] * ((x[i, j] - m[i]) * (x[i, j] - m[i]))",
            "may be negative",
        ),
        ("sum(|j| x[i, j] / abs(w[i, j])) / sum(|j| abs(w[i, j]))", WEIGHTED_SQUARE, "by the sum of their weights"),
        (
            "sum(|j| abs(w[i, j]) * x[i, j]) / sum(|j in 1..N| abs(w[i, j]))",
            WEIGHTED_SQUARE,
            "by the sum of their weights",
        ),
        (
            "sum(|j| abs(w[i, j]) * x[i, j]) / ordered sum(|j| abs(w[i, j]))",
            WEIGHTED_SQUARE,
            "by the sum of their weights",
        ),
        ("sum(|j| x[i, j]) / (M as f32)", "(x[i, j] - m[i]) * (x[i, j] - m[i])", "by the number of its terms"),
        ("sum(|j in 1..N| x[i, j]) / (N as f32)", "(x[i, j] - m[i]) * (x[i, j] - m[i])", "the same range"),
        ("ordered sum(|j| x[i, j]) / (N as f32)", "(x[i, j] - m[i]) * (x[i, j] - m[i])", "one after the other"),
    ];
    for (extreme, term, word) in sums {
        refused(&of(extreme, term), Code::TW1011, word);
    }
    // Two means of one sum.
    let two = "kernel K(x: f32[M, N], w: f32[M, N]) -> (y: f32[M]) {
        s[i] = sum(|j| abs(w[i, j]) * x[i, j]);
        q[i] = sum(|j| abs(w[i, j]));
        a[i] = s[i] / q[i];
        b[i] = s[i] / N as f32;
        v[i] = online sum(|j| abs(w[i, j]) * ((x[i, j] - a[i]) * (x[i, j] - a[i])));
        u[i] = online sum(|j| pow(abs(w[i, j]) * x[i, j] - b[i], 2));
        y[i] = v[i] + u[i] + q[i];
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
        schedule s in registers per thread at y.t { online s -> v, u over j; }
    }";
    refused(two, Code::TW0720, "divided by another sum");
    refused(&two.replace("v, u over", "u, v over"), Code::TW0720, "divided by another sum");
    // A term that doubles with every equation.
    let mut doubled = "t0[i, j] = x[i, j] - m[i];".to_owned();
    (1..60).for_each(|n| doubled += &format!("t{n}[i, j] = t{0}[i, j] + t{0}[i, j];", n - 1));
    let large = of(MAX, "exp(t59[i, j])").replace("l[i] =", &format!("{doubled} l[i] ="));
    refused(&large, Code::TW1011, "too large");
    refused(&of(MAX, "exp(x[i, j] - m[i]) * sum(|k| w[i, k])"), Code::TW0720, "equation of its own");
    refused(&of(MAX, TERM).replace("online sum", "sum"), Code::TW0720, "is not an `online sum`");
    refused(&of(MAX, TERM).replace("online sum", "ordered sum"), Code::TW0720, "is not an `online sum`");
    refused(&of(MAX, TERM).replace("m -> l", "m -> k"), Code::TW0720, "no equation `k`");
    refused(&of(MAX, TERM).replace("m -> l", "m -> l, l"), Code::TW0720, "named twice");
    refused(&of(MAX, TERM).replace("online m -> l", "online l -> l"), Code::TW0720, "not what this schedule is of");
    refused(&of(MAX, TERM).replace("over jo", "over t"), Code::TW0720, "side by side");
    refused(&of(MAX, TERM).replace("over jo", "over i"), Code::TW0720, "tells elements apart");
    refused(&of(MAX, TERM).replace("over jo;", "over jo; online m -> l over v;"), Code::TW0720, "already");
    let deeper = log_sum_exp(
        MAX,
        TERM,
        &WARPS.replace("unroll v;", ""),
        "stage xs[i, j] = x in registers per warp at m.v { bind j: thread; }",
    );
    refused(&deeper, Code::TW0720, "runs twice");
    // What is taken where an extreme is.
    let taken = |equation: &str| {
        let all = of(MAX, TERM).replace("y[i] =", &format!("c[i] = {equation}; y[i] =")).replace("m -> l", "m -> l, c");
        let all = all.replace("-> (y: f32[M]) {", "-> (y: f32[M]) where N >= 1 {");
        all.replace("m[i] + l[i]", "m[i] + l[i] + (c[i] as f32)")
    };
    // A search of other elements than those of the extreme.
    let shifted = "kernel K(x: f32[N]) -> (y: f32[M]) where N >= 1 {
        m[i in 0..M] = max(|j| x[j]);
        g[i in 3..M + 3] = argmax(|j| x[j]);
        y[i] = m[i] + (g[i + 3] as f32);
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
        schedule m in registers per thread at y.t { online m -> g over j; }
    }";
    refused(shifted, Code::TW0720, "with the same axes");
    for (equation, word) in [
        ("argmin(|j| x[i, j])", "another extreme"),
        ("argmax(|j| w[i, j])", "another extreme"),
        ("max(|j| if x[i, j] == m[i] { w[i, j] } else { 0.0 })", "nor what is taken"),
        ("max(|j| if x[i, j] == m[i] { w[i, j] + m[i] } else { -inf })", "nor what is taken"),
        ("sum(|j| if x[i, j] > m[i] - 1.0 { w[i, j] } else { 0.0 })", "decided by it"),
        ("ordered sum(|j| if x[i, j] == m[i] { w[i, j] } else { 0.0 })", "is not an `online sum`"),
        ("prod(|j| w[i, j] * m[i])", "n-th power of a factor"),
        ("prod(|j| exp(x[i, j] - m[i]))", "n-th power of a factor"),
        ("prod(|j| x[i, j] - m[i])", "nor what is taken"),
        ("sum(|j| log(w[i, j] / m[i]))", "may have no logarithm"),
    ] {
        refused(&taken(equation), Code::TW0720, word);
    }
    let inside = log_sum_exp(MAX, "p[i, j]", BLOCK, "schedule p in registers at m.jo { bind j: thread; }");
    let inside = inside.replace("l[i] =", "p[i, j] = exp(x[i, j] - m[i]); l[i] =");
    refused(&inside, Code::TW0720, "not known before its loops end");
}

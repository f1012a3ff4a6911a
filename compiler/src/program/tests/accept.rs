//! Kernels that are accepted, and what they become.

use expect_test::{Expect, expect};

use super::super::build;
use super::{accepted, kernel, obligations};
use crate::diag::Diagnostics;
use crate::source::TokenBuffer;
use crate::syntax::parse;

fn check(signature: &str, body: &str, expected: Expect) {
    expected.assert_eq(&accepted(&kernel(signature, body)).printed().to_string());
}

#[test]
fn the_ten_target_programs() {
    let source = include_str!("../../syntax/tests/programs.txt");
    let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens of Rust"));
    let (program, syntax) = parse(&tokens);
    assert!(syntax.is_empty());
    let mut text = String::new();
    for kernel in &program.kernels {
        let mut found = Diagnostics::new();
        let built = build(kernel, &mut found);
        assert!(found.is_empty(), "{}: {found:#?}", kernel.name.text);
        text += &format!("{}\n{}", kernel.name.text, built.expect("no finding").printed());
    }
    expect![[r#"
        Saxpy
        z[i in 0..N]: f32 = a * x[i] + y[i]
        Transpose
        y[j in 0..N, i in 0..M]: f32 = x[i, j]
        StridedColumns
        y[m in 0..M]: f32 = sum(|k in 0..K| x[k, m])
        Scale
        y[b in 0..B, m in 0..M, n in 0..64]: f32 = 2.0f32 * x[b, m, n]
        Softmax
        m[i in 0..M]: f32 = max(|j in 0..N| x[i, j])
        e[i in 0..M, j in 0..N]: f32 = exp(x[i, j] - m[i])
        s[i in 0..M]: f32 = sum(|j in 0..N| e[i, j])
        y[i in 0..M, j in 0..N]: f32 = e[i, j] / s[i]
        RmsNorm
        ss[i in 0..M]: f32 = sum(|j in 0..N| x[i, j] as f32 * x[i, j] as f32)
        y[i in 0..M, j in 0..N]: bf16 = (x[i, j] as f32 * rsqrt(ss[i] / N as f32 + eps) * w[j] as f32) as bf16
        Blur
        bx[i in 0..H, j in 0..W - 2]: f32 = (x[i, j] + x[i, j + 1] + x[i, j + 2]) / 3.0f32
        y[i in 0..H - 2, j in 0..W - 2]: f32 = (bx[i, j] + bx[i + 1, j] + bx[i + 2, j]) / 3.0f32
        Fused
        b[i in 0..4, j in 0..4]: f32 = a[i, j] + 2.0f32
        c[i in 0..4, j in 0..4]: f32 = b[i, j] * 3.0f32
        Gemm
        acc[m in 0..M, n in 0..N]: f32 = dot(|k in 0..K| a[m, k] * b[n, k])
        c[m in 0..M, n in 0..N]: bf16 = acc[m, n] as bf16
        Attention
        s[h in 0..H, i in 0..S, j in 0..S]: f32 = scale * dot(|d in 0..128| q[h, i, d] * k[h, j, d])
        mx[h in 0..H, i in 0..S]: f32 = max(|j in 0..S| s[h, i, j])
        p[h in 0..H, i in 0..S, j in 0..S]: f32 = exp(s[h, i, j] - mx[h, i])
        l[h in 0..H, i in 0..S]: f32 = sum(|j in 0..S| p[h, i, j])
        a[h in 0..H, i in 0..S, d in 0..128]: f32 = dot(|j in 0..S| p[h, i, j] as bf16 * v[h, j, d])
        o[h in 0..H, i in 0..S, d in 0..128]: bf16 = (a[h, i, d] / l[h, i]) as bf16
    "#]]
    .assert_eq(&text);
}

#[test]
fn literals_take_the_type_of_their_place() {
    check(
        "(a: f32, x: f16[N]) -> (y: f16[N])",
        "y[i] = 2.0 * x[i] + 1.5;",
        expect![[r#"
        y[i in 0..N]: f16 = 2.0f16 * x[i] + 1.5f16
    "#]],
    );
    check(
        "(x: f32[N]) -> (y: i32[N])",
        "y[i] = if x[i] > 0.5 { 1 } else { -1 };",
        expect![[r#"
        y[i in 0..N]: i32 = if x[i] > 0.5f32 { 1i32 } else { -1i32 }
    "#]],
    );
    check(
        "(x: bf16[N]) -> (y: f32[N])",
        "y[i] = (x[i] or 0.0) as f32 * 1.0;",
        expect![[r#"
        y[i in 0..N]: f32 = (x[i] or 0.0bf16) as f32 * 1.0f32
    "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = max(0.0, x[i]) + 0 as f32 + 1e-5f32;",
        expect![[r#"
        y[i in 0..N]: f32 = max(0.0f32, x[i]) + 0.0f32 + 1e-5f32
    "#]],
    );
    check(
        "() -> (y: f32[N])",
        "y[i] = if 1.5f32 < 2.0 { inf } else { -nan };",
        expect![[r#"
            y[i in 0..N]: f32 = if 1.5f32 < 2.0f32 { inf } else { nan }
        "#]],
    );
}

#[test]
fn sizes_and_axes_are_values_under_as() {
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i] / N as f32 + (2 * i + 1) as f32;",
        expect![[r#"
        y[i in 0..N]: f32 = x[i] / N as f32 + (2 * i + 1) as f32
    "#]],
    );
}

#[test]
fn conditions_on_indices_compare_integers() {
    check(
        "(x: f32[N], n: i32[N], t: f32) -> (y: f32[N])",
        "y[i] = if i < N - 1 && 2 <= i || i == n[i] { x[i] } else { if x[i] < t { t } else { 0.0 } };",
        expect![[r#"
            y[i in 0..N]: f32 = if i < N - 1 && 2 <= i || i == n[i] { x[i] } else { if x[i] < t { t } else { 0.0f32 } }
        "#]],
    );
}

#[test]
fn gathers_are_guarded() {
    check(
        "(table: f32[V, D], pos: i32[T]) -> (y: f32[T, D])",
        "y[t, d] = table[pos[t] + 1, d] or 0.0;",
        expect![[r#"
            y[t in 0..T, d in 0..D]: f32 = (table[pos[t] + 1, d] or 0.0f32)
        "#]],
    );
    check(
        "(x: f32[N], shift: i32) -> (y: f32[N])",
        "y[i] = x[i + shift] or -1.0;",
        expect![[r#"
        y[i in 0..N]: f32 = (x[i + shift] or -1.0f32)
    "#]],
    );
}

#[test]
fn reductions_infer_their_ranges() {
    check(
        "(x: f32[M, N]) -> (y: f32[M])",
        "y[i] = sum(|k in 0..=i| x[i, k]);",
        expect![[r#"
        y[i in 0..M]: f32 = sum(|k in 0..i + 1| x[i, k])
    "#]],
    );
    check(
        "(x: f32[M, N]) -> (y: u32[M])",
        "y[i] = argmax(|k| x[i, k]);",
        expect![[r#"
        y[i in 0..M]: u32 = argmax(|k in 0..N| x[i, k])
    "#]],
    );
    check(
        "(x: f32[M, N]) -> (y: bool[])",
        "y[] = all(|i, j| x[i, j] >= 0.0);",
        expect![[r#"
        y[]: bool = all(|i in 0..M, j in 0..N| x[i, j] >= 0.0f32)
    "#]],
    );
    check(
        "(x: f64[M, N]) -> (y: f64[M])",
        "y[i] = ordered sum(|j| x[i, j]) + unordered sum(|j| x[i, j]);",
        expect![[r#"
        y[i in 0..M]: f64 = ordered sum(|j in 0..N| x[i, j]) + unordered sum(|j in 0..N| x[i, j])
    "#]],
    );
    check(
        "(x: f32[M, N], w: f32[3, 3]) -> (y: f32[M - 2, N - 2])",
        "y[i, j] = sum(|r, s| x[i + r, j + s] * w[r, s]);",
        expect![[r#"
            y[i in 0..M - 2, j in 0..N - 2]: f32 = sum(|r in 0..3, s in 0..3| x[i + r, j + s] * w[r, s])
        "#]],
    );
}

#[test]
fn dot_accumulates_in_the_wide_type() {
    check(
        "(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N])",
        "c[m, n] = dot(|k| a[m, k] * b[n, k]);",
        expect![[r#"
            c[m in 0..M, n in 0..N]: f32 = dot(|k in 0..K| a[m, k] * b[n, k])
        "#]],
    );
    check(
        "(a: i8[M, K], b: i8[N, K]) -> (c: i32[M, N])",
        "c[m, n] = dot(|k| a[m, k] * b[n, k]);",
        expect![[r#"
            c[m in 0..M, n in 0..N]: i32 = dot(|k in 0..K| a[m, k] * b[n, k])
        "#]],
    );
    check(
        "(a: f64[M, K], b: f64[N, K]) -> (c: f64[M, N])",
        "c[m, n] = dot(|k| a[m, k] * b[n, k]);",
        expect![[r#"
            c[m in 0..M, n in 0..N]: f64 = dot(|k in 0..K| a[m, k] * b[n, k])
        "#]],
    );
    check(
        "(a: e4m3[M, K], b: e4m3[N, K]) -> (c: f32[M, N])",
        "c[m, n] = dot(|k| (a[m, k]) * b[n, k], promote 128);",
        expect![[r#"
            c[m in 0..M, n in 0..N]: f32 = dot(|k in 0..K| a[m, k] * b[n, k], promote 128)
        "#]],
    );
    check(
        "(a: e5m2[M, K], b: e4m3[N, K]) -> (c: f32[M, N])",
        "c[m, n] = dot(|k| a[m, k] * b[n, k], promote 64);",
        expect![[r#"
            c[m in 0..M, n in 0..N]: f32 = dot(|k in 0..K| a[m, k] * b[n, k], promote 64)
        "#]],
    );
    check(
        "(a: u8[M, K], b: i8[N, K]) -> (c: i32[M, N])",
        "c[m, n] = dot(|k| b[n, k] * a[m, k]);",
        expect![[r#"
            c[m in 0..M, n in 0..N]: i32 = dot(|k in 0..K| b[n, k] * a[m, k])
        "#]],
    );
}

#[test]
fn tuples_define_several_tensors() {
    check(
        "(inout p: f32[N], inout m: f32[N], g: bf16[N]) -> (n: i32[N])",
        "t[i] = 0.5 * m[i] + g[i] as f32; (p, m, n)[i] = (p[i] - t[i], t[i], i as i32);",
        expect![[r#"
            t[i in 0..N]: f32 = 0.5f32 * m[i] + g[i] as f32
            (p, m, n)[i in 0..N]: (f32, f32, i32) = (p[i] - t[i], t[i], i as i32)
        "#]],
    );
    check(
        "(x: f32[M, N]) -> (a: f32[M], b: f32[M])",
        "(a, b)[i] = (fold(|j| init 0.0, step s => s + x[i, j]), max(|j| x[i, j]));",
        expect![[r#"
            (a, b)[i in 0..M]: (f32, f32) = (fold(|j in 0..N| init (0.0f32), step (%0) => (%0 + x[i, j])).0, max(|j in 0..N| x[i, j]))
        "#]],
    );
}

#[test]
fn folds_have_tuples_of_state() {
    check(
        "(x: f32[M, N]) -> (m: f32[M], s: f32[M])",
        "(m, s)[i] = fold(|j| init (-inf, 0.0), step (a, b) => (max(a, x[i, j]), b + x[i, j]), merge ((a, b), (c, d)) => (max(a, c), b + d));",
        expect![[r#"
            (m, s)[i in 0..M]: (f32, f32) = fold(|j in 0..N| init (-inf, 0.0f32), step (%0, %1) => (max(%0, x[i, j]), %1 + x[i, j]), merge (%2, %3), (%4, %5) => (max(%2, %4), %3 + %5))
        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "y[] = fold(|j| init 0.0, step s => s + x[j]) * 2.0;",
        expect![[r#"
        y[]: f32 = fold(|j in 0..N| init (0.0f32), step (%0) => (%0 + x[j])).0 * 2.0f32
    "#]],
    );
}

#[test]
fn intermediates_have_the_union_of_what_readers_demand() {
    check(
        "(x: f32[H]) -> (y: f32[H - 4], z: f32[H - 2])",
        "z[i] = b[i + 1]; y[i] = b[i] + b[i + 4]; b[k] = x[k];",
        expect![[r#"
            b[k in 0..H]: f32 = x[k]
            z[i in 0..H - 2]: f32 = b[i + 1]
            y[i in 0..H - 4]: f32 = b[i] + b[i + 4]
        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[2 * N])",
        "b[k] = x[k]; y[i] = b[i / 2];",
        expect![[r#"
        b[k in 0..N]: f32 = x[k]
        y[i in 0..2 * N]: f32 = b[i / 2]
    "#]],
    );
    check(
        "(x: f32[4]) -> (y: f32[N])",
        "b[k] = x[k]; y[i] = b[i % 4];",
        expect![[r#"
        b[k in 0..4]: f32 = x[k]
        y[i in 0..N]: f32 = b[i % 4]
    "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "b[k] = x[k]; y[i] = b[N - 1 - i];",
        expect![[r#"
        b[k in 0..N]: f32 = x[k]
        y[i in 0..N]: f32 = b[N - 1 - i]
    "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "b[k] = x[k]; y[i] = if i >= 1 { b[i - 1] } else { 0.0 };",
        expect![[r#"
        b[k in 0..N - 1]: f32 = x[k]
        y[i in 0..N]: f32 = if i >= 1 { b[i - 1] } else { 0.0f32 }
    "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "e[j] = x[j] * x[j]; y[] = sum(|k| e[k]);",
        expect![[r#"
        e[j in 0..N]: f32 = x[j] * x[j]
        y[]: f32 = sum(|k in 0..N| e[k])
    "#]],
    );
    check(
        "(x: f32[N, N]) -> (y: f32[N])",
        "b[i, k] = x[i, k]; y[i] = sum(|k in i..N| b[i, k - i]);",
        expect![[r#"
        b[i in 0..N, k in 0..N]: f32 = x[i, k]
        y[i in 0..N]: f32 = sum(|k in i..N| b[i, k - i])
    "#]],
    );
}

#[test]
fn facts_make_sizes_equal() {
    check(
        "(a: f32[M, K], b: f32[4096, N]) -> (c: f32[M, N]) where K == 4096",
        "c[m, n] = sum(|k| a[m, k] * b[k, n]);",
        expect![[r#"
            c[m in 0..M, n in 0..N]: f32 = sum(|k in 0..4096| a[m, k] * b[k, n])
        "#]],
    );
    let solved = accepted(&kernel(
        "(a: f32[M, P; ld, 1]) -> (c: f32[M]) where K == 16, 2 * Q == P, ld % 4 == 0, ld >= P, M != 3",
        "c[m] = sum(|k in 0..K| a[m, k]) + sum(|q in 0..Q| a[m, 2 * q]);",
    ));
    let solved: Vec<String> = solved
        .solved
        .iter()
        .map(|s| format!("{} = {}", solved.dim_name(s.dim), s.value.display(&|d| solved.dim_name(d))))
        .collect();
    expect![[r#"
        K = 16
        Q = P / 2"#]]
    .assert_eq(&solved.join("\n"));
}

#[test]
fn updates_in_place_read_their_own_element() {
    check(
        "(inout x: f32[M, N], s: f32[M])",
        "x[i, j] = x[i, j] / s[i];",
        expect![[r#"
        x[i in 0..M, j in 0..N]: f32 = x[i, j] / s[i]
    "#]],
    );
}

#[test]
fn obligations_are_listed() {
    let program = accepted(&kernel(
        "(x: i32[N], y: f32[N]) -> (q: i32[N], a: u32[])",
        "q[i] = x[i] / 2 + x[i] % x[0] + x[i / N]; a[] = argmax(|i| y[i]);",
    ));
    expect![[r#"
        divisor not zero: x[i] % x[0]
        divisor positive: i / N
        not empty: argmax(|i in 0..N| y[i])
    "#]]
    .assert_eq(&obligations(&program));
}

#[test]
fn equations_may_stand_in_any_order() {
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = c[i]; c[i] = b[i]; b[i] = x[i];",
        expect![[r#"
        b[i in 0..N]: f32 = x[i]
        c[i in 0..N]: f32 = b[i]
        y[i in 0..N]: f32 = c[i]
    "#]],
    );
}

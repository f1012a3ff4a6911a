//! Kernels that are right, by ranges, conditions, facts, quotients, products, and readers of intermediates.

use super::accepted;

#[test]
fn plain_ranges() {
    for (head, body) in [
        ("(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])", "z[i] = a * x[i] + y[i];"),
        ("(x: f32[M, N]) -> (y: f32[N, M])", "y[i, j] = x[j, i];"),
        ("(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])", "c[m, n] = dot(|k| a[m, k] * b[k, n]);"),
        ("(x: f32[H, W]) -> (y: f32[H - 2, W - 2])", "y[i, j] = sum(|r in 0..3, s in 0..3| x[i + r, j + s]);"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = sum(|k in 0..=i| x[k]);"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = sum(|k in i..N| x[k - i]);"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = x[N - 1 - i];"),
        ("(x: f32[2 * N]) -> (y: f32[N])", "y[i] = x[2 * i] + x[2 * i + 1];"),
        ("(x: f32[]) -> (y: f32[N])", "y[i] = x[];"),
        ("(x: f32[16]) -> (y: f32[4, 4])", "y[i, j] = x[4 * i + j];"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = x[0] + x[N - 1];"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = x[max(i - 1, 0)] + x[min(i + 1, N - 1)];"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = sum(|k in max(0, i - 4)..min(i + 5, N)| x[k]);"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = sum(|k in max(3, i)..max(3, N - 2)| x[k]);"),
    ] {
        accepted(head, body);
    }
}

#[test]
fn quotients_and_products() {
    for (head, body) in [
        ("(x: f32[N / 4, 4]) -> (y: f32[N]) where N % 4 == 0", "y[k] = x[k / 4, k % 4];"),
        ("(x: f32[(N + 3) / 4, 4]) -> (y: f32[N])", "y[k] = x[k / 4, k % 4];"),
        ("(x: f32[N, M]) -> (y: f32[N * M])", "y[k] = x[k / M, k % M];"),
        ("(x: f32[N * M]) -> (y: f32[N, M])", "y[i, j] = x[i * M + j];"),
        ("(x: f32[A * B * C]) -> (y: f32[A, B, C])", "y[i, j, k] = x[(i * B + j) * C + k];"),
        ("(x: f32[N]) -> (y: f32[N]) where N % 2 == 0", "y[i] = if i % 2 == 0 { x[i + 1] } else { x[i - 1] };"),
        ("(x: f32[P]) -> (y: f32[Q]) where P == 2 * Q", "y[i] = x[2 * i + 1];"),
        ("(x: f32[N / 2]) -> (y: f32[N]) where N % 6 == 0", "y[i] = x[i / 3];"),
    ] {
        accepted(head, body);
    }
}

#[test]
fn conditions() {
    for (head, body) in [
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = if i > 0 { x[i - 1] } else { x[0] };"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = if i == 0 { 0.0 } else { x[i - 1] };"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = if i >= 1 && i + 1 < N { x[i - 1] + x[i + 1] } else { x[i] };"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = if i < 1 || i + 1 >= N { x[i] } else { x[i - 1] + x[i + 1] };"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = if !(i == 0) { x[i - 1] } else { x[i] };"),
        ("(x: f32[N]) -> (y: f32[N + 6])", "y[i] = if i == 1 || i == 3 { x[(i - 1) / 3] } else { 0.0 };"),
        ("(x: f32[N], c: f32[N]) -> (y: f32[N])", "y[i] = if c[i] > 0.0 && i > 0 { x[i - 1] } else { 0.0 };"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = if i > 0 && x[i - 1] > 0.0 { 1.0 } else { 0.0 };"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = if i == 0 || x[i - 1] > 0.0 { 1.0 } else { 0.0 };"),
    ] {
        accepted(head, body);
    }
}

#[test]
fn facts() {
    for (head, body) in [
        ("(x: f32[N], z: f32[M]) -> (y: f32[M]) where M <= N", "y[i] = x[i] + z[i];"),
        ("(x: f32[N]) -> (y: f32[8]) where N >= 8", "y[i] = x[i];"),
        ("(x: f32[N]) -> (y: f32[8]) where N == 4096", "y[i] = x[512 * i + 511];"),
        ("(x: f32[N]) -> (y: f32[M]) where N == 2 * M", "y[i] = x[i + M];"),
        // A maximum is one of its sides, also where sizes have residues.
        ("() -> (z: f32[N, M]) where N % 2 == 1", "t[ti, tj] = 1.0f32; z[i, j] = t[min(i, 2), j];"),
        ("() -> (z: f32[M, M / 4]) where M % 4 == 0", "u[ui, uj] = 1.0f32; z[i, j] = u[i, min(j + 3, M / 4 - 1)];"),
        (
            "() -> (z: f16[M]) where M % 4 == 1",
            "t[ti] = 1.0f32; z[i] = if i == M - 1 { t[max(i - 1, 0)] as f16 } else { 1.0f16 };",
        ),
        // Only counting shows it: 9 sizes.
        ("(x: f32[N]) -> (y: f32[M]) where N <= 3, M <= 3, N * N >= M * M", "y[i] = x[i];"),
    ] {
        accepted(head, body);
    }
}

#[test]
fn intermediates_are_judged_where_they_are_read() {
    for (head, body) in [
        ("(x: f32[N]) -> (y: f32[N - 2])", "t[i] = x[i] + x[i + 1]; y[i] = t[i] + t[i + 1];"),
        ("(x: f32[N]) -> (y: f32[N])", "t[i] = x[i - 1]; y[i] = if i > 0 { t[i] } else { 0.0 };"),
        // The hull of what is read is larger than what is read.
        (
            "(x: f32[N]) -> (y: f32[2 * N])",
            "t[i] = x[(i + 1) / 2 - (i % 2)]; y[i] = if i % 2 == 0 { t[i] } else { 0.0 };",
        ),
        ("(x: f32[N]) -> (y: f32[N])", "t[i in 0..N] = x[i]; y[i] = t[i - 1] or 0.0;"),
        ("(x: f32[N], p: i32[N]) -> (y: f32[N])", "t[i in 0..N] = x[i]; y[i] = t[p[i]] or 0.0;"),
        ("(x: f32[N]) -> (y: f32[N])", "t[i in 0..2 * N] = x[i]; y[i] = t[i];"),
    ] {
        accepted(head, body);
    }
}

#[test]
fn other_obligations() {
    for (head, body) in [
        ("(x: f32[M, N]) -> (y: u32[M]) where N >= 1", "y[i] = argmax(|j| x[i, j]);"),
        ("(x: f32[N]) -> (y: u32[N])", "y[i] = argmin(|j in 0..=i| x[j]);"),
        ("(a: i32[N], b: i32[N]) -> (y: i32[N])", "y[i] = if b[i] != 0 { a[i] / b[i] } else { 0 };"),
        ("(a: i32[N], b: i32[N]) -> (y: i32[N])", "y[i] = if b[i] == 0 { 0 } else { a[i] % b[i] };"),
        ("(a: i32[N], b: i32[N]) -> (y: i32[N])", "y[i] = if 0 < b[i] && a[i] > 3 { a[i] / b[i] } else { 0 };"),
        ("(a: i32[N], b: i32[N]) -> (y: i32[N])", "y[i] = a[i] / max(b[i], 1);"),
        ("(a: i32[N]) -> (y: i32[N]) where N < 1000", "y[i] = if i > 0 { a[i] / (i as i32) } else { 0 };"),
        ("(a: i64[N]) -> (y: i64[N])", "y[i] = a[i] / (N as i64);"),
        ("(a: i32[N]) -> (y: i32[N]) where N <= 1000000", "y[i] = a[i] / (N as i32);"),
        ("(a: i32[N]) -> (y: i32[N]) where N <= 1000000", "y[i] = a[i] / (i as i32 + 1);"),
        ("(x: f32[N]) -> (y: f32[N]) where M == 2 * N", "y[i] = x[i * 2 / M];"),
    ] {
        accepted(head, body);
    }
}

/// An obligation is found through several levels, with conditions of the outermost reader.
#[test]
fn several_levels() {
    accepted(
        "(x: f32[N]) -> (y: f32[N])",
        "a[i] = x[i - 2]; b[i] = a[i] + a[i + 1]; y[i] = if i >= 2 && i + 1 < N { b[i] } else { 0.0 };",
    );
    accepted("(x: f32[M, K]) -> (y: f32[M])", "e[i, k] = exp(x[i, k]); s[i] = sum(|k| e[i, k]); y[i] = s[i];");
}

/// Sharing keeps the second walk small: 2^20 paths, 20 equations.
#[test]
fn many_paths_are_walked_once_each() {
    let mut body = "t0[i] = x[i - 30];".to_owned();
    for level in 1..20 {
        body += &format!("t{level}[i] = t{0}[i] + t{0}[i + 1];", level - 1);
    }
    body += "y[i] = if i >= 30 && i < N - 30 { t19[i] } else { 0.0 };";
    accepted("(x: f32[N]) -> (y: f32[N])", &body);
}

/// Kernels of the kind that people write, and what checking them costs.
#[test]
fn whole_kernels_are_checked_in_little_time() {
    let kernels = [
        (
            "(q: f32[H, S, 128], k: f32[H, S, 128], v: f32[H, S, 128], scale: f32) -> (o: f32[H, S, 128])",
            "s[h, i, j] = scale * dot(|d| q[h, i, d] * k[h, j, d]);
             m[h, i] = max(|j| s[h, i, j]);
             p[h, i, j] = exp(s[h, i, j] - m[h, i]);
             l[h, i] = sum(|j| p[h, i, j]);
             a[h, i, d] = sum(|j| p[h, i, j] * v[h, j, d]);
             o[h, i, d] = a[h, i, d] / l[h, i];",
        ),
        (
            "(x: f32[B, C, H, W], w: f32[O, C, 3, 3]) -> (y: f32[B, O, H, W])",
            "y[b, o, i, j] = sum(|c, r, s| (x[b, c, i + r - 1, j + s - 1] or 0.0) * w[o, c, r, s]);",
        ),
        (
            "(x: f32[H, W]) -> (y: f32[H - 2, W - 2])",
            "bx[i, j] = x[i, j] + x[i, j + 1] + x[i, j + 2]; y[i, j] = bx[i, j] + bx[i + 1, j] + bx[i + 2, j];",
        ),
        (
            "(x: f32[M, N]) -> (mean: f32[M], m2: f32[M]) where N >= 1",
            "(mean, m2)[i] = fold(|j| init (0.0, 0.0), step (m, s) => (m + x[i, j], s + x[i, j] * x[i, j]),
                                  merge ((a, b), (c, d)) => (a + c, b + d));",
        ),
        (
            "(x: f32[B, S, D], table: f32[V, D], pos: i32[B, S]) -> (y: f32[B, S, D])",
            "y[b, t, d] = x[b, t, d] + (table[pos[b, t], d] or 0.0);",
        ),
    ];
    for (head, body) in kernels {
        let said = accepted(head, body);
        // Unoptimised and on a busy machine; a hang is what this is about.
        assert!(said.time.as_millis() < 500, "{:?} {body}", said.time);
        println!("{:?} {head}", said.time);
    }
}

/// The index that a search gives is a `u32`: what a launch has to check for that, from where the range can end.
#[test]
fn launches_check_where_searches_end() {
    for (head, body, needed) in [
        ("(x: f32[M, N]) -> (y: u32[M]) where N >= 1", "y[i] = argmax(|j| x[i, j]);", vec!["N <= 4294967296"]),
        ("(x: f32[M, N]) -> (y: u32[M]) where N >= 1, N <= 70", "y[i] = argmax(|j| x[i, j]);", vec![]),
        ("(x: f32[N]) -> (y: u32[N])", "y[i] = argmin(|j in 0..=i| x[j]);", vec!["N <= 4294967296"]),
        ("(x: f32[N]) -> (y: u32[N])", "y[i] = argmin(|j in i..i + 3| x[j] or 0.0);", vec!["N + 2 <= 4294967296"]),
        (
            "(x: f32[M, N]) -> (y: u32[M], z: u32[N]) where M >= 1, N >= 1",
            "y[i] = argmax(|j| x[i, j]); z[j] = argmin(|i| x[i, j]) + argmax(|i| x[i, j]);",
            vec!["N <= 4294967296", "M <= 4294967296"],
        ),
    ] {
        let said = accepted(head, body);
        let texts: Vec<&str> = said.places.iter().map(|c| &*c.text).collect();
        assert_eq!(texts, needed, "{head} {body}");
    }
}

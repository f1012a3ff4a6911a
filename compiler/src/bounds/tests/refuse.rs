//! Kernels that are wrong or undecided, and the words for it.

use expect_test::expect;

use super::refused;

#[test]
fn messages() {
    let kernels = [
        ("(x: f32[H, W]) -> (y: f32[H, W])", "y[i, j] = x[i, j + 3];"),
        ("(x: f32[H, W]) -> (y: f32[H, W])", "y[i, j] = x[i - 1, j];"),
        ("(x: f32[H, W]) -> (y: f32[H - 2, W])", "y[i, j] = sum(|r in 0..4| x[i + r, j]);"),
        ("(x: f32[N], z: f32[M]) -> (y: f32[M])", "y[i] = x[i] + z[i];"),
        ("(x: f32[N]) -> (y: f32[8])", "y[i] = x[i];"),
        ("(x: f32[8]) -> (y: f32[2])", "y[i] = x[i * 8];"),
        ("(x: f32[N / 4, 4]) -> (y: f32[N])", "y[k] = x[k / 4, k % 4];"),
        ("(x: f32[N]) -> (y: f32[N])", "t[i] = x[i + 1]; y[i] = t[i];"),
        ("(x: f32[N]) -> (y: f32[N])", "t[i in 0..N - 1] = x[i]; y[i] = t[i];"),
        ("(x: f32[N], c: f32[N]) -> (y: f32[N])", "y[i] = if c[i] > 0.0 { x[i + 1] } else { x[i] };"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = if i % 7 == 6 { x[i + 1] } else { x[i] };"),
        ("(x: f32[N], z: f32[M]) -> (y: f32[N]) where N * N <= M * M", "y[i] = x[i] + z[i];"),
    ];
    let text: Vec<String> = kernels.iter().map(|(head, body)| refused(head, body)).collect();
    expect![[r#""#]].assert_eq(&text.join("\n"));
}

#[test]
fn other_obligations() {
    let kernels = [
        ("(x: f32[M, N]) -> (y: u32[M])", "y[i] = argmax(|j| x[i, j]);"),
        ("(x: f32[N]) -> (y: u32[N])", "y[i] = argmin(|j in 0..i| x[j]);"),
        ("(a: i32[N], b: i32[N]) -> (y: i32[N])", "y[i] = a[i] / b[i];"),
        ("(a: i32[N]) -> (y: i32[N])", "y[i] = a[i] / (i as i32);"),
        ("(a: i32[N]) -> (y: i32[N])", "y[i] = a[i] % (N as i32);"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = x[i / (N - 3)];"),
    ];
    let text: Vec<String> = kernels.iter().map(|(head, body)| refused(head, body)).collect();
    expect![[r#""#]].assert_eq(&text.join("\n"));
}

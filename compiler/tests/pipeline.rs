//! The whole road from source text to PTX, on small kernels.

use tilewright_compiler::compile;
use tilewright_compiler::diag::Renderer;
use tilewright_compiler::syntax::{TokenBuffer, TokenMap};

/// Compiles source text: what every kernel became, or the report.
fn run(source: &str) -> Result<Vec<tilewright_kernel::KernelInfo>, String> {
    let stream = source.parse().expect("Rust tokens");
    let (tokens, spans) = TokenBuffer::new(stream);
    let outcome = compile(&tokens);
    let map = TokenMap { tokens: &tokens, spans: &spans, locate: |_| None };
    if outcome.diagnostics.has_errors() {
        return Err(Renderer::new(&map).report(&outcome.diagnostics.finish()));
    }
    Ok(outcome.kernels.into_iter().map(|k| k.info.expect("no error, so a kernel")).collect())
}

const SAXPY: &str = "
    pub kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])
    where N % 4 == 0
    {
        z[i] = a * x[i] + y[i];
        launch threads(256);
        schedule z {
            split i by 4 -> io, v;
            split io by 256 -> b, t;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
    }";

#[test]
fn saxpy_compiles() {
    let kernels = run(SAXPY).unwrap_or_else(|report| panic!("{report}"));
    println!("{}\n{}", kernels[0].explanation, kernels[0].ptx.text);
}

#[test]
fn others() {
    for source in [
        "kernel Scale(x: f32[B, M, 64; sb, sm, 1]) -> (y: f32[B, M, 64]) where sm % 4 == 0, sb % 4 == 0 {
            y[b, m, n] = 2.0 * x[b, m, n];
            launch threads(128);
            schedule y { merge m, n -> mn; split mn by 4 -> q, v; merge b, q -> r; split r by 128 -> g, t; bind g: grid; bind t: thread; vectorize v; } }",
        "kernel Scale(x: f32[B, M, 64; sb, sm, 1]) -> (y: f32[B, M, 64]) where sm % 4 == 0 {
            y[b, m, n] = 2.0 * x[b, m, n];
            launch threads(128);
            schedule y { merge m, n -> mn; split mn by 4 -> q, v; merge b, q -> r; split r by 128 -> g, t; bind g: grid; bind t: thread; vectorize v; } }",
        "kernel Scale(x: f32[B, M, 64; sb, sm, 1]) -> (y: f32[B, M, 64]) where sm % 4 == 0, sb % 4 == 0 {
            y[b, m, n] = 2.0 * x[b, m, n];
            launch threads(128);
            schedule y { merge m, n -> mn; split mn by 24 -> q, v; merge b, q -> r; split r by 128 -> g, t; bind g: grid; bind t: thread; vectorize v; } }",
        "kernel RowSum(x: f32[M, N]) -> (y: f32[M]) { y[i] = sum(|j| x[i, j]); schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; split j by 4 -> jo, ji; unroll ji; } }",
        "kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N]) { z[i] = a * x[i] + y[i]; launch threads(256);
            schedule z { split i by 4 -> io, v; split io by 256 -> b, t; bind b: grid; bind t: thread; vectorize v; } }",
        "kernel Blur(x: f32[H, W]) -> (y: f32[H, W]) { y[i, j] = (x[i - 1, j] or 0.0) + (x[i + 1, j] or 0.0) + exp(x[i, j]); launch threads(32); schedule y { split j by 32 -> jo, t; bind i, jo: grid; bind t: thread; } }",
    ] {
        match run(source) {
            Ok(kernels) => println!("{}\n{}", kernels[0].explanation, kernels[0].ptx.text),
            Err(report) => println!("{report}"),
        }
    }
}

//! A sum of squares with weights, for which the mean of the terms is not what it takes.

tilewright::schedule! {
    kernel Weighted(x: f32[M, N], w: f32[M, N]) -> (y: f32[M]) {
        mean[i] = sum(|j| x[i, j]) / N as f32;
        y[i] = online sum(|j| w[i, j] * (x[i, j] - mean[i]) * (x[i, j] - mean[i]));
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule mean in registers per thread at y.t { split j by 4 -> jo, ji; unroll ji; }
    }
}

fn main() {}

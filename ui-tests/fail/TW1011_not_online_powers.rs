//! Third powers about a mean, whose correction needs the squares.

tilewright::schedule! {
    kernel Skewness(x: f32[M, N]) -> (y: f32[M]) {
        mean[i] = sum(|j| x[i, j]) / N as f32;
        y[i] = online sum(|j| pow(x[i, j] - mean[i], 3));
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule mean in registers per thread at y.t { split j by 4 -> jo, ji; unroll ji; }
    }
}

fn main() {}

//! A mean whose terms come in a fixed order.

tilewright::schedule! {
    kernel Variance(x: f32[M, N]) -> (y: f32[M]) {
        s[i] = ordered sum(|j| x[i, j]);
        mean[i] = s[i] / N as f32;
        v[i] = online sum(|j| (x[i, j] - mean[i]) * (x[i, j] - mean[i]));
        y[i] = v[i] / N as f32;
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule s in registers per thread at y.t {
            split j by 4 -> jo, ji;
            unroll ji;
            online s -> v over jo;
        }
    }
}

fn main() {}

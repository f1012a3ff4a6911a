//! An exponential that could be infinite with an early extreme.

tilewright::schedule! {
    kernel LogSumExp(x: f32[M, N]) -> (y: f32[M]) {
        m[i] = max(|j| x[i, j]);
        l[i] = online sum(|j| exp(2.0 * x[i, j] - m[i]));
        y[i] = m[i] + log(l[i]);
        launch threads(128);
        schedule y { split i by 4 -> b, t; bind b: grid; bind t: thread; }
        schedule m in shared at y.b { split j by 512 -> jo, j1; split j1 by 128 -> v, t; bind t: thread; reduce t; online m -> l over jo; }
    }
}

fn main() {}

//! A fold, whose steps have an order.

tilewright::schedule! {
    kernel Decay(x: f32[M, N]) -> (y: f32[M]) {
        m[i] = max(|j| x[i, j]);
        l[i] = fold(|j| init 0.0f32, step s => 0.5 * s + exp(x[i, j] - m[i]));
        y[i] = m[i] + log(l[i]);
        launch threads(128);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule m in registers per thread at y.t { online m -> l over j; }
    }
}

fn main() {}

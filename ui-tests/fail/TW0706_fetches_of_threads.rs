//! All threads of a block wait together for what they fetch: not in the loops of one of them.

tilewright::schedule! {
    kernel Inner(x: f32[N, 40]) -> (y: f32[N]) {
        h[i, k] = x[i, k] * x[i, 39 - k];
        y[i] = sum(|k| h[i, k]);
        launch threads(64);
        schedule y { split i by 64 -> b, t; split k by 8 -> ko, ki; bind b: grid; bind t: thread; }
        schedule h in shared per thread at y.ko { split k by 4 -> kq, kr; }
        stage xs[i, k] = x in shared per thread at h.kq via cp_async { }
    }
}

fn main() {}

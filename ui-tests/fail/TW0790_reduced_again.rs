//! An output read through an intermediate. A warning; denied here, so that it is seen.
#![deny(deprecated)]

tilewright::schedule! {
    #[allow(TW0491)]
    kernel Shifted(x: f32[M, N]) -> (top: f32[M], y: f32[M, N]) {
        top[i] = max(|j| x[i, j]);
        low[i] = top[i] - 1.0;
        y[i, j] = x[i, j] - low[i];
        launch threads(64);
        schedule top { split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule y { split i by 64 -> b, t; reorder b, t, j; bind b: grid; bind t: thread; }
    }
}

fn main() {}

//! Instances of threads are columns of a buffer, which have no spans to swizzle.

tilewright::schedule! {
    kernel Pick(x: f32[64, N], p: i32[64]) -> (y: f32[64, N]) {
        h[i, k] = x[k, i] * 2.0;
        y[k, i] = h[i, p[k]] or 0.0;
        launch threads(64);
        schedule y { reorder i, k; split i by 64 -> b, t; bind b: grid; bind t: thread; }
        schedule h in shared per thread at y.t { layout [i, k] swizzle 128; }
    }
}

fn main() {}

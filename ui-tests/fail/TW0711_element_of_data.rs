//! A register that data picks: memory has addresses.

tilewright::schedule! {
    kernel Pick(x: f32[40, N], p: i32[40]) -> (y: f32[40, N]) {
        h[i, k] = x[k, i] * 2.0;
        y[k, i] = h[i, p[k]] or 0.0;
        launch threads(64);
        schedule y { reorder i, k; split i by 64 -> b, t; bind b: grid; bind t: thread; unroll k; }
        schedule h in registers per thread at y.t { }
    }
}

fn main() {}

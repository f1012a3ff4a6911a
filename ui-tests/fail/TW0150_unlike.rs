//! An axis that `like` finds no counterpart of: the stage reads no dimension alone that the model reads alone.

tilewright::schedule! {
    kernel Blur(x: f32[N]) -> (y: f32[N - 2]) where N >= 3 {
        h[i] = x[i] * 0.5;
        y[i] = h[i] + h[i + 2];
        launch threads(128);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule h in shared at y.b { split i by 32 -> q, r; reorder t, q; }
    }

    kernel Shift(x: f32[N], z: f32[M]) -> (y: f32[N - 2]) where N >= 3 {
        h[k, m] = x[k + 1] * z[m];
        y[i] = sum(|m in 0..M| h[i, m]) + x[i + 2];
        launch threads(128);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule h in registers at y.b { like y; unroll t; }
    }
}

fn main() {}

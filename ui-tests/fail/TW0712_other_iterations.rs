//! An output beside one that has other blocks.

tilewright::schedule! {
    kernel Scale(x: f32[M, N]) -> (top: f32[M], y: f32[M, N]) {
        m[i] = max(|j| abs(x[i, j]));
        top[i] = m[i];
        y[i, j] = x[i, j] / m[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule top at y.i { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule m in registers at y.i { like y; reduce t; }
    }
}

fn main() {}

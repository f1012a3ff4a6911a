//! An axis that `like` finds no counterpart of: the model reads the dimension at a shifted index.

tilewright::schedule! {
    kernel Shift(x: f32[M, 8]) -> (y: f32[M - 1, 8]) where M >= 2 {
        h[k, m] = x[k, m] * 0.5;
        y[i, m] = h[i + 1, m];
        launch threads(64);
        schedule y { split i by 8 -> b, r; bind b: grid; bind r, m: thread; }
        schedule h in shared at y.b { like y; bind r: thread; }
    }
}

fn main() {}

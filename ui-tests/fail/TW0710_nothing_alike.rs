//! A model that has no loops, and one without a common axis.

tilewright::schedule! {
    kernel Shift(x: f32[M, N]) -> (y: f32[M, N]) {
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule m in registers at y.i { like x; reduce t; }
    }
}

tilewright::schedule! {
    kernel Add(w: f32[K], x: f32[M, N]) -> (y: f32[M, N]) {
        s[o] = sum(|k| w[k]);
        y[i, j] = x[i, j] + s[0];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule s in registers at y.i { like y; }
    }
}

fn main() {}

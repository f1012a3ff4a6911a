//! A strided tile of an axis that has no box.

tilewright::schedule! {
    kernel Scale(x: f32[M, 64]) -> (y: f32[M, 64]) {
        y[i, j] = 2.0 * x[i, j];
        launch threads(64);
        schedule y { split i by 8 -> b, r; bind b: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.b via tma { box i by 8 -> ic, ib; tile j by 2 -> jt, js; }
    }
}

fn main() {}

//! A copy for a stage that is not there, of a tensor that the second stage reads.

tilewright::schedule! {
    kernel Both(x: f32[M, 64], z: f32[M, 64]) -> (y: f32[M, 64], w: f32[M, 64]) {
        y[i, j] = 2.0 * x[i, j];
        w[i, j] = 2.0 * z[i, j];
        launch threads(64);
        schedule y { split i by 8 -> yb, yr; bind yb: grid; bind j: thread; }
        schedule w { split i by 8 -> wb, wr; bind wb: grid; bind j: thread; }
        stage zs[i, j] = z in shared via tma { box i by 8 -> ic, ib; box j by 64 -> jc, jb; }
    }
}

fn main() {}

//! Two copies for one read.

tilewright::schedule! {
    kernel Scale(x: f32[64]) -> (y: f32[64]) {
        y[i] = 2.0 * x[i];
        launch threads(32);
        schedule y { split i by 32 -> io, t; bind io: grid; bind t: thread; }
        stage xa[i] = x in shared at y.io via tma { box i by 32 -> c, b; }
        stage xb[i] = x in shared at y.io via tma { box i by 32 -> c, b; }
    }
}

fn main() {}

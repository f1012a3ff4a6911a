//! A staged output whose rows are not known to be multiples of 16 bytes.

tilewright::schedule! {
    kernel Copy(x: f32[N]) -> (y: f32[N]) {
        y[i] = x[i];
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        stage ys[i] = y in shared at y.b via tma { box i by 128 -> c, e; }
    }
}

fn main() {}

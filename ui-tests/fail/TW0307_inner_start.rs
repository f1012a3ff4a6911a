//! A staged copy that does not start at a multiple of 16 bytes.

tilewright::schedule! {
    kernel Shift(x: f32[N]) -> (y: f32[N]) {
        y[i] = x[i + 1] or 0.0;
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
        stage xs[i] = x in shared at y.b via tma { box i by 256 -> c, e; }
    }
}

fn main() {}

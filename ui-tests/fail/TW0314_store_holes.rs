//! A staged output whose boxes hold elements of other instances.

tilewright::schedule! {
    kernel Copy(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
        y[i] = x[i];
        schedule y { split i by 96 -> b, t; bind b: grid; bind t: thread; }
        stage ys[i] = y in shared at y.b via tma { box i by 64 -> c, e; }
    }
}

fn main() {}

//! A staged output of which an instance does not compute all.

tilewright::schedule! {
    kernel Copy(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
        y[i] = x[i];
        schedule y {
            split i by 4 -> io, q;
            split io by 32 -> b, t;
            reorder b, q, t;
            bind b: grid;
            bind t: thread;
        }
        stage ys[i] = y in shared at y.q via tma { box i by 128 -> c, e; }
    }
}

fn main() {}

//! A staged copy of something that is not a tile.

tilewright::schedule! {
    kernel Gather(x: f32[N], p: i32[N]) -> (y: f32[N]) {
        y[i] = x[p[i]] or 0.0;
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
        stage xs[i] = x in shared at y.b via tma { box i by 256 -> c, e; }
    }
}

fn main() {}

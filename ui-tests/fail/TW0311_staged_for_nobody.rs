//! A staged copy that its reader does not read.

tilewright::schedule! {
    kernel Two(x: f32[N], w: f32[N]) -> (y: f32[N], z: f32[N]) {
        y[i] = 2.0 * x[i];
        z[i] = 2.0 * w[i];
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
        schedule z { split i by 256 -> b, t; bind b: grid; bind t: thread; }
        stage xs[i] = x in shared at z.b via tma { box i by 256 -> c, e; }
    }
}

fn main() {}

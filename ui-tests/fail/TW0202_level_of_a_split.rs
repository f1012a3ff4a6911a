//! A factor of several is 0.

tilewright::schedule! {
    kernel Copy(x: f32[M]) -> (y: f32[M]) {
        y[i] = x[i];
        schedule y { split i by 256, 0, 4 -> b, w, t, v; bind b: grid; }
    }
}

fn main() {}

//! Fewer axes than the factors make.

tilewright::schedule! {
    kernel Copy(x: f32[M]) -> (y: f32[M]) {
        y[i] = x[i];
        schedule y { split i by 256, 64, 4 -> b, w, t; bind b: grid; }
    }
}

fn main() {}

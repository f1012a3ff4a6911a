//! An index that is not quasi-affine.

tilewright::schedule! {
    kernel Squares(x: f32[N]) -> (y: f32[N]) {
        y[i] = x[i * i] or 0.0;
    }
}

fn main() {}

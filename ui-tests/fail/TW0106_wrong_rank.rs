//! A wrong number of indices.

tilewright::schedule! {
    kernel Copy(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = x[i];
    }
}

fn main() {}

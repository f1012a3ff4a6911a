//! A tuple of the wrong length.

tilewright::schedule! {
    kernel Moments(x: f32[M, N]) -> (a: f32[M], b: f32[M]) {
        (a, b)[i] = sum(|j| x[i, j]);
    }
}

fn main() {}

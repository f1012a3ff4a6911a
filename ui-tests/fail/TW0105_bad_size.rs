//! Something that is no size, or strides that do not match the sizes.

tilewright::schedule! {
    kernel Copy(x: f32[M, N; s]) -> (y: f32[M, N]) {
        y[i, j] = x[i, j];
    }
}

fn main() {}

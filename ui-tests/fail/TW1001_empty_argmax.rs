//! An argmax or argmin over a range that may be empty.

tilewright::schedule! {
    kernel Best(x: f32[M, N]) -> (y: u32[M]) {
        y[i] = argmax(|j| x[i, j]);
    }
}

fn main() {}

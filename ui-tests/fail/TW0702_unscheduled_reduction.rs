//! An intermediate reduction without a schedule.

tilewright::schedule! {
    kernel Normalise(x: f32[M, N]) -> (y: f32[M, N]) {
        s[i] = sum(|k| x[i, k]);
        y[i, j] = x[i, j] / s[i];
    }
}

fn main() {}

//! A name defined twice.

tilewright::schedule! {
    kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|i| x[i, i]);
    }
}

fn main() {}

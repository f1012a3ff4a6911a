//! A loop over the result inside one over the terms that needs too many accumulators.

tilewright::schedule! {
    kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y { reorder j, i; }
    }
}

fn main() {}

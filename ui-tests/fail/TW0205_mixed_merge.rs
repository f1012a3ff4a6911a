//! An axis of the result merged with one of the reduction.

tilewright::schedule! {
    kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y { merge i, j -> ij; }
    }
}

fn main() {}

//! A construct that is planned and not built yet.

tilewright::schedule! {
    kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y {
            split j by 32 -> jo, ji;
            bind i: grid;
            reduce ji by cluster;
        }
    }
}

fn main() {}

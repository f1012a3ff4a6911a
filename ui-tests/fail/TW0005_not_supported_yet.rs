//! A construct that is planned and not built yet.

tilewright::schedule! {
    kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch threads(128);
        schedule y {
            split i by 128 -> b, t;
            bind b: grid;
            bind t: thread alternate;
        }
    }
}

fn main() {}

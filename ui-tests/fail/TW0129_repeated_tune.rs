//! Two statements with candidates.

tilewright::schedule! {
    kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        tune T in [128, 256];
        tune R in [1, 2];
        schedule y {
            split i by 2 -> ib, r; split j by T -> b, t; reorder ib, b, t, r; bind ib, b: grid; bind t: thread;
        }
    }
}

fn main() {}

//! A reduction axis given to several threads.

tilewright::schedule! {
    kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y { split j by 32 -> jo, t; bind i: grid; bind t: thread; }
    }
}

fn main() {}

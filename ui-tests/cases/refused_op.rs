//! An op that is refused is the only finding: what it would have changed is not reported as well.

tilewright::schedule! {
    kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y {
            split j by 32 -> jo, t;
            bind i: grid;
            bind t: thread;
            reduce t by cluster;
        }
    }
}

fn main() {}

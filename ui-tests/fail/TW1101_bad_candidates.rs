//! A constant without candidates, and candidates that are none.

tilewright::schedule! {
    kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        tune R in [], T in [128, 256, 128], W in [2u32, -1, R];
        schedule y {
            split i by R -> ib, r; split j by T -> b, t; split b by W -> bo, w; reorder ib, bo, t, r, w;
            bind ib, bo: grid; bind t: thread;
        }
    }
}

fn main() {}

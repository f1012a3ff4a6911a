//! A read with `or` that is always outside its tensor.
#![deny(warnings)]

tilewright::schedule! {
    kernel LastColumn(x: f32[M, N]) -> (y: f32[M]) {
        y[m] = x[m, -1] or 0.0;
        schedule y { split m by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

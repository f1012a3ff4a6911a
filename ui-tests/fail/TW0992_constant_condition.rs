//! A comparison of indices that always gives the same.
#![deny(warnings)]

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = if i < N { 2.0 * x[i] } else { 0.0 };
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

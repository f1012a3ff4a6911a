//! An `or` that is never taken.
#![deny(warnings)]

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * (x[i] or 0.0);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

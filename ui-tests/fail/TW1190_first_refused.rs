//! The first candidates give no kernel.
#![deny(deprecated)]

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        tune T in [4096, 2048, 256];
        schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

//! `allow` of a code that does not exist. A warning; denied here, so that it is seen.
#![deny(deprecated)]

tilewright::schedule! {
    #[allow(TW9)]
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

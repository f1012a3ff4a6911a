//! An input that nothing reads. A warning; denied here, so that it is seen.
#![deny(deprecated)]

tilewright::schedule! {
    #[allow(TW0691)]
    kernel Scale(a: f32, x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
    }
}

fn main() {}

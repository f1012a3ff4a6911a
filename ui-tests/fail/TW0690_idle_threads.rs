//! Threads of the block without work. A warning; denied here, so that it is seen.
#![deny(deprecated)]

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        launch threads(256);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

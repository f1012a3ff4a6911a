//! Threads of a role without work. A warning; denied here, so that it is seen.
#![deny(deprecated)]

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        launch roles { math: 4 warp };
        schedule y by math { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

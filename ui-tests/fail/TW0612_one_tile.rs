//! A persistent launch without an axis of the grid.

tilewright::schedule! {
    kernel Twice(x: f32[64]) -> (z: f32[64]) {
        z[i] = x[i] * 2.0;
        launch persistent, threads(64);
        schedule z { bind i: thread; }
    }
}

fn main() {}

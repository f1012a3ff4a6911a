//! An element written by several threads.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        launch threads(256);
        schedule y { bind i: grid; }
    }
}

fn main() {}

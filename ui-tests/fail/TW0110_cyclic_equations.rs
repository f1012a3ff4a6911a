//! Equations that need each other.

tilewright::schedule! {
    kernel Cycle(x: f32[N]) -> (y: f32[N]) {
        t[i] = y[i] + x[i];
        y[i] = 0.5 * t[i];
    }
}

fn main() {}

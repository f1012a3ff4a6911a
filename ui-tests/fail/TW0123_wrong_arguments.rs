//! A wrong number of arguments.

tilewright::schedule! {
    kernel Clamp(x: f32[N]) -> (y: f32[N]) {
        y[i] = min(x[i], 0.0, 1.0);
    }
}

fn main() {}

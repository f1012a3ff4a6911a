//! Two equations for one tensor.

tilewright::schedule! {
    kernel Clamp(x: f32[N]) -> (y: f32[N]) {
        y[i] = max(x[i], 0.0);
        y[i] = min(x[i], 1.0);
    }
}

fn main() {}

//! An equation for an input.

tilewright::schedule! {
    kernel Double(x: f32[N]) -> (y: f32[N]) {
        x[i] = 2.0;
        y[i] = x[i];
    }
}

fn main() {}

//! A name used as something that it is not.

tilewright::schedule! {
    kernel Ramp(x: f32[N]) -> (y: f32[N]) {
        y[i] = x[i] * i;
    }
}

fn main() {}

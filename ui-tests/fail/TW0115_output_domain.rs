//! A written domain that is not the output's shape.

tilewright::schedule! {
    kernel Inner(x: f32[N]) -> (y: f32[N]) {
        y[i in 1..N] = x[i];
    }
}

fn main() {}

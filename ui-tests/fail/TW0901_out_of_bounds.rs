//! A read outside its tensor.

tilewright::schedule! {
    kernel Difference(x: f32[N]) -> (y: f32[N]) {
        y[i] = x[i + 1] - x[i];
    }
}

fn main() {}

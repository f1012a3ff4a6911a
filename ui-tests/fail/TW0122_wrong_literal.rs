//! A literal that its type does not have.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2 * x[i];
    }
}

fn main() {}

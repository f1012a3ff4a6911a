//! A size or stride that no argument tells.

tilewright::schedule! {
    kernel Halves(x: f32[2 * H]) -> (y: f32[2 * H]) {
        y[i] = x[i];
    }
}

fn main() {}

//! A kernel that writes nothing.

tilewright::schedule! {
    kernel Double(x: f32[N]) {
        y[i] = 2.0 * x[i];
    }
}

fn main() {}

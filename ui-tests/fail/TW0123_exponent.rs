//! An exponent that is no literal.

tilewright::schedule! {
    kernel Power(x: f32[N]) -> (y: f32[N]) {
        y[i] = pow(x[i], 2.5);
    }
}

fn main() {}

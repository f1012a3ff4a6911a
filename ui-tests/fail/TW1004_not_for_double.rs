//! A function that does not exist for `f64` yet.

tilewright::schedule! {
    kernel Exp(x: f64[N]) -> (y: f64[N]) {
        y[i] = exp(x[i]);
    }
}

fn main() {}

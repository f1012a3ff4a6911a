//! An approximate function of `f64`.

tilewright::schedule! {
    kernel Exp(x: f64[N]) -> (y: f64[N]) {
        y[i] = approx::exp(x[i]);
    }
}

fn main() {}

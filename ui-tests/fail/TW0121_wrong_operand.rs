//! An operation that a type does not have.

tilewright::schedule! {
    kernel Exp(x: i32[N]) -> (y: i32[N]) {
        y[i] = exp(x[i]);
    }
}

fn main() {}

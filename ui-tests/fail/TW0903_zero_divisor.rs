//! An integer divisor that may be 0.

tilewright::schedule! {
    kernel Divide(a: i32[N], b: i32[N]) -> (y: i32[N]) {
        y[i] = a[i] / b[i];
    }
}

fn main() {}

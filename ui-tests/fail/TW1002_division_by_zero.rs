//! An integer divided by the literal 0.

tilewright::schedule! {
    kernel Wrap(x: i32[N]) -> (y: i32[N]) {
        y[i] = x[i] % 0;
    }
}

fn main() {}

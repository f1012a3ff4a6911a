//! A literal that is not a number of the language.

tilewright::schedule! {
    kernel Shift(x: i32[N]) -> (y: i32[N]) {
        y[i] = x[i] + 0.5i32;
    }
}

fn main() {}

//! The complement of C.

tilewright::schedule! {
    kernel Complement(x: u32[N]) -> (y: u32[N]) {
        y[i] = ~x[i];
    }
}

fn main() {}

//! An output passed by value.

tilewright::schedule! {
    kernel Sum(x: f32[N]) -> (y: f32) {
        y[] = sum(|k| x[k]);
    }
}

fn main() {}

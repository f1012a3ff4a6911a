//! A reduction that never has a term.
#![deny(warnings)]

tilewright::schedule! {
    kernel Corner(x: f32[N, 3]) -> (y: f32[N]) {
        y[i] = sum(|k in 2..2| x[i, k]);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

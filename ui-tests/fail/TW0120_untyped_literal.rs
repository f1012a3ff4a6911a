//! A literal whose type nothing fixes.

tilewright::schedule! {
    kernel Below(x: i32[N]) -> (y: bool[N]) {
        y[i] = 1.0 < 2.0;
    }
}

fn main() {}

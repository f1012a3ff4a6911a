//! An argmin over indices that begin below 0.

tilewright::schedule! {
    kernel Nearest(x: f32[N]) -> (y: u32[N]) {
        y[i] = argmin(|k in i - 1..i + 1| abs(x[k] or 0.0));
    }
}

fn main() {}

//! An axis whose range cannot be inferred.

tilewright::schedule! {
    kernel Pairs(x: f32[N]) -> (y: f32[M]) {
        y[i] = sum(|k| x[2 * k] or 0.0);
    }
}

fn main() {}

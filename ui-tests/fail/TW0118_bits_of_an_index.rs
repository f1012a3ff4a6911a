//! Bits of an axis, which has no type.

tilewright::schedule! {
    kernel Even(x: f32[N]) -> (y: f32[N]) {
        y[i] = x[i & 1] or 0.0;
    }
}

fn main() {}

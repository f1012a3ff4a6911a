//! Bits of a float, and a shift of a truth value.

tilewright::schedule! {
    kernel Bits(x: f32[N], m: bool[N]) -> (y: f32[N], z: bool[N]) {
        y[i] = x[i] & x[i];
        z[i] = m[i] << m[i];
    }
}

fn main() {}

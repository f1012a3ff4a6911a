//! Two types that must be one.

tilewright::schedule! {
    kernel Add(x: f32[N], z: f16[N]) -> (y: f32[N]) {
        y[i] = x[i] + z[i];
    }
}

fn main() {}

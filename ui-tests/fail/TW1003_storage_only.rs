//! Arithmetic on a type for storage.

tilewright::schedule! {
    kernel Add(x: tf32[N], z: tf32[N]) -> (y: f32[N]) {
        y[i] = (x[i] + z[i]) as f32;
    }
}

fn main() {}

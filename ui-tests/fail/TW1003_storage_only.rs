//! Arithmetic on a type for storage.

tilewright::schedule! {
    kernel Add(x: e4m3[N], z: e4m3[N]) -> (y: f32[N]) {
        y[i] = (x[i] + z[i]) as f32;
    }
}

fn main() {}

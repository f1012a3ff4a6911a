//! A `dot` that is not a sum of products.

tilewright::schedule! {
    kernel Dot(x: f16[N], z: f16[N]) -> (y: f32[]) {
        y[] = dot(|k| x[k] + z[k]);
    }
}

fn main() {}

//! A construct of Rust that the language does not have.

tilewright::schedule! {
    kernel Dot(x: f32[N], z: f32[N]) -> (y: f32[]) {
        y[] += x[k] * z[k];
    }
}

fn main() {}

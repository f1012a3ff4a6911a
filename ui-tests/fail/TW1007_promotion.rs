//! A promotion interval where there is none.

tilewright::schedule! {
    kernel Dot(x: f16[N], z: f16[N]) -> (y: f32[]) {
        y[] = dot(|k| x[k] * z[k], promote 128);
    }
}

fn main() {}

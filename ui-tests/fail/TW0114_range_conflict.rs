//! An axis that indexes dimensions of different sizes.

tilewright::schedule! {
    kernel Dot(x: f32[N], z: f32[M]) -> (y: f32[]) {
        y[] = sum(|k| x[k] * z[k]);
    }
}

fn main() {}

//! Something that is no index.

tilewright::schedule! {
    kernel Gather(x: f32[N], at: f32[M]) -> (y: f32[M]) {
        y[i] = x[at[i]] or 0.0;
    }
}

fn main() {}

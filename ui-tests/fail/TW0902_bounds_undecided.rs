//! A read that cannot be shown to stay inside its tensor.

tilewright::schedule! {
    kernel Add(x: f32[N], z: f32[M]) -> (y: f32[N])
    where N * N <= M * M
    {
        y[i] = x[i] + z[i];
    }
}

fn main() {}

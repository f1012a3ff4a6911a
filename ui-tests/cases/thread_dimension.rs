//! Dimensions of units, as CUDA has them.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 256 -> b, t; bind b: blockIdx.x; bind t: thread.x; }
    }
}

fn main() {}

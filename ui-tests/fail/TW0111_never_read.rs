//! An intermediate that nothing reads.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        t[i] = x[i] * x[i];
        y[i] = 2.0 * x[i];
    }
}

fn main() {}

//! Findings of one kernel are reported together, each at its place.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i]
        schedule y {
            splot i by 256 -> b, t;
            bind b: grid;
            bind t: thread;
        }
    }
}

fn main() {}

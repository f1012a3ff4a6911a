//! An extent that an op needs at compile time and nothing bounds.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { bind i: thread; }
    }
}

fn main() {}

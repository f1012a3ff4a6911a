//! A schedule for an input, or an inlined output.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule x { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

//! A second statement on the same thing.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 256 -> b, t; }
        schedule y { bind b: grid; bind t: thread; }
    }
}

fn main() {}

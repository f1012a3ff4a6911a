//! A unit bound inside a smaller one.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y {
            split i by 128 -> b, r;
            split r by 4 -> t, w;
            bind b: grid;
            bind t: thread;
            bind w: warp;
        }
    }
}

fn main() {}

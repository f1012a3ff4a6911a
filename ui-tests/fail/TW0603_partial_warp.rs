//! A block that is not made of whole warps.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        launch threads(100);
        schedule y {
            split i by 96 -> b, r;
            split r by 32 -> w, t;
            bind b: grid;
            bind w: warp;
            bind t: thread;
        }
    }
}

fn main() {}

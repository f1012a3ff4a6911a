//! A warpgroup inside a warp.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y {
            split i by 256 -> b, r;
            split r by 64 -> w, p;
            split p by 32 -> g, t;
            bind b: grid;
            bind g: warpgroup;
            bind w: warp;
            bind t: thread;
        }
    }
}

fn main() {}

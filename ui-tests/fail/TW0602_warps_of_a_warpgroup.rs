//! More warps than a warpgroup has.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        launch threads(512);
        schedule y {
            split i by 512 -> b, r;
            split r by 256 -> g, p;
            split p by 32 -> w, t;
            bind b: grid;
            bind g: warpgroup;
            bind w: warp;
            bind t: thread;
        }
    }
}

fn main() {}

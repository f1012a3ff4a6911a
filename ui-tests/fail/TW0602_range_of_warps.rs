//! More iterations than the range has warps.

tilewright::schedule! {
    kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        launch threads(256);
        schedule y {
            split i by 4 -> b, w;
            split j by 32 -> r, t;
            bind b: grid;
            bind w: warp 2..5;
            bind t: thread;
        }
    }
}

fn main() {}

//! A range of warps beyond those of the role.

tilewright::schedule! {
    kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = x[i, j] * 2.0;
        launch roles { math: 8 warp };
        schedule y by math {
            split i by 3 -> b, w;
            bind b: grid;
            bind w: warp 6..9;
            split j by 32 -> q, t;
            bind t: thread;
        }
    }
}

fn main() {}

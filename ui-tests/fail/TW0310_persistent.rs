//! Roles that would be ahead of each other by tiles, in a launch whose blocks take one tile each.

tilewright::schedule! {
    kernel Scale(x: f32[M, 64]) -> (y: f32[M, 64]) {
        y[i, j] = 2.0 * x[i, j];
        launch roles { load: warp, math: 2 warp };
        schedule y by math { split i by 8 -> b, r; bind b: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.b ring(2) via tma by load { box i by 8 -> ic, ib; box j by 64 -> jc, jb; }
    }
}

fn main() {}

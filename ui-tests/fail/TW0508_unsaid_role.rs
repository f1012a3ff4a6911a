//! Stages without a role, and a role without a stage.

tilewright::schedule! {
    kernel Unsaid(x: f32[M, 128]) -> (y: f32[M, 128]) {
        y[i, j] = x[i, j] * 2.0;
        launch roles { load: warp, math: 4 warp };
        schedule y  { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.ii ring(2) via tma by load { }
    }
}

tilewright::schedule! {
    kernel Idle(x: f32[M, 128]) -> (y: f32[M, 128]) {
        y[i, j] = x[i, j] * 2.0;
        launch roles { load: warp, math: 4 warp, more: warp };
        schedule y by math { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.ii ring(2) via tma by load { }
    }
}

fn main() {}

//! Warps that the roles of a block cannot have.

tilewright::schedule! {
    kernel Unaligned(x: f32[M, 128]) -> (y: f32[M, 128]) {
        y[i, j] = x[i, j] * 2.0;
        launch roles { load: warp, math: warpgroup };
        schedule y by math { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.ii ring(2) via tma by load { }
    }
}

tilewright::schedule! {
    kernel Many(x: f32[M, 128]) -> (y: f32[M, 128]) {
        y[i, j] = x[i, j] * 2.0;
        launch roles { load: 30 warp, math: 4 warp };
        schedule y by math { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.ii ring(2) via tma by load { }
    }
}

tilewright::schedule! {
    kernel Threads(x: f32[M, 128]) -> (y: f32[M, 128]) {
        y[i, j] = x[i, j] * 2.0;
        launch roles { load: 32 thread, math: 4 warp };
        schedule y by math { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.ii ring(2) via tma by load { }
    }
}

fn main() {}

//! A kernel of two roles.

tilewright::schedule! {
    pub kernel Twice(x: f32[M, 64]) -> (y: f32[M, 64]) {
        y[i, j] = x[i, j] * 2.0;
        launch roles { load: warpgroup regs(40), math: warpgroup regs(200) };
        schedule y by math { split i by 8 -> ib, ii; bind ib: grid; split ii by 2 -> i1, i2; split j by 64 -> jo, jt;
            reorder ib, i1, i2, jo, jt; bind i2: 2 warp; bind jt: thread; }
        stage xs[i, j] = x in shared at y.i1 ring(2) via tma by load { }
    }
}

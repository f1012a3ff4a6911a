//! Registers that the roles of a block cannot have.

tilewright::schedule! {
    kernel Pool(x: f32[M, 128]) -> (y: f32[M, 128]) {
        y[i, j] = x[i, j] * 2.0;
        launch roles { load: 2 warpgroup regs(240), math: warpgroup regs(240) };
        schedule y by math { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.ii ring(2) via tma by load { }
    }
}

tilewright::schedule! {
    kernel Step(x: f32[M, 128]) -> (y: f32[M, 128]) {
        y[i, j] = x[i, j] * 2.0;
        launch roles { load: warpgroup regs(44), math: warpgroup };
        schedule y by math { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.ii ring(2) via tma by load { }
    }
}

tilewright::schedule! {
    kernel Part(x: f32[M, 128]) -> (y: f32[M, 128]) {
        y[i, j] = x[i, j] * 2.0;
        launch roles { load: warp, math: warp regs(64) };
        schedule y by math { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
        stage xs[i, j] = x in shared at y.ii ring(2) via tma by load { }
    }
}

fn main() {}

//! What one role holds where another one cannot read it.

tilewright::schedule! {
    kernel Registers(x: f32[M, 64]) -> (y: f32[M, 64]) {
        s[i] = sum(|j| x[i, j]);
        y[i, j] = x[i, j] - s[i];
        launch roles { math: 2 warp, sums: warp };
        schedule y by math { split i by 4 -> ib, ii; bind ib: grid; bind j: thread; }
        schedule s in registers at y.ii by sums { split j by 32 -> jo, jt; bind jt: thread; reduce jt; }
    }
}

tilewright::schedule! {
    kernel Warps(x: f32[M, 64]) -> (y: f32[M, 64]) {
        s[i] = sum(|j| x[i, j]);
        y[i, j] = x[i, j] - s[i];
        launch roles { math: 2 warp, sums: 2 warp };
        schedule y by math { split i by 4 -> ib, ii; bind ib: grid; split j by 32 -> w, t; bind w: warp; bind t: thread; }
        schedule s in shared per warp at y.ii by sums { split j by 32 -> jo, jt; bind jt: thread; reduce jt; }
    }
}

fn main() {}

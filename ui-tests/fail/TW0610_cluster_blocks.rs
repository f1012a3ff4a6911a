//! Clusters whose blocks are not those that the axes count.

tilewright::schedule! {
    kernel Fewer(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j] + y[i, j];
        launch cluster(4), threads(64);
        schedule z { bind i: grid; split j into 2 -> c, r; bind c: cta; split r by 64 -> q, t; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Alike(x: f32[N]) -> (z: f32[N]) {
        z[i] = x[i] * 2.0;
        launch cluster(2), threads(64);
        schedule z { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Many(x: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j] * 2.0;
        launch threads(64);
        schedule z { bind i: grid; split j into 16 -> c, r; bind c: cta; split r by 64 -> q, t; bind t: thread; }
    }
}

fn main() {}

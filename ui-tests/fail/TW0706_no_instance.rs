//! Places where no stage can stand: side by side, in no loop, in an unknown one, in each other.

tilewright::schedule! {
    kernel BesideThreads(x: f32[M, N]) -> (y: f32[M, N]) {
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule m in registers at y.t { split j by 128 -> r, t; bind t: thread; reduce t; }
    }
}

tilewright::schedule! {
    kernel NoLoop(x: f32[M, N]) -> (y: f32[M, N]) {
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule m in registers { like y; reduce t; }
    }
}

tilewright::schedule! {
    kernel UnknownLoop(x: f32[M, N]) -> (y: f32[M, N]) {
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule m in registers at y.k { reduce j; }
    }
}

tilewright::schedule! {
    kernel InItself(x: f32[M, N]) -> (y: f32[M, N]) {
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule m in registers at m.i { bind j: thread; }
    }
}

tilewright::schedule! {
    kernel Each(x: f32[M, N]) -> (y: f32[M, N], z: f32[M, N]) {
        y[i, j] = x[i, j] + 1.0;
        z[i, j] = x[i, j] - 1.0;
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule z at y.t { like y; }
    }
}

tilewright::schedule! {
    kernel NoWarps(x: f32[M, N]) -> (y: f32[M, N]) where N <= 1024 {
        h[i, j] = x[i, j] * 0.5;
        y[i, j] = h[i, N - 1 - j];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule h in shared per warp at y.i { bind j: thread; }
    }
}

fn main() {}

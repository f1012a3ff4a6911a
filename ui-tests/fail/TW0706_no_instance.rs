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

fn main() {}

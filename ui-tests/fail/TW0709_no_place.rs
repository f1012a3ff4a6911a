//! A stage without memory, and one in memory that other blocks would wait for.

tilewright::schedule! {
    kernel NoMemory(x: f32[M, N]) -> (y: f32[M, N]) {
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule m at y.i { like y; reduce t; }
    }
}

tilewright::schedule! {
    kernel InGlobal(x: f32[M, N]) -> (y: f32[M, N]) {
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule m in global { like y; reduce t; }
    }
}

fn main() {}

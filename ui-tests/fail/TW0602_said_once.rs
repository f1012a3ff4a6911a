//! One wrong number of threads, in a stage that others are `like`: one error.

tilewright::schedule! {
    kernel Softmax(x: f32[M, N]) -> (y: f32[M, N])
    where N <= 4096
    {
        m[i] = max(|j| x[i, j]);
        e[i, j] = exp(x[i, j] - m[i]);
        s[i] = sum(|j| e[i, j]);
        y[i, j] = e[i, j] / s[i];
        launch threads(256);
        schedule y { bind i: grid; split j by 512 -> r, t; bind t: thread; unroll r; }
        schedule e in registers at y.i { like y; }
        schedule m in registers at y.i { like e; reduce t; }
        schedule s in registers at y.i { like y; reduce t; }
    }
}

fn main() {}

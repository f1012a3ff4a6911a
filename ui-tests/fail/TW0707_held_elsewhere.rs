//! An element held by one thread and read by another.

tilewright::schedule! {
    kernel Normalise(x: f32[M, N]) -> (y: f32[M, N]) where N % 8 == 0, N <= 4096 {
        e[i, j] = exp(x[i, j]);
        s[i] = sum(|j| e[i, j]);
        y[i, j] = e[i, j] / s[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 4 -> jo, v; split jo by 128 -> r, t; bind t: thread; vectorize v; unroll r; }
        schedule e in registers at y.i { split j by 8 -> jo, v; split jo by 128 -> r, t; bind t: thread; }
        schedule s in registers at y.i { like y; reduce t; }
    }
}

fn main() {}

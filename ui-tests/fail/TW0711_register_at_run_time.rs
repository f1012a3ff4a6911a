//! A loop that decides which register is read.

tilewright::schedule! {
    kernel Normalise(x: f32[M, N]) -> (y: f32[M, N]) where N <= 4096 {
        e[i, j] = exp(x[i, j]);
        s[i] = sum(|j| e[i, j]);
        y[i, j] = e[i, j] / s[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule e in registers at y.i { like y; }
        schedule s in registers at y.i { like y; reduce t; }
    }
}

fn main() {}

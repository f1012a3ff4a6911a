//! A row that does not fit the registers of the threads that share it.

tilewright::schedule! {
    kernel Shift(x: f32[M, N]) -> (y: f32[M, N]) where N <= 65536 {
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; unroll r; }
        stage xr[i, j] = x in registers at y.i { like y; }
        schedule m in registers at y.i { like y; reduce t; }
    }
}

fn main() {}

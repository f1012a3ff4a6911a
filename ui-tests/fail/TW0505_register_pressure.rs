//! Stages that fit one by one, and not at one time: of a thread's 255 registers, and of its share in a large block.

tilewright::schedule! {
    kernel Rows(x: f32[M, N]) -> (y: f32[M, N]) where N <= 16384 {
        m[i] = max(|j| x[i, j]);
        e[i, j] = exp(x[i, j] - m[i]);
        s[i] = sum(|j| e[i, j]);
        y[i, j] = e[i, j] / s[i] + x[i, j];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; unroll r; }
        stage xr[i, j] = x in registers at y.i { like y; }
        schedule e in registers at y.i { like y; }
        schedule m in registers at y.i { like y; reduce t; }
        schedule s in registers at y.i { like y; reduce t; }
    }

    kernel Wide(x: f32[M, N]) -> (y: f32[M, N]) where N <= 81920 {
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        launch threads(1024);
        schedule y { bind i: grid; split j by 1024 -> r, t; bind t: thread; unroll r; }
        stage xr[i, j] = x in registers at y.i { like y; }
        schedule m in registers at y.i { like y; reduce t; }
    }
}

fn main() {}

//! A construct that is planned and not built yet.

tilewright::schedule! {
    kernel Shift(x: f32[M, 4096]) -> (y: f32[M, 4096]) {
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        schedule y {
            split j into 2 -> c, jc; split jc by 128 -> r, t; bind i: grid; bind c: cta; bind t: thread;
        }
        schedule m in shared per cluster at y.i { like y; reduce t; reduce c by cluster; }
    }
}

fn main() {}

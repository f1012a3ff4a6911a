//! Neighbouring threads that access global memory far apart. A warning; denied here, so that it is seen.
#![deny(deprecated)]

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 4 -> io, v; split io by 256 -> b, t; bind b: grid; bind t: thread; }
    }
    kernel Columns(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        schedule y { merge j, i -> ji; split ji by 256 -> b, t; bind b: grid; bind t: thread; }
    }
    kernel Rows(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
    kernel Transpose(x: f32[M, N]) -> (y: f32[N, M]) {
        y[j, i] = x[i, j];
        schedule y { merge j, i -> ji; split ji by 256 -> b, t; bind b: grid; bind t: thread; }
    }
    kernel EachRow(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

//! Work of any size for one block or one thread. A warning; denied here, so that it is seen.
#![deny(deprecated)]

tilewright::schedule! {
    kernel Elements(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = 2.0 * x[i, j]; }
    kernel Rows(x: f32[M, N]) -> (y: f32[M]) { y[i] = sum(|j| x[i, j]); }
    kernel Columns(x: f32[M, N]) -> (y: f32[N]) { y[j] = sum(|i| x[i, j]); }
    kernel All(x: f32[N]) -> (y: f32[]) { y[] = max(|i| x[i]); }
    kernel NoBlocks(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 256 -> b, t; bind t: thread; }
    }
    kernel NoThreads(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y { bind i: grid; }
    }
    kernel NoOther(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { bind i: grid; }
    }
}

fn main() {}

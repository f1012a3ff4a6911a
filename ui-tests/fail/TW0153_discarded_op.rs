//! Ops on axes that later ops replace.

tilewright::schedule! {
    kernel Bound(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { bind i: grid; split i by 256 -> b, t; bind t: thread; }
    }
    kernel Merged(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        schedule y { bind i: grid; merge i, j -> ij; split ij by 256 -> b, t; bind b: grid; bind t: thread; }
    }
    kernel Unrolled(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y {
            split i by 1024 -> b, r; bind b: grid;
            unroll r;
            split r by 256 -> r1, t; bind t: thread;
        }
    }
    kernel Reduced(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y { reduce j; bind i: grid; split j by 256 -> r, t; bind t: thread; reduce t; }
    }
}

fn main() {}

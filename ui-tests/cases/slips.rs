//! Slips of the pen, each answered where it is and with what was meant.

tilewright::schedule! {
    kernel Arrow(x: f32[N]) => (y: f32[N]) { y[i] = x[i]; }
}

tilewright::schedule! {
    kernel Were(x: f32[N]) -> (y: f32[N]) were N >= 1 { y[i] = x[i]; }
}

tilewright::schedule! {
    kernel Facts(x: f32[N, M]) -> (y: f32[N, M]) where N = 4, M => 1 { y[i, j] = x[i, j]; }
}

tilewright::schedule! {
    kernel Comma(x: f32[M N]) -> (y: f32[M, N]) { y[i, j] = x[i, j]; }
}

tilewright::schedule! {
    kernel Indices(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = x[i][j]; }
}

tilewright::schedule! {
    kernel Misplaced(x: f32[N]) -> (y: f32[N]) {
        y[i] = x[i];
        threads(32);
        schedule y { launch threads(32); }
    }
}

tilewright::schedule! {
    kernel Called(x: f32[M, N], w: f32[N]) -> (y: f32[M], z: f32[M], u: f32[M]) {
        y[i] = sum(x, w);
        z[i] = x(i, 0);
        s[i] = sum(|j| x[i, j]);
        u[i] = S[i];
        schedule y { bind i: warps; }
    }
}

fn main() {}

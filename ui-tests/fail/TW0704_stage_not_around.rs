//! A stage read outside the loop that it stands in, and one that nobody reads there.

tilewright::schedule! {
    kernel Scale(x: f32[M, N]) -> (top: f32[M], y: f32[M, N]) {
        m[i] = max(|j| abs(x[i, j]));
        top[i] = m[i];
        y[i, j] = x[i, j] / m[i];
        launch threads(128);
        schedule top { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule m in registers at y.i { like y; reduce t; }
    }
}

tilewright::schedule! {
    kernel Twice(x: f32[N]) -> (y: f32[N], z: f32[N]) {
        h[i] = x[i] * 0.5;
        y[i] = x[i] + 1.0;
        z[i] = h[i] + 1.0;
        launch threads(128);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule z { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule h in shared at y.b { bind i: thread; }
    }
}

tilewright::schedule! {
    kernel Through(x: f32[M, N]) -> (y: f32[M, N]) where N <= 4096 {
        y[i, j] = x[i, j] + 1.0;
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        stage ys[i, j] = y in shared at y.i { split j by 128 -> r, t; bind t: thread; }
    }
}

// Where the other output can run, it would still not see it.
tilewright::schedule! {
    kernel Terms(x: f32[N, K]) -> (s: f32[N], z: f32[N, K]) {
        h[i, k] = x[i, k] * 0.5;
        s[i] = sum(|k| h[i, k]);
        z[i, k] = h[i, k] + 1.0;
        launch threads(128);
        schedule s { bind i: grid; split k by 128 -> r, t; bind t: thread; reduce t; }
        schedule z { bind i: grid; split k by 128 -> r, t; bind t: thread; }
        schedule h in shared at s.r { bind k: thread; }
    }
}

tilewright::schedule! {
    kernel Own(x: f32[N, 4]) -> (y: f32[N, 4], z: f32[N, 4]) {
        h[i, c] = x[i, c] * 0.5;
        y[i, c] = h[i, 3 - c];
        z[i, c] = h[i, c];
        launch threads(128);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; unroll c; }
        schedule z { split i by 128 -> b, t; bind b: grid; bind t: thread; unroll c; }
        schedule h in registers per thread at y.b { unroll c; }
    }
}

fn main() {}

//! Blocks inside a block, and threads inside a thread.

tilewright::schedule! {
    kernel Blur(x: f32[N]) -> (y: f32[N - 2]) where N >= 3 {
        h[i] = x[i] * 0.5;
        y[i] = h[i] + h[i + 2];
        launch threads(128);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule h in shared at y.b { split i by 128 -> o, t; bind o: grid; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Lines(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
        h[i] = x[i] * 0.5;
        y[i] = h[i] + 1.0;
        launch threads(128);
        schedule y { split i by 4 -> o, v; split o by 128 -> b, t; bind b: grid; bind t: thread; unroll v; }
        schedule h in registers per thread at y.t { bind i: thread; }
    }
}

tilewright::schedule! {
    kernel Centred(x: f32[M, N]) -> (y: f32[M, N]) {
        s[i] = sum(|j| x[i, j]);
        y[i, j] = x[i, j] - s[i];
        launch threads(128);
        schedule y { split i by 4 -> g, w; split j by 32 -> r, t; bind g: grid; bind w: warp; bind t: thread; }
        schedule s in registers per warp at y.w { split j by 1024 -> b, q; split q by 32 -> r, t; bind b: grid; bind t: thread; reduce t; reduce b by grid; }
    }
}

fn main() {}

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

// Blocks of a cluster: a product, and a sum of threads.
tilewright::schedule! {
    kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        launch cluster(2);
        schedule c {
            split m by 64 -> mt, mi; split n by 64 -> nt, ni; reorder mt, nt, mi, ni;
            bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt {
            split k by 64 -> kt, ki; split kt into 2 -> kc, ko;
            bind kc: cta; mma (m, n, ki) by wgmma; reduce kc by cluster;
        }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 128; }
    }
}

tilewright::schedule! {
    kernel Means(x: f32[M, N]) -> (y: f32[M, N]) {
        s[i] = sum(|j| x[i, j]);
        y[i, j] = x[i, j] - s[i];
        launch threads(128);
        schedule y { split j by 128 -> r, t; bind i: grid; bind t: thread; }
        schedule s in registers at y.i {
            split j by 1024 -> q, r; split q into 2 -> b, o; split r by 128 -> u, t;
            bind b: cta; bind t: thread; reduce t; reduce b by cluster;
        }
    }
}

fn main() {}

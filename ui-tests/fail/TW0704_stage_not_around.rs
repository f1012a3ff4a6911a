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

// Warps hold factors for themselves, and all of the block computes what reads them.
tilewright::schedule! {
    kernel Chain(q: bf16[M, 64], k: bf16[N, 64], v: bf16[N, 64]) -> (o: f32[M, 64]) {
        fq[i, d] = q[i, d];
        fk[j, d] = k[j, d];
        s[i, j] = dot(|d| fq[i, d] * fk[j, d]);
        p[i, j] = max(s[i, j], 0.0) as bf16;
        fv[e, j] = v[j, e];
        acc[i, e] = dot(|j| p[i, j] * fv[e, j]);
        o[i, e] = acc[i, e];
        schedule o {
            split i by 64, 16 -> it, iw, ii; reorder it, iw, ii, e;
            bind it: grid; bind iw: warp; fragment (ii, e) by mma_sync; unroll e_p;
        }
        schedule acc in registers at o.it {
            split j by 32 -> jo, ji; split i by 16 -> iw, ii; reorder jo, iw, ii, e, ji;
            bind iw: warp; mma (ii, e, ji) by mma_sync;
        }
        schedule p in registers at acc.jo {
            split i by 16 -> iw, ii; reorder iw, ii, j; bind iw: warp; fragment (ii, j) by mma_sync;
        }
        schedule s in registers at acc.jo {
            split i by 16 -> iw, ii; reorder iw, ii, j, d; bind iw: warp; mma (ii, j, d) by mma_sync;
        }
        schedule fq in registers per warp at acc.jo { fragment (i, d) by mma_sync; }
        schedule fk in registers per warp at s.iw { fragment (j, d) by mma_sync; }
        schedule fv in registers per warp at acc.jo { fragment (e, j) by mma_sync; }
    }
}

// No product: two stages of the block read it, and each needs its own.
tilewright::schedule! {
    kernel Each(x: f32[M, N]) -> (y: f32[M, N]) {
        h[i] = sum(|j| x[i, j]);
        a[i] = h[i] * 0.5;
        b[i] = h[i] + 1.0;
        y[i, j] = x[i, j] - a[i] * b[i];
        launch threads(128);
        schedule y { split i by 4 -> g, w; split j by 32 -> r, t; bind g: grid; bind w: warp; bind t: thread; }
        schedule a in registers at y.g { bind i: warp; }
        schedule b in registers at y.g { bind i: warp; }
        schedule h in registers per warp at y.g { split j by 32 -> r, t; bind t: thread; reduce t; }
    }
}

fn main() {}

//! Products by tensor cores: of a warpgroup, whose factors the accelerator and threads write; and of warps.

tilewright::schedule! {
    pub kernel Scaled(a: bf16[M, K], s: f32[M], b: bf16[K, N]) -> (c: bf16[M, N]) where K % 8 == 0, N % 8 == 0 {
        fa[m, k] = (a[m, k] as f32 * s[m]) as bf16;
        acc[m, n] = dot(|k| fa[m, k] * b[k, n]);
        c[m, n] = acc[m, n] as bf16;
        launch roles { load: warpgroup, make: warpgroup, math: warpgroup };
        schedule c by math {
            split m by 128 -> mt, mi; split n by 64 -> nt, ni; bind mt, nt: grid;
            fragment (mi, ni) by wgmma; vectorize ni_p;
        }
        schedule acc in registers at c.nt by math { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma inflight(1); }
        schedule fa in shared at acc.ko ring(2) by make {
            split k by 8 -> kc, kv; merge m, kc -> p; split p by 128 -> pr, t; bind t: thread; vectorize kv;
            layout [m, k] swizzle 128;
        }
        stage sb[k, n] = b in shared at acc.ko ring(2) via tma by load { layout [k, n] swizzle 128; }
        stage cs[m, n] = c in shared at c.nt via tma by math { layout [m, n] swizzle 128; }
    }

    pub kernel Warps(a: f16[M, K], b: f16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        fa[m, k] = a[m, k];
        fb[n, k] = b[n, k];
        acc[m, n] = dot(|k| fa[m, k] * fb[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, m1; split m1 by 16 -> mw, m2; split n by 32 -> nt, n1; reorder mt, nt, mw, m2, n1;
            bind mt, nt: grid; bind mw: warp; fragment (m2, n1) by mma_sync; unroll n1_p;
        }
        schedule acc in registers at c.nt {
            split k by 32 -> ko, k1; split k1 by 16 -> kk, ki; split m by 16 -> mw, m2;
            reorder ko, kk, mw, m2, n, ki; bind mw: warp; mma (m2, n, ki) by mma_sync;
        }
        schedule fa in registers per warp at acc.kk { fragment (m, k) by mma_sync; }
        schedule fb in registers per warp at acc.kk { fragment (n, k) by mma_sync; }
        stage sa[m, k] = a in shared at acc.ko ring(3) via cp_async {
            split m by 32 -> mo, mi; split k by 8 -> kc, kv; reorder mi, kc, mo, kv;
            bind mi, kc: thread; vectorize kv; layout [m, k] swizzle 64;
        }
        stage sb[n, k] = b in shared at acc.ko ring(3) via cp_async {
            split k by 8 -> kc, kv; bind n, kc: thread; vectorize kv; layout [n, k] swizzle 64;
        }
    }
}

//! The first five kernels of the page `ladder.md`. The sixth is `Gemm` of `examples/gemm.rs`.

use tilewright::schedule;

schedule! {
    /// One thread an element.
    #[allow(TW0491)] // lanes read rows of `b`: that is what the next steps mend
    pub kernel Naive(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n] as bf16;
        schedule c {
            split m by 8 -> mt, m1;
            split n by 32 -> nt, n1;
            reorder mt, nt, m1, n1;
            bind mt, nt: grid;
            bind m1, n1: thread;
        }
        schedule acc in registers per thread at c.n1 { }
    }
}

schedule! {
    /// Tensor cores, and tiles that lie as these read them without a swizzle.
    pub kernel TensorCores(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n] as bf16;
        schedule c {
            split m by 128, 64 -> mt, mw, m3;
            split n by 256 -> nt, n1;
            reorder mt, nt, mw, m3, n1;
            bind mt, nt: grid;
            bind mw: warpgroup;
            fragment (m3, n1) by wgmma;
            vectorize n1_p;
        }
        schedule acc in registers at c.nt {
            split k by 64 -> ko, ki;
            split m by 64 -> mw, m3;
            reorder ko, mw, m3, n, ki;
            bind mw: warpgroup;
            mma (m3, n, ki) by wgmma;
        }
        stage sa[m, k] = a in shared at acc.ko via tma { box k by 8 -> kc, kb; layout [kc, m, kb]; }
        stage sb[n, k] = b in shared at acc.ko via tma { box k by 8 -> kc, kb; layout [kc, n, kb]; }
    }
}

schedule! {
    /// One copy a tile, and copies that run ahead.
    pub kernel Ring(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n] as bf16;
        schedule c {
            split m by 128, 64 -> mt, mw, m3;
            split n by 256 -> nt, n1;
            reorder mt, nt, mw, m3, n1;
            bind mt, nt: grid;
            bind mw: warpgroup;
            fragment (m3, n1) by wgmma;
            vectorize n1_p;
        }
        schedule acc in registers at c.nt {
            split k by 64 -> ko, ki;
            split m by 64 -> mw, m3;
            reorder ko, mw, m3, n, ki;
            bind mw: warpgroup;
            mma (m3, n, ki) by wgmma;
        }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma { layout [n, k] swizzle 128; }
    }
}

schedule! {
    /// Threads that copy, and threads that multiply.
    pub kernel Roles(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n] as bf16;
        launch roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule c by math {
            split m by 128, 64 -> mt, mw, m3;
            split n by 256 -> nt, n1;
            reorder mt, nt, mw, m3, n1;
            bind mt, nt: grid;
            bind mw: warpgroup;
            fragment (m3, n1) by wgmma;
            vectorize n1_p;
        }
        schedule acc in registers at c.nt by math {
            split k by 64 -> ko, ki;
            split m by 64 -> mw, m3;
            reorder ko, mw, m3, n, ki;
            bind mw: warpgroup;
            mma (m3, n, ki) by wgmma;
        }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma by load { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma by load { layout [n, k] swizzle 128; }
    }
}

schedule! {
    /// Two blocks share a tile of `b`, and take several tiles of the result.
    pub kernel Clusters(a: bf16[M, K], b: bf16[N, K]) -> (c: bf16[M, N])
    where K % 8 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n] as bf16;
        launch cluster(2), persistent, roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule c by math {
            split m by 256, 128, 64 -> mt, mc, mw, m3;
            split n by 256 -> nt, n1;
            reorder mt, nt, mc, mw, m3, n1;
            bind mt, nt: grid raster(mt: 8);
            bind mc: cta;                           // two blocks, one above the other
            bind mw: warpgroup;
            fragment (m3, n1) by wgmma;
            vectorize n1_p;
        }
        schedule acc in registers at c.mc by math {
            split k by 64 -> ko, ki;
            split m by 64 -> mw, m3;
            reorder ko, mw, m3, n, ki;
            bind mw: warpgroup;
            mma (m3, n, ki) by wgmma;
        }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma by load { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma by load {
            box n by 128 -> nh, nb;
            layout [nh, nb, k] swizzle 128;
            multicast c.mc by nh;
        }
    }
}

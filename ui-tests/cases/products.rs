//! Slips of somebody who writes a product.

use tilewright::schedule;

schedule! {
    kernel Gated(a: bf16[M, K], b: bf16[2, N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, h, n] = dot(|k| a[m, k] * b[h, n, k]);
        c[m, n] = max(acc[m, 0, n], 0.0) * acc[m, 1, n];
        launch roles { load: warpgroup, math: warpgroup };
        schedule c by math {
            split m by 64 -> mt, mi;
            split n by 32 -> nt, ni;
            bind mt, nt: grid;
            fragment (mi, ni) by wgmma;
            unroll ni_p;
        }
        schedule acc in registers at c.nt by math {
            split k by 64 -> ko, ki;
            reorder ko, h, m, n, ki;
            unroll h;
            mma (m, n, ki) by wgmma inflight(3);
        }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma by load { layout [m, k] swizzle 128; }
        stage sb[h, n, k] = b in shared at acc.ko ring(2) via tma by load { layout [h, n, k] swizzle 128; }
    }
}

schedule! {
    kernel Update(a: f32[N], c: inout f32[N]) {
        c[i] = c[i] + a[i];
        schedule c { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}

schedule! {
    kernel Together(a: f32[N]) -> (c: f32[N], d: f32[N]) {
        c[i] = a[i] + 1.0;
        d[i] = a[i] - 1.0;
        schedule c, d { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

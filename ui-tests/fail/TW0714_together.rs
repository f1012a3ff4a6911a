//! What another role and other blocks of a cluster would have to come to, too, after blocks have shared the terms.

tilewright::schedule! {
    kernel Product(a: bf16[M, K], b: bf16[N, K], d: f32[N], r: f32[M, N]) -> (c: f32[M, N]) where K % 8 == 0, N % 4 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n] * r[m, n] + d[n];
        launch cluster(2), roles { load: warpgroup, math: warpgroup };
        schedule c by math {
            split m by 128 -> mt, m1; split m1 by 64 -> mc, mi; split n by 64 -> nt, ni;
            reorder mt, nt, mc, mi, ni; bind mt, nt: grid; bind mc: cta; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.mc by math {
            split k by 64 -> kt, ki; split kt into 4 -> ks, ko; bind ks: grid; mma (m, n, ki) by wgmma; reduce ks by grid;
        }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma by load { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma by load { layout [n, k] swizzle 128; }
        stage rs[m, n] = r in shared at c.mc via tma by load { layout [m, n]; }
        stage ds[n] = d in shared at c.mc via tma by math { box n by 32 -> nh, nb; multicast c.mc by nh; }
    }
}

fn main() {}

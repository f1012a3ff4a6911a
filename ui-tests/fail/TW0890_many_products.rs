//! Columns that no large instruction divides. A warning; denied here, so that it is seen.
#![deny(deprecated)]

tilewright::schedule! {
    kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, mi; split n by 328 -> nt, ni;
            bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { split k by 32 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 64; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { box n by 8 -> nc, nb; layout [nc, nb, k] swizzle 64; }
    }
}

// Known to the author: nothing is said.
tilewright::schedule! {
    #[allow(TW0890)]
    kernel Meant(a: bf16[M, K], b: bf16[296, K]) -> (c: f32[M, 296]) where K % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c { split m by 64 -> mt, mi; bind mt: grid; fragment (mi, n) by wgmma; unroll n_p; }
        schedule acc in registers at c.mt { split k by 32 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 64; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { box n by 8 -> nc, nb; layout [nc, nb, k] swizzle 64; }
    }
}

fn main() {}

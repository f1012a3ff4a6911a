//! A factor that is not in shared memory.

tilewright::schedule! {
    kernel Product(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, mi;
            split n by 64 -> nt, ni;
            bind mt, nt: grid;
            fragment (mi, ni) by wgmma;
            unroll ni_p;
        }
        schedule acc in registers at c.nt {
            split k by 64 -> ko, ki;
            mma (m, n, ki) by wgmma;
        }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }
    }
}

// Signs before factors: one, and two.
tilewright::schedule! {
    kernel Minus(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, n] = dot(|k| -a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, mi; split n by 64 -> nt, ni;
            bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 128; }
    }
}

tilewright::schedule! {
    kernel Both(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, n] = dot(|k| (-a[m, k]) * (-b[n, k]));
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, mi; split n by 64 -> nt, ni;
            bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 128; }
    }
}

fn main() {}

//! A factor of an 8-bit type whose neighbours in memory are rows: tensor cores transpose 16-bit types only.

tilewright::schedule! {
    kernel Product(a: e4m3[K, M], b: e4m3[N, K]) -> (c: f32[M, N]) where K % 16 == 0, M % 16 == 0 {
        acc[m, n] = dot(|k| a[k, m] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, mi; split n by 64 -> nt, ni;
            bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[k, m] = a in shared at acc.ko ring(2) via tma { layout [k, m] swizzle 64; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 64; }
    }
}

fn main() {}

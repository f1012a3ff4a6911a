//! Factors of single precision: what is taken for them must be said.

tilewright::schedule! {
    kernel Product(a: f32[M, K], b: f32[N, K]) -> (c: f32[M, N]) where K % 4 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, mi; split n by 40 -> nt, ni;
            bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { split k by 32 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 128; }
    }
}

fn main() {}

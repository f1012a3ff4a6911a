//! A staged tensor whose strides are not known to be multiples of 16 bytes.

tilewright::schedule! {
    kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        launch threads(256);
        schedule y {
            split i by 32 -> io, ii;
            split j by 32 -> jo, ji;
            reorder io, jo, ii, ji;
            bind io, jo: grid;
            split ii by 8 -> r, w;
            bind w: thread;
            bind ji: thread;
        }
        stage xs[i, j] = x in shared at y.jo via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; }
    }
}

// A factor of a product: what each thread reads for itself, tensor cores do not find.
tilewright::schedule! {
    kernel Product(a: bf16[M, K], b: bf16[64, 64]) -> (c: f32[M, 64]) where K >= 64 {
        acc[m, n] = dot(|k in 0..64| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c { split m by 64 -> mt, mi; bind mt: grid; fragment (mi, n) by wgmma; unroll n_p; }
        schedule acc in registers at c.mt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(2) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(2) via tma { layout [n, k] swizzle 128; }
    }
}

fn main() {}

//! Slips of a programmer of CUDA in a second hour, each with the help that leads to the fix; `tests/language/hour.rs`
//! does what the helps say.

tilewright::schedule! {
    kernel Lanes(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch threads(256);
        schedule y {
            split i by 8 -> b, w; bind b: grid; bind w: warp; split j by 64 -> r, t; bind t: thread;
            reduce t by warp;
        }
    }
}

tilewright::schedule! {
    kernel WrongLoop(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) {
        c[i, j] = sum(|k| a[i, k] * b[k, j]);
        launch threads(256);
        schedule c {
            split i by 16 -> io, ii; split j by 16 -> jo, jj; split k by 16 -> ko, kk;
            reorder io, jo, ii, jj, ko, kk; bind io, jo: grid; bind ii, jj: thread;
        }
        stage as_[i, k] = a in shared at c.jo { bind i, k: thread; }
        stage bs[k, j] = b in shared at c.ko { bind k, j: thread; }
    }
}

tilewright::schedule! {
    kernel Halo(x: f32[N]) -> (y: f32[N]) {
        y[i] = if i >= 1 && i < N - 1 { x[i - 2] - 2.0 * x[i] + x[i + 2] } else { 0.0 };
        launch threads(256);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Accumulator(a: f16[M, K], b: f16[N, K]) -> (c: f16[M, N]) where K % 8 == 0 {
        acc[m, n] = sum(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, mi; split n by 64 -> nt, ni; reorder mt, nt, mi, ni;
            bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma { layout [n, k] swizzle 128; }
    }
}

tilewright::schedule! {
    kernel Assigned(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = exp(x[i, j]);
        s[i] = sum(|j| y[i, j]);
        y[i, j] = y[i, j] / s[i];
        schedule y { bind i: grid; split j by 256 -> r, t; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Heads(x: f32[B, S, H, D]) -> (y: f32[B, H, S, D]) {
        y[b, h, s, d] = x[b, h, s, d];
        launch threads(128);
        schedule y { bind b, h, s: grid; split d by 128 -> r, t; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Signs(x: i32[N], o: u32[N]) -> (y: i32[N]) {
        y[i] = x[i] - o[i];
        launch threads(256);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel ColumnMajor(x: f32[M, N; 1, ld]) -> (y: f32[M, N; 1, ld]) where N % 4 == 0 {
        y[i, j] = x[i, j];
        launch threads(256);
        schedule y {
            split j by 4 -> jo, v; merge i, jo -> p; split p by 256 -> b, t; bind b: grid;
            bind t: thread; vectorize v;
        }
    }
}

tilewright::schedule! {
    kernel Narrow(x: f32[M, N]) -> (y: f32[N, M]) where N % 4 == 0 {
        y[j, i] = x[i, j];
        launch threads(256);
        schedule y {
            split i by 32 -> io, ii; split j by 8 -> jo, jj; reorder io, jo, jj, ii;
            bind io, jo: grid; bind jj: warp; bind ii: thread;
        }
        stage xs[i, j] = x in shared at y.jo via tma {
            box i by 32 -> ic, ib; box j by 8 -> jc, jb; layout [ic, ib, jc, jb] swizzle 128;
        }
    }
}

tilewright::schedule! {
    kernel Batches(x: f32[B, M, N]) -> (y: f32[B, M, N]) where N % 4 == 0 {
        y[b, i, j] = 2.0 * x[b, i, j];
        launch threads(256);
        schedule y {
            split i by 8 -> io, ii; split j by 32 -> jo, jj; reorder b, io, jo, ii, jj;
            bind b, io, jo: grid; bind ii: warp; bind jj: thread;
        }
        stage xs[i, j] = x in shared at y.jo via tma { box i by 8 -> ic, ib; box j by 32 -> jc, jb; }
    }
}

tilewright::schedule! {
    kernel Roles(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
        y[i, j] = 2.0 * x[i, j];
        launch roles { load: 32, math: 128 };
        schedule y by math { split j by 128 -> jo, t; bind i, jo: grid; bind t: thread; }
        stage xs[i, j] = x in shared at y.jo via tma by load { box j by 128 -> jc, jb; }
    }
}

tilewright::schedule! {
    kernel Rows(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 32 -> mt, mi; split n by 64 -> nt, ni; reorder mt, nt, mi, ni;
            bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma { layout [n, k] swizzle 128; }
    }
}

tilewright::schedule! {
    kernel Epilogue(a: bf16[M, K], b: bf16[N, K], bias: f32[N]) -> (c: bf16[M, N]) where K % 8 == 0, N % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = (acc[m, n] + bias[n]) as bf16;
        launch threads(128);
        schedule c {
            split m by 64 -> mt, mi; split n by 64 -> nt, ni; split ni by 8 -> nq, v;
            reorder mt, nt, mi, nq, v; bind mt, nt: grid; merge mi, nq -> p; split p by 128 -> r, t;
            bind t: thread; vectorize v; unroll r;
        }
        schedule acc in registers at c.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma { layout [m, k] swizzle 128; }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma { layout [n, k] swizzle 128; }
    }
}

tilewright::schedule! {
    kernel NoSwizzle(a: bf16[M, K], b: bf16[N, K]) -> (c: f32[M, N]) where K % 8 == 0 {
        acc[m, n] = dot(|k| a[m, k] * b[n, k]);
        c[m, n] = acc[m, n];
        schedule c {
            split m by 64 -> mt, mi; split n by 64 -> nt, ni; reorder mt, nt, mi, ni;
            bind mt, nt: grid; fragment (mi, ni) by wgmma; unroll ni_p;
        }
        schedule acc in registers at c.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma { }
        stage sb[n, k] = b in shared at acc.ko ring(4) via tma { layout [n, k] swizzle 128; }
    }
}

tilewright::schedule! {
    kernel Relax(inout x: f32[N]) {
        x[i] = 0.5 * x[i] + 0.25 * (x[max(i - 1, 0)] + x[min(i + 1, N - 1)]);
        launch threads(256);
        schedule x { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Bytes(x: u8[N]) -> (y: u8[N]) {
        y[i] = (x[i] * 300) >> 8;
        launch threads(256);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Blocks(x: f32[N]) -> (y: f32[]) {
        y[] = sum(|i| x[i]);
        launch threads(256);
        schedule y { split i by 1024 -> b, r; split r by 256 -> q, t; bind b: grid; bind t: thread; reduce t; }
    }
}

tilewright::schedule! {
    kernel Atomic(x: f32[N]) -> (y: f32[]) {
        y[] = sum(|i| x[i]);
        launch threads(256);
        schedule y {
            split i by 1024 -> b, r; split r by 256 -> q, t; bind b: grid; bind t: thread; reduce t;
            reduce b by atomic;
        }
    }
}

tilewright::schedule! {
    kernel Dimensions(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        launch threads(32, 8);
        schedule y {
            split i by 8 -> io, ii; split j by 32 -> jo, jj; reorder io, jo, ii, jj;
            bind io, jo: grid; bind ii, jj: thread;
        }
    }
}

tilewright::schedule! {
    kernel CudaNames(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 256 -> b, t; bind b: blockIdx; bind t: threadIdx; }
    }
}

tilewright::schedule! {
    kernel Unrolled(a: f32[M, N], b: f32[N]) -> (y: f32[M]) {
        y[i] = sum(|j| a[i, j] * b[j]);
        launch threads(256);
        schedule y {
            split i by 8 -> bl, w; split j by 32 -> r, t; bind bl: grid; bind w: warp;
            bind t: thread; reduce t; unroll r;
        }
    }
}

tilewright::schedule! {
    kernel Softmax(x: f32[M, N]) -> (y: f32[M, N]) where N <= 1024 {
        m[i] = max(|j| x[i, j]);
        s[i] = sum(|j| exp(x[i, j] - m[i]));
        y[i, j] = exp(x[i, j] - m[i]) / s[i];
        launch threads(256);
        schedule y { bind i: grid; split j by 256 -> r, t; bind t: thread; unroll r; }
        schedule m in registers at y.i { like y; reduce t; }
    }
}

tilewright::schedule! {
    kernel Lookup(id: i64[T], table: f16[V, D]) -> (y: f16[T, D]) where D % 8 == 0 {
        y[t, d] = table[id[t], d];
        launch threads(128);
        schedule y {
            split d by 8 -> q, v; merge t, q -> p; split p by 128 -> b, l; bind b: grid;
            bind l: thread; vectorize v;
        }
    }
}

tilewright::schedule! {
    kernel Gamma(x: f32[N], g: f32) -> (y: f32[N]) {
        y[i] = pow(x[i], g);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Where(x: f32[M, N]) -> (y: i32[M]) where N >= 1 {
        y[i] = argmax(|j| x[i, j]);
        launch threads(128);
        schedule y {
            split i by 4 -> b, w; bind b: grid; bind w: warp; split j by 32 -> r, t; bind t: thread;
            reduce t;
        }
    }
}

tilewright::schedule! {
    kernel ByThreads(x: f32[B, M, N]) -> (y: f32[B, M, N]) {
        y[b, i, j] = 2.0 * x[b, i, j];
        launch threads(256);
        schedule y {
            split i by 8 -> io, ii; split j by 32 -> jo, jj; reorder b, io, jo, ii, jj; bind b, io, jo: grid;
            bind ii: warp; bind jj: thread;
        }
        stage xs[i, j] = x in shared at y.jo { bind i: warp; bind j: thread; }
    }
}

tilewright::schedule! {
    kernel Beside(x: f32[N]) -> (y: f32[N], z: f32[N]) where N % 4 == 0 {
        y[i] = exp(x[i]);
        z[i] = exp(-x[i]);
        launch threads(256);
        schedule y { split i by 4 -> q, v; split q by 256 -> b, t; bind b: grid; bind t: thread; vectorize v; }
        schedule z at y.t { like y; }
    }
}

tilewright::schedule! {
    kernel Colours(x: u8[H, W, 3]) -> (y: u8[H, W]) where W % 4 == 0 {
        y[i, j] = max(x[i, j, 0], max(x[i, j, 1], x[i, j, 2]));
        launch threads(256);
        schedule y {
            split j by 4 -> jo, v; merge i, jo -> p; split p by 256 -> b, t; bind b: grid; bind t: thread; vectorize v;
        }
        stage xr[i, j, c] = x in registers per thread at y.t { merge j, c -> k; vectorize k; }
    }
}

tilewright::schedule! {
    kernel Nearest(x: f32[N, D], c: f32[K, D]) -> (label: u32[N]) where K >= 1 {
        d[i, k] = sum(|e| (x[i, e] - c[k, e]) * (x[i, e] - c[k, e]));
        label[i] = argmin(|k| d[i, k]);
        launch threads(128);
        schedule label { split i by 128 -> b, t; bind b: grid; bind t: thread; split k by 32 -> ko, k1; }
    }
}

// A store from the end.
tilewright::schedule! {
    kernel Reversed(x: f32[N], w: f32[N]) -> (y: f32[N]) {
        y[N - 1 - i] = x[i] * w[i + 0] + (i as f32);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

// A store to every second element.
tilewright::schedule! {
    kernel Odd(inout y: f32[M], x: f32[N]) {
        y[2 * i + 1] = x[i];
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

// Two terms for one element.
tilewright::schedule! {
    kernel Pooled(x: f32[N]) -> (y: f32[N / 2]) {
        y[i / 2] = x[i];
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

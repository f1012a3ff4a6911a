//! The twelve kernels of the first try, each as a user writes it who has read the pages for an hour.

use tilewright::schedule;

#[cfg(test)]
mod tests;

schedule! {
    /// z = a · x + b · y, in bf16
    pub kernel Axpby(a: f32, b: f32, x: bf16[N], y: bf16[N]) -> (z: bf16[N])
    where N % 8 == 0
    {
        z[i] = (a * x[i] as f32 + b * y[i] as f32) as bf16;

        launch threads(256);
        schedule z { split i by 8 -> io, v; split io by 256 -> b, t; bind b: grid; bind t: thread; vectorize v; }
    }
}

schedule! {
    /// Where the largest element of each row is.
    pub kernel RowArgmax(x: f32[M, N]) -> (y: u32[M])
    where N >= 1
    {
        y[i] = argmax(|j| x[i, j]);

        launch threads(256);
        schedule y {
            split i by 8 -> b, w;
            split j by 32 -> r, t;
            bind b: grid;
            bind w: warp;                     // a row a warp
            bind t: thread;
            reduce t;
        }
    }
}

schedule! {
    /// The mean of each element and its four neighbours, with zeros around, by tiles in shared memory.
    pub kernel Smooth(x: f32[H, W]) -> (y: f32[H, W]) {
        s[i, j] = (x[i - 1, j] or 0.0) + (x[i + 1, j] or 0.0) + (x[i, j - 1] or 0.0) + (x[i, j + 1] or 0.0);
        y[i, j] = 0.2 * (x[i, j] + s[i, j]);

        launch threads(256);
        schedule y {
            split i by 8 -> io, w;
            split j by 32 -> jo, t;
            reorder io, jo, w, t;
            bind io, jo: grid;
            bind w: warp;
            bind t: thread;
        }
        stage xs[i, j] = x in shared at y.jo { merge i, j -> p; split p by 256 -> r, t; bind t: thread; }
    }
}

schedule! {
    /// Each row with mean 0 and variance 1.
    pub kernel LayerNorm(x: f32[M, N], eps: f32) -> (y: f32[M, N])
    where N % 4 == 0, N >= 4, N <= 4096
    {
        mean[i] = sum(|j| x[i, j]) / N as f32;
        d[i, j] = x[i, j] - mean[i];
        var[i]  = sum(|j| d[i, j] * d[i, j]) / N as f32;
        y[i, j] = d[i, j] * rsqrt(var[i] + eps);

        launch threads(256);
        schedule y {
            bind i: grid; split j by 4 -> jo, v; split jo by 256 -> r, t; bind t: thread;
            vectorize v; unroll r;
        }
        stage xr[i, j] = x in registers at y.i  { like y; }
        schedule mean in registers at y.i       { like y; reduce t; }
        schedule d in registers at y.i          { like y; }
        schedule var in registers at y.i        { like y; reduce t; }
    }
}

schedule! {
    /// Row i of a square matrix becomes the softmax of its first i + 1 elements.
    pub kernel CausalSoftmax(x: f32[N, N]) -> (y: f32[N, N])
    where N <= 2048
    {
        m[i]    = max(|j in 0..=i| x[i, j]);
        s[i]    = sum(|j in 0..=i| exp(x[i, j] - m[i]));
        y[i, j] = if j <= i { exp(x[i, j] - m[i]) / s[i] } else { 0.0 };

        launch threads(256);
        schedule y { bind i: grid; split j by 256 -> r, t; bind t: thread; unroll r; }
        schedule m in registers at y.i { like y; reduce t; }
        schedule s in registers at y.i { like y; reduce t; }
    }
}

schedule! {
    /// C = A · B in f32, with tiles that are fetched three iterations ahead.
    pub kernel MatMul(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])
    where K % 4 == 0, N % 4 == 0
    {
        c[i, j] = sum(|k| a[i, k] * b[k, j]);

        launch threads(256);
        schedule c {
            split i by 32 -> io, i1;
            split j by 32 -> jo, j1;
            split k by 16 -> ko, k1;
            split i1 by 4 -> w, ii;
            reorder io, jo, w, j1, ko, k1, ii;
            bind io, jo: grid;
            bind w: warp;
            bind j1: thread;
        }
        stage as_[i, k] = a in shared at c.ko ring(4) via cp_async {
            split k by 4 -> kq, v;
            merge i, kq -> p;
            bind p: thread;
            vectorize v;
        }
        stage bs[k, j] = b in shared at c.ko ring(4) via cp_async {
            split j by 4 -> jq, v;
            merge k, jq -> p;
            bind p: thread;
            vectorize v;
        }
    }
}

schedule! {
    /// y[s, d] = Σ of the rows of a table that a bag of K indices names; what is no row counts as 0.
    pub kernel EmbeddingBag(id: i32[S, K], table: f32[V, D]) -> (y: f32[S, D]) {
        y[s, d] = sum(|k| table[id[s, k], d] or 0.0);

        launch threads(128);
        schedule y { split d by 128 -> r, t; bind s, r: grid; bind t: thread; }
    }
}

schedule! {
    /// How many elements have each of 64 values.
    pub kernel Histogram(x: u8[N]) -> (count: u32[64]) {
        count[b] = sum(|i| if x[i] == b as u8 { 1u32 } else { 0u32 });

        launch threads(64);
        schedule count {
            split i by 1024 -> io, ii;
            reorder io, b, ii;
            bind io: grid;
            bind b: thread;
            reduce io by atomic;
        }
        stage xs[i] = x in shared at count.io { split i by 64 -> r, t; bind t: thread; }
    }
}

schedule! {
    /// Bytes with a scale for each row.
    pub kernel Quantise(x: f32[M, N]) -> (q: i8[M, N], scale: f32[M])
    where N % 4 == 0, N <= 4096
    {
        s[i]     = max(max(|j| abs(x[i, j])), 1e-12) / 127.0;
        q[i, j]  = round(x[i, j] / s[i]) as i8;
        scale[i] = s[i];

        launch threads(256);
        schedule q {
            bind i: grid; split j by 4 -> jo, v; split jo by 256 -> r, t; bind t: thread;
            vectorize v; unroll r;
        }
        stage xr[i, j] = x in registers at q.i { like q; }
        schedule s in registers at q.i         { like q; reduce t; }
        schedule scale at q.i                  { bind i: grid; }
    }
}

schedule! {
    /// The transpose, by tiles that the accelerator brings.
    #[allow(TW0490)]                          // two bytes an element: lanes 8 rows apart share a bank
    pub kernel Transpose(x: f16[M, N]) -> (y: f16[N, M])
    where N % 8 == 0
    {
        y[j, i] = x[i, j];

        launch threads(256);
        schedule y {
            split i by 64 -> io, i1;
            split j by 64 -> jo, j1;
            split j1 by 8 -> w, jj;
            split i1 by 32 -> ig, t;
            reorder jo, io, w, jj, ig, t;
            bind jo, io: grid;
            bind w: warp;
            bind t: thread;
        }
        stage xs[i, j] = x in shared at y.io via tma {
            box i by 64 -> ic, ib;
            box j by 64 -> jc, jb;
            layout [ic, jc, ib, jb] swizzle 128;
        }
    }
}

schedule! {
    /// Each group of channels with mean 0 and variance 1.
    pub kernel GroupNorm(x: f32[B, G, C, P], eps: f32) -> (y: f32[B, G, C, P])
    where C >= 1, P >= 1
    {
        mean[b, g]    = sum(|c, p| x[b, g, c, p]) / (C * P) as f32;
        d[b, g, c, p] = x[b, g, c, p] - mean[b, g];
        var[b, g]     = sum(|c, p| d[b, g, c, p] * d[b, g, c, p]) / (C * P) as f32;
        y[b, g, c, p] = d[b, g, c, p] * rsqrt(var[b, g] + eps);

        launch threads(256);
        schedule y { bind b, g: grid; merge c, p -> k; split k by 256 -> r, t; bind t: thread; }
        schedule mean in registers at y.g { like y; reduce t; }
        schedule var in registers at y.g  { like y; reduce t; }
    }
}

schedule! {
    /// Rotary embedding of neighbouring pairs.
    pub kernel Rope(x: f32[S, H, D, 2], angle: f32[S, D]) -> (y: f32[S, H, D, 2]) {
        c[s, d] = cos(angle[s, d]);
        n[s, d] = sin(angle[s, d]);
        y[s, h, d, r] = if r == 0 {
            x[s, h, d, 0] * c[s, d] - x[s, h, d, 1] * n[s, d]
        } else {
            x[s, h, d, 0] * n[s, d] + x[s, h, d, 1] * c[s, d]
        };

        launch threads(128);
        schedule y { merge h, d, r -> k; split k by 128 -> b, t; bind s, b: grid; bind t: thread; }
    }
}

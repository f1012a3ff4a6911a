//! Twelve kernels that nobody had tried before, from domains far apart.

use tilewright::schedule;

#[cfg(test)]
mod tests;

schedule! {
    /// y = GELU(gate) · up of a packed row: the gate first, the other half after it.
    pub kernel GeGlu(x: bf16[M, 2 * N]) -> (y: bf16[M, N])
    where N % 8 == 0
    {
        g[i, j] = x[i, j] as f32;
        u[i, j] = 0.797_884_56 * (g[i, j] + 0.044715 * g[i, j] * g[i, j] * g[i, j]);
        y[i, j] = (0.5 * g[i, j] * (1.0 + tanh(u[i, j])) * x[i, j + N] as f32) as bf16;

        launch threads(256);
        schedule y {
            split j by 8 -> jo, v;
            merge i, jo -> p;
            split p by 256 -> b, t;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
    }
}

schedule! {
    /// An image of twice the size, half-pixel centres.
    pub kernel Upsample(x: f32[C, H, W]) -> (y: f32[C, 2 * H, 2 * W]) {
        // Rows 2h and 2h + 1 of y lie a quarter above and below row h of x.
        r[c, i, j] = 0.75 * x[c, i / 2, j] + 0.25 * x[c, min(max(i / 2 + 2 * (i % 2) - 1, 0), H - 1), j];
        y[c, i, j] = 0.75 * r[c, i, j / 2] + 0.25 * r[c, i, min(max(j / 2 + 2 * (j % 2) - 1, 0), W - 1)];

        launch threads(256);
        schedule y {
            split i by 8 -> io, i1;
            split j by 32 -> jo, j1;
            reorder c, io, jo, i1, j1;
            bind c, io, jo: grid;
            bind i1: warp;
            bind j1: thread;
        }
    }
}

schedule! {
    /// The nearest of K centres, and how far it is.
    pub kernel Nearest(x: f32[N, D], c: f32[K, D]) -> (label: u32[N], distance: f32[N])
    where D <= 64, K >= 1
    {
        d[i, k] = sum(|e| (x[i, e] - c[k, e]) * (x[i, e] - c[k, e]));
        best[i] = min(|k| d[i, k]);
        place[i] = argmin(|k| d[i, k]);
        distance[i] = best[i];
        label[i] = place[i];

        launch threads(128);
        schedule distance { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule label at distance.b { like distance; }
        schedule best in registers at distance.b {
            bind i: thread; split k by 8 -> ko, k1; reorder ko, i, k1; online best -> place over ko;
            unroll k1;
        }
        schedule d in registers at best.ko { bind i: thread; reorder i, e, k; unroll k; }
        stage xs[i, e] = x in shared at distance.b {
            merge i, e -> q; split q by 128 -> r, t; bind t: thread; layout [i, e pad 1];
        }
        stage cs[k, e] = c in shared at best.ko { merge k, e -> q; split q by 128 -> r, t; bind t: thread; }
    }
}

schedule! {
    /// The cosine of the angle between rows.
    pub kernel Cosine(x: f32[M, N], y: f32[M, N]) -> (z: f32[M])
    where N % 4 == 0
    {
        xy[i] = sum(|j| x[i, j] * y[i, j]);
        xx[i] = sum(|j| x[i, j] * x[i, j]);
        yy[i] = sum(|j| y[i, j] * y[i, j]);
        z[i] = xy[i] * rsqrt(max(xx[i] * yy[i], 1e-12));

        launch threads(256);
        schedule z { split i by 8 -> b, w; bind b: grid; split w by 1 -> u, t; bind u: warp; bind t: thread; }
        schedule xy in registers per warp at z.b {
            split j by 4 -> jo, v; split jo by 32 -> r, t; bind t: thread; vectorize v; reduce t;
        }
        schedule xx in registers per warp at z.b {
            split j by 4 -> jo, v; split jo by 32 -> r, t; bind t: thread; vectorize v; reduce t;
        }
        schedule yy in registers per warp at z.b {
            split j by 4 -> jo, v; split jo by 32 -> r, t; bind t: thread; vectorize v; reduce t;
        }
    }
}

schedule! {
    /// SGD with momentum and an average of the weights, all in place, and the weights in bf16 as well.
    pub kernel Momentum(inout p: f32[N], inout m: f32[N], inout e: f32[N], g: bf16[N],
                        rate: f32, beta: f32, decay: f32) -> (q: bf16[N])
    where N % 4 == 0
    {
        mn[i] = beta * m[i] + g[i] as f32;
        pn[i] = p[i] - rate * mn[i];
        (p, m, e, q)[i] = (pn[i], mn[i], decay * e[i] + (1.0 - decay) * pn[i], pn[i] as bf16);

        launch threads(256);
        schedule p { split i by 4 -> io, v; split io by 256 -> b, t; bind b: grid; bind t: thread; vectorize v; }
    }
}

schedule! {
    /// One step of the Haar wavelet: averages, and differences along columns, rows and both.
    pub kernel Haar(x: f32[2 * H, 2 * W]) -> (a: f32[H, W], h: f32[H, W], v: f32[H, W], d: f32[H, W])
    where W % 2 == 0
    {
        (a, h, v, d)[i, j] = (
            0.5 * (x[2 * i, 2 * j] + x[2 * i, 2 * j + 1] + x[2 * i + 1, 2 * j] + x[2 * i + 1, 2 * j + 1]),
            0.5 * (x[2 * i, 2 * j] - x[2 * i, 2 * j + 1] + x[2 * i + 1, 2 * j] - x[2 * i + 1, 2 * j + 1]),
            0.5 * (x[2 * i, 2 * j] + x[2 * i, 2 * j + 1] - x[2 * i + 1, 2 * j] - x[2 * i + 1, 2 * j + 1]),
            0.5 * (x[2 * i, 2 * j] - x[2 * i, 2 * j + 1] - x[2 * i + 1, 2 * j] + x[2 * i + 1, 2 * j + 1]),
        );

        launch threads(128);
        schedule a { split j by 256 -> jb, j1; split j1 by 2 -> t, l; bind i, jb: grid; bind t: thread; vectorize l; }
        stage xr[k, l] = x in registers at a.jb { split l by 4 -> t, c; bind t: thread; vectorize c; unroll k; }
    }
}

schedule! {
    /// The mean of the first `length` tokens of each sequence.
    pub kernel MaskedMean(x: bf16[B, T, D], length: i32[B]) -> (y: f32[B, D])
    where D % 2 == 0
    {
        s[b, d] = sum(|t in 0..min(length[b], T)| x[b, t, d] as f32);
        y[b, d] = s[b, d] / max(length[b] as f32, 1.0);

        launch threads(128);
        schedule y {
            split d by 64 -> g, d1;
            split d1 by 2 -> c, v;
            bind b, g: grid;
            bind c: thread;
            vectorize v;
        }
        schedule s in registers at y.g {
            split t by 4 -> to, w;
            split d by 2 -> c, v;
            reorder w, c; reorder b, to, v; bind w: warp;
            bind c: thread;
            reduce w;
            vectorize v;
        }
    }
}

schedule! {
    /// How many of 64 steps stay inside, for each point of a rectangle.
    pub kernel Mandelbrot(x0: f32, y0: f32, step: f32) -> (n: u32[H, W]) {
        (re, im, count)[i, j] = fold(|k in 0..64| init (0.0f32, 0.0f32, 0u32),
            step (a, b, c) => (
                if a * a + b * b <= 4.0 { a * a - b * b + (x0 + j as f32 * step) } else { a },
                if a * a + b * b <= 4.0 { 2.0 * a * b + (y0 + i as f32 * step) } else { b },
                if a * a + b * b <= 4.0 { c + 1 } else { c }));
        n[i, j] = count[i, j];

        launch threads(256);
        schedule n {
            split i by 8 -> io, i1;
            split j by 32 -> jo, j1;
            reorder io, jo, i1, j1;
            bind io, jo: grid;
            bind i1: warp;
            bind j1: thread;
        }
        schedule count in registers per thread at n.j1 { }
    }
}

schedule! {
    /// Rows of 16 × 16 blocks times a dense matrix.
    pub kernel BlockSparse(row: i32[P], column: i32[Z], block: f32[Z, 16, 16], x: f32[K, N]) -> (y: f32[M, 16, N])
    where P == M + 1
    {
        y[m, r, n] = sum(|p in min(max(row[m], 0), Z)..min(row[m + 1], Z), q in 0..16|
            block[p, r, q] * (x[16 * column[p] + q, n] or 0.0));

        launch threads(128);
        schedule y {
            split n by 32 -> no, n1;
            split r by 4 -> rw, ri;
            reorder m, no, rw, n1, p, q, ri;
            bind m, no: grid;
            bind rw: warp;
            bind n1: thread;
            unroll ri;
        }
    }
}

schedule! {
    /// 8-bit floats with a scale for each row.
    pub kernel Quantise8(x: f16[M, N]) -> (q: e4m3[M, N], scale: f32[M])
    where N % 8 == 0, N <= 8192
    {
        m[i] = max(|j| abs(x[i, j]));
        s[i] = max(m[i] as f32, 1e-6) / 448.0;
        q[i, j] = (x[i, j] as f32 / s[i]) as e4m3;
        scale[i] = s[i];

        launch threads(256);
        schedule q {
            bind i: grid; split j by 8 -> jo, v; split jo by 256 -> r, t; bind t: thread;
            vectorize v; unroll r;
        }
        stage xr[i, j] = x in registers at q.i { like q; }
        schedule m in registers at q.i { like q; reduce t; }
        schedule scale at q.i { bind i: grid; }
    }
}

schedule! {
    /// The pull of all bodies on each.
    #[allow(TW0491)]                          // what one store leaves of a sector, the next two fill
    pub kernel Gravity(p: f32[N, 3], mass: f32[N], soft: f32) -> (a: f32[N, 3]) {
        d[i, j, c] = p[j, c] - p[i, c];
        r2[i, j] = soft * soft + d[i, j, 0] * d[i, j, 0] + d[i, j, 1] * d[i, j, 1] + d[i, j, 2] * d[i, j, 2];
        w[i, j] = mass[j] * rsqrt(r2[i, j]) * rsqrt(r2[i, j]) * rsqrt(r2[i, j]);
        a[i, c] = sum(|j| w[i, j] * d[i, j, c]);

        launch threads(128);
        schedule a {
            split i by 128 -> b, t; split j by 128 -> jo, j1; reorder b, t, jo, j1, c; bind b: grid;
            bind t: thread; unroll c;
        }
        stage ps[j, c] = p in shared at a.jo { merge j, c -> k; split k by 128 -> r, t; bind t: thread; }
        schedule w in registers per thread at a.j1 { }
    }
}

schedule! {
    /// Squared distances of all pairs, by tensor cores.
    pub kernel Distances(x: bf16[M, K], y: bf16[N, K]) -> (d: f32[M, N])
    where K % 8 == 0
    {
        xx[m] = sum(|k| x[m, k] as f32 * x[m, k] as f32);
        yy[n] = sum(|k| y[n, k] as f32 * y[n, k] as f32);
        acc[m, n] = dot(|k| x[m, k] * y[n, k]);
        d[m, n] = max(xx[m] + yy[n] - 2.0 * acc[m, n], 0.0);

        launch threads(128);
        schedule d {
            split m by 64 -> mt, mi;
            split n by 64 -> nt, ni;
            reorder mt, nt, mi, ni;
            bind mt, nt: grid;
            fragment (mi, ni) by wgmma;
            unroll ni_p;
        }
        schedule acc in registers at d.nt { split k by 64 -> ko, ki; mma (m, n, ki) by wgmma; }
        stage sx[m, k] = x in shared at acc.ko ring(4) via tma { layout [m, k] swizzle 128; }
        stage sy[n, k] = y in shared at acc.ko ring(4) via tma { layout [n, k] swizzle 128; }
        schedule xx in shared at d.nt {
            split m by 4 -> mo, w; split k by 32 -> kr, l; bind w: warp; bind l: thread; reduce l;
        }
        schedule yy in shared at d.nt {
            split n by 4 -> no, w; split k by 32 -> kr, l; bind w: warp; bind l: thread; reduce l;
        }
    }
}

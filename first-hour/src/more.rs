//! Six more of the second try, in which messages misled.

use tilewright::schedule;

#[cfg(test)]
mod tests;

schedule! {
    /// The transpose, with zeros up to the next multiple of 8 columns.
    pub kernel PadTranspose(x: f16[M, N]) -> (y: f16[N, P])
    where P % 8 == 0, P >= M
    {
        y[j, i] = x[i, j] or 0.0;

        launch threads(256);
        schedule y {
            split j by 32 -> jo, j1;
            split i by 64 -> io, i1;
            split i1 by 8 -> iq, v;
            reorder jo, io, j1, iq, v;
            bind jo, io: grid;
            bind j1, iq: thread;
            vectorize v;
        }
        stage xs[i, j] = x in shared at y.io {
            split i by 8 -> ir, w; bind w: warp; bind j: thread; layout [j, i pad 2];
        }
    }
}

schedule! {
    /// Each row from its end.
    pub kernel Flip(x: u16[M, N]) -> (y: u16[M, N])
    where N % 8 == 0
    {
        y[i, j] = x[i, N - 1 - j];

        launch threads(256);
        schedule y {
            split j by 8 -> jo, v; merge i, jo -> p; split p by 256 -> b, t; bind b: grid;
            bind t: thread; vectorize v;
        }
        stage xr[i, j] = x in registers per thread at y.t { vectorize j; }
    }
}

schedule! {
    /// Points, turned by the quaternion of their batch.
    pub kernel Rotate(q: f32[B, 4], p: f32[B, N, 3]) -> (r: f32[B, N, 3]) {
        // t = 2 q × p; r = p + w t + q × t
        u[b, c in 0..3] = q[b, 1 + (c + 1) % 3];
        v[b, c in 0..3] = q[b, 1 + (c + 2) % 3];
        t[b, n, c in 0..3] = 2.0 * (u[b, c] * p[b, n, (c + 2) % 3] - v[b, c] * p[b, n, (c + 1) % 3]);
        s[b, n, c] = u[b, c] * t[b, n, (c + 2) % 3] - v[b, c] * t[b, n, (c + 1) % 3];
        r[b, n, c] = p[b, n, c] + q[b, 0] * t[b, n, c] + s[b, n, c];

        launch threads(256);
        schedule r { merge n, c -> k; split k by 256 -> g, l; bind b, g: grid; bind l: thread; }
    }
}

schedule! {
    /// A step of the heat equation in three dimensions; the boundary stays.
    pub kernel Heat(u: f32[D, H, W], k: f32) -> (v: f32[D, H, W]) {
        v[z, i, j] = if z >= 1 && z < D - 1 && i >= 1 && i < H - 1 && j >= 1 && j < W - 1 {
            u[z, i, j] + k * (u[z - 1, i, j] + u[z + 1, i, j] + u[z, i - 1, j] + u[z, i + 1, j]
                + u[z, i, j - 1] + u[z, i, j + 1] - 6.0 * u[z, i, j])
        } else { u[z, i, j] };

        launch threads(256);
        schedule v {
            split i by 8 -> io, i1; split j by 32 -> jo, j1; split z by 8 -> zo, z1;
            reorder zo, io, jo, i1, j1, z1; bind zo, io, jo: grid; bind i1: warp; bind j1: thread;
        }
    }
}

schedule! {
    /// Prices of European options: call and put.
    pub kernel BlackScholes(s: f32[N], k: f32[N], t: f32[N], r: f32, vol: f32) -> (call: f32[N], put: f32[N])
    where N % 4 == 0
    {
        d1[i] = (log(s[i] / k[i]) + (r + 0.5 * vol * vol) * t[i]) / (vol * sqrt(t[i]));
        d2[i] = d1[i] - vol * sqrt(t[i]);
        n1[i] = 0.5 + 0.5 * erf(0.707_106_77 * d1[i]);
        n2[i] = 0.5 + 0.5 * erf(0.707_106_77 * d2[i]);
        f[i] = k[i] * exp(-r * t[i]);
        call[i] = s[i] * n1[i] - f[i] * n2[i];
        put[i] = f[i] * (1.0 - n2[i]) - s[i] * (1.0 - n1[i]);

        launch threads(256);
        schedule call { split i by 4 -> q, v; split q by 256 -> b, l; bind b: grid; bind l: thread; vectorize v; }
        schedule put at call.b { like call; }
        schedule d1 in registers at call.b { like call; }
        schedule n1 in registers at call.b { like call; }
        schedule n2 in registers at call.b { like call; }
        schedule f in registers at call.b { like call; }
    }
}

schedule! {
    /// Luma of interleaved colours, in integers.
    pub kernel Grey(x: u8[H, W, 3]) -> (y: u8[H, W])
    where W % 4 == 0
    {
        y[i, j] = ((77 * x[i, j, 0] as u32 + 150 * x[i, j, 1] as u32 + 29 * x[i, j, 2] as u32 + 128) >> 8) as u8;

        launch threads(256);
        schedule y {
            split j by 1024 -> jb, j1;
            split j1 by 4 -> t, v;
            bind i, jb: grid;
            bind t: thread;
            vectorize v;
        }
        stage xs[i, j, c] = x in shared at y.jb {
            merge j, c -> k;
            split k by 256 -> r, t;           // neighbouring threads take neighbouring bytes
            bind t: thread;
        }
    }
}

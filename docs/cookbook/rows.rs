//! Kernels of the page `cookbook/rows.md`: something is known of a row only when all of it was read.

use tilewright::schedule;

schedule! {
    /// h += r, and y = h · w / √(mean of h² + ε): the residual and the norm before the next layer.
    pub kernel ResidualRmsNorm(h: bf16[M, N], r: bf16[M, N], w: bf16[N], eps: f32)
    -> (sum: bf16[M, N], y: bf16[M, N])
    where N % 8 == 0, N <= 8192, N >= 1
    {
        z[i, j]   = (h[i, j] as f32 + r[i, j] as f32) as bf16;
        ss[i]     = sum(|j| z[i, j] as f32 * z[i, j] as f32);
        sum[i, j] = z[i, j];
        y[i, j]   = (z[i, j] as f32 * rsqrt(ss[i] / N as f32 + eps) * w[j] as f32) as bf16;

        launch threads(256);
        schedule y {
            bind i: grid;
            split j by 8 -> jo, v;
            split jo by 256 -> q, t;
            bind t: thread;
            vectorize v;
            unroll q;
        }
        schedule sum at y.i              { like y; }
        schedule z in registers at y.i   { like y; }
        schedule ss in registers at y.i  { like y; reduce t; }
    }
}

schedule! {
    /// loss = log Σ exp x − x[label]: the cross entropy of each row, from its logits.
    pub kernel LogSoftmaxLoss(x: f32[M, N], label: i32[M]) -> (loss: f32[M])
    where N % 4 == 0, N >= 1
    {
        m[i]    = max(|j| x[i, j]);
        s[i]    = online sum(|j| exp(x[i, j] - m[i]));
        loss[i] = m[i] + log(s[i]) - (x[i, label[i]] or 0.0);

        launch threads(256);
        schedule loss { split i by 1 -> b, t; bind b: grid; bind t: thread; }       // the first thread writes it
        schedule m in registers at loss.b {
            split j by 4 -> jo, v;
            split jo by 256 -> q, t;
            bind t: thread;
            vectorize v;
            reduce t;
            online m -> s over q;
        }
        stage xr[i, j] = x in registers at m.q { like m; }      // the loops inside of `q` run twice
    }
}

schedule! {
    /// The largest element of each row and its place: top-1.
    #[allow(TW0690)]                          // eight threads of a block write its rows
    pub kernel ArgMax(x: f32[M, N]) -> (value: f32[M], place: u32[M])
    where N >= 1
    {
        (best, at)[i] = fold(|j| init (-inf as f32, 0u32),
            step (b, k) => (if x[i, j] > b { x[i, j] } else { b }, if x[i, j] > b { j as u32 } else { k }),
            merge ((b1, k1), (b2, k2)) => (
                if b2 > b1 || b2 == b1 && k2 < k1 { b2 } else { b1 },
                if b2 > b1 || b2 == b1 && k2 < k1 { k2 } else { k1 }
            ));
        value[i] = best[i];
        place[i] = at[i];

        launch threads(256);
        schedule value { split i by 8 -> b, t; bind b: grid; bind t: thread; }
        schedule place at value.b { like value; }
        schedule best in shared at value.b {
            split j by 32 -> q, t;
            bind i: warp;                     // a row a warp
            bind t: thread;
            reduce t;
        }
    }
}

schedule! {
    /// Group norm: each image has G groups of C channels of P pixels, and a group has mean 0 and variance 1.
    pub kernel GroupNorm(x: f32[B, G, C, P], scale: f32[G, C], shift: f32[G, C], eps: f32) -> (y: f32[B, G, C, P])
    where P % 4 == 0, P >= 1, C >= 1
    {
        mean[b, g]    = sum(|c, p| x[b, g, c, p]) / (C * P) as f32;
        var[b, g]     = sum(|c, p| (x[b, g, c, p] - mean[b, g]) * (x[b, g, c, p] - mean[b, g])) / (C * P) as f32;
        y[b, g, c, p] = (x[b, g, c, p] - mean[b, g]) * rsqrt(var[b, g] + eps) * scale[g, c] + shift[g, c];

        launch threads(256);
        schedule y {
            bind b, g: grid;
            split p by 4 -> q, v;
            merge c, q -> k;
            split k by 256 -> r, t;
            bind t: thread;
            vectorize v;
        }
        schedule mean in registers at y.g { like y; reduce t; }
        schedule var in registers at y.g  { like y; reduce t; }
    }
}

//! Kernels of the page `cookbook/elementwise.md`: one thread has some neighbouring elements, and nothing is shared.

use tilewright::schedule;

schedule! {
    /// y = GELU(x + b), by rows: the bias of a linear layer and its activation.
    pub kernel BiasGelu(x: bf16[M, N], b: bf16[N]) -> (y: bf16[M, N])
    where N % 8 == 0
    {
        u[i, j] = x[i, j] as f32 + b[j] as f32;
        y[i, j] = (0.5 * u[i, j] * (1.0 + erf(0.707_106_77 * u[i, j]))) as bf16;

        launch threads(256);
        schedule y {
            split j by 8 -> jo, v;            // 16 bytes of bf16; they never cross a row
            merge i, jo -> p;
            split p by 256 -> g, t;
            bind g: grid;
            bind t: thread;
            vectorize v;
        }
    }
}

schedule! {
    /// y = SiLU(gate) · up, where a row of `x` has the gate first and the other half after it.
    pub kernel SwiGlu(x: bf16[M, 2, N]) -> (y: bf16[M, N])
    where N % 8 == 0
    {
        g[i, j] = x[i, 0, j] as f32;
        y[i, j] = (g[i, j] / (1.0 + approx::exp(-g[i, j])) * x[i, 1, j] as f32) as bf16;

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
    /// Rotary embedding: the halves of each head are turned by the angle of their position.
    pub kernel Rope(x: bf16[S, H, 2, D], cosine: f32[S, D], sine: f32[S, D]) -> (y: bf16[S, H, 2, D])
    where D % 8 == 0
    {
        t[s, h, r, d] = (2 * r - 1) as f32 * x[s, h, 1 - r, d] as f32;      // the other half, with its sign
        y[s, h, r, d] = (x[s, h, r, d] as f32 * cosine[s, d] + t[s, h, r, d] * sine[s, d]) as bf16;

        launch threads(128);
        schedule y {
            split d by 8 -> q, v;
            reorder s, h, q, r, v;            // a thread has both halves, so that each is loaded once
            merge s, h, q -> p;
            split p by 128 -> b, t;
            bind b: grid;
            bind t: thread;
            unroll r;
            vectorize v;
        }
    }
}

schedule! {
    /// One step of Adam: weights and moments in place, gradients in bf16.
    pub kernel Adam(inout p: f32[N], inout m: f32[N], inout v: f32[N], g: bf16[N],
                    rate: f32, b1: f32, b2: f32, c1: f32, c2: f32, eps: f32)
    where N % 4 == 0
    {
        m1[i] = b1 * m[i] + (1.0 - b1) * g[i] as f32;
        v1[i] = b2 * v[i] + (1.0 - b2) * (g[i] as f32 * g[i] as f32);
        (p, m, v)[i] = (p[i] - rate * (m1[i] * c1) / (sqrt(v1[i] * c2) + eps), m1[i], v1[i]);

        launch threads(256);
        schedule p { split i by 4 -> q, w; split q by 256 -> b, t; bind b: grid; bind t: thread; vectorize w; }
    }
}

schedule! {
    /// Dropout: each element is kept with a probability, and scaled so that the mean stays. The hash is PCG's output
    /// function for 32 bits (M. Jarzynski, M. Olano, Hash functions for GPU rendering, 2020).
    pub kernel Dropout(x: f32[N], keep: f32, seed: u32) -> (y: f32[N])
    where N % 4 == 0
    {
        a[i] = (i as u32 + seed) * 747_796_405u32 + 2_891_336_453u32;
        b[i] = ((a[i] >> ((a[i] >> 28u32) + 4u32)) ^ a[i]) * 277_803_737u32;
        h[i] = (b[i] >> 22u32) ^ b[i];
        u[i] = (h[i] >> 8u32) as f32 / 16_777_216.0;                // 24 bits, from 0 to below 1
        y[i] = (if u[i] < keep { 1.0 } else { 0.0 }) * (x[i] / keep);

        launch threads(256);
        schedule y {
            split i by 4 -> q, v;
            split q by 256 -> g, t;
            bind g: grid;
            bind t: thread;
            vectorize v;
        }
    }
}

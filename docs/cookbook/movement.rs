//! Kernels of the page `cookbook/movement.md`: elements change places, and little is computed.

use tilewright::schedule;

schedule! {
    /// y[t, d] = table[id[t], d], and 0 for a token that is none.
    pub kernel Embedding(id: i32[T], table: bf16[V, D]) -> (y: bf16[T, D])
    where D % 8 == 0
    {
        y[t, d] = table[id[t], d] or 0.0;

        launch threads(128);
        schedule y {
            split d by 1024, 8 -> r, th, v;   // eight elements of a row at a time: all are there, or none is
            bind t, r: grid;
            bind th: thread;
            vectorize v;
        }
    }
}

schedule! {
    /// Each matrix of a batch, transposed, by tiles in shared memory.
    pub kernel BatchedTranspose(x: f32[B, M, N]) -> (y: f32[B, N, M]) {
        y[b, j, i] = x[b, i, j];

        launch threads(256);
        schedule y {
            split i by 32 -> io, i1;
            split j by 32 -> jo, j1;
            split j1 by 8 -> jr, w;
            reorder b, jo, io, jr, w, i1;
            bind b, jo, io: grid;
            bind w: warp;
            bind i1: thread;                  // neighbouring lanes write neighbouring elements
        }
        stage xs[b, i, j] = x in shared at y.io {
            split i by 8 -> ir, w;
            bind w: warp;
            bind j: thread;                   // neighbouring lanes read neighbouring elements
            layout [b, i, j pad 1];
        }
    }
}

schedule! {
    /// Weights of 4 bits, two in a byte, with a scale and a zero for each 64 of a row.
    pub kernel Dequantise(q: u8[N, K / 2], scale: f16[N, K / 64], zero: u8[N, K / 64]) -> (w: bf16[N, K])
    where K % 64 == 0
    {
        nibble[n, k] = q[n, k / 2] >> ((k % 2) as u8 * 4) & 15;
        w[n, k] = ((nibble[n, k] as f32 - zero[n, k / 64] as f32) * scale[n, k / 64] as f32) as bf16;

        launch threads(256);
        schedule w {
            split k by 64, 8 -> g, kq, v;     // a group, and its 8 vectors
            merge n, g, kq -> p;
            split p by 256 -> b, t;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
        stage qr[n, c] = q in registers per thread at w.t { vectorize c; }      // 4 bytes at once
    }
}

schedule! {
    /// A convolution of each channel with its own 3 × 3 filter, with zeros around the image.
    pub kernel Depthwise(x: f32[B, C, H, W], f: f32[C, 3, 3]) -> (y: f32[B, C, H, W]) {
        y[b, c, i, j] = sum(|r, s| (x[b, c, i + r - 1, j + s - 1] or 0.0) * f[c, r, s]);

        launch threads(256);
        schedule y {
            merge b, c -> p;
            split i by 8 -> io, i1;
            split j by 32 -> jo, j1;
            reorder p, io, jo, i1, j1, r, s;
            bind p, io, jo: grid;
            bind i1: warp;
            bind j1: thread;
            unroll r;
            unroll s;
        }
    }
}

schedule! {
    /// The largest of each 2 × 2 elements.
    pub kernel MaxPool(x: f16[B, C, 2 * H, 2 * W]) -> (y: f16[B, C, H, W])
    where W % 4 == 0
    {
        y[b, c, i, j] = max(|r in 0..2, s in 0..2| x[b, c, 2 * i + r, 2 * j + s]);

        launch threads(256);
        schedule y {
            split j by 4 -> jo, v;
            merge b, c, i, jo -> p;
            split p by 256 -> g, t;
            reorder g, t, r, s, v;
            bind g: grid;
            bind t: thread;
            vectorize v;
            unroll r;
            unroll s;
        }
        stage xr[b, c, k, l] = x in registers per thread at y.t { vectorize l; }      // two rows of 8, 16 bytes each
    }
}

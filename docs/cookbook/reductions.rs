//! Kernels of the page `cookbook/reductions.md`: many elements become few.

use tilewright::schedule;

schedule! {
    /// How many elements have each of 256 values.
    pub kernel Histogram(x: u8[N]) -> (count: u32[256])
    where N % 16 == 0
    {
        count[b] = sum(|i| if x[i] as u32 == b as u32 { 1u32 } else { 0u32 });

        launch threads(256);
        schedule count {
            split i by 4096 -> io, ii;
            reorder io, b, ii;
            bind io: grid;
            bind b: thread;
            reduce io by atomic;
        }
        stage xs[i] = x in shared at count.io {
            split i by 16 -> q, v;
            bind q: thread;
            vectorize v;
        }
    }
}

schedule! {
    /// y = A · x, with A in compressed sparse rows: those of row i are row[i] to row[i + 1].
    pub kernel SparseRows(row: u32[P], column: u32[Z], value: f32[Z], x: f32[N]) -> (y: f32[M])
    where P == M + 1
    {
        y[i] = sum(|p in min(row[i], Z)..min(row[i + 1], Z)| value[p] * (x[column[p]] or 0.0));

        launch threads(256);
        schedule y {
            split i by 8 -> b, w;
            split p by 32 -> po, l;
            bind b: grid;
            bind w: warp;                     // a row a warp
            bind l: thread;
            reduce l;
        }
    }
}

schedule! {
    /// y = W · x, for one vector: a layer while one token is made.
    pub kernel MatVec(w: bf16[M, K], x: bf16[K]) -> (y: f32[M])
    where K % 8 == 0
    {
        y[m] = dot(|k| w[m, k] * x[k]);

        launch threads(256);
        schedule y {
            split m by 8 -> b, wp;
            split k by 8 -> kq, v;
            split kq by 32 -> r, t;
            bind b: grid;
            bind wp: warp;                    // a row a warp
            bind t: thread;
            vectorize v;
            reduce t;
        }
    }
}

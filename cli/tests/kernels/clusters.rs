//! A copy that the blocks of a cluster take together.

tilewright::schedule! {
    pub kernel Outer(a: f32[M], b: f32[N]) -> (c: f32[M, N])
    where N % 4 == 0
    {
        c[i, j] = a[i] * b[j];
        launch cluster(4), threads(64);
        schedule c {
            split i by 4 -> io, ic;
            bind io: grid;
            bind ic: cta;
            split j by 128 -> jo, ji;
            split ji by 64 -> r, t;
            bind t: thread;
        }
        stage bs[j] = b in shared at c.jo ring(2) via tma { box j by 32 -> jb, jj; multicast c.ic by jb; }
    }
}

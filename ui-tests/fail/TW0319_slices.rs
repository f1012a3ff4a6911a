//! As many slices as blocks.

tilewright::schedule! {
    kernel Outer(a: f32[M], b: f32[N]) -> (c: f32[M, N]) where N % 4 == 0 {
        c[i, j] = a[i] * b[j];
        launch cluster(4), threads(64);
        schedule c {
            split i by 4 -> io, ic;
            split j by 64 -> jo, t;
            reorder io, jo, ic, t;
            bind io, jo: grid;
            bind ic: cta;
            bind t: thread;
        }
        stage bs[j] = b in shared at c.ic via tma { box j by 32 -> jb, jj; multicast c.ic by jb; }
    }
}

fn main() {}

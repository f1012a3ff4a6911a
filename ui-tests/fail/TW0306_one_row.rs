//! All rows of a tensor are one.

use tilewright::schedule;

schedule! {
    kernel Scale(x: f32[M, N; 0, 1]) -> (y: f32[M, N]) where N % 4 == 0 {
        y[i, j] = 2.0 * x[i, j];
        launch threads(256);
        schedule y {
            split i by 32 -> io, ii;
            split j by 32 -> jo, ji;
            reorder io, jo, ii, ji;
            bind io, jo: grid;
            split ii by 8 -> r, w;
            bind w: thread;
            bind ji: thread;
        }
        stage xs[i, j] = x in shared at y.jo via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; }
    }
}

fn main() {}

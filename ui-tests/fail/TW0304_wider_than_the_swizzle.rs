//! Rows of a box that are longer than the span of the swizzle.

tilewright::schedule! {
    kernel Twice(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
        y[i, j] = 2.0 * x[i, j];
        launch threads(64);
        schedule y {
            split i by 8 -> io, ii; split j by 64 -> jo, ji; reorder io, jo, ii, ji;
            bind io, jo: grid; bind ji: thread;
        }
        stage xs[i, j] = x in shared at y.jo via tma {
            box i by 8 -> ic, ib;
            box j by 64 -> jc, jb;
            layout [ib, jb] swizzle 128;
        }
    }
}

fn main() {}

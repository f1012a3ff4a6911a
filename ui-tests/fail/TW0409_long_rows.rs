//! A swizzle of parts of rows that are longer than any span.

tilewright::schedule! {
    kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
        y[i, j] = 2.0 * x[i, j];
        launch threads(256);
        schedule y {
            split i by 32 -> io, ii;
            split j by 64 -> jo, ji;
            reorder io, jo, ii, ji;
            bind io, jo: grid;
            split ii by 4 -> r, w;
            bind w: thread;
            bind ji: thread;
        }
        stage xs[i, j] = x in shared at y.jo via tma {
            box i by 32 -> ic, ib;
            box j by 64 -> jc, jb;
            split ib by 8 -> eights, row;
            split jb by 32 -> half, column;
            split column by 4 -> chunk, lane;
            swizzle row, chunk by xor -> row2, chunk2;
            layout [eights, row2, half, chunk2, lane];
        }
    }
}

fn main() {}

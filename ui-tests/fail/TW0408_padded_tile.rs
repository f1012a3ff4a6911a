//! Padding between the rows of a tile that the accelerator writes.

tilewright::schedule! {
    kernel Transpose(x: f32[M, N]) -> (y: f32[N, M]) where N % 4 == 0 {
        y[j, i] = x[i, j];
        launch threads(32);
        schedule y {
            split j by 32 -> jo, ji; split i by 32 -> io, ii; reorder jo, io, ji, ii;
            bind jo, io: grid; bind ii: thread;
        }
        stage xs[i, j] = x in shared at y.io via tma {
            box i by 32 -> ic, ib;
            box j by 32 -> jc, jb;
            layout [ib, jb pad 4];
        }
    }
}

fn main() {}

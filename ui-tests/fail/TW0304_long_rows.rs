//! Rows that are longer than a box can be, which runs of memory are.

tilewright::schedule! {
    kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) where M % 4 == 0, N % 512 == 0 {
        y[i, j] = 2.0 * x[i, j];
        launch threads(256);
        schedule y {
            split i by 4 -> io, ii;
            split j by 512 -> jo, ji;
            reorder io, jo, ii, ji;
            bind io, jo: grid;
            split ji by 256 -> r, t;
            bind t: thread;
        }
        stage xs[i, j] = x in shared at y.jo via tma { }
    }
}

fn main() {}

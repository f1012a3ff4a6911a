//! Rows that a view counts together: behind a row there is the next one, not the end of the tensor.

tilewright::schedule! {
    kernel Sums(x: f32[M, 20]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch threads(32);
        schedule y {
            split i by 32 -> io, ii; split j by 8 -> jo, ji; reorder io, ii, jo, ji;
            bind io: grid; bind ii: thread;
        }
        stage xs[i, j] = x in shared at y.jo via tma { merge i, j -> m; box m by 8 -> mc, mb; fill zero; }
    }
}

fn main() {}

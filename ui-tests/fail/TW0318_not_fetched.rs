//! Elements that are shorter than what `cp.async` moves.

tilewright::schedule! {
    kernel Rows(x: bf16[M, N]) -> (y: bf16[M, N]) where N % 64 == 0 {
        y[i, j] = x[i, N - 1 - j];
        launch threads(64);
        schedule y {
            split i by 4 -> io, is;
            split j by 64 -> jo, ji;
            reorder io, jo, is, ji;
            bind io, jo: grid;
            bind ji: thread;
        }
        stage xs[i, j] = x in shared at y.is ring(3) via cp_async { bind j: thread; }
    }
}

fn main() {}

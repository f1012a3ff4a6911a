//! Padding that moves rows off the multiples where vectors start: of the stage that is written, and of its reader.

tilewright::schedule! {
    kernel Written(x: f32[M, N]) -> (y: f32[M, N]) where N % 64 == 0 {
        y[i, j] = x[i, j] + x[i, j];
        launch threads(256);
        schedule y {
            split i by 16 -> io, ii; split j by 64 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid;
            merge ii, ji -> p; split p by 256 -> r, t; bind t: thread;
        }
        stage xs[i, j] = x in shared at y.jo via cp_async {
            split j by 4 -> jc, v; merge i, jc -> p; bind p: thread; vectorize v;
            layout [i, j pad 1];
        }
    }

    kernel Read(x: f32[M, N]) -> (y: f32[M, N]) where N % 64 == 0 {
        y[i, j] = x[i, j] + x[i, j];
        launch threads(256);
        schedule y {
            split i by 16 -> io, ii; split j by 64 -> jo, ji; reorder io, jo, ii, ji; bind io, jo: grid;
            split ji by 4 -> jc, v; merge ii, jc -> p; bind p: thread; vectorize v;
        }
        stage xs[i, j] = x in shared at y.jo {
            merge i, j -> p; split p by 256 -> r, t; bind t: thread;
            layout [i, j pad 2];
        }
    }
}

fn main() {}

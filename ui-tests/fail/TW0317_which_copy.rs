//! A read that takes none of the copies of its tensor, and one that takes two.

tilewright::schedule! {
    kernel Gram(x: f32[M, 64]) -> (y: f32[M, M]) {
        y[i, j] = sum(|k| x[i, k] * x[j, k]);
        launch threads(32);
        schedule y { split j by 32 -> jo, t; reorder i, jo, t; bind i, jo: grid; bind t: thread; }
        stage xa[i, k] = x in shared at y.jo via tma { box k by 64 -> kc, kb; }
        stage xb[r, k] = x in shared at y.jo via tma { box r by 32 -> rc, rb; box k by 64 -> kc, kb; }
    }

    kernel Twice(x: f32[64]) -> (y: f32[64]) {
        y[i] = x[i] + x[63 - i];
        schedule y { split i by 32 -> io, t; bind io: grid; bind t: thread; }
        stage xa[i] = x in shared at y.io via tma { box i by 32 -> c, b; }
        stage xb[i] = x in shared at y.io via tma { box i by 32 -> c, b; }
    }
}

fn main() {}

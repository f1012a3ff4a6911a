//! Lanes of a vector, of which some are asked for.

tilewright::schedule! {
    kernel Rows(x: f32[64, 36]) -> (y: f32[64, 36]) {
        e[i, j] = exp(x[i, j]);
        y[i, j] = e[i, j] * 2.0;
        launch threads(32);
        schedule y { merge i, j -> f; split f by 32 -> fo, t; bind fo: grid; bind t: thread; }
        schedule e in shared at y.fo { region exact; split j by 4 -> jo, v; merge i, jo -> p; bind p: thread; vectorize v; }
    }
}

fn main() {}

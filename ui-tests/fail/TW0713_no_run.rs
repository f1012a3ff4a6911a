//! A window of a matrix as a run of elements.

tilewright::schedule! {
    kernel Windows(x: f32[8, 64]) -> (y: f32[8, 64]) {
        e[i, j] = exp(x[i, j]);
        y[i, j] = e[i, j] * 2.0;
        launch threads(32);
        schedule y { split j by 32 -> jo, t; reorder jo, i, t; bind jo: grid; bind t: thread; }
        schedule e in shared at y.jo { region flat -> p; split p by 32 -> q, t; bind t: thread; }
    }
}

fn main() {}

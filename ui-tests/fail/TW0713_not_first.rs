//! A region behind ops on its axes, and one of an output.

tilewright::schedule! {
    kernel Late(x: f32[8, 64]) -> (y: f32[8, 64]) {
        e[i, j] = exp(x[i, j]);
        y[i, j] = e[i, j] * 2.0;
        launch threads(32);
        schedule y { region cover; split j by 32 -> jo, t; reorder jo, i, t; bind jo: grid; bind t: thread; }
        schedule e in shared at y.jo { bind j: thread; region exact; }
    }
}

fn main() {}

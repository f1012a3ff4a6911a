//! An instance for each warpgroup, where nothing is given to them.

tilewright::schedule! {
    kernel Mirror(x: f32[M, 128]) -> (y: f32[M, 128]) {
        h[i, j] = x[i, j] * 2.0;
        y[i, j] = h[i, 127 - j];
        launch threads(128);
        schedule y { bind i: grid; bind j: thread; }
        schedule h in shared per warpgroup at y.i { bind j: thread; }
    }
}

fn main() {}

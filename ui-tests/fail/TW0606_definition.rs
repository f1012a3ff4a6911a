//! A unit with an entry that is no size, and one with lists of different lengths.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        launch threads(64);
        unit odd { domain: [block - 1], box: [1] }
        schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Twice(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        launch threads(64);
        unit long { domain: [block / 2, 2], box: [1] }
        schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

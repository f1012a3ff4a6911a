//! A unit that narrows a block in two directions.

tilewright::schedule! {
    kernel Scale(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        launch threads(256);
        unit quad { domain: [block / 16, 16], box: [2, 4] }
        schedule y {
            split i by 8 -> b, q;
            split j by 8 -> r, t;
            bind b: grid;
            bind q: quad;
            bind t: thread;
        }
    }
}

fn main() {}

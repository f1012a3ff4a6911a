//! A clause written twice or missing.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        launch threads(128), threads(256);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

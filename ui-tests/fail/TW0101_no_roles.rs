//! A stage for a role in a launch that has none.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        launch threads(128);
        schedule y by math { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}

//! A block that has a part of a warpgroup.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        launch threads(192);
        schedule y {
            split i by 128 -> b, r;
            split r by 128 -> g, t;
            bind b: grid;
            bind g: warpgroup;
            bind t: thread;
        }
    }
}

fn main() {}
